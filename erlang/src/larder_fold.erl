%% @private
%% @doc foldl/3 and foldr/3.
%%
%% The folding function and other processes may change the table during a fold. The fold sees
%% changes of later keys exactly as a fold of `ets', which goes from key to key:
%%
%% <ul>
%% <li>an object that is deleted before its key's turn is not passed to the function;</li>
%% <li>an object that is changed before its key's turn is passed as it is then;</li>
%% <li>in an ordered_set, an object inserted ahead of the fold is passed too.</li>
%% </ul>
%%
%% Objects are read in chunks. Between two keys, the fold checks whether the table has changed
%% since the chunk was read. If so, it drops the rest of the chunk, and reads the next one from the
%% key after the last one that it passed. Chunks are small at first and grow while nothing changes.
%% While the table keeps changing, they have one object.
%%
%% The table is fixed during the fold, as `info/2' shows. Each object that is in the table
%% throughout is passed exactly once.
%%
%% Complexity: one native call for each chunk, and a short one for each key.
-module(larder_fold).

-export([foldl/3, foldr/3]).

%% The constants of a fold.
-record(fold, {
    table :: larder:table(),
    direction :: forward | backward,
    function :: fun((tuple(), term()) -> term())
}).

%% @doc `larder:foldl/3'. Errors of the table are those of safe_fixtable/2.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, larder:table()) -> Acc.
foldl(Fun, Acc, Tab) ->
    fold(#fold{table = Tab, direction = forward, function = Fun}, Acc).

%% @doc `larder:foldr/3': from the last key of an ordered_set; other types
%% have no last key and are folded in the order of foldl/3. The objects of
%% one key are passed last to first.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, larder:table()) -> Acc.
foldr(Fun, Acc, Tab) ->
    fold(#fold{table = Tab, direction = backward, function = Fun}, Acc).

fold(#fold{table = Tab} = Fold, Acc) ->
    true = larder:safe_fixtable(Tab, true),
    try
        first(Fold, Acc)
    after
        larder:safe_fixtable(Tab, false)
    end.

first(#fold{table = Tab, direction = Direction} = Fold, Acc) ->
    try larder_nif:fold_first(Tab, Direction) of
        Chunk -> chunk(Chunk, Fold, Acc)
    catch
        error:{larder, _} ->
            _ = larder:first_lookup(Tab),
            first(Fold, Acc)
    end.

%% Continues after a key. If the table can't be read any more, the error is the one that a
%% traversal from key to key raises.
next(Key, {_, Stamp, Count, _}, #fold{table = Tab, direction = Direction} = Fold, Acc) ->
    try larder_nif:fold_next(Tab, Direction, Key, Stamp, Count) of
        Chunk -> chunk(Chunk, Fold, Acc)
    catch
        error:{larder, _} ->
            _ = larder:next_lookup(Tab, Key),
            next(Key, {[], Stamp, Count, 1}, Fold, Acc)
    end.

chunk({[], _, _, _}, _Fold, Acc) ->
    Acc;
chunk({[Object | _] = Objects, Stamp, _, _} = Chunk, #fold{table = Tab, function = Fun} = Fold,
      Acc)
  when is_tuple(Object), is_function(Fun, 2) ->
    objects(Objects, Fun, Acc, Tab, Stamp, Chunk, Fold);
chunk({[Object | _], _, _, _}, Fold, Acc) when is_tuple(Object) ->
    %% Calling it raises the error of an invalid function.
    key([Object], Fold, Acc);
chunk({Keys, Stamp, _, _} = Chunk, #fold{table = Tab} = Fold, Acc) ->
    keys(Keys, Acc, Tab, Stamp, Chunk, Fold).

%% Of a set or ordered_set. If the table can't be read any more, reading the next chunk raises the
%% error.
objects([Object | Objects], Fun, Acc, Tab, Stamp, Chunk, Fold) ->
    Acc1 = Fun(Object, Acc),
    case larder_nif:fold_holds(Tab, Stamp) of
        true when Objects =/= [] -> objects(Objects, Fun, Acc1, Tab, Stamp, Chunk, Fold);
        true when element(3, Chunk) =:= 0 -> Acc1;
        _ -> next(element(element(4, Chunk), Object), Chunk, Fold, Acc1)
    end.

%% Of a bag: the objects of a key are passed as they were at its turn.
keys([[Object | _] = Objects | Keys], Acc, Tab, Stamp, Chunk, Fold) ->
    Acc1 = key(Objects, Fold, Acc),
    case larder_nif:fold_holds(Tab, Stamp) of
        true when Keys =/= [] -> keys(Keys, Acc1, Tab, Stamp, Chunk, Fold);
        true when element(3, Chunk) =:= 0 -> Acc1;
        _ -> next(element(element(4, Chunk), Object), Chunk, Fold, Acc1)
    end.

key([Object], #fold{function = Fun}, Acc) when is_function(Fun, 2) -> Fun(Object, Acc);
key(Objects, #fold{direction = forward, function = Fun}, Acc) -> lists:foldl(Fun, Acc, Objects);
key(Objects, #fold{direction = backward, function = Fun}, Acc) -> lists:foldr(Fun, Acc, Objects).
