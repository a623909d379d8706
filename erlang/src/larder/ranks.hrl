%% Ranks in an ordered_set. Part of module larder: see larder.erl.

%% @doc Returns the rank of the object with a key in an ordered_set: 1 for the first, or
%% `none' if there is no such object. It takes O(log n). The first call of a function for
%% ranks counts the table once, in slices. Later calls count again what has changed since.
%%
%% The result is exact while nobody inserts or deletes, in a snapshot, and in a
%% transaction. Otherwise an object that is in the table during the whole call is counted
%% exactly once. An object that is inserted or deleted during the call may be counted or not.
%%
%% Fails with `badarg' if the table isn't an ordered_set, has bounds (`ttl', `idle', `max_size',
%% `max_memory', `evict'), or has a `structure' other than the default.
-spec rank(table(), term()) -> pos_integer() | none.
rank(Table, Key) ->
    ?TRY(larder_nif:rank(Table, Key), [Table, Key]).

%% @doc Returns the object with a rank, or `none' if there is no such rank. Ranks count from 1
%% for the first object, and from -1 for the last one backwards; 0 is no rank. It takes
%% O(log n), like rank/2, and fails like it.
-spec nth(table(), integer()) -> tuple() | none.
nth(Table, N) ->
    ?TRY(larder_nif:nth(Table, N), [Table, N]).

%% @doc Returns at most `Count' objects, in order, beginning with the one that has the rank
%% `From', as in nth/2: `slice(T, 11, 10)' returns the second ten, `slice(T, -10, 10)'
%% the last ten. Returns `[]' if nth/2 finds no object there. It takes O(log n), and O(1) for each
%% object that is returned, in slices. Otherwise like rank/2.
-spec slice(table(), integer(), non_neg_integer()) -> [tuple()].
slice(Table, From, Count) ->
    ?TRY(larder_select:in_order(larder_nif:slice(Table, From, Count)), [Table, From, Count]).

%% @doc Returns the number of objects of an ordered_set whose keys are at least `Low' and
%% less than `High'. It takes O(log n), whatever the number. Otherwise like rank/2.
-spec count_range(table(), Low :: term(), High :: term()) -> non_neg_integer().
count_range(Table, Low, High) ->
    ?TRY(larder_nif:count_range(Table, Low, High), [Table, Low, High]).
