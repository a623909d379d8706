%% @doc Every argument of every function, wrong in every way: the same class,
%% reason and cause as `ets', and nothing changed in the table.
%%
%% A case is a call that would be right, with one argument (or the table and
%% one more) replaced. It runs on a fresh table of each type in `ets' and in
%% the module under test; afterwards both tables must hold the same, and if
%% the call failed, what they held before.
-module(bad_args_tests).
-include("diff.hrl").

-export([one_wrong_argument_test_/0, bad_table_and_wrong_argument_test_/0, deep_specs_test_/0,
         functions_in_erlang_test_/0, planted_faults_are_found_test_/0, still_alive_after_all_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

%% Calls that are right on the table of table/3 ------------------------------------------

calls() ->
    Spec = [{{'$1', '_', '_'}, [], ['$_']}],
    Count = [{{'$1', '_', '_'}, [], [true]}],
    [{delete, [tab]}, {delete, [tab, k]}, {delete_all_objects, [tab]},
     {delete_object, [tab, {k, 1, x}]}, {take, [tab, k]}, {member, [tab, k]},
     {first, [tab]}, {last, [tab]}, {next, [tab, k]}, {prev, [tab, k]},
     {first_lookup, [tab]}, {last_lookup, [tab]}, {next_lookup, [tab, k]}, {prev_lookup, [tab, k]},
     {slot, [tab, 0]}, {lookup, [tab, k]}, {lookup_element, [tab, k, 2]},
     {lookup_element, [tab, k, 2, default]}, {insert, [tab, {n, 1, 2}]},
     {insert, [tab, [{n, 1, 2}, {m, 2, 3}]]}, {insert_new, [tab, {n, 1, 2}]},
     {insert_new, [tab, [{n, 1, 2}, {m, 2, 3}]]},
     {update_counter, [tab, k, 1]}, {update_counter, [tab, k, {2, 1}]},
     {update_counter, [tab, k, [{2, 1}, {2, 1, 10, 0}]]},
     {update_counter, [tab, missing, {2, 1}, {d, 0, 0}]}, {update_element, [tab, k, {3, y}]},
     {update_element, [tab, k, [{3, y}, {2, 9}]]},
     {update_element, [tab, missing, {3, y}, {d, 0, 0}]},
     {match, [tab, {'$1', '_', '$2'}]}, {match, [tab, {'$1', '_', '_'}, 2]},
     {match, ['$end_of_table']}, {match_object, [tab, {'_', '_', x}]},
     {match_object, [tab, '_', 2]}, {match_object, ['$end_of_table']},
     {match_delete, [tab, {k, '_', '_'}]},
     {select, [tab, Spec]}, {select, [tab, Spec, 2]}, {select, ['$end_of_table']},
     {select_count, [tab, Count]}, {select_delete, [tab, Count]},
     {select_replace, [tab, [{{'$1', '_', '_'}, [], [{{'$1', 0, 0}}]}]]},
     {select_reverse, [tab, Spec]}, {select_reverse, [tab, Spec, 2]},
     {select_reverse, ['$end_of_table']},
     {match_spec_compile, [Spec]}, {is_compiled_ms, [a]},
     {new, [name, [public]]}, {new, [name, [named_table, {keypos, 2}, {heir, self, d}]]},
     {rename, [tab, renamed]}, {whereis, [name]}, {info, [tab]}, {info, [tab, size]},
     {setopts, [tab, {heir, none}]}, {setopts, [tab, [{heir, self, d}]]},
     {give_away, [tab, other, gift]}, {safe_fixtable, [tab, true]}, {tab2list, [tab]},
     {match_spec_run, [[{k, 1, x}], compiled]}, {test_ms, [{k, 1, x}, Spec]},
     {repair_continuation, ['$end_of_table', Spec]}].

%% What stands in for an argument. `dead', `missing' and so on are made anew for
%% each call.
wrong() ->
    [dead, missing, dead_pid, self, a, '', '$1', '_', 0, -1, 1, 2, 3, 4, 7, 100, 1 bsl 59, 1 bsl 64,
     -(1 bsl 64),
     1 bsl 5000, 1.0, -0.5, 1.0e300, "text", <<"bin">>, <<1:3>>, [], [a], [a | b], [[]], {}, {a},
     {k}, {k, 1}, {1, 2}, {1, 1}, {2, a}, {2, 1, 2}, {2, 1, 2, a}, {3, 1}, {4, 1}, {0, 1}, {-1, 1},
     {1 bsl 64, 1}, {2, 1 bsl 70}, {1, x}, {2, x, y}, {2.0, 1}, [{2, 1}, {3, a}], [{2, 1}, {1, 1}],
     [{2, 1} | {2, 1}], [{2, 1}, {9, 1}], [{2, 1}, b], [{n, 1, 2}, b], [{n, 1, 2} | b],
     [{n, 1, 2}, {}],
     [{n, 1, 2}, {n}], [{n, 1, 2} | {m, 1, 2}], #{}, #{a => 1}, #{'$1' => 2},
     fun erlang:self/0, reference, true, false, undefined, '$end_of_table',
     [{heir, a, b}], [{heir, self}], [nonsense], [{keypos, 0}], [{keypos, -1}], [{keypos, a}],
     [{keypos, 1 bsl 64}], [{keypos, 2} | a], [{keypos, 1, 2}], [{heir, none, a}], [named_table, 1],
     [{write_concurrency, 'maybe'}], [{read_concurrency, 1}], [{decentralized_counters, a}],
     [{compressed, true}], [bag | set], {heir, self}, {heir, none, none}, {nonsense, public},
     {nonsense, a}, [{heir, none}, {heir, none}], [{heir, none} | a], [{'_', [], []}],
     [{'_', [], [true]}],
     [{'_', [], ['$1']}], [{{'$1'}, a, [true]}], [{{'$1'}, [], true}], [{{'$1'}, [], [{nonsense}]}],
     [{{'$1', '_', '_'}, [{'>', '$2', 1}], ['$_']}], [{{'$1', '_', '_'}, [], [{message, 1}]}],
     [{{'$1', '_', '_'}, [], [{'+', '$1', 0}]}],
     [{{'$1', '_', '_'}, [], [{{{'+', '$1', 0}, 1, 2}}]}],
     [{{'$1', '_', '_'}, [], [{{'$1'}}]}], [{{'$1', '_', '_'}, [], [{}]}], [{'_', [], [true]} | a],
     [{'_', [], [true]}, a], [{'_', [true | a], [true]}], [{'_', [], [true | a]}], [{'_', []}],
     {'_', [], [true]},
     {a, b, c, d, e}, {tab}, list_to_tuple(lists:duplicate(3000, a))].

%% The tests --------------------------------------------------------------------------------

one_wrong_argument_test_() ->
    [larder_test:tc(lists:concat(["one wrong, ", Type, " ", Access]), 300, Sut, fun() ->
        check(Sut, Type, Access, one_wrong())
     end) || Sut <- larder_test:suts(), {Type, Access} <- combinations(Sut)].

combinations(diff_sound) ->
    [{set, mine}];
combinations(_) ->
    [{Type, mine} || Type <- ?TYPES]
    ++ [{set, theirs_private}, {ordered_set, theirs_protected}].

%% "The table's error comes before other bad arguments."
bad_table_and_wrong_argument_test_() ->
    [larder_test:tc("the table and one more wrong", 300, Sut, fun() ->
        check(Sut, ordered_set, mine, two_wrong())
     end) || Sut <- larder_test:other_suts()].

planted_faults_are_found_test_() ->
    {"finds cause_lost", {timeout, 60, fun() ->
        Sut = diff_planted:load(cause_lost),
        Found = try check(Sut, set, mine,
                          one_wrong()), false catch error:{differ, _, _} -> true end,
        ok = diff_planted:unload(Sut),
        true = Found
    end}}.

one_wrong() ->
    [{F, replace(N, W, Args)}
     || {F, Args} <- calls(), N <- lists:seq(1, length(Args)), W <- wrong()]
    ++ calls().

two_wrong() ->
    [{F, replace(1, T, replace(N, W, Args))}
     || {F, [tab | _] = Args} <- calls(), N <- lists:seq(2, length(Args)),
        T <- [dead, missing, 17, "t", reference], W <- wrong()].

replace(N, New, Args) ->
    lists:sublist(Args, N - 1) ++ [New | lists:nthtail(N, Args)].

check(Sut, Type, Access, Calls) ->
    Other = spawn_link(fun() -> other() end),
    Dead = larder_test:dead_pid(),
    try
        Differ = [D || Call <- Calls, skip(Call) =:= false,
                       D <- compare(Sut, Type, Access, Call, Other, Dead)],
        Differ =:= [] orelse error({differ, length(Differ), lists:sublist(Differ, 12)})
    after
        unlink(Other),
        Mon = monitor(process, Other),
        exit(Other, kill),
        receive {'DOWN', Mon, _, _, _} -> flush() end
    end.

flush() ->
    receive {'ETS-TRANSFER', _, _, _} -> flush() after 0 -> ok end.

%% Extensions of the module under test, and where `ets' itself depends on luck.
skip({new, [_, [{heir, self}]]}) -> true;
skip({setopts, [_, {heir, self}]}) -> true;
skip({setopts, [_, [{heir, self}]]}) -> true;
%% A table's reference in place of the object is what `ets' itself passes when
%% it goes on with a long list; the cause gets lost.
skip({F, [_, dead]}) when F =:= insert; F =:= insert_new -> true;
skip({slot, [_, N]}) -> is_integer(N) andalso N >= 0;
skip(_) -> false.

compare(Sut, Type, Access, {Function, Args}, Other, Dead) ->
    O = attempt(oracle, Type, Access, Function, Args, Other, Dead),
    S = attempt(Sut, Type, Access, Function, Args, Other, Dead),
    case agree(Function, O, S) of
        true -> [];
        false -> [{Type, Access, Function, short(Args), {ets, short(O)}, {Sut, short(S)}}]
    end.

short(Term) ->
    lists:flatten(io_lib:format("~P", [Term, 60])).

agree(Function, {O, Before, After}, {S, Before, After}) ->
    outcome_agrees(Function, O, S) andalso (is_record(O, raised) =:= false orelse Before =:= After);
agree(_, _, _) ->
    false.

outcome_agrees(_, #raised{cause = any} = O, #raised{} = S) ->
    {O#raised.class, O#raised.reason} =:= {S#raised.class, S#raised.reason};
outcome_agrees(Function, #raised{function = Function} = O, #raised{} = S)
  when Function =:= select; Function =:= select_reverse; Function =:= select_count;
       Function =:= select_replace; Function =:= match; Function =:= match_object ->
    O#raised{blamed = any} =:= S#raised{blamed = any};
outcome_agrees(Function, #raised{function = Function} = O, #raised{} = S) ->
    case diff_oracle:library_function(Function) of
        true -> lax(O) =:= lax(S);
        false when O#raised.blamed =:= any -> O =:= S#raised{blamed = any};
        false -> O =:= S
    end;
outcome_agrees(_, #raised{} = O, #raised{} = S) ->
    lax(O) =:= lax(S);
outcome_agrees(_, O, S) ->
    O =:= S.

lax(Raised) -> {Raised#raised.class, Raised#raised.reason, Raised#raised.cause}.

%% One call in a table of its own: the outcome, what was there and what is there.
attempt(M, Type, Access, Function, Args, Other, Dead) ->
    Module = case M of oracle -> ets; _ -> M end,
    Known = Module:all(),
    {Table, Owner} = table(Module, Type, Access, Other),
    Before = unordered(contents(Module, Table, Owner)),
    {Raw, Made} = made(Module, Args, Table, Other, Dead),
    Outcome = view(Function, diff_oracle:outcome(M, Function, Raw), Made),
    After = unordered(put_in(contents(Module, Table, Owner), Made)),
    clean(Module, Module:all() -- Known, Other),
    {Outcome, Before, After}.

table(Module, Type, mine, _) -> {fill(Module, Type, public), self()};
table(Module, Type, theirs_private, Other) ->
    {in(Other, fun() -> fill(Module, Type, private) end), Other};
table(Module, Type, theirs_protected, Other) ->
    {in(Other, fun() -> fill(Module, Type, protected) end), Other}.

fill(Module, Type, Access) ->
    T = Module:new(table, [Type, Access]),
    [Module:insert(T, {K, N, x}) || {K, N} <- [{k, 1}, {1, 2}, {"s", 3}, {{a, b}, 4}, {2.0, 5}]],
    T.

contents(Module, Table, Owner) ->
    Look = fun() ->
        case Module:info(Table, size) of
            undefined -> gone;
            Size -> {Size, Module:info(Table, fixed), Module:tab2list(Table)}
        end
    end,
    case Module:info(Table, owner) of
        undefined -> gone;
        Now when Now =:= self(), Now =/= Owner -> {moved, Look()};
        Now when Now =:= self() -> Look();
        Now -> {in(Now, Look), Now =:= Owner}
    end.

%% Sorted once the marks are back, as references sort by their age.
unordered({Size, Fixed, Rows}) -> {Size, Fixed, lists:sort(Rows)};
unordered({How, Contents}) when is_atom(How) -> {How, unordered(Contents)};
unordered({Contents, Mine}) -> {unordered(Contents), Mine};
unordered(gone) -> gone.

clean(Module, Tables, Other) ->
    [case Module:info(T, owner) of
         Owner when Owner =:= self() -> Module:delete(T);
         Other -> in(Other, fun() -> Module:delete(T) end);
         _ -> true
     end || T <- Tables],
    flush().

other() ->
    receive {'$do', From, Fun} -> From ! {'$done', self(), Fun()}, other() end.

in(Pid, Fun) ->
    Pid ! {'$do', self(), Fun},
    receive {'$done', Pid, Result} -> Result end.

%% The arguments with what their marks stand for, and how to undo that in what
%% an exception shows.
made(Module, Args, Table, Other, Dead) ->
    DeadTable = Module:new(dead, [public]),
    true = Module:delete(DeadTable),
    Compiled = Module:match_spec_compile([{'_', [], ['$_']}]),
    Reference = make_ref(),
    Marks = #{tab => Table, dead => DeadTable, dead_pid => Dead, self => self(), other => Other,
              compiled => Compiled, reference => Reference},
    {put_in(Args, Marks),
     maps:from_list([{V, {mark, K}} || {K, V} <- maps:to_list(Marks), K =/= self])}.

put_in(Term, Marks) when is_map_key(Term, Marks) -> maps:get(Term, Marks);
put_in([H | T], Marks) -> [put_in(H, Marks) | put_in(T, Marks)];
put_in(T, Marks) when is_tuple(T), tuple_size(T) < 100 ->
    list_to_tuple(put_in(tuple_to_list(T), Marks));
put_in(Term, _) -> Term.

view(Function, {ok, Value}, Made) -> {ok, value(Function, put_in(Value, Made))};
view(_, #raised{arguments = Args} = Raised, Made) -> Raised#raised{arguments = put_in(Args, Made)}.

value(info, List) when is_list(List) -> lists:sort([I || I <- List, not private(I)]);
value(Function, Value) when Function =:= match; Function =:= match_object; Function =:= select;
                            Function =:= select_reverse ->
    case Value of
        {List, _} when is_list(List) -> chunk;
        List when is_list(List) -> lists:sort(List);
        Other -> Other
    end;
value(Function, _) when Function =:= first; Function =:= last; Function =:= next; Function =:= prev;
                        Function =:= first_lookup; Function =:= last_lookup;
                        Function =:= next_lookup; Function =:= prev_lookup;
                        Function =:= match_spec_compile; Function =:= slot -> some;
value(tab2list, List) -> lists:sort(List);
value(new, Ref) when is_reference(Ref) -> id;
value(whereis, Ref) when is_reference(Ref) -> id;
value(_, Value) -> Value.

private({memory, _}) -> true;
private(_) -> false.

%% Specifications ten thousand deep --------------------------------------------------------

deep_specs_test_() ->
    [larder_test:tc("deep specifications", 120, Sut, fun() -> deep_specs(Sut) end)
     || Sut <- larder_test:other_suts()].

%% `ets' may say system_limit, or do it; what matters is that the node lives,
%% that the error is one of the two, and that the table is as it was.
deep_specs(Sut) ->
    T = Sut:new(deep, [ordered_set]),
    Sut:insert(T, [{N, N} || N <- lists:seq(1, 10)]),
    Before = Sut:tab2list(T),
    [begin
         Outcome = diff_oracle:outcome(Sut, F, [T, Spec]),
         ok = case Outcome of
             {ok, _} -> ok;
             #raised{class = error, reason = system_limit} -> ok;
             #raised{class = error, reason = badarg} -> ok
         end,
         F =:= select_replace orelse F =:= select_delete orelse (Before = Sut:tab2list(T))
     end || Spec <- deep_list(), F <- [select, select_count, select_reverse, select_replace]],
    [begin
         diff_oracle:outcome(Sut, F, [T, Pattern]),
         Before = Sut:tab2list(T)
     end || Pattern <- [nested(100000, fun(X) -> {X} end), nested(100000, fun(X) -> [X] end),
                        nested(100000, fun(X) -> #{a => X} end)],
            F <- [match, match_object, match_delete, lookup, member, delete_object]],
    deep_objects(Sut, T),
    Sut:delete(T).

deep_list() ->
    Deep = fun(Leaf, Wrap) -> nested(Leaf, 10000, Wrap) end,
    [[{{'$1', '_'}, [Deep(true, fun(X) -> {'not', X} end)], ['$_']}],
     [{{'$1', '_'}, [Deep(true, fun(X) -> {'andalso', true, X} end)], ['$_']}],
     [{{'$1', '_'}, [Deep(true, fun(X) -> {'and', X, true} end)], ['$_']}],
     [{{'$1', '_'}, [], [Deep('$1', fun(X) -> {'+', X, 1} end)]}],
     [{{'$1', '_'}, [], [Deep('$1', fun(X) -> {{X}} end)]}],
     [{{'$1', '_'}, [], [Deep('$1', fun(X) -> [X] end)]}],
     [{{'$1', '_'}, [], [Deep('$1', fun(X) -> #{a => X} end)]}],
     [{{'$1', '_'}, [], [{const, Deep(a, fun(X) -> {X} end)}]}],
     [{Deep('_', fun(X) -> {X} end), [], ['$_']}],
     [{{Deep('$1', fun(X) -> [X] end), '_'}, [], ['$_']}],
     [{{Deep('$1', fun(X) -> #{k => X} end), '_'}, [], ['$_']}]].

nested(Depth, Wrap) -> nested(bottom, Depth, Wrap).

nested(Term, 0, _) -> Term;
nested(Term, N, Wrap) -> nested(Wrap(Term), N - 1, Wrap).

%% Terms a hundred thousand deep go in, compare, and come back.
deep_objects(Sut, T) ->
    [begin
         Deep = nested(100000, Wrap),
         true = Sut:insert(T, {Deep, Deep}),
         [{Deep, Deep}] = Sut:lookup(T, Deep),
         [[Deep]] = Sut:match(T, {Deep, '$1'}),
         [{Deep, Deep}] = Sut:take(T, Deep)
     end || Wrap <- [fun(X) -> {X} end, fun(X) -> [X] end, fun(X) -> [a | X] end,
                     fun(X) -> #{a => X} end]].

%% The functions that `ets' writes in Erlang ------------------------------------------------------

functions_in_erlang_test_() ->
    [larder_test:tc("library functions", 120, Sut, fun() -> library(Sut) end)
     || Sut <- larder_test:suts()].

library(Sut) ->
    Fold = fun(X, Acc) -> [X | Acc] end,
    File = larder_test:file("bad_args"),
    Calls = [{foldl, [Fold, [], W]} || W <- tables()] ++ [{foldr, [Fold, [], W]} || W <- tables()]
        ++ [{foldl, [W, [], tab]} || W <- [a, 1, fun erlang:self/0]]
        ++ [{tab2file, [W, F | O]} || W <- tables(), {F, O} <- [{File, []}, {5, []}, {"", []},
                                                               {File, [[nonsense]]},
                                                               {5, [[nonsense]]}]]
        ++ [{tab2file, [tab, "/nonexistent/dir/file"]}, {tab2file, [tab, "/tmp"]},
            {tab2file, [tab, File, [nonsense]]},
            {tab2file, [tab, File, [{extended_info, [a]}]]},
            {tab2file, [tab, File, [{extended_info, a}]]}]
        ++ [{F, ["/nonexistent/file"]} || F <- [file2tab, tabfile_info]]
        ++ [{init_table, [W, fun(read) -> end_of_input end]} || W <- tables()]
        ++ [{init_table, [tab, fun(read) -> wrong end]}, {init_table, [tab, a]},
            {init_table, [tab, fun(read) -> {[{a, 1, 2}, b], a} end]}]
        ++ [{match_delete, [W, '_']} || W <- tables()]
        ++ [{from_dets, [tab, no_such_dets]}, {to_dets, [tab, no_such_dets]}],
    Other = spawn_link(fun() -> other() end),
    Dead = larder_test:dead_pid(),
    Differ = [D || {F, _} = Call <- Calls, D <- library_compare(Sut, F, Call, Other, Dead)],
    file:delete(File),
    unlink(Other),
    exit(Other, kill),
    Differ =:= [] orelse error({differ, length(Differ), lists:sublist(Differ, 12)}).

tables() -> [dead, missing, 17, "t", reference, {a}, <<"t">>].

%% Only class and kind of reason: what a library function shows is its own affair.
library_compare(Sut, F, {F, Args}, Other, Dead) ->
    {O, OB, OA} = attempt(oracle, set, mine, F, Args, Other, Dead),
    {S, SB, SA} = attempt(Sut, set, mine, F, Args, Other, Dead),
    case {kind(O), OB, OA} =:= {kind(S), SB, SA} of
        true -> [];
        false -> [{F, short(Args), {ets, short(O)}, {Sut, short(S)}}]
    end.

kind(#raised{class = Class, reason = Reason}) -> {Class, head(Reason)};
kind({ok, {error, Reason}}) -> {error, head(Reason)};
kind({ok, Value}) -> {ok, Value}.

head(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 -> element(1, Tuple);
head(Reason) -> Reason.

%% Still alive, and able ------------------------------------------------------------------------

still_alive_after_all_test_() ->
    [larder_test:tc("all is well afterwards", 20, Sut, fun() ->
        T = Sut:new(after_all, []),
        true = Sut:insert(T, {a, 1}),
        2 = Sut:update_counter(T, a, 1),
        true = Sut:delete(T)
     end) || Sut <- larder_test:suts()].
