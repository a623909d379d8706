%% @doc No function, id, continuation or file lets a process read or write a private table of
%% another, or write a protected one.
%%
%% Every exported function of `larder', and every native function below it, has a row here; a
%% function without one fails `every_function_is_tried_test'. A row is called by a process that is
%% not the owner, on tables of every type and access, by id and by name. What must come of it is
%% worked out from the row's kind and the table's access, and compared with `ets' where `ets' has
%% the function:
%%
%%   kind     public  protected  private
%%   read     works   works      refused
%%   write    works   refused    refused
%%   owner    refused refused    refused
%%   anyone   works   works      works, and shows nothing of what is in the table
%%   none     takes no table
%%
%% Whatever was refused has changed nothing, as the owner sees it, and shows nothing.
-module(isolation_tests).

-export([every_function_is_tried_test/0, every_native_function_is_tried_test/0, refused_test_/0,
         native_refused_test_/0, continuations_test_/0, forged_continuations_test/0,
         forged_ids_test/0,
         gifts_and_heirs_test_/0, files_test_/0]).

-define(SECRET, the_secret).
-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(ALL, [{{'_', '_', '_'}, [], ['$_']}]).
-define(TRUE, [{{'_', '_', '_'}, [], [true]}]).

%% The rows -------------------------------------------------------------------------------------

%% A world is what a call may need: `tab' the id or name, `conts' continuations of the owner by
%% function, `snapshot' one of the table, `feed' a subscription, `handle' the owner's QLC handle,
%% `dets' an open dets table, `dir' a folder.
rows() ->
    tables() ++ objects() ++ keys() ++ indexes() ++ queries() ++ whole() ++ without().

