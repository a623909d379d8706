%% @doc A leaderboard: ranks of a table that others write to all the time.
%%
%% ```
%%   games ── transactions ──> players   {Player, Score, Games}    set
%%                             board     {{-Score, Player}}        ordered_set
%%                               │
%%   fans    <── ranks ──────────┤   a player's rank, and the page around it
%%   auditor <── snapshots ──────┘   both tables agree, and ranks are dense
%% '''
%%
%% The board's keys begin with what is smaller for the better, so the leader has
%% rank 1, and players with the same score have ranks, too. A game changes the
%% scores of two players: of each, a row of one table is replaced, and a row of
%% the other moves. Players leave, and join again with the score of a beginner.
%%
%% A fan asks for a player's score, then for its rank, then for the ten rows
%% around that rank, while games go on: the player may have moved in between,
%% and the fan counts how often. What a fan asks of snapshots of both tables is
%% exact. The auditor goes through snapshots of both: each row of the board has
%% the score that the player has, there are as many, and the N-th row has rank N.
%%
%% The program checks all of it, and ends with status 1 if anything is wrong.
%% `make leaderboard' runs it; PLAYERS, SECONDS, GAMES and FANS say how large,
%% how long, and how many processes.
-module(leaderboard).

-export([main/1, run/1]).

-export_type([options/0, result/0]).

-type options() :: #{players := pos_integer(), seconds := number(), games := pos_integer(),
                     fans := non_neg_integer(),
                     %% Games that use no transactions: the audits have to notice.
                     careless => boolean()}.
-type result() :: #{players := pos_integer(), seconds := float(), games := non_neg_integer(),
                    joined := non_neg_integer(), left := non_neg_integer(),
                    again := non_neg_integer(), pages := non_neg_integer(),
                    moved := non_neg_integer(), exact := non_neg_integer(),
                    audits := pos_integer()}.

%% What a player has who joins.
-define(BEGINNER, 1000).
%% The most points that a game can win.
-define(POINTS, 30).
%% One of so many games is not held, because a player leaves.
-define(LEAVING, 20).
%% Rows of a page, and how many of them come before the player's.
-define(PAGE, 10).
-define(BEFORE, 4).
%% One of so many questions is asked of snapshots.
-define(EXACT, 50).
%% Ranks that an audit asks for at most.
-define(ASKED, 1000).
%% Objects that are read of a snapshot at a time.
-define(PIECE, 5000).

