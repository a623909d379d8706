%% Tables and dets: from_dets/2, to_dets/2 and init_table/2 beside those of ets.
-module(larder_dets_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(DETS, larder_t_dets).

%% ---- from_dets, to_dets ----

%% The dets server stays when it has been started: that is no leak.
round_trip_test_() ->
    dets:start(),
    [{lists:flatten(io_lib:format("~w ~w", [Type, Size])),
      ?LEAK_FREE(?assertEqual(round_trip(ets, Type, Size), round_trip(larder, Type, Size)))}
     || Type <- [set, ordered_set, bag, duplicate_bag], Size <- [0, 1, 100, 101, 1234]].

round_trip(Module, Type, Size) ->
    with_dets(dets_type(Type), fun() ->
        From = Module:new(from, [Type, public]),
        Module:insert(From, [{K, V} || K <- lists:seq(1, Size), V <- [a, b]]),
        dets:insert(?DETS, {left, over}),
        ?DETS = Module:to_dets(From, ?DETS),
        To = Module:new(to, [Type]),
        Module:insert(To, [{1, kept}, {left, kept}]),
        true = Module:from_dets(To, ?DETS),
        Result = {lists:sort(dets:match_object(?DETS, '_')), lists:sort(Module:tab2list(To)),
                  Module:info(From, safe_fixed)},
        Module:delete(From),
        Module:delete(To),
        Result
    end).

dets_type(ordered_set) -> set;
dets_type(Type) -> Type.

%% Errors: class, reason, and the call they come from.
errors_test_() ->
    dets:start(),
    [{lists:flatten(io_lib:format("~w~0p", [F, Args])),
      ?LEAK_FREE(?assertEqual(failure(ets, F, Args), failure(larder, F, Args)))}
     || {F, Args} <-
            [{F, [Tab, Dets]} || F <- [from_dets, to_dets],
                                 Tab <- [tab, no_such_table, 17, make_ref(), private, protected],
                                 Dets <- [?DETS, no_such_dets, 17]] ++
            [{from_dets, [keypos3, ?DETS]}, {to_dets, [small_private, ?DETS]},
             {to_dets, [large_private, ?DETS]}]].

failure(Module, F, Args) ->
    with_dets(set, fun() ->
        dets:insert(?DETS, [{1, 2}, {3, 4}]),
        Tabs = tables(Module),
        try apply(Module, F, [maps:get(Arg, Tabs, Arg) || Arg <- Args]) of
            Result -> {returned, Result, lists:sort(dets:match_object(?DETS, '_'))}
        catch
            Class:Reason:Stack ->
                [{_, Function, [_, Dets], _} | _] = Stack,
                {Class, without_stack(Reason), Function, Dets}
        after
            drop(Module, Tabs)
        end
    end).

%% What the dets server says of a fun that failed has a stack trace in it.
without_stack({Reason, [{_, _, _, _} | _]}) -> Reason;
without_stack({'EXIT', {Reason, _}}) -> {'EXIT', Reason};
without_stack(Reason) -> Reason.

tables(Module) ->
    Small = Module:new(small, [private]),
    Large = Module:new(large, [private]),
    Module:insert(Small, [{K, x} || K <- lists:seq(1, 50)]),
    Module:insert(Large, [{K, x} || K <- lists:seq(1, 500)]),
    Self = self(),
    Holder = spawn(fun() ->
        Self ! {self(), Module:new(p, [private]), Module:new(q, [protected])},
        receive stop -> ok end
    end),
    receive
        {Holder, Private, Protected} ->
            #{tab => Module:new(tab, [public]), keypos3 => Module:new(k3, [{keypos, 3}]),
              small_private => Small,
              large_private => Large, private => Private, protected => Protected, holder => Holder}
    end.

