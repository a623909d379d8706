%% @doc `make bench': `ets' and Larder do the same work, in one virtual machine, in turns.
%%
%% Environment: `LARDER_BENCH_SIZES=1000,65536' chooses sizes,
%% `LARDER_BENCH_ROWS=set_read,memory_plain' rows of the table (see larder_bench_work),
%% `LARDER_BENCH_RUNS' how often each side is measured (five times by default), and
%% `LARDER_BENCH_OPERATIONS' how many operations (or rows, for memory) a measurement of small tables
%% has; `LARDER_BENCH_OUT' is the folder of the files. Progress, and how long it will still take, go
%% to the standard error.
%%
%% The quick set is all of it in less time: fewer operations, large tables once, memory without the
%% smallest tables.
-module(larder_bench).

-export([main/0, quick/0]).

-define(SIZES, [1000, 65536, 1048576]).
-define(RUNS, 5).
-define(OPERATIONS, 1_000_000).
%% Of the quick set.
-define(QUICK_RUNS, 3).
-define(QUICK_OPERATIONS, 200_000).
%% Tables of more rows are measured once there.
-define(LARGE, 500_000).

%% What is to be done: a course or a memory at a size, how often, and about how many seconds that
%% takes.
-type task() :: {Size :: pos_integer(), course | memory, map(), Runs :: pos_integer(),
                 Operations :: pos_integer(), Seconds :: float()}.

%% @doc Measures single operations and memory, prints the tables and stops the node.
-spec main() -> no_return().
main() -> larder_bench_run:ended(fun() -> run(fun(_, Runs) -> Runs end, ?RUNS, ?OPERATIONS, 1) end).

%% @doc The same in minutes.
-spec quick() -> no_return().
quick() ->
    Runs = fun(Size, _) when Size > ?LARGE -> 1; (_, Runs) -> Runs end,
    larder_bench_run:ended(fun() -> run(Runs, ?QUICK_RUNS, ?QUICK_OPERATIONS, 10_000) end).

%% How many runs a size has, how many there are if nobody says so, how many operations, and the
%% smallest table whose memory is measured.
run(RunsOf, OwnRuns, OwnOperations, Least) ->
    Sizes = larder_bench_env:numbers("LARDER_BENCH_SIZES", ?SIZES),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", OwnRuns),
    Operations = larder_bench_env:number("LARDER_BENCH_OPERATIONS", OwnOperations),
    Rows = larder_bench_env:choice("LARDER_BENCH_ROWS",
                                   [Row || {Row, _, _} <- larder_bench_work:rows()]),
    Folder = larder_bench_env:folder("bench"),
    Facts = larder_report:facts() ++ [{runs, Runs}, {operations, Operations}],
    Tasks = [{Size, tasks(Size, Rows, RunsOf(Size, Runs), Operations, Least)} || Size <- Sizes],
    %% The first few things say little.
    larder_bench_run:expect(
      lists:sum([Seconds || {_, Of} <- Tasks, {_, _, _, _, _, Seconds} <- Of]), 20.0),
    _ = lists:foldl(fun({Size, Of}, Before) ->
                            All = size(Size, Rows, Of),
                            larder_bench_report:table(Size, All),
                            BySize = Before ++ [{Size, All}],
                            %% A long run that is broken off leaves what it has.
                            larder_bench_report:files(Folder, BySize, Facts),
                            BySize
                    end, [], Tasks),
    ok.

-spec tasks(pos_integer(), [atom()], pos_integer(), pos_integer(), pos_integer()) -> [task()].
tasks(Size, Rows, Runs, Operations, Least) ->
    [{Size, course, C, Runs, Operations,
      2 * Runs * length(Steps) * max(Operations, Size) * cost(Size)}
     || #{steps := Steps} = C <- larder_bench_work:courses(), wanted(C, Rows)]
        ++ [{Size, memory, M, 1, Operations, 2 * (1.2 + max(Operations, Size) * 2.0e-6)}
            || #{row := Row} = M <- larder_bench_work:memories(), lists:member(Row, Rows),
               Size >= Least].

%% Seconds of an operation, about.
cost(Size) when Size < 10_000 -> 0.5e-6;
cost(Size) when Size < 200_000 -> 0.7e-6;
cost(Size) when Size < 4_000_000 -> 1.2e-6;
cost(_) -> 1.7e-6.

size(Size, Rows, Tasks) ->
    lists:append([shape(Shape, Size, Rows,
                        [T || {_, course, #{shape := S}, _, _, _} = T <- Tasks, S =:= Shape])
                  || Shape <- [ints, binaries, tuples]])
        ++ [told(T, "memory, " ++ Name,
                 fun() -> larder_bench_memory:measure(M, Size, Operations) end)
            || {_, memory, #{name := Name} = M, _, Operations, _} = T <- Tasks].

shape(_, _, _, []) -> [];
shape(Shape, Size, Rows, Tasks) ->
    larder_bench_measure:with_data(
      larder_bench_measure, fun() -> larder_bench_rows:data(Shape, Size) end,
      fun() -> lists:append([course(T, Rows) || T <- Tasks]) end).

wanted(#{steps := Steps}, Rows) ->
    lists:any(fun({_, Row, _}) -> lists:member(Row, Rows) end, Steps).

course({Size, course, #{type := Type, shape := Shape, steps := [{First, _, _} | _]} = Course, Runs,
        Operations, _} = Task, Rows) ->
    What = io_lib:format("~s of ~s, ~s and so on", [Type, Shape, First]),
    Measured = told(Task, What,
                    fun() -> larder_bench_measure:course(Course, Size, Runs, Operations) end),
    [M || #{row := Row} = M <- Measured, lists:member(Row, Rows)].

%% Says what is in progress and how long the rest will take.
told({Size, _, _, _, _, Seconds}, What, Fun) ->
    io:format(standard_error, "  ~b rows: ~ts (about ~s left)~n",
              [Size, What, larder_bench_run:left()]),
    {Ns, Result} = larder_bench_measure:timed(Fun),
    larder_bench_run:spent(Seconds, Ns / 1.0e9),
    Result.
