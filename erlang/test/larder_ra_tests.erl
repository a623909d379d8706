%% Machines of Ra and their snapshots, without Ra: the functions that Ra calls, called as it does.
%% replicated_kv_tests has Ra itself.
-module(larder_ra_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, larder_ra_snapshot).
-define(TC(Title, Fun), larder_test:tc(Title, 60, larder, fun() -> in_a_process(Fun) end)).

%% ---- snapshots ----

%% All that a table is and has comes back, from the file and through another member.
round_trip_test_() ->
    [?TC(lists:flatten(io_lib:format("~w ~w", [Rows, Chunk])), fun() ->
        with_folders(fun(From, To) ->
            State = filled(Rows),
            {ok, Meta} = snapshot(7, State, From),
            ok = send(From, To, Meta, Chunk),
            ?assertEqual(file:read_file(file(From)), file:read_file(file(To))),
            Expected = contents(State),
            lists:foreach(fun(Folder) ->
                ?assertEqual(ok, ?M:validate(Folder)),
                ?assertEqual({ok, Meta}, ?M:read_meta(Folder)),
                %% Names and all: the earlier tables give way.
                {ok, Meta, Again} = ?M:recover(Folder),
                ?assertEqual(Expected, contents(Again))
            end, [From, To])
        end)
     end) || Rows <- [0, 1, 1000, 3000], Chunk <- [64, 100_000_000]].

%% A state with tables of all kinds, and rows in each of them.
filled(Rows) ->
    State = larder_ra:new(#{ra_named => [named_table, ordered_set, compressed],
                            keyed => [set, {keypos, 2}, {read_concurrency, true},
                                      {index, [{by_value, 3, []}, {by_half, {'div', {element, 2, '$_'}, 2}, []}]}],
                            bag => [bag], twice => [duplicate_bag, protected]},
                          #{the => rest}),
    _ = [begin
             true = larder:insert(larder_ra:table(ra_named, State), {I, I * 1.0, <<I:2000>>}),
             true = larder:insert(larder_ra:table(keyed, State), {row, I, I rem 7}),
             true = larder:insert(larder_ra:table(bag, State), {I rem 10, I * 7919 rem 1000}),
             true = larder:insert(larder_ra:table(twice, State), {I rem 10, I rem 3})
         end || I <- lists:seq(1, Rows)],
    %% Added later, as a new version of the machine does.
    true = larder:add_index(larder_ra:table(bag, State), {later, 2, []}),
    larder_ra:add_table(added, [named_table], State).

%% Objects of a key in their order; what the tables are.
contents(State) ->
    #{tables := Sizes} = larder_ra:overview(State),
    {larder_ra:rest(State),
     [{Tag, maps:get(size, map_get(Tag, Sizes)), [lists:sort(rows(Table)), about(Table)]}
      || Tag <- lists:sort(maps:keys(Sizes)), Table <- [larder_ra:table(Tag, State)]]}.

rows(Table) ->
    Position = larder:info(Table, keypos),
    Keys = lists:usort([element(Position, Row) || Row <- larder:tab2list(Table)]),
    [larder:lookup(Table, Key) || Key <- Keys].

about(Table) ->
    [[larder:info(Table, Item) || Item <- [type, keypos, protection, compressed, named_table, name,
                                           read_concurrency, write_concurrency, owner]],
     lists:sort([maps:with([name, on, options, size, ready], Index)
                 || Index <- larder:info(Table, indexes)])].

%% A large term is read in pieces.
large_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            Rest = [binary:copy(<<N>>, 7_000_000) || N <- [1, 2, 3]],
            {ok, Meta} = snapshot(1, larder_ra:new(#{}, Rest), Folder),
            ?assertEqual(ok, ?M:validate(Folder)),
            {ok, Meta, Again} = ?M:recover(Folder),
            ?assertEqual(Rest, larder_ra:rest(Again))
        end)
    end).

