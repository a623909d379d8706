%% @private
%% @doc Tables on the terminal: i/0 lists them, i/1,2,3 pages through one.
%%
%% What is printed and the commands (c, q, pDigits, k, /Regexp) are those of
%% `ets:i', but for what i/0 prints after the tables. A page starts with a key and takes all
%% of its objects, so it may be longer than `Height'.
%%
%% The browser is in one of three modes: `normal' (more keys follow), `eot'
%% (it has reached the end) and `{re, Regexp}' (only objects whose text
%% matches are shown, and p counts only those).
-module(larder_browse).

-export([i/0, i/1, i/2, i/3]).

-define(HEIGHT, 40).
-define(WIDTH, 80).

%% Widths of the columns in the lists of i/0; the last has none.
-define(TABLES, [15, 17, 5, 6, 8]).
-define(MORE_THAN_ETS, [12, 12, 12]).
-define(SNAPSHOTS, [9, 16, 15]).
-define(MEMORY, [11, 11, 11, 11, 11]).

-define(MORE, '(c)ontinue (q)uit (p)Digits (k)ill /Regexp -->').
-define(AT_END, 'EOT  (q)uit (p)Digits (k)ill /Regexp -->').

-record(view, {
    tab :: larder:table(),
    height :: pos_integer(),
    width :: pos_integer(),
    mode = normal :: normal | eot | {re, term()}
}).

%% ---- the list of tables ----

%% @doc Prints the tables, then those that have what `ets' has not, the snapshots, and the sums of
%% memory.
-spec i() -> ok.
i() ->
    {Snapshots, Tables} = lists:partition(fun is_snapshot/1, lists:sort(larder:all())),
    heading(?TABLES, [id, name, type, size, mem, owner]),
    rows(?TABLES, [table_row(Table) || Table <- Tables]),
    list(?MORE_THAN_ETS, ["index mem", "snapshot mem", contention, id],
         [more_row(Table) || Table <- Tables]),
    list(?SNAPSHOTS, [age, owner, name, "id of snapshot"], [snapshot_row(S) || S <- Snapshots]),
    Memory = larder_memory:memory(),
    io:format("~n"),
    rows(?MEMORY, [larder_memory:items(),
                    [larder_memory:units(maps:get(Item, Memory)) || Item <- larder_memory:items()]]).

is_snapshot(Table) ->
    is_map(larder:info(Table, snapshot)).

heading(Widths, Fields) ->
    rows(Widths, [Fields]),
    io:format(" ~s~n", [lists:duplicate(76, $-)]).

%% A list that is left out if it is empty.
list(Widths, Heading, Rows) ->
    case lists:append(Rows) of
        [] ->
            ok;
        _ ->
            io:format("~n"),
            heading(Widths, Heading),
            rows(Widths, [Row || [Row] <- Rows])
    end.

%% A table may go while it is looked at.
table_row(Tab) ->
    try
        Items = [larder:info(Tab, Item) || Item <- [name, type, size, memory]],
        [Tab | Items] ++ [owner_name(larder:info(Tab, owner))]
    catch
        _:_ -> [Tab, "... unreadable"]
    end.

more_row(Tab) ->
    case larder_memory:figures(Tab) of
        undefined -> [];
        {0, 0, 0} -> [];
        {Index, Kept, Contention} ->
            [[larder_memory:units(Index), larder_memory:units(Kept), Contention, Tab]]
    end.

