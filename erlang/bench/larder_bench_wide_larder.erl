%% @doc The timed loops of the wide bench over `larder'.
-module(larder_bench_wide_larder).

-export([new/2, delete/1, memory/1, contents/1, prepare/3, fill/2, run/3, answers/3]).

-define(TABLES, larder).
-include("larder_bench_wide_loops.hrl").
