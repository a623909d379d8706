%% @doc The studies of 2003 and of ordered_set, with the real `ets' beside, for `larder-bench study
%% erlang', which starts this and reads what it says: lines of fields between tabs, the first of
%% them `@part', `@step', `@fact', `@point', `@skip', `@wrong' or `@done'.
%%
%% To add a workload of one process: an entry of workloads/0 (and its plot in
%% crates/larder-bench/src/study/erlang.rs).
%%
%% Environment: `LARDER_STUDY_SIZES' (keys), `LARDER_STUDY_OPERATIONS' (of each kind, at least,
%% where tables are small), `LARDER_STUDY_INSERTS' (of disjoint ranges), `LARDER_BENCH_RUNS',
%% `LARDER_BENCH_RANGE' and `LARDER_BENCH_MS' (of scenarios), `LARDER_STUDY_ONLY' (parts of names),
%% `LARDER_STUDY_FREE' (bytes of memory that may be used), `LARDER_STUDY_PLANT=1' (a table that
%% loses a row takes part), `LARDER_STUDY_SCENARIOS=main' (scenarios on the tables of ets and
%% Larder's defaults alone), `LARDER_STUDY_SECONDS' (another turn is begun only while there is time
%% for it; with `LARDER_STUDY_STRICT=1' nothing is begun when they are over).
-module(larder_bench_study).

-export([main/0]).

-type contender() :: #{name := string(), side := module(), options := [term()]}.

%% Bytes a row that are reckoned with before a table of the kind was seen.
-define(ROW, 200).
%% Bytes that a row's keys take beside the table: twice, while they are made.
-define(KEYS, 250).

%% @doc Measures everything, says it, and stops the node.
-spec main() -> no_return().
main() ->
    Status = try run() of
                 ok -> say(["@done"]), 0
             catch
                 throw:{wrong, Name, What} -> say(["@wrong", Name, What]), 1;
                 Class:Reason:Stack ->
                     say(["@wrong", "the study itself",
                          io_lib:format("~0tp:~0tp ~0tp", [Class, Reason, Stack])]),
                     1
             end,
    halt(Status, [{flush, true}]).

run() ->
    [] = [M || M <- [ets, larder], code:ensure_loaded(M) =/= {module, M}],
    say(["@fact", "OTP", erlang:system_info(otp_release)]),
    say(["@fact", "ERTS", erlang:system_info(version)]),
    say(["@fact", "schedulers", integer_to_list(erlang:system_info(schedulers_online))]),
    Runs = larder_bench_env:number("LARDER_BENCH_RUNS", 3),
    Contenders = [C || #{name := Name} = C <- contenders(), wanted(Name)] ++ planted(),
    _ = Contenders =/= [] orelse throw({wrong, "--only", "no table of this study is called so"}),
    put(began, erlang:monotonic_time(millisecond)),
    Sizes = larder_bench_env:numbers("LARDER_STUDY_SIZES", [700]),
    [size(Size, Runs, 0.45 * I / length(Sizes), Contenders)
     || {I, Size} <- lists:zip(lists:seq(1, length(Sizes)), Sizes)],
    Sound = [C || #{side := Side} = C <- Contenders, Side =/= larder_bench_planted],
    disjoint(Runs, 0.55, Sound),
    scenarios(Runs, 1.0,
              [C || #{name := Name} = C <- Sound,
                    os:getenv("LARDER_STUDY_SCENARIOS", "all") =:= "all" orelse is_main(Name)]).

%% Larder's defaults, and what ets has.
is_main(Name) ->
    lists:member(Name, ["larder set", "larder ordered_set"]) orelse lists:prefix("ets", Name).

%%% Turns and time

%% Calls Fun with 1, 2 and so on up to Runs: the first time in any case, then while there is as much
%% time as the last one took, until a share of all the time is over. Without an end, all.
turns(Runs, Share, Fun) ->
    case over(Share, 0) of
        true -> say(["@skip", "a part: not in the time that was given (--minutes)"]);
        false -> turns(1, Runs, until(Share), Fun)
    end.

turns(Turn, Runs, _, _) when Turn > Runs -> ok;
turns(Turn, Runs, Until, Fun) ->
    Begin = spent(),
    put(turn, Turn),
    _ = Fun(Turn),
    say(["@turn"]),
    Now = spent(),
    case Until =:= none orelse Now + (Now - Begin) =< Until of
        true -> turns(Turn + 1, Runs, Until, Fun);
        false -> ok
    end.

spent() -> erlang:monotonic_time(millisecond) - get(began).

until(Share) ->
    case os:getenv("LARDER_STUDY_SECONDS", "") of
        "" -> none;
        Seconds -> Share * list_to_integer(Seconds) * 1000
    end.

%% Whether nothing is to be begun any more that takes so many seconds, in a part that may last until
%% this share of the time is over.
over(Share, Seconds) ->
    os:getenv("LARDER_STUDY_STRICT") =:= "1" andalso spent() + Seconds * 1000 > until(Share).

%% What there is: ets, Larder, Larder's structures.
-spec contenders() -> [contender()].
contenders() ->
    Locks = [{write_concurrency, true}, {read_concurrency, true}],
    [table("ets set", larder_bench_ets, [set]),
     table("ets set, both", larder_bench_ets, [set | Locks]),
     table("ets ordered_set", larder_bench_ets, [ordered_set]),
     table("ets ordered_set, both", larder_bench_ets, [ordered_set | Locks]),
     table("larder set", larder_bench_larder, [set]),
     table("larder ordered_set", larder_bench_larder, [ordered_set])]
        ++ [structure(S) || #{name := Name} = S <- larder:structures(), Name =/= default].

table(Name, Side, Options) -> #{name => Name, side => Side, options => Options}.

structure(#{name := Name, types := Types}) ->
    Type = case lists:member(ordered_set, Types) of true -> ordered_set; false -> set end,
    table(lists:concat(["larder ", Type, ", ", Name]), larder_bench_larder,
          [Type, {structure, Name}]).

%% What never grows is told how many rows there will be.
-spec sized(contender(), pos_integer()) -> [term()].
sized(#{options := Options}, Rows) ->
    [case Option of
         {structure, Name} -> {structure, {Name, buckets(Name, Rows)}};
         _ -> Option
     end || Option <- Options].

buckets(Name, Rows) ->
    [{buckets, max(256, min(1 bsl 24, Rows))}
     || #{name := N, options := #{buckets := _}} <- larder:structures(), N =:= Name].

planted() ->
    [table("planted fault", larder_bench_planted, [set])
     || os:getenv("LARDER_STUDY_PLANT") =:= "1"].

wanted(Name) ->
    case string:lexemes(os:getenv("LARDER_STUDY_ONLY", ""), ",") of
        [] -> true;
        Parts ->
            lists:any(fun([$= | Whole]) -> Name =:= Whole; (Part) -> string:find(Name, Part)
                                           =/= nomatch end, Parts)
    end.

%%% The workloads of 2003

%% Steps of larder_bench_loops.hrl, in the order in which a table goes through them.
workloads() ->
    [{insert_up, "insert-sequential"}, {lookup_up, "lookup-sequential"}, {lookup, "lookup-random"},
     {next, "traversal"},
     {counter, "counter-random"}, {delete_up, "deletion"}, {insert, "insert-random"}].

size(Size, Runs, Share, All) ->
    Contenders = [C || C <- All, fits(Size, C)],
    Rounds = max(1, larder_bench_env:number("LARDER_STUDY_OPERATIONS", 100_000) div Size),
    larder_bench_measure:with_data(
      larder_bench_measure, fun() -> larder_bench_rows:data(ints, Size) end,
      fun() -> turns(Runs, Share, fun(Turn) -> turn(Turn, Size, Rounds, Contenders) end) end),
    ok.

turn(Turn, Size, Rounds, Contenders) ->
    say(["@part", io_lib:format("erlang, ~b keys, run ~b", [Size, Turn]),
         integer_to_list(length(Contenders))]),
    [measure(C, Size, Rounds)
     || C <- turned(Turn, Contenders), in_time(io_lib:format("~b keys", [Size]), 0.45, Size, C)].

in_time(What, Share, Keys, #{name := Name}) ->
    %% A row takes longer in a larger table.
    Seconds = case get({time, Name}) of undefined -> 0; ARow -> 1.5 * Keys * ARow end,
    Over = over(Share, Seconds),
    %% What a later turn leaves out was measured in the first one, or was said there.
    _ = Over andalso get(turn) =:= 1
        andalso say(["@skip",
                     io_lib:format("~s, ~s: not in the time that was given (--minutes)",
                                   [What, Name])]),
    not Over.

turned(Turn, Contenders) -> larder_bench_measure:rotated(Turn - 1, Contenders).

fits(Size, #{name := Name} = C) ->
    Needed = Size * (?KEYS + case get({row, Name}) of undefined -> ?ROW; Bytes -> 1.7 * Bytes end),
    Free = list_to_integer(os:getenv("LARDER_STUDY_FREE", "1000000000")),
    Fits = Needed =< Free,
    _ = Fits orelse say(["@skip", io_lib:format("~b keys, ~s: would take about ~.1f GB of memory, ~.1f GB may be used",
                                            [Size, maps:get(name, C), Needed / 1.0e9,
                                             Free / 1.0e9])]),
    Fits.

measure(#{name := Name, side := Side} = C, Size, Rounds) ->
    X = integer_to_list(Size),
    {Row, Times} = checked(Name, fun() ->
        larder_bench_measure:in_own_process(fun() ->
            rounds(Side, Side:new(sized(C, Size)), Size, Rounds) end, 65_536)
    end),
    put({row, Name}, Row),
    put({time, Name}, lists:sum(Times) / 1.0e9 / Rounds / Size),
    point("bytes", Name, X, Row),
    [point(Plot, Name, X, Ns / 1000 / Rounds * 1000 / Size)
     || {{_, Plot}, Ns} <- lists:zip(workloads(), Times)],
    say(["@step", Name]).

rounds(Side, Table, Size, Rounds) ->
    Data = persistent_term:get(larder_bench_measure),
    %% Small tables are measured warm.
    _ = [round(Side, Table, Data) || Rounds > 1],
    Each = [round(Side, Table, Data) || _ <- lists:seq(1, Rounds)],
    Size = Side:run(insert_up, Table, Data),
    Row = Side:memory(Table) / Size,
    true = Side:delete(Table),
    {Row, [lists:sum(Of) || Of <- larder_bench_measure:columns(Each)]}.

%% The table is empty again afterwards.
round(Side, Table, Data) ->
    Times = [larder_bench_measure:timed(fun() -> Side:run(Step, Table, Data) end)
             || {Step, _} <- workloads()],
    _ = Side:run(delete_up, Table, Data),
    [Ns || {Ns, _} <- Times].

%% What goes wrong in `Fun' is the table's.
checked(Name, Fun) ->
    try Fun()
    catch Class:Reason:Stack ->
        throw({wrong, Name, io_lib:format("~0tp:~0tp ~0tP", [Class, Reason, Stack, 20])})
    end.

