%% @doc `make bench-wide': every function that touches rows, on every type of table, with every kind
%% of rows, at several sizes; `ets' and Larder in turns. A run measures a seeded random part of that
%% product, so that no set of cells can be made fast by itself; `make bench-wide-full' measures all
%% of it.
%%
%% Environment: `LARDER_BENCH_OPS', `LARDER_BENCH_KINDS', `LARDER_BENCH_TYPES', `LARDER_BENCH_SIZES'
%% choose cells (names between commas); `LARDER_BENCH_SHARE=0.05' is the part of them that is
%% measured, 0.2 by default, all if cells were chosen; `LARDER_BENCH_SEED' (a number, or `random')
%% chooses which; `LARDER_BENCH_RUNS' is the rounds a side (5), `LARDER_BENCH_OUT' the folder of the
%% files.
-module(larder_bench_wide).

-export([main/0]).

-export_type([place/0, cell/0, memory/0]).

-type place() :: #{type := atom(), kind := atom(), size := pos_integer(), by := ref | name,
                   processes := 1 | 2}.
-type cell() :: #{op := larder_bench_wide_ops:op(), place := place(),
                  result := larder_bench_wide_cell:result()}.
-type memory() :: #{place := place(), ets := {float(), float()}, larder := {float(), float()}}.
%% Bytes a row by info(T, memory), and of the emulator's binaries that came with them.

-define(SIZES, [10, 1000, 65536, 1048576]).
%% From here on only a part of the product is there.
-define(LARGE, 1_000_000).
-define(ROUNDS, 5).
%% Of larger tables, tables are drawn, and cells of each.
-define(DRAWN_BY_TABLE, 10_000).
%% Tables of ten rows, and of large ones.
-define(SMALL_TABLES, 32).
-define(SMALL_TABLES_LARGE_ROWS, 4).
-define(LARGE_ROW_WORDS, 500).
%% Words of the rows of a table at the most.
-define(WORDS, 20_000_000).

%% @doc Measures, prints the distributions and stops the node.
-spec main() -> no_return().
main() -> larder_bench_run:ended(fun run/0).

