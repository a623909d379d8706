%% Where the memory is. Part of module larder: see larder.erl.

%% @doc Where Larder's memory is, in bytes: a map of items, of which `total' is the sum of
%% the others.
%%
%% <ul>
%% <li>`tables': what the tables' objects take, as `info(Table, memory)' says for
%%     each (in words), but for the next two items.</li>
%% <li>`indexes': what the secondary indexes take, as `info(Table, indexes)' says.</li>
%% <li>`snapshots': what tables keep for snapshots, transactions and
%%     subscriptions, as `info(Table, snapshot_memory)' says.</li>
%% <li>`waiting': what was dropped or cleared and is not freed yet.</li>
%% <li>`allocator': free memory that is kept for objects to come. It goes back to the
%%     system when there is much of it.</li>
%% </ul>
%%
%% None of it is part of `erlang:memory()'. Binaries over 127 bytes are shared with the
%% emulator, and counted there: `erlang:memory(binary)'. What Larder needs beside its tables, some
%% megabytes, is counted nowhere, and neither is a table that was deleted while it has
%% snapshots.
%%
%% It takes the time of the number of tables. The tables are asked one after
%% another, while others write.
-spec memory() -> memory().
memory() ->
    larder_memory:memory().

%% @doc One item of memory/0, or a list of some with their bytes, as `erlang:memory/1' does.
%% `badarg' for what is no item.
-spec memory(memory_item()) -> non_neg_integer();
            ([memory_item()]) -> [{memory_item(), non_neg_integer()}].
memory(Items) ->
    ?TRY(larder_memory:memory(Items), [Items]).

%% @doc The `N' tables that have most `memory' (bytes), greatest `size' (objects), or most
%% `contention' (times that a writer found a leaf locked since the table was made), the
%% first of them first: maps with what is asked for, and with the table's name, type, owner,
%% snapshots and the like.
%%
%% Everybody may ask, as of info/2. It takes the time of the number of tables. Snapshots are
%% not among them, as to count one takes as long as it is large. `badarg' for what is no
%% number from 0 on, or none of the three.
-spec top(non_neg_integer(), memory | size | contention) -> [top()].
top(N, By) ->
    ?TRY(larder_memory:top(N, By), [N, By]).
