%% Transactions and commits, as a program in Erlang sees them. The engine's own
%% tests say more of their protocol (crates/larder/tests/transactions.rs).
-module(transaction_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

table(Type) -> larder:new(t, [Type, public]).

sorted(T) -> lists:sort(larder:tab2list(T)).

results_test() ->
    [begin
         T = table(Type),
         true = larder:insert(T, {a, 1}),
         ?assertEqual({atomic, [{a, 1}]},
                      larder:transaction([T], fun([X]) ->
                          Had = larder:lookup(X, a),
                          larder:insert(X, [{b, 2}, {c, 3}]),
                          larder:delete(X, a),
                          [{b, 2}, {c, 3}] = sorted(X),
                          [{a, 1}] = larder:tab2list(T),
                          Had
                      end)),
         ?assertEqual([{b, 2}, {c, 3}], sorted(T)),
         ?assertEqual(2, larder:info(T, size))
     end || Type <- ?TYPES].

%% What ends a fun ends its transaction, without effect.
aborted_test() ->
    T = table(set),
    true = larder:insert(T, {a, 1}),
    Run = fun(End) ->
        larder:transaction([T], fun([X]) -> larder:insert(X, {a, 2}), End() end)
    end,
    ?assertEqual({aborted, why}, Run(fun() -> larder:abort(why) end)),
    ?assertEqual({aborted, {throw, ball}}, Run(fun() -> throw(ball) end)),
    ?assertEqual({aborted, bye}, Run(fun() -> exit(bye) end)),
    ?assertMatch({aborted, {badarith, [_ | _]}}, Run(fun() -> 1 / zero() end)),
    ?assertMatch({aborted, {badarg, [_ | _]}}, Run(fun() -> larder:insert(T, not_a_tuple) end)),
    ?assertEqual([{a, 1}], larder:tab2list(T)),
    %% The process is in no transaction any more.
    ?assertEqual({atomic, ok}, Run(fun() -> ok end)),
    ?assertEqual([{a, 2}], larder:tab2list(T)).

zero() -> list_to_integer("0").

views_test() ->
    T = table(set),
    {atomic, View} = larder:transaction([T], fun([X]) ->
        ?assertError(badarg, larder:delete(X)),
        ?assertError(badarg, larder:rename(X, y)),
        ?assertError(badarg, larder:setopts(X, [{protection, public}])),
        ?assertError(badarg, larder:give_away(X, spawn(fun() -> receive stop -> ok end end), data)),
        ?assertEqual(set, larder:info(X, type)),
        X
    end),
    ?assertError(badarg, larder:lookup(View, a)),
    ?assertError(badarg, larder:insert(View, {a})),
    ?assertError(badarg, larder:transaction([T, T], fun(_) -> ok end)),
    ?assertError(badarg, larder:transaction([no_such_table], fun(_) -> ok end)),
    ?assertError(badarg, larder:transaction(T, fun(_) -> ok end)).

%% A view is private, but a file of it gets the protection of its table.
saved_view_test() ->
    File = larder_test:file("saved_view"),
    [begin
         T = larder:new(t, [Protection]),
         {atomic, ok} = larder:transaction([T], fun([View]) -> larder:tab2file(View, File) end),
         {ok, Info} = larder:tabfile_info(File),
         ?assertEqual({Protection, Protection},
                      {Protection, proplists:get_value(protection, Info)}),
         true = larder:delete(T)
     end || Protection <- [public, protected, private]],
    ok = file:delete(File).

%% Every function that reads or writes answers in a transaction as outside.
whole_api_test() ->
    [begin
         {One, Other} = {table(Type), table(Type)},
         Rows = [{N rem 40, N} || N <- lists:seq(1, 100)],
         [larder:insert(T, Rows) || T <- [One, Other]],
         Expected = [F(One) || F <- calls(Type)],
         ?assertEqual({atomic, Expected},
                      larder:transaction([Other], fun([X]) -> [F(X) || F <- calls(Type)] end)),
         ?assertEqual(sorted(One), sorted(Other))
     end || Type <- ?TYPES].

calls(Type) ->
    Spec = [{{'$1', '$2'}, [{'<', '$2', 50}], ['$_']}],
    Sort = fun(F) -> fun(T) -> lists:sort(F(T)) end end,
    [fun(T) -> larder:lookup(T, 3) end,
     fun(T) -> larder:member(T, 77) end,
     Sort(fun(T) -> larder:select(T, Spec) end),
     Sort(fun(T) -> larder:match_object(T, {3, '_'}) end),
     Sort(fun(T) -> larder:match(T, {'$1', 7}) end),
     fun(T) -> larder:select_count(T, Spec) end,
     fun(T) -> larder:insert_new(T, {3, new}) end,
     fun(T) -> larder:insert_new(T, [{500, new}, {501, new}]) end,
     fun(T) -> larder:take(T, 5) end,
     fun(T) -> larder:delete_object(T, {6, 6}) end,
     fun(T) -> larder:select_delete(T, [{{'_', '$1'}, [{'=:=', {'rem', '$1', 3}, 0}], [true]}]) end,
     fun(T) -> larder:match_delete(T, {9, '_'}) end,
     Sort(fun(T) -> larder:foldl(fun(Row, Acc) -> [Row | Acc] end, [], T) end),
     Sort(fun(T) -> keys(T, larder:first(T)) end),
     fun(T) -> larder:info(T, size) end,
     Sort(fun(T) -> larder:lookup_many(T, [1, 2, 1000]) end),
     Sort(fun(T) -> larder:tab2list(T) end)]
    ++ case lists:member(Type, [set, ordered_set]) of
           true ->
               [fun(T) -> larder:insert(T, {counter, 1}) end,
                fun(T) -> larder:update_counter(T, counter, [{2, 5}, {2, -1}]) end,
                fun(T) -> larder:update_counter(T, other, 3, {other, 4}) end,
                fun(T) -> larder:update_element(T, counter, {2, self()}) end,
                fun(T) -> larder:select_replace(T, [{{'$1', '$2'}, [{'<', '$2', 30}], [{{'$1', 0}}]}]) end];
           false ->
               []
       end
    ++ [fun(T) -> larder:delete_all_objects(T) end,
        fun(T) -> larder:insert(T, {made_of, make_ref_like(), fun lists:map/2, #{a => <<0:2000>>}}) end].

make_ref_like() -> {1, [2.5, "three", <<"four">>]}.

keys(_T, '$end_of_table') -> [];
keys(T, Key) -> [Key | keys(T, larder:next(T, Key))].

%% Terms that refer to something outside come back whole, from both sides.
terms_test() ->
    T = table(set),
    Big = binary:copy(<<"x">>, 10000),
    Ref = make_ref(),
    {atomic, true} = larder:transaction([T], fun([X]) ->
        larder:insert(X, {k, Big, Ref, fun(A) -> {A, Big} end}),
        larder:insert(X, {gone, Big}),
        larder:delete(X, gone)
    end),
    [{k, Big, Ref, Fun}] = larder:lookup(T, k),
    ?assertEqual({1, Big}, Fun(1)),
    {atomic, [{k, Big, Ref, _}]} = larder:transaction([T], fun([X]) -> larder:take(X, k) end),
    ?assertEqual([], larder:tab2list(T)).

%% A table that is named twice is refused in an inner transaction, too, whatever it is called.
nested_twice_test() ->
    T = table(set),
    {aborted, {badarg, _}} =
        larder:transaction([T], fun([View]) -> larder:transaction([T, View], fun(_) -> ok end) end),
    {atomic, {atomic, ok}} =
        larder:transaction([T], fun([View]) -> larder:transaction([View], fun(_) -> ok end) end),
    larder:delete(T).

nested_test() ->
    {A, B} = {table(set), table(set)},
    ?assertEqual({atomic, {atomic, inner}},
                 larder:transaction([A, B], fun([X, _]) ->
                     larder:insert(X, {outer, 1}),
                     larder:transaction([A], fun([Y]) ->
                         [{outer, 1}] = larder:lookup(Y, outer),
                         larder:insert(Y, {inner, 1}),
                         inner
                     end)
                 end)),
    ?assertEqual(2, larder:info(A, size)),
    ?assertEqual({aborted, both},
                 larder:transaction([A], fun([X]) ->
                     larder:delete(X, outer),
                     larder:transaction([X], fun([_]) -> larder:abort(both) end)
                 end)),
    ?assertEqual(2, larder:info(A, size)),
    [begin
         Inner = fun(_) -> larder:transaction(Tables, fun(_) -> ok end) end,
         {aborted, {Reason, Stack}} = larder:transaction([A], Inner),
         ?assertEqual({Tables, badarg}, {Tables, Reason}),
         #{1 := Words} = larder:format_error(badarg, Stack),
         ?assertMatch({match, _}, re:run(Words, Expected))
     end || {Tables, Expected} <- [{[B], "not one of the transaction"},
                                   {[A | x], "not a list of tables"}]],
    %% An exception of the inner fun is the program's own, whatever it is.
    [?assertMatch({aborted, {{larder, mine}, _}}, larder:transaction([A], Fun))
     || Mine <- [fun(_) -> error({larder, mine}) end],
        Fun <- [Mine, fun(Views) -> larder:transaction(Views, Mine) end]].

%% Who finds the turn of an urgent transaction taken rests, and leaves the scheduler to others.
waits_at_rest_test() ->
    A = table(set),
    Self = self(),
    spawn_link(fun() ->
        {Transaction, _} = larder_nif:begin_transaction([A], true),
        Self ! begun,
        timer:sleep(90),
        larder_nif:end_transaction(Transaction),
        Self ! ended
    end),
    receive begun -> ok end,
    {reductions, Before} = process_info(self(), reductions),
    {Us, Result} = timer:tc(fun() -> larder:transaction([A], fun(_) -> ok end) end),
    {reductions, After} = process_info(self(), reductions),
    ?assertEqual({atomic, ok}, Result),
    receive ended -> ok end,
    %% The other one may end late.
    ?assert(After - Before < 20000 * max(1, Us / 90000)).

%% A commit in the fun of an urgent transaction doesn't wait for the turn of that.
commit_in_an_urgent_one_test() ->
    {A, B, Calls} = {table(set), table(set), counters:new(1, [])},
    {atomic, Us} = larder:transaction([A], fun([X]) ->
        ok = counters:add(Calls, 1, 1),
        N = counters:get(Calls, 1),
        larder:insert(X, {k, 0}),
        %% The first fourteen attempts lose. The fourteenth and the fifteenth are urgent.
        N > 14 orelse larder:insert(A, {k, N}),
        {Taken, true} = timer:tc(fun() -> larder:commit([{insert, B, {N, N}}]) end),
        Taken
    end),
    ?assertEqual(15, larder:info(B, size)),
    ?assert(Us < 50000).

%% The inner one may name a table by its name and the outer one by its id, or the other way round.
nested_by_name_test() ->
    Name = larder:new(nested_by_name, [named_table]),
    Id = larder:whereis(Name),
    Inner = fun(Table) -> fun([X]) -> larder:transaction([Table], fun([Y]) -> X =:= Y end) end end,
    [?assertEqual({atomic, {atomic, true}}, larder:transaction([Outer], Inner(Table)))
     || Outer <- [Name, Id], Table <- [Name, Id]],
    ?assertMatch({aborted, {badarg, _}}, larder:transaction([Id], Inner(no_such_table))),
    larder:delete(Name).

%% A table that is renamed while the outer transaction runs is found by its id, by its new name and
%% by its old one, until another table has that.
nested_after_rename_test() ->
    Finds = fun(Outer, Id, Make, Inner) ->
        larder:transaction([Outer], fun([X]) ->
            renamed = larder:rename(Id, renamed),
            Others = [larder:new(Name, [named_table]) || Name <- Make],
            try [larder:transaction([Table], fun([Y]) -> X =:= Y end) || Table <- Inner]
            after [larder:delete(Other) || Other <- Others], larder:rename(Id, before_rename)
            end
        end)
    end,
    before_rename = larder:new(before_rename, [named_table]),
    Id = larder:whereis(before_rename),
    [?assertEqual({atomic, [{atomic, true} || _ <- Inner]}, Finds(Outer, Id, Make, Inner))
     || Outer <- [before_rename, Id],
        {Make, Inner} <- [{[], [Id, renamed]}, {[before_rename], [Id, renamed]}]],
    ?assertEqual({atomic, [{atomic, true}]}, Finds(before_rename, Id, [], [before_rename])),
    ?assertMatch({aborted, {badarg, _}},
                 Finds(before_rename, Id, [before_rename], [before_rename])),
    larder:delete(Id).

%% A transaction that is called again has the tables that it began with, whatever their names are by
%% then.
again_after_rename_test() ->
    before_rename = larder:new(before_rename, [named_table, public]),
    Id = larder:whereis(before_rename),
    true = larder:insert(Id, {k, 0}),
    Calls = counters:new(1, []),
    Result = larder:transaction([before_rename], fun([X]) ->
        [{k, N}] = larder:lookup(X, k),
        ok = counters:add(Calls, 1, 1),
        case counters:get(Calls, 1) of
            1 ->
                {_, Other} = spawn_monitor(fun() -> larder:insert(Id, {k, 5}) end),
                receive {'DOWN', Other, process, _, normal} -> ok end,
                renamed = larder:rename(Id, renamed),
                before_rename = larder:new(before_rename, [named_table]);
            2 ->
                ok
        end,
        true = larder:insert(X, {k, N + 1}),
        N
    end),
    ?assertEqual({atomic, 5}, Result),
    ?assertEqual([{k, 6}], larder:lookup(Id, k)),
    [larder:delete(Table) || Table <- [Id, before_rename]].

%% Who finds a list in the way finishes it, whichever of the tables it is in: the process that
%% inserts it may be dead.
beside_a_dead_list_test_() ->
    Transaction = fun(A, B) ->
        larder:transaction([A, B], fun([X, Y]) -> larder:insert(X, larder:lookup(Y, 1)) end)
    end,
    Commit = fun(A, B) ->
        {atomic, larder:commit([{insert, A, {1, 1}}, {check, B, 1, [{1, 1}]}])}
    end,
    Ends = fun(A, B) ->
        {Transaction1, [X, _]} = larder_nif:begin_transaction([A, B], false),
        true = larder:insert(X, {1, 1}),
        fun() ->
            true = larder_nif:commit_transaction(Transaction1),
            true = larder_nif:end_transaction(Transaction1),
            {atomic, true}
        end
    end,
    Now = fun(Does) -> fun(A, B) -> fun() -> Does(A, B) end end end,
    [{timeout, 120, fun() -> beside_a_dead_list(Begin) end}
     || Begin <- [Now(Transaction), Now(Commit), Ends]].

beside_a_dead_list(Begin) ->
    {A, B} = {table(set), table(set)},
    Self = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        Does = Begin(A, B),
        Self ! ready,
        receive go -> ok end,
        Self ! {done, Does()}
    end),
    receive ready -> ok end,
    Rows = [{K, K} || K <- lists:seq(1, 1000000)],
    Inserts = spawn(fun() -> larder:insert(B, Rows) end),
    wait_until_begun(B, Inserts),
    exit(Inserts, kill),
    Pid ! go,
    Done = receive
               {done, Result} -> Result;
               {'DOWN', Mon, process, Pid, Why} -> Why
           after 60000 -> never
           end,
    true = demonitor(Mon, [flush]),
    exit(Pid, kill),
    %% A transaction that began before the list has read nothing that the list has changed.
    ?assertEqual({atomic, true}, Done),
    ?assertEqual([{1, 1}], larder:lookup(A, 1)),
    ?assertEqual(1000000, larder:info(B, size)).

%% The list may be begun, and over, between two looks.
wait_until_begun(T, Inserts) ->
    IsAlive = is_process_alive(Inserts),
    larder:member(T, 1000000) orelse begin
        true = IsAlive,
        wait_until_begun(T, Inserts)
    end.

wrong_options_test() ->
    T = table(set),
    Words = fun(Args) ->
        try apply(larder, transaction, Args) of Result -> Result
        catch error:badarg:Stack -> larder:format_error(badarg, Stack)
        end
    end,
    Fun = fun(_) -> ok end,
    [?assertMatch(#{3 := <<"not a map of the options", _/binary>>}, Words([[T], Fun, Options]))
     || Options <- [#{retries => -1}, #{retries => many}, #{timeout => -1}, #{timeout => 1.0},
                    #{retry => 1}, [], 1]],
    ?assertMatch(#{1 := <<"not a list", _/binary>>, 2 := <<"not a fun", _/binary>>},
                 Words([T, ok, #{}])),
    ?assertMatch(#{1 := <<"a table is named twice">>}, Words([[T, T], Fun, #{}])),
    [?assertMatch(#{1 := <<"a table is a snapshot", _/binary>>}, Words([[Other], Fun, #{}]))
     || Other <- [larder:snapshot(T), larder:new(x, [ordered_set, {structure, btree}])]],
    ?assertEqual({atomic, ok}, Words([[T], Fun, #{retries => infinity, timeout => infinity}])).

%% It isn't called after the time, also if that is over during a pause between two calls. A late
%% call may be that of a process that had to wait.
no_late_calls_test_() ->
    {timeout, 60, fun() ->
        T = table(set),
        Ms = 60,
        Now = fun() -> erlang:monotonic_time(millisecond) end,
        Late = fun() ->
            Until = Now() + Ms,
            Result = larder:transaction([T], fun([X]) ->
                put(called, Now()),
                larder:insert(X, {n, 0}),
                larder:insert(T, {n, 1})
            end, #{timeout => Ms}),
            ?assertEqual({aborted, timeout}, Result),
            erase(called) > Until + 3
        end,
        Rounds = [Late() || _ <- lists:seq(1, 40)],
        ?assert(length([late || true <- Rounds]) < 20)
    end}.

%% A fun that loses is called again, as often as the options allow.
retries_test() ->
    T = table(set),
    true = larder:insert(T, {n, 0}),
    Disturbed = fun([X]) ->
        [{n, N}] = larder:lookup(X, n),
        put(calls, get(calls) + 1),
        larder:update_counter(T, n, 1),
        larder:insert(X, {n, N})
    end,
    put(calls, 0),
    ?assertEqual({aborted, nomore}, larder:transaction([T], Disturbed, #{retries => 3})),
    ?assertEqual(4, get(calls)),
    ?assertEqual([{n, 4}], larder:lookup(T, n)),
    ?assertEqual({aborted, timeout}, larder:transaction([T], Disturbed, #{timeout => 50})).

%% The pauses between the attempts take none of the random numbers of the process.
random_numbers_test() ->
    T = table(set),
    true = larder:insert(T, {n, 0}),
    Disturbed = fun([X]) ->
        [{n, N}] = larder:lookup(X, n),
        larder:update_counter(T, n, 1),
        larder:insert(X, {n, N})
    end,
    Next = fun() -> rand:uniform(1 bsl 40) end,
    _ = rand:seed(exsss, {1, 2, 3}),
    Expected = Next(),
    _ = rand:seed(exsss, {1, 2, 3}),
    ?assertEqual({aborted, nomore}, larder:transaction([T], Disturbed, #{retries => 8})),
    ?assertEqual(Expected, Next()).

commit_test() ->
    [begin
         {A, B} = {table(Type), table(ordered_set)},
         true = larder:insert(A, {x, 1}),
         ?assertEqual(true, larder:commit([{check, A, x, [{x, 1}]}, {check, A, y, []},
                                           {insert, B, [{1, 1}, {2, two}]}, {insert_new, A, {y, 2}},
                                           {delete, A, x}, {update_counter, B, 1, 5},
                                           {update_element, B, 2, {2, zwei}}])),
         ?assertEqual([{y, 2}], larder:tab2list(A)),
         ?assertEqual([{1, 6}, {2, zwei}], larder:tab2list(B)),
         [?assertEqual({false, length(Ops)}, larder:commit(Ops))
          || Ops <- [[{insert, A, {z, 1}}, {check, A, y, []}],
                     [{delete, B, 1}, {insert_new, A, {y, 3}}],
                     [{delete, B, 1}, {update_counter, B, 1, 1}],
                     [{delete_object, A, {y, 2}}, {insert, A, {q, 1}}, {update_element, B, 17, {2, a}}],
                     [{delete, A, y}, {check, A, y, [{y, 2}]}]]],
         ?assertEqual([{y, 2}], larder:tab2list(A)),
         ?assertEqual([{1, 6}, {2, zwei}], larder:tab2list(B)),
         ?assertError(badarg, larder:commit([{delete, A, y}, {insert, B, nothing}])),
         ?assertError(badarg, larder:commit([{delete, A, y}, {no_such, A, 1}])),
         ?assertEqual([{y, 2}], larder:tab2list(A)),
         ?assertEqual(true, larder:commit([]))
     end || Type <- ?TYPES].

%% What is wrong with a commit, and with which of its operations.
commit_words_test() ->
    {T, Bag, Gone} = {table(set), table(bag), table(set)},
    true = larder:insert(T, [{x, 1}, {m, #{n => a}}]),
    true = larder:insert(Bag, {x, 1}),
    true = larder:delete(Gone),
    Snapshot = larder:snapshot(T),
    Good = {insert, T, {y, 1}},
    [begin
         Words = try larder:commit(Operations) of Result -> Result
                 catch error:badarg:Stack -> larder:format_error(badarg, Stack)
                 end,
         ?assertMatch({Operations, #{1 := _}}, {Operations, Words}),
         Text = unicode:characters_to_list(maps:get(1, Words)),
         ?assertMatch({match, _}, re:run(Text, Expected), {Operations, Text})
     end || {Operations, Expected} <- [
         {x, "^not a list of operations"}, {[Good | x], "^not a list of operations"},
         {[{1 bsl 70, 1}], "^operation 1: none of those"}, {[Good, {}], "^operation 2: none of those"},
         {[Good, {delete, T}], "^operation 2: none of those"},
         {[Good, {no_such, T, 1}], "^operation 2: none of those"},
         {[Good, {insert, T, 1}], "^operation 2: not a tuple"},
         {[Good, {insert, T, [{1} | x]}], "^operation 2: "},
         {[Good, {delete_object, T, 1}], "^operation 2: not a tuple"},
         {[{check, T, x, [{x, 1}]}, {check, Gone, x, []}], "^operation 2: its table doesn't exist"},
         {[Good, {update_counter, T, x, [{2, 1} | x]}], "^operation 2: "},
         {[Good, {update_element, T, x, x}], "^operation 2: "},
         {[Good, {update_element, T, x, {1, x}}], "the element of the key"},
         {[Good, {update_element, T, x, {7, x}}], "beyond the size"},
         {[Good, {update_counter, Bag, x, 1}], "an object of a bag"},
         {[Good, {update_element, Bag, x, {2, 1}}], "^operation 2: updates an object of a bag"},
         %% Operations that are right aren't blamed for others, nor for objects.
         {[{update_counter, T, x, 1}, {insert, T, 1}], "^operation 2: not a tuple"},
         {[{update_counter, T, x, [{2, 1}]}, {no_such, T, 1}], "^operation 2: none of those"},
         {[{update_element, T, x, {2, 1}}, {insert, T, 1}], "^operation 2: not a tuple"},
         {[{update_element, T, x, []}, {no_such, T, 1}], "^operation 2: none of those"},
         {[{update_counter, T, x, 1}, {update_counter, T, m, 1}], "^an operation .*an integer"},
         {[Good, {update_counter, T, x, {{2, n}, 1}}], "^an operation .*not a map"},
         {[Good, {update_counter, T, m, {{2, o}, 1}}], "^an operation .*does not have"},
         {[Good, {insert, Gone, {1}}], "^operation 2: its table doesn't exist"},
         {[Good, {insert, 17, {1}}], "^operation 2: its table doesn't exist"},
         {[Good, {insert, T, [{1}, {2}], #{}}], "^operation 2: not a map of ttl alone"},
         {[Good, {insert, T, {1}, #{ttl => soon}}], "^operation 2: neither milliseconds"},
         {[Good, {insert, T, 1, #{ttl => 1}}], "^operation 2: not a tuple"},
         {[Good, {expire, T, x, soon}], "^operation 2: neither milliseconds"},
         {[Good, {expire, T, x, 5}], "the table has no bounds"},
         {[Good, {expire, Bag, x, 5}], "the table has no bounds"},
         {[Good, {update_counter, Bag, absent, 1}], "an object of a bag"},
         {[{insert, Snapshot, {1}}], "is a snapshot"}]],
    true = larder:release(Snapshot).

%% Operations committed together do what they do one after the other, or nothing.
random_commits_test_() ->
    {timeout, 60, fun() -> [random_commits(Type) || Type <- ?TYPES] end}.

random_commits(Type) ->
    Tables = [table(Type), table(Type)],
    Plain = [table(Type), table(Type)],
    [begin
         Ops = [random_operation(Type, rand:uniform(2)) || _ <- lists:seq(1, rand:uniform(7))],
         Before = [larder:tab2list(P) || P <- Plain],
         Expected = one_by_one(Ops, Plain, 1),
         Expected =:= true orelse
             [begin larder:delete_all_objects(P), larder:insert(P, Rows) end
              || {P, Rows} <- lists:zip(Plain, Before)],
         Placed = [setelement(2, Op, lists:nth(element(2, Op), Tables)) || Op <- Ops],
         ?assertEqual({Ops, Expected}, {Ops, larder:commit(Placed)}),
         ?assertEqual({Ops, [sorted(P) || P <- Plain]}, {Ops, [sorted(T) || T <- Tables]})
     end || _ <- lists:seq(1, 400)].

random_operation(Type, T) ->
    [K, V] = [rand:uniform(5), rand:uniform(3)],
    Unique = Type =:= set orelse Type =:= ordered_set,
    Large = {K, V, binary:copy(<<V>>, 100), #{V => make_ref()}},
    case rand:uniform(12) of
        1 -> {check, T, K, []};
        2 -> {check, T, K, [{K, V}]};
        3 -> {insert, T, [{K, V}, {V, K}, Large]};
        4 -> {insert_new, T, {K, V}};
        5 -> {insert_new, T, [{K + 3, V}, {K + 3, V + 1}]};
        6 -> {delete, T, K};
        7 -> {delete_object, T, {K, V}};
        8 when Unique -> {update_counter, T, K, 1};
        9 when Unique -> {update_element, T, K, [{2, V}]};
        10 -> {insert, T, Large};
        _ -> {insert, T, {K, V}}
    end.

one_by_one([], _, _) ->
    true;
one_by_one([Op | Rest], Tables, N) ->
    case holds(setelement(2, Op, lists:nth(element(2, Op), Tables))) of
        true -> one_by_one(Rest, Tables, N + 1);
        false -> {false, N}
    end.

holds({check, T, K, Objects}) -> larder:lookup(T, K) =:= Objects;
holds({update_counter, T, K, Op}) ->
    larder:member(T, K) andalso is_integer(larder:update_counter(T, K, Op));
holds({F, T, A}) -> larder:F(T, A);
holds({F, T, A, B}) -> larder:F(T, A, B).

%% Many keys: as few, on another scheduler.
many_keys_test() ->
    T = table(set),
    Rows = [{N, N} || N <- lists:seq(1, 1000)],
    ?assertEqual(true, larder:commit([{insert, T, Rows}])),
    ?assertEqual({false, 1001},
                 larder:commit([{update_counter, T, N, 1} || {N, _} <- Rows] ++ [{check, T, 1, []}])),
    ?assertEqual(Rows, sorted(T)),
    Checks = [{check, T, N, [{N, N}]} || {N, _} <- Rows],
    ?assertEqual(true, larder:commit(Checks ++ [{delete, T, N} || {N, _} <- Rows])),
    ?assertEqual(0, larder:info(T, size)).

%% Commits beside commits, single operations and lists: what they have counted is right.
commits_beside_others_test_() ->
    {timeout, 60, fun commits_beside_others/0}.

commits_beside_others() ->
    T = table(set),
    Keys = lists:seq(1, 8),
    true = larder:insert(T, [{K, 0} || K <- Keys]),
    Self = self(),
    Count = fun Count(0) -> Self ! done;
                Count(N) ->
                    [A, B] = [rand:uniform(8), rand:uniform(8)],
                    true = larder:commit([{update_counter, T, A, 1}, {update_counter, T, B, 1}]),
                    _ = larder:update_counter(T, A, -1),
                    true = larder:insert(T, [{{self(), N}, 1}, {{N, self()}, 2}]),
                    Count(N - 1)
            end,
    [spawn_link(fun() -> Count(1000) end) || _ <- lists:seq(1, 4)],
    [receive done -> ok end || _ <- lists:seq(1, 4)],
    ?assertEqual(4000, lists:sum([larder:lookup_element(T, K, 2) || K <- Keys])),
    ?assertEqual(8 + 8000, larder:info(T, size)).

%% Transfers by several processes, some of which are killed; the sum stays.
transfers_test_() ->
    {timeout, 60, fun transfers/0}.

transfers() ->
    T = table(set),
    Accounts = 20,
    true = larder:insert(T, [{N, 100} || N <- lists:seq(1, Accounts)]),
    Workers = [spawn_link(fun() -> process_flag(trap_exit, false), transfer(T, Accounts) end)
               || _ <- lists:seq(1, 4)],
    Until = erlang:monotonic_time(millisecond) + 1500,
    Left = audit(T, Accounts, Until, Workers),
    lists:foreach(fun stop/1, Left),
    ?assertEqual(Accounts * 100, lists:sum([N || {_, N} <- larder:tab2list(T)])).

transfer(T, Accounts) ->
    {From, To} = {rand:uniform(Accounts), rand:uniform(Accounts)},
    {atomic, _} = larder:transaction([T], fun([X]) ->
        [{_, Has}] = larder:lookup(X, From),
        larder:insert(X, {From, Has - 1}),
        larder:update_counter(X, To, 1)
    end),
    transfer(T, Accounts).

%% Kills a process. A commit that it is in the middle of ends first, and is waited for here: a scan
%% of the table waits for none.
stop(Worker) ->
    unlink(Worker),
    Monitor = monitor(process, Worker),
    exit(Worker, kill),
    receive {'DOWN', Monitor, process, Worker, _} -> ok end.

audit(T, Accounts, Until, Workers) ->
    {atomic, Sum} = larder:transaction([T], fun([X]) ->
        larder:foldl(fun({_, N}, Acc) -> N + Acc end, 0, X)
    end),
    ?assertEqual(Accounts * 100, Sum),
    %% Now and then one dies in the middle of what it does.
    Next = case Workers of
               [Victim | Rest] ->
                   stop(Victim),
                   Rest ++ [spawn_link(fun() -> transfer(T, Accounts) end)];
               [] -> []
           end,
    case erlang:monotonic_time(millisecond) < Until of
        true -> audit(T, Accounts, Until, Next);
        false -> Next
    end.

%% A table that is deleted in the middle of a transaction.
deleted_test() ->
    {A, B} = {table(set), table(set)},
    ?assertError(badarg, larder:transaction([A, B], fun([X, Y]) ->
        larder:insert(X, {k, 1}),
        larder:insert(Y, {k, 1}),
        larder:delete(B)
    end)),
    ?assertEqual([], larder:tab2list(A)),
    ?assertEqual({atomic, true}, larder:transaction([A], fun([X]) -> larder:insert(X, {k, 2}) end)).

%% A large commit takes a dirty scheduler, and is one commit all the same.
large_test() ->
    T = table(ordered_set),
    Self = self(),
    Reader = spawn_link(fun() -> counts(T, Self) end),
    {atomic, true} = larder:transaction([T], fun([X]) ->
        larder:insert(X, [{N, N} || N <- lists:seq(1, 20000)])
    end),
    Reader ! stop,
    Seen = receive {counts, Counts} -> Counts end,
    ?assertEqual([], Seen -- [0, 20000]),
    ?assertEqual(20000, larder:info(T, size)).

counts(T, To) -> counts(T, To, []).

counts(T, To, Seen) ->
    %% Of one instant: by a transaction of its own.
    {atomic, N} = larder:transaction([T], fun([X]) ->
        larder:select_count(X, [{'_', [], [true]}])
    end),
    Next = lists:usort([N | Seen]),
    receive stop -> To ! {counts, Next} after 0 -> counts(T, To, Next) end.

rights_test() ->
    Self = self(),
    Protected = larder:new(t, [protected]),
    Private = larder:new(t, [private]),
    true = larder:insert(Protected, {a, 1}),
    spawn_link(fun() ->
        Read = larder:transaction([Protected], fun([X]) -> larder:lookup(X, a) end),
        {aborted, {badarg, _}} = larder:transaction([Protected], fun([X]) -> larder:insert(X, {a, 2}) end),
        Refused = try larder:transaction([Private], fun(_) -> ok end) catch error:badarg -> refused end,
        Self ! {Read, Refused}
    end),
    receive Answer -> ?assertEqual({{atomic, [{a, 1}]}, refused}, Answer) end,
    %% The owner writes.
    ?assertEqual({atomic, true},
                 larder:transaction([Protected, Private], fun([X, Y]) ->
                     larder:insert(X, {a, 3}) andalso larder:insert(Y, {b, 1})
                 end)),
    ?assertEqual([{a, 3}], larder:tab2list(Protected)).
