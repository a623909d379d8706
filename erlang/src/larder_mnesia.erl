%% @doc Larder as a storage backend of Mnesia: tables with `larder_copies' are kept by Larder, as
%% those with `ram_copies' are kept by `ets'.
%%
%% ```
%% ok = mnesia:start(),
%% {ok, larder_copies} = larder_mnesia:register(),
%% {atomic, ok} = mnesia:create_table(person, [{larder_copies, [node()]},
%%                                             {attributes, [name, city]}, {index, [city]}]).
%% '''
%%
%% A schema on disc can have the backend from the start:
%% `mnesia:create_schema(Nodes, [{backend_types, [{larder_copies, larder_mnesia}]}])'. All nodes
%% that have such tables need the application `larder' in their code path before Mnesia starts.
%%
%% == The tables ==
%% All types of Mnesia are supported: `set', `ordered_set' and `bag'. The tables are in memory
%% only. A table is a named, public table of Larder with key position 2, and is owned by a process
%% of Mnesia. Programs may read it by the functions of module {@link larder}, including those that
%% Mnesia lacks: snapshots, ranks, pages, feeds, lookups by an index. They must write by Mnesia.
%%
%% `{storage_properties, [{larder, Options}]}' of `mnesia:create_table/2' has options of
%% `larder:new/2': `compressed', those of concurrency, and `{index, [Index]}'. These are
%% secondary indexes that Larder maintains, in addition to those of Mnesia. An index may name an
%% attribute in place of a position. Match specifications use such an index automatically, also in
%% `mnesia:dirty_select/2' and `mnesia:select/2'.
%%
%% `docs/mnesia.md' describes the differences from `ram_copies', and when to use which.
%%
%% == The backend's functions ==
%% All functions but {@link register/0} and {@link register/1} are called by Mnesia.
-module(larder_mnesia).
-compile({larder_transform, keep_ets}).

%% The behaviour is mnesia_backend_type. It is not declared: Larder compiles where Mnesia is not
%% installed. A test compares the exports.
-export([register/0, register/1]).
-export([init_backend/0, add_aliases/1, remove_aliases/1, semantics/2, check_definition/4,
         real_suffixes/0, tmp_suffixes/0]).
-export([create_table/3, load_table/4, close_table/2, sync_close_table/2, delete_table/2, info/3]).
-export([is_index_consistent/2, index_is_consistent/3]).
-export([validate_key/6, validate_record/6, insert/3, lookup/3, delete/3, update_counter/4,
         match_delete/3]).
-export([fixtable/3, first/2, last/2, next/3, prev/3, slot/3]).
-export([select/1, select/3, select/4, select_reverse/1, select_reverse/3, select_reverse/4,
         repair_continuation/2]).
-export([sender_init/4, sender_handle_info/5, receiver_first_message/4, receive_data/5,
         receive_done/4]).

-export_type([alias/0, tab/0]).

-type alias() :: atom().
%% The name of the storage type in the schema: `larder_copies'.
-type tab() :: Table :: atom()
             | {Table :: atom(), index, {Position :: term(), ordered | bag}}
             | {Table :: atom(), retainer, Checkpoint :: term()}.
%% Mnesia's name of a table: one of the user's, an index of Mnesia's, or the retainer of a
%% checkpoint.

-define(ALIAS, larder_copies).
%% Names of variables of Mnesia, which end with Mnesia: the id and the cookie of a table, and the
%% indexes of a table.
-define(TABLE(Tab), {?MODULE, table, Tab}).
-define(INDEXES(Table), {?MODULE, indexes, Table}).
%% The bytes of rows in a message while another node loads a table; the same as Mnesia's.
-define(MESSAGE, 64_000).
-define(ALL, [{'_', [], ['$_']}]).
-define(ROWS, 1000).

%% ---- the storage type ----

%% @doc Registers the storage type `larder_copies' with Mnesia, which must be running. It is part of
%% the schema from then on, on all nodes. Calling it again has no effect.
-spec register() -> {ok, alias()} | {error, Reason :: term()}.
register() ->
    register(?ALIAS).

