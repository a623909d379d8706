%% foldl/3 and foldr/3 beside those of ets: on every type, and with a folding
%% function that changes the table under its feet.
-module(larder_fold_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

collect_test_() ->
    [{lists:flatten(io_lib:format("~w ~w ~w", [Type, Fold, Size])),
      ?LEAK_FREE(?assertEqual(collect(ets, Type, Fold, Size), collect(larder, Type, Fold, Size)))}
     || Type <- ?TYPES, Fold <- [foldl, foldr], Size <- [0, 1, 2, 257]].

%% Exact order in an ordered_set. For the other types the order of keys is
%% the table's own, but the objects of one key come in order (foldl) or in
%% reverse (foldr), together.
collect(Module, Type, Fold, Size) ->
    Tab = filled(Module, Type, Size),
    Seen = Module:Fold(fun(Object, Acc) -> [Object | Acc] end, [], Tab),
    Module:delete(Tab),
    case Type of
        ordered_set -> Seen;
        _ -> lists:keysort(1, Seen)
    end.

filled(Module, Type, Size) ->
    Tab = Module:new(t, [Type, public]),
    [Module:insert(Tab, {Key, Value}) || Key <- lists:seq(1, Size), Value <- [c, a, b]],
    Tab.

%% The function deletes a key that is ahead: it is not passed. Every key
%% deletes its partner, so of each pair exactly one is seen, whatever the
%% order.
deleted_ahead_is_not_seen_test_() ->
    [{lists:flatten(io_lib:format("~w ~w", [Type, Fold])),
      ?LEAK_FREE(begin
          Tab = filled(larder, Type, 200),
          Seen = larder:Fold(
              fun({Key, _}, Keys) ->
                  larder:delete(Tab, partner(Key)),
                  [Key | Keys]
              end, [], Tab),
          ?assertEqual(100, larder:info(Tab, size) div per_key(Type)),
          ?assertEqual(100, length(lists:usort(Seen))),
          ?assertEqual(lists:usort(Seen), lists:usort([K || {K, _} <- larder:tab2list(Tab)])),
          larder:delete(Tab)
      end)}
     || Type <- ?TYPES, Fold <- [foldl, foldr]].

partner(Key) when Key rem 2 =:= 0 -> Key - 1;
partner(Key) -> Key + 1.

per_key(Type) when Type =:= bag; Type =:= duplicate_bag -> 3;
per_key(_) -> 1.

%% The function deletes the key it stands on: the fold goes on from it, and
%% empties the table.
deleting_the_key_itself_test_() ->
    [{lists:flatten(io_lib:format("~w ~w", [Type, Fold])),
      ?LEAK_FREE(begin
          Tab = filled(larder, Type, 300),
          Count = larder:Fold(fun({Key, _}, N) -> larder:delete(Tab, Key), N + 1 end, 0, Tab),
          ?assertEqual(300 * per_key(Type), Count),
          ?assertEqual(0, larder:info(Tab, size)),
          ?assertEqual(false, larder:info(Tab, safe_fixed)),
          larder:delete(Tab)
      end)}
     || Type <- ?TYPES, Fold <- [foldl, foldr]].

%% In an ordered_set what is inserted, changed and deleted ahead shows, what is
%% behind does not: the same steps give the same as ets.
ordered_changes_as_ets_test_() ->
    [{atom_to_list(Fold),
      ?LEAK_FREE(?assertEqual(ordered_changes(ets, Fold), ordered_changes(larder, Fold)))}
     || Fold <- [foldl, foldr]].

ordered_changes(Module, Fold) ->
    Tab = filled(Module, ordered_set, 50),
    Seen = Module:Fold(
        fun({Key, Value}, Acc) ->
            change(Module, Tab, Key),
            [{Key, Value} | Acc]
        end, [], Tab),
    After = Module:tab2list(Tab),
    Module:delete(Tab),
    {Seen, After}.

%% Only from the keys of the beginning, or the fold would never end.
change(_Module, _Tab, Key) when not is_integer(Key); Key < 1; Key > 50 ->
    ok;
change(Module, Tab, Key) ->
    Module:insert(Tab, {Key + 0.5, new}),
    Module:insert(Tab, {Key - 0.5, new}),
    Module:insert(Tab, {Key + 2, changed}),
    Module:delete(Tab, Key * 3),
    Module:delete(Tab, Key - 4).

%% What the function inserts after the last key of an ordered_set is passed, too, and if it deletes
%% the table, the fold fails.
changes_at_the_end_as_ets_test_() ->
    [{lists:flatten(io_lib:format("~w ~w", [Type, Size])),
      ?_assertEqual(changed_at_the_end(ets, Type, Size), changed_at_the_end(larder, Type, Size))}
     || Type <- ?TYPES, Size <- [1, 2, 16, 17, 40]].

changed_at_the_end(Module, Type, Size) ->
    Tab = filled(Module, Type, Size),
    Seen = Module:foldl(
        fun({Key, _}, Keys) ->
            [Module:insert(Tab, {Size + 1, new}) || Type =:= ordered_set, Key =:= Size],
            [Key | Keys]
        end, [], Tab),
    Last = hd(Seen),
    Delete = fun({Key, _}, _) -> Key =:= Last andalso Module:delete(Tab) end,
    Fails = try
                Module:foldl(Delete, x, Tab)
            catch
                error:Reason -> {error, Reason}
            end,
    {lists:sort(Seen), Fails, Module:info(Tab, size)}.

%% What is in the table from beginning to end is seen once, while others come
%% and go.
stable_keys_are_seen_once_test_() ->
    [{atom_to_list(Type),
      ?LEAK_FREE(begin
          Tab = filled(larder, Type, 0),
          Stable = lists:seq(1, 2000),
          larder:insert(Tab, [{{stable, K}, x} || K <- Stable]),
          Writer = churn(Tab),
          Folds = [lists:sort(larder:foldl(fun({{stable, K}, _}, Ks) -> [K | Ks]; (_, Ks) -> Ks end,
                                           [], Tab))
                   || _ <- lists:seq(1, 20)],
          stop(Writer),
          [?assertEqual(Stable, Keys) || Keys <- Folds],
          larder:delete(Tab)
      end)}
     || Type <- ?TYPES].

churn(Tab) ->
    spawn_monitor(fun Loop() ->
        [larder:insert(Tab, {{moving, rand:uniform(3000)}, y}) || _ <- lists:seq(1, 50)],
        [larder:delete(Tab, {moving, rand:uniform(3000)}) || _ <- lists:seq(1, 50)],
        receive stop -> ok after 0 -> Loop() end
    end).

stop({Pid, Monitor}) ->
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end.

%% An exception passes through, and the table is not left fixed.
exception_unfixes_test() ->
    Tab = filled(larder, set, 10),
    ?assertError(oops, larder:foldl(fun(_, _) -> error(oops) end, [], Tab)),
    ?assertThrow(out, larder:foldr(fun(_, _) -> throw(out) end, [], Tab)),
    ?assertError(function_clause, larder:foldl(fun() -> x end, [], Tab)),
    ?assertEqual(false, larder:info(Tab, safe_fixed)),
    larder:delete(Tab).

errors_as_ets_test_() ->
    Fun = fun(_, A) -> A end,
    [?_assertEqual(catch_error(ets, F, [Fun, 0, Tab]), catch_error(larder, F, [Fun, 0, Tab]))
     || F <- [foldl, foldr], Tab <- [no_such_table, 17, make_ref()]].

catch_error(Module, F, Args) ->
    try apply(Module, F, Args) of
        Result -> {returned, Result}
    catch
        Class:Reason:Stack ->
            [{Module, Function, _, Info} | _] = Stack,
            {Class, Reason, said(Function),
             maps:remove(module, proplists:get_value(error_info, Info, #{}))}
    end.

%% What fails first within a fold of `ets' from OTP 27 on, and before.
said(soft_whereis) -> safe_fixtable;
said(Function) -> Function.
