%% Traversal from key to key, and from slot to slot. Part of module larder: see larder.erl.

%% @doc Returns the first key, or `$end_of_table'. In an ordered_set it is the least key in the
%% Erlang term order. Other tables have an unspecified order, which stays the same while nothing is
%% inserted or deleted.
%%
%% A traversal from key to key visits each key that is in the table throughout exactly once. A key
%% that is inserted or deleted during the traversal may be visited or not. The cost is that of
%% insert/2.
-spec first(table()) -> term() | '$end_of_table'.
first(Table) ->
    ?TRY(larder_nif:first(Table), [Table]).

%% @doc Returns the last key of an ordered_set. For other tables it returns the first key.
%% Otherwise like first/1.
-spec last(table()) -> term() | '$end_of_table'.
last(Table) ->
    ?TRY(larder_nif:last(Table), [Table]).

%% @doc Returns the key after a key, or `$end_of_table'. In an ordered_set the key doesn't have to
%% be in the table: the result is the next greater key.
%%
%% In other tables the call fails with `badarg' if the key isn't in the table, unless it was deleted
%% while the table was fixed (safe_fixtable/2). The cost is that of insert/2.
-spec next(table(), term()) -> term() | '$end_of_table'.
next(Table, Key) ->
    ?TRY(larder_nif:next(Table, Key), [Table, Key]).

%% @doc Returns the key before a key. If the table isn't an ordered_set, it is the same as next/2.
%% The cost is that of insert/2.
-spec prev(table(), term()) -> term() | '$end_of_table'.
prev(Table, Key) ->
    ?TRY(larder_nif:prev(Table, Key), [Table, Key]).

%% @doc Returns the first key with its objects, as `{Key, Objects}', or `$end_of_table'. The key and
%% its objects are read at one instant. The cost is that of first/1 and lookup/2.
-spec first_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
first_lookup(Table) ->
    ?TRY(larder_nif:first_lookup(Table), [Table]).

%% @doc Returns the last key with its objects, like first_lookup/1. If the table isn't an
%% ordered_set, the key is the first one.
-spec last_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
last_lookup(Table) ->
    ?TRY(larder_nif:last_lookup(Table), [Table]).

%% @doc Returns the next key with its objects: like next/2 and first_lookup/1. The key can't be
%% deleted in between, as it can between next/2 and lookup/2.
-spec next_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
next_lookup(Table, Key) ->
    ?TRY(larder_nif:next_lookup(Table, Key), [Table, Key]).

%% @doc Returns the key before a key with its objects: like prev/2 and first_lookup/1. If the table
%% isn't an ordered_set, it is the same as next_lookup/2.
-spec prev_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
prev_lookup(Table, Key) ->
    ?TRY(larder_nif:prev_lookup(Table, Key), [Table, Key]).

%% @doc Returns the objects in a slot. Slots are numbered from 0. The slot after the last one is
%% `$end_of_table'; beyond that the call fails with `badarg'. While nobody inserts or deletes, each
%% object is in exactly one slot.
%%
%% In an ordered_set slot `I' has the object of rank `I + 1' (see rank/2): O(log n), and the first
%% call counts the table. From then on, the first write to each leaf after it was counted marks that
%% count as stale. With bounds or on another `structure' it takes O(I), in one go. Other tables have
%% 8 to 16 objects in a slot on average, which takes O(1).
-spec slot(table(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(Table, Slot) ->
    ?TRY(larder_nif:slot(Table, Slot), [Table, Slot]).
