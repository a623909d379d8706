%% The program of examples/sessions checks itself; here it runs small, and
%% without transactions, which it has to notice.
-module(sessions_tests).

-export([sessions_test_/0, careless_test_/0]).

sessions_test_() ->
    {timeout, 60, fun() ->
        #{logins := Logins, gone := Gone, everywhere := Everywhere, logged_out := Out,
          expired := Expired, audits := Audits} = run(#{}),
        [true, true, true, true, true] = [N > 0 || N <- [Logins, Gone, Everywhere, Out, Expired]],
        true = Audits > 1
    end}.

careless_test_() ->
    {timeout, 60, fun() ->
        Reason = try run(#{users => 1, careless => true, seconds => 10})
                 catch error:Found -> Found
                 end,
        {sessions, N, 'of', {shared, 1}} = Reason,
        true = N > 5
    end}.

run(Options) ->
    Small = #{users => 30, seconds => 1, browsers => 4, idle => 200},
    {Outcome, _Printed} = larder_test_io:capture(fun() ->
        sessions:run(maps:merge(Small, Options))
    end),
    Outcome.