%% The snapshot is that of its command, whatever comes between it and Ra's asking, the writing and
%% its end.
as_of_its_command_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            State0 = larder_ra:new(#{t => [ordered_set]}, 0, #{interval => infinity}),
            Table = larder_ra:table(t, State0),
            Row = fun(Key, Value) -> true = larder:insert(Table, {Key, Value}) end,
            _ = [Row(Key, before) || Key <- lists:seq(1, 1000)],
            {State, [{release_cursor, 5, Cut}]} = larder_ra:release_cursor(#{index => 5}, State0),
            _ = [Row(Key, later) || Key <- lists:seq(2, 2000, 2)],
            _ = larder_ra:set_rest(State, 1),
            Meta = #{index => 5, term => 1},
            Cut = ?M:prepare(Meta, Cut),
            true = larder:delete_all_objects(Table),
            ok = ?M:write(Folder, Meta, Cut),
            {ok, Meta, Again} = ?M:recover(Folder),
            ?assertEqual(0, larder_ra:rest(Again)),
            ?assertEqual([{Key, before} || Key <- lists:seq(1, 1000)],
                         larder:tab2list(larder_ra:table(t, Again)))
        end)
    end).

%% Several tables: as of one command.
random_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            _ = rand:seed(exsss, seed()),
            lists:foreach(fun(_) -> random(Folder) end, lists:seq(1, larder_test:scaled(40)))
        end)
    end).

