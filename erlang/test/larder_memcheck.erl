%% @doc Runs tests with all the time that they need: the emulator under
%% valgrind is fifty times as slow, and EUnit's limits can't be stretched.
%%
%% `erl ... -s larder_memcheck main -extra MODULE MODULE:FUNCTION -MODULE:FUNCTION'
%% runs each test of a module, or what one test function or generator gives,
%% or all but that one. Ends with `N tests, N of them failed'; the exit status
%% tells whether any failed. Fixtures of EUnit are not known here: a test that
%% has one fails.
%%
%% Tests are here, too, small enough for valgrind: a table is dropped, processes
%% are at work on one (with `LARDER_SUT=ets', to see what the emulator says of
%% itself), random commands do what they do on `ets'.
-module(larder_memcheck).
-include_lib("proper/include/proper.hrl").

-export([main/0, dropped_test/0, together_test_/0, random_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

%% @doc scripts/memcheck.sh's entry.
-spec main() -> no_return().
main() ->
    spawn(fun() ->
        Results = try all(init:get_plain_arguments()) catch
            Class:Reason:Stack ->
                io:format("FAILED: ~p ~tp~n~tp~n", [Class, Reason, Stack]),
                [failed]
        end,
        Failed = length([R || R <- Results, R =/= ok]),
        io:format("~b tests, ~b of them failed~n", [length(Results), Failed]),
        halt(case {Failed, Results} of {0, [_ | _]} -> 0; _ -> 1 end)
    end).

all(Arguments) ->
    Without = [Name || "-" ++ Text <- Arguments, Name <- named(Text)],
    Names = [Name
             || Text <- Arguments, hd(Text) =/= $-, Name <- named(Text),
                not lists:member(Name, Without)],
    lists:flatmap(fun function/1, Names).

named(Text) ->
    [M | F] = [list_to_atom(Part) || Part <- string:split(Text, ":")],
    {module, M} = code:ensure_loaded(M),
    case F of
        [Function] -> [{M, Function}];
        [] -> [{M, Function}
               || {Function, 0} <- M:module_info(exports),
                  is_test(lists:reverse(atom_to_list(Function)))]
    end.

is_test("_tset_" ++ _) -> true;
is_test("tset_" ++ _) -> true;
is_test(_) -> false.

function({Module, F}) ->
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

%% The least with which leaves are made and freed.
-spec dropped_test() -> ok.
dropped_test() ->
    T = larder:new(t, []),
    true = larder:insert(T, [{I, I} || I <- lists:seq(1, 1000)]),
    true = larder:delete(T),
    %% What was dropped is freed in the background.
    timer:sleep(2000).

%% Processes at one table -----------------------------------------------------

%% Four work on twenty keys in all ways, a fifth dies in the midst of lists;
%% every row that anybody reads is whole.
-spec together_test_() -> list().
together_test_() ->
    [{lists:concat([Type, " ", length(Options)]),
      fun() -> together(larder_test:sut(), [Type, public | Options]) end}
     || Type <- ?TYPES, Options <- [[], [compressed]]]
    ++ [{lists:concat([Structure, ", ", Type]),
         fun() -> together(larder, [Type, public, {structure, Structure}]) end}
        || larder_test:sut() =:= larder,
           #{name := Structure, types := [Type | _]} <- larder:structures(), Structure =/= default].

together(M, Options) ->
    T = M:new(t, Options),
    Rounds = larder_test:env("LARDER_MEMCHECK_ROUNDS", 60),
    Workers = [spawn_monitor(fun() -> [work(M, T, W, I) || I <- lists:seq(1, Rounds)] end)
               || W <- lists:seq(1, 4)],
    [killed(T, I) || M =:= larder, I <- lists:seq(1, Rounds div 10)],
    [receive {'DOWN', Monitor, process, Pid, Why} -> normal = Why end || {Pid, Monitor} <- Workers],
    Rows = M:tab2list(T),
    lists:foreach(fun whole/1, Rows),
    %% What ets of OTP 25 says of bags here is not what they hold.
    true = M =:= ets orelse length(Rows) =:= M:info(T, size),
    true = M:delete(T).

%% While it inserts a list, which others then finish or which never was.
killed(T, Round) ->
    {Pid, Monitor} =
        spawn_monitor(fun() ->
            larder:insert(T, [row({list, I}, Round) || I <- lists:seq(1, 300)]) end),
    erlang:yield(),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end.

work(M, T, Worker, I) ->
    Seed = Worker * 1000 + I,
    Key = lists:nth(rand:uniform(4),
                    [rand:uniform(5), {k, rand:uniform(5)}, <<(rand:uniform(5)):700>>, 2.5]),
    case rand:uniform(14) of
        1 -> M:delete(T, Key);
        2 -> [whole(Row) || Row <- M:take(T, Key)];
        3 -> M:insert(T, [row({list, N}, Seed) || N <- lists:seq(1, 20)]);
        4 -> [whole(Row)
              || Row <- M:select(T, [{{'_', '$1', '_', '_'}, [{'>', '$1', Seed - 300}], ['$_']}])];
        5 -> [whole(Row) || Row <- M:match_object(T, {Key, '_', '_', '_'})];
        6 -> M:select_delete(T, [{{'_', '$1', '_', '_'}, [{'=:=', {'rem', '$1', 7}, 3}], [true]}]);
        7 when M =:= larder ->
            [whole(Row) || Rows <- larder:lookup_many(T, [Key, {list, 3}, none, {k, 1}]),
                           Row <- Rows];
        8 -> [M:delete_object(T, Row) || Row <- M:lookup(T, Key)];
        9 -> M:foldl(fun(Row, N) -> whole(Row), N + 1 end, 0, T);
        10 -> counted(M, T, Key, Seed);
        11 -> [whole(Row) || Row <- M:lookup(T, Key)];
        _ -> M:insert(T, row(Key, Seed))
    end.

%% Bags have no counters.
counted(M, T, Key, Seed) ->
    case lists:member(M:info(T, type), [set, ordered_set]) of
        true -> M:update_counter(T, Key, [{4, 1}, {4, 1 bsl 60}], row(Key, Seed));
        false -> M:insert_new(T, row(Key, Seed))
    end.

row(Key, Seed) -> {Key, Seed, shape(Seed), 0}.

whole({_, Seed, Shape, Count}) when is_integer(Count) -> true = Shape =:= shape(Seed).

%% Terms of all sizes on both sides of where they leave the row, or the heap.
shape(Seed) ->
    case Seed rem 9 of
        0 -> Seed;
        1 -> binary:copy(<<Seed:32>>, Seed rem 40);
        2 -> binary:copy(<<Seed:32>>, Seed);
        3 -> lists:seq(1, Seed rem 200);
        4 -> maps:from_list([{{K, Seed}, [K]} || K <- lists:seq(1, Seed rem 50)]);
        5 -> Seed bsl (Seed rem 300);
        6 -> [{Seed, 1.5 * Seed, fun lists:map/2, <<Seed:13>>} | tail];
        7 -> lists:foldl(fun(_, Deep) -> {[Deep]} end, Seed, lists:seq(1, Seed rem 600));
        8 -> #{id => Seed, name => <<"name">>, in => #{a => Seed, b => [x | y]}}
    end.

%% Random commands --------------------------------------------------------------

%% As diff_statem_tests has them, without the module that is compiled there.
-spec random_test_() -> list().
random_test_() ->
    [{atom_to_list(Type), fun() ->
        larder_test:check_property(lists:concat(["memcheck ", Type]), larder_test:scaled(400),
                                   prop_same(Type))
     end} || Type <- ?TYPES].

prop_same(Type) ->
    ?FORALL(Commands, diff_commands:sequence(Type), diff_world:run(larder, Commands) =:= ok).
