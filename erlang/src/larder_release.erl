%% @private
%% @doc What `ets' does otherwise in other releases of OTP. It is asked once for each.
-module(larder_release).
-compile({larder_transform, keep_ets}).

-export([element_cause/1, resolves_names/0, names_table_first/0]).

%% No table has this name.
-define(NO_TABLE, 'larder: no table').

%% @doc The cause of an error of update_element. A position beyond the object has a cause since OTP
%% 27.
-spec element_cause(Cause) -> Cause | none.
element_cause(position) ->
    once(?FUNCTION_NAME, fun cause_of_position/0);
element_cause(Cause) ->
    Cause.

cause_of_position() ->
    Table = ets:new(?MODULE, [private]),
    true = ets:insert(Table, {key}),
    try ets:update_element(Table, key, {2, beyond}) of
        _ -> none
    catch
        error:badarg:Stack ->
            Info = proplists:get_value(error_info, element(4, hd(Stack)), #{}),
            maps:get(cause, Info, none)
    after
        ets:delete(Table)
    end.

%% @doc Whether table/1,2 looks up a name at once, as from OTP 29.1.2 on. In earlier releases a
%% query is of the table that has the name when it runs.
-spec resolves_names() -> boolean().
resolves_names() ->
    once(?FUNCTION_NAME, fun() ->
                                 try ets:table(?NO_TABLE) of
                                     _ -> false
                                 catch
                                     error:badarg -> true
                                 end
                         end).

%% @doc Whether tab2file/2,3 names the table if that is wrong as well as an option or the name of
%% the file, as from OTP 29.1.2 on. In earlier releases it names the other.
-spec names_table_first() -> boolean().
names_table_first() ->
    once(?FUNCTION_NAME, fun() -> ets:tab2file(?NO_TABLE, "") =:= {error, badtab} end).

once(Name, Ask) ->
    case persistent_term:get({?MODULE, Name}, unknown) of
        unknown ->
            Answer = Ask(),
            persistent_term:put({?MODULE, Name}, Answer),
            Answer;
        Answer ->
            Answer
    end.
