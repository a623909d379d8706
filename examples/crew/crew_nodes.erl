%% @doc Nodes of one machine that the examples start: they find one another by {@link crew_ports},
%% and their files are in a folder of their own.
-module(crew_nodes).

-export([with_folder/1, start/3, stop/1, kill/1, name/1, call/4, at_once/4]).

-export_type([crew_node/0]).

%% How it is called from here, its name, and its process.
-record(crew_node, {peer :: pid(), name :: node(), process :: string()}).

-opaque crew_node() :: #crew_node{}.

-define(HOST, "127.0.0.1").
-define(PATIENCE, 3_600_000).

%% @doc Calls the fun with a new folder, and deletes that then.
-spec with_folder(fun((Folder :: file:filename()) -> Result)) -> Result.
with_folder(Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["larder_cluster_", os:getpid(), "_",
                                         erlang:unique_integer([positive])])),
    ok = filelib:ensure_dir(filename:join(Folder, "x")),
    try Fun(Folder) after file:del_dir_r(Folder) end.

%% @doc Starts the node of this number, with Larder and the examples in its code path. Nodes of one
%% folder can hear each other.
-spec start(Folder :: file:filename(), pos_integer(), Arguments :: [string()]) -> crew_node().
start(Folder, I, More) ->
    Paths = lists:append([["-pa", filename:absname(filename:dirname(code:which(Module)))]
                          || Module <- [larder, ?MODULE]]),
    Arguments = Paths ++ ["-name", lists:concat(["larder", I, "@", ?HOST]),
                          "-setcookie", filename:basename(Folder),
                          "-start_epmd", "false", "-epmd_module", "crew_ports",
                          "-kernel", "logger_level", "none",
                          "-kernel", "prevent_overlapping_partitions", "false" | More],
    {ok, Peer, Name} = peer:start(#{connection => standard_io, args => Arguments,
                                    env => [{"LARDER_CLUSTER", Folder}]}),
    #crew_node{peer = Peer, name = Name, process = peer:call(Peer, os, getpid, [])}.

%% @doc Ends a node. It may be gone: it was killed.
-spec stop(crew_node()) -> ok.
stop(#crew_node{peer = Peer}) ->
    try peer:stop(Peer) catch exit:_ -> ok end.

%% @doc Kills a node's process.
-spec kill(crew_node()) -> ok.
kill(#crew_node{process = Process}) ->
    _ = os:cmd("kill -9 " ++ Process),
    ok.

-spec name(crew_node()) -> node().
name(#crew_node{name = Name}) -> Name.

%% @doc Calls a function on a node.
-spec call(crew_node(), module(), atom(), [term()]) -> term().
call(#crew_node{peer = Peer}, Module, Function, Arguments) ->
    peer:call(Peer, Module, Function, Arguments, ?PATIENCE).

%% @doc Calls it on all nodes at once.
-spec at_once([crew_node()], module(), atom(), [term()]) -> [term()].
at_once(Nodes, Module, Function, Arguments) ->
    Self = self(),
    Calls = [spawn_monitor(fun() ->
                 Self ! {self(), call(N, Module, Function, Arguments)}
             end) || N <- Nodes],
    [receive
         {Pid, Result} -> true = demonitor(Monitor, [flush]), Result;
         {'DOWN', Monitor, _, _, Reason} -> error(Reason)
     end || {Pid, Monitor} <- Calls].
