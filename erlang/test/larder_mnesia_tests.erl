%% The backend of Mnesia, by what the behaviour mnesia_backend_type and Mnesia's documentation say:
%% whatever Mnesia does with a table of `ram_copies' it does with one of `larder_copies', with the
%% same answers. Each group runs in a node of its own, as a node has one Mnesia.
-module(larder_mnesia_tests).

-include_lib("eunit/include/eunit.hrl").

%% Called in the nodes.
-export([changes_in_memory/0, begin_ram/0, begin_disc/1, same_answers/2, words/3, own_indexes/0,
         bad_options/0, names/0, made_twice/0, events/0, fragments/0, loads_from_a_snapshot/0,
         large_rows/0, indexes/0, registered/0, storage_types/0, backups/0, fallback/0,
         fallback_elsewhere/0, checkpoint/0, transformed/0, moved_attributes/0, restarted/0,
         reversed/0]).

-define(SECONDS, 60).
%% A table's rows: {thing, Key, Value, Word}.
-define(FIELDS, [key, value, word]).

exports_test() ->
    Exports = larder_mnesia:module_info(exports),
    ?assertEqual([], mnesia_backend_type:behaviour_info(callbacks) -- Exports),
    ?assertEqual([], [{sender_handle_info, 5}, {select_reverse, 1}, {select_reverse, 3},
                      {select_reverse, 4}] -- Exports).

%% Who has no Mnesia running hears so.
not_running_test() ->
    ?assertMatch({error, {node_not_running, _}}, larder_mnesia:register()).

ram_test_() ->
    in_a_node(fun(Peer) -> ok = peer:call(Peer, ?MODULE, begin_ram, [], ?SECONDS * 1000) end,
              [{same_answers, [Type, Index]} || Type <- [set, ordered_set, bag],
                                                Index <- [ordered, bag]] ++
              [{Test, []} || Test <- [own_indexes, bad_options, changes_in_memory, names, made_twice, events,
                                      loads_from_a_snapshot, indexes, registered, reversed]]).

disc_test_() ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           "larder_t_backend_" ++ os:getpid() ++ "_" ++
                               integer_to_list(erlang:unique_integer([positive]))),
    {setup, fun() -> ok end, fun(_) -> file:del_dir_r(Folder) end,
     in_a_node(fun(Peer) -> ok = peer:call(Peer, ?MODULE, begin_disc, [Folder], ?SECONDS * 1000) end,
               [{Test, []} || Test <- [storage_types, fragments, backups, checkpoint, transformed,
                                       moved_attributes, fallback, fallback_elsewhere,
                                       restarted]])}.

in_a_node(Begin, Tests) ->
    {setup,
     fun() ->
         Paths = [filename:absname(filename:dirname(code:which(Module)))
                  || Module <- [larder, ?MODULE]],
         {ok, Peer, _} = peer:start(#{connection => standard_io,
                                      args => ["-kernel", "logger_level", "none", "-pa" | Paths]}),
         Begin(Peer),
         Peer
     end,
     fun peer:stop/1,
     fun(Peer) ->
         [{lists:flatten(io_lib:format("~w ~w", [Test, Arguments])),
           {timeout, ?SECONDS,
            fun() -> peer:call(Peer, ?MODULE, Test, Arguments, ?SECONDS * 1000) end}}
          || {Test, Arguments} <- Tests]
     end}.

%% ---- in the nodes ----

begin_ram() ->
    ok = mnesia:start(),
    {ok, larder_copies} = larder_mnesia:register(),
    {atomic, ok} = mnesia_schema:add_index_plugin({words}, ?MODULE, words),
    ok.

begin_disc(Folder) ->
    ok = application:load(mnesia),
    ok = application:set_env(mnesia, dir, Folder),
    ok = mnesia:create_schema([node()], [{backend_types, [{larder_copies, larder_mnesia}]}]),
    ok = mnesia:start(),
    {ok, larder_copies} = larder_mnesia:register(),
    ok.

table(Name, Storage, Options) ->
    {atomic, ok} = mnesia:create_table(Name, [{Storage, [node()]}, {attributes, ?FIELDS},
                                              {record_name, thing} | Options]),
    ok.

