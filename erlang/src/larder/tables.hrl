%% Creation, ownership and information of tables. Part of module larder: see larder.erl.

%% @doc Returns all tables of the node: the names of named tables, the ids of the others.
%% Snapshots are included.
%%
%% It takes O(number of tables). A table that is created or deleted during the call may be
%% in the list or not.
-spec all() -> [table()].
all() ->
    larder_nif:all().

%% @doc Returns the structures that a table can be built on, by `{structure, Name}' or
%% `{structure, {Name, [{Option, Value}]}}' in new/2. Each is described by its name, the types of
%% table that it supports, its options (the values they take, their defaults, what they do),
%% and when to use it.
-spec structures() -> [#{name := atom(), types := [type()], about := binary(),
                         options := #{atom() => #{takes := binary(), default := integer() | atom(),
                                                  about := binary()}}}].
structures() ->
    [#{name => Name, types => Types, about => About,
       options => maps:from_list([{Option, #{takes => Takes, default => Default, about => Does}}
                                  || {Option, Takes, Default, Does} <- Options])}
     || {Name, Types, Options, About} <- larder_nif:structures()].

%% @doc Creates a table owned by the calling process. Returns its id, or its name if it is a
%% `named_table'. The options are those of `ets:new/2', and in addition `{structure, Name}'
%% or `{structure, {Name, Options}}', see structures/0, and `{index, [Index]}' for secondary
%% indexes, see add_index/2. The defaults are `set', `protected', `{keypos, 1}' and `{heir, none}';
%% the table has no name, isn't compressed, and has no indexes and no bounds. Of contradictory
%% options the last one counts, but the defaults `set' and `protected' have no effect.
%%
%% Fails with `badarg' for an unknown option, an improper list, and a name that another named table
%% has; for bounds on a bag; and for bounds or indexes on a `structure' other than the default. It
%% takes constant time. The table is deleted when its owner ends, unless it has an heir.
%%
%% A set or ordered_set may have bounds on the lifetime of objects:
%%
%% <ul>
%% <li>`{ttl, Ms}': an object expires this many milliseconds after it was written, unless
%%     insert/3 gave it a lifetime of its own;</li>
%% <li>`{idle, Ms}': an object expires this many milliseconds after it was last written or
%%     looked up by its key, or up to an eighth later. member/2, ttl/2, and functions that read more
%%     than one key (select/2, next/2) don't count as a use.</li>
%% </ul>
%%
%% With both, an object expires at the earlier of the two times. With `infinity' objects don't
%% expire, but insert/3, expire/3 and setopts/2 can set lifetimes later. No function returns an
%% expired object. The library removes it soon afterwards; until then `info(Table, size)' and
%% `info(Table, memory)' count it.
%%
%% A set or ordered_set may also have limits:
%%
%% <ul>
%% <li>`{max_size, N}': the maximum number of objects;</li>
%% <li>`{max_memory, Bytes}': the maximum number of bytes of all objects, including their large
%%     binaries. `weight' in `info(Table, stats)' is the current number;</li>
%% <li>`{evict, Policy}': what happens when a limit is exceeded. `lru' evicts the objects that were
%%     least recently read or written. `tinylfu' evicts those that are used least frequently, which
%%     may be new ones. `sieve' goes round the objects in the order of their insertion, and evicts
%%     those that were not read or written since it came last. With `none', the default, a write
%%     that would exceed a limit fails with `system_limit' and changes nothing.</li>
%% </ul>
%%
%% A write evicts objects before it returns. Until then the table may exceed its limit by one object
%% for each process that is writing, or by the objects of a list.
-spec new(name(), [option()]) -> table().
new(Name, Options) ->
    larder_heir:guard(Options),
    ?TRY(larder_nif:new(Name, Options), [Name, Options]).

%% @doc Deletes a table. The right to write to it is needed. No call that begins afterwards
%% finds the table. Calls of other processes in progress complete normally, or fail with `badarg'.
%%
%% It takes constant time whatever the size of the table: its memory is freed in the
%% background.
-spec delete(table()) -> true.
delete(Table) ->
    ?TRY(larder_nif:delete_table(Table), [Table]).

%% @doc Renames a table, and returns the new name. An unnamed table keeps its id;
%% only what info/2 returns changes.
%%
%% Fails with `badarg' if the table is a named one, and a named table has the name already, itself
%% included. A process that looks up the table during the call finds it by the old name or by the
%% new one, or for a moment by both. It takes constant time.
-spec rename(table(), name()) -> table().
rename(Table, Name) ->
    ?TRY(larder_nif:rename(Table, Name), [Table, Name]).

%% @doc Returns the id of a named table, or `undefined'. Access by id is faster than by name, and an
%% id never refers to a later table of the same name. It takes constant time. Fails with `badarg' if
%% the argument isn't an atom.
-spec whereis(table()) -> tid() | undefined.
whereis(Name) ->
    ?TRY(larder_nif:whereis(Name), [Name]).

