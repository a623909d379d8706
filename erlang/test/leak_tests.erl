%% @doc Tables by the hundred thousand, made and dropped, leave nothing behind:
%% no table, no name, no memory, no process.
%%
%% LARDER_LEAK_TABLES sets how many (100,000).
-module(leak_tests).

-export([made_and_dropped_test_/0, owners_die_test_/0, contents_are_freed_test_/0,
         many_alive_at_once_test_/0, memory_comes_back_test_/0, comes_back/4,
         binaries_come_back_test_/0, binaries_come_back/2]).

tables() -> larder_test:env("LARDER_LEAK_TABLES", 100000).

made_and_dropped_test_() ->
    [larder_test:tc("made and dropped one by one", 300, Sut, fun() ->
        steady("tables", fun() -> one_by_one(Sut, tables() div 5) end)
     end) || Sut <- larder_test:other_suts()].

owners_die_test_() ->
    [larder_test:tc("made by owners that die", 300, Sut, fun() ->
        steady("owners", fun() -> owners(Sut, tables() div 10) end)
     end) || Sut <- larder_test:other_suts()].

contents_are_freed_test_() ->
    [larder_test:tc("filled, emptied, filled again", 300, Sut, fun() ->
        steady("contents", fun() -> contents(Sut) end)
     end) || Sut <- larder_test:other_suts()].

%% All of them alive at the same time; what they took serves the next round.
many_alive_at_once_test_() ->
    [larder_test:tc("a hundred thousand at once", 300, Sut, fun() ->
        steady("all at once", fun() -> all_at_once(Sut, tables()) end)
     end) || Sut <- larder_test:other_suts()].

all_at_once(M, Count) ->
    Before = rss(),
    {Pid, Mon} = spawn_monitor(fun() ->
        Tables = [{N, M:new(leak, [])} || N <- lists:seq(1, Count)],
        [true = M:insert(T, {a, N}) || {N, T} <- Tables],
        [] = [N || {N, T} <- Tables, M:lookup(T, a) =/= [{a, N}]],
        exit({held, rss()})
    end),
    Held = receive {'DOWN', Mon, process, Pid, {held, Rss}} -> Rss end,
    true = larder_test:wait_until(fun() -> M:all() =:= [] end, 20000),
    %% What was dropped is freed later, with rests, in a second or two: the
    %% next round shall find the memory free.
    timer:sleep(3000),
    Held > Before + 1024 andalso
        io:format(user, "    ~b tables of one row: ~b bytes each~n",
                  [Count, (Held - Before) * 1024 div Count]).

%% What rows took is the system's again ten seconds after they are gone, whatever size they had:
%% inline, outside in a block of their own, binaries that the library keeps, and rows of a megabyte.
%% In a node of their own, whose emulator keeps nothing from other tests.
memory_comes_back_test_() ->
    [larder_test:tc(lists:concat(["memory comes back, ", How, ", rows of ", Bytes]), 60, Sut,
                    fun() ->
        true = larder_test:in_a_node(?MODULE, comes_back, [Sut, Kind, Bytes, How], 50000)
     end) || Sut <- larder_test:other_suts(), Sut =/= ets, {Kind, Bytes, How} <-
        [{list, 300, drop}, {list, 300, each}, {binary, 1000, drop}, {binary, 5000, each},
         {binary, 100, all},
         {list, 100000, each}, {list, 1000000, each}]].

comes_back(M, Kind, Bytes, How) ->
    M:delete(M:new(leak, [])),
    Before = rss(),
    Count = 80000000 div (Bytes + 100),
    %% The rows are made, and their garbage is, by a process that ends.
    {Pid, Mon} = spawn_monitor(fun() ->
        T = M:new(leak, [public]),
        fill(M, T, Kind, Bytes, Count),
        Full = rss(),
        true = Full > Before + 40 * 1024,
        true = case How of
            drop -> M:delete(T);
            all -> M:delete_all_objects(T);
            each -> empty(M, T, Count)
        end
    end),
    receive {'DOWN', Mon, process, Pid, Why} -> normal = Why end,
    true = larder_test:wait_until(fun() -> rss() =< Before + 20 * 1024 end, 10000).

%% So are the binaries of a table that has been read or written as a whole, though nobody uses
%% another table afterwards, and the process that did so doesn't collect its garbage.
binaries_come_back_test_() ->
    [larder_test:tc(lists:concat(["binaries come back after ", Use]), 60, Sut, fun() ->
        true = larder_test:in_a_node(?MODULE, binaries_come_back, [Sut, Use], 50000)
     end) || Sut <- larder_test:other_suts(), Sut =/= ets,
             Use <- [snapshot, subscription, commit, transaction]].