gone(Names) ->
    unfixed(Names),
    [{atomic, ok} = mnesia:delete_table(Name) || Name <- Names],
    ?assertEqual([], larder:all()).

%% Waits until no transaction fixes these tables any more. The message that ends the last fixation
%% may come after the transaction. Mnesia fails if it finds a ram_copies table of ets gone then.
unfixed(Names) ->
    IsFixed = fun(Name) ->
        ets:info(Name, fixed) =:= true orelse larder:info(Name, fixed) =:= true
    end,
    case lists:any(IsFixed, Names) of
        true -> timer:sleep(1), unfixed(Names);
        false -> ok
    end.

fill(Table, Rows) ->
    [ok = mnesia:dirty_write(Table, {thing, K, K rem 10, x}) || K <- lists:seq(1, Rows)],
    ok.

rows(Table) -> mnesia:table_info(Table, size).

%% An index plugin: what is in the index of an object.
words(_, _, Object) -> [element(4, Object), {word, element(4, Object)}].

%% Random work, the same on both tables. Transactions may end in an abort.
same_answers(Type, Index) ->
    Options = [{type, Type}, {index, [{value, Index}, {{words}, Index}]}],
    table(one, ram_copies, [{type, Type}, {index, [value, {words}]}]),
    table(two, larder_copies, Options),
    _ = rand:seed(exsss, {2026, 11, 26}),
    [begin
         Kind = pick([transaction, sync_transaction, async_dirty, sync_dirty]),
         Work = [Operation || _ <- lists:seq(1, rand:uniform(6)), Operation <- [operation()],
                              sound(Operation, Kind, {Type, Index})],
         Abort = Kind =:= transaction andalso rand:uniform(5) =:= 1,
         [One, Two] = [activity(Kind, Abort, Table, Type, Work) || Table <- [one, two]],
         ?assertEqual({Turn, Kind, Work, One}, {Turn, Kind, Work, Two})
     end || Turn <- lists:seq(1, 600)],
    ?assert(rows(two) > 0),
    [A, B] = [lists:sort(mnesia:dirty_match_object(T, {thing, '_', '_', '_'})) || T <- [one, two]],
    ?assertEqual(A, B),
    gone([one, two]).

activity(Kind, Abort, Table, Type, Work) ->
    try
        mnesia:activity(Kind, fun() ->
            Answers = [answer(Type, Operation, done(Operation, Table)) || Operation <- Work],
            case Abort of
                true -> mnesia:abort({wanted, Answers});
                false -> Answers
            end
        end)
    catch
        exit:{aborted, {wanted, Answers}} -> {aborted, Answers}
    end.

%% What comes in no order in one of the two is sorted.
answer(_, {ByIndex, _}, Answer) when ByIndex =:= index_read; ByIndex =:= index_match_object;
                                     ByIndex =:= match_object ->
    lists:sort(Answer);
answer(ordered_set, _, Answer) -> Answer;
answer(_, _, Answer) when is_list(Answer) -> lists:sort(Answer);
answer(_, _, Answer) -> Answer.

operation() ->
    Key = pick([rand:uniform(20), rand:uniform(5) + 0.5, {rand:uniform(3), a}]),
    Value = rand:uniform(4),
    Object = {thing, Key, Value, pick([a, b])},
    pick([{write, Object}, {write, Object}, {write, Object}, {delete, Key},
          {delete_object, Object}, {read, Key}, {match_object, {thing, '_', Value, '_'}},
          {match_object, {thing, Key, '_', '_'}},
          {select, [{{thing, '$1', Value, '$2'}, [], [{{'$1', '$2'}}]}]},
          {select, [{{thing, '$1', '$2', '_'}, [{'>', '$1', 10}], ['$2']}]},
          {select_some, [{{thing, '_', '_', pick([a, b])}, [], ['$_']}]},
          {index_read, {Value, value}}, {index_read, {{word, a}, {words}}},
          {index_match_object, {thing, '_', Value, '_'}}, {all_keys, none}, {fold, none},
          {keys, none}, {size, none}]).

