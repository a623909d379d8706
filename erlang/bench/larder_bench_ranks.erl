%% @doc `make bench-ranks': a board of scores, and sessions that are found by their user, as one
%% writes them on `ets' and on Larder; and some elements of a row, beside the whole row.
%%
%% The board is an ordered_set of keys `{-Score, Player}'. `ets' knows no ranks: users count the
%% keys before one by `ets:select_count', and walk to a page by a limited `ets:select' that they
%% throw away, or by `ets:next'. A session `{Id, User, Visits}' has a secondary index of its user on
%% Larder; on `ets' a bag of `{User, Id}' beside the table is kept by hand, and not atomically, or
%% the whole table is searched. Each user has ten sessions.
%%
%% Both sides do every operation in turns, in one emulator, and what they answer has to be the same.
%% The first turn is not counted; the side that begins changes. The least of the turns counts:
%% others may use the machine. `spread' says how much they did: the median turn divided by the
%% least, of the side for which that is larger. What takes longer in a larger table is done with the
%% same rows in each turn: a page near the front costs `ets' less than one at the end.
%%
%% Environment: `LARDER_BENCH_SIZES' (rows), `LARDER_BENCH_RUNS' (four times as many of what takes
%% a moment; the least counts),
%% `LARDER_BENCH_OPERATIONS' (rows that the calls of a measurement go over, at most),
%% `LARDER_BENCH_OUT'.
-module(larder_bench_ranks).

-export([run/0]).

-define(SIZES, [1000, 100_000, 1_000_000]).
-define(RUNS, 5).
-define(OPERATIONS, 2_000_000).
%% Words.
-define(HEAP, 1_000_000).
%% The most calls of a measurement, and the fewest.
-define(MOST, 20_000).
-define(LEAST, 8).
-define(PAGE, 10).
-define(BEFORE, 4).
%% So many rows are walked over in one piece.
-define(PIECE, 1000).

%% How a side does it: calls with a table, and a row's number among all and its score.
-type call() :: fun((larder:table(), row()) -> integer()).
-type row() :: {Player :: pos_integer(), Score :: integer(), Rank :: pos_integer()}.
%% `linear': what it takes on `ets' grows with the table.
-type operation() :: {Name :: string(), board | players | sessions, linear | short,
                      Ets :: call(), Larder :: call()}.

%% @doc Measures everything, prints the table and writes the file.
-spec run() -> ok.
run() ->
    Sizes = larder_bench_env:numbers("LARDER_BENCH_SIZES", ?SIZES),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    Operations = larder_bench_env:number("LARDER_BENCH_OPERATIONS", ?OPERATIONS),
    io:format("~nRanks, and some elements of a row: nanoseconds a call (the least of ~b runs)~n~n"
              "~-48s ~9s ~12s ~12s ~10s ~7s~n~s~n",
              [Runs, "operation", "rows", "ets", "larder", "times", "spread",
               lists:duplicate(103, $-)]),
    Lines = lists:append([of_size(Size, Runs, Operations) || Size <- Sizes]),
    Facts = larder_report:facts() ++ [{runs, Runs}],
    Header = ["operation", "rows", "ets_ns", "larder_ns", "times", "spread"],
    larder_bench_run:written(larder_bench_env:folder("ranks"), "ranks.csv", Facts, Header,
                             [csv(Line) || Line <- Lines]).

