%% Secondary indexes: every answer by an index is that of the same question on a table without one,
%% in all four types, for random rows, specifications and indexes, of the table, of its snapshots
%% and in transactions; an index that is added while others write misses nothing; a unique index
%% never has a value twice; and errors are described.
-module(index_tests).

-export([answers_test_/0, a_wrong_answer_is_noticed_test_/0, views_test_/0,
         added_beside_writers_test_/0, unique_test_/0, unique_beside_writers_test_/0,
         plans_test_/0, many_test_/0, far_positions_test_/0, words_test_/0,
         pages_go_on_after_their_last_key_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

-define(INDEXES, [{a, 2, []}, {b, 3, [ordered]}, {tags, 4, [each]},
                  {of_map, {map_get, x, {element, 3, '$_'}}, []},
                  {pair, {{{element, 2, '$_'}, {element, 3, '$_'}}}, []}]).

one(Title, Fun) ->
    [larder_test:tc(Title, 240, larder, Fun)].

each_type(Title, Fun) ->
    [larder_test:tc(lists:flatten(io_lib:format("~s, ~p", [Title, Type])), 240, larder,
                    fun() ->
                        _ = rand:seed(exsss, {2026, 11, erlang:phash2({Title, Type})}),
                        Fun(Type)
                    end) || Type <- ?TYPES].

%% Beside a table without -------------------------------------------------------------------------

%% A table with indexes and one without are changed alike; whatever is asked of them has the same
%% answer. Indexes come and go meanwhile.
answers_test_() ->
    each_type("answers by an index are those without", fun(Type) ->
        With = larder:new(with, [Type, {index, some(?INDEXES)}]),
        Without = larder:new(without, [Type]),
        Plans = lists:append([begin
            [changed(change(), With, Without) || _ <- lists:seq(1, 12)],
            rand:uniform(5) =:= 1 andalso other_index(With),
            same(With, Without, larder:tab2list(Without)),
            [maps:get(plan, larder:explain(With, spec())) || _ <- lists:seq(1, 5)]
        end || _ <- lists:seq(1, larder_test:scaled(120))]),
        ByIndex = [Name || {index, Name} <- Plans],
        true = lists:member(a, ByIndex) andalso lists:member(b, ByIndex),
        true = larder:delete_all_objects(With),
        [0 = Size || #{size := Size} <- larder:info(With, indexes)],
        larder:delete(With),
        larder:delete(Without)
    end).

%% Adds or drops an index.
other_index(T) ->
    Index = {Name, _, _} = any(?INDEXES),
    case [Name || #{name := Own} <- larder:info(T, indexes), Own =:= Name] of
        [] -> true = larder:add_index(T, Index);
        [_] -> true = larder:drop_index(T, Name)
    end.

%% A few keys and values, some of which are equal without being the same.
key() ->
    case rand:uniform(10) of
        1 -> float(rand:uniform(40));
        _ -> rand:uniform(40)
    end.

value() ->
    any([0, 1, 1.0, 2, 3, 4, a, b, "ab", <<"ab">>, {a, 1}, {a, 1.0}, [], #{}, #{x => 1}, #{x => 2},
         1 bsl 70, self(), -1, 2.5]).

row() ->
    Tags = [value() || _ <- lists:seq(1, rand:uniform(4) - 1)],
    case rand:uniform(8) of
        1 -> {key(), value()};
        2 -> {key(), value(), value()};
        3 -> {key(), value(), value(), value()};
        _ -> {key(), value(), value(), Tags}
    end.

any(List) -> lists:nth(rand:uniform(length(List)), List).

some(List) -> [Element || Element <- List, rand:uniform(3) > 1].

%% What is done to a table, and how.
change() ->
    {Row, Key, Spec} = {row(), key(), spec()},
    case rand:uniform(16) of
        N when N =< 7 -> {{insert, Row}, fun(T) -> larder:insert(T, Row) end};
        8 ->
            Rows = [row() || _ <- lists:seq(1, 6)],
            {{insert, Rows}, fun(T) -> larder:insert(T, Rows) end};
        9 -> {{insert_new, Row}, fun(T) -> larder:insert_new(T, Row) end};
        10 -> {{take, Key}, fun(T) -> sorted(larder:take(T, Key)) end};
        11 -> {{delete, Key}, fun(T) -> larder:delete(T, Key) end};
        12 -> {{delete_object, Row}, fun(T) -> larder:delete_object(T, Row) end};
        13 ->
            Delete = [{Head, Guards, [true]} || {Head, Guards, _} <- Spec],
            {{select_delete, Delete}, fun(T) -> larder:select_delete(T, Delete) end};
        14 ->
            Pattern = any([{'_', value(), '_', '_'}, {'_', '_', value(), '_'}]),
            {{match_delete, Pattern}, fun(T) -> larder:match_delete(T, Pattern) end};
        15 ->
            %% What replaces an object doesn't match again.
            Value = value(),
            Replace = [{{'$1', Value, '$2', '_'}, [{'/=', '$2', {const, Value}}],
                        [{{'$1', '$2', {const, Value}, ['$2']}}]}],
            {{select_replace, Replace}, unless_bag(fun(T) -> larder:select_replace(T, Replace) end)};
        16 ->
            Update = {2, value()},
            {{update, Key, Update},
             unless_bag(fun(T) -> larder:update_element(T, Key, Update) end)}
    end.

unless_bag(Fun) ->
    fun(T) -> try Fun(T) catch error:badarg -> badarg end end.

changed({What, Change}, With, Without) ->
    equal(What, Change(Without), Change(With)).

%% In an order that is the same for the same terms, also where some are equal.
sorted(Terms) ->
    [Term || {_, Term} <- lists:sort([{term_to_binary(Term), Term} || Term <- Terms])].

%% What says something of an element, in all ways, beside what says nothing.
spec() ->
    {V, W, Key} = {value(), value(), key()},
    Compare = any(['<', '=<', '>', '>=', '==', '=:=', '/=']),
    OfMap = any([{map_get, x, '$1'}, {map_get, x, {element, 3, '$_'}}]),
    Pair = any([{{'$2', '$1'}}, {{{element, 2, '$_'}, '$1'}}, {{'$1', '$2'}}]),
    case rand:uniform(17) of
        1 -> [{{'$1', V, '_', '_'}, [], ['$_']}];
        2 -> [{{'_', V}, [], ['$_']}];
        3 -> [{{'_', '$1', '_', '_'}, [{Compare, '$1', {const, V}}], ['$_']}];
        4 -> [{{'_', '_', '$1', '_'}, [{Compare, {const, V}, '$1'}], ['$_']}];
        5 -> [{'$1', [{Compare, {element, 3, '$1'}, {const, V}}], ['$1']}];
        6 -> [{{'_', '$1', '_', '_'}, [{'>=', '$1', {const, V}}, {'<', '$1', {const, W}}], ['$1']}];
        7 -> [{{'_', '$1', '_', '_'},
               [{'orelse', {'==', '$1', {const, V}}, {'==', '$1', {const, W}}}], ['$_']}];
        8 -> [{{'_', V, '$1'}, [], ['$1']}, {{'_', W, '$1', '_'}, [], ['$_']}];
        9 -> [{{'_', V, W, '_'}, [], ['$_']}];
        10 -> [{{'_', '$1', '$1', '_'}, [{'=:=', '$1', {const, V}}], ['$_']}];
        11 -> [{'_', [], ['$_']}];
        12 -> [{{Key, V, '_', '_'}, [], ['$_']}];
        13 -> [{{'$2', {a, '$1'}, '_', '_'}, [{'<', '$2', Key}], ['$1']}];
        14 -> [{{'_', V, '_', '_'}, [], ['$_']}, {{Key, '_', '_', '_'}, [], [{{Key}}]}];
        15 -> [{{'_', '_', '$1', '_'}, [{Compare, OfMap, {const, V}}], ['$_']}];
        16 -> [{{'_', '$2', '$1', '_'}, [{Compare, {const, {V, W}}, Pair}], ['$_']}];
        17 -> [{{'_', '$2', '$1'}, [{'orelse', {'==', Pair, {{{const, V}, {const, W}}}},
                                   {'=:=', Pair, {const, {W, V}}}}], ['$1']}]
    end.

%% All that can be asked, of a table that should answer as another, whose rows these are.
same(With, Without, Rows) ->
    Ordered = larder:info(With, type) =:= ordered_set,
    [begin
         ask(Ordered, {select, Spec}, With, Without, fun(T) -> larder:select(T, Spec) end),
         ask(Ordered, {select_reverse, Spec}, With, Without,
             fun(T) -> larder:select_reverse(T, Spec) end),
         Limit = rand:uniform(7),
         ask(Ordered, {pages, Limit, Spec}, With, Without,
             fun(T) -> pages(fun larder:select/1, larder:select(T, Spec, Limit)) end),
         ask(Ordered, {reverse_pages, Limit, Spec}, With, Without,
             fun(T) -> pages(fun larder:select_reverse/1, larder:select_reverse(T, Spec, Limit)) end),
         Counted = [{Head, Guards, [true]} || {Head, Guards, _} <- Spec],
         ask(true, {select_count, Spec}, With, Without,
             fun(T) -> larder:select_count(T, Counted) end)
     end || Spec <- [spec() || _ <- lists:seq(1, 6)]],
    Pattern = any([{'_', value(), '$1', '_'}, {'$1', '_', value(), '_'}, {'$2', '$1', '$1', '_'}]),
    ask(Ordered, {match, Pattern}, With, Without, fun(T) -> larder:match(T, Pattern) end),
    ask(Ordered, {match_object, Pattern}, With, Without,
        fun(T) -> larder:match_object(T, Pattern) end),
    [looked_up(With, Rows, Index) || Index <- indexes(With), _ <- lists:seq(1, 3)],
    ok.

ask(true, What, With, Without, Ask) ->
    equal(What, Ask(Without), Ask(With));
ask(false, What, With, Without, Ask) ->
    equal(What, sorted(Ask(Without)), sorted(Ask(With))).

equal(_, Same, Same) -> ok;
equal(What, Expected, Got) -> error({differ, What, Expected, Got}).

pages(_, '$end_of_table') -> [];
pages(Again, {Page, Continuation}) -> Page ++ pages(Again, Again(Continuation)).

indexes(T) ->
    [{Name, On, Options} || #{name := Name, on := On, options := Options} <- larder:info(T, indexes)].

%% An index has what the rows say.
looked_up(T, Rows, {Name, On, Options} = Index) ->
    Value = case values(On, Options, any([{none} | Rows])) of
                [] -> value();
                Values -> any(Values)
            end,
    Expected = [Row || Row <- Rows, Own <- values(On, Options, Row), Own == Value],
    equal({lookup, Index, Value}, sorted(Expected), sorted(larder:index_lookup(T, Name, Value))),
    All = larder:index_select(T, Name, [{'_', [], ['$_']}]),
    Entries = [{Own, Row} || Row <- Rows, Own <- values(On, Options, Row)],
    equal({entries, Index}, sorted([Row || {_, Row} <- Entries]), sorted(All)),
    %% In the order of the values.
    Alone = [Row || Row <- All, [_] <- [values(On, Options, Row)]],
    true = is_sorted([hd(values(On, Options, Row)) || Row <- Alone]),
    equal({index_pages, Index}, All,
          pages(fun larder:index_select/1,
                larder:index_select(T, Name, [{'_', [], ['$_']}], rand:uniform(5)))),
    Spec = spec(),
    Run = larder:match_spec_compile(Spec),
    equal({index_select, Index, Spec},
          sorted([Result || {_, Row} <- Entries, Result <- larder:match_spec_run([Row], Run)]),
          sorted(larder:index_select(T, Name, Spec))).

is_sorted([X, Y | Rest]) -> X =< Y andalso is_sorted([Y | Rest]);
is_sorted(_) -> true.

%% The values of a row, each once.
values(On, Options, Row) ->
    Found = case On of
                Position when is_integer(Position), Position =< tuple_size(Row) ->
                    [element(Position, Row)];
                Position when is_integer(Position) ->
                    [];
                Expression ->
                    larder:match_spec_run([Row], larder:match_spec_compile(
                        [{'_', [{'=:=', Expression, Expression}], [Expression]}]))
            end,
    case lists:member(each, Options) of
        false -> Found;
        true -> distinct(lists:append([List || List <- Found, is_list(List)]))
    end.

%% 1 and 1.0 are one.
distinct([]) -> [];
distinct([First | Rest]) -> [First | distinct([Other || Other <- Rest, Other /= First])].

%% One row too few or too many.
a_wrong_answer_is_noticed_test_() ->
    one("an index that misses a row is noticed", fun() ->
        _ = rand:seed(exsss, {2026, 11, 25}),
        Rows = [{N, a, b, [c]} || N <- lists:seq(1, 9)],
        T = larder:new(t, [{index, ?INDEXES}]),
        true = larder:insert(T, Rows),
        ok = same(T, T, Rows),
        [begin
             {differ, _, _, _} = try same(T, T, Wrong) catch error:Why -> Why end
         end || Wrong <- [tl(Rows), [{0, a, b, []} | Rows], [{1, a, c, [c]} | tl(Rows)]]],
        larder:delete(T)
    end).

%% Snapshots and transactions ---------------------------------------------------------------------

views_test_() ->
    each_type("snapshots and transactions see their moment by an index", fun(Type) ->
        T = larder:new(t, [Type, public, {index, ?INDEXES}]),
        Plain = larder:new(plain, [Type, public]),
        [begin
             [changed(change(), T, Plain) || _ <- lists:seq(1, 30)],
             {S, Before} = {larder:snapshot(T), larder:snapshot(Plain)},
             [changed(change(), T, Plain) || _ <- lists:seq(1, 30)],
             same(S, Before, larder:tab2list(Before)),
             Changes = [change() || _ <- lists:seq(1, 10)],
             Fun = fun([View, Other]) ->
                 [begin
                      changed(Change, View, Other),
                      same(View, Other, larder:tab2list(Other))
                  end || Change <- Changes],
                 Round rem 3 =:= 0 andalso larder:abort(on_purpose)
             end,
             Ended = larder:transaction([T, Plain], Fun),
             equal(ended, case Round rem 3 of 0 -> {aborted, on_purpose}; _ -> {atomic, false} end,
                   Ended),
             same(T, Plain, larder:tab2list(Plain)),
             same(S, Before, larder:tab2list(Before)),
             true = larder:release(S),
             true = larder:release(Before)
         end || Round <- lists:seq(1, larder_test:scaled(6))],
        larder:delete(T),
        larder:delete(Plain)
    end).

%% Beside writers ---------------------------------------------------------------------------------

added_beside_writers_test_() ->
    each_type("an index that is added while others write misses nothing", fun(Type) ->
        T = larder:new(t, [Type, public]),
        N = 20000,
        true = larder:insert(T, [{K, K rem 100, still} || K <- lists:seq(1, N)]),
        Writers = [spawn_monitor(fun() -> write(T, W, N) end) || W <- [0, 1]],
        [begin
             true = larder:add_index(T, {v, 2, []}),
             [begin
                  Found = larder:index_lookup(T, v, V),
                  Keys = lists:sort([K || {K, _, still} <- Found, K > N div 2]),
                  equal({still, V}, [K || K <- lists:seq(N div 2 + 1, N), K rem 100 =:= V], Keys)
              end || V <- lists:seq(0, 99, 7)],
             true = larder:drop_index(T, v)
         end || _ <- lists:seq(1, larder_test:scaled(4))],
        true = larder:add_index(T, {v, 2, []}),
        [exit(Pid, stop) || {Pid, _} <- Writers],
        %% Until now none had ended by itself.
        [receive {'DOWN', Ref, _, _, Why} -> equal(writer, stop, Why) end || {_, Ref} <- Writers],
        Rows = larder:tab2list(T),
        [looked_up(T, Rows, Index) || Index <- indexes(T), _ <- lists:seq(1, 5)],
        larder:delete(T)
    end).

%% Each writer has keys of its own, in the first half.
write(T, W, N) ->
    K = 2 * rand:uniform(N div 4) - W,
    case rand:uniform(4) of
        1 -> larder:delete(T, K);
        _ -> larder:insert(T, {K, rand:uniform(100) - 1, moved})
    end,
    write(T, W, N).

unique_test_() ->
    each_type("no two objects have a value of a unique index", fun(Type) ->
        T = larder:new(t, [Type, public, {index, [{mail, 2, [unique]}]}]),
        true = larder:insert(T, {1, ann}),
        Refused = fun(Function, Args) ->
            {badarg, [{larder, Function, _, _} | _] = Stack} =
                try apply(larder, Function, Args) catch error:Why:At -> {Why, At} end,
            #{general := Text} = larder:format_error(badarg, Stack),
            {match, _} = re:run(Text, "unique index mail")
        end,
        Refused(insert, [T, {2, ann}]),
        Refused(insert, [T, [{2, bob}, {3, ann}]]),
        false = larder:insert_new(T, {2, ann}),
        false = larder:insert_new(T, [{2, bob}, {3, ann}]),
        [{1, ann}] = larder:tab2list(T),
        true = larder:insert(T, {2, bob}),
        Type =:= set andalso Refused(update_element, [T, 2, {2, ann}]),
        {aborted, {not_unique, mail}} =
            larder:transaction([T], fun([View]) -> larder:insert(View, [{3, eve}, {4, bob}]) end),
        Refused(commit, [[{insert, T, {3, eve}}, {insert, T, {4, bob}}]]),
        %% A transaction may pass a value on.
        {atomic, true} = larder:transaction([T], fun([View]) ->
            true = larder:delete(View, 1),
            larder:insert(View, {5, ann})
        end),
        [{5, ann}] = larder:index_lookup(T, mail, ann),
        [{2, bob}, {5, ann}] = lists:sort(larder:tab2list(T)),
        true = larder:insert(T, {6, eve}),
        Twice = larder:new(t, [Type]),
        true = larder:insert(Twice, [{1, x}, {2, x}]),
        Refused(add_index, [Twice, {mail, 2, [unique]}]),
        [] = larder:info(Twice, indexes),
        larder:delete(Twice),
        larder:delete(T)
    end).

%% Writers take and give up a few values: each has one holder, in the table and in its snapshots.
unique_beside_writers_test_() ->
    each_type("a value has one holder beside writers", fun(Type) ->
        T = larder:new(t, [Type, public, {index, [{v, 2, [unique]}]}]),
        Writers = [spawn_monitor(fun() -> exit(claim(T, W, larder_test:scaled(3000), 0)) end)
                   || W <- [1, 2, 3]],
        [begin
             S = larder:snapshot(T),
             Values = [V || {_, V} <- larder:tab2list(S)],
             equal(distinct, lists:usort(Values), lists:sort(Values)),
             true = larder:release(S)
         end || _ <- lists:seq(1, 50)],
        Won = [receive {'DOWN', Ref, _, _, Done} -> Done end || {_, Ref} <- Writers],
        true = lists:all(fun(Done) -> is_integer(Done) andalso Done > 0 end, Won),
        Rows = larder:tab2list(T),
        [equal(holder, [Row], larder:index_lookup(T, v, V)) || {_, V} = Row <- Rows],
        [#{size := Size}] = larder:info(T, indexes),
        equal(size, length(Rows), Size),
        larder:delete(T)
    end).

claim(_, _, 0, Won) -> Won;
claim(T, W, N, Won) ->
    {Key, Value} = {{W, rand:uniform(3)}, rand:uniform(5)},
    Done = case rand:uniform(4) of
               1 -> larder:delete(T, Key);
               2 -> larder:insert_new(T, {Key, Value});
               3 -> try larder:insert(T, {Key, Value}) catch error:badarg -> false end;
               4 ->
                   Ended = larder:transaction([T], fun([View]) ->
                       larder:delete(View, Key),
                       larder:insert(View, {Key, Value})
                   end),
                   case Ended of
                       {atomic, true} -> true;
                       {aborted, {not_unique, v}} -> false
                   end
           end,
    claim(T, W, N - 1, case Done of true -> Won + 1; false -> Won end).

%% Plans ------------------------------------------------------------------------------------------

plans_test_() ->
    one("explain says by what a specification is answered", fun() ->
        T = larder:new(t, [{index, [{v, 2, []}, {w, 3, []}]}]),
        true = larder:insert(T, [{K, K rem 1000, K rem 10} || K <- lists:seq(1, 10000)]),
        Plan = fun(Spec) -> larder:explain(T, Spec) end,
        #{plan := {index, v}, rows := 10, indexes := #{v := 10}} =
            Plan([{{'_', 7, '_'}, [], ['$_']}]),
        #{plan := {index, v}, indexes := #{v := 10, w := 1000}} =
            Plan([{{'_', 7, 7}, [], ['$_']}]),
        #{plan := {index, w}, rows := 1000} = Plan([{{'_', '_', 3}, [], ['$_']}]),
        #{plan := {index, v}, rows := 50} =
            Plan([{{'_', '$1', '_'}, [{'>=', '$1', 10}, {'<', '$1', 15}], ['$_']}]),
        true = larder:add_index(T, {sum, {'+', {element, 2, '$_'}, {element, 3, '$_'}}, []}),
        #{plan := {index, sum}, rows := 10} =
            Plan([{{'_', '$1', '$2'}, [{'==', {'+', '$1', '$2'}, 2}], ['$_']}]),
        #{plan := scan} = Plan([{{'_', '$1', '$2'}, [{'==', {'+', '$2', '$1'}, 2}], ['$_']}]),
        10 = larder:select_count(T, [{{'_', '$1', '$2'}, [{'==', {'+', '$1', '$2'}, 2}], [true]}]),
        true = larder:drop_index(T, sum),
        Either = {'orelse', {'=:=', '$1', 7}, {'=:=', '$1', 9}},
        #{plan := {index, v}, rows := 20} = Plan([{{'_', '$1', '_'}, [Either], ['$_']}]),
        20 = length(larder:select(T, [{{'_', '$1', '_'}, [Either], ['$_']}])),
        #{plan := key, rows := 2} = Plan([{{'$1', '_', '_'}, [Either], ['$_']}]),
        #{plan := key, rows := 1} = Plan([{{5, 5, '_'}, [], ['$_']}]),
        #{plan := scan, rows := 10000} = Plan([{{'_', '_', '$1'}, [{'>', '$1', 1}], ['$_']}]),
        #{plan := scan} = Plan([{'_', [], ['$_']}]),
        #{plan := nothing, rows := 0} = Plan([]),
        10 = length(larder:select(T, [{{'_', 7, '_'}, [], ['$_']}])),
        [#{name := v, on := 2, options := [], ready := true, size := 10000, bytes := Bytes},
         #{name := w}] = larder:info(T, indexes),
        true = Bytes > 10000,
        O = larder:new(o, [ordered_set]),
        #{plan := range} = larder:explain(O, [{{'$1', '_'}, [{'<', '$1', 5}], ['$_']}]),
        larder:delete(O),
        larder:delete(T)
    end).

%% More than fits in a slice.
many_test_() ->
    one("answers of many slices", fun() ->
        T = larder:new(t, [ordered_set, {index, [{v, 2, []}]}]),
        N = 60000,
        true = larder:insert(T, [{K, -K div 3} || K <- lists:seq(1, N)]),
        All = larder:index_select(T, v, [{'_', [], ['$_']}]),
        equal(order, lists:sort(fun({K, V}, {L, W}) -> {V, K} =< {W, L} end, larder:tab2list(T)), All),
        equal(pages, All, pages(fun larder:index_select/1,
                                larder:index_select(T, v, [{'_', [], ['$_']}], 7777))),
        true = larder:insert(T, [{K, same} || K <- lists:seq(1, N, 2)]),
        N2 = N div 2,
        N2 = length(larder:index_lookup(T, v, same)),
        N2 = larder:select_delete(T, [{{'_', same}, [], [true]}]),
        [#{size := N2}] = larder:info(T, indexes),
        [] = larder:index_lookup(T, v, same),
        larder:delete(T)
    end).

%% What is wrong is described ----------------------------------------------------------------------

%% A position that no object has, of any size, is one: the index is empty.
far_positions_test_() ->
    each_type("an index of a position that no object has", fun(Type) ->
        [begin
             T = larder:new(t, [Type, {index, [{v, Far, [unique]}]}]),
             true = larder:insert(T, [{1, a}, {2, b}]),
             true = larder:add_index(T, {w, Far, []}),
             [0, 0] = [Size || #{size := Size} <- larder:info(T, indexes)],
             [[] = larder:index_select(T, Name, [{'_', [], ['$_']}]) || Name <- [v, w]],
             [[] = larder:index_lookup(T, Name, Far) || Name <- [v, w]],
             larder:delete(T)
         end || Far <- [3, 1 bsl 58, 1 bsl 59, 1 bsl 60, 1 bsl 63, 1 bsl 70]]
    end).

words_test_() ->
    one("errors are described", fun() ->
        T = larder:new(t, [{index, [{v, 2, []}]}]),
        S = larder:snapshot(T),
        B = larder:new(b, [{structure, judyesl}]),
        Spec = [{'_', [], ['$_']}],
        larder_test:is_said([
             {new, [x, [{index, [{v, 0, []}]}]], "index v: positions count from 1"},
             {new, [x, [{index, [{v, {nonsense, '$_'}, []}]}]], "index v: no function nonsense"},
             {new, [x, [{index, [{v, {self}, []}]}]], "index v: .*the row alone"},
             {new, [x, [{index, [{v, 2, []}, {v, 3, []}]}]], "two indexes are called v"},
             {new, [x, [{index, [{v, 2, [sparse]}]}]], "index v: sparse is none of the options"},
             {new, [x, [{index, [{"v", 2, []}]}]], "is not an index"},
             {new, [x, [{structure, judyesl}, {index, [{v, 2, []}]}]], "have no indexes"},
             {add_index, [T, {v, 3, []}], "the table has an index v already"},
             {add_index, [T, {w, 0, []}], "index w: positions count from 1"},
             {add_index, [T, {w, 2, [sparse]}], "index w: sparse is none of the options"},
             {add_index, [T, {w, -(1 bsl 60), []}], "index w: positions count from 1"},
             {add_index, [T, w], "w is not an index"},
             {add_index, [T, {w, 2, [each | unique]}], "index w: .* not a proper list"},
             {new, [x, [{index, [{v, 2, [each | x]}]}]], "index v: .* not a proper list"},
             {new, [x, [{index, [{v, 2, []} | x]}]], "index takes a list"},
             {setopts, [T, [{index, [{v, 2, [each | x]}]}]], "index v: .* not a proper list"},
             {add_index, [S, {w, 2, []}], "a snapshot"},
             {add_index, [B, {w, 2, []}], "can have no indexes"},
             {add_index, [no_table, {w, 2, []}], "the table identifier"},
             {drop_index, [T, w], "no index w"},
             {drop_index, [T, 7], "not an atom"},
             {index_lookup, [T, w, 1], "no index w"},
             {index_lookup, [T, 7, 1], "not an atom"},
             {index_lookup, [no_table, v, 1], "the table identifier"},
             {index_select, [T, w, Spec], "no index w"},
             {index_select, [T, v, nonsense], "match programs are not in a list"},
             {index_select, [T, v, Spec, 0], "not a positive integer"},
             {index_select, [T, v, Spec, 1 bsl 70], "out of range"},
             {index_select, [nonsense], "not a continuation"},
             {explain, [T, nonsense], "match spec"}]),
        Unique = larder:new(u, [{ttl, infinity}, {index, [{v, 2, [unique]}]}]),
        true = larder:insert(Unique, [{1, #{}}, {2, #{a => 1}}, {3, 1}, {4, 2}]),
        larder_test:is_said(
            [{Function, [Unique | Args], "^.{general,.*the unique index v"} || {Function, Args} <- [
                {insert, [{5, #{}}]}, {insert, [[{5, #{}}]]}, {insert, [{5, #{}}, #{ttl => 5}]},
                {update_element, [1, {2, 1}]}, {update_element, [5, {2, 1}, {5, x}]},
                {update_counter, [3, 1]}, {update_counter, [5, 1, {5, 1}]},
                {update_map, [1, 2, a, 1]}, {update_map, [1, [{2, a, 1}]]},
                {remove_map_key, [2, 2, a]},
                {select_replace, [[{{1, '_'}, [], [{{1, 1}}]}]]}]]),
        true = larder:delete(Unique),
        true = larder:insert(T, [{1, a}, {2, a}]),
        {[_], Rest} = larder:index_select(T, v, Spec, 1),
        true = larder:drop_index(T, v),
        #{1 := Gone} = try larder:index_select(Rest) catch error:badarg:At -> larder:format_error(badarg, At) end,
        "a continuation of the index v, which the table no longer has" = lists:flatten(Gone),
        true = larder:release(S),
        larder:delete(B),
        larder:delete(T)
    end).

%% A page of an ordered_set goes on after the last key of the one before, as in ets: it has what
%% was inserted there in between, also if there was nothing more then.
pages_go_on_after_their_last_key_test_() ->
    one("pages by an index go on after their last key", fun() ->
        Spec = [{{'$1', '$2'}, [{'<', '$2', 5}], ['$1']}],
        Rows = [{K, 5} || K <- lists:seq(1, 300)] ++ [{K, 1} || K <- [10, 20, 30]],
        Ask = fun(Module, T) ->
            {[10], Forward} = Module:select(T, Spec, 1),
            {[30], Backward} = Module:select_reverse(T, Spec, 1),
            {[10, 20, 30], AtEnd} = Module:select(T, Spec, 3),
            {[30, 20, 10], AtBegin} = Module:select_reverse(T, Spec, 3),
            true = Module:insert(T, [{K, 1} || K <- [5, 15, 25, 35]]),
            [Module:select(Forward), Module:select_reverse(Backward), Module:select(AtEnd),
             Module:select_reverse(AtBegin)]
        end,
        Results = fun(Answers) -> [Found || {Found, _} <- Answers] end,
        Ets = ets:new(t, [ordered_set]),
        true = ets:insert(Ets, Rows),
        [[15], [25], [35], [5]] = Expected = Results(Ask(ets, Ets)),
        T = larder:new(t, [ordered_set, {index, [{v, 2, []}]}]),
        true = larder:insert(T, Rows),
        #{plan := {index, v}} = larder:explain(T, Spec),
        {aborted, Expected} = larder:transaction([T], fun([View]) ->
            larder:abort(Results(Ask(larder, View)))
        end),
        Expected = Results(Ask(larder, T)),
        larder:delete(T)
    end).
