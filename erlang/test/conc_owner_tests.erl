%% @doc Owners, heirs and callers that die at every step.
-module(conc_owner_tests).

-export([owner_dies_at_every_step_test_/0, heir_before_down_test_/0, heir_of_the_killed_test_/0,
         heirs_die_test_/0, name_is_free_test_/0, many_tables_test_/0, many_inherited_test_/0,
         give_away_race_test_/0, gift_comes_first_test_/0, killed_callers_test_/0,
         fixers_die_test_/0, supervised_test_/0]).

suite(Title, Fun) ->
    [larder_test:tc(Title, 120, Sut, fun() -> Fun(Sut) end) || Sut <- larder_test:suts()].

%% Steps at which an owner may die -----------------------------------------------------------

%% The owner is killed after a random while, in the middle of something long;
%% afterwards the table is gone, the name free, and the next owner at work.
owner_dies_at_every_step_test_() ->
    suite("owners die at every step", fun(M) ->
        [[owner_dies(M, Type, Step, Us) || Us <- [0, 50, 200, 1000, 4000]]
         || Type <- [set, ordered_set, bag, duplicate_bag], Step <- steps()]
    end).

steps() ->
    [list_insert, insert_new, select, select_delete, select_replace, clear, delete, rename, fix,
     tab2file, fold, singles].

owner_dies(M, Type, Step, Us) ->
    Self = self(),
    Rows = rows(),
    {Pid, Mon} = spawn_monitor(fun() ->
        T = M:new(conc_owner, [Type, public, named_table]),
        Id = M:whereis(T),
        M:insert(T, lists:sublist(Rows, 2000)),
        Self ! {ready, Id},
        forever(M, T, Step, Rows)
    end),
    Id = receive {ready, R} -> R;
                 {'DOWN', Mon, _, _, Early} -> error({owner_failed, Step, Early}) end,
    spin(Us),
    exit(Pid, kill),
    receive {'DOWN', Mon, process, Pid, Why} -> {Step, killed} = {Step, Why} end,
    %% Once the owner is seen to be dead, so is the table.
    {Step, undefined, undefined, undefined} =
        {Step, M:info(conc_owner, size), M:info(Id, size), M:whereis(conc_owner)},
    {'EXIT', {badarg, _}} = catch M:lookup(Id, 1),
    {'EXIT', {badarg, _}} = catch M:insert(Id, {1, 1}),
    conc_owner = M:new(conc_owner, [Type, named_table]),
    true = M:insert(conc_owner, Rows),
    Count = length(Rows),
    Count = M:info(conc_owner, size),
    true = M:delete(conc_owner).

rows() -> [{K, K, [K]} || K <- lists:seq(1, 5000)].

forever(M, T, Step, Rows) ->
    step(M, T, Step, Rows),
    forever(M, T, Step, Rows).

step(M, T, list_insert, Rows) -> M:insert(T, Rows);
step(M, T, insert_new, Rows) -> M:delete(T, 5000), M:insert_new(T, Rows);
step(M, T, select, _) -> M:select(T, [{{'$1', '_', '_'}, [{'>', '$1', 10}], ['$_']}]);
step(M, T, select_delete, Rows) -> M:insert(T, Rows), M:select_delete(T, [{'_', [], [true]}]);
step(M, T, select_replace, _) ->
    case M:info(T, type) of
        bag -> M:match_delete(T, {'_', 3, '_'});
        _ -> M:select_replace(T, [{{'$1', '$2', '_'}, [], [{{'$1', '$2', x}}]}])
    end;
step(M, T, clear, Rows) -> M:delete_all_objects(T), M:insert(T, Rows);
step(M, T, delete, Rows) ->
    U = M:new(other, []), M:insert(U, Rows), M:delete(U), M:info(T);
step(M, T, rename, _) ->
    conc_owner_2 = M:rename(T, conc_owner_2), conc_owner = M:rename(conc_owner_2, T);
step(M, T, fix, _) ->
    M:safe_fixtable(T, true), M:delete(T, M:first(T)), M:insert(T, {1, 1, [1]});
step(M, T, tab2file, _) ->
    M:tab2file(T, larder_test:file("conc_owner"));
step(M, T, fold, _) -> M:foldl(fun(_, N) -> N + 1 end, 0, T);
step(M, T, singles, _) ->
    [begin M:insert(T, {K, 0, []}), M:lookup(T, K), M:delete(T, K - 1), M:next(T, M:first(T)) end
     || K <- lists:seq(5001, 5050)].

spin(Us) -> spin_until(erlang:monotonic_time(microsecond) + Us).

