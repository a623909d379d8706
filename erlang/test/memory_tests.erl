%% memory/0,1 and top/2: the items are what tables say of themselves, and add up.
-module(memory_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(ITEMS, [allocator, indexes, snapshots, tables, total, waiting]).
-define(WORD, (erlang:system_info(wordsize))).

adds_up_test_() ->
    [?LEAK_FREE(begin
        Tab = larder:new(t, [Type, public]),
        Writer = spawn_link(fun() -> write(Tab, 0) end),
        [adds_up(larder:memory()) || _ <- lists:seq(1, 200)],
        unlink(Writer),
        exit(Writer, kill),
        larder:delete(Tab),
        adds_up(larder:memory())
     end) || Type <- [set, ordered_set, bag]].

write(Tab, N) ->
    true = larder:insert(Tab, {N rem 5000, N}),
    N rem 5000 =:= 0 andalso larder:delete_all_objects(Tab),
    write(Tab, N + 1).

adds_up(#{total := Total} = Memory) ->
    ?assertEqual(?ITEMS, lists:sort(maps:keys(Memory))),
    ?assertEqual(Total, lists:sum(maps:values(Memory)) - Total),
    ?assertEqual([], [Item || {Item, Bytes} <- maps:to_list(Memory), Bytes < 0]).

wrong(F, Args, Argument) ->
    try apply(larder, F, Args) of
        Result -> error({no_error, Result})
    catch
        error:badarg:Stack ->
            ?assertMatch([{larder, F, Args, _} | _], Stack),
            ?assertEqual([Argument], maps:keys(larder:format_error(badarg, Stack)))
    end.

%% Each item has what was made for it.
items_test_() ->
    larder_test:tc("items", 60, fun() ->
        Before = larder:memory(),
        Tab = filled(200000),
        Size = larder:info(Tab, memory) * ?WORD,
        With = larder:memory(),
        near(Size, grown(tables, Before, With)),
        %% What is kept for a snapshot is no longer the table's.
        Snapshot = larder:snapshot(Tab),
        true = larder:insert(Tab, [{N, new} || N <- lists:seq(1, 200000)]),
        Kept = larder:info(Tab, snapshot_memory),
        ?assert(Kept > 1000000),
        Changed = larder:memory(),
        near(Kept, grown(snapshots, With, Changed)),
        near(larder:info(Tab, memory) * ?WORD - Kept, grown(tables, Before, Changed)),
        %% What is dropped waits, and is gone at last.
        true = larder:release(Snapshot),
        true = larder:delete(Tab),
        Dropped = larder:memory(),
        ?assert(grown(tables, Before, Dropped) < Size div 4),
        ?assert(maps:get(waiting, Dropped) > Size div 4),
        true = larder_test:wait_until(fun() -> larder:memory(waiting) =< Size div 4 end),
        %% Free memory is kept, and goes back: never much more than was in use.
        ?assert(larder:memory(allocator) < 4 * Size + 64_000_000)
    end).

%% What an index takes is not the table's.
indexes_test_() ->
    larder_test:tc("indexes", 60, fun() ->
        Before = larder:memory(),
        Tab = filled(50000),
        Plain = larder:memory(),
        true = larder:add_index(Tab, {by_value, 2, []}),
        With = larder:memory(),
        [#{name := by_value, bytes := Bytes}] = larder:info(Tab, indexes),
        ?assert(Bytes > 500_000),
        near(Bytes, grown(indexes, Plain, With)),
        near(grown(tables, Before, Plain), grown(tables, Before, With)),
        near(larder:info(Tab, memory) * ?WORD, grown(tables, Before, With) + Bytes),
        true = larder:drop_index(Tab, by_value),
        ?assertEqual(maps:get(indexes, Before), larder:memory(indexes)),
        true = larder:delete(Tab)
    end).

grown(Item, Before, After) ->
    maps:get(Item, After) - maps:get(Item, Before).

near(Expected, Got) ->
    ?assert(abs(Expected - Got) < Expected div 10 + 10000).

filled(N) ->
    Tab = larder:new(filled, [public]),
    true = larder:insert(Tab, [{I, I} || I <- lists:seq(1, N)]),
    Tab.

some_items_test() ->
    Total = larder:memory(total),
    ?assert(is_integer(Total) andalso Total > 0),
    ?assertMatch([{waiting, _}, {total, _}], larder:memory([waiting, total])),
    ?assertEqual([], larder:memory([])).

errors_test_() ->
    [{lists:flatten(io_lib:format("~w", [Args])), fun() -> wrong(F, Args, Argument) end}
     || {F, Args, Argument} <- [{memory, [binary], 1}, {memory, [[total, binary]], 1},
                                {memory, [[total | waiting]], 1}, {memory, [1], 1},
                                {top, [-1, size], 1}, {top, [ten, size], 1}, {top, [1, owner], 2}]].

top_test_() ->
    ?LEAK_FREE(begin
        [Small, Middle, Large] = Tabs = [filled(N) || N <- [1, 20, 3000]],
        Snapshot = larder:snapshot(Large),
        Ours = fun(By) -> [Tab || #{table := Tab} <- larder:top(1000000, By),
                                  lists:member(Tab, [Snapshot | Tabs])] end,
        ?assertEqual([Large, Middle, Small], Ours(size)),
        ?assertEqual(Large, hd(Ours(memory))),
        ?assertEqual([], Tabs -- Ours(contention)),
        [?assertEqual(lists:reverse(lists:sort(Figures)), Figures)
         || By <- [memory, size, contention],
            Figures <- [[maps:get(By, Map) || Map <- larder:top(1000000, By)]]],
        ?assertEqual([], larder:top(0, size)),
        ?assertMatch([_, _], larder:top(2, memory)),
        [Map] = [M || #{table := Tab} = M <- larder:top(1000000, size), Tab =:= Large],
        ?assertEqual(#{table => Large, name => filled, type => set, size => 3000,
                       memory => larder:info(Large, memory) * ?WORD, snapshots => 1,
                       snapshot_memory => 0, owner => self()}, Map),
        larder:release(Snapshot),
        [larder:delete(Tab) || Tab <- Tabs]
    end).

%% Writers who meet are counted.
contention_test_() ->
    larder_test:tc("contention", 60, fun() ->
        Tab = larder:new(t, [public]),
        true = larder:insert(Tab, {hot, 0}),
        Writers = [spawn_link(fun() -> count(Tab) end) || _ <- lists:seq(1, 8)],
        true = larder_test:wait_until(fun() ->
            [Times] = [C || #{table := T, contention := C} <- larder:top(1000000, contention),
                            T =:= Tab],
            Times > 0
        end),
        [begin unlink(W), exit(W, kill) end || W <- Writers],
        larder:delete(Tab)
    end).

count(Tab) ->
    _ = larder:update_counter(Tab, hot, 1),
    count(Tab).

%% The list of tables ends with the sums.
listed_test() ->
    {ok, Screen} = larder_test_io:capture(fun() -> larder:i() end),
    [_, Figures, Header | _] = lists:reverse(string:split(Screen, "\n", all)),
    ?assertEqual(["total", "tables", "indexes", "snapshots", "waiting", "allocator"],
                 string:lexemes(Header, " ")),
    ?assertMatch({match, _}, re:run(Figures, "^( +[0-9]+(\\.[0-9])? (B|KiB|MiB|GiB)){6}$")).
