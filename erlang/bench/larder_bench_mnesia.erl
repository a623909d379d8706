%% @doc `make bench-mnesia': Mnesia, RAM only, on `ets', on Larder, and with Larder as its backend.
%%
%% `scripts/mnesia.sh' compiles Mnesia's sources twice, as they are and with the parse transform
%% `larder_transform'. The third side is Mnesia as it is with tables of `larder_copies'. Each side
%% runs in an emulator of its own; all do every operation in turns, and what they answer has to be
%% the same.
%%
%% Environment: `LARDER_BENCH_RUNS' (how often each side is measured; the medians count),
%% `LARDER_BENCH_MNESIA' (rows of a table, and calls of an operation), `LARDER_BENCH_OUT'.
-module(larder_bench_mnesia).

-export([run/0]).
%% Called in the emulators that are measured.
-export([start/2, measure/1]).

-define(RUNS, 9).
-define(ROWS, 2000).
%% Words.
-define(HEAP, 2_000_000).
-define(TABLES, [five, twenty, sorted, bag, indexed, counter, fresh]).
-define(SIDES, [ets, larder, backend]).
%% Mnesia does this with no backend.
-define(NO_BACKEND, "read in an activity of kind ets").

%% Runs of one operation: what is to be done before, untimed, and the work, which gives the number
%% of operations and something by which both sides are compared.
-type operation() :: {Name :: string(),
                      Before :: fun(() -> term()), Work :: fun(() -> {pos_integer(), term()})}.

