%% @doc A process that is killed at a yield point of a long call, at each of them in turn.
%%
%% How a yield point is met exactly: one scheduler, a victim, and a hunter of higher priority who is
%% told each time that the victim is scheduled out. The hunter runs before the victim can run again,
%% so the exit signal that it sends at the n-th time finds the victim between its n-th slice and the
%% next. n grows until the call is over before it comes to that. Calls that run on a dirty scheduler
%% are killed after growing times instead.
%%
%% Afterwards the table must be whole: what the call does at once is done or not done, what it does
%% object by object is done to some and not to others; it can be used by the next; and nothing is
%% left of the victim.
%%
%% LARDER_FAULT_ROWS (3,000) sets how many rows there are, and so how many yield points.
-module(fault_kill_tests).

-export([every_yield_point_test_/0, killed_in_save_or_load_test_/0, killed_owners_test_/0, planted_faults_are_found_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
%% More yield points than that and the call does not end.
-define(MOST, 20000).

rows() -> larder_test:env("LARDER_FAULT_ROWS", 3000).

old() -> [{K, old} || K <- lists:seq(1, rows())].
new() -> [{K, new} || K <- lists:seq(1, rows() * 2)].

%% The calls --------------------------------------------------------------------------------------

%% {Name, the call, what may be found afterwards}. The table is public and somebody else's and holds
%% old/0.
calls(Type) ->
    All = [{{'$1', old}, [], ['$_']}],
    True = [{{'$1', old}, [], [true]}],
    Read = fun unchanged/3,
    [{insert, fun(M, T) -> M:insert(T, new()) end, fun list_or_none/3},
     {insert_new,
      fun(M, T) -> M:insert_new(T, [{rows() + K, new} || K <- lists:seq(1, rows())]) end,
      fun new_or_none/3},
     {insert_new_refused,
      fun(M, T) -> M:insert_new(T, [{2 * rows() - K, new} || K <- lists:seq(1, rows() + 1)]) end,
      Read},
     {select, fun(M, T) -> M:select(T, All) end, Read},
     {select_some, fun(M, T) -> M:select(T, All, rows() + 1) end, Read},
     {select_reverse, fun(M, T) -> M:select_reverse(T, All) end, Read},
     {match, fun(M, T) -> M:match(T, {'$1', '$2'}) end, Read},
     {match_object, fun(M, T) -> M:match_object(T, {'_', old}) end, Read},
     {select_count, fun(M, T) -> M:select_count(T, True) end, Read},
     {tab2list, fun(M, T) -> M:tab2list(T) end, Read},
     {foldl, fun(M, T) -> M:foldl(fun(_, N) -> N + 1 end, 0, T) end, Read},
     {foldr, fun(M, T) -> M:foldr(fun(_, N) -> N + 1 end, 0, T) end, Read},
     {select_delete, fun(M, T) -> M:select_delete(T, True) end, fun some_of_the_old/3},
     {match_delete, fun(M, T) -> M:match_delete(T, {'_', old}) end, fun some_of_the_old/3},
     {delete_all_objects, fun(M, T) -> M:delete_all_objects(T) end, fun all_or_none/3},
     {delete, fun(M, T) -> M:delete(T) end, fun there_or_gone/3},
     {init_table, fun(M, T) -> M:init_table(T, input(1)) end, fun some_of_the_input/3}]
        ++ [{select_replace,
             fun(M, T) -> M:select_replace(T, [{{'$1', old}, [], [{{'$1', new}}]}]) end,
             fun each_old_or_new/3} || Type =:= set orelse Type =:= ordered_set].

%% Larder's own.
more_calls(larder, Type) ->
    [{lookup_many, fun(M, T) -> M:lookup_many(T, lists:seq(1, rows())) end, fun unchanged/3},
     {take_many, fun(M, T) -> M:take_many(T, lists:seq(1, rows())) end, fun some_of_the_old/3},
     {select_take, fun(M, T) -> M:select_take(T, [{'_', [], ['$_']}]) end, fun some_of_the_old/3}]
        ++ [{slice, fun(M, T) -> M:slice(T, 1, rows()) end, fun unchanged/3} || Type =:= ordered_set];
more_calls(_, _) ->
    [].

input(From) ->
    fun(read) when From > 20 -> end_of_input;
       (read) ->
           {[{K, new} || K <- lists:seq(From * rows(), From * rows() + 199)], input(From + 1)};
       (close) -> ok
    end.

%% What may be found -------------------------------------------------------------------------------

unchanged(_, _, Found) -> Found =:= old().

list_or_none(M, Type, Found) when Type =:= bag; Type =:= duplicate_bag ->
    unchanged(M, Type, Found) orelse Found =:= lists:sort(old() ++ new());
list_or_none(M, Type, Found) ->
    unchanged(M, Type, Found) orelse Found =:= new().

new_or_none(M, Type, Found) ->
    unchanged(M, Type, Found)
        orelse Found =:= old() ++ [{rows() + K, new} || K <- lists:seq(1, rows())].

some_of_the_old(_, _, Found) -> Found -- old() =:= [] andalso Found =:= lists:usort(Found).

all_or_none(M, Type, Found) -> Found =:= [] orelse unchanged(M, Type, Found).

there_or_gone(M, Type, Found) -> Found =:= gone orelse unchanged(M, Type, Found).

each_old_or_new(_, _, Found) ->
    [K || {K, _} <- Found] =:= lists:seq(1, rows())
        andalso lists:all(fun({_, V}) -> V =:= old orelse V =:= new end, Found).

%% Parts of the input as they were read, none of them halved; `ets' inserts them one by one.
some_of_the_input(M, Type, Found) ->
    unchanged(M, Type, Found)
        orelse ((length(Found) rem 200 =:= 0 orelse M =:= diff_sound)
                andalso lists:all(fun({_, V}) -> V =:= new end, Found)).

%% The tests ---------------------------------------------------------------------------------------

every_yield_point_test_() ->
    [larder_test:tc(lists:concat(["killed at every yield point, ", Type]), 600, Sut, fun() ->
        on_one_scheduler(fun() ->
            [say(Sut, Type, Name, yield_points(Sut, Type, Name, Call, May, 1))
             || {Name, Call, May} <- calls(Type) ++ more_calls(Sut, Type)]
        end)
     end) || Sut <- larder_test:suts(), Type <- types(Sut)].

%% The oracle's turn shows that the test itself is sound; `ets' inserts long lists in pieces, too.
types(larder) -> ?TYPES;
types(_) -> [set].

say(M, Type, Name, Points) ->
    os:getenv("LARDER_FAULT_SAY") =/= false
        andalso io:format(user, "    ~s ~s ~s: killed at ~b yield points~n",
                          [M, Type, Name, Points - 1]).

%% One table and one victim for each point.
yield_points(M, Type, Name, Call, May, N) when N =< ?MOST ->
    T = M:new(fault_kill, [Type, public]),
    true = M:insert(T, old()),
    Fate = victim(fun() -> Call(M, T) end, N),
    Found = found(M, T),
    case {Fate, May(M, Type, Found)} of
        {_, true} -> ok;
        {killed, false} ->
            error({M, Type, Name, {killed_at_yield_point, N}, {left, sample(Found)}});
        %% Done before it came to that: what a whole call leaves is tested elsewhere.
        {done, false} -> ok
    end,
    used_by_the_next(M, T, Found),
    case Fate of
        killed -> yield_points(M, Type, Name, Call, May, N + 1);
        done -> N
    end.

found(M, T) ->
    case M:info(T, size) of
        undefined -> gone;
        Size ->
            All = lists:sort(M:tab2list(T)),
            {Size, Size} = {Size, length(All)},
            All
    end.

sample(gone) -> gone;
sample(Found) -> {length(Found), lists:sublist(Found, 5)}.

used_by_the_next(_, _, gone) ->
    ok;
used_by_the_next(M, T, _) ->
    false = M:info(T, safe_fixed),
    Row = {0, [mine]},
    true = M:insert(T, [Row, {-1, x}]),
    [Row] = M:lookup(T, 0),
    true = M:delete_all_objects(T),
    0 = M:info(T, size),
    true = M:delete(T).

%% Hunter and victim -------------------------------------------------------------------------------

on_one_scheduler(Fun) ->
    Before = erlang:system_flag(schedulers_online, 1),
    Priority = process_flag(priority, high),
    try
        Fun()
    after
        process_flag(priority, Priority),
        erlang:system_flag(schedulers_online, Before)
    end.

%% Kills a process that runs the fun when it is scheduled out for the n-th time.
victim(Fun, N) ->
    {Pid, Mon} = spawn_monitor(fun() ->
        receive go -> ok end,
        _ = Fun(),
        exit(done)
    end),
    %% It waits for `go' first, which is no part of the call.
    true = larder_test:wait_until(fun() -> process_info(Pid, status) =:= {status, waiting} end),
    1 = erlang:trace(Pid, true, [running]),
    Pid ! go,
    Fate = hunt(Pid, Mon, N),
    drain(Pid),
    Fate.

hunt(Pid, Mon, 0) ->
    exit(Pid, kill),
    receive {'DOWN', Mon, process, Pid, killed} -> killed;
            {'DOWN', Mon, process, Pid, done} -> done
    end;
hunt(Pid, Mon, N) ->
    receive
        {trace, Pid, out, _} -> hunt(Pid, Mon, N - 1);
        {'DOWN', Mon, process, Pid, done} -> done
    end.

drain(Pid) ->
    receive
        {trace, Pid, _, _} -> drain(Pid)
    after 0 -> ok
    end.

%% A hunter that is late, or a call that leaves half of its work, is noticed: here a list inserted
%% one by one.
planted_faults_are_found_test_() ->
    [larder_test:tc("half a list is noticed", 60, Sut, fun() ->
        on_one_scheduler(fun() ->
            OneByOne = fun(M, T) -> [M:insert(T, Row) || Row <- new()] end,
            Caught = try yield_points(Sut, set, planted, OneByOne, fun list_or_none/3, 1) of
                _ -> nothing
            catch error:{Sut, set, planted, {killed_at_yield_point, _}, _} -> half_a_list
            end,
            half_a_list = Caught,
            [Sut:delete(T) || T <- Sut:all(), is_reference(T), Sut:info(T, name) =:= fault_kill]
        end)
     end) || Sut <- larder_test:other_suts()].

%% Files -------------------------------------------------------------------------------------------

%% Killed in the middle of a save, what was there before is there still, or the new file as a whole,
%% and nothing else; killed in the middle of a load, there is no table.
killed_in_save_or_load_test_() ->
    [larder_test:tc(lists:concat(["killed in tab2file and file2tab, ", Format]), 300, Sut,
                    fun() -> files(Sut, Format) end)
     || Sut <- larder_test:other_suts(), Sut =:= larder, Format <- [larder, ets]].

files(M, Format) ->
    Dir = larder_test:file("fault"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    File = filename:join(Dir, "table"),
    Old = M:new(old, [public]),
    New = M:new(new, [public]),
    true = M:insert(Old, old()),
    true = M:insert(New, [{K, lists:seq(1, 30)} || K <- lists:seq(1, 5 * rows())]),
    Save = fun(T) -> M:tab2file(T, File, [{format, Format}]) end,
    {Us, ok} = larder_test:microseconds(fun() -> Save(New) end),
    Delays = [trunc(Us * N / delays()) || N <- lists:seq(0, delays() + 2)],
    %% The last is not killed.
    Saved = [saved(M, Save, Old, New, File, Delay) || Delay <- Delays ++ [infinity]],
    [true, true] = [lists:member(Which, Saved) || Which <- [old, new]],
    ok = Save(New),
    Tables = M:all(),
    {LoadUs, {ok, Loaded}} = larder_test:microseconds(fun() -> M:file2tab(File) end),
    true = M:delete(Loaded),
    [begin
         _ = killed_after(trunc(LoadUs * N / delays()), fun() -> M:file2tab(File) end),
         %% Tables of others may go meanwhile; none may have come.
         true = larder_test:wait_until(fun() -> M:all() -- Tables =:= [] end)
     end || N <- lists:seq(0, delays() - 1)],
    true = M:delete(Old),
    true = M:delete(New),
    ok = file:del_dir_r(Dir).

delays() -> larder_test:scaled(12).

saved(M, Save, Old, New, File, Delay) ->
    ok = Save(Old),
    _ = killed_after(Delay, fun() -> Save(New) end),
    %% The dirty scheduler notices a little later.
    true = larder_test:wait_until(fun() -> file:list_dir(filename:dirname(File))
                                           =:= {ok, [filename:basename(File)]} end),
    {ok, T} = M:file2tab(File, [{verify, true}]),
    Rows = lists:sort(M:tab2list(T)),
    true = M:delete(T),
    case Rows =:= old() of
        true -> old;
        false -> Rows = lists:sort(M:tab2list(New)), new
    end.

killed_after(Us, Fun) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    Us =/= infinity andalso begin
        spin_until(erlang:monotonic_time(microsecond) + Us),
        exit(Pid, kill)
    end,
    receive {'DOWN', Mon, process, Pid, Why} -> Why end.

spin_until(End) ->
    case erlang:monotonic_time(microsecond) >= End of
        true -> ok;
        false -> spin_until(End)
    end.

%% Owners and heirs --------------------------------------------------------------------------------

%% Owners that are killed at the yield points of giving away, naming heirs, and long calls on their
%% own tables, while the heirs die, too. A table never belongs to the dead: it has a living owner,
%% or it is gone and its name is free.
killed_owners_test_() ->
    [larder_test:tc(lists:concat(["owners and heirs die, ", Step]), 300, Sut, fun() ->
        [owner_and_heirs(Sut, Step, Order, N)
         || Order <- [owner, heir, both, heir_first, taker], N <- lists:seq(1, 30, 3)]
     end) || Sut <- larder_test:suts(), Step <- [give_away, setopts, insert, delete, idle]].

owner_and_heirs(M, Step, Order, N) ->
    Self = self(),
    Relay = spawn(fun() -> person() end),
    Taker = spawn(fun() -> person() end),
    Owner = spawn(fun() ->
        T = M:new(fault_estate, [named_table, public, {heir, Relay, estate}]),
        Id = M:whereis(T),
        Self ! {made, Id},
        receive go -> ok end,
        owner_step(M, T, Step, Taker),
        person()
    end),
    Id = receive {made, I} -> I end,
    Mons = [monitor(process, P) || P <- [Owner, Relay, Taker]],
    Owner ! go,
    spin_until(erlang:monotonic_time(microsecond) + N * N),
    Die = case Order of
        owner -> [Owner]; heir -> [Relay]; both -> [Owner, Relay]; heir_first ->
            [Relay, Owner]; taker -> [Taker, Owner]
    end,
    [exit(P, kill) || P <- Die],
    [receive {'DOWN', Mon, process, P, _} -> ok end
     || {P, Mon} <- lists:zip([Owner, Relay, Taker], Mons), lists:member(P, Die)],
    Living = fun() ->
        case M:info(Id, owner) of
            undefined -> M:whereis(fault_estate) =:= undefined;
            Pid -> is_process_alive(Pid)
        end
    end,
    true = larder_test:wait_until(Living),
    [exit(P, kill) || P <- [Owner, Relay, Taker]],
    true = larder_test:wait_until(fun() -> M:whereis(fault_estate) =:= undefined end),
    fault_estate = M:new(fault_estate, [named_table]),
    true = M:delete(fault_estate),
    [demonitor(Mon, [flush]) || Mon <- Mons].

owner_step(M, T, give_away, Taker) -> catch M:give_away(T, Taker, gift);
owner_step(M, T, setopts, Taker) -> [M:setopts(T, {heir, P, more}) || P <- [Taker, self(), Taker]];
owner_step(M, T, insert, _) -> M:insert(T, old());
owner_step(M, T, delete, _) -> M:insert(T, {1, 1}), M:delete(T);
owner_step(_, _, idle, _) -> ok.

person() ->
    receive _ -> person() end.
