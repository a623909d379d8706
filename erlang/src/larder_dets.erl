%% @private
%% @doc Copies between tables, dets tables and functions: init_table/2, from_dets/2, to_dets/2.
%%
%% Results and errors are those of `ets'. The public functions raise the errors of from_dets/2 and
%% to_dets/2 with the arguments that they were given. fill/2 exits.
%%
%% to_ets/2 and from_ets/2 replace those of `dets' in programs that the parse transform moves,
%% because `dets' itself accepts only tables of `ets'.
-module(larder_dets).
-compile({larder_transform, keep_ets}).

-export([fill/2, from_dets/2, to_dets/2]).
-export([to_ets/2, from_ets/2]).

-define(CHUNK, 100).

-type failure() :: {failed, Reason :: term(), Info :: [term()]}.
%% A failure, as arguments of `erlang:error/3'.

%% @doc Inserts the objects of the first read, and those that `Fun(read)' returns, until it
%% returns `end_of_input'. The objects of one read are inserted as a list.
%% If one of them is invalid, those before it are inserted, `Fun(close)' is called, and the call
%% exits.
-spec fill(larder:table(), Read :: term()) -> true.
fill(_Tab, end_of_input) ->
    true;
fill(Tab, {Objects, Fun}) when is_list(Objects), is_function(Fun) ->
    case caught(fun() -> insert_read(Tab, Objects) end) of
        true ->
            fill(Tab, Fun(read));
        {'EXIT', Reason} ->
            _ = caught(fun() -> Fun(close) end),
            exit(Reason)
    end;
fill(_Tab, Other) ->
    exit(Other).

%% Inserts all of them by one call. If it fails, nothing has been inserted. Inserting one at a
%% time then finds the invalid object and its error.
insert_read(Tab, Objects) ->
    case insert_at_once(Tab, Objects) of
        true -> true;
        false -> insert_each(Tab, Objects)
    end.

insert_at_once(Tab, Objects) ->
    try
        larder:insert(Tab, Objects)
    catch
        error:_ -> false
    end.

insert_each(_Tab, []) ->
    true;
insert_each(Tab, [Object | Rest]) ->
    true = larder:insert(Tab, Object),
    insert_each(Tab, Rest).

%% @doc Inserts every object of an open dets table. Objects that are in the
%% table already stay, unless the insert replaces them.
-spec from_dets(larder:table(), dets:tab_name()) -> ok | failure().
from_dets(Tab, Dets) ->
    case caught(fun() -> copy_from(Tab, Dets) end) of
        Tab -> ok;
        Failure -> failed(Failure)
    end.

copy_from(Tab, Dets) ->
    case larder:info(Tab, protection) of
        undefined ->
            erlang:error(badarg);
        _ ->
            dets:foldl(fun(Object, To) -> true = larder:insert(To, Object), To end, Tab, Dets)
    end.

%% @doc Replaces the objects of an open dets table by those of the table,
%% which is fixed meanwhile. The dets server reads the table, so a private
%% table of more than 100 objects can't be copied, as with `ets'.
-spec to_dets(larder:table(), dets:tab_name()) -> ok | failure().
to_dets(Tab, Dets) ->
    case caught(fun() -> replace_by(Dets, Tab) end) of
        ok -> ok;
        Failure -> failed(Failure)
    end.

replace_by(Dets, Tab) ->
    true = larder:safe_fixtable(Tab, true),
    try
        First = larder:select(Tab, [{'_', [], ['$_']}], ?CHUNK),
        dets:init_table(Dets, reader(First))
    after
        larder:safe_fixtable(Tab, false)
    end.

reader(Chunk) ->
    fun(close) -> ok;
       (read) -> read_chunk(Chunk)
    end.

read_chunk('$end_of_table') ->
    end_of_input;
read_chunk({Objects, Continuation}) ->
    {Objects, reader(larder:select(Continuation))}.

%% @doc `dets:to_ets/2' with a table of Larder: inserts every object of an open
%% dets table, and returns the table. If the table isn't Larder's, calls
%% `dets'.
-spec to_ets(dets:tab_name(), larder:table()) -> larder:table() | {error, term()}.
to_ets(Dets, Tab) ->
    case is_larder_table(Tab) of
        true -> dets:foldl(fun(Object, To) -> true = larder:insert(To, Object), To end, Tab, Dets);
        false -> dets:to_ets(Dets, Tab)
    end.

%% @doc `dets:from_ets/2' with a table of Larder: replaces the objects of an
%% open dets table by those of the table, which is fixed meanwhile. The dets
%% server reads the table, as in to_dets/2. If the table isn't Larder's, calls
%% `dets'.
-spec from_ets(dets:tab_name(), larder:table()) -> ok | {error, term()}.
from_ets(Dets, Tab) ->
    case is_larder_table(Tab) of
        true -> replace_by(Dets, Tab);
        false -> dets:from_ets(Dets, Tab)
    end.

is_larder_table(Tab) ->
    try
        larder:info(Tab, protection) =/= undefined
    catch
        error:badarg -> false
    end.

%% What `catch' returns, which OTP 29 deprecates: the errors of `ets' show its forms.
caught(Fun) ->
    try
        Fun()
    catch
        throw:Thrown -> Thrown;
        exit:Reason -> {'EXIT', Reason};
        error:Reason:Stack -> {'EXIT', {Reason, Stack}}
    end.

failed({error, Reason}) ->
    {failed, Reason, []};
failed({'EXIT', {badarg, [{larder, insert, _, Info} | _]}}) ->
    %% The table is a snapshot.
    {failed, badarg, [Item || {error_info, #{cause := read_only}} = Item <- Info]};
failed({'EXIT', {Reason, _Stack}}) ->
    {failed, Reason, []};
failed({'EXIT', Reason}) ->
    {failed, Reason, []};
failed(Unexpected) ->
    {failed, Unexpected, []}.
