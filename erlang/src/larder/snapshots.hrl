%% Snapshots, and the differences between two. Part of module larder: see larder.erl.

%% @doc Takes a snapshot of a table: a read-only view of its objects at this instant, which
%% stays the same as long as the snapshot exists. For a list of tables, returns a list of
%% snapshots in that order, all of the same instant. Nothing is copied, and it takes
%% constant time whatever the sizes of the tables. If a list is being inserted into one of them,
%% the call first helps to finish that.
%%
%% A snapshot is a table identifier. All functions that read accept it, with
%% the rights of the table: lookup/2, select/2 and their variants, first/1 and next/2,
%% foldl/3, info/2, tab2file/2, QLC. Functions that write fail with `badarg'. The snapshot
%% belongs to the calling process, and ends with release/1 or with that process. It survives
%% the clearing and the deletion of its table.
%%
%% Writers don't wait. While a table has snapshots, the first change of each key
%% after a snapshot retains the previous objects. That costs their memory, and about the time of one
%% more insert. What is retained is freed with the last snapshot of the table. So a program that
%% always has some snapshot may retain the objects of each key that has ever changed:
%% `info(Table, snapshot_memory)' is the number of bytes.
%%
%% The first `info(Snapshot, size)' counts the objects.
%%
%% Fails with `badarg' for a snapshot, for a transaction's view, and for a table with a `structure'
%% other than the default.
-spec snapshot(table()) -> snapshot();
              ([table()]) -> [snapshot()].
snapshot(Tables) when is_list(Tables) ->
    ?TRY(larder_nif:snapshot(Tables), [Tables]);
snapshot(Table) ->
    [Snapshot] = ?TRY(larder_nif:snapshot([Table]), [Table]),
    Snapshot.

%% @doc Ends a snapshot. Fails with `badarg' if the argument isn't a snapshot, or is one of another
%% process. It takes effect immediately: calls on the snapshot, also those in progress, fail with
%% `badarg'. Objects that were retained for it alone are freed in the background, so the call takes
%% constant time.
-spec release(snapshot()) -> true.
release(Snapshot) ->
    ?TRY(larder_nif:release(Snapshot), [Snapshot]).

%% @doc Returns the changes that turn the objects of the first snapshot into those of the
%% second, in no particular order. Both must be of the same table. The time is proportional to the
%% number of changes since the oldest existing snapshot. Keys that didn't change aren't read,
%% unless delete_all_objects/1 was called between the two, or the table has bounds. It runs in
%% slices.
%%
%% If a key of a set or ordered_set has different objects, the change is a `replace'. Objects of a
%% bag are inserted and deleted. Fails with `badarg' if one of the two isn't a snapshot, or if they
%% are of different tables.
-spec diff(snapshot(), snapshot()) -> [difference()].
diff(Old, New) ->
    ?TRY(larder_nif:diff(Old, New), [Old, New]).
