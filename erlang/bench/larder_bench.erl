%% @doc `make bench': a few operations on rows of two integers, ets and Larder, at several sizes.
%%
%% Nanoseconds an operation, the median of five runs; which module goes first alternates from run to run. Every run
%% checks its answer. `LARDER_BENCH_SIZES=1000,1000000' chooses other sizes. The published studies of ETS are not here.
-module(larder_bench).

-export([main/0]).

-define(RUNS, 5).
-define(MODULES, [ets, larder]).

-type size() :: pos_integer().
-type prepared() :: #{table := term(), keys := [integer()], size := size()}.

%% @doc Runs everything, prints the tables and stops the node.
-spec main() -> no_return().
main() ->
    Status = try
                 [] = [M || M <- ?MODULES, code:ensure_loaded(M) =/= {module, M}],
                 lists:foreach(fun size/1, sizes()),
                 0
             catch Class:Reason:Stack ->
                     io:format("make bench failed: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
                     1
             end,
    halt(Status, [{flush, true}]).

sizes() ->
    case os:getenv("LARDER_BENCH_SIZES") of
        false -> [1000, 65536, 1000000];
        Text -> [list_to_integer(S) || S <- string:lexemes(Text, ", ")]
    end.

size(Size) ->
    io:format("~n~b rows of two integers; ns an operation (medians of ~b)~n~n~-13s ~-38s ~10s ~10s ~8s~n",
              [Size, ?RUNS, "type", "operation", ets, larder, "ratio"]),
    lists:foreach(fun(Type) -> type(Type, Size) end, [set, ordered_set, duplicate_bag]).

type(Type, Size) ->
    Pairs = [run(Type, Size, Run) || Run <- lists:seq(1, ?RUNS)],
    lists:foreach(fun({Name, _, _}) -> line(Type, Name, Pairs) end, operations(Type)).

line(Type, Name, Pairs) ->
    Ets = median([value(ets, Name, Pair) || Pair <- Pairs]),
    Larder = median([value(larder, Name, Pair) || Pair <- Pairs]),
    io:format("~-13s ~-38s ~10.1f ~10.1f ~8.2f~n", [Type, Name, Ets, Larder, Ets / Larder]).

run(Type, Size, Run) ->
    Order = case Run rem 2 of 0 -> ?MODULES; 1 -> lists:reverse(?MODULES) end,
    Keys = keys(Size, Run),
    maps:from_list([{Mod, in_own_process(fun() -> measure(Mod, Type, Size, Keys) end)} || Mod <- Order]).

value(Mod, Name, Pair) -> map_get(Name, map_get(Mod, Pair)).

%% Every key once, in random order; the same order for both modules.
keys(Size, Run) ->
    _ = rand:seed(exsss, {Size, Run, 7}),
    [K || {_, K} <- lists:sort([{rand:uniform(), K} || K <- lists:seq(1, Size)])].

in_own_process(Fun) ->
    Parent = self(),
    {Pid, Monitor} = spawn_opt(fun() -> Parent ! {self(), Fun()} end, [monitor, {min_heap_size, 1_000_000}]),
    receive
        {Pid, Result} -> demonitor(Monitor, [flush]), Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

-spec measure(module(), atom(), size(), [integer()]) -> #{string() => float()}.
measure(Mod, Type, Size, Keys) ->
    Prepared = #{table => Mod:new(bench, [Type, public]), keys => Keys, size => Size},
    Measured = [{Name, measured(Mod, Unit, Fun, Prepared)} || {Name, Unit, Fun} <- operations(Type)],
    Mod:delete(map_get(table, Prepared)),
    maps:from_list(Measured).

measured(Mod, value, Fun, Prepared) ->
    Fun(Mod, Prepared);
measured(Mod, time, Fun, Prepared) ->
    erlang:garbage_collect(),
    Start = erlang:monotonic_time(),
    Operations = Fun(Mod, Prepared),
    Time = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond),
    Time / Operations.

%% Name, what is measured, and the work, which returns the number of operations (or the value itself). They run in this
%% order on one table.
-spec operations(atom()) -> [{string(), time | value, fun((module(), prepared()) -> number())}].
operations(Type) ->
    [{"insert, random order", time, fun insert/2},
     {"memory (bytes a row)", value, fun memory/2},
     {"lookup, random", time, fun lookup/2},
     {"member, absent", time, fun absent/2},
     {"select_count, whole table (a row)", time, fun count/2}]
        ++ [{"update_counter, random", time, fun counter/2} || Type =/= duplicate_bag]
        ++ [Op || Type =:= ordered_set,
                  Op <- [{"first and next (a row)", time, fun walk/2},
                         {"select 100 rows by guards on the key", time, fun range/2}]]
        ++ [{"delete, random", time, fun delete/2}].

insert(Mod, #{table := T, keys := Keys, size := Size}) ->
    lists:foreach(fun(K) -> Mod:insert(T, {K, K}) end, Keys),
    Size = Mod:info(T, size).

memory(Mod, #{table := T, size := Size}) ->
    Mod:info(T, memory) * erlang:system_info(wordsize) / Size.

lookup(Mod, #{table := T, keys := Keys, size := Size}) ->
    lists:foreach(fun(K) -> [{K, K}] = Mod:lookup(T, K) end, Keys),
    Size.

absent(Mod, #{table := T, keys := Keys, size := Size}) ->
    lists:foreach(fun(K) -> false = Mod:member(T, -K) end, Keys),
    Size.

count(Mod, #{table := T, size := Size}) ->
    Half = Size div 2,
    Half = Mod:select_count(T, [{{'_', '$1'}, [{'=<', '$1', Half}], [true]}]),
    Size.

counter(Mod, #{table := T, keys := Keys, size := Size}) ->
    lists:foreach(fun(K) -> K1 = K + 1, K1 = Mod:update_counter(T, K, 1) end, Keys),
    Size.

walk(Mod, #{table := T, size := Size}) ->
    Size = walk(Mod, T, Mod:first(T), 0).

walk(_, _, '$end_of_table', N) -> N;
walk(Mod, T, Key, N) -> walk(Mod, T, Mod:next(T, Key), N + 1).

range(Mod, #{table := T, keys := Keys, size := Size}) ->
    Starts = lists:sublist([K || K <- Keys, K + 100 =< Size], 5),
    lists:foreach(
      fun(From) ->
          Spec = [{{'$1', '_'}, [{'>=', '$1', From}, {'<', '$1', From + 100}], ['$1']}],
          100 = length(Mod:select(T, Spec))
      end, Starts),
    length(Starts).

delete(Mod, #{table := T, keys := Keys, size := Size}) ->
    lists:foreach(fun(K) -> true = Mod:delete(T, K) end, Keys),
    0 = Mod:info(T, size),
    Size.

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).
