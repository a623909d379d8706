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
    try Module:i(Tab) catch Class:Reason:Stack -> {Class, Reason, element(2, hd(Stack))} end.

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
