%% @doc Sends two tables through the same course, in turns, and keeps the times.
%%
%% One measurement is a course in a process of its own. A small table goes through its course many
%% times over, until each step has done about a million operations, and the first time does not
%% count: tables are measured warm. A large one starts from nothing. Which side goes first
%% alternates. Keys are constants of the system (persistent terms), which no collection ever copies,
%% and the process has a heap that garbage seldom fills.
-module(larder_bench_measure).

-export([course/4, with_data/3, in_own_process/2, started/1, answers/1, timed/1, rotated/2,
         columns/1, median/1]).

-export_type([measured/0]).

-type measured() :: #{row := larder_bench_work:row(), type := atom(), name := string(),
                      size := pos_integer(),
                      ets := [float()], larder := [float()]}.
%% Nanoseconds an operation of each measurement, those of one pair at the same place.

%% Words. Large enough that a collection comes every few thousand operations, small enough to stay
%% in the cache.
-define(HEAP, 65_536).
%% Words a row of a step that gives all rows at once.
-define(RESULT, 8).

%% @doc Calls `Fun' while what `Make' gives is a constant of the system under a key, which no
%% collection copies.
-spec with_data(Key :: module(), Make :: fun(() -> term()), fun(() -> Result)) -> Result.
with_data(Key, Make, Fun) ->
    ok = in_own_process(fun() -> persistent_term:put(Key, Make()) end, ?HEAP),
    try Fun()
    after persistent_term:erase(Key)
    end.

%% @doc Measures a course, each side `Runs' times, over rounds of about `Operations' operations. To
%% be called in with_data/3, with this module as the key.
-spec course(larder_bench_work:course(), pos_integer(), pos_integer(), pos_integer()) ->
    [measured()].
course(#{type := Type, steps := Steps} = Course, Size, Runs, Operations) ->
    Rounds = max(1, (Operations + Size - 1) div Size),
    Pairs = [pair(Course, Rounds, Run) || Run <- lists:seq(1, Runs)],
    [#{row => Row, type => Type, name => Name, size => Size,
       ets => [map_get(Step, Ets) || {Ets, _} <- Pairs],
       larder => [map_get(Step, Larder) || {_, Larder} <- Pairs]}
     || {Step, Row, Name} <- Steps, Row =/= unmeasured].

pair(Course, Rounds, Run) ->
    Sides = rotated(Run - 1, [larder_bench_ets, larder_bench_larder]),
    [{_, Ets}, {_, Larder}] = lists:sort([{Side, once(Side, Course, Rounds)} || Side <- Sides]),
    {Ets, Larder}.

once(Side, #{type := Type, steps := Steps}, Rounds) ->
    Names = [Step || {Step, _, _} <- Steps],
    in_own_process(fun() -> rounds(Side, Side:new([Type]), Names, Rounds) end, ?HEAP).

rounds(Side, Table, Steps, Rounds) ->
    Data = persistent_term:get(?MODULE),
    _ = [round(Side, Table, Steps, Data) || Rounds > 1],
    Times = [round(Side, Table, Steps, Data) || _ <- lists:seq(1, Rounds)],
    true = Side:delete(Table),
    maps:from_list([{Step, lists:sum([Ns || {Ns, _} <- Of]) / lists:sum([N || {_, N} <- Of])}
                    || {Step, Of} <- lists:zip(Steps, columns(Times))]).

%% @doc Lists of lines as lists of columns.
-spec columns([[Cell]]) -> [[Cell]].
columns([[] | _]) -> [];
columns(Lists) -> [[hd(L) || L <- Lists] | columns([tl(L) || L <- Lists])].

round(Side, Table, Steps, Data) -> [step(Side, Step, Table, Data) || Step <- Steps].

%% All rows at once want a heap of their own.
step(Side, match_all, Table, #{size := Size} = Data) when Size * ?RESULT > ?HEAP ->
    in_own_process(fun() -> timed(fun() -> Side:run(match_all, Table, Data) end) end,
                   Size * ?RESULT);
step(Side, Step, Table, Data) ->
    timed(fun() -> Side:run(Step, Table, Data) end).

%% @doc The nanoseconds that `Fun' takes, and what it gives.
-spec timed(fun(() -> Result)) -> {non_neg_integer(), Result}.
timed(Fun) ->
    Start = erlang:monotonic_time(),
    Result = Fun(),
    {erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond), Result}.

%% @doc Runs `Fun' in a process that starts with so many words of heap.
-spec in_own_process(fun(() -> Result), pos_integer()) -> Result.
in_own_process(Fun, Heap) ->
    Parent = self(),
    {Pid, Monitor} =
        spawn_opt(fun() -> Parent ! {self(), try {ok, Fun()} catch C:R:S -> {C, R, S} end} end,
                               [monitor, {min_heap_size, Heap}]),
    receive
        {Pid, {ok, Result}} ->
            receive {'DOWN', Monitor, process, Pid, _} -> Result end;
        {Pid, {Class, Reason, Stack}} ->
            demonitor(Monitor, [flush]),
            erlang:raise(Class, Reason, Stack);
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

%% @doc Starts a process for each job, and tells all of them to go at the same time, which it gives.
-spec started([fun(() -> term())]) -> {Start :: integer(), [{pid(), reference()}]}.
started(Jobs) ->
    Starter = self(),
    Workers = [spawn_opt(fun() -> receive go -> Starter ! {done, self(), Job()} end end,
                         [monitor, {min_heap_size, ?HEAP}]) || Job <- Jobs],
    Start = erlang:monotonic_time(),
    [Worker ! go || {Worker, _} <- Workers],
    {Start, Workers}.

%% @doc What the jobs of these processes have given. It is an error if one has crashed.
-spec answers([{pid(), reference()}]) -> [term()].
answers(Workers) ->
    [receive
         {done, Worker, Answer} -> true = demonitor(Monitor, [flush]), Answer;
         {'DOWN', Monitor, process, _, Reason} -> error({worker, Reason})
     end || {Worker, Monitor} <- Workers].

%% @doc The items, beginning with another one in each turn, so that none is always the first.
-spec rotated(non_neg_integer(), [Item]) -> [Item].
rotated(_, []) -> [];
rotated(Turn, Items) ->
    {First, Last} = lists:split(Turn rem length(Items), Items),
    Last ++ First.

%% @doc The middle one, or the mean of the two in the middle.
-spec median([number(), ...]) -> float().
median(List) ->
    Sorted = lists:sort(List),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.
