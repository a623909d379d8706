%% update_map, remove_map_key and counters in maps: what is in the table is what maps:put,
%% maps:remove and an addition make of a row of ets, of whatever size the map is; and what is
%% refused changes nothing.
-module(maps_tests).

-export([beside_ets_test_/0, forms_test_/0, counters_test_/0, counters_beside_an_oracle_test_/0,
         kept_keys_test_/0, many_test_/0, concurrent_test_/0, views_test_/0,
         watchers_test_/0, refused_test_/0, words_test_/0,
         unknown_atoms_test_/0, maps_as_keys_test_/0,
         maps_in_heads_are_what_they_are_in_ets_test_/0, loaded/1]).

one(Title, Fun) ->
    [larder_test:tc(Title, 240, larder, Fun)].

seeded(Title, Fun) ->
    one(Title, fun() ->
        _ = rand:seed(exsss, {2026, 11, erlang:phash2(Title)}),
        Fun()
    end).

any(List) -> lists:nth(rand:uniform(length(List)), List).

%% Keys and values of every kind.
terms() ->
    [0, 1, -1, 1 bsl 70, 0.5, 1.0, a, 'a b', <<>>, <<"key">>, binary:copy(<<"long">>, 100), <<1:3>>,
     [], [a, b | c], "text", {}, {a, 1}, #{}, #{a => 1}, maps:from_list([{N, N} || N <- lists:seq(1, 40)]),
     self(), make_ref(), fun lists:append/1, fun() -> ok end, {user, <<"x">>}].

key(Size) ->
    case rand:uniform(3) of
        1 -> any(terms());
        2 -> rand:uniform(Size);
        3 -> {k, rand:uniform(Size)}
    end.

map(Size) ->
    maps:from_list([{key(2 * Size), any(terms())} || _ <- lists:seq(1, Size)]).

%% Beside ets -------------------------------------------------------------------------------------

beside_ets_test_() ->
    [seeded(lists:flatten(io_lib:format("maps change as rows of ets do, ~0p", [Options])),
            fun() -> beside_ets(Options) end)
     || Options <- [[set], [ordered_set], [set, compressed], [ordered_set, {keypos, 2}],
                    [set, {ttl, infinity}], [set, {index, [{m, 1, []}]}]]].

beside_ets(Options) ->
    T = larder:new(t, [public | Options]),
    KeyPos = larder:info(T, keypos),
    E = ets:new(e, [hd(Options), public, {keypos, KeyPos}]),
    Position = 3 - KeyPos,
    [begin
         %% {Key, Map, Map} or {Map, Key, Map}.
         Row = setelement(KeyPos, {map(Size), map(Size), map(Size div 2)}, Key),
         true = larder:insert(T, Row),
         true = ets:insert(E, Row),
         [step(T, E, KeyPos, Key, any([Position, 3]), Size) || _ <- lists:seq(1, Times)],
         true = larder:tab2list(T) =:= larder:select(T, [{'_', [], ['$_']}])
     end || {Key, Size, Times} <- [{a, 1, 100}, {b, 5, 200}, {<<"c">>, 31, 200}, {d, 33, 200},
                                   {[e], 100, 60}, {f, 1000, 20}]],
    true = lists:sort(larder:tab2list(T)) =:= lists:sort(ets:tab2list(E)),
    false = larder:update_map(T, none, Position, a, 1),
    false = larder:update_map(T, none, []),
    false = larder:remove_map_key(T, none, Position, a),
    true = larder:update_map(T, a, []),
    true = larder:delete(T),
    true = ets:delete(E).

