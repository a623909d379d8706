%% @private
%% @doc The file of a snapshot of larder_ra: terms one after another, each with a checksum.
%%
%% ```
%% "LARDERRA" Version:8
%% Size:64 Checksum:32 Term      for each term; the first is Ra's meta data
%% Size:64 Checksum:32 'end'     once
%% '''
%%
%% Terms are in the external format. A file without its end is incomplete. Numbers are big
%% endian, checksums CRC-32 of a term's bytes. Failures are thrown, as `{error, Reason}'.
-module(larder_ra_file).

-export([path/1, create/1, write/2, close/1, sync/1]).
-export([open/1, close_reader/1, read/1, check/1, meta/1]).

-export_type([writer/0, reader/0]).

-define(NAME, "snapshot.dat").
-define(MAGIC, "LARDERRA").
-define(VERSION, 1).
-define(HEAD, 9).
-define(FRAME, 12).
%% The bytes of one read or write, after which the file is synced. So no sync takes long, and those
%% of the log, which commands wait for, aren't delayed.
-define(BUFFER, 262_144).
-define(SYNC, 8_388_608).
%% The most bytes that are read at once: the system reads no more than 2 GB.
-define(PIECE, 8_388_608).

-record(writer, {file :: file:fd(),
                 buffer = [] :: iodata(),
                 buffered = 0 :: non_neg_integer(),
                 unsynced = 0 :: non_neg_integer()}).

-opaque writer() :: #writer{}.
-record(reader, {file :: file:fd(), size :: non_neg_integer()}).
-opaque reader() :: #reader{}.

%% @doc The file of a snapshot's folder.
-spec path(file:filename_all()) -> file:filename_all().
path(Folder) -> filename:join(Folder, ?NAME).

%% ---- writing ----

%% @doc A new file, for Ra's meta data and the terms after it.
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
        Reader = #reader{file = File, size = ok(file:position(File, eof))},
        0 = ok(file:position(File, bof)),
        ok = head(Reader, Folder),
        {read(Reader), Reader}
    catch
        Class:Reason:Stack ->
            _ = file:close(File),
            erlang:raise(Class, Reason, Stack)
    end.

-spec close_reader(reader()) -> ok.
close_reader(#reader{file = File}) ->
    _ = file:close(File),
    ok.

%% A file of something else isn't an incomplete snapshot. Ra deletes files that are reported as
%% invalid, so this is an exception, and the file stays.
head(#reader{size = Size}, _) when Size < ?HEAD ->
    throw({error, cut_short});
head(#reader{file = File}, Folder) ->
    case ok(file:read(File, ?HEAD)) of
        <<?MAGIC, ?VERSION>> -> ok;
        %% After a loss of power a file may have its size, and zeros in place of what was written.
        <<0:?HEAD/unit:8>> -> throw({error, cut_short});
        <<?MAGIC, Version>> -> error({snapshot_of_later_version, Version, path(Folder)});
        _ -> error({snapshot_of_another_module, path(Folder)})
    end.

%% @doc The next term; `end' is the last.
-spec read(reader()) -> term().
read(Reader) ->
    try binary_to_term(bytes(Reader)) of
        'end' -> ended(Reader), 'end';
        Term -> Term
    catch
        error:badarg -> throw({error, not_a_term})
    end.

ended(#reader{file = File}) ->
    case file:read(File, 1) of
        eof -> ok;
        _ -> throw({error, more_after_the_end})
    end.

bytes(Reader) ->
    <<Size:64, Checksum:32>> = exactly(?FRAME, Reader),
    Size > 0 orelse throw({error, empty_term}),
    Bytes = exactly(Size, Reader),
    case erlang:crc32(Bytes) of
        Checksum -> Bytes;
        _ -> throw({error, checksum_error})
    end.

%% A damaged size must not cause a huge allocation.
exactly(Bytes, #reader{size = Size}) when Bytes > Size ->
    throw({error, cut_short});
exactly(Size, #reader{file = File}) when Size =< ?PIECE ->
    case file:read(File, Size) of
        {ok, Bytes} when byte_size(Bytes) =:= Size -> Bytes;
        {ok, _} -> throw({error, cut_short});
        eof -> throw({error, cut_short});
        {error, _} = Error -> throw(Error)
    end;
exactly(Size, Reader) ->
    iolist_to_binary(pieces(Size, Reader)).

pieces(Size, Reader) when Size =< ?PIECE -> [exactly(Size, Reader)];
pieces(Size, Reader) -> [exactly(?PIECE, Reader) | pieces(Size - ?PIECE, Reader)].

%% @doc Whether the file is whole, and all checksums are right. Gives Ra's meta data.
-spec check(file:filename_all()) -> Meta :: term().
check(Folder) ->
    {Meta, Reader} = open(Folder),
    try check(Reader, bytes(Reader)) after close_reader(Reader) end,
    Meta.

check(Reader, Bytes) ->
    case is_end(Bytes) of
        true -> ended(Reader);
        false -> check(Reader, bytes(Reader))
    end.

%% The atom `end' as releases of OTP encode it: as Latin-1 before OTP 26, as UTF-8 from there on.
%% A file outlives the release of its node, and is sent to nodes of other releases.
is_end(<<131, 100, 3:16, "end">>) -> true;
is_end(<<131, 119, 3, "end">>) -> true;
is_end(_) -> false.

%% @doc Ra's meta data alone.
-spec meta(file:filename_all()) -> Meta :: term().
meta(Folder) ->
    {Meta, Reader} = open(Folder),
    ok = close_reader(Reader),
    Meta.

ok({ok, Result}) -> Result;
ok({error, _} = Error) -> throw(Error).

done(ok) -> ok;
done({error, _} = Error) -> throw(Error).
