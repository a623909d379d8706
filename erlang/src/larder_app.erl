%% @private
%% @doc The application `larder', which is optional: tables don't need it. It does what the
%% parameters in its environment say: it watches the memory of the node's tables, and tells the
%% allocator whether to use huge pages.
-module(larder_app).
-behaviour(application).
-behaviour(supervisor).

-include_lib("kernel/include/logger.hrl").

-export([start/2, stop/1, init/1]).

%% Fails before there is a supervisor, so that the reason is all that is reported.
-spec start(application:start_type(), []) -> {ok, pid()} | {error, term()}.
start(_, []) ->
    Environment = application:get_all_env(larder),
    Checked = [{Name, Value, problem(Name, Value)} || {Name, Value} <- Environment],
    case [{larder, Name, Value, Why} || {Name, Value, Why} <- Checked, is_list(Why)] of
        [] ->
            lists:foreach(fun(Name) -> ?LOG_WARNING("larder has no parameter ~tp", [Name]) end,
                          [Name || {Name, _, unknown} <- Checked]),
            supervisor:start_link({local, larder_sup}, ?MODULE, []);
        [Wrong | _] ->
            {error, {bad_environment, Wrong}}
    end.

-spec stop(term()) -> ok.
stop(_) -> ok.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Limit = application:get_env(larder, max_memory, infinity),
    Poll = application:get_env(larder, memory_poll, 1000),
    ok = larder_nif:huge_pages(application:get_env(larder, huge_pages, true)),
    Watch = #{id => larder_watch, start => {larder_watch, start_link, [Limit, Poll]}},
    {ok, {#{}, [Watch || Limit =/= infinity]}}.

%% What is wrong with a parameter.
problem(max_memory, infinity) -> ok;
problem(max_memory, Bytes) when is_integer(Bytes), Bytes > 0 -> ok;
problem(max_memory, _) -> "not a positive number of bytes, or infinity";
%% A timer can't be set for any number of milliseconds. 2^32 are 49 days.
problem(memory_poll, Time) when is_integer(Time), Time > 0, Time < 1 bsl 32 -> ok;
problem(memory_poll, _) -> "not a number of milliseconds from 1 to 4294967295";
problem(huge_pages, Value) when is_boolean(Value) -> ok;
problem(huge_pages, _) -> "not a boolean";
problem(Other, _) when Other =:= providers; Other =:= included_applications -> ok;
problem(_, _) -> unknown.