%% @doc Like register/0, with another name for the storage type.
-spec register(alias()) -> {ok, alias()} | {error, Reason :: term()}.
register(Alias) ->
    case mnesia:add_backend_type(Alias, ?MODULE) of
        {atomic, ok} -> {ok, Alias};
        {aborted, {backend_type_already_exists, Alias} = Reason} -> taken(Alias, Reason);
        {aborted, Reason} -> {error, Reason}
    end.

%% The name is taken: by this backend, or by another one.
taken(Alias, Reason) ->
    {_, Types} = mnesia:read_table_property(schema, mnesia_backend_types),
    case lists:member({Alias, ?MODULE}, Types) of
        true -> {ok, Alias};
        false -> {error, Reason}
    end.

%% @private
-spec init_backend() -> ok.
init_backend() -> ok.

%% @private
-spec add_aliases([alias()]) -> ok.
add_aliases(_) -> ok.

%% @private
-spec remove_aliases([alias()]) -> ok.
remove_aliases(_) -> ok.

%% @private
%% The first index type is Mnesia's default.
-spec semantics(alias(), atom()) -> term().
semantics(_, storage) -> ram_copies;
semantics(_, types) -> [set, ordered_set, bag];
semantics(_, index_types) -> [ordered, bag];
semantics(_, _) -> undefined.

%% @private
%% There are no files.
-spec real_suffixes() -> [].
real_suffixes() -> [].

%% @private
-spec tmp_suffixes() -> [].
tmp_suffixes() -> [].

