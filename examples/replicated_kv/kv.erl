%% @doc A key-value store that several nodes keep by Raft, with its rows in a table of Larder: a
%% machine of Ra's, and the functions of its clients.
%%
%% Writes go through the log: put/2, delete/1, add/2, swap/3. Reads are of two kinds: read/1 looks
%% into this node's table, in some hundred nanoseconds, and gives what this node has applied;
%% fetch/1 asks the leader, and gives what was written last.
-module(kv).

%% -behaviour(ra_machine). It is not declared: this compiles where Ra is not installed.
-export([init/1, apply/3, snapshot_module/0, overview/1]).
-export([config/1, put/2, delete/1, add/2, swap/3, read/1, fetch/1, fetch/2]).
-export([execute/2, digest/1]).

-export_type([command/0, config/0]).

-type command() :: {put, Key :: term(), Value :: term()}
                 | {delete, Key :: term()}
                 | {add, Key :: term(), integer()}
                 | {swap, Key :: term(), Old :: term(), New :: term()}
                 | {fill, From :: non_neg_integer(), To :: non_neg_integer(), Value :: term()}.
%% `fill' puts a value under each of these keys.
-type config() :: #{interval => pos_integer() | infinity, atom() => term()}.

-define(SERVER, {kv, node()}).

%% ---- the machine ----

%% @doc The machine, for `ra:start_cluster/4'.
-spec config(larder_ra:options()) -> {module, kv, config()}.
config(Options) -> {module, ?MODULE, Options}.

%% @doc The rest of the state is how many commands there were: it would show a command that is
%% applied twice, or not at all.
-spec init(config()) -> larder_ra:state().
init(Config) ->
    larder_ra:new(#{kv => [named_table]}, 0, maps:with([interval], Config)).

%% @doc All of a command's work is done by {@link execute/2}.
-spec apply(larder_ra:meta(), command(), larder_ra:state()) ->
          {larder_ra:state(), Reply :: term(), Effects :: [term()]}.
apply(Meta, Command, State) ->
    Counted = larder_ra:set_rest(State, larder_ra:rest(State) + 1),
    larder_ra:reply(Meta, Counted, execute(Command, larder_ra:table(kv, State))).

-spec snapshot_module() -> module().
snapshot_module() -> larder_ra_snapshot.

-spec overview(larder_ra:state()) -> map().
overview(State) ->
    maps:put(commands, larder_ra:rest(State), larder_ra:overview(State)).

%% @doc What a command does. It must not fail: it would on every member, each time that it starts.
-spec execute(command(), larder:table()) -> term().
execute({put, Key, Value}, Table) ->
    true = larder:insert(Table, {Key, Value}),
    ok;
execute({delete, Key}, Table) ->
    true = larder:delete(Table, Key),
    ok;
execute({add, Key, Amount}, Table) when is_integer(Amount) ->
    case larder:lookup_element(Table, Key, 2, 0) of
        Value when is_integer(Value) -> {ok, larder:update_counter(Table, Key, Amount, {Key, 0})};
        _ -> {error, no_number}
    end;
execute({swap, Key, Old, New}, Table) ->
    case larder:lookup(Table, Key) of
        [{_, Old}] -> true = larder:insert(Table, {Key, New}), ok;
        Other -> {error, [Value || {_, Value} <- Other]}
    end;
execute({fill, From, To, Value}, Table) when is_integer(From), is_integer(To), From =< To + 1 ->
    true = larder:insert(Table, [{Key, Value} || Key <- lists:seq(From, To)]),
    ok;
execute(_, _) ->
    {error, no_command}.

%% @doc What a state has in it: the commands, the rows, and a sum of the rows' hashes.
-spec digest(larder_ra:state()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
digest(State) ->
    Sum = fun(Row, {Rows, Hashes}) -> {Rows + 1, Hashes + erlang:phash2(Row)} end,
    {Rows, Hashes} = larder:foldl(Sum, {0, 0}, larder_ra:table(kv, State)),
    {larder_ra:rest(State), Rows, Hashes}.

%% ---- clients ----

%% @doc Writes a value.
-spec put(Key :: term(), Value :: term()) -> ok | {error, term()}.
put(Key, Value) -> command({put, Key, Value}).

%% @doc Deletes a key.
-spec delete(Key :: term()) -> ok | {error, term()}.
delete(Key) -> command({delete, Key}).

%% @doc Adds to a value, which is 0 if there is none.
-spec add(Key :: term(), integer()) -> {ok, integer()} | {error, no_number | term()}.
add(Key, Amount) -> command({add, Key, Amount}).

%% @doc Writes a value if there is this one. Otherwise the error has the one that there is.
-spec swap(Key :: term(), Old :: term(), New :: term()) -> ok | {error, [Value :: term()] | term()}.
swap(Key, Old, New) -> command({swap, Key, Old, New}).

command(Command) ->
    case ra:process_command(?SERVER, Command) of
        {ok, Reply, _Leader} -> Reply;
        {timeout, _} -> {error, timeout};
        {error, _} = Error -> Error
    end.

%% @doc The value on this node. It may not be the newest one. There is no table while this node's
%% server starts.
-spec read(Key :: term()) -> {ok, Value :: term()} | not_found.
read(Key) -> found(larder:lookup(kv, Key)).

%% @doc The value as of now, on all nodes.
-spec fetch(Key :: term()) -> {ok, Value :: term()} | not_found | {error, term()}.
fetch(Key) ->
    case ra:consistent_query(?SERVER, {?MODULE, fetch, [Key]}) of
        {ok, Value, _Leader} -> Value;
        {timeout, _} -> {error, timeout};
        {error, _} = Error -> Error
    end.

%% @doc Called by the leader.
-spec fetch(Key :: term(), larder_ra:state()) -> {ok, Value :: term()} | not_found.
fetch(Key, State) -> found(larder:lookup(larder_ra:table(kv, State), Key)).

found([{_, Value}]) -> {ok, Value};
found([]) -> not_found.
