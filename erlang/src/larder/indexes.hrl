%% Secondary indexes. Part of module larder: see larder.erl.

%% @doc Adds a secondary index `{Name, What, Options}' to a table. `{index, [Index]}' of
%% new/2 makes a table with some. `What' says what the index has of each object, its
%% *value*:
%%
%% <ul>
%% <li>a position: that element. Objects that are shorter are not in the index;</li>
%% <li>an expression, as in the body of a match specification, over `'$_'':
%%     `{map_get, zip, {element, 5, '$_'}}'. Objects for which it fails are not in
%%     the index.</li>
%% </ul>
%%
%% Options:
%%
%% <ul>
%% <li>`unique': no two objects have equal values. A write that would make two is
%%     `badarg', which names the index, and changes nothing; insert_new/2 gives `false',
%%     transaction/2 `{aborted, {not_unique, Name}}';</li>
%% <li>`each': the value is a list, and each of its elements is a value: tags;</li>
%% <li>`ordered': in order. Every index is.</li>
%% </ul>
%%
%% Values are the same if they are equal (`=='). Others read and write the table
%% meanwhile. The call takes the time of a scan of the table, in slices. An index has the
%% keys of the objects, not the objects.
%%
%% select/2, select_count/2, select_delete/2, select_replace/2, match/2, match_object/2,
%% match_delete/2 and their like use an index of an element by themselves where a pattern
%% or guards say what the element equals, or between which values it lies: see explain/2.
%%
%% `badarg' for an index that can't be, for a name that the table has, for a table on a
%% structure, and if two objects have one value in a unique index.
-spec add_index(table(), index()) -> true.
add_index(Table, Index) ->
    ?TRY(larder_nif:add_index(Table, Index), [Table, Index]).

%% @doc Drops an index, of this name. It takes the same short time always; `badarg' if the
%% table has no such index.
-spec drop_index(table(), Name :: atom()) -> true.
drop_index(Table, Name) ->
    ?TRY(larder_nif:drop_index(Table, Name), [Table, Name]).

%% @doc The objects that have a value in an index (`=='). Each was in the table, with that
%% value, at some moment of the call; one that has it throughout is there once. Of a
%% snapshot and in a transaction, those of its moment.
%%
%% It takes O(log n), and as much for each object. `badarg' if the table has no such index,
%% or if it is still being added.
-spec index_lookup(table(), Name :: atom(), term()) -> [tuple()].
index_lookup(Table, Name, Value) ->
    ?TRY(larder_index:lookup(Table, Name, Value), [Table, Name, Value]).

%% @doc What a match specification makes of the objects of an index, in the order of their
%% values. An object with several values is met several times, one whose value changes
%% meanwhile perhaps twice or not at all. Where the specification limits the element that
%% is indexed, only those entries are read. `badarg' as of index_lookup/3.
-spec index_select(table(), Name :: atom(), match_spec()) -> [term()].
index_select(Table, Name, Spec) ->
    ?TRY(larder_index:select(Table, Name, Spec), [Table, Name, Spec]).

%% @doc As index_select/3, so many at a time. The continuation is for index_select/1, and
%% `'$end_of_table'' says that there are no more.
-spec index_select(table(), Name :: atom(), match_spec(), pos_integer()) ->
    {[term()], index_continuation()} | '$end_of_table'.
index_select(Table, Name, Spec, Limit) ->
    ?TRY(larder_index:some(Table, Name, Spec, Limit), [Table, Name, Spec, Limit]).

%% @doc Goes on with an index_select/4. `badarg' for what is no continuation of that, and if
%% the index has gone.
-spec index_select(index_continuation()) -> {[term()], index_continuation()} | '$end_of_table'.
index_select(Continuation) ->
    ?TRY(larder_index:again(Continuation), [Continuation]).

%% @doc How a match specification would be answered now. `plan' is `key' (by keys that it
%% names), `range' (of an ordered_set's keys), `{index, Name}', `scan', or `nothing' if no
%% object can fit. `rows' is how many objects are looked at, at most, or `unknown'.
%% `indexes' has each index that could be used, and how many of its entries would be read.
%%
%% Nothing is read but counts: it takes O(log n) for each index.
-spec explain(table(), match_spec()) -> plan().
explain(Table, Spec) ->
    ?TRY(larder_index:explain(Table, Spec), [Table, Spec]).