%% Many changes of one map take the time of a few copies. One after the other, each would look for
%% its key from the first pair on, and these would take half a minute.
many_test_() ->
    one("many changes of a map", fun() ->
        N = 50000,
        T = larder:new(t, [public]),
        Keys = lists:seq(1, N),
        true = larder:insert(T, {a, maps:from_keys(Keys, 0)}),
        Quickly = fun(Fun) ->
            {Time, Result} = timer:tc(Fun),
            true = Time < 2000000,
            Result
        end,
        true = Quickly(fun() -> larder:update_map(T, a, [{2, K, K} || K <- Keys]) end),
        [{a, Map}] = larder:lookup(T, a),
        true = Map =:= maps:from_list([{K, K} || K <- Keys]),
        Ops = [{{2, K}, 1} || K <- Keys ++ lists:reverse(Keys)],
        Sums = Quickly(fun() -> larder:update_counter(T, a, Ops) end),
        true = Sums =:= [K + 1 || K <- Keys] ++ [K + 2 || K <- lists:reverse(Keys)],
        New = [{{2, {new, K}, 0}, K} || K <- Keys],
        Keys = Quickly(fun() -> larder:update_counter(T, a, New) end),
        true = Quickly(fun() -> larder:update_map(T, a, [{2, K} || K <- Keys]) end),
        [{a, Rest}] = larder:lookup(T, a),
        true = Rest =:= maps:from_list([{{new, K}, K} || K <- Keys]),
        true = larder:delete(T)
    end).

step(T, E, KeyPos, Key, Position, Size) ->
    [Row] = ets:lookup(E, Key),
    Map = element(Position, Row),
    K = case rand:uniform(2) of
            1 when map_size(Map) > 0 -> any(maps:keys(Map));
            _ -> key(2 * Size)
        end,
    V = any(terms()),
    New = case rand:uniform(4) of
              1 ->
                  true = larder:remove_map_key(T, Key, Position, K),
                  setelement(Position, Row, maps:remove(K, Map));
              2 ->
                  true = larder:update_map(T, Key, Position, K, V),
                  setelement(Position, Row, maps:put(K, V, Map));
              _ ->
                  Positions = [1, 2, 3] -- [KeyPos],
                  Changes = [case rand:uniform(3) of
                                 1 -> {any(Positions), key(2 * Size)};
                                 _ -> {any(Positions), key(2 * Size), any(terms())}
                             end || _ <- lists:seq(1, rand:uniform(6))],
                  true = larder:update_map(T, Key, Changes),
                  lists:foldl(fun change/2, Row, Changes)
          end,
    true = ets:insert(E, New),
    [Found] = larder:lookup(T, Key),
    Found =:= New orelse error({differs, K, V, Row, New, Found}),
    %% Not only equal: a whole map, for all that looks at it.
    [true = maps:get(MapKey, element(Position, Found)) =:= maps:get(MapKey, element(Position, New))
     || MapKey <- maps:keys(element(Position, New))],
    true = term_to_binary(Found) =:= term_to_binary(binary_to_term(term_to_binary(Found))),
    true = erlang:phash2(Found) =:= erlang:phash2(New).

change({Position, K, V}, Row) -> setelement(Position, Row, maps:put(K, V, element(Position, Row)));
change({Position, K}, Row) -> setelement(Position, Row, maps:remove(K, element(Position, Row))).

