%% @doc Snapshots of Ra machines whose state is that of {@link larder_ra}. The module implements
%% Ra's behaviour `ra_snapshot'. A machine must name it in its function `snapshot_module/0', from
%% the first start of the cluster. Ra calls the functions.
%%
%% A snapshot is a file with Ra's meta data (index, term, members, the machine's version), the rest
%% of the state, the definition of each table, and the rows, in parts with a checksum each. Rows
%% are read from a snapshot of Larder, so they are those of one command.
%%
%% A file of another snapshot module, or of a later version of this one, isn't deleted, and the
%% server doesn't start: `{snapshot_of_another_module, File}'.
-module(larder_ra_snapshot).

%% The behaviour is ra_snapshot. It is not declared: Larder compiles where Ra is not installed. The
%% second form of some functions is for later versions of Ra.
-export([prepare/2, write/3, write/4, sync/1, begin_read/1, begin_read/2, read_chunk/3,
         begin_accept/2, accept_chunk/2, complete_accept/2, recover/1, validate/1, read_meta/1,
         context/0]).

-define(ALL, [{'_', [], ['$_']}]).
%% Rows of a part of the file.
-define(ROWS, 200).

-type reading() :: {file:fd(), Left :: non_neg_integer()}.
-record(accept, {meta :: term(), folder :: file:filename_all(), file :: file:fd()}).

%% ---- a member's own snapshots ----

%% @private
%% In the Ra server: it was taken with its command.
-spec prepare(Meta :: term(), larder_ra:cut()) -> larder_ra:cut().
prepare(_, Cut) -> larder_ra:prepare(Cut).

%% @private
%% In a process of its own.
-spec write(file:filename_all(), Meta :: term(), larder_ra:cut()) -> ok | {error, term()}.
write(Folder, Meta, Cut) ->
    {Rest, Interval, Tables} = larder_ra:content(Cut),
    try
        Definitions = [{Tag, Definition} || {Tag, Definition, _} <- Tables],
        Begun = lists:foldl(fun larder_ra_file:write/2, larder_ra_file:create(Folder),
                            [Meta, {Rest, Interval, Definitions}]),
        larder_ra_file:close(lists:foldl(fun write_rows/2, Begun, Tables))
    catch
        throw:{error, _} = Error -> Error
    after
        larder_ra:written(Cut)
    end.

%% @private
%% It is on disc in any case.
-spec write(file:filename_all(), Meta :: term(), larder_ra:cut(), Sync :: boolean()) ->
          ok | {error, term()}.
write(Folder, Meta, Cut, _) -> write(Folder, Meta, Cut).

write_rows({Tag, _, Snapshot}, File) ->
    write_rows(Tag, larder:select(Snapshot, ?ALL, ?ROWS), File).

write_rows(_, '$end_of_table', File) ->
    File;
write_rows(Tag, {Rows, Continuation}, File) ->
    Written = larder_ra_file:write({Tag, Rows}, File),
    write_rows(Tag, larder:select(Continuation), Written).

%% @private
-spec sync(file:filename_all()) -> ok | {error, term()}.
sync(Folder) -> tried(fun() -> larder_ra_file:sync(Folder) end).