spin_until(End) ->
    case erlang:monotonic_time(microsecond) >= End of
        true -> ok;
        false -> spin_until(End)
    end.

%% Heirs ---------------------------------------------------------------------------------------

%% 'ETS-TRANSFER' is in the mailbox before the 'DOWN' and the 'EXIT' of the owner.
heir_before_down_test_() ->
    suite("the heir hears first", fun(M) ->
        Result = in_process(fun() ->
            process_flag(trap_exit, true),
            Heir = self(),
            [heir_hears_first(M, Heir, N, How) || How <- [made, set, given],
                                                N <- lists:seq(1, 200)]
        end),
        true = lists:all(fun(R) -> R =:= ok end, Result)
    end).

%% The owner is killed where the scheduler stops it while it makes a table with an heir, or names
%% one.
heir_of_the_killed_test_() ->
    [larder_test:tc("the heir of an owner that is killed hears first", 120, larder, fun() ->
        [begin
             Make = case How of
                 made -> fun(Heir) -> larder:new(heirloom, [{heir, Heir, data}]) end;
                 set -> fun(Heir) ->
                            T = larder:new(heirloom, []),
                            larder:setopts(T, [{heir, Heir, data}])
                        end
             end,
             Late = [N || N <- lists:seq(3950, 4000), _ <- [1, 2], hears_late(Make, N)],
             {How, []} = {How, Late}
         end || How <- [made, set]]
    end)].

hears_late(Make, Reductions) ->
    Heir = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        receive go -> ok end,
        burn(Reductions),
        Made = Make(Heir),
        receive stop -> Made end
    end),
    erlang:trace(Pid, true, [running]),
    Pid ! go,
    stopped_in_larder(Pid),
    exit(Pid, kill),
    IsLate = receive
                 {'ETS-TRANSFER', T, Pid, data} ->
                     receive {'DOWN', Mon, process, Pid, _} -> larder:delete(T), false end;
                 {'DOWN', Mon, process, Pid, _} ->
                     receive {'ETS-TRANSFER', T, Pid, data} -> larder:delete(T)
                     after 20 -> false
                     end
             end,
    forget_traces(Pid),
    IsLate.

burn(0) -> ok;
burn(N) -> burn(N - 1).

%% Returns when it is stopped within a call of the library, or waits.
stopped_in_larder(Pid) ->
    receive
        {trace, Pid, out, {Module, _, _}}
          when Module =:= larder; Module =:= larder_nif; Module =:= larder_heir -> ok;
        {trace, Pid, _, _} -> stopped_in_larder(Pid)
    after 20 -> ok
    end.

forget_traces(Pid) ->
    receive {trace, Pid, _, _} -> forget_traces(Pid) after 0 -> ok end.

%% The owner has made the table itself, has set its heir later, or was given it.
heir_hears_first(M, Heir, N, How) ->
    {Pid, Mon} = spawn_opt(fun() ->
        T = case How of
            made -> new_heirloom(M, Heir, N);
            set ->
                Mine = M:new(heirloom, [protected]),
                true = M:setopts(Mine, {heir, Heir, {data, N}}),
                Mine;
            given -> receive {'ETS-TRANSFER', Given, Heir, gift} -> Given end
        end,
        M:insert(T, {n, N}),
        Heir ! {table, T},
        receive go -> ok end
    end, [link, monitor]),
    How =:= given andalso (true = M:give_away(new_heirloom(M, Heir, N), Pid, gift)),
    T = receive {table, X} -> X end,
    Pid ! go,
    %% The first of the three to come.
    receive
        {'ETS-TRANSFER', T, Pid, {data, N}} -> ok;
        {'DOWN', Mon, process, Pid, _} -> error({down_before_transfer, N});
        {'EXIT', Pid, _} -> error({exit_before_transfer, N})
    end,
    receive {'DOWN', Mon, process, Pid, _} -> ok end,
    receive {'EXIT', Pid, _} -> ok end,
    Heir = M:info(T, owner),
    [{n, N}] = M:lookup(T, n),
    true = M:insert(T, {n, mine}),
    true = M:delete(T),
    ok.

new_heirloom(M, Heir, N) ->
    M:new(heirloom, [{heir, Heir, {data, N}}, protected]).

in_process(Fun) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive {'DOWN', Mon, process, Pid, {result, Result}} -> Result;
            {'DOWN', Mon, process, Pid, Why} -> error(Why) end.

