%% @doc How the outcomes are shown: a line while running, a table with bars at the end, a CSV and an
%% SVG for keeping.
-module(larder_demo_report).

-export([line/2, table/2, files/4, example/3]).

-define(BAR_WIDTH, 28).

%% @doc One outcome in a few words, for the progress.
-spec line({module(), module()}, larder_demo_measure:outcome()) -> iolist().
line(_, #{difference := D}) when D =/= none -> "DIFFERENT";
line({A, B}, #{times := {TimeA, TimeB}, repeats := Repeats}) ->
    io_lib:format("~s ~s   ~s ~s   (~b times, the same)",
                  [A, larder_report:time(TimeA), B, larder_report:time(TimeB), Repeats]).

%% @doc The table of all operations. The ratio is how many times as quick the second is as the
%% first.
-spec table({module(), module()}, [larder_demo_measure:outcome()]) -> ok.
table({A, B}, Outcomes) ->
    io:format("~nMedians; ratio: how many times as quick ~s is as ~s (under 1: slower). B/row: bytes a row, by info(T, memory)~n"
              "(which in ets leaves out binaries over 64 bytes).~n~n",
              [B, A]),
    io:format("~-34s ~8s ~11s ~11s ~7s ~12s ~12s~n",
              ["operation", "rows", A, B, "ratio", [atom_to_list(A), " B/row"],
               [atom_to_list(B), " B/row"]]),
    io:format("~s~n", [lists:duplicate(34 + 9 + 12 + 12 + 8 + 13 + 13, $-)]),
    lists:foreach(fun row/1, Outcomes),
    io:format("~nRatios, drawn (the mark ~ts is ~s's speed; a full bar is ~s times it, scale logarithmic)~n",
              [[$|], A, "100"]),
    lists:foreach(fun bar/1, Outcomes).

row(#{name := Name, rows := Rows, times := {TimeA, TimeB}, difference := none} = Outcome) ->
    {MemA, MemB} = memory(Outcome),
    io:format("~-34ts ~8b ~11s ~11s ~7.2f ~12s ~12s~n",
              [Name, Rows, larder_report:time(TimeA), larder_report:time(TimeB), TimeA / TimeB,
               MemA, MemB]);
row(#{name := Name, rows := Rows}) ->
    io:format("~-34ts ~8b ~11s~n", [Name, Rows, "DIFFERENT"]).

memory(#{memory := none}) -> {"", ""};
memory(#{memory := {A, B}}) -> {io_lib:format("~.1f", [A]), io_lib:format("~.1f", [B])}.

%% From a hundredth to a hundred times, the middle being equal.
bar(#{name := Name, times := {A, B}, difference := none}) ->
    Middle = ?BAR_WIDTH div 2,
    Place = min(?BAR_WIDTH, max(0, Middle + round(math:log10(A / B) * Middle / 2))),
    Cells = [cell(I, Place, Middle) || I <- lists:seq(0, ?BAR_WIDTH)],
    io:format("~-34ts ~ts ~7.2f~n", [Name, Cells, A / B]);
bar(_) ->
    ok.

cell(Middle, _, Middle) -> $|;
cell(I, Place, Middle) when I > Middle, I =< Place -> $#;
cell(I, Place, Middle) when I < Middle, I >= Place -> $-;
cell(_, _, _) -> $\s.

%% @doc Writes the CSV, the same as a table for a page, and the chart into the folder.
-spec files(file:filename(), {module(), module()}, [larder_demo_measure:outcome()],
            [{atom(), term()}]) -> ok.
files(Folder, Modules, Outcomes, Facts) ->
    Csv = filename:join(Folder, "run.csv"),
    Page = filename:join(Folder, "run.md"),
    Svg = filename:join(Folder, "run.svg"),
    ok = larder_report:write(Csv, csv(Modules, Outcomes, Facts)),
    ok = larder_report:write(Page, page(Modules, Outcomes)),
    ok = larder_report:write(Svg, svg(Modules, Outcomes)),
    io:format("~nwritten: ~ts, ~ts, ~ts~n", [Csv, Page, Svg]).

page({A, B}, Outcomes) ->
    [io_lib:format("| operation | rows | ~s | ~s | ratio | ~s B/row | ~s B/row |~n|---|--:|--:|--:|--:|--:|--:|~n", [A, B, A, B]),
     [page_row(Outcome) || #{difference := none} = Outcome <- Outcomes]].

page_row(#{name := Name, rows := Rows, times := {TimeA, TimeB}} = Outcome) ->
    {MemA, MemB} = memory(Outcome),
    io_lib:format("| ~ts | ~b | ~s | ~s | ~.2f | ~s | ~s |~n",
                  [Name, Rows, larder_report:time(TimeA), larder_report:time(TimeB), TimeA / TimeB,
                   MemA, MemB]).

csv({A, B}, Outcomes, Facts) ->
    Header = io_lib:format("operation,rows,repeats,~s_ns,~s_ns,ratio,~s_bytes_a_row,~s_bytes_a_row,same", [A, B, A, B]),
    larder_report:csv(Facts ++ larder_report:facts(), [Header],
                      [csv_row(Outcome) || Outcome <- Outcomes]).

csv_row(#{name := Name, rows := Rows, repeats := Repeats, difference := D} = Outcome) ->
    {TimeA, TimeB, Ratio} = case Outcome of
                                #{times := {TA, TB}} -> {number(TA), number(TB),
                                                         io_lib:format("~.3f", [TA / TB])};
                                #{} -> {"", "", ""}
                            end,
    {MemA, MemB} = memory(Outcome),
    [{text, Name}, integer_to_list(Rows), integer_to_list(Repeats), TimeA, TimeB, Ratio, MemA, MemB,
     atom_to_list(D =:= none)].

number(N) -> io_lib:format("~b", [round(N)]).

%% @doc Adds what an example did to the page, and writes it as a CSV.
-spec example(file:filename(), bank | leaderboard | sessions | moved, map()) -> ok.
example(Folder, Name, #{seconds := Seconds} = Result) ->
    {Title, Shown} = shown(Name),
    Figures = [{Text, figure(Key, Result)} || {Text, Key} <- Shown],
    Csv = filename:join(Folder, atom_to_list(Name) ++ ".csv"),
    ok = larder_report:write(Csv, larder_report:csv(larder_report:facts(), ["figure", "value"],
                                                    [[{text, Figure}, integer_to_list(N)]
                                                     || {Figure, N} <- Figures])),
    Lines = [io_lib:format("| ~s | ~b |~n", [Figure, N]) || {Figure, N} <- Figures],
    ok = file:write_file(filename:join(Folder, "run.md"),
                         [io_lib:format("~n~s, in ~.1f s:~n~n", [Title, Seconds]),
                          "| | |\n|---|--:|\n", Lines],
                         [append]),
    io:format("written: ~ts~n", [Csv]).

figure({a_second, Key}, #{seconds := Seconds} = Result) -> round(map_get(Key, Result) / Seconds);
figure(Key, Result) -> round(map_get(Key, Result)).

%% The title of an example, and what is shown of its result.
shown(bank) ->
    {"A bank of transactions, with audits by snapshots and a mirror by a feed",
     [{"accounts", accounts}, {"transfers", transfers},
      {"transfers a second", {a_second, transfers}}, {"refused", refused}, {"run again", again},
      {"audits, the sum the same", audits}, {"changes that the mirror had", events},
      {"the mirror began again", resyncs}]};
shown(leaderboard) ->
    {"A leaderboard: ranks, and the pages around them, while transactions move the rows",
     [{"players", players}, {"games", games}, {"games a second", {a_second, games}},
      {"joined", joined}, {"left", left}, {"run again", again}, {"pages", pages},
      {"pages a second", {a_second, pages}},
      {"the player had moved before the page was there", moved},
      {"pages of snapshots, exact", exact}, {"audits, tables and ranks agree", audits}]};
shown(sessions) ->
    {"Sessions that expire, found by token and by user",
     [{"shared users", users}, {"logins", logins}, {"requests", asked},
      {"requests a second", {a_second, asked}}, {"found gone", gone},
      {"logged out everywhere", everywhere}, {"sessions logged out", logged_out},
      {"sessions expired", expired}, {"audits, limits held and the index agreed", audits}]};
shown(moved) ->
    {"Debian's web server Yaws, as it is and moved to Larder",
     [{"modules moved", modules}, {"modules that have nothing to do with ets", untouched},
      {"sessions, on each side", sessions}, {"requests, on each side", requests},
      {"requests a second on ets", ets}, {"requests a second on larder", larder}]}.

%% What is quicker goes to the right, what is slower to the left.
svg({A, B}, Outcomes) ->
    Bars = [#{label => Name, ratio => TimeA / TimeB, good => TimeA >= TimeB}
            || #{name := Name, times := {TimeA, TimeB}, difference := none} <- Outcomes],
    larder_report:chart(io_lib:format("How many times as quick ~s is as ~s (logarithmic)", [B, A]),
                        [0.1, 1, 10, 100], [{"", Bars}]).
