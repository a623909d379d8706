%% @doc A bench from its beginning to its end, with how long the rest will take: what was expected,
%% corrected by how long things have taken so far.
-module(larder_bench_run).

-export([main/1, ended/1, written/5, expect/2, spent/2, skipped/1, left/0]).

%% @doc Runs the bench of a module: `erl -s larder_bench_run main larder_bench_growth'.
-spec main([module()]) -> no_return().
main([Bench]) -> ended(fun Bench:run/0).

%% @doc Runs it and stops the node, with status 1 if it fails.
-spec ended(fun(() -> ok)) -> no_return().
ended(Fun) ->
    Status = try
                 [] = [M || M <- [ets, larder], code:ensure_loaded(M) =/= {module, M}],
                 ok = Fun(),
                 0
             catch Class:Reason:Stack ->
                     %% Not all of it: there may be tables of rows in it.
                     io:format("the bench failed: ~tP:~tP~n~tP~n",
                               [Class, 5, Reason, 50, Stack, 50]),
                     1
             end,
    halt(Status, [{flush, true}]).

%% @doc Writes what was measured as a CSV into the folder of its bench, and says where.
-spec written(file:filename(), string(), [{atom(), term()}], [iodata()],
              [[larder_report:cell()]]) -> ok.
written(Folder, Name, Facts, Header, Lines) ->
    Path = filename:join(Folder, Name),
    ok = larder_report:write(Path, larder_report:csv(Facts, Header, Lines)),
    io:format("~nwritten: ~ts~n", [Path]).

%% @doc Expects all to take so many seconds; what differs from that says little until so many more
%% were spent.
-spec expect(number(), number()) -> ok.
expect(Seconds, Guess) ->
    put(left, Seconds),
    put(factor, {Guess, Guess}),
    ok.

%% @doc Something is done: the seconds that were expected, and those that it took.
-spec spent(number(), number()) -> ok.
spent(Expected, Took) ->
    {AllExpected, AllTook} = get(factor),
    put(factor, {AllExpected + Expected, AllTook + Took}),
    skipped(Expected).

%% @doc Something will not be done.
-spec skipped(number()) -> ok.
skipped(Expected) ->
    put(left, get(left) - Expected),
    ok.

%% @doc How long the rest will take, for people.
-spec left() -> iolist().
left() ->
    {Expected, Took} = get(factor),
    larder_bench_env:time(get(left) * Took / Expected).