%% @private
%% Checks the properties of a table before any node creates it. The schema gets them with positions
%% in place of the attributes that indexes name, as it has Mnesia's own indexes: an index stays at
%% its position when `mnesia:transform_table' changes the attributes, also on nodes that start
%% later.
-spec check_definition(alias(), atom(), [node()], [{atom(), term()}]) ->
          {ok, [{atom(), term()}]} | {error, term()}.
check_definition(Alias, Table, Nodes, Properties) ->
    case {proplists:get_value(snmp, Properties, []),
          changed_in_memory(Alias, Table, Nodes, Properties)} of
        {[], []} -> check_options(Properties);
        {[], Changed} -> {error, {schema_in_memory, Changed}};
        _ -> {error, {not_supported, snmp}}
    end.

%% The nodes on which the storage type of the table changes while their schema is in memory. For
%% such a change Mnesia writes the rows to a file. Without a folder it would crash.
changed_in_memory(Alias, Table, Nodes, Properties) ->
    Ours = {ext, Alias, ?MODULE},
    Rams = proplists:get_value(ram_copies, Properties, []),
    [Node || {Node, To} <- [{Node, Ours} || Node <- Nodes] ++ [{Node, ram_copies} || Node <- Rams],
             lists:member(Ours, [To, storage(Node, Table)]),
             not lists:member(storage(Node, Table), [To, unknown]),
             storage(Node, schema) =:= ram_copies].

storage(Node, Table) ->
    try mnesia_lib:storage_type_at_node(Node, Table) catch _:_ -> unknown end.

check_options(Properties) ->
    case larder_options(Properties) of
        Options when is_list(Options) ->
            Attributes = proplists:get_value(attributes, Properties, []),
            case [Option || Option <- Options, not is_allowed(Option, Attributes)] of
                [] -> try_options(Properties);
                [Bad | _] -> {error, {bad_option, Bad}}
            end;
        Other ->
            {error, {bad_option, {larder, Other}}}
    end.

%% Whether storage_properties may have an option. All others are set by Mnesia (the type, the key
%% position), or would make the copies of a table differ (bounds, unique indexes).
is_allowed(compressed, _) -> true;
is_allowed({Concurrency, _}, _) when Concurrency =:= read_concurrency;
                                      Concurrency =:= write_concurrency;
                                      Concurrency =:= decentralized_counters -> true;
is_allowed({index, Indexes}, Attributes) when is_list(Indexes) ->
    lists:all(fun({_, What, Options}) when is_list(Options) ->
                      (not is_atom(What) orelse lists:member(What, Attributes))
                          andalso not lists:member(unique, Options);
                 (_) -> false
              end, Indexes);
is_allowed(_, _) -> false.

%% Creates a table with these options, and deletes it: Larder itself checks the options.
try_options(Properties) ->
    try larder:new(?MODULE, options(set, Properties)) of
        Table -> true = larder:delete(Table), {ok, with_positions(Properties)}
    catch
        error:badarg -> {error, {bad_option, {larder, larder_options(Properties)}}}
    end.

with_positions(Properties) ->
    Attributes = proplists:get_value(attributes, Properties, []),
    Placed = [option(Option, Attributes) || Option <- larder_options(Properties)],
    [case Property of
         {storage_properties, Of} ->
             {storage_properties, lists:keyreplace(larder, 1, Of, {larder, Placed})};
         _ ->
             Property
     end || Property <- Properties].

larder_options(Properties) ->
    proplists:get_value(larder, proplists:get_value(storage_properties, Properties, []), []).

options(Type, Properties) ->
    Attributes = proplists:get_value(attributes, Properties, []),
    [Type, public, {keypos, 2}
     | [option(Option, Attributes) || Option <- larder_options(Properties)]].

option({index, Indexes}, Attributes) ->
    {index, [{Name, place(What, Attributes, 2), Options} || {Name, What, Options} <- Indexes]};
option(Option, _) ->
    Option.

%% The position of an attribute in the record. Larder checks other places.
place(What, [What | _], Position) -> Position;
place(What, [_ | Attributes], Position) -> place(What, Attributes, Position + 1);
place(What, [], _) -> What.

%% ---- tables ----

%% @private
%% The owner of the table is the caller: Mnesia's monitor, or the retainer of a checkpoint. O(1).
%% Mnesia calls it twice when a table is created.
-spec create_table(alias(), tab(), [{atom(), term()}]) -> ok | {error, Reason :: term()}.
create_table(Alias, Tab, Properties) ->
    Cookie = proplists:get_value(cookie, Properties),
    case registered(Tab) of
        {Id, Cookie} ->
            case larder:info(Id, owner) of
                undefined -> make(Tab, Properties, Cookie);
                _ -> ok
            end;
        none ->
            make(Tab, Properties, Cookie);
        %% A table of this name that Mnesia doesn't have any more was left behind.
        _ ->
            ok = delete_table(Alias, Tab),
            make(Tab, Properties, Cookie)
    end.

make(Table, Properties, Cookie) when is_atom(Table) ->
    drop_namesake(Table),
    Type = proplists:get_value(type, Properties, set),
    case larder:whereis(Table) of
        undefined -> new(Table, Table, [named_table | options(Type, Properties)], Cookie);
        _ -> {error, {table_of_this_name_in_larder, Table}}
    end;
make({Table, index, {_, Kind}} = Tag, _, Cookie) ->
    true = mnesia_lib:set(?INDEXES(Table), [Tag | lists:delete(Tag, indexes(Table))]),
    new(Tag, Table, [case Kind of ordered -> ordered_set; bag -> bag end, public, {keypos, 1}],
        Cookie);
make({Table, retainer, _} = Tag, _, Cookie) ->
    new(Tag, Table, [set, public, {keypos, 2}], Cookie).

new(Tab, Name, Options, Cookie) ->
    true = mnesia_lib:set(?TABLE(Tab), {larder:new(Name, Options), Cookie}),
    ok.

%% When Mnesia restores a table with `recreate_tables', it makes a table of `ets' by its name for
%% every backend in memory, and never drops it: the next restore would fail.
drop_namesake(Table) ->
    case ets:info(Table, owner) =:= self() of
        true -> true = ets:delete(Table), ok;
        false -> ok
    end.

%% @private
%% A table that another node sends starts empty. An earlier attempt may have left rows in it.
-spec load_table(alias(), tab(), Reason :: term(), [{atom(), term()}]) -> ok.
load_table(_, Table, {net_load, _}, _) ->
    true = larder:delete_all_objects(Table),
    ok;
load_table(_, _, {dumper, _}, _) ->
    ok;
load_table(_, Table, _, Properties) when is_atom(Table) ->
    load_fallback(Table, Properties);
