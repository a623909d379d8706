%% @doc What the reports of `make run' and `make bench' have in common: the facts of the machine,
%% CSV, charts, units.
-module(larder_report).

-export([facts/0, csv/3, chart/3, time/1, write/2]).

-export_type([cell/0, bar/0]).

-type cell() :: {text, unicode:chardata()} | iodata().
%% Text is quoted; everything else stands as it is.
-type bar() :: #{label := unicode:chardata(), ratio := float(), good := boolean()}.

%% @doc The machine, the versions and the commit, for the head of a CSV.
-spec facts() -> [{atom(), term()}].
facts() ->
    [{date, calendar:system_time_to_rfc3339(erlang:system_time(second))},
     {otp, erlang:system_info(otp_release)},
     {erts, erlang:system_info(version)},
     {schedulers, erlang:system_info(schedulers_online)},
     {architecture, erlang:system_info(system_architecture)},
     {processor, found_in("/proc/cpuinfo", "model name\\s*:\\s*(.*)")},
     {cores, erlang:system_info(logical_processors)},
     {memory, found_in("/proc/meminfo", "MemTotal:\\s*(.*)")},
     {system, found_in("/proc/version", "(Linux version [^ ]+)")},
     {rustc, said_by("rustc --version")},
     {commit, said_by("git describe --always --dirty --abbrev=12")}].

found_in(Path, Pattern) ->
    case file:open(Path, [read, binary]) of
        {ok, File} ->
            {ok, Text} = file:read(File, 65536),
            ok = file:close(File),
            case re:run(Text, Pattern, [{capture, [1], list}]) of
                {match, [Found]} -> Found;
                nomatch -> "unknown"
            end;
        {error, _} ->
            "unknown"
    end.

said_by(Command) ->
    case string:trim(os:cmd(Command ++ " 2>/dev/null")) of
        "" -> "unknown";
        Text -> Text
    end.

%% @doc A CSV with the facts as comments before its header.
-spec csv([{atom(), term()}], [iodata()], [[cell()]]) -> iolist().
csv(Facts, Header, Rows) ->
    [[["# ", atom_to_list(K), ": ", io_lib:format("~0tp", [V]), "\n"] || {K, V} <- Facts],
     [csv_line(Line) || Line <- [Header | Rows]]].

csv_line(Cells) -> [lists:join($,, [csv_cell(C) || C <- Cells]), $\n].

csv_cell({text, Text}) -> [$", string:replace(Text, "\"", "\"\"", all), $"];
csv_cell(Cell) -> Cell.

%% @doc Writes text into a file, making its folder.
-spec write(file:filename(), unicode:chardata()) -> ok.
write(Path, Text) ->
    ok = filelib:ensure_dir(Path),
    ok = file:write_file(Path, unicode:characters_to_binary(Text)).

%% @doc Nanoseconds, for people.
-spec time(number()) -> iolist().
time(Ns) when Ns < 1.0e6 -> io_lib:format("~.1f us", [Ns / 1.0e3]);
time(Ns) when Ns < 1.0e9 -> io_lib:format("~.2f ms", [Ns / 1.0e6]);
time(Ns) -> io_lib:format("~.2f s", [Ns / 1.0e9]).

%%% Charts

%% The place of 1, and how far it is from there to 10.
-define(MIDDLE, 380).
-define(DECADE, 110).
-define(PITCH, 22).
-define(TOP, 50).

%% @doc An SVG of horizontal bars, one for each ratio, on a logarithmic scale that begins at 1.
%% Bars stand in sections, each with a heading (or none, if that is empty).
-spec chart(unicode:chardata(), [number()], [{Heading :: unicode:chardata(), [bar()]}]) -> iolist().
chart(Title, Grid, Sections) ->
    Lines = lists:append([[{heading, Heading} || Heading =/= ""] ++ Bars
                          || {Heading, Bars} <- Sections]),
    Height = ?TOP + 10 + ?PITCH * length(Lines),
    [io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"~b\" font-family=\"sans-serif\""
                   " font-size=\"12\">~n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>~n"
                   "<text x=\"12\" y=\"20\" font-size=\"14\">~ts</text>~n",
                   [Height, escaped(Title)]),
     [grid(Ratio, Height) || Ratio <- Grid],
     [line(?TOP + ?PITCH * I, Line)
      || {I, Line} <- lists:zip(lists:seq(0, length(Lines) - 1), Lines)],
     "</svg>\n"].

x(Ratio) -> ?MIDDLE + ?DECADE * math:log10(min(1000.0, max(0.02, Ratio))).

grid(Ratio, Height) ->
    io_lib:format("<line x1=\"~.1f\" x2=\"~.1f\" y1=\"44\" y2=\"~b\" stroke=\"~s\"/><text x=\"~.1f\" y=\"40\""
                  " text-anchor=\"middle\" fill=\"#666\">~w</text>~n",
                  [x(Ratio), x(Ratio), Height - 8, case Ratio of 1 -> "#333"; _ -> "#ddd" end,
                   x(Ratio), Ratio]).

line(Y, {heading, Text}) ->
    io_lib:format("<text x=\"12\" y=\"~b\" font-weight=\"bold\">~ts</text>~n",
                  [Y + 12, escaped(Text)]);
line(Y, #{label := Label, ratio := Ratio, good := Good}) ->
    {From, To} = case Ratio >= 1 of
                     true -> {x(1), x(Ratio)};
                     false -> {x(Ratio), x(1)}
                 end,
    io_lib:format("<text x=\"12\" y=\"~b\">~ts</text><rect x=\"~.1f\" y=\"~b\" width=\"~.1f\" height=\"14\" fill=\"~s\"/>"
                  "<text x=\"~.1f\" y=\"~b\">~.2f</text>~n",
                  [Y + 12, escaped(Label), From, Y, To - From,
                   case Good of true -> "#2a7f62"; false -> "#b5483a" end,
                   To + 5, Y + 12, Ratio]).

escaped(Text) ->
    lists:foldl(fun({Character, Name}, T) -> string:replace(T, Character, Name, all) end, Text,
                [{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}]).
