%% One object, or a list of them, by key. Part of module larder: see larder.erl.

%% @doc Inserts an object, or a list of objects. In a set or ordered_set an object replaces
%% the one with the same key. In a bag it is added to the objects of its key. A bag doesn't
%% store an identical object twice; a duplicate_bag does.
%%
%% A list is inserted atomically. If an element of it isn't a tuple, or is too short to have
%% a key, nothing is inserted and the call fails with `badarg'. There is one exception to
%% atomicity: a scan that begins before the insert (select/2, foldl/3, next/2) may see a part of the
%% list.
%%
%% Inserting an object takes O(log n) in an ordered_set with n objects, and expected O(1)
%% in other tables. Readers wait at most for the change of one leaf. For lists see the module's
%% guarantees.
-spec insert(table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) when is_list(Objects) ->
    ?ASK(larder_nif:insert_list(Table, Objects), [Table, Objects]);
insert(Table, Object) ->
    ?ASK(larder_nif:insert(Table, Object), [Table, Object]).

%% @doc Like insert/2, but returns false and inserts nothing if one of the keys is already
%% in the table. If several processes insert the same new key concurrently, exactly one
%% of them succeeds.
%%
%% A list is checked first: if any of its keys is in the table, none of its objects is inserted. The
%% check looks up each key, and is made in slices.
-spec insert_new(table(), tuple() | [tuple()]) -> boolean().
insert_new(Table, Objects) when is_list(Objects) ->
    ?ASK(larder_nif:insert_new_list(Table, Objects), [Table, Objects]);
insert_new(Table, Object) ->
    ?ASK(larder_nif:insert_new(Table, Object), [Table, Object]).

%% @doc Returns the objects with a key, in the order in which they were inserted, or `[]' if
%% there are none. A set or ordered_set has at most one.
%%
%% An ordered_set compares keys by `==', all other tables by `=:='. The call takes no lock. It
%% waits at most while a leaf is changed, or while a transaction commits a write of this key.
%% All objects of the key are read at one instant. The cost is that of insert/2.
-spec lookup(table(), term()) -> [tuple()].
lookup(Table, Key) ->
    ?ASK(larder_nif:lookup(Table, Key), [Table, Key]).

%% @doc Looks up several keys, and returns a list of objects for each, in the order of the
%% keys. It is faster than one call for each key. It is not a snapshot: each key is looked up
%% separately, and other processes may write in between.
%%
%% Fails with `badarg' if the keys aren't a proper list. A long list is processed in slices.
-spec lookup_many(table(), [term()]) -> [[tuple()]].
lookup_many(Table, Keys) ->
    ?TRY(larder_select:in_order(larder_nif:lookup_many(Table, Keys, [])), [Table, Keys]).

%% @doc Returns the element at a position of the object with a key. In a bag or duplicate_bag,
%% returns a list with that element of each object. Only the element is copied out of the table,
%% however large the object is.
%%
%% Fails with `badarg' if there is no object with the key, or if it has no such position.
%% Otherwise like lookup/2.
-spec lookup_element(table(), term(), pos_integer()) -> term() | [term()].
lookup_element(Table, Key, Position) ->
    ?TRY_KEY(larder_nif:lookup_element(Table, Key, Position), [Table, Key, Position]).

%% @doc Like lookup_element/3, but returns `Default' if there is no object with the key.
%% Still fails with `badarg' if the object has no such position.
-spec lookup_element(table(), term(), pos_integer(), Default) -> term() | [term()] | Default.
lookup_element(Table, Key, Position, Default) ->
    ?TRY(larder_nif:lookup_element_default(Table, Key, Position, Default),
         [Table, Key, Position, Default]).