%% A dead heir is none; an heir that dies as the owner does leaves no table.
heirs_die_test_() ->
    suite("heirs die too", fun(M) ->
        [begin
             Heir = spawn(fun() -> receive go -> ok end end),
             {Owner, Mon} = spawn_monitor(fun() ->
                 M:new(heirs_die, [named_table, {heir, Heir, data}]),
                 receive go -> ok end
             end),
             true = larder_test:wait_until(fun() -> M:info(heirs_die, owner) =:= Owner end),
             Order = case N rem 3 of 0 -> [Heir, Owner]; 1 -> [Owner, Heir]; 2 -> [Heir] end,
             [P ! go || P <- Order],
             N rem 3 =:= 2 andalso begin
                 true = larder_test:wait_until(fun() -> not is_process_alive(Heir) end),
                 Owner ! go
             end,
             receive {'DOWN', Mon, process, Owner, _} -> ok end,
             true = larder_test:wait_until(fun() -> M:info(heirs_die, owner) =:= undefined end)
         end || N <- lists:seq(1, 150)]
    end).

%% Names ------------------------------------------------------------------------------------------

name_is_free_test_() ->
    suite("'DOWN' means that the name is free", fun(M) ->
        [begin
             {Pid, Mon} = spawn_monitor(fun() ->
                 free_name = M:new(free_name, [named_table, public]),
                 M:insert(free_name, [{K} || K <- lists:seq(1, N)])
             end),
             receive {'DOWN', Mon, process, Pid, Why} -> normal = Why end,
             undefined = M:whereis(free_name),
             undefined = M:info(free_name, owner),
             false = lists:member(free_name, M:all())
         end || N <- lists:seq(1, 1000)]
    end).

%% The owner has more tables, and has fixed more, than are settled before its 'DOWN'.
many_tables_test_() ->
    suite("the end of an owner of many tables", fun(M) -> [many_tables(M) || _ <- [1, 2, 3]] end).

many_tables(M) ->
    Count = 600,
    Name = fun(N) -> list_to_atom("conc_owner_" ++ integer_to_list(N)) end,
    Mine = [M:new(mine, [public]) || _ <- lists:seq(1, Count)],
    Self = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        [M:safe_fixtable(T, true) || T <- Mine],
        Plain = [M:new(other, [public]) || _ <- lists:seq(1, Count)],
        [M:new(Name(N), [named_table, public]) || N <- lists:seq(1, Count)],
        Self ! {plain, Plain}
    end),
    Plain = receive {plain, Tables} -> Tables end,
    receive {'DOWN', Mon, process, Pid, normal} -> ok end,
    %% From the last on, which would be the last to be settled.
    Last = Name(Count),
    Last = M:new(Last, [named_table]),
    [begin
         {undefined, undefined} = {M:info(T, size), M:whereis(Name(N))},
         false = M:info(Fixed, safe_fixed)
     end || {T, Fixed, N} <- lists:reverse(lists:zip3(Plain, Mine, lists:seq(0, Count - 1)))],
    Gone = Plain ++ [Name(N) || N <- lists:seq(1, Count - 1)],
    Gone = Gone -- M:all(),
    [true = M:delete(T) || T <- [Last | Mine]].

%% Tables that an heir gets are there throughout, also before they are passed on.
many_inherited_test_() ->
    suite("all/0 while an heir gets many tables", fun many_inherited/1).

many_inherited(M) ->
    Count = 20000,
    Self = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        Self ! {tables, [M:new(inherited, [{heir, Self, data}]) || _ <- lists:seq(1, Count)]}
    end),
    Tables = receive {tables, Made} -> Made end,
    receive {'DOWN', Mon, process, Pid, normal} -> ok end,
    [] = Tables -- M:all(),
    [receive {'ETS-TRANSFER', _, Pid, data} -> ok end || _ <- Tables],
    [true = M:delete(T) || T <- Tables].

%% As a supervisor does: the next owner is there the moment the last is down.
supervised_test_() ->
    suite("restarted at once", fun(M) ->
        Readers = [spawn_monitor(fun() -> reads(M, 0) end) || _ <- [1, 2]],
        restart(M, 1000),
        [begin
             P ! stop,
             receive {'DOWN', Mon, process, P, Why} -> {done, _} = Why end
         end || {P, Mon} <- Readers]
    end).

restart(_, 0) -> ok;
restart(M, N) ->
    {Pid, Mon} = spawn_monitor(fun() ->
        supervised = M:new(supervised, [named_table, protected]),
        true = M:insert(supervised, {n, N}),
        [{n, N}] = M:lookup(supervised, n),
        exit(over)
    end),
    receive {'DOWN', Mon, process, Pid, Why} -> over = Why end,
    restart(M, N - 1).