%% Commands, a snapshot after one of them, and the commands after it once more on what was
%% recovered: as a server does that starts again.
random(Folder) ->
    Commands = [{Index, rand:uniform(20), rand:uniform(1000)} || Index <- lists:seq(1, 200)],
    At = rand:uniform(200),
    State0 = larder_ra:new(#{sums => [], log => [bag]}, 0, #{interval => infinity}),
    {Before, After} = lists:split(At, Commands),
    State1 = lists:foldl(fun command/2, State0, Before),
    {State2, [{_, At, Cut}]} = larder_ra:release_cursor(#{index => At}, State1),
    Expected = contents(lists:foldl(fun command/2, State2, After)),
    Meta = #{index => At},
    ok = ?M:write(Folder, Meta, ?M:prepare(Meta, Cut)),
    {ok, Meta, Again} = ?M:recover(Folder),
    ?assertEqual(Expected, contents(lists:foldl(fun command/2, Again, After))).

command({Index, Key, Amount}, State) ->
    _ = larder:update_counter(larder_ra:table(sums, State), Key, Amount, {Key, 0}),
    true = larder:insert(larder_ra:table(log, State), {Key, Index}),
    {Next, ok, []} = larder_ra:reply(#{index => Index},
                                     larder_ra:set_rest(State, larder_ra:rest(State) + 1), ok),
    Next.

seed() ->
    case os:getenv("LARDER_SEED", "2026,11,26") of
        "random" -> {erlang:unique_integer(), erlang:monotonic_time(), 1};
        Text -> list_to_tuple([list_to_integer(Part) || Part <- string:lexemes(Text, ",")])
    end.

%% ---- when ----

%% Snapshots come after so many commands, and those of Ra's own count.
interval_test_() ->
    ?TC("", fun() ->
        State = larder_ra:new(#{t => []}, none, #{interval => 10}),
        ?assertEqual([10, 20, 35, 45], due(State, [1, 9, 10, 11, 20, 35, 44, 45])),
        Never = larder_ra:new(#{t => []}, none, #{interval => infinity}),
        ?assertEqual([], due(Never, [1, 1_000_000_000])),
        %% By themselves: with more rows, more seldom.
        Few = larder_ra:new(#{t => []}, none),
        ?assertEqual([10_000, 20_000], due(Few, [9_999, 10_000, 19_999, 20_000])),
        Many = larder_ra:new(#{t => [], u => []}, none),
        true = larder:insert(larder_ra:table(t, Many), [{I} || I <- lists:seq(1, 50_000)]),
        true = larder:insert(larder_ra:table(u, Many), [{I} || I <- lists:seq(1, 30_000)]),
        ?assertEqual([10_000, 30_000], due(Many, [10_000, 20_000, 29_999, 30_000]))
    end).

due(State, Indexes) ->
    {_, Due} = lists:foldl(fun(Index, {S0, Due}) ->
        case larder_ra:reply(#{index => Index}, S0, reply, [effect]) of
            {S, reply, [effect]} -> {S, Due};
            {S, reply, [effect, {release_cursor, Index, _}]} -> {S, [Index | Due]}
        end
    end, {State, []}, Indexes),
    lists:reverse(Due).

%% Nothing is kept for a snapshot that was written, or that Ra did not take.
released_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            State = larder_ra:new(#{t => [], u => []}, none, #{interval => 1}),
            Snapshots = fun() -> {larder:info(larder_ra:table(t, State), snapshots),
                                  larder:info(larder_ra:table(u, State), snapshots)} end,
            Cut = fun(Index) ->
                {_, ok, [{_, Index, C}]} = larder_ra:reply(#{index => Index}, State, ok),
                C
            end,
            One = Cut(1),
            Two = Cut(2),
            eventually({2, 2}, Snapshots),
            One = ?M:prepare(#{index => 1}, One),
            eventually({1, 1}, Snapshots),
            ok = write(Folder, #{index => 1}, One),
            _ = Cut(3),
            eventually({1, 1}, Snapshots),
            %% A batch of commands: Ra sees all of them after the last, and takes the first.
            Four = Cut(4),
            _ = [Cut(Index) || Index <- lists:seq(5, 18)],
            Four = ?M:prepare(#{index => 4}, Four),
            ok = write(Folder, #{index => 4}, Four),
            %% One that was dropped can't be written, and the writer says so.
            _ = ?M:recover(Folder),
            ?assertError(badarg, ?M:write(Folder, #{index => 2}, Two)),
            ?assertEqual([], [T || T <- larder:all(), larder:info(T, snapshot) =/= false,
                                   larder:info(T, owner) =:= self()])
        end)
    end).

%% A batch of any length: Ra sees its effects after the last command and takes any one of them. They
%% don't grow with the commands, and one is from shortly before the last command.
burst_test_() ->
    [?TC(lists:flatten(io_lib:format("~w commands, interval ~w", [Commands, Interval])), fun() ->
        with_folders(fun(Folder, _) ->
            lists:foreach(fun(Share) -> burst(Commands, Interval, Share, Folder) end,
                          [0.0, 0.3, 0.9, 1.0])
        end)
     end) || Commands <- [17, 5000], Interval <- [1, 10, 300]].

%% Ra passes over this share of the effects, and takes the next one.
burst(Commands, Interval, Share, Folder) ->
    State0 = larder_ra:new(#{t => [ordered_set]}, none, #{interval => Interval}),
    Table = larder_ra:table(t, State0),
    {_, Effects} = lists:foldl(fun(Index, {S0, Es}) ->
        true = larder:insert(Table, {Index}),
        {S, ok, E} = larder_ra:reply(#{index => Index}, S0, ok),
        {S, Es ++ E}
    end, {State0, []}, lists:seq(1, Commands)),
    Waiting = length(Effects),
    ?assert(Waiting =< 16 + 8 * math:log(1 + Commands / 16)),
    ?assertEqual(Waiting, larder:info(Table, snapshots)),
    Commands < Interval orelse begin
        {release_cursor, Last, _} = lists:last(Effects),
        ?assert(Commands - Last < Interval + Commands / 8),
        {release_cursor, Index, Cut} = lists:nth(1 + round(Share * (Waiting - 1)), Effects),
        Cut = ?M:prepare(#{index => Index}, Cut),
        eventually(1, fun() -> larder:info(Table, snapshots) end),
        ok = write(Folder, #{index => Index}, Cut),
        {ok, _, Again} = ?M:recover(Folder),
        ?assertEqual([{I} || I <- lists:seq(1, Index)],
                     larder:tab2list(larder_ra:table(t, Again)))
    end.

%% A writer that fails does not hold up the next one.
writer_fails_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            State = larder_ra:new(#{t => []}, none, #{interval => 1}),
            {_, [{_, 1, One}]} = larder_ra:release_cursor(#{index => 1}, State),
            Nowhere = filename:join(Folder, "nowhere"),
            One = ?M:prepare(#{index => 1}, One),
            ?assertEqual({error, enoent}, write(Nowhere, #{index => 1}, One)),
            {_, ok, [{_, 2, Two}]} = larder_ra:reply(#{index => 2}, State, ok),
            eventually(1, fun() -> larder:info(larder_ra:table(t, State), snapshots) end),
            ok = write(Folder, #{index => 2}, ?M:prepare(#{index => 2}, Two))
        end)
    end).

%% ---- what is wrong ----

%% The effect must have a snapshot: a state would be written as it is later.
no_snapshot_test_() ->
    ?TC("", fun() ->
        State = larder_ra:new(#{t => []}, none),
        ?assertError({release_cursor_without_snapshot, _}, ?M:prepare(#{index => 1}, State)),
        ?assertError({not_a_state_of_larder_ra, #{}}, ?M:prepare(#{index => 1}, #{}))
    end).

refused_test_() ->
    ?TC("", fun() ->
        lists:foreach(fun(Option) ->
            ?assertError({bad_option, {t, Option}}, larder_ra:new(#{t => [set, Option]}, none)),
            ?assertError({bad_option, {t, Option}},
                         larder_ra:add_table(t, [Option], larder_ra:new(#{}, none)))
        end, [public, private, {heir, none}, {ttl, 10}, {idle, 10}, {max_size, 1}, {max_memory, 1},
              {evict, lru}, {structure, default}, nonsense, {nonsense, 1}]),
        ?assertError({bad_table, {"t", []}}, larder_ra:new(#{"t" => []}, none)),
        ?assertError({bad_table, {t, set}}, larder_ra:new(#{t => set}, none)),
        ?assertError(badarg, larder_ra:new(#{t => [{keypos, 0}]}, none)),
        ?assertError({bad_options, [{interval, 0}]}, larder_ra:new(#{}, none, #{interval => 0})),
        ?assertError({bad_options, _}, larder_ra:new(#{}, none, #{often => 1})),
        State = larder_ra:new(#{t => []}, none),
        ?assertError({badkey, u}, larder_ra:table(u, State)),
        ?assertError({badkey, u}, larder_ra:drop_table(u, State)),
        ?assertError({table_exists, t}, larder_ra:add_table(t, [], State))
    end).

%% A state without tables, and one that loses one.
dropped_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            {ok, _} = snapshot(1, larder_ra:new(#{}, alone), Folder),
            {ok, _, Alone} = ?M:recover(Folder),
            ?assertEqual({alone, []}, contents(Alone)),
            State = larder_ra:add_table(ra_named, [named_table], Alone),
            true = larder:insert(ra_named, {1}),
            {ok, _} = snapshot(2, State, Folder),
            _ = larder_ra:drop_table(ra_named, State),
            ?assertEqual(undefined, larder:whereis(ra_named)),
            {ok, _, Again} = ?M:recover(Folder),
            ?assertEqual([{1}], larder:tab2list(larder_ra:table(ra_named, Again)))
        end)
    end).

%% Tags of named tables are as long as atoms get.
long_tag_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            Tag = list_to_atom(lists:duplicate(255, 16#20ac)),
            State = larder_ra:new(#{Tag => [named_table]}, state),
            true = larder:insert(larder_ra:table(Tag, State), {1}),
            {ok, _} = snapshot(1, State, Folder),
            {ok, _, Again} = ?M:recover(Folder),
            ?assertEqual([{1}], larder:tab2list(Tag)),
            _ = larder_ra:drop_table(Tag, Again)
        end)
    end).

%% A file that is cut short at any byte, or altered at any, is no snapshot. What the server has
%% stays.
damaged_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, Other) ->
            State = larder_ra:new(#{ra_named => [named_table]}, rest),
            true = larder:insert(ra_named, [{I, I} || I <- lists:seq(1, 250)]),
            {ok, Meta} = snapshot(1, State, Folder),
            {ok, Bytes} = file:read_file(file(Folder)),
            Expected = contents(State),
            Wrong = fun(Wrong, Damaged) ->
                ok = file:write_file(file(Other), Damaged),
                ?assertMatch({Wrong, {error, _}}, {Wrong, ?M:validate(Other)}),
                ?assertMatch({Wrong, {error, _}}, {Wrong, ?M:recover(Other)}),
                ?assertEqual({Wrong, Expected}, {Wrong, contents(State)}),
                %% Sent by another member, it is refused, before Ra drops an older snapshot.
                {ok, Accept} = ?M:begin_accept(Other, Meta),
                ?assertMatch({Wrong, {error, _}}, {Wrong, ?M:complete_accept(Damaged, Accept)})
            end,
            Size = byte_size(Bytes),
            Places = lists:seq(0, 200) ++ lists:seq(201, Size - 200, 97) ++ lists:seq(Size - 60, Size - 1),
            lists:foreach(fun(Place) ->
                Wrong({cut, Place}, binary:part(Bytes, 0, Place)),
                <<Before:Place/binary, Byte, After/binary>> = Bytes,
                Place < 9 orelse Wrong({altered, Place}, <<Before/binary, (Byte bxor 16), After/binary>>)
            end, Places),
            Wrong(longer, <<Bytes/binary, 0>>),
            Wrong(zeros, <<0:Size/unit:8>>),
            <<Head:9/binary, Terms/binary>> = Bytes,
            Wrong(empty_term, <<Head/binary, 0:64, (erlang:crc32(<<>>)):32, Terms/binary>>),
            NoTerm = <<131, 255>>,
            ok = file:write_file(file(Other), <<Head/binary, 2:64, (erlang:crc32(NoTerm)):32,
                                                NoTerm/binary, Terms/binary>>),
            ?assertEqual({error, not_a_term}, ?M:recover(Other)),
            ?assertEqual({error, enoent}, ?M:validate(filename:join(Folder, "nowhere"))),
            ok = file:write_file(file(Other), Bytes),
            ?assertEqual(ok, ?M:validate(Other)),
            {ok, Accept} = ?M:begin_accept(Other, #{index => 2}),
            ?assertMatch({error, {other_meta_data, _, _}}, ?M:complete_accept(Bytes, Accept))
        end)
    end).

%% Nodes of all releases of OTP take the file: the atom that ends it is encoded as Latin-1 before
%% OTP 26, and as UTF-8 from there on.
other_releases_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, Other) ->
            State = larder_ra:new(#{t => []}, rest),
            true = larder:insert(larder_ra:table(t, State), [{I} || I <- lists:seq(1, 500)]),
            {ok, Meta} = snapshot(1, State, Folder),
            {ok, Bytes} = file:read_file(file(Folder)),
            Rows = binary:part(Bytes, 0, byte_size(Bytes) - 12 - byte_size(term_to_binary('end'))),
            Expected = contents(State),
            lists:foreach(fun(End) ->
                {ok, Accept} = ?M:begin_accept(Other, Meta),
                Ended = [Rows, <<(byte_size(End)):64, (erlang:crc32(End)):32>>, End],
                ?assertEqual(ok, ?M:complete_accept(Ended, Accept)),
                ?assertEqual(ok, ?M:validate(Other)),
                {ok, Meta, Again} = ?M:recover(Other),
                ?assertEqual(Expected, contents(Again))
            end, [<<131, 100, 3:16, "end">>, <<131, 119, 3, "end">>])
        end)
    end).

%% Ra deletes what is no valid snapshot: what may be one of something else is not called invalid.
another_test_() ->
    ?TC("", fun() ->
        with_folders(fun(Folder, _) ->
            lists:foreach(fun({Bytes, Reason}) ->
                ok = file:write_file(file(Folder), Bytes),
                lists:foreach(fun(Function) ->
                    ?assertError(_, ?M:Function(Folder)),
                    try ?M:Function(Folder) catch error:Error -> ?assertEqual(Reason, element(1, Error)) end
                end, [validate, recover, read_meta])
            end, [{<<"RASN", 1, 0:32, 0:32, 0:32>>, snapshot_of_another_module},
                  {<<"LARDERRA", 2, 0:32>>, snapshot_of_later_version}])
        end)
    end).

%% ---- Ra's behaviours ----

exports_test() ->
    Exports = ?M:module_info(exports),
    %% Of Ra 2.2, and of later ones.
    ?assertEqual([], [{prepare, 2}, {write, 3}, {begin_read, 1}, {read_chunk, 3}, {begin_accept, 2},
                      {accept_chunk, 2}, {complete_accept, 2}, {recover, 1}, {validate, 1},
                      {read_meta, 1}] -- Exports),
    ?assertEqual([], [{write, 4}, {sync, 1}, {begin_read, 2}, {context, 0}] -- Exports).

%% ---- help ----

file(Folder) -> filename:join(Folder, "snapshot.dat").

%% As Ra takes one, in two processes.
snapshot(Index, State, Folder) ->
    Meta = #{index => Index, term => 3, cluster => [{t, node()}], machine_version => 0},
    {_, [{release_cursor, Index, Cut}]} = larder_ra:release_cursor(#{index => Index}, State),
    Cut = ?M:prepare(Meta, Cut),
    ok = write(Folder, Meta, Cut),
    {ok, Meta}.

write(Folder, Meta, Cut) ->
    {Writer, Monitor} = spawn_monitor(fun() -> exit({written, ?M:write(Folder, Meta, Cut)}) end),
    receive {'DOWN', Monitor, _, Writer, {written, Result}} -> Result end.

send(From, To, Meta, Chunk) ->
    {ok, Meta, Reading} = ?M:begin_read(From),
    {ok, Accept} = ?M:begin_accept(To, Meta),
    chunks(?M:read_chunk(Reading, Chunk, From), From, Chunk, Accept).

chunks({ok, Bytes, {next, Reading}}, From, Chunk, Accept) ->
    ?assertEqual(Chunk, byte_size(Bytes)),
    {ok, Next} = ?M:accept_chunk(Bytes, Accept),
    chunks(?M:read_chunk(Reading, Chunk, From), From, Chunk, Next);
chunks({ok, Bytes, last}, _, _, Accept) ->
    ?M:complete_accept(Bytes, Accept).

%% What was released is freed later.
eventually(Expected, Fun) ->
    _ = larder_test:wait_until(fun() -> Fun() =:= Expected end, 2000),
    ?assertEqual(Expected, Fun()).

%% The tables end with the process, as with a Ra server.
in_a_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(Fun),
    receive
        {'DOWN', Monitor, _, Pid, normal} -> ok;
        {'DOWN', Monitor, _, Pid, Reason} -> error(Reason)
    end.

with_folders(Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["larder_t_ra_", os:getpid(), "_",
                                         erlang:unique_integer([positive])])),
    [One, Two] = [filename:join(Folder, Name) || Name <- ["one", "two"]],
    ok = filelib:ensure_dir(filename:join(One, "x")),
    ok = filelib:ensure_dir(filename:join(Two, "x")),
    try Fun(One, Two) after file:del_dir_r(Folder) end.
