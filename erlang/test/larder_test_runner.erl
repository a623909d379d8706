%% @doc Runs every suite that lies beside this module: each `*_tests' module
%% with EUnit, and every other module's `prop_*' functions with PropEr.
%% Prints each suite's time, and how much of it this node worked, the failures
%% in full, and a last plain line `N passed, N failed'; the exit status tells
%% whether any failed.
%%
%% `LARDER_ONLY=diff_ms,conc_' runs only the suites whose names begin so,
%% `LARDER_WITHOUT=hold_' all but those.
-module(larder_test_runner).
-behaviour(eunit_listener).

-export([main/0, run/1]).
-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3,
         terminate/2]).

-record(tally, {passed = 0 :: non_neg_integer(), failed = 0 :: non_neg_integer()}).

%% @doc The Makefile's entry: runs everything, then halts the node.
-spec main() -> no_return().
main() ->
    %% The runner is started from the boot sequence; the suites should find
    %% a node that has finished starting.
    spawn(fun() ->
        Status = try run(suites()) catch
            Class:Reason:Stack ->
                io:format("the runner failed: ~p ~p~n~p~n", [Class, Reason, Stack]),
                1
        end,
        halt(Status)
    end).

%% @doc Runs the named suites; 0 if all passed.
-spec run([module()]) -> 0 | 1.
run(Modules) ->
    #tally{passed = Passed, failed = Failed} =
        lists:foldl(fun run_suite/2, #tally{}, Modules),
    io:format("~b passed, ~b failed~n", [Passed, Failed]),
    case Failed of
        0 when Passed > 0 -> 0;
        _ -> 1
    end.

suites() ->
    Dir = filename:dirname(code:which(?MODULE)),
    Names = [list_to_atom(filename:basename(File, ".beam"))
             || File <- lists:sort(filelib:wildcard(filename:join(Dir, "*.beam")))],
    [Name || Name <- Names, wanted(atom_to_list(Name)), kind(Name) =/= none].

wanted(Name) ->
    begins(Name, "LARDER_ONLY", true) andalso not begins(Name, "LARDER_WITHOUT", false).

begins(Name, Variable, Unset) ->
    case os:getenv(Variable) of
        false -> Unset;
        Text -> lists:any(fun(Prefix) -> lists:prefix(Prefix, Name) end,
                          string:lexemes(Text, ", "))
    end.

kind(Module) ->
    case lists:suffix("_tests", atom_to_list(Module)) of
        true -> eunit;
        false when Module =:= ?MODULE -> none;
        false -> case properties(Module) of [] -> none; _ -> proper end
    end.

properties(Module) ->
    {module, Module} = code:ensure_loaded(Module),
    [Name || {Name, 0} <- Module:module_info(exports),
             lists:prefix("prop_", atom_to_list(Name))].

run_suite(Module, Tally) ->
    io:format("~-28s ", [Module]),
    T0 = erlang:monotonic_time(millisecond),
    {Cpu0, _} = statistics(runtime),
    {Passed, Failed} = case kind(Module) of
        eunit -> run_eunit(Module);
        proper -> run_proper(Module)
    end,
    Seconds = (erlang:monotonic_time(millisecond) - T0) / 1000,
    {Cpu1, _} = statistics(runtime),
    io:format("~-28s ~8.1f s  ~b passed, ~b failed (~.1f s of processors)~n",
              ["", Seconds, Passed, Failed, (Cpu1 - Cpu0) / 1000]),
    Tally#tally{passed = Tally#tally.passed + Passed,
                failed = Tally#tally.failed + Failed}.

run_proper(Module) ->
    Results = [begin
        io:format("~n  ~s:~s ", [Module, Name]),
        proper:quickcheck(Module:Name(), [{numtests, larder_test:scaled(200)}, nocolors])
    end || Name <- properties(Module)],
    Failed = length([R || R <- Results, R =/= true]),
    {length(Results) - Failed, Failed}.

%% EUnit --------------------------------------------------------------------

%% EUnit's own summary says only ok or error; this listener counts, and says
%% what failed. A suite whose set-up fails or that times out is a failure, a
%% suite without a single test too.
run_eunit(Module) ->
    Self = self(),
    Ref = make_ref(),
    _ = eunit:test({module, Module}, [no_tty, {report, {?MODULE, [{to, {Self, Ref}}]}}]),
    receive
        {Ref, 0, 0} -> io:format("~n  no test in ~s~n", [Module]), {0, 1};
        {Ref, Passed, Failed} -> {Passed, Failed}
    after 5000 -> io:format("~n  ~s: no report~n", [Module]), {0, 1}
    end.

-record(state, {to, passed = 0, failed = 0}).

start(Options) ->
    eunit_listener:start(?MODULE, Options).

init(Options) ->
    io:nl(),
    #state{to = proplists:get_value(to, Options)}.

handle_begin(_, _, State) ->
    State.

handle_end(group, _, State) ->
    State;
handle_end(test, Data, State) ->
    case proplists:get_value(status, Data) of
        ok ->
            say_slow(Data),
            State#state{passed = State#state.passed + 1};
        Status ->
            io:format("  FAILED ~ts~n~ts~n", [title(Data), reason(Status)]),
            State#state{failed = State#state.failed + 1}
    end.

handle_cancel(_, Data, State) ->
    io:format("  CANCELLED ~ts~n  ~tp~n",
              [title(Data), proplists:get_value(reason, Data)]),
    State#state{failed = State#state.failed + 1}.

terminate(_, #state{to = {Pid, Ref}, passed = Passed, failed = Failed}) ->
    Pid ! {Ref, Passed, Failed},
    ok.

say_slow(Data) ->
    Time = proplists:get_value(time, Data, 0),
    Time >= 1000 andalso
        io:format("  ~8.1f s  ~ts~n", [Time / 1000, title(Data)]).

title(Data) ->
    Where = case proplists:get_value(source, Data) of
        {M, F, _} -> io_lib:format("~s:~s", [M, F]);
        _ -> ""
    end,
    case proplists:get_value(desc, Data) of
        Text when Text =:= undefined; Text =:= "" -> Where;
        Text -> [Where, " ", Text]
    end.

reason({error, {Class, Reason, Stack}}) ->
    io_lib:format("  ~p: ~tP~n  ~tP", [Class, Reason, 60, Stack, 30]);
reason(Other) ->
    io_lib:format("  ~tP", [Other, 60]).
