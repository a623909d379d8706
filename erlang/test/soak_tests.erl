%% @doc larder_soak for 20 seconds (LARDER_SOAK_TEST_SECONDS); `make soak MINUTES=n' is the long
%% form.
-module(soak_tests).

-export([short_soak_test_/0]).

short_soak_test_() ->
    Seconds = larder_test:env("LARDER_SOAK_TEST_SECONDS", 20),
    [larder_test:tc("mixed work throughout", 120 + 3 * Seconds, larder, fun() ->
        #{operations := Operations, owners := Owners, memory := [_ | _]} = larder_soak:run(Seconds),
        true = Operations > 100 * Seconds andalso Owners > Seconds
     end) || larder_test:sut() =:= larder].
