%% @private
%% @doc Polls the memory that Larder uses, and raises the alarm `larder_max_memory' if it is above
%% a limit. The alarm ends when the memory is a twentieth below the limit.
%%
%% Alarms are set in SASL's `alarm_handler', if that runs, and logged.
-module(larder_watch).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(ALARM, larder_max_memory).

-record(state, {limit :: pos_integer(), poll :: pos_integer(), raised = false :: boolean()}).

%% @doc Starts with a limit in bytes and a polling interval in milliseconds.
-spec start_link(pos_integer(), pos_integer()) -> {ok, pid()} | {error, term()}.
start_link(Limit, Poll) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, {Limit, Poll}, []).

-spec init({pos_integer(), pos_integer()}) -> {ok, #state{}}.
init({Limit, Poll}) ->
    process_flag(trap_exit, true),
    self() ! poll,
    {ok, #state{limit = Limit, poll = Poll, raised = is_set()}}.

%% Whether the alarm is set, by a predecessor that was killed. It is this process's then.
is_set() ->
    whereis(alarm_handler) =/= undefined andalso
        case alarm_handler:get_alarms() of
            Alarms when is_list(Alarms) -> lists:keymember(?ALARM, 1, Alarms);
            %% A program may have replaced SASL's handler.
            _ -> false
        end.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(poll, #state{poll = Poll} = State) ->
    _ = erlang:send_after(Poll, self(), poll),
    {noreply, check(larder:memory(total), State)};
handle_info(_, State) ->
    {noreply, State}.

check(Total, #state{limit = Limit, raised = false} = State) when Total > Limit ->
    ok = raise(Total, Limit),
    State#state{raised = true};
check(Total, #state{limit = Limit, raised = true} = State) when Total =< Limit - Limit div 20 ->
    ok = clear(Total, Limit),
    State#state{raised = false};
check(_, State) ->
    State.

raise(Total, Limit) ->
    ?LOG_WARNING("Larder's tables have ~b bytes, more than max_memory, ~b; the largest are ~0p",
                 [Total, Limit, [maps:with([table, memory], Top) || Top <- larder:top(3, memory)]]),
    to_handler(fun() -> alarm_handler:set_alarm({?ALARM, #{total => Total, max_memory => Limit}}) end).

clear(Total, Limit) ->
    ?LOG_NOTICE("Larder's tables have ~b bytes, less than max_memory, ~b", [Total, Limit]),
    clear().

clear() ->
    to_handler(fun() -> alarm_handler:clear_alarm(?ALARM) end).

to_handler(Fun) ->
    case whereis(alarm_handler) of
        undefined -> ok;
        _ -> Fun()
    end.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, {error, unknown_call}, #state{}}.
handle_call(_, _, State) -> {reply, {error, unknown_call}, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

%% Without this process, nothing would end the alarm.
-spec terminate(term(), #state{}) -> ok.
terminate(_, #state{raised = true}) ->
    ?LOG_NOTICE("The memory of Larder's tables isn't watched any more", []),
    clear();
terminate(_, _) ->
    ok.
