%% @doc A table that loses a row: what a study must find.
-module(larder_bench_planted).

-export([run/3, new/1, delete/1, memory/1]).

%% @doc As larder_bench_ets.
-spec new([term()]) -> term().
new(Options) -> larder_bench_ets:new(Options).

%% @doc As larder_bench_ets.
-spec delete(term()) -> true.
delete(Table) -> larder_bench_ets:delete(Table).

%% @doc As larder_bench_ets.
-spec memory(term()) -> non_neg_integer().
memory(Table) -> larder_bench_ets:memory(Table).

%% @doc As larder_bench_ets, but there is no row 11 when rows are looked up.
-spec run(larder_bench_work:step(), term(), larder_bench_rows:data()) -> pos_integer().
run(lookup_up, Table, Data) ->
    true = ets:delete(Table, 11),
    larder_bench_ets:run(lookup_up, Table, Data);
run(Step, Table, Data) -> larder_bench_ets:run(Step, Table, Data).
