%% One object, or a list of them, by key. Part of module larder: see larder.erl.

%% @doc Inserts an object, or a list of objects. In a set or ordered_set an object
%% replaces the one with its key. In a bag it joins the others of its key; an identical
%% one is inserted again only in a duplicate_bag.
%%
%% A list goes in at once for everybody, or not at all if one of it is no object of the
%% table: no tuple, or too small for the key's position (`badarg'). A traversal under way
%% is the exception: it may see a part of the list.
%%
%% An object takes O(log n) in an ordered_set with n objects, and in other tables about
%% the same time whatever their size. Readers don't wait meanwhile.
-spec insert(table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_list(Table, Objects), [Table, Objects]);
insert(Table, Object) ->
    ?TRY(larder_nif:insert(Table, Object), [Table, Object]).

%% @doc As insert/2, unless a key is in the table already: then nothing is inserted and
%% the answer is false. Of several processes that insert the same new key at once, one
%% succeeds.
%%
%% A list is looked through first: if any of its keys is in the table, none of it is
%% inserted.
-spec insert_new(table(), tuple() | [tuple()]) -> boolean().
insert_new(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_new_list(Table, Objects), [Table, Objects]);
insert_new(Table, Object) ->
    ?TRY(larder_nif:insert_new(Table, Object), [Table, Object]).

%% @doc The objects with a key, in the order in which they were inserted; `[]' if there
%% are none. A set or ordered_set has one at most.
%%
%% Keys of an ordered_set are compared by `==', all others by `=:='. It takes the time of
%% insert/2, waits for nobody, and sees all objects of the key as they are at one moment.
-spec lookup(table(), term()) -> [tuple()].
lookup(Table, Key) ->
    ?TRY(larder_nif:lookup(Table, Key), [Table, Key]).

%% @doc The objects of several keys: a list for each key, in the keys' order. Quicker
%% than one call for each, and no more of a snapshot: each key is looked up for itself,
%% and others may write meanwhile.
%%
%% `badarg' if the keys are no proper list. Long lists are worked through in slices.
-spec lookup_many(table(), [term()]) -> [[tuple()]].
lookup_many(Table, Keys) ->
    ?TRY(larder_select:in_order(larder_nif:lookup_many(Table, Keys, [])), [Table, Keys]).

%% @doc The element at a position of the object with a key; of each object, as a list, if
%% the table is a bag or duplicate_bag. Only that element is copied out of the table,
%% however large the object.
%%
%% `badarg' if there is no object with the key, or it has no such position. As of
%% lookup/2 otherwise.
-spec lookup_element(table(), term(), pos_integer()) -> term() | [term()].
lookup_element(Table, Key, Position) ->
    ?TRY(larder_nif:lookup_element(Table, Key, Position), [Table, Key, Position]).

%% @doc As lookup_element/3, with an answer for a key that is not there. A position that
%% the object has not is `badarg' as before.
-spec lookup_element(table(), term(), pos_integer(), Default) -> term() | [term()] | Default.
lookup_element(Table, Key, Position, Default) ->
    ?TRY(larder_nif:lookup_element_default(Table, Key, Position, Default),
         [Table, Key, Position, Default]).

%% @doc The elements at several positions of the object with a key, in a list in the
%% positions' order; of each object, as a list of such lists, if the table is a bag or
%% duplicate_bag. Nothing else of the object is copied. Takes the time of lookup/2 and
%% that of the elements up to the last position.
%%
%% `badarg' if there is no such key, and for a position that an object has not.
%%
%% ```
%% [<<"ann">>, 34] = larder:lookup_elements(Users, 7, [2, 5]).
%% '''
-spec lookup_elements(table(), term(), [pos_integer()]) -> [term()] | [[term()]].
lookup_elements(Table, Key, Positions) ->
    ?TRY(larder_nif:lookup_elements(Table, Key, Positions), [Table, Key, Positions]).

%% @doc As lookup_elements/3, with an answer for a key that is not there. A position that an
%% object has not is `badarg' as before.
-spec lookup_elements(table(), term(), [pos_integer()], Default) ->
          [term()] | [[term()]] | Default.
lookup_elements(Table, Key, Positions, Default) ->
    ?TRY(larder_nif:lookup_elements_default(Table, Key, Positions, Default),
         [Table, Key, Positions, Default]).

%% @doc Whether there is an object with the key. Nothing is copied, so it is quicker than
%% lookup/2, and sees what that would see.
-spec member(table(), term()) -> boolean().
member(Table, Key) ->
    ?TRY(larder_nif:member(Table, Key), [Table, Key]).

%% @doc Deletes the objects with a key, all at once. Nothing happens if there are none.
%% It takes the time of insert/2.
-spec delete(table(), term()) -> true.
delete(Table, Key) ->
    ?TRY(larder_nif:delete(Table, Key), [Table, Key]).

