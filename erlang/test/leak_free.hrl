%% A test that leaves nothing behind: neither tables nor processes, nor
%% anything else that the library counts. EUnit's own limit of five seconds
%% is too little on a machine that does something else.
-define(LEAK_FREE(Body),
        {timeout, 120, fun() -> larder_test:with_leak_check(larder, fun() -> Body end) end}).
