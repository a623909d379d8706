%% @doc What every suite here shares: the module under test, sizes from the
%% environment, properties with a printed seed, and the check for leaks that
%% stands around every test.
%%
%% Environment:
%%   LARDER_SUT    the module under test (larder); `ets' turns every
%%                 differential suite into a check of itself
%%   LARDER_CASES  scales the number of random cases, in percent (100)
%%   TMPDIR        where files are written (/tmp)
%%   LARDER_SEED   a seed as a failure printed it, "1,2,3", to run it again
-module(larder_test).

-export([sut/0, suts/0, other_suts/0, ensure_loaded/1, env/2, scaled/1,
         tc/3, tc/4, file/1, with_leak_check/2, check_property/3, try_property/3, census/1,
         wait_until/2, wait_until/1, in_a_node/4, in_a_node/5, is_said/1, dead_pid/0,
         events/1, microseconds/1, median/1]).

%% @doc The module under test.
-spec sut() -> module().
sut() ->
    list_to_atom(os:getenv("LARDER_SUT", "larder")).

%% @doc The modules that a differential suite runs over: `ets' against itself
%% (as diff_planted makes it) shows that the suite is sound; then comes the
%% module under test.
-spec suts() -> [module()].
suts() ->
    case sut() of
        ets -> [diff_sound];
        Sut -> [diff_sound, Sut]
    end.

%% @doc The module under test, unless that is `ets' itself, in a list.
-spec other_suts() -> [module()].
other_suts() ->
    suts() -- [diff_sound].

-spec ensure_loaded(module()) -> ok.
ensure_loaded(diff_sound) ->
    diff_sound = diff_planted:load(none),
    ok;
ensure_loaded(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> ok;
        {error, Why} -> error({module_under_test_does_not_load, Module, Why})
    end.

%% @doc An integer from the environment.
-spec env(string(), integer()) -> integer().
env(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

%% @doc A number of random cases, scaled by LARDER_CASES.
-spec scaled(pos_integer()) -> pos_integer().
scaled(N) ->
    max(1, N * env("LARDER_CASES", 100) div 100).

%% @doc An EUnit test with a title, a time limit in seconds and a leak check.
tc(Title, Seconds, Fun) ->
    tc(Title, Seconds, sut(), Fun).

tc(Title, Seconds, Module, Fun) ->
    Text = lists:flatten(io_lib:format("~s (~s)", [Title, Module])),
    {Text, {timeout, Seconds, fun() ->
        ensure_loaded(Module),
        with_leak_check(Module, Fun)
    end}}.

%% @doc A name of a file or folder that this node alone has, in TMPDIR.
-spec file(string()) -> file:filename().
file(Name) ->
    filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["larder_", Name, "_", os:getpid()])).

%% @doc Runs a test body and asserts that what it made is gone afterwards:
%% tables, processes, and the engine's own counters where it shows them.
%% Some of it goes a moment after the owner does, hence the patience.
-spec with_leak_check(module(), fun(() -> T)) -> T.
with_leak_check(Module, Fun) ->
    Before = census(Module),
    Result = Fun(),
    Gone = fun() -> leaks(Before, census(Module)) =:= [] end,
    case wait_until(Gone, 10000) of
        true -> Result;
        false -> error({leak, leaks(Before, census(Module))})
    end.

%% @doc What may leak, counted.
-spec census(module()) -> #{term() => integer()}.
census(Module) ->
    Counters = case erlang:function_exported(larder_nif, debug_counters, 0) of
        true -> live_counters(larder_nif:debug_counters());
        false -> #{}
    end,
    Counters#{{tables, Module} => length(Module:all()),
              processes => erlang:system_info(process_count)}.

live_counters(Map) when is_map(Map) ->
    maps:filter(fun(_, V) -> is_integer(V) end, Map);
live_counters(List) when is_list(List) ->
    live_counters(maps:from_list(List)).

leaks(Before, After) ->
    [{What, maps:get(What, Before, 0), N}
     || {What, N} <- lists:sort(maps:to_list(After)),
        N > maps:get(What, Before, 0) + slack(What)].

%% A logger or a code server call may start a process of its own.
slack(processes) -> 3;
%% The system keeps tables of its own in `ets'.
slack({tables, diff_sound}) -> 10;
slack(_) -> 0.

%% @doc Runs a PropEr property; a failure carries the seed that repeats it.
-spec check_property(string(), pos_integer(), term()) -> ok.
check_property(Name, Cases, Property) ->
    case try_property(Cases, Property, []) of
        {true, _, _} -> ok;
        {Result, Seed, Said} ->
            io:put_chars(user, ["\n", Name, ": LARDER_SEED=", Seed, "\n",
                                unicode:characters_to_binary(Said), "\n"]),
            error({property_failed, Name, {'LARDER_SEED', Seed}, Result})
    end.

