%% Making tables, owning them, and what is known of them. Part of module larder: see larder.erl.

%% @doc All tables of the node: the names of named tables, the ids of the others.
%% Snapshots are among them.
%%
%% It takes the time of their number. A table that comes or goes meanwhile may be in the
%% list or not.
-spec all() -> [table()].
all() ->
    larder_nif:all().

%% @doc The structures that a table can be built on, by `{structure, Name}' or
%% `{structure, {Name, [{Option, Value}]}}' in new/2. Of each: its name, the types of
%% table that it carries, its options (what they take, what they are unless said, what
%% they do), and when to use it.
-spec structures() -> [#{name := atom(), types := [type()], about := binary(),
                         options := #{atom() => #{takes := binary(), default := integer() | atom(),
                                                  about := binary()}}}].
structures() ->
    [#{name => Name, types => Types, about => About,
       options => maps:from_list([{Option, #{takes => Takes, default => Default, about => Does}}
                                  || {Option, Takes, Default, Does} <- Options])}
     || {Name, Types, Options, About} <- larder_nif:structures()].

%% @doc Makes a table, which the calling process owns, and gives its id, or its name if
%% it is a `named_table'. The options are those of `ets:new/2', and `{structure, Name}'
%% or `{structure, {Name, Options}}', which structures/0 explains; and
%% `{index, [Index]}', secondary indexes, as add_index/2 takes them.
%%
%% `badarg' for an option that is none, an improper list, and a name that another table
%% has. It takes the same short time always. The table ends with its owner, unless it has
%% an heir.
%%
%% A set or ordered_set may have bounds, too:
%%
%% <ul>
%% <li>`{ttl, Ms}': an object lives for so many milliseconds after it was written, unless
%%     it was inserted by insert/3 with a time of its own;</li>
%% <li>`{idle, Ms}': an object lives for so long after it was written or looked up by its
%%     key, and an eighth of that longer at most. member/2, ttl/2, and what reads more
%%     than one key (select/2, next/2) are no such look-ups.</li>
%% </ul>
%%
%% With both, it lives until the first of the two. `infinity' is no bound: then times can
%% be given later, by insert/3, expire/3 and setopts/2. An object whose time is over is in
%% no answer any more. It is removed soon after by the library itself; until then
%% `info(Table, size)' counts it.
%%
%% And it may have limits:
%%
%% <ul>
%% <li>`{max_size, N}': so many objects at most;</li>
%% <li>`{max_memory, Bytes}': they take so many bytes at most, with what large binaries
%%     take. `weight' in `info(Table, stats)' is how many they take;</li>
%% <li>`{evict, Policy}': what becomes of a table that has more. `lru': objects go that
%%     were read or written long ago; `tinylfu': those that seldom were, which may be new
%%     ones; `none', if nothing is said: a write that would exceed a limit fails with
%%     `system_limit', and changes nothing.</li>
%% </ul>
%%
%% A write evicts what is too much before it returns. Meanwhile there may be one object
%% more for each process that is writing, or the objects of a list.
-spec new(name(), [option()]) -> table().
new(Name, Options) ->
    Table = ?TRY(larder_nif:new(Name, Options), [Name, Options]),
    larder_heir:guard(Options),
    Table.

%% @doc Drops a table. Whoever may write to it may drop it. Nobody finds it from then on,
%% and calls of others that are under way end as they would have, or are `badarg'.
%%
%% It takes the same short time whatever the table's size: its memory is freed in the
%% background.
-spec delete(table()) -> true.
delete(Table) ->
    ?TRY(larder_nif:delete_table(Table), [Table]).

%% @doc Gives a table another name, and answers with the name. An unnamed table keeps its
%% id; only what info/2 says changes.
%%
%% `badarg' if another table has the name. Whoever looks for the table meanwhile finds it
%% by the old name or by the new one.
-spec rename(table(), name()) -> table().
rename(Table, Name) ->
    ?TRY(larder_nif:rename(Table, Name), [Table, Name]).

%% @doc The id behind a table's name, or `undefined'. An id is quicker to use than a
%% name, and not to be mistaken for a later table of that name.
-spec whereis(table()) -> tid() | undefined.
whereis(Name) ->
    ?TRY(larder_nif:whereis(Name), [Name]).

%% @doc What is known of a table, as a list of items: `id', `name', `type', `size',
%% `memory' (in words), `owner', `heir', `node', `keypos', `protection', `named_table',
%% `compressed', `read_concurrency', `write_concurrency' and `decentralized_counters'.
%% `undefined' if the table is gone, and `badarg' for what can't be a table.
%%
%% Everybody may ask, also of private tables. The items are of one table, but not of one
%% moment: others may write while they are put together.
-spec info(table()) -> [{atom(), term()}] | undefined.
info(Table) ->
    ?TRY(larder_info:all(Table), [Table]).

%% @doc One item of what is known of a table: those of info/1, and `fixed',
%% `safe_fixed', `safe_fixed_monotonic_time', `structure', `stats', `binary',
%% `bounds', `indexes', `snapshots', `snapshot_memory' and `snapshot'.
%%
%% `indexes' is a list of maps, one for each secondary index: `name', `on' (the
%% position or the expression), `options', `ready' (`false' while it is being added),
%% `size' (how many entries it has) and `bytes'.
%%
%% `bounds' is `false', or a map of `ttl' and `idle' if the table was made with
%% a bound, and `max_size', `max_memory' and `evict' if with one of these.
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

%% @doc Makes another process of this node the owner, and sends it `{'ETS-TRANSFER',
%% Table, self(), Data}'. Only the owner can; from that moment on the rights are the
%% other's.
%%
%% `badarg' if the process is not alive, is on another node, or owns the table already.
-spec give_away(table(), pid(), term()) -> true.
give_away(Table, Pid, Data) ->
    larder_heir:guard_next(Table, Pid),
    ?TRY(larder_nif:give_away(Table, Pid, Data), [Table, Pid, Data]).

%% @doc Sets the heir, or with `{protection, Access}' who may read and write. Only the
%% owner can.
%%
%% Whoever is in the middle of a call goes on with the rights that it began with.
%%
%% `{ttl, Ms}' and `{idle, Ms}' are for a table that was made with one of them, if only as
%% `infinity'. They hold for what is written from here on.
%%
%% `{max_size, N}', `{max_memory, Bytes}' and `{evict, Policy}' are for a table that was
%% made with one of these. What is too much then goes soon.
-spec setopts(table(), setting() | [setting()]) -> true.
setopts(Table, Options) ->
    ?TRY(larder_nif:setopts(Table, Options), [Table, Options]),
    larder_heir:guard(Options),
    true.

%% @doc Fixes a table for the calling process, or releases it: as often as it was fixed,
%% or when the process ends. Traversals don't need it; `next/2' on a deleted key of a set
%% or bag does.
%%
%% While a table is fixed, what is deleted keeps its place, so it takes memory until the
%% release.
-spec safe_fixtable(table(), boolean()) -> true.
safe_fixtable(Table, Fix) ->
    ?TRY(larder_nif:safe_fixtable(Table, Fix), [Table, Fix]).

%% @doc Deletes all objects, at once for everybody: a reader sees all of them or none. It
%% takes the same short time whatever the table's size: the memory is freed in the
%% background.
-spec delete_all_objects(table()) -> true.
delete_all_objects(Table) ->
    ?TRY(larder_nif:delete_all_objects(Table), [Table]).
