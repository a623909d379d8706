%% @doc Mixed work for a long time: tables of every type and of several structures, shared and one's
%% own; rows that come and go, tables that grow and shrink, owners that live for moments and end in
%% every way. Three things are watched throughout.
%%
%% Contents. Every row carries a checksum of itself, which every reader looks at. Rows with two
%% counters add up to nothing. When all workers rest (each round ends so) a table's size, list,
%% keys, first-to-last walk and count agree.
%%
%% Memory. At the end of each round that has grown the tables, what is resident is compared with
%% what is alive: what the tables and the emulator say they hold, and what the node took before
%% there was a table. It stays within 1.3 times that.
%%
%% Latency. A process of its own asks a table of Larder and one of `ets', in turns, from beginning
%% to end. What Larder takes is divided by what `ets' takes at the same time, so that a busy machine
%% is no difference; the quotient in the last quarter is at most 1.5 times that of the first, for
%% the median and, in runs of a minute and more, for the slowest tenth and hundredth.
-module(larder_soak).

-export([main/0, run/1]).

-define(KEYS, 20000).
-define(SPECS, [[set], [ordered_set], [bag], [duplicate_bag], [set, compressed],
                [ordered_set, {structure, catree}], [set, {structure, linear_hash}],
                [ordered_set, {structure, skiplist}],
                [set, {structure, lockfree_hash}], [bag, {structure, btree}]]).

