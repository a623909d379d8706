%% @private
%% @doc Transactions and commits: running a fun, retries and aborts.
%%
%% ```
%%   begin ──> run the fun on the views ──> commit ──> {atomic, Result}
%%     ^              |                       |
%%     |              v                       v
%%     |        {aborted, Reason}           lost: others changed what it read
%%     └───────────── after a pause ──────────┘
%% '''
%%
%% Of the steps of docs/design.md §5.6, begin_transaction makes tx1, the fun tx2, and
%% commit_transaction tx3 to tx6. An attempt that has lost had no effect.
%%
%% The first retries follow at once, later ones after random pauses that grow. After many lost
%% attempts, the next one is urgent, which means that it takes the turn: until it has ended, but for
%% at most 100 ms, no other transaction and no commit/1 begins.
%%
%% commit/1 is one native call, which makes kc1 to kc5. It is lost only in rare cases, such as a
%% table that was emptied meanwhile. Then it is repeated in the same way.
-module(larder_transaction).

-export([run/3, are_options/1, table_of/1, abort/1, commit/1]).

%% The transaction that the process is in: whether it is urgent, and [{Table, Id, View}], with the
%% table as it was named and its id.
-define(VIEWS, '$larder_transaction').
%% The number of lost attempts after which a retry first pauses.
-define(AT_ONCE, 5).
%% The number of lost attempts beyond which the next one is urgent.
-define(PATIENCE, 12).

%% @doc Runs a fun on views of the tables; see larder:transaction/3. Within another transaction it
%% only returns the views: the caller runs the fun, whose exceptions are its own.
-spec run([larder:table()], fun(([larder:table()]) -> Result), larder:transaction_options()) ->
          {atomic, Result} | {aborted, term()} | {nested, [larder:table()]}.
run(Tables, Fun, Options) ->
    are_options(Options) orelse error({larder, none}),
    case get(?VIEWS) of
        undefined ->
            Retries = maps:get(retries, Options, infinity),
            %% By their ids: they may be renamed meanwhile, also before another attempt.
            Named = [{Table, id(Table)} || Table <- Tables],
            attempt(Named, Fun, 0, Retries, until(maps:get(timeout, Options, infinity)));
        {_, Outer} ->
            Views = [view(Table, Outer) || Table <- Tables],
            %% The cause is that of the library for a table that is named twice.
            length(lists:usort(Views)) =:= length(Views) orelse error({larder, structure}),
            {nested, Views}
    end.

%% @doc Whether all items of a map are valid options of a transaction.
-spec are_options(map()) -> boolean().
are_options(Options) ->
    IsTime = fun(T) -> T =:= infinity orelse is_integer(T) andalso T >= 0 end,
    maps:keys(Options) -- [retries, timeout] =:= []
        andalso lists:all(IsTime, maps:values(Options)).

%% A nested transaction is part of the outer one. Each of the two may name a table by its name or
%% by its id. A name stands for the table that has it now. If there is none, it stands for the table
%% that had it when the outer transaction began.
view(Table, Outer) ->
    Id = id(Table),
    case [View || {Own, OwnId, View} <- Outer, OwnId =:= Id orelse View =:= Id orelse Own =:= Id] of
        [View | _] -> View;
        [] -> error({larder, not_in_transaction})
    end.

%% @doc The table of which a table is the caller's view. If it is no view, the table itself.
-spec table_of(larder:table()) -> larder:table().
table_of(Table) ->
    case get(?VIEWS) of
        undefined -> Table;
        {_, Outer} -> hd([Id || {_, Id, View} <- Outer, View =:= Table] ++ [Table])
    end.

id(Name) when is_atom(Name) ->
    case larder:whereis(Name) of
        undefined -> Name;
        Id -> Id
    end;
id(Id) -> Id.

until(infinity) -> infinity;
until(Ms) -> erlang:monotonic_time(millisecond) + Ms.

%% Makes an attempt, after this number of lost ones.
attempt(Named, Fun, Lost, Retries, Until) ->
    Urgent = Lost > ?PATIENCE,
    {Tables, Ids} = lists:unzip(Named),
    case larder_nif:begin_transaction(Ids, Urgent) of
        wait ->
            again(Named, Fun, Lost, max(Lost, ?AT_ONCE), Retries, Until);
        {Transaction, Views} ->
            put(?VIEWS, {Urgent, lists:zip3(Tables, Ids, Views)}),
            case ended(Transaction, Views, Fun) of
                lost when Lost >= Retries -> {aborted, nomore};
                lost -> again(Named, Fun, Lost + 1, Lost + 1, Retries, Until);
                Ended -> Ended
            end
    end.

%% Runs the fun and commits. Returns the result of run/3, or `lost'.
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

%% A write of a value that is taken in a unique index aborts the transaction. It is no error of the
%% fun, so the reason has no stack.
committed(Transaction, Result) ->
    try larder_nif:commit_transaction(Transaction) of
        true -> {atomic, Result};
        false -> lost
    catch
        error:{larder, {not_unique, _} = Reason} -> {aborted, Reason}
    end.

%% Makes another attempt after a pause, unless the time is over. Lost is the number of attempts that
%% were lost, and Pauses the number by which the pause is chosen.
again(Named, Fun, Lost, Pauses, Retries, Until) ->
    %% The time may be over after the pause.
    is_over(Until) orelse pause(Pauses),
    case is_over(Until) of
        true -> {aborted, timeout};
        false -> attempt(Named, Fun, Lost, Retries, Until)
    end.

is_over(infinity) -> false;
is_over(Until) -> erlang:monotonic_time(millisecond) >= Until.

%% A process that waits for an urgent transaction calls this with ?AT_ONCE at least, so that it
%% sleeps: the transaction may take long. A pause is random, but not by the module `rand', whose
%% numbers are the caller's: its process may have seeded them.
pause(Lost) when Lost < ?AT_ONCE ->
    erlang:yield();
pause(Lost) ->
    Chance = erlang:phash2({self(), erlang:unique_integer()}, 1 bsl min(Lost - ?AT_ONCE, 4)),
    receive after 1 + Chance -> ok end.

%% @doc Ends the transaction that the process is in; see larder:abort/1.
-spec abort(term()) -> no_return().
abort(Reason) ->
    exit({aborted, Reason}).

%% @doc Applies all operations or none; see larder:commit/1.
-spec commit([larder:operation()]) -> true | {false, pos_integer()}.
commit(Operations) ->
    commit(Operations, 0).

commit(Operations, Lost) ->
    case larder_nif:commit(Operations, urgency(Lost)) of
        wait ->
            pause(max(Lost, ?AT_ONCE)),
            commit(Operations, Lost);
        lost ->
            pause(Lost),
            commit(Operations, Lost + 1);
        Done ->
            Done
    end.

%% Whether a commit is urgent. In an urgent transaction it would wait for the process's own turn, so
%% it says that the turn is its own.
urgency(Lost) ->
    case get(?VIEWS) of
        {true, _} -> own;
        _ -> Lost > ?PATIENCE
    end.
