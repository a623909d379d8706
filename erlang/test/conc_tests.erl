%% @doc Many processes at one table: nothing is lost, nothing is seen half
%% done, nothing is seen twice or missed.
-module(conc_tests).

-export([no_increment_is_lost_test_/0, insert_new_has_one_winner_test_/0, lists_are_whole_or_absent_test_/0, delete_all_objects_is_one_step_test_/0,
         traversals_test_/0, each_object_is_taken_once_test_/0, take_many_goes_on_test_/0,
         lookup_many_goes_on_test_/0, bag_order_test_/0, planted_faults_are_found_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(CONCURRENCY, [[], [{write_concurrency, true}, {read_concurrency, true}],
                      [{write_concurrency, auto}]]).

suite(Title, Types, Fun) ->
    [larder_test:tc(lists:flatten(io_lib:format("~s, ~s ~0p", [Title, Type, Options])), 120, Sut,
                    fun() -> Fun(Sut, [Type, public | Options]) end)
     || Sut <- larder_test:suts(), Type <- Types, Options <- options(Sut)].

%% `ets' only shows that the test is right. With less work, as its locks are slow on a machine that
%% does something else.
options(diff_sound) -> [[]];
options(_) -> ?CONCURRENCY.

times(diff_sound, N) -> max(1, N div 10);
times(_, N) -> N.

workers() -> 4.

%% Runs one fun(N) in each of N processes; any that fails fails the test.
parallel(Count, Fun) ->
    Running = [spawn_monitor(fun() -> exit({result, Fun(N)}) end) || N <- lists:seq(1, Count)],
    [receive
         {'DOWN', Mon, process, Pid, {result, Result}} -> Result;
         {'DOWN', Mon, process, Pid, Why} -> error({worker_failed, Why})
     end || {Pid, Mon} <- Running].

%% A process that works until it is told to stop, and some times at least: a machine that does
%% something else may let it begin late. Then it gives a result.
until_stopped(Fun) ->
    spawn_monitor(fun() -> loop(Fun, 0) end).

loop(Fun, N) ->
    receive stop when N > 10 -> exit({done, N})
    after 0 -> Fun(N), loop(Fun, N + 1)
    end.

%% How often each did its work; all are stopped before one's failure is shown.
stop(Running) ->
    Ends = [begin
        Pid ! stop,
        receive {'DOWN', Mon, process, Pid, Why} -> Why end
    end || {Pid, Mon} <- Running],
    [case End of
         {done, N} -> N;
         Why -> error({worker_failed, Why})
     end || End <- Ends].

%% No increment is lost -----------------------------------------------------------------

no_increment_is_lost_test_() ->
    suite("no lost update_counter", [set, ordered_set], fun counters/2).

counters(M, Options) ->
    T = M:new(conc, Options),
    Times = times(M, 20000),
    M:insert(T, {hot, 0, 0}),
    parallel(workers(), fun(W) ->
        [begin
             M:update_counter(T, hot, {2, 1}),
             [_, _] = M:update_counter(T, hot, [{2, 1}, {3, -1}]),
             M:update_counter(T, {cold, I rem 50}, 1, {new, 0}),
             W
         end || I <- lists:seq(1, Times)]
    end),
    Total = workers() * Times,
    [{hot, Hot, Down}] = M:lookup(T, hot),
    {Hot, Down} = {2 * Total, -Total},
    Total = lists:sum([M:lookup_element(T, {cold, I}, 2) || I <- lists:seq(0, 49)]),
    M:delete(T).

%% insert_new has one winner; every insert is there afterwards -----------------------------

insert_new_has_one_winner_test_() ->
    suite("one winner of insert_new, no lost insert", ?TYPES, fun inserts/2).

inserts(M, Options) ->
    T = M:new(conc, Options),
    Count = times(M, 10000),
    Keys = lists:seq(1, Count),
    Wins = parallel(workers(), fun(W) ->
        length([K || K <- Keys, M:insert_new(T, {K, W})])
    end),
    Count = lists:sum(Wins),
    Count = M:info(T, size),
    parallel(workers(), fun(W) -> [M:insert(T, {{W, K}, K}) || K <- Keys] end),
    Total = Count + workers() * Count,
    Total = M:info(T, size),
    true = lists:all(fun(W) -> lists:all(fun(K) -> M:member(T, {W, K}) end, Keys) end,
                     lists:seq(1, workers())),
    parallel(workers(), fun(W) -> [M:delete(T, {W, K}) || K <- Keys] end),
    Count = M:info(T, size),
    M:delete(T).

%% A list is there as a whole or not at all -------------------------------------------------

lists_are_whole_or_absent_test_() ->
    suite("no half of a list is seen", [set, ordered_set], fun lists/2).

%% Writers put the same number under every key in one call; a reader that reads
%% key 1 and then key n can see a later list under n, never an earlier one, if
%% it reads in the order of the numbers; one select sees no mixture older than
%% what a lookup saw before it.
lists(M, Options) ->
    T = M:new(conc, Options),
    Keys = [1, 100, 200, 300, 400, 500, 600, 700],
    Write = fun(N) -> M:insert(T, [{K, N} || K <- Keys]) end,
    Write(0),
    Writer = until_stopped(Write),
    Readers = [until_stopped(fun(_) ->
        Seen = [M:lookup_element(T, K, 2) || K <- Order],
        %% Numbers only grow, so each read is at least the one before.
        Seen = lists:sort(Seen)
    end) || Order <- [Keys, lists:reverse(Keys)]],
    timer:sleep(700),
    [Written | Reads] = stop([Writer | Readers]),
    true = Written > 10 andalso lists:min(Reads) > 10,
    insert_new_lists(M, T),
    M:delete(T).

%% Lists that overlap: all of a list's keys go in, or none.
insert_new_lists(M, T) ->
    M:delete_all_objects(T),
    parallel(workers(), fun(W) ->
        [M:insert_new(T, [{{I, P}, W} || P <- rotated(W)]) || I <- lists:seq(1, 3000)]
    end),
    Mixed = [I || I <- lists:seq(1, 3000),
                  length(lists:usort([M:lookup_element(T, {I, P}, 2) || P <- rotated(1)])) =/= 1],
    [] = Mixed.

rotated(W) ->
    {A, B} = lists:split(W, [a, b, c, d, e, f]),
    B ++ A.

%% delete_all_objects is one step -------------------------------------------------------------

delete_all_objects_is_one_step_test_() ->
    suite("delete_all_objects is seen as one step", [set, ordered_set], fun clear/2).

%% The table holds all the keys or none, as the list goes in in one step too.
clear(M, Options) ->
    T = M:new(conc, Options),
    Count = 500,
    Rows = [{K, K} || K <- lists:seq(1, Count)],
    Writer = until_stopped(fun(_) ->
        M:delete_all_objects(T),
        true = M:insert_new(T, Rows)
    end),
    Reader = until_stopped(fun(_) ->
        M:member(T, 1),
        case M:info(T, size) of
            0 -> ok;
            Count -> ok
        end
    end),
    timer:sleep(500),
    [Written, Read] = stop([Writer, Reader]),
    true = Written > 2 andalso Read > 2,
    M:delete(T).

%% Traversals -------------------------------------------------------------------------------

traversals_test_() ->
    suite("no object twice, none missed", ?TYPES, fun traversals/2).

%% Even keys stay; odd ones come and go all the time.
traversals(M, Options) ->
    T = M:new(conc, Options),
    Stay = lists:seq(2, 4000, 2),
    M:insert(T, [{K, stay} || K <- Stay]),
    Churn = until_stopped(fun(N) ->
        K = 1 + 2 * (N * 7919 rem 4000),
        M:insert(T, {K, N}),
        M:delete(T, 1 + 2 * ((N + 1000) * 7919 rem 4000))
    end),
    [begin
         M:safe_fixtable(T, true),
         Seen = walk(M, T, How),
         M:safe_fixtable(T, false),
         Even = [K || K <- Seen, K rem 2 =:= 0],
         {How, Stay} = {How, lists:sort(Even)},
         {How, []} = {How, Seen -- lists:usort(Seen)}
     end || _ <- lists:seq(1, times(M, 3)),
            How <- [next, prev, select, match, match_object, select_reverse, lookups]],
    [_] = stop([Churn]),
    M:delete(T).

walk(M, T, next) -> keys(M, T, next, M:first(T));
walk(M, T, prev) -> keys(M, T, prev, M:last(T));
walk(M, T, lookups) -> rows(M, T, M:first_lookup(T));
walk(M, T, match) -> [K || [K] <- chunks(M, match, M:match(T, {'$1', '_'}, 7))];
walk(M, T, match_object) -> [K || {K, _} <- chunks(M, match_object, M:match_object(T, '_', 64))];
walk(M, T, Select) ->
    chunks(M, Select, M:Select(T, [{{'$1', '_'}, [], ['$1']}], 10)).

keys(_, _, _, '$end_of_table') -> [];
keys(M, T, Step, K) -> [K | keys(M, T, Step, M:Step(T, K))].

rows(_, _, '$end_of_table') -> [];
rows(M, T, {K, _}) -> [K | rows(M, T, M:next_lookup(T, K))].

chunks(_, _, '$end_of_table') -> [];
chunks(M, Function, {Found, Cont}) -> Found ++ chunks(M, Function, M:Function(Cont)).

%% Each object is taken once ------------------------------------------------------------------

each_object_is_taken_once_test_() ->
    suite("each object is taken once", ?TYPES, fun take/2).

take(M, Options) ->
    T = M:new(conc, Options),
    Count = times(M, 20000),
    M:insert(T, [{K, K} || K <- lists:seq(1, Count)]),
    Taken = parallel(workers(), fun(_) ->
        lists:append([M:take(T, K) || K <- lists:seq(1, Count)])
    end),
    Count = length(lists:append(Taken)),
    Count = length(lists:usort(lists:append(Taken))),
    0 = M:info(T, size),
    M:delete(T).

%% A right that goes while a call is in progress takes nothing from it.
take_many_goes_on_test_() ->
    larder_test:tc("take_many goes on", 120, larder, fun() ->
        Keys = lists:seq(1, 50000),
        [goes_on(Keys) || _ <- lists:seq(1, 10)]
    end).

goes_on(Keys) ->
    T = larder:new(conc, [public]),
    true = larder:insert(T, [{K} || K <- Keys]),
    {Pid, Mon} = spawn_monitor(fun() -> exit({result, larder:take_many(T, Keys)}) end),
    begun(T, length(Keys)),
    true = larder:setopts(T, {protection, protected}),
    receive {'DOWN', Mon, process, Pid, {result, Taken}} -> true = Taken
            =:= [[{K}] || K <- Keys] end,
    0 = larder:info(T, size),
    true = larder:delete(T).

lookup_many_goes_on_test_() ->
    larder_test:tc("lookup_many goes on", 120, larder, fun() ->
        Keys = lists:seq(1, 50000),
        T = larder:new(conc, [public]),
        true = larder:insert(T, [{K} || K <- Keys]),
        [finds_all(T, Keys) || _ <- lists:seq(1, 10)],
        larder:delete(T)
    end).

finds_all(T, Keys) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({result, larder:lookup_many(T, Keys)}) end),
    %% It is asked between two slices: the second time, one has been run.
    [looks_up(Pid) || _ <- [1, 2]],
    true = larder:setopts(T, {protection, private}),
    receive {'DOWN', Mon, process, Pid, Why} -> {result, Found} = Why end,
    true = Found =:= [[{K}] || K <- Keys],
    true = larder:setopts(T, {protection, public}).

looks_up(Pid) ->
    case process_info(Pid, current_function) of
        {_, {larder_nif, lookup_many, _}} -> ok;
        undefined -> ended;
        _ -> looks_up(Pid)
    end.

begun(T, Size) ->
    case larder:info(T, size) < Size of
        true -> ok;
        false -> begun(T, Size)
    end.

%% In a bag each writer's objects stand in the order in which it wrote them -----------------------

bag_order_test_() ->
    suite("a bag keeps the order of arrival", [bag, duplicate_bag], fun bag_order/2).

bag_order(M, Options) ->
    T = M:new(conc, Options),
    parallel(workers(), fun(W) -> [M:insert(T, {k, W, N}) || N <- lists:seq(1, 500)] end),
    Rows = M:lookup(T, k),
    true = length(Rows) =:= workers() * 500,
    [begin
         Mine = [N || {k, Who, N} <- Rows, Who =:= W],
         Mine = lists:seq(1, 500)
     end || W <- lists:seq(1, workers())],
    M:delete(T).

%% The tests can fail -----------------------------------------------------------------------------

planted_faults_are_found_test_() ->
    {"finds list_one_by_one", {timeout, 60, fun() ->
        M = diff_planted:load(list_one_by_one),
        true = lists:any(fun(_) -> fails(fun() -> lists(M, [set, public]) end) end,
                         lists:seq(1, 20)),
        ok = diff_planted:unload(M)
    end}}.

fails(Fun) ->
    {_, Mon} = spawn_monitor(Fun),
    receive
        {'DOWN', Mon, process, _, {{worker_failed, _}, _}} -> true;
        {'DOWN', Mon, process, _, normal} -> false
    end.