%% @doc `make soak': LARDER_SOAK_SECONDS (60) long.
-spec main() -> no_return().
main() ->
    Seconds = larder_test:env("LARDER_SOAK_SECONDS", 60),
    spawn(fun() ->
        Status = try run(Seconds) of
            #{} -> io:format("1 passed, 0 failed~n"), 0
        catch
            Class:Reason:Stack ->
                io:format("~p: ~p~n~p~n0 passed, 1 failed~n", [Class, Reason, Stack]), 1
        end,
        halt(Status)
    end).

%% @doc Soaks for so many seconds and gives the figures; fails if one of the promises is broken.
-spec run(pos_integer()) -> #{atom() => term()}.
run(Seconds) ->
    larder_test:ensure_loaded(larder),
    Seed = [rand:uniform(1 bsl 30) || _ <- [1, 2, 3]],
    io:format(user, "    soak: ~b s, seed ~w~n", [Seconds, Seed]),
    erlang:garbage_collect(),
    Base = rss() - erlang:memory(total),
    Tables = [larder:new(soak, [public | Spec]) || Spec <- ?SPECS],
    Flag = atomics:new(2, []),
    Sampler = spawn_link(fun() -> sampler(5 + Seconds div 40) end),
    Self = self(),
    Workers = [spawn_link(fun() -> worker(Self, N, Seed, Tables, Flag) end)
               || N <- lists:seq(1, 1 + erlang:system_info(schedulers_online))],
    Before = now_ms(),
    Round = fun(N) ->
        round(N, Seconds * 1000 div max(4, Seconds div 10), Workers, Tables, Flag, Base) end,
    Figures = rounds(1, Round, Before, Seconds),
    Latency = stop(Sampler),
    Counts = [stop(W) || W <- Workers],
    [true = larder:delete(T) || T <- Tables],
    Result = #{seconds => (now_ms() - Before) div 1000,
               operations => lists:sum([O || {O, _} <- Counts]),
               owners => lists:sum([O || {_, O} <- Counts]), rounds => length(Figures),
               memory => [{Live div 1024, Rss div 1024} || {Live, Rss} <- lists:append(Figures)],
               latency => Latency},
    report(Result),
    steady(Latency, Seconds),
    Result.

report(#{seconds := S, operations := O, owners := W, memory := Memory, latency := {First, Last}}) ->
    io:format(user, "    soak: ~b s, ~b operations, ~b owners; alive and resident, KiB: ~w~n"
                    "    soak: Larder by ets, median, slowest tenth, slowest hundredth: first ~p, last ~p~n",
              [S, O, W, Memory, rounded(First), rounded(Last)]).

rounded(Quotients) -> [round(Q * 100) / 100 || Q <- Quotients].

steady({First, Last}, Seconds) ->
    Checked = case Seconds >= 60 of true -> 3; false -> 1 end,
    [{latency, N, F, L, true} = {latency, N, F, L, L =< 1.5 * F}
     || {N, F, L} <- lists:sublist(lists:zip3([median, tenth, hundredth], First, Last), Checked)].

%% Rounds -----------------------------------------------------------------------------------------

%% Pairs of rounds until the time is over, two pairs at least; their checks take a part of it. Every
%% minute it says how far it is.
rounds(N, Round, Before, Seconds) ->
    Figures = Round(N),
    Passed = (now_ms() - Before) div 1000,
    N rem 6 =:= 0
        andalso io:format(user, "    soak: ~b of ~b s, ~b rounds~n", [Passed, Seconds, N]),
    case N >= 4 andalso N rem 2 =:= 0 andalso Passed >= Seconds of
        true -> [Figures];
        false -> [Figures | rounds(N + 1, Round, Before, Seconds)]
    end.

%% Odd rounds grow the tables, even ones shrink them.
round(N, Ms, Workers, Tables, Flag, Base) ->
    atomics:put(Flag, 2, N rem 2),
    timer:sleep(Ms),
    atomics:put(Flag, 1, 1),
    [receive {resting,
              W} -> ok after 60000 -> error({worker_does_not_rest, W,
                                             process_info(W, current_stacktrace)}) end
     || W <- Workers],
    [whole(T) || T <- Tables],
    Figures = case N rem 2 of 1 -> [memory(Tables, Base)]; 0 -> [] end,
    atomics:put(Flag, 1, 0),
    [W ! go || W <- Workers],
    Figures.

%% Everything that can be asked of a table says the same.
whole(T) ->
    Rows = larder:tab2list(T),
    [checked(Row) || Row <- Rows],
    Size = length(Rows),
    {size, Size, Size} = {size, Size, larder:info(T, size)},
    {count, Size, Size} = {count, Size, larder:select_count(T, [{'_', [], [true]}])},
    Keys = [element(1, Row) || Row <- Rows],
    Distinct = lists:usort(Keys),
    Walked = walk(T, larder:first(T), []),
    {keys, true} = {keys, lists:sort(Walked) =:= Distinct},
    case larder:info(T, type) of
        ordered_set -> {order, true} = {order, Walked =:= Distinct andalso Keys =:= Distinct};
        set -> {unique, true} = {unique, length(Distinct) =:= Size};
        _ -> ok
    end,
    Sample = maps:from_keys(lists:sublist(Distinct, 200), []),
    {looked_up, true} = {looked_up,
                         lists:sort(lists:append([larder:lookup(T, K) || K <- maps:keys(Sample)]))
                                        =:= lists:sort([R
                                                        || R <- Rows,
                                                           is_map_key(element(1, R), Sample)])}.

walk(_, '$end_of_table', Keys) -> lists:reverse(Keys);
walk(T, Key, Keys) -> walk(T, larder:next(T, Key), [Key | Keys]).

memory(Tables, Base) ->
    _ = [erlang:garbage_collect(P) || P <- processes()],
    %% What was deleted is freed later, with rests.
    Live = fun() ->
        erlang:memory(total) + lists:sum([larder:info(T, memory) * 8 || T <- Tables]) end,
    Flat = fun() -> rss() =< 1.3 * (max(0, Base) + Live()) end,
    larder_test:wait_until(Flat, 10000)
        orelse error({memory, {base, Base}, {live, Live()}, {resident, rss()},
                      {emulator, erlang:memory(total)}}),
    {Base + Live(), rss()}.

rss() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:lexemes(binary_to_list(Text), " "),
    list_to_integer(Pages) * 4096.

now_ms() -> erlang:monotonic_time(millisecond).

stop(Pid) ->
    Pid ! {stop, self()},
    receive {Pid, Result} -> unlink(Pid), Result end.

%% Workers ----------------------------------------------------------------------------------------

worker(Parent, N, [A, B, C], Tables, Flag) ->
    _ = rand:seed(exsss, {A + N, B, C}),
    work(Parent, list_to_tuple(Tables), Flag, 0, 0).

work(Parent, Tables, Flag, Operations, Owners) ->
    receive
        {stop, From} -> From ! {self(), {Operations, Owners}}
    after 0 ->
        case atomics:get(Flag, 1) of
            1 -> Parent ! {resting, self()}, receive go -> ok end;
            0 -> ok
        end,
        Growing = atomics:get(Flag, 2) =:= 1,
        [one(element(rand:uniform(tuple_size(Tables)), Tables), Growing) || _ <- lists:seq(1, 200)],
        short_lived(element(rand:uniform(tuple_size(Tables)), Tables)),
        work(Parent, Tables, Flag, Operations + 200, Owners + 1)
    end.

key() -> case rand:uniform(4) of 1 -> {k, rand:uniform(?KEYS)}; _ -> rand:uniform(?KEYS) end.

row(Key) ->
    Payload = case rand:uniform(3) of
        1 -> rand:uniform(1 bsl 40);
        2 -> {rand:uniform(100), [a, "text"]};
        3 -> <<(rand:uniform(1 bsl 60)):400>>
    end,
    {Key, erlang:phash2({Key, Payload}), Payload}.

checked({{count, _}, A, B}) -> 0 = A + B;
checked({Key, Sum, Payload}) -> {Key, Sum} = {Key, erlang:phash2({Key, Payload})}.

%% One operation on a shared table.
one(T, Growing) ->
    Grow = case Growing of true -> 60; false -> 15 end,
    case rand:uniform(100) of
        N when N =< Grow -> add(T, rand:uniform(20));
        N when N =< 75 -> remove(T, rand:uniform(20));
        N when N =< 78 -> count(T);
        N when N =< 80 -> scan(T);
        _ -> [checked(R) || R <- larder:lookup(T, key())]
    end.

add(T, 1) -> larder:insert(T, [row(key()) || _ <- lists:seq(1, 300)]);
add(T, 2) -> larder:insert_new(T, [row(key()) || _ <- lists:seq(1, 5)]);
add(T, 3) -> larder:insert_new(T, row(key()));
add(T, _) -> limit(T, key()).

%% Bags would grow without end under one key.
limit(T, Key) ->
    case larder:info(T, type) of
        Type when Type =:= bag; Type =:= duplicate_bag ->
            length(larder:lookup(T, Key)) < 4 andalso larder:insert(T, row(Key));
        _ -> larder:insert(T, row(Key))
    end.

remove(T, 1) ->
    From = rand:uniform(?KEYS),
    larder:select_delete(T,
                         [{{'$1', '_', '_'}, [{'>', '$1', From}, {'<', '$1', From + 300}],
                           [true]}]);
remove(T, 2) -> [checked(R) || R <- larder:take(T, key())];
remove(T, 3) -> [larder:delete_object(T, R) || R <- larder:lookup(T, key())];
remove(T, _) -> larder:delete(T, key()).

count(T) ->
    case larder:info(T, type) of
        Type when Type =:= bag; Type =:= duplicate_bag -> ok;
        _ ->
            Key = {count, rand:uniform(50)},
            [_, _] = larder:update_counter(T, Key, [{2, 1}, {3, -1}], {Key, 0, 0}),
            [checked(R) || R <- larder:lookup(T, Key)]
    end.

scan(T) ->
    case larder:select(T, [{'_', [], ['$_']}], 100) of
        {Rows, Continuation} ->
            [checked(R) || R <- Rows],
            case larder:select(Continuation) of {More, _} -> [checked(R) || R <- More];
                                                '$end_of_table' -> ok end;
        '$end_of_table' -> ok
    end.

%% Owners -----------------------------------------------------------------------------------------

%% Somebody with a table of their own, who ends in one of the ways that there are.
short_lived(Shared) ->
    Self = self(),
    Spec = lists:nth(rand:uniform(length(?SPECS)), ?SPECS),
    How = lists:nth(rand:uniform(5), [normal, killed, given, inherited, deleted]),
    {Pid, Mon} = spawn_monitor(fun() ->
        T = larder:new(soak_own, Spec ++ [{heir, Self, soak} || How =:= inherited]),
        true = larder:insert(T, [row(K) || K <- lists:seq(1, rand:uniform(200))]),
        true = larder:insert(T, {blob, 1, binary:copy(<<"b">>, rand:uniform(1000))}),
        larder:safe_fixtable(Shared, true),
        ended(How, T, Self)
    end),
    Why = receive {'DOWN', Mon, process, Pid, W} -> W end,
    How =:= killed orelse (normal = Why),
    mine(How, Pid).

%% A table that was given or left to this process.
mine(given, From) -> receive {'ETS-TRANSFER', T, From, gift} -> true = larder:delete(T) end;
mine(inherited, From) ->
    receive {'ETS-TRANSFER', T, From,
             soak} -> [_] = larder:lookup(T, blob), true = larder:delete(T) end;
mine(_, _) -> ok.

ended(killed, T, _) -> exit(self(), kill), larder:insert(T, {never});
ended(given, T, To) -> true = larder:give_away(T, To, gift);
ended(deleted, T, _) -> true = larder:delete(T);
ended(_, _, _) -> ok.

%% Latency ----------------------------------------------------------------------------------------

%% Fifty calls of each in turns, then a pause of so many milliseconds; what they took. A long soak
%% pauses longer, so that what it keeps of them is no part of the memory that is worth speaking of.
sampler(Pause) ->
    L = larder:new(soak_latency, [set]),
    E = ets:new(soak_latency, [set]),
    Rows = [{K, K} || K <- lists:seq(1, 10000)],
    true = larder:insert(L, Rows),
    true = ets:insert(E, Rows),
    sample(L, E, Pause, []).

sample(L, E, Pause, Batches) ->
    receive
        {stop, From} -> From ! {self(), quotients(lists:reverse(Batches))}
    after Pause ->
        Keys = [rand:uniform(10000) || _ <- lists:seq(1, 50)],
        sample(L, E, Pause, [[{timed(larder, L, K), timed(ets, E, K)} || K <- Keys] | Batches])
    end.

timed(M, T, K) ->
    T0 = erlang:monotonic_time(),
    [{K, _}] = M:lookup(T, K),
    true = M:insert(T, {K, T0}),
    erlang:monotonic_time() - T0.

%% Of the first and of the last quarter: Larder's time by that of ets, at the median and above.
quotients(Batches) ->
    Quarter = max(1, length(Batches) div 4),
    {quotient(lists:sublist(Batches, Quarter)),
     quotient(lists:nthtail(length(Batches) - Quarter, Batches))}.

quotient(Batches) ->
    {Larder, Ets} = lists:unzip(lists:append(Batches)),
    [at(P, lists:sort(Larder)) / max(1, at(P, lists:sort(Ets))) || P <- [50, 90, 99]].

at(P, Sorted) -> lists:nth(max(1, length(Sorted) * P div 100), Sorted).
