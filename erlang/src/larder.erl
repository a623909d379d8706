%% @doc Term storage: tables of tuples in memory, shared by all processes of a
%% node. The functions, options, results and errors are those of `ets', so a
%% program moves over by writing `larder:' for `ets:', or by compiling with
%% `{parse_transform, larder_transform}'.
%%
%% == What is promised ==
%% <ul>
%% <li>An operation on one object is atomic and isolated, and so are insert/2
%%     and insert_new/2 of a list, however long, and delete_all_objects/1.</li>
%% <li>Readers wait for nobody. A traversal sees every object that is there
%%     throughout exactly once, whether or not the table is fixed.</li>
%% <li>No call holds a scheduler for much longer than half a millisecond,
%%     whatever the size of the table. Dropping a table costs nothing to the
%%     caller.</li>
%% <li>Guards on the key of an ordered_set limit a select as a bound prefix
%%     does: ``[{{'$1','_'}, [{'>=','$1',A}, {'<','$1',B}], ['$_']}]'' visits
%%     what it returns.</li>
%% <li>Binaries over 127 bytes are shared with the emulator, as in `ets': they
%%     are stored and come back without a copy. A small part of a large binary
%%     is copied, and keeps nothing of the rest.</li>
%% </ul>
%%
%% == What differs from `ets' ==
%% <ul>
%% <li>Functions and options of newer releases are there on older ones:
%%     first_lookup/1, next_lookup/2, last_lookup/1, prev_lookup/2,
%%     lookup_element/4, update_element/4, `{heir, Pid}'.</li>
%% <li>lookup_many/2 and take_many/2 are new, and so are rank/2, nth/2, slice/3
%%     and count_range/3: ranks in an ordered_set; snapshot/1, release/1
%%     and diff/2: tables as of one moment; transaction/2, abort/1 and commit/1:
%%     several changes at one moment; subscribe/3: what changes.</li>
%% <li>A list that is inserted into a bag keeps its order, as in `ets' from
%%     OTP 25.3 on.</li>
%% <li>`info(Table, binary)' is always `[]', and `info(Table, stats)' has
%%     Larder's own figures: see info/2.</li>
%% <li>`{structure, Name}' and `{structure, {Name, Options}}' are options of
%%     new/2; structures/0 lists what there is.</li>
%% </ul>
%%
%% Errors are `badarg' with `error_info', as those of `ets': see
%% format_error/2.
-module(larder).

-export([all/0, structures/0, new/2, delete/1, rename/2, whereis/1, info/1, info/2, give_away/3,
         setopts/2,
         safe_fixtable/2, delete_all_objects/1]).
-export([snapshot/1, release/1, diff/2]).
-export([subscribe/3, unsubscribe/1, snapshot_and_subscribe/3]).
-export([insert/2, insert_new/2, lookup/2, lookup_many/2, lookup_element/3, lookup_element/4,
         member/2,
         delete/2, delete_object/2, take/2, take_many/2, update_counter/3, update_counter/4,
         update_element/3, update_element/4]).
-export([first/1, last/1, next/2, prev/2, first_lookup/1, last_lookup/1, next_lookup/2,
         prev_lookup/2,
         slot/2]).
-export([rank/2, nth/2, slice/3, count_range/3]).
-export([match/1, match/2, match/3, match_object/1, match_object/2, match_object/3, match_delete/2,
         select/1, select/2, select/3, select_reverse/1, select_reverse/2, select_reverse/3,
         select_count/2, select_delete/2, select_replace/2, tab2list/1]).
-export([match_spec_compile/1, match_spec_run/2, is_compiled_ms/1, repair_continuation/2, test_ms/2,
         fun2ms/1]).
-export([transaction/2, transaction/3, abort/1, commit/1]).
-export([foldl/3, foldr/3, init_table/2, from_dets/2, to_dets/2, tab2file/2, tab2file/3, file2tab/1,
         file2tab/2, tabfile_info/1, table/1, table/2, i/0, i/1, i/2, i/3, format_error/2]).