tables() ->
    [{{all, 0}, none, fun(_) -> [] end},
     {{delete, 1}, write, fun t/1},
     {{rename, 2}, write, fun(W) -> [t(tab, W), isolation_renamed] end},
     {{whereis, 1}, anyone, fun(_) -> [isolation] end},
     {{info, 1}, anyone, fun t/1},
     {{info, 2}, anyone, fun(W) -> [t(tab, W), stats] end},
     {{give_away, 3}, owner, fun(W) -> [t(tab, W), maps:get(other, W), gift] end},
     {{setopts, 2}, owner, fun(W) -> [t(tab, W), {heir, self(), mine}] end},
     {{safe_fixtable, 2}, read, fun(W) -> [t(tab, W), true] end},
     {{delete_all_objects, 1}, write, fun t/1},
     {{snapshot, 1}, read, fun t/1},
     {{release, 1}, owner, fun(W) -> [maps:get(snapshot, W)] end},
     {{diff, 2}, read, snapshots()},
     {{subscribe, 3}, read, fun(W) -> [t(tab, W), all, #{}] end},
     {{snapshot_and_subscribe, 3}, read, fun(W) -> [t(tab, W), all, #{}] end},
     {{unsubscribe, 1}, owner, fun(W) -> [maps:get(feed, W)] end}].

objects() ->
    [{{insert, 2}, write, fun(W) -> [t(tab, W), {k1, 7, x}] end},
     {{insert, 3}, {write, bounded}, fun(W) -> [t(tab, W), {k1, 7, x}, #{ttl => 9}] end},
     {{expire, 3}, {write, bounded}, fun(W) -> [t(tab, W), k1, 0] end},
     {{ttl, 2}, {read, bounded}, key()},
     {{insert_new, 2}, write, fun(W) -> [t(tab, W), [{k8, 7, x}, {k9, 7, x}]] end},
     {{lookup, 2}, read, key()},
     {{lookup_many, 2}, read, fun(W) -> [t(tab, W), [k1, k2]] end},
     {{lookup_element, 3}, read, fun(W) -> [t(tab, W), k1, 3] end},
     {{lookup_element, 4}, read, fun(W) -> [t(tab, W), k1, 3, none] end},
     {{lookup_elements, 3}, read, fun(W) -> [t(tab, W), k1, [3, 2]] end},
     {{lookup_elements, 4}, read, fun(W) -> [t(tab, W), k1, [3, 2], none] end},
     {{member, 2}, read, key()},
     {{delete, 2}, write, key()},
     {{delete_object, 2}, write, fun(W) -> [t(tab, W), {k1, 1, ?SECRET}] end},
     {{take, 2}, write, key()},
     {{take_many, 2}, write, fun(W) -> [t(tab, W), [k1, k2]] end},
     {{update_counter, 3}, {write, sets}, fun(W) -> [t(tab, W), k1, 1] end},
     {{update_counter, 4}, {write, sets}, fun(W) -> [t(tab, W), k7, 1, {k7, 0, x}] end},
     {{update_element, 3}, {write, sets}, fun(W) -> [t(tab, W), k1, {3, x}] end},
     {{update_element, 4}, {write, sets}, fun(W) -> [t(tab, W), k7, {3, x}, {k7, 0, y}] end},
     {{update_map, 3}, {write, sets}, fun(W) -> [t(tab, W), k7, [{3, a, 1}]] end},
     {{update_map, 5}, {write, sets}, fun(W) -> [t(tab, W), k7, 3, a, 1] end},
     {{remove_map_key, 4}, {write, sets}, fun(W) -> [t(tab, W), k7, 3, a] end}].

keys() ->
    [{{first, 1}, read, fun t/1}, {{last, 1}, read, fun t/1},
     {{next, 2}, read, key()}, {{prev, 2}, read, key()},
     {{first_lookup, 1}, read, fun t/1}, {{last_lookup, 1}, read, fun t/1},
     {{next_lookup, 2}, read, key()}, {{prev_lookup, 2}, read, key()},
     {{slot, 2}, read, fun(W) -> [t(tab, W), 0] end},
     {{rank, 2}, {read, ordered}, key()},
     {{nth, 2}, {read, ordered}, fun(W) -> [t(tab, W), 1] end},
     {{slice, 3}, {read, ordered}, fun(W) -> [t(tab, W), 1, 2] end},
     {{count_range, 3}, {read, ordered}, fun(W) -> [t(tab, W), k1, k3] end}].

indexes() ->
    [{{add_index, 2}, write, fun(W) -> [t(tab, W), {other, 3, []}] end},
     {{drop_index, 2}, write, fun(W) -> [t(tab, W), second] end},
     {{index_lookup, 3}, read, fun(W) -> [t(tab, W), second, 1] end},
     {{index_select, 1}, read, continuation(index_select)},
     {{index_select, 3}, read, fun(W) -> [t(tab, W), second, ?ALL] end},
     {{index_select, 4}, read, fun(W) -> [t(tab, W), second, ?ALL, 1] end},
     {{explain, 2}, read, fun(W) -> [t(tab, W), ?ALL] end}].

queries() ->
    Pattern = {'_', '_', '$1'},
    [{{match, 1}, read, continuation(match)},
     {{match, 2}, read, fun(W) -> [t(tab, W), Pattern] end},
     {{match, 3}, read, fun(W) -> [t(tab, W), Pattern, 1] end},
     {{match_object, 1}, read, continuation(match_object)},
     {{match_object, 2}, read, fun(W) -> [t(tab, W), Pattern] end},
     {{match_object, 3}, read, fun(W) -> [t(tab, W), Pattern, 1] end},
     {{match_delete, 2}, write, fun(W) -> [t(tab, W), Pattern] end},
     {{select, 1}, read, continuation(select)},
     {{select, 2}, read, fun(W) -> [t(tab, W), ?ALL] end},
     {{select, 3}, read, fun(W) -> [t(tab, W), ?ALL, 1] end},
     {{select_reverse, 1}, read, continuation(select_reverse)},
     {{select_reverse, 2}, read, fun(W) -> [t(tab, W), ?ALL] end},
     {{select_reverse, 3}, read, fun(W) -> [t(tab, W), ?ALL, 1] end},
     {{select_count, 2}, read, fun(W) -> [t(tab, W), ?TRUE] end},
     {{select_delete, 2}, write, fun(W) -> [t(tab, W), ?TRUE] end},
     {{select_take, 2}, write, fun(W) -> [t(tab, W), ?ALL] end},
     {{select_replace, 2}, {write, no_bag},
      fun(W) -> [t(tab, W), [{{'$1', '_', '_'}, [], [{{'$1', 0, 0}}]}]] end},
     {{tab2list, 1}, read, fun t/1}].

whole() ->
    Add = fun(Object, Acc) -> [Object | Acc] end,
    [{{foldl, 3}, read, fun(W) -> [Add, [], t(tab, W)] end},
     {{foldr, 3}, read, fun(W) -> [Add, [], t(tab, W)] end},
     {{init_table, 2}, write, fun(W) -> [t(tab, W), fun(_) -> end_of_input end] end},
     {{from_dets, 2}, write, fun(W) -> [t(tab, W), maps:get(dets, W)] end},
     {{to_dets, 2}, read, fun(W) -> [t(tab, W), maps:get(dets, W)] end},
     {{tab2file, 2}, read, fun(W) -> [t(tab, W), file("saved", W)] end},
     {{tab2file, 3}, read, fun(W) -> [t(tab, W), file("saved", W), [{sync, false}]] end},
     {{table, 1}, read, fun t/1},
     {{table, 2}, read, fun(W) -> [t(tab, W), [{traverse, first_next}]] end},
     {{transaction, 2}, read, fun(W) -> [[t(tab, W)], fun([X]) -> larder:lookup(X, k1) end] end},
     {{transaction, 3}, read, fun(W) -> [[t(tab, W)], fun([X]) -> larder:tab2list(X) end, #{retries => 0}] end},
     {{commit, 1}, write, fun(W) -> [[{insert, t(tab, W), {k1, 7, x}}]] end},
     {{i, 1}, read, fun t/1},
     {{i, 2}, read, fun(W) -> [t(tab, W), 20] end},
     {{i, 3}, read, fun(W) -> [t(tab, W), 20, 80] end}].

%% They take no table, or make one of the caller's own.
without() ->
    [{{F, A}, none, fun(_) -> [] end}
     || {F, A} <- [{new, 2}, {structures, 0}, {memory, 0}, {memory, 1}, {top, 2},
                   {file2tab, 1}, {file2tab, 2}, {tabfile_info, 1},
                   {prepare, 1}, {match_spec_compile, 1},
                   {match_spec_run, 2}, {is_compiled_ms, 1}, {repair_continuation, 2}, {test_ms, 2},
                   {fun2ms, 1},
                   {i, 0}, {abort, 1}, {format_error, 2}]].

%% The native functions below, with what they need to work on a table that one may use.
native_rows() ->
    Key = key(),
    Named = fun(Name, Kind, Args) -> {Name, Kind, Args} end,
    [Named(delete_table, write, fun t/1),
     Named(rename, write, fun(W) -> [t(tab, W), isolation_renamed] end),
     Named(give_away, owner, fun(W) -> [t(tab, W), maps:get(other, W), gift] end),
     Named(setopts, owner, fun(W) -> [t(tab, W), {protection, public}] end),
     Named(safe_fixtable, read, fun(W) -> [t(tab, W), true] end),
     Named(delete_all_objects, write, fun t/1),
     Named(snapshot, read, fun(W) -> [[t(tab, W)]] end),
     Named(release, owner, fun(W) -> [maps:get(snapshot, W)] end),
     Named(diff, read, snapshots()),
     Named(begin_transaction, read, fun(W) -> [[t(tab, W)], false] end),
     Named(commit, write, fun(W) -> [[{insert, t(tab, W), {k1, 7, x}}], false] end),
     Named(subscribe, read, fun(W) -> [t(tab, W), all, 9, self()] end),
     Named(snapshot_and_subscribe, read, fun(W) -> [t(tab, W), all, 9, self()] end),
     Named(feed_next, owner, fun(W) -> [maps:get(feed, W), 9, false] end),
     Named(unsubscribe, owner, fun(W) -> [maps:get(feed, W)] end),
     Named(guard_of_next, anyone, fun(W) -> [t(tab, W), maps:get(other, W)] end),
     Named(info, anyone, fun(W) -> [t(tab, W), stats] end),
     Named(info_list, anyone, fun(W) -> [t(tab, W), [size, owner, memory]] end),
     Named(insert, write, fun(W) -> [t(tab, W), {k1, 7, x}] end),
     Named(insert_with, {write, bounded}, fun(W) -> [t(tab, W), {k1, 7, x}, 9] end),
     Named(expire, {write, bounded}, fun(W) -> [t(tab, W), k1, 0] end),
     Named(ttl, {read, bounded}, Key),
     Named(insert_new, write, fun(W) -> [t(tab, W), {k9, 7, x}] end),
     Named(insert_list, write, fun(W) -> [t(tab, W), [{k1, 7, x}]] end),
     Named(insert_new_list, write, fun(W) -> [t(tab, W), [{k9, 7, x}]] end),
     Named(lookup, read, Key), Named(member, read, Key), Named(delete, write, Key),
     Named(take, write, Key),
     Named(next, read, Key), Named(prev, read, Key), Named(next_lookup, read, Key),
     Named(prev_lookup, read, Key),
     Named(first, read, fun t/1), Named(last, read, fun t/1), Named(first_lookup, read, fun t/1),
     Named(last_lookup, read, fun t/1), Named(every, read, fun t/1),
     Named(lookup_many, read, fun(W) -> [t(tab, W), [k1, k2], []] end),
     Named(take_many, write, fun(W) -> [t(tab, W), [k1, k2], []] end),
     Named(lookup_element, read, fun(W) -> [t(tab, W), k1, 3] end),
     Named(lookup_element_default, read, fun(W) -> [t(tab, W), k1, 3, none] end),
     Named(lookup_elements, read, fun(W) -> [t(tab, W), k1, [3, 2]] end),
     Named(lookup_elements_default, read, fun(W) -> [t(tab, W), k1, [3, 2], none] end),
     Named(delete_object, write, fun(W) -> [t(tab, W), {k1, 1, ?SECRET}] end),
     Named(update_counter, {write, sets}, fun(W) -> [t(tab, W), k1, 1] end),
     Named(update_counter_default, {write, sets}, fun(W) -> [t(tab, W), k1, 1, {k, 0, x}] end),
     Named(update_element, {write, sets}, fun(W) -> [t(tab, W), k1, {3, x}] end),
     Named(update_element_default, {write, sets}, fun(W) -> [t(tab, W), k1, {3, x}, {k, 0, x}] end),
     Named(update_map, {write, sets}, fun(W) -> [t(tab, W), k7, [{3, a, 1}]] end),
     Named(slot, read, fun(W) -> [t(tab, W), 0] end),
     Named(rank, {read, ordered}, Key),
     Named(nth, {read, ordered}, fun(W) -> [t(tab, W), 1] end),
     Named(slice, {read, ordered}, fun(W) -> [t(tab, W), 1, 2] end),
     Named(count_range, {read, ordered}, fun(W) -> [t(tab, W), k1, k3] end),
     Named(add_index, write, fun(W) -> [t(tab, W), {other, 3, []}] end),
     Named(drop_index, write, fun(W) -> [t(tab, W), second] end),
     Named(index_lookup, read, fun(W) -> [t(tab, W), second, 1] end),
     Named(index_select_all, read, fun(W) -> [t(tab, W), second, ?ALL] end),
     Named(index_select_some, read, fun(W) -> [t(tab, W), second, ?ALL, 1] end),
     Named(index_select_again, read,
           fun(W) ->
               tuple_to_list(setelement(1, maps:get(index_select, maps:get(conts, W)), t(tab, W)))
           end),
     Named(explain, read, fun(W) -> [t(tab, W), ?ALL] end),
     Named(fold_first, read, fun(W) -> [t(tab, W), forward] end),
     Named(fold_next, read,
           fun(W) -> [t(tab, W), forward, k1, element(2, maps:get(fold, W)), 1] end),
     Named(fold_holds, read, fun(W) -> [t(tab, W), element(2, maps:get(fold, W))] end),
     Named(select_all, read, fun(W) -> [t(tab, W), select, ?ALL, forward] end),
     Named(select_some, read, fun(W) -> [t(tab, W), select, ?ALL, 1, forward] end),
     Named(select_again, read,
           fun(W) ->
               tuple_to_list(setelement(1, maps:get(select, maps:get(conts, W)), t(tab, W))) end),
     Named(select_count, read, fun(W) -> [t(tab, W), ?TRUE] end),
     Named(select_delete, write, fun(W) -> [t(tab, W), ?TRUE] end),
     Named(select_take, write, fun(W) -> [t(tab, W), ?ALL] end),
     Named(match_delete, write, fun(W) -> [t(tab, W), '_'] end),
     Named(select_replace, {write, no_bag},
           fun(W) -> [t(tab, W), [{{'$1', '_', '_'}, [], [{{'$1', 0, 0}}]}]] end),
     Named(save, read, fun(W) -> [t(tab, W), list_to_binary(file("native", W)), false, <<>>] end)].

native_without() ->
    [new, whereis, all, commit_transaction, end_transaction, guard_wanted, structures, fault,
     memory, compile, prepare, parameters, prepare_fault, is_compiled, run, test, load_table,
     file_header, huge_pages].

t(W) -> [t(tab, W)].
t(Key, W) -> maps:get(Key, W).
key() -> fun(W) -> [t(tab, W), k1] end.
snapshots() -> fun(W) -> [maps:get(snapshot, W), maps:get(snapshot, W)] end.
continuation(F) -> fun(W) -> [maps:get(F, maps:get(conts, W))] end.
file(Name, W) -> filename:join(maps:get(dir, W), Name).

%% Nothing is left out --------------------------------------------------------------------------

every_function_is_tried_test() ->
    Tried = lists:sort([FA || {FA, _, _} <- rows()]),
    [] = Tried -- lists:usort(Tried),
    Tried = lists:sort(larder:module_info(exports) -- [{module_info, 0}, {module_info, 1}]).

every_native_function_is_tried_test() ->
    Tried = lists:usort([F || {F, _, _} <- native_rows()] ++ native_without()),
    Tried = lists:usort([F || {F, _} <- larder_nif:module_info(exports), F =/= module_info]).

%% Every function, by somebody else ----------------------------------------------------------------

refused_test_() ->
    %% Its servers stay.
    _ = dets:start(),
    [larder_test:tc(lists:concat(["every function on others' ", Access, " tables, ", Type]), 120,
                    Sut, fun() ->
        with_dets(fun(Dets, Dir) ->
            [] = [Wrong || Row <- rows(), element(2, Row) =/= none, How <- [by_id, by_name],
                           Wrong <- tried(Sut, Row, Type, Access, How, Dets, Dir)]
        end)
     end) || Sut <- larder_test:other_suts(), Type <- ?TYPES,
     Access <- [public, protected, private]].

tried(Sut, {{F, A}, Kind, Args}, Type, Access, How, Dets, Dir) ->
    Outcome = attempt(Sut, F, Args, Type, Access, How, Dets, Dir),
    [{F, A, Type, Access, How, Why, Outcome}
     || Why <- wrong(expected(Kind, Access, Type), Access, Outcome)
            ++ [unlike_ets || erlang:function_exported(ets, F, A),
                              unlike(Outcome,
                                     attempt(ets, F, Args, Type, Access, How, Dets, Dir))]].

expected(anyone, _, _) -> works;
expected(owner, _, _) -> refused;
expected({write, sets}, Access, Type) when Type =:= set;
Type =:= ordered_set -> expected(write, Access, Type);
expected({read, ordered}, Access, ordered_set) -> expected(read, Access, ordered_set);
expected({Kind, bounded}, Access, set) -> expected(Kind, Access, set);
expected({write, no_bag}, Access, Type) when Type =/= bag -> expected(write, Access, Type);
expected({_, _}, _, _) -> refused;
expected(_, public, _) -> works;
expected(read, protected, _) -> works;
expected(_, _, _) -> refused.

wrong(Expected, Access, #{said := Said, shown := Shown, before := Before, later := After}) ->
    [expected_to_work || Expected =:= works, Said =/= works]
        ++ [expected_to_be_refused || Expected =:= refused, Said =:= works]
        ++ [changed || Expected =:= refused orelse Access =/= public, Before =/= After]
        ++ [shows_the_secret || Access =:= private, Shown].

unlike(#{said := Said, before := Before, later := After}, #{said := Theirs, later := EtsAfter}) ->
    (Said =:= works) =/= (Theirs =:= works)
        orelse (is_tuple(Said) andalso element(1, Said) =/= element(1, Theirs))
        orelse (Before =:= After andalso Theirs =/= works
                andalso same_fields(After) =/= same_fields(EtsAfter)).

same_fields({Objects, _, Access, Heir, Size}) -> {Objects, Access, Heir, Size};
same_fields(gone) -> gone.

%% A table of its own for each call; the call by a process of its own.
attempt(M, F, Args, Type, Access, How, Dets, Dir) ->
    Owner = start_owner(M, Type, Access, How),
    Other = spawn(fun() -> receive stop -> ok end end),
    World = (ask(Owner, world))#{dets => Dets, dir => Dir, other => Other},
    Before = ask(Owner, look),
    {Said, Shown} = as_somebody(fun() -> called(M, F, Args(World)) end),
    After = ask(Owner, look),
    stop(Owner),
    Other ! stop,
    #{said => Said, shown => Shown, before => Before, later => After}.

%% What it said, and whether the secret is in what it said or printed.
called(M, F, Args) ->
    {{Said, Result}, Printed} = larder_test_io:capture(fun() ->
        try done(F, apply(M, F, Args)) of
            {error, Why} -> {{error, returned}, Why};
            {larder, Why} -> {{error, native}, Why};
            Result -> {works, Result}
        catch
            error:{larder, Why} -> {{error, native}, Why};
            Class:Reason -> {{Class, badarg_or(Reason)}, Reason}
        end
    end, ["q\n"]),
    {Said, has_secret(Result) orelse string:find(Printed, atom_to_list(?SECRET)) =/= nomatch}.

%% A handle does nothing until it is asked.
done(table, Handle) ->
    case qlc:e(Handle) of
        {error, _, _} = Error -> error(Error);
        Answers -> Answers
    end;
done(_, Result) -> Result.

badarg_or(badarg) -> badarg;
badarg_or({badarg, _}) -> badarg;
badarg_or(Reason) when is_tuple(Reason) -> element(1, Reason);
badarg_or(Reason) -> Reason.

has_secret(Term) ->
    binary:match(term_to_binary(Term), atom_to_binary(?SECRET)) =/= nomatch.

%% Owners and others -------------------------------------------------------------------------------

start_owner(M, Type, Access, How) ->
    Self = self(),
    Owner = spawn_link(fun() ->
        %% A set is bounded, for the functions that are for such tables alone, and each table has an
        %% index.
        Bounds = [{ttl, infinity} || M =:= larder, Type =:= set],
        Index = [{index, [{second, 2, []}]} || M =:= larder],
        Tab = M:new(isolation, [Type, Access] ++ Bounds ++ Index ++ [named_table || How =:= by_name]),
        true = M:insert(Tab, [{k1, 1, ?SECRET}, {k2, 2, ?SECRET}, {k3, 3, ?SECRET}]),
        Self ! {self(), ready},
        owner(M, Tab)
    end),
    receive {Owner, ready} -> Owner end.

owner(M, Tab) ->
    receive
        {From, {apply, Fun}} -> From ! {self(), Fun(Tab)}, owner(M, Tab);
        {From, world} -> From ! {self(), world(M, Tab)}, owner(M, Tab);
        {From, look} -> From ! {self(), look(M, Tab)}, owner(M, Tab);
        {'ETS-TRANSFER', _, _, _} -> owner(M, Tab);
        {From, stop} ->
            unlink(From),
            _ = (catch M:delete(Tab)),
            From ! {self(), stopped}
    end.

world(M, Tab) ->
    Pattern = {'_', '_', '$1'},
    Next = fun({_, C}) -> C end,
    World = #{tab => Tab,
              conts => #{match => Next(M:match(Tab, Pattern, 1)),
                         match_object => Next(M:match_object(Tab, Pattern, 1)),
                         select => Next(M:select(Tab, ?ALL, 1)),
                         select_reverse => Next(M:select_reverse(Tab, ?ALL, 1))}},
    case M of
        larder ->
            Conts = maps:get(conts, World),
            More = Conts#{index_select => Next(larder:index_select(Tab, second, ?ALL, 1))},
            World#{conts => More, fold => larder_nif:fold_first(Tab, forward),
                         snapshot => larder:snapshot(Tab),
                         feed => larder:subscribe(Tab, all, #{})};
        _ -> World
    end.

%% All that others might have changed; a renamed table is another's doing, too.
look(M, Tab) ->
    case M:info(Tab, size) of
        undefined -> gone;
        Size ->
            {lists:sort(M:tab2list(Tab)), M:info(Tab, name), M:info(Tab, protection),
             M:info(Tab, heir), Size}
    end.

ask(Pid, What) ->
    Pid ! {self(), What},
    receive {Pid, Answer} -> Answer end.

stop(Owner) ->
    stopped = ask(Owner, stop).

%% Runs a fun in a process that is nobody's owner.
as_somebody(Fun) ->
    {Pid, Mon} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Mon, process, Pid, {result, Result}} -> Result;
        {'DOWN', Mon, process, Pid, Why} -> error({somebody_failed, Why})
    end.

with_dets(Fun) ->
    Dir = larder_test:file("isolation"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    {ok, Dets} = dets:open_file(isolation_dets, [{file, filename:join(Dir, "dets")}, {type, set}]),
    try
        ok = dets:insert(Dets, {k5, 5, public_knowledge}),
        Fun(Dets, Dir)
    after
        _ = dets:close(Dets),
        _ = file:del_dir_r(Dir)
    end.

%% The native functions ----------------------------------------------------------------------------

%% The same rows one level down: whoever calls the native functions directly gets no further.
native_refused_test_() ->
    [larder_test:tc(lists:concat(["native functions on others' ", Access, " tables, ", Type]), 60,
                    larder, fun() ->
        with_dets(fun(Dets, Dir) ->
            [] = [{F, Type, How, Why, Outcome}
                  || {F, Kind, Args} <- native_rows(), How <- [by_id, by_name],
                     Outcome <- [native_attempt(F, Args, Type, Access, How, Dets, Dir)],
                     Why <- wrong(expected(Kind, Access, Type), Access, Outcome)]
        end)
     end) || larder_test:sut() =:= larder, Type <- ?TYPES, Access <- [public, protected, private]].

native_attempt(F, Args, Type, Access, How, Dets, Dir) ->
    Owner = start_owner(larder, Type, Access, How),
    Other = spawn(fun() -> receive stop -> ok end end),
    World = (ask(Owner, world))#{dets => Dets, dir => Dir, other => Other},
    Before = ask(Owner, look),
    {Said, Shown} = as_somebody(fun() -> called(larder_nif, F, Args(World)) end),
    After = ask(Owner, look),
    stop(Owner),
    Other ! stop,
    #{said => Said, shown => Shown, before => Before, later => After}.

%% Continuations -----------------------------------------------------------------------------------

%% A continuation carries no right: the owner's is of no use to others, also not after a repair,
%% also not when the owner took it before the table became private, or before it gave the table
%% away.
continuations_test_() ->
    [larder_test:tc(lists:concat(["continuations, ", Type]), 30, Sut, fun() ->
        [continuations(Sut, Type, How) || How <- [by_id, by_name]]
     end) || Sut <- larder_test:suts(), Type <- ?TYPES].

continuations(M, Type, How) ->
    Owner = start_owner(M, Type, protected, How),
    #{tab := Tab, conts := Theirs} = ask(Owner, world),
    %% What one was allowed to begin oneself, too.
    {_, Mine} = M:select(Tab, ?ALL, 1),
    All = [{select, Mine} | maps:to_list(Theirs)],
    [{[_ | _], _} = M:F(C) || {F, C} <- All],
    true = ask(Owner, {apply, fun(T) -> M:setopts(T, {protection, private}) end}),
    [badarg = reason(fun() -> M:F(C) end) || {F, C} <- All],
    [badarg = reason(fun() ->
        M:F(M:repair_continuation(binary_to_term(term_to_binary(C)), ?ALL)) end) || {F, C} <- All],
    %% The owner's is still good, until the table is somebody else's.
    [{[_ | _], _} = ask(Owner, {apply, fun(_) -> M:F(C) end}) || {F, C} <- All],
    Self = self(),
    true = ask(Owner, {apply, fun(T) -> M:give_away(T, Self, mine) end}),
    receive {'ETS-TRANSFER', Tab, Owner, mine} -> ok end,
    [{[_ | _], _} = M:F(C) || {F, C} <- All],
    [badarg = ask(Owner, {apply, fun(_) -> reason(fun() -> M:F(C) end) end}) || {F, C} <- All],
    true = M:delete(Tab),
    stop(Owner).

reason(Fun) ->
    try Fun() of Result -> {works, Result}
    catch error:Reason -> Reason
    end.

%% The parts of a continuation are in the open; with another's table in place of one's own it is
%% refused.
forged_continuations_test() ->
    larder_test:ensure_loaded(larder),
    Owner = start_owner(larder, set, private, by_id),
    #{tab := Theirs, conts := #{select := TheirC}} = ask(Owner, world),
    Mine = larder:new(mine, [private]),
    true = larder:insert(Mine, [{K, 1, mine} || K <- lists:seq(1, 9)]),
    {_, C} = larder:select(Mine, ?ALL, 1),
    [badarg = reason(fun() -> larder:select(Forged) end)
     || Forged <- [setelement(1, C, Theirs), setelement(3, setelement(1, C, Theirs), backward),
                   setelement(4, setelement(1, C, Theirs), <<>>),
                   setelement(4, TheirC, element(4, C)),
                   setelement(5, TheirC, element(5, C)), setelement(2, TheirC, 1 bsl 40)]],
    [made_up_places(Type) || Type <- [set, ordered_set, bag, duplicate_bag]],
    %% The same by an index. Entries of lesser values, with short and long keys, come before the
    %% sought ones.
    true = larder:add_index(Mine, {second, 2, []}),
    true = larder:insert(Mine, [{1.5, 0, mine}, {binary:copy(<<"k">>, 50), -1, mine}]),
    {_, I} = larder:index_select(Mine, second, [{{'_', 1, '_'}, [], ['$_']}], 1),
    [N] = [N || N <- lists:seq(1, tuple_size(I)), is_binary(element(N, I))],
    [case reason(fun() -> larder:index_select(setelement(N, I, Place)) end) of
         badarg -> ok;
         {works, '$end_of_table'} -> ok;
         {works, {Objects, _}} -> [] = [O || O <- Objects, element(2, O) =/= 1]
     end || Place <- [<<1, 0:128, Bytes/binary>> || Bytes <- [<<0>>, <<255>>, <<>>, <<0:800>>]]
                         ++ places(element(N, I))],
    true = larder:delete(Mine),
    stop(Owner).

%% A place made up, in one's own table: an error or some of one's own objects, never a crash.
made_up_places(Type) ->
    Mine = larder:new(mine, [private, Type]),
    true = larder:insert(Mine, [{K, 1, mine} || K <- lists:seq(1, 9)]),
    {_, C} = larder:select(Mine, ?ALL, 1),
    %% The last ones end in the mark of a number that is longer than they are.
    [case reason(fun() -> larder:select(setelement(4, C, Place)) end) of
         badarg -> ok;
         {works, '$end_of_table'} -> ok;
         {works, {Objects, _}} -> [] = [O || O <- Objects, element(3, O) =/= mine]
     end || Place <- places(element(4, C))
                         ++ [<<Tag, 0:64, Mark>> || Tag <- [1, 2], Mark <- lists:seq(128, 255)]],
    true = larder:delete(Mine).

places(Place) ->
    Size = byte_size(Place),
    [<<>>, <<0>>, <<255>>, <<0:800>>, rand:bytes(40)]
        ++ [binary:part(Place, 0, N) || N <- lists:seq(0, Size - 1)]
        ++ [<<Place/binary, 0>>]
        ++ [begin <<A:N/bitstring, B:1,
                    R/bitstring>> = Place, <<A/bitstring, (1 - B):1, R/bitstring>> end
            || N <- lists:seq(0, 8 * Size - 1)].

%% Ids ---------------------------------------------------------------------------------------------

%% An id gives no right by being known, and no reference that was made up leads anywhere: here all
%% that differ from a table's in one bit, through the external format (but for its length, where OTP
%% 25 makes terms that bring it down). They can still be stored.
forged_ids_test() ->
    larder_test:ensure_loaded(larder),
    Owner = start_owner(larder, set, private, by_id),
    #{tab := Tab} = ask(Owner, world),
    Outside = term_to_binary(Tab),
    Tab = binary_to_term(Outside),
    badarg = reason(fun() -> larder:lookup(binary_to_term(Outside), k1) end),
    Mine = larder:new(mine, []),
    Forged = lists:usort([R
                          || N <- lists:seq(32, bit_size(Outside) - 1),
                             R <- read(flipped(N, Outside)), R =/= Tab]),
    true = length(Forged) > 60,
    [badarg = reason(fun() -> larder:lookup(R, k1) end) || R <- Forged],
    [undefined_or_badarg(reason(fun() -> larder:info(R) end)) || R <- Forged],
    true = larder:insert(Mine, [{R, R} || R <- Forged]),
    [[{R, R}] = larder:lookup(Mine, R) || R <- Forged],
    true = larder:delete(Mine),
    stop(Owner).

undefined_or_badarg({works, undefined}) -> ok;
undefined_or_badarg(badarg) -> ok.

flipped(N, Bytes) ->
    <<A:N/bitstring, B:1, R/bitstring>> = Bytes,
    <<A/bitstring, (1 - B):1, R/bitstring>>.

%% Only what still is a reference.
read(Bytes) ->
    try binary_to_term(Bytes, [safe]) of
        R when is_reference(R) -> [R];
        _ -> []
    catch error:badarg -> []
    end.

%% Those who get a table ---------------------------------------------------------------------------

%% An heir has no right before it inherits and all rights then; who gave a table away has none any
%% more.
gifts_and_heirs_test_() ->
    [larder_test:tc(lists:concat(["gifts and heirs, ", Type]), 30, Sut, fun() ->
        Self = self(),
        Owner = start_owner(Sut, Type, private, by_id),
        #{tab := Tab} = ask(Owner, world),
        true = ask(Owner, {apply, fun(T) -> Sut:setopts(T, {heir, Self, bequest}) end}),
        badarg = reason(fun() -> Sut:lookup(Tab, k1) end),
        badarg = reason(fun() -> Sut:insert(Tab, {k1}) end),
        badarg = reason(fun() -> Sut:give_away(Tab, Self, mine) end),
        badarg = reason(fun() -> Sut:setopts(Tab, {protection, public}) end),
        unlink(Owner),
        exit(Owner, kill),
        receive {'ETS-TRANSFER', Tab, Owner,
                 bequest} -> ok after 5000 -> error(nothing_inherited) end,
        [{k1, 1, ?SECRET}] = Sut:lookup(Tab, k1),
        Next = spawn_link(fun() ->
            receive {'ETS-TRANSFER', Tab, Self, gift} -> owner(Sut, Tab) end end),
        true = Sut:give_away(Tab, Next, gift),
        badarg = reason(fun() -> Sut:lookup(Tab, k1) end),
        badarg = reason(fun() -> Sut:delete(Tab) end),
        [{k1, 1, ?SECRET}] = ask(Next, {apply, fun(T) -> Sut:lookup(T, k1) end}),
        stop(Next)
     end) || Sut <- larder_test:suts(), Type <- ?TYPES].

%% Files -------------------------------------------------------------------------------------------

%% Loading a private table's file makes a table of the loader's own, and never one in another's
%% place.
files_test_() ->
    [larder_test:tc("files of private tables", 30, Sut, fun() ->
        with_dets(fun(_, Dir) -> [private_file(Sut, Dir, How) || How <- [by_id, by_name]] end)
     end) || Sut <- larder_test:suts()].

private_file(M, Dir, How) ->
    File = filename:join(Dir, "private"),
    Owner = start_owner(M, set, private, How),
    #{tab := Tab} = ask(Owner, world),
    ok = ask(Owner, {apply, fun(T) -> M:tab2file(T, File) end}),
    Before = ask(Owner, look),
    case How of
        by_name ->
            {error, cannot_create_table} = M:file2tab(File);
        by_id ->
            {ok, Copy} = M:file2tab(File),
            true = Copy =/= Tab,
            true = M:delete_all_objects(Copy),
            true = M:delete(Copy)
    end,
    badarg = reason(fun() -> M:lookup(Tab, k1) end),
    Before = ask(Owner, look),
    stop(Owner).
