%% @doc Measures one cell of the wide bench: an operation on tables of `ets' and of Larder, in
%% turns.
%%
%% A pass is one going over a part of the table's keys (or over all rows), on each of some tables of
%% that size: small tables are many, so that a pass lasts longer than the clock's resolution. Before
%% and after a pass the tables are brought into their state again, outside the timing. A round is
%% some passes that take about 1.5 ms. Rounds of both sides alternate, and so does which goes first;
%% the passes of a round visit the same parts on both sides, those of the next round the next parts.
%%
%% Each cell has a process of its own, which is collected before each round.
-module(larder_bench_wide_cell).

-export([measure/4]).

-export_type([tables/0, result/0]).

-type tables() :: #{ets := [term()], larder := [term()]}.
-type result() :: #{ets := [float()], larder := [float()], calls := pos_integer()}
    | {left_out, string()}.
%% Nanoseconds a call (a row, where an operation goes over all of them) of each round; calls of a
%% round.

%% Words of the process: collections are rare, and the heap stays in the cache.
-define(HEAP, 65_536).
%% What a round should take, and what it may take with all that is not timed.
-define(ROUND_NS, 1_500_000).
-define(ROUND_WALL_NS, 20_000_000).
-define(LONG_ROUND_NS, 100_000_000).
%% A cell of more seconds than this is left out; when it will not end, it is ended.
-define(CELL_SECONDS, 5).
-define(CELL_END_MS, 30_000).
%% Rounds are taken until the median is at most so many times the least.
-define(CALM, 1.15).
%% Contents are compared, too, where that does not take long.
-define(COMPARED, 1000).

%% The process always exits.
-dialyzer({nowarn_function, measure/4}).

%% @doc Measures a cell so many rounds, while the data is a constant of the system under the name of
%% this module. Wrong answers are an error.
-spec measure(larder_bench_wide_ops:op(), {atom(), atom(), 1 | 2}, tables(), pos_integer()) ->
    result().
measure(Op, Where, Tables, Rounds) ->
    {Pid, Monitor} = spawn_opt(fun() -> exit({done, cell(Op, Where, Tables, Rounds)}) end,
                               [monitor, {min_heap_size, ?HEAP}]),
    receive
        {'DOWN', Monitor, process, Pid, {done, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error({cell, maps:get(name, Op), Where, Reason})
    after ?CELL_END_MS ->
            exit(Pid, kill),
            receive {'DOWN', Monitor, process, Pid, _} -> ok end,
            {left_out, io_lib:format("did not end in ~b s", [?CELL_END_MS div 1000])}
    end.

cell(#{whole := Whole} = Op, {Type, Kind, Processes}, Tables, Rounds) ->
    #{parts := Parts, size := Size} = persistent_term:get(?MODULE),
    Visited = case Whole of true -> [hd(Parts)]; false -> Parts end,
    Works = [{Part, larder_bench_wide_ops:items(Op, Type, Kind, {Part, Size})} || Part <- Visited],
    Result = case {check(Op, Type, Tables, hd(Works), Size), Processes} of
                 {refused, _} -> {left_out, "ets raises badarg, and so does larder"};
                 {ok, 1} -> rounds(Op, Tables, list_to_tuple(Works), Rounds, fun alone/5);
                 {ok, 2} -> beside(Op, Tables, Works, Rounds)
             end,
    case Result of
        #{ets := Ets, larder := Larder} when Whole ->
            Result#{ets := [Ns / Size || Ns <- Ets], larder := [Ns / Size || Ns <- Larder]};
        _ ->
            Result
    end.

%% Both sides answer alike, and leave the same rows; or both refuse the call.
check(#{name := Name, loop := Loop, before := Before, later := Later} = Op, Type, Tables,
      {Part, Items}, Size) ->
    [Ets, Larder] =
        [begin
             ok = Side:prepare(Before, T, Part),
             Answers = try Side:answers(Loop, T, Items) catch error:badarg -> refused end,
             Left = case Size =< ?COMPARED of true -> lists:sort(Side:contents(T));
                                              false -> none end,
             ok = Side:prepare(Later, T, Part),
             {Answers, Left}
         end || {Side, [T | _]} <- sides(Tables)],
    {EtsAnswers, EtsLeft} = Ets,
    {LarderAnswers, LarderLeft} = Larder,
    _ = EtsLeft =:= LarderLeft orelse error({rows_differ, Name, differing(EtsLeft, LarderLeft)}),
    case {EtsAnswers, LarderAnswers} of
        {refused, refused} -> refused;
        {[_ | _], [_ | _]} = Both ->
            _ = larder_bench_wide_ops:same(Op, Type, Both)
                orelse error({answers_differ, Name, differing(EtsAnswers, LarderAnswers)}),
            ok;
        _ -> error({one_refuses, Name, {EtsAnswers, LarderAnswers}})
    end.

differing([A | As], [A | Bs]) -> differing(As, Bs);
differing([A | _], [B | _]) -> {A, B};
differing(A, B) -> {A, B}.

sides(#{ets := Ets, larder := Larder}) ->
    [{larder_bench_wide_ets, Ets}, {larder_bench_wide_larder, Larder}].

%% A pass of each side says how many make a round; the first one is not counted where it was short.
rounds(Op, Tables, Works, Rounds, Passes) ->
    Pass = fun(Side) -> larder_bench_measure:timed(fun() -> Passes(Op, Side, Works, 0, 1) end) end,
    [{EtsWall, EtsTime}, {LarderWall, LarderTime}] =
        [case Pass(Side) of {Wall, _} when Wall < ?ROUND_WALL_NS -> Pass(Side); Long -> Long end
         || Side <- sides(Tables)],
    Wall = EtsWall + LarderWall,
    Count = max(1,
                min(?ROUND_NS * 2 div (EtsTime + LarderTime + 1) + 1,
                    2 * ?ROUND_WALL_NS div (Wall + 1))),
    case Wall * Count * Rounds > ?CELL_SECONDS * 1_000_000_000 of
        true ->
            {left_out, io_lib:format("would take ~.1f s (a pass: ets ~.1f ms, larder ~.1f ms)",
                                     [Wall * Count * Rounds / 1.0e9, EtsTime / 1.0e6,
                                      LarderTime / 1.0e6])};
        false ->
            Calls = Count * length(maps:get(ets, Tables)) * length(element(2, element(1, Works))),
            Pair = fun(Round) -> pair(Round, Op, sides(Tables), Works, Count, Passes) end,
            %% Long rounds are even enough, and more of them would take too long.
            Most = case Wall * Count < ?LONG_ROUND_NS of true -> 3 * Rounds; false -> Rounds end,
            Pairs = calm(Pair, [Pair(Round) || Round <- lists:seq(1, Rounds)], Rounds, Most),
            #{ets => [Ns / Calls || {Ns, _} <- Pairs], larder => [Ns / Calls || {_, Ns} <- Pairs],
              calls => Calls}
    end.

%% More rounds where some were disturbed, up to so many.
calm(Pair, Pairs, N, Most) ->
    {Ets, Larder} = lists:unzip(Pairs),
    case N < Most andalso (disturbed(Ets) orelse disturbed(Larder)) of
        true -> calm(Pair, [Pair(N + 1) | Pairs], N + 1, Most);
        false -> Pairs
    end.

disturbed(Times) -> larder_bench_measure:median(Times) > ?CALM * lists:min(Times).

nanoseconds(Time) -> erlang:convert_time_unit(Time, native, nanosecond).

pair(Round, Op, [Ets, Larder], Works, Count, Passes) ->
    Go = fun(Side) -> true = garbage_collect(), Passes(Op, Side, Works, Round * Count, Count) end,
    case Round rem 2 of
        0 -> A = Go(Ets), {A, Go(Larder)};
        1 -> B = Go(Larder), {Go(Ets), B}
    end.

%% So many passes from that part on, by this process; the nanoseconds of what is timed.
alone(Op, Side, Works, First, Count) -> alone(Op, Side, Works, First, Count, 0).

alone(_, _, _, _, 0, Time) -> nanoseconds(Time);
alone(#{loop := Loop, before := Before, later := Later} = Op, {Side, Tables} = S, Works, Number,
      Left, Time) ->
    {Part, Items} = element(Number rem tuple_size(Works) + 1, Works),
    prepare(Side, Before, Tables, Part),
    Start = erlang:monotonic_time(),
    ok = Side:run(Loop, Tables, Items),
    End = erlang:monotonic_time(),
    prepare(Side, Later, Tables, Part),
    alone(Op, S, Works, Number + 1, Left - 1, Time + End - Start).

prepare(_, as_is, _, _) -> ok;
prepare(Side, State, Tables, Part) ->
    lists:foreach(fun(T) -> ok = Side:prepare(State, T, Part) end, Tables).

%% Two processes share the items of each part; the tables are brought into their state at the end
%% alone.
beside(Op, Tables, Works, Rounds) ->
    {Own, Its} =
        lists:unzip([{{P, Front}, {P, Back}}
                     || {P, Items} <- Works, {Front, Back} <- [halves(Items)]]),
    Parent = self(),
    Plain = Op#{before := as_is, later := as_is},
    Helper = spawn_opt(fun() -> true = garbage_collect(),
                                help(Parent, Plain, list_to_tuple(Its)) end,
                       [link, {min_heap_size, ?HEAP}]),
    Passes = fun(_, Side, Those, First, Count) ->
                     {Ns, ok} = larder_bench_measure:timed(fun() ->
                         Helper ! {go, Side, First, Count},
                         _ = alone(Plain, Side, Those, First, Count),
                         receive {Helper, done} -> ok end
                     end),
                     Ns div 2
             end,
    Result = rounds(Plain, Tables, list_to_tuple(Own), Rounds, Passes),
    true = unlink(Helper),
    Helper ! stop,
    #{parts := [Part | _]} = persistent_term:get(?MODULE),
    _ = [ok = Side:prepare(filled, T, Part) || {Side, Ts} <- sides(Tables), T <- Ts],
    Result.

halves(Items) -> lists:split(length(Items) div 2, Items).

help(Parent, Op, Works) ->
    receive
        {go, Side, First, Count} ->
            _ = alone(Op, Side, Works, First, Count),
            Parent ! {self(), done},
            help(Parent, Op, Works);
        stop -> ok
    end.
