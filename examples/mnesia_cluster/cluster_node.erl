%% @doc What the nodes of mnesia_cluster do: they start Mnesia, write, read, and say what their
%% copies of the table have in them. Called by mnesia_cluster.
-module(cluster_node).

-export([start/0, start/1, create/1, fill/1, begin_writing/3, end_writing/0, check/3, digest/0,
         memory/0, part/1, heal/1, parted/1, measure/2]).

-define(TABLE, thing).
-define(WRITER, cluster_writer).
-define(LISTENER, cluster_listener).
%% A prime: a writer goes through its keys in no order.
-define(STEP, 7919).
-define(PATIENCE, 3_600_000).
-define(BYTES, <<"sixteen bytes!!!">>).

%% @doc Starts Mnesia on the schema that is on disc.
-spec start() -> ok.
start() -> mnesia:start().

%% @doc Starts Mnesia with a schema in memory, as a part of the cluster of others, if there are any.
%% Mnesia merges schemas that know the same storage types only, so that comes first.
-spec start([node()]) -> ok.
start(Others) ->
    ok = mnesia:start(),
    {ok, larder_copies} = larder_mnesia:register(),
    {ok, Others} = mnesia:change_config(extra_db_nodes, Others),
    ok.

%% @doc Makes the table, with these copies.
-spec create([{ram_copies | larder_copies, [node()]}]) -> ok.
create(Copies) ->
    {atomic, ok} = mnesia:create_table(?TABLE, Copies ++ [{attributes, [key, last, bytes]},
                                                          {type, ordered_set}]),
    ok.

%% @doc Writes keys from 0 on.
-spec fill(non_neg_integer()) -> ok.
fill(0) -> ok;
fill(Rows) ->
    ok = mnesia:dirty_write({?TABLE, Rows - 1, 0, ?BYTES}),
    fill(Rows - 1).

%% @doc Lets a process write keys whose remainder by 3 is `Me', `Range' of them, again and again.
%% Each tenth write deletes. `transactions' are all of them or, with `mixed', each eighth.
-spec begin_writing(0..2, pos_integer(), mixed | transactions) -> ok.
begin_writing(Me, Range, How) ->
    Writer = spawn(fun() -> write(Me, Range, How, 1) end),
    true = register(?WRITER, Writer),
    ok.

%% @doc Lets it write each of its keys once more, and ends it. Gives how many writes it did.
%%
%% A dirty write that begins just before another node loads the table may be on this node alone, on
%% any storage. The last round of writes makes up for it.
-spec end_writing() -> non_neg_integer().
end_writing() ->
    Monitor = monitor(process, ?WRITER),
    ?WRITER ! {stop, self()},
    receive
        {written, Writes} -> Writes;
        {'DOWN', Monitor, _, _, Reason} -> error({writer_failed, Reason})
    after ?PATIENCE -> error(writer_stuck)
    end.

write(Me, Range, How, Seq) ->
    receive
        {stop, From} ->
            Last = Seq + Range - 1,
            lists:foreach(fun(S) -> write_one(Me, Range, How, S) end, lists:seq(Seq, Last)),
            From ! {written, Last}
    after 0 ->
        write_one(Me, Range, How, Seq),
        write(Me, Range, How, Seq + 1)
    end.

write_one(Me, Range, How, Seq) ->
    Key = key(Me, Range, Seq),
    ok = case How =:= transactions orelse Seq rem 8 =:= 0 of
             true -> in_transaction(Key, Seq);
             false -> change(dirty, Key, Seq)
         end.

in_transaction(Key, Seq) ->
    {atomic, ok} = mnesia:transaction(fun() -> change(transaction, Key, Seq) end),
    ok.

change(dirty, Key, Seq) when Seq rem 10 =:= 0 -> mnesia:dirty_delete(?TABLE, Key);
change(dirty, Key, Seq) -> mnesia:dirty_write({?TABLE, Key, Seq, ?BYTES});
change(transaction, Key, Seq) when Seq rem 10 =:= 0 -> mnesia:delete({?TABLE, Key});
change(transaction, Key, Seq) -> mnesia:write({?TABLE, Key, Seq, ?BYTES}).

key(Me, Range, Seq) -> 3 * (Seq * ?STEP rem Range) + Me.

%% @doc Whether this node's copy has what a writer wrote last under each of its keys.
-spec check(0..2, pos_integer(), non_neg_integer()) -> ok.
check(Me, Range, Last) ->
    lists:foreach(fun(Seq) ->
        Found = mnesia:dirty_read(?TABLE, key(Me, Range, Seq)),
        case Seq rem 10 of
            0 -> [] = Found;
            _ -> [{?TABLE, _, Seq, _}] = Found
        end
    end, lists:seq(max(1, Last - Range + 1), Last)).

