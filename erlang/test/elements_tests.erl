%% lookup_elements: beside the elements that `ets:lookup_element' gives one by one, of tables, of
%% snapshots and in transactions; what is refused, and in which words.
-module(elements_tests).
-include_lib("proper/include/proper.hrl").

-export([beside_ets_test_/0, long_rows_test_/0, refused_test_/0, words_test_/0,
         the_mark_of_an_absent_key_is_an_element_as_others_test/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(OPTIONS, [[], [compressed], [{keypos, 2}]]).

%% Beside ets ------------------------------------------------------------------------------------

beside_ets_test_() ->
    [larder_test:tc(lists:flatten(io_lib:format("elements are those of ets, ~p ~0p",
                                                [Type, Options])), 120, larder, fun() ->
        larder_test:check_property(lists:concat(["elements ", Type]), larder_test:scaled(150),
                                   prop([Type | Options]))
     end) || Type <- ?TYPES, Options <- ?OPTIONS].

prop(Options) ->
    ?FORALL({Objects, Keys, Lists},
            {list(diff_gen:object()), list(diff_gen:key()), vector(5, positions())},
            same(Options, diff_gen:made(Objects), diff_gen:made(Keys), Lists)).

positions() ->
    frequency([{6, list(range(1, 4))}, {2, list(range(0, 6))}, {1, [range(1, 3)]},
               {1, oneof([[x], [1.0], [-1], [1 bsl 20], [1 bsl 70], x, exactly([1 | 2]), 1])}]).

same(Options, Objects, Keys, Lists) ->
    [T, Oracle] = [larder:new(t, [public | Options]), diff_gen:oracle(Options)],
    [true = M:insert(X, Object) || Object <- Objects, {M, X} <- [{larder, T}, {ets, Oracle}],
                                   tuple_size(Object) >= 2],
    Snapshot = larder:snapshot(T),
    Position = ets:info(Oracle, keypos),
    All = Keys ++ [element(Position, Object) || Object <- ets:tab2list(Oracle)],
    Differ = [{Key, List, Expected, Got}
              || Key <- All, List <- Lists,
                 Expected <- [{answer(fun() -> expected(Oracle, Key, List) end),
                               answer(fun() -> expected(Oracle, Key, List, default) end)}],
                 Got <- [both(T, Key, List), both(Snapshot, Key, List)]
                     ++ [element(2, larder:transaction([T], fun([V]) -> both(V, Key, List) end))],
                 Got =/= Expected],
    true = larder:release(Snapshot),
    [true = M:delete(X) || {M, X} <- [{larder, T}, {ets, Oracle}]],
    ?WHENFAIL(io:format("~p~n", [Differ]), Differ =:= []).

both(T, Key, List) ->
    {answer(fun() -> larder:lookup_elements(T, Key, List) end),
     answer(fun() -> larder:lookup_elements(T, Key, List, default) end)}.

answer(Fun) ->
    try
        Fun()
    catch
        error:badarg -> badarg;
        %% The oracle goes through what is no list.
        error:{bad_generator, _} -> badarg
    end.

%% What ets says of each position by itself, put together.
expected(T, Key, List) ->
    Columns = [ets:lookup_element(T, Key, P) || P <- List],
    case ets:info(T, type) of
        _ when Columns =:= [] -> empty(T, ets:lookup(T, Key));
        Type when Type =:= bag; Type =:= duplicate_bag -> rows(Columns);
        _ -> Columns
    end.

%% A position that is none is refused, whether or not there is an object.
expected(T, Key, List, Default) ->
    case ets:member(T, Key) of
        true ->
            expected(T, Key, List);
        false ->
            [error(badarg) || P <- List, not is_integer(P) orelse P < 1 orelse P >= 1 bsl 59],
            Default
    end.

empty(_, []) -> error(badarg);
empty(T, Objects) ->
    case lists:member(ets:info(T, type), [bag, duplicate_bag]) of
        true -> [[] || _ <- Objects];
        false -> []
    end.

rows([[] | _]) -> [];
rows(Columns) -> [[hd(Column) || Column <- Columns] | rows([tl(Column) || Column <- Columns])].

%% Rows with many elements, of which the last, the key, and the same several times.
long_rows_test_() ->
    [larder_test:tc(lists:concat(["elements of long rows, ", Type]), 60, larder, fun() ->
        T = larder:new(t, [Type, {keypos, 7}]),
        Row = list_to_tuple([value(N) || N <- lists:seq(1, 300)]),
        true = larder:insert(T, Row),
        Wrap = case lists:member(Type, [bag, duplicate_bag]) of
                   true -> fun(Elements) -> [Elements] end;
                   false -> fun(Elements) -> Elements end
               end,
        [true = Wrap([element(P, Row) || P <- Positions]) =:=
             larder:lookup_elements(T, element(7, Row), Positions)
         || Positions <- [[300], [300, 1, 7], [7], [7, 7, 300, 300, 1, 1], lists:seq(1, 300),
                          lists:seq(300, 1, -1), lists:duplicate(20000, 299)]],
        larder:delete(T)
     end) || Type <- ?TYPES].

value(N) when N rem 5 =:= 0 -> binary:copy(<<N>>, 200);
value(N) when N rem 3 =:= 0 -> [N, {N}];
value(N) -> N.

%% What is refused -------------------------------------------------------------------------------

refused_test_() ->
    [larder_test:tc(lists:concat(["positions that are refused, ", Type]), 60, larder, fun() ->
        T = larder:new(t, [Type]),
        true = larder:insert(T, [{1, a}, {2, b, c}]),
        [badarg = answer(fun() -> larder:lookup_elements(T, Key, List) end)
         || Key <- [1, 2, none], List <- [[0], [4], [1, 4], [-1], [x], [1, x], [1 | 2], x, [[]],
                                          [1.0], [1 bsl 70]]],
        badarg = answer(fun() -> larder:lookup_elements(T, none, [1]) end),
        badarg = answer(fun() -> larder:lookup_elements(T, none, []) end),
        absent = larder:lookup_elements(T, none, [], absent),
        absent = larder:lookup_elements(T, none, [9], absent),
        badarg = answer(fun() -> larder:lookup_elements(T, none, [0], absent) end),
        badarg = answer(fun() -> larder:lookup_elements(T, 1, [3], absent) end),
        %% Of a bag one object that is too short refuses all.
        Bag = lists:member(Type, [bag, duplicate_bag]),
        true = larder:insert(T, {1, b, c}),
        Expected = case Bag of true -> badarg; false -> [b, c] end,
        Expected = answer(fun() -> larder:lookup_elements(T, 1, [2, 3]) end),
        larder:delete(T)
     end) || Type <- ?TYPES].

words_test_() ->
    [larder_test:tc("the words of what is refused", 60, larder, fun() ->
        T = larder:new(t, []),
        true = larder:insert(T, {1, a}),
        Element = fun(P) -> words(lookup_element, [T, 1, P]) end,
        [begin
             true = map_size(Element(P)) =:= 1,
             {P, true} = {P, Element(P) =:= words(lookup_elements, [T, 1, [1, P]])}
         end || P <- [3, -1, x]],
        Key = words(lookup_element, [T, none, 1]),
        Key = words(lookup_elements, [T, none, [1]]),
        #{3 := <<"not a list of positions">>} = words(lookup_elements, [T, 1, 1]),
        #{3 := <<"not a list of positions">>} = words(lookup_elements, [T, 1, [1 | 2], x]),
        #{1 := Gone} = words(lookup_element, [no_such_table, 1, 1]),
        #{1 := Gone} = words(lookup_elements, [no_such_table, 1, [1]]),
        larder:delete(T)
     end)].

words(F, Args) ->
    try apply(larder, F, Args) of
        Result -> error({not_refused, Result})
    catch
        error:badarg:Stack ->
            maps:map(fun(_, Text) -> unicode:characters_to_binary(Text) end,
                     larder:format_error(badarg, Stack))
    end.

%% The library returns `badkey' for an absent key, and tells it from an element that is this atom.
the_mark_of_an_absent_key_is_an_element_as_others_test() ->
    Outcomes =
        [[begin
              T = M:new(t, [public, Type]),
              [true = M:insert(T, Object) || Object <- [{1, badkey}, {2, itself}, {badkey, 3}]],
              [catch_all(fun() -> M:lookup_element(T, Key, Position) end)
               || Key <- [1, 2, 3, badkey], Position <- [1, 2, 3]]
              ++ [catch_all(fun() -> M:update_counter(T, Key, 1) end) || Key <- [1, 3, badkey]]
          end || Type <- ?TYPES] || M <- [larder, ets]],
    [Same, Same] = Outcomes.

catch_all(Fun) ->
    try
        {ok, Fun()}
    catch
        error:Reason:Stack ->
            {_, Function, Args, Info} = hd(Stack),
            Cause = maps:get(cause, proplists:get_value(error_info, Info, #{}), none),
            {Reason, Function, tl(Args), Cause}
    end.
