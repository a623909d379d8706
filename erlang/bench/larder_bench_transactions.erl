%% @doc Transactions for `make bench-scaling': each reads a row and writes it with a number that is
%% greater by one, in a transaction of Larder or under a mutex around a plain table of `ets'. The
%% mutex is a spinlock of `atomics', which takes no message.
-module(larder_bench_transactions).

-export([new_with/1, prefill/3, work/3, sound/2, delete/1]).

%% In tables of Larder, rows are changed in transactions, in those of `ets' under the mutex.
-record(bench, {tables :: larder | ets, table :: term(), done :: counters:counters_ref(),
                mutex :: atomics:atomics_ref()}).

%% How many processes have keys of their own.
-define(PARTS, 64).

-spec new_with([atom()]) -> {ok, #bench{}}.
new_with([Type, Side]) ->
    Tables = case Side of transactions -> larder; mutex -> ets end,
    {ok, #bench{tables = Tables, table = Tables:new(bench, [public, Type]),
                done = counters:new(1, []), mutex = atomics:new(1, [])}}.

-spec delete(#bench{}) -> true.
delete(#bench{tables = Tables, table = T}) -> Tables:delete(T).

-spec prefill(#bench{}, pos_integer(), 2) -> ok.
prefill(#bench{tables = Tables, table = T}, Range, 2) ->
    lists:foreach(fun(K) -> true = Tables:insert(T, {K, 0}) end, lists:seq(1, Range)).

%% @doc After a run: the rows of the range have as many increments as there were transactions.
-spec sound(#bench{}, pos_integer()) -> ok.
sound(#bench{tables = Tables, table = T, done = Done}, Range) ->
    Rows = Tables:tab2list(T),
    {Range, Range} = {length(Rows), lists:max([K || {K, _} <- Rows])},
    Sum = lists:sum([N || {_, N} <- Rows]),
    Sum = counters:get(Done, 1),
    ok.

%% @doc Works until told to stop; how many transactions that were, some in any case.
-spec work(#bench{}, larder_bench_scaling:mix(), pos_integer()) -> non_neg_integer().
work(#bench{done = All} = Bench, {_, _, _, {transaction, Keys}, Range, _}, Seed) ->
    Part = max(1, Range div ?PARTS),
    {From, Size} = case Keys of
                       own -> {Seed rem ?PARTS * Part + 1, Part};
                       shared -> {1, Range}
                   end,
    Done = until_stopped(Bench, From, Size, rand:mwc59_seed(Seed), 0),
    counters:add(All, 1, Done),
    Done.

until_stopped(Bench, From, Size, Random, Done) ->
    Next = some(Bench, From, Size, Random, 20),
    receive stop -> Done + 20
    after 0 -> until_stopped(Bench, From, Size, Next, Done + 20)
    end.

some(_, _, _, Random, 0) -> Random;
some(Bench, From, Size, Random, Left) ->
    ok = add_one(Bench, From + ((rand:mwc59_value32(Random) * Size) bsr 32)),
    some(Bench, From, Size, rand:mwc59(Random), Left - 1).

add_one(#bench{tables = larder, table = T}, Key) ->
    {atomic, ok} =
        larder:transaction([T], fun([View]) ->
                                        [{_, N}] = larder:lookup(View, Key),
                                        true = larder:insert(View, {Key, N + 1}),
                                        ok
                                end),
    ok;
add_one(#bench{tables = ets, table = T, mutex = Mutex}, Key) ->
    lock(Mutex),
    [{_, N}] = ets:lookup(T, Key),
    true = ets:insert(T, {Key, N + 1}),
    atomics:put(Mutex, 1, 0).

lock(Mutex) ->
    case atomics:compare_exchange(Mutex, 1, 0, 1) of
        ok -> ok;
        1 -> erlang:yield(), lock(Mutex)
    end.
