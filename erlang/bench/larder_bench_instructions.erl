%% @doc `make bench-instructions', the part on a running emulator: instructions of Larder's native
%% functions, counted by callgrind.
%%
%% `scripts/instructions.sh' starts the emulator under callgrind so that only the time within the
%% native functions counts. What is not counted: the Erlang wrappers, the garbage collector and
%% the scheduler. Each operation is done on a table of its own, in a process whose heap needs no
%% collection, once unmeasured and then in several rounds. Each round is one dump of callgrind.
-module(larder_bench_instructions).

-export([main/0]).
-export([instrument/0, zero/0, dump/1]).

-on_load(load/0).

-define(ROWS, 1000).
%% Tables have random seeds, so that several are needed for a stable mean.
-define(ROUNDS, 3).
%% Words. No round uses as much.
-define(HEAP, 8_000_000).
%% A list of so many rows is inserted before a slice looks at the clock, which would make the count
%% depend on time.
-define(LIST, 30).

%% Prepares a table, and gives what is to be counted: a function that does the work and tells how
%% many calls it was.
-type operation() :: {Name :: string(), Prepare :: fun(() -> fun(() -> pos_integer()))}.

load() ->
    case os:getenv("LARDER_BENCH_MARKS") of
        false -> ok;
        Library -> erlang:load_nif(Library, 0)
    end.

-spec instrument() -> boolean().
instrument() -> erlang:nif_error(not_loaded).

-spec zero() -> ok.
zero() -> erlang:nif_error(not_loaded).

-spec dump(iodata()) -> ok.
dump(_Text) -> erlang:nif_error(not_loaded).

%% @doc Runs every operation and stops the node.
-spec main() -> no_return().
main() ->
    larder_bench_run:ended(fun() ->
                                   true = instrument(),
                                   lists:foreach(fun operation/1, operations())
                           end).

-spec operation(operation()) -> ok.
operation({Name, Prepare}) ->
    Round = fun(Dump) ->
                    larder_bench_measure:in_own_process(
                      fun() ->
                              Work = Prepare(),
                              zero(),
                              Dump(Work())
                      end, ?HEAP)
            end,
    ok = Round(fun(_) -> ok end),
    lists:foreach(fun(_) ->
        ok = Round(fun(Calls) -> dump(io_lib:format("~b ~s", [Calls, Name])) end) end,
                  lists:seq(1, ?ROUNDS)).

%%% The operations

-spec operations() -> [operation()].
operations() ->
    by_kind_of_row() ++ of_sets() ++ of_ordered_sets() ++ of_bags() ++ of_tables() ++ of_scans()
        ++ of_transactions().

%% Every kind of row, looked up and inserted over.
by_kind_of_row() ->
    lists:append(
      [[by_rows("set of " ++ Kind ++ ": lookup", set, Row,
                fun(T, R) -> [_] = larder:lookup(T, element(1, R)) end),
        by_rows("set of " ++ Kind ++ ": insert over", set, Row, fun larder:insert/2)]
       || {Kind, Row} <- kinds()]).

