%% @private
%% @doc The use of memory: memory/0,1 and top/2 of module larder.
%%
%% The tables are read one after the other while other processes write, so the sums are
%% approximate.
-module(larder_memory).

-export([memory/0, memory/1, top/2, words/1]).

-define(ITEMS, [total, tables, indexes, snapshots, waiting, allocator]).

%% @doc Returns all items.
-spec memory() -> larder:memory().
memory() ->
    {Tables, Indexes, Snapshots} = lists:foldl(fun add/2, {0, 0, 0}, larder_nif:all()),
    {Waiting, Kept} = larder_nif:memory(),
    #{total => Tables + Indexes + Snapshots + Waiting + Kept, tables => Tables,
      indexes => Indexes, snapshots => Snapshots, waiting => Waiting, allocator => Kept}.

%% The memory of a table includes that of its indexes and of what is retained for its snapshots.
%% Snapshots are tables, too, of a few words.
add(Table, {Tables, Indexes, Snapshots} = Sums) ->
    case larder_nif:info_list(Table, [memory, snapshot_memory, snapshot, indexes]) of
        undefined ->
            Sums;
        [Words, Kept, false, Own] ->
            Entries = lists:sum([Bytes || {_, _, _, _, _, Bytes} <- Own]),
            {Tables + max(bytes(Words) - Kept - Entries, 0), Indexes + Entries, Snapshots + Kept};
        [Words, _Kept, _Snapshot, _Own] ->
            {Tables, Indexes, Snapshots + bytes(Words)}
    end.

bytes(Words) ->
    Words * erlang:system_info(wordsize).

%% @doc Returns one item, or several.
-spec memory(term()) -> non_neg_integer() | [{atom(), non_neg_integer()}].
memory(Items) when length(Items) >= 0 ->
    known(Items),
    All = memory(),
    [{Item, maps:get(Item, All)} || Item <- Items];
memory(Item) ->
    known([Item]),
    maps:get(Item, memory()).

known(Items) ->
    lists:all(fun(Item) -> lists:member(Item, ?ITEMS) end, Items)
        orelse erlang:error({larder, none}).

%% @doc Returns the tables with the largest figures, largest first.
-spec top(term(), term()) -> [larder:top()].
top(N, By) when is_integer(N), N >= 0, By =:= memory orelse By =:= size orelse By =:= contention ->
    Tables = [Seen || Table <- larder_nif:all(), {_, _} = Seen <- [seen(Table, By)]],
    [Map || {_, Map} <- lists:sublist(lists:reverse(lists:keysort(1, Tables)), N)];
top(_N, _By) ->
    erlang:error({larder, none}).

%% Snapshots are excluded: counting the objects of one takes time proportional to its size.
seen(Table, By) ->
    Facts = [snapshot, name, type, size, memory, snapshots, snapshot_memory, owner],
    case larder_nif:info_list(Table, Facts) of
        [false, Name, Type, Size, Words, Snapshots, Kept, Owner] ->
            Map = #{table => Table, name => Name, type => Type, size => Size,
                    memory => bytes(Words), snapshots => Snapshots, snapshot_memory => Kept,
                    owner => Owner},
            by(By, Table, Map);
        _ ->
            none
    end.

by(contention, Table, Map) ->
    case larder_info:item(Table, stats) of
        #{contended := Times} -> {Times, Map#{contention => Times}};
        undefined -> none
    end;
by(By, _Table, Map) ->
    {maps:get(By, Map), Map}.

%% @doc Formats the items as one line, in readable units.
-spec words(larder:memory()) -> iolist().
words(Memory) ->
    lists:join(", ", [[atom_to_list(Item), $\s, size(maps:get(Item, Memory), ["B", "KiB", "MiB"])]
                      || Item <- ?ITEMS]).

size(N, [Unit, _ | _]) when N < 1024 -> io_lib:format("~w ~s", [N, Unit]);
size(N, [Unit]) -> io_lib:format("~w ~s", [N, Unit]);
size(N, [_ | Units]) -> size(round(N / 102.4) / 10, Units).
