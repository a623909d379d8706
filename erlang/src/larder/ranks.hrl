%% Places in the order of an ordered_set. Part of module larder: see larder.erl.

%% @doc The rank of the object with a key of an ordered_set: 1 for the first;
%% `none' if there is no such object. It takes O(log n); the first question about
%% ranks counts the table once, in slices, and each later one what has changed
%% since.
%%
%% It is exact while nobody inserts or deletes, of a snapshot, and in a
%% transaction. Otherwise an object that is there throughout the call counts
%% once; one that comes or goes meanwhile may count or not.
%%
%% `badarg' for a table that is no ordered_set, or is on a structure other than
%% the usual.
-spec rank(table(), term()) -> pos_integer() | none.
rank(Table, Key) ->
    ?TRY(larder_nif:rank(Table, Key), [Table, Key]).

%% @doc The object with a rank: from 1 on from the first, from -1 on from the last;
%% `none' if there are fewer, and for 0. It takes O(log n), as rank/2.
-spec nth(table(), integer()) -> tuple() | none.
nth(Table, N) ->
    ?TRY(larder_nif:nth(Table, N), [Table, N]).

%% @doc At most so many objects, in order, from that with a rank on, which is
%% counted as by nth/2: `slice(T, 11, 10)' is the second ten, `slice(T, -10, 10)'
%% the last. Nothing, if nth/2 finds nothing there. As rank/2.
-spec slice(table(), integer(), non_neg_integer()) -> [tuple()].
slice(Table, From, Count) ->
    ?TRY(larder_select:in_order(larder_nif:slice(Table, From, Count)), [Table, From, Count]).

%% @doc How many objects of an ordered_set have keys from `Low' on and before `High'. It
%% takes O(log n), whatever their number. As rank/2.
-spec count_range(table(), Low :: term(), High :: term()) -> non_neg_integer().
count_range(Table, Low, High) ->
    ?TRY(larder_nif:count_range(Table, Low, High), [Table, Low, High]).
