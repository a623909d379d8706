%% @doc `make bench-caches-erlang': caches of processes, as one writes them on `ets', beside tables
%% of Larder that evict.
%%
%% A cache on `ets' is pruned the way Cachex does it when it is limited "by events": each write
%% tells a process, and when that finds more entries than the limit, it reads the keys with the
%% times at which they were written, sorts them, and deletes the oldest until a tenth of the limit
%% is free. Between two prunings the cache is over its limit.
%%
%% Processes request the keys of a trace, one after the other, and put what is not there. The hits
%% are those of one process, of the second half of the trace, when the cache is full. The rate is
%% that of all processes together, each of which begins at another place of the trace. Sides take
%% turns, and the median of the turns counts. `most' is the greatest number of entries that was
%% seen, by a look at one in 16 requests, in percent of the limit. A hit with another key's value is
%% an error.
%%
%% Environment: `LARDER_BENCH_CAPACITY' (entries), `LARDER_BENCH_OPERATIONS' (requests of a trace),
%% `LARDER_BENCH_RUNS' (turns), `LARDER_BENCH_OUT'.
-module(larder_bench_caches).

-export([run/0]).

-define(CAPACITY, 10_000).
-define(REQUESTS, 1_000_000).
-define(RUNS, 3).
%% How many times as many keys are requested as fit.
-define(KEYS, 20).
-define(PROCESSES, [1, 2]).
%% The size is looked at once in so many requests.
-define(LOOK, 16).

%% The keys of a trace, 32 bits each.
-type trace() :: binary().
-record(cache, {table :: ets:table() | larder:table(), pruner = none :: pid() | none}).

