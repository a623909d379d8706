%% @private
%% @doc Subscriptions. Each has a relay, a process that fetches changes from the library and sends
%% them to the subscriber.
%%
%% A writer never sends to a subscriber, and never waits for one. The relay stops fetching while
%% the subscriber's mailbox is full. Further changes then wait in the library's queue, which has a
%% limit. Beyond the limit they are dropped, and the subscriber is notified. If a subscriber ends,
%% its relay ends; if a relay ends, the subscription ends.
%%
%% A relay that finds no changes sleeps until a writer wakes it. If it was woken shortly before, it
%% first polls once a millisecond for a while. So a stream of writes wakes it once.
%%
%% A relay waits in `gen_server', not here: it isn't killed when this module is loaded again and the
%% old code is purged.
-module(larder_feed).
-behaviour(gen_server).

-export([subscribe/3, snapshot_and_subscribe/3, unsubscribe/1]).
-export([are_options/1]).
-export([start/2, init/1, handle_info/2, handle_call/3, handle_cast/2]).

%% Defaults of the options `limit' and `mailbox'.
-define(LIMIT, 10000).
-define(MAILBOX, 1000).

%% Most events of a fetch.
-define(EVENTS_PER_FETCH, 100).

%% A relay that is woken twice within BUSY_MS milliseconds polls POLLS times, every POLL_MS
%% milliseconds. Right after events it first looks YIELDS times, and lets others run in between: a
%% writer may wait for the answer to an event. It waits FULL_MS milliseconds for a subscriber with
%% a full mailbox.
-define(BUSY_MS, 2).
-define(YIELDS, 10).
-define(POLL_MS, 1).
-define(POLLS, 20).
-define(FULL_MS, 5).

%% A relay that sleeps longer than this, in milliseconds, hibernates.
-define(HIBERNATE_AFTER, 1000).

