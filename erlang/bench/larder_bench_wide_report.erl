%% @doc How `make bench-wide' shows what it measured: distributions of ratios beside the targets,
%% the worst cells, and all cells as CSV. A ratio is the median of Larder's rounds by that of the
%% rounds of `ets'.
-module(larder_bench_wide_report).

-export([files/4, print/3]).

%% How many of the worst cells are shown.
-define(WORST, 50).

-type ratios() :: [{float(), larder_bench_wide:cell()}].

%% @doc Writes wide.csv, wide_memory.csv and wide.txt into the folder.
-spec files(file:filename(), [larder_bench_wide:cell()], [larder_bench_wide:memory()],
            [{atom(), term()}]) -> ok.
files(Folder, Cells, Memories, Facts) ->
    Write = fun(Name, Text) -> ok = larder_report:write(filename:join(Folder, Name), Text) end,
    Write("wide.csv", larder_report:csv(Facts, header(), [line(Cell) || Cell <- Cells])),
    Write("wide_memory.csv",
          larder_report:csv(Facts, memory_header(), [memory_line(M) || M <- Memories])),
    Write("wide.txt", text(Cells, Memories)).

%% @doc Prints the distributions.
-spec print(file:filename(), [larder_bench_wide:cell()], [larder_bench_wide:memory()]) -> ok.
print(Folder, Cells, Memories) ->
    io:format("~ts~nwritten: ~ts~n",
              [text(Cells, Memories), filename:join(Folder, "wide.{csv,txt}, wide_memory.csv")]).

%%% Targets: median, p90, p99, worst.

target(10) -> [1.1, 1.5, 2.0, 3.0];
target(1000) -> [1.0, 1.4, 2.0, 2.5];
target(65536) -> [0.6, 1.0, 1.4, 2.0];
target(1048576) -> [0.35, 0.8, 1.1, 1.5];
target(_) -> none.

%% Of the median of scans that build nothing.
scan_target(1000) -> 0.6;
scan_target(65536) -> 0.3;
scan_target(_) -> none.

%%% CSV

header() ->
    ["operation", "type", "kind", "rows", "by", "processes", "unit", "ets", "larder", "ratio",
     "ets_least", "larder_least",
     "ratio_of_least", "rounds", "calls", "scan", "left_out"].

