%% Whole tables: folds, files, dets, QLC, the terminal. Part of module larder: see larder.erl.

%% @doc Folds over all objects, from the first key of an ordered_set. The table is fixed
%% during the call, and released even after an exception. It takes O(n), in slices.
%%
%% The objects of a key are read when the fold reaches the key, so concurrent writes may be seen
%% or not. Fold over a snapshot/1 to see one instant.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldl(Fun, Acc, Table) ->
    larder_fold:foldl(Fun, Acc, Table).

%% @doc Folds over all objects, from the last key of an ordered_set. Otherwise like
%% foldl/3.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldr(Fun, Acc, Table) ->
    larder_fold:foldr(Fun, Acc, Table).

%% @doc Replaces the objects of a table by those that a fun returns, like `dets:init_table/2'. The
%% fun is called with `read', and returns `{Objects, Fun}' or `end_of_input'. It is called with
%% `close' if the call ends before that. The existing objects are deleted first.
%%
%% If the fun returns something that isn't an object, the call exits with the reason of the failed
%% insert; the objects before it stay in the table. Other processes see the objects as they are
%% inserted, those of one read at one instant.
-spec init_table(table(), fun((read | close) -> term())) -> true.
init_table(Table, Fun) ->
    true = delete_all_objects(Table),
    %% Called here, so that a fun that is none is an error of this module, as in ets.
    larder_dets:fill(Table, Fun(read)).

%% @doc Inserts the objects of an open dets table, in several steps. Other processes see them as
%% they are inserted. Fails with `badarg' if there is no such dets table.
-spec from_dets(table(), dets:tab_name()) -> true.
from_dets(Table, Dets) ->
    case larder_dets:from_dets(Table, Dets) of
        ok -> true;
        {failed, Reason, Info} -> erlang:error(Reason, [Table, Dets], Info)
    end.

%% @doc Replaces the objects of an open dets table by those of the table. They are read by a
%% traversal; pass a snapshot/1 to write the objects of one instant.
-spec to_dets(table(), dets:tab_name()) -> dets:tab_name().
to_dets(Table, Dets) ->
    case larder_dets:to_dets(Table, Dets) of
        ok -> Dets;
        {failed, Reason, Info} -> erlang:error(Reason, [Table, Dets], Info)
    end.

%% @doc Writes a table to a file, as it is at one instant of the call, whatever other processes
%% write. An existing file is replaced once the new one is complete. (A table with a `structure'
%% other than the default is written as a traversal sees it.)
%%
%% The result is `{error, Reason}' if the file can't be written, and the previous file is unchanged
%% then. `Reason' is `{file_error, File, Posix}', with the error of the operating system, such as
%% `enospc'; `eaccess' if what has the name can't be replaced, or nothing can have it; or `badtab'
%% if there is no such table. Fails with `badarg' if the process may not read the table.
%%
%% It takes O(n), in slices. No process waits for it.
-spec tab2file(table(), file:name()) -> ok | {error, term()}.
tab2file(Table, File) ->
    larder_file:save(Table, File, []).

%% @doc Like tab2file/2, with options. With `{format, ets}', `ets:file2tab/1' can read the file
%% (default: `larder'). With `{sync, true}', the file is on disk when the call returns (default:
%% `false'). `{extended_info, Items}' is what tabfile_info/1 shows. Files of Larder have checksums
%% and counts in any case. Other options are `{error, {unknown_option, Option}}'.
-spec tab2file(table(), file:name(), [{extended_info, [object_count | md5sum]} |
                                      {sync, boolean()} | {format, larder | ets}]) ->
          ok | {error, term()}.
tab2file(Table, File, Options) when is_list(Options) ->
    larder_file:save(Table, File, Options).

%% @doc Creates a table from a file that tab2file/2,3 or `ets:tab2file' has written, with the name
%% and options of the original, but without its heir, bounds, indexes and `decentralized_counters'.
%% The calling process owns it. A process that finds a named table during the call sees a part of
%% its objects. It takes O(n), in an ordered_set O(n log n), in slices.
%%
%% Returns `{error, Reason}', and leaves no table, if there is none to be had. `Reason' is
%%
%% <ul>
%% <li>`{read_error, {file_error, File, Posix}}' if the file can't be read;</li>
%% <li>`{read_error, {not_a_log_file, File}}' if it isn't a file of Larder or `ets';</li>
%% <li>`{unsupported_file_version, Version}' if a later version of Larder has written it;</li>
%% <li>`badfile' if it is truncated, `checksum_error' if it was altered, and `invalid_object_count'
%%     if objects are missing;</li>
%% <li>`cannot_create_table' if another named table has the name;</li>
%% <li>`system_limit' if it would take more than half of the atoms that the node can still
%%     create.</li>
%% </ul>
-spec file2tab(file:name()) -> {ok, table()} | {error, term()}.
file2tab(File) ->
    larder_file:load(File, []).

%% @doc Like file2tab/1, with options. Checksums are always verified, with or without
%% `{verify, true}', and a table is never loaded partially.
-spec file2tab(file:name(), [{verify, boolean()}]) -> {ok, table()} | {error, term()}.
file2tab(File, Options) ->
    larder_file:load(File, Options).

%% @doc Returns the description of the table in a file that tab2file/2,3 or `ets:tab2file' has
%% written: `name', `type', `protection', `named_table', `keypos', `size' (the number of objects),
%% `extended_info' and `version'. The objects aren't read, so it takes constant time. Errors are
%% those of file2tab/1.
-spec tabfile_info(file:name()) -> {ok, [{atom(), term()}]} | {error, term()}.
tabfile_info(File) when is_list(File); is_atom(File); is_binary(File) ->
    larder_file:info(File).

%% @doc Returns a QLC query handle for a table. If a query looks up keys, or if QLC can derive a
%% match specification from it, the table is read as by lookup/2 and select/2. The table is fixed
%% while a query runs.
-spec table(table()) -> qlc:query_handle().
table(Table) ->
    larder_qlc:table(Table, []).

%% @doc Like table/1, with the options `{traverse, first_next | last_prev | select | {select, MS}}'
%% and `{n_objects, N}'. `traverse' is how the table is traversed (default: `select'), `n_objects'
%% is how many objects are fetched at a time (default: 100). Fails with `badarg' for other options.
-spec table(table(), [term()] | term()) -> qlc:query_handle().
table(Table, Options) ->
    larder_qlc:table(Table, Options).

%% @doc Lists all tables on the terminal: id, name, type, size, memory in words, and
%% owner. A table that can't be read at that time is shown as such. Lists follow of the tables
%% that have indexes, memory retained for snapshots, or contention (as in top/2), and of the
%% snapshots, with their age and owner. The last line has the items of memory/0.
-spec i() -> ok.
i() ->
    larder_browse:i().

%% @doc Shows a table on the terminal, 40 lines at a time. After each page it asks for a command:
%% `c' continues, `q' quits, `p' and a number shows an object in full, `/' and a regular
%% expression searches for objects, `k' deletes the table.
-spec i(table()) -> ok.
i(Table) ->
    larder_browse:i(Table).

%% @doc Like i/1, with `Height' lines at a time. Objects are truncated at 80 characters.
-spec i(table(), pos_integer()) -> ok.
i(Table, Height) ->
    larder_browse:i(Table, Height).

%% @doc Like i/2, with `Width' characters a line. Objects are truncated there.
-spec i(table(), pos_integer(), pos_integer()) -> ok.
i(Table, Height, Width) ->
    larder_browse:i(Table, Height, Width).