of_size(Size, Runs, Operations) ->
    persistent_term:put(?MODULE, rows(Size)),
    Tables = [{M, filled(M, Size)} || M <- [ets, larder]],
    Lines = [line(Operation, Size, Runs, calls(Operation, Size, Operations), Tables)
             || Operation <- operations()],
    [true = M:delete(T) || {M, #{board := Board, players := Players, sessions := {Ids, Users}}}
                               <- Tables,
                           T <- [Board, Players, Ids, Users], T =/= none],
    persistent_term:erase(?MODULE),
    Lines.

%% So many calls that both sides take long enough, and neither too long.
calls({_, _, linear, _, _}, Size, Operations) ->
    max(?LEAST, min(?MOST, Operations div Size));
calls(_, _, Operations) ->
    max(?LEAST, min(?MOST, Operations div 100)).

%% The players with their scores and their ranks, in no order. Some have the same score.
rows(Size) ->
    State = rand:seed_s(exsss, {2026, 11, Size}),
    {Keys, _} = lists:mapfoldl(fun(Player, S) ->
        {Score, S1} = rand:uniform_s(4 * Size, S),
        {{-Score, Player}, S1}
    end, State, lists:seq(1, Size)),
    Ranked = lists:zip(lists:sort(Keys), lists:seq(1, Size)),
    list_to_tuple(lists:sort([{Player, -Minus, Rank} || {{Minus, Player}, Rank} <- Ranked])).

filled(M, Size) ->
    [Board, Players] = [M:new(Name, [Type, public])
                        || {Name, Type} <- [{board, ordered_set}, {players, set}]],
    Row = fun(N) -> element(N, persistent_term:get(?MODULE)) end,
    Sessions = sessions(M),
    lists:foreach(fun(N) ->
        {Player, Score, _} = Row(N),
        true = M:insert(Board, {{-Score, Player}}),
        true = M:insert(Players, player(Player, Score)),
        true = put_session(M, Sessions, Player, user(Player), 0)
    end, lists:seq(1, Size)),
    #{board => Board, players => Players, sessions => Sessions}.

sessions(ets) ->
    {ets:new(sessions, [public]), ets:new(users, [public, bag])};
sessions(larder) ->
    {larder:new(sessions, [public, {index, [{user, 2, []}]}]), none}.

put_session(M, {Ids, none}, Id, User, Visits) ->
    M:insert(Ids, {Id, User, Visits});
put_session(M, {Ids, Users}, Id, User, Visits) ->
    case M:lookup(Ids, Id) of
        [{_, User, _}] ->
            true;
        [{_, Other, _}] ->
            true = M:insert(Users, {User, Id}),
            true = M:delete_object(Users, {Other, Id});
        [] ->
            true = M:insert(Users, {User, Id})
    end,
    M:insert(Ids, {Id, User, Visits}).

%% Ten of each.
user(Id) -> {user, Id div 10}.

%% Twenty fields, as a session or a user has them.
player(Player, Score) ->
    {Player, Score, <<"a name of a player">>, active, 1, 1000 * Player, 2.5, "a string", undefined,
     [1, 2, 3], {2026, 11, 25}, true, <<"short">>, [{key, Player}], none, -Player,
     1 bsl 40 + Player, infinity, [], Score + 1}.

%% A first turn is not counted. The side that begins changes from turn to turn.
line({Name, _, _, _, _} = Operation, Size, Runs, Calls, Tables) ->
    Turns = tl([turn(Operation, Size, Calls, Tables, Run)
                || Run <- lists:seq(0, turns(Operation, Runs))]),
    Sides = [[E || {E, _} <- Turns], [L || {_, L} <- Turns]],
    [Ets, Larder] = [lists:min(Times) || Times <- Sides],
    Spread = lists:max([larder_bench_measure:median(Times) / lists:min(Times) || Times <- Sides]),
    io:format("~-48s ~9b ~12.1f ~12.1f ~10.2f ~7.2f~n",
              [Name, Size, Ets, Larder, Ets / Larder, Spread]),
    {Name, Size, Ets, Larder, Spread}.

%% What takes a moment is measured more often.
turns({_, _, linear, _, _}, Runs) -> Runs;
turns({_, _, short, _, _}, Runs) -> 4 * Runs.

turn(Operation, Size, Calls, [Ets, Larder], Run) ->
    Measured = [{M, measured(Operation, M, Tables, Size, Calls, Run)}
                || {M, Tables} <- larder_bench_measure:rotated(Run, [Ets, Larder])],
    {EtsNs, Answer} = proplists:get_value(ets, Measured),
    case proplists:get_value(larder, Measured) of
        {LarderNs, Answer} -> {EtsNs, LarderNs};
        {_, Other} -> error({different_answers, element(1, Operation), Answer, Other})
    end.

measured({_, Which, Growth, Ets, Larder}, M, Tables, Size, Calls, Run) ->
    Call = case M of ets -> Ets; larder -> Larder end,
    First = case Growth of linear -> 0; short -> Run * 7919 end,
    Table = maps:get(Which, Tables),
    larder_bench_measure:in_own_process(fun() ->
        All = persistent_term:get(?MODULE),
        Each = fun(N) -> Call(Table, element(N, All)) end,
        {Ns, Sum} = larder_bench_measure:timed(fun() -> each(Calls, First, Size, Each, 0) end),
        {Ns / Calls, Sum}
    end, ?HEAP).

%% Rows in no order.
each(0, _, _, _, Sum) -> Sum;
each(Calls, N, Size, Call, Sum) ->
    each(Calls - 1, N + 1, Size, Call, Sum + Call(1 + erlang:phash2(N, Size))).

csv({Name, Size, Ets, Larder, Spread}) ->
    [{text, Name}, integer_to_list(Size), io_lib:format("~.1f", [Ets]),
     io_lib:format("~.1f", [Larder]), io_lib:format("~.2f", [Ets / Larder]),
     io_lib:format("~.2f", [Spread])].

%%% The operations

%% Two elements of a player's row, by one call of either side or by two.
-define(LOOKUP(M), fun(T, {Player, _, _}) ->
    [Row] = M:lookup(T, Player),
    element(2, Row) + element(17, Row)
end).
-define(ELEMENTS(M), fun(T, {Player, _, _}) ->
    M:lookup_element(T, Player, 2) + M:lookup_element(T, Player, 17)
end).

-spec operations() -> [operation()].
operations() ->
    [{"rank of a key", board, linear, fun ets_rank/2,
      fun(T, {Player, Score, _}) -> larder:rank(T, {-Score, Player}) end},
     {"page of 10 from a rank", board, linear,
      fun(T, {_, _, Rank}) -> sum(ets_page(T, Rank)) end,
      fun(T, {_, _, Rank}) -> sum(larder:slice(T, Rank, ?PAGE)) end},
     {"page of 10 around a key", board, short,
      fun(T, {Player, Score, _}) -> sum(ets_around(T, {-Score, Player})) end,
      fun(T, {Player, Score, _}) -> sum(larder_around(T, {-Score, Player})) end},
     {"two new scores: delete and insert", board, short,
      fun(T, Row) -> moved(ets, T, Row) end, fun(T, Row) -> moved(larder, T, Row) end},
     {"two new scores, and a rank", board, linear,
      fun(T, Row) -> moved(ets, T, Row) + ets_rank(T, Row) end,
      fun(T, {Player, Score, _} = Row) ->
          moved(larder, T, Row) + larder:rank(T, {-Score, Player})
      end},
     {"2 of 20 elements: lookup; lookup_elements", players, short, ?LOOKUP(ets),
      fun(T, {Player, _, _}) ->
          [Score, Large] = larder:lookup_elements(T, Player, [2, 17]),
          Score + Large
      end},
     {"2 of 20 elements: lookup on both", players, short, ?LOOKUP(ets), ?LOOKUP(larder)},
     {"2 of 20 elements: lookup_element twice on both", players, short, ?ELEMENTS(ets),
      ?ELEMENTS(larder)},
     {"10 rows by a field: by hand; by an index", sessions, short,
      fun({Ids, Users}, {Id, _, _}) ->
          visits([Session || {_, Own} <- ets:lookup(Users, user(Id)),
                             Session <- ets:lookup(Ids, Own)])
      end,
      fun({Ids, _}, {Id, _, _}) -> visits(larder:index_lookup(Ids, user, user(Id))) end},
     {"10 rows by a field: select", sessions, linear,
      fun({Ids, _}, {Id, _, _}) -> visits(ets:select(Ids, of_user(Id, '$_'))) end,
      fun({Ids, _}, {Id, _, _}) -> visits(larder:select(Ids, of_user(Id, '$_'))) end},
     {"write of a row with an index", sessions, short,
      fun(Sessions, {Id, Score, _}) -> write(ets, Sessions, Id, user(Id), Score) end,
      fun(Sessions, {Id, Score, _}) -> write(larder, Sessions, Id, user(Id), Score) end},
     {"write, with an index on Larder alone", sessions, short,
      fun({Ids, _}, {Id, Score, _}) -> write(ets, {Ids, none}, Id, user(Id), Score) end,
      fun({Ids, _}, {Id, Score, _}) -> write(larder, {Ids, none}, Id, user(Id), Score) end},
     {"two writes that change an indexed field", sessions, short,
      fun(Sessions, {Id, _, _}) -> to_and_fro(ets, Sessions, Id) end,
      fun(Sessions, {Id, _, _}) -> to_and_fro(larder, Sessions, Id) end},
     {"match_delete of one row by a field, and insert", sessions, linear,
      fun(Sessions, {Id, _, _}) -> match_delete(ets, Sessions, Id) end,
      fun(Sessions, {Id, _, _}) -> match_delete(larder, Sessions, Id) end}].

of_user(Id, Body) -> [{{'_', user(Id), '_'}, [], [Body]}].

visits(Sessions) -> lists:sum([Id || {Id, _, _} <- Sessions]).

write(M, Sessions, Id, User, Visits) ->
    true = put_session(M, Sessions, Id, User, Visits),
    1.

to_and_fro(M, Sessions, Id) ->
    write(M, Sessions, Id, {user, other}, 1) + write(M, Sessions, Id, user(Id), 1).

match_delete(M, {Ids, Users} = Sessions, Id) ->
    true = put_session(M, Sessions, Id, {user, one}, 1),
    true = M:match_delete(Ids, {'_', {user, one}, '_'}),
    true = Users =:= none orelse M:delete_object(Users, {{user, one}, Id}),
    write(M, Sessions, Id, user(Id), 1).

%% Those before, and itself. On this `ets' a guard limits no search: the whole table is counted.
ets_rank(T, {Player, Score, _}) ->
    1 + ets:select_count(T, [{{'$1'}, [{'<', '$1', {const, {-Score, Player}}}], [true]}]).

%% Pieces are thrown away until the one in which the page begins.
ets_page(T, Rank) ->
    skip(ets:select(T, [{'_', [], ['$_']}], ?PIECE), Rank - 1).

skip('$end_of_table', _) -> [];
skip({Rows, Continuation}, Before) ->
    case length(Rows) of
        N when N =< Before -> skip(ets:select(Continuation), Before - N);
        _ -> filled_up(lists:sublist(Rows, Before + 1, ?PAGE), Continuation)
    end.

filled_up(Page, _) when length(Page) =:= ?PAGE -> Page;
filled_up(Page, Continuation) ->
    case ets:select(Continuation) of
        {Rows, _} -> Page ++ lists:sublist(Rows, ?PAGE - length(Page));
        '$end_of_table' -> Page
    end.

%% Key by key, up and down from one that is known.
ets_around(T, Key) ->
    before(T, Key, ?BEFORE, [{Key} | following(T, Key, ?PAGE - ?BEFORE - 1)]).

before(_, _, 0, Rows) -> Rows;
before(T, Key, N, Rows) ->
    case ets:prev(T, Key) of
        '$end_of_table' -> Rows;
        Prev -> before(T, Prev, N - 1, [{Prev} | Rows])
    end.

following(_, _, 0) -> [];
following(T, Key, N) ->
    case ets:next(T, Key) of
        '$end_of_table' -> [];
        Next -> [{Next} | following(T, Next, N - 1)]
    end.

%% At the front a page is shorter, as that of the other side.
larder_around(T, Key) ->
    Rank = larder:rank(T, Key),
    From = max(1, Rank - ?BEFORE),
    larder:slice(T, From, Rank - From + ?PAGE - ?BEFORE).

%% There and back: the table stays as it is from call to call.
moved(M, T, {Player, Score, _}) ->
    New = {-Score - 1000, Player},
    true = M:delete(T, {-Score, Player}),
    true = M:insert(T, {New}),
    true = M:delete(T, New),
    true = M:insert(T, {{-Score, Player}}),
    1.

%% Of the players of a page.
sum(Rows) -> lists:foldl(fun({{_, Player}}, Sum) -> Sum + Player end, 0, Rows).
