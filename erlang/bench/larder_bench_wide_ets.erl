%% @doc The timed loops of the wide bench over `ets'.
-module(larder_bench_wide_ets).

-compile([export_all, nowarn_export_all]).

-define(TABLES, ets).
-include("larder_bench_wide_loops.hrl").