binaries_come_back(M, Use) ->
    T = M:new(leak, [public]),
    Self = self(),
    %% The rows are made by processes that end.
    Overwrite = fun() ->
        {Pid, Mon} = spawn_monitor(fun() ->
            [true = M:insert(T, {K, binary:copy(<<K>>, 100000)}) || K <- lists:seq(1, 200)]
        end),
        receive {'DOWN', Mon, process, Pid, normal} -> ok end
    end,
    Overwrite(),
    User = spawn_link(fun() ->
        use(Use, M, T, Overwrite),
        Self ! used,
        receive stop -> ok end
    end),
    receive used -> true = M:delete(T) end,
    Come = larder_test:wait_until(fun() -> erlang:memory(binary) < 5000000 end, 10000),
    User ! stop,
    Come.

use(snapshot, M, T, Overwrite) ->
    Snapshot = M:snapshot(T),
    Overwrite(),
    true = M:release(Snapshot);
use(subscription, M, T, Overwrite) ->
    Feed = M:subscribe(T, [], #{}),
    Overwrite(),
    true = M:unsubscribe(Feed);
use(commit, M, T, _) ->
    [{false, 2} = M:commit([{delete, T, K}, {check, T, K, [gone]}]) || K <- lists:seq(1, 200)];
use(transaction, M, T, Overwrite) ->
    {atomic, ok} = M:transaction([T], fun([View]) ->
        true = M:member(View, 1),
        Overwrite()
    end).

fill(_, _, _, _, 0) -> ok;
fill(M, T, list, Bytes, N) ->
    true = M:insert(T, {N, lists:duplicate(Bytes, N band 63)}),
    fill(M, T, list, Bytes, N - 1);
fill(M, T, binary, Bytes, N) ->
    true = M:insert(T, {N, binary:copy(<<N:32>>, Bytes div 4)}),
    fill(M, T, binary, Bytes, N - 1).

empty(_, _, 0) -> true;
empty(M, T, N) ->
    true = M:delete(T, N),
    empty(M, T, N - 1).

one_by_one(M, Count) ->
    [begin
         Options = element(1 + N rem 6, {[], [named_table], [ordered_set], [bag, compressed],
                                         [duplicate_bag, {write_concurrency, true}],
                                         [ordered_set, named_table, {write_concurrency, auto}]}),
         T = M:new(leak, Options),
         M:insert(T, [{K, [K, N]} || K <- lists:seq(1, N rem 20)]),
         M:delete(T)
     end || N <- lists:seq(1, Count)].

owners(M, Count) ->
    [begin
         {Pid, Mon} = spawn_monitor(fun() ->
             T = M:new(leak, [public]),
             U = M:new(leak, [named_table, ordered_set]),
             M:insert(T, {a, N}),
             M:insert(U, {<<0:1600>>, N}),
             M:safe_fixtable(T, true)
         end),
         receive {'DOWN', Mon, process, Pid, normal} -> ok end
     end || N <- lists:seq(1, Count div 2)],
    true = larder_test:wait_until(fun() -> M:info(leak, size) =:= undefined end).

contents(M) ->
    [begin
         T = M:new(leak, [Type | More]),
         Rows = [{K, <<K:1600>>, [K, {K}], #{K => K}} || K <- lists:seq(1, 2000)],
         [begin
              M:insert(T, Rows),
              [M:delete(T, K) || K <- lists:seq(1, 2000, 2)],
              M:select_delete(T, [{{'$1', '_', '_', '_'}, [{'>', '$1', 1500}], [true]}]),
              M =:= ets orelse M:select_take(T, [{{'$1', '_', '_', '_'}, [{'>', '$1', 1000}], ['$_']}]),
              M:delete_all_objects(T),
              0 = M:info(T, size)
          end || _ <- lists:seq(1, 5)],
         M:insert(T, Rows),
         M:delete(T)
     end || Type <- [set, ordered_set, bag, duplicate_bag], More <- [[], [compressed]]].

%% After a first round has warmed all caches, further rounds take no memory.
steady(What, Round) ->
    Round(),
    timer:sleep(200),
    Start = rss(),
    [Round() || _ <- lists:seq(1, 3)],
    Kib = fun() -> erlang:garbage_collect(), rss() - Start end,
    Steady = larder_test:wait_until(fun() -> Kib() < 48 * 1024 end, 10000),
    io:format(user, "    ~s: three more rounds took ~b KiB~n", [What, Kib()]),
    true = Steady.

%% Resident memory of the whole node in KiB: the library's own memory is not in
%% erlang:memory().
rss() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:lexemes(binary_to_list(Text), " "),
    list_to_integer(Pages) * 4.
