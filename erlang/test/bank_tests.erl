%% The program of examples/bank checks itself; here it runs small, and without
%% transactions, which it has to notice.
-module(bank_tests).

-export([sum_test_/0, careless_test_/0, one_account_test/0]).

sum_test_() ->
    {timeout, 60, fun() ->
        #{transfers := Transfers, events := Events, audits := Audits} = run(#{accounts => 50}),
        true = Transfers > 0,
        true = Audits > 1,
        %% At least one account changes in each transfer.
        true = Events >= Transfers
    end}.

careless_test_() ->
    {timeout, 60, fun() ->
        {the_sum_varies, _, _} = try run(#{accounts => 100, careless => true})
                                 catch error:Reason -> Reason
                                 end
    end}.

one_account_test() ->
    {accounts, 1, a_transfer_needs, 2} = try run(#{accounts => 1}) catch error:Reason -> Reason end.

run(Options) ->
    {Outcome, _Printed} = larder_test_io:capture(fun() ->
        bank:run(maps:merge(#{seconds => 1, tellers => 4}, Options))
    end),
    Outcome.
