%% Tables with limits: there is never more than may be; what goes has an event; what
%% has no room is refused, with an error; bad limits are refused.
-module(limits_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(TYPES, [set, ordered_set]).

size_test_() ->
    [?LEAK_FREE(size(Type, Evict)) || Type <- ?TYPES, Evict <- [lru, tinylfu, sieve]].

size(Type, Evict) ->
    Tab = larder:new(t, [Type, public, {max_size, 100}, {evict, Evict}]),
    [begin
         true = larder:insert(Tab, {N, binary:copy(<<N>>, 200)}),
         ?assert(larder:info(Tab, size) =< 100)
     end || N <- lists:seq(1, 1000)],
    true = larder:insert(Tab, [{N, N} || N <- lists:seq(2000, 5000)]),
    %% The library's thread evicts, too, and each may have taken the last that was too many.
    Size = larder:info(Tab, size),
    ?assert(lists:member(Size, [99, 100])),
    ?assertEqual(Size, length(larder:tab2list(Tab))),
    #{evict := Evict} = larder:info(Tab, bounds),
    #{evicted := Evicted, weight := Weight} = larder:info(Tab, stats),
    ?assertEqual(1000 + 3001 - Size, Evicted),
    true = larder:setopts(Tab, {max_memory, Weight div 2}),
    wait_for(fun() -> maps:get(weight, larder:info(Tab, stats)) =< Weight div 2 end),
    true = larder:delete(Tab).

wait_for(Done) ->
    wait_for(Done, 2000).

wait_for(Done, Tries) ->
    case Done() of
        true -> ok;
        false when Tries > 0 -> timer:sleep(5), wait_for(Done, Tries - 1)
    end.

writers_test_() ->
    {timeout, 60, ?LEAK_FREE(begin
        Tab = larder:new(t, [public, {max_size, 200}, {evict, tinylfu}]),
        Workers = [spawn_monitor(fun() -> work(Tab, 5000) end) || _ <- lists:seq(1, 4)],
        [receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end
         || {_, Ref} <- Workers],
        %% Of several that evict at once each may have taken the last that was too many.
        Size = larder:info(Tab, size),
        ?assert(Size =< 200 andalso Size >= 196),
        true = larder:delete(Tab)
    end)}.

work(_, 0) ->
    ok;
work(Tab, N) ->
    Key = rand:uniform(1000),
    case larder:lookup(Tab, Key) of
        [] -> true = larder:insert(Tab, {Key, binary:copy(<<Key>>, 100)});
        [{Key, _}] -> ok
    end,
    ?assert(larder:info(Tab, size) =< 204),
    work(Tab, N - 1).

feed_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [public, {max_size, 2}, {evict, lru}]),
        Ref = larder:subscribe(Tab, all, #{}),
        [true = larder:insert(Tab, {N, N}) || N <- [1, 2, 3]],
        Snapshot = larder:snapshot(Tab),
        true = larder:insert(Tab, {4, 4}),
        ?assertEqual(2, length(larder:tab2list(Snapshot))),
        true = larder:delete(Tab),
        ?assertMatch([{insert, {1, 1}}, {insert, {2, 2}}, {insert, {3, 3}}, {evict, {1, 1}},
                      {insert, {4, 4}}, {evict, {2, 2}}, gone], larder_test:events(Ref)),
        true = larder:release(Snapshot),
        true = larder:unsubscribe(Ref)
    end).

settings_test_() ->
    ?LEAK_FREE(begin
        Tab = larder:new(t, [{max_size, infinity}]),
        Bounds = #{ttl => infinity, idle => infinity, max_size => infinity,
                   max_memory => infinity, evict => none},
        ?assertEqual(Bounds, larder:info(Tab, bounds)),
        true = larder:insert(Tab, [{N} || N <- lists:seq(1, 500)]),
        true = larder:setopts(Tab, [{max_size, 100}, {evict, lru}]),
        ?assertEqual(Bounds#{max_size => 100, evict => lru}, larder:info(Tab, bounds)),
        wait_for(fun() -> larder:info(Tab, size) =:= 100 end),
        true = larder:setopts(Tab, {ttl, 1000000}),
        ?assertEqual(Bounds#{ttl => 1000000, max_size => 100, evict => lru},
                     larder:info(Tab, bounds)),
        true = larder:delete_all_objects(Tab),
        true = larder:insert(Tab, [{N} || N <- lists:seq(1, 500)]),
        ?assertEqual(100, larder:info(Tab, size)),
        true = larder:delete(Tab)
    end).