load_table(_, _, _, _) ->
    ok.

%% When Mnesia starts, a table may have files: those of a backup, by `mnesia:install_fallback/1'.
%% Mnesia reads them into a table of `ets'. They are read once: a table that another node has sent
%% is later than they are (receive_done/4).
load_fallback(Table, Properties) ->
    case mnesia_monitor:use_dir() andalso mnesia_lib:exists(mnesia_lib:tab2dcd(Table)) of
        true ->
            Type = proplists:get_value(type, Properties),
            Table = ets:new(Table, [named_table, public, {keypos, 2}, Type]),
            _ = mnesia_log:dcd2ets(Table, mnesia_monitor:get_env(auto_repair)),
            move(Table, ets:select(Table, ?ALL, ?ROWS)),
            true = ets:delete(Table),
            delete_files(Table);
        false ->
            ok
    end.

delete_files(Table) ->
    case mnesia_monitor:use_dir() of
        true ->
            _ = file:delete(mnesia_lib:tab2dcd(Table)),
            _ = file:delete(mnesia_lib:tab2dcl(Table)),
            ok;
        false ->
            ok
    end.

move(_, '$end_of_table') -> ok;
move(Table, {Rows, Continuation}) ->
    ok = fill(Table, Rows),
    move(Table, ets:select(Continuation)).

%% One by one: nobody reads the table yet, and a list that is inserted as a whole takes memory.
fill(Table, Rows) ->
    lists:foreach(fun(Row) -> true = larder:insert(Table, Row) end, Rows).

%% @private
-spec close_table(alias(), tab()) -> ok.
close_table(_, _) -> ok.

%% @private
-spec sync_close_table(alias(), tab()) -> ok.
sync_close_table(_, _) -> ok.

%% @private
%% Deletes the table's indexes, too. Mnesia only does that for its own tables. The table may be
%% gone already.
-spec delete_table(alias(), tab()) -> ok.
delete_table(_, Table) when is_atom(Table) ->
    lists:foreach(fun drop/1, [Table | indexes(Table)]),
    true = mnesia_lib:unset(?INDEXES(Table)),
    delete_files(Table);
delete_table(_, Tag) ->
    drop(Tag).

drop(Tab) ->
    case registered(Tab) of
        {Id, _} ->
            true = mnesia_lib:unset(?TABLE(Tab)),
            %% The table may have ended with its owner.
            try larder:delete(Id) of true -> ok catch error:badarg -> ok end;
        none ->
            ok
    end.

registered(Tab) -> variable(?TABLE(Tab), none).

indexes(Table) -> variable(?INDEXES(Table), []).

variable(Variable, Default) ->
    try mnesia_lib:val(Variable) catch _:_ -> Default end.

%% Tables of the user have the same names in Larder.
id(Table) when is_atom(Table) -> Table;
id(Tag) -> element(1, mnesia_lib:val(?TABLE(Tag))).

%% @private
-spec info(alias(), tab(), Item :: atom()) -> term() | {error, Reason :: term()}.
info(_, Tab, Item) ->
    try larder:info(id(Tab), Item) of
        undefined -> {error, {no_exists, Tab}};
        Value -> Value
    catch
        error:badarg -> {error, {badarg, Item}}
    end.

%% ---- Mnesia's indexes ----

%% @private
%% Mnesia fills an index anew when its table is loaded.
-spec is_index_consistent(alias(), tab()) -> false.
is_index_consistent(_, _) -> false.

%% @private
-spec index_is_consistent(alias(), tab(), boolean()) -> ok.
index_is_consistent(_, _, _) -> ok.

%% ---- objects ----

%% @private
-spec validate_key(alias(), tab(), atom(), arity(), atom(), Key :: term()) ->
          {atom(), arity(), atom()}.
validate_key(_, _, RecordName, Arity, Type, _) -> {RecordName, Arity, Type}.

%% @private
-spec validate_record(alias(), tab(), atom(), arity(), atom(), Object :: tuple()) ->
          {atom(), arity(), atom()}.
validate_record(_, _, RecordName, Arity, Type, _) -> {RecordName, Arity, Type}.