%%% Inserts of disjoint ranges

disjoint(Runs, Share, Contenders) ->
    N = larder_bench_env:number("LARDER_STUDY_INSERTS", 300_000),
    Counts = [1, 2, 4],
    turns(Runs, Share, fun(Turn) ->
        say(["@part", io_lib:format("erlang, disjoint inserts, run ~b", [Turn]),
             integer_to_list(length(Contenders) * length(Counts))]),
        [begin
             Rate = checked(Name, fun() -> inserts(C, N div P, P) end),
             point("disjoint", Name, integer_to_list(P), Rate / 1.0e6),
             say(["@step", Name])
         end || P <- Counts, #{name := Name} = C <- turned(Turn, Contenders),
         in_time(io_lib:format("disjoint inserts by ~b", [P]), Share, 0, C)]
    end).

inserts(#{side := Side} = C, Part, Processes) ->
    {ok, Table} = Side:new_with(sized(C, Part * Processes)),
    Jobs = [fun() ->
                ok = Side:grow_beside(Table, (P - 1) * Part + 1, P * Part),
                erlang:monotonic_time()
            end || P <- lists:seq(1, Processes)],
    {Start, Workers} = larder_bench_measure:started(Jobs),
    End = lists:max(larder_bench_measure:answers(Workers)),
    N = Part * Processes,
    ok = Side:whole(Table, N),
    true = Side:delete(Table),
    N / (erlang:convert_time_unit(End - Start, native, nanosecond) / 1.0e9).

%%% The scenarios

scenarios(Runs, Share, Contenders) ->
    Ms = larder_bench_env:number("LARDER_BENCH_MS", 100),
    Range = larder_bench_env:number("LARDER_BENCH_RANGE", 1_000_000),
    Most = erlang:system_info(schedulers_online),
    Counts = lists:usort([1, Most]),
    Scenarios = [S || #{part := scenarios} = S <- larder_bench_scaling:scenarios()],
    turns(Runs, Share, fun(Turn) ->
        Steps = length(Contenders) * length(Counts) * length(Scenarios),
        say(["@part", io_lib:format("erlang, scenarios, run ~b", [Turn]), integer_to_list(Steps)]),
        [begin
             Rate = checked(Name,
                            fun() ->
                                larder_bench_scaling:rate({Side, Name, sized(C, Range div 2)}, S, P,
                                                          Ms) end),
             Plot = case P of 1 -> "scenarios-1"; _ -> "scenarios" end,
             point(Plot, Name, Called, Rate / 1.0e6),
             say(["@step", Name])
         end || #{name := Called} = S <- Scenarios,
         #{name := Name, side := Side} = C <- turned(Turn, Contenders),
         in_time(Called, Share, 0, C), P <- Counts]
    end).

%%% Lines

point(Plot, Series, X, Y) -> say(["@point", Plot, Series, X, io_lib:format("~.6f", [float(Y)])]).

%% A field holds no tab and no end of line.
say(Fields) ->
    Clean = [[case C of $\t -> $\s; $\n -> $\s; _ -> C end || C <- lists:flatten(F)]
             || F <- Fields],
    io:put_chars([lists:join($\t, Clean), $\n]).