%% What is stored takes the bytes that it takes when it is inserted, also where a map becomes
%% large or small.
forms_test_() ->
    seeded("a map that was changed is stored as one that was inserted", fun() ->
        [begin
             T = larder:new(t, [{max_size, infinity}]),
             Fresh = larder:new(t, [{max_size, infinity}]),
             true = larder:insert(T, {k, #{}}),
             Map = lists:foldl(
                     fun(N, Map) ->
                             Key = Make(N),
                             true = larder:update_map(T, k, 2, Key, N),
                             New = Map#{Key => N},
                             same_stored(T, Fresh, New),
                             New
                     end, #{}, lists:seq(1, 70)),
             lists:foldl(
               fun(N, Left) ->
                       true = larder:remove_map_key(T, k, 2, Make(N)),
                       Less = maps:remove(Make(N), Left),
                       same_stored(T, Fresh, Less),
                       Less
               end, Map, lists:seq(1, 70)),
             true = larder:delete(T),
             true = larder:delete(Fresh)
         end || Make <- [fun(N) -> N end, fun(N) -> {x, N} end, fun(N) -> float(N) end,
                         fun(N) -> integer_to_binary(N) end,
                         fun(N) -> list_to_atom("k" ++ integer_to_list(N)) end]]
    end).

same_stored(T, Fresh, Map) ->
    true = larder:insert(Fresh, {k, Map}),
    [{k, Map}] = larder:lookup(T, k),
    %% The sum of the objects' bytes.
    [Weight, Weight] = [maps:get(weight, larder:info(X, stats)) || X <- [T, Fresh]].

%% Counters ---------------------------------------------------------------------------------------

counters_test_() ->
    one("counters in maps count as elements do", fun() ->
        [begin
             T = larder:new(t, [Type]),
             true = larder:insert(T, {k, #{n => 1, m => 5}, 10}),
             3 = larder:update_counter(T, k, {{2, n}, 2}),
             [4, 4, 11, 5] = larder:update_counter(T, k, [{{2, n}, 1}, {{2, m}, -1}, {3, 1}, {{2, n}, 1}]),
             0 = larder:update_counter(T, k, {{2, n}, 1, 5, 0}),
             [1, 0] = larder:update_counter(T, k, [{{2, n}, 1, 1, 0}, {{2, n}, 1, 1, 0}]),
             9 = larder:update_counter(T, k, {{2, m}, -10, 0, 9}),
             7 = larder:update_counter(T, k, {{2, new, 5}, 2}),
             8 = larder:update_counter(T, k, {{2, new, 5}, 1}),
             [1, 2] = larder:update_counter(T, k, [{{2, {x, y}, 0}, 1}, {{2, {x, y}}, 1}]),
             Large = 1 bsl 100,
             Large = larder:update_counter(T, k, {{2, large, 0}, Large}),
             [{k, #{n := 0, m := 9, new := 8, {x, y} := 2, large := Large} = Map, 11}] =
                 larder:lookup(T, k),
             5 = map_size(Map),
             2 = larder:update_counter(T, new, {{2, n}, 1}, {key, #{n => 1}}),
             3 = larder:update_counter(T, new, {{2, n}, 1}, {key, #{n => 1}}),
             1 = larder:update_counter(T, newer, {{2, n, 0}, 1}, {key, #{}}),
             [{new, #{n := 3}}] = larder:lookup(T, new),
             true = larder:delete(T)
         end || Type <- [set, ordered_set]]
    end).

counters_beside_an_oracle_test_() ->
    seeded("counters in maps of all sizes are those of an oracle", fun() ->
        T = larder:new(t, [public]),
        [begin
             Start = maps:from_list([{{c, N}, N} || N <- lists:seq(1, Size)]),
             true = larder:insert(T, {k, Start, x}),
             lists:foldl(fun(_, Map) ->
                 Ops = [begin
                            Key = {c, rand:uniform(Size + 3)},
                            {{2, Key, any([0, 100])}, rand:uniform(1 bsl 62) - (1 bsl 61)}
                        end || _ <- lists:seq(1, rand:uniform(4))],
                 {Sums, New} = lists:mapfoldl(fun({{2, Key, Initial}, Incr}, Acc) ->
                                                  Sum = maps:get(Key, Acc, Initial) + Incr,
                                                  {Sum, Acc#{Key => Sum}}
                                              end, Map, Ops),
                 Sums = larder:update_counter(T, k, Ops),
                 [{k, New, x}] = larder:lookup(T, k),
                 New
             end, Start, lists:seq(1, 40))
         end || Size <- [1, 4, 31, 32, 33, 200]],
        true = larder:delete(T)
    end).

%% A new key of a map keeps alive what it refers to, though the call was the only one that had it.
kept_keys_test_() ->
    [one(lists:flatten(io_lib:format("new keys are kept, ~0p, ~p", [Options, Where])),
         fun() -> [kept_key(larder:new(t, [public | Options]), Where) || _ <- lists:seq(1, 30)] end)
     || Options <- [[set], [ordered_set], [set, compressed]],
        Where <- [alone, in_tuple, in_map, in_binary, in_view, in_commit]].

kept_key(T, Where) ->
    true = larder:insert(T, {k, #{}, z}),
    {Pid, Monitor} = spawn_monitor(fun() -> count_new_key(T, Where) end),
    receive {'DOWN', Monitor, process, Pid, Why} -> normal = Why end,
    true = erlang:garbage_collect(),
    %% What was freed would be used again.
    _ = [{atomics:new(1, []), binary:copy(<<N>>, 10000)} || N <- lists:seq(1, 50)],
    [{k, Map, z}] = larder:lookup(T, k),
    [{Key, 6}] = maps:to_list(Map),
    ok = used(Key),
    true = larder:delete(T).

count_new_key(T, in_view) ->
    {atomic, 6} = larder:transaction([T], fun([View]) -> count_new_key(View, alone) end);
count_new_key(T, in_commit) ->
    true = larder:commit([{update_counter, T, k, {{2, new_key(alone), 1}, 5}}]);
count_new_key(T, Where) ->
    6 = larder:update_counter(T, k, {{2, new_key(Where), 1}, 5}).

new_key(alone) -> atomics:new(1, []);
new_key(in_tuple) -> {key, [new_key(alone)]};
new_key(in_map) -> #{key => new_key(alone)};
new_key(in_binary) -> binary:part(binary:copy(<<7>>, 10000), 100, 200).

used({key, [Key]}) -> used(Key);
used(#{key := Key}) -> used(Key);
used(Key) when is_binary(Key) -> true = Key =:= binary:copy(<<7>>, 200), ok;
used(Key) -> 1 = atomics:add_get(Key, 1, 1), ok.

%% Many processes lose nothing, in a map that becomes large meanwhile.
concurrent_test_() ->
    one("no change of a map is lost", fun() ->
        T = larder:new(t, [public]),
        true = larder:insert(T, {k, #{}}),
        Work = fun(P) ->
            [begin
                 _ = larder:update_counter(T, k, {{2, all, 0}, 1}),
                 true = larder:update_map(T, k, 2, {P, N}, N),
                 N > 20 andalso larder:remove_map_key(T, k, 2, {P, N - 20})
             end || N <- lists:seq(1, 300)]
        end,
        Workers = [spawn_monitor(fun() -> Work(P) end) || P <- lists:seq(1, 4)],
        [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Workers],
        Expected = maps:from_list([{all, 1200} | [{{P, N}, N} || P <- lists:seq(1, 4),
                                                                 N <- lists:seq(281, 300)]]),
        [{k, Expected}] = larder:lookup(T, k),
        true = larder:delete(T)
    end).

%% Snapshots and transactions.
views_test_() ->
    one("snapshots keep maps, transactions change them", fun() ->
        T = larder:new(t, [public]),
        Large = maps:from_list([{N, N} || N <- lists:seq(1, 100)]),
        true = larder:insert(T, [{a, #{n => 1}}, {b, Large}]),
        S = larder:snapshot(T),
        true = larder:update_map(T, a, 2, n, 2),
        true = larder:update_map(T, b, 2, new, 2),
        [{a, #{n := 1}}] = larder:lookup(S, a),
        [{b, Large}] = larder:lookup(S, b),
        {'EXIT', {badarg, _}} = (catch larder:update_map(S, a, 2, n, 2)),
        {aborted, no} = larder:transaction([T], fun([V]) ->
            true = larder:update_map(V, b, 2, other, 3),
            true = larder:remove_map_key(V, b, 2, new),
            true = larder:lookup(V, b) =:= [{b, Large#{other => 3}}],
            larder:abort(no)
        end),
        {atomic, 3} = larder:transaction([T], fun([V]) -> larder:update_counter(V, a, {{2, n}, 1}) end),
        [{a, #{n := 3}}] = larder:lookup(T, a),
        true = larder:lookup(T, b) =:= [{b, Large#{new => 2}}],
        true = larder:release(S),
        true = larder:delete(T)
    end).

%% Feeds and indexes.
watchers_test_() ->
    one("feeds and indexes see a change of a map", fun() ->
        T = larder:new(t, [public, {index, [{zip, {map_get, zip, {element, 2, '$_'}}, [unique]}]}]),
        true = larder:insert(T, [{a, #{zip => 1}}, {b, #{zip => 2}}]),
        Ref = larder:subscribe(T, all, #{}),
        true = larder:update_map(T, a, 2, zip, 3),
        receive {larder, Ref, _, {replace, {a, #{zip := 1}}, {a, #{zip := 3}}}} -> ok
        after 5000 -> error(not_told)
        end,
        [{a, _}] = larder:index_lookup(T, zip, 3),
        [] = larder:index_lookup(T, zip, 1),
        {'EXIT', {badarg, _}} = (catch larder:update_map(T, a, 2, zip, 2)),
        [{a, #{zip := 3}}] = larder:lookup(T, a),
        true = larder:remove_map_key(T, a, 2, zip),
        [] = larder:index_lookup(T, zip, 3),
        true = larder:delete(T)
    end).

%% Atoms that are unknown --------------------------------------------------------------------------

%% From OTP 26 on the keys of a small map that are atoms are in the order of the atoms' numbers. So
%% are those that the library meets in a file, or in a large map that is a key.
unknown_atoms_test_() ->
    one("keys of maps that are new atoms", fun() ->
        File = larder_test:file("unmet"),
        T = larder:new(t, []),
        Small = unmet(5),
        true = larder:insert(T, [{k, Small}, {Small, v}]),
        ok = larder:tab2file(T, File),
        ok = larder_test:in_a_node(?MODULE, loaded, [File], 60000),
        ok = file:delete(File),
        Large = unmet(50),
        true = larder:insert(T, {Large, v}),
        true = larder:insert(T, [{K, v} || K <- maps:keys(Large)]),
        [{Large, v}] = larder:lookup(T, Large),
        true = larder:delete(T)
    end).

%% In a node that doesn't know these atoms.
loaded(File) ->
    Small = unmet(5),
    {ok, T} = larder:file2tab(File),
    [{k, Small}] = larder:lookup(T, k),
    [{Small, v}] = larder:lookup(T, Small),
    true = larder:delete(T),
    ok.

%% From OTP 26 on, maps within keys of maps are compared pair by pair, in the order in which their
%% own pairs lie, which is that of the numbers of atoms.
maps_as_keys_test_() ->
    one("maps as keys of maps", fun() ->
        File = larder_test:file("maps_as_keys"),
        [Z, A] = lists:reverse(lists:sort(maps:keys(unmet(2)))),
        Keys = [#{Z => 1, A => 2}, #{Z => 2, A => 1}, {#{Z => 3, A => 4}}, [#{Z => 4, A => 3}],
                #{#{Z => 1, A => 2} => 1, #{Z => 2, A => 1} => 2},
                #{#{Z => 1, A => 2} => 2, #{Z => 2, A => 1} => 1},
                {#{Z => 4, A => 3}}, [#{Z => 3, A => 4}]],
        Map = maps:from_list([{Key, x} || Key <- Keys]),
        T = larder:new(t, []),
        true = larder:insert(T, [{Map, 1}, {k, Map}, {changed, #{}}]),
        [true = larder:update_map(T, changed, 2, Key, x) || Key <- lists:reverse(Keys)],
        [{changed, Map}] = larder:lookup(T, changed),
        ok = larder:tab2file(T, File),
        {ok, Loaded} = larder:file2tab(File),
        [{k, Map}] = larder:lookup(Loaded, k),
        [{Map, 1}] = larder:lookup(Loaded, Map),
        ok = file:delete(File),
        [true = larder:delete(Table) || Table <- [T, Loaded]]
    end).

%% A map whose keys are atoms: the later the text, the lesser the number.
unmet(Count) ->
    Keys = [list_to_atom(lists:concat(["unmet_", Count, [Letter]]))
            || Letter <- lists:seq($0 + Count, $0 + 1, -1)],
    maps:from_list([{Key, 1} || Key <- Keys]).

%% Refused ----------------------------------------------------------------------------------------

refused_test_() ->
    one("what is refused changes nothing", fun() ->
        Row = {k, #{n => 1, t => x}, 7},
        T = larder:new(t, []),
        true = larder:insert(T, Row),
        [begin
             {'EXIT', {badarg, _}} = (catch apply(larder, F, [T, k | Args])),
             [Row] = larder:lookup(T, k)
         end || {F, Args} <- [
             {update_map, [3, n, 1]}, {update_map, [1, n, 1]}, {update_map, [4, n, 1]},
             {update_map, [0, n, 1]}, {update_map, [x, n, 1]}, {update_map, [[{2, n, 2}, {3, n, 2}]]},
             {update_map, [[{2, n, 2}, {9, n}]]}, {update_map, [[{2, n, 2} | x]]},
             {update_map, [[{2, n, 2}, {2}]]}, {update_map, [x]}, {update_map, [[x]]},
             {remove_map_key, [3, n]}, {remove_map_key, [1, n]},
             {update_counter, [{{2, missing}, 1}]}, {update_counter, [{{2, t}, 1}]},
             {update_counter, [{{3, n}, 1}]}, {update_counter, [{{1, n}, 1}]},
             {update_counter, [{{2, n}, x}]}, {update_counter, [{{2, n, x}, 1}]},
             {update_counter, [{{2}, 1}]}, {update_counter, [{{}, 1}]},
             {update_counter, [{{2, n, 1, 1}, 1}]}, {update_counter, [[{{2, n}, 1}, {{2, t}, 1}]]},
             {update_counter, [[{{2, n}, 1}, {2, 1}]]}, {update_counter, [[{3, 1}, {{3, n}, 1}]]},
             {update_counter, [[{{2, n}, 1}, {{2, missing}, 1}]]}]],
        {'EXIT', {badarg, _}} = (catch larder:update_counter(T, none, {{2, n}, 1})),
        {'EXIT', {badarg, _}} = (catch larder:update_counter(T, none, {{2, n}, 1}, {x, #{}})),
        [Row] = larder:tab2list(T),
        true = larder:delete(T),
        [begin
             B = larder:new(b, [Type]),
             true = larder:insert(B, Row),
             {'EXIT', {badarg, _}} = (catch larder:update_map(B, k, 2, n, 2)),
             {'EXIT', {badarg, _}} = (catch larder:update_counter(B, k, {{2, n}, 2})),
             [Row] = larder:tab2list(B),
             true = larder:delete(B)
         end || Type <- [bag, duplicate_bag]]
    end).

words_test_() ->
    one("errors are described", fun() ->
        T = larder:new(t, []),
        true = larder:insert(T, {k, #{n => 1, a => b}, 7}),
        B = larder:new(b, [bag]),
        true = larder:insert(B, {k, #{n => 1}}),
        larder_test:is_said([
             {update_map, [T, k, 3, n, 1], "{3,.*not a map"},
             {update_map, [T, k, 1, n, 1], "{3,.*position of the key"},
             {update_map, [T, k, 9, n, 1], "{3,.*greater than"},
             {update_map, [T, k, x, n, 1], "{3,.*not a positive integer"},
             {update_map, [T, k, 0, n, 1], "{3,.*not a positive integer"},
             {remove_map_key, [T, k, -1, n], "{3,.*not a positive integer"},
             {update_map, [T, k, [{2, n, 1}, {0, n}]], "{3,.*not a list of {Position, MapKey"},
             {update_map, [T, k, [{2, a}, b]], "{3,.*not a list of {Position, MapKey, Value}"},
             {update_map, [B, k, 2, n, 1], "{1,.*bag"},
             {update_map, [gone, k, 2, n, 1], "{1,"},
             {remove_map_key, [T, k, 3, n], "{3,.*not a map"},
             {update_counter, [T, k, {{3, n}, 1}], "{3,.*not a map"},
             {update_counter, [T, k, {{2, m}, 1}], "{3,.*no such key"},
             {update_counter, [T, k, {{2, a}, 1}], "{3,.*not an integer"},
             {update_counter, [T, k, {{2, a, x}, 1}], "{3,.*not a valid update operation"},
             {update_counter, [T, k, [{{2, n}, 1}, {3, x}]], "{3,.*not a valid update operation"},
             %% Nothing is wrong with these operations.
             {update_counter, [T, absent, {{2, n}, 1}], "^.{2,[^{]*$"},
             {update_counter, [T, absent, [{{2, n, 0}, 1, 5, 0}]], "^.{2,[^{]*$"},
             {update_counter, [gone, k, {{2, n}, 1}], "^.{1,[^{]*$"},
             {update_counter, [T, absent, {{2, n}, 1}, no_object], "^.{4,[^{]*$"}]),
        true = larder:delete(B),
        true = larder:delete(T)
    end).

%% A map in a head matches all that have its pairs, whether the head has variables or not. Heads
%% that differ in their constants alone share code. (Maps in keys have a test of their own: ets of
%% OTP 25 finds other keys of the bucket, too.)
maps_in_heads_are_what_they_are_in_ets_test_() ->
    Large = fun(Size, Map) ->
                maps:merge(maps:from_list([{I, x} || I <- lists:seq(1, Size)]), Map)
            end,
    Maps = [#{}, #{a => 1}, #{a => 1.0}, #{a => 1, b => 2}, #{a => #{c => 1}},
            #{a => #{c => 1, d => 2}}, #{1 => x}, #{1.0 => x}, #{a => 0.0},
            #{{k, #{}} => 1}, #{{k, #{a => 1}} => 1}, #{a => <<0:2000>>},
            #{<<0:2000>> => make_ref()}, Large(32, #{}), Large(33, #{a => 1}),
            Large(40, #{a => #{c => 1}}), a, [], {a, 1}],
    Rows = [{K, {I, [M]}, M} || {I, K} <- lists:zip(lists:seq(1, length(Maps)), Maps), M <- Maps],
    Parts = Maps ++ [#{a => -0.0}, #{a => '_'}, #{a => 1, b => '_'}, #{a => #{c => '_'}},
                     #{a => 2, b => '_'}, #{a => #{d => 2, c => '_'}},
                     maps:put(a, '_', Large(33, #{}))],
    Heads = [Head || Part <- Parts,
                     Head <- [{'_', '_', Part}, {'_', {'_', [Part]}, '_'}, {'_', {3, [Part]}, '$1'}]],
    [{atom_to_list(Type), fun() ->
          Tabs = [Mod:new(t, [Type]) || Mod <- [ets, larder]],
          Both = fun(F) ->
                     [Same, Same] = [F(Mod, Tab) || {Mod, Tab} <- lists:zip([ets, larder], Tabs)]
                 end,
          Both(fun(Mod, Tab) -> Mod:insert(Tab, Rows) end),
          [Both(fun(Mod, Tab) -> by_bytes(Mod:match_object(Tab, Head)) end) || Head <- Heads],
          [Both(fun(Mod, Tab) ->
                    lists:sort(Mod:select(Tab, [{Head, [], [x]}, {Other, [], [y]}]))
                end) || {Head, Other} <- lists:zip(Heads, lists:reverse(Heads))],
          [Both(fun(Mod, Tab) -> Mod:match_delete(Tab, Head), Mod:info(Tab, size) end)
           || Head <- lists:reverse(Heads)]
      end} || Type <- [set, ordered_set, bag, duplicate_bag]].

%% In an order in which 1 and 1.0 aren't equal.
by_bytes(Terms) -> lists:sort([term_to_binary(Term) || Term <- Terms]).
