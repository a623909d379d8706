%% Ranks: the answers of an ordered_set are those of a sorted list, of the table, of its snapshots
%% and in transactions; beside writers, within what is promised; and what has no ranks says so.
-module(rank_tests).

-export([answers_test_/0, a_wrong_answer_is_noticed_test_/0, views_test_/0, many_leaves_test_/0,
         beside_writers_test_/0, snapshots_beside_writers_test_/0, one_of_two_test_/0,
         unranked_test_/0, words_test_/0]).

-define(OPTIONS, [[], [compressed], [{keypos, 2}], [{write_concurrency, true}],
                  [{decentralized_counters, true}]]).

one(Title, Fun) ->
    [larder_test:tc(Title, 120, larder, Fun)].

%% Beside a list ---------------------------------------------------------------------------------

%% A table and an `ets' of the same options are changed at random; what is asked of the one is
%% answered by the sorted list that the other is. Snapshots stay as they are.
answers_test_() ->
    [larder_test:tc(lists:flatten(io_lib:format("ranks are those of a list, ~0p", [Options])), 120,
                    larder, fun() -> answers(Options) end) || Options <- ?OPTIONS].

answers(Options) ->
    _ = rand:seed(exsss, {2026, 11, erlang:phash2(Options)}),
    T = larder:new(t, [ordered_set, public | Options]),
    Oracle = diff_gen:oracle([ordered_set | Options]),
    Position = larder:info(T, keypos),
    Kept = lists:foldl(fun(Round, Kept) ->
        [change([{larder, T}, {ets, Oracle}], Position) || _ <- lists:seq(1, 40)],
        List = ets:tab2list(Oracle),
        same(T, List, Position),
        [same(S, Old, Position) || Round rem 5 =:= 0, {S, Old} <- Kept],
        case Kept of
            [_, _, _, {S, _}] ->
                true = larder:release(S),
                [{larder:snapshot(T), List} | lists:droplast(Kept)];
            _ ->
                [{larder:snapshot(T), List} | Kept]
        end
    end, [], lists:seq(1, larder_test:scaled(40))),
    [same(S, Old, Position) || {S, Old} <- Kept],
    [true = larder:release(S) || {S, _} <- Kept],
    true = larder:delete_all_objects(T),
    same(T, [], Position),
    ets:delete(Oracle),
    larder:delete(T).

change(Both, Position) ->
    Key = key(),
    Object = object(Key, rand:uniform(3), Position),
    Change = case rand:uniform(8) of
                 N when N =< 4 -> fun(M, T) -> M:insert(T, Object) end;
                 N when N =< 6 -> fun(M, T) -> M:delete(T, Key) end;
                 7 -> fun(M, T) -> M:take(T, Key) end;
                 8 ->
                     Objects = [object(key(), list, Position) || _ <- lists:seq(1, 15)],
                     fun(M, T) -> M:insert(T, Objects) end
             end,
    [_] = lists:usort([Change(M, T) || {M, T} <- Both]).

object(Key, Value, 1) -> {Key, Value};
object(Key, Value, 2) -> {Value, Key}.

%% 1 and 1.0 are one key.
key() ->
    N = rand:uniform(60) - 30,
    case rand:uniform(8) of
        1 -> float(N);
        2 -> N + 0.5;
        3 -> {N, rand:uniform(3)};
        4 -> <<"key ", (integer_to_binary(N))/binary>>;
        5 -> [N, rand:uniform(3)];
        6 -> (1 bsl 70) * N;
        _ -> N
    end.

%% All that can be asked, of a table that should have these objects.
same(T, List, Position) ->
    Size = length(List),
    Keys = [element(Position, Object) || Object <- List],
    Asked = [key() || _ <- lists:seq(1, 10)],
    [equal({rank, Key}, rank(Keys, Key), larder:rank(T, Key)) || Key <- Asked ++ some(Keys)],
    Places = [0, 1, -1, Size, -Size, Size + 1, -Size - 1, 1 bsl 59 - 1, -1 bsl 59, 1 bsl 59,
              -(1 bsl 63), 1 bsl 63, 1 bsl 70, -(1 bsl 70)]
        ++ [rand:uniform(2 * Size + 3) - Size - 2 || _ <- lists:seq(1, 10)],
    [equal({nth, N}, nth(List, N), larder:nth(T, N)) || N <- Places],
    [equal({slice, N, Count}, slice(List, N, Count), larder:slice(T, N, Count))
     || N <- Places, Count <- [0, 1, rand:uniform(Size + 2), 1 bsl 59 - 1, 1 bsl 59, 1 bsl 70]],
    [equal({count_range, Low, High}, length([Key || Key <- Keys, Key >= Low, Key < High]),
           larder:count_range(T, Low, High))
     || Low <- Asked, High <- [Low | some(Keys)] ++ lists:sublist(Asked, 3)],
    ok.

some(Keys) ->
    [lists:nth(rand:uniform(length(Keys)), Keys) || Keys =/= [], _ <- lists:seq(1, 8)].

equal(_, Same, Same) -> ok;
equal(What, Expected, Got) -> error({differ, What, Expected, Got}).

rank(Keys, Key) ->
    case [Same || Same <- Keys, Same == Key] of
        [] -> none;
        [_] -> 1 + length([Before || Before <- Keys, Before < Key])
    end.

nth(List, N) when N > 0, N =< length(List) -> lists:nth(N, List);
nth(List, N) when N < 0, -N =< length(List) -> lists:nth(length(List) + 1 + N, List);
nth(_, _) -> none.

slice(List, N, Count) when N > 0, N =< length(List) -> lists:sublist(List, N, Count);
slice(List, N, Count) when N < 0, -N =< length(List) ->
    lists:sublist(List, length(List) + 1 + N, Count);
slice(_, _, _) -> [].

%% One object too few or too many, wherever it is.
a_wrong_answer_is_noticed_test_() ->
    one("a count that is off by one is noticed", fun() ->
        _ = rand:seed(exsss, {2026, 11, 25}),
        List = [{N, x} || N <- lists:seq(1, 20)],
        T = larder:new(t, [ordered_set]),
        true = larder:insert(T, List),
        same(T, List, 1),
        [begin
             {differ, _, _, _} = try same(T, Wrong, 1) catch error:Why -> Why end
         end || Wrong <- [tl(List), lists:droplast(List), lists:delete({9, x}, List),
                          [{0, x} | List], List ++ [{21, x}]]],
        larder:delete(T)
    end).

%% In transactions ---------------------------------------------------------------------------------

%% A transaction sees its own writes among the ranks; one that is aborted leaves none.
views_test_() ->
    one("a transaction's view has the ranks of what it shows", fun() ->
        _ = rand:seed(exsss, {2026, 11, 26}),
        T = larder:new(t, [ordered_set, public]),
        Oracle = ets:new(t, [ordered_set, public]),
        [begin
             Own = ets:new(own, [ordered_set, public]),
             true = ets:insert(Own, ets:tab2list(Oracle)),
             Ended = larder:transaction([T], fun([View]) ->
                 [begin
                      [change([{larder, View}, {ets, Own}], 1) || _ <- lists:seq(1, 10)],
                      same(View, ets:tab2list(Own), 1)
                  end || _ <- lists:seq(1, 5)],
                 Round rem 3 =:= 0 andalso larder:abort(on_purpose)
             end),
             case Ended of
                 {atomic, _} -> true = ets:insert(Oracle, ets:tab2list(Own)),
                                [ets:delete(Oracle, Key) || {Key, _} <- ets:tab2list(Oracle),
                                                           not ets:member(Own, Key)];
                 {aborted, on_purpose} -> ok
             end,
             ets:delete(Own),
             same(T, ets:tab2list(Oracle), 1)
         end || Round <- lists:seq(1, larder_test:scaled(30))],
        ets:delete(Oracle),
        larder:delete(T)
    end).

%% Two transactions that find a range empty by a question about ranks, and insert there: the one
%% that commits second has to see the first's.
one_of_two_test_() ->
    one("what was counted counts as read", fun() ->
        T = larder:new(t, [ordered_set, public]),
        Empty = fun(View, Low, 0) -> larder:count_range(View, Low, Low + 10) =:= 0;
                   (View, Low, 1) ->
                       larder:slice(View, larder:count_range(View, 0, Low) + 1, 2) =:= [];
                   (View, Low, 2) ->
                       %% Keys grow: nothing lies after the last one, if that lies before.
                       case larder:nth(View, -1) of
                           none -> true;
                           {Last, _} -> Last < Low
                       end
                end,
        Self = self(),
        [begin
             Insert = fun(Own) ->
                 {atomic, Done} = larder:transaction([T], fun([View]) ->
                     Is = Empty(View, 10 * Round, Round rem 3),
                     erlang:yield(),
                     Is andalso larder:insert(View, {10 * Round + Own, x})
                 end),
                 Done
             end,
             Other = spawn_link(fun() -> Self ! {self(), Insert(2)} end),
             Mine = Insert(1),
             Theirs = receive {Other, Done} -> Done end,
             [false, true] = lists:sort([Mine, Theirs]),
             Round = larder:info(T, size)
         end || Round <- lists:seq(1, larder_test:scaled(300))],
        larder:delete(T)
    end).

%% Large tables ------------------------------------------------------------------------------------

%% More leaves than one call counts, and slices that take several.
many_leaves_test_() ->
    one("a large table is counted in slices", fun() ->
        Rows = 600000,
        T = larder:new(t, [ordered_set, public]),
        fill(T, 1, Rows),
        Half = Rows div 2,
        Half = larder:rank(T, 2 * Half),
        none = larder:rank(T, 2 * Half + 1),
        Rows2 = 2 * Rows,
        {Rows2, 0} = larder:nth(T, -1),
        Rows = larder:count_range(T, 0, Rows2 + 1),
        Part = larder:slice(T, 1000, Half),
        Part = [{2 * N, N rem Half} || N <- lists:seq(1000, 999 + Half)],
        Last = larder:slice(T, -Half, Rows),
        Half = length(Last),
        {Rows2, _} = lists:last(Last),
        [S] = larder:snapshot([T]),
        %% All changes: the snapshot counts in slices, too.
        true = larder:insert(T, [{2 * N + 1, new} || N <- lists:seq(1, 50000)]),
        50099 = larder:rank(T, 50100),
        25050 = larder:rank(S, 50100),
        {Rows2, _} = larder:nth(S, Rows),
        Part = larder:slice(S, 1000, Half),
        true = larder:release(S),
        larder:delete(T)
    end).

fill(_, From, Rows) when From > Rows -> ok;
fill(T, From, Rows) ->
    To = min(Rows, From + 9999),
    true = larder:insert(T, [{2 * N, N rem (Rows div 2)} || N <- lists:seq(From, To)]),
    fill(T, To + 1, Rows).

%% Beside writers ----------------------------------------------------------------------------------

-define(STAY, 2000).
-define(CHURN, 5000).

%% Objects come and go in the middle and between others; some stay:
%%
%%   1 ... 2000         stay, one key in two; between them nobody writes
%%   10001 ... 15000    come and go, but that each tenth stays
%%   20001 ... 22000    stay
%%
%% What lies before and after the middle is exact, also where a leaf has some of both; what is
%% counted of the middle lies between what stays there and all that there may be.
beside_writers_test_() ->
    one("ranks beside writers stay within bounds", fun() ->
        T = churned(),
        Writers = [writer(T, Seed) || Seed <- [1, 2]],
        for_seconds(3, fun() ->
            I = rand:uniform(?STAY),
            equal(rank, I, larder:rank(T, 2 * I)),
            none = larder:rank(T, 2 * I + 1),
            equal(nth, {2 * I, stays}, larder:nth(T, I)),
            Stay = [{2 * N, stays} || N <- lists:seq(I, min(?STAY, I + 9))],
            equal(slice, Stay, lists:sublist(larder:slice(T, I, 10), length(Stay))),
            equal(nth, {20000 + I, stays}, larder:nth(T, I - ?STAY - 1)),
            equal(count_range, I, larder:count_range(T, 20001, 20001 + I)),
            J = 10 * rand:uniform(?CHURN div 10),
            Rank = larder:rank(T, 10000 + J),
            true = Rank >= ?STAY + J div 10,
            true = Rank =< ?STAY + J,
            All = larder:rank(T, 20001) - 1,
            true = All >= ?STAY + ?CHURN div 10,
            true = All =< ?STAY + ?CHURN,
            {Key, _} = larder:nth(T, ?STAY + J div 10),
            true = Key > 2 * ?STAY andalso Key =< 10000 + J
        end),
        [stop(Writer) || Writer <- Writers],
        same(T, larder:tab2list(T), 1),
        larder:delete(T)
    end).

%% What is asked of a snapshot is exact, whoever writes.
snapshots_beside_writers_test_() ->
    one("ranks of a snapshot are exact beside writers", fun() ->
        T = churned(),
        Writers = [writer(T, Seed) || Seed <- [3, 4]],
        for_seconds(3, fun() ->
            S = larder:snapshot(T),
            same(S, larder:tab2list(S), 1),
            true = larder:release(S)
        end),
        [stop(Writer) || Writer <- Writers],
        larder:delete(T)
    end).

churned() ->
    T = larder:new(t, [ordered_set, public]),
    true = larder:insert(T, [{2 * N, stays} || N <- lists:seq(1, ?STAY)]),
    true = larder:insert(T, [{20000 + N, stays} || N <- lists:seq(1, ?STAY)]),
    true = larder:insert(T, [{10000 + N, stays} || N <- lists:seq(10, ?CHURN, 10)]),
    T.

writer(T, Seed) ->
    spawn_monitor(fun() ->
        _ = rand:seed(exsss, {2026, 11, Seed}),
        write(T)
    end).

write(T) ->
    [case rand:uniform(2) of
         1 -> true = larder:insert(T, {10000 + N, comes});
         2 -> true = larder:delete(T, 10000 + N)
     end || _ <- lists:seq(1, 100), N <- [rand:uniform(?CHURN)], N rem 10 =/= 0],
    receive stop -> ok after 0 -> write(T) end.

stop({Pid, Monitor}) ->
    Pid ! stop,
    receive {'DOWN', Monitor, process, Pid, Reason} -> normal = Reason end.

for_seconds(Seconds, Fun) ->
    until(erlang:monotonic_time(millisecond) + 1000 * Seconds, Fun).

until(End, Fun) ->
    Fun(),
    erlang:monotonic_time(millisecond) >= End orelse until(End, Fun).

%% Errors ------------------------------------------------------------------------------------------

questions() ->
    [{rank, [1]}, {nth, [1]}, {slice, [1, 1]}, {count_range, [1, 2]}].

%% Tables of other types and on other structures, their snapshots and views.
unranked_test_() ->
    one("what has no ranks says so", fun() ->
        Tables = [larder:new(t, [Type]) || Type <- [set, bag, duplicate_bag]]
            ++ [larder:new(t, [ordered_set, {structure, Name}])
                || #{name := Name, types := Types} <- larder:structures(), Name =/= default,
                   lists:member(ordered_set, Types)]
            ++ [larder:new(t, [ordered_set, {max_size, 10}]),
                larder:new(t, [ordered_set, {ttl, infinity}])],
        true = length(Tables) > 4,
        [true = larder:insert(T, {1, x}) || T <- Tables],
        [no_ranks(T) || T <- Tables],
        Snapshots = larder:snapshot(lists:sublist(Tables, 3)),
        [no_ranks(S) || S <- Snapshots],
        {atomic, _} = larder:transaction(lists:sublist(Tables, 3), fun(Views) ->
            [no_ranks(View) || View <- Views]
        end),
        [true = larder:release(S) || S <- Snapshots],
        [true = larder:delete(T) || T <- Tables]
    end).

no_ranks(T) ->
    [begin
         {badarg, unranked, #{1 := Words} = All} = refused(F, [T | Args]),
         <<"only tables of type ordered_set have ranks, and none with bounds", _/binary>> = Words,
         1 = map_size(All)
     end || {F, Args} <- questions()].

%% The table's error comes first, and is that of other functions.
words_test_() ->
    one("the words of what is refused", fun() ->
        T = larder:new(t, [ordered_set, private]),
        true = larder:insert(T, {1, x}),
        Words = fun(F, Args) -> {badarg, _, Said} = refused(F, Args), Said end,
        #{2 := <<"not an integer">>} = Words(nth, [T, x]),
        #{2 := <<"not an integer">>} = Words(nth, [T, 1.0]),
        #{2 := <<"not an integer">>} = Words(slice, [T, x, 1]),
        #{3 := <<"not an integer">>} = Words(slice, [T, 1, x]),
        #{3 := <<"out of range">>} = Words(slice, [T, 1, -1]),
        #{2 := <<"not an integer">>, 3 := <<"out of range">>} = Words(slice, [T, x, -1 bsl 70]),
        Gone = larder:new(gone, [ordered_set]),
        true = larder:delete(Gone),
        [begin
             Bad = refused(member, [Tab, 1]),
             [Bad = refused(F, [Tab | Args]) || {F, Args} <- questions()],
             [Bad = refused(F, Args) || {F, Args} <- [{nth, [Tab, x]}, {slice, [Tab, x, y]}]]
         end || Tab <- [Gone, 17, no_such_table, make_ref()]],
        Self = self(),
        _ = spawn_link(fun() ->
            Self ! [refused(member, [T, 1]) | [refused(F, [T | Args]) || {F, Args} <- questions()]]
        end),
        [{badarg, access, _}] = receive Said -> lists:usort(Said) end,
        larder:delete(T)
    end).

%% The reason, the cause and the words of a call that is refused.
refused(F, Args) ->
    try {works, apply(larder, F, Args)}
    catch
        error:Reason:Stack ->
            [{_, _, _, Info} | _] = Stack,
            {error_info, What} = lists:keyfind(error_info, 1, Info),
            {Reason, maps:get(cause, What, none), larder:format_error(Reason, Stack)}
    end.