%% @doc Deletes the object, if it is there: all of it has to be the same, compared by
%% `=:='. A duplicate_bag loses all copies of it, and other objects of the key stay.
-spec delete_object(table(), tuple()) -> true.
delete_object(Table, Object) ->
    ?TRY(larder_nif:delete_object(Table, Object), [Table, Object]).

%% @doc Deletes the objects with a key, and gives them as lookup/2 would have. Of several
%% processes that take the same objects, one gets them.
-spec take(table(), term()) -> [tuple()].
take(Table, Key) ->
    ?TRY(larder_nif:take(Table, Key), [Table, Key]).

%% @doc As take/2 for several keys, one after another: a list for each, in the keys'
%% order. Each key is taken at one moment, the whole list is not: others may see some of
%% it gone.
%%
%% `badarg' if the keys are no proper list; then nothing is taken.
-spec take_many(table(), [term()]) -> [[tuple()]].
take_many(Table, Keys) when length(Keys) >= 0 ->
    ?TRY(larder_select:in_order(larder_nif:take_many(Table, Keys, [])), [Table, Keys]);
take_many(Table, Keys) ->
    erlang:error(badarg, [Table, Keys], larder_error:info(none)).

%% @doc Adds to elements of the object with a key, which are integers, and gives the new
%% value: one for one operation, a list for a list. An operation is an increment (of the
%% element after the key), `{Position, Increment}', or `{Position, Increment, Threshold,
%% SetValue}': if the sum is beyond the threshold in the direction of the increment, the
%% element is set instead.
%%
%% A counter may be the value of a key of a map. In the place of its position then stands
%% `{Position, MapKey}', or `{Position, MapKey, Initial}' for one that begins with an integer if
%% the map has not the key; without that it is `badarg'.
%%
%% A list is applied in order, and takes effect at once or not at all. Concurrent
%% counters lose nothing. `badarg' if there is no object with the key, if an element is
%% no integer or is the key, and for a bag.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()]) ->
    integer() | [integer()].
update_counter(Table, Key, Ops) ->
    ?TRY(larder_nif:update_counter(Table, Key, Ops), [Table, Key, Ops]).

%% @doc As update_counter/3, with an object to begin with if there is none: its key is
%% replaced by the key given. If an operation fails, the object isn't inserted either.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()], tuple()) ->
          integer() | [integer()].
update_counter(Table, Key, Ops, Default) ->
    ?TRY(larder_nif:update_counter_default(Table, Key, Ops, Default), [Table, Key, Ops, Default]).

%% @doc Replaces elements of the object with a key, by `{Position, Value}' or a list of
%% these; false if there is no such object. The list takes effect at once: no reader sees
%% a part of it.
%%
%% `badarg' for a position that the object has not or that is the key's, and for a bag.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}]) ->
    boolean().
update_element(Table, Key, Elements) ->
    ?TRY_ELEMENT(larder_nif:update_element(Table, Key, Elements), [Table, Key, Elements]).

%% @doc As update_element/3, with an object to begin with if there is none. The answer is
%% always true.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}],
                     tuple()) -> true.
update_element(Table, Key, Elements, Default) ->
    ?TRY_ELEMENT(larder_nif:update_element_default(Table, Key, Elements, Default),
                 [Table, Key, Elements, Default]).

%% @doc Gives a key of a map this value; the map is the element at a position of the object
%% with a key. Nothing else of the object is copied or sent. False if there is no such object.
%%
%% ```
%% true = larder:insert(Users, {7, #{name => <<"ann">>, age => 34}}),
%% true = larder:update_map(Users, 7, 2, age, 35).
%% '''
%%
%% It takes the time of update_element/3, without that of making the map anew; to put a new
%% key into a map of more than 32, that of a lookup and an insertion. No reader sees a part.
%% `badarg' if the element is no map, for a position that the object has not or that is the
%% key's, and for a bag.
-spec update_map(table(), term(), pos_integer(), MapKey :: term(), term()) -> boolean().
update_map(Table, Key, Position, MapKey, Value) ->
    ?TRY(larder_nif:update_map(Table, Key, [{Position, MapKey, Value}]),
         [Table, Key, Position, MapKey, Value]).

%% @doc As update_map/5, for several keys, of one map or of several: `{Position, MapKey,
%% Value}' puts a value, `{Position, MapKey}' removes the key, if it is there. Those for one
%% map are done in order. The list takes effect at once or not at all.
-spec update_map(table(), term(), [{pos_integer(), MapKey :: term(), Value :: term()} |
                                   {pos_integer(), MapKey :: term()}]) -> boolean().
update_map(Table, Key, Changes) ->
    ?TRY(larder_nif:update_map(Table, Key, Changes), [Table, Key, Changes]).

%% @doc Removes a key of the map at a position of the object with a key, if it is there. False
%% if there is no such object. As update_map/5 otherwise.
-spec remove_map_key(table(), term(), pos_integer(), MapKey :: term()) -> boolean().
remove_map_key(Table, Key, Position, MapKey) ->
    ?TRY(larder_nif:update_map(Table, Key, [{Position, MapKey}]), [Table, Key, Position, MapKey]).