%% @private
-spec insert(alias(), tab(), tuple()) -> ok.
insert(_, Tab, Object) ->
    write(Tab, fun(Id) -> larder:insert(Id, Object) end).

%% When a table has changed to another storage type, Mnesia still writes to the indexes that it had
%% in Larder. If those writes failed, Mnesia wouldn't write to the table either.
write(Table, Write) when is_atom(Table) ->
    true = Write(Table),
    ok;
write(Tag, Write) ->
    case registered(Tag) of
        {Id, _} -> true = Write(Id), ok;
        none when element(2, Tag) =:= index -> ok
    end.

%% @private
-spec lookup(alias(), tab(), Key :: term()) -> [tuple()].
lookup(_, Tab, Key) -> larder:lookup(id(Tab), Key).

%% @private
-spec delete(alias(), tab(), Key :: term()) -> ok.
delete(_, Tab, Key) ->
    write(Tab, fun(Id) -> larder:delete(Id, Key) end).

%% @private
%% Fails with `badarg' if there is no such object. Mnesia then writes one.
-spec update_counter(alias(), tab(), Key :: term(), integer()) -> integer().
update_counter(_, Tab, Key, Increment) -> larder:update_counter(id(Tab), Key, Increment).

%% @private
%% `mnesia:clear_table/1' passes the pattern that all objects match. O(1).
-spec match_delete(alias(), tab(), larder:match_pattern()) -> ok.
match_delete(_, Tab, '_') ->
    write(Tab, fun larder:delete_all_objects/1);
match_delete(_, Tab, Pattern) ->
    write(Tab, fun(Id) -> larder:match_delete(Id, Pattern) end).

%% ---- traversal ----

%% @private
-spec fixtable(alias(), tab(), boolean()) -> true.
fixtable(_, Tab, true) ->
    larder:safe_fixtable(id(Tab), true);
fixtable(_, Tab, false) ->
    %% Mnesia ends the fixations of a transaction by an asynchronous message, which may arrive while
    %% the table is being deleted. An error here would end Mnesia's transaction manager.
    try
        larder:safe_fixtable(id(Tab), false)
    catch
        error:badarg -> true
    end.

%% @private
-spec first(alias(), tab()) -> Key :: term() | '$end_of_table'.
first(_, Tab) -> larder:first(id(Tab)).

%% @private
-spec last(alias(), tab()) -> Key :: term() | '$end_of_table'.
last(_, Tab) -> larder:last(id(Tab)).

%% @private
-spec next(alias(), tab(), Key :: term()) -> Key :: term() | '$end_of_table'.
next(_, Tab, Key) -> larder:next(id(Tab), Key).

%% @private
-spec prev(alias(), tab(), Key :: term()) -> Key :: term() | '$end_of_table'.
prev(_, Tab, Key) -> larder:prev(id(Tab), Key).

