%% @private
%% @doc Whole programs at work: one as its package has it, and the same one
%% moved to Larder.
%%
%% A program is a module with this behaviour. Each round runs both copies, one
%% after the other, at the same work. What the work has to find is checked;
%% what it took is measured, and written as a table.
%%
%% ```
%%   main(["rabbitmq", Rounds, File, Ets, Moved])
%%      for each round:  work(ets)  work(larder)      the order changes
%%      ──> medians, a table, lines of File
%% '''
-module(larder_program).

-export([main/1, start/3, os_pids/1, kill/1, stop/1, resident/1, timed/1, wait_until/2]).

-export_type([place/0, figure/0]).

%% Where a copy lies, and what runs it.
-type place() :: #{side := ets | larder,
                   root := file:filename(),     % the package, unpacked
                   data := file:filename(),     % empty when the work begins
                   libs := string()}.           % what ERL_LIBS has to have
%% What was measured: a name, a number, and what the number is of.
-type figure() :: {Name :: string(), Value :: number(), Unit :: string()}.

%% Does the work. Fails if something is wrong with what the program did.
-callback work(place()) -> [figure()].

-define(PATIENCE, 120_000).

%% @doc main([Program, Rounds, File, Work, Root, MovedRoot, Libs, MovedLibs]): runs a
%% program so many times on both sides, and shows the medians.
main([Name, Rounds, File, Work, Root, MovedRoot, Libs, MovedLibs]) ->
    Program = list_to_atom("larder_program_" ++ Name),
    Places = [#{side => ets, root => Root, data => filename:join(Work, "ets"), libs => Libs},
              #{side => larder, root => MovedRoot, data => filename:join(Work, "larder"),
                libs => MovedLibs}],
    %% The clients of programs tell much of a connection that ends.
    ok = logger:set_primary_config(level, none),
    try
        Numbers = lists:seq(1, list_to_integer(Rounds)),
        Runs = lists:append([round(Program, N, Places) || N <- Numbers]),
        report(Name, medians(Runs), File),
        halt(0)
    catch
        _:Reason:Stack ->
            io:format(standard_error, "~ts: ~tp~n~tp~nIts logs are in ~ts.~n",
                      [Name, Reason, Stack, Work]),
            os:cmd("pkill -KILL -f 'beam.smp.* -home " ++ Work ++ "'"),
            halt(1)
    end.

%% The order changes from round to round.
round(Program, N, Places) ->
    Order = case N rem 2 of 1 -> Places; 0 -> lists:reverse(Places) end,
    [begin
         io:format("round ~b, on ~s ... ", [N, Side]),
         _ = file:del_dir_r(Data),
         ok = filelib:ensure_path(Data),
         {Ms, Figures} = timed(fun() -> Program:work(Place) end),
         io:format("~.1f s~n", [Ms / 1000]),
         {Side, Figures}
     end || Place = #{side := Side, data := Data} <- Order].

medians(Runs) ->
    [{_, First} | _] = Runs,
    [{Name, Unit, median(Name, ets, Runs), median(Name, larder, Runs)} || {Name, _, Unit} <- First].

median(Name, Side, Runs) ->
    Values = lists:sort([Value || {Own, Figures} <- Runs, Own =:= Side,
                                  {Other, Value, _} <- Figures, Other =:= Name]),
    lists:nth((length(Values) + 1) div 2, Values).

report(Program, Rows, File) ->
    io:format("~n~-44ts ~10ts ~10ts ~8ts~n", [Program, "ets", "larder", "ratio"]),
    [io:format("~-44ts ~10b ~10b ~8.2f~n",
               [Name ++ ", " ++ Unit, round(Ets), round(Larder), Larder / max(Ets, 1)])
     || {Name, Unit, Ets, Larder} <- Rows],
    New = filelib:file_size(File) =:= 0,
    {ok, Out} = file:open(File, [append]),
    New andalso io:format(Out, "program,what,unit,ets,larder~n", []),
    [io:format(Out, "~ts,~ts,~ts,~b,~b~n", [Program, Name, Unit, round(Ets), round(Larder)])
     || {Name, Unit, Ets, Larder} <- Rows],
    ok = file:close(Out).

%% @doc Starts a command with these variables; what it says goes to a file.
start(Command, Env, Log) ->
    Line = ["exec ", Command, " >>'", Log, "' 2>&1 </dev/null"],
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", lists:flatten(Line)]}, {env, Env}, exit_status]),
    Port.

%% @doc The numbers of the processes whose command lines have this pattern.
os_pids(Pattern) ->
    string:lexemes(os:cmd("pgrep -f '" ++ Pattern ++ "'"), "\n").

%% @doc Ends processes by the signal that none can handle.
kill(Pattern) ->
    signal("KILL", Pattern).

%% @doc Asks processes to end, and waits for that.
stop(Pattern) ->
    signal("TERM", Pattern).

signal(Signal, Pattern) ->
    {Pattern, Pids = [_ | _]} = {Pattern, os_pids(Pattern)},
    [os:cmd("kill -" ++ Signal ++ " " ++ Pid) || Pid <- Pids],
    wait_until(fun() -> os_pids(Pattern) =:= [] end, ?PATIENCE).

%% @doc The MiB of memory that processes have resident.
resident(Pattern) ->
    lists:sum([kilobytes(Pid) || Pid <- os_pids(Pattern)]) / 1024.

kilobytes(Pid) ->
    case file:read_file("/proc/" ++ Pid ++ "/status") of
        {ok, Status} ->
            {match, [Kb]} = re:run(Status, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
            list_to_integer(Kb);
        {error, _} -> 0
    end.

%% @doc The milliseconds that a fun takes, and what it answers.
timed(Fun) ->
    From = erlang:monotonic_time(microsecond),
    Result = Fun(),
    {(erlang:monotonic_time(microsecond) - From) / 1000, Result}.

%% @doc Calls a fun every 20 ms until it answers something other than false,
%% and answers that. Fails after so many milliseconds.
wait_until(_Fun, Ms) when Ms =< 0 ->
    error(waited_in_vain);
wait_until(Fun, Ms) ->
    case Fun() of
        false -> timer:sleep(20), wait_until(Fun, Ms - 20);
        Result -> Result
    end.
