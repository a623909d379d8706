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

%% The machine that is busy may hold up a server at any time: one of two snapshots counts. A map is
%% copied, so its figure is a multiple: the measurement would tell if Larder's were.
paused_test_() ->
    with_ra(fun() ->
        #{begun := Larder} = replicated_kv:paused(kv, ?ROWS, ?INTERVAL, 2, ?MILLISECONDS),
        ?assertEqual(2, length(Larder)),
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
              {nonsense, {error, no_command}, [{1, y}, {2, y}, {b, x}]}]),
        larder:delete(Table)
    end).