-export_type([table/0, tid/0, name/0, type/0, access/0, option/0, heir/0, continuation/0,
              match_pattern/0, match_spec/0, compiled_match_spec/0, update_op/0, structure/0,
              snapshot/0, difference/0, feed/0, feed_options/0]).

-compile({no_auto_import, [whereis/1]}).

-type name() :: atom().
%% The name of a named table.
-type tid() :: reference().
%% The id of a table without a name.
-type table() :: name() | tid().
-type type() :: set | ordered_set | bag | duplicate_bag.
-type access() :: public | protected | private.
-type heir() :: {heir, pid(), term()} | {heir, pid()} | {heir, none}.
-type setting() :: heir() | {protection, access()}.
-type option() :: type() | access() | named_table | {keypos, pos_integer()} | compressed | heir()
                | {write_concurrency, boolean() | auto} | {read_concurrency, boolean()}
                | {decentralized_counters, boolean()} | {structure, structure()}.
-type structure() :: Name :: atom() | {Name :: atom(), [{atom(), integer() | atom()}]}.
%% What a table is built on; see structures/0.
-type snapshot() :: tid().
%% A table as of one moment; see snapshot/1.
-type difference() :: {insert, New :: tuple()} | {replace, Old :: tuple(), New :: tuple()}
                    | {delete, Old :: tuple()}.
%% What differs between two snapshots; see diff/2.
-type feed() :: reference().
%% A subscription; see subscribe/3.
-type feed_options() :: #{limit => pos_integer(), mailbox => pos_integer()}.
-type match_pattern() :: atom() | tuple().
-type match_spec() :: [{match_pattern(), [term()], [term()]}].
-type compiled_match_spec() :: reference().
-type continuation() :: '$end_of_table'
                      | {tid(), pos_integer(), forward | backward, binary(), compiled_match_spec()}.
%% Where a limited match or select goes on. What is in it may change.
-type update_op() :: {pos_integer(), integer()}
                   | {pos_integer(), integer(), Threshold :: integer(), SetValue :: integer()}.

%% The call, with the library's errors raised as this function's own.
-define(TRY(Call, Args),
        try Call
        catch error:{larder, Cause} ->
            erlang:error(larder_error:reason(Cause), Args, larder_error:info(Cause))
        end).

%% update_element, of a position that the object has not: whether that is a
%% cause depends on the release.
-define(TRY_ELEMENT(Call, Args),
        try Call
        catch error:{larder, Cause} ->
            erlang:error(larder_error:reason(Cause), Args,
                         larder_error:info(larder_error:element_cause(Cause)))
        end).

%% ---- tables ----

%% @doc All tables of the node.
-spec all() -> [table()].
all() ->
    larder_nif:all().

%% @doc The structures that a table can be built on, by `{structure, Name}' or
%% `{structure, {Name, [{Option, Value}]}}' in new/2. Of each: its name, the
%% types of table that it carries, its options (what they take, what they are
%% unless said, what they do), and when to use it.
-spec structures() -> [#{name := atom(), types := [type()], about := binary(),
                         options := #{atom() => #{takes := binary(), default := integer() | atom(),
                                                  about := binary()}}}].
structures() ->
    [#{name => Name, types => Types, about => About,
       options => maps:from_list([{Option, #{takes => Takes, default => Default, about => Does}}
                                  || {Option, Takes, Default, Does} <- Options])}
     || {Name, Types, Options, About} <- larder_nif:structures()].

%% @doc Makes a table, which the calling process owns. The options are those
%% of `ets:new/2', and `{structure, Name}' or `{structure, {Name, Options}}',
%% which structures/0 explains.
-spec new(name(), [option()]) -> table().
new(Name, Options) ->
    Table = ?TRY(larder_nif:new(Name, Options), [Name, Options]),
    larder_heir:guard(Options),
    Table.

%% @doc Drops a table. Whoever may write to it may drop it.
-spec delete(table()) -> true.
delete(Table) ->
    ?TRY(larder_nif:delete_table(Table), [Table]).

