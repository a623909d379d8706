%% The program of examples/replicated_kv checks itself; here it runs small, with Ra.
-module(replicated_kv_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ROWS, 30_000).
%% Ra takes none before 4096 commands.
-define(INTERVAL, 5000).
-define(MILLISECONDS, 60_000).

%% `make test' sees to it that Ra is there.
with_ra(Test) ->
    case {code:lib_dir(ra), os:getenv("LARDER_NO_RA", "0")} of
        {{error, bad_name}, "0"} ->
            {"Ra", fun() -> error({no_ra, "scripts/ra.sh gets it; LARDER_NO_RA=1 leaves this out"}) end};
        {{error, bad_name}, _} ->
            {"left out: there is no Ra", fun() -> ok end};
        _ ->
            {timeout, 120, Test}
    end.

killed_test_() -> with_ra(fun() -> ?assert(rows(replicated_kv:killed(?ROWS, ?INTERVAL)) > 0) end).

behind_test_() -> with_ra(fun() -> ?assert(rows(replicated_kv:behind(?ROWS, ?INTERVAL)) > 0) end).

rows({_, Rows, _}) -> Rows.

%% Thousands of commands at once, with a snapshot due for nearly each: the server stays, its
%% snapshots are valid, and it has the same rows after a restart.
burst_test_() ->
    [with_ra(fun() -> in_ra(fun(Folder) -> burst(Interval, Folder) end) end)
     || Interval <- [1, 10]].

burst(Interval, Folder) ->
    Server = {kv, node()},
    {ok, [Server], []} =
        ra:start_cluster(default, kv, kv:config(#{interval => Interval}), [Server]),
    {ok, {ok, 1}, _} = ra:process_command(Server, {add, counter, 1}, ?MILLISECONDS),
    Monitor = monitor(process, kv),
    Commands = 20_000,
    _ = [ok = ra:pipeline_command(Server, {put, I, I}, I, normal)
         || I <- lists:seq(1, Commands)],
    ?assertEqual(ok, answers(Commands, Monitor)),
    true = demonitor(Monitor, [flush]),
    Snapshots = fun() -> filelib:wildcard(filename:join(Folder, "*/*/snapshots/*")) end,
    Newest = fun() -> lists:last(["none" | lists:sort(Snapshots())]) end,
    %% A process of its own writes it, and may be at it still.
    _ = larder_test:wait_until(fun() -> larder_ra_snapshot:validate(Newest()) =:= ok end, 10_000),
    Before = kv_node:digest(kv),
    ?assertMatch({_, Rows, _} when Rows =:= Commands + 1, Before),
    ok = ra:stop_server(default, Server),
    ?assertEqual(ok, larder_ra_snapshot:validate(Newest())),
    ok = ra:restart_server(default, Server),
    _ = larder_test:wait_until(fun() -> kv_node:digest(kv) =:= Before end, 10_000),
    ?assertEqual(Before, kv_node:digest(kv)).

answers(0, _) ->
    ok;
answers(Left, Monitor) ->
    receive
        {ra_event, _, {applied, Replies}} -> answers(Left - length(Replies), Monitor);
        {'DOWN', Monitor, _, _, Reason} -> {server_ended, Reason}
    after ?MILLISECONDS -> {no_answer, Left}
    end.

%% With Ra on this node.
in_ra(Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["larder_t_ra_burst_", os:getpid(), "_",
                                         erlang:unique_integer([positive])])),
    ok = kv_node:start(Folder),
    try Fun(Folder) after
        ok = application:stop(ra),
        ok = file:del_dir_r(Folder)
    end.

%% The machine that is busy may hold up a server at any time: one of four snapshots counts. A map is
%% copied, so its figure is a multiple: the measurement would tell if Larder's were.
paused_test_() ->
    with_ra(fun() ->
        #{begun := Larder} = replicated_kv:paused(kv, ?ROWS, ?INTERVAL, 4, ?MILLISECONDS),
        ?assertEqual(4, length(Larder)),
        ?assert(lists:min(Larder) < 5000),
        #{begun := Map} = replicated_kv:paused(kv_map, ?ROWS, ?INTERVAL, 1, ?MILLISECONDS),
        ?assert(lists:min(Map) > 5 * lists:min(Larder))
    end).

%% The machine and the snapshots have what Ra asks for.
behaviours_test_() ->
    with_ra(fun() ->
        lists:foreach(fun({Behaviour, Module}) ->
            Asked = Behaviour:behaviour_info(callbacks) -- optional(Behaviour),
            ?assertEqual({Module, []}, {Module, Asked -- Module:module_info(exports)})
        end, [{ra_machine, kv}, {ra_machine, kv_map}, {ra_snapshot, larder_ra_snapshot}])
    end).

optional(Behaviour) ->
    try Behaviour:behaviour_info(optional_callbacks) catch error:_ -> [] end.

%% The store's commands.
commands_test_() ->
    larder_test:tc("", 60, larder, fun() ->
        Table = larder:new(t, []),
        lists:foreach(fun({Command, Reply, Rows}) ->
            ?assertEqual({Command, Reply}, {Command, kv:execute(Command, Table)}),
            ?assertEqual({Command, Rows}, {Command, lists:sort(larder:tab2list(Table))})
        end, [{{put, a, 1}, ok, [{a, 1}]},
              {{put, a, 2}, ok, [{a, 2}]},
              {{add, a, 5}, {ok, 7}, [{a, 7}]},
              {{add, b, 5}, {ok, 5}, [{a, 7}, {b, 5}]},
              {{add, b, x}, {error, no_command}, [{a, 7}, {b, 5}]},
              {{swap, b, 4, 6}, {error, [5]}, [{a, 7}, {b, 5}]},
              {{swap, c, 4, 6}, {error, []}, [{a, 7}, {b, 5}]},
              {{swap, b, 5, x}, ok, [{a, 7}, {b, x}]},
              {{add, b, 1}, {error, no_number}, [{a, 7}, {b, x}]},
              {{delete, a}, ok, [{b, x}]},
              {{delete, a}, ok, [{b, x}]},
              {{fill, 1, 2, y}, ok, [{1, y}, {2, y}, {b, x}]},
              {{fill, 3, 2, y}, ok, [{1, y}, {2, y}, {b, x}]},
              {{fill, 4, 2, y}, {error, no_command}, [{1, y}, {2, y}, {b, x}]},
              {nonsense, {error, no_command}, [{1, y}, {2, y}, {b, x}]}]),
        larder:delete(Table)
    end).