reads(M, N) ->
    receive stop -> exit({done, N})
    after 0 ->
        try M:lookup(supervised, n) of
            [] -> ok;
            [{n, I}] when is_integer(I) -> ok
        catch error:badarg -> ok
        end,
        reads(M, N + 1)
    end.

%% Gifts ------------------------------------------------------------------------------------------

%% The table is handed round among processes that die now and then; it has one
%% owner, or it is gone with the one who had it.
give_away_race_test_() ->
    suite("gifts to the dying", fun(M) ->
        [begin
             Taker = spawn(fun() -> receive {'ETS-TRANSFER', _, _, gift} -> ok end end),
             Killer = spawn(fun() -> spin(N rem 50), exit(Taker, kill) end),
             T = M:new(gift, [public]),
             Given = try M:give_away(T, Taker, gift) catch error:badarg -> false end,
             Mons = [monitor(process, P) || P <- [Taker, Killer]],
             [receive {'DOWN', Mon, _, _, _} -> ok end || Mon <- Mons],
             Self = self(),
             case Given of
                 true -> true = larder_test:wait_until(fun() -> M:info(T, owner) =:= undefined end);
                 false -> Self = M:info(T, owner), true = M:delete(T)
             end
         end || N <- lists:seq(1, 500)]
    end).

%% The message about a gift comes before what the giver sends afterwards, also to a process whose
%% signals are in one of many queues, by their senders, until it fetches them.
gift_comes_first_test_() ->
    suite("a gift comes before what follows", fun(M) ->
        erts_debug:set_internal_state(available_internal_state, true),
        try
            [gift_comes_first(M) || _ <- lists:seq(1, 32)]
        after
            erts_debug:set_internal_state(available_internal_state, false)
        end
    end).

gift_comes_first(M) ->
    Step = atomics:new(1, []),
    {Taker, Mon} = spawn_monitor(fun() ->
        process_flag(message_queue_data, off_heap),
        %% Releases that have no such queues don't know the name.
        _ = (catch erts_debug:set_internal_state(proc_sig_buffers, true)),
        atomics:put(Step, 1, 1),
        until(Step, 2),
        exit(receive First -> element(1, First) end)
    end),
    spawn(fun() ->
        T = M:new(gift, [public]),
        until(Step, 1),
        true = M:give_away(T, Taker, gift),
        Taker ! {later},
        atomics:put(Step, 1, 2)
    end),
    receive {'DOWN', Mon, process, Taker, Why} -> 'ETS-TRANSFER' = Why end.

until(Step, N) ->
    case atomics:get(Step, 1) of
        N -> ok;
        _ -> erlang:yield(), until(Step, N)
    end.

%% Callers ----------------------------------------------------------------------------------------

%% Somebody who isn't the owner is killed in the middle of a long call: the
%% table stays usable, and a list is there as a whole or not at all.
killed_callers_test_() ->
    suite("callers killed in long calls", fun(M) ->
        [killed_caller(M, Type, Us) || Type <- [set, ordered_set], Us <- lists:seq(0, 20000, 1000)]
    end).

killed_caller(M, Type, Us) ->
    T = M:new(killed, [Type, public]),
    Rows = [{K, new} || K <- lists:seq(1, 20000)],
    M:insert(T, [{K, old} || K <- lists:seq(1, 20000, 2)]),
    {Pid, Mon} = spawn_monitor(fun() -> M:insert(T, Rows), M:select(T, [{'_', [], ['$_']}]) end),
    spin(Us),
    exit(Pid, kill),
    receive {'DOWN', Mon, process, Pid, _} -> ok end,
    New = M:select_count(T, [{{'_', new}, [], [true]}]),
    Old = M:select_count(T, [{{'_', old}, [], [true]}]),
    true = lists:member({New, Old}, [{0, 10000}, {20000, 0}]),
    true = M:insert(T, {1, mine}),
    [{1, mine}] = M:lookup(T, 1),
    true = M:delete(T).

%% A fixation ends with its process.
fixers_die_test_() ->
    suite("fixers die", fun(M) ->
        T = M:new(fixed, [public]),
        M:insert(T, [{K} || K <- lists:seq(1, 100)]),
        [begin
             {Pid, Mon} = spawn_monitor(fun() ->
                 M:safe_fixtable(T, true),
                 M:safe_fixtable(T, true),
                 M:delete(T, K)
             end),
             receive {'DOWN', Mon, process, Pid, normal} -> ok end,
             false = M:info(T, safe_fixed),
             false = M:info(T, fixed)
         end || K <- lists:seq(1, 100)],
        0 = M:info(T, size),
        '$end_of_table' = M:first(T),
        true = M:delete(T)
    end).