%% @doc Gives a table another name.
-spec rename(table(), name()) -> table().
rename(Table, Name) ->
    ?TRY(larder_nif:rename(Table, Name), [Table, Name]).

%% @doc The id behind a table's name: quicker to use, and not to be mistaken
%% for a later table of that name.
-spec whereis(table()) -> tid() | undefined.
whereis(Name) ->
    ?TRY(larder_nif:whereis(Name), [Name]).

%% @doc What is known of a table, as a list of items.
-spec info(table()) -> [{atom(), term()}] | undefined.
info(Table) ->
    ?TRY(larder_info:all(Table), [Table]).

%% @doc One item of what is known of a table: those of info/1, and `fixed',
%% `safe_fixed', `safe_fixed_monotonic_time', `structure', `stats', `binary',
%% `snapshots', `snapshot_memory' and `snapshot'.
%%
%% `snapshots' is how many snapshots of the table live, and `snapshot_memory'
%% how many bytes are kept for them. `snapshot' is `false' for a table that is
%% none; for a snapshot it is a map: `table' is the table of which it was taken
%% (`undefined' once that is gone), `number' grows from one snapshot to the
%% next and is the same for those that were taken together, and `age' is in
%% milliseconds.
%%
%% `binary' is always `[]': which binaries a table refers to is not kept.
%% `stats' is a map of what the structure counts, such as leaves and splits.
-spec info(table(), atom()) -> term() | undefined.
info(Table, Item) ->
    ?TRY(larder_info:item(Table, Item), [Table, Item]).

%% @doc Makes another process of this node the owner, and sends it
%% `{'ETS-TRANSFER', Table, self(), Data}'.
-spec give_away(table(), pid(), term()) -> true.
give_away(Table, Pid, Data) ->
    larder_heir:guard_next(Table, Pid),
    ?TRY(larder_nif:give_away(Table, Pid, Data), [Table, Pid, Data]).

%% @doc Sets the heir. Only the owner can. As in `ets', `{protection, Access}'
%% is an option too.
-spec setopts(table(), setting() | [setting()]) -> true.
setopts(Table, Options) ->
    ?TRY(larder_nif:setopts(Table, Options), [Table, Options]),
    larder_heir:guard(Options),
    true.

%% @doc Fixes or releases a table for the calling process. Traversals don't
%% need it; `next/2' on a deleted key of a set or bag does.
-spec safe_fixtable(table(), boolean()) -> true.
safe_fixtable(Table, Fix) ->
    ?TRY(larder_nif:safe_fixtable(Table, Fix), [Table, Fix]).

%% @doc Deletes all objects, at once for everybody.
-spec delete_all_objects(table()) -> true.
delete_all_objects(Table) ->
    ?TRY(larder_nif:delete_all_objects(Table), [Table]).

%% ---- as of one moment ----

%% @doc A snapshot of a table: the table as it is at this moment, for as long as
%% the snapshot lives. Of a list of tables: a list of snapshots, in that order,
%% all of one moment. Nothing is copied, and it takes the same short time
%% whatever the tables' sizes.
%%
%% The snapshot is a table identifier. Every function that reads takes it, with
%% the rights of the table: lookup/2, select/2 and the like, first/1 and next/2,
%% foldl/3, info/2, tab2file/2, QLC. Those that write are `badarg'. It belongs to
%% the calling process, and ends with release/1 or with that process. It stays
%% when its table is emptied or deleted.
%%
%% Writers don't wait. While a table has snapshots, the first change of each key
%% after a snapshot keeps what was there: so much memory, and about one more
%% insert of time. `info(Snapshot, size)' counts the objects the first time.
%%
%% `badarg' for a snapshot, and for a table on a structure other than the usual.
-spec snapshot(table()) -> snapshot();
              ([table()]) -> [snapshot()].
snapshot(Tables) when is_list(Tables) ->
    ?TRY(larder_nif:snapshot(Tables), [Tables]);
snapshot(Table) ->
    [Snapshot] = ?TRY(larder_nif:snapshot([Table]), [Table]),
    Snapshot.

