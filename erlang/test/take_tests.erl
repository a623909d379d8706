%% select_take: beside `ets:select' and the deletion of what it found; of several takers one gets
%% an object, as it was when it went; and what is refused.
-module(take_tests).
-include_lib("proper/include/proper.hrl").

-export([beside_ets_test_/0, order_test_/0, by_key_test_/0, in_transactions_test_/0,
         one_taker_gets_it_test_/0, as_it_went_test_/0, refused_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).

suite(Title, Fun) ->
    [larder_test:tc(lists:concat([Title, ", ", Type]), 120, larder, fun() -> Fun(Type) end)
     || Type <- ?TYPES].

%% Beside ets ------------------------------------------------------------------------------------

beside_ets_test_() ->
    [larder_test:tc(lists:flatten(io_lib:format("what is taken is what ets selects, ~p ~0p",
                                                [Type, Options])), 240, larder, fun() ->
        larder_test:check_property(lists:concat(["take ", Type]), larder_test:scaled(250),
                                   prop([Type | Options]))
     end) || Type <- ?TYPES, Options <- [[], [compressed], [{write_concurrency, true}]]].

prop(Options) ->
    ?FORALL({Objects, Spec},
            {list(diff_gen:object()),
             frequency([{8, diff_ms_gen:spec()}, {1, diff_ms_gen:wrong_spec()}])},
            same(Options, diff_gen:made(Objects), diff_gen:made(Spec))).

same([Type | _] = Options, Objects, Spec) ->
    [T, Oracle] = [larder:new(t, [public | Options]), diff_gen:oracle(Options)],
    [true = M:insert(X, Object) || Object <- Objects, {M, X} <- [{larder, T}, {ets, Oracle}]],
    Expected = {expected(Type, Oracle, Spec), as(Type, ets:tab2list(Oracle))},
    Got = {as(Type, answer(fun() -> larder:select_take(T, Spec) end)),
           as(Type, larder:tab2list(T))},
    Again = as(Type, answer(fun() -> larder:select_take(T, Spec) end)),
    [true = M:delete(X) || {M, X} <- [{larder, T}, {ets, Oracle}]],
    ?WHENFAIL(io:format("~p~n~p~n~p~n", [Expected, Got, Again]),
              Expected =:= Got andalso lists:member(Again, [[], badarg])).

%% What ets selects, and the deletion of each object that matches.
expected(Type, T, []) ->
    %% A specification that is no program.
    as(Type, ets:select(T, []));
expected(Type, T, Spec) ->
    case answer(fun() -> ets:select(T, Spec) end) of
        badarg ->
            badarg;
        Found ->
            Compiled = ets:match_spec_compile(Spec),
            [true = ets:delete_object(T, Object)
             || Object <- ets:tab2list(T), ets:match_spec_run([Object], Compiled) =/= []],
            as(Type, Found)
    end.

answer(Fun) ->
    try Fun() catch error:badarg -> badarg end.

%% An ordered_set has an order. Others are put in one that knows 1 from 1.0.
as(_, badarg) -> badarg;
as(ordered_set, Found) -> Found;
as(_, Found) -> lists:sort([{Result, erlang:phash2(Result)} || Result <- Found]).

%% Several slices: in the order of the table, and of a bag's key in that of arrival.
order_test_() ->
    suite("the order of what is taken", fun(Type) ->
        T = larder:new(t, [Type]),
        Rows = [{K, V, <<V:2000>>} || V <- lists:seq(1, 3), K <- lists:seq(1, 20000)],
        true = larder:insert(T, Rows),
        Before = larder:select(T, [{{'$1', '$2', '_'}, [], [{{'$1', '$2'}}]}]),
        Spec = [{{'$1', '$2', '_'}, [{'=/=', {'rem', '$1', 7}, 0}], [{{'$1', '$2'}}]}],
        Taken = larder:select_take(T, Spec),
        Expected = [Row || {K, _} = Row <- Before, K rem 7 =/= 0],
        true = lists:sort(Expected) =:= lists:sort(Taken),
        true = Type =/= ordered_set orelse Expected =:= Taken,
        true = by_key(Expected) =:= by_key(Taken),
        [] = larder:select_take(T, Spec),
        true = larder:info(T, size) =:= length(Before) - length(Taken),
        Rest = larder:select_take(T, ?ALL),
        true = lists:all(fun({K, V, Binary}) -> K rem 7 =:= 0 andalso Binary =:= <<V:2000>> end,
                         Rest),
        [] = larder:tab2list(T),
        larder:delete(T)
    end).

%% The values of each key, in their order.
by_key(Rows) ->
    lists:foldl(fun({K, V}, Map) -> maps:update_with(K, fun(L) -> [V | L] end, [V], Map) end,
                #{}, Rows).

%% Specifications that name the key are no scan.
by_key_test_() ->
    suite("what is taken from under a key", fun(Type) ->
        T = larder:new(t, [Type]),
        true = larder:insert(T, [{K, N} || K <- [a, b], N <- lists:seq(1, 100)]),
        Here = [N || [N] <- larder:match(T, {a, '$1'}), N > 40],
        Here = larder:select_take(T, [{{a, '$1'}, [{'>', '$1', 40}], ['$1']}]),
        [] = larder:select_take(T, [{{a, '$1'}, [{'>', '$1', 40}], ['$1']}]),
        [] = larder:select_take(T, [{{c, '_'}, [], ['$_']}]),
        Left = larder:lookup(T, a),
        Left = larder:select_take(T, [{{a, '_'}, [], ['$_']}]),
        Both = larder:tab2list(T),
        Both = larder:select_take(T, [{{a, '_'}, [], ['$_']}, {{b, '_'}, [], ['$_']}]),
        0 = larder:info(T, size),
        larder:delete(T)
    end).

in_transactions_test_() ->
    suite("what is taken in a transaction", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, K rem 3} || K <- lists:seq(1, 300)]),
        Spec = [{{'$1', 0}, [], ['$1']}],
        Thirds = lists:seq(3, 300, 3),
        {aborted, no} = larder:transaction([T], fun([V]) ->
            true = larder:insert(V, {0, 0}),
            [0 | Thirds] = lists:sort(larder:select_take(V, Spec)),
            [] = larder:select_take(V, Spec),
            200 = larder:info(V, size),
            larder:abort(no)
        end),
        300 = larder:info(T, size),
        {atomic, Taken} = larder:transaction([T], fun([V]) -> larder:select_take(V, Spec) end),
        Thirds = lists:sort(Taken),
        200 = larder:info(T, size),
        larder:delete(T)
    end).

%% Beside others ---------------------------------------------------------------------------------

%% Jobs come one by one and in lists, which get in the way of takers; each is taken once.
one_taker_gets_it_test_() ->
    suite("of several takers one gets an object", fun(Type) ->
        T = larder:new(t, [Type, public]),
        Parent = self(),
        Count = 30000,
        Takers = [spawn_link(fun() -> taker(T, Parent, [], 0) end) || _ <- lists:seq(1, 3)],
        put_jobs(T, 1, Count),
        [Taker ! stop || Taker <- Takers],
        Taken = lists:append([receive {taken, Taker, Jobs} -> Jobs end || Taker <- Takers]),
        true = lists:seq(1, Count) =:= lists:sort(Taken),
        0 = larder:info(T, size),
        larder:delete(T)
    end).

put_jobs(_, N, Count) when N > Count ->
    ok;
put_jobs(T, N, Count) when N rem 1000 =:= 1 ->
    true = larder:insert(T, [job(K) || K <- lists:seq(N, N + 499)]),
    put_jobs(T, N + 500, Count);
put_jobs(T, N, Count) ->
    true = larder:insert(T, job(N)),
    put_jobs(T, N + 1, Count).

job(N) -> {{job, N div 4, N rem 4}, N}.

taker(T, Parent, Taken, Turn) ->
    Spec = case Turn rem 3 of
               0 -> [{{'_', '$1'}, [], ['$1']}];
               1 -> [{{'_', '$1'}, [{'=:=', {'rem', '$1', 2}, 0}], ['$1']}];
               2 -> [{{{job, '_', 1}, '$1'}, [], ['$1']}]
           end,
    receive
        stop ->
            Rest = larder:select_take(T, [{{'_', '$1'}, [], ['$1']}]),
            Parent ! {taken, self(), Rest ++ Taken}
    after 0 ->
        taker(T, Parent, larder:select_take(T, Spec) ++ Taken, Turn + 1)
    end.

%% Objects change while they are looked for: what is given is what went, and it matched.
as_it_went_test_() ->
    [larder_test:tc(lists:concat(["what is given is what went, ", Type]), 120, larder, fun() ->
        T = larder:new(t, [Type, public]),
        Keys = 400,
        true = larder:insert(T, [{K, 0, 0} || K <- lists:seq(1, Keys)]),
        Parent = self(),
        Writers = [spawn_link(fun() -> counts(T, Keys, 0, Parent) end) || _ <- [1, 2]],
        Taken = takes(T, 300, 0),
        [begin
             Monitor = monitor(process, Writer),
             Writer ! stop,
             receive {'DOWN', Monitor, process, Writer, normal} -> ok end
         end || Writer <- Writers],
        %% Each addition was made to the object that was taken, or is in the table.
        Left = lists:sum([N || {_, N, _} <- larder:tab2list(T)]),
        Added = lists:sum([receive {added, Writer, N} -> N end || Writer <- Writers]),
        Added = Taken + Left,
        larder:delete(T)
     end) || Type <- [set, ordered_set]].

counts(T, Keys, Added, Parent) ->
    receive
        stop -> Parent ! {added, self(), Added}
    after 0 ->
        Key = rand:uniform(Keys),
        _ = larder:update_counter(T, Key, [{2, 1}, {3, 1}], {Key, 0, 0}),
        counts(T, Keys, Added + 1, Parent)
    end.

takes(_, 0, Sum) -> Sum;
takes(T, Turns, Sum) ->
    Rows = larder:select_take(T, [{{'_', '$1', '$2'}, [{'=:=', {'rem', '$1', 2}, 0}], ['$_']}]),
    %% Both counters are of one moment.
    [] = [Row || {_, A, B} = Row <- Rows, A =/= B orelse A rem 2 =/= 0],
    takes(T, Turns - 1, Sum + lists:sum([N || {_, N, _} <- Rows])).

%% What is refused -------------------------------------------------------------------------------

refused_test_() ->
    suite("what is refused", fun(Type) ->
        T = larder:new(t, [Type]),
        true = larder:insert(T, {1, a}),
        [badarg = answer(fun() -> larder:select_take(T, Spec) end)
         || Spec <- [x, [x], [{'_', [], []}], [{'_', [{nonsense, 1}], ['$_']}], [{'_', [], ['$1']}]]],
        [] = larder:select_take(T, []),
        badarg = answer(fun() -> larder:select_take(no_such_table, ?ALL) end),
        %% The words are those of select_delete.
        [{Args, true} = {Args, words(select_delete, Args) =:= words(select_take, Args)}
         || Args <- [[T, x], [no_such_table, ?ALL], [T, [{'_', [], []}]]]],
        [{1, a}] = larder:tab2list(T),
        larder:delete(T)
    end).

words(F, Args) ->
    try apply(larder, F, Args) of
        Result -> error({not_refused, Result})
    catch
        error:badarg:Stack -> larder:format_error(badarg, Stack)
    end.
