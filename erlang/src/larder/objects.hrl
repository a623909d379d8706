%% One object, or a list of them, by key. Part of module larder: see larder.erl.

%% @doc Inserts an object, or a list of objects: all at once for everybody, or
%% none if one is no object of the table.
-spec insert(table(), tuple() | [tuple()]) -> true.
insert(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_list(Table, Objects), [Table, Objects]);
insert(Table, Object) ->
    ?TRY(larder_nif:insert(Table, Object), [Table, Object]).

%% @doc As insert/2, unless a key is in the table already: then nothing is
%% inserted and the answer is false.
-spec insert_new(table(), tuple() | [tuple()]) -> boolean().
insert_new(Table, Objects) when is_list(Objects) ->
    ?TRY(larder_nif:insert_new_list(Table, Objects), [Table, Objects]);
insert_new(Table, Object) ->
    ?TRY(larder_nif:insert_new(Table, Object), [Table, Object]).

%% @doc The objects with a key, in the order in which they were inserted.
-spec lookup(table(), term()) -> [tuple()].
lookup(Table, Key) ->
    ?TRY(larder_nif:lookup(Table, Key), [Table, Key]).

%% @doc The objects of several keys: a list for each key, in the keys' order.
%% Quicker than one call for each, and no more of a snapshot.
-spec lookup_many(table(), [term()]) -> [[tuple()]].
lookup_many(Table, Keys) ->
    ?TRY(larder_select:in_order(larder_nif:lookup_many(Table, Keys, [])), [Table, Keys]).

%% @doc The element at a position of the object with a key; of each object,
%% as a list, if the table is a bag or duplicate_bag.
-spec lookup_element(table(), term(), pos_integer()) -> term() | [term()].
lookup_element(Table, Key, Position) ->
    ?TRY(larder_nif:lookup_element(Table, Key, Position), [Table, Key, Position]).

%% @doc As lookup_element/3, with an answer for a key that is not there.
-spec lookup_element(table(), term(), pos_integer(), Default) -> term() | [term()] | Default.
lookup_element(Table, Key, Position, Default) ->
    ?TRY(larder_nif:lookup_element_default(Table, Key, Position, Default),
         [Table, Key, Position, Default]).

%% @doc Whether there is an object with the key.
-spec member(table(), term()) -> boolean().
member(Table, Key) ->
    ?TRY(larder_nif:member(Table, Key), [Table, Key]).

%% @doc Deletes the objects with a key.
-spec delete(table(), term()) -> true.
delete(Table, Key) ->
    ?TRY(larder_nif:delete(Table, Key), [Table, Key]).

%% @doc Deletes the object, if it is there: all of it has to be the same.
-spec delete_object(table(), tuple()) -> true.
delete_object(Table, Object) ->
    ?TRY(larder_nif:delete_object(Table, Object), [Table, Object]).

%% @doc Deletes the objects with a key, and gives them.
-spec take(table(), term()) -> [tuple()].
take(Table, Key) ->
    ?TRY(larder_nif:take(Table, Key), [Table, Key]).

%% @doc As take/2 for several keys, one after another: a list for each, in the
%% keys' order.
-spec take_many(table(), [term()]) -> [[tuple()]].
take_many(Table, Keys) when length(Keys) >= 0 ->
    ?TRY(larder_select:in_order(larder_nif:take_many(Table, Keys, [])), [Table, Keys]);
take_many(Table, Keys) ->
    erlang:error(badarg, [Table, Keys], larder_error:info(none)).

%% @doc Adds to elements of the object with a key, which are integers.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()]) ->
    integer() | [integer()].
update_counter(Table, Key, Ops) ->
    ?TRY(larder_nif:update_counter(Table, Key, Ops), [Table, Key, Ops]).

%% @doc As update_counter/3, with an object to begin with if there is none.
-spec update_counter(table(), term(), integer() | update_op() | [update_op()], tuple()) ->
          integer() | [integer()].
update_counter(Table, Key, Ops, Default) ->
    ?TRY(larder_nif:update_counter_default(Table, Key, Ops, Default), [Table, Key, Ops, Default]).

%% @doc Replaces elements of the object with a key; false if there is none.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}]) ->
    boolean().
update_element(Table, Key, Elements) ->
    ?TRY_ELEMENT(larder_nif:update_element(Table, Key, Elements), [Table, Key, Elements]).

%% @doc As update_element/3, with an object to begin with if there is none.
-spec update_element(table(), term(), {pos_integer(), term()} | [{pos_integer(), term()}],
                     tuple()) -> true.
update_element(Table, Key, Elements, Default) ->
    ?TRY_ELEMENT(larder_nif:update_element_default(Table, Key, Elements, Default),
                 [Table, Key, Elements, Default]).
