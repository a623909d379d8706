%% @doc How the outcomes are shown: a line while running, a table with bars at the end, a CSV and an
%% SVG for keeping.
-module(larder_demo_report).

-export([line/2, table/2, files/4, bank/2, leaderboard/2, sessions/2, moved/2]).

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

%% @doc Adds what the bank did to the page, and writes it as a CSV.
-spec bank(file:filename(), bank:result()) -> ok.
bank(Folder, Result) ->
    #{accounts := Accounts, seconds := Seconds, transfers := Transfers, refused := Refused,
      again := Again, audits := Audits, events := Events, resyncs := Resyncs} = Result,
    example(Folder, "bank", "A bank of transactions, with audits by snapshots and a mirror by a feed",
            Seconds,
            [{"accounts", Accounts}, {"transfers", Transfers},
             {"transfers a second", round(Transfers / Seconds)}, {"refused", Refused},
             {"run again", Again}, {"audits, the sum the same", Audits},
             {"changes that the mirror had", Events}, {"the mirror began again", Resyncs}]).

%% @doc Adds what the leaderboard did to the page, and writes it as a CSV.
-spec leaderboard(file:filename(), leaderboard:result()) -> ok.
leaderboard(Folder, Result) ->
    #{players := Players, seconds := Seconds, games := Games, joined := Joined, left := Left,
      again := Again, pages := Pages, moved := Moved, exact := Exact, audits := Audits} = Result,
    example(Folder, "leaderboard",
            "A leaderboard: ranks, and the pages around them, while transactions move the rows",
            Seconds,
            [{"players", Players}, {"games", Games}, {"games a second", round(Games / Seconds)},
             {"joined", Joined}, {"left", Left}, {"run again", Again}, {"pages", Pages},
             {"pages a second", round(Pages / Seconds)},
             {"the player had moved before the page was there", Moved},
             {"pages of snapshots, exact", Exact},
             {"audits, tables and ranks agree", Audits}]).

%% @doc Adds what the session store did to the page, and writes it as a CSV.
-spec sessions(file:filename(), sessions:result()) -> ok.
sessions(Folder, Result) ->
    #{users := Users, seconds := Seconds, logins := Logins, asked := Asked, gone := Gone,
      everywhere := Everywhere, logged_out := Out, expired := Expired, audits := Audits} = Result,
    example(Folder, "sessions",
            "Sessions that expire, found by token and by user", Seconds,
            [{"shared users", Users}, {"logins", Logins}, {"requests", Asked},
             {"requests a second", round(Asked / Seconds)}, {"found gone", Gone},
             {"logged out everywhere", Everywhere}, {"sessions logged out", Out},
             {"sessions expired", Expired}, {"audits, limits held and the index agreed", Audits}]).

%% @doc Adds what the program did that was moved to the page, and writes it as a CSV.
-spec moved(file:filename(), larder_demo_moved:result()) -> ok.
moved(Folder, Result) ->
    #{seconds := Seconds, modules := Modules, untouched := Untouched, sessions := Sessions,
      requests := Requests, ets := Ets, larder := Larder} = Result,
    example(Folder, "moved", "Debian's web server Yaws, as it is and moved to Larder", Seconds,
            [{"modules moved", Modules}, {"modules that have nothing to do with ets", Untouched},
             {"sessions, on each side", Sessions}, {"requests, on each side", Requests},
             {"requests a second on ets", round(Ets)},
             {"requests a second on larder", round(Larder)}]).

example(Folder, Name, Title, Seconds, Figures) ->
    Csv = filename:join(Folder, Name ++ ".csv"),
    ok = larder_report:write(Csv, larder_report:csv(larder_report:facts(), ["figure", "value"],
                                                    [[{text, Figure}, integer_to_list(N)]
                                                     || {Figure, N} <- Figures])),
    Lines = [io_lib:format("| ~s | ~b |~n", [Figure, N]) || {Figure, N} <- Figures],
    ok = file:write_file(filename:join(Folder, "run.md"),
                         [io_lib:format("~n~s, in ~.1f s:~n~n", [Title, Seconds]),
                          "| | |\n|---|--:|\n", Lines],
                         [append]),
    io:format("written: ~ts~n", [Csv]).

%% What is quicker goes to the right, what is slower to the left.
svg({A, B}, Outcomes) ->
    Bars = [#{label => Name, ratio => TimeA / TimeB, good => TimeA >= TimeB}
            || #{name := Name, times := {TimeA, TimeB}, difference := none} <- Outcomes],
    larder_report:chart(io_lib:format("How many times as quick ~s is as ~s (logarithmic)", [B, A]),
                        [0.1, 1, 10, 100], [{"", Bars}]).
