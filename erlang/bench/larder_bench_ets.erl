%% @doc The timed loops over `ets'.
-module(larder_bench_ets).

-export([run/3, new/1, delete/1, memory/1, fill/4, grow/4, grow_beside/3, whole/2, new_with/1,
         prefill/3, work/3, sound/2]).

-define(TABLES, ets).
-include("larder_bench_rows.hrl").
-include("larder_bench_loops.hrl").
-include("larder_bench_workers.hrl").

many(T, Keys) -> [ets:lookup(T, K) || K <- Keys].
