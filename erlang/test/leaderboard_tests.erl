%% The program of examples/leaderboard checks itself; here it runs small, and
%% without transactions, which it has to notice.
-module(leaderboard_tests).

-export([ranks_test_/0, small_test_/0, careless_test_/0]).

ranks_test_() ->
    {timeout, 60, fun() ->
        #{games := Games, joined := Joined, left := Left, pages := Pages, exact := Exact,
          audits := Audits} = run(#{players => 3000}),
        [true, true, true, true, true] = [N > 0 || N <- [Games, Joined, Left, Pages, Exact]],
        true = Audits > 1
    end}.

%% Pages are shorter than ten rows, and all games meet.
small_test_() ->
    [{timeout, 60, fun() ->
         #{games := Games, exact := Exact} = run(#{players => Players}),
         [true, true] = [N > 0 || N <- [Games, Exact]]
     end} || Players <- [1, 2, 7]].

careless_test_() ->
    {timeout, 60, fun() ->
        Reason = try run(#{players => 100, careless => true})
                 catch error:Found -> Found
                 end,
        true = lists:member(element(1, Reason), [players, the_board_has, moved_in_a_snapshot])
    end}.

run(Options) ->
    {Outcome, _Printed} = larder_test_io:capture(fun() ->
        leaderboard:run(maps:merge(#{seconds => 1, games => 3, fans => 2}, Options))
    end),
    Outcome.
