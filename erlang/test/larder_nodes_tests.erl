%% @doc Identifiers and the node's name: what was stored before a node got its name, or another one,
%% is the same afterwards, as with `ets'; and what waits in a table to be answered can be answered,
%% on this node and from another.
-module(larder_nodes_tests).

-include_lib("eunit/include/eunit.hrl").

-export([renamed/0, forgotten/0, named/1, serve/0, ask/1, init/1, handle_call/3, handle_cast/2,
         handle_info/2, start_link/0, register_node/2, register_node/3, port_please/2,
         address_please/3, listen_port_please/2, names/1]).

%% ---- a node gets a name, and loses it ----

a_node_gets_a_name_test_() ->
    {timeout, 60, fun() ->
        Peer = peer(),
        ?assertEqual(ok, peer:call(Peer, ?MODULE, renamed, [], 30000)),
        peer:stop(Peer),
        file:delete(port_file(larder_renamed))
    end}.

%% On a node without a name.
renamed() ->
    Tables = [{Mod, Mod:new(t, [public | Options])}
              || Mod <- [ets, larder],
                 Options <- [[set], [ordered_set], [bag], [duplicate_bag], [set, compressed],
                             [ordered_set, compressed]]],
    Before = identifiers(),
    insert(Tables, Before),
    same(Tables, Before),
    ok = named(larder_renamed),
    same(Tables, Before),
    After = identifiers(),
    insert(Tables, After),
    same(Tables, Before ++ After),
    ok = net_kernel:stop(),
    same(Tables, Before ++ After).

insert(Tables, Ids) ->
    [Mod:insert(Tab, [{Id, Id, [Id]} || Id <- Ids]) || {Mod, Tab} <- Tables].

%% Found under their keys, in the table as a whole, and by patterns; and what a specification says
%% of nodes.
same(Tables, Ids) ->
    Rows = lists:sort([{Id, Id, [Id]} || Id <- Ids]),
    [begin
         {Mod, Rows} = {Mod, lists:sort(lists:append([Mod:lookup(Tab, Id) || Id <- Ids]))},
         {Mod, Rows} = {Mod, lists:sort(Mod:tab2list(Tab))},
         {Mod, Rows} = {Mod,
                        lists:sort(lists:append([Mod:match_object(Tab, {'_', Id, '_'})
                                                 || Id <- Ids]))},
         Pids = [Pid || Pid <- Ids, is_pid(Pid)],
         Nodes = [{node(), node()} || _ <- Pids],
         {Mod, Nodes} = {Mod,
                         Mod:select(Tab,
                                    [{{'$1', '_', '_'}, [{is_pid, '$1'}],
                                      [{{{node}, {node, '$1'}}}]}])}
     end || {Mod, Tab} <- Tables],
    ok.

identifiers() ->
    Ref = make_ref(),
    [spawn(fun() -> ok end), Ref, alias(), monitor(process, self(), [{alias, demonitor}]),
     atomics:new(1, []),
     erlang:start_timer(1000000, self(), x), open_port({spawn, "cat"}, []),
     fun() -> {self(), Ref} end, [self() | make_ref()], #{alias() => self()}].

%% ---- the emulator forgets a node ----

%% When no term refers to a node any more, the emulator forgets it, and hashes its identifiers
%% otherwise when it meets the node again. A large map with such keys is the same map all the same.
a_node_is_forgotten_test_() ->
    {timeout, 60, fun() ->
        Peer = peer(["+zdntgc", "0"]),
        ?assertEqual(ok, peer:call(Peer, ?MODULE, forgotten, [], 30000)),
        peer:stop(Peer)
    end}.

forgotten() ->
    Tables = [larder:new(t, [public | Options]) || Options <- [[set], [bag], [set, compressed]]],
    Maps = fun() ->
        Ids = [foreign_pid('far@away', I) || I <- lists:seq(1, 40)],
        [maps:from_keys(Ids, 1), maps:from_keys([{I, [I]} || I <- Ids], <<"long">>),
         maps:from_keys([#{I => I} || I <- Ids], 1)]
    end,
    {_, Mon} = spawn_monitor(fun() -> [larder:insert(T, {k, Maps()}) || T <- Tables] end),
    receive {'DOWN', Mon, process, _, normal} -> ok end,
    timer:sleep(2000),
    %% What the emulator knows of these lies where it knew of the other one.
    Others = [foreign_pid(list_to_atom("n" ++ integer_to_list(I) ++ "@far"), 1)
              || I <- lists:seq(1, 50)],
    [begin
         [{k, Found}] = larder:lookup(T, k),
         Wanted = Maps(),
         Wanted = Found,
         [[true = maps:is_key(K, F) || K <- maps:keys(W)] || {F, W} <- lists:zip(Found, Wanted)],
         true = larder:delete_object(T, {k, Wanted}),
         0 = larder:info(T, size)
     end || T <- Tables],
    50 = length(Others),
    ok.

foreign_pid(Node, Id) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Id:32, 0:32, 7:32>>).

%% ---- a caller waits in a table ----

%% Who calls a server hands it an alias, by which the answer comes.
a_caller_that_waits_is_answered_test_() ->
    {timeout, 60, fun() ->
        {ok, Server} = gen_server:start_link(?MODULE, [], []),
        [?assertEqual({answer, Mode}, gen_server:call(Server, Mode, 5000)) || Mode <- modes()],
        gen_server:stop(Server)
    end}.

a_caller_of_another_node_is_answered_test_() ->
    {timeout, 60, fun() ->
        [Here, There] = Peers = [peer(), peer()],
        [?assertEqual(ok, peer:call(Peer, ?MODULE, named, [Name]))
         || {Peer, Name} <- [{Here, larder_here}, {There, larder_there}]],
        Server = peer:call(Here, ?MODULE, serve, []),
        ?assertEqual([{answer, Mode} || Mode <- modes()],
                     peer:call(There, ?MODULE, ask, [Server], 30000)),
        [peer:stop(Peer) || Peer <- Peers],
        [file:delete(port_file(Name)) || Name <- [larder_here, larder_there]]
    end}.

serve() ->
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Server.

ask(Server) ->
    [gen_server:call(Server, Mode, 5000) || Mode <- modes()].

modes() ->
    [{Type, As} || Type <- [[set], [ordered_set], [bag], [set, compressed],
                            [ordered_set, compressed]], As <- [key, value]].

%% The server: keeps the caller in a table, and answers what it finds there.
init([]) -> {ok, none}.

handle_call({Type, As} = Mode, From, State) ->
    Tab = larder:new(t, Type),
    Padding = lists:duplicate(50, a),
    true = larder:insert(Tab,
                         case As of key -> {From, From, Padding}; value -> {k, From, Padding} end),
    [[Caller]] = larder:match(Tab, case As of key -> {'$1', '_', '_'}; value -> {k, '$1', '_'} end),
    true = larder:delete(Tab),
    gen_server:reply(Caller, {answer, Mode}),
    {noreply, State}.

handle_cast(_, State) -> {noreply, State}.
handle_info(_, State) -> {noreply, State}.

%% ---- nodes without the port mapper ----

%% A node without a name, which may get one.
peer() -> peer([]).

peer(Args) ->
    Paths = lists:append([["-pa", filename:absname(filename:dirname(code:which(Mod)))]
                          || Mod <- [larder, ?MODULE]]),
    Started = peer:start_link(#{connection => standard_io,
                                args => Args ++ Paths
                                    ++ ["-epmd_module", atom_to_list(?MODULE)]}),
    element(2, Started).

named(Name) ->
    {ok, _} = net_kernel:start([Name, shortnames]),
    erlang:set_cookie(larder_nodes),
    ok.

%% This module in the port mapper's place: a node's port is in a file.
start_link() -> ignore.
register_node(Name, Port) -> register_node(Name, Port, inet).
register_node(Name, Port, _) ->
    ok = file:write_file(port_file(Name), integer_to_list(Port)), {ok, 1}.
listen_port_please(_, _) -> {ok, 0}.
names(_) -> {error, address}.

port_please(Name, Host) ->
    case address_please(Name, Host, inet) of
        {ok, _, Port, Version} -> {port, Port, Version};
        _ -> noport
    end.

address_please(Name, _, _) ->
    case file:read_file(port_file(Name)) of
        {ok, Port} -> {ok, {127, 0, 0, 1}, binary_to_integer(Port), 6};
        Error -> Error
    end.

%% The nodes have the environment of this one.
port_file(Name) ->
    filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["larder_nodes_", Name])).
