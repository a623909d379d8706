%% @private
%% @doc Transactions and commits: how a fun is run, run again, and given up.
%%
%% ```
%%   begin ──> run the fun on the views ──> commit ──> {atomic, Result}
%%     ^              |                       |
%%     |              v                       v
%%     |        {aborted, Reason}           lost: others changed what it read
%%     └───────────── after a pause ──────────┘
%% '''
%%
%% The first attempts follow each other at once. Then there are pauses, which
%% grow and are random. An attempt that follows many is urgent: other
%% transactions don't begin until it has ended.
-module(larder_transaction).

-export([run/3, abort/1, commit/1]).

-export_type([options/0, operation/0]).

-type options() :: #{retries => non_neg_integer() | infinity, timeout => timeout()}.
-type operation() :: {check, larder:table(), Key :: term(), [tuple()]}
                   | {insert, larder:table(), tuple() | [tuple()]}
                   | {insert_new, larder:table(), tuple() | [tuple()]}
                   | {delete, larder:table(), Key :: term()}
                   | {delete_object, larder:table(), tuple()}
                   | {update_counter, larder:table(), Key :: term(), term()}
                   | {update_element, larder:table(), Key :: term(), term()}.

%% The views of the transaction that the process is in: [{Table, View}].
-define(VIEWS, '$larder_transaction').
%% Attempts without a pause.
-define(AT_ONCE, 5).
%% Attempts after which others wait.
-define(PATIENCE, 12).

%% @doc Runs a fun on views of the tables; see larder:transaction/3.
-spec run([larder:table()], fun(([larder:table()]) -> Result), options()) ->
          {atomic, Result} | {aborted, term()}.
run(Tables, Fun, Options) ->
    case get(?VIEWS) of
        undefined ->
            Retries = maps:get(retries, Options, infinity),
            attempt(Tables, Fun, 0, Retries, until(maps:get(timeout, Options, infinity)));
        Outer ->
            {atomic, Fun([view(Table, Outer) || Table <- Tables])}
    end.

%% A transaction within another is a part of it.
view(Table, Outer) ->
    case [View || {Own, View} <- Outer, Own =:= Table orelse View =:= Table] of
        [View | _] -> View;
        [] -> error({larder, not_in_transaction})
    end.

until(infinity) -> infinity;
until(Ms) -> erlang:monotonic_time(millisecond) + Ms.

attempt(Tables, Fun, Lost, Retries, Until) ->
    case larder_nif:begin_transaction(Tables, Lost > ?PATIENCE) of
        wait ->
            again(Tables, Fun, Lost, Retries, Until);
        {Transaction, Views} ->
            put(?VIEWS, lists:zip(Tables, Views)),
            case ended(Transaction, Views, Fun) of
                lost when Lost >= Retries -> {aborted, nomore};
                lost -> again(Tables, Fun, Lost + 1, Retries, Until);
                Ended -> Ended
            end
    end.

ended(Transaction, Views, Fun) ->
    try Fun(Views) of
        Result ->
            committed(Transaction, Result)
    catch
        exit:{aborted, Reason} -> {aborted, Reason};
        exit:Reason -> {aborted, Reason};
        throw:Thrown -> {aborted, {throw, Thrown}};
        error:Reason:Stack -> {aborted, {Reason, Stack}}
    after
        erase(?VIEWS),
        larder_nif:end_transaction(Transaction)
    end.

%% A value that another object has in a unique index is no error of the fun's.
committed(Transaction, Result) ->
    try larder_nif:commit_transaction(Transaction) of
        true -> {atomic, Result};
        false -> lost
    catch
        error:{larder, {not_unique, _} = Reason} -> {aborted, Reason}
    end.

again(Tables, Fun, Lost, Retries, Until) ->
    case Until =/= infinity andalso erlang:monotonic_time(millisecond) >= Until of
        true ->
            {aborted, timeout};
        false ->
            pause(Lost),
            attempt(Tables, Fun, Lost, Retries, Until)
    end.

pause(Lost) when Lost < ?AT_ONCE ->
    erlang:yield();
pause(Lost) ->
    receive after rand:uniform(1 bsl min(Lost - ?AT_ONCE, 4)) -> ok end.

%% @doc Ends the transaction that the process is in; see larder:abort/1.
-spec abort(term()) -> no_return().
abort(Reason) ->
    exit({aborted, Reason}).

%% @doc Applies all operations or none; see larder:commit/1.
-spec commit([operation()]) -> true | {false, pos_integer()}.
commit(Operations) ->
    Tables = lists:usort([element(2, Operation) || Operation <- Operations]),
    commit(Tables, Operations, 0).

commit(Tables, Operations, Lost) ->
    case larder_nif:begin_transaction(Tables, Lost > ?PATIENCE) of
        wait ->
            pause(Lost),
            commit(Tables, Operations, Lost);
        {Transaction, Views} ->
            ViewOf = maps:from_list(lists:zip(Tables, Views)),
            Done = try
                       case apply_all(Operations, ViewOf, 1) of
                           true -> larder_nif:commit_transaction(Transaction);
                           {false, _} = Refused -> Refused
                       end
                   after
                       larder_nif:end_transaction(Transaction)
                   end,
            case Done of
                false ->
                    pause(Lost),
                    commit(Tables, Operations, Lost + 1);
                _ ->
                    Done
            end
    end.

%% Each sees what those before it did.
apply_all([], _ViewOf, _N) ->
    true;
apply_all([Operation | Rest], ViewOf, N) ->
    case holds(Operation, maps:get(element(2, Operation), ViewOf)) of
        true -> apply_all(Rest, ViewOf, N + 1);
        false -> {false, N}
    end.

holds({check, _, Key, Objects}, View) ->
    larder_nif:lookup(View, Key) =:= Objects;
holds({insert, _, Objects}, View) when is_list(Objects) ->
    larder_nif:insert_list(View, Objects);
holds({insert, _, Object}, View) ->
    larder_nif:insert(View, Object);
holds({insert_new, _, Objects}, View) when is_list(Objects) ->
    larder_nif:insert_new_list(View, Objects);
holds({insert_new, _, Object}, View) ->
    larder_nif:insert_new(View, Object);
holds({delete, _, Key}, View) ->
    larder_nif:delete(View, Key);
holds({delete_object, _, Object}, View) ->
    larder_nif:delete_object(View, Object);
holds({update_counter, _, Key, Ops}, View) ->
    larder_nif:member(View, Key) andalso begin larder_nif:update_counter(View, Key, Ops), true end;
holds({update_element, _, Key, Elements}, View) ->
    larder_nif:update_element(View, Key, Elements);
holds(_, _) ->
    error({larder, none}).
