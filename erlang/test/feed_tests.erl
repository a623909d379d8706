%% Feeds: a process that follows a table has what the table has; what was lost is
%% said; subscriptions end with whom they belong to.
-module(feed_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(MANY, #{limit => 1 bsl 30, mailbox => 1 bsl 30}).

events_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [public]),
        Ref = larder:subscribe(Tab, all, #{}),
        Large = binary:copy(<<"larder">>, 100),
        true = larder:insert(Tab, {a, 1}),
        true = larder:insert(Tab, [{b, Large}, {c, #{x => [1.5, self()]}}]),
        2 = larder:update_counter(Tab, a, 1),
        true = larder:update_element(Tab, b, {2, 7}),
        [_] = larder:take(Tab, b),
        true = larder:delete(Tab, b),
        1 = larder:select_delete(Tab, [{{a, '_'}, [], [true]}]),
        true = larder:delete_all_objects(Tab),
        true = larder:delete(Tab),
        Messages = messages(Ref, gone),
        ?assertEqual([{insert, {a, 1}},
                      [{insert, {b, Large}}, {insert, {c, #{x => [1.5, self()]}}}],
                      {replace, {a, 1}, {a, 2}},
                      {replace, {b, Large}, {b, 7}},
                      {delete, {b, 7}},
                      {delete, {a, 2}},
                      clear,
                      gone], [Event || {_, Event} <- Messages]),
        Seqs = [Seq || {Seq, _} <- Messages],
        ?assertEqual(lists:usort(Seqs), Seqs),
        true = larder:unsubscribe(Ref)
    end).

%% The messages of a subscription up to an event, that included.
messages(Ref, Last) ->
    receive
        {larder, Ref, Seq, Last} -> [{Seq, Last}];
        {larder, Ref, Seq, Event} -> [{Seq, Event} | messages(Ref, Last)]
    after 10000 ->
        error({no_message, Ref, Last})
    end.

%% One call doesn't make many large terms.
large_objects_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, []),
        Feed = larder_nif:subscribe(Tab, all, 1000, self()),
        Large = lists:seq(1, 20000),
        [true = larder:insert(Tab, {key, N, Large}) || N <- lists:seq(1, 100)],
        true = larder:delete(Tab),
        Fetches = fetches(Feed),
        ?assertEqual(101, lists:sum(Fetches)),
        ?assert(lists:max(Fetches) =< 3)
    end).

fetches(Feed) ->
    case larder_nif:feed_next(Feed, 100, false) of
        {some, Commits} -> [length(Commits) | fetches(Feed)];
        {over, Commits} -> [length(Commits)]
    end.

%% The objects of one key that go together are one message.
bag_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [bag]),
        Ref = larder:subscribe(Tab, all, #{}),
        true = larder:insert(Tab, [{a, 1}, {a, 2}]),
        true = larder:insert(Tab, {a, 1}),
        true = larder:delete(Tab, a),
        true = larder:delete(Tab),
        ?assertMatch([{_, [{insert, {a, 1}}, {insert, {a, 2}}]},
                      {_, [{delete, {a, 1}}, {delete, {a, 2}}]},
                      {_, gone}], messages(Ref, gone))
    end).

filter_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, []),
        Ref = larder:subscribe(Tab, [{{'_', '$1'}, [{'>', '$1', 10}], [true]}], #{}),
        true = larder:insert(Tab, [{a, 1}, {b, 11}, {c, 2}]),
        15 = larder:update_counter(Tab, a, 14),
        5 = larder:update_counter(Tab, a, -10),
        4 = larder:update_counter(Tab, a, -1),
        true = larder:delete(Tab, b),
        true = larder:delete(Tab, c),
        true = larder:delete(Tab),
        ?assertMatch([{_, {insert, {b, 11}}},
                      {_, {replace, {a, 1}, {a, 15}}},
                      {_, {replace, {a, 15}, {a, 5}}},
                      {_, {delete, {b, 11}}},
                      {_, gone}], messages(Ref, gone))
    end).

%% In a filter, self() is the subscriber.
filter_of_self_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, []),
        Ref = larder:subscribe(Tab, [{{'_', '$1'}, [{'=:=', '$1', {self}}], ['$_']}], #{}),
        Other = spawn(fun() -> ok end),
        true = larder:insert(Tab, [{a, Other}, {b, self()}]),
        true = larder:delete(Tab),
        Me = self(),
        ?assertMatch([{_, {insert, {b, Me}}}, {_, gone}], messages(Ref, gone))
    end).

%% ---- mirrors ----

mirror_test_() ->
    [{atom_to_list(Type), {timeout, 120, ?LEAK_FREE(mirror(Type, Seed))}}
     || Type <- ?TYPES, Seed <- [1, 2]].

mirror(Type, Seed) ->
    Tab = larder:new(t, [Type, public]),
    change_often(Tab, Seed, 200),
    {Snapshot, Ref} = larder:snapshot_and_subscribe(Tab, all, ?MANY),
    Rows = lists:sort(larder:tab2list(Snapshot)),
    ?assertEqual(lists:sort(larder:tab2list(Tab)), Rows),
    change_often(Tab, Seed + 100, 2000),
    End = lists:sort(larder:tab2list(Tab)),
    true = larder:delete(Tab),
    ?assertEqual(End, lists:sort(follow(Ref, Rows))),
    true = larder:release(Snapshot).

%% Three processes write from before the snapshot to the end.
mirror_beside_writers_test_() ->
    [{atom_to_list(Type), {timeout, 120, ?LEAK_FREE(mirror_beside_writers(Type))}}
     || Type <- ?TYPES].

mirror_beside_writers(Type) ->
    Tab = larder:new(t, [Type, public]),
    Writers = [spawn_monitor(fun() -> change_often(Tab, Seed, 3000) end) || Seed <- [1, 2, 3]],
    timer:sleep(2),
    {Snapshot, Ref} = larder:snapshot_and_subscribe(Tab, all, ?MANY),
    Rows = larder:tab2list(Snapshot),
    true = larder:release(Snapshot),
    [receive {'DOWN', Monitor, process, _, Why} -> ?assertEqual(normal, Why) end
     || {_, Monitor} <- Writers],
    End = lists:sort(larder:tab2list(Tab)),
    true = larder:delete(Tab),
    ?assertEqual(End, lists:sort(follow(Ref, Rows))).

%% The rows, changed by what a subscription tells until the table is gone.
follow(Ref, Rows) ->
    lists:foldl(fun({_, gone}, Acc) -> Acc;
                   ({_, Events}, Acc) when is_list(Events) -> lists:foldl(fun apply_event/2, Acc, Events);
                   ({_, Event}, Acc) -> apply_event(Event, Acc)
                end, Rows, messages(Ref, gone)).

apply_event({insert, New}, Rows) -> [New | Rows];
apply_event({replace, Old, New}, Rows) -> [New | remove(Old, Rows)];
apply_event({delete, Old}, Rows) -> remove(Old, Rows);
apply_event(clear, _) -> [].

remove(Row, Rows) ->
    true = lists:member(Row, Rows),
    lists:delete(Row, Rows).

change_often(Tab, Seed, Times) ->
    _ = rand:seed(exsss, Seed),
    lists:foreach(fun(_) -> change(Tab, rand:uniform(20), rand:uniform(30)) end,
                  lists:seq(1, Times)).

change(Tab, Key, N) ->
    case rand:uniform(12) of
        1 -> larder:delete(Tab, Key);
        2 -> larder:take(Tab, Key);
        3 -> larder:insert(Tab, [{rand:uniform(20), I} || I <- lists:seq(1, N)]);
        4 -> larder:insert_new(Tab, {Key, N});
        5 -> larder:insert_new(Tab, [{Key, N}, {Key + 1, N}]);
        6 -> larder:delete_object(Tab, {Key, N});
        7 -> larder:select_delete(Tab, [{{'_', '$1'}, [{'<', '$1', 3}], [true]}]);
        8 when N =:= 1 -> larder:delete_all_objects(Tab);
        9 -> catch larder:update_counter(Tab, Key, 1, {Key, 0});
        10 -> catch larder:update_element(Tab, Key, {2, binary:copy(<<N>>, 200)});
        _ -> larder:insert(Tab, {Key, N})
    end.

%% ---- behind ----

%% A subscriber that takes nothing has so many messages and no more, its queue so
%% many events; what it lost is reported, and a new snapshot helps.
overflow_test_() ->
    {timeout, 60, ?LEAK_FREE(begin
        Tab = larder:new(t, []),
        Ref = larder:subscribe(Tab, all, #{limit => 100, mailbox => 10}),
        [true = larder:insert(Tab, {N, N}) || N <- lists:seq(1, 10000)],
        timer:sleep(50),
        {message_queue_len, Len} = process_info(self(), message_queue_len),
        %% What is fetched at once comes on top.
        ?assert(Len < 10 + 200),
        true = larder:insert(Tab, {last, 0}),
        Messages = messages(Ref, {insert, {last, 0}}),
        Told = length([N || {_, {insert, {N, _}}} <- Messages]),
        Lost = lists:sum([N || {_, {overflow, N}} <- Messages]),
        ?assert(Lost > 9000),
        ?assertEqual(10001, Told + Lost),
        true = larder:unsubscribe(Ref),
        {Snapshot, New} = larder:snapshot_and_subscribe(Tab, all, #{}),
        ?assertEqual(10001, larder:info(Snapshot, size)),
        true = larder:insert(Tab, {more, 1}),
        true = larder:delete(Tab),
        ?assertMatch([{_, {insert, {more, 1}}}, {_, gone}], messages(New, gone)),
        true = larder:release(Snapshot)
    end)}.

%% ---- ends ----

a_subscription_ends_with_its_process_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [public]),
        Me = self(),
        {Pid, Monitor} = spawn_monitor(fun() ->
            Me ! {ref, larder:subscribe(Tab, all, #{})},
            receive never -> ok end
        end),
        Ref = receive {ref, R} -> R end,
        exit(Pid, kill),
        receive {'DOWN', Monitor, process, _, _} -> ok end,
        %% Its end and the table's are no matter to each other.
        true = larder:insert(Tab, {a, 1}),
        ?assertError(badarg, larder:unsubscribe(Ref)),
        true = larder:delete(Tab)
    end).

%% A transaction is one commit, with one Seq for all its tables.
transaction_test_() ->
    ?LEAK_FREE(begin
        Tabs = [larder:new(t, [Type]) || Type <- [set, duplicate_bag]],
        [RefOne, RefTwo] = [larder:subscribe(Tab, all, #{}) || Tab <- Tabs],
        {atomic, ok} = larder:transaction(Tabs, fun([X, Y]) ->
            true = larder:insert(X, [{a, 1}, {b, 2}]),
            true = larder:insert(Y, {c, 1}),
            true = larder:insert(Y, {c, 1}),
            ok
        end),
        {aborted, no} = larder:transaction(Tabs, fun([X, _]) ->
            true = larder:delete(X, a),
            larder:abort(no)
        end),
        [true = larder:delete(Tab) || Tab <- Tabs],
        [{Seq, InOne}, {_, gone}] = messages(RefOne, gone),
        [{Seq, InTwo}, {_, gone}] = messages(RefTwo, gone),
        ?assertEqual([{insert, {a, 1}}, {insert, {b, 2}}], lists:sort(InOne)),
        ?assertEqual([{insert, {c, 1}}, {insert, {c, 1}}], InTwo)
    end).

no_message_comes_after_unsubscribe_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [public]),
        [begin
             Ref = larder:subscribe(Tab, all, #{}),
             true = larder:insert(Tab, [{N, N} || N <- lists:seq(1, 20)]),
             true = larder:unsubscribe(Ref),
             (fun Flush() -> receive {larder, Ref, _, _} -> Flush() after 0 -> ok end end)(),
             true = larder:insert(Tab, {a, 1}),
             receive {larder, Ref, _, _} = Late -> error(Late) after 1 -> ok end
         end || _ <- lists:seq(1, 100)],
        true = larder:delete(Tab)
    end).

%% Who has given a private table away doesn't get what its new owner writes, nor does anybody else
%% once a table has become private.
a_subscription_ends_with_the_right_to_read_test_() ->
    [{How, ?LEAK_FREE(begin
         Me = self(),
         Owner = spawn_link(fun() ->
             receive {'ETS-TRANSFER', Tab, Me, Settings} -> ok end,
             true = larder:setopts(Tab, Settings),
             true = larder:insert(Tab, {secret, 1}),
             true = larder:delete(Tab),
             Me ! written
         end),
         Tab = larder:new(t, [Access]),
         Ref = larder:subscribe(Tab, all, #{}),
         true = larder:insert(Tab, {open, 1}),
         receive {larder, Ref, _, First} -> ?assertEqual({insert, {open, 1}}, First) end,
         true = larder:give_away(Tab, Owner, Settings),
         receive written -> ok end,
         ?assertMatch([{_, gone}], messages(Ref, gone)),
         true = larder:unsubscribe(Ref),
         ?assertEqual(none, receive {larder, Ref, _, _} = More -> More after 0 -> none end)
     end)} || {How, Access, Settings} <- [{"given away", private, []},
                                          {"made private", protected, [{protection, private}]}]].

rights_and_errors_test_() ->
    ?LEAK_FREE(begin
        Private = larder:new(t, [private]),
        Me = self(),
        spawn_link(fun() ->
            Me ! {got, catch larder:subscribe(Private, all, #{}),
                  catch larder:snapshot_and_subscribe(Private, all, #{})}
        end),
        receive {got, One, Two} ->
            ?assertMatch({'EXIT', {badarg, _}}, One),
            ?assertMatch({'EXIT', {badarg, _}}, Two)
        end,
        [?assertError(badarg, larder:subscribe(Private, Spec, Options))
         || {Spec, Options} <- [{all, []}, {all, #{limit => 0}}, {all, #{limit => a}},
                                {all, #{mailbox => 0}}, {all, #{other => 1}},
                                {nonsense, #{}}, {[{a}], #{}}]],
        ?assertError(badarg, larder:subscribe(make_ref(), all, #{})),
        ?assertError(badarg, larder:unsubscribe(make_ref())),
        ?assertError(badarg, larder:unsubscribe(a)),
        Snapshot = larder:snapshot(Private),
        ?assertError(badarg, larder:subscribe(Snapshot, all, #{})),
        true = larder:release(Snapshot),
        {atomic, ok} = larder:transaction([Private], fun([View]) ->
            try larder:subscribe(View, all, #{}) of _ -> error(subscribed)
            catch error:badarg:Stack ->
                ?assertMatch(#{1 := <<"a transaction's view", _/binary>>},
                             larder:format_error(badarg, Stack)),
                ok
            end
        end),
        true = larder:delete(Private)
    end).
