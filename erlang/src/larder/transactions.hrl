%% Transactions on one table or several. Part of module larder: see larder.erl.

%% @doc Like transaction/3, with the default options. So there is no limit on how often the fun
%% is called again.
-spec transaction([table()], fun(([table()]) -> Result)) -> {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun) ->
    transaction(Tables, Fun, #{}).

%% @doc Calls `Fun' with views of the tables, and applies everything it writes to them
%% atomically: all of it takes effect at one instant, or nothing does.
%%
%% The views are tables. The fun reads and writes them by the functions of this
%% module. They show the tables as of one instant, with the fun's own writes.
%% They are gone when the fun has returned. They can't be renamed, deleted or
%% given away, and their options can't be set. Only the calling process may use them;
%% for other processes they fail with `badarg'. So a view has one call at a time, and the functions
%% for ranks (rank/2, nth/2, slice/3, count_range/3), which rely on that, are exact.
%%
%% If other processes have changed what the fun has read, its writes are discarded and it is
%% called again. So it should have no other side effects. A write to a table itself, and not to its
%% view, takes effect at once, and may be such a change. A key that was looked up and not
%% found counts as read, and so does the whole of a range that was searched. Therefore transactions
%% are serialisable, among themselves and with all operations on one key.
%%
%% abort/1, and any exception of the fun, end the transaction without effect. The result
%% is then `{aborted, Reason}'. `Reason' is the argument of abort/1, `{Error, Stack}' for an error,
%% the reason of an exit, or `{throw, Thrown}'. If a value is taken in a unique index, the result is
%% `{aborted, {not_unique, Name}}'. If the commit would exceed a limit of a table that evicts
%% nothing, transaction/3 fails with `system_limit'.
%%
%% No lookup, snapshot or transaction sees a part of the writes. A scan of a table itself (select/2,
%% foldl/3, tab2list/1) may. To read several objects as of one instant, scan a snapshot or a view.
%%
%% A nested transaction becomes part of the outer one: its tables must be among
%% those of the outer one, and aborting it aborts both.
%%
%% Options: `retries' is how often the fun is called again at most (default: `infinity'); after
%% that the result is `{aborted, nomore}'. `timeout' is the time in milliseconds after
%% which it isn't called again (default: `infinity'); then the result is `{aborted, timeout}'.
%%
%% It takes O(1) to begin, for each table. The commit takes time in proportion to what the fun has
%% read and written; it locks the keys that were written. After 13 lost attempts the transaction has
%% priority: for at most 100 ms no other one begins.
%%
%% Fails with `badarg' for other options, for a table that is named twice, for a snapshot, and for a
%% table with a `structure' other than the default; without the right to read each table; and if a
%% table that it has written is deleted meanwhile.
-spec transaction([table()], fun(([table()]) -> Result), transaction_options()) ->
          {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun, Options)
  when length(Tables) >= 0, is_function(Fun, 1), is_map(Options) ->
    case ?TRY(larder_transaction:run(Tables, Fun, Options), [Tables, Fun, Options]) of
        {nested, Views} -> {atomic, Fun(Views)};
        Ended -> Ended
    end;
transaction(Tables, Fun, Options) ->
    erlang:error(badarg, [Tables, Fun, Options], larder_error:info(none)).

%% @doc Aborts the transaction that the process is in: transaction/3 returns
%% `{aborted, Reason}'. It is implemented as an exit, so a fun that catches the exit continues.
%% Outside of a transaction it is only an exit.
-spec abort(term()) -> no_return().
abort(Reason) ->
    larder_transaction:abort(Reason).

%% @doc Applies a list of operations atomically. If the condition of the N-th one doesn't hold,
%% nothing is applied and the result is `{false, N}'. Each operation sees the effects of those
%% before it.
%%
%% `{check, Table, Key, Objects}' holds if these are the objects with the key.
%% `insert_new' holds if the key isn't in the table. `update_counter',
%% `update_element' and `expire' hold if it is. The other operations always hold. Lifetimes (`ttl'
%% and `expire') begin at the commit.
%%
%% The cost is that of each operation's function, and of a lock for each key. It isn't called again:
%% others wait for its keys. No lookup, snapshot or transaction sees some of the changes without the
%% others; a scan of a table itself may.
%%
%% Fails with `badarg' if an operation is invalid or one of its tables has no transactions, as in
%% transaction/3, and if a value is taken in a unique index; with `system_limit' if a limit of a
%% table that evicts nothing would be exceeded. Nothing is applied then. format_error/2 says which
%% operation it was, where that can be seen.
-spec commit([operation()]) -> true | {false, pos_integer()}.
commit(Operations) ->
    ?TRY(larder_transaction:commit(Operations), [Operations]).
