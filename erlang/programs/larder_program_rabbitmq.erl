%% @private
%% @doc RabbitMQ at work: many queues and bindings, messages with confirms, an
%% end by kill -9, recovery, and the rest of the messages.
%%
%% What is checked: each message that was confirmed, and not acknowledged
%% before the broker was killed, arrives after it has recovered, each queue's
%% in the order of publication.
-module(larder_program_rabbitmq).
-behaviour(larder_program).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([work/1]).

-import(larder_program, [timed/1, wait_until/2]).

-define(MESSAGES, 100_000).
-define(BYTES, 200).
-define(PUBLISHERS, 4).
%% Queues, each with so many bindings.
-define(QUEUES, 20).
-define(BINDINGS, 50).
%% Queues that come and go.
-define(CHURN, 500).
%% Messages between two waits for confirms, and unacknowledged ones of a consumer.
-define(WINDOW, 500).
-define(PATIENCE, 120_000).
-define(EXCHANGE, <<"work">>).

work(Place) ->
    {ok, _} = application:ensure_all_started(amqp_client),
    {Start, Connection} = timed(fun() -> started(Place) end),
    {Declare, ok} = timed(fun() -> declare(Connection) end),
    {Publish, ok} = timed(fun() -> publish(Connection) end),
    Memory = larder_program:resident(pattern(Place)),
    {Consume, Before} = timed(fun() -> consume(Connection, ?MESSAGES div 2) end),
    true = unlink(Connection),
    ok = killed(Place),
    {Recover, Again} = timed(fun() -> started(Place) end),
    Left = lists:sum([waiting(Again, Queue) || Queue <- queues()]),
    After = consume(Again, Left),
    ok = check(Before, After),
    {Churn, ok} = timed(fun() -> churn(Again) end),
    ok = amqp_connection:close(Again),
    true = larder_program:stop(pattern(Place)),
    [{"start", Start, "ms"},
     {"declare 20 queues with 1000 bindings", Declare, "ms"},
     {"publish 100000 messages", Publish, "ms"},
     {"memory with them", Memory, "MiB"},
     {"consume 50000", Consume, "ms"},
     {"recover after kill -9", Recover, "ms"},
     {"500 queues come and go", Churn, "ms"}].