%% In a transaction that has written, Mnesia takes two things for granted: what next/2 makes of the
%% rows to come depends on the order of the rows of a set; what is found by an index of an
%% ordered_set is in the order of the keys, which indexes of type bag are not.
sound({Operation, _}, Kind, Table) when Kind =:= transaction; Kind =:= sync_transaction ->
    case Operation of
        keys -> element(1, Table) =:= ordered_set;
        _ when Operation =:= index_read; Operation =:= index_match_object;
               Operation =:= match_object -> Table =/= {ordered_set, bag};
        _ -> true
    end;
sound(_, _, _) -> true.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

done({write, Object}, T) -> mnesia:write(T, Object, write);
done({delete, Key}, T) -> mnesia:delete(T, Key, write);
done({delete_object, Object}, T) -> mnesia:delete_object(T, Object, write);
done({read, Key}, T) -> mnesia:read(T, Key);
done({match_object, Pattern}, T) -> mnesia:match_object(T, Pattern, read);
done({select, Spec}, T) -> mnesia:select(T, Spec, read);
done({select_some, Spec}, T) -> some(mnesia:select(T, Spec, 3, read));
done({index_read, {Value, Index}}, T) -> mnesia:index_read(T, Value, Index);
done({index_match_object, Pattern}, T) -> mnesia:index_match_object(T, Pattern, value, read);
done({all_keys, _}, T) -> mnesia:all_keys(T);
done({fold, _}, T) -> mnesia:foldl(fun(Object, All) -> [Object | All] end, [], T);
done({keys, _}, T) -> keys(T, mnesia:first(T));
done({size, _}, T) -> mnesia:table_info(T, size).

some('$end_of_table') -> [];
some({Objects, Continuation}) -> Objects ++ some(mnesia:select(Continuation)).

keys(_, '$end_of_table') -> [];
keys(T, Key) -> [Key | keys(T, mnesia:next(T, Key))].

