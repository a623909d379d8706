%% @doc Snapshots: every function that reads gives of a snapshot what `ets' gives of a copy of the
%% table as it was; nobody writes one; a snapshot ends with its owner, and keeps what its table
%% loses.
-module(snapshot_tests).

-export([reads_test_/0, hash_order_test_/0, emptied_test_/0, writes_are_refused_test_/0,
         words_test_/0, info_test_/0, counted_in_slices_test_/0, lifetime_test_/0,
         killed_reader_test_/0, outlives_table_test_/0, one_instant_test_/0, lists_test_/0,
         rights_test_/0, diff_test_/0, diff_after_clear_test_/0, diff_while_writing_test_/0,
         large_diff_test_/0, saved_test_/0, studies_test_/0]).

-include_lib("stdlib/include/qlc.hrl").

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).
-define(ALL, [{'_', [], ['$_']}]).

suite(Title, Fun) ->
    [larder_test:tc(lists:concat([Title, ", ", Type]), 120, larder, fun() -> Fun(Type) end)
     || Type <- ?TYPES].

one(Title, Fun) ->
    [larder_test:tc(Title, 120, larder, Fun)].

%% Reading ---------------------------------------------------------------------------------------

%% A table is changed at random, with snapshots taken between; each is compared with a copy.
reads_test_() ->
    suite("snapshots read as copies do", fun(Type) ->
        _ = rand:seed(exsss, {2026, 11, erlang:phash2(Type)}),
        T = larder:new(t, [Type, public]),
        Oracle = ets:new(t, [Type, public]),
        Kept = lists:foldl(fun(Round, Kept) ->
            [change(T, Oracle, 300) || _ <- lists:seq(1, 60)],
            S = larder:snapshot(T),
            Copy = copy(Oracle, Type),
            [same(Snapshot, Old, Type) || Round rem 4 =:= 0, {Snapshot, Old} <- [{S, Copy} | Kept]],
            drop_some([{S, Copy} | Kept])
        end, [], lists:seq(1, 40)),
        [same(S, Copy, Type) || {S, Copy} <- Kept],
        %% The table itself is what it would be without them.
        Objects = lists:sort(ets:tab2list(Oracle)),
        Objects = lists:sort(larder:tab2list(T)),
        true = larder:delete(T),
        [same(S, Copy, Type) || {S, Copy} <- Kept],
        [true = larder:release(S) || {S, _} <- Kept],
        [ets:delete(Copy) || {_, Copy} <- Kept],
        ets:delete(Oracle)
    end).

drop_some(Kept) when length(Kept) < 6 ->
    Kept;
drop_some(Kept) ->
    {S, Copy} = Gone = lists:nth(rand:uniform(length(Kept)), Kept),
    true = larder:release(S),
    ets:delete(Copy),
    Kept -- [Gone].

copy(Oracle, Type) ->
    Copy = ets:new(copy, [Type, public]),
    %% In order of arrival, so that a bag's objects come as they did.
    Keys = lists:usort([element(1, Object) || Object <- ets:tab2list(Oracle)]),
    [true = ets:insert(Copy, Object) || Key <- Keys, Object <- ets:lookup(Oracle, Key)],
    Copy.

%% The same change of both.
change(T, Oracle, Keys) ->
    Key = rand:uniform(Keys),
    N = rand:uniform(4),
    Object = case rand:uniform(8) of
                 1 -> {Key, binary:copy(<<N>>, 300)};
                 2 -> {Key, #{n => N}, [N]};
                 _ -> {Key, N}
             end,
    Change = case rand:uniform(12) of
                 R when R =< 6 -> fun(M, X) -> M:insert(X, Object) end;
                 7 -> fun(M, X) -> M:delete(X, Key) end;
                 8 -> fun(M, X) -> M:delete_object(X, Object) end;
                 9 -> fun(M, X) -> lists:sort(M:take(X, Key)) end;
                 10 -> fun(M, X) -> M:insert(X, [{K, N} || K <- lists:seq(Key, Key + 20)]) end;
                 11 -> fun(M, X) -> M:match_delete(X, {'_', N}) end;
                 12 -> fun(M, X) -> M:insert_new(X, Object) end
             end,
    Said = Change(ets, Oracle),
    Said = Change(larder, T).

%% Every function that reads.
same(S, Copy, Type) ->
    Sorted = fun lists:sort/1,
    As = case Type of
             ordered_set -> fun(X) -> X end;
             _ -> Sorted
         end,
    Both = fun(How, Fun) ->
        case {How(Fun(ets, Copy)), How(Fun(larder, S))} of
            {Same, Same} -> ok;
            {Expected, Got} -> error({differ, Type, erlang:fun_info(Fun, name), Expected, Got})
        end
    end,
    Objects = [{'$1', '$2'}],
    Both(As, fun(M, X) -> M:tab2list(X) end),
    Both(As, fun(M, X) -> M:select(X, ?ALL) end),
    Both(As, fun(M, X) -> M:select_reverse(X, ?ALL) end),
    Both(As, fun(M, X) -> M:match(X, hd(Objects)) end),
    Both(As, fun(M, X) -> M:match_object(X, {'_', 3}) end),
    Both(As, fun(M, X) -> M:select(X, [{{'$1', '_'}, [{'>', '$1', 70}, {'<', '$1', 130}],
                                        ['$_']}]) end),
    Both(As, fun(M, X) -> M:select_reverse(X, [{{'$1', '_'}, [{'>', '$1', 70}], ['$1']}]) end),
    Both(As, fun(M, X) -> paged(M, M:select(X, ?ALL, 7), select) end),
    Both(As, fun(M, X) -> paged(M, M:select_reverse(X, ?ALL, 7), select_reverse) end),
    Both(As, fun(M, X) -> paged(M, M:match(X, hd(Objects), 3), match) end),
    Both(As, fun(M, X) -> paged(M, M:match_object(X, '_', 40), match_object) end),
    Both(fun(N) -> N end, fun(M, X) -> M:select_count(X, [{{'_', 2}, [], [true]}]) end),
    Both(fun(N) -> N end, fun(M, X) -> M:info(X, size) end),
    Both(As, fun(M, X) -> lists:reverse(M:foldl(fun(O, Acc) -> [O | Acc] end, [], X)) end),
    Both(As, fun(M, X) -> M:foldr(fun(O, Acc) -> [O | Acc] end, [], X) end),
    Both(As, fun(M, X) -> walked(M, X, first, next) end),
    Both(As, fun(M, X) -> walked(M, X, last, prev) end),
    Both(Sorted, fun(M, X) -> slots(M, X, 0) end),
    Both(As, fun(M, X) -> qlc:e(M:table(X)) end),
    Both(Sorted, fun(M, X) ->
        qlc:e(qlc:q([{K, V} || {K, V} <- M:table(X), K =:= 17 orelse V =:= 2]))
    end),
    [begin
         Both(fun(L) -> L end, fun(M, X) -> M:lookup(X, K) end),
         Both(fun(L) -> L end, fun(M, X) -> M:member(X, K) end),
         Both(fun(L) -> L end, fun(M, X) -> element_or_badarg(M, X, K) end),
         Both(fun(L) -> L end, fun(M, X) -> M:select(X, [{{K, '$1'}, [], ['$1']}]) end),
         Both(fun(L) -> L end, fun(M, X) -> M:match(X, {K, '$1'}) end)
     end || K <- lists:seq(1, 320, 7)],
    Keys = lists:seq(1, 320),
    Many = [ets:lookup(Copy, K) || K <- Keys],
    Many = larder:lookup_many(S, Keys),
    true = larder:safe_fixtable(S, true),
    true = larder:safe_fixtable(S, false),
    [begin
         {ordered, First} = {ordered, ets:first(Copy)},
         End = case First of '$end_of_table' -> First; _ -> {First, ets:lookup(Copy, First)} end,
         End = larder:first_lookup(S)
     end || Type =:= ordered_set].

element_or_badarg(M, X, K) ->
    try
        M:lookup_element(X, K, 2)
    catch
        error:badarg -> badarg
    end.

paged(_, '$end_of_table', _) -> [];
paged(M, {Found, Next}, F) -> Found ++ paged(M, M:F(Next), F).

walked(M, X, First, Next) ->
    walked(M, X, M:First(X), Next, []).

walked(_, _, '$end_of_table', _, Acc) -> lists:append(lists:reverse(Acc));
walked(M, X, Key, Next, Acc) -> walked(M, X, M:Next(X, Key), Next, [M:lookup(X, Key) | Acc]).

slots(M, X, N) ->
    case M:slot(X, N) of
        '$end_of_table' -> [];
        Objects -> Objects ++ slots(M, X, N + 1)
    end.

%% Ways of reading that have an order have that of the table.
hash_order_test_() ->
    suite("a snapshot has its table's order", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, V} || K <- lists:seq(1, 3000), V <- [a, b]]),
        Order = walked(larder, T, first, next),
        S = larder:snapshot(T),
        true = larder:match_delete(T, {'_', a}),
        true = larder:insert(T, [{K, c} || K <- lists:seq(2000, 5000)]),
        Order = walked(larder, S, first, next),
        Order = paged(larder, larder:select(S, ?ALL, 10), select),
        Order = lists:reverse(larder:foldl(fun(O, Acc) -> [O | Acc] end, [], S)),
        true = larder:delete(T),
        true = larder:release(S)
    end).

%% Most keys are deleted, so a leaf of the table stands for the range of many former ones. Batches
%% end within it: after many versions, and where a slice ends. Each object is read once all the
%% same.
emptied_test_() ->
    suite("a snapshot of a table that was nearly emptied", fun(Type) ->
        [begin
            T = larder:new(t, [Type, public]),
            true = larder:insert(T, [{I div Each, I} || I <- lists:seq(1, 100000)]),
            All = lists:sort(larder:tab2list(T)),
            Size = length(All),
            S = larder:snapshot(T),
            Most = [{{'$1', '_'}, [{'>', {'rem', '$1', Stays}, 0}], [true]}],
            true = larder:select_delete(T, Most) > Size div 2,
            Size = larder:info(S, size),
            [Size = larder:select_count(S, [{'_', [], [true]}]) || _ <- lists:seq(1, 10)],
            [All = lists:sort(larder:tab2list(S)) || _ <- lists:seq(1, 10)],
            All = lists:sort(larder:select(S, [{'$1', [], ['$1']}])),
            true = larder:delete(T),
            true = larder:release(S)
        end || {Each, Stays} <- [{1, 50}, {2, 50}, {2, 20}, {3, 50}]]
    end).

%% Writing ---------------------------------------------------------------------------------------

writes() ->
    [{insert, [{1, x}]}, {insert, [[{1, x}]]}, {insert_new, [{1, x}]}, {insert_new, [[{1, x}]]},
     {delete, []}, {delete, [1]}, {delete_object, [{1, x}]}, {delete_all_objects, []}, {take, [1]},
     {take_many, [[1]]}, {update_counter, [1, {2, 1}]}, {update_counter, [1, {2, 1}, {1, 1}]},
     {update_element, [1, {2, x}]}, {update_element, [1, {2, x}, {1, y}]},
     {match_delete, ['_']}, {select_delete, [[{'_', [], [true]}]]},
     {select_take, [[{'_', [], ['$_']}]]},
     {select_replace, [[{{'$1', '_'}, [], [{{'$1', x}}]}]]}, {rename, [other]},
     {give_away, [self(), data]}, {setopts, [{heir, none}]}, {setopts, [{protection, public}]},
     {init_table, [fun(read) -> end_of_input end]}, {from_dets, [?MODULE]}].

writes_are_refused_test_() ->
    suite("a snapshot is written by nobody", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{1, 1}, {2, 2}]),
        S = larder:snapshot(T),
        Had = larder:tab2list(S),
        _ = dets:start(),
        {ok, ?MODULE} = dets:open_file(?MODULE, [{ram_file, true}, {access, read_write},
                                                 {file, larder_test:file("snapshot_dets")}]),
        ok = dets:insert(?MODULE, {1, 1}),
        [{F, A, #{1 := <<"the table is a snapshot, which can't be written">>}} =
             {F, A, refused(F, [S | A])} || {F, A} <- writes()],
        ok = dets:close(?MODULE),
        ok = file:delete(larder_test:file("snapshot_dets")),
        Had = larder:tab2list(S),
        Had = larder:tab2list(T),
        true = larder:release(S),
        true = larder:delete(T)
    end).

%% The words of the badarg that a call ends with.
refused(F, Args) ->
    try apply(larder, F, Args) of
        Result -> {no_error, Result}
    catch
        error:badarg:Stack ->
            larder = element(1, hd(Stack)),
            maps:map(fun(_, Text) -> unicode:characters_to_binary(Text) end,
                     larder:format_error(badarg, Stack))
    end.

words_test_() ->
    one("the words of what is refused", fun() ->
        T = larder:new(t, []),
        Other = larder:new(t, []),
        [S, OfOther] = larder:snapshot([T, Other]),
        #{1 := <<"not a snapshot">>} = refused(release, [T]),
        #{1 := <<"a snapshot of a snapshot can't be taken">>} = refused(snapshot, [S]),
        #{1 := <<"a snapshot of a snapshot can't be taken">>} = refused(snapshot, [[T, S]]),
        #{general := <<"the snapshots are of different tables">>} = refused(diff, [S, OfOther]),
        #{2 := <<"not a snapshot">>} = Second = refused(diff, [S, T]),
        1 = map_size(Second),
        #{1 := <<"the calling process is not the owner of the snapshot">>} =
            elsewhere(fun() -> refused(release, [S]) end),
        true = larder:release(OfOther),
        #{1 := Gone} = refused(release, [OfOther]),
        #{1 := Gone} = refused(lookup, [OfOther, 1]),
        #{2 := Gone} = refused(diff, [S, OfOther]),
        #{1 := <<"not a list of tables">>} = refused(snapshot, [[T | x]]),
        #{1 := _} = refused(snapshot, [no_such_table]),
        #{1 := Named} = refused(snapshot, [[T, no_such_table]]),
        {_, _} = binary:match(Named, <<"no_such_table">>),
        #{1 := Unnamed} = refused(snapshot, [no_such_table]),
        <<"no_such_table: ", Unnamed/binary>> = Named,
        #{1 := _} = refused(snapshot, [17]),
        true = larder:release(S),
        [larder:delete(X) || X <- [T, Other]]
    end).

elsewhere(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({said, Fun()}) end),
    receive {'DOWN', Monitor, process, Pid, {said, Result}} -> Result end.

%% What is known of one --------------------------------------------------------------------------

info_test_() ->
    suite("what is known of a snapshot, and of its table", fun(Type) ->
        T = larder:new(info_test, [Type, public, named_table, {keypos, 2}]),
        true = larder:insert(T, [{x, K} || K <- lists:seq(1, 1000)]),
        {false, 0, 0} = {larder:info(T, snapshot), larder:info(T, snapshots),
                         larder:info(T, snapshot_memory)},
        S1 = larder:snapshot(T),
        [S2] = larder:snapshot([T]),
        #{table := T, number := N1, age := Age} = larder:info(S1, snapshot),
        #{table := T, number := N2} = larder:info(S2, snapshot),
        true = N2 > N1 andalso is_integer(Age) andalso Age >= 0,
        2 = larder:info(T, snapshots),
        true = larder:match_delete(T, {'_', '_'}),
        Kept = larder:info(T, snapshot_memory),
        true = Kept > 1000,
        1000 = larder:info(S1, size),
        Items = larder:info(S1),
        [1000, Type, 2, protected, info_test, false, S1] =
            [proplists:get_value(Item, Items)
             || Item <- [size, type, keypos, protection, name, named_table, id]],
        Owner = self(),
        Owner = larder:info(S1, owner),
        %% Snapshots are among all tables.
        [S2, S1, T] -- larder:all() =:= [] orelse error(not_listed),
        true = larder:delete(T),
        #{table := undefined, number := N1} = larder:info(S1, snapshot),
        1000 = larder:info(S2, size),
        [true = larder:release(S) || S <- [S1, S2]],
        [undefined = larder:info(S1, Item) || Item <- [snapshot, size, snapshots]]
    end).

%% Counting a large snapshot lets others run.
counted_in_slices_test_() ->
    one("a large snapshot is counted in slices", fun() ->
        T = larder:new(t, [ordered_set, public]),
        N = 400000,
        [larder:insert(T, [{K} || K <- lists:seq(From, From + 9999)])
         || From <- lists:seq(1, N, 10000)],
        S = larder:snapshot(T),
        true = larder:insert(T, {0}),
        {reductions, Before} = process_info(self(), reductions),
        N = larder:info(S, size),
        {reductions, After} = process_info(self(), reductions),
        %% Each slice uses all of its 4,000 up.
        true = After - Before > 4 * 4000,
        true = least_microseconds(fun() -> N = larder:info(S, size) end) < 10000,
        true = larder:release(S),
        true = larder:delete(T)
    end).

%% How one ends ----------------------------------------------------------------------------------

lifetime_test_() ->
    suite("a snapshot ends with its owner", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, K} || K <- lists:seq(1, 2000)]),
        Self = self(),
        {Pid, Monitor} = spawn_monitor(fun() ->
            Self ! {snapshots, [larder:snapshot(T) || _ <- lists:seq(1, 20)]},
            receive never -> ok end
        end),
        Snapshots = receive {snapshots, L} -> L end,
        20 = larder:info(T, snapshots),
        true = larder:delete_all_objects(T),
        %% Others read it while it lives.
        2000 = length(larder:tab2list(hd(Snapshots))),
        Pid = larder:info(hd(Snapshots), owner),
        exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
        true = larder_test:wait_until(fun() ->
            [S || S <- Snapshots, larder:info(S, size) =/= undefined] =:= []
        end),
        {'EXIT', {badarg, _}} = (catch larder:lookup(hd(Snapshots), 1)),
        none_left(T),
        true = larder:insert(T, {1, 1}),
        0 = larder:info(T, snapshot_memory),
        true = larder:delete(T)
    end).

%% What is released goes when nobody reads it any more.
none_left(T) ->
    true = larder_test:wait_until(fun() -> larder:info(T, snapshots) =:= 0 end).

%% The owner is killed while it, and another, read: no scheduler hangs, and nothing is left.
killed_reader_test_() ->
    suite("owners are killed in the middle of a select", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, K} || K <- lists:seq(1, 20000)]),
        Self = self(),
        [begin
             Size = larder:info(T, size),
             {Pid, Monitor} = spawn_monitor(fun() ->
                 S = larder:snapshot(T),
                 Self ! {snapshot, self(), S},
                 forever(fun() ->
                     Size = length(larder:select(S, ?ALL)),
                     Later = larder:snapshot(T),
                     true = length(larder:diff(S, Later)) =< 2 * Size,
                     true = larder:release(Later)
                 end)
             end),
             S = receive {snapshot, Pid, X} -> X end,
             {Other, OtherMonitor} = spawn_monitor(fun() ->
                 %% It finds that the snapshot is gone.
                 exit(catch forever(fun() -> Size = length(larder:tab2list(S)) end))
             end),
             true = larder:insert(T, [{K, N} || K <- lists:seq(N, 20000, 50)]),
             true = larder:match_delete(T, {'_', N}),
             true = larder:insert(T, [{-K, K} || K <- lists:seq(N, 20000, 50)]),
             timer:sleep(N rem 7),
             exit(Pid, kill),
             receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
             receive {'DOWN', OtherMonitor, process, Other, {'EXIT', {badarg, _}}} -> ok end
         end || N <- lists:seq(1, 15)],
        none_left(T),
        true = larder:delete(T)
    end).

forever(Fun) ->
    Fun(),
    forever(Fun).

outlives_table_test_() ->
    suite("a snapshot keeps what its table loses", fun(Type) ->
        T = larder:new(t, [Type, public]),
        Objects = [{K, binary:copy(<<K:32>>, 50)} || K <- lists:seq(1, 5000)],
        true = larder:insert(T, Objects),
        S1 = larder:snapshot(T),
        true = larder:delete_all_objects(T),
        S2 = larder:snapshot(T),
        true = larder:insert(T, [{K, x} || K <- lists:seq(1, 100)]),
        S3 = larder:snapshot(T),
        true = larder:delete(T),
        Objects = lists:sort(larder:tab2list(S1)),
        [] = larder:tab2list(S2),
        {'$end_of_table', 0} = {larder:first(S2), larder:info(S2, size)},
        100 = larder:info(S3, size),
        [{7, x}] = larder:lookup(S3, 7),
        [true = larder:release(S) || S <- [S1, S2, S3]]
    end).

%% One instant -----------------------------------------------------------------------------------

%% Writers move amounts from one table to another, one write after the other: of all amounts at
%% most those in progress are missing, and a later table never has a number that an earlier has not.
one_instant_test_() ->
    suite("tables are taken at one instant", fun(Type) ->
        Tables = [larder:new(t, [Type, public]) || _ <- lists:seq(1, 3)],
        [true = larder:insert(T, {key, 0}) || T <- Tables],
        Writer = spawn_link(fun() -> count_up(Tables, 1) end),
        Numbers = fun(S) -> [N || {key, N} <- larder:lookup(S, key)] end,
        [begin
             Snapshots = larder:snapshot(Tables),
             [A, B, C] = [lists:max(Numbers(S)) || S <- Snapshots],
             %% Written in this order, so at most one ahead of those after it.
             {true, {A, B, C}} = {A >= B andalso B >= C andalso A - C =< 1, {A, B, C}},
             [A, B, C] = [lists:max(Numbers(S)) || S <- Snapshots],
             [larder:release(S) || S <- Snapshots]
         end || _ <- lists:seq(1, 500)],
        unlink(Writer),
        exit(Writer, kill),
        [larder:delete(T) || T <- Tables]
    end).

count_up(Tables, N) ->
    [begin
         true = larder:insert(T, {key, N}),
         %% A bag keeps the old ones otherwise.
         true = larder:delete_object(T, {key, N - 1})
     end || T <- Tables],
    count_up(Tables, N + 1).

%% A list that is inserted is in a snapshot whole or not at all, and snapshots wait for nobody else.
lists_test_() ->
    suite("lists are in a snapshot whole or not at all", fun(Type) ->
        T = larder:new(t, [Type, public]),
        Size = 3000,
        Writer = spawn_link(fun() ->
            forever(fun() ->
                N = erlang:unique_integer([positive]),
                true = larder:insert(T, [{{N, K}} || K <- lists:seq(1, Size)]),
                larder:info(T, size) > 20 * Size andalso larder:delete_all_objects(T)
            end)
        end),
        [begin
             S = larder:snapshot(T),
             0 = larder:info(S, size) rem Size,
             true = larder:release(S)
         end || _ <- lists:seq(1, 40)],
        unlink(Writer),
        exit(Writer, kill),
        larder:delete(T)
    end).

%% Rights ----------------------------------------------------------------------------------------

rights_test_() ->
    one("a snapshot has its table's rights", fun() ->
        [begin
             T = larder:new(t, [Access]),
             true = larder:insert(T, {1, 1}),
             S = larder:snapshot(T),
             Expected = larder:info(S, protection),
             case Access of
                 private ->
                     {'EXIT', {badarg, _}} = elsewhere(fun() -> catch larder:lookup(S, 1) end),
                     {'EXIT', {badarg, _}} = elsewhere(fun() -> catch larder:snapshot(T) end);
                 _ ->
                     [{1, 1}] = elsewhere(fun() -> larder:lookup(S, 1) end),
                     [{1, 1}] = elsewhere(fun() -> larder:tab2list(larder:snapshot(T)) end)
             end,
             {'EXIT', {badarg, _}} = elsewhere(fun() -> catch larder:delete(S) end),
             {'EXIT', {badarg, _}} = elsewhere(fun() -> catch larder:release(S) end),
             [{1, 1}] = larder:lookup(S, 1),
             true = larder:release(S),
             true = larder:delete(T)
         end || {Access, Expected} <- [{public, protected}, {protected, protected},
                                       {private, private}]]
    end).

%% What differs ----------------------------------------------------------------------------------

diff_test_() ->
    suite("what differs between two snapshots", fun(Type) ->
        _ = rand:seed(exsss, {2026, 12, erlang:phash2(Type)}),
        T = larder:new(t, [Type, public]),
        Oracle = ets:new(t, [Type, public]),
        Snapshots = [begin
                         [change(T, Oracle, 120) || _ <- lists:seq(1, 25)],
                         larder:snapshot(T)
                     end || _ <- lists:seq(1, 12)],
        [change(T, Oracle, 120) || _ <- lists:seq(1, 25)],
        [same_diff(Type, A, B) || A <- Snapshots, B <- Snapshots],
        [true = larder:release(S) || S <- Snapshots],
        true = larder:delete(T),
        ets:delete(Oracle)
    end).

same_diff(Type, A, B) ->
    Expected = lists:sort(differences(Type, larder:tab2list(A), larder:tab2list(B))),
    case lists:sort(larder:diff(A, B)) of
        Expected -> ok;
        Got -> error({differ, Type, Got -- Expected, Expected -- Got})
    end.

differences(Type, Old, New) when Type =:= bag; Type =:= duplicate_bag ->
    [{delete, O} || O <- Old -- New] ++ [{insert, O} || O <- New -- Old];
differences(_, Old, New) ->
    ByKey = fun(Objects) -> maps:from_list([{element(1, O), O} || O <- Objects]) end,
    {Before, After} = {ByKey(Old), ByKey(New)},
    [case After of
         #{K := N} -> {replace, O, N};
         _ -> {delete, O}
     end || {K, O} <- maps:to_list(Before), maps:get(K, After, none) =/= O]
        ++ [{insert, N} || {K, N} <- maps:to_list(After), not is_map_key(K, Before)].

diff_after_clear_test_() ->
    suite("what differs when a table was emptied between", fun(Type) ->
        T = larder:new(t, [Type, public]),
        Insert = fun(Keys, V) -> true = larder:insert(T, [{K, V} || K <- Keys]) end,
        Insert(lists:seq(1, 3000), a),
        [Insert([K], b) || K <- lists:seq(1, 3000, 3)],
        Insert([hot], 0),
        [true = larder:insert(T, {hot, N}) || N <- lists:seq(1, 2000)],
        S1 = larder:snapshot(T),
        true = larder:delete_all_objects(T),
        S2 = larder:snapshot(T),
        Insert(lists:seq(1000, 4000), a),
        S3 = larder:snapshot(T),
        true = larder:delete_all_objects(T),
        [same_diff(Type, A, B) || A <- [S1, S2, S3], B <- [S1, S2, S3]],
        true = larder:delete(T),
        [same_diff(Type, A, B) || A <- [S1, S2, S3], B <- [S1, S2, S3]],
        [true = larder:release(S) || S <- [S1, S2, S3]]
    end).

%% Writers that are in the middle of a write when the second snapshot is taken.
diff_while_writing_test_() ->
    suite("what differs while others write", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, 0} || K <- lists:seq(1, 50)]),
        Writers = [spawn_link(fun() ->
            _ = rand:seed(exsss, {W, 1, 1}),
            forever(fun() ->
                K = rand:uniform(50),
                case rand:uniform(3) of
                    1 -> larder:delete(T, K);
                    _ -> larder:insert(T, {K, rand:uniform(5)})
                end
            end)
        end) || W <- [1, 2]],
        [begin
             [A, B] = [larder:snapshot(T), larder:snapshot(T)],
             Found = larder:diff(A, B),
             same_diff(Type, A, B),
             true = lists:sort(Found) =:= lists:sort(larder:diff(A, B)),
             [true = larder:release(S) || S <- [A, B]]
         end || _ <- lists:seq(1, 300)],
        [begin unlink(W), exit(W, kill) end || W <- Writers],
        true = larder:delete(T)
    end).

%% Of several times: a machine that does something else makes some longer.
least_microseconds(Fun) ->
    lists:min([element(1, timer:tc(Fun)) || _ <- lists:seq(1, 5)]).

%% It takes several slices, and the time of what changed.
large_diff_test_() ->
    suite("a large difference, and a small one of a large table", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, a} || K <- lists:seq(1, 60000)]),
        A = larder:snapshot(T),
        true = larder:insert(T, {1, b}),
        B = larder:snapshot(T),
        true = least_microseconds(fun() -> 1 = length(larder:diff(A, B)) end) < 10000,
        true = larder:match_delete(T, {'_', a}),
        C = larder:snapshot(T),
        {reductions, Before} = process_info(self(), reductions),
        All = larder:diff(A, C),
        {reductions, After} = process_info(self(), reductions),
        true = length(All) >= 60000,
        true = After - Before > 4 * 4000,
        same_diff(Type, A, C),
        [true = larder:release(S) || S <- [A, B, C]],
        true = larder:delete(T)
    end).

%% Files -----------------------------------------------------------------------------------------

%% While a table is saved, a writer adds numbers in order and takes old ones away: the file has the
%% numbers of a moment.
saved_test_() ->
    suite("a file has its table as of one moment", fun(Type) ->
        T = larder:new(t, [Type, public]),
        true = larder:insert(T, [{K, K} || K <- lists:seq(1, 20000)]),
        Writer = spawn_link(fun() -> shift(T, 1) end),
        Dir = larder_test:file("snapshot"),
        ok = filelib:ensure_dir(filename:join(Dir, "x")),
        File = filename:join(Dir, lists:concat([saved_, Type])),
        [begin
             ok = larder:tab2file(T, File),
             {ok, Loaded} = larder:file2tab(File),
             Keys = lists:sort([K || {K, K} <- larder:tab2list(Loaded)]),
             {First, Last} = {hd(Keys), lists:last(Keys)},
             Keys = lists:seq(First, Last),
             {true, _} = {length(Keys) - 20000 =< 1, {First, Last}},
             true = larder:delete(Loaded)
         end || _ <- lists:seq(1, 5)],
        unlink(Writer),
        exit(Writer, kill),
        %% A snapshot is saved like a table, without the name.
        S = larder:snapshot(T),
        ok = larder:tab2file(S, File, [{extended_info, [object_count, md5sum]}]),
        {ok, Copy} = larder:file2tab(File, [{verify, true}]),
        true = lists:sort(larder:tab2list(Copy)) =:= lists:sort(larder:tab2list(S)),
        0 = larder:info(Copy, snapshots),
        true = larder:insert(Copy, {new, 1}),
        [true = larder:delete(X) || X <- [Copy, T]],
        true = larder:release(S),
        ok = file:delete(File),
        _ = file:del_dir(Dir)
    end).

shift(T, N) ->
    true = larder:insert(T, {20000 + N, 20000 + N}),
    true = larder:delete(T, N),
    shift(T, N + 1).

%% Other structures have no snapshots, and say so.
studies_test_() ->
    one("structures that have no snapshots", fun() ->
        [begin
             T = larder:new(t, [Type, {structure, Name}]),
             #{1 := Words} = refused(snapshot, [T]),
             {_, _} = binary:match(Words, <<"no snapshots">>),
             true = larder:delete(T)
         end || #{name := Name, types := [Type | _]} <- larder:structures(), Name =/= default]
    end).
