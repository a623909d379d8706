%% @private
%% @doc The application `larder', which is optional: tables need it not. Started, it does what its
%% environment says: it watches the memory of the node's tables, and does without huge pages.
-module(larder_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1]).

-spec start(application:start_type(), []) -> {ok, pid()} | {error, term()}.
start(_, []) ->
    supervisor:start_link({local, larder_sup}, ?MODULE, []).

-spec stop(term()) -> ok.
stop(_) -> ok.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Limit = application:get_env(larder, max_memory, infinity),
    Poll = application:get_env(larder, memory_poll, 1000),
    ok = check(max_memory, Limit),
    ok = check(memory_poll, Poll),
    HugePages = application:get_env(larder, huge_pages, true),
    ok = check(huge_pages, HugePages),
    ok = larder_nif:huge_pages(HugePages),
    Watch = #{id => larder_watch, start => {larder_watch, start_link, [Limit, Poll]}},
    {ok, {#{}, [Watch || Limit =/= infinity]}}.

check(max_memory, infinity) -> ok;
check(huge_pages, Value) when is_boolean(Value) -> ok;
check(Name, Value) when Name =/= huge_pages, is_integer(Value), Value > 0 -> ok;
check(Name, Value) -> error({bad_environment, {larder, Name, Value}}).