%% Larder's own indexes, of the storage properties: match specifications use them.
own_indexes() ->
    table(owner, larder_copies,
          [{storage_properties, [{larder, [compressed, {index, [{by_value, value, []},
                                                                {by_size, {size, '$_'}, []}]}]}]}]),
    fill(owner, 1000),
    Spec = [{{thing, '$1', 3, '_'}, [], ['$1']}],
    ?assertMatch(#{plan := {index, by_value}, rows := 100}, larder:explain(owner, Spec)),
    ?assertEqual(100, length(mnesia:dirty_select(owner, Spec))),
    ?assertMatch([_, _ | _], larder:info(owner, indexes)),
    ?assert(larder:info(owner, compressed)),
    ?assertEqual(100, length(larder:index_lookup(owner, by_value, 3))),
    gone([owner]).

%% Each is refused by name, and leaves nothing.
bad_options() ->
    [?assertMatch({aborted, {{bad_option, _}, refused, _}},
                  mnesia:create_table(refused, [{larder_copies, [node()]},
                                                {storage_properties, [{larder, Options}]}]),
                  Options)
     || Options <- [[{keypos, 3}], [named_table], [private], [bag], [{ttl, 1000}], [{max_size, 5}],
                    [{structure, ctrie}], [{heir, none}], [nonsense], none, [{index, none}],
                    [{index, [{u, value, [unique]}]}], [{index, [{u, no_attribute, []}]}],
                    [{index, [{u, 0, []}]}], [{read_concurrency, 'maybe'}]]],
    ?assertMatch({aborted, {{not_supported, snmp}, refused, _}},
                 mnesia:create_table(refused, [{larder_copies, [node()]},
                                               {snmp, [{key, integer}]}])),
    ?assertEqual([], larder:all()).

%% With a schema in memory a change of the storage type would end Mnesia: it is refused.
changes_in_memory() ->
    table(ram, ram_copies, []),
    table(ours, larder_copies, []),
    [?assertMatch({aborted, {{schema_in_memory, [_]}, Table, _}},
                  mnesia:change_table_copy_type(Table, node(), To))
     || {Table, To} <- [{ram, larder_copies}, {ours, ram_copies}]],
    fill(ours, 10),
    ?assertEqual(10, rows(ours)),
    gone([ram, ours]).

%% A name that another table of Larder has is not taken from it.
names() ->
    mine = larder:new(mine, [named_table]),
    true = larder:insert(mine, {a, 1}),
    ?assertMatch({aborted, {system_limit, mine, {_, {table_of_this_name_in_larder, mine}}}},
                 mnesia:create_table(mine, [{larder_copies, [node()]}])),
    ?assertEqual([{a, 1}], larder:lookup(mine, a)),
    true = larder:delete(mine),
    %% A table has its name in Larder, and belongs to Mnesia.
    table(theirs, larder_copies, [{index, [value]}]),
    ?assertEqual(whereis(mnesia_monitor), larder:info(theirs, owner)),
    ?assertEqual([theirs, theirs], [larder:info(T, name) || T <- larder:all()]),
    gone([theirs]).

%% Once more is once, for a table as it is defined now; another of that name begins empty.
made_twice() ->
    One = [{cookie, one}, {type, set}],
    ok = larder_mnesia:create_table(larder_copies, twice, One),
    ok = larder_mnesia:insert(larder_copies, twice, {thing, 1, a}),
    Id = larder:info(twice, id),
    ok = larder_mnesia:create_table(larder_copies, twice, One),
    ?assertEqual({Id, 1}, {larder:info(twice, id), larder:info(twice, size)}),
    ok = larder_mnesia:create_table(larder_copies, twice, [{cookie, two}, {type, bag}]),
    ?assertEqual({bag, 0}, {larder:info(twice, type), larder:info(twice, size)}),
    ok = larder_mnesia:delete_table(larder_copies, twice),
    ok = larder_mnesia:delete_table(larder_copies, twice),
    ?assertEqual([], larder:all()).

%% Subscribers hear the same; and so it is with what only dirty operations do.
events() ->
    [begin
         Options = [{type, Type}, {attributes, [key, count]}],
         {atomic, ok} = mnesia:create_table(one, [{ram_copies, [node()]} | Options]),
         {atomic, ok} = mnesia:create_table(two, [{larder_copies, [node()]} | Options]),
         [One, Two] = [heard(Table) || Table <- [one, two]],
         ?assertEqual(One, Two),
         gone([one, two])
     end || Type <- [set, ordered_set]].

heard(T) ->
    {ok, _} = mnesia:subscribe({table, T, detailed}),
    Answers = [mnesia:dirty_update_counter(T, a, 5), mnesia:dirty_update_counter(T, a, -2),
               mnesia:dirty_update_counter(T, b, -1), mnesia:dirty_write({T, c, 9}),
               mnesia:dirty_delete(T, a), mnesia:dirty_delete_object({T, c, 8}),
               mnesia:dirty_delete_object({T, c, 9}), mnesia:dirty_read(T, c),
               rows(T), mnesia:clear_table(T), rows(T)],
    {ok, _} = mnesia:unsubscribe({table, T, detailed}),
    {Answers, [plain(Event, T) || Event <- messages()]}.

messages() -> receive {mnesia_table_event, Event} -> [Event | messages()] after 0 -> [] end.

%% Without the transaction and the table's name.
plain(Event, _) when element(2, Event) =:= schema -> {element(1, Event), schema};
plain(Event, T) ->
    [case Part of
         T -> table;
         {T, Key} -> {table, Key};
         {T, Key, Count} -> {table, Key, Count};
         Objects when is_list(Objects) -> [setelement(1, Object, table) || Object <- Objects];
         _ -> Part
     end || Part <- tuple_to_list(setelement(tuple_size(Event), Event, none))].

%% What is written after the snapshot is not sent; it comes by events. The snapshot ends.
loads_from_a_snapshot() ->
    table(sent, larder_copies, []),
    fill(sent, 5000),
    Then = lists:sort(larder:tab2list(sent)),
    {standard, First, Next} = larder_mnesia:sender_init(larder_copies, sent, larder_copies, self()),
    {Rows, State} = First(),
    ?assert(length(Rows) < 5000),
    [ok = mnesia:dirty_delete(sent, K) || K <- lists:seq(1, 5000, 2)],
    ok = mnesia:dirty_write(sent, {thing, 10_000, 1, new}),
    ?assertEqual(1, larder:info(sent, snapshots)),
    {Next, State} = larder_mnesia:sender_handle_info(x, larder_copies, sent, self(), State),
    ?assertEqual(Then, lists:sort(Rows ++ rest(Next, Next(State)))),
    ?assert(larder_test:wait_until(fun() -> larder:info(sent, snapshots) =:= 0 end)),
    %% The receiver's side of it, into a table that has something from before.
    table(received, larder_copies, []),
    ok = mnesia:dirty_write(received, {thing, -1, old, old}),
    ok = larder_mnesia:load_table(larder_copies, received, {net_load, node()}, []),
    {5000, Got} = larder_mnesia:receiver_first_message(self(), {first, 5000}, larder_copies,
                                                       received),
    {more, Last} = larder_mnesia:receive_data(Then, larder_copies, received, self(), Got),
    ok = larder_mnesia:receive_done(larder_copies, received, self(), Last),
    ?assertEqual(Then, lists:sort(larder:tab2list(received))),
    gone([sent, received]).

%% Messages are small, whatever the table's memory says: it has no large binaries.
large_rows() ->
    table(sent, larder_copies, []),
    [ok = mnesia:dirty_write(sent, {thing, K, binary:copy(<<K>>, 40_000), x})
     || K <- lists:seq(1, 200)],
    {standard, First, Next} = larder_mnesia:sender_init(larder_copies, sent, larder_copies, self()),
    Messages = messages(Next, First()),
    ?assertEqual([], [Size || Rows <- Messages, Size <- [erlang:external_size(Rows)],
                              Size > 130_000]),
    ?assertEqual(lists:seq(1, 200), lists:sort([K || Rows <- Messages, {thing, K, _, x} <- Rows])),
    gone([sent]).

messages(_, '$end_of_table') -> [];
messages(Next, {Rows, State}) -> [Rows | messages(Next, Next(State))].

rest(_, '$end_of_table') -> [];
rest(Next, {Rows, State}) -> Rows ++ rest(Next, Next(State)).

%% Indexes that are added and dropped later; and what stays of a table's when it goes: nothing.
indexes() ->
    table(indexed, larder_copies, []),
    fill(indexed, 100),
    [begin
         {atomic, ok} = mnesia:add_table_index(indexed, Index),
         ?assertEqual(10, length(mnesia:dirty_index_read(indexed, 3, value))),
         ok = mnesia:dirty_write(indexed, {thing, 3, changed, x}),
         ?assertEqual([3], [K || {_, K, _, _} <- mnesia:dirty_index_read(indexed, changed, value)]),
         ok = mnesia:dirty_write(indexed, {thing, 3, 3, x}),
         {atomic, ok} = mnesia:clear_table(indexed),
         ?assertEqual([], mnesia:dirty_index_read(indexed, 3, value)),
         fill(indexed, 100),
         {atomic, ok} = mnesia:del_table_index(indexed, value),
         ?assertEqual([indexed], larder:all())
     end || Index <- [value, 3]],
    {atomic, ok} = mnesia:add_table_index(indexed, {words}),
    ?assertEqual(100, length(mnesia:dirty_index_read(indexed, {word, x}, {words}))),
    gone([indexed]).

%% A name of another backend's is not given; another name for this one is.
registered() ->
    ?assertEqual({ok, larder_copies}, larder_mnesia:register()),
    {_, Binary, File} = code:get_object_code(larder_mnesia),
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Binary, [abstract_code]),
    {ok, Other, Code} = compile:forms([case Form of
                                           {attribute, Line, module, _} ->
                                               {attribute, Line, module, another_backend};
                                           _ -> Form
                                       end || Form <- Forms], [binary]),
    {module, Other} = code:load_binary(Other, File, Code),
    {atomic, ok} = mnesia:add_backend_type(other_copies, Other),
    ?assertEqual({error, {backend_type_already_exists, other_copies}},
                 larder_mnesia:register(other_copies)),
    ?assertEqual({ok, more_copies}, larder_mnesia:register(more_copies)),
    table(more, more_copies, []),
    fill(more, 10),
    ?assertEqual(10, larder:info(more, size)),
    gone([more]).