%% @private
%% Creates and fills tables, which then replace those of the server.
-spec recover(file:filename_all()) -> {ok, Meta :: term(), larder_ra:state()} | {error, term()}.
recover(Folder) ->
    tried(fun() ->
        {#{index := Index} = Meta, Reader} = larder_ra_file:open(Folder),
        try
            {Rest, Interval, Definitions} = larder_ra_file:read(Reader),
            Made = larder_ra:begin_recovery(Definitions),
            ok = filled(Made, Reader),
            {ok, Meta, larder_ra:recover(Made, {Rest, Interval}, Index)}
        after
            larder_ra_file:close_reader(Reader)
        end
    end).

filled(Made, Reader) ->
    Tables = maps:from_list([{Tag, Table} || {Tag, Table, _} <- Made]),
    try
        fill(Tables, larder_ra_file:read(Reader), Reader)
    catch
        Class:Reason:Stack ->
            larder_ra:discard(Made),
            erlang:raise(Class, Reason, Stack)
    end.

%% One object at a time: there are no readers yet, and an atomic insert of a list takes memory.
fill(_, 'end', _) ->
    ok;
fill(Tables, {Tag, Rows}, Reader) ->
    Table = map_get(Tag, Tables),
    lists:foreach(fun(Row) -> true = larder:insert(Table, Row) end, Rows),
    fill(Tables, larder_ra_file:read(Reader), Reader).

%% @private
%% Ra looks for a snapshot that is valid when a server starts, and deletes others.
-spec validate(file:filename_all()) -> ok | {error, term()}.
validate(Folder) ->
    tried(fun() -> _ = larder_ra_file:check(Folder), ok end).

%% @private
-spec read_meta(file:filename_all()) -> {ok, Meta :: term()} | {error, term()}.
read_meta(Folder) ->
    tried(fun() -> {ok, larder_ra_file:meta(Folder)} end).

%% ---- from one member to another ----

%% @private
%% Sends the bytes of the file. It stays open, so that it may be deleted meanwhile.
-spec begin_read(file:filename_all()) -> {ok, Meta :: term(), reading()} | {error, term()}.
begin_read(Folder) ->
    tried(fun() ->
        Meta = larder_ra_file:meta(Folder),
        case file:open(larder_ra_file:path(Folder), [read, raw, binary]) of
            {ok, File} ->
                {ok, Size} = file:position(File, eof),
                {ok, 0} = file:position(File, bof),
                {ok, Meta, {File, Size}};
            Error ->
                Error
        end
    end).

%% @private
-spec begin_read(file:filename_all(), map()) -> {ok, Meta :: term(), reading()} | {error, term()}.
begin_read(Folder, _) -> begin_read(Folder).

%% @private
-spec context() -> map().
context() -> #{}.

%% @private
-spec read_chunk(reading(), pos_integer(), file:filename_all()) ->
          {ok, binary(), {next, reading()} | last} | {error, term()}.
read_chunk({File, Left}, Size, _) ->
    case file:read(File, min(Size, Left)) of
        {ok, Bytes} when byte_size(Bytes) < Left ->
            {ok, Bytes, {next, {File, Left - byte_size(Bytes)}}};
        {ok, Bytes} ->
            _ = file:close(File),
            {ok, Bytes, last};
        eof ->
            {error, unexpected_eof};
        {error, _} = Error ->
            Error
    end.

%% @private
-spec begin_accept(file:filename_all(), Meta :: term()) -> {ok, #accept{}} | {error, term()}.
begin_accept(Folder, Meta) ->
    case file:open(larder_ra_file:path(Folder), [write, raw, binary]) of
        {ok, File} -> {ok, #accept{meta = Meta, folder = Folder, file = File}};
        Error -> Error
    end.

%% @private
-spec accept_chunk(iodata(), #accept{}) -> {ok, #accept{}} | {error, term()}.
accept_chunk(Chunk, #accept{file = File} = Accept) ->
    case file:write(File, Chunk) of
        ok -> {ok, Accept};
        Error -> Error
    end.

%% @private
%% Ra deletes the previous snapshot after this returns, so this one must be valid and on disc.
-spec complete_accept(iodata(), #accept{}) -> ok | {error, term()}.
complete_accept(Chunk, #accept{file = File, folder = Folder, meta = Meta}) ->
    Results = [file:write(File, Chunk), file:sync(File), file:close(File)],
    case [Error || {error, _} = Error <- Results] of
        [] -> tried(fun() -> same(larder_ra_file:check(Folder), Meta) end);
        [Error | _] -> Error
    end.

same(Meta, Meta) -> ok;
same(Other, Meta) -> {error, {other_meta_data, Other, Meta}}.

%% Errors of files are thrown.
tried(Fun) ->
    try Fun() catch throw:{error, _} = Error -> Error end.
