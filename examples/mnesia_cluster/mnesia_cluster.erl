%% @doc Three nodes with Mnesia on this machine, their tables on `ets' (`ram_copies') and on Larder
%% (`larder_copies'), each in turn.
%%
%% <ol>
%% <li>A node is killed while all three write, starts again, and gets the table.</li>
%% <li>A node is parted from the others; both sides write; they meet again. Mnesia says that they
%%     went on alone. The node takes the others for its masters and starts Mnesia again.</li>
%% <li>A node starts, and gets the table from another one while two write: how long that takes and
%%     how much memory.</li>
%% <li>How many operations a second one, two and three nodes do with a copy on each.</li>
%% </ol>
%%
%% After each of the first three, the copies have to be the same, and have what was written last.
%% The program ends with status 1 if anything is wrong. `make mnesia-cluster' runs it; ROWS says
%% how large the table is.
-module(mnesia_cluster).

-export([main/1, killed/2, parted/2, joined/2, added/2, measured/4]).

-import(crew_nodes, [call/4, at_once/4, name/1]).

-export_type([storage/0]).

-type storage() :: ram_copies | larder_copies | {storage(), storage()}.
%% Of a pair, the first node has the first, the others the second.

-define(STORAGES, [ram_copies, larder_copies]).
-define(PATIENCE, 3_600_000).
-define(MB, 1048576).
%% Keys of each writer in the first two parts.
-define(RANGE, 20_000).

%% @doc For the command line: rows, and milliseconds for a figure of the last part. Ends the node.
-spec main([string()]) -> no_return().
main([Rows, Milliseconds]) ->
    crew:main("mnesia-cluster", fun() ->
        run(list_to_integer(Rows), list_to_integer(Milliseconds))
    end).

run(Rows, Milliseconds) ->
    io:format("~nA node is killed while three write, and comes back~n"),
    lists:foreach(fun(Storage) -> equal(Storage, killed(Storage, ?RANGE)) end, ?STORAGES),
    io:format("~nA node is parted from two, and gives way~n"),
    lists:foreach(fun(Storage) -> equal(Storage, parted(Storage, ?RANGE)) end, ?STORAGES),
    io:format("~nA node gets a table of ~b rows~n", [Rows]),
    lists:foreach(fun(Storage) -> loading(Storage, joined(Storage, Rows)) end, ?STORAGES),
    io:format("~nOperations a second, all nodes together, one process each, a copy on each node~n"),
    lists:foreach(fun({Schema, Nodes, Storage}) ->
                          throughput(Schema, Storage, Nodes, Milliseconds)
                  end, [{Schema, Nodes, Storage} || Schema <- [ram, disc], Nodes <- [1, 2, 3],
                                                    Storage <- ?STORAGES]).

equal(Storage, {Rows, _}) -> line(Storage, "~b rows on all three, the same", [Rows]).

line(Storage, Format, Arguments) ->
    io:format("  ~-14s " ++ Format ++ "~n", [Storage | Arguments]).

loading(Storage, #{quiet := Quiet, busy := Busy, writes := Writes, peak := Peak, now := Now}) ->
    line(Storage, "~.1f s; ~.1f s while two write (~b writes); ~b MB at most, ~b MB at the end",
         [Quiet, Busy, Writes, Peak div ?MB, Now div ?MB]).

throughput(Schema, Storage, Nodes, Milliseconds) ->
    Figures = measured(Storage, Schema, Nodes, Milliseconds),
    line(Storage, "schema ~-4s ~b nodes  " ++
             lists:append(lists:duplicate(length(Figures), "~s ~8b  ")),
         [Schema, Nodes | lists:append([[What, round(Figure)] || {What, Figure} <- Figures])]).

%% ---- the parts ----

%% @doc A node is killed while all write, and comes back. Gives the digest of the copies.
-spec killed(storage(), Range :: pos_integer()) -> {non_neg_integer(), non_neg_integer()}.
killed(Storage, Range) ->
    with_cluster(disc, 3, fun([A, B, C] = Nodes, Folder) ->
        create(Storage, Nodes),
        %% What a node writes dirtily as it dies may reach one of two others, on any storage: this
        %% one writes in transactions.
        _ = [call(N, cluster_node, begin_writing, [Me, Range, How])
             || {N, Me, How} <- [{A, 0, mixed}, {B, 1, mixed}, {C, 2, transactions}]],
        timer:sleep(300),
        crew_nodes:kill(C),
        timer:sleep(300),
        Again = start_node(Folder, 3),
        try
            call(Again, cluster_node, start, []),
            loaded(Again),
            timer:sleep(100),
            Written = [{Me, call(N, cluster_node, end_writing, [])} || {N, Me} <- [{A, 0}, {B, 1}]],
            same([A, B, Again], Written, Range)
        after
            crew_nodes:stop(Again)
        end
    end).

%% @doc A node is parted from two; all write; the two are its masters. Gives the digest.
-spec parted(storage(), Range :: pos_integer()) -> {non_neg_integer(), non_neg_integer()}.
parted(Storage, Range) ->
    with_cluster(disc, 3, fun([A, B, C] = Nodes, _) ->
        create(Storage, Nodes),
        Two = [name(A), name(B)],
        _ = [call(N, cluster_node, begin_writing, [Me, Range, mixed])
             || {N, Me} <- [{A, 0}, {B, 1}]],
        timer:sleep(200),
        %% The third node is parted from both at once, and writes from then on: what it wrote while
        %% one of the two heard it would be on that one alone.
        call(C, cluster_node, part, [Two]),
        _ = [call(N, cluster_node, part, [[name(C)]]) || N <- [A, B]],
        call(C, cluster_node, begin_writing, [2, Range, mixed]),
        timer:sleep(300),
        Before = [call(N, cluster_node, digest, []) || N <- [A, C]],
        true = hd(Before) =/= lists:last(Before),
        _ = [call(N, cluster_node, heal, [[name(C)]]) || N <- [A, B]],
        call(C, cluster_node, heal, [Two]),
        call(C, cluster_node, parted, [Two]),
        _ = call(C, cluster_node, end_writing, []),
        ok = call(C, mnesia, set_master_nodes, [Two]),
        stopped = call(C, mnesia, stop, []),
        ok = call(C, mnesia, start, []),
        loaded(C),
        Written = [{Me, call(N, cluster_node, end_writing, [])} || {N, Me} <- [{A, 0}, {B, 1}]],
        same(Nodes, Written, Range)
    end).

%% @doc The second node gets the table while nobody writes, the third one while two do. Seconds, and
%% the third node's memory in bytes.
-spec joined(storage(), Rows :: pos_integer()) ->
          #{quiet := float(), busy := float(), writes := non_neg_integer(),
            peak := non_neg_integer(), now := non_neg_integer(),
            digest := {non_neg_integer(), non_neg_integer()}}.
joined(Storage, Rows) ->
    with_cluster(ram, 3, fun([A, B, C] = Nodes, _) ->
        create(Storage, Nodes),
        _ = [stopped = call(N, mnesia, stop, []) || N <- [B, C]],
        call(A, cluster_node, fill, [Rows]),
        Quiet = seconds(fun() -> comes_back(B, A) end),
        Range = max(1, Rows div 3),
        _ = [call(N, cluster_node, begin_writing, [Me, Range, mixed])
             || {N, Me} <- [{A, 0}, {B, 1}]],
        Busy = seconds(fun() -> comes_back(C, A) end),
        Written = [{Me, call(N, cluster_node, end_writing, [])} || {N, Me} <- [{A, 0}, {B, 1}]],
        {Peak, Now} = call(C, cluster_node, memory, []),
        #{quiet => Quiet, busy => Busy, writes => lists:sum([W - Range || {_, W} <- Written]),
          peak => Peak, now => Now, digest => same(Nodes, Written, Range)}
    end).

