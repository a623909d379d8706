%% Tables as of one moment, and what differs between two. Part of module larder: see larder.erl.

%% @doc A snapshot of a table: the table as it is at this moment, for as long as
%% the snapshot lives. Of a list of tables: a list of snapshots, in that order,
%% all of one moment. Nothing is copied, and it takes the same short time
%% whatever the tables' sizes.
%%
%% The snapshot is a table identifier. Every function that reads takes it, with
%% the rights of the table: lookup/2, select/2 and the like, first/1 and next/2,
%% foldl/3, info/2, tab2file/2, QLC. Those that write are `badarg'. It belongs to
%% the calling process, and ends with release/1 or with that process. It stays
%% when its table is emptied or deleted.
%%
%% Writers don't wait. While a table has snapshots, the first change of each key
%% after a snapshot keeps what was there: so much memory, and about one more
%% insert of time. `info(Snapshot, size)' counts the objects the first time.
%%
%% `badarg' for a snapshot, and for a table on a structure other than the usual.
-spec snapshot(table()) -> snapshot();
              ([table()]) -> [snapshot()].
snapshot(Tables) when is_list(Tables) ->
    ?TRY(larder_nif:snapshot(Tables), [Tables]);
snapshot(Table) ->
    [Snapshot] = ?TRY(larder_nif:snapshot([Table]), [Table]),
    Snapshot.

%% @doc Ends a snapshot, which only its owner can. The end is seen at once: calls on it
%% that are under way are `badarg'. What was kept for it alone is freed behind, so it
%% takes a short time always.
-spec release(snapshot()) -> true.
release(Snapshot) ->
    ?TRY(larder_nif:release(Snapshot), [Snapshot]).

%% @doc What has to be done to the first snapshot's objects to get the second's,
%% both of one table, in no particular order. It takes the time of what changed
%% since the oldest snapshot that lives: keys that did not change are not read,
%% unless delete_all_objects/1 came between the two.
%%
%% A key's object in a set or ordered_set that is another one is a `replace';
%% objects of a bag are inserted and deleted.
-spec diff(snapshot(), snapshot()) -> [difference()].
diff(Old, New) ->
    ?TRY(larder_nif:diff(Old, New), [Old, New]).
