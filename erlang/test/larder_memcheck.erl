%% @doc Runs tests with all the time that they need: the emulator under
%% valgrind is fifty times as slow, and EUnit's limits can't be stretched.
%%
%% `erl ... -s larder_memcheck main -extra MODULE MODULE:FUNCTION ...' runs
%% each test of a module, or what one test function or generator gives. Ends
%% with `N passed, N failed'; the exit status tells whether any failed.
%% Fixtures of EUnit are not known here: a test that has one fails.
-module(larder_memcheck).

-export([main/0]).

%% @doc scripts/memcheck.sh's entry.
-spec main() -> no_return().
main() ->
    spawn(fun() ->
        Results = lists:flatmap(fun named/1, init:get_plain_arguments()),
        Failed = length([R || R <- Results, R =/= ok]),
        io:format("~b passed, ~b failed~n", [length(Results) - Failed, Failed]),
        halt(case {Failed, Results} of {0, [_ | _]} -> 0; _ -> 1 end)
    end).

named(Text) ->
    {Module, Functions} = case string:split(Text, ":") of
        [M] -> {list_to_atom(M), all};
        [M, F] -> {list_to_atom(M), [list_to_atom(F)]}
    end,
    {module, Module} = code:ensure_loaded(Module),
    lists:flatmap(fun(F) -> function(Module, F) end,
                  case Functions of all -> tests(Module); _ -> Functions end).

tests(Module) ->
    [F || {F, 0} <- Module:module_info(exports), is_test(lists:reverse(atom_to_list(F)))].

is_test("_tset_" ++ _) -> true;
is_test("tset_" ++ _) -> true;
is_test(_) -> false.

function(Module, F) ->
    Name = lists:concat([Module, ":", F]),
    case lists:reverse(atom_to_list(F)) of
        "_" ++ _ -> test(Name, Module:F());
        _ -> [run(Name, fun Module:F/0)]
    end.

test(Name, Tests) when is_list(Tests) -> lists:flatmap(fun(T) -> test(Name, T) end, Tests);
test(Name, {timeout, _, Test}) -> test(Name, Test);
test(Name, {Line, Test}) when is_integer(Line) -> test(Name, Test);
test(Name, {Title, Test}) -> test(lists:concat([Name, " ", Title]), Test);
test(Name, Test) when is_function(Test, 0) -> [run(Name, Test)];
test(Name, Other) -> [run(Name, fun() -> error({what_is_this, Other}) end)].

%% In a process of its own, as EUnit does, so that its tables go with it.
run(Name, Test) ->
    T0 = erlang:monotonic_time(millisecond),
    {Pid, Monitor} = spawn_monitor(Test),
    Why = receive {'DOWN', Monitor, process, Pid, W} -> W end,
    Seconds = (erlang:monotonic_time(millisecond) - T0) / 1000,
    io:format("~8.1f s  ~ts~n", [Seconds, Name]),
    case Why of
        normal -> ok;
        _ -> io:format("FAILED: ~tp~n", [Why]), failed
    end.
