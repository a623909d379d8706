%% From key to key, and from slot to slot. Part of module larder: see larder.erl.

%% @doc The first key.
-spec first(table()) -> term() | '$end_of_table'.
first(Table) ->
    ?TRY(larder_nif:first(Table), [Table]).

%% @doc The last key; the first, if the table is no ordered_set.
-spec last(table()) -> term() | '$end_of_table'.
last(Table) ->
    ?TRY(larder_nif:last(Table), [Table]).

%% @doc The key after a key, which has to be in the table unless it is an
%% ordered_set.
-spec next(table(), term()) -> term() | '$end_of_table'.
next(Table, Key) ->
    ?TRY(larder_nif:next(Table, Key), [Table, Key]).

%% @doc The key before a key; as next/2, if the table is no ordered_set.
-spec prev(table(), term()) -> term() | '$end_of_table'.
prev(Table, Key) ->
    ?TRY(larder_nif:prev(Table, Key), [Table, Key]).

%% @doc As first/1, with the key's objects.
-spec first_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
first_lookup(Table) ->
    ?TRY(larder_nif:first_lookup(Table), [Table]).

%% @doc As last/1, with the key's objects.
-spec last_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
last_lookup(Table) ->
    ?TRY(larder_nif:last_lookup(Table), [Table]).

%% @doc As next/2, with the key's objects.
-spec next_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
next_lookup(Table, Key) ->
    ?TRY(larder_nif:next_lookup(Table, Key), [Table, Key]).

%% @doc As prev/2, with the key's objects.
-spec prev_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
prev_lookup(Table, Key) ->
    ?TRY(larder_nif:prev_lookup(Table, Key), [Table, Key]).

%% @doc The objects in a slot. Slots are counted from 0 and end with
%% `$end_of_table'.
-spec slot(table(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(Table, Slot) ->
    ?TRY(larder_nif:slot(Table, Slot), [Table, Slot]).