%% What Mnesia calls from release 28 on.
reversed() ->
    table(back, larder_copies, [{type, ordered_set}]),
    fill(back, 10),
    Spec = [{{thing, '$1', '_', '_'}, [], ['$1']}],
    ?assertEqual(lists:seq(10, 1, -1), larder_mnesia:select_reverse(larder_copies, back, Spec)),
    {[10, 9, 8, 7], Continuation} = larder_mnesia:select_reverse(larder_copies, back, Spec, 4),
    ?assertMatch({[6, 5, 4, 3], _},
                 larder_mnesia:select_reverse(
                   larder_mnesia:repair_continuation(Continuation, Spec))),
    gone([back]).

%% ---- in the node with a schema on disc ----

%% From any storage type to Larder and from Larder to any, with an index, and written to after it.
storage_types() ->
    [begin
         table(moved, From, [{index, [value]}]),
         fill(moved, 100),
         {atomic, ok} = mnesia:change_table_copy_type(moved, node(), To),
         ok = mnesia:dirty_write(moved, {thing, 101, 3, x}),
         ?assertEqual({From, To, 101, 11},
                      {From, To, rows(moved), length(mnesia:dirty_index_read(moved, 3, value))}),
         ?assertEqual({From, To, case To of larder_copies -> 101; _ -> undefined end},
                      {From, To, larder:info(moved, size)}),
         gone([moved])
     end || {From, To} <- [{ram_copies, larder_copies}, {disc_copies, larder_copies},
                           {disc_only_copies, larder_copies}, {larder_copies, ram_copies},
                           {larder_copies, disc_copies}]].

