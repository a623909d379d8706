%% Objects that expire. Part of module larder: see larder.erl.

%% @doc Inserts an object with a lifetime of its own, in milliseconds, which overrides the `ttl' of
%% the table until the object is written again: see new/2. With `infinity' it doesn't expire. In a
%% transaction the lifetime begins at the commit. Otherwise like insert/2, but a list isn't
%% accepted: commit/1 takes `{insert, Table, Objects, #{ttl => Ms}}'.
%%
%% Fails with `badarg' if the table has no bounds, or if the options are anything but a map with the
%% key `ttl'.
-spec insert(table(), tuple(), #{ttl := time()}) -> true.
insert(Table, Object, #{ttl := Ttl} = Options) when map_size(Options) =:= 1 ->
    ?TRY(larder_nif:insert_with(Table, Object, Ttl), [Table, Object, Options]);
insert(Table, Object, Options) ->
    erlang:error(badarg, [Table, Object, Options], larder_error:info(none)).

%% @doc Sets the remaining lifetime of the object with a key, in milliseconds from now, or in a
%% transaction from its commit. With `infinity' the object doesn't expire, with 0 it expires at
%% once. Returns whether there is such an object. Subscribers get no event.
%%
%% Fails with `badarg' if the table has no bounds. The cost is that of insert/2.
-spec expire(table(), term(), time()) -> boolean().
expire(Table, Key, Ttl) ->
    ?TRY(larder_nif:expire(Table, Key, Ttl), [Table, Key, Ttl]).

%% @doc Returns the remaining lifetime of the object with a key, in milliseconds, or `none' if there
%% is no such object. For an object that doesn't expire it is `infinity'. It doesn't count as a use
%% for `idle'. In a snapshot or a transaction it is the lifetime as of its instant; that of what the
%% transaction has written counts from the commit.
%%
%% Fails with `badarg' if the table has no bounds. The cost is that of lookup/2.
-spec ttl(table(), term()) -> time() | none.
ttl(Table, Key) ->
    ?TRY(larder_nif:ttl(Table, Key), [Table, Key]).