run() ->
    Ops = larder_bench_env:choice("LARDER_BENCH_OPS", larder_bench_wide_ops:names()),
    Kinds = larder_bench_env:choice("LARDER_BENCH_KINDS", larder_bench_wide_kinds:kinds()),
    Types = larder_bench_env:choice("LARDER_BENCH_TYPES", [set, ordered_set, bag, duplicate_bag]),
    Sizes = larder_bench_env:numbers("LARDER_BENCH_SIZES", ?SIZES),
    Chosen = [V || V <- ["OPS", "KINDS", "TYPES"], os:getenv("LARDER_BENCH_" ++ V, "") =/= ""],
    Share = larder_bench_env:share("LARDER_BENCH_SHARE", case Chosen of [] -> 0.2; _ -> 1.0 end),
    Seed = larder_bench_env:seed("LARDER_BENCH_SEED", 1),
    Rounds = larder_bench_env:number("LARDER_BENCH_RUNS", ?ROUNDS),
    Folder = larder_bench_env:folder("wide"),
    Places = [{Place, Cells} || Size <- Sizes, Place <- places(Types, Kinds, Size),
                                Cells <- [[Op
                                           || Op <- Ops, is_cell(Op, Place),
                                              drawn(Op, Place, Seed, Share)]],
                                Cells =/= []],
    Count = lists:sum([length(Cells) || {_, Cells} <- Places]),
    io:format(standard_error, "~b cells in ~b tables, seed ~b~n", [Count, length(Places), Seed]),
    Facts = larder_report:facts() ++ [{seed, Seed}, {share, Share}, {rounds, Rounds}],
    larder_bench_run:expect(
      lists:sum([seconds(Place, Op) || {Place, Cells} <- Places, Op <- [table | Cells]]), 5.0),
    put(said, erlang:monotonic_time(second) - 60),
    {Cells, Memories} =
        lists:foldl(fun(Size, {CellsBefore, MemoriesBefore}) ->
                            Measured = [place(Place, Those, Rounds)
                                        || {#{size := S} = Place, Those} <- Places, S =:= Size],
                            {NewCells, NewMemories} = lists:unzip(Measured),
                            Cells = CellsBefore ++ lists:append(NewCells),
                            Memories = MemoriesBefore ++ lists:append(NewMemories),
                            %% A long run that is broken off leaves what it has.
                            larder_bench_wide_report:files(Folder, Cells, Memories, Facts),
                            {Cells, Memories}
                    end, {[], []}, lists:usort(Sizes)),
    larder_bench_wide_report:print(Folder, Cells, Memories).

%%% The product

-spec places([atom()], [atom()], pos_integer()) -> [place()].
places(Types, Kinds, Size) when Size >= ?LARGE ->
    [P || #{type := Type, kind := Kind, by := ref,
            processes := 1} = P <- all_places(Types, Kinds, Size),
          lists:member(Type, [set, ordered_set]),
          lists:member(Kind, larder_bench_wide_ops:large_kinds())];
places(Types, Kinds, Size) -> all_places(Types, Kinds, Size).

all_places(Types, Kinds, Size) ->
    [#{type => Type, kind => Kind, size => Size, by => By, processes => Processes}
     || {By, Processes} <- [{ref, 1}, {name, 1}, {ref, 2}], Kind <- Kinds, Type <- Types,
        lists:member(Type, larder_bench_wide_kinds:types(Kind))].

is_cell(Name, #{type := Type, kind := Kind, size := Size, by := By} = Place) ->
    in_part(Name, Place)
        andalso larder_bench_wide_ops:on(larder_bench_wide_ops:find(Name), Type, Kind, {Size, By}).

in_part(Name, #{size := Size}) when Size >= ?LARGE ->
    lists:member(Name, larder_bench_wide_ops:large());
in_part(Name, #{by := name, kind := Kind}) ->
    lists:member(Name, larder_bench_wide_ops:by_name())
        andalso lists:member(Kind, larder_bench_wide_ops:by_name_kinds());
in_part(Name, #{processes := 2, kind := Kind, size := Size}) ->
    Size >= 100 andalso lists:member(Name, larder_bench_wide_ops:shared())
        andalso lists:member(Kind, larder_bench_wide_ops:shared_kinds());
in_part(_, _) -> true.

%% The same cells for the same seed, whatever else was chosen. A large table takes longer to make
%% than a cell takes: there a part of the tables is drawn, and a part of the cells of each, which
%% together are as many as were wanted.
drawn(Name, #{type := Type, kind := Kind, size := Size, by := By, processes := Processes}, Seed,
      Share) ->
    Table = {Type, Kind, Size, By, Processes},
    case Size > ?DRAWN_BY_TABLE of
        true ->
            less({Seed, Table}, math:sqrt(Share))
                andalso less({Seed, Table, Name}, math:sqrt(Share));
        false -> less({Seed, Table, Name}, Share)
    end.

less(What, Share) -> erlang:phash2(What, 1_000_000) < Share * 1_000_000.

%%% One table of each side

-spec place(place(), [atom()], pos_integer()) -> {[cell()], [memory()]}.
place(#{kind := Kind, size := Size} = Place, Names, Rounds) ->
    Ops = [larder_bench_wide_ops:find(Name) || Name <- Names],
    Words = larder_bench_wide_kinds:size_of(Kind, Size),
    case Words * Size > ?WORDS of
        true ->
            larder_bench_run:skipped(lists:sum([seconds(Place, Op) || Op <- [table | Names]])),
            Why = io_lib:format("rows of ~b MiB together", [Words * Size bsr 17]),
            {[#{op => Op, place => Place, result => {left_out, Why}} || Op <- Ops], []};
        false ->
            larder_bench_measure:with_data(
              larder_bench_wide_cell, fun() -> larder_bench_wide_kinds:data(Kind, Size, 1) end,
              fun() -> cells(Place, Words, Ops, Rounds) end)
    end.

cells(#{type := Type, kind := Kind, processes := Processes} = Place, Words, Ops, Rounds) ->
    {{Tables, Memory}, Took} = timed(fun() -> tables(Place, Words) end),
    larder_bench_run:spent(seconds(Place, table), Took),
    {Cells, Last} =
        lists:mapfoldl(
          fun(#{name := Name} = Op, Now) ->
                  said(Place, Name),
                  {Result, Seconds} =
                      timed(fun() ->
                          larder_bench_wide_cell:measure(Op, {Type, Kind, Processes}, Now,
                                                         Rounds) end),
                  larder_bench_run:spent(seconds(Place, Name), Seconds),
                  Next = case Result of
                             {left_out, _} -> delete(Now), element(1, tables(Place, Words));
                             _ -> Now
                         end,
                  {#{op => Op, place => Place, result => Result}, Next}
          end, Tables, Ops),
    delete(Last),
    {Cells, Memory}.

tables(#{size := Size} = Place, Words) ->
    Count = if Size > 100 -> 1; Words > ?LARGE_ROW_WORDS -> ?SMALL_TABLES_LARGE_ROWS;
               true -> ?SMALL_TABLES end,
    {Ets, EtsMemory} = filled(larder_bench_wide_ets, Place, Count),
    {Larder, LarderMemory} = filled(larder_bench_wide_larder, Place, Count),
    {#{ets => Ets, larder => Larder},
     [#{place => Place, ets => EtsMemory, larder => LarderMemory}]}.

filled(Side, #{type := Type, kind := Kind, by := By, processes := Processes}, Count) ->
    #{parts := [#{all := Rows} | _], size := Size} = persistent_term:get(larder_bench_wide_cell),
    Options = [Type | larder_bench_wide_kinds:options(Kind)]
        ++ [{write_concurrency, true} || Processes > 1],
    true = garbage_collect(),
    Before = erlang:memory(binary),
    Named = case By of ref -> []; name -> [named_table] end,
    Tables = [Side:new(list_to_atom("larder_bench_wide_" ++ integer_to_list(N)), Named ++ Options)
              || N <- lists:seq(1, Count)],
    ok = lists:foreach(fun(T) -> ok = Side:fill(T, Rows) end, Tables),
    true = garbage_collect(),
    Bytes = lists:sum([Side:memory(T) || T <- Tables]) * erlang:system_info(wordsize),
    All = Size * length(Tables),
    {Tables, {Bytes / All, max(0, erlang:memory(binary) - Before) / All}}.

delete(#{ets := Ets, larder := Larder}) ->
    lists:foreach(fun(T) -> true = larder_bench_wide_ets:delete(T) end, Ets),
    lists:foreach(fun(T) -> true = larder_bench_wide_larder:delete(T) end, Larder).

timed(Fun) ->
    {Ns, Result} = larder_bench_measure:timed(Fun),
    {Result, Ns / 1.0e9}.

%%% How long it will still take

%% About how many seconds something takes.
seconds(#{size := Size}, table) -> Size * 1.5e-5;
seconds(#{size := Size}, Name) ->
    case larder_bench_wide_ops:per_row(larder_bench_wide_ops:find(Name)) of
        true -> 0.03 + Size * 1.0e-5;
        false -> 0.03 + min(Size, 100_000) * 1.0e-6
    end.

%% What is in progress, every few seconds.
said(#{type := Type, kind := Kind, size := Size}, Name) ->
    Now = erlang:monotonic_time(second),
    case Now - get(said) >= 5 of
        true ->
            io:format(standard_error, "  ~b rows: ~s, ~s of ~s (about ~s left)~n",
                      [Size, Name, Type, Kind, larder_bench_run:left()]),
            put(said, Now);
        false ->
            ok
    end.
