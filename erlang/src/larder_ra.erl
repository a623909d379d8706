%% @doc Support for machines of Ra, the Raft library, whose state is tables of Larder.
%%
%% ```
%% -module(stock).
%% %% -behaviour(ra_machine).
%% -export([init/1, apply/3, snapshot_module/0]).
%%
%% init(_Config) -> larder_ra:new(#{items => [named_table, ordered_set]}, undefined).
%%
%% apply(Meta, {put, Item, Count}, State) ->
%%     true = larder:insert(larder_ra:table(items, State), {Item, Count}),
%%     larder_ra:reply(Meta, State, ok).
%%
%% snapshot_module() -> larder_ra_snapshot.
%% '''
%%
%% The state consists of the tables and of one small term, which is called the rest: see rest/1 and
%% set_rest/2. Ra's snapshots are based on those of Larder: taking one takes microseconds, whatever
%% the sizes of the tables, and nothing is copied. Another process writes it to disc in parts, while
%% commands continue.
%%
%% == The tables ==
%% They belong to the Ra server, and end with it. When it restarts, they are created again from its
%% last snapshot and the log after it, like any state of Ra. So no command is ever applied
%% twice to a row, and a table never contains a change that the log lacks.
%%
%% Only the machine writes: the tables are `protected'. All processes of the node may read them, by
%% name or by id. They see the commands that this member has applied. They may see a part of the
%% writes of a command, unless apply/3 uses insert/2 of a list or `larder:transaction/2'.
%%
%% A member that fell behind may receive the snapshot of another member. Its tables are then
%% replaced by new ones with new ids. Names stay, but a reader may find no table of that name for
%% some microseconds.
%%
%% == Determinism ==
%% Each member applies each command itself. So apply/3 must depend on nothing but
%% the command, its meta data and the state. For tables this means:
%%
%% <ul>
%% <li>The traversal order of a `set' or `bag' isn't the same on all members. Use an
%%     `ordered_set' if a result depends on an order. The objects of one key are in order of
%%     insertion on all members.</li>
%% <li>Options by which objects expire or are evicted (`ttl', limits) are refused.</li>
%% <li>For the time, use `system_time' of the meta data.</li>
%% </ul>
%%
%% `docs/ra.md' has details and measurements.
-module(larder_ra).

-export([new/2, new/3, table/2, rest/1, set_rest/2, add_table/3, drop_table/2]).
-export([reply/3, reply/4, release_cursor/2, overview/1]).
-export([prepare/1, content/1, written/1, begin_recovery/1, recover/3, discard/1]).

-export_type([state/0, options/0, cut/0, meta/0, definition/0, made/0]).

-record(larder_ra, {tables :: #{atom() => larder:table()},
                    rest :: term(),
                    interval :: interval(),
                    %% The index from which on the next snapshot is due.
                    next :: non_neg_integer() | infinity}).

