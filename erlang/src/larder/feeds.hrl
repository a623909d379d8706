%% Messages of what changes in a table. Part of module larder: see larder.erl.

%% @doc Subscribes the calling process to what changes in a table from here on.
%% For each commit that changes objects it gets a message
%% `{larder, Ref, Seq, Event}', or `{larder, Ref, Seq, [Event]}' if the commit
%% changed several objects: a list that was inserted, a transaction, a key's
%% objects in a bag. More than 500 come in parts. `Seq' only grows, and a
%% transaction has the same `Seq' in all its tables. An event is
%%
%% <ul>
%% <li>`{insert, New}', `{replace, Old, New}' or `{delete, Old}';</li>
%% <li>`{expire, Old}': an object whose time was over was removed. If something
%%     is inserted in its place before, `{insert, New}' follows;</li>
%% <li>`{evict, Old}': an object went, as the table had more than its limits say;</li>
%% <li>`clear': all objects were deleted at once, by delete_all_objects/1;</li>
%% <li>`{overflow, Lost}': the process fell behind by more than its limit, and so
%%     many events were lost. To follow the table again, subscribe anew with
%%     snapshot_and_subscribe/3;</li>
%% <li>`gone': the table was deleted. It is the last message.</li>
%% </ul>
%%
%% With a match specification, events come only of objects that it matches,
%% whatever it makes of them: of a `replace', the old or the new.
%%
%% Options: `limit', events that the process may fall behind (10,000): so many
%% are kept for it, and no more. `mailbox', messages in its mailbox at which no
%% more are sent until it has taken some (1,000).
%%
%% The right to read the table is needed. Writers never wait for subscribers. The
%% subscription ends with unsubscribe/1, and with the process.
-spec subscribe(table(), match_spec() | all, feed_options()) -> feed().
subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:subscribe(Table, MatchSpec, Options), [Table, MatchSpec, Options]).

%% @doc Ends a subscription of the calling process. Messages that were sent before may be
%% in the mailbox; none is sent afterwards. `badarg' for what is none, or another
%% process's.
-spec unsubscribe(feed()) -> true.
unsubscribe(Feed) ->
    ?TRY(larder_feed:unsubscribe(Feed), [Feed]).

%% @doc A snapshot of a table, and a subscription to what changes after it: no
%% change is in both, and none in neither. As of snapshot/1 and subscribe/3.
-spec snapshot_and_subscribe(table(), match_spec() | all, feed_options()) -> {tid(), feed()}.
snapshot_and_subscribe(Table, MatchSpec, Options) ->
    ?TRY(larder_feed:snapshot_and_subscribe(Table, MatchSpec, Options),
         [Table, MatchSpec, Options]).