%% @doc A copy is added on a second node while the first one writes, and dropped. What the second
%% one has of Larder's then.
-spec added(storage(), Rows :: pos_integer()) -> [larder:table()].
added(Storage, Rows) ->
    with_cluster(disc, 2, fun([A, B], _) ->
        create(Storage, [A]),
        call(A, cluster_node, fill, [Rows]),
        call(A, cluster_node, begin_writing, [0, Rows div 3, mixed]),
        {atomic, ok} = call(B, mnesia, add_table_copy, [thing, name(B), Storage]),
        Last = call(A, cluster_node, end_writing, []),
        _ = same([A, B], [{0, Last}], Rows div 3),
        {atomic, ok} = call(B, mnesia, del_table_copy, [thing, name(B)]),
        call(B, larder, all, [])
    end).

comes_back(Node, Other) ->
    call(Node, cluster_node, start, [[name(Other)]]),
    loaded(Node).

%% @doc Operations a second, all nodes together.
-spec measured(storage(), disc | ram, 1..3, pos_integer()) -> [{atom(), float()}].
measured(Storage, Schema, Number, Milliseconds) ->
    with_cluster(Schema, Number, fun([First | _] = Nodes, _) ->
        create(Storage, Nodes),
        call(First, cluster_node, fill, [10_000]),
        _ = settled(Nodes, 500),
        [begin
             %% What the measurement before has left in Mnesia's log.
             _ = at_once(Nodes, mnesia, dump_log, []),
             {What, lists:sum(at_once(Nodes, cluster_node, measure, [What, Milliseconds]))}
         end || What <- [dirty_read, dirty_write, transaction]]
    end).

