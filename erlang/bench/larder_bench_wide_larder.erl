%% @doc The timed loops of the wide bench over `larder'.
-module(larder_bench_wide_larder).

-compile([export_all, nowarn_export_all]).

-define(TABLES, larder).
-include("larder_bench_wide_loops.hrl").
