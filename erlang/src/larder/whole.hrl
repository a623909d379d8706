%% Whole tables: folds, files, dets, QLC, the terminal. Part of module larder: see larder.erl.

%% @doc Folds over all objects, from the first key of an ordered_set.
-spec foldl(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldl(Fun, Acc, Table) ->
    larder_fold:foldl(Fun, Acc, Table).

%% @doc Folds over all objects, from the last key of an ordered_set.
-spec foldr(fun((tuple(), Acc) -> Acc), Acc, table()) -> Acc.
foldr(Fun, Acc, Table) ->
    larder_fold:foldr(Fun, Acc, Table).

%% @doc Fills a table with what a fun gives.
-spec init_table(table(), fun((read | close) -> term())) -> true.
init_table(Table, Fun) ->
    larder_dets:init_table(Table, Fun).

%% @doc Inserts the objects of an open dets table.
-spec from_dets(table(), dets:tab_name()) -> true.
from_dets(Table, Dets) ->
    larder_dets:from_dets(Table, Dets).

%% @doc Makes an open dets table have the table's objects, and no others.
-spec to_dets(table(), dets:tab_name()) -> dets:tab_name().
to_dets(Table, Dets) ->
    larder_dets:to_dets(Table, Dets).

%% @doc Writes a table to a file, as it is at one moment of the call, whatever
%% others do meanwhile. A file of that name is replaced when the new one is whole.
%% (A table on a structure other than the usual is written as a traversal sees
%% it.)
-spec tab2file(table(), file:name()) -> ok | {error, term()}.
tab2file(Table, File) ->
    larder_file:save(Table, File, []).

%% @doc As tab2file/2, with options. With `{format, ets}' the file is one that
%% `ets:file2tab/1' reads.
-spec tab2file(table(), file:name(), [{extended_info, [object_count | md5sum]} |
                                      {sync, boolean()} | {format, larder | ets}]) ->
          ok | {error, term()}.
tab2file(Table, File, Options) ->
    larder_file:save(Table, File, Options).

%% @doc Makes a table of a file that tab2file/2,3 or `ets:tab2file' wrote.
-spec file2tab(file:name()) -> {ok, table()} | {error, term()}.
file2tab(File) ->
    larder_file:load(File, []).

%% @doc As file2tab/1, with options. Checksums are always looked at, and part of a
%% table is not loaded.
-spec file2tab(file:name(), [{verify, boolean()}]) -> {ok, table()} | {error, term()}.
file2tab(File, Options) ->
    larder_file:load(File, Options).

%% @doc What is in a file that tab2file/2,3 or `ets:tab2file' wrote.
-spec tabfile_info(file:name()) -> {ok, [{atom(), term()}]} | {error, term()}.
tabfile_info(File) ->
    larder_file:info(File).

%% @doc A table as a source of QLC queries.
-spec table(table()) -> qlc:query_handle().
table(Table) ->
    larder_qlc:table(Table, []).

%% @doc As table/1, with options: `{traverse, first_next | last_prev | select | {select, MS}}',
%% `{n_objects, N}'.
-spec table(table(), [term()] | term()) -> qlc:query_handle().
table(Table, Options) ->
    larder_qlc:table(Table, Options).

%% @doc Lists all tables on the terminal.
-spec i() -> ok.
i() ->
    larder_browse:i().

%% @doc Shows a table on the terminal.
-spec i(table()) -> ok.
i(Table) ->
    larder_browse:i(Table).

%% @doc As i/1, so many lines at a time.
-spec i(table(), pos_integer()) -> ok.
i(Table, Height) ->
    larder_browse:i(Table, Height).

%% @doc As i/2, with lines so long.
-spec i(table(), pos_integer(), pos_integer()) -> ok.
i(Table, Height, Width) ->
    larder_browse:i(Table, Height, Width).