%% @doc How many rows this node's copy has, and a sum of their hashes.
-spec digest() -> {non_neg_integer(), non_neg_integer()}.
digest() ->
    true = node() =:= mnesia:table_info(?TABLE, where_to_read),
    All = [{'_', [], ['$_']}],
    mnesia:async_dirty(fun() -> digest(mnesia:select(?TABLE, All, 5000, read), 0, 0) end).

digest('$end_of_table', Rows, Sum) ->
    {Rows, Sum};
digest({Objects, Continuation}, Rows, Sum) ->
    digest(mnesia:select(Continuation), Rows + length(Objects),
           lists:foldl(fun(Object, S) -> erlang:phash2(Object) + S end, Sum, Objects)).

%% @doc The most memory that the node's process has had, and what it has now, in bytes; 0 where the
%% system doesn't say.
-spec memory() -> {Peak :: non_neg_integer(), Now :: non_neg_integer()}.
memory() ->
    Status = case file:read_file("/proc/self/status") of
                 {ok, Text} -> Text;
                 {error, _} -> <<>>
             end,
    {kilobytes(Status, "VmHWM"), kilobytes(Status, "VmRSS")}.

kilobytes(Status, Item) ->
    case re:run(Status, Item ++ ":\\s*(\\d+) kB", [{capture, [1], binary}]) of
        {match, [Kilobytes]} -> 1024 * binary_to_integer(Kilobytes);
        nomatch -> 0
    end.

%% @doc Neither hears the other any more: their cookies differ. From here on it is remembered what
%% Mnesia says of the others.
-spec part([node()]) -> ok.
part(Others) ->
    true = register(?LISTENER, spawn(fun() -> {ok, _} = mnesia:subscribe(system), listen() end)),
    lists:foreach(fun(Node) -> true = erlang:set_cookie(Node, node()) end, Others),
    lists:foreach(fun erlang:disconnect_node/1, Others).

%% The question is answered once the event has come.
listen() ->
    receive
        {parted, From} ->
            receive
                {mnesia_system_event, {inconsistent_database, running_partitioned_network, _}} ->
                    From ! parted
            end
    end.

%% @doc They may hear each other again.
-spec heal([node()]) -> ok.
heal(Others) ->
    Cookie = erlang:get_cookie(),
    lists:foreach(fun(Node) -> true = erlang:set_cookie(Node, Cookie) end, Others).

%% @doc Waits until Mnesia says that another node went on alone, as it does when they meet again. It
%% asks that node, which may not know of it yet: so they meet a few times.
-spec parted([node()]) -> ok.
parted(Others) ->
    ?LISTENER ! {parted, self()},
    meet(Others, 10).

meet(Others, Times) when Times > 0 ->
    lists:foreach(fun net_kernel:connect_node/1, Others),
    receive
        parted -> ok
    after 2000 ->
        lists:foreach(fun erlang:disconnect_node/1, Others),
        meet(Others, Times - 1)
    end.

%% @doc Operations a second, of one process, for so many milliseconds.
-spec measure(dirty_write | dirty_read | transaction, pos_integer()) -> float().
measure(What, Milliseconds) ->
    Rows = mnesia:table_info(?TABLE, size),
    Begin = erlang:monotonic_time(),
    End = Begin + erlang:convert_time_unit(Milliseconds, millisecond, native),
    Done = operations(What, Rows, erlang:phash2(node(), Rows), End, 0),
    Done / (erlang:convert_time_unit(erlang:monotonic_time() - Begin, native, microsecond) / 1.0e6).

%% The clock is read once in 16 operations.
operations(What, Rows, Key, End, Done) ->
    ok = operation(What, Key, Done),
    case Done rem 16 =:= 0 andalso erlang:monotonic_time() >= End of
        true -> Done + 1;
        false -> operations(What, Rows, (Key + ?STEP) rem Rows, End, Done + 1)
    end.

operation(dirty_write, Key, Done) ->
    mnesia:dirty_write({?TABLE, Key, Done, ?BYTES});
operation(dirty_read, Key, _) ->
    [_] = mnesia:dirty_read(?TABLE, Key),
    ok;
operation(transaction, Key, Done) ->
    {atomic, ok} = mnesia:transaction(fun() ->
        [Row] = mnesia:wread({?TABLE, Key}),
        mnesia:write(setelement(3, Row, Done))
    end),
    ok.