%% @doc Ends a snapshot, which only its owner can. What was kept for it alone is
%% freed behind.
-spec release(snapshot()) -> true.
release(Snapshot) ->
    ?TRY(larder_nif:release(Snapshot), [Snapshot]).

%% @doc What has to be done to the first snapshot's objects to get the second's,
%% both of one table, in no particular order. It takes the time of what changed
%% since the oldest snapshot that lives: keys that did not change are not read,
%% unless delete_all_objects/1 came between the two.
%%
%% A key's object in a set or ordered_set that is another one is a `replace';
%% objects of a bag are inserted and deleted.
-spec diff(snapshot(), snapshot()) -> [difference()].
diff(Old, New) ->
    ?TRY(larder_nif:diff(Old, New), [Old, New]).

%% ---- what changes ----

%% @doc Subscribes the calling process to what changes in a table from here on.
%% For each commit that changes objects it gets a message
%% `{larder, Ref, Seq, Event}', or `{larder, Ref, Seq, [Event]}' if the commit
%% changed several objects: a list that was inserted, a transaction, a key's
%% objects in a bag. More than 500 come in parts. `Seq' only grows, and a
%% transaction has the same `Seq' in all its tables. An event is
%%
%% <ul>
%% <li>`{insert, New}', `{replace, Old, New}' or `{delete, Old}';</li>
%% <li>`clear': all objects were deleted at once, by delete_all_objects/1;</li>
%% <li>`{overflow, Lost}': the process fell behind by more than its limit, and so
%%     many events were lost. To follow the table again, subscribe anew with
%%     snapshot_and_subscribe/3;</li>
%% <li>`gone': the table was deleted. It is the last message.</li>
%% </ul>
%%
%% With a match specification, events come only of objects that it matches,
%% whatever it makes of them: of a `replace', the old or the new.
%%
%% Options: `limit', events that the process may fall behind (10,000): so many
%% are kept for it, and no more. `mailbox', messages in its mailbox at which no
%% more are sent until it has taken some (1,000).
%%
%% The right to read the table is needed. Writers never wait for subscribers. The
%% subscription ends with unsubscribe/1, and with the process.
-spec subscribe(table(), match_spec() | all, feed_options()) -> feed().
subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:subscribe(Table, MatchSpec, Options), [Table, MatchSpec, Options]).

%% @doc Ends a subscription of the calling process. Messages that were sent before may be in the
%% mailbox; none is sent afterwards.
-spec unsubscribe(feed()) -> true.
unsubscribe(Feed) ->
    ?TRY(larder_feed:unsubscribe(Feed), [Feed]).

%% @doc A snapshot of a table, and a subscription to what changes after it: no
%% change is in both, and none in neither. As of snapshot/1 and subscribe/3.
-spec snapshot_and_subscribe(table(), match_spec() | all, feed_options()) -> {tid(), feed()}.
snapshot_and_subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:snapshot_and_subscribe(Table, MatchSpec, Options),
         [Table, MatchSpec, Options]).

%% ---- objects ----

%% @doc Inserts an object, or a list of objects: all at once for everybody, or
%% none if one is no object of the table.
-spec insert(table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_list(Table, Objects), [Table, Objects]);
insert(Table, Object) ->
    ?TRY(larder_nif:insert(Table, Object), [Table, Object]).

%% @doc As insert/2, unless a key is in the table already: then nothing is
%% inserted and the answer is false.
-spec insert_new(table(), tuple() | [tuple()]) -> boolean().
insert_new(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_new_list(Table, Objects), [Table, Objects]);
insert_new(Table, Object) ->
    ?TRY(larder_nif:insert_new(Table, Object), [Table, Object]).

%% @doc The objects with a key, in the order in which they were inserted.
-spec lookup(table(), term()) -> [tuple()].
lookup(Table, Key) ->
    ?TRY(larder_nif:lookup(Table, Key), [Table, Key]).

