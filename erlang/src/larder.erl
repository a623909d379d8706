%% @doc Term storage: tables of tuples in memory, shared by all processes of a
%% node. The functions, options, results and errors are those of `ets'. To move a program
%% from `ets', replace `ets:' by `larder:', or compile it with
%% `{parse_transform, larder_transform}'.
%%
%% == Guarantees ==
%% <ul>
%% <li>An operation on one object is atomic and isolated. So are insert/2
%%     and insert_new/2 of a list, however long, and delete_all_objects/1. But a scan (select/2,
%%     foldl/3, next/2) that begins before a list is inserted or a transaction commits may
%%     see a part of it. One of a snapshot never does.</li>
%% <li>Readers take no lock. A lookup waits at most while a leaf is changed, or while a
%%     transaction commits a write of its key. A traversal visits every object that is in
%%     the table throughout exactly once, whether or not the table is fixed.</li>
%% <li>While a list is being inserted, a call on one key doesn't wait for it. The exceptions are
%%     lists of at most 512 objects or with more than 256 under that key, and writes of a key
%%     while an insert_new/2 still checks its keys. These, and all other calls (such as
%%     next/2, select/2, snapshot/1 and transaction/2), first help to finish the list. That takes
%%     time proportional to what is left of it.</li>
%% <li>No call occupies a scheduler for much longer than half a millisecond,
%%     whatever the size of the table. Deleting a table takes the caller constant time.</li>
%% <li>Guards on the key of an ordered_set limit a select in the same way as a bound
%%     prefix: ``[{{'$1','_'}, [{'>=','$1',A}, {'<','$1',B}], ['$_']}]'' reads
%%     only the objects that it returns.</li>
%% <li>Binaries over 127 bytes are shared with the emulator, as in `ets': they
%%     are stored and returned without a copy. A small part of a large binary
%%     is copied, so it doesn't keep the large one in memory.</li>
%% </ul>
%%
%% == Differences from `ets' ==
%% <ul>
%% <li>Functions and options of newer OTP releases are available on older ones:
%%     first_lookup/1, next_lookup/2, last_lookup/1, prev_lookup/2,
%%     lookup_element/4, update_element/4, `{heir, Pid}'.</li>
%% <li>New functions:
%%     lookup_many/2, take_many/2, lookup_elements/3, lookup_elements/4 and select_take/2;
%%     update_map/3, update_map/5 and remove_map_key/4 for maps in objects;
%%     prepare/1 for match specifications that are used again and again;
%%     rank/2, nth/2, slice/3 and count_range/3 for ranks in an ordered_set;
%%     snapshot/1, release/1 and diff/2 for tables as of one instant;
%%     transaction/2, transaction/3, abort/1 and commit/1 for several changes at one instant;
%%     subscribe/3, unsubscribe/1 and snapshot_and_subscribe/3 for events of changes;
%%     memory/0, memory/1 and top/2 for the use of memory.</li>
%% <li>A list that is inserted into a bag keeps its order, as in `ets' since
%%     OTP 25.3.</li>
%% <li>`info(Table, binary)' is always `[]', and `info(Table, stats)' returns
%%     Larder's own figures: see info/2.</li>
%% <li>`{ttl, Ms}' and `{idle, Ms}' are options of new/2, for objects that
%%     expire: insert/3, expire/3, ttl/2. `{max_size, N}', `{max_memory, Bytes}'
%%     and `{evict, Policy}' limit the size of a table.</li>
%% <li>`{index, [Index]}' is an option of new/2, for secondary indexes: add_index/2,
%%     drop_index/2, index_lookup/3, index_select/3, explain/2.</li>
%% <li>`{structure, Name}' and `{structure, {Name, Options}}' are options of
%%     new/2; structures/0 lists the available structures.</li>
%% </ul>
%%
%% == What holds for all functions ==
%% Errors are `badarg' with `error_info', as in `ets': see format_error/2. If a table has a limit
%% and evicts nothing, a write that would exceed the limit fails with `system_limit'. Other
%% exceptions are named at their functions.
%%
%% Every function that takes a table fails with `badarg' if there is no such table. It also fails so
%% if the calling process may not read the table (a `private' one of another process), or may not
%% write to it (a `protected' one). Rights are checked when a call begins.
%%
%% An operation on one key is visible to all operations that begin after it has returned. It takes
%% expected O(1), in an ordered_set O(log n), unless its description says otherwise. n is the number
%% of objects in the table. Complexities are those of the default structure. The others of
%% structures/0 have complexities of their own.
-module(larder).

-export([all/0, structures/0, new/2, delete/1, rename/2, whereis/1, info/1, info/2, give_away/3,
         setopts/2,
         safe_fixtable/2, delete_all_objects/1]).
-export([memory/0, memory/1, top/2]).
-export([snapshot/1, release/1, diff/2]).
-export([subscribe/3, unsubscribe/1, snapshot_and_subscribe/3]).
-export([insert/2, insert/3, insert_new/2, expire/3, ttl/2, lookup/2, lookup_many/2,
         lookup_element/3, lookup_element/4, lookup_elements/3, lookup_elements/4, member/2,
         delete/2, delete_object/2, take/2, take_many/2, update_counter/3, update_counter/4,
         update_element/3, update_element/4, update_map/3, update_map/5, remove_map_key/4]).
-export([first/1, last/1, next/2, prev/2, first_lookup/1, last_lookup/1, next_lookup/2,
         prev_lookup/2,
         slot/2]).
-export([rank/2, nth/2, slice/3, count_range/3]).
-export([add_index/2, drop_index/2, index_lookup/3, index_select/1, index_select/3, index_select/4,
         explain/2]).
-export([match/1, match/2, match/3, match_object/1, match_object/2, match_object/3, match_delete/2,
         select/1, select/2, select/3, select_reverse/1, select_reverse/2, select_reverse/3,
         select_count/2, select_delete/2, select_take/2, select_replace/2, tab2list/1]).
-export([prepare/1, match_spec_compile/1, match_spec_run/2, is_compiled_ms/1,
         repair_continuation/2, test_ms/2, fun2ms/1]).
-export([transaction/2, transaction/3, abort/1, commit/1]).
-export([foldl/3, foldr/3, init_table/2, from_dets/2, to_dets/2, tab2file/2, tab2file/3, file2tab/1,
         file2tab/2, tabfile_info/1, table/1, table/2, i/0, i/1, i/2, i/3, format_error/2]).

-export_type([table/0, tid/0, name/0, type/0, access/0, option/0, heir/0, continuation/0,
              match_pattern/0, match_spec/0, match_clauses/0, prepared_match_spec/0,
              compiled_match_spec/0, update_op/0, counter/0, structure/0,
              snapshot/0, difference/0, transaction_options/0, operation/0, feed/0, feed_options/0,
              bound/0, limit/0, time/0, memory/0, memory_item/0, top/0,
              index/0, index_continuation/0, plan/0]).

-compile({no_auto_import, [whereis/1]}).

-type name() :: atom().
%% The name of a named table.
-type tid() :: reference().
%% The id of a table without a name.
-type table() :: name() | tid().
%% A table, or a snapshot, or within a transaction a view of a table.
-type type() :: set | ordered_set | bag | duplicate_bag.
%% One object for each key, or several; keys of an ordered_set are in order.
-type access() :: public | protected | private.
%% Who may read and write. `public': all processes do both. `protected': all read, the owner
%% writes. `private': the owner alone.
-type heir() :: {heir, pid(), term()} | {heir, pid()} | {heir, none}.
%% The process that inherits the table when its owner ends. With a term, it receives
%% ``{'ETS-TRANSFER', Table, Owner, Term}''; without one, no message.
-type setting() :: heir() | {protection, access()} | bound().
%% An option that setopts/2 can change.
-type option() :: type() | access() | named_table | {keypos, pos_integer()} | compressed | heir()
                | {write_concurrency, boolean() | auto} | {read_concurrency, boolean()}
                | {decentralized_counters, boolean()} | {structure, structure()} | bound()
                | {index, [index()]}.
%% An option of new/2. All tables support concurrent processes, whatever the concurrency options
%% are. `read_concurrency' has no effect, except that info/2 returns it. `write_concurrency' is for
%% the number of objects: with `auto', for an ordered_set with `true', and with `true' and
%% `{decentralized_counters, true}', it is kept in 32 counters. That is faster for many writers, and
%% takes 4 KiB for each table. Private tables and tables with limits have one counter.
-type bound() :: {ttl, time()} | {idle, time()} | {max_size, limit()} | {max_memory, limit()}
               | {evict, tinylfu | lru | sieve | none}.
%% A bound of a table. `ttl': the lifetime of an object since it was written. `idle': since it was
%% written or looked up. `max_size': the number of objects. `max_memory': their bytes. `evict':
%% which objects are removed when there are more (default: `none'). Without one of the others there
%% is no such bound.
-type limit() :: pos_integer() | infinity.
%% A maximum number of objects, or of bytes.
-type time() :: Milliseconds :: non_neg_integer() | infinity.
%% A lifetime. With 0 an object expires at once, with `infinity' never.
-type structure() :: Name :: atom() | {Name :: atom(), [{atom(), integer() | atom()}]}.
%% The data structure of a table; see structures/0.
-type index() :: {Name :: atom(), Position :: pos_integer() | Expression :: term(),
                  [unique | ordered | each]}.
%% A secondary index; see add_index/2.
-type index_continuation() :: '$end_of_table'
                            | {tid(), atom(), pos_integer(), binary(), compiled_match_spec()}.
%% The continuation of an index_select with a limit. It is opaque: its form may change.
-type plan() :: #{plan := nothing | key | range | scan | {index, Name :: atom()},
                  rows := non_neg_integer() | unknown,
                  indexes := #{Name :: atom() => Entries :: non_neg_integer()}}.
%% How a match specification is evaluated; see explain/2.
-type snapshot() :: tid().
%% A table as of one instant; see snapshot/1.
-type difference() :: {insert, New :: tuple()} | {replace, Old :: tuple(), New :: tuple()}
                    | {delete, Old :: tuple()}.
%% A difference between two snapshots; see diff/2.
-type transaction_options() :: #{retries => non_neg_integer() | infinity, timeout => timeout()}.
%% How often, and for how many milliseconds, a fun is called again (default: `infinity'); see
%% transaction/3.
-type operation() :: {check, table(), Key :: term(), [tuple()]}
                   | {insert, table(), tuple() | [tuple()]}
                   | {insert, table(), tuple() | [tuple()], #{ttl := time()}}
                   | {expire, table(), Key :: term(), time()}
                   | {insert_new, table(), tuple() | [tuple()]}
                   | {delete, table(), Key :: term()}
                   | {delete_object, table(), tuple()}
                   | {update_counter, table(), Key :: term(), term()}
                   | {update_element, table(), Key :: term(), term()}.
%% A change of one table, or a condition; see commit/1.
-type feed() :: reference().
%% A subscription; see subscribe/3.
-type feed_options() :: #{limit => pos_integer(), mailbox => pos_integer()}.
%% How far a subscriber may fall behind: by `limit' events (default: 10,000), or `mailbox' messages
%% (default: 1,000); see subscribe/3.
-type match_pattern() :: atom() | tuple().
%% An object with `_' and the variables `$1', `$2' and so on in it; see match/2.
-type match_spec() :: match_clauses() | {prepared_match_spec(), Values :: [term()]}.
%% Which objects are read, and what is returned of each; see select/2 and prepare/1.
-type match_clauses() :: [{match_pattern(), [term()], [term()]}].
%% The clauses of a match specification: a pattern, guards and a result each.
-type prepared_match_spec() :: reference().
%% The result of prepare/1.
-type compiled_match_spec() :: reference().
%% The result of match_spec_compile/1.
-type continuation() :: '$end_of_table'
                      | {tid(), pos_integer(), forward | backward, binary(), compiled_match_spec()}.
%% The continuation of a match or select with a limit. It is opaque: its form may change.
-type update_op() :: {counter(), integer()}
                   | {counter(), integer(), Threshold :: integer(), SetValue :: integer()}.
%% An operation of update_counter/3.
-type counter() :: pos_integer() | {pos_integer(), MapKey :: term()}
                 | {pos_integer(), MapKey :: term(), Initial :: integer()}.
%% A counter: the element at a position, or the value of a key in the map at a position.

-type memory_item() :: total | tables | indexes | snapshots | waiting | allocator.
%% An item of memory/0.
-type memory() :: #{memory_item() := non_neg_integer()}.
%% The result of memory/0.
-type top() :: #{table := table(), name := name(), type := type(), size := non_neg_integer(),
                 memory := non_neg_integer(), snapshots := non_neg_integer(),
                 snapshot_memory := non_neg_integer(), owner := pid(),
                 contention => non_neg_integer()}.
%% The figures of a table that top/2 returns.

%% Makes the call, and raises an error of the library as one of the calling function.
-define(TRY(Call, Args),
        try Call
        catch error:{larder, Cause} ->
            erlang:error(larder_error:reason(Cause), Args, larder_error:info(Cause))
        end).

%% Like `TRY', for functions of the library that return their error: two exceptions would take twice
%% as long as one.
-define(ASK(Call, Args),
        case Call of
            {larder, Cause} ->
                erlang:error(larder_error:reason(Cause), Args, larder_error:info(Cause));
            Result ->
                Result
        end).

%% Like `TRY', for functions of which the library returns `badkey' if there is no object with the
%% key. It isn't raised there, since a second exception would take longer than the call.
-define(TRY_KEY(Call, Args),
        try Call of
            badkey -> erlang:error(badarg, Args, larder_error:info(badkey));
            Result -> Result
        catch
            %% The result is the atom `badkey', which lookup_element found in an object.
            error:{larder, itself} -> badkey;
            error:{larder, Cause} ->
                erlang:error(larder_error:reason(Cause), Args, larder_error:info(Cause))
        end).

%% Like `ASK', for update_element. Whether `ets' names the cause of a position that doesn't exist
%% depends on the OTP release.
-define(ASK_ELEMENT(Call, Args),
        case Call of
            {larder, Cause} ->
                erlang:error(larder_error:reason(Cause), Args,
                             larder_error:info(larder_release:element_cause(Cause)));
            Result ->
                Result
        end).

%% The functions, a file for each topic; all are exported above. The files are included: so a
%% function of this module calls the native function directly.
-include("larder/tables.hrl").
-include("larder/memory.hrl").
-include("larder/snapshots.hrl").
-include("larder/feeds.hrl").
-include("larder/objects.hrl").
-include("larder/bounds.hrl").
-include("larder/traversal.hrl").
-include("larder/ranks.hrl").
-include("larder/indexes.hrl").
-include("larder/queries.hrl").
-include("larder/whole.hrl").
-include("larder/transactions.hrl").

%% ---- errors ----

%% @doc Describes what was wrong with a call, for a program that prints an exception, such as
%% the shell. The arguments are the reason and the stack of an exception that a function
%% of this module raised. The result maps the number of an argument to a description of what is
%% wrong with it. The function never fails.
-spec format_error(term(), [term()]) -> #{pos_integer() | general | reason => unicode:chardata()}.
format_error(Reason, Stacktrace) ->
    larder_error:format_error(Reason, Stacktrace).
