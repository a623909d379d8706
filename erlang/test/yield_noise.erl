%% @doc What others take from this node's schedulers, for tests that go by the
%% clock on the wall.
%%
%% Linux counts, for each thread, how long it was ready to run and had no
%% processor (the second figure of /proc/self/task/T/schedstat), and how long the
%% host had the processors for itself (`steal' in /proc/stat). A process of high
%% priority reads both every few milliseconds. Afterwards one can ask how much of
%% a stretch of time the machine took; what is left is the node's own doing. On a
%% quiet machine next to nothing is forgiven. What Larder's own threads use is none of
%% it: they have to be there when this is started.
%%
%% The files are read by a dirty scheduler, so that no scheduler waits for them.
-module(yield_noise).

-export([start/0, stop/1, within/3, is_known/0]).

-export_type([readings/0]).

-define(EVERY_MS, 4).

-type readings() ::
    [{Before :: integer(), After :: integer(), [{delay | steal | own, Us :: integer()}]}].
%% The latest first: when it began and ended, and what each file said then.

%% @doc Whether this system tells.
-spec is_known() -> boolean().
is_known() -> schedulers() =/= [].

-spec start() -> pid().
start() ->
    Self = self(),
    Pid = spawn_link(fun() ->
        process_flag(priority, high),
        Files = files(),
        First = reading(Files),
        Self ! {self(), started},
        sample(Files, [First])
    end),
    receive {Pid, started} -> Pid end.

-spec stop(pid()) -> readings().
stop(Pid) ->
    Pid ! {stop, self()},
    receive {Pid, Readings} -> Readings end.

%% @doc At most so many microseconds were taken from any one scheduler between
%% two moments: from the last reading that was over before to the first one that
%% began after.
-spec within(readings(), integer(), integer()) -> non_neg_integer().
within(Readings, From, To) ->
    {Later, Rest} = lists:splitwith(fun({Before, _, _}) -> Before >= To end, Readings),
    {_, _, Upper} = case Later of [] -> hd(Readings); _ -> lists:last(Later) end,
    {_, _, Lower} = case lists:dropwhile(fun({_, After, _}) -> After > From end, Rest) of
        [] -> lists:last(Readings);
        [Last | _] -> Last
    end,
    Grown = [{Kind, U - L} || {{Kind, U}, {Kind, L}} <- lists:zip(Upper, Lower)],
    Delayed = lists:max([0 | of_kind(delay, Grown)]),
    max(0, Delayed + lists:sum(of_kind(steal, Grown)) - lists:sum(of_kind(own, Grown))).

of_kind(Kind, Figures) -> [N || {K, N} <- Figures, K =:= Kind].

sample(Files, Readings) ->
    receive
        {stop, From} ->
            From ! {self(), [reading(Files) | Readings]},
            [file:close(F) || {_, F} <- Files]
    after ?EVERY_MS ->
        sample(Files, [reading(Files) | Readings])
    end.

files() ->
    case schedulers() of
        [] -> [];
        Known ->
            [{Kind, open(Name)} || {Kind, Name} <- [{steal, "/proc/stat"} | Known ++ reapers()]]
    end.

open(Name) ->
    {ok, File} = file:open(Name, [read, raw, binary]),
    File.

%% Their names depend on the release: `1_scheduler', `erts_sched_1'.
schedulers() ->
    [{delay, File} || File <- threads("^([0-9]+_scheduler|erts_sched_[0-9]+)")].

%% Larder's own threads outside the schedulers.
reapers() ->
    [{own, File} || File <- threads("^larder")].

threads(Pattern) ->
    [File || Comm <- filelib:wildcard("/proc/self/task/*/comm"),
             {ok, Name} <- [file:read_file(Comm)],
             re:run(Name, Pattern) =/= nomatch,
             File <- [filename:join(filename:dirname(Comm), "schedstat")],
             filelib:is_regular(File)].

%% The figures are those of some moment between the two.
reading(Files) ->
    Before = now_us(),
    Taken = [{Kind, taken(Kind, file:pread(File, 0, 200))} || {Kind, File} <- Files],
    {Before, now_us(), Taken}.

now_us() -> erlang:monotonic_time(microsecond).

taken(delay, {ok, Text}) ->
    [_, Waited | _] = binary:split(Text, [<<" ">>, <<"\n">>], [global]),
    binary_to_integer(Waited) div 1000;
%% Who waits for a thread of ours has not been held up by others.
taken(own, {ok, Text}) ->
    [Ran | _] = binary:split(Text, <<" ">>),
    binary_to_integer(Ran) div 1000;
%% cpu user nice system idle iowait irq softirq steal ..., in hundredths of a second.
taken(steal, {ok, Text}) ->
    [Line | _] = binary:split(Text, <<"\n">>),
    Words = binary:split(Line, <<" ">>, [global, trim_all]),
    binary_to_integer(lists:nth(9, Words)) * 10000;
%% A scheduler that has ended.
taken(_, _) -> 0.
