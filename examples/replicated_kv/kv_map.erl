%% @doc The store of {@link kv} as machines of Ra's are usually written: the rows are a map, and
%% snapshots are those of Ra. It is here to be measured beside the other.
-module(kv_map).

-export([init/1, apply/3, config/1, digest/1]).

-record(kv_map, {rows = #{} :: #{term() => term()},
                 commands = 0 :: non_neg_integer(),
                 interval :: pos_integer() | infinity,
                 next :: non_neg_integer() | infinity}).

%% @doc The machine, for `ra:start_cluster/4'.
-spec config(larder_ra:options()) -> {module, kv_map, kv:config()}.
config(Options) -> {module, ?MODULE, Options}.

-spec init(kv:config()) -> #kv_map{}.
init(#{interval := Interval}) -> #kv_map{interval = Interval, next = Interval}.

-spec apply(larder_ra:meta(), kv:command(), #kv_map{}) ->
          {#kv_map{}, Reply :: term(), Effects :: [term()]}.
apply(#{index := Index}, Command, #kv_map{rows = Rows, commands = Commands} = State) ->
    {Reply, After} = execute(Command, Rows),
    replied(Index, Reply, State#kv_map{rows = After, commands = Commands + 1}).

replied(Index, Reply, #kv_map{next = Next, interval = Interval} = State) when Index >= Next ->
    Now = State#kv_map{next = Index + Interval},
    {Now, Reply, [{release_cursor, Index, Now}]};
replied(_, Reply, State) ->
    {State, Reply, []}.

execute({put, Key, Value}, Rows) ->
    {ok, Rows#{Key => Value}};
execute({delete, Key}, Rows) ->
    {ok, maps:remove(Key, Rows)};
execute({add, Key, Amount}, Rows) ->
    Sum = maps:get(Key, Rows, 0) + Amount,
    {{ok, Sum}, Rows#{Key => Sum}};
execute({fill, From, To, Value}, Rows) ->
    {ok, lists:foldl(fun(Key, Acc) -> Acc#{Key => Value} end, Rows, lists:seq(From, To))}.

%% @doc As of {@link kv:digest/1}.
-spec digest(#kv_map{}) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
digest(#kv_map{rows = Rows, commands = Commands}) ->
    Hashes = maps:fold(fun(Key, Value, Sum) -> Sum + erlang:phash2({Key, Value}) end, 0, Rows),
    {Commands, map_size(Rows), Hashes}.
