%% Objects that expire. Part of module larder: see larder.erl.

%% @doc Inserts an object that lives for so many milliseconds, whatever the table's `ttl':
%% see new/2. Otherwise it is insert/2.
%%
%% `badarg' for a table without bounds, and for options that are no map of `ttl' alone.
-spec insert(table(), tuple(), #{ttl := time()}) -> true.
insert(Table, Object, #{ttl := Ttl} = Options) when map_size(Options) =:= 1 ->
    ?TRY(larder_nif:insert_with(Table, Object, Ttl), [Table, Object, Options]);
insert(Table, Object, Options) ->
    erlang:error(badarg, [Table, Object, Options], larder_error:info(none)).

%% @doc Gives the object with a key so many milliseconds to live, from now on. Whether there
%% is one. Subscribers are not told.
%%
%% `badarg' for a table without bounds. It takes the time of insert/2.
-spec expire(table(), term(), time()) -> boolean().
expire(Table, Key, Ttl) ->
    ?TRY(larder_nif:expire(Table, Key, Ttl), [Table, Key, Ttl]).

%% @doc How many milliseconds the object with a key has left; `none' if there is none. It is
%% no look-up that `idle' counts.
%%
%% `badarg' for a table without bounds. It takes the time of lookup/2.
-spec ttl(table(), term()) -> time() | none.
ttl(Table, Key) ->
    ?TRY(larder_nif:ttl(Table, Key), [Table, Key]).