%% @private
-spec slot(alias(), tab(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(_, Tab, Position) -> larder:slot(id(Tab), Position).

%% ---- match specifications ----

%% @private
-spec select(alias(), tab(), larder:match_spec()) -> [term()].
select(_, Tab, Spec) -> larder:select(id(Tab), Spec).

%% @private
-spec select(alias(), tab(), larder:match_spec(), pos_integer()) ->
          {[term()], larder:continuation()} | '$end_of_table'.
select(_, Tab, Spec, Limit) -> larder:select(id(Tab), Spec, Limit).

%% @private
-spec select(larder:continuation()) -> {[term()], larder:continuation()} | '$end_of_table'.
select(Continuation) -> larder:select(Continuation).

%% @private
%% Mnesia calls the three functions from release 28 on.
-spec select_reverse(alias(), tab(), larder:match_spec()) -> [term()].
select_reverse(_, Tab, Spec) -> larder:select_reverse(id(Tab), Spec).

%% @private
-spec select_reverse(alias(), tab(), larder:match_spec(), pos_integer()) ->
          {[term()], larder:continuation()} | '$end_of_table'.
select_reverse(_, Tab, Spec, Limit) -> larder:select_reverse(id(Tab), Spec, Limit).

%% @private
-spec select_reverse(larder:continuation()) ->
          {[term()], larder:continuation()} | '$end_of_table'.
select_reverse(Continuation) -> larder:select_reverse(Continuation).

%% @private
-spec repair_continuation(larder:continuation(), larder:match_spec()) -> larder:continuation().
repair_continuation(Continuation, Spec) -> larder:repair_continuation(Continuation, Spec).

%% ---- loading a table from another node ----
%%
%% The sender is a process that Mnesia starts for the purpose.
%%
%%   1. Mnesia lets the receiver subscribe to what is written from now on, under a lock.
%%   2. Then the sender takes a snapshot, and sends it in chunks. Writers don't wait.
%%   3. The receiver inserts the chunks, and then applies the events that came meanwhile.
%%
%% A dirty write between 1 and 2 is in the snapshot and among the events. Applying it twice gives
%% the same object, since events have objects, not increments. Either end may have `ram_copies'
%% instead of Larder: the messages are those of Mnesia.
%%
%% A dirty write first reads which nodes have copies. If 1 and 2 come between that and the write,
%% the receiver misses it, as with `ram_copies'. A transaction is never missed: 1 waits for its
%% locks.

%% @private
-spec sender_init(alias(), tab(), RemoteStorage :: term(), Receiver :: pid()) ->
          {standard, fun(() -> term()), fun((term()) -> term())}.
sender_init(_, Tab, _, _) ->
    {standard, fun() -> first_chunk(id(Tab)) end, fun next_chunk/1}.

first_chunk(Table) ->
    Snapshot = larder:snapshot(Table),
    chunk(Snapshot, larder:select(Snapshot, ?ALL, rows_in_message(Table))).

next_chunk({Snapshot, [], Continuation}) -> chunk(Snapshot, larder:select(Continuation));
next_chunk({Snapshot, Rows, Continuation}) -> message(Snapshot, Rows, Continuation).

%% If a sender fails, its snapshot ends with the process.
chunk(Snapshot, '$end_of_table') ->
    true = larder:release(Snapshot),
    '$end_of_table';
chunk(Snapshot, {Rows, Continuation}) ->
    message(Snapshot, Rows, Continuation).

%% Rows may take more in a message than in the table, whose memory has no large binaries, and may be
%% compressed. Mnesia sends up to 20 messages before it waits for the receiver.
message(Snapshot, Rows, Continuation) ->
    {Sent, Left} = case erlang:external_size(Rows) > 2 * ?MESSAGE of
                       true -> fitting(Rows, ?MESSAGE, []);
                       false -> {Rows, []}
                   end,
    {Sent, {Snapshot, Left, Continuation}}.

%% One row at least.
fitting([Row | Rows], Room, Sent) ->
    case Room - erlang:external_size(Row) of
        More when More > 0, Rows =/= [] -> fitting(Rows, More, [Row | Sent]);
        _ -> {lists:reverse(Sent, [Row]), Rows}
    end.

rows_in_message(Table) ->
    Bytes = larder:info(Table, memory) * erlang:system_info(wordsize),
    1 + ?MESSAGE * larder:info(Table, size) div max(Bytes, 1).

%% @private
%% Other messages of a receiver than requests for more rows. Our receiver sends none.
-spec sender_handle_info(term(), alias(), tab(), Receiver :: pid(), State :: term()) ->
          {fun((term()) -> term()), term()}.
sender_handle_info(_, _, _, _, State) -> {fun next_chunk/1, State}.

%% @private
-spec receiver_first_message(pid(), {first, non_neg_integer()}, alias(), tab()) ->
          {non_neg_integer(), Rows :: non_neg_integer()}.
receiver_first_message(_, {first, Size}, _, _) -> {Size, 0}.

%% @private
-spec receive_data([tuple()], alias(), tab(), Sender :: pid(), State) -> {more, State}.
receive_data(Rows, _, Tab, _, State) ->
    ok = fill(id(Tab), Rows),
    {more, State}.

%% @private
-spec receive_done(alias(), tab(), Sender :: pid(), State :: term()) -> ok.
receive_done(_, Table, _, _) -> delete_files(Table).