snapshot_row(Snapshot) ->
    case [larder:info(Snapshot, Item) || Item <- [snapshot, owner, name]] of
        %% Unless it was released in between.
        [#{age := Age}, Owner, Name] when is_pid(Owner) ->
            [[io_lib:format("~.1f s", [Age / 1000]), owner_name(Owner), Name, Snapshot]];
        _ ->
            []
    end.

owner_name(Owner) ->
    case process_info(Owner, registered_name) of
        {registered_name, Name} -> Name;
        _ -> Owner
    end.

%% A field that is too wide pushes the rest to the right; nothing is cut.
rows(Widths, Rows) ->
    lists:foreach(fun(Row) -> io:format(" ~s\n", [lists:join(" ", pad(Row, Widths))]) end, Rows).

pad([Last], _) -> [field(Last)];
pad([Field | Fields], [Width | Widths]) -> [string:pad(field(Field), Width) | pad(Fields, Widths)].

field(Text) when is_list(Text) -> Text;
field(Term) -> text(Term).

%% ---- one table ----

%% @doc i/3 with a height of 40 lines and a width of 80 characters.
-spec i(larder:table()) -> ok.
i(Tab) ->
    i(Tab, ?HEIGHT).

%% @doc i/3 with a width of 80 characters.
-spec i(larder:table(), pos_integer()) -> ok.
i(Tab, Height) ->
    i(Tab, Height, ?WIDTH).

%% @doc Pages through the table. Errors: those of first/1.
-spec i(larder:table(), pos_integer(), pos_integer()) -> ok.
i(Tab, Height, Width) ->
    View = #view{tab = Tab, height = Height, width = Width},
    page(View, larder:first(Tab), 1, 1).

%% `Line' is the next line of the page, `Number' that of the next object.
page(View, '$end_of_table', Line, Number) ->
    ask(View#view{mode = at_end(View)}, '$end_of_table', Line, Number);
page(#view{height = Height} = View, Key, Line, Number) when Line >= Height ->
    ask(View, Key, Line, Number);
page(View, Key, Line, Number) ->
    page_key(View, Key, Line, Number).

page_key(#view{tab = Tab} = View, Key, Line, Number) ->
    Objects = matching(View, larder:lookup(Tab, Key)),
    show(View, Objects, Number),
    Count = length(Objects),
    page(View, larder:next(Tab, Key), Line + Count, Number + Count).

at_end(#view{mode = {re, _} = Mode}) -> Mode;
at_end(_View) -> eot.

show(_View, [], _Number) ->
    ok;
show(View, [Object | Objects], Number) ->
    io:format("<~-4w> ~s~n", [Number, clip(text(Object), View#view.width)]),
    show(View, Objects, Number + 1).

clip(Text, Width) when length(Text) > Width - 8 ->
    string:slice(Text, 0, Width - 13) ++ "  ...";
clip(Text, _Width) ->
    Text.

%% ---- commands ----

ask(View, Key, Line, Number) ->
    case command(io:get_line(prompt(Key))) of
        continue ->
            continue(View, Key, Line, Number);
        quit ->
            ok;
        kill ->
            true = larder:delete(View#view.tab),
            ok;
        {print, Digits} ->
            try print(View, Digits) catch _:_ -> ok end,
            ask(View, Key, Line, Number);
        {search, Regexp} ->
            search(View, Regexp, Key, Line, Number);
        again ->
            ask(View, Key, Line, Number)
    end.

prompt('$end_of_table') -> ?AT_END;
prompt(_Key) -> ?MORE.

%% Standard input may be in binary mode.
command(Line) when is_binary(Line) -> command(unicode:characters_to_list(Line));
command(eof) -> quit;
command("\n") -> continue;
command("c\n") -> continue;
command("q\n") -> quit;
command("k\n") -> kill;
command([$p | Digits]) -> {print, chomp(Digits)};
command([$/ | Regexp]) -> {search, chomp(Regexp)};
command(_) -> again.

chomp(Line) -> string:trim(Line, trailing, "\n").

continue(#view{mode = eot} = View, Key, Line, Number) ->
    ask(View, Key, Line, Number);
continue(#view{mode = {re, _}} = View, Key, _Line, Number) ->
    page(View, Key, 1, Number);
continue(View, Key, _Line, Number) ->
    page_key(View, Key, 1, Number).

search(View, Regexp, Key, Line, Number) ->
    case re:compile(Regexp, [unicode]) of
        {ok, Compiled} ->
            page(View#view{mode = {re, Compiled}}, larder:first(View#view.tab), 1, 1);
        {error, {What, _Position}} ->
            io:format("~ts\n", [What]),
            ask(View, Key, Line, Number)
    end.

%% Prints the object with that number. A number out of range fails, and the
%% caller goes on as if nothing had been asked.
print(View, Digits) ->
    case string:to_integer(Digits) of
        {Number, ""} -> print_nth(View, larder:first(View#view.tab), Number);
        _ -> io:put_chars("Bad digits\n")
    end.

print_nth(_View, '$end_of_table', _Number) ->
    ok;
print_nth(#view{tab = Tab} = View, Key, Number) ->
    Objects = matching(View, larder:lookup(Tab, Key)),
    case Number - length(Objects) of
        Left when Left >= 1 -> print_nth(View, larder:next(Tab, Key), Left);
        _ -> io:format("~p~n", [lists:nth(Number, Objects)])
    end.

matching(#view{mode = {re, Regexp}}, Objects) ->
    [Object || Object <- Objects, re:run(text(Object), Regexp, [{capture, none}]) =:= match];
matching(_View, Objects) ->
    Objects.

text(Term) ->
    lists:flatten(io_lib:format("~p", [Term])).
