%% @doc Calls that can't be cut in slices hold a scheduler for as long as they take:
%% none takes more than four times as long as with `ets', or 40 ms.
%%
%% `ets' and the module under test do each call in turns, until one was quick enough: a
%% machine that does something else only makes calls slower.
-module(hold_tests).

-export([no_call_holds_a_scheduler_test_/0]).

-define(TIMES, 4).
-define(MS, 40).
-define(ROUNDS, 5).

size() -> larder_test:env("LARDER_HOLD_SIZE", 1000000).

no_call_holds_a_scheduler_test_() ->
    [larder_test:tc(Name, 300, Sut, fun() -> beside_ets(Sut, Name, Limit, Type, Prepare, Call) end)
     || Sut <- larder_test:other_suts(), {Name, Limit, Type, Prepare, Call} <- calls()].

%% The name; milliseconds that are no fault; the table's type; what is done before, and gives what
%% the call is given. Terms that are large are persistent: to copy one into a process's heap, or to
%% collect it there, is not the call's.
calls() ->
    [{"update_counter, one element", ?MS, set,
      counter_row([{2, 1}]), fun update_counter/3},
     {"update_counter with a threshold", ?MS, set,
      counter_row([{2, 1, 100, 0}]), fun update_counter/3},
     {"update_counter, two elements in turns", ?MS, set,
      counter_row([{2, 1}, {3, 2}]), fun update_counter/3},
     {"update_counter, a list as increment", ?MS, set,
      fun(M, T) -> true = M:insert(T, {key, 0}), lists:seq(1, size()) end,
      fun(M, T, List) -> {'EXIT', {badarg, _}} = catch M:update_counter(T, key, {2, List}) end},
     {"update_element, one element", ?MS, set,
      counter_row([{2, x}]), fun update_element/3},
     {"update_element, two elements in turns", ?MS, set,
      counter_row([{3, x}, {2, y}]), fun update_element/3},
     {"insert of a large map", ?MS, set, fun(_, _) -> a_map() end,
      fun(M, T, Map) -> true = M:insert(T, {map, Map}) end},
     {"lookup of a large map", ?MS, set, fun(M, T) -> true = M:insert(T, {map, a_map()}) end,
      fun(M, T, _) -> [{map, _}] = M:lookup(T, map) end},
     {"delete of a bag's key", 250, bag, fun bag_key/2,
      fun(M, T, _) -> true = M:delete(T, key) end},
     {"take of a bag's key", 250, bag, fun bag_key/2,
      fun(M, T, Count) -> Count = length(M:take(T, key)) end},
     {"fifty keys of a megabyte", 300, ordered_set, fun large_keys/2,
      fun(M, T, Keys) -> [true = M:insert(T, {Key, x}) || Key <- Keys] end}].

counter_row(Turns) ->
    fun(M, T) ->
        true = M:insert(T, {key, 0, 0}),
        lists:append(lists:duplicate(size() div length(Turns), Turns))
    end.

update_counter(M, T, Ops) ->
    Sums = M:update_counter(T, key, Ops),
    true = length(Sums) =:= length(Ops).

update_element(M, T, Ops) -> true = M:update_element(T, key, Ops).

a_map() -> maps:from_list([{N, N} || N <- lists:seq(1, size())]).

bag_key(M, T) ->
    true = M:insert(T, [{key, N} || N <- lists:seq(1, size())]),
    size().

large_keys(_, _) -> [binary:copy(<<N>>, size()) || N <- lists:seq(1, 50)].

beside_ets(M, Name, Limit, Type, Prepare, Call) ->
    Once = fun(Sut) -> once(Sut, Type, Prepare, Call) end,
    {Ets, Own} = quickest(?ROUNDS, Once, M, Limit, {infinity, infinity}),
    _ = persistent_term:erase(?MODULE),
    io:format(user, "    ~-40s ets ~7.1f ms, ~s ~7.1f ms~n", [Name, Ets, M, Own]),
    case is_quick(Limit, {Ets, Own}) of
        true -> ok;
        false -> error({held_a_scheduler, Name, {ets, Ets}, {M, Own}, ms})
    end.

is_quick(Limit, {Ets, Own}) -> Own =< max(Limit, ?TIMES * Ets).

%% The next round only if the ones before were slow.
quickest(0, _, _, _, Best) -> Best;
quickest(Rounds, Once, M, Limit, {Ets, Own}) ->
    Best = {min(Ets, Once(ets)), min(Own, Once(M))},
    case is_quick(Limit, Best) of
        true -> Best;
        false -> quickest(Rounds - 1, Once, M, Limit, Best)
    end.

once(M, Type, Prepare, Call) ->
    {Pid, Mon} = spawn_opt(fun() ->
        T = M:new(hold, [type(M, Type), public]),
        persistent_term:put(?MODULE, Prepare(M, T)),
        exit({took, in_a_process(M, fun() -> Call(M, T, persistent_term:get(?MODULE)) end)})
    end, [monitor]),
    receive {'DOWN', Mon, process, Pid, {took, Ms}} -> Ms end.

%% A bag of `ets' looks through all objects of a key at each insert: a million take hours.
type(ets, bag) -> duplicate_bag;
type(_, Type) -> Type.

%% In a process with room enough for the answer: a collection would be its own. What the machine
%% took from the schedulers meanwhile goes off. It may be too much: so not from the time of `ets',
%% which says how long the other may take.
in_a_process(M, Fun) ->
    Noise = yield_noise:start(),
    {Pid, Mon} = spawn_opt(fun() ->
        From = erlang:monotonic_time(microsecond),
        _ = Fun(),
        exit({took, From, erlang:monotonic_time(microsecond)})
    end, [monitor, {min_heap_size, 16 * size()}]),
    {From, To} = receive {'DOWN', Mon, process, Pid, {took, F, T}} -> {F, T} end,
    Taken = yield_noise:within(yield_noise:stop(Noise), From, To),
    case M of
        ets -> (To - From) / 1000;
        _ -> max(0, To - From - Taken) / 1000
    end.
