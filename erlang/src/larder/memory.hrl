%% The use of memory. Part of module larder: see larder.erl.

%% @doc Returns how much memory Larder uses, in bytes, as a map of items. `total' is the sum of
%% the others.
%%
%% <ul>
%% <li>`tables': the objects of the tables. It is the sum of `info(Table, memory)' (which is
%%     in words) without the next two items.</li>
%% <li>`indexes': the secondary indexes, as in `info(Table, indexes)'.</li>
%% <li>`snapshots': what tables retain for snapshots, transactions and
%%     subscriptions, as in `info(Table, snapshot_memory)'.</li>
%% <li>`waiting': memory of deleted tables and objects that isn't freed yet.</li>
%% <li>`allocator': free memory that the allocator retains for new objects. It returns
%%     memory to the system when it has much of it.</li>
%% </ul>
%%
%% None of it is part of `erlang:memory()'. Binaries over 127 bytes are shared with the
%% emulator, and counted there: `erlang:memory(binary)'. Two things are counted nowhere: the few
%% megabytes that Larder needs besides its tables, and a table that was deleted while it has
%% snapshots.
%%
%% It takes O(number of tables). The tables are read one after another, so the sum isn't that of
%% one instant if other processes write.
-spec memory() -> memory().
memory() ->
    larder_memory:memory().

%% @doc Returns one item of memory/0 in bytes, or a list of some with their bytes, like
%% `erlang:memory/1'. Fails with `badarg' if there is no such item.
-spec memory(memory_item()) -> non_neg_integer();
            ([memory_item()]) -> [{memory_item(), non_neg_integer()}].
memory(Items) ->
    ?TRY(larder_memory:memory(Items), [Items]).

%% @doc Returns the `N' tables with the largest `memory' (bytes), `size' (objects) or
%% `contention' (how many times a writer found a leaf locked since the table was created, or last
%% emptied by delete_all_objects/1), largest first. Each is a map with `table', `name', `type',
%% `size', `memory', `snapshots', `snapshot_memory' and `owner', and with `contention' if that is
%% the order.
%%
%% Any process may call it, like info/2. It takes O(number of tables). Snapshots aren't included,
%% because counting the objects of one takes time proportional to its size. Fails with `badarg' if
%% `N' isn't a non-negative integer, or `By' isn't one of the three.
-spec top(non_neg_integer(), memory | size | contention) -> [top()].
top(N, By) ->
    ?TRY(larder_memory:top(N, By), [N, By]).