%% What the processes share. There are never more players than `size'.
-record(club, {players :: larder:table(), board :: larder:table(), size :: pos_integer(),
               figures :: counters:counters_ref()}).

%% The figures.
-define(GAMES, 1).
-define(JOINED, 2).
-define(LEFT, 3).
-define(RUNS, 4).
-define(PAGES, 5).
-define(MOVED, 6).
-define(EXACT_PAGES, 7).
-define(AUDITS, 8).

%% @doc For the command line: players, seconds, processes of games and of fans.
%% Ends the node.
-spec main([string()]) -> no_return().
main(Texts) ->
    crew:main("leaderboard", fun() ->
        [Players, Seconds, Games, Fans] = [list_to_integer(Text) || Text <- Texts],
        run(#{players => Players, seconds => Seconds, games => Games, fans => Fans})
    end).

%% @doc Runs the leaderboard for so long, and says what it does. Whatever is
%% wrong is an error of this call.
-spec run(options()) -> result().
run(#{seconds := Seconds, games := Games, fans := Fans} = Options) ->
    Club = open(Options),
    Change = case Options of
                 #{careless := true} -> fun carelessly/2;
                 #{} -> fun transaction/2
             end,
    Auditor = crew:start(fun() -> audit(Club) end),
    Begin = erlang:monotonic_time(millisecond),
    Working = [crew:start(fun() -> games(Club, Change) end) || _ <- lists:seq(1, Games)]
        ++ [crew:start(fun() -> fan(Club, 1) end) || _ <- lists:seq(1, Fans)],
    try
        crew:watch(Begin, Begin + round(Seconds * 1000), fun(Took) -> line(Club, Took) end),
        lists:foreach(fun crew:stop/1, Working),
        Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
        %% It makes its last audit now.
        crew:stop(Auditor),
        report(Club, Took)
    after
        lists:foreach(fun crew:kill/1, [Auditor | Working]),
        larder:delete(Club#club.players),
        larder:delete(Club#club.board)
    end.

open(#{players := Size, games := Games, fans := Fans}) ->
    io:format("A board of ~b players; ~b processes hold games, ~b ask for ranks; an auditor.~n",
              [Size, Games, Fans]),
    Players = larder:new(players, [set, public]),
    Board = larder:new(board, [ordered_set, public]),
    fill(Players, Board, 1, Size),
    #club{players = Players, board = Board, size = Size,
          figures = counters:new(?AUDITS, [atomics])}.

fill(_, _, First, Size) when First > Size ->
    ok;
fill(Players, Board, First, Size) ->
    Last = min(First + ?PIECE - 1, Size),
    Scores = [{Player, rand:uniform(2 * ?BEGINNER)} || Player <- lists:seq(First, Last)],
    true = larder:insert(Players, [{Player, Score, 0} || {Player, Score} <- Scores]),
    true = larder:insert(Board, [{{-Score, Player}} || {Player, Score} <- Scores]),
    fill(Players, Board, Last + 1, Size).

count(#club{figures = Figures}, Figure) -> counters:add(Figures, Figure, 1).
figure(#club{figures = Figures}, Figure) -> counters:get(Figures, Figure).

%% How far all are.
line(Club, Took) ->
    Games = figure(Club, ?GAMES),
    Pages = figure(Club, ?PAGES),
    io_lib:format("~b games (~b a second), ~b pages (~b a second), ~b audits",
                  [Games, round(Games / Took), Pages, round(Pages / Took),
                   figure(Club, ?AUDITS)]).

%%% Games

games(Club, Change) ->
    case crew:is_to_stop() of
        true ->
            ok;
        false ->
            count(Club, Change(Club, game(Club#club.size))),
            games(Club, Change)
    end.

%% Two players, what the first one wins of the second, and whether it leaves
%% instead. All that is left to chance is fixed before a transaction begins.
game(Size) ->
    One = rand:uniform(Size),
    Two = 1 + (One + rand:uniform(max(1, Size - 1)) - 1) rem Size,
    {One, Two, rand:uniform(?POINTS), rand:uniform(?LEAVING) =:= 1}.

transaction(#club{players = Players, board = Board} = Club, Game) ->
    {atomic, Figure} = larder:transaction([Players, Board], fun([P, B]) ->
        count(Club, ?RUNS),
        hold(P, B, Game)
    end),
    Figure.

%% What a game would be without a transaction.
carelessly(#club{players = Players, board = Board} = Club, Game) ->
    count(Club, ?RUNS),
    hold(Players, Board, Game).

%% What comes of it, as a figure.
hold(Players, Board, {One, Two, Points, Leaves}) ->
    case {larder:lookup(Players, One), larder:lookup(Players, Two)} of
        {[], _} ->
            join(Players, Board, One);
        {[{One, Score, _}], _} when Leaves ->
            true = larder:delete(Players, One),
            true = larder:delete(Board, {-Score, One}),
            ?LEFT;
        {_, []} ->
            join(Players, Board, Two);
        %% There is one player alone, who wins nothing of himself.
        {[Player], [Player]} ->
            change(Players, Board, Player, 0),
            ?GAMES;
        {[Winner], [Loser]} ->
            change(Players, Board, Winner, Points),
            change(Players, Board, Loser, -Points),
            ?GAMES
    end.

join(Players, Board, Player) ->
    true = larder:insert(Players, {Player, ?BEGINNER, 0}),
    true = larder:insert(Board, {{-?BEGINNER, Player}}),
    ?JOINED.

change(Players, Board, {Player, Score, Games}, Points) ->
    true = larder:insert(Players, {Player, Score + Points, Games + 1}),
    true = larder:delete(Board, {-Score, Player}),
    true = larder:insert(Board, {{-Score - Points, Player}}).

%%% Fans

fan(Club, N) ->
    case crew:is_to_stop() of
        true ->
            ok;
        false ->
            Player = rand:uniform(Club#club.size),
            case N rem ?EXACT of
                0 -> ask_snapshots(Club, Player);
                _ -> ask(Club, Player)
            end,
            fan(Club, N + 1)
    end.

%% Of the tables as they are, each question at its own time.
ask(#club{players = Players, board = Board} = Club, Player) ->
    case page(Players, Board, Player) of
        {_Rank, Page} ->
            %% Whatever moves meanwhile, a page is in order and has no row twice.
            true = length(Page) =< ?PAGE,
            Page = lists:usort(Page),
            count(Club, ?PAGES);
        not_there ->
            ok;
        moved ->
            count(Club, ?MOVED)
    end.

%% Of both tables at one instant: the player can't have moved.
ask_snapshots(#club{players = Players, board = Board} = Club, Player) ->
    [P, B] = Snapshots = larder:snapshot([Players, Board]),
    case page(P, B, Player) of
        {Rank, Page} ->
            {{_, Player}} = lists:nth(min(Rank, ?BEFORE + 1), Page),
            Length = min(?PAGE, larder:info(B, size) - max(1, Rank - ?BEFORE) + 1),
            Length = length(Page),
            count(Club, ?EXACT_PAGES);
        not_there ->
            ok;
        moved ->
            exit({moved_in_a_snapshot, Player})
    end,
    lists:foreach(fun larder:release/1, Snapshots).

%% A player's rank, and the rows around it.
page(Players, Board, Player) ->
    case larder:lookup(Players, Player) of
        [{Player, Score, _}] ->
            Key = {-Score, Player},
            case larder:rank(Board, Key) of
                none ->
                    moved;
                Rank ->
                    Page = larder:slice(Board, max(1, Rank - ?BEFORE), ?PAGE),
                    case lists:member({Key}, Page) of
                        true -> {Rank, Page};
                        false -> moved
                    end
            end;
        [] ->
            not_there
    end.

%%% The auditor

audit(Club) ->
    audit_once(Club),
    case crew:is_to_stop(20) of
        true -> audit_once(Club);
        false -> audit(Club)
    end.

%% Both tables as of one instant. The rows of the board are different keys, and
%% each has the one score of its player: if there are as many as players, each
%% player is there once.
audit_once(#club{players = Players, board = Board} = Club) ->
    [P, B] = Snapshots = larder:snapshot([Players, Board]),
    Size = larder:info(P, size),
    Size =:= larder:info(B, size) orelse exit({players, Size, on_the_board, larder:info(B, size)}),
    Step = 1 + Size div ?ASKED,
    Size = crew:in_pieces(fun(Rows, Before) ->
        lists:foldl(fun(Row, N) -> audit_row(P, B, Row, N + 1, {Size, Step}) end, Before, Rows)
    end, 0, larder:select(B, [{'_', [], ['$_']}], ?PIECE)),
    [none, none] = [larder:nth(B, N) || N <- [Size + 1, -Size - 1]],
    lists:foreach(fun larder:release/1, Snapshots),
    count(Club, ?AUDITS).

%% The row that is the N-th.
audit_row(P, B, {{Minus, Player} = Key} = Row, N, {Size, Step}) ->
    case larder:lookup(P, Player) of
        [{Player, Score, _}] when Score =:= -Minus -> ok;
        Other -> exit({the_board_has, Row, the_player_is, Other})
    end,
    case N rem Step =:= 0 orelse N =:= Size orelse N =:= 1 of
        true ->
            Asked = {larder:rank(B, Key), larder:nth(B, N), larder:nth(B, N - Size - 1)},
            Asked =:= {N, Row, Row} orelse exit({row, N, of_all, Size, is, Row, asked, Asked});
        false ->
            ok
    end,
    N.

%%% The end

report(#club{players = Players, board = Board} = Club, Took) ->
    [Games, Joined, Left, Runs, Pages, Moved, Exact, Audits] =
        [figure(Club, Figure) || Figure <- lists:seq(?GAMES, ?AUDITS)],
    Again = Runs - Games - Joined - Left,
    Size = larder:info(Board, size),
    io:format("~b games in ~.1f s, ~b a second; ~b joined, ~b left, ~b transactions ran again.~n",
              [Games, Took, round(Games / Took), Joined, Left, Again]),
    io:format("~b pages, ~b a second; ~b times the player had moved before the page was there."
              " ~b pages of snapshots were exact.~n",
              [Pages, round(Pages / Took), Moved, Exact]),
    io:format("~b audits found both tables to agree, and the N-th of the board to have rank N.~n",
              [Audits]),
    io:format("The first three of ~b:~n", [Size]),
    show(Players, 1, larder:slice(Board, 1, 3)),
    Middle = (Size + 1) div 2,
    io:format("And around rank ~b:~n", [Middle]),
    From = max(1, Middle - 1),
    show(Players, From, larder:slice(Board, From, 3)),
    #{players => Club#club.size, seconds => Took, games => Games, joined => Joined, left => Left,
      again => Again, pages => Pages, moved => Moved, exact => Exact, audits => Audits}.

show(_, _, []) ->
    ok;
show(Players, Rank, [{{_, Player}} | Rows]) ->
    [{Player, Score, Games}] = larder:lookup(Players, Player),
    io:format("  ~8b. player ~b: ~b points in ~b games~n", [Rank, Player, Score, Games]),
    show(Players, Rank + 1, Rows).
