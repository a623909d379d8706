%% @doc The timed loops of the wide bench over `ets'.
-module(larder_bench_wide_ets).

-export([new/2, delete/1, memory/1, contents/1, prepare/3, fill/2, run/3, answers/3]).

-define(TABLES, ets).
-include("larder_bench_wide_loops.hrl").
