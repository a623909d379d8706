%% Bounded tables: what is expired is in no answer; the library removes it, and
%% tells so; bad times are refused, with an error.
-module(bounds_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(TYPES, [set, ordered_set]).
-define(HOUR, 3600000).

times_test_() ->
    [?LEAK_FREE(times(Type)) || Type <- ?TYPES].

times(Type) ->
    Tab = larder:new(t, [Type, public, {ttl, ?HOUR}]),
    true = larder:insert(Tab, {a, 1}),
    ?assert(larder:ttl(Tab, a) > ?HOUR - 60000),
    true = larder:insert(Tab, {b, 2}, #{ttl => infinity}),
    ?assertEqual(infinity, larder:ttl(Tab, b)),
    true = larder:insert(Tab, {c, 3}, #{ttl => 0}),
    ?assertEqual([], larder:lookup(Tab, c)),
    ?assertEqual(none, larder:ttl(Tab, c)),
    ?assertEqual(none, larder:ttl(Tab, d)),
    ?assertEqual(false, larder:expire(Tab, c, 10)),
    ?assertEqual(true, larder:insert_new(Tab, {c, 4})),
    ?assertEqual(true, larder:expire(Tab, b, 0)),
    ?assertEqual(false, larder:member(Tab, b)),
    ?assertEqual([{a, 1}, {c, 4}], lists:sort(larder:tab2list(Tab))),
    ?assertEqual(1, larder:update_counter(Tab, b, 1, {b, 0})),
    ?assertEqual(true, larder:expire(Tab, b, infinity)),
    ?assertEqual(infinity, larder:ttl(Tab, b)),
    true = larder:insert(Tab, {b, 7}),
    ?assert(is_integer(larder:ttl(Tab, b))),
    true = larder:delete(Tab).

%% Binaries of what expires are given back, whoever comes upon it.
large_test_() ->
    [?LEAK_FREE(large(Type)) || Type <- ?TYPES].

large(Type) ->
    Tab = larder:new(t, [Type, public, {ttl, infinity}]),
    Large = fun(N) -> binary:copy(<<N>>, 1000) end,
    [true = larder:insert(Tab, {N, Large(N)}, #{ttl => 0}) || N <- lists:seq(1, 50)],
    [true = larder:insert(Tab, {N, Large(N + 1)}) || N <- lists:seq(1, 20)],
    [true = larder:insert(Tab, {N, Large(N), self()}, #{ttl => 1}) || N <- lists:seq(10, 15)],
    ?assertEqual([{1, Large(2)}], larder:lookup(Tab, 1)),
    wait_for(Tab, 14),
    true = larder:delete(Tab).

%% Waits until the library has removed what is expired.
wait_for(Tab, Size) ->
    wait_for(Tab, Size, 2000).

wait_for(Tab, Size, Tries) ->
    case larder:info(Tab, size) of
        Size -> ok;
        Other when Tries =:= 0 -> error({size, Other});
        _ -> timer:sleep(5), wait_for(Tab, Size, Tries - 1)
    end.

removal_test_() ->
    [?LEAK_FREE(removal(Type)) || Type <- ?TYPES].

removal(Type) ->
    Tab = larder:new(t, [Type, {ttl, 20}]),
    true = larder:insert(Tab, [{N, N} || N <- lists:seq(1, 5000)]),
    true = larder:insert(Tab, {0, 0}, #{ttl => infinity}),
    wait_for(Tab, 1),
    ?assertEqual([{0, 0}], larder:tab2list(Tab)),
    true = larder:delete(Tab).

idle_test_() ->
    {timeout, 60, fun idle/0}.

idle() ->
    %% Longer than a loaded machine may let the reader wait.
    Tab = larder:new(t, [{idle, 1000}]),
    true = larder:insert(Tab, [{a, 1}, {b, 2}]),
    [begin timer:sleep(40), [_] = larder:lookup(Tab, a) end || _ <- lists:seq(1, 30)],
    ?assertEqual([{a, 1}], larder:tab2list(Tab)),
    true = larder:delete(Tab).

%% What reads more than one key is no use, however it finds the objects, and neither is the deletion
%% of another object.
no_use_test_() ->
    Row = {a, 1, lists:seq(1, 30)},
    OfKeys = [{{Key, '_', '_'}, [], ['$_']} || Key <- [a, b]],
    [{timeout, 60, fun() -> no_use(Row, Read) end}
     || Read <- [fun(Tab) -> larder:select(Tab, [{{'_', 1, '_'}, [], ['$_']}]) end,
                 fun(Tab) -> larder:select(Tab, OfKeys) end,
                 fun(Tab) -> larder:delete_object(Tab, setelement(2, Row, 2)) end]].

no_use(Row, Read) ->
    Tab = larder:new(t, [{idle, 200}, {index, [{v, 2, []}]}]),
    true = larder:insert(Tab, Row),
    [begin timer:sleep(40), Read(Tab) end || _ <- lists:seq(1, 30)],
    ?assertNot(larder:member(Tab, a)),
    true = larder:delete(Tab).

%% A snapshot shows what was not expired when it was taken, and goes on to.
snapshot_test_() ->
    [?LEAK_FREE(snapshot(Type)) || Type <- ?TYPES].

snapshot(Type) ->
    Tab = larder:new(t, [Type, public, {ttl, infinity}]),
    true = larder:insert(Tab, {a, 1}, #{ttl => 0}),
    true = larder:insert(Tab, {b, 2}, #{ttl => 50}),
    Snapshot = larder:snapshot(Tab),
    There = larder:tab2list(Snapshot),
    wait_for(Tab, 0),
    ?assertEqual(There, larder:tab2list(Snapshot)),
    ?assertEqual(length(There), larder:info(Snapshot, size)),
    ?assertEqual([], larder:lookup(Snapshot, a)),
    true = larder:release(Snapshot),
    true = larder:delete(Tab).

feed_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [public, {ttl, ?HOUR}]),
        Ref = larder:subscribe(Tab, all, #{}),
        true = larder:insert(Tab, {a, 1}),
        true = larder:expire(Tab, a, 0),
        wait_for(Tab, 0),
        true = larder:delete(Tab),
        ?assertEqual([{insert, {a, 1}}, {expire, {a, 1}}, gone], larder_test:events(Ref)),
        true = larder:unsubscribe(Ref)
    end).

settings_test() ->
    Tab = larder:new(t, [{ttl, ?HOUR}]),
    ?assertEqual(#{ttl => ?HOUR, idle => infinity}, larder:info(Tab, bounds)),
    true = larder:setopts(Tab, [{ttl, infinity}, {idle, 5}]),
    ?assertEqual(#{ttl => infinity, idle => 5}, larder:info(Tab, bounds)),
    true = larder:setopts(Tab, {idle, infinity}),
    true = larder:insert(Tab, {a, 1}),
    ?assertEqual(infinity, larder:ttl(Tab, a)),
    true = larder:delete_all_objects(Tab),
    true = larder:insert(Tab, {a, 1}),
    ?assertEqual(infinity, larder:ttl(Tab, a)),
    true = larder:delete(Tab),
    %% A limit bounds the table, too. Times below 2^40 - 1 are kept.
    Limited = larder:new(t, [{max_size, 5}]),
    true = larder:setopts(Limited, {ttl, (1 bsl 40) - 2}),
    ?assertMatch(#{ttl := (1 bsl 40) - 2}, larder:info(Limited, bounds)),
    true = larder:setopts(Limited, {ttl, (1 bsl 40) - 1}),
    ?assertMatch(#{ttl := infinity}, larder:info(Limited, bounds)),
    true = larder:delete(Limited),
    Plain = larder:new(t, []),
    ?assertEqual(false, larder:info(Plain, bounds)),
    true = larder:delete(Plain).

%% A time or a limit that is never reached may be of any size.
endless_test_() ->
    [{integer_to_list(Huge), fun() -> endless(Huge) end}
     || Huge <- [(1 bsl 59) - 1, 1 bsl 59, (1 bsl 63) - 1, 1 bsl 63, 1 bsl 64, 1 bsl 5000]].

endless(Huge) ->
    Tab = larder:new(t, [{ttl, Huge}, {idle, Huge}, {max_size, Huge}, {max_memory, Huge}]),
    true = larder:insert(Tab, {a, 1}),
    ?assertEqual(infinity, larder:ttl(Tab, a)),
    true = larder:setopts(Tab, [{ttl, 1}, {idle, 1}, {max_size, 1}, {max_memory, 1000}]),
    true = larder:setopts(Tab, [{ttl, Huge}, {idle, Huge}, {max_size, Huge}, {max_memory, Huge}]),
    true = larder:insert(Tab, {b, 1}, #{ttl => ?HOUR}),
    true = larder:insert(Tab, {c, 1}, #{ttl => Huge}),
    ?assertEqual(true, larder:expire(Tab, b, Huge)),
    ?assertEqual([infinity, infinity], [larder:ttl(Tab, Key) || Key <- [b, c]]),
    [refused(F, Args) || {F, Args} <- [{insert, [Tab, {a}, #{ttl => -Huge}]},
                                       {expire, [Tab, a, -Huge]}, {new, [t, [{idle, -Huge}]]},
                                       {setopts, [Tab, {ttl, -Huge}]}, {new, [t, [{max_size, -Huge}]]},
                                       {setopts, [Tab, {max_memory, -Huge}]}]],
    true = larder:delete(Tab).

%% Views have lifetimes. They aren't tables of their own, and the words say so.
views_test() ->
    Tab = larder:new(t, [public, {ttl, ?HOUR}]),
    true = larder:insert(Tab, {a, 1}),
    Words = fun(F, Args) ->
        try apply(larder, F, Args) of Result -> Result
        catch error:badarg:Stack -> larder:format_error(badarg, Stack)
        end
    end,
    {atomic, ok} = larder:transaction([Tab], fun([View]) ->
        ?assert(near(?HOUR, larder:ttl(View, a))),
        ?assertEqual(none, larder:ttl(View, c)),
        true = larder:insert(View, {c, 1}, #{ttl => 2 * ?HOUR}),
        ?assertEqual(2 * ?HOUR, larder:ttl(View, c)),
        ?assertEqual(true, larder:expire(View, a, infinity)),
        ?assertEqual(infinity, larder:ttl(View, a)),
        ?assertEqual(false, larder:expire(View, d, infinity)),
        [?assertMatch({F, #{1 := <<"the table is a transaction's view, which can't", _/binary>>}},
                      {F, Words(F, [View | Args])})
         || {F, Args} <- [{delete, []}, {rename, [other]}, {give_away, [self(), x]},
                          {setopts, [{heir, none}]}, {setopts, [{ttl, 5}]}]],
        true = larder:insert(View, {b, 1}),
        ok
    end),
    ?assert(near(?HOUR, larder:ttl(Tab, b))),
    ?assert(near(2 * ?HOUR, larder:ttl(Tab, c))),
    ?assertEqual(infinity, larder:ttl(Tab, a)),
    Snapshot = larder:snapshot(Tab),
    true = larder:expire(Tab, a, ?HOUR),
    true = larder:delete(Tab, b),
    ?assertEqual([infinity, true, none],
                 [larder:ttl(Snapshot, a), near(?HOUR, larder:ttl(Snapshot, b)), larder:ttl(Snapshot, d)]),
    ?assertMatch(#{1 := <<"the table is a snapshot, which can't be written">>},
                 Words(expire, [Snapshot, a, 5])),
    true = larder:release(Snapshot),
    true = larder:delete(Tab).

near(Most, Left) ->
    is_integer(Left) andalso Left > Most - ?HOUR div 2 andalso Left =< Most.

%% commit/1 gives lifetimes, alone and with objects, to all of them or none.
commit_test() ->
    Tab = larder:new(t, [public, {ttl, ?HOUR}]),
    true = larder:insert(Tab, [{a, 1}, {b, 1}]),
    true = larder:commit([{insert, Tab, [{c, 1}, {d, 1}], #{ttl => infinity}},
                          {insert, Tab, {e, 1}, #{ttl => 0}},
                          {expire, Tab, a, infinity}, {expire, Tab, d, 2 * ?HOUR}]),
    ?assertEqual([infinity, infinity], [larder:ttl(Tab, Key) || Key <- [a, c]]),
    ?assertEqual([true, true], [near(?HOUR, larder:ttl(Tab, b)), near(2 * ?HOUR, larder:ttl(Tab, d))]),
    ?assertEqual([], larder:lookup(Tab, e)),
    {false, 2} = larder:commit([{expire, Tab, a, 5}, {expire, Tab, x, 5}, {delete, Tab, b}]),
    ?assertEqual([infinity, 1], [larder:ttl(Tab, a), larder:lookup_element(Tab, b, 2)]),
    Plain = larder:new(t, [public]),
    [?assertError(badarg, larder:commit([{insert, Tab, {f, 1}}, Operation]))
     || Operation <- [{insert, Tab, {f, 1}, #{}}, {insert, Tab, {f, 1}, #{ttl => -1}},
                      {insert, Tab, {f, 1}, #{ttl => 1, idle => 1}}, {insert, Tab, {f, 1}, 5},
                      {expire, Tab, a, never}, {expire, Plain, a, 5},
                      {insert, Plain, {f, 1}, #{ttl => 1}}]],
    ?assertEqual([], larder:lookup(Tab, f)),
    true = larder:delete(Plain),
    true = larder:delete(Tab).

%% Of two transactions that take an object one gets it, also if it expires before they end, and
%% subscribers are notified of what has become of it.
taken_once_test_() ->
    [{timeout, 60, ?LEAK_FREE([taken_once(Type) || _ <- lists:seq(1, 20)])} || Type <- ?TYPES].

taken_once(Type) ->
    Tab = larder:new(t, [Type, public, {ttl, 20}]),
    Ref = larder:subscribe(Tab, all, #{}),
    true = larder:insert(Tab, {a, 1}),
    Me = self(),
    Take = fun() ->
        {atomic, Taken} = larder:transaction([Tab], fun([View]) ->
            Objects = larder:take(View, a),
            gone(Tab),
            Objects
        end),
        Me ! {taken, Taken}
    end,
    [spawn_link(Take) || _ <- [1, 2]],
    Taken = lists:append([receive {taken, Objects} -> Objects end || _ <- [1, 2]]),
    ?assert(length(Taken) =< 1),
    Event = case Taken of [] -> expire; [_] -> delete end,
    receive {larder, Ref, _, {insert, {a, 1}}} -> ok end,
    receive {larder, Ref, _, What} -> ?assertEqual({Event, {a, 1}}, What) end,
    true = larder:delete(Tab).

%% Waits until the object has expired.
gone(Tab) ->
    case larder:member(Tab, a) of
        true -> erlang:yield(), gone(Tab);
        false -> ok
    end.

%% A process that is killed while others expire and insert leaves nothing.
kill_test_() ->
    {timeout, 60, ?LEAK_FREE(begin
        Tab = larder:new(t, [public, {ttl, 5}]),
        Workers = [spawn(fun() -> work(Tab, N) end) || N <- lists:seq(1, 4)],
        timer:sleep(300),
        true = lists:all(fun is_process_alive/1, Workers),
        [exit(Pid, kill) || Pid <- Workers],
        wait_for(Tab, 0),
        true = larder:delete(Tab)
    end)}.

work(Tab, N) ->
    Key = rand:uniform(100),
    true = larder:insert(Tab, {Key, binary:copy(<<N>>, 500)}),
    true = larder:insert(Tab, [{K, N} || K <- lists:seq(200, 260)]),
    work(Tab, N).

refused_test_() ->
    Plain = larder:new(t, [public]),
    Bounded = larder:new(t, [public, {ttl, infinity}]),
    Snapshot = larder:snapshot(Bounded),
    Refused = [{new, [t, [{ttl, -1}]]}, {new, [t, [{ttl, 1.0}]]}, {new, [t, [bag, {ttl, 1}]]},
               {new, [t, [{idle, x}]]}, {new, [t, [ordered_set, {structure, avl}, {idle, 1}]]},
               {insert, [Plain, {1}, #{ttl => 1}]}, {insert, [Bounded, {1}, #{ttl => -1}]},
               {insert, [Bounded, {1}, #{}]}, {insert, [Bounded, {1}, #{ttl => 1, x => 1}]},
               {insert, [Bounded, x, #{ttl => 1}]}, {insert, [Bounded, {}, #{ttl => 1}]},
               {insert, [Snapshot, {1}, #{ttl => 1}]}, {insert, [none, {1}, #{ttl => 1}]},
               {expire, [Plain, 1, 1]}, {expire, [Bounded, 1, x]}, {expire, [Snapshot, 1, 1]},
               {ttl, [Plain, 1]}, {ttl, [none, 1]}, {setopts, [Plain, {ttl, 1}]},
               {setopts, [Bounded, {ttl, x}]}, {setopts, [Bounded, [{ttl, 1}, {ttl, 2}]]}],
    [{lists:flatten(io_lib:format("~p ~0p", Call)), fun() -> refused(F, Args) end}
     || {F, Args} <- Refused, Call <- [[F, Args]]].

%% What is refused sets nothing of the list.
half_refused_test() ->
    [begin
         T = larder:new(t, [public | Options]),
         Settings = [{heir, self(), d}, {protection, private}, Refused],
         ?assertError(badarg, larder:setopts(T, Settings)),
         ?assertEqual({none, public}, {larder:info(T, heir), larder:info(T, protection)}),
         larder:delete(T)
     end || {Options, Refused} <- [{[], {ttl, 5}}, {[{ttl, infinity}], {max_size, 5}}]].

refused(F, Args) ->
    try apply(larder, F, Args) of
        Result -> error({not_refused, Result})
    catch
        error:badarg:Stack ->
            ?assertMatch([{larder, F, Args, _} | _], Stack),
            ?assertNotEqual(#{}, larder:format_error(badarg, Stack))
    end.
