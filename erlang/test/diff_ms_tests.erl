%% @doc Match specifications: random ones, on random objects and tables,
%% against erlang:match_spec_test and the same functions of `ets'.
-module(diff_ms_tests).
-include_lib("proper/include/proper.hrl").

%% Improper lists within exactly/1: PropEr can't shrink them.
-define(IMPROPER(H, T), exactly([H | T])).

-export([specifications_on_terms_test_/0, computed_keys_test_/0, skipped_variables_test_/0, constant_maps_test_/0,
         many_shapes_test_/0, bound_keys_test_/0, specifications_on_tables_test_/0, planted_faults_are_found_test_/0]).

%% One object against one specification ----------------------------------------------

specifications_on_terms_test_() ->
    [larder_test:tc("one object, one specification", 300, Sut, fun() ->
        larder_test:check_property(lists:concat(["diff_ms specs ", Sut]),
                                   cases(Sut, 4000), prop_spec(Sut))
     end) || Sut <- larder_test:suts()].

cases(diff_sound, N) -> larder_test:scaled(max(1, N div 10));
cases(_, N) -> larder_test:scaled(N).

prop_spec(Sut) ->
    ?FORALL({Object, Spec}, {diff_gen:object(), any_spec()},
            begin
                {O, S} = diff_gen:made({Object, Spec}),
                Differences = [D || D <- one(Sut, O, S), element(2, D) =/= element(3, D)],
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [O, S, Differences]), Differences =:= [])
            end).

any_spec() ->
    frequency([{8, diff_ms_gen:spec()}, {1, diff_ms_gen:wrong_spec()},
               {2, ?LAZY(?LET(C, diff_ms_gen:replace_clause(), [C]))},
               {1, ?LAZY(diff_ms_gen:boolean_spec())}]).

%% What each way of running a specification says, for both.
one(Sut, Object, Spec) ->
    Test = erlang:match_spec_test(Object, Spec, table),
    Expected = case Test of
        {ok, Result, _, _} -> {ok, Result};
        {error, Errors} -> {error, Errors}
    end,
    [{test_ms, Expected, attempt(fun() -> Sut:test_ms(Object, Spec) end)},
     {run, run(ets, Object, Spec), run(Sut, Object, Spec)}
     | [{F, table_call(ets, F, Object, Spec), table_call(Sut, F, Object, Spec)}
        || F <- [select, select_count, select_replace, select_delete]]].

run(M, Object, Spec) ->
    attempt(fun() -> M:match_spec_run([Object, {other}, Object], M:match_spec_compile(Spec)) end).

table_call(M, Function, Object, Spec) ->
    T = M:new(diff_ms, [ordered_set]),
    try
        M:insert(T, Object),
        {attempt(fun() -> M:Function(T, Spec) end), M:tab2list(T)}
    after
        M:delete(T)
    end.

attempt(Fun) ->
    try Fun() catch error:Reason -> {error, Reason} end.

%% Computed keys of maps, which `ets' itself only does right away from tables.
computed_keys_test_() ->
    [larder_test:tc("computed keys of maps", 30, Sut, fun() ->
        [begin
             Spec = [{{'$1', '$2', '$3'}, [], [Body]}],
             {ok, Expected, _, _} = erlang:match_spec_test(Object, Spec, table),
             {ok, Expected} = Sut:test_ms(Object, Spec),
             [Expected] = Sut:match_spec_run([Object], Sut:match_spec_compile(Spec)),
             T = Sut:new(diff_ms, [ordered_set]),
             Sut:insert(T, Object),
             [Expected] = Sut:select(T, Spec),
             Sut:delete(T)
         end || Object <- [{1 bsl 70, [a, b], {x}}, {1, 2, 3}, {#{a => 1}, <<0:1200>>, 1.0}],
                Body <- [#{'$1' => '$2'}, #{['$1' | '$2'] => x}, #{{{'$1', '$3'}} => {{'$2'}}},
                         #{{hd, '$1'} => 1}, #{#{'$1' => 1} => '$3'}, {{#{'$3' => '$$'}, '$_'}}]]
     end) || Sut <- larder_test:other_suts()].

%% Variables that a body has first where they are skipped. What `ets' gives then points into the
%% table (diff_ms_gen).
skipped_variables_test_() ->
    [larder_test:tc("variables that are skipped", 30, Sut, fun() ->
        Value = {some, [<<"term">>]},
        [begin
             T = Sut:new(diff_ms, [Type]),
             Sut:insert(T, {1, Value}),
             Found = Sut:select(T, [{Head, [], [Skips, {{Skips, Again}}]}]),
             Sut:delete(T),
             [{true, Expected}] = Found
         end || Type <- [set, ordered_set, bag, duplicate_bag],
                Skips <- [{'orelse', true, {is_tuple, '$2'}},
                          {'not', {'andalso', {'<', 2, 1}, {'==', '$2', '$2'}, true}}],
                {Head, Again, Expected} <- [{{'_', '$2'}, '$2', Value}, {{'_', '$2'}, '$$', [Value]},
                                            {'$2', '$2', {1, Value}}]]
     end) || Sut <- larder_test:other_suts()].

%% A large map as a filter: a key of each row is searched for in it, until its keys are sorted.
constant_maps_test_() ->
    [larder_test:tc("large maps among the constants", 60, Sut, fun() ->
        Keys = [<<"key">>, 0.0, 1.0, {2}, [], -7, a, 1 bsl 70, <<0:1600>>, #{b => 1}, [c | d]],
        Map = maps:from_list([{K, {value, K}} || K <- Keys ++ lists:seq(1, 200, 2)]),
        Rows = [{I, K} || {I, K} <- lists:enumerate([3.0, -0.0, {3}, b | Keys] ++
                                                    lists:seq(1, 300))],
        Specs = [[{{'$1', '$2'}, [{is_map_key, '$2', {const, Map}}], ['$1']}],
                 [{{'$1', '$2'}, [], [{{'$1', {map_get, '$2', {const, Map}}}}]}],
                 [{{'$1', '$2'}, [{is_map_key, '$1', {const, Map}},
                                  {is_map_key, '$2', {const, Map#{'$x' => 1}}}], ['$_']}]],
        [begin
             [T, Oracle] = [M:new(diff_ms, [ordered_set]) || M <- [Sut, ets]],
             [true = M:insert(X, Rows) || {M, X} <- [{Sut, T}, {ets, Oracle}]],
             Expected = ets:select(Oracle, Spec),
             [Expected = Sut:select(T, Spec) || _ <- [1, 2]],
             [true = M:delete(X) || {M, X} <- [{Sut, T}, {ets, Oracle}]]
         end || Spec <- Specs]
     end) || Sut <- larder_test:other_suts()].

%% More shapes of specifications in turn than a thread keeps the code of, wrong ones among them.
many_shapes_test_() ->
    [larder_test:tc("many shapes in turn", 60, Sut, fun() ->
        T = Sut:new(diff_ms, [ordered_set]),
        true = Sut:insert(T, [{K, K + 1} || K <- lists:seq(1, 20)]),
        Shape = fun(I) ->
            Guards = [case (I bsr J) band 1 of 1 -> {'<', '$1', 15}; 0 -> {'>', '$2', 3} end
                      || J <- lists:seq(0, 9)],
            Wrong = [{no_such_guard, '$1'} || I rem 7 =:= 0],
            Long = [{'=/=', '$1', {const, list_to_atom("x" ++ integer_to_list(J))}}
                    || I rem 50 =:= 1, J <- lists:seq(1, 60)],
            [{{'$1', '$2'}, Guards ++ Wrong ++ Long, ['$1']}]
        end,
        Expected = fun(0) -> lists:seq(3, 20); (1023) -> lists:seq(1, 14); (_) -> lists:seq(3, 14) end,
        [case I rem 7 of
             0 -> {error, badarg} = attempt(fun() -> Sut:select(T, Shape(I)) end);
             _ -> Wanted = Expected(I), Wanted = Sut:select(T, Shape(I))
         end || _ <- [1, 2, 3], I <- lists:seq(0, 1023)],
        Sut:delete(T)
     end) || Sut <- larder_test:other_suts()].

%% Specifications that name a key: each kind of key, and keys that are equal but not identical.
bound_keys_test_() ->
    [larder_test:tc("bound keys", 60, Sut, fun() ->
        [true = same_by_key(Sut, Type, Key)
         || Type <- [set, ordered_set, bag, duplicate_bag], Key <- bound_keys()]
     end) || Sut <- larder_test:suts()].

same_by_key(Sut, Type, Key) ->
    Rows = [{K, N, x} || {N, K} <- lists:enumerate(bound_keys())]
        ++ [{{K, N}, N, x} || {N, K} <- lists:enumerate(bound_keys())]
        ++ [{Key, a, y}, {Key, b, x}],
    Calls = [{select, [[{{Key, '$1', '_'}, [], ['$1']}]]},
             {select, [[{{Key, '$1', '$2'}, [{is_atom, '$1'}], [{{'$2', ['$1']}}]}]]},
             {select, [[{{Key, '$1', '$2'}, [{'=/=', '$1', '$2'}, {'==', {element, 3, '$_'}, x}],
                         ['$_']}]]},
             {select, [[{{Key, '$1', '_'}, [], ['$1']}, {{Key, '_', y}, [], ['$_']}]]},
             {select, [[{{'$1', {const, Key}, '_'}, [], ['$1']}]]},
             {match, [{Key, '$2', '$1'}]}, {match, [{Key, '$1', '$1'}]},
             {match_object, [{Key, '_', x}]},
             {select_count, [[{{Key, '_', '_'}, [], [true]}]]},
             {select_count, [[{{Key, '_', '$1'}, [], [{'==', '$1', x}]}]]},
             {select_delete, [[{{Key, '$1', x}, [{is_atom, '$1'}], [true]}]]},
             {match_delete, [{Key, '_', '_'}]}, {match_delete, [{Key, '_'}]},
             {select, [[{{Key, '$1', '_'}, [], ['$9']}]]}, {match, [{Key, '$1', '_'}]},
             {pages, [[{{Key, '$1', '_'}, [], ['$1']}], 1]},
             {pages, [[{{Key, '$1', y}, [], ['$_']}], 2]},
             {pages, [[{{Key, '_', '_'}, [], ['$_']}], 100]},
             {select, [[{{{Key, '$2'}, '$1', '_'}, [], ['$$']}]]},
             {select, [[{{[Key | '_'], '$1', '_'}, [], ['$_']}]]},
             {select_count, [[{{{'_', Key}, '_', '_'}, [], [true]}]]},
             {select, [[{{'$1', '$2', '_'}, [{'=:=', '$1', {const, Key}}], ['$2']}]]},
             {select, [[{{'$1', '$2', '_'}, [{'>', '$1', {const, Key}}], ['$2']}]]},
             {select_count, [[{{'$1', '_', '_'}, [{'=<', {const, Key}, '$1'}], [true]}]]},
             {select, [[{{'$1', 1, '_'}, [], [{{'$1', {const, Key}, [{const, Key} | '$1']}}]}]]},
             {select_replace, [[{{Key, '$1', x}, [], [{{{const, Key}, {{'$1'}}, z}}]}]]},
             {select_replace, [[{{Key, '_', '$1'}, [], [{{{const, 1}, '$1', z}}]}]]},
             {select_replace, [[{{{Key, '$2'}, '$1', x}, [], [{{{{{const, Key}, '$2'}}, w, '$1'}}]}]]},
             {select, [[{'_', [], ['$_']}]]}],
    by_key(ets, Type, Rows, Calls) =:= by_key(Sut, Type, Rows, Calls).

by_key(M, Type, Rows, Calls) ->
    T = M:new(diff_ms, [Type]),
    %% One by one: the order in which `ets' takes those of a long list is its own.
    lists:foreach(fun(Row) -> true = M:insert(T, Row) end, Rows),
    %% `ets' gives the objects of one key in an order of its own.
    Results = [attempt(fun() -> sorted(call(M, Function, [T | Args])) end)
               || {Function, Args} <- Calls],
    Left = lists:sort(M:tab2list(T)),
    M:delete(T),
    {Results, Left}.

%% Pages: what all of them have, and whether the first was said to be the last. Without a key that
%% depends on where in the table a row lies.
call(M, pages, [T, [{Head, _, _}] = Spec, Limit]) ->
    case M:select(T, Spec, Limit) of
        {Found, More} ->
            Open = lists:member(element(1, Head), ['_', '$1']),
            {lists:sort(Found ++ rest(M, More)), Open orelse More =:= '$end_of_table'};
        End -> End
    end;
call(M, Function, Args) -> apply(M, Function, Args).

rest(_, '$end_of_table') -> [];
rest(M, Continuation) ->
    case M:select(Continuation) of
        {Found, More} -> Found ++ rest(M, More);
        '$end_of_table' -> []
    end.

sorted(Results) when is_list(Results) -> lists:sort(Results);
sorted(Other) -> Other.

bound_keys() ->
    [1, 1.0, 0.0, 0, -7, 1 bsl 80, -(1 bsl 63), 1 bsl 63, 1 bsl 60, 2.5, 'a b', '$_', '$$', '$01',
     {'$1', 2}, '_', '$1', #{1 => 2}, {k, #{1 => 1.0}}, [], [a | b], "text", {1, 2}, {1.0, 2}, <<>>,
     <<1, 2, 3:4>>,
     <<0:1200>>, binary:copy(<<7>>, 300), {k, binary:copy(<<7>>, 300)}, self(), get_ref(),
     {get_ref()},
     fun lists:sort/1].

get_ref() ->
    case get(diff_ms_ref) of
        undefined ->
            put(diff_ms_ref, make_ref()),
            get(diff_ms_ref);
        Ref -> Ref
    end.

%% Whole tables: what a bound key, a prefix or a guard may skip --------------------------

specifications_on_tables_test_() ->
    [larder_test:tc("tables", 300, Sut, fun() ->
        larder_test:check_property(lists:concat(["diff_ms tables ", Sut]),
                                   cases(Sut, 600), prop_table(Sut))
     end) || Sut <- larder_test:suts()].

%% Few kinds of keys, many rows, so that ranges cut in the middle.
prop_table(Sut) ->
    ?FORALL({Type, Wc, Rows, Specs},
            {elements([ordered_set, ordered_set, set, bag, duplicate_bag]), boolean(),
             resize(120, list(row())), vector(6, range_spec())},
            begin
                Commands = diff_gen:made(commands(Type, Wc, Rows, Specs)),
                Result = diff_world:run(Sut, Commands),
                ?WHENFAIL(io:format("~p~n", [Result]), Result =:= ok)
            end).

commands(Type, Wc, Rows, Specs) ->
    [{1, {new, 1, 1, [Type, public, {write_concurrency, Wc}]}}]
    ++ [{1, {call, insert, [{'$t', 1}, Insert]}} || Insert <- inserts(Type, Rows)]
    ++ lists:append([both_ways(Spec) || Spec <- Specs])
    ++ [{1, {call, select_replace, [{'$t', 1}, replacing(S)]}} || S <- Specs]
    ++ [{1, {call, select_delete, [{'$t', 1}, boolean(S)]}} || S <- tl(tl(Specs))].

both_ways(Spec) ->
    [{1, {call, select, [{'$t', 1}, Spec]}},
     {1, {call, select_reverse, [{'$t', 1}, Spec]}},
     {1, {call, select_count, [{'$t', 1}, boolean(Spec)]}},
     {1, {walk, 1, {select, Spec, 3}}},
     {1, {walk, 1, {select_reverse, Spec, 2}}},
     {1, {open, 1, select, Spec, 2, 1}},
     {1, {more, 1, repaired}},
     {1, {more, 1, direct}}].

%% What is inserted, call by call. `ets' of OTP 25.2.3 inserts a list backwards when it runs out of
%% reductions on the way: which of two rows stays, and the order of those of a bag's key, would be a
%% matter of luck.
inserts(ordered_set, Rows) -> [lists:ukeysort(1, Rows)];
inserts(set, Rows) -> [maps:to_list(maps:from_list(Rows))];
inserts(_, Rows) -> Rows.

boolean(Spec) -> [{H, G, [true]} || {H, G, _} <- Spec].

%% The same object: a new last element, a kept key.
replacing(Spec) -> [{H, G, [replaced(H)]} || {H, G, _} <- Spec].

replaced({'$1', '$2'}) -> {{'$1', {{'$2', x}}}};
replaced(_) -> '$_'.

row() ->
    {frequency([{5, integer(-20, 20)}, {2, ?LET(I, integer(-20, 20), I / 2)},
                {4, {integer(1, 4), integer(1, 6)}}, {2, {a, integer(1, 4), integer(1, 3)}},
                {2, ?LET({A, B}, {integer(1, 3), integer(1, 3)}, [A, B])},
                {2, ?LET({A, B}, {integer(1, 3), integer(1, 3)}, exactly([A | B]))},
                {1, diff_gen:key()}, {1, diff_gen:from_pool()}]),
     integer(0, 3)}.

range_spec() ->
    frequency([{4, ?LET({H, G}, {range_head(), list_of_1_to_3(range_guard())}, [{H, G, ['$_']}])},
               {3, ?LET(H, range_head(), [{H, [], ['$_']}])},
               {2, ?LET({A, B}, {range_head(), range_head()},
                        [{A, [], ['$_']}, {B, [], ['$_']}])},
               {2, ?LET({H, G, H2}, {range_head(), range_guard(), range_head()},
                        [{H, [G], ['$_']}, {H2, [], ['$_']}])},
               {1, ?LAZY(diff_ms_gen:spec())}]).

%% '$1' is the whole key, or a part of it.
range_head() ->
    oneof([{'$1', '$2'}, {'$1', '_'}, {{'$1', '_'}, '_'}, {{1, '$1'}, '_'}, {{'$3', '$1'}, '_'},
           {{a, '$1', '_'}, '_'}, {{a, 2, '$1'}, '$2'}, {[1, '$1'], '_'}, {?IMPROPER(1, '$1'), '_'},
           {?IMPROPER('$1', '_'), '_'}, {{1, 2}, '$1'}, {{1.0, 2}, '$1'}, {3, '$1'}, {3.0, '$1'},
           {{'_', '$1'}, '_'}, {'$1', '$1'}, {{'$1', '$1'}, '_'}]).

range_guard() ->
    frequency([{6, simple_guard()},
               {1, {'andalso', simple_guard(), simple_guard()}},
               {1, {'and', simple_guard(), simple_guard()}},
               {1, {'orelse', simple_guard(), simple_guard()}},
               {1, {'not', simple_guard()}},
               {1, {'andalso', simple_guard(), {'orelse', simple_guard(), simple_guard()}}}]).

simple_guard() ->
    Op = elements(['<', '=<', '>', '>=', '==', '=:=', '/=', '=/=']),
    Side = frequency([{6, '$1'}, {1, {element, 1, '$_'}}]),
    Bound = frequency([{5, integer(-20, 20)}, {2, ?LET(I, integer(-40, 40), I / 4)},
                       {2, ?LET({A, B}, {integer(0, 4), integer(0, 6)}, {const, {A, B}})},
                       {1, ?LET({A, B}, {integer(0, 4), integer(0, 6)}, {{A, B}})},
                       {1, ?LET({A, B}, {integer(0, 3), integer(0, 3)}, [A, B])},
                       {1, {const, diff_gen:from_pool()}}, {1, elements([a, [], {const, {}}])}]),
    frequency([{3, {Op, Side, Bound}}, {2, {Op, Bound, Side}}]).

list_of_1_to_3(Type) ->
    ?LET(N, integer(1, 3), vector(N, Type)).

%% The suite can fail -------------------------------------------------------------------

planted_faults_are_found_test_() ->
    %% One case of some hundreds finds it.
    [{lists:concat(["finds ", Fault]), {timeout, 300, fun() ->
        Sut = diff_planted:load(Fault),
        {Result, _, _} = larder_test:try_property(10000, Property(Sut), [noshrink]),
        ok = diff_planted:unload(Sut),
        false = Result
     end}} || {Fault, Property} <- [{guard_off_by_one, fun prop_table/1},
                                    {replace_any_key, fun prop_spec/1}]].
