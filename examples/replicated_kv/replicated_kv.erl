%% @doc A key-value store on three nodes of this machine that agree by Raft, with the library Ra:
%% its rows in a table of Larder, and for comparison in a map.
%%
%% <ol>
%% <li>How long the leader is busy when it begins a snapshot, for each of the two, and how long
%%     others wait for an answer of it.</li>
%% <li>The leader dies while a snapshot of it is being written and all write. Another one leads.
%%     The node comes back. Servers crash, and their supervisors start them again.</li>
%% <li>A node is away while the others write so much that they drop their logs. It comes back, and
%%     gets a snapshot of the leader.</li>
%% </ol>
%%
%% After each, the copies have to be the same: rows, and how many commands there were. Additions
%% have to be there once. The program ends with status 1 if anything is wrong.
%% `make replicated-kv' runs it; ROWS says how many rows the store has.
-module(replicated_kv).

-export([main/1, paused/5, killed/2, behind/2]).

-import(crew_nodes, [call/4, at_once/4, name/1]).

-define(INTERVAL, 20_000).
-define(SNAPSHOTS, 5).
-define(MILLISECONDS, 120_000).
-define(NAMES, [{kv_map, "a map"}, {kv, "Larder"}]).
%% A time without snapshots.
-define(QUIET, 10_000).

%% @doc For the command line: rows. Ends the node.
-spec main([string()]) -> no_return().
main([Rows]) ->
    crew:main("replicated-kv", fun() -> run(list_to_integer(Rows)) end).

run(Rows) ->
    io:format("~n~b rows on three nodes, two of which write. The leader~n", [Rows]),
    lists:foreach(fun({Module, Name}) ->
        quiet(Name, paused(Module, Rows, infinity, 1, ?QUIET)),
        pause(Name, paused(Module, Rows, ?INTERVAL, ?SNAPSHOTS, ?MILLISECONDS))
    end, ?NAMES),
    io:format("~nThe leader dies while it writes a snapshot; servers crash~n"),
    equal(killed(Rows, ?INTERVAL)),
    io:format("~nA node is away until the others have dropped their logs~n"),
    equal(behind(Rows, ?INTERVAL)).

quiet(Name, #{begun := [], median := Median, waited := Waited}) ->
    io:format("  ~-8s without snapshots: it answers after ~b us, ~b us at most~n",
              [Name, Median, Waited]).

pause(Name, #{begun := Begun, median := Median, waited := Waited}) ->
    io:format("  ~-8s ~b snapshots: busy for ~w us; it answers after ~b us, ~b us at most~n",
              [Name, length(Begun), lists:sort(Begun), Median, Waited]).

equal({Commands, Rows, _}) ->
    io:format("  ~b rows after ~b commands on all three, the same~n", [Rows, Commands]).

%% ---- the parts ----

%% @doc How long the leader is busy with beginning a snapshot while two nodes write: until there
%% were so many snapshots, or so many milliseconds have passed.
-spec paused(kv | kv_map, Rows :: pos_integer(), Interval :: pos_integer() | infinity,
             Snapshots :: pos_integer(), Milliseconds :: pos_integer()) -> #{atom() => term()}.
paused(Module, Rows, Interval, Snapshots, Milliseconds) ->
    with_cluster(Module, Rows, Interval, fun(Nodes, _) ->
        {Leader, Others} = leader(Nodes),
        begin_writing(Others, Rows),
        Figures = call(Leader, kv_node, measure, [Snapshots, Milliseconds]),
        Written = end_writing(Others),
        _ = same(Module, Nodes, Written),
        Figures#{commands => lists:sum([Commands || {_, {Commands, _, _}} <- Written])}
    end).

%% @doc The leader dies while it writes a snapshot. It comes back, and then two servers crash. Gives
%% the digest of the copies.
-spec killed(Rows :: pos_integer(), Interval :: pos_integer()) -> tuple().
killed(Rows, Interval) ->
    with_cluster(kv, Rows, Interval, fun(Nodes, Folder) ->
        {Leader, [One, Two]} = leader(Nodes),
        begin_writing([One, Two], Rows),
        ended = try call(Leader, kv_node, die_in_snapshot, []) catch exit:_ -> ended end,
        I = number(Leader, Nodes),
        [{error, _}] = [Result || Result <- snapshots(Folder, I), Result =/= ok],
        {_, _} = leader([One, Two]),
        timer:sleep(200),
        Again = restart(Folder, I),
        try
            1 = call(One, kv_node, add, [back, 1]),
            Written = end_writing([One, Two]),
            Digest = same(kv, [One, Two, Again], Written),
            _ = [ok = call(N, kv_node, crash, []) || N <- [One, Again]],
            Digest = settled(kv, [One, Two, Again], 3000)
        after
            crew_nodes:stop(Again)
        end
    end).

%% @doc A follower is away until the others have dropped what it lacks. Gives the digest.
-spec behind(Rows :: pos_integer(), Interval :: pos_integer()) -> tuple().
behind(Rows, Interval) ->
    with_cluster(kv, Rows, Interval, fun(Nodes, Folder) ->
        {Leader, [One, Two]} = leader(Nodes),
        I = number(Two, Nodes),
        crew_nodes:kill(Two),
        begin_writing([One], Rows),
        #{snapshots := 2} = call(Leader, kv_node, measure, [2, ?MILLISECONDS]),
        Again = restart(Folder, I),
        try
            ok = installed(Again, 3000),
            Written = end_writing([One]),
            same(kv, [Leader, One, Again], Written)
        after
            crew_nodes:stop(Again)
        end
    end).

installed(Node, Tries) when Tries > 0 ->
    case call(Node, kv_node, installed, []) of
        0 -> timer:sleep(20), installed(Node, Tries - 1);
        _ -> ok
    end.

%% ---- the cluster ----

with_cluster(Module, Rows, Interval, Fun) ->
    crew_nodes:with_folder(fun(Folder) ->
        Nodes = [start_node(Folder, I) || I <- [1, 2, 3]],
        try
            _ = [ok = call(N, kv_node, start, [data(Folder, I)]) || {I, N} <- lists:enumerate(Nodes)],
            First = hd(Nodes),
            _ = [true = call(First, net_kernel, connect_node, [name(N)]) || N <- Nodes],
            ok = call(First, kv_node, form,
                      [Module:config(#{interval => Interval}), [name(N) || N <- Nodes]]),
            _ = at_once(Nodes, kv_node, formed, []),
            ok = call(First, kv_node, fill, [0, Rows]),
            Fun(Nodes, Folder)
        after
            lists:foreach(fun crew_nodes:stop/1, Nodes)
        end
    end).

start_node(Folder, I) ->
    Ebin = fun(Application) -> filename:join(code:lib_dir(Application), "ebin") end,
    Applications = [ra, aten, gen_batch_server, seshat],
    crew_nodes:start(Folder, I, lists:append([["-pa", Ebin(A)] || A <- Applications])).

restart(Folder, I) ->
    Node = start_node(Folder, I),
    ok = call(Node, kv_node, restart, [data(Folder, I)]),
    Node.

data(Folder, I) -> filename:join(Folder, lists:concat(["ra", I])).

number(Node, Nodes) ->
    [I] = [I || {I, N} <- lists:enumerate(Nodes), N =:= Node],
    I.

%% What each snapshot of a node's that is on disc is worth.
snapshots(Folder, I) ->
    [larder_ra_snapshot:validate(Place)
     || Place <- filelib:wildcard(filename:join(data(Folder, I), "*/*/snapshots/*"))].

%% Who leads, and who else there is.
leader(Nodes) -> leader(Nodes, 500).

leader([Node | _] = Nodes, Tries) when Tries > 0 ->
    {kv, Name} = case call(Node, kv_node, leader, []) of
                     unknown -> {kv, unknown};
                     Server -> Server
                 end,
    case lists:partition(fun(N) -> name(N) =:= Name end, Nodes) of
        {[Leader], Others} -> {Leader, Others};
        {[], _} -> timer:sleep(20), leader(Nodes, Tries - 1)
    end.

begin_writing(Nodes, Range) ->
    _ = [ok = call(N, kv_node, begin_writing, [name(N), Range]) || N <- Nodes],
    ok.

end_writing(Nodes) ->
    [{name(N), call(N, kv_node, end_writing, [])} || N <- Nodes].

%% The copies are the same, and each addition is there once. Those of which a writer never heard
%% may be there.
same(Module, Nodes, Written) ->
    lists:foreach(fun({Writer, {_, Added, Unknown}}) ->
        Sum = call(hd(Nodes), kv_node, add, [{writer, Writer}, 0]),
        true = Added =< Sum andalso Sum =< Added + Unknown
    end, Written),
    settled(Module, Nodes, 3000).

settled(Module, Nodes, Tries) ->
    case lists:usort(at_once(Nodes, kv_node, digest, [Module])) of
        [{_, _, _} = Digest] -> Digest;
        _ when Tries > 0 -> timer:sleep(20), settled(Module, Nodes, Tries - 1);
        Different -> error({copies_differ, Different})
    end.
