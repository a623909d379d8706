%% @doc `make bench-growth': how evenly a table grows, from nothing to sixteen million rows {int,
%% int} in random order.
%%
%% Inserts are timed a million at a time, and the slowest million is compared with the median one.
%% (The slowest single insert is measured from Rust, where no virtual machine comes between.)
%%
%% Environment: `LARDER_BENCH_GROWTH' (rows in the end), `LARDER_BENCH_PART' (a million, if not
%% said), `LARDER_BENCH_RUNS' (of each part the best counts: what the system does now and then is
%% not the table's), `LARDER_BENCH_OUT'.
-module(larder_bench_growth).

-export([run/0]).

-define(ROWS, 16_000_000).
-define(PART, 1_000_000).
-define(RUNS, 3).
-define(HEAP, 65_536).
%% The most that Larder's slowest part may be, of the median one.
-define(TARGET, 1.5).

%% @doc Runs, prints the table and writes the file.
-spec run() -> ok.
run() ->
    Part = larder_bench_env:number("LARDER_BENCH_PART", ?PART),
    Parts = max(1, larder_bench_env:number("LARDER_BENCH_GROWTH", ?ROWS) div Part),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    Grown = [{Name, Type, least([grow(Side, Type, Parts, Part, Run) || Run <- lists:seq(1, Runs)])}
             || Type <- [set, ordered_set],
                {Name, Side} <- [{"ets", larder_bench_ets}, {"larder", larder_bench_larder}]],
    io:format("~nFrom nothing to ~b rows {int, int}, random order; parts of ~b inserts; of each the best of ~b runs~n~n"
              "~-13s ~-8s ~12s ~12s ~8s~n",
              [Parts * Part, Part, Runs, "type", "table", "median, ms", "slowest, ms", "ratio"]),
    lists:foreach(fun print/1, Grown),
    Lines = [[atom_to_list(Type), Name | [io_lib:format("~.3f", [F]) || F <- figures(Times)]]
             || {Name, Type, Times} <- Grown],
    Facts = larder_report:facts() ++ [{runs, Runs}, {rows_a_part, Part}],
    Header = ["type", "table", "median part (ms)", "slowest part (ms)", "ratio"],
    larder_bench_run:written(larder_bench_env:folder("growth"), "growth-ets.csv", Facts, Header,
                             Lines).

%% Nanoseconds of each part.
grow(Side, Type, Parts, Part, Run) ->
    io:format(standard_error, "  ~s, ~s grows, run ~b~n", [Type, Side, Run]),
    larder_bench_measure:in_own_process(
      fun() ->
              Place = larder_bench_rows:places(at_random, Parts * Part, 1),
              T = Side:new([Type]),
              Times = [larder_bench_measure:timed(fun() ->
                           ok = Side:grow(T, Place, I * Part + 1, (I + 1) * Part) end)
                       || I <- lists:seq(0, Parts - 1)],
              true = Side:delete(T),
              [Ns || {Ns, ok} <- Times]
      end, ?HEAP).

%% Part by part, the least of the runs: a pause of the table's own comes at the same rows each time.
least([Times]) -> Times;
least([A, B | Rest]) -> least([[min(X, Y) || {X, Y} <- lists:zip(A, B)] | Rest]).

%% Milliseconds of the median part and of the slowest one, and the second by the first.
figures(Times) ->
    {Median, Slowest} = {larder_bench_measure:median(Times), lists:max(Times)},
    [Median / 1.0e6, Slowest / 1.0e6, Slowest / Median].

print({Name, Type, Times}) ->
    [Median, Slowest, Ratio] = figures(Times),
    Mark = case Name of
               "larder" when Ratio =< ?TARGET -> io_lib:format("  (=< ~.1f: ok)", [?TARGET]);
               "larder" -> io_lib:format("  (=< ~.1f: -)", [?TARGET]);
               "ets" -> ""
           end,
    io:format("~-13s ~-8s ~12.1f ~12.1f ~8.2f~s~n", [Type, Name, Median, Slowest, Ratio, Mark]).
