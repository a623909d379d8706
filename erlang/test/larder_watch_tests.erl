%% The application `larder': what its environment says, and the alarm about memory.
-module(larder_watch_tests).

-include_lib("eunit/include/eunit.hrl").

-export([nothing_said/0, alarm/0, stopped/0, killed/0, without_sasl/0, refused/0, misspelled/0,
         huge_pages/0]).
%% Called by logger.
-export([log/2]).

-define(ALARM, larder_max_memory).
-define(POLL, 5).

%% Each in a node of its own: what other tests have left is memory, too, and may go at any moment.
application_test_() ->
    [{atom_to_list(Test), {timeout, 60, fun() -> in_a_node(Test) end}}
     || Test <- [nothing_said, alarm, stopped, killed, without_sasl, refused, misspelled,
                     huge_pages]].

in_a_node(Test) ->
    Paths = [filename:absname(filename:dirname(code:which(Module)))
             || Module <- [larder, ?MODULE]],
    {ok, Peer, _} = peer:start_link(#{connection => standard_io,
                                      args => ["-kernel", "logger_level", "none", "-pa" | Paths]}),
    try peer:call(Peer, ?MODULE, Test, [], 50000)
    after peer:stop(Peer)
    end.

%% ---- in the nodes ----

%% Without a limit nobody looks.
nothing_said() ->
    started([]),
    ?assertEqual([], supervisor:which_children(larder_sup)),
    ?assertEqual(undefined, whereis(larder_watch)).

%% Above the limit there is an alarm, once; a twentieth below it goes.
alarm() ->
    {ok, _} = application:ensure_all_started(sasl),
    Limit = larder:memory(total) + 20_000_000,
    started([{max_memory, Limit}, {memory_poll, ?POLL}]),
    timer:sleep(4 * ?POLL),
    ?assertEqual([], alarms()),
    Table = filled(40_000_000),
    ?assert(larder_test:wait_until(fun() -> length(alarms()) =:= 1 end)),
    [#{total := Total, max_memory := Limit}] = alarms(),
    ?assert(Total > Limit),
    timer:sleep(4 * ?POLL),
    ?assertEqual(1, length(alarms())),
    true = larder:delete(Table),
    ?assert(no_alarm()).

%% The alarm ends with the application. The log doesn't say that there is less.
stopped() ->
    {ok, _} = application:ensure_all_started(sasl),
    ok = logger:set_primary_config(level, notice),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    started([{max_memory, 1}, {memory_poll, ?POLL}]),
    Table = filled(1_000_000),
    ?assert(larder_test:wait_until(fun() -> length(alarms()) =:= 1 end)),
    ok = application:stop(larder),
    ?assertEqual([], alarms()),
    ok = logger:remove_handler(?MODULE),
    ?assertMatch(["Larder's tables have " ++ _, "The memory of Larder's tables isn't watched" ++ _],
                 said()),
    true = larder:delete(Table).

said() ->
    receive {logged, Said} -> [Said | said()] after 0 -> [] end.

%% If the process is killed, the next one has its alarm: it sets no other one, and ends this one.
killed() ->
    {ok, _} = application:ensure_all_started(sasl),
    Limit = larder:memory(total) + 20_000_000,
    started([{max_memory, Limit}, {memory_poll, ?POLL}]),
    Table = filled(40_000_000),
    ?assert(larder_test:wait_until(fun() -> length(alarms()) =:= 1 end)),
    Killed = kill_watch(),
    ?assert(larder_test:wait_until(fun() -> polls(Killed) end)),
    ?assertEqual(1, length(alarms())),
    true = larder:delete(Table),
    ?assert(no_alarm()),
    %% Another handler in the place of SASL's.
    ok = gen_event:delete_handler(alarm_handler, alarm_handler, []),
    started([{max_memory, Limit}, {memory_poll, ?POLL}]),
    ?assert(polls(none)).

kill_watch() ->
    Pid = whereis(larder_watch),
    true = exit(Pid, kill),
    Pid.

%% Whether there is another process, which has polled: it handles messages in their order.
polls(Killed) ->
    case whereis(larder_watch) of
        undefined -> false;
        Killed -> false;
        Pid -> gen_server:call(Pid, nonsense) =:= {error, unknown_call}
    end.

%% Without SASL there is the log alone.
without_sasl() ->
    ?assertEqual(undefined, whereis(alarm_handler)),
    Table = filled(1_000_000),
    started([{max_memory, 1}, {memory_poll, ?POLL}]),
    timer:sleep(4 * ?POLL),
    Pid = whereis(larder_watch),
    ?assertEqual({error, unknown_call}, gen_server:call(Pid, nonsense)),
    ok = gen_server:cast(Pid, nonsense),
    Pid ! nonsense,
    timer:sleep(2 * ?POLL),
    ?assertEqual(Pid, whereis(larder_watch)),
    true = larder:delete(Table).

%% What is wrong in the environment is named, and the application does not start.
refused() ->
    lists:foreach(fun({Name, Value, Expected}) ->
        _ = application:stop(larder),
        set([{Name, Value}]),
        ?assertEqual({error, {{bad_environment, {larder, Name, Value, Expected}},
                              {larder_app, start, [normal, []]}}},
                     application:start(larder))
    end, [{max_memory, Value, "not a positive number of bytes, or infinity"}
          || Value <- [0, "1 GB", -1, 1.0]] ++
         [{memory_poll, Value, "not a number of milliseconds from 1 to 4294967295"}
          || Value <- [0, infinity, 1 bsl 32]] ++
         [{huge_pages, Value, "not a boolean"} || Value <- [1, 'maybe']]).

%% A parameter that there isn't is named in the log.
misspelled() ->
    ok = logger:set_primary_config(level, warning),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    started([{max_memroy, 5}]),
    receive {logged, Said} -> ?assertEqual("larder has no parameter max_memroy", Said) end,
    ok = application:unset_env(larder, max_memroy),
    started([]),
    ok = logger:remove_handler(?MODULE),
    receive {logged, More} -> error({logged, More}) after 0 -> ok end.

log(#{level := Level, msg := {Format, Args}}, #{config := Pid})
  when Level =:= warning; Level =:= notice, is_list(Format) ->
    Pid ! {logged, lists:flatten(io_lib:format(Format, Args))};
log(_, _) ->
    ok.

%% What a table takes from then on is declared to the system as no huge page. Where the system takes
%% long to give pages, some are small anyway. So it is looked whether there are huge ones with the
%% option, and small ones without it, and not which are more.
huge_pages() ->
    Advised = fun(HugePages, Flag) ->
                      started([{huge_pages, HugePages}]),
                      Table = filled(60_000_000),
                      {ok, Maps} = file:read_file("/proc/self/smaps"),
                      true = larder:delete(Table),
                      binary:match(Maps, Flag) =/= nomatch
              end,
    With = Advised(true, <<" hg">>),
    Without = Advised(false, <<" nh">>),
    %% A system without huge pages takes no advice.
    HasThem = filelib:is_dir("/sys/kernel/mm/transparent_hugepage"),
    ?assertEqual({HasThem, HasThem}, {With, Without}),
    started([]).

started(Environment) ->
    _ = application:stop(larder),
    set(Environment),
    ok = application:start(larder).

set(Environment) ->
    _ = application:load(larder),
    Usual = [{max_memory, infinity}, {memory_poll, 1000}, {huge_pages, true}],
    lists:foreach(fun({Name, Value}) -> ok = application:set_env(larder, Name, Value) end,
                  Usual ++ Environment).

alarms() -> [About || {?ALARM, About} <- alarm_handler:get_alarms()].

%% A background thread frees a deleted table, and on a busy machine it gets late.
no_alarm() ->
    larder_test:wait_until(fun() -> alarms() =:= [] end, 20000).

filled(Bytes) ->
    Table = larder:new(t, [public]),
    Row = 1000,
    _ = [true = larder:insert(Table, {I, binary:copy(<<"x">>, 100), lists:seq(1, Row div 2)})
         || I <- lists:seq(1, Bytes div Row)],
    Table.
