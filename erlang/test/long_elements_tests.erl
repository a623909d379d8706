%% Elements of every length, and those after them, are what they are in ets, whatever finds,
%% changes or compares them: the stored form of a long container differs from that of a short one,
%% and that of the last element from that of the others.
-module(long_elements_tests).

-export([beside_ets_test_/0, specifications_test_/0, indexes_test_/0, far_elements_test_/0,
         reading_is_charged_test_/0, writing_is_charged_test_/0]).

beside_ets_test_() ->
    [seeded(lists:flatten(io_lib:format("long elements ~0p", [Options])),
            fun() -> beside_ets(Options) end)
     || Options <- [[set], [ordered_set], [bag], [duplicate_bag], [set, compressed],
                    [ordered_set, compressed, {keypos, 3}], [bag, compressed, {keypos, 2}],
                    [set, {keypos, 4}], [duplicate_bag, {keypos, 4}]]].

seeded(Title, Fun) ->
    [larder_test:tc(Title, 120, larder, fun() ->
        _ = rand:seed(exsss, {2026, 11, erlang:phash2(Title)}),
        Fun()
    end)].

any(List) -> lists:nth(rand:uniform(length(List)), List).

%% Around 64 bytes, from where on they are stored in another way, and around sizes of which the
%% length takes one more byte.
value() ->
    Size = any([0, 1, 5, 20, 60, 61, 62, 63, 64, 120, 125, 130, 300, 9000]),
    case rand:uniform(12) of
        1 -> lists:seq(1, Size);
        2 -> list_to_tuple(lists:duplicate(Size, a));
        3 -> maps:from_list([{N, N} || N <- lists:seq(1, Size div 2)]);
        4 -> lists:duplicate(Size, $x) ++ tail;
        5 -> [{binary:copy(<<"a">>, Size), <<"b">>} || _ <- lists:seq(1, 3)];
        6 -> X = lists:duplicate(Size, 0.0), fun() -> X end;
        7 -> binary:copy(<<"c">>, Size);
        8 -> [[lists:duplicate(Size, 1 bsl 70)], #{k => lists:seq(1, Size)}];
        9 -> [self(), make_ref(), Size];
        10 -> [-0.0 | lists:duplicate(Size, 0.0)];
        _ -> any([1, -1, a, 0.5, [], {}, #{}, <<>>, 1 bsl 80])
    end.

row(KeyPos, Key) ->
    Arity = any([4, 4, 4, 5, 6]),
    setelement(KeyPos, list_to_tuple([value() || _ <- lists:seq(1, Arity)]), Key).

beside_ets(Options) ->
    T = larder:new(t, [public | Options]),
    E = diff_gen:oracle(Options),
    KeyPos = larder:info(T, keypos),
    Keys = [1, 2.5, a, <<"key">>, [long, lists:seq(1, 100)],
            {make_ref(), binary:copy(<<"k">>, 200)}],
    Both = fun(Function, Args) -> both(T, E, Function, Args) end,
    [step(Both, hd(Options), KeyPos, any(Keys)) || _ <- lists:seq(1, 1200)],
    true = larder:delete(T),
    true = ets:delete(E).

step(Both, Type, KeyPos, Key) ->
    IsUnique = Type =:= set orelse Type =:= ordered_set,
    Objects = Both(lookup, [Key]),
    Position = any([1, 2, 3, 4, 5]),
    case rand:uniform(16) of
        1 -> Both(insert, [row(KeyPos, Key)]);
        2 -> Both(insert_new, [[row(KeyPos, Key), row(KeyPos, {other, Key})]]);
        3 when Objects =/= [] -> Both(insert, [changed(any(Objects))]);
        4 when Objects =/= [] -> Both(delete_object, [any([any(Objects), changed(any(Objects))])]);
        5 -> Both(lookup_element, [Key, Position]);
        6 when IsUnique -> Both(update_element, [Key, {Position, value()}]);
        7 when IsUnique -> Both(update_element, [Key, [{4, value()}, {any([1, 2, 3]), value()}]]);
        8 when IsUnique -> Both(update_counter, [Key, {Position, 3}]);
        9 when IsUnique ->
            Both(update_counter, [Key, [{4, 3}, {2, 1}], row(KeyPos, Key)]);
        10 -> Both(select, [[{'$1', [{'==', {element, Position, '$1'}, constant(value())}],
                              [{{{element, 4, '$1'}, {size, '$1'}}}]}]]);
        11 -> Both(select, [[{{'$1', '$2', '$3', '$4'}, [{'>', any(['$1', '$2', '$3']), '$4'}],
                              [{{any(['$1', '$2', '$3', '$4']), '$4', ['$2']}}, '$_', '$$']}]]);
        12 when Objects =/= [] ->
            Pattern = setelement(any([1, 2, 3, 4] -- [KeyPos]), any(Objects), '_'),
            Both(match_object, [Pattern]),
            Both(select_count, [[{Pattern, [], [true]}]]);
        13 when IsUnique ->
            Both(select_replace, [[{setelement(KeyPos, {'$1', '$2', '$3', '$4'}, Key), [],
                                    [{setelement(KeyPos, {'$4', '$3', '$2', '$1'},
                                                 {const, Key})}]}]]);
        14 -> Both(tab2list, []);
        15 when Objects =/= [] -> Both(take, [Key]),
            %% One by one: OTP before 25.3 puts a list into a bag in reverse.
            [Both(insert, [Object]) || Object <- Objects];
        16 ->
            Head = setelement(KeyPos, {'_', '_', '_', '_', '_'}, Key),
            Both(select_delete, [[{Head, [], [true]}]]);
        _ -> Both(member, [Key])
    end.

constant(Value) -> {const, Value}.

%% One element is another one: sometimes the last, or one more.
changed(Object) ->
    case rand:uniform(4) of
        1 when tuple_size(Object) < 8 -> erlang:append_element(Object, value());
        2 -> setelement(tuple_size(Object), Object, value());
        _ -> Object
    end.

%% The result of a call of both, which is the same but for the order of sets.
both(T, E, Function, Args) ->
    [Larder, Ets] = [try {ok, sorted(Function, apply(M, Function, [Table | Args]))}
                     catch error:badarg -> badarg
                     end || {M, Table} <- [{larder, T}, {ets, E}]],
    case Larder =:= Ets andalso erlang:phash2(Larder) =:= erlang:phash2(Ets) of
        true -> ok;
        false -> error({differs, Function, Args, Larder, Ets})
    end,
    case Larder of
        {ok, Result} -> Result;
        badarg -> badarg
    end.

sorted(Function, Result) when is_list(Result), Function =/= lookup, Function =/= take,
                              Function =/= lookup_element -> lists:sort(Result);
sorted(_, Result) -> Result.

%% Specifications ---------------------------------------------------------------------------------

%% Lists of any length in heads, guards and bodies, several in one specification: constants, and
%% such as have variables in them.
specifications_test_() ->
    seeded("long lists in specifications", fun() ->
        Objects = [{k, list(constant), lists:seq(1, 200)} || _ <- lists:seq(1, 30)]
                  ++ [{N, [N | lists:seq(1, 200)], lists:duplicate(256, 7)}
                      || N <- lists:seq(1, 9)],
        Tables = [{M, M:new(t, [duplicate_bag])} || M <- [larder, ets]],
        [[true = M:insert(T, Object) || Object <- Objects] || {M, T} <- Tables],
        [same_results(Tables, specification()) || _ <- lists:seq(1, 2000)],
        [true = M:delete(T) || {M, T} <- Tables]
    end).

specification() ->
    Head = any(['_', {'$1', '$2', '$3'}, {'$1', list(head), '$3'}, {'$1', list(head), list(head)},
                {'_', '_', list(head)}, {any([k, 3]), list(head), list(constant)}]),
    Guards = [{any(['=:=', '=/=', '<', '==']), any(['$2', '$3', '$_', {hd, list(body)}]),
               list(body)}
              || _ <- lists:seq(1, rand:uniform(3) - 1)],
    Body = any(['$1', '$_', {{list(body), list(body)}}, [list(body), list(body), '$1'],
                {{{hd, list(body)}, list(body)}}]),
    [{Head, Guards, [Body]}].

list(What) ->
    Size = any([1, 2, 126, 127, 128, 129, 200, 255, 256, 257, 300]),
    List = any([lists:seq(1, Size), lists:duplicate(Size, 7),
                [-1, 16#1122334455, <<21, 2, 129>> | lists:seq(1, Size)]]),
    Loose = any(case What of
                    constant -> [3];
                    head -> ['$1', '$2', '_', 1];
                    body -> ['$1', '$_', '$2', {const, '$1'}, 1]
                end),
    case rand:uniform(4) of
        1 -> List;
        2 -> [Loose | List];
        3 -> List ++ [Loose];
        4 when What =:= head -> List ++ Loose;
        4 -> List ++ tail
    end.

same_results(Tables, Spec) ->
    Results = [try lists:sort(M:select(T, Spec)) catch error:badarg -> badarg end
               || {M, T} <- Tables],
    case Results of
        [Same, Same] -> ok;
        _ -> error({differs, Spec, Results})
    end.

%% Indexes ----------------------------------------------------------------------------------------

%% An index of an element finds it where it is long, last, or after a long one.
indexes_test_() ->
    seeded("long elements, by an index", fun() ->
        [begin
             T = larder:new(t, [Type, {index, [{second, 2, []}, {third, 3, []}]}]),
             Values = [lists:seq(1, N) || N <- [1, 62, 63, 200]] ++ [a, #{k => lists:seq(1, 99)}],
             [true = larder:insert(T, row_of(N, any(Values), any(Values)))
              || N <- lists:seq(1, 500)],
             [begin
                  Wanted = [Row || Row <- larder:tab2list(T), tuple_size(Row) >= Position,
                                   element(Position, Row) =:= Value],
                  Found = larder:index_lookup(T, Index, Value),
                  true = lists:sort(Wanted) =:= lists:sort(Found)
              end || Value <- Values, {Index, Position} <- [{second, 2}, {third, 3}]],
             true = larder:delete(T)
         end || Type <- [set, ordered_set, bag]]
    end).

row_of(N, A, B) ->
    case N rem 3 of
        0 -> {N div 2, A};
        1 -> {N div 2, A, B};
        2 -> {N div 2, A, B, x}
    end.

%% Times ------------------------------------------------------------------------------------------

%% An element after a list of a million is found without a walk over it.
far_elements_test_() ->
    seeded("elements after long ones", fun() ->
        T = larder:new(t, []),
        true = larder:insert(T, {k, lists:seq(1, 1000000), #{n => lists:seq(1, 100000)}, 7}),
        Calls = [fun() -> 7 = larder:lookup_element(T, k, 4) end,
                 fun() -> [7] = larder:select(T, [{{k, '_', '_', '$1'}, [], ['$1']}]) end,
                 fun() ->
                     [7] = larder:select(T, [{{'_', '_', '_', '$1'}, [{'>', '$1', 0}], ['$1']}])
                 end],
        %% The walk would take over two milliseconds.
        [true = lists:min([element(1, timer:tc(Call)) || _ <- lists:seq(1, 20)]) < 500
         || Call <- Calls],
        true = larder:delete(T)
    end).

%% Who reads a large object is charged for it, whatever finds it.
reading_is_charged_test_() ->
    seeded("reading large objects is charged", fun() ->
        T = larder:new(t, [ordered_set]),
        true = larder:insert(T, {1, lists:seq(1, 20000)}),
        Calls = [{lookup, [1]}, {lookup_element, [1, 2]}, {lookup_element, [1, 2, none]},
                 {lookup_elements, [1, [2]]}, {first_lookup, []}, {last_lookup, []},
                 {next_lookup, [0]}, {prev_lookup, [2]}, {nth, [1]},
                 {match_object, [{1, '_'}]}, {match, [{1, '$1'}, 2]}],
        are_charged(T, Calls),
        true = larder:delete(T)
    end).

%% So is who writes a large element.
writing_is_charged_test_() ->
    seeded("writing large elements is charged", fun() ->
        T = larder:new(t, [public]),
        Large = lists:seq(1, 20000),
        Map = maps:from_keys(lists:seq(1, 5000), 0),
        true = larder:insert(T, {1, Large, 0, Map}),
        are_charged(T, [{insert, [{1, Large, 0, Map}]}, {update_element, [1, {2, Large}]},
                        {update_element, [1, [{3, 0}, {2, Large}]]},
                        {update_counter, [2, 1, {2, 0, Large}]},
                        {update_map, [1, 4, 1, Large]}, {update_map, [1, 4, new, 0]},
                        {remove_map_key, [1, 4, new]}]),
        true = larder:delete(T)
    end).

are_charged(T, Calls) ->
    %% All results fit on the heap, so that no collection is charged.
    {Pid, Mon} = spawn_opt(fun() ->
        exit({charged, [{F, reductions(F, [T | Args])} || {F, Args} <- Calls]})
    end, [monitor, {min_heap_size, 1 bsl 21}]),
    {charged, Charged} = receive {'DOWN', Mon, process, Pid, Ended} -> Ended end,
    [] = [{F, Reductions} || {F, Reductions} <- Charged, Reductions < 150].

reductions(Function, Args) ->
    {reductions, Before} = process_info(self(), reductions),
    _ = apply(larder, Function, Args),
    {reductions, After} = process_info(self(), reductions),
    After - Before.
