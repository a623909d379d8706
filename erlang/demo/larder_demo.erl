%% @doc The program behind `make run': `ets' and `larder' do the same work on this machine's Debian
%% package index.
%%
%% Every result of the one is compared with the result of the other; the program ends with an error
%% if any differs, or if an operation fails. `LARDER_DEMO_SEED' repeats the random draws of an
%% earlier run; `LARDER_DEMO_PACKAGES' takes only so many of the packages.
-module(larder_demo).

-export([main/0, run/4]).

%% From here on an operation is repeated no more than once, so that a slow machine ends in time as
%% well.
-define(BUDGET_MS, 90_000).
%% Where the report goes.
-define(FOLDER, "results/run").
%% Where Yaws is, and where it is moved.
-define(YAWS, "_build/yaws/usr/lib/yaws-*").
-define(MOVED, "_build/demo_moved").

%% @doc Runs, and stops the node: 0 if every result is the same, 1 if not.
-spec main() -> no_return().
main() ->
    Status = try
                 Same = run({ets, right_side()}, seed(), ?FOLDER, larder_demo_debian:places()),
                 ok = examples(),
                 Same
             catch Class:Reason:Stack ->
                     io:format("~nmake run failed: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
                     2
             end,
    halt(Status, [{flush, true}]).

%% The module to compare with. Another one than `larder' is for work on this program itself.
right_side() -> list_to_atom(os:getenv("LARDER_DEMO_MODULE", "larder")).

seed() ->
    case os:getenv("LARDER_DEMO_SEED") of
        false -> erlang:phash2({os:system_time(), erlang:unique_integer(), self()});
        Text -> list_to_integer(Text)
    end.

%% What `ets' has nothing to compare with. It checks itself: what is wrong is an error.
examples() ->
    io:format("~n"),
    Bank = bank:run(#{accounts => 10_000, seconds => 2, tellers => 3}),
    ok = larder_demo_report:example(?FOLDER, bank, Bank),
    io:format("~n"),
    Board = leaderboard:run(#{players => 10_000, seconds => 2, games => 3, fans => 2}),
    ok = larder_demo_report:example(?FOLDER, leaderboard, Board),
    io:format("~n"),
    Sessions = sessions:run(#{users => 1000, seconds => 2, browsers => 4, idle => 500}),
    ok = larder_demo_report:example(?FOLDER, sessions, Sessions),
    io:format("~n"),
    moved(filelib:wildcard(?YAWS)).

moved([]) ->
    io:format("the package erlang-yaws is not in _build, so no program is moved~n");
moved([Package]) ->
    Moved = larder_demo_moved:run(#{package => Package, work => ?MOVED, visitors => 20,
                                    visits => 100}),
    larder_demo_report:example(?FOLDER, moved, Moved).

%% @doc Compares two modules that have the interface of `ets'; the files of the report go to the
%% folder.
-spec run({module(), module()}, integer(), file:filename(), larder_demo_debian:places()) -> 0 | 1.
run({A, B} = Modules, Seed, Folder, Places) ->
    Start = erlang:monotonic_time(millisecond),
    works(A),
    works(B),
    io:format("~s and ~s, the same work. Seed ~b (LARDER_DEMO_SEED=~b repeats it), ~b schedulers, OTP ~s.~n",
              [A, B, Seed, Seed, erlang:system_info(schedulers_online),
               erlang:system_info(otp_release)]),
    {Files, Data} = data(Seed, Places),
    Operations = larder_demo_work:operations(Data),
    Outcomes = measure(Operations, Modules, {#{}, #{}}, Start + ?BUDGET_MS,
                       {1, length(Operations)}),
    Seconds = (erlang:monotonic_time(millisecond) - Start) / 1000,
    larder_demo_report:table(Modules, Outcomes),
    larder_demo_report:files(Folder, Modules, Outcomes, [{seed, Seed}, {files, Files}]),
    verdict(Modules, Outcomes, Seconds).

%% A module that doesn't load at all is better reported in one line than in each operation's.
works(Module) ->
    Table = Module:new(?MODULE, []),
    true = Module:insert(Table, {key, value}),
    [{key, value}] = Module:lookup(Table, key),
    Module:delete(Table).

%% The text of the index is read in a process of its own, so that its garbage goes at once. The rows
%% are kept as a persistent term, because that is copied to no heap: not to the process of a timed
%% run, and by no collection.
data(Seed, Places) ->
    Parent = self(),
    {Pid, Monitor} = spawn_monitor(
        fun() ->
            {Files, All} = larder_demo_debian:read(fun(What) -> io:format("  ~ts~n", [What]) end,
                                                   Places),
            Packages = lists:sublist(All, limit(length(All))),
            persistent_term:put(?MODULE, larder_demo_work:data(Packages, rand:seed_s(exsss, Seed))),
            Parent ! {self(), Files}
        end),
    receive
        {Pid, Files} ->
            demonitor(Monitor, [flush]),
            #{packages := Packages, reverse := Reverse,
              sections := Sections} = Data = persistent_term:get(?MODULE),
            io:format("  ~b packages in ~b sections, ~b reverse dependencies~n~n",
                      [length(Packages), length(Sections), length(Reverse)]),
            {Files, Data};
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

limit(All) ->
    case os:getenv("LARDER_DEMO_PACKAGES") of
        false -> All;
        Text -> list_to_integer(Text)
    end.

measure([], _, _, _, _) -> [];
measure([#{name := Name} = Op | Ops], Modules, Tables, Deadline, {N, Of}) ->
    io:format("[~2b/~b] ~-36ts", [N, Of, Name]),
    {Outcome, Tables1} = larder_demo_measure:operation(Op, Modules, Tables, Deadline),
    io:format("~ts~n", [larder_demo_report:line(Modules, Outcome)]),
    [Outcome | measure(Ops, Modules, Tables1, Deadline, {N + 1, Of})].

verdict({A, B}, Outcomes, Seconds) ->
    case [Outcome || #{difference := D} = Outcome <- Outcomes, D =/= none] of
        [] ->
            io:format("~nEvery result of ~s and ~s is the same: ~b operations, compared every time, in ~.1f s.~n",
                      [A, B, length(Outcomes), Seconds]),
            0;
        Differing ->
            io:format("~n~b of ~b operations DIFFER between ~s and ~s:~n",
                      [length(Differing), length(Outcomes), A, B]),
            [io:format("  ~ts: ~tP~n", [Name, D, 16])
             || #{name := Name, difference := D} <- Differing],
            1
    end.