%% Mnesia can't make fragments with a backend's copies. Fragments that are there can change to them.
fragments() ->
    {atomic, ok} = mnesia:create_table(parts, [{frag_properties, [{n_fragments, 3},
                                                                  {node_pool, [node()]}]},
                                               {attributes, ?FIELDS}]),
    In = fun(Work) -> mnesia:activity(transaction, Work, [], mnesia_frag) end,
    In(fun() -> [mnesia:write({parts, K, K rem 10, x}) || K <- lists:seq(1, 300)] end),
    Sizes = In(fun() -> mnesia:table_info(parts, frag_size) end),
    [{atomic, ok} = mnesia:change_table_copy_type(Table, node(), larder_copies)
     || {Table, _} <- Sizes],
    ?assertEqual(Sizes, [{Table, larder:info(Table, size)} || {Table, _} <- Sizes]),
    ?assertEqual(30, In(fun() -> length(mnesia:match_object({parts, '_', 3, '_'})) end)),
    ?assertEqual([{parts, 77, 7, x}], In(fun() -> mnesia:read(parts, 77) end)),
    In(fun() -> [mnesia:delete({parts, K}) || K <- lists:seq(1, 300)] end),
    ?assertEqual([0, 0, 0], [larder:info(Table, size) || {Table, _} <- Sizes]),
    gone([parts]).

%% As often as one likes: Mnesia leaves a table of `ets' behind each time.
backups() ->
    table(kept, larder_copies, [{index, [value]}]),
    fill(kept, 100),
    File = filename:join(mnesia:system_info(directory), "backup"),
    ok = mnesia:backup(File),
    [begin
         {atomic, ok} = mnesia:clear_table(kept),
         ok = mnesia:dirty_write(kept, {thing, later, 3, x}),
         {atomic, [kept]} = mnesia:restore(File, [{default_op, How}]),
         ?assertEqual({How, 100, 10},
                      {How, rows(kept), length(mnesia:dirty_index_read(kept, 3, value))})
     end || How <- [clear_tables, recreate_tables, recreate_tables]],
    gone([kept]).

%% What a checkpoint keeps is as for a table of `ets', and goes with it.
checkpoint() ->
    ?assertEqual(kept_by_a_checkpoint(ram_copies), kept_by_a_checkpoint(larder_copies)).

