%% Several changes at one moment, in one table or several. Part of module larder: see larder.erl.

%% @doc As transaction/3, with all options as they are unless said. So the fun is called
%% as often as it takes.
-spec transaction([table()], fun(([table()]) -> Result)) -> {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun) ->
    transaction(Tables, Fun, #{}).

%% @doc Calls `Fun' with views of the tables, and makes what it writes to them
%% take effect at one instant: all of it, or nothing.
%%
%% The views are tables that the fun reads and writes by the functions of this
%% module. They show the tables as of one instant, with the fun's own writes,
%% and are gone when the fun has returned. They can't be renamed, deleted,
%% given away or have their options set. They are the calling process's alone,
%% for others they are `badarg': so a view has one call at a time, and its ranks
%% (rank/2, nth/2, slice/3, count_range/3), which rely on that, are exact.
%%
%% If others have changed what the fun has read, it had no effect and is called
%% again: it should do nothing else that can be seen outside. What was looked
%% for and not there, and all of a range that was searched, counts as read, so
%% transactions are serialisable, among themselves and with all operations on
%% one key.
%%
%% abort/1, and any exception, end the transaction without effect. The result
%% is then `{aborted, Reason}': what abort/1 was given; `{Error, Stack}'; what
%% the fun exited with; `{throw, Thrown}'.
%%
%% A transaction within another is part of that one: its tables must be among
%% the other's, and to abort it aborts both.
%%
%% Options: `retries', how often the fun is called again at most (unless said,
%% as often as it takes; then `{aborted, nomore}'), and `timeout', in
%% milliseconds, after which it isn't called again (`{aborted, timeout}').
-spec transaction([table()], fun(([table()]) -> Result), larder_transaction:options()) ->
          {atomic, Result} | {aborted, term()}.
transaction(Tables, Fun, Options) when is_list(Tables), is_function(Fun, 1), is_map(Options) ->
    ?TRY(larder_transaction:run(Tables, Fun, Options), [Tables, Fun, Options]);
transaction(Tables, Fun, Options) ->
    erlang:error(badarg, [Tables, Fun, Options], larder_error:info(none)).

%% @doc Ends the transaction that the process is in, without effect: transaction/3
%% answers `{aborted, Reason}'. It is an exit: a fun that catches it goes on. Outside of
%% a transaction it is the exit alone.
-spec abort(term()) -> no_return().
abort(Reason) ->
    larder_transaction:abort(Reason).

%% @doc Applies all of some operations at one instant, or none: `{false, N}' if
%% the N-th does not hold. Each sees what those before it do.
%%
%% `{check, Table, Key, Objects}' holds if these are the objects under the key.
%% `insert_new' holds if the key is not there, `update_counter' and
%% `update_element' if it is; the others always hold.
-spec commit([larder_transaction:operation()]) -> true | {false, pos_integer()}.
commit(Operations) ->
    ?TRY(larder_transaction:commit(Operations), [Operations]).