%% A side: its name, and how a cache is made, read, written and given back.
-record(side, {name :: string(),
               new :: fun((pos_integer()) -> #cache{}),
               get :: fun((#cache{}, non_neg_integer()) -> {ok, term()} | none),
               put :: fun((#cache{}, non_neg_integer(), term()) -> true),
               size :: fun((#cache{}) -> non_neg_integer())}).

%% @doc Measures everything, prints the table and writes the file.
-spec run() -> ok.
run() ->
    Capacity = larder_bench_env:number("LARDER_BENCH_CAPACITY", ?CAPACITY),
    Requests = larder_bench_env:number("LARDER_BENCH_OPERATIONS", ?REQUESTS),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    io:format("~nCaches of ~b entries: hits in 100, and millions of requests a second~n~n"
              "~-16s ~-16s ~8s ~11s ~12s ~8s~n~s~n",
              [Capacity, "trace", "cache", "hits", "1 process", "2 processes", "most",
               lists:duplicate(76, $-)]),
    Lines = lists:append([of_trace(Trace, Capacity, Runs) || Trace <- traces(Requests, Capacity)]),
    Facts = larder_report:facts() ++ [{runs, Runs}, {capacity, Capacity}, {requests, Requests}],
    Header = ["trace", "cache", "hits in 100", "1 process", "2 processes", "most"],
    larder_bench_run:written(larder_bench_env:folder("caches-erlang"), "caches-erlang.csv", Facts,
                             Header, Lines).

of_trace({Name, Trace}, Capacity, Runs) ->
    Turns = [{Side#side.name, turn(Side, Trace, Capacity)}
             || _ <- lists:seq(1, Runs), Side <- sides()],
    [line(Name, Side#side.name, [Turn || {Of, Turn} <- Turns, Of =:= Side#side.name])
     || Side <- sides()].

line(Trace, Cache, Turns) ->
    [Hits, One, Two, Most] =
        [larder_bench_measure:median([element(I, Turn) || Turn <- Turns]) || I <- lists:seq(1, 4)],
    Texts = [io_lib:format("~.*f", [Digits, Figure])
             || {Digits, Figure} <- [{1, Hits}, {2, One}, {2, Two}, {1, Most}]],
    io:format("~-16s ~-16s ~8s ~11s ~12s ~7s%~n", [Trace, Cache | Texts]),
    [Trace, Cache | Texts].

%% Hits in 100, rates, and the most entries in percent of the limit.
turn(Side, Trace, Capacity) ->
    {Hits, First} = hits(Side, Trace, Capacity),
    [{One, Second}, {Two, Third}] = [rate(Side, Trace, Capacity, P) || P <- ?PROCESSES],
    {Hits, One, Two, 100.0 * lists:max([First, Second, Third]) / Capacity}.

hits(Side, Trace, Capacity) ->
    Half = byte_size(Trace) div 8 * 4,
    <<First:Half/binary, Second/binary>> = Trace,
    with_cache(Side, Capacity, fun(Cache) ->
        {_, Most} = requests(Side, Cache, First),
        {Hits, More} = requests(Side, Cache, Second),
        {100.0 * Hits / (byte_size(Second) div 4), max(Most, More)}
    end).

%% Millions of requests a second of so many processes, on a cache that the trace has filled.
rate(Side, Trace, Capacity, Processes) ->
    Places = [byte_size(Trace) div 4 * I div Processes * 4 || I <- lists:seq(0, Processes - 1)],
    Parts = [begin
                 <<Before:Place/binary, Rest/binary>> = Trace,
                 <<Rest/binary, Before/binary>>
             end || Place <- Places],
    with_cache(Side, Capacity, fun(Cache) ->
        Quarter = byte_size(Trace) div 16 * 4,
        {_, Filled} = requests(Side, Cache, binary:part(Trace, 0, Quarter)),
        {Time, Mosts} = timer:tc(fun() -> together(Side, Cache, Parts) end),
        {Processes * (byte_size(Trace) div 4) / Time, lists:max([Filled | Mosts])}
    end).

%% Each part by a process of its own. Gives the most entries that each has seen.
together(Side, Cache, Parts) ->
    Self = self(),
    Workers = [spawn_monitor(fun() -> Self ! {done, self(), requests(Side, Cache, Part)} end)
               || Part <- Parts],
    [Most || {_, Most} <- larder_bench_measure:answers(Workers)].

with_cache(#side{new = New}, Capacity, Fun) ->
    Cache = New(Capacity),
    try Fun(Cache) after drop(Cache) end.

drop(#cache{table = Table, pruner = none}) -> true = larder:delete(Table);
drop(#cache{table = Table, pruner = Pruner}) ->
    Pruner ! {stop, self()},
    receive {stopped, Pruner} -> true = ets:delete(Table) end.

%% Hits, and the most entries that were seen.
-spec requests(#side{}, #cache{}, trace()) -> {non_neg_integer(), non_neg_integer()}.
requests(Side, Cache, Trace) -> requests(Side, Cache, Trace, 0, ?LOOK, 0).

requests(Side, Cache, Trace, Hits, 0, Most) ->
    requests(Side, Cache, Trace, Hits, ?LOOK, max(Most, (Side#side.size)(Cache)));
requests(Side, Cache, <<Key:32, Trace/binary>>, Hits, Look, Most) ->
    Value = value(Key),
    case (Side#side.get)(Cache, Key) of
        {ok, Value} -> requests(Side, Cache, Trace, Hits + 1, Look - 1, Most);
        none ->
            true = (Side#side.put)(Cache, Key, Value),
            requests(Side, Cache, Trace, Hits, Look - 1, Most);
        {ok, Other} -> error({wrong_value, Side#side.name, Key, Other})
    end;
requests(_, _, <<>>, Hits, _, Most) -> {Hits, Most}.

value(Key) -> {Key, Key bxor 16#5555}.

%% --- the sides -----------------------------------------------------------------------------------

sides() -> [pruned() | [evicting(Policy) || Policy <- [tinylfu, lru]]].

evicting(Policy) ->
    #side{name = "larder " ++ atom_to_list(Policy),
          new = fun(Capacity) ->
                    Options = [set, public, {read_concurrency, true}, {write_concurrency, true},
                               {max_size, Capacity}, {evict, Policy}],
                    #cache{table = larder:new(cache, Options)}
                end,
          get = fun(#cache{table = Table}, Key) ->
                    case larder:lookup(Table, Key) of
                        [{_, Value}] -> {ok, Value};
                        [] -> none
                    end
                end,
          put = fun(#cache{table = Table}, Key, Value) -> larder:insert(Table, {Key, Value}) end,
          size = fun(#cache{table = Table}) -> larder:info(Table, size) end}.

pruned() ->
    #side{name = "ets pruned",
          new = fun(Capacity) ->
                    Options = [set, public, {read_concurrency, true}, {write_concurrency, true}],
                    Table = ets:new(cache, Options),
                    #cache{table = Table,
                           pruner = spawn_link(fun() -> pruner(Table, Capacity) end)}
                end,
          get = fun(#cache{table = Table}, Key) ->
                    case ets:lookup(Table, Key) of
                        [{_, _Written, Value}] -> {ok, Value};
                        [] -> none
                    end
                end,
          put = fun(#cache{table = Table, pruner = Pruner}, Key, Value) ->
                    true = ets:insert(Table, {Key, erlang:monotonic_time(), Value}),
                    Pruner ! written,
                    true
                end,
          size = fun(#cache{table = Table}) -> ets:info(Table, size) end}.

%% Prunes the table whenever a write leaves it larger than the limit.
pruner(Table, Capacity) ->
    receive
        written ->
            prune(Table, Capacity, ets:info(Table, size)),
            pruner(Table, Capacity);
        {stop, From} -> From ! {stopped, self()}
    end.

prune(Table, Capacity, Size) when Size > Capacity ->
    Written = ets:select(Table, [{{'$1', '$2', '_'}, [], [{{'$2', '$1'}}]}]),
    Oldest = lists:sublist(lists:sort(Written), Size - Capacity + Capacity div 10),
    [true = ets:delete(Table, Key) || {_, Key} <- Oldest],
    ok;
prune(_, _, _) -> ok.

%% --- traces --------------------------------------------------------------------------------------

%% Popularity by Zipf's law, the same with keys in between that are requested once, and a loop over
%% one and a half times as many keys as fit.
-spec traces(pos_integer(), pos_integer()) -> [{string(), trace()}].
traces(Requests, Capacity) ->
    Keys = ?KEYS * Capacity,
    [{"zipf 0.9", zipf(Requests, Keys, 0.9, fun(_, Rank) -> Rank end)},
     {"zipf 1.2", zipf(Requests, Keys, 1.2, fun(_, Rank) -> Rank end)},
     {"zipf and scans",
      zipf(Requests, Keys, 0.9,
           fun(I, _) when I div 1000 rem 4 =:= 3 -> Keys + I;
              (_, Rank) -> Rank
           end)},
     {"loop", << <<(I rem (Capacity * 3 div 2)):32>> || I <- lists:seq(0, Requests - 1) >>}].

%% `Key' makes the key of the I-th request from its rank, which counts from 0.
zipf(Requests, Keys, Exponent, Key) ->
    {Weights, Sum} = lists:mapfoldl(fun(Rank, Sum) ->
                                            New = Sum + math:pow(Rank, -Exponent),
                                            {New, New}
                                    end, 0.0, lists:seq(1, Keys)),
    Sums = list_to_tuple(Weights),
    State = rand:seed_s(exsss, {2026, 11, Keys}),
    {Parts, _} = lists:mapfoldl(fun(I, S0) ->
                                        {Unit, S} = rand:uniform_s(S0),
                                        {<<(Key(I, rank(Sums, Unit * Sum, 1, Keys) - 1)):32>>, S}
                                end, State, lists:seq(0, Requests - 1)),
    iolist_to_binary(Parts).

%% The first place from Low to High whose sum is greater than Wanted, or High.
rank(_, _, High, High) -> High;
rank(Sums, Wanted, Low, High) ->
    Middle = (Low + High) div 2,
    case element(Middle, Sums) > Wanted of
        true -> rank(Sums, Wanted, Low, Middle);
        false -> rank(Sums, Wanted, Middle + 1, High)
    end.
