%% @doc `make bench-scaling': several processes on one table.
%%
%% Three parts. How throughput grows with the number of processes: rows {int, int}, 524,288 of a
%% range of twice as many keys, lookups alone and 80 % lookups, 10 % inserts, 10 % deletes. And the
%% scenarios of the throughput benchmark of OTP's own tests of `ets': rows {int}, half of a range of
%% a million keys, against whichever option of `ets' does best. And transactions that read a row and
%% write it anew, against a plain table of `ets' with a mutex: of processes with keys of their own,
%% and of processes with the same eight keys.
%%
%% Environment: `LARDER_BENCH_PROCESSES=1,2', `LARDER_BENCH_MS' (length of a run),
%% `LARDER_BENCH_RUNS' (the median counts), `LARDER_BENCH_PARTS=scaling,scenarios,transactions',
%% `LARDER_BENCH_SCENARIO=next' (what has this in its name alone), `LARDER_BENCH_RANGE' (another
%% range of keys, for all parts), `LARDER_BENCH_OUT'.
%% Every run has a fresh table.
-module(larder_bench_scaling).

-export([run/0, scenarios/0, rate/4]).

-export_type([mix/0, scenario/0]).

-define(RUNS, 3).
-define(MS, 500).
-define(BITS, 16#100000000).
%% At least so many times the throughput of one process is asked of two.
-define(TARGETS, [{"lookups", 1.8}, {"80/10/10", 1.6}, {"keys of its own", 1.8}]).

-type mix() :: {Insert :: number(), Delete :: number(), Lookup :: number(), other(),
                Range :: pos_integer(), Arity :: 1 | 2}.
%% Draws of 32 bits below the first are inserts, below the second deletes, below the third lookups.
-type other() :: none | {next, pos_integer()} | count_all | {count, pos_integer()}
               | {transaction, own | shared}.
-type scenario() :: #{part := scaling | scenarios | transactions, name := string(), mix := mix()}.
-type contender() :: {module(), Name :: string(), Options :: [term()]}.
-type outcome() :: #{scenario := scenario(), type := atom(), processes := pos_integer(),
                     rates := [{Name :: string(), OperationsASecond :: float()}]}.

%% @doc Runs everything, prints the tables and writes the files.
-spec run() -> ok.
run() ->
    Processes = larder_bench_env:numbers("LARDER_BENCH_PROCESSES",
                                         doubled(1, erlang:system_info(schedulers_online))),
    Ms = larder_bench_env:number("LARDER_BENCH_MS", ?MS),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", ?RUNS),
    Parts = larder_bench_env:choice("LARDER_BENCH_PARTS", [scaling, scenarios, transactions]),
    Named = os:getenv("LARDER_BENCH_SCENARIO", ""),
    Chosen = [S || #{part := Part, name := Name} = S <- scenarios(), lists:member(Part, Parts),
                   string:find(Name, Named) =/= nomatch],
    _ = Chosen =/= []
        orelse error({unknown, "LARDER_BENCH_SCENARIO", Named,
                      [Name || #{name := Name} <- scenarios()]}),
    Outcomes = [outcome(Scenario, Type, N, Ms, Runs)
                || Scenario <- Chosen, Type <- types(Scenario), N <- Processes],
    [print(Part, Of)
     || Part <- Parts, Of <- [[O || #{scenario := #{part := P}} = O <- Outcomes, P =:= Part]],
        Of =/= []],
    files(Outcomes, larder_report:facts() ++ [{runs, Runs}, {milliseconds, Ms}]).

types(#{part := transactions}) -> [set];
types(_) -> [set, ordered_set].

doubled(N, Most) when N >= Most -> [Most];
doubled(N, Most) -> [N | doubled(2 * N, Most)].

%% @doc What there is to be measured.
-spec scenarios() -> [scenario()].
scenarios() ->
    [scenario(scaling, Name, Percents, larder_bench_env:number("LARDER_BENCH_RANGE", 1 bsl 20), 2)
     || {Name, Percents} <- [{"lookups", {0, 0, 100, none}}, {"80/10/10", {10, 10, 80, none}}]]
        ++ [scenario(scenarios, Name, Percents,
                     larder_bench_env:number("LARDER_BENCH_RANGE", 1_000_000), 1)
            || {Name, Percents} <-
                   [{"50/50/0", {50, 50, 0, none}}, {"10/10/80", {10, 10, 80, none}},
                    {"1/1/98", {1, 1, 98, none}},
                    {"0/0/100", {0, 0, 100, none}}]
                   ++ [{lists:concat(["10/10/40, 40 of ", N, " next"]), {10, 10, 40, {next, N}}}
                       || N <- [10, 100, 1000]]
                   ++ [{"100 of 1000 next", {0, 0, 0, {next, 1000}}}]
                   ++ [{lists:concat(["10/10/", Lookups, ", ", Text, " ", What]),
                        {10, 10, 80 - Rest, Other}}
                       || {What, Other} <- [{"select all", count_all},
                                            {"select 1000", {count, 1000}}],
                          {Lookups, Text, Rest} <- [{"79", "1", 1}, {"79.99", "0.01", 0.01},
                                                    {"79.9999", "0.0001", 0.0001}]]]
        ++ [scenario(transactions, Name, {0, 0, 0, {transaction, Keys}}, Range, 2)
            || {Name, Keys, Range} <-
                   [{"keys of its own", own, larder_bench_env:number("LARDER_BENCH_RANGE", 1 bsl 16)},
                    {"8 shared keys", shared, 8}]].

scenario(Part, Name, {Insert, Delete, Lookup, Other}, Range, Arity) ->
    Draw = fun(Percent) -> round(Percent * ?BITS / 100) end,
    #{part => Part, name => Name,
      mix => {Draw(Insert), Draw(Insert + Delete), Draw(Insert + Delete + Lookup), Other, Range,
              Arity}}.

%% Larder first, then what `ets' offers for the type. The fixed number of locks is an option for
%% OTP's own tests.
-spec contenders(scenario(), atom()) -> [contender()].
contenders(#{part := transactions}, _) ->
    [{larder_bench_transactions, Name, [Side]}
     || {Name, Side} <- [{"larder", transactions}, {"plain, a mutex around it", mutex}]];
contenders(_, Type) ->
    Read = {read_concurrency, true},
    Write = {write_concurrency, true},
    [{larder_bench_larder, "larder", []}]
        ++ [{larder_bench_ets, Name, Options}
            || {Name, Options} <- [{"plain", []}, {"write", [Write]}, {"read", [Read]},
                                   {"write, read", [Write, Read]}]
                   ++ [Set || Type =:= set,
                              Set <- [{"auto, read", [{write_concurrency, auto}, Read]},
                                      {"16384 locks",
                                       [{write_concurrency,
                                         {debug_hash_fixed_number_of_locks, 16384}}]}]]].

-spec outcome(scenario(), atom(), pos_integer(), pos_integer(), pos_integer()) -> outcome().
outcome(#{name := Name} = Scenario, Type, Processes, Ms, Runs) ->
    io:format(standard_error, "  ~s, ~s, ~b processes~n", [Name, Type, Processes]),
    Contenders = [C || {Side, _, Options} = C <- contenders(Scenario, Type), offered(Side, [Type | Options])],
    Rates = [[{Called, rate({Side, Called, [Type | Options]}, Scenario, Processes, Ms)}
              || {Side, Called, Options} <- larder_bench_measure:rotated(Run, Contenders)]
             || Run <- lists:seq(1, Runs)],
    #{scenario => Scenario, type => Type, processes => Processes,
      rates => [{Called,
                 larder_bench_measure:median([proplists:get_value(Called, Rate) || Rate <- Rates])}
                || {_, Called, _} <- Contenders]}.

offered(Side, Options) ->
    case Side:new_with(Options) of
        {ok, Table} -> Side:delete(Table);
        refused -> false
    end.

%% @doc Operations a second of all processes together, on a fresh table, which is sound afterwards.
-spec rate(contender(), scenario(), pos_integer(), pos_integer()) -> float().
rate({Side, _, Options}, #{mix := {_, _, _, _, Range, Arity} = Mix}, Processes, Ms) ->
    {ok, Table} = Side:new_with(Options),
    ok = Side:prefill(Table, Range, Arity),
    Jobs = [fun() -> worker(Side, Table, Mix, Seed) end || Seed <- lists:seq(1, Processes)],
    {_, Workers} = larder_bench_measure:started(Jobs),
    %% No worker ends before it is told to, unless it crashes.
    Monitors = maps:from_list([{Monitor, W} || {W, Monitor} <- Workers]),
    receive
        {'DOWN', Ended, process, _, Reason} when is_map_key(Ended, Monitors) ->
            error({worker, Reason})
    after Ms -> ok
    end,
    [W ! stop || {W, _} <- Workers],
    Rate = lists:sum(larder_bench_measure:answers(Workers)),
    ok = Side:sound(Table, Range),
    true = Side:delete(Table),
    Rate.

%% Operations a second, by the worker's own clock: a long operation is finished after the word to
%% stop.
worker(Side, Table, Mix, Seed) ->
    {Ns, Done} = larder_bench_measure:timed(fun() -> Side:work(Table, Mix, Seed) end),
    Done / (Ns / 1.0e9).

%%% Reports

print(scaling, [#{scenario := #{mix := {_, _, _, _, Range, _}}} | _] = Outcomes) ->
    scaled_from(io_lib:format("Throughput with more processes, ~b rows {int, int}; thousands of operations",
                              [Range div 2]),
                "ets: best of its options, times"),
    lists:foreach(fun(O) -> scaled(O, base(O, Outcomes)) end, Outcomes);
print(transactions, Outcomes) ->
    scaled_from("Transactions of a read and a write with more processes; thousands of transactions",
                "ets: a plain table, times"),
    lists:foreach(fun(O) -> scaled(O, base(O, Outcomes)) end, Outcomes);
print(scenarios, Outcomes) ->
    io:format("~nScenarios: percent of inserts/deletes/lookups, and the rest; thousands of operations a second~n~n"
              "~-13s ~-34s ~5s ~10s ~10s ~7s ~4s (~s)~n",
              ["type", "scenario", "procs", "larder", "best ets", "ratio", "", "the option"]),
    lists:foreach(fun scenario/1, Outcomes).

scaled_from(What, Ets) ->
    io:format("~n~s a second, and how many~n"
              "times the throughput of the fewest processes~n~n~-13s ~-16s ~5s ~10s ~7s  ~s~n",
              [What, "type", "work", "procs", "larder", "times", Ets]).

base(#{scenario := #{name := Name}, type := Type}, Outcomes) ->
    hd([O || #{scenario := #{name := N}, type := T} = O <- Outcomes, N =:= Name, T =:= Type]).

scaled(#{scenario := #{name := Name}, type := Type, processes := Processes} = O, Base) ->
    {Larder, {Best, Ets}} = sides(O),
    {LarderBase, {_, EtsBase}} = sides(Base),
    Mark = case {Processes, lists:keyfind(Name, 1, ?TARGETS)} of
               {2, {_, Target}}
                 when Larder / LarderBase >= Target -> io_lib:format("  (>= ~.1f: ok)", [Target]);
               {2, {_, Target}} -> io_lib:format("  (>= ~.1f: -)", [Target]);
               _ -> ""
           end,
    io:format("~-13s ~-16s ~5b ~10.1f ~7.2f  ~.1f ~.2f (~s)~s~n",
              [Type, Name, Processes, Larder / 1000, Larder / LarderBase, Ets / 1000, Ets / EtsBase,
               Best, Mark]).

scenario(#{scenario := #{name := Name}, type := Type, processes := Processes} = O) ->
    {Larder, {Best, Ets}} = sides(O),
    io:format("~-13s ~-34s ~5b ~10.1f ~10.1f ~7.2f ~4s (~s)~n",
              [Type, Name, Processes, Larder / 1000, Ets / 1000, Larder / Ets,
               case Larder > Ets of true -> "ok"; false -> "-" end, Best]).

%% Larder's rate, and the best of the others with its name.
sides(#{rates := [{"larder", Larder} | Others]}) ->
    {Larder, hd(lists:reverse(lists:keysort(2, Others)))}.

files(Outcomes, Facts) ->
    Folder = larder_bench_env:folder("scaling"),
    Svg = filename:join(Folder, "scaling.svg"),
    ok = larder_report:write(Svg, svg(Outcomes)),
    Header = ["part", "scenario", "type", "processes", "larder", "ets_best", "ets_options",
              "ratio"],
    larder_bench_run:written(Folder, "scaling.csv", Facts, Header, [line(O) || O <- Outcomes]),
    io:format("written: ~ts~n", [Svg]).

%% Operations a second of Larder, and of `ets' with the options that serve it best.
line(#{scenario := #{part := Part, name := Name}, type := Type, processes := Processes} = O) ->
    {Larder, {Options, Ets}} = sides(O),
    [atom_to_list(Part), {text, Name}, atom_to_list(Type), integer_to_list(Processes),
     integer_to_list(round(Larder)),
     integer_to_list(round(Ets)), {text, Options}, io_lib:format("~.3f", [Larder / Ets])].

svg(Outcomes) ->
    larder_report:chart(
      "Larder's throughput by that of the best option of ets (logarithmic); right of 1 is better",
      [0.1, 0.3, 1, 3, 10, 100],
      [{lists:concat([Type, ", ", N, " processes"]),
        [bar(O) || #{type := T, processes := P} = O <- Outcomes, T =:= Type, P =:= N]}
       || {Type, N} <- lists:usort([{T, P} || #{type := T, processes := P} <- Outcomes])]).

bar(#{scenario := #{name := Name}} = O) ->
    {Larder, {_, Ets}} = sides(O),
    #{label => Name, ratio => Larder / Ets, good => Larder > Ets}.