%% @doc The objects of several keys: a list for each key, in the keys' order.
%% Quicker than one call for each, and no more of a snapshot.
-spec lookup_many(table(), [term()]) -> [[tuple()]].
lookup_many(Table, Keys) ->
    ?TRY(larder_select:in_order(larder_nif:lookup_many(Table, Keys, [])), [Table, Keys]).

%% @doc The element at a position of the object with a key; of each object,
%% as a list, if the table is a bag or duplicate_bag.
-spec lookup_element(table(), term(), pos_integer()) -> term() | [term()].
lookup_element(Table, Key, Position) ->
    ?TRY(larder_nif:lookup_element(Table, Key, Position), [Table, Key, Position]).

%% @doc As lookup_element/3, with an answer for a key that is not there.
-spec lookup_element(table(), term(), pos_integer(), Default) -> term() | [term()] | Default.
lookup_element(Table, Key, Position, Default) ->
    ?TRY(larder_nif:lookup_element_default(Table, Key, Position, Default),
         [Table, Key, Position, Default]).

%% @doc Whether there is an object with the key.
-spec member(table(), term()) -> boolean().
member(Table, Key) ->
    ?TRY(larder_nif:member(Table, Key), [Table, Key]).

%% @doc Deletes the objects with a key.
-spec delete(table(), term()) -> true.
delete(Table, Key) ->
    ?TRY(larder_nif:delete(Table, Key), [Table, Key]).

%% @doc Deletes the object, if it is there: all of it has to be the same.
-spec delete_object(table(), tuple()) -> true.
delete_object(Table, Object) ->
    ?TRY(larder_nif:delete_object(Table, Object), [Table, Object]).

%% @doc Deletes the objects with a key, and gives them.
-spec take(table(), term()) -> [tuple()].
take(Table, Key) ->
    ?TRY(larder_nif:take(Table, Key), [Table, Key]).

%% @doc As take/2 for several keys, one after another: a list for each, in the
%% keys' order.
-spec take_many(table(), [term()]) -> [[tuple()]].
take_many(Table, Keys) when length(Keys) >= 0 ->
    ?TRY(larder_select:in_order(larder_nif:take_many(Table, Keys, [])), [Table, Keys]);
take_many(Table, Keys) ->
    erlang:error(badarg, [Table, Keys], larder_error:info(none)).

%% @doc Adds to elements of the object with a key, which are integers.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()]) ->
    integer() | [integer()].
update_counter(Table, Key, Ops) ->
    ?TRY(larder_nif:update_counter(Table, Key, Ops), [Table, Key, Ops]).

%% @doc As update_counter/3, with an object to begin with if there is none.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()], tuple()) ->
          integer() | [integer()].
update_counter(Table, Key, Ops, Default) ->
    ?TRY(larder_nif:update_counter_default(Table, Key, Ops, Default), [Table, Key, Ops, Default]).

%% @doc Replaces elements of the object with a key; false if there is none.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}]) ->
    boolean().
update_element(Table, Key, Elements) ->
    ?TRY_ELEMENT(larder_nif:update_element(Table, Key, Elements), [Table, Key, Elements]).

%% @doc As update_element/3, with an object to begin with if there is none.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}],
                     tuple()) -> true.
update_element(Table, Key, Elements, Default) ->
    ?TRY_ELEMENT(larder_nif:update_element_default(Table, Key, Elements, Default),
                 [Table, Key, Elements, Default]).

%% ---- from key to key ----

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

%% ---- by rank ----

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

%% @doc The object with a rank: from 1 on from the first, from -1 on from the
%% last; `none' if there are fewer, and for 0. As rank/2.
-spec nth(table(), integer()) -> tuple() | none.
nth(Table, N) ->
    ?TRY(larder_nif:nth(Table, N), [Table, N]).

%% @doc At most so many objects, in order, from that with a rank on, which is
%% counted as by nth/2: `slice(T, 11, 10)' is the second ten, `slice(T, -10, 10)'
%% the last. Nothing, if nth/2 finds nothing there. As rank/2.
-spec slice(table(), integer(), non_neg_integer()) -> [tuple()].
slice(Table, From, Count) ->
    ?TRY(larder_select:in_order(larder_nif:slice(Table, From, Count)), [Table, From, Count]).

