%% @doc `make bench': `ets' and Larder do the same work, in one virtual machine, in turns.
%%
%% Environment: `LARDER_BENCH_SIZES=1000,65536' chooses sizes, `LARDER_BENCH_ROWS=set_read,memory_plain' rows of the table
%% (see larder_bench_work), `LARDER_BENCH_RUNS' how often each side is measured (five times if not said), and
%% `LARDER_BENCH_OPERATIONS' how many operations (or rows, for memory) a measurement of small tables has; `LARDER_BENCH_OUT' is the folder of
%% the files. Progress goes to the standard error.
-module(larder_bench).

-export([main/0, scaling/0, growth/0]).

-define(SIZES, [1000, 65536, 1048576]).
-define(RUNS, 5).
-define(OPERATIONS, 1_000_000).

%% @doc Measures single operations and memory, prints the tables and stops the node.
-spec main() -> no_return().
main() -> ended(fun run/0).

%% @doc Measures throughput with one process and several, prints the tables and stops the node.
-spec scaling() -> no_return().
scaling() -> ended(fun larder_bench_scaling:run/0).

%% @doc Measures how evenly tables grow, prints the table and stops the node.
-spec growth() -> no_return().
growth() -> ended(fun larder_bench_growth:run/0).

-spec ended(fun(() -> ok)) -> no_return().
ended(Fun) ->
    Status = try
                 [] = [M || M <- [ets, larder], code:ensure_loaded(M) =/= {module, M}],
                 ok = Fun(),
                 0
             catch Class:Reason:Stack ->
                     io:format("make bench failed: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
                     1
             end,
    halt(Status, [{flush, true}]).

run() ->
    Sizes = larder_bench_env:numbers("LARDER_BENCH_SIZES", ?SIZES),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    Operations = larder_bench_env:number("LARDER_BENCH_OPERATIONS", ?OPERATIONS),
    Rows = larder_bench_env:choice("LARDER_BENCH_ROWS", [Row || {Row, _, _} <- larder_bench_work:rows()]),
    Folder = larder_bench_env:folder("make-bench"),
    Facts = larder_report:facts() ++ [{runs, Runs}, {operations, Operations}],
    _ = lists:foldl(fun(Size, Before) ->
                            All = size(Size, Rows, Runs, Operations),
                            larder_bench_report:table(Size, All),
                            BySize = Before ++ [{Size, All}],
                            %% A long run that is broken off leaves what it has.
                            larder_bench_report:files(Folder, BySize, Facts),
                            BySize
                    end, [], Sizes),
    ok.

size(Size, Rows, Runs, Operations) ->
    lists:append([shape(Shape, Size, Rows, Runs, Operations) || Shape <- [ints, binaries, tuples]])
        ++ [memory(Memory, Size, Operations) || #{row := Row} = Memory <- larder_bench_work:memories(), lists:member(Row, Rows)].

shape(Shape, Size, Rows, Runs, Operations) ->
    case [C || #{shape := S} = C <- larder_bench_work:courses(), S =:= Shape, wanted(C, Rows)] of
        [] -> [];
        Courses ->
            progress("~b: preparing ~s", [Size, Shape]),
            larder_bench_measure:with_data(
              Shape, Size,
              fun() -> lists:append([course(C, Size, Rows, Runs, Operations) || C <- Courses]) end)
    end.

wanted(#{steps := Steps}, Rows) -> lists:any(fun({_, Row, _}) -> lists:member(Row, Rows) end, Steps).

course(#{type := Type, shape := Shape, steps := [{First, _, _} | _]} = Course, Size, Rows, Runs, Operations) ->
    progress("~b: ~s of ~s, ~s and so on", [Size, Type, Shape, First]),
    [M || #{row := Row} = M <- larder_bench_measure:course(Course, Size, Runs, Operations), lists:member(Row, Rows)].

memory(#{name := Name} = Memory, Size, Rows) ->
    progress("~b: memory, ~s", [Size, Name]),
    larder_bench_memory:measure(Memory, Size, Rows).

progress(Format, Args) -> io:format(standard_error, "  " ++ Format ++ "~n", Args).