%% What has no room changes nothing, and the words say why.
refused_test_() ->
    [?LEAK_FREE(refused(Type)) || Type <- ?TYPES].

refused(Type) ->
    Tab = larder:new(t, [Type, public, {max_size, 2}]),
    true = larder:insert(Tab, [{1, a}, {2, b}]),
    Full = [{insert, [Tab, {3, c}]}, {insert_new, [Tab, {3, c}]}, {insert, [Tab, [{1, z}, {3, c}]]},
            {insert, [Tab, {3, c}, #{ttl => infinity}]}, {insert_new, [Tab, [{4, c}, {3, c}]]},
            {update_counter, [Tab, 3, 1, {3, 0}]}, {update_element, [Tab, 3, {2, x}, {3, y}]},
            {commit, [[{delete, Tab, 4}, {insert, Tab, {3, c}}]]},
            {transaction, [[Tab], fun([View]) -> larder:insert(View, {3, c}) end, #{}]}],
    [begin
         {Stack, Words} = error_of(F, Args, system_limit),
         ?assertMatch([{larder, F, Args, _} | _], Stack),
         ?assertMatch(#{general := _}, Words)
     end || {F, Args} <- Full],
    ?assertEqual([{1, a}, {2, b}], lists:sort(larder:tab2list(Tab))),
    true = larder:insert(Tab, [{1, z}, {2, y}]),
    true = larder:delete(Tab, 1),
    true = larder:insert(Tab, {3, c}),
    true = larder:delete(Tab).

error_of(F, Args, Reason) ->
    try apply(larder, F, Args) of
        Result -> error({not_refused, Result})
    catch
        error:Reason:Stack -> {Stack, larder:format_error(Reason, Stack)}
    end.

words_test_() ->
    Plain = larder:new(t, [public, {ttl, 5}]),
    Limited = larder:new(t, [public, {max_size, 5}]),
    Refused = [{new, [t, [{max_size, 0}]]}, {new, [t, [{max_size, -1}]]}, {new, [t, [{max_memory, x}]]},
               {new, [t, [{evict, fifo}]]}, {new, [t, [bag, {max_size, 1}]]},
               {new, [t, [ordered_set, {structure, avl}, {evict, lru}]]},
               {setopts, [Plain, {max_size, 1}]}, {setopts, [Limited, {max_size, 0}]},
               {setopts, [Limited, {evict, fifo}]}, {setopts, [Limited, [{evict, lru}, {evict, lru}]]}],
    [{lists:flatten(io_lib:format("~p ~0p", Call)), fun() ->
          {Stack, Words} = error_of(F, Args, badarg),
          ?assertMatch([{larder, F, Args, _} | _], Stack),
          ?assertNotEqual(#{}, Words)
      end} || {F, Args} <- Refused, Call <- [[F, Args]]] ++
    [fun() ->
         {_, #{2 := Text}} = error_of(new, [t, [{evict, fifo}]], badarg),
         ?assertEqual(<<"evict takes tinylfu, lru, sieve or none">>, iolist_to_binary(Text))
     end,
     fun() ->
         %% The words name an option that helps.
         Unbounded = larder:new(t, [public]),
         {_, #{1 := Text}} = error_of(setopts, [Unbounded, {max_size, 1}], badarg),
         ?assertMatch({match, _}, re:run(Text, "max_size")),
         {_, #{1 := Other}} = error_of(setopts, [Unbounded, {ttl, 1}], badarg),
         ?assertMatch({match, _}, re:run(Other, "ttl"))
     end].
