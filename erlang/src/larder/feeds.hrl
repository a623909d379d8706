%% Subscriptions to the changes of a table. Part of module larder: see larder.erl.

%% @doc Subscribes the calling process to the changes of a table from now on. For each
%% commit that changes objects, the process receives a message
%% `{larder, Ref, Seq, Event}', or `{larder, Ref, Seq, [Event]}' if the commit
%% changed several objects: an inserted list, a transaction, or the objects of
%% a key in a bag. More than 500 events are sent in several messages. `Seq' never
%% decreases, and a transaction has the same `Seq' in all its tables. An event is one of
%%
%% <ul>
%% <li>`{insert, New}', `{replace, Old, New}' or `{delete, Old}';</li>
%% <li>`{expire, Old}': an expired object was removed. If another object is inserted under
%%     its key before it is removed, `{insert, New}' follows;</li>
%% <li>`{evict, Old}': an object was evicted because the table exceeded its limits;</li>
%% <li>`clear': all objects were deleted at once, by delete_all_objects/1;</li>
%% <li>`{overflow, Lost}': the process fell behind by more than its limit, and
%%     `Lost' events were dropped. To follow the table again, subscribe again with
%%     snapshot_and_subscribe/3;</li>
%% <li>`gone': the table was deleted, or has changed after it was given away or made private, so
%%     that the process may not read it. It is the last message.</li>
%% </ul>
%%
%% With a match specification, only events of objects that it matches are sent,
%% whatever its result is. A `replace' is sent if the old or the new object matches.
%%
%% Options: `limit' is the number of events that the process may fall behind (default:
%% 10,000); no more are kept for it. `mailbox' is the length of the mailbox of the process
%% at which sending pauses until it has received some (default: 1,000).
%%
%% The process needs the right to read the table. Writers never wait for subscribers: a write takes
%% about 0.2 microseconds longer while there are any. The subscription ends with unsubscribe/1, and
%% with the process. It takes constant time to begin.
%%
%% Fails with `badarg' for a snapshot, for a transaction's view, for a table with a `structure'
%% other than the default, for an invalid match specification, and for other options.
-spec subscribe(table(), match_spec() | all, feed_options()) -> feed().
subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:subscribe(Table, MatchSpec, Options), [Table, MatchSpec, Options]).

%% @doc Ends a subscription of the calling process. Messages sent before may still be
%% in the mailbox; none is sent afterwards. It takes constant time. Fails with `badarg' if the
%% argument isn't a subscription, or if it belongs to another process.
-spec unsubscribe(feed()) -> true.
unsubscribe(Feed) ->
    ?TRY(larder_feed:unsubscribe(Feed), [Feed]).

%% @doc Takes a snapshot of a table, and subscribes to the changes after it. Each
%% change is in exactly one of the two, with one exception: an object that had expired when the
%% snapshot was taken, and was not removed yet, may be reported as expired, or as deleted or
%% replaced by a transaction that had seen it, though the snapshot doesn't have it. Otherwise like
%% snapshot/1 and subscribe/3.
-spec snapshot_and_subscribe(table(), match_spec() | all, feed_options()) -> {tid(), feed()}.
snapshot_and_subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:snapshot_and_subscribe(Table, MatchSpec, Options),
         [Table, MatchSpec, Options]).
