%% @doc How `make bench' shows what it measured: a table for each size, and a CSV.
%%
%% Ratios are Larder's figure by that of `ets', of medians: under 1, Larder is quicker (or smaller).
%% What a row of the table names several operations for is judged by the geometric mean of their
%% ratios; each stands below it.
-module(larder_bench_report).

-export([table/2, files/3]).

-type measured() :: larder_bench_measure:measured() | larder_bench_memory:measured().

%% @doc Prints what was measured at one size.
-spec table(pos_integer(), [measured()]) -> ok.
table(Size, All) ->
    io:format("~n~s rows. Nanoseconds an operation or a row (medians), resident bytes a row; ratio: larder / ets~n~n"
              "~-50s ~10s ~10s ~7s ~8s~n~s~n",
              [grouped(Size), "work", "ets", "larder", "ratio", "target", lists:duplicate(94, $-)]),
    lists:foreach(fun(Group) -> group(Size, Group) end, groups(All)).

group(Size, {Row, Title, Members}) ->
    Target = larder_bench_work:target(Row, Size),
    Ratio = mean(Members),
    io:format("~-50ts ~10s ~10s ~7.2f ~8s ~s~n",
              [Title, "", "", Ratio, target(Target), mark(Ratio, Target)]),
    lists:foreach(fun(M) -> member(M, Target) end, Members).

member(#{name := Name} = M, Target) ->
    {Ets, Larder} = medians(M),
    io:format("    ~-46ts ~10.1f ~10.1f ~7.2f ~8s ~s~s~n",
              [Name, Ets, Larder, Larder / Ets, "", mark(Larder / Ets, Target), info(M)]).

info(#{info := {Ets, Larder}}) -> io_lib:format("  (by info: ~.1f, ~.1f)", [Ets, Larder]);
info(_) -> "".

target(none) -> "";
target(Target) -> io_lib:format("=< ~.2f", [Target]).

mark(_, none) -> "";
mark(Ratio, Target) when Ratio =< Target -> "ok";
mark(_, _) -> "-".

grouped(N) when N < 1000 -> integer_to_list(N);
grouped(N) -> [grouped(N div 1000), io_lib:format(",~3..0b", [N rem 1000])].

%% By rows of the table, in its order; only those that were measured.
groups(All) ->
    [{Row, Title, Members}
     || {Row, Title, _} <- larder_bench_work:rows(),
        Members <- [[M || #{row := R} = M <- All, R =:= Row]], Members =/= []].

mean(Members) ->
    math:exp(lists:sum([math:log(ratio(M)) || M <- Members]) / length(Members)).

ratio(M) ->
    {Ets, Larder} = medians(M),
    Larder / Ets.

medians(#{ets := Ets, larder := Larder}) ->
    {larder_bench_measure:median(Ets), larder_bench_measure:median(Larder)}.

%% @doc Writes bench.csv into the folder; `larder-bench report' draws it.
-spec files(file:filename(), [{pos_integer(), [measured()]}], [{atom(), term()}]) -> ok.
files(Folder, BySize, Facts) ->
    Lines = lists:append([csv(Size, All) || {Size, All} <- BySize]),
    larder_bench_run:written(Folder, "bench.csv", Facts, header(), Lines).

header() ->
    ["rows", "row", "type", "operation", "unit", "ets", "larder", "ratio", "ratio_least",
     "ratio_most", "target", "met",
     "runs", "ets_info", "larder_info"].

csv(Size, All) ->
    lists:append([[csv_group(Size, Group) | [csv_member(Size, Row, M) || M <- Members]]
                  || {Row, _, Members} = Group <- groups(All)]).

csv_group(Size, {Row, Title, Members}) ->
    Ratio = mean(Members),
    [integer_to_list(Size), atom_to_list(Row), "", {text, [Title, ": geometric mean"]}, "", "", "",
     number(Ratio), "", ""]
        ++ judged(Ratio, larder_bench_work:target(Row, Size)) ++ ["", "", ""].

csv_member(Size, Row, #{name := Name, type := Type, ets := Ets, larder := Larder} = M) ->
    {EtsMiddle, LarderMiddle} = medians(M),
    Ratio = LarderMiddle / EtsMiddle,
    Ratios = [L / E || {E, L} <- lists:zip(Ets, Larder)],
    [integer_to_list(Size), atom_to_list(Row), atom_to_list(Type), {text, Name}, unit(M),
     number(EtsMiddle),
     number(LarderMiddle), number(Ratio), number(lists:min(Ratios)), number(lists:max(Ratios))]
        ++ judged(Ratio, larder_bench_work:target(Row, Size))
        ++ [integer_to_list(length(Ets)) | infos(M)].

unit(#{info := _}) -> "bytes";
unit(_) -> "ns".

infos(#{info := {Ets, Larder}}) -> [number(Ets), number(Larder)];
infos(_) -> ["", ""].

judged(_, none) -> ["", ""];
judged(Ratio, Target) -> [number(Target), atom_to_list(Ratio =< Target)].

number(N) -> io_lib:format("~.3f", [float(N)]).