%% @doc How many objects of an ordered_set have keys from `Low' on and before
%% `High'. As rank/2.
-spec count_range(table(), Low :: term(), High :: term()) -> non_neg_integer().
count_range(Table, Low, High) ->
    ?TRY(larder_nif:count_range(Table, Low, High), [Table, Low, High]).

%% ---- by pattern ----

%% @doc What the pattern's variables are bound to, for each object that fits.
-spec match(table(), match_pattern()) -> [[term()]].
match(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match, Pattern, forward), [Table, Pattern]).

%% @doc As match/2, so many at a time.
-spec match(table(), match_pattern(), pos_integer()) ->
    {[[term()]], continuation()} | '$end_of_table'.
match(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Goes on with a match/3.
-spec match(continuation()) -> {[[term()]], continuation()} | '$end_of_table'.
match(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc The objects that fit a pattern.
-spec match_object(table(), match_pattern()) -> [tuple()].
match_object(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match_object, Pattern, forward), [Table, Pattern]).

%% @doc As match_object/2, so many at a time.
-spec match_object(table(), match_pattern(), pos_integer()) ->
    {[tuple()], continuation()} | '$end_of_table'.
match_object(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match_object, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Goes on with a match_object/3.
-spec match_object(continuation()) -> {[tuple()], continuation()} | '$end_of_table'.
match_object(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Deletes the objects that fit a pattern.
-spec match_delete(table(), match_pattern()) -> true.
match_delete(Table, Pattern) ->
    _ = ?TRY(larder_nif:match_delete(Table, Pattern), [Table, Pattern]),
    true.

%% @doc What a match specification makes of the objects.
-spec select(table(), match_spec()) -> [term()].
select(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, forward), [Table, Spec]).

%% @doc As select/2, so many at a time.
-spec select(table(), match_spec(), pos_integer()) -> {[term()], continuation()} | '$end_of_table'.
select(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, forward),
         [Table, Spec, Limit]).

%% @doc Goes on with a select/3.
-spec select(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc As select/2; an ordered_set is gone through from its last key.
-spec select_reverse(table(), match_spec()) -> [term()].
select_reverse(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, backward), [Table, Spec]).

%% @doc As select_reverse/2, so many at a time.
-spec select_reverse(table(), match_spec(), pos_integer()) ->
    {[term()], continuation()} | '$end_of_table'.
select_reverse(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, backward),
         [Table, Spec, Limit]).