%% @doc Returns the elements at several positions of the object with a key, as a list in the
%% order of the positions. In a bag or duplicate_bag, returns a list of such lists, one for each
%% object. Nothing else of the object is copied. The cost is that of lookup/2, and of skipping the
%% elements up to the last position.
%%
%% Fails with `badarg' if there is no such key, or if an object has no such position.
%%
%% ```
%% [<<"ann">>, 34] = larder:lookup_elements(Users, 7, [2, 5]).
%% '''
-spec lookup_elements(table(), term(), [pos_integer()]) -> [term()] | [[term()]].
lookup_elements(Table, Key, Positions) ->
    ?TRY_KEY(larder_nif:lookup_elements(Table, Key, Positions), [Table, Key, Positions]).

%% @doc Like lookup_elements/3, but returns `Default' if there is no object with the key.
%% Still fails with `badarg' if an object has no such position.
-spec lookup_elements(table(), term(), [pos_integer()], Default) ->
          [term()] | [[term()]] | Default.
lookup_elements(Table, Key, Positions, Default) ->
    ?TRY(larder_nif:lookup_elements_default(Table, Key, Positions, Default),
         [Table, Key, Positions, Default]).

%% @doc Returns whether there is an object with the key. Nothing is copied, so it is faster
%% than lookup/2. It sees the same objects as lookup/2.
-spec member(table(), term()) -> boolean().
member(Table, Key) ->
    ?ASK(larder_nif:member(Table, Key), [Table, Key]).

%% @doc Deletes all objects with a key, atomically. Nothing happens if there are none. The cost is
%% that of insert/2.
-spec delete(table(), term()) -> true.
delete(Table, Key) ->
    ?ASK(larder_nif:delete(Table, Key), [Table, Key]).

%% @doc Deletes an object if it is in the table. The whole object is compared, by `=:='. In a
%% duplicate_bag all copies of it are deleted. Other objects of the key stay. Atomic. The cost is
%% that of insert/2, in a bag also of comparing it with the objects of the key. Fails with `badarg'
%% if the object isn't a tuple.
-spec delete_object(table(), tuple()) -> true.
delete_object(Table, Object) ->
    ?ASK(larder_nif:delete_object(Table, Object), [Table, Object]).

%% @doc Deletes the objects with a key, and returns them as lookup/2 does. If several
%% processes take the same objects concurrently, exactly one of them gets them. The cost is that of
%% lookup/2 and delete/2.
-spec take(table(), term()) -> [tuple()].
take(Table, Key) ->
    ?ASK(larder_nif:take(Table, Key), [Table, Key]).

%% @doc Like take/2 for several keys, one after another. Returns a list of objects for each, in
%% the order of the keys. Each key is taken atomically, but not the whole list: other processes may
%% see that some of the keys are gone and others not yet.
%%
%% A long list is processed in slices. If the process is killed in between, the objects that it has
%% taken are lost. Fails with `badarg' if the keys aren't a proper list; nothing is taken then.
-spec take_many(table(), [term()]) -> [[tuple()]].
take_many(Table, Keys) when length(Keys) >= 0 ->
    ?TRY(larder_select:in_order(larder_nif:take_many(Table, Keys, [])), [Table, Keys]);
take_many(Table, Keys) ->
    erlang:error(badarg, [Table, Keys], larder_error:info(none)).

%% @doc Adds to integer elements of the object with a key, and returns their new values: one
%% value for one operation, a list for a list of operations. An operation is one of
%%
%% <ul>
%% <li>`Increment': is added to the element after the key;</li>
%% <li>`{Position, Increment}': is added to the element at the position;</li>
%% <li>`{Position, Increment, Threshold, SetValue}': likewise, but if the sum is beyond the
%%     threshold in the direction of the increment, the element is set to `SetValue'.</li>
%% </ul>
%%
%% A counter may also be the value of a key in a map. Then write `{Position, MapKey}' instead of
%% the position. With `{Position, MapKey, Initial}' the counter starts from `Initial' if the map
%% doesn't have the key; without it, the call fails with `badarg' in this case.
%%
%% The operations of a list are applied in order, and take effect atomically or not at all. No
%% increment is lost, however many processes increment the same counter. The object's bytes are
%% copied, so the cost is that of insert/2, and of finding the positions. Keep a counter that is
%% changed often apart from long lists, maps and texts.
%%
%% Fails with `badarg' if there is no object with the key, if an element isn't an integer or is the
%% key, if the object has no such position, and for a bag or duplicate_bag. Fails with
%% `system_limit' if a sum has more bits than an integer may have.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()]) ->
    integer() | [integer()].
update_counter(Table, Key, Ops) ->
    case ?ASK(larder_nif:update_counter(Table, Key, Ops), [Table, Key, Ops]) of
        badkey -> erlang:error(badarg, [Table, Key, Ops], larder_error:info(badkey));
        Values -> Values
    end.

%% @doc Like update_counter/3, but inserts `Default' first if there is no object with the key;
%% the key of `Default' is replaced by `Key'. If an operation fails, nothing is inserted.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()], tuple()) ->
          integer() | [integer()].
update_counter(Table, Key, Ops, Default) ->
    ?ASK(larder_nif:update_counter_default(Table, Key, Ops, Default), [Table, Key, Ops, Default]).

%% @doc Replaces elements of the object with a key, given as `{Position, Value}' or a list
%% of these. Returns false if there is no such object. The list takes effect atomically: no reader
%% sees a part of it. The object's bytes are copied, so the cost is that of insert/2.
%%
%% Fails with `badarg' if the object has no such position, if the position is that of the key, and
%% for a bag or duplicate_bag.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}]) ->
    boolean().
update_element(Table, Key, Elements) ->
    ?ASK_ELEMENT(larder_nif:update_element(Table, Key, Elements), [Table, Key, Elements]).

%% @doc Like update_element/3, but inserts `Default' first if there is no object with the
%% key. Always returns true.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}],
                     tuple()) -> true.
update_element(Table, Key, Elements, Default) ->
    ?ASK_ELEMENT(larder_nif:update_element_default(Table, Key, Elements, Default),
                 [Table, Key, Elements, Default]).

%% @doc Puts a value under a key of a map. The map is the element at a position of the object
%% with `Key'. No other part of the object is sent. Returns false if there is no such object.
%%
%% ```
%% true = larder:insert(Users, {7, #{name => <<"ann">>, age => 34}}),
%% true = larder:update_map(Users, 7, 2, age, 35).
%% '''
%%
%% The cost is that of update_element/3, without that of building a new map. Putting a new key into
%% a map of more than 32 keys costs a lookup and an insertion. The change is atomic: no reader sees
%% a part of it.
%%
%% Fails with `badarg' if the element isn't a map, if the object has no such position, if the
%% position is that of the key, and for a bag or duplicate_bag.
-spec update_map(table(), term(), pos_integer(), MapKey :: term(), term()) -> boolean().
update_map(Table, Key, Position, MapKey, Value) ->
    ?TRY(larder_nif:update_map(Table, Key, [{Position, MapKey, Value}]),
         [Table, Key, Position, MapKey, Value]).

%% @doc Like update_map/5, but for several keys, of one map or of several. `{Position, MapKey,
%% Value}' puts a value. `{Position, MapKey}' removes the key if it is there. The changes of one map
%% are applied in order. The list takes effect atomically or not at all.
-spec update_map(table(), term(), [{pos_integer(), MapKey :: term(), Value :: term()} |
                                   {pos_integer(), MapKey :: term()}]) -> boolean().
update_map(Table, Key, Changes) ->
    ?TRY(larder_nif:update_map(Table, Key, Changes), [Table, Key, Changes]).

%% @doc Removes a key of the map at a position of the object with `Key', if it is there. Returns
%% false if there is no such object. Otherwise like update_map/5.
-spec remove_map_key(table(), term(), pos_integer(), MapKey :: term()) -> boolean().
remove_map_key(Table, Key, Position, MapKey) ->
    ?TRY(larder_nif:update_map(Table, Key, [{Position, MapKey}]), [Table, Key, Position, MapKey]).