node_name(#{side := Side}) -> "rabbit_" ++ atom_to_list(Side) ++ "@localhost".

port(#{side := ets}) -> 25_672;
port(#{side := larder}) -> 25_673.

%% In the command line of the broker's emulator.
pattern(#{data := Data}) -> "beam.smp.* -home " ++ Data ++ " ".

%% Starts the broker; a connection to it.
started(Place = #{root := Root, data := Data, libs := Libs}) ->
    File = fun(Name) -> filename:join(Data, Name) end,
    ok = file:write_file(File("plugins"), "[].\n"),
    Port = port(Place),
    {Port, true} = {Port, is_free(Port)},
    Env = [{"HOME", Data}, {"ERL_LIBS", Libs}, {"ERL_EPMD_ADDRESS", "127.0.0.1"},
           {"RABBITMQ_NODENAME", node_name(Place)},
           {"RABBITMQ_NODE_PORT", integer_to_list(Port)},
           {"RABBITMQ_DIST_PORT", integer_to_list(Port + 20_000)},
           {"RABBITMQ_MNESIA_BASE", File("mnesia")}, {"RABBITMQ_LOG_BASE", File("log")},
           {"RABBITMQ_ENABLED_PLUGINS_FILE", File("plugins")}, {"RABBITMQ_PID_FILE", File("pid")},
           {"RABBITMQ_CONF_ENV_FILE", File("none")}, {"RABBITMQ_CONFIG_FILE", File("rabbitmq")},
           {"RABBITMQ_ADVANCED_CONFIG_FILE", File("advanced")}],
    [Script] = filelib:wildcard(filename:join(Root, "usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server")),
    Program = larder_program:start("sh '" ++ Script ++ "'", Env, File("output")),
    wait_until(fun() -> connect(Program, Port) end, ?PATIENCE).

connect(Program, Port) ->
    receive {Program, {exit_status, Status}} -> error({ended, Status}) after 0 -> ok end,
    %% Asked first, as the client's processes complain of each attempt that fails.
    case is_free(Port) of
        true -> false;
        false ->
            case amqp_connection:start(#amqp_params_network{host = "127.0.0.1", port = Port}) of
                {ok, Connection} -> true = link(Connection), Connection;
                {error, _} -> false
            end
    end.

%% A process that is killed loses its name before it closes its sockets.
killed(Place) ->
    true = larder_program:kill(pattern(Place)),
    true = wait_until(fun() -> is_free(port(Place)) end, ?PATIENCE),
    ok.

is_free(Port) ->
    case gen_tcp:connect("127.0.0.1", Port, []) of
        {ok, Socket} -> ok = gen_tcp:close(Socket), false;
        {error, econnrefused} -> true
    end.

queue(N) -> <<"queue-", (integer_to_binary(N))/binary>>.
queues() -> [queue(N) || N <- lists:seq(1, ?QUEUES)].

declare(Connection) ->
    {ok, Channel} = amqp_connection:open_channel(Connection),
    #'exchange.declare_ok'{} =
        amqp_channel:call(Channel, #'exchange.declare'{exchange = ?EXCHANGE, type = <<"topic">>,
                                                       durable = true}),
    [begin
         #'queue.declare_ok'{} =
             amqp_channel:call(Channel, #'queue.declare'{queue = Queue, durable = true}),
         [bind(Channel, Queue, <<Queue/binary, ".", (integer_to_binary(I))/binary, ".#">>)
          || I <- lists:seq(1, ?BINDINGS)]
     end || Queue <- queues()],
    amqp_channel:close(Channel).

bind(Channel, Queue, Key) ->
    #'queue.bind_ok'{} =
        amqp_channel:call(Channel, #'queue.bind'{queue = Queue, exchange = ?EXCHANGE,
                                                 routing_key = Key}).

%% Publisher P has the messages with these numbers, and the queues that go with them: so each queue
%% has one publisher, and its messages are in the order of their numbers.
publish(Connection) ->
    Each = fun(P) ->
               {ok, Channel} = amqp_connection:open_channel(Connection),
               #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
               publish(Channel, P, 0),
               amqp_channel:close(Channel)
           end,
    Publishers = [spawn_monitor(fun() -> Each(P) end) || P <- lists:seq(1, ?PUBLISHERS)],
    [receive {'DOWN', Monitor, process, Pid, Why} -> normal = Why end
     || {Pid, Monitor} <- Publishers],
    ok.

publish(Channel, Number, _) when Number > ?MESSAGES ->
    true = amqp_channel:wait_for_confirms(Channel, 60);
publish(Channel, Number, ?WINDOW) ->
    true = amqp_channel:wait_for_confirms(Channel, 60),
    publish(Channel, Number, 0);
publish(Channel, Number, Open) ->
    Binding = integer_to_binary(Number rem ?BINDINGS + 1),
    Key = <<(queue_of(Number))/binary, ".", Binding/binary, ".x">>,
    Message = #amqp_msg{props = #'P_basic'{delivery_mode = 2}, payload = <<Number:?BYTES/unit:8>>},
    ok = amqp_channel:cast(Channel, #'basic.publish'{exchange = ?EXCHANGE, routing_key = Key},
                           Message),
    publish(Channel, Number + ?PUBLISHERS, Open + 1).

queue_of(Number) ->
    queue(Number rem ?QUEUES + 1).

waiting(Connection, Queue) ->
    {ok, Channel} = amqp_connection:open_channel(Connection),
    #'queue.declare_ok'{message_count = Count} =
        amqp_channel:call(Channel, #'queue.declare'{queue = Queue, passive = true}),
    ok = amqp_channel:close(Channel),
    Count.

%% Consumes and acknowledges so many messages: {Queue, Number} of each, in the order of arrival.
consume(Connection, Count) ->
    {ok, Channel} = amqp_connection:open_channel(Connection),
    #'basic.qos_ok'{} = amqp_channel:call(Channel, #'basic.qos'{prefetch_count = ?WINDOW}),
    [amqp_channel:subscribe(Channel, #'basic.consume'{queue = Queue}, self()) || Queue <- queues()],
    Consumed = consume(Channel, Count, []),
    ok = amqp_channel:close(Channel),
    flush(),
    Consumed.

consume(_Channel, 0, Consumed) ->
    lists:reverse(Consumed);
consume(Channel, Count, Consumed) ->
    receive
        {#'basic.deliver'{delivery_tag = Tag}, #amqp_msg{payload = <<Number:?BYTES/unit:8>>}} ->
            ok = amqp_channel:cast(Channel, #'basic.ack'{delivery_tag = Tag}),
            consume(Channel, Count - 1, [{queue_of(Number), Number} | Consumed])
    after ?PATIENCE ->
        error({messages_that_did_not_arrive, Count})
    end.

flush() ->
    receive {#'basic.deliver'{}, _} -> flush(); #'basic.consume_ok'{} -> flush() after 0 -> ok end.

%% An acknowledgement of just before the end may be lost: then the message comes twice.
check(Before, After) ->
    Arrived = lists:usort([Number || {_, Number} <- Before ++ After]),
    {_, true} = {{missing, lists:seq(1, ?MESSAGES) -- Arrived}, length(Arrived) =:= ?MESSAGES},
    [begin
         Numbers = [Number || {Own, Number} <- After, Own =:= Queue],
         {Queue, true} = {Queue, Numbers =:= lists:usort(Numbers)}
     end || Queue <- queues()],
    ok.

churn(Connection) ->
    {ok, Channel} = amqp_connection:open_channel(Connection),
    [begin
         Queue = <<"churn-", (integer_to_binary(N))/binary>>,
         #'queue.declare_ok'{} =
             amqp_channel:call(Channel, #'queue.declare'{queue = Queue, exclusive = true}),
         bind(Channel, Queue, Queue),
         #'queue.delete_ok'{} = amqp_channel:call(Channel, #'queue.delete'{queue = Queue})
     end || N <- lists:seq(1, ?CHURN)],
    amqp_channel:close(Channel).
