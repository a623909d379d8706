%% The program of examples/mnesia_cluster checks itself; here it runs small, and with copies on
%% `ets' and on Larder of one table.
-module(mnesia_cluster_tests).

-include_lib("eunit/include/eunit.hrl").

-define(ROWS, 20_000).

%% All that the writers wrote is there: two thirds of the keys at least, each tenth deleted.
killed_test_() ->
    {timeout, 120, fun() ->
        {Rows, _} = mnesia_cluster:killed(larder_copies, 300),
        ?assert(Rows > 300)
    end}.

%% What the third writer wrote alone has given way.
parted_test_() ->
    {timeout, 120, fun() ->
        {Rows, _} = mnesia_cluster:parted(larder_copies, 300),
        ?assertEqual(2 * (300 - 30), Rows)
    end}.

joined_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Storage])),
      {timeout, 120, fun() ->
          #{writes := Writes, digest := {Rows, _}} = mnesia_cluster:joined(Storage, ?ROWS),
          ?assert(Writes > 0),
          ?assert(Rows > ?ROWS div 2)
      end}} || Storage <- [larder_copies, {ram_copies, larder_copies}, {larder_copies, ram_copies}]].

%% A copy that goes leaves nothing.
added_test_() ->
    {timeout, 120, fun() -> ?assertEqual([], mnesia_cluster:added(larder_copies, ?ROWS)) end}.

measured_test_() ->
    {timeout, 120, fun() ->
        Figures = mnesia_cluster:measured(larder_copies, ram, 2, 50),
        ?assertMatch([{dirty_read, _}, {dirty_write, _}, {transaction, _}], Figures),
        ?assert(lists:all(fun({_, PerSecond}) -> PerSecond > 0 end, Figures))
    end}.