kinds() ->
    [{"small integers", fun int/1},
     {"records of 20 fields", fun record/1},
     {"reference keys", fun(I) -> {make_ref(), I} end},
     {"keys of 16 bytes", fun(I) -> {<<I:128>>, I} end},
     {"tuple keys", fun(I) -> {{user, I}, I} end},
     {"bignums", fun(I) -> {I, 1 bsl 70 + I} end},
     {"bignum keys", fun(I) -> {1 bsl 70 + I, I} end},
     {"2 KiB binaries", fun(I) -> {I, binary:copy(<<I>>, 2048)} end},
     {"65-byte binaries", fun(I) -> {I, binary:copy(<<I>>, 65)} end},
     {"maps of 3", fun(I) -> {I, #{name => I, size => 2 * I, state => ready}} end},
     {"maps of 40", fun(I) -> {I, maps:from_list([{K, I + K} || K <- lists:seq(1, 40)])} end},
     {"nested tuples", fun nested/1},
     {"strings", fun(I) -> {I, "a string of twenty-six signs"} end},
     {"floats", fun(I) -> {I, I + 0.25} end},
     {"funs", fun(I) -> {I, fun() -> I end} end},
     {"pids and ports", fun(I) -> {I, self(), hd(erlang:ports())} end}].

int(I) -> {I, I}.

nested(I) -> {I, {a, {b, {c, I}, [1, 2, {d, 4}]}, {e, I}}}.

record(I) ->
    {I, active, 1, 1000 * I, <<"sixteen bytes!!!">>, 2.5, "a string", undefined, [1, 2, 3],
     {2026, 11, 23}, true, I,
     <<"short">>, [{key, I}], none, -I, 1 bsl 40 + I, infinity, [], ok}.

of_sets() ->
    [by_keys("set: lookup of an absent key", set, fun(T, K) -> [] = larder:lookup(T, -K) end),
     by_keys("set: member", set, fun(T, K) -> true = larder:member(T, K) end),
     by_keys("set: lookup_element", set, fun(T, K) -> K = larder:lookup_element(T, K, 2) end),
     by_keys("set: insert_new of a key that is there", set,
             fun(T, K) -> false = larder:insert_new(T, {K, 0}) end),
     new_rows("set: insert of new rows", set, rows(fun int/1), fun larder:insert/2),
     new_rows("set: insert_new of new rows", set, rows(fun int/1),
              fun(T, R) -> true = larder:insert_new(T, R) end),
     by_keys("set: insert_new of a list of five whose first key is there", set,
             fun(T, K) -> false = larder:insert_new(T, [{K, 0}, {-1, a}, {-2, b}, {-3, c}, {-4, d}])
             end),
     by_keys("set: delete", set, fun(T, K) -> true = larder:delete(T, K) end),
     by_keys("set: delete_object", set, fun(T, K) -> true = larder:delete_object(T, {K, K}) end),
     by_keys("set: delete_object of an absent key", set,
             fun(T, K) -> true = larder:delete_object(T, {-K, K}) end),
     {"set of nested tuples: delete_object of another object",
      fun() ->
              {T, Rows} = filled(set, fun nested/1),
              Others = [{K, {b, element(2, Row)}} || Row = {K, _} <- Rows],
              each(Others, fun(R) -> true = larder:delete_object(T, R) end)
      end},
     by_keys("set: take", set, fun(T, K) -> [_] = larder:take(T, K) end),
     by_keys("set: update_counter", set, fun(T, K) -> larder:update_counter(T, K, 1) end),
     by_keys("set: update_counter with three operations", set,
             fun(T, K) ->
                 [_, _, _] = larder:update_counter(T, K, [{2, 1}, {2, 2}, {2, -1, 0, 0}]) end),
     by_rows("set: update_counter of two elements", set, fun(I) -> {I, I, I} end,
             fun(T, {K, _, _}) ->
                 [_, _] = larder:update_counter(T, K, [{2, 1}, {3, 7}])
             end),
     by_keys("set: update_counter with a default", set,
             fun(T, K) -> 1 = larder:update_counter(T, -K, 1, {0, 0}) end),
     by_keys("set: update_element", set,
             fun(T, K) -> true = larder:update_element(T, K, {2, ready}) end),
     by_keys("set: next of a random key", set, fun(T, K) -> larder:next(T, K) end),
     walk("set: first and next, in order", set, fun larder:first/1, fun larder:next/2),
     {"set: first and delete until it is empty",
      fun() ->
              {T, _} = filled(set, fun int/1),
              fun() -> drain(T, larder:first(T), 0) end
      end},
     by_keys("named set: lookup", [set, named_table],
             fun(_, K) -> [_] = larder:lookup(larder_bench_named, K) end)].

of_ordered_sets() ->
    [by_keys("ordered_set: lookup", ordered_set, fun(T, K) -> [_] = larder:lookup(T, K) end),
     by_keys("ordered_set: insert over", ordered_set, fun(T, K) -> larder:insert(T, {K, 0}) end),
     new_rows("ordered_set: insert of new rows", ordered_set, rows(fun int/1), fun larder:insert/2),
     new_rows("ordered_set: insert at the end", ordered_set, lists:sort(rows(fun int/1)),
              fun larder:insert/2),
     by_rows("ordered_set of reference keys: lookup", ordered_set, fun(I) -> {make_ref(), I} end,
             fun(T, {K, _}) -> [_] = larder:lookup(T, K) end),
     by_keys("ordered_set: delete", ordered_set, fun(T, K) -> larder:delete(T, K) end),
     by_keys("ordered_set: next of a random key", ordered_set, fun(T, K) -> larder:next(T, K) end),
     by_keys("ordered_set: prev of a random key", ordered_set, fun(T, K) -> larder:prev(T, K) end),
     walk("ordered_set: first and next, in order", ordered_set, fun larder:first/1,
          fun larder:next/2),
     walk("ordered_set: last and prev, in order", ordered_set, fun larder:last/1,
          fun larder:prev/2),
     by_keys("ordered_set: select of ten rows by guards on the key", ordered_set,
             fun(T, K) ->
                 larder:select(T,
                               [{{'$1', '_'}, [{'>=', '$1', K}, {'<', '$1', K + 10}],
                                 ['$_']}]) end),
     by_rows("ordered_set: select of two rows by a part of the key", ordered_set, fun in_pairs/1,
             fun(T, {{K, _}, _}) -> [_, _] = larder:select(T, [{{{K, '_'}, '_'}, [], ['$_']}]) end),
     by_keys("ordered_set: select_count of ten rows, another specification each time", ordered_set,
             fun(T, K) ->
                 larder:select_count(T, [{{'$1', '_'}, [{'>=', '$1', K}, {'<', '$1', K + 10}],
                                          [true]}]) end)].

%% Two rows share the first part of their key.
in_pairs(I) -> {{(I - 1) div 2, I rem 2}, I}.

%% Eight objects under a key.
of_bags() ->
    [new_rows("bag: insert of new objects", bag, rows(fun in_bag/1), fun larder:insert/2),
     in_bag("bag: insert of an object that is there", fun(T, R) -> larder:insert(T, R) end),
     in_bag("bag: lookup of eight objects", fun(T, {K, _}) -> [_, _ | _] = larder:lookup(T, K) end),
     in_bag("bag: member", fun(T, {K, _}) -> true = larder:member(T, K) end),
     in_bag("bag: delete_object", fun(T, R) -> larder:delete_object(T, R) end),
     by_keys("bag: take of one object", bag, fun(T, K) -> [_] = larder:take(T, K) end)].

in_bag(I) -> {I rem (?ROWS div 8), I}.

in_bag(Name, Call) -> by_rows(Name, bag, fun in_bag/1, Call).

of_tables() ->
    [{"new and delete of an empty table",
      fun() -> each(lists:seq(1, 200), fun(_) -> larder:delete(larder:new(t, [set])) end) end},
     by_keys("info of size", set, fun(T, _) -> ?ROWS = larder:info(T, size) end),
     {"index_lookup of ten rows",
      fun() -> {T, _} = grouped(),
               each(lists:seq(1, 100), fun(G) -> ten(larder:index_lookup(T, group, G)) end)
      end},
     {"index_lookup of no row",
      fun() -> {T, _} = grouped(),
               each(lists:seq(101, 200), fun(G) -> [] = larder:index_lookup(T, group, G) end)
      end},
     {"select of ten rows by an index",
      fun() -> {T, _} = grouped(),
               each(lists:seq(1, 100), fun(G) -> ten(larder:match_object(T, {'_', G, '_'})) end)
      end},
     {"select_count of ten rows by two values of an index",
      fun() -> {T, _} = grouped(),
               each(lists:seq(1, 100),
                    fun(G) ->
                            Guard = {'orelse', {'=:=', '$1', G}, {'=:=', '$1', -G}},
                            10 = larder:select_count(T, [{{'_', '$1', '_'}, [Guard], [true]}])
                    end)
      end},
     {"match_delete of one row by an index",
      fun() -> {T, Rows} = filled([set, {index, [{number, 3, []}]}], fun in_group/1),
               each(Rows, fun({_, _, I}) -> true = larder:match_delete(T, {'_', '_', I}) end)
      end},
     by_rows("insert over, with an index", [set, {index, [{group, 2, []}]}], fun in_group/1,
             fun(T, {I, G, _}) -> larder:insert(T, {I, G, x}) end),
     by_rows("insert over, with another value in an index", [set, {index, [{group, 2, []}]}],
             fun in_group/1, fun(T, {I, G, _}) -> larder:insert(T, {I, G + 1, x}) end),
     {"insert of a list of " ++ integer_to_list(?LIST) ++ " new rows",
      fun() ->
              Tables = [larder:new(t, [set]) || _ <- lists:seq(1, 50)],
              Rows = lists:sublist(rows(fun int/1), ?LIST),
              each(Tables, fun(T) -> larder:insert(T, Rows) end)
      end},
     {"insert of a list of ten rows over others",
      fun() ->
              {T, Rows} = filled(set, fun int/1),
              each(in_tens(Rows), fun(Ten) -> larder:insert(T, Ten) end)
      end}].

in_tens([]) -> [];
in_tens(Rows) ->
    {Ten, Others} = lists:split(10, Rows),
    [Ten | in_tens(Others)].

in_group(I) -> {I, I rem 100 + 1, I}.

grouped() -> filled([set, {index, [{group, 2, []}]}], fun in_group/1).

ten([_, _, _, _, _, _, _, _, _, _]) -> ok.

%% A scan of ?ROWS rows takes several slices, as all is slow under callgrind; the count is nearly
%% the same however many there are.
of_scans() ->
    [by_keys("select with the key bound", set,
             fun(T, K) -> [_] = larder:select(T, [{{K, '$1'}, [], ['$1']}]) end),
     by_keys("select/3 with the key bound", set,
             fun(T, K) -> {[_], '$end_of_table'} = larder:select(T, [{{K, '_'}, [], ['$_']}], 10) end),
     by_keys("select_replace with the key bound", set,
             fun(T, K) ->
                 1 = larder:select_replace(T, [{{K, '$1'}, [], [{{{const, K}, {'+', '$1', 1}}}]}])
             end),
     by_keys("match_spec_compile of a specification with the key bound", set,
             fun(_, K) -> larder:match_spec_compile([{{K, '_'}, [], ['$_']}]) end),
     by_keys("match_object with the key bound", set,
             fun(T, K) -> [_] = larder:match_object(T, {K, '_'}) end),
     by_keys("match_delete with the key bound", set,
             fun(T, K) -> true = larder:match_delete(T, {K, '_'}) end),
     scan("select_count of 1,000 rows by a guard", set,
          fun(T) -> 500 = larder:select_count(T, [{{'_', '$1'}, [{'>', '$1', 500}], [true]}]) end),
     scan("select of 1,000 rows with a body that builds", set,
          fun(T) -> larder:select(T, [{{'$1', '$2'}, [], [{{'$2', '$1'}}]}]) end),
     scan("match that finds one of 1,000 rows", set,
          fun(T) -> [[77]] = larder:match(T, {'$1', 77}) end),
     scan("foldl over 1,000 rows", set, fun(T) -> larder:foldl(fun(_, N) -> N + 1 end, 0, T) end),
     scan("tab2list of an ordered_set of 1,000 rows", ordered_set, fun larder:tab2list/1),
     emptied("select_delete of 1,000 rows", set),
     emptied("select_delete of an ordered_set of 1,000 rows", ordered_set),
     emptied("select_delete of a bag of 1,000 rows", bag)].

of_transactions() ->
    Read = fun(T, K) ->
                   {atomic, [_]} = larder:transaction([T], fun([X]) -> larder:lookup(X, K) end)
           end,
    Write = fun(T, K) ->
                    {atomic, true} = larder:transaction([T], fun([X]) ->
                        [_] = larder:lookup(X, K),
                        larder:insert(X, {K, K})
                    end)
            end,
    Commit = fun(T, K) -> true = larder:commit([{check, T, K, [{K, K}]}, {insert, T, {K, K}}]) end,
    [by_keys("set: transaction of a lookup", set, Read),
     by_keys("set: transaction of a lookup and an insert", set, Write),
     by_keys("ordered_set: transaction of a lookup and an insert", ordered_set, Write),
     by_keys("set: commit of a check and an insert", set, Commit)].

%% A call that deletes all rows of a filled table.
emptied(Name, Type) ->
    {Name, fun() ->
                   {T, _} = filled(Type, fun int/1),
                   fun() -> ?ROWS = larder:select_delete(T, [{'_', [], [true]}]), 1 end
           end}.

%% A call for each row of a filled table, for the key of each, and for each row of an empty one.
by_rows(Name, Type, Row, Call) ->
    {Name, fun() -> {T, Rows} = filled(Type, Row), each(Rows, fun(R) -> Call(T, R) end) end}.

by_keys(Name, Type, Call) ->
    by_rows(Name, Type, fun int/1, fun(T, {K, _}) -> Call(T, K) end).

new_rows(Name, Type, Rows, Call) ->
    {Name, fun() -> T = larder:new(t, [Type]), each(Rows, fun(R) -> Call(T, R) end) end}.

scan(Name, Type, Fun) ->
    {Name, fun() -> {T, _} = filled(Type, fun int/1), each([T, T, T], Fun) end}.

%% The rows' keys are in no order.
rows(Row) -> [Row(I * 617 rem ?ROWS + 1) || I <- lists:seq(1, ?ROWS)].

filled(Type, Row) ->
    T = larder:new(larder_bench_named, lists:flatten([Type])),
    Rows = rows(Row),
    %% Not as a list: the background thread would free that, beside what is counted.
    lists:foreach(fun(R) -> larder:insert(T, R) end, Rows),
    {T, Rows}.

each(List, Fun) -> fun() -> lists:foreach(Fun, List), length(List) end.

walk(Name, Type, First, Next) ->
    {Name, fun() -> {T, _} = filled(Type, fun int/1),
                    fun() -> steps(T, Next, First(T), 1) end end}.

steps(_, _, '$end_of_table', N) -> N;
steps(T, Next, Key, N) -> steps(T, Next, Next(T, Key), N + 1).

drain(_, '$end_of_table', N) -> N;
drain(T, Key, N) ->
    true = larder:delete(T, Key),
    drain(T, larder:first(T), N + 1).
