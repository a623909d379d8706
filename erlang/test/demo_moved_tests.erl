%% The part of `make run' that moves Yaws, small. `scripts/setup.sh test' unpacks Yaws; where it
%% can't be had, nothing is tried.
-module(demo_moved_tests).

-export([moved_test_/0]).

moved_test_() ->
    [{timeout, 120, fun() -> moves(Package) end}
     || Package <- filelib:wildcard("_build/yaws/usr/lib/yaws-*")].

moves(Package) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "larder-demo-moved-" ++ os:getpid()),
    try larder_test_io:capture(fun() ->
            larder_demo_moved:run(#{package => Package, work => Folder, visitors => 2, visits => 5})
        end) of
        {#{modules := 4, sessions := 6, requests := 60, ets := Ets, larder := Larder}, _Printed} ->
            true = Ets > 0 andalso Larder > 0
    after
        file:del_dir_r(Folder)
    end.
