%% @doc In the port mapper's place, for nodes of one machine: a node's port is in a file of the
%% folder that `LARDER_CLUSTER' names. `erl -start_epmd false -epmd_module crew_ports'.
-module(crew_ports).

-export([start_link/0, register_node/2, register_node/3, port_please/2, address_please/3,
         listen_port_please/2, names/1]).

start_link() -> ignore.

register_node(Name, Port) -> register_node(Name, Port, inet).

%% Raw, as the node has no file server yet. A node that starts again is told apart from the one
%% before.
register_node(Name, Port, _) ->
    ok = file:write_file(file(Name), integer_to_list(Port), [raw]),
    {ok, 3 + rand:uniform(1 bsl 30)}.

listen_port_please(_, _) -> {ok, 0}.

names(_) -> {error, address}.

port_please(Name, Host) ->
    case address_please(Name, Host, inet) of
        {ok, _, Port, Version} -> {port, Port, Version};
        _ -> noport
    end.

address_please(Name, _, _) ->
    case file:read_file(file(Name)) of
        {ok, Port} -> {ok, {127, 0, 0, 1}, binary_to_integer(Port), 6};
        Error -> Error
    end.

file(Name) -> filename:join(os:getenv("LARDER_CLUSTER"), lists:concat([Name, ".port"])).