%% A snapshot that Ra may take: all tables as of one command. `written' is 1 once Ra's writer has
%% finished with it.
-record(cut, {index :: non_neg_integer(),
              tables :: [{atom(), definition(), larder:snapshot()}],
              rest :: term(),
              interval :: interval(),
              written :: atomics:atomics_ref()}).

-opaque state() :: #larder_ra{}.
%% The state of a machine on this node.
-opaque cut() :: #cut{}.
%% All of a state as of one command.
-type interval() :: pos_integer() | infinity | default.
-type options() :: #{interval => interval()}.
%% The minimum number of commands between two snapshots for Ra.
-type meta() :: #{index := non_neg_integer(), atom() => term()}.
%% The meta data of a command, as Ra passes it to apply/3.
-type definition() :: [larder:option()].
%% The options of a table, for new/2 of module larder.
-type made() :: [{atom(), larder:table(), named | unnamed}].
%% Tables that are being filled.

%% What this process, a Ra server, has: its tables, the snapshots that wait for Ra, newest first,
%% and the one that Ra's writer has.
-define(TABLES, {?MODULE, tables}).
-define(WAITING, {?MODULE, waiting}).
-define(WRITING, {?MODULE, writing}).
%% The default of commands between two snapshots, and the most rows in a snapshot per command.
-define(INTERVAL, 10_000).
-define(ROWS_PER_COMMAND, 4).
-define(SNAPSHOT_MODULES, [larder_ra_snapshot, larder_ra_file]).
%% So many snapshots may wait for Ra at any distances; beyond, they are at least the eighth part of
%% all commands apart for which snapshots wait (may_wait/1).
-define(DENSE, 16).
-define(APART, 8).

%% ---- the state ----

%% @doc Creates the first state of a machine, for its function `init/1'. `Tables' maps a tag to
%% options of `larder:new/2': the type, `named_table' (the tag is the name then), `{keypos,
%% Position}', `compressed', those of concurrency, and `{index, Indexes}'. Others raise
%% `{bad_option, {Tag, Option}}'. `Rest' is any term. It goes into each snapshot as a whole, so it
%% should be small.
-spec new(#{atom() => [larder:option()]}, Rest :: term()) -> state().
new(Tables, Rest) ->
    new(Tables, Rest, #{}).

%% @doc Like new/2, with options. `interval' is the number of commands between two snapshots for Ra.
%% The default is 10 000, or a quarter of the rows if that is more: so snapshots cost at
%% most four rows for each command. With `infinity' only release_cursor/2 passes snapshots to Ra.
-spec new(#{atom() => [larder:option()]}, Rest :: term(), options()) -> state().
new(Tables, Rest, Options) ->
    Interval = interval(Options),
    _ = [check(Tag, TableOptions) || {Tag, TableOptions} <- maps:to_list(Tables)],
    Made = maps:map(fun make/2, Tables),
    put(?TABLES, Made),
    begun(0, #larder_ra{tables = Made, rest = Rest, interval = Interval, next = 0}).

interval(Options) ->
    case maps:to_list(maps:merge(#{interval => default}, Options)) of
        [{interval, Interval}] when is_integer(Interval), Interval > 0; Interval =:= infinity;
                                    Interval =:= default ->
            Interval;
        Other ->
            error({bad_options, Other})
    end.

%% Other options would make the copies differ, or let other processes write.
check(Tag, Options) when is_atom(Tag), is_list(Options) ->
    case [Option || Option <- Options, not may_be_said(Option)] of
        [] -> ok;
        [Bad | _] -> error({bad_option, {Tag, Bad}})
    end;
check(Tag, Options) ->
    error({bad_table, {Tag, Options}}).

may_be_said({Option, _}) ->
    lists:member(Option, [keypos, index, read_concurrency, write_concurrency,
                          decentralized_counters]);
may_be_said(Option) ->
    lists:member(Option, [set, ordered_set, bag, duplicate_bag, protected, named_table,
                          compressed]).

make(Tag, Options) -> larder:new(Tag, Options).

%% @doc Returns the table with a tag: its name, or its id if it has no name. Raises
%% `{badkey, Tag}' if the state has no such table. `{larder_ra, table, [Tag]}' is a query for
%% `ra:local_query/2'.
-spec table(Tag :: atom(), state()) -> larder:table().
table(Tag, #larder_ra{tables = Tables}) ->
    map_get(Tag, Tables).

%% @doc Returns the rest: the part of the state outside of the tables.
-spec rest(state()) -> term().
rest(#larder_ra{rest = Rest}) -> Rest.

%% @doc Returns the state with another rest.
-spec set_rest(state(), Rest :: term()) -> state().
set_rest(State, Rest) ->
    State#larder_ra{rest = Rest}.

%% @doc Adds an empty table. Call it in apply/3, for instance when a new version of the machine
%% takes over. Raises `{table_exists, Tag}' if the state already has a table with this tag.
%% Indexes are added to a table by `larder:add_index/2'.
-spec add_table(Tag :: atom(), [larder:option()], state()) -> state().
add_table(Tag, _, #larder_ra{tables = Tables}) when is_map_key(Tag, Tables) ->
    error({table_exists, Tag});
add_table(Tag, Options, #larder_ra{tables = Tables} = State) ->
    ok = check(Tag, Options),
    with_tables(Tables#{Tag => make(Tag, Options)}, State).

%% @doc Deletes a table. Call it in apply/3.
-spec drop_table(Tag :: atom(), state()) -> state().
drop_table(Tag, #larder_ra{tables = Tables} = State) ->
    true = larder:delete(map_get(Tag, Tables)),
    with_tables(maps:remove(Tag, Tables), State).

with_tables(Tables, State) ->
    put(?TABLES, Tables),
    State#larder_ra{tables = Tables}.

%% @doc Returns the number of rows of each table and their bytes, for a machine's `overview/1'.
-spec overview(state()) ->
          #{tables := #{atom() => #{size := non_neg_integer(), bytes := non_neg_integer()}}}.
overview(#larder_ra{tables = Tables}) ->
    Word = erlang:system_info(wordsize),
    #{tables => maps:map(fun(_, Table) ->
          #{size => larder:info(Table, size), bytes => Word * larder:info(Table, memory)}
      end, Tables)}.

%% ---- commands ----

%% @doc Returns the result of a machine's apply/3: the state, the reply to the sender of the command
%% and, if a snapshot is due, the effect that passes it to Ra.
-spec reply(meta(), state(), Reply) -> {state(), Reply, Effects :: [term()]}.
reply(Meta, State, Reply) ->
    reply(Meta, State, Reply, []).

%% @doc Like reply/3, with other effects of the command.
-spec reply(meta(), state(), Reply, Effects :: [term()]) -> {state(), Reply, Effects :: [term()]}.
reply(#{index := Index} = Meta, #larder_ra{next = Next} = State, Reply, Effects) ->
    ok = release_written(),
    case Index >= Next of
        true ->
            {Now, Cursor} = release_cursor(Meta, State),
            {Now, Reply, Effects ++ Cursor};
        false ->
            {State, Reply, Effects}
    end.

%% @doc Takes a snapshot now, for a machine that decides itself when. Call it last in apply/3: the
%% effect contains the tables as of this call. Return the state together with the effect. There is
%% no effect if 16 earlier snapshots wait for Ra and the last one is from shortly before.
-spec release_cursor(meta(), state()) -> {state(), Effects :: [term()]}.
release_cursor(#{index := Index}, State) ->
    case may_wait(Index) of
        true -> {due(Index, State), [{release_cursor, Index, cut(Index, State)}]};
        false -> {State, []}
    end.

%% Loads the modules now, so that the first snapshot doesn't wait for the code server.
begun(Index, #larder_ra{tables = Tables} = State) ->
    _ = [{module, Module} = code:ensure_loaded(Module) || Module <- ?SNAPSHOT_MODULES],
    _ = [definition(Table) || Table <- maps:values(Tables)],
    due(Index, State).

due(Index, #larder_ra{interval = infinity} = State) when is_integer(Index) ->
    State#larder_ra{next = infinity};
due(Index, #larder_ra{interval = default, tables = Tables} = State) ->
    Rows = lists:sum([larder:info(Table, size) || Table <- maps:values(Tables)]),
    State#larder_ra{next = Index + max(?INTERVAL, Rows div ?ROWS_PER_COMMAND)};
due(Index, #larder_ra{interval = Interval} = State) ->
    State#larder_ra{next = Index + Interval}.

%% ---- snapshots ----

%% Ra asks for a snapshot (prepare) after a batch of commands. Commands that follow the snapshot's
%% may have been applied by then. So the snapshot is taken here, with its command.
cut(Index, #larder_ra{tables = Tables, rest = Rest, interval = Interval}) ->
    {Tags, Ids} = lists:unzip(maps:to_list(Tables)),
    Cut = #cut{index = Index, rest = Rest, interval = Interval, written = atomics:new(1, []),
               tables = lists:zip3(Tags, [definition(Id) || Id <- Ids], larder:snapshot(Ids))},
    _ = put(?WAITING, [Cut | waiting()]),
    Cut.

%% Ra evaluates the effects of a batch when all of it has been applied, oldest first, and may ask
%% for any of its snapshots. It doesn't say which ones it has passed over. So each one stays until
%% Ra takes one. A batch may have any length. For N commands there are at most about
%% ?DENSE + ?APART * ln(N / ?DENSE) snapshots: with ?DENSE = 16 and ?APART = 8, 105 for a million.
may_wait(Index) ->
    case waiting() of
        [Newest | _] = Waiting when length(Waiting) >= ?DENSE ->
            Oldest = lists:last(Waiting),
            (Index - Newest#cut.index) * ?APART >= Index - Oldest#cut.index;
        _ ->
            true
    end.

%% The definition of a table, with its present indexes, which may differ from the original ones.
definition(Table) ->
    Info = maps:from_list(larder:info(Table)),
    Options = [keypos, read_concurrency, write_concurrency, decentralized_counters],
    Flags = [Flag || Flag <- [named_table, compressed], map_get(Flag, Info)],
    Indexes = [{Name, On, Of} || #{name := Name, on := On, options := Of}
                                     <- larder:info(Table, indexes)],
    [map_get(type, Info), {index, Indexes} | Flags] ++ maps:to_list(maps:with(Options, Info)).

waiting() ->
    case get(?WAITING) of
        undefined -> [];
        Waiting -> Waiting
    end.

%% A snapshot whose writer has finished. This process owns it, so it must release it.
release_written() ->
    case get(?WRITING) of
        #cut{written = Written} = Cut ->
            case atomics:get(Written, 1) of
                1 -> release(Cut), _ = erase(?WRITING), ok;
                0 -> ok
            end;
        undefined ->
            ok
    end.

writing() -> [Cut || #cut{} = Cut <- [get(?WRITING)]].

release(#cut{tables = Tables}) ->
    lists:foreach(fun({_, _, Snapshot}) -> true = larder:release(Snapshot) end, Tables).

%% @private
%% Ra takes this snapshot. It uses one at a time: no other one is in use, and those that wait won't
%% be taken any more. Each one that Ra may ask for waits: see may_wait/1.
-spec prepare(cut()) -> cut().
prepare(#cut{written = Written} = Cut) ->
    {[_], Others} = lists:partition(fun(C) -> C#cut.written =:= Written end, waiting()),
    lists:foreach(fun release/1, Others ++ writing()),
    _ = put(?WAITING, []),
    _ = put(?WRITING, Cut),
    Cut;
prepare(State) when is_record(State, larder_ra) ->
    error({release_cursor_without_snapshot,
           "the effect has a state: use larder_ra:reply/3 or larder_ra:release_cursor/2"});
prepare(State) ->
    error({not_a_state_of_larder_ra, State}).

%% @private
-spec content(cut()) -> {Rest :: term(), interval(), [{atom(), definition(), larder:snapshot()}]}.
content(#cut{rest = Rest, interval = Interval, tables = Tables}) -> {Rest, Interval, Tables}.

%% @private
%% Called by the writer.
-spec written(cut()) -> ok.
written(#cut{written = Written}) -> atomics:put(Written, 1, 1).

%% ---- recovery ----

%% @private
%% Creates empty tables. They get their names after they are filled, because the tables that they
%% replace may still exist.
-spec begin_recovery([{atom(), definition()}]) -> made().
begin_recovery(Definitions) ->
    [case lists:member(named_table, Definition) of
         true -> {Tag, larder:new(filling(Tag), Definition), named};
         false -> {Tag, larder:new(Tag, Definition), unnamed}
     end || {Tag, Definition} <- Definitions].

%% A tag may be as long as atoms get.
filling(Tag) ->
    <<Hash:128>> = erlang:md5(atom_to_binary(Tag)),
    list_to_atom("larder_ra filling " ++ integer_to_list(Hash, 36)).

%% @private
%% Returns the state with these tables, as of an index. The previous tables of this process are
%% deleted.
-spec recover(made(), {Rest :: term(), interval()}, Index :: non_neg_integer()) -> state().
recover(Made, {Rest, Interval}, Index) ->
    lists:foreach(fun release/1, waiting() ++ writing()),
    _ = [true = larder:delete(Table) || Earlier <- [get(?TABLES)], Earlier =/= undefined,
                                        Table <- maps:values(Earlier)],
    _ = erase(?WAITING),
    _ = erase(?WRITING),
    Tables = maps:from_list([{Tag, case Kind of
                                       named -> larder:rename(Table, Tag);
                                       unnamed -> Table
                                   end} || {Tag, Table, Kind} <- Made]),
    put(?TABLES, Tables),
    begun(Index, #larder_ra{tables = Tables, rest = Rest, interval = Interval, next = 0}).

%% @private
-spec discard(made()) -> ok.
discard(Made) ->
    lists:foreach(fun({_, Table, _}) -> true = larder:delete(Table) end, Made).