%% `time' is how long it waits for a message.
-record(relay, {feed, subscriber, monitor, mailbox, woken, polls_left = 0, yields_left = 0,
                time = infinity}).

-spec subscribe(larder:table(), larder:match_spec() | all, map()) -> reference().
subscribe(Table, Spec, Options) ->
    with_relay(Options, fun(Limit, Relay) ->
        Feed = larder_nif:subscribe(Table, Spec, Limit, Relay),
        {Feed, Feed}
    end).

-spec snapshot_and_subscribe(larder:table(), larder:match_spec() | all, map()) ->
    {larder:table(), reference()}.
snapshot_and_subscribe(Table, Spec, Options) ->
    with_relay(Options, fun(Limit, Relay) ->
        {_, Feed} = Both = larder_nif:snapshot_and_subscribe(Table, Spec, Limit, Relay),
        {Feed, Both}
    end).

%% Messages that were sent before are in the mailbox. None is sent afterwards.
-spec unsubscribe(reference()) -> true.
unsubscribe(Feed) ->
    Relay = larder_nif:unsubscribe(Feed),
    Monitor = erlang:monitor(process, Relay),
    Relay ! stop,
    receive
        {'DOWN', Monitor, process, Relay, _} -> true
    end.

with_relay(Options, Subscribe) ->
    {Limit, Mailbox} = options(Options),
    Subscriber = self(),
    Relay = proc_lib:spawn(?MODULE, start, [Subscriber, Mailbox]),
    try Subscribe(Limit, Relay) of
        {Feed, Result} ->
            Relay ! {feed, Feed},
            Result
    catch
        Class:Reason:Stack ->
            Relay ! stop,
            erlang:raise(Class, Reason, Stack)
    end.

options(Options) ->
    are_options(Options) orelse erlang:error({larder, none}),
    {min(maps:get(limit, Options, ?LIMIT), 1 bsl 40), maps:get(mailbox, Options, ?MAILBOX)}.

-spec are_options(term()) -> boolean().
are_options(Options) when is_map(Options) ->
    lists:all(fun({Option, Value}) ->
                  lists:member(Option, [limit, mailbox]) andalso is_integer(Value) andalso Value > 0
              end, maps:to_list(Options));
are_options(_) ->
    false.

%% ---- the relay ----

-spec start(pid(), pos_integer()) -> no_return().
start(Subscriber, Mailbox) ->
    Monitor = erlang:monitor(process, Subscriber),
    gen_server:enter_loop(?MODULE, [], #relay{subscriber = Subscriber, monitor = Monitor,
                                              mailbox = Mailbox}).

%% Not called: the process enters its loop by itself.
-spec init(term()) -> ignore.
init(_) -> ignore.

-spec handle_info(term(), #relay{}) -> {noreply, #relay{}, timeout() | hibernate}
                                     | {stop, normal, #relay{}}.
handle_info({feed, Feed}, #relay{feed = undefined} = Relay) ->
    next(Relay#relay{feed = Feed, woken = now_ms() - ?BUSY_MS});
handle_info({'DOWN', Monitor, process, _, _}, #relay{monitor = Monitor} = Relay) ->
    {stop, normal, Relay};
handle_info(stop, Relay) ->
    {stop, normal, Relay};
%% Until it has a subscription, it only waits for that.
handle_info(_, #relay{feed = undefined} = Relay) ->
    wait(infinity, Relay);
handle_info(larder_wake, #relay{woken = Woken} = Relay) ->
    Now = now_ms(),
    PollsLeft = case Now - Woken < ?BUSY_MS of
                    true -> ?POLLS;
                    false -> 0
                end,
    next(Relay#relay{woken = Now, polls_left = PollsLeft});
handle_info(timeout, #relay{time = infinity} = Relay) ->
    {noreply, Relay, hibernate};
handle_info(timeout, Relay) ->
    next(Relay);
handle_info(_, #relay{time = Time} = Relay) ->
    wait(Time, Relay).

-spec handle_call(term(), gen_server:from(), #relay{}) ->
          {reply, {error, unknown_call}, #relay{}, timeout()}.
handle_call(_, _, #relay{time = Time} = Relay) ->
    {noreply, Relay, Timeout} = wait(Time, Relay),
    {reply, {error, unknown_call}, Relay, Timeout}.

-spec handle_cast(term(), #relay{}) -> {noreply, #relay{}, timeout()}.
handle_cast(_, #relay{time = Time} = Relay) ->
    wait(Time, Relay).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% Fetches while the subscriber's mailbox has room.
next(#relay{feed = Feed, subscriber = Subscriber, mailbox = Mailbox,
           polls_left = PollsLeft, yields_left = YieldsLeft} = Relay) ->
    case erlang:process_info(Subscriber, message_queue_len) of
        undefined ->
            {stop, normal, Relay};
        {_, Full} when Full >= Mailbox ->
            wait(?FULL_MS, Relay);
        _ ->
            case larder_nif:feed_next(Feed, ?EVENTS_PER_FETCH, PollsLeft =:= 0) of
                {some, Commits} ->
                    send(Commits, Relay),
                    wait(0, Relay#relay{polls_left = min(PollsLeft, 1) * ?POLLS,
                                        yields_left = ?YIELDS});
                {nothing, []} when PollsLeft > 0, YieldsLeft > 0 ->
                    erlang:yield(),
                    wait(0, Relay#relay{yields_left = YieldsLeft - 1});
                {nothing, []} when PollsLeft > 0 ->
                    wait(?POLL_MS, Relay#relay{polls_left = PollsLeft - 1});
                {nothing, []} ->
                    wait(infinity, Relay);
                {waits, []} ->
                    wait(?POLL_MS, Relay);
                {over, Commits} ->
                    send(Commits, Relay),
                    {stop, normal, Relay}
            end
    end.

send(Commits, #relay{feed = Feed, subscriber = Subscriber}) ->
    lists:foreach(fun({Seq, Events}) -> Subscriber ! {larder, Feed, Seq, Events} end,
                  lists:reverse(Commits)).

%% Waits for a message, for a limited time. One that has slept for a while hibernates.
wait(infinity, Relay) -> {noreply, Relay#relay{time = infinity}, ?HIBERNATE_AFTER};
wait(Time, Relay) -> {noreply, Relay#relay{time = Time}, Time}.
