%% Pages of few results, beside `ets'; keys with many objects; lists and elements that are refused
%% or change nothing; specifications that are refused again and again.
-module(pages_tests).
-include_lib("eunit/include/eunit.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

%% Pages -----------------------------------------------------------------------------------------

%% All pages together have the results of the call without a limit.
pages_have_all_results_test_() ->
    [{timeout, 60, {lists:concat([Type, " ", Size, " ", Limit]), fun() ->
        T = larder:new(t, [public, Type]),
        true = larder:insert(T, rows(Size)),
        [?assertEqual(lists:sort(larder:select(T, Spec)),
                      lists:sort(pages(larder:select(T, Spec, Limit))))
         || Spec <- specs()],
        ?assertEqual(lists:sort(larder:match_object(T, {'_', 1, '_'})),
                     lists:sort(pages(larder:match_object(T, {'_', 1, '_'}, Limit)))),
        Type =:= ordered_set andalso
            ?assertEqual(larder:select_reverse(T, everything()),
                         pages(larder:select_reverse(T, everything(), Limit))),
        true = larder:delete(T)
     end}} || Type <- ?TYPES, Size <- [0, 1, 16, 17, 700], Limit <- [1, 2, 10, 16, 17, 701]].

rows(Size) ->
    [{I, I rem 3, <<"a value">>} || I <- lists:seq(1, Size)].

everything() ->
    [{'_', [], ['$_']}].

specs() ->
    [everything(), [{{'$1', '_', '_'}, [], ['$1']}], [{{'$1', 2, '_'}, [], ['$1']}],
     [{{'$1', '_', '_'}, [{'>', '$1', 650}], ['$_']}], [{{'_', none, '_'}, [], ['$_']}]].

pages('$end_of_table') -> [];
pages({Page, Continuation}) -> Page ++ pages(larder:select(Continuation)).

%% The objects of one key of a bag, few and many: the pages, and where they end, are those of ets.
pages_of_a_key_test_() ->
    [{timeout, 60, {lists:concat([Type, " ", Objects, " ", Limit]), fun() ->
        Tables = [{M, M:new(t, [public, Type])} || M <- [larder, ets]],
        [true = M:insert(T, [{Key, I} || I <- lists:seq(1, Objects)])
         || {M, T} <- Tables, Key <- [0, 1, 2]],
        [Same, Same] = [page_sizes(M, M:select(T, [{{1, '_'}, [], ['$_']}], Limit))
                        || {M, T} <- Tables],
        [All, All] = [lists:sort(M:select(T, [{{1, '_'}, [], ['$_']}])) || {M, T} <- Tables]
     end}} || Type <- [bag, duplicate_bag], Objects <- [1, 10, 1000], Limit <- [1, 9, 10, 11, 999,
                                                                             1000, 1001]].

page_sizes(_, '$end_of_table') -> ['$end_of_table'];
page_sizes(M, {Page, Continuation}) -> [length(Page) | page_sizes(M, M:select(Continuation))].

%% Only if heads alone name the keys (of an ordered_set: one key) does a page say that it is the
%% last one. Where guards name them, the next page finds that out.
last_pages_beside_ets_test_() ->
    [{lists:concat([Type, " ", Name]), fun() ->
        [Same, Same] = [begin
            T = M:new(t, [public, Type]),
            true = M:insert(T, [{1, 1}, {2, 0}, {3, 1}]),
            Ends = [end_of_pages(M, Again, M:Select(T, Spec, 1))
                    || {Select, Again} <- [{select, select}, {select_reverse, select_reverse}]],
            true = M:delete(T),
            Ends
        end || M <- [larder, ets]],
        ?assertMatch([{1, _}, {1, _}], Same)
     end} || Type <- ?TYPES, {Name, Spec} <- specs_of_one_object()].

specs_of_one_object() ->
    Key = {{2, '_'}, [], ['$_']},
    [{one_key, [Key]}, {twice, [Key, Key]}, {equal_keys, [Key, {{2.0, '_'}, [], ['$_']}]},
     {no_tuple, [Key, {a, [], ['$_']}]}, {too_short, [Key, {{}, [], ['$_']}]},
     {same_key_false, [Key, {{2, '_'}, [false], ['$_']}]},
     {other_key_false, [Key, {{3, '_'}, [false], ['$_']}]},
     {all_false, [Key, {'_', [false], ['$_']}]},
     {variable_false, [Key, {{'$1', '_'}, [false], ['$_']}]},
     {map_false, [Key, {{#{}, '_'}, [false], ['$_']}]},
     {guard, [{{'$1', '_'}, [{'=:=', '$1', 2}], ['$_']}]},
     {range, [{{'$1', '_'}, [{'>', '$1', 1}, {'<', '$1', 3}], ['$_']}]}].

%% Heads that no object can match don't count, also beside a key with a map.
heads_without_objects_beside_ets_test_() ->
    [{lists:concat([Type, " ", Name]), fun() ->
        Key = {k, #{a => 1}},
        Spec = [{{Key, '_'}, [], ['$_']}, Other],
        [Same, Same] = [begin
            T = M:new(t, [public, Type]),
            true = M:insert(T, [{Key, 1}, {{k, #{a => 1, b => 2}}, 1}]),
            Found = {M:select(T, Spec), end_of_pages(M, select, M:select(T, Spec, 1))},
            true = M:delete(T),
            Found
        end || M <- [larder, ets]],
        ?assertMatch({[{Key, 1}], {1, _}}, Same)
     end} || Type <- ?TYPES, {Name, Other} <- [{no_tuple, {a, [], ['$_']}},
                                               {too_short, {{}, [], ['$_']}}]].

%% The number of objects in all pages, and whether the last page with objects says that it is.
end_of_pages(_, _, {[_], '$end_of_table'}) -> {1, known};
end_of_pages(M, Again, {[_], Continuation}) ->
    case M:Again(Continuation) of
        '$end_of_table' -> {1, unknown};
        More -> {Objects, End} = end_of_pages(M, Again, More), {1 + Objects, End}
    end.

%% The next page of an ordered_set begins after the last key of the one before, also where that
%% was the last key of a leaf or of the table: it has what was inserted there meanwhile.
pages_go_on_after_their_last_key_test_() ->
    {timeout, 60, fun() ->
        Rows = [{I, I} || I <- lists:seq(1, 500)],
        Spec = [{{'$1', '_'}, [], ['$1']}],
        Ask = fun(M, T) ->
            [begin
                {Page, Continuation} = M:Select(T, Spec, Limit),
                Inserted = lists:last(Page) + Step,
                true = M:insert(T, {Inserted, new}),
                {[First | _], _} = M:Select(Continuation),
                true = M:delete(T, Inserted),
                ?assertEqual({Select, Limit, Inserted}, {Select, Limit, First}),
                First
             end || {Select, Step} <- [{select, 0.5}, {select_reverse, -0.5}],
                    Limit <- lists:seq(1, length(Rows))]
        end,
        [T, Ets] = [M:new(t, [public, ordered_set]) || M <- [larder, ets]],
        true = larder:insert(T, Rows),
        true = ets:insert(Ets, Rows),
        Expected = Ask(ets, Ets),
        Expected = Ask(larder, T),
        {atomic, Expected} = larder:transaction([T], fun([View]) -> Ask(larder, View) end),
        true = larder:delete(T)
    end}.

%% The work on a key with many objects is charged to the caller.
work_on_a_key_is_charged_test() ->
    T = larder:new(t, [public, duplicate_bag]),
    true = larder:insert(T, [{1, I} || I <- lists:seq(1, 50000)]),
    Spec = [{{1, none}, [], [true]}],
    [?assert(reductions(Fun) > 1000)
     || Fun <- [fun() -> [] = larder:match_object(T, {1, none}) end,
                fun() -> 0 = larder:select_count(T, Spec) end,
                fun() -> 0 = larder:select_delete(T, Spec) end,
                fun() -> [] = larder:select_take(T, Spec) end,
                fun() -> 0 = larder:select_replace(T, [{{1, none}, [], [{{1, none}}]}]) end]],
    ?assert(reductions(fun() -> {[_], _} = larder:match_object(T, {1, '_'}, 1) end) < 1000).

reductions(Fun) ->
    {reductions, Before} = process_info(self(), reductions),
    Fun(),
    {reductions, After} = process_info(self(), reductions),
    After - Before.

%% Lists and elements ----------------------------------------------------------------------------

%% A list is inserted as a whole, or not at all; the results are those of ets.
lists_beside_ets_test_() ->
    [{lists:concat([Type, " ", Function]), fun() ->
        [begin
             Tables = [{M, M:new(t, [public, Type])} || M <- [larder, ets]],
             [true = M:insert(T, {7, old}) || {M, T} <- Tables],
             [Same, Same] = [{outcome(fun() -> M:Function(T, List) end), lists:sort(M:tab2list(T))}
                             || {M, T} <- Tables]
         end || List <- lists()]
     end} || Type <- ?TYPES, Function <- [insert, insert_new]].

lists() ->
    Good = [{I, new} || I <- [1, 2, 3]],
    Long = [{I, new} || I <- lists:seq(10, 600)],
    [[], Good, [{7, new} | Good], Good ++ [{7, new}], [{1, new}, {7, new}, {2, new}],
     Good ++ [none], [none | Good], Good ++ [{}], Good ++ end_of_list, [{7, new}, none],
     [{7, new} | none], Long, Long ++ [{7, new}], Long ++ [none], Long ++ end_of_list].

%% A table that may not be written is the error, whatever the list.
rights_come_first_test() ->
    Self = self(),
    _ = spawn_link(fun() ->
        Self ! larder:new(t, [protected]),
        receive done -> ok end
    end),
    T = receive Table -> Table end,
    [?assertError(badarg, larder:Function(T, List))
     || Function <- [insert, insert_new], List <- [[], [{1}, {2}], [none, none]]],
    ?assertEqual([], larder:tab2list(T)).

absent_keys_beside_ets_test() ->
    Long = lists:seq(1, 100),
    [begin
         Tables = [{M, M:new(t, [public, Type])} || M <- [larder, ets]],
         [true = M:insert(T, {1, a, b}) || {M, T} <- Tables],
         [Same, Same] = [outcome(fun() -> M:update_element(T, Key, Ops) end) || {M, T} <- Tables]
     end || Type <- ?TYPES, Key <- [1, 2],
            Ops <- [{2, Long}, [{2, x}, {3, Long}], {2, binary:copy(<<"x">>, 1000)}]].

outcome(Fun) ->
    try Fun()
    catch error:Reason -> Reason
    end.

%% Specifications --------------------------------------------------------------------------------

%% What a refused specification leaves behind changes neither it nor those that are like it.
refused_again_and_again_test() ->
    T = larder:new(t, []),
    true = larder:insert(T, {1, 2}),
    [begin
         ?assertError(badarg, larder:select(T, [{{'$1', '_'}, [{no_function, '$1', I}], ['$1']}])),
         ?assertError(badarg, larder:select(T, [{{'$1', '_'}, [], ['$2']}])),
         ?assertEqual([1], larder:select(T, [{{'$1', '_'}, [{'<', '$1', I}], ['$1']}]))
     end || I <- [3, 3, 4, 5]].

%% The cause of a position that doesn't exist is that of ets, the first time and later.
cause_of_a_position_test() ->
    Causes = [begin
                  T = M:new(t, []),
                  true = M:insert(T, {1}),
                  try M:update_element(T, 1, {9, x})
                  catch
                      error:badarg:Stack ->
                          Info = element(4, hd(Stack)),
                          maps:get(cause, proplists:get_value(error_info, Info), none)
                  end
              end || M <- [ets, larder, larder]],
    ?assertMatch([Same, Same, Same], Causes).
