%% i/0,1,2,3 on a terminal with prepared input: the screen is that of ets.
-module(larder_browse_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

sessions_test_() ->
    [{lists:flatten(io_lib:format("~w ~w ~0p", [Type, Size, Lines])),
      ?LEAK_FREE(?assertEqual(session(ets, Type, Size, Lines, Limits),
                              session(larder, Type, Size, Lines, Limits)))}
     || Type <- [ordered_set, bag], Size <- [0, 1, 30],
        {Lines, Limits} <- [{Lines, Limits}
                            || Lines <- inputs(), Limits <- [[], [5], [7, 40], [1, 30]]]].

inputs() ->
    [[], ["q\n"], ["c\n", "c\n", "q\n"], ["\n", "\n", "\n", "q\n"],
     ["c\n" || _ <- lists:seq(1, 12)],
     ["p1\n", "p5\n", "q\n"], ["px\n", "p\n", "p0\n", "p-1\n", "q\n"], ["p999\n", "q\n"],
     ["/2\n", "c\n", "p2\n", "q\n"], ["/nothing\n", "p1\n", "q\n"], ["/(\n", "q\n"],
     ["c\n", "/value_1\n", "c\n", "/.\n", "c\n", "q\n"], ["what\n", "q\n"], [<<"c\n">>, <<"q\n">>],
     ["k\n"]].

%% The value, the screen, and whether the table is still there.
session(Module, Type, Size, Lines, Limits) ->
    Tab = Module:new(t, [Type]),
    [Module:insert(Tab,
                   {K, {value, K, list_to_atom("value_" ++ integer_to_list(K * 7)), "some text"}})
     || K <- lists:seq(1, Size)],
    [Module:insert(Tab, {K, other}) || Type =:= bag, K <- lists:seq(1, Size, 3)],
    %% The order of a bag is its own, so one page shows all or the keys are few.
    Limits1 = case {Type, Size > 1} of {bag, true} -> [1000]; _ -> Limits end,
    {Value, Screen} = larder_test_io:capture(fun() -> apply(Module, i, [Tab | Limits1]) end, Lines),
    There = Module:info(Tab, size),
    catch Module:delete(Tab),
    {Value, case Type of bag -> unordered(Screen); _ -> Screen end, There}.

%% The lines that show an object, without their numbers, sorted; and how often
%% it was asked for a command.
unordered(Screen) ->
    Parts = string:split(Screen, "-->", all),
    Lines = lists:append([string:split(Part, "\n", all) || Part <- Parts]),
    {lists:sort([Object || "<" ++ Line <- Lines, [_, Object] <- [string:split(Line, ">")]]),
     length(Parts)}.

errors_test_() ->
    [?_assertEqual(failure(ets, Tab), failure(larder, Tab)) || Tab <- [no_such_table, 17]].

failure(Module, Tab) ->
    try Module:i(Tab) catch Class:Reason:Stack -> {Class, Reason, function(hd(Stack))} end.

%% From OTP 29.1.2 on `ets' looks up the name first.
function({ets, soft_whereis, _, _}) -> first;
function(Frame) -> element(2, Frame).

%% The list of tables: the same header and columns, a line for each table.
list_test() ->
    Tab = larder:new(larder_t_browse, [named_table, ordered_set, public]),
    larder:insert(Tab, [{K} || K <- lists:seq(1, 123)]),
    {ok, Screen} = larder_test_io:capture(fun() -> larder:i() end),
    {ok, EtsScreen} = larder_test_io:capture(fun() -> ets:i() end),
    [Header, Rule | Lines] = string:split(Screen, "\n", all),
    [EtsHeader, EtsRule | _] = string:split(EtsScreen, "\n", all),
    ?assertEqual({EtsHeader, EtsRule}, {Header, Rule}),
    [Line] = [Line || Line <- Lines, string:find(Line, "larder_t_browse") =/= nomatch],
    Memory = integer_to_list(larder:info(Tab, memory)),
    Owner = pid_to_list(self()),
    ?assertEqual(["larder_t_browse", "larder_t_browse", "ordered_set", "123", Memory, Owner],
                 string:lexemes(Line, " ")),
    larder:delete(Tab).

%% A table with an index, its snapshot, and one with neither, in 80 columns.
more_than_ets_test() ->
    Tab = larder:new(larder_t_more, [named_table, public, {index, [{by_two, 2, []}]}]),
    Bare = larder:new(larder_t_bare, [named_table, public]),
    true = larder:insert(Tab, [{N, N rem 10} || N <- lists:seq(1, 5000)]),
    Snapshot = larder:snapshot(Tab),
    true = larder:insert(Tab, [{N, x} || N <- lists:seq(1, 5000)]),
    {ok, Screen} = larder_test_io:capture(fun() -> larder:i() end),
    [Tables, More, Snapshots, _Sums] = [string:split(Part, "\n", all)
                                       || Part <- string:split(Screen, "\n\n", all)],
    With = fun(Text, Lines) ->
               [Line || Line <- Lines, string:find(Line, Text) =/= nomatch]
           end,
    Id = lists:flatten(io_lib:format("~p", [Snapshot])),
    %% A snapshot is no table of the first list: counting its objects takes time.
    ?assertMatch({[_], [_], []}, {With("larder_t_more", Tables), With("larder_t_bare", Tables),
                                  With(Id, Tables)}),
    ?assertMatch([" index mem" ++ _, _ | _], More),
    Size = " +[0-9]+(\\.[0-9])? KiB",
    [Line] = With("larder_t_more", More),
    ?assertMatch({match, _}, re:run(Line, ["^", Size, Size, " +[0-9]+ +larder_t_more$"])),
    ?assertEqual([], With("larder_t_bare", More)),
    ?assertMatch([" age" ++ _, _ | _], Snapshots),
    [Taken] = With(Id, Snapshots),
    ?assertMatch([_Age, "s", _Owner, "larder_t_more", Id], string:lexemes(Taken, " ")),
    ?assertEqual([], [Wide || Wide <- More ++ Snapshots, length(Wide) > 80]),
    true = larder:release(Snapshot),
    [larder:delete(T) || T <- [Tab, Bare]],
    {ok, Less} = larder_test_io:capture(fun() -> larder:i() end),
    ?assertEqual(nomatch, string:find(Less, "larder_t_more")).

%% A line of ets' own list, laid out by us: the same blanks.
columns_test() ->
    Register = fun(Module) ->
        Module:new(larder_t_columns, [named_table]),
        {ok, Screen} = larder_test_io:capture(fun() -> Module:i() end),
        Module:delete(larder_t_columns),
        [Line] = [L || L <- string:split(Screen, "\n", all),
                       string:find(L, "larder_t_columns") =/= nomatch],
        %% Memory differs; it starts at the same column and is followed by the owner.
        lists:sublist(Line, 47)
    end,
    ?assertEqual(Register(ets), Register(larder)).