%% @doc Runs a PropEr property and gives its result, the seed, and what PropEr
%% had to say.
try_property(Cases, Property, More) ->
    Seed = seed(),
    case try_property(Cases, Property, More, Seed) of
        %% PropEr can't shrink improper lists: better the whole case than none.
        {{crashed, _}, _, _} -> try_property(Cases, Property, [noshrink | More], Seed);
        Tried -> Tried
    end.

try_property(Cases, Property, More, Seed) ->
    Self = self(),
    Ref = make_ref(),
    %% A process of its own: PropEr keeps its state, and the seed, in the
    %% process dictionary.
    {Pid, Mon} = spawn_monitor(fun() ->
        _ = rand:seed(exsplus, Seed),
        Say = fun(Format, Args) -> Self ! {Ref, io_lib:format(Format, Args)}, ok end,
        Options = [{numtests, Cases}, {max_size, 40}, {on_output, Say}, nocolors],
        exit({Ref, proper:quickcheck(Property, More ++ Options)})
    end),
    Why = receive {'DOWN', Mon, process, Pid, W} -> W end,
    Said = lists:append([lists:flatten(T) || T <- said(Ref)]),
    Result = case Why of
        {Ref, R} -> R;
        _ -> {crashed, Why}
    end,
    {Result, seed_text(Seed), Said}.

said(Ref) ->
    receive {Ref, Text} -> [Text | said(Ref)] after 0 -> [] end.

seed() ->
    case os:getenv("LARDER_SEED") of
        None when None =:= false; None =:= "random" ->
            <<A:32, B:32, C:32, _/binary>> = rand:bytes(16),
            {A, B, C};
        Text ->
            list_to_tuple([list_to_integer(T) || T <- string:lexemes(Text, ", {}")])
    end.

seed_text({A, B, C}) ->
    lists:flatten(io_lib:format("~b,~b,~b", [A, B, C])).

%% @doc Waits, at most five seconds or so many milliseconds, for a condition.
wait_until(Condition) ->
    wait_until(Condition, 5000).

wait_until(Condition, Left) ->
    case Condition() of
        true -> true;
        false when Left =< 0 -> false;
        false -> timer:sleep(5), wait_until(Condition, Left - 5)
    end.

%% @doc The result of a call in a new node, in which resident memory can be measured: the emulator
%% keeps no free segments. By default it keeps up to ten for each scheduler, and gives back one of
%% them a second. Those may be the heaps of processes that made the objects.
-spec in_a_node(module(), atom(), [term()], timeout()) -> term().
in_a_node(Module, Function, Args, Timeout) ->
    in_a_node(["+MMmcs", "0"], Module, Function, Args, Timeout).

%% @doc The result of a call in a new node that is started with these flags.
-spec in_a_node([string()], module(), atom(), [term()], timeout()) -> term().
in_a_node(Flags, Module, Function, Args, Timeout) ->
    Paths = ["-pa" | [filename:absname(Path) || Path <- code:get_path(), Path =/= "."]],
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => Flags ++ Paths}),
    try
        peer:call(Peer, Module, Function, Args, Timeout)
    after
        peer:stop(Peer)
    end.

%% @doc A pid of this node that no process has any more.
-spec dead_pid() -> pid().
dead_pid() ->
    {Pid, Mon} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Mon, process, Pid, _} -> Pid end.

%% @doc The events of a feed, up to the end of its table.
-spec events(reference()) -> [term(), ...].
events(Ref) ->
    receive
        {larder, Ref, _, gone} -> [gone];
        {larder, Ref, _, Event} -> [Event | events(Ref)]
    after 10000 ->
        error(no_message)
    end.

%% @doc Microseconds that a fun takes, and its result.
microseconds(Fun) ->
    T0 = erlang:monotonic_time(nanosecond),
    Result = Fun(),
    {(erlang:monotonic_time(nanosecond) - T0) / 1000, Result}.

-spec median([number()]) -> number().
median(Numbers) ->
    lists:nth((length(Numbers) + 1) div 2, lists:sort(Numbers)).

%% @doc Calls functions of `larder' that are badarg, and finds the text among the words said
%% of each: a list of the arguments' numbers and words, as `~0p' prints it.
-spec is_said([{Function :: atom(), Args :: [term()], RegExp :: string()}]) -> ok.
is_said(Calls) ->
    lists:foreach(fun({Function, Args, Text}) ->
        Stack = try
                    _ = apply(larder, Function, Args),
                    error({no_error, Function, Args})
                catch
                    error:badarg:At -> At
                end,
        Words = maps:to_list(larder:format_error(badarg, Stack)),
        Said = lists:flatten(io_lib:format("~0p", [[{N, unicode:characters_to_list(Word)}
                                                    || {N, Word} <- Words]])),
        case re:run(Said, Text) of
            {match, _} -> ok;
            nomatch -> error({words, Function, Args, Said})
        end
    end, Calls).
