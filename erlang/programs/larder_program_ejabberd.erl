%% @private
%% @doc ejabberd at work: users who register, log in and write to each other,
%% messages for those who are away, an end by kill -9, and recovery.
%%
%% What is checked: each user gets all messages of its neighbour, in order; and
%% after the server was killed all can log in again, and find the messages that
%% came while they were away.
-module(larder_program_ejabberd).
-behaviour(larder_program).

-export([work/1]).

-import(larder_program, [timed/1, wait_until/2]).

%% Half of them go away for a while.
-define(USERS, 500).
%% That a user sends to its neighbour.
-define(MESSAGES, 200).
%% That a user sends to one who is away. Of several, Mnesia's table on disc has the last one alone
%% after a kill, also with `ets'.
-define(LATER, 1).
%% Mnesia writes its log some seconds after its transactions.
-define(LOGGED, 5_000).
-define(PATIENCE, 60_000).

work(Place) ->
    Users = lists:seq(1, ?USERS),
    {Away, Home} = lists:split(?USERS div 2, Users),
    {Start, ok} = timed(fun() -> start(Place) end),
    {Register, _} = timed(fun() -> each(Users, fun(U) -> sign_up(Place, U) end) end),
    {Login, Sockets} = timed(fun() -> log_in(Place, Users) end),
    {Exchange, _} = timed(fun() -> exchange(Sockets) end),
    Memory = larder_program:resident(pattern(Place)),
    [log_out(maps:get(User, Sockets)) || User <- Away],
    %% A session ends after its stream. What comes for it meanwhile is lost.
    timer:sleep(?LOGGED),
    {Later, _} = timed(fun() -> leave_messages(Home, Away, Sockets) end),
    timer:sleep(?LOGGED),
    true = larder_program:kill(pattern(Place)),
    true = wait_until(fun() -> is_free(port(Place)) end, ?PATIENCE),
    {Recover, ok} = timed(fun() -> start(Place) end),
    {Return, _} = timed(fun() -> find_messages(Place, Home, Away) end),
    true = larder_program:stop(pattern(Place)),
    true = wait_until(fun() -> is_free(port(Place)) end, ?PATIENCE),
    [{"start", Start, "ms"},
     {"register 500 users", Register, "ms"},
     {"log in 500 users", Login, "ms"},
     {"100000 messages", Exchange, "ms"},
     {"memory then", Memory, "MiB"},
     {"250 messages for users who are away", Later, "ms"},
     {"recover after kill -9", Recover, "ms"},
     {"500 users come back, 250 with a message", Return, "ms"}].

port(#{side := ets}) -> 25_222;
port(#{side := larder}) -> 25_223.

%% In the command line of the server's emulator.
pattern(#{data := Data}) -> "beam.smp.* -home " ++ Data ++ " ".

%% Starts the server, and waits until it listens.
start(Place = #{side := Side, root := Root, data := Data, libs := Libs}) ->
    Port = port(Place),
    {Port, true} = {Port, is_free(Port)},
    Config = filename:join(Data, "ejabberd.yml"),
    ok = file:write_file(Config, config(Port)),
    %% Debian has what is compiled for a processor in a folder of its name.
    [Compiled] = filelib:wildcard("usr/lib/*-linux-gnu*", Root),
    Libraries = [filename:join(Root, "usr/lib/erlang/lib"), filename:join(Root, Compiled), Libs],
    Env = [{"HOME", Data}, {"ERL_LIBS", string:join(Libraries, ":")},
           {"ERL_EPMD_ADDRESS", "127.0.0.1"}, {"EJABBERD_CONFIG_PATH", Config},
           {"EJABBERD_LOG_PATH", filename:join([Data, "log", "ejabberd.log"])}],
    Command = ["erl -noinput -sname ejabberd_", atom_to_list(Side), "@localhost",
               " -mnesia dir '\"", filename:join(Data, "mnesia"), "\"' -s ejabberd"],
    Program = larder_program:start(Command, Env, filename:join(Data, "output")),
    true = wait_until(fun() -> listens(Program, Port) end, ?PATIENCE),
    ok.

listens(Program, Port) ->
    receive {Program, {exit_status, Status}} -> error({ended, Status}) after 0 -> ok end,
    not is_free(Port).

is_free(Port) ->
    case gen_tcp:connect("127.0.0.1", Port, []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), false;
        {error, econnrefused} -> true
    end.

config(Port) ->
    ["hosts: [localhost]\n"
     "loglevel: warning\n"
     "listen:\n"
     "  - port: ", integer_to_list(Port), "\n"
     "    ip: 127.0.0.1\n"
     "    module: ejabberd_c2s\n"
     "    access: everybody\n"
     "    backlog: 1024\n"
     "access_rules:\n"
     "  everybody: {allow: all}\n"
     "shaper_rules:\n"
     "  enough: 1000000\n"
     "auth_method: internal\n"
     "registration_timeout: infinity\n"
     "modules:\n"
     "  mod_disco: {}\n"
     "  mod_offline: {access_max_user_messages: enough}\n"
     "  mod_ping: {}\n"
     "  mod_register: {access: everybody, ip_access: everybody}\n"
     "  mod_roster: {}\n"].

%% ---- a client of XMPP, as much of one as this takes ----

-define(STREAM, <<"<stream:stream to='localhost' version='1.0' xmlns='jabber:client' "
                  "xmlns:stream='http://etherx.jabber.org/streams'>">>).

open(Place) ->
    Options = [binary, {active, false}, {nodelay, true}],
    {ok, Socket} = gen_tcp:connect("127.0.0.1", port(Place), Options),
    tell(Socket, ?STREAM, <<"</stream:features>">>),
    Socket.

%% Sends something, and reads until the server has answered this.
tell(Socket, Stanza, Answer) ->
    ok = gen_tcp:send(Socket, Stanza),
    read(Socket, <<>>, fun(Read) -> binary:match(Read, Answer) =/= nomatch end).

%% Reads until what was read is enough.
read(Socket, Read, IsEnough) ->
    More = case gen_tcp:recv(Socket, 0, ?PATIENCE) of
               {ok, Some} -> Some;
               {error, Why} -> error({Why, Read})
           end,
    All = <<Read/binary, More/binary>>,
    case IsEnough(All) of
        true -> All;
        false -> read(Socket, All, IsEnough)
    end.

name(User) -> <<"user", (integer_to_binary(User))/binary>>.

sign_up(Place, User) ->
    Socket = open(Place),
    tell(Socket, ["<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>", name(User),
                  "</username><password>secret</password></query></iq>"], <<"type='result'">>),
    ok = gen_tcp:close(Socket).

connect(Place, User) ->
    Socket = open(Place),
    Secret = base64:encode(<<0, (name(User))/binary, 0, "secret">>),
    tell(Socket, ["<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>", Secret,
                  "</auth>"], <<"<success">>),
    tell(Socket, ?STREAM, <<"</stream:features>">>),
    tell(Socket, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
         <<"</iq>">>),
    ok = gen_tcp:send(Socket, "<presence/>"),
    Socket.

%% The server has done what was sent before when it answers.
settle(Socket) ->
    tell(Socket, "<iq type='get' id='settled' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>",
         <<"settled">>).

log_in(Place, Users) ->
    Sockets = each(Users, fun(User) ->
                              Socket = connect(Place, User),
                              settle(Socket),
                              Socket
                          end),
    maps:from_list(lists:zip(Users, Sockets)).

log_out(Socket) ->
    tell(Socket, "</stream:stream>", <<"</stream:stream>">>),
    ok = gen_tcp:close(Socket).

message(To, Number) ->
    ["<message type='chat' to='", name(To), "@localhost'><body>n", integer_to_list(Number),
     "</body></message>"].

%% Reads messages until there are so many; they have the numbers from 1 on, in order.
receive_all(Socket, Read, Count) ->
    All = read_messages(Socket, Read, Count),
    {match, Found} = re:run(All, "<body>n(\\d+)</body>", [global, {capture, all_but_first, list}]),
    Numbers = [list_to_integer(Number) || [Number] <- Found],
    {_, true} = {Numbers, Numbers =:= lists:seq(1, Count)}.

read_messages(Socket, Read, Count) ->
    IsEnough = fun(All) -> length(binary:matches(All, <<"</body>">>)) >= Count end,
    case IsEnough(Read) of
        true -> Read;
        false -> read(Socket, Read, IsEnough)
    end.

%% ---- work ----

%% Each user writes to the next one, and reads what came from the one before.
exchange(Sockets) ->
    each(maps:keys(Sockets),
         fun(User) ->
             Next = User rem ?USERS + 1,
             Socket = maps:get(User, Sockets),
             ok = gen_tcp:send(Socket, [message(Next, N) || N <- lists:seq(1, ?MESSAGES)]),
             receive_all(Socket, <<>>, ?MESSAGES)
         end).

leave_messages(Home, Away, Sockets) ->
    each(lists:zip(Home, Away),
         fun({User, Friend}) ->
             Socket = maps:get(User, Sockets),
             ok = gen_tcp:send(Socket, [message(Friend, N) || N <- lists:seq(1, ?LATER)]),
             settle(Socket)
         end).

find_messages(Place, Home, Away) ->
    each(Away, fun(User) -> receive_all(connect(Place, User), <<>>, ?LATER) end),
    log_in(Place, Home).

%% Calls a fun with each, all at once, in processes of their own, which this one outlives and to
%% which the sockets belong no longer; what it answered.
each(Items, Fun) ->
    Self = self(),
    Call = fun(Item) ->
               Result = Fun(Item),
               is_port(Result) andalso gen_tcp:controlling_process(Result, Self),
               exit({done, Result})
           end,
    Running = [spawn_monitor(fun() -> Call(Item) end) || Item <- Items],
    [receive
         {'DOWN', Monitor, process, Pid, {done, Result}} -> Result;
         {'DOWN', Monitor, process, Pid, Why} -> error(Why)
     end || {Pid, Monitor} <- Running].
