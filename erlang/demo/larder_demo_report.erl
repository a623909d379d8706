%% @doc How the outcomes are shown: a line while running, a table with bars at the end, a CSV and an SVG for keeping.
-module(larder_demo_report).

-export([line/2, table/2, files/4]).

-define(BAR_WIDTH, 28).

%% @doc One outcome in a few words, for the progress.
-spec line({module(), module()}, larder_demo_measure:outcome()) -> iolist().
line(_, #{difference := D}) when D =/= none -> "DIFFERENT";
line({A, B}, #{times := {TimeA, TimeB}, repeats := Repeats}) ->
    io_lib:format("~s ~s   ~s ~s   (~b times, the same)", [A, time(TimeA), B, time(TimeB), Repeats]).

%% @doc The table of all operations. The ratio is how many times as quick the second is as the first.
-spec table({module(), module()}, [larder_demo_measure:outcome()]) -> ok.
table({A, B}, Outcomes) ->
    io:format("~nMedians; ratio: how many times as quick ~s is as ~s (under 1: slower). B/row: bytes a row, by info(T, memory)~n"
              "(which in ets leaves out binaries over 64 bytes).~n~n",
              [B, A]),
    io:format("~-34s ~8s ~11s ~11s ~7s ~12s ~12s~n",
              ["operation", "rows", A, B, "ratio", [atom_to_list(A), " B/row"], [atom_to_list(B), " B/row"]]),
    io:format("~s~n", [lists:duplicate(34 + 9 + 12 + 12 + 8 + 13 + 13, $-)]),
    lists:foreach(fun row/1, Outcomes),
    io:format("~nRatios, drawn (the mark ~ts is ~s's speed; a full bar is ~s times it, scale logarithmic)~n",
              [[$|], A, "100"]),
    lists:foreach(fun bar/1, Outcomes).

row(#{name := Name, rows := Rows, times := {TimeA, TimeB}, difference := none} = Outcome) ->
    {MemA, MemB} = memory(Outcome),
    io:format("~-34ts ~8b ~11s ~11s ~7.2f ~12s ~12s~n",
              [Name, Rows, time(TimeA), time(TimeB), TimeA / TimeB, MemA, MemB]);
row(#{name := Name, rows := Rows}) ->
    io:format("~-34ts ~8b ~11s~n", [Name, Rows, "DIFFERENT"]).

memory(#{memory := none}) -> {"", ""};
memory(#{memory := {A, B}}) -> {io_lib:format("~.1f", [A]), io_lib:format("~.1f", [B])}.

time(Ns) when Ns < 1.0e6 -> io_lib:format("~.1f us", [Ns / 1.0e3]);
time(Ns) when Ns < 1.0e9 -> io_lib:format("~.2f ms", [Ns / 1.0e6]);
time(Ns) -> io_lib:format("~.2f s", [Ns / 1.0e9]).

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
-spec files(file:filename(), {module(), module()}, [larder_demo_measure:outcome()], [{atom(), term()}]) -> ok.
files(Folder, Modules, Outcomes, Facts) ->
    Csv = filename:join(Folder, "run.csv"),
    Page = filename:join(Folder, "run.md"),
    Svg = filename:join(Folder, "run.svg"),
    ok = filelib:ensure_dir(Csv),
    ok = file:write_file(Csv, unicode:characters_to_binary(csv(Modules, Outcomes, Facts))),
    ok = file:write_file(Page, unicode:characters_to_binary(page(Modules, Outcomes))),
    ok = file:write_file(Svg, unicode:characters_to_binary(svg(Modules, Outcomes))),
    io:format("~nwritten: ~ts, ~ts, ~ts~n", [Csv, Page, Svg]).

page({A, B}, Outcomes) ->
    [io_lib:format("| operation | rows | ~s | ~s | ratio | ~s B/row | ~s B/row |~n|---|--:|--:|--:|--:|--:|--:|~n", [A, B, A, B]),
     [page_row(Outcome) || #{difference := none} = Outcome <- Outcomes]].

page_row(#{name := Name, rows := Rows, times := {TimeA, TimeB}} = Outcome) ->
    {MemA, MemB} = memory(Outcome),
    io_lib:format("| ~ts | ~b | ~s | ~s | ~.2f | ~s | ~s |~n",
                  [Name, Rows, time(TimeA), time(TimeB), TimeA / TimeB, MemA, MemB]).

csv({A, B}, Outcomes, Facts) ->
    [[["# ", atom_to_list(K), ": ", io_lib:format("~0tp", [V]), "\n"] || {K, V} <- Facts ++ machine()],
     io_lib:format("operation,rows,repeats,~s_ns,~s_ns,ratio,~s_bytes_a_row,~s_bytes_a_row,same~n", [A, B, A, B]),
     [csv_row(Outcome) || Outcome <- Outcomes]].

csv_row(#{name := Name, rows := Rows, repeats := Repeats, difference := D} = Outcome) ->
    {TimeA, TimeB, Ratio} = case Outcome of
                                #{times := {TA, TB}} -> {number(TA), number(TB), io_lib:format("~.3f", [TA / TB])};
                                #{} -> {"", "", ""}
                            end,
    {MemA, MemB} = memory(Outcome),
    io_lib:format("\"~ts\",~b,~b,~s,~s,~s,~s,~s,~s~n",
                  [Name, Rows, Repeats, TimeA, TimeB, Ratio, MemA, MemB, D =:= none]).

number(N) -> io_lib:format("~b", [round(N)]).

machine() ->
    [{otp, erlang:system_info(otp_release)},
     {schedulers, erlang:system_info(schedulers_online)},
     {architecture, erlang:system_info(system_architecture)},
     {processor, processor()}].

processor() ->
    case file:open("/proc/cpuinfo", [read, binary]) of
        {ok, File} ->
            {ok, Text} = file:read(File, 65536),
            ok = file:close(File),
            case re:run(Text, "model name\\s*:\\s*(.*)", [{capture, [1], list}]) of
                {match, [Model]} -> Model;
                nomatch -> "unknown"
            end;
        {error, _} ->
            "unknown"
    end.

%% A horizontal bar for each operation, on a logarithmic scale; what is quicker goes to the right, what is slower to
%% the left.
svg({A, B}, Outcomes) ->
    Shown = [{Name, TimeA / TimeB} || #{name := Name, times := {TimeA, TimeB}, difference := none} <- Outcomes],
    Height = 60 + 22 * length(Shown),
    [io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"~b\" font-family=\"sans-serif\""
                   " font-size=\"12\">~n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>~n"
                   "<text x=\"12\" y=\"20\" font-size=\"14\">How many times as quick ~s is as ~s (logarithmic)</text>~n",
                   [Height, B, A]),
     [grid(Ratio, Height) || Ratio <- [0.1, 1, 10, 100]],
     [svg_bar(I, Bar) || {I, Bar} <- lists:zip(lists:seq(0, length(Shown) - 1), Shown)],
     "</svg>\n"].

x(Ratio) -> 380 + 110 * math:log10(min(1000.0, max(0.02, Ratio))).

grid(Ratio, Height) ->
    io_lib:format("<line x1=\"~.1f\" x2=\"~.1f\" y1=\"44\" y2=\"~b\" stroke=\"~s\"/><text x=\"~.1f\" y=\"40\""
                  " text-anchor=\"middle\" fill=\"#666\">~w</text>~n",
                  [x(Ratio), x(Ratio), Height - 8, case Ratio of 1 -> "#333"; _ -> "#ddd" end, x(Ratio), Ratio]).

svg_bar(I, {Name, Ratio}) ->
    Y = 50 + 22 * I,
    {From, To, Colour} = case Ratio >= 1 of
                             true -> {x(1), x(Ratio), "#2a7f62"};
                             false -> {x(Ratio), x(1), "#b5483a"}
                         end,
    io_lib:format("<text x=\"12\" y=\"~b\">~ts</text><rect x=\"~.1f\" y=\"~b\" width=\"~.1f\" height=\"14\" fill=\"~s\"/>"
                  "<text x=\"~.1f\" y=\"~b\">~.2f</text>~n",
                  [Y + 12, Name, From, Y, To - From, Colour, To + 5, Y + 12, Ratio]).
