%% A test that leaves nothing behind: neither tables nor processes, nor
%% anything else that the library counts.
-define(LEAK_FREE(Body), fun() -> larder_test:with_leak_check(larder, fun() -> Body end) end).
