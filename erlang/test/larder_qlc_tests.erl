%% table/1,2: the same queries over larder and over ets give the same answers.
-module(larder_qlc_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").
-include_lib("stdlib/include/qlc.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

queries_test_() ->
    [{lists:flatten(io_lib:format("~w ~0p ~w", [Type, Options, Name])),
      ?LEAK_FREE(?assertEqual(answer(ets, Type, Options, Query),
                              answer(larder, Type, Options, Query)))}
     || Type <- ?TYPES, Options <- options(), {Name, Query} <- queries()].

options() ->
    [[], [{n_objects, 1}], [{n_objects, default}], {n_objects, 7}, [{traverse, select}],
     [{traverse, first_next}], [{traverse, last_prev}],
     [{traverse, {select, [{{'$1', '$2'}, [{'<', '$1', 60}], ['$_']}]}}],
     [{traverse, {select, [{'_', [], ['$_']}]}}, {n_objects, 3}]].

queries() ->
    [{all, fun(H, _) -> qlc:q([X || X <- H]) end},
     {filter, fun(H, _) -> qlc:q([V || {K, V} <- H, K > 30, K rem 2 =:= 0]) end},
     {lookup, fun(H, _) -> qlc:q([V || {K, V} <- H, K =:= 42]) end},
     {lookup_eq, fun(H, _) -> qlc:q([{K, V} || {K, V} <- H, K == 42.0]) end},
     {lookup_many,
      fun(H, _) -> qlc:q([X || {K, _} = X <- H, K =:= 3 orelse K =:= 5 orelse K =:= 500]) end},
     {lookup_pattern, fun(H, _) -> qlc:q([V || {7, V} <- H]) end},
     {join, fun(H, G) -> qlc:q([{A, B} || {K, A} <- H, {L, B} <- G, K =:= L]) end},
     {join_eq, fun(H, G) -> qlc:q([{A, B} || {K, A} <- H, {L, B} <- G, K == L]) end},
     {lookup_join,
      fun(H, G) -> qlc:q([{K, B} || {K, _} <- H, {L, B} <- G, K =:= L], {join, lookup}) end},
     {merge_join,
      fun(H, G) -> qlc:q([{K, B} || {K, _} <- H, {L, B} <- G, K == L], {join, merge}) end},
     {nested_loop,
      fun(H, G) -> qlc:q([{K, B} || {K, _} <- H, {L, B} <- G, K =:= L], {join, nested_loop}) end},
     {unique, fun(H, _) -> qlc:q([K rem 5 || {K, _} <- H], unique) end},
     {sorted, fun(H, _) -> qlc:keysort(1, H) end},
     {appended, fun(H, G) -> qlc:append(H, G) end}].

%% The answers, or the error; sorted where the table has no order. qlc refuses
%% some joins with some traversals: then both must refuse.
answer(Module, Type, Options, Query) ->
    Tab = filled(Module, Type),
    Other = filled(Module, set),
    try sorted(qlc:e(Query(Module:table(Tab, Options), Module:table(Other)))) of
        Answers -> {Answers, Module:info(Tab, safe_fixed)}
    catch
        Class:Reason -> {Class, Reason}
    after
        Module:delete(Tab),
        Module:delete(Other)
    end.

%% 1 and 1.0 tie: the bytes decide.
sorted(Answers) ->
    [Answer || {Answer, _} <- lists:sort([{A, term_to_binary(A)} || A <- Answers])].

filled(Module, Type) ->
    Tab = Module:new(t, [Type, public]),
    [Module:insert(Tab, {Key, Value}) || Key <- lists:seq(1, 120), Value <- [{Key, a}, Key rem 7]],
    Module:insert(Tab, [{42.0, float}, {3.5, half}]),
    Tab.

%% Order: that of the keys, in an ordered_set, forwards and backwards.
order_test_() ->
    [?_assertEqual(in_order(ets, Options), in_order(larder, Options)) || Options <- options()].

in_order(Module, Options) ->
    Tab = filled(Module, ordered_set),
    Answers = qlc:e(qlc:q([K || {K, _} <- Module:table(Tab, Options)])),
    Module:delete(Tab),
    Answers.

%% A cursor fixes the table till it is deleted, and goes on over changes.
cursor_test_() ->
    [?LEAK_FREE(begin
         Tab = filled(larder, Type),
         All = sorted(larder:tab2list(Tab)),
         Cursor = qlc:cursor(larder:table(Tab, Options)),
         First = qlc:next_answers(Cursor, 10),
         ?assertMatch({_, [{_, 1}]}, larder:info(Tab, safe_fixed)),
         %% Only what has been seen goes, not its neighbour under the same key.
         [larder:delete_object(Tab, Object) || Object <- First],
         Rest = qlc:next_answers(Cursor, all_remaining),
         qlc:delete_cursor(Cursor),
         unfixed(Tab, 100),
         ?assertEqual(All, sorted(First ++ Rest)),
         larder:delete(Tab)
     end)
     || Type <- ?TYPES, Options <- [[], [{traverse, first_next}], [{n_objects, 1}]]].

%% The cursor is a process: its fixation goes a moment after it.
unfixed(Tab, Tries) ->
    case larder:info(Tab, safe_fixed) of
        false -> ok;
        _ when Tries > 0 -> timer:sleep(10), unfixed(Tab, Tries - 1)
    end.

%% A query that fails half way leaves nothing fixed.
failing_query_unfixes_test() ->
    Tab = filled(larder, set),
    ?assertError(oops, qlc:e(qlc:q([error(oops, [K]) || {K, _} <- larder:table(Tab)]))),
    ?assertEqual(false, larder:info(Tab, safe_fixed)),
    larder:delete(Tab).

%% What qlc shows of a query is a call of larder that reads the same.
info_test_() ->
    [{lists:flatten(io_lib:format("~0p ~w", [Options, Name])),
      ?LEAK_FREE(?assertEqual(plan(ets, Options, Query), plan(larder, Options, Query)))}
     || Options <- options(), {Name, Query} <- queries()].

plan(Module, Options, Query) ->
    Name = larder_t_plan,
    Name = Module:new(Name, [named_table]),
    Other = Module:new(larder_t_plan_other, [named_table]),
    try lists:flatten(qlc:info(Query(Module:table(Name, Options), Module:table(Other)))) of
        Text ->
            %% One word a blank: the layout depends on the length of the name.
            Blanks = lists:flatten(lists:join(" ", string:lexemes(Text, " \n"))),
            Words = lists:foldl(fun(N, T) -> named(N, Module:whereis(N), T) end,
                                Blanks, [larder_t_plan, larder_t_plan_other]),
            lists:foldl(fun(F, T) ->
                lists:flatten(string:replace(T, "ets:" ++ F, "larder:" ++ F, all)) end,
                        Words, ["table", "lookup"])
    catch
        Class:Reason -> {Class, Reason}
    after
        Module:delete(Name),
        Module:delete(Other)
    end.

%% A text in which the name of a table stands for its id, which OTP 29.1.2 and later show, and may
%% divide where a line ends.
named(Name, Id, Text) ->
    Ref = ref_to_list(Id),
    lists:foldl(fun({From, To}, T) -> lists:flatten(string:replace(T, From, To, all)) end, Text,
                [{"\" \"", ""}, {"list_to_ref(\"" ++ Ref ++ "\")", atom_to_list(Name)},
                 {Ref, atom_to_list(Name)}]).

info_names_larder_test() ->
    Text = plan(larder, [], fun(H, _) -> qlc:q([X || X <- H]) end),
    ?assertNotEqual(nomatch, string:find(Text, "larder:table(larder_t_plan")).

%% Options that are wrong, and tables.
errors_as_ets_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Args])),
      ?LEAK_FREE(?assertEqual(failure(ets, Args), failure(larder, Args)))}
     || Args <- [[tab], [tab, {traverse, x}], [tab, [{traverse, next_first}]],
                 [tab, {n_objects, 0}],
                 [tab, {n_objects, x}], [tab, [{n_objects, -1}, {traverse, select}]], [tab, x],
                 [tab, [{unknown, 1}]], [tab, [{traverse, select}, {traverse, x}]],
                 [tab, {traverse, {select, bad}}], [no_such_table], [17], [make_ref()],
                 [tab, []]]].

%% Here ets fails with a case_clause of its own.
odd_option_is_badarg_test() ->
    Tab = larder:new(t, []),
    ?assertError(badarg, larder:table(Tab, [{n_objects, 5, 5}])),
    larder:delete(Tab).

failure(Module, [Tab | Options] = Args) ->
    Real = case Tab of tab -> Module:new(t, []); _ -> Tab end,
    try apply(Module, table, [Real | Options]) of
        Handle ->
            {made, evaluated(Handle)}
    catch
        Class:Reason:Stack ->
            {Class, Reason, frame(hd(Stack))}
    after
        [Module:delete(Real) || hd(Args) =:= tab]
    end.

%% Of a frame in qlc the arguments have funs in them. `ets' of OTP 29.1.2 looks up names in a
%% function of its own.
frame({ets, soft_whereis, _, _}) -> {table, []};
frame({larder, table, [no_such_table | _], _}) -> {table, []};
frame({Module, table, [_ | Options], _}) when Module =:= ets; Module =:= larder -> {table, Options};
frame({_, Function, _, _}) -> Function.

evaluated(Handle) ->
    try qlc:e(Handle) catch Class:Reason -> {Class, Reason} end.