%% @doc Measures everything, prints the table and writes the file.
-spec run() -> ok.
run() ->
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    Rows = larder_bench_env:number("LARDER_BENCH_MNESIA", ?ROWS),
    Folder = larder_bench_env:folder("mnesia"),
    Sides = [begin
                 {ok, Peer, _} =
                     peer:start_link(#{connection => standard_io, args => arguments(Side)}),
                 ok = peer:call(Peer, ?MODULE, start, [Rows, Side], 60_000),
                 {Side, Peer}
             end || Side <- ?SIDES],
    io:format("~nMnesia, tables of ~b rows in RAM, nanoseconds an operation (medians of ~b runs)~n~n"
              "~-60s ~12s ~12s ~7s ~12s ~7s~n~s~n",
              [Rows, Runs, "operation", "ets", "larder", "ratio", "backend", "ratio",
               lists:duplicate(115, $-)]),
    Lines = [line(N, Name, Sides, Runs) || {N, {Name, _, _}} <- numbered(operations(Rows))],
    lists:foreach(fun({_, Peer}) -> peer:stop(Peer) end, Sides),
    io:format("~n~b of ~b operations are slower on Larder, ~b with the backend~n",
              [slower(larder, Lines), length(Lines), slower(backend, Lines)]),
    Facts = larder_report:facts()
        ++ [{mnesia, os:getenv("LARDER_BENCH_MNESIA_VERSION", "unknown")}, {rows, Rows},
            {runs, Runs}],
    Header = ["operation", "ets_ns", "larder_ns", "ratio", "backend_ns", "backend_ratio"],
    larder_bench_run:written(Folder, "mnesia.csv", Facts, Header, [csv(L) || L <- Lines]).

slower(Side, Lines) ->
    length([x || {_, #{ets := Ets} = Times} <- Lines, maps:get(Side, Times, 0) > Ets]).

%% Of the two Mnesias, the one that is meant comes first in the code path.
arguments(Side) ->
    Mnesia = case Side of larder -> "larder"; _ -> "ets" end,
    Beams = [filename:absname(filename:join(["_build", "mnesia", Mnesia, "mnesia", "ebin"])),
             filename:dirname(code:which(larder)), filename:dirname(code:which(?MODULE))],
    lists:append([["-pa", Dir] || Dir <- lists:reverse(Beams)]).

%% A first turn is not counted. The side that begins changes from turn to turn.
line(N, Name, Sides, Runs) ->
    Able = [S || {Side, _} = S <- Sides, Side =/= backend orelse Name =/= ?NO_BACKEND],
    _ = [measured(N, Side) || Side <- Able],
    Turns = [turn(N, larder_bench_measure:rotated(Run, Able)) || Run <- lists:seq(1, Runs)],
    Median = fun(Side) -> larder_bench_measure:median([maps:get(Side, Turn) || Turn <- Turns]) end,
    Times = maps:from_list([{Side, Median(Side)} || {Side, _} <- Able]),
    io:format("~-60s~s~n", [Name, [[$\s | cell(Wide, Cell)] || {Wide, Cell} <- cells(Times)]]),
    {Name, Times}.

cells(#{ets := Ets, larder := Larder} = Times) ->
    [{12, Ets}, {12, Larder}, {7, Larder / Ets}
     | case Times of
           #{backend := Backend} -> [{12, Backend}, {7, Backend / Ets}];
           #{} -> [{12, none}, {7, none}]
       end].

cell(Wide, none) -> io_lib:format("~*s", [Wide, "-"]);
cell(12, Time) -> io_lib:format("~12.1f", [Time]);
cell(7, Ratio) -> io_lib:format("~7.2f", [Ratio]).

turn(N, Sides) ->
    Measured = [{Side, measured(N, S)} || {Side, _} = S <- Sides],
    case lists:usort([Answer || {_, {_, Answer}} <- Measured]) of
        [_] -> maps:from_list([{Side, Time} || {Side, {Time, _}} <- Measured]);
        _ -> error({different_answers, N, Measured})
    end.

measured(N, {_, Peer}) -> peer:call(Peer, ?MODULE, measure, [N], 600_000).

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

csv({Name, Times}) ->
    [{text, Name} | [case Cell of
                         none -> "";
                         _ when Wide =:= 12 -> io_lib:format("~.1f", [Cell]);
                         _ -> io_lib:format("~.3f", [Cell])
                     end || {Wide, Cell} <- cells(Times)]].

%%% In the emulators that are measured

%% @doc Starts Mnesia and fills its tables.
-spec start(pos_integer(), ets | larder | backend) -> ok.
start(Rows, Side) ->
    persistent_term:put(?MODULE, list_to_tuple(operations(Rows))),
    ok = application:start(mnesia),
    ok = storage(Side),
    lists:foreach(fun(Table) ->
                          {atomic, ok} = create(Table, [{attributes, fields(Table)}
                                                        | options(Table)])
                  end, ?TABLES),
    ok = mnesia:wait_for_tables(?TABLES, 60_000),
    lists:foreach(fun(Table) -> fill(Table, Rows) end, ?TABLES -- [fresh, counter]).

storage(backend) ->
    {ok, Storage} = larder_mnesia:register(),
    persistent_term:put({?MODULE, storage}, Storage);
storage(_) ->
    persistent_term:put({?MODULE, storage}, ram_copies).

create(Table, Options) ->
    mnesia:create_table(Table, [{persistent_term:get({?MODULE, storage}), [node()]} | Options]).

options(sorted) -> [{type, ordered_set}];
options(bag) -> [{type, bag}];
options(indexed) -> [{index, [group]}];
options(_) -> [].

fields(twenty) -> [key | [list_to_atom("field" ++ integer_to_list(N)) || N <- lists:seq(2, 20)]];
fields(counter) -> [key, count];
fields(_) -> [key, group, name, size, state].

fill(Table, Rows) ->
    lists:foreach(fun(I) -> mnesia:dirty_write(row(Table, I)) end, lists:seq(1, Rows)).

%% Ten rows a group, and in a bag five rows a key.
row(twenty, I) ->
    {twenty, I, active, 1, 1000 * I, <<"sixteen bytes!!!">>, 2.5, "a string", undefined, [1, 2, 3],
     {2026, 11, 23}, true, I,
     <<"short">>, [{key, I}], none, -I, 1 bsl 40 + I, infinity, [], ok};
row(counter, I) -> {counter, I, 0};
row(bag, I) -> {bag, I div 5, I, <<"a name">>, 10 * I, ready};
row(Table, I) -> {Table, I, I div 10, <<"a name">>, 10 * I, ready}.

%% @doc Does an operation; nanoseconds for one, and by what the sides are compared.
-spec measure(pos_integer()) -> {float(), term()}.
measure(N) ->
    {_, Before, Work} = element(N, persistent_term:get(?MODULE)),
    larder_bench_measure:in_own_process(
      fun() ->
              _ = Before(),
              {Ns, {Calls, Answer}} = larder_bench_measure:timed(Work),
              {Ns / Calls, Answer}
      end, ?HEAP).

%%% The operations

-spec operations(pos_integer()) -> [operation()].
operations(Rows) ->
    transactions(Rows) ++ in_transactions(Rows) ++ dirty(Rows) ++ searches(Rows)
        ++ whole_tables(Rows).

transactions(Rows) ->
    Calls = max(1, Rows div 2),
    [calls("transaction of one write", Calls,
           fun(I) -> done(fun() -> mnesia:write(row(five, I)) end) end),
     calls("transaction of one write, 20 fields", Calls,
           fun(I) -> done(fun() -> mnesia:write(row(twenty, I)) end) end),
     calls("transaction of one write, bag", Calls,
           fun(I) -> done(fun() -> mnesia:write(row(bag, I)) end) end),
     calls("transaction of one read", Calls,
           fun(I) -> done(fun() -> sum(mnesia:read(five, I)) end) end),
     calls("transaction of one read, 20 fields", Calls,
           fun(I) -> done(fun() -> sum(mnesia:read(twenty, I)) end) end),
     calls("transaction of a read and a write of the row", Calls,
           fun(I) -> done(fun() -> [R] = mnesia:wread({five, I}), mnesia:write(R) end) end),
     calls("transaction of a write and a delete", Calls,
           fun(I) -> done(fun() -> mnesia:write(row(fresh, I)), mnesia:delete({fresh, I}) end) end),
     {"20 transactions of 750 writes, a write", fun clear_fresh/0,
      fun() ->
              Writes = max(1, Calls * 3 div 4),
              _ = each(20, fun(T) ->
                      done(fun() ->
                          many(Writes, fun(I) -> mnesia:write(row(fresh, T * Writes + I)) end)
                      end)
                  end),
              {20 * Writes, mnesia:table_info(fresh, size)}
      end},
     {"50 transactions of 10 nested ones, a nested one", fun clear_fresh/0,
      fun() ->
              _ = each(50, fun(T) ->
                      done(fun() ->
                          many(10, fun(I) ->
                              done(fun() -> mnesia:write(row(fresh, 10 * T + I)) end)
                          end)
                      end)
                  end),
              {500, mnesia:table_info(fresh, size)}
      end},
     {"nested transactions 10 deep", fun clear_fresh/0,
      fun() -> {N, _} = each(50, fun(T) -> deep(10, T) end),
               {10 * N, mnesia:table_info(fresh, size)} end}].

in_transactions(Rows) ->
    [in_one("read in one transaction", Rows, fun(I) -> sum(mnesia:read(five, I)) end),
     in_one("read in one transaction, 20 fields", Rows, fun(I) -> sum(mnesia:read(twenty, I)) end),
     in_one("read in one transaction, bag", Rows, fun(I) -> sum(mnesia:read(bag, I div 5)) end),
     in_one("read of a row written in the transaction", Rows div 2,
            fun(I) -> mnesia:write(row(five, I)), sum(mnesia:read(five, I)) end),
     in_one("index_read in one transaction", Rows div 10,
            fun(I) -> sum(mnesia:index_read(indexed, I, group)) end),
     in_one("select with the key bound, in one transaction", Rows,
            fun(I) -> sum(mnesia:select(five, bound(five, I))) end),
     a_row("select with the key unbound, in a transaction, a row", Rows,
           fun() -> done(fun() -> sum(mnesia:select(five, unbound(five))) end) end),
     in_one("match_object with the key bound, in one transaction", Rows,
            fun(I) -> sum(mnesia:match_object({five, I, '_', '_', '_', '_'})) end),
     a_row("next through an ordered_set in a transaction", Rows,
           fun() ->
               done(fun() -> steps(sorted, mnesia:first(sorted), fun mnesia:next/2, 0) end) end),
     a_row("foldl in a transaction, a row", Rows, fun() -> folded(five) end),
     a_row("foldl in a transaction, 20 fields, a row", Rows, fun() -> folded(twenty) end)].

dirty(Rows) ->
    [calls("dirty_read", Rows, fun(I) -> sum(mnesia:dirty_read(five, I)) end),
     calls("dirty_read, 20 fields", Rows, fun(I) -> sum(mnesia:dirty_read(twenty, I)) end),
     calls("dirty_read, ordered_set", Rows, fun(I) -> sum(mnesia:dirty_read(sorted, I)) end),
     calls("dirty_read, bag", Rows, fun(I) -> sum(mnesia:dirty_read(bag, I div 5)) end),
     calls("dirty_read of an absent key", Rows, fun(I) -> sum(mnesia:dirty_read(five, -I)) end),
     calls("dirty_write", Rows, fun(I) -> mnesia:dirty_write(row(five, I)) end),
     calls("dirty_write, 20 fields", Rows, fun(I) -> mnesia:dirty_write(row(twenty, I)) end),
     calls("dirty_write, ordered_set", Rows, fun(I) -> mnesia:dirty_write(row(sorted, I)) end),
     calls("dirty_write, bag", Rows, fun(I) -> mnesia:dirty_write(row(bag, I)) end),
     calls("dirty_write, indexed", Rows, fun(I) -> mnesia:dirty_write(row(indexed, I)) end),
     {"dirty_write of new rows", fun clear_fresh/0,
      fun() -> each(Rows, fun(I) -> mnesia:dirty_write(row(fresh, I)) end) end},
     {"dirty_delete", fun() -> fill(fresh, Rows) end,
      fun() -> each(Rows, fun(I) -> mnesia:dirty_delete(fresh, I) end) end},
     {"dirty_delete_object, bag", fun() -> fill(bag, Rows) end,
      fun() -> {N, Sum} = each(Rows, fun(I) -> mnesia:dirty_delete_object(row(bag, I)) end),
               {N, {Sum, mnesia:table_info(bag, size)}} end},
     {"dirty_update_counter", fun() -> mnesia:clear_table(counter) end,
      fun() -> each(Rows, fun(I) -> mnesia:dirty_update_counter(counter, I rem 100, 2) end) end},
     calls("dirty_index_read", Rows div 10,
           fun(I) -> sum(mnesia:dirty_index_read(indexed, I, group)) end),
     a_row("dirty_first and dirty_next, a row", Rows,
           fun() -> steps(five, mnesia:dirty_first(five), fun mnesia:dirty_next/2, 0) end),
     a_row("dirty_last and dirty_prev, ordered_set, a row", Rows,
           fun() -> steps(sorted, mnesia:dirty_last(sorted), fun mnesia:dirty_prev/2, 0) end),
     op(?NO_BACKEND,
        fun() -> mnesia:ets(fun() -> each(Rows, fun(I) -> sum(mnesia:read(five, I)) end) end) end),
     op("write in an activity of kind async_dirty",
        fun() ->
            mnesia:async_dirty(fun() -> each(Rows, fun(I) -> mnesia:write(row(five, I)) end) end)
        end)].

searches(Rows) ->
    [calls("dirty_select with the key bound", Rows,
           fun(I) -> sum(mnesia:dirty_select(five, bound(five, I))) end),
     calls("dirty_select with the key bound, 20 fields", Rows,
           fun(I) ->
               Head = list_to_tuple([twenty, I | lists:duplicate(19, '_')]),
               sum(mnesia:dirty_select(twenty, [{Head, [], ['$_']}]))
           end),
     a_row("dirty_select with the key unbound, a row", Rows,
           fun() -> sum(mnesia:dirty_select(five, unbound(five))) end),
     a_row("dirty_select with the key unbound, ordered_set, a row", Rows,
           fun() -> sum(mnesia:dirty_select(sorted, unbound(sorted))) end),
     calls("dirty_match_object with the key bound", Rows,
           fun(I) -> sum(mnesia:dirty_match_object({five, I, '_', '_', '_', '_'})) end),
     a_row("dirty_match_object with the key unbound, a row", Rows,
           fun() -> sum(mnesia:dirty_match_object({five, '_', 7, '_', '_', '_'})) end),
     calls("dirty_index_match_object", Rows div 10,
           fun(I) ->
               sum(mnesia:dirty_index_match_object({indexed, '_', I, '_', '_', '_'}, group))
           end)].

whole_tables(Rows) ->
    [a_row("dirty_all_keys, a row", Rows, fun() -> lists:sum(mnesia:dirty_all_keys(five)) end),
     calls("table_info of size", Rows, fun(_) -> mnesia:table_info(five, size) end),
     {"clear_table, a table", fun() -> fill(fresh, Rows) end,
      fun() -> {1, {mnesia:clear_table(fresh), mnesia:table_info(fresh, size)}} end},
     calls("create_table and delete_table, a table", 5,
           fun(_) ->
               {atomic, ok} = create(passing, []),
               {atomic, ok} = mnesia:delete_table(passing),
               1
           end)].

op(Name, Work) -> {Name, fun() -> ok end, Work}.

%% So many calls, each of its own or all in one transaction.
calls(Name, N, Call) -> op(Name, fun() -> each(N, Call) end).

in_one(Name, N, Call) -> op(Name, fun() -> done(fun() -> each(N, Call) end) end).

%% What goes over all rows, by the row.
a_row(Name, Rows, Call) -> op(Name, fun() -> {Rows, Call()} end).

clear_fresh() -> {atomic, ok} = mnesia:clear_table(fresh).

bound(Table, Key) -> [{{Table, Key, '_', '_', '$1', '_'}, [], ['$_']}].

unbound(Table) -> [{{Table, '$1', '$2', '_', '_', '_'}, [{'=:=', '$2', 7}], ['$_']}].

done(Fun) ->
    {atomic, Result} = mnesia:transaction(Fun),
    Result.

folded(Table) ->
    done(fun() -> mnesia:foldl(fun(R, Sum) -> Sum + element(2, R) end, 0, Table) end).

many(0, _) -> ok;
many(N, Fun) ->
    _ = Fun(N),
    many(N - 1, Fun).

deep(0, _) -> 0;
deep(N, T) -> done(fun() -> mnesia:write(row(fresh, 10 * T + N)), deep(N - 1, T) end).

%% Calls with numbers in no order; how many, and the sum of the numbers among the answers.
each(0, Fun) -> each(1, Fun);
each(N, Fun) -> each(1, N, Fun, 0).

each(I, N, _, Sum) when I > N -> {N, Sum};
each(I, N, Fun, Sum) -> each(I + 1, N, Fun, Sum + number(Fun(I * 7919 rem N + 1))).

number(Number) when is_integer(Number) -> Number;
number(_) -> 1.

%% How many rows, and the sum of their keys: in whatever order they are.
sum(Rows) -> lists:foldl(fun(Row, Sum) -> element(2, Row) + Sum end, length(Rows), Rows).

steps(_, '$end_of_table', _, N) -> N;
steps(Table, Key, Next, N) -> steps(Table, Next(Table, Key), Next, N + Key).
