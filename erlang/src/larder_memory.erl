%% @private
%% @doc The use of memory: memory/0,1 and top/2 of module larder.
%%
%% The tables are read one after the other while other processes write, so the sums are
%% approximate.
-module(larder_memory).

-export([memory/0, memory/1, top/2, items/0, figures/1, units/1]).

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
            Entries = entries(Own),
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
    Tables = [Entry || Table <- larder_nif:all(), {_, _} = Entry <- [entry(Table, By)]],
    [Map || {_, Map} <- lists:sublist(lists:reverse(lists:keysort(1, Tables)), N)];
top(_N, _By) ->
    erlang:error({larder, none}).

%% Snapshots are excluded: counting the objects of one takes time proportional to its size.
entry(Table, By) ->
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
    Times = contention(Table),
    {Times, Map#{contention => Times}};
by(By, _Table, Map) ->
    {maps:get(By, Map), Map}.

%% A table that no longer exists has none.
contention(Table) ->
    case larder_info:item(Table, stats) of
        #{contended := Times} -> Times;
        undefined -> 0
    end.

%% @doc Returns the names of the items of memory/0, in the order of its documentation.
-spec items() -> [larder:memory_item()].
items() ->
    ?ITEMS.

%% @doc Returns the bytes of a table's indexes, those that it retains for snapshots, and how many
%% times a writer found a leaf locked.
-spec figures(larder:table()) ->
    {non_neg_integer(), non_neg_integer(), non_neg_integer()} | undefined.
figures(Table) ->
    case {larder_nif:info_list(Table, [indexes, snapshot_memory]), contention(Table)} of
        {[Indexes, Kept], Times} -> {entries(Indexes), Kept, Times};
        {undefined, _} -> undefined
    end.

entries(Indexes) ->
    lists:sum([Bytes || {_, _, _, _, _, Bytes} <- Indexes]).

%% @doc Formats a number of bytes in readable units.
-spec units(non_neg_integer()) -> string().
units(Bytes) ->
    units(Bytes, ["B", "KiB", "MiB", "GiB"]).

units(N, [Unit, _ | _]) when N < 1024 -> lists:flatten(io_lib:format("~w ~s", [N, Unit]));
units(N, [Unit]) -> lists:flatten(io_lib:format("~w ~s", [N, Unit]));
units(N, [_ | Units]) -> units(round(N / 102.4) / 10, Units).
