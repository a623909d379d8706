%% @private
%% @doc The file of a snapshot of larder_ra: terms one after another, each with a checksum.
%%
%% ```
%% "LARDERRA" Version:8
%% Size:64 Checksum:32 Term      as often as there are terms; the first is Ra's meta data
%% Size:64 Checksum:32 'end'     and no more
%% '''
%%
%% Terms are in the external format. A file without its end was not written whole. Numbers are big
%% endian, checksums CRC-32 of a term's bytes. Failures are thrown, as `{error, Reason}'.
-module(larder_ra_file).

-export([path/1, create/1, write/2, close/1, sync/1]).
-export([open/1, read/1, check/1, meta/1]).

-export_type([writer/0, reader/0]).

-define(NAME, "snapshot.dat").
-define(MAGIC, "LARDERRA").
-define(VERSION, 1).
-define(HEAD, 9).
-define(FRAME, 12).
%% Bytes that are written and read at once, and after which the file is synced: then the last sync
%% has little to do, and the log's syncs, which commands wait for, don't wait for a long one.
-define(BUFFER, 262_144).
-define(SYNC, 8_388_608).

-record(writer, {file :: file:fd(),
                 buffer = [] :: iodata(),
                 buffered = 0 :: non_neg_integer(),
                 unsynced = 0 :: non_neg_integer()}).

-opaque writer() :: #writer{}.
-opaque reader() :: file:fd().

%% @doc The file of a snapshot's folder.
-spec path(file:filename_all()) -> file:filename_all().
path(Folder) -> filename:join(Folder, ?NAME).

%% ---- writing ----

%% @doc A new file, for Ra's meta data and the terms behind it.
-spec create(file:filename_all()) -> writer().
create(Folder) ->
    File = ok(file:open(path(Folder), [write, raw, binary])),
    #writer{file = File, buffer = <<?MAGIC, ?VERSION>>, buffered = ?HEAD}.

%% @doc Adds a term.
-spec write(term(), writer()) -> writer().
write(Term, #writer{buffer = Buffer, buffered = Buffered} = Writer) ->
    Bytes = term_to_iovec(Term),
    Size = iolist_size(Bytes),
    Frame = [<<Size:64, (erlang:crc32(Bytes)):32>> | Bytes],
    flushed(?BUFFER, Writer#writer{buffer = [Buffer | Frame], buffered = Buffered + ?FRAME + Size}).

flushed(Least, #writer{buffered = Buffered} = Writer) when Buffered < Least ->
    Writer;
flushed(_, #writer{file = File, buffer = Buffer, buffered = Buffered, unsynced = Before} = Writer) ->
    ok = done(file:write(File, Buffer)),
    Unsynced = case Before + Buffered of
                   Much when Much >= ?SYNC -> ok = done(file:datasync(File)), 0;
                   Little -> Little
               end,
    Writer#writer{buffer = [], buffered = 0, unsynced = Unsynced}.

%% @doc Writes the end. What is written is on disc when it returns.
-spec close(writer()) -> ok.
close(Writer) ->
    #writer{file = File} = flushed(0, write('end', Writer)),
    ok = done(file:sync(File)),
    done(file:close(File)).

%% @doc Has the file on disc.
-spec sync(file:filename_all()) -> ok.
sync(Folder) ->
    File = ok(file:open(path(Folder), [read, write, raw, binary])),
    ok = done(file:sync(File)),
    done(file:close(File)).

%% ---- reading ----

%% @doc Opens the file, and gives Ra's meta data.
-spec open(file:filename_all()) -> {Meta :: term(), reader()}.
open(Folder) ->
    File = ok(file:open(path(Folder), [read, raw, binary, {read_ahead, ?BUFFER}])),
    try
        ok = head(File, Folder),
        {read(File), File}
    catch
        Class:Reason:Stack ->
            _ = file:close(File),
            erlang:raise(Class, Reason, Stack)
    end.

%% A file of something else is no file that was not written whole. Ra deletes what it is told is
%% no snapshot, so here is an exception for it, and it deletes nothing.
head(File, Folder) ->
    case file:read(File, ?HEAD) of
        {ok, <<?MAGIC, ?VERSION>>} -> ok;
        {ok, <<?MAGIC, Version>>} -> error({snapshot_of_later_version, Version, path(Folder)});
        {ok, Head} when byte_size(Head) < ?HEAD -> throw({error, cut_short});
        {ok, _} -> error({snapshot_of_another_module, path(Folder)});
        eof -> throw({error, cut_short});
        {error, _} = Error -> throw(Error)
    end.

%% @doc The next term; `end' is the last.
-spec read(reader()) -> term().
read(File) -> binary_to_term(bytes(File)).

bytes(File) ->
    <<Size:64, Checksum:32>> = exactly(?FRAME, File),
    Bytes = exactly(Size, File),
    case erlang:crc32(Bytes) of
        Checksum -> Bytes;
        _ -> throw({error, checksum_error})
    end.

exactly(Size, File) ->
    case file:read(File, Size) of
        {ok, Bytes} when byte_size(Bytes) =:= Size -> Bytes;
        {ok, _} -> throw({error, cut_short});
        eof -> throw({error, cut_short});
        {error, _} = Error -> throw(Error)
    end.

%% @doc Whether the file is whole, and all checksums are right. Gives Ra's meta data.
-spec check(file:filename_all()) -> Meta :: term().
check(Folder) ->
    End = term_to_binary('end'),
    {Meta, File} = open(Folder),
    try check(File, End, bytes(File)) after file:close(File) end,
    Meta.

check(File, End, End) ->
    case file:read(File, 1) of
        eof -> ok;
        _ -> throw({error, more_after_the_end})
    end;
check(File, End, _) ->
    check(File, End, bytes(File)).

%% @doc Ra's meta data alone.
-spec meta(file:filename_all()) -> Meta :: term().
meta(Folder) ->
    {Meta, File} = open(Folder),
    _ = file:close(File),
    Meta.

ok({ok, Result}) -> Result;
ok({error, _} = Error) -> throw(Error).

done(ok) -> ok;
done({error, _} = Error) -> throw(Error).