drop(Module, #{holder := Holder} = Tabs) ->
    Monitor = monitor(process, Holder),
    Holder ! stop,
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    [Module:delete(maps:get(Name, Tabs)) || Name <- [tab, keypos3, small_private, large_private]].

with_dets(Type, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "larder_t_dets_" ++ os:getpid() ++ "_" ++
                             integer_to_list(erlang:unique_integer([positive]))),
    {ok, ?DETS} = dets:open_file(?DETS, [{file, File}, {type, Type}]),
    try
        Fun()
    after
        dets:close(?DETS),
        file:delete(File)
    end.

%% ---- to_ets, from_ets: what dets does with a table of ets ----

%% With a table of Larder as dets does it with one of ets; with one of ets as well.
to_ets_from_ets_test_() ->
    dets:start(),
    [{lists:flatten(io_lib:format("~w ~w ~w", [Module, Type, Size])),
      ?LEAK_FREE(?assertEqual(there_and_back(ets, dets, Type, Size),
                              there_and_back(Module, larder_dets, Type, Size)))}
     || Module <- [larder, ets], Type <- [set, ordered_set, bag, duplicate_bag],
        Size <- [0, 1, 100, 101, 1234]].

there_and_back(Module, Dets, Type, Size) ->
    with_dets(dets_type(Type), fun() ->
        From = Module:new(from, [Type, public, named_table]),
        Module:insert(From, [{K, V} || K <- lists:seq(1, Size), V <- [a, b]]),
        dets:insert(?DETS, {left, over}),
        ok = Dets:from_ets(?DETS, from),
        To = Module:new(to, [Type]),
        Module:insert(To, [{1, kept}, {left, kept}]),
        To = Dets:to_ets(?DETS, To),
        Result = {lists:sort(dets:match_object(?DETS, '_')), lists:sort(Module:tab2list(To)),
                  Module:info(From, safe_fixed)},
        Module:delete(From),
        Module:delete(To),
        Result
    end).

to_ets_errors_test_() ->
    dets:start(),
    [{lists:flatten(io_lib:format("~w~0p", [F, Args])),
      ?LEAK_FREE(?assertEqual(to_ets_failure(ets, dets, F, Args),
                              to_ets_failure(larder, larder_dets, F, Args)))}
     || {F, Args} <-
            [{F, [Dets, Tab]} || F <- [from_ets, to_ets],
                                 Tab <- [tab, no_such_table, 17, make_ref(), private, protected],
                                 Dets <- [?DETS, no_such_dets, 17]] ++
            [{to_ets, [?DETS, keypos3]}, {from_ets, [?DETS, small_private]},
             {from_ets, [?DETS, large_private]}]].

to_ets_failure(Module, Dets, F, Args) ->
    with_dets(set, fun() ->
        dets:insert(?DETS, [{1, 2}, {3, 4}]),
        Tabs = tables(Module),
        try apply(Dets, F, [maps:get(Arg, Tabs, Arg) || Arg <- Args]) of
            ok -> {returned, ok, lists:sort(dets:match_object(?DETS, '_'))};
            {error, Reason} -> {error, without_stack(Reason)};
            Tab -> {returned, lists:sort(Module:tab2list(Tab)), dets:info(?DETS, size)}
        catch
            Class:Reason -> {Class, without_stack(Reason)}
        after
            drop(Module, Tabs)
        end
    end).

%% ---- init_table ----

init_table_test_() ->
    [{lists:flatten(io_lib:format("~w ~0p", [Type, Reads])),
      ?LEAK_FREE(?assertEqual(initialised(ets, Type, Reads), initialised(larder, Type, Reads)))}
     || Type <- [set, ordered_set, bag, duplicate_bag],
        Reads <- [[], [[]], [[{1, a}, {2, b}], [{3, c}]], [[{1, a}], [], [{1, b}, {1, c}, {1, a}]],
                  %% An object may be a list of objects.
                  [[[{1, a}], {2, b}]], [[[], [{5, x}]]],
                  %% Something wrong: what came before it is in the table.
                  [[{1, a}], [{2, b}, x, {3, c}]], [[{1, a}, {}]], [[{1, a} | {2, b}]],
                  [[{1, a}], no_list], [[{1, a}], {no, reads}], [[{1, a}], {error, reason}]]].

%% The result or what it exits with; the table then; whether the fun was
%% told to close.
initialised(Module, Type, Reads) ->
    Tab = Module:new(t, [Type]),
    Module:insert(Tab, {old, object}),
    Self = self(),
    Result =
        try Module:init_table(Tab, reader(Self, Reads)) of
            R -> {returned, R}
        catch
            Class:Reason -> {Class, first_of(Reason)}
        end,
    Objects = Module:tab2list(Tab),
    InOrder = Module:lookup(Tab, 1),
    Module:delete(Tab),
    Closed = receive closed -> true after 0 -> false end,
    {Result, lists:sort(Objects), Closed, InOrder}.

reader(Self, Reads) ->
    fun(close) -> Self ! closed, ok;
       (read) -> next(Self, Reads)
    end.

next(_Self, []) -> end_of_input;
next(Self, [Read | Reads]) when is_list(Read); Read =:= no_list -> {Read, reader(Self, Reads)};
next(_Self, [Other | _]) -> Other.

%% The stack trace that follows a reason is not compared.
first_of({Reason, [{_, _, _, _} | _]}) -> Reason;
first_of(Reason) -> Reason.

init_table_errors_test_() ->
    Calls = [[no_such_table, fun(_) -> end_of_input end], [17, fun(_) -> end_of_input end],
             [tab, x], [tab, fun() -> end_of_input end], [tab, fun(_) -> error(oops) end]],
    [?_assertEqual(init_failure(ets, Args), init_failure(larder, Args)) || Args <- Calls].

init_failure(Module, [Tab, Fun]) ->
    Real = case Tab of tab -> Module:new(t, []); _ -> Tab end,
    try
        Module:init_table(Real, Fun)
    catch
        Class:Reason -> {Class, first_of(Reason)}
    after
        [Module:delete(Real) || Tab =:= tab]
    end.
