%% @private
%% @doc foldl/3 and foldr/3.
%%
%% A fold visits key by key, and takes a key's objects at the moment of the
%% visit, in the same call that finds the key. So it sees what the folding
%% function, or another process, did to the keys ahead, exactly as a fold of
%% `ets' does:
%%
%% <ul>
%% <li>an object that is deleted before its key's turn is not passed to the function;</li>
%% <li>an object that is changed before its key's turn is passed as it is then;</li>
%% <li>in an ordered_set, an object inserted ahead of the fold is passed too.</li>
%% </ul>
%%
%% Fetching objects in chunks would take fewer calls and break all three, so
%% it is not done. The table is fixed meanwhile: that is what lets the fold
%% go on from a key of an unordered table that the function has deleted. No
%% object that is in the table throughout is missed or passed twice.
%%
%% Complexity: one call a key. Nothing is copied but the objects of one key.
-module(larder_fold).

-export([foldl/3, foldr/3]).

%% @doc `larder:foldl/3'. Errors of the table are those of safe_fixtable/2.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, larder:table()) -> Acc.
foldl(Fun, Acc, Tab) ->
    fixed(Tab, fun() -> forward(larder:first_lookup(Tab), Fun, Acc, Tab) end).

%% @doc `larder:foldr/3': from the last key of an ordered_set; other types
%% have no last key and are folded in the order of foldl/3. The objects of
%% one key are passed last to first.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, larder:table()) -> Acc.
foldr(Fun, Acc, Tab) ->
    fixed(Tab, fun() -> backward(larder:last_lookup(Tab), Fun, Acc, Tab) end).

fixed(Tab, Fold) ->
    true = larder:safe_fixtable(Tab, true),
    try
        Fold()
    after
        larder:safe_fixtable(Tab, false)
    end.

forward('$end_of_table', _Fun, Acc, _Tab) ->
    Acc;
forward({Key, Objects}, Fun, Acc, Tab) ->
    Acc1 = lists:foldl(Fun, Acc, Objects),
    forward(larder:next_lookup(Tab, Key), Fun, Acc1, Tab).

backward('$end_of_table', _Fun, Acc, _Tab) ->
    Acc;
backward({Key, Objects}, Fun, Acc, Tab) ->
    Acc1 = lists:foldr(Fun, Acc, Objects),
    backward(larder:prev_lookup(Tab, Key), Fun, Acc1, Tab).
