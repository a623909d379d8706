%% Secondary indexes. Part of module larder: see larder.erl.

%% @doc Adds a secondary index `{Name, What, Options}' to a table. (The option `{index, [Index]}'
%% of new/2 creates a table with indexes.) `What' is the indexed <em>value</em> of an object:
%%
%% <ul>
%% <li>a position: the element there. Objects that are too short aren't in the index;</li>
%% <li>an expression, as in the body of a match specification, over ``'$_''', for instance
%%     ``{map_get, zip, {element, 5, '$_'}}''. Objects for which it fails aren't in
%%     the index.</li>
%% </ul>
%%
%% Options:
%%
%% <ul>
%% <li>`unique': no two objects have equal values. A write that would violate this changes
%%     nothing. It fails with `badarg', and the error names the index; insert_new/2 returns `false',
%%     transaction/2 returns `{aborted, {not_unique, Name}}';</li>
%% <li>`each': the value is a list, and each of its elements is indexed, as for tags;</li>
%% <li>`ordered': the index is ordered. All indexes are, so it has no effect.</li>
%% </ul>
%%
%% Values are compared by `=='. Other processes can read and write the table during the call. The
%% call takes the time of a scan of the table, in slices. An index contains the keys of the objects,
%% not the objects.
%%
%% select/2, select_count/2, select_delete/2, select_take/2, select_replace/2, match/2,
%% match_object/2, match_delete/2 and their variants use an index automatically if a pattern
%% or guards bind the element or the expression to a value or to a range: see explain/2. They don't
%% use one with the option `each'.
%%
%% An index takes some 5 KiB, and from 13 bytes on for each entry, by the lengths of value and key:
%% `info(Table, indexes)' has its `bytes'. Each write of the table writes its entries, too, in O(log
%% n) for each index whose value changes.
%%
%% Fails with `badarg' if the index is invalid, if the table already has an index of that name, if
%% the table is a snapshot or a transaction's view or has a `structure' other than the default, and
%% if two objects have equal values in a unique index. There is no such index then.
-spec add_index(table(), index()) -> true.
add_index(Table, Index) ->
    ?TRY(larder_nif:add_index(Table, Index), [Table, Index]).

%% @doc Drops the index with this name. The right to write to the table is needed. It takes constant
%% time; the memory is freed in the background. Fails with `badarg' if the table has no such index,
%% and for a snapshot or a transaction's view.
-spec drop_index(table(), Name :: atom()) -> true.
drop_index(Table, Name) ->
    ?TRY(larder_nif:drop_index(Table, Name), [Table, Name]).

%% @doc Returns the objects that have a value in an index, compared by `=='. Each of them was in the
%% table with that value at some instant of the call. An object that has the value during the whole
%% call is returned exactly once. In a snapshot and in a transaction, the objects are those of its
%% instant.
%%
%% It takes O(log n), and O(log n) more for each object. In a bag, all objects of the key are read
%% for each entry. Fails with `badarg' if the table has no such index, or if the index is still
%% being added.
-spec index_lookup(table(), Name :: atom(), term()) -> [tuple()].
index_lookup(Table, Name, Value) ->
    ?TRY(larder_index:lookup(Table, Name, Value), [Table, Name, Value]).

%% @doc Returns the results of a match specification for the objects of an index, in the order of
%% the values. An object with several values is visited several times. An object whose value changes
%% during the call may be visited twice or not at all. If the specification limits the indexed
%% element, only the entries within the limits are read. It takes O(log n) for each entry that is
%% read, in slices. In a bag, all objects of the key are read for each entry, so a key with many
%% objects of different values takes time in proportion to the square of their number; select/2
%% doesn't. Fails with `badarg' like index_lookup/3, and if the specification is invalid.
-spec index_select(table(), Name :: atom(), match_spec()) -> [term()].
index_select(Table, Name, Spec) ->
    ?TRY(larder_index:select(Table, Name, Spec), [Table, Name, Spec]).

%% @doc Like index_select/3, but returns up to `Limit' results at a time, with a continuation for
%% index_select/1. Returns ``'$end_of_table''' if there are no more.
-spec index_select(table(), Name :: atom(), match_spec(), pos_integer()) ->
    {[term()], index_continuation()} | '$end_of_table'.
index_select(Table, Name, Spec, Limit) ->
    ?TRY(larder_index:some(Table, Name, Spec, Limit), [Table, Name, Spec, Limit]).

%% @doc Continues an index_select/4. Fails with `badarg' if the argument isn't such a continuation,
%% or if the index is gone.
-spec index_select(index_continuation()) -> {[term()], index_continuation()} | '$end_of_table'.
index_select(Continuation) ->
    ?TRY(larder_index:again(Continuation), [Continuation]).

%% @doc Returns how a match specification would be evaluated now. `plan' is `key' (by the keys that
%% it names), `range' (of the keys of an ordered_set), `{index, Name}', `scan', or `nothing' if no
%% object can match. `rows' is the maximum number of objects to be read, or `unknown', as for a scan
%% of a snapshot or of a transaction's view.
%% `indexes' has each index that could be used, with the number of its entries that would be read.
%%
%% Only counts are read. It takes O(log n) for each index. Fails with `badarg' if the specification
%% is invalid.
-spec explain(table(), match_spec()) -> plan().
explain(Table, Spec) ->
    ?TRY(larder_index:explain(Table, Spec), [Table, Spec]).
