%% From key to key, and from slot to slot. Part of module larder: see larder.erl.

%% @doc The first key, or `$end_of_table'. In an ordered_set it is the least in Erlang's
%% order of terms; in other tables the order is the table's own, and stays while nothing
%% is inserted or deleted.
%%
%% Going from key to key, each key that is there throughout is met exactly once; one that
%% comes or goes meanwhile may be met or not.
-spec first(table()) -> term() | '$end_of_table'.
first(Table) ->
    ?TRY(larder_nif:first(Table), [Table]).

%% @doc The last key; the first, if the table is no ordered_set. As first/1 otherwise.
-spec last(table()) -> term() | '$end_of_table'.
last(Table) ->
    ?TRY(larder_nif:last(Table), [Table]).

%% @doc The key after a key, or `$end_of_table'. In an ordered_set the key needs not be
%% there: the answer is the next greater one.
%%
%% In other tables a key that is not there is `badarg', unless it was deleted while the
%% table was fixed (safe_fixtable/2). It takes the time of insert/2.
-spec next(table(), term()) -> term() | '$end_of_table'.
next(Table, Key) ->
    ?TRY(larder_nif:next(Table, Key), [Table, Key]).

%% @doc The key before a key; as next/2, if the table is no ordered_set. It takes the
%% time of insert/2.
-spec prev(table(), term()) -> term() | '$end_of_table'.
prev(Table, Key) ->
    ?TRY(larder_nif:prev(Table, Key), [Table, Key]).

%% @doc The first key with its objects, in one call: `{Key, Objects}', or
%% `$end_of_table'. The objects are those of the moment at which the key was found.
-spec first_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
first_lookup(Table) ->
    ?TRY(larder_nif:first_lookup(Table), [Table]).

%% @doc The last key with its objects, as first_lookup/1. In a table that is no
%% ordered_set it is the first.
-spec last_lookup(table()) -> {term(), [tuple()]} | '$end_of_table'.
last_lookup(Table) ->
    ?TRY(larder_nif:last_lookup(Table), [Table]).

%% @doc The next key with its objects: as next/2 and first_lookup/1. Nobody can delete
%% the key in between, as between next/2 and lookup/2.
-spec next_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
next_lookup(Table, Key) ->
    ?TRY(larder_nif:next_lookup(Table, Key), [Table, Key]).

%% @doc The key before with its objects: as prev/2 and first_lookup/1. In a table that is
%% no ordered_set it is next_lookup/2.
-spec prev_lookup(table(), term()) -> {term(), [tuple()]} | '$end_of_table'.
prev_lookup(Table, Key) ->
    ?TRY(larder_nif:prev_lookup(Table, Key), [Table, Key]).

%% @doc The objects in a slot. Slots are counted from 0 and end with `$end_of_table';
%% beyond that is `badarg'. Together they hold every object once, while nobody inserts or
%% deletes.
-spec slot(table(), non_neg_integer()) -> [tuple()] | '$end_of_table'.
slot(Table, Slot) ->
    ?TRY(larder_nif:slot(Table, Slot), [Table, Slot]).