kept_by_a_checkpoint(Storage) ->
    table(checked, Storage, []),
    fill(checked, 50),
    {ok, point, _} = mnesia:activate_checkpoint([{name, point}, {max, [checked]},
                                                 {ram_overrides_dump, true}]),
    ok = mnesia:dirty_delete(checked, 2),
    ok = mnesia:dirty_write(checked, {thing, 1, later, x}),
    File = filename:join(mnesia:system_info(directory), "checkpoint"),
    ok = mnesia:backup_checkpoint(point, File),
    ok = mnesia:deactivate_checkpoint(point),
    ?assertEqual([T || T <- [checked], Storage =:= larder_copies], larder:all()),
    {atomic, ok} = mnesia:clear_table(checked),
    {atomic, [checked]} = mnesia:restore(File, []),
    Rows = lists:sort(mnesia:dirty_match_object(checked, {thing, '_', '_', '_'})),
    ?assertEqual(50, length(Rows)),
    gone([checked]),
    Rows.

transformed() ->
    table(turned, larder_copies, [{index, [value]}]),
    fill(turned, 100),
    {atomic, ok} = mnesia:transform_table(turned, fun({thing, K, V, W}) -> {thing, K, W, V, new} end,
                                          [key, word, value, more]),
    ?assertEqual([{thing, 7, x, 7, new}], mnesia:dirty_read(turned, 7)),
    gone([turned]).

%% An index stays at the position of the attribute that it was made for, also in a later start.
moved_attributes() ->
    table(turned, larder_copies,
          [{storage_properties, [{larder, [{index, [{by_value, value, []}]}]}]}]),
    Turn = fun({thing, K, V, W}) -> {thing, K, V, W, V} end,
    {atomic, ok} = mnesia:transform_table(turned, Turn, [key, size, word, value]),
    On = fun() -> [Place || #{on := Place} <- larder:info(turned, indexes)] end,
    ?assertEqual([3], On()),
    started_again(turned),
    ?assertEqual([3], On()),
    %% The attribute may go.
    {atomic, ok} = mnesia:transform_table(turned, ignore, [key, size, word, sum]),
    started_again(turned),
    ?assertEqual([3], On()),
    gone([turned]).

%% A fallback's rows are there once; later starts have nothing of them.
fallback() ->
    table(fallen, larder_copies, [{index, [value]}]),
    fill(fallen, 100),
    File = filename:join(mnesia:system_info(directory), "fallback"),
    ok = mnesia:backup(File),
    {atomic, ok} = mnesia:clear_table(fallen),
    ok = mnesia:install_fallback(File),
    started_again(fallen),
    ?assertEqual({100, 10}, {rows(fallen), length(mnesia:dirty_index_read(fallen, 3, value))}),
    started_again(fallen),
    ?assertEqual(0, rows(fallen)),
    gone([fallen]).

%% Of the nodes of a fallback one loads its rows, and sends them to the others. Those have nothing
%% of the fallback either when they start later without it.
fallback_elsewhere() ->
    table(fallen, larder_copies, []),
    File = mnesia_lib:tab2dcd(fallen),
    fallen_log = mnesia_log:open_log(fallen_log, mnesia_log:dcd_log_header(), File, false),
    ok = mnesia_log:append(fallen_log, {thing, of_the_backup, 1, x}),
    _ = mnesia_log:close_log(fallen_log),
    ok = larder_mnesia:load_table(larder_copies, fallen, {net_load, node()}, []),
    {more, Last} = larder_mnesia:receive_data([{thing, sent, 1, x}], larder_copies, fallen, self(),
                                              0),
    ok = larder_mnesia:receive_done(larder_copies, fallen, self(), Last),
    ?assertEqual([{thing, sent, 1, x}], larder:tab2list(fallen)),
    started_again(fallen),
    ?assertEqual([], larder:tab2list(fallen)),
    gone([fallen]).

%% The definition is on disc, the rows are not.
restarted() ->
    table(emptied, larder_copies, [{index, [value]}]),
    fill(emptied, 100),
    started_again(emptied),
    ?assertEqual({0, []}, {rows(emptied), mnesia:dirty_index_read(emptied, 3, value)}),
    fill(emptied, 100),
    ?assertEqual(10, length(mnesia:dirty_index_read(emptied, 3, value))),
    gone([emptied]).

started_again(Table) ->
    stopped = mnesia:stop(),
    ?assertEqual([], larder:all()),
    ok = mnesia:start(),
    ok = mnesia:wait_for_tables([Table], 20_000).