line(#{op := #{name := Name, scan := Scan} = Op, place := Place, result := Result}) ->
    #{type := Type, kind := Kind, size := Size, by := By, processes := Processes} = Place,
    Unit = case larder_bench_wide_ops:per_row(Op) of true -> "ns/row"; false -> "ns/call" end,
    [atom_to_list(A) || A <- [Name, Type, Kind]]
        ++ [integer_to_list(Size), atom_to_list(By), integer_to_list(Processes), Unit]
        ++ figures(Result, atom_to_list(Scan)).

figures({left_out, Why}, Scan) -> ["", "", "", "", "", "", "", "", Scan, {text, Why}];
figures(#{ets := Ets, larder := Larder, calls := Calls}, Scan) ->
    [E, L] = [larder_bench_measure:median(Of) || Of <- [Ets, Larder]],
    {LeastE, LeastL} = {lists:min(Ets), lists:min(Larder)},
    [number(N) || N <- [E, L, L / E, LeastE, LeastL, LeastL / LeastE]]
        ++ [integer_to_list(length(Ets)), integer_to_list(Calls), Scan, ""].

number(N) -> io_lib:format("~.3f", [float(N)]).

memory_header() ->
    ["type", "kind", "rows", "ets_info", "larder_info", "ratio", "ets_binaries", "larder_binaries"].

memory_line(#{place := #{type := Type, kind := Kind, size := Size}, ets := {Ets, EtsBinaries},
              larder := {Larder, LarderBinaries}}) ->
    [atom_to_list(Type), atom_to_list(Kind), integer_to_list(Size)]
        ++ [number(N) || N <- [Ets, Larder, Larder / Ets, EtsBinaries, LarderBinaries]].

%%% Text

text(Cells, Memories) ->
    Ratios = [{larder_bench_measure:median(L) / larder_bench_measure:median(E), Cell}
              || #{result := #{ets := E, larder := L}} = Cell <- Cells],
    LeftOut = [Cell || #{result := {left_out, _}} = Cell <- Cells],
    [heading("Larder's time by that of ets (medians); under 1, Larder is quicker"),
     distribution("all cells", Ratios, none),
     by("by size", Ratios, fun(#{place := #{size := S}}) -> S end, fun target/1),
     by("scans that build nothing", [R || {_, #{op := #{scan := true}}} = R <- Ratios],
        fun(#{place := #{size := S}}) -> S end, fun(S) -> [scan_target(S), none, none, none] end),
     by("by type", Ratios, fun(#{place := #{type := T}}) -> T end, none()),
     by("tables by reference and by name, one process and two", Ratios,
        fun(#{place := #{by := By, processes := P}}) -> {By, P} end, none()),
     by("by kind of row", Ratios, fun(#{place := #{kind := K}}) -> K end, none()),
     by("by operation", Ratios, fun(#{op := #{name := N}}) -> N end, none()),
     worst(Ratios), memory(Memories), left_out(LeftOut)].

none() -> fun(_) -> none end.

heading(Title) ->
    io_lib:format("~n~ts~n~n~-44s ~7s ~7s ~7s ~7s ~7s ~7s ~7s~n",
                  [Title, "", "cells", "p10", "median", "p90", "p99", "worst", "slower"]).

-spec by(string(), ratios(),
         fun((larder_bench_wide:cell()) -> term()), fun((term()) -> [float() | none] | none)) ->
             iolist().
by(_, [], _, _) -> [];
by(Title, Ratios, Of, Target) ->
    Groups = lists:foldl(fun({_, Cell} = R, Map) ->
        maps:update_with(Of(Cell), fun(Rs) -> [R | Rs] end, [R], Map) end, #{}, Ratios),
    ["\n", Title, "\n",
     [distribution(label(G), Rs, Target(G)) || {G, Rs} <- lists:sort(maps:to_list(Groups))]].

label(Size) when is_integer(Size) -> io_lib:format("  ~b rows", [Size]);
label({By, Processes}) -> io_lib:format("  by ~s, ~b process(es)", [By, Processes]);
label(Name) -> io_lib:format("  ~s", [Name]).

distribution(Label, [], _) -> io_lib:format("~-44s ~7b~n", [Label, 0]);
distribution(Label, Ratios, Target) ->
    Sorted = lists:sort([R || {R, _} <- Ratios]),
    N = length(Sorted),
    At = fun(Part) -> lists:nth(max(1, ceil(Part * N)), Sorted) end,
    [P10, P50, P90, P99, Worst] = [At(P) || P <- [0.1, 0.5, 0.9, 0.99, 1.0]],
    [io_lib:format("~-44s ~7b ~7.2f ~7.2f ~7.2f ~7.2f ~7.2f ~7b~n",
                   [Label, N, P10, P50, P90, P99, Worst, length([R || R <- Sorted, R > 1])]),
     targets(Target, [P50, P90, P99, Worst])].

targets(none, _) -> [];
targets([none, none, none, none], _) -> [];
targets(Targets, Figures) ->
    [io_lib:format("~-44s ~7s ~7s", ["    target", "", ""]),
     [target_cell(T, F) || {T, F} <- lists:zip(Targets, Figures)], "\n"].

target_cell(none, _) -> io_lib:format(" ~7s", [""]);
target_cell(Target, Figure) when Figure =< Target ->
    io_lib:format(" ~7s", [io_lib:format("~.2f ok", [Target])]);
target_cell(Target, _) -> io_lib:format(" ~7s", [io_lib:format("~.2f -", [Target])]).

worst(Ratios) ->
    Worst = lists:sublist(lists:reverse(lists:keysort(1, Ratios)), ?WORST),
    [io_lib:format("~nthe ~b worst cells~n~-64s ~10s ~10s ~7s~n",
                   [length(Worst), "", "ets, ns", "larder", "ratio"]),
     [io_lib:format("  ~-62ts ~10.1f ~10.1f ~7.2f~n",
                    [called(Cell), larder_bench_measure:median(E), larder_bench_measure:median(L),
                     Ratio])
      || {Ratio, #{result := #{ets := E, larder := L}} = Cell} <- Worst]].

called(#{op := #{name := Name},
         place := #{type := Type, kind := Kind, size := Size, by := By, processes := Processes}}) ->
    lists:flatten(io_lib:format("~s, ~s of ~s, ~b rows~s~s",
                                [Name, Type, Kind, Size,
                                 case By of ref -> ""; name -> ", named" end,
                                 case Processes of 1 -> ""; 2 -> ", 2 processes" end])).

memory(Memories) ->
    Ratios = [{Larder / Ets, M}
              || #{ets := {Ets, _}, larder := {Larder, _}, place := #{size := S}} = M <- Memories,
                 S >= 1000],
    [heading("Bytes a row by info(T, memory), tables of 1,000 rows and more"),
     distribution("all", Ratios, none),
     [[distribution(io_lib:format("  ~s", [K]), Of, none)]
      || K <- larder_bench_wide_kinds:kinds(),
         Of <- [[R || {_, #{place := #{kind := Kind}}} = R <- Ratios, Kind =:= K]], Of =/= []]].

left_out([]) -> [];
left_out(Cells) ->
    [io_lib:format("~nleft out: ~b cells~n", [length(Cells)]),
     [io_lib:format("  ~ts: ~ts~n", [called(Cell), Why])
      || #{result := {left_out, Why}} = Cell <- lists:sublist(Cells, 30)],
     [io_lib:format("  and ~b more, see wide.csv~n", [length(Cells) - 30]) || length(Cells) > 30]].