%% @doc Returns information about a table as a list of items: `id', `name', `type', `size',
%% `memory', `owner', `heir', `node', `keypos', `protection', `named_table', `compressed',
%% `read_concurrency', `write_concurrency' and `decentralized_counters'. `memory' is in words. It
%% includes secondary indexes and what is retained for snapshots.
%% Returns `undefined' if the table is gone. Fails with `badarg' if the argument can't be a table.
%%
%% Any process may call it, even for private tables. The items aren't read at one instant:
%% other processes may write in between. It takes constant time, but for `size': the first call for
%% a snapshot counts its objects, and so does each call for a transaction's view, which has read all
%% of them then. They are counted in slices.
-spec info(table()) -> [{atom(), term()}] | undefined.
info(Table) ->
    ?TRY(larder_info:all(Table), [Table]).

%% @doc Returns one item of information about a table: one of info/1, or `fixed', `safe_fixed',
%% `safe_fixed_monotonic_time', `structure', `stats', `binary', `bounds', `indexes', `snapshots',
%% `snapshot_memory' or `snapshot'. Fails with `badarg' for any other. The cost is that of info/1.
%%
%% <ul>
%% <li>`fixed': whether a process has fixed the table. `safe_fixed' is `false' or `{Since,
%%     [{Process, Count}]}', with the time in the form of `erlang:timestamp()'.
%%     `safe_fixed_monotonic_time' is the same with a time of `erlang:monotonic_time()'.</li>
%% <li>`structure': the data structure of the table, `default' or one of structures/0.</li>
%% <li>`indexes': a list of maps, one for each secondary index. Its keys are `name', `on' (the
%%     position or the expression), `options', `ready' (`false' while it is being added),
%%     `size' (the number of its entries) and `bytes'.</li>
%% <li>`bounds': `false', or a map with `ttl' and `idle' if the table was created with any
%%     bound, and also with `max_size', `max_memory' and `evict' if it was with one of these.</li>
%% <li>`snapshots': the number of existing snapshots of the table.</li>
%% <li>`snapshot_memory': the number of bytes retained for snapshots.</li>
%% <li>`snapshot': `false' if the table isn't a snapshot, otherwise a map. `table' is the table of
%%     which it was taken, or `undefined' if that is gone. `number' increases from one snapshot to
%%     the next, and is the same for snapshots that were taken together. `age' is in
%%     milliseconds.</li>
%% <li>`binary': always `[]', because tables don't record which binaries they refer to.</li>
%% <li>`stats': a map of the counters of the structure, such as leaves and splits. A table with
%%     limits has `weight', the bytes that `max_memory' limits, and `evicted', the number of
%%     objects that it has evicted.</li>
%% </ul>
-spec info(table(), atom()) -> term() | undefined.
info(Table, Item) ->
    ?TRY(larder_info:item(Table, Item), [Table, Item]).

%% @doc Makes another process of this node the owner, and sends it ``{'ETS-TRANSFER', Table, self(),
%% Data}''. Only the owner can do this. From then on the other process has the rights of the owner.
%% The heir stays. It takes constant time.
%%
%% Fails with `badarg' if the process isn't alive, is on another node, or owns the table already.
-spec give_away(table(), pid(), term()) -> true.
give_away(Table, Pid, Data) ->
    larder_heir:guard_next(Table, Pid),
    ?TRY(larder_nif:give_away(Table, Pid, Data), [Table, Pid, Data]).

%% @doc Sets options of a table: the heir, the protection by `{protection, Access}', or bounds.
%% Only the owner can do this. Other options can't be changed. If one of a list is refused, none is
%% set. It takes constant time.
%%
%% A call in progress continues with the rights that it began with.
%%
%% `{ttl, Ms}' and `{idle, Ms}' can be set for a table that was created with one of them, even if
%% with `infinity', or with limits. They apply to objects written from then on.
%%
%% `{max_size, N}', `{max_memory, Bytes}' and `{evict, Policy}' can be set for a table that was
%% created with one of these. Objects beyond a new limit are evicted soon afterwards. Fails with
%% `badarg' for bounds of a table that wasn't created with such.
-spec setopts(table(), setting() | [setting()]) -> true.
setopts(Table, Options) ->
    larder_heir:guard(Options),
    ?TRY(larder_nif:setopts(Table, Options), [Table, Options]).

%% @doc Fixes a table for the calling process, or releases it. It must be released as often as it
%% was fixed; the end of the process releases it, too. A release by a process that hasn't fixed the
%% table has no effect, and returns `true'. Traversals don't need it. `next/2' with a
%% deleted key of a set or bag does. It takes constant time.
%%
%% While a set or bag is fixed, the keys that are deleted are recorded. After a
%% delete_all_objects/1 all objects are retained. Both take memory until the release.
-spec safe_fixtable(table(), boolean()) -> true.
safe_fixtable(Table, Fix) ->
    ?TRY(larder_nif:safe_fixtable(Table, Fix), [Table, Fix]).

%% @doc Deletes all objects atomically: a reader sees all of them or none. It
%% takes constant time whatever the size of the table: the memory is freed in the
%% background.
-spec delete_all_objects(table()) -> true.
delete_all_objects(Table) ->
    ?TRY(larder_nif:delete_all_objects(Table), [Table]).
