%% The loops that are timed. Two modules include this file, each with its own TABLES, so that every
%% call of the table's module is a direct one and both sides run the very same instructions around
%% it. A module that includes it has many/2.
%%
%% Every loop checks each answer. run/3 returns the number of operations.

-spec new([term()]) -> term().
new(Options) -> ?TABLES:new(bench, [public | Options]).

-spec delete(term()) -> true.
delete(T) -> ?TABLES:delete(T).

-spec rows(term()) -> non_neg_integer().
rows(T) -> ?TABLES:info(T, size).

%% Bytes, by what the table says of itself.
-spec memory(term()) -> non_neg_integer().
memory(T) -> ?TABLES:info(T, memory) * erlang:system_info(wordsize).

-spec run(larder_bench_work:step(), term(), larder_bench_rows:data()) -> pos_integer().
run(insert_up, T, #{size := N}) -> insert_up(T, 1, N), N = rows(T);
run(lookup_up, T, #{size := N}) -> lookup_up(T, 1, N), N;
run(counter_up, T, #{size := N}) -> counter_up(T, 1, N), N;
run(delete_up, T, #{size := N}) -> delete_up(T, 1, N), 0 = rows(T), N;
run(insert, T, #{size := N, insert := Keys}) -> insert(T, Keys), N = rows(T);
run(lookup, T, #{size := N, visit := Keys}) -> lookup(T, Keys), N;
run(miss, T, #{size := N, visit := Keys}) -> miss(T, Keys, N), N;
run(counter, T, #{size := N, visit := Keys}) -> counter(T, Keys), N;
run(delete, T, #{size := N, visit := Keys}) -> delete(T, Keys), 0 = rows(T), N;
run(lookup_many, T, #{lists := [Keys | _] = Lists}) ->
    lookup_many(T, Lists), length(Keys) * length(Lists);
run(next, T, #{size := N, sum := Sum}) -> Sum = next(T, ?TABLES:first(T), 0), N;
run(select_count, T, #{size := N}) ->
    Half = N div 2,
    Half = ?TABLES:select_count(T, [{{'_', '$1'}, [{'=<', '$1', Half}], [true]}]),
    N;
run(match_one, T, #{size := N}) ->
    Half = N div 2,
    [{Half, Half}] = ?TABLES:match_object(T, {'_', Half}),
    N;
run(match_all, T, #{size := N}) ->
    N = length(?TABLES:match_object(T, {'_', '_'}));
run(foldl, T, #{size := N, sum := Sum}) ->
    Sum = ?TABLES:foldl(fun({_, V}, S) -> S + V end, 0, T),
    N;
run(insert_mixed, T, #{size := N, insert := Pairs}) -> insert_mixed(T, Pairs), N = rows(T);
run(lookup_mixed, T, #{size := N, visit := Pairs}) -> lookup_mixed(T, Pairs), N;
run(delete_mixed, T, #{size := N, visit := Pairs}) -> delete_mixed(T, Pairs), 0 = rows(T), N.

insert_up(T, K, N) when K =< N -> true = ?TABLES:insert(T, {K, K}), insert_up(T, K + 1, N);
insert_up(_, _, _) -> ok.

lookup_up(T, K, N) when K =< N -> [{K, K}] = ?TABLES:lookup(T, K), lookup_up(T, K + 1, N);
lookup_up(_, _, _) -> ok.

counter_up(T, K, N) when K =< N ->
    K1 = K + 1,
    K1 = ?TABLES:update_counter(T, K, 1),
    counter_up(T, K1, N);
counter_up(_, _, _) -> ok.

delete_up(T, K, N) when K =< N -> true = ?TABLES:delete(T, K), delete_up(T, K + 1, N);
delete_up(_, _, _) -> ok.

insert(T, [K | Ks]) -> true = ?TABLES:insert(T, {K, K}), insert(T, Ks);
insert(_, []) -> ok.

lookup(T, [K | Ks]) -> [{K, K}] = ?TABLES:lookup(T, K), lookup(T, Ks);
lookup(_, []) -> ok.

%% Keys are 1..N, so that K + N is none.
miss(T, [K | Ks], N) -> [] = ?TABLES:lookup(T, K + N), miss(T, Ks, N);
miss(_, [], _) -> ok.

counter(T, [K | Ks]) ->
    K1 = K + 1,
    K1 = ?TABLES:update_counter(T, K, 1),
    counter(T, Ks);
counter(_, []) -> ok.

delete(T, [K | Ks]) -> true = ?TABLES:delete(T, K), delete(T, Ks);
delete(_, []) -> ok.

lookup_many(T, [Keys | Lists]) -> found(Keys, many(T, Keys)), lookup_many(T, Lists);
lookup_many(_, []) -> ok.

found([K | Ks], [[{K, K}] | Rows]) -> found(Ks, Rows);
found([], []) -> ok.

next(_, '$end_of_table', Sum) -> Sum;
next(T, K, Sum) -> next(T, ?TABLES:next(T, K), Sum + K).

insert_mixed(T, [{K, I} | Pairs]) -> true = ?TABLES:insert(T, ?MIXED(K, I)), insert_mixed(T, Pairs);
insert_mixed(_, []) -> ok.

lookup_mixed(T, [{K, I} | Pairs]) ->
    [{K, I, #{id := I}, [I | _]}] = ?TABLES:lookup(T, K),
    lookup_mixed(T, Pairs);
lookup_mixed(_, []) -> ok.

delete_mixed(T, [{K, _} | Pairs]) -> true = ?TABLES:delete(T, K), delete_mixed(T, Pairs);
delete_mixed(_, []) -> ok.

%% Fills a table with rows 1..N without any list of keys: what is measured is the memory of the
%% table alone.
-spec fill(term(), larder_bench_rows:shape(), in_order | at_random, pos_integer()) -> ok.
fill(T, Shape, Order, N) ->
    Place = larder_bench_rows:places(Order, N, 1),
    fill(T, Shape, Place, 1, N),
    N = rows(T),
    lists:foreach(fun(I) -> Row = larder_bench_rows:row(Shape, I),
                            [Row] = ?TABLES:lookup(T, element(1, Row)) end,
                  lists:seq(1, min(N, 1000))).

fill(T, Shape, Place, I, N) when I =< N ->
    true = ?TABLES:insert(T, larder_bench_rows:row(Shape, Place(I))),
    fill(T, Shape, Place, I + 1, N);
fill(_, _, _, _, _) -> ok.

%% Puts the rows of the places From..To into the table.
-spec grow(term(), fun((pos_integer()) -> pos_integer()), pos_integer(), pos_integer()) -> ok.
grow(T, Place, I, To) when I =< To ->
    K = Place(I),
    true = ?TABLES:insert(T, {K, K}),
    grow(T, Place, I + 1, To);
grow(T, _, _, To) -> To = rows(T), ok.

%% Puts the rows From..To into the table while others put other rows there.
-spec grow_beside(term(), pos_integer(), pos_integer()) -> ok.
grow_beside(T, K, To) when K =< To -> true = ?TABLES:insert(T, {K, K}), grow_beside(T, K + 1, To);
grow_beside(_, _, _) -> ok.

%% Whether the table has the rows 1..N.
-spec whole(term(), pos_integer()) -> ok.
whole(T, N) ->
    N = rows(T),
    Sum = N * (N + 1) div 2,
    Sum = next(T, ?TABLES:first(T), 0),
    ok.
