%% Whole tables: folds, files, dets, QLC, the terminal. Part of module larder: see larder.erl.

%% @doc Folds over all objects, from the first key of an ordered_set. The table is fixed
%% meanwhile, and released also after an exception.
%%
%% Each key's objects are those of its turn, so what others write meanwhile may be seen
%% or not; fold over a snapshot/1 to see one moment.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldl(Fun, Acc, Table) ->
    larder_fold:foldl(Fun, Acc, Table).

%% @doc Folds over all objects, from the last key of an ordered_set. As foldl/3
%% otherwise.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldr(Fun, Acc, Table) ->
    larder_fold:foldr(Fun, Acc, Table).

%% @doc Fills a table with what a fun gives, as `dets:init_table/2' does: it is called
%% with `read' and gives `{Objects, Fun}' or `end_of_input', and with `close' at an end
%% before that. What was in the table is deleted first.
%%
%% If the fun gives what is no object, the call exits: what came before it is in the
%% table. Others see the objects as they come.
-spec init_table(table(), fun((read | close) -> term())) -> true.
init_table(Table, Fun) ->
    larder_dets:init_table(Table, Fun).

%% @doc Inserts the objects of an open dets table, in several steps: others see them as
%% they come. `badarg' if there is no such dets table.
-spec from_dets(table(), dets:tab_name()) -> true.
from_dets(Table, Dets) ->
    case larder_dets:from_dets(Table, Dets) of
        ok -> true;
        {failed, Reason, Info} -> erlang:error(Reason, [Table, Dets], Info)
    end.

%% @doc Makes an open dets table have the table's objects, and no others. As a traversal
%% sees them: for those of one moment give it a snapshot/1.
-spec to_dets(table(), dets:tab_name()) -> dets:tab_name().
to_dets(Table, Dets) ->
    case larder_dets:to_dets(Table, Dets) of
        ok -> Dets;
        {failed, Reason, Info} -> erlang:error(Reason, [Table, Dets], Info)
    end.

%% @doc Writes a table to a file, as it is at one moment of the call, whatever others do
%% meanwhile. A file of that name is replaced when the new one is whole. (A table on a
%% structure other than the usual is written as a traversal sees it.)
%%
%% `{error, Reason}' is the system's, such as `enospc'; then the file of before is as it
%% was.
-spec tab2file(table(), file:name()) -> ok | {error, term()}.
tab2file(Table, File) ->
    larder_file:save(Table, File, []).

%% @doc As tab2file/2, with options. With `{format, ets}' the file is one that
%% `ets:file2tab/1' reads. With `{sync, true}' it is on the disk when the call returns.
-spec tab2file(table(), file:name(), [{extended_info, [object_count | md5sum]} |
                                      {sync, boolean()} | {format, larder | ets}]) ->
          ok | {error, term()}.
tab2file(Table, File, Options) ->
    larder_file:save(Table, File, Options).

%% @doc Makes a table of a file that tab2file/2,3 or `ets:tab2file' wrote, with the name
%% and options of the one that was written; the calling process owns it. `{error,
%% Reason}' if the file is damaged, or another table has the name: then there is no new
%% table.
-spec file2tab(file:name()) -> {ok, table()} | {error, term()}.
file2tab(File) ->
    larder_file:load(File, []).

%% @doc As file2tab/1, with options. Checksums are always looked at, whether or not
%% `{verify, true}' is said, and part of a table is not loaded.
-spec file2tab(file:name(), [{verify, boolean()}]) -> {ok, table()} | {error, term()}.
file2tab(File, Options) ->
    larder_file:load(File, Options).

%% @doc What is in a file that tab2file/2,3 or `ets:tab2file' wrote: name, type,
%% protection, key position, number of objects and the like. The objects are not read.
-spec tabfile_info(file:name()) -> {ok, [{atom(), term()}]} | {error, term()}.
tabfile_info(File) ->
    larder_file:info(File).

%% @doc A table as a source of QLC queries. Lookups by key, and match specifications that
%% QLC finds in the query, use the table as lookup/2 and select/2 do; the table is fixed
%% while a query runs.
-spec table(table()) -> qlc:query_handle().
table(Table) ->
    larder_qlc:table(Table, []).

%% @doc As table/1, with options: `{traverse, first_next | last_prev | select | {select,
%% MS}}', `{n_objects, N}'. The first says how the table is gone through, the second how
%% many objects are fetched at a time.
-spec table(table(), [term()] | term()) -> qlc:query_handle().
table(Table, Options) ->
    larder_qlc:table(Table, Options).

%% @doc Lists all tables on the terminal: id, name, type, size, memory in words, and
%% owner. A table that can't be read while it is looked at says so. The last line is that of
%% memory/0.
-spec i() -> ok.
i() ->
    larder_browse:i().

%% @doc Shows a table on the terminal, 40 lines at a time. After each page it asks: `c'
%% goes on, `q' ends, `p' and a number shows an object as a whole, `/' and a regular
%% expression looks for objects, `k' deletes the table.
-spec i(table()) -> ok.
i(Table) ->
    larder_browse:i(Table).

%% @doc As i/1, so many lines at a time. Objects are cut at 80 characters.
-spec i(table(), pos_integer()) -> ok.
i(Table, Height) ->
    larder_browse:i(Table, Height).

%% @doc As i/2, with lines so long. An object is cut where its line ends.
-spec i(table(), pos_integer(), pos_integer()) -> ok.
i(Table, Height, Width) ->
    larder_browse:i(Table, Height, Width).