%% @doc Goes on with a select_reverse/3.
-spec select_reverse(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select_reverse(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc For how many objects a match specification gives `true'.
-spec select_count(table(), match_spec()) -> non_neg_integer().
select_count(Table, Spec) ->
    ?TRY(larder_nif:select_count(Table, Spec), [Table, Spec]).

%% @doc Deletes the objects for which a match specification gives `true', and
%% says how many.
-spec select_delete(table(), match_spec()) -> non_neg_integer().
select_delete(Table, Spec) ->
    ?TRY(larder_nif:select_delete(Table, Spec), [Table, Spec]).

%% @doc Replaces objects by what a match specification makes of them, which
%% has to have the same key, and says how many. Each by itself is atomic.
-spec select_replace(table(), match_spec()) -> non_neg_integer().
select_replace(Table, Spec) ->
    ?TRY(larder_nif:select_replace(Table, Spec), [Table, Spec]).

%% @doc All objects.
-spec tab2list(table()) -> [tuple()].
tab2list(Table) ->
    ?TRY(larder_select:every(Table), [Table]).

%% ---- match specifications ----

%% @doc Compiles a match specification for match_spec_run/2.
-spec match_spec_compile(match_spec()) -> compiled_match_spec().
match_spec_compile(Spec) ->
    ?TRY(larder_nif:compile(Spec), [Spec]).

%% @doc What a compiled match specification makes of the terms of a list.
-spec match_spec_run([term()], compiled_match_spec()) -> [term()].
match_spec_run(Terms, Program) ->
    ?TRY(lists:reverse(larder_nif:run(Terms, Program, [])), [Terms, Program]).

%% @doc Whether a term is a compiled match specification: not any more, if it
%% has been somewhere else than in this node's memory.
-spec is_compiled_ms(term()) -> boolean().
is_compiled_ms(Term) ->
    larder_nif:is_compiled(Term).

%% @doc Makes a continuation good again that was somewhere else, such as in a
%% file. The match specification is the one with which it began.
-spec repair_continuation(continuation(), match_spec()) -> continuation().
repair_continuation('$end_of_table' = End, _Spec) ->
    End;
repair_continuation({Table, Limit, Direction, Place, Program} = Continuation, Spec)
  when (is_atom(Table) orelse is_reference(Table)), is_integer(Limit), is_atom(Direction),
  is_binary(Place) ->
    case is_compiled_ms(Program) of
        true -> Continuation;
        false -> {Table, Limit, Direction, Place, match_spec_compile(Spec)}
    end.

%% @doc Tries a match specification on a tuple.
-spec test_ms(tuple(), match_spec()) -> {ok, term()} | {error, [{warning | error, string()}]}.
test_ms(Term, Spec) ->
    try larder_nif:test(Term, Spec) of
        {ok, _} = Result -> Result;
        false -> {ok, false}
    catch
        error:{larder, _} -> larder_info:why_not(Term, Spec)
    end.

%% @doc The match specification of a fun. The parse transform
%% `larder_transform' puts it in the call's place when compiling; in the shell
%% it is done when called.
-spec fun2ms(function()) -> match_spec() | {error, transform_error}.
fun2ms(Fun) ->
    larder_ms:fun2ms(Fun).

%% ---- whole tables ----

%% @doc Folds over all objects, from the first key of an ordered_set.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldl(Fun, Acc, Table) ->
    larder_fold:foldl(Fun, Acc, Table).

%% @doc Folds over all objects, from the last key of an ordered_set.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldr(Fun, Acc, Table) ->
    larder_fold:foldr(Fun, Acc, Table).

%% @doc Fills a table with what a fun gives.
-spec init_table(table(), fun((read | close) -> term())) -> true.
init_table(Table, Fun) ->
    larder_dets:init_table(Table, Fun).

%% @doc Inserts the objects of an open dets table.
-spec from_dets(table(), dets:tab_name()) -> true.
from_dets(Table, Dets) ->
    larder_dets:from_dets(Table, Dets).

%% @doc Makes an open dets table have the table's objects, and no others.
-spec to_dets(table(), dets:tab_name()) -> dets:tab_name().
to_dets(Table, Dets) ->
    larder_dets:to_dets(Table, Dets).

%% @doc Writes a table to a file, as it is at one moment of the call, whatever
%% others do meanwhile. A file of that name is replaced when the new one is whole.
%% (A table on a structure other than the usual is written as a traversal sees
%% it.)
-spec tab2file(table(), file:name()) -> ok | {error, term()}.
tab2file(Table, File) ->
    larder_file:save(Table, File, []).

%% @doc As tab2file/2, with options. With `{format, ets}' the file is one that
%% `ets:file2tab/1' reads.
-spec tab2file(table(), file:name(), [{extended_info, [object_count | md5sum]} |
                                      {sync, boolean()} | {format, larder | ets}]) ->
          ok | {error, term()}.
tab2file(Table, File, Options) ->
    larder_file:save(Table, File, Options).

%% @doc Makes a table of a file that tab2file/2,3 or `ets:tab2file' wrote.
-spec file2tab(file:name()) -> {ok, table()} | {error, term()}.
file2tab(File) ->
    larder_file:load(File, []).

%% @doc As file2tab/1, with options. Checksums are always looked at, and part of a
%% table is not loaded.
-spec file2tab(file:name(), [{verify, boolean()}]) -> {ok, table()} | {error, term()}.
file2tab(File, Options) ->
    larder_file:load(File, Options).

%% @doc What is in a file that tab2file/2,3 or `ets:tab2file' wrote.
-spec tabfile_info(file:name()) -> {ok, [{atom(), term()}]} | {error, term()}.
tabfile_info(File) ->
    larder_file:info(File).

%% @doc A table as a source of QLC queries.
-spec table(table()) -> qlc:query_handle().
table(Table) ->
    larder_qlc:table(Table, []).

%% @doc As table/1, with options: `{traverse, first_next | last_prev | select | {select, MS}}',
%% `{n_objects, N}'.
-spec table(table(), [term()] | term()) -> qlc:query_handle().
table(Table, Options) ->
    larder_qlc:table(Table, Options).

%% @doc Lists all tables on the terminal.
-spec i() -> ok.
i() ->
    larder_browse:i().

%% @doc Shows a table on the terminal.
-spec i(table()) -> ok.
i(Table) ->
    larder_browse:i(Table).

%% @doc As i/1, so many lines at a time.
-spec i(table(), pos_integer()) -> ok.
i(Table, Height) ->
    larder_browse:i(Table, Height).

%% @doc As i/2, with lines so long.
-spec i(table(), pos_integer(), pos_integer()) -> ok.
i(Table, Height, Width) ->
    larder_browse:i(Table, Height, Width).

%% ---- several tables at once ----

%% @doc As transaction/3, with all options as they are unless said.
-spec transaction([table()], fun(([table()]) -> Result)) -> {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun) ->
    transaction(Tables, Fun, #{}).

%% @doc Calls `Fun' with views of the tables, and makes what it writes to them
%% take effect at one instant: all of it, or nothing.
%%
%% The views are tables that the fun reads and writes by the functions of this
%% module. They show the tables as of one instant, with the fun's own writes,
%% and are gone when the fun has returned. They can't be renamed, deleted,
%% given away or have their options set.
%%
%% If others have changed what the fun has read, it had no effect and is called
%% again: it should do nothing else that can be seen outside. What was looked
%% for and not there, and all of a range that was searched, counts as read, so
%% transactions are serialisable, among themselves and with all operations on
%% one key.
%%
%% abort/1, and any exception, end the transaction without effect. The result
%% is then `{aborted, Reason}': what abort/1 was given; `{Error, Stack}'; what
%% the fun exited with; `{throw, Thrown}'.
%%
%% A transaction within another is part of that one: its tables must be among
%% the other's, and to abort it aborts both.
%%
%% Options: `retries', how often the fun is called again at most (unless said,
%% as often as it takes; then `{aborted, nomore}'), and `timeout', in
%% milliseconds, after which it isn't called again (`{aborted, timeout}').
-spec transaction([table()], fun(([table()]) -> Result), larder_transaction:options()) ->
          {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun, Options) when is_list(Tables), is_function(Fun, 1), is_map(Options) ->
    ?TRY(larder_transaction:run(Tables, Fun, Options), [Tables, Fun, Options]);
transaction(Tables, Fun, Options) ->
    erlang:error(badarg, [Tables, Fun, Options], larder_error:info(none)).

%% @doc Ends the transaction that the process is in, without effect:
%% transaction/3 answers `{aborted, Reason}'.
-spec abort(term()) -> no_return().
abort(Reason) ->
    larder_transaction:abort(Reason).

%% @doc Applies all of some operations at one instant, or none: `{false, N}' if
%% the N-th does not hold. Each sees what those before it do.
%%
%% `{check, Table, Key, Objects}' holds if these are the objects under the key.
%% `insert_new' holds if the key is not there, `update_counter' and
%% `update_element' if it is; the others always hold.
-spec commit([larder_transaction:operation()]) -> true | {false, pos_integer()}.
commit(Operations) ->
    ?TRY(larder_transaction:commit(Operations), [Operations]).

%% ---- errors ----

%% @doc What was wrong with a call, in words: for whoever prints an exception.
-spec format_error(term(), [term()]) -> #{pos_integer() | general | reason => unicode:chardata()}.
format_error(Reason, Stacktrace) ->
    larder_error:format_error(Reason, Stacktrace).