create({One, Two}, [First | Others]) ->
    call(First, cluster_node, create,
         [[{One, [name(First)]}, {Two, [name(N) || N <- Others]}]]);
create(Storage, Nodes) ->
    call(hd(Nodes), cluster_node, create, [[{Storage, [name(N) || N <- Nodes]}]]).

loaded(Node) -> ok = call(Node, mnesia, wait_for_tables, [[thing], ?PATIENCE]).

%% The copies are the same, and each has what the writers wrote.
same(Nodes, Written, Range) ->
    Digest = settled(Nodes, 500),
    _ = [ok = call(N, cluster_node, check, [Me, Range, Last]) || N <- Nodes, {Me, Last} <- Written],
    Digest.

%% A dirty write is on the other nodes a moment later.
settled(Nodes, Tries) ->
    case lists:usort([call(N, cluster_node, digest, []) || N <- Nodes]) of
        [Digest] -> Digest;
        _ when Tries > 0 -> timer:sleep(20), settled(Nodes, Tries - 1);
        Different -> error({copies_differ, Different})
    end.

seconds(Fun) ->
    {Microseconds, _} = timer:tc(Fun),
    Microseconds / 1.0e6.

%% ---- the nodes ----

with_cluster(Schema, Number, Fun) ->
    crew_nodes:with_folder(fun(Folder) ->
        Nodes = [start_node(Folder, I) || I <- lists:seq(1, Number)],
        try
            start_mnesia(Schema, Nodes),
            Fun(Nodes, Folder)
        after
            lists:foreach(fun crew_nodes:stop/1, Nodes)
        end
    end).

start_node(Folder, I) ->
    Place = filename:join(Folder, lists:concat(["mnesia", I])),
    crew_nodes:start(Folder, I, ["-mnesia", "dir", "\"" ++ Place ++ "\""]).

start_mnesia(disc, Nodes) ->
    Names = [name(N) || N <- Nodes],
    _ = [true = call(hd(Nodes), net_kernel, connect_node, [Name]) || Name <- Names],
    ok = call(hd(Nodes), mnesia, create_schema,
              [Names, [{backend_types, [{larder_copies, larder_mnesia}]}]]),
    _ = [ok = Result || Result <- at_once(Nodes, cluster_node, start, [])],
    ok;
start_mnesia(ram, [First | Others]) ->
    call(First, cluster_node, start, [[]]),
    _ = [call(N, cluster_node, start, [[name(First)]]) || N <- Others],
    ok.
