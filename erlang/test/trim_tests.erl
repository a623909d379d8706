%% @doc Memory comes back: ten seconds after rows went no more is resident than 1.3
%% times what is alive and 20 MB, whatever size they had and however they went, and
%% what is inserted and cleared again and again takes no more than it has at once.
%%
%% Each case runs in a node of its own, whose allocators keep nothing from others.
%% LARDER_TRIM_MB says how much a case stores (25; 400 for the long form, which also
%% takes every size in every way).
-module(trim_tests).

-export([memory_comes_back_test_/0, tables_test_/0, churn_test_/0, comes_back/5, tables/2, churn/4]).

-define(LEFT, 20.0).
-define(TIMES, 1.3).

megabytes() -> larder_test:env("LARDER_TRIM_MB", 25).

is_long() -> megabytes() > 100.

memory_comes_back_test_() ->
    [in_a_node(lists:concat(["rows of ", Bytes, " bytes, ", Kind, ", ", How]), Sut, comes_back,
               [Sut, Kind, Bytes, How, megabytes()])
     || Sut <- suts(), {Kind, Bytes, How} <- cases(is_long())].

%% Lists lie in the rows or beside them; binaries of over 64 bytes are shared with the emulator.
cases(true) ->
    Sizes = [1, 10, 64, 100, 300, 1000, 5000, 10000, 100000, 1000000, 10000000],
    [{Kind, Bytes, How} || Bytes <- Sizes, Kind <- [list, binary],
                           How <- [drop, clear, each, half]];
cases(false) ->
    [{list, 1, drop}, {binary, 64, each}, {list, 1000, half}, {binary, 1000, each},
     {list, 5000, clear}, {list, 100000, each}, {list, 1000000, drop}, {binary, 10000000, each}].

tables_test_() ->
    Count = case is_long() of true -> 200000; false -> 20000 end,
    [in_a_node(lists:concat([Count, " tables"]), Sut, tables, [Sut, Count]) || Sut <- suts()].

churn_test_() ->
    Rounds = case is_long() of true -> 10000; false -> 2000 end,
    [in_a_node(lists:concat(["rows of ", Bytes, " bytes come and go, ", Kind]), Sut, churn,
               [Sut, Kind, Bytes, Rounds * 5000 div max(5000, Bytes)])
     || Sut <- suts(), {Kind, Bytes} <- [{binary, 5000}, {list, 5000}, {list, 100000}]].

%% The emulator gives the memory of its tables back more slowly than is asked of Larder.
suts() -> larder_test:other_suts() -- [ets].

in_a_node(Title, Sut, Function, Args) ->
    larder_test:tc(Title, 120, Sut, fun() ->
        ok = larder_test:in_a_node(?MODULE, Function, Args, 110000)
    end).

%% In the node ------------------------------------------------------------------------------

comes_back(M, Kind, Bytes, How, Megabytes) ->
    Before = warm(M),
    Count = max(2, min(Megabytes * 1000000 div (Bytes + 40), 1000000)),
    Self = self(),
    %% The table stays while its owner does, which rests in a heap without a row.
    Keeper = spawn_link(fun() ->
        Self ! {table, M:new(trim, [public])},
        receive stop -> ok end
    end),
    T = receive {table, Table} -> Table end,
    Stored = in_a_process(fun() -> fill(M, T, Kind, Bytes, Count), rss() end) - Before,
    in_a_process(fun() -> go(How, M, T, Count) end),
    Alive = case How of half -> Stored / 2; _ -> 0 end,
    soon(Before + ?TIMES * Alive + ?LEFT, {Count, rows, Stored, stored}),
    Keeper ! stop,
    ok.

go(drop, M, T, _) -> true = M:delete(T);
go(clear, M, T, _) -> true = M:delete_all_objects(T);
go(each, M, T, Count) -> [true = M:delete(T, N) || N <- lists:seq(1, Count)];
%% Those that came first: what lies between others that stay can't go.
go(half, M, T, Count) -> [true = M:delete(T, N) || N <- lists:seq(1, Count div 2)].

tables(M, Count) ->
    Before = warm(M),
    in_a_process(fun() ->
        [begin
             T = M:new(trim, []),
             true = M:insert(T, [{N, x}, {x, lists:duplicate(1000, N band 63)}]),
             true = M:delete(T)
         end || N <- lists:seq(1, Count)]
    end),
    soon(Before + ?LEFT, {Count, tables}).

churn(M, Kind, Bytes, Rounds) ->
    Before = warm(M),
    Most = in_a_process(fun() ->
        T = M:new(trim, [public]),
        lists:max([begin
                       fill(M, T, Kind, Bytes, 20),
                       true = M:delete_all_objects(T),
                       case N rem 10 of 0 -> rss(); _ -> 0 end
                   end || N <- lists:seq(1, Rounds)])
    end),
    %% What the process itself has, which makes the rows, and what twenty rows are.
    Alive = 20 * 20 * Bytes / 1000000,
    case Most - Before < 100 + Alive of
        true -> soon(Before + ?LEFT, {most, Most - Before});
        false -> error({most, Most - Before, mb})
    end.

%% Megabytes resident in a node that has used a table before.
warm(M) ->
    T = M:new(trim, []),
    fill(M, T, list, 1000, 1000),
    true = M:delete(T),
    timer:sleep(1500),
    rss().

fill(_, _, _, _, 0) -> ok;
fill(M, T, Kind, Bytes, N) ->
    true = M:insert(T, {N, value(Kind, Bytes, N)}),
    fill(M, T, Kind, Bytes, N - 1).

value(list, Bytes, N) -> lists:duplicate(Bytes, N band 63);
value(binary, Bytes, N) -> binary:copy(<<N>>, Bytes).

%% Its garbage goes with it.
in_a_process(Fun) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({done, Fun()}) end),
    receive {'DOWN', Mon, process, Pid, {done, Result}} -> Result end.

soon(Limit, What) ->
    case larder_test:wait_until(fun() -> rss() =< Limit end, 10000) of
        true -> ok;
        false -> error({resident, rss(), limit, Limit, What})
    end.

%% Megabytes resident in the whole node.
rss() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Text, "VmRSS:\\s+([0-9]+)", [{capture, all_but_first, list}]),
    list_to_integer(Kb) / 1024.
