%% @private
%% @doc Subscriptions. Each has a relay, a process that fetches changes from the library and sends
%% them to the subscriber.
%%
%% A writer never sends to a subscriber, and never waits for one. The relay stops fetching while
%% the subscriber's mailbox is full. Further changes then wait in the library's queue, which has a
%% limit. Beyond the limit they are dropped, and the subscriber is told so. If a subscriber ends,
%% its relay ends; if a relay ends, the subscription ends.
%%
%% A relay that finds no changes sleeps until a writer wakes it. If it was woken shortly before, it
%% first polls once a millisecond for a while. So a stream of writes wakes it once.
-module(larder_feed).

-export([subscribe/3, snapshot_and_subscribe/3, unsubscribe/1]).
-export([are_options/1, loop/1]).

%% Defaults of the options `limit' and `mailbox'.
-define(LIMIT, 10000).
-define(MAILBOX, 1000).

%% Most events of a fetch.
-define(EVENTS_PER_FETCH, 100).

%% A relay that is woken twice within BUSY_MS milliseconds polls POLLS times, every POLL_MS
%% milliseconds. It waits FULL_MS milliseconds for a subscriber with a full mailbox.
-define(BUSY_MS, 2).
-define(POLL_MS, 1).
-define(POLLS, 20).
-define(FULL_MS, 5).

%% A relay that sleeps longer than this, in milliseconds, hibernates.
-define(HIBERNATE_AFTER, 1000).

-record(relay, {feed, subscriber, monitor, mailbox, woken, polls_left = 0}).

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
    Relay = spawn(fun() -> start(Subscriber, Mailbox) end),
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

start(Subscriber, Mailbox) ->
    Monitor = erlang:monitor(process, Subscriber),
    receive
        {feed, Feed} ->
            loop(#relay{feed = Feed, subscriber = Subscriber, monitor = Monitor,
                        mailbox = Mailbox, woken = now_ms() - ?BUSY_MS});
        {'DOWN', Monitor, process, Subscriber, _} ->
            ok;
        stop ->
            ok
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% Fetches while the subscriber's mailbox has room.
loop(#relay{feed = Feed, subscriber = Subscriber, mailbox = Mailbox, polls_left = PollsLeft} = Relay) ->
    case erlang:process_info(Subscriber, message_queue_len) of
        undefined ->
            ok;
        {_, Full} when Full >= Mailbox ->
            wait(?FULL_MS, Relay);
        _ ->
            case larder_nif:feed_next(Feed, ?EVENTS_PER_FETCH, PollsLeft =:= 0) of
                {some, Commits} ->
                    send(Commits, Relay),
                    wait(0, Relay#relay{polls_left = min(PollsLeft, 1) * ?POLLS});
                {nothing, []} when PollsLeft > 0 ->
                    wait(?POLL_MS, Relay#relay{polls_left = PollsLeft - 1});
                {nothing, []} ->
                    wait(infinity, Relay);
                {waits, []} ->
                    wait(?POLL_MS, Relay);
                {over, Commits} ->
                    send(Commits, Relay)
            end
    end.

send(Commits, #relay{feed = Feed, subscriber = Subscriber}) ->
    lists:foreach(fun({Seq, Events}) -> Subscriber ! {larder, Feed, Seq, Events} end,
                  lists:reverse(Commits)).

%% Waits for a message, for a limited time. Messages are distinguished by their senders.
wait(infinity, Relay) ->
    wait(?HIBERNATE_AFTER, fun() -> erlang:hibernate(?MODULE, loop, [Relay]) end, Relay);
wait(Time, Relay) ->
    wait(Time, fun() -> loop(Relay) end, Relay).

wait(Time, Otherwise, #relay{monitor = Monitor, woken = Woken} = Relay) ->
    receive
        {'DOWN', Monitor, process, _, _} ->
            ok;
        stop ->
            ok;
        larder_wake ->
            Now = now_ms(),
            PollsLeft = case Now - Woken < ?BUSY_MS of
                       true -> ?POLLS;
                       false -> 0
                   end,
            loop(Relay#relay{woken = Now, polls_left = PollsLeft});
        _ ->
            wait(Time, Otherwise, Relay)
    after Time ->
        Otherwise()
    end.
