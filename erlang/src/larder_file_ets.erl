%% @private
%% @doc Files of `ets:tab2file': reads them, and writes some that `ets' reads.
%%
%% Such a file is a disk_log. Its first term is a tuple of items of `ets:info'. The objects follow.
%% If it was written with `extended_info', the last term is ``['$end_of_table', Items]''.
%%
%% `ets' loads what is left of a damaged file, unless it is asked to verify it. Here, damage is
%% always an error: `badfile' if bytes are missing or altered or if the file wasn't written to its
%% end; `checksum_error' and `invalid_object_count' if the objects don't agree with the last term.
%% `{verify, true}' also compares the number of objects with that of the first term. That number
%% may be wrong if other processes wrote while the file was written.
-module(larder_file_ets).

-export([is_one/1, save/4, load/3, info/1, unfix/1]).

%% The first bytes of a disk_log, and those that follow if it was closed.
-define(MAGIC, 1, 2, 3, 4).
-define(CLOSED, 99, 88, 77, 11).

%% The number of bytes in front of the first term.
-define(START, 8).
-define(VERSION, 1).
-define(CHUNK, 1000).
%% Objects that are encoded before they are written. They may be long, so they are few, as in ets.
-define(ROWS, 100).

%% @doc Whether a file begins like one of these.
-spec is_one(binary()) -> boolean().
is_one(Path) ->
    first_bytes(Path, 4) =:= {ok, <<?MAGIC>>}.

%% The file may have been deleted since its name was looked up.
first_bytes(Path, Size) ->
    Device = opened(file:open(Path, [read, raw, binary])),
    try
        file:read(Device, Size)
    after
        file:close(Device)
    end.

%% ---- writing ----

%% @doc Writes the table with an id, as it is at one moment where it has snapshots, to a file
%% of another name, which then gets the name. Throws `{io, Posix}', or a reason.
-spec save(larder:table(), binary(), boolean(), [object_count | md5sum]) -> ok.
save(Table, Path, Sync, Extended) ->
    {Name, Temporary} = beside(Path),
    Janitor = janitor(Temporary),
    try
        filled(opened(disk_log:open([{name, make_ref()}, {file, Name}])), Table, Extended),
        %% The mark that the log was closed has to be on disk, too.
        Sync andalso synced(Temporary, [read, write, raw]),
        renamed(Temporary, Path, Sync)
    catch
        Class:Why:Stack ->
            _ = file:delete(Temporary),
            erlang:raise(Class, Why, Stack)
    after
        Janitor ! done
    end.

%% The name is part of the folder, which is opened before: an error leaves the file that was there.
renamed(Temporary, Path, false) ->
    done(file:rename(Temporary, Path));
renamed(Temporary, Path, true) ->
    Folder = opened(file:open(folder(Path), [read, raw, directory])),
    try
        done(file:rename(Temporary, Path)),
        case file:sync(Folder) of
            %% A file system that can't sync folders isn't asked to.
            {error, Posix} when Posix =:= einval; Posix =:= enotsup -> ok;
            Synced -> done(Synced)
        end
    after
        file:close(Folder)
    end.

%% A log keeps the last 64 KB for a while. It may find only when it is closed that they can't be
%% written.
filled(Log, Table, Extended) ->
    try
        written(Table, Log, Extended)
    catch
        Class:Why:Stack ->
            _ = disk_log:close(Log),
            erlang:raise(Class, Why, Stack)
    end,
    done(disk_log:close(Log)).

%% A process that deletes a file if its caller is killed. The log may be about to create it then, so
%% it is deleted again later.
janitor(Temporary) ->
    Caller = self(),
    spawn(fun() ->
        Monitor = erlang:monitor(process, Caller),
        receive
            done -> true = erlang:demonitor(Monitor, [flush]);
            {'DOWN', Monitor, process, Caller, _} ->
                _ = file:delete(Temporary),
                receive after 1000 -> file:delete(Temporary) end
        end
    end).

%% A name in the same folder, which is short as the file's own may be as long as names get: as
%% disk_log takes names, and as the file system has them. It has the time, as a log that exists is
%% continued: a node that was killed leaves its file behind, process ids are used again, and nodes
%% in containers that share a folder may have the same ones.
beside(Path) ->
    Unique = [".larder-", os:getpid(), $-, integer_to_list(erlang:unique_integer([positive])), $-,
              integer_to_list(erlang:system_time())],
    Temporary = filename:join(folder(Path), iolist_to_binary(Unique)),
    {characters(Temporary), Temporary}.

%% A name with a slash at its end is that of a folder, which lies in another one.
folder(Path) ->
    Length = byte_size(Path) - 1,
    case Path of
        <<Name:Length/binary, $/>> when Length > 0 -> filename:dirname(Name);
        _ -> filename:dirname(Path)
    end.

characters(Path) ->
    case unicode:characters_to_list(Path, file:native_name_encoding()) of
        Name when is_list(Name) -> Name;
        _ -> throw({io, einval})
    end.

written(Table, Log, Extended) ->
    %% The table may be deleted as soon as there is a snapshot. What is read before that is right:
    %% the table is there when the snapshot is taken.
    Facts = facts(Table),
    {Source, Release} = at_one_moment(Table),
    try
        Header = header(Facts, larder:info(Source, size), Extended),
        Sum0 = add_sum(erlang:md5_init(), Header, Extended),
        done(disk_log:blog_terms(Log, Header)),
        {Count, Sum} = write_objects(larder:select(Source, [{'_', [], ['$_']}], ?ROWS), Log,
                                     Extended, 0, Sum0),
        case [end_item(Item, Count, Sum) || Item <- Extended] of
            [] -> ok;
            Items -> done(disk_log:blog_terms(Log, [term_to_binary(['$end_of_table', Items])]))
        end
    after
        Release()
    end.

%% Snapshots, views and tables on structures of the studies have no snapshots, and are fixed.
at_one_moment(Table) ->
    try
        Snapshot = larder:snapshot(Table),
        {Snapshot, fun() -> larder:release(Snapshot) end}
    catch
        error:badarg ->
            true = larder:safe_fixtable(Table, true),
            {Table, fun() -> unfix(Table) end}
    end.

%% @doc Ends the fixation of a table, which may have been deleted meanwhile.
-spec unfix(larder:table()) -> true.
unfix(Table) ->
    try larder:safe_fixtable(Table, false) catch error:badarg -> true end.

%% The items from which the table can be created again, in the order of ets:info. A snapshot has no
%% name. A view is private, and is saved with the protection of its table.
facts(Table) ->
    [{Item, larder:info(Table, Item)}
     || Item <- [decentralized_counters, read_concurrency, write_concurrency, compressed, name,
                 named_table, type, keypos]] ++ [{protection, protection(Table)}].

protection(Table) ->
    case larder:info(larder_transaction:table_of(Table), protection) of
        undefined -> throw(badtab);
        Protection -> Protection
    end.

header(Facts, Size, Extended) ->
    [term_to_binary(list_to_tuple(Facts ++ [{size, Size}, {major_version, ?VERSION},
                                            {minor_version, 0}, {extended_info, Extended}]))].

write_objects('$end_of_table', _Log, _Extended, Count, Sum) ->
    {Count, Sum};
write_objects({Objects, Continuation}, Log, Extended, Count, Sum) ->
    Terms = [term_to_binary(Object) || Object <- Objects],
    done(disk_log:blog_terms(Log, Terms)),
    write_objects(larder:select(Continuation), Log, Extended, Count + length(Terms),
                  add_sum(Sum, Terms, Extended)).

add_sum(Sum, Terms, Extended) ->
    case lists:member(md5sum, Extended) of
        true -> erlang:md5_update(Sum, Terms);
        false -> Sum
    end.

end_item(object_count, Count, _Sum) -> {count, Count};
end_item(md5sum, _Count, Sum) -> {md5, erlang:md5_final(Sum)}.

synced(Name, Modes) ->
    Device = opened(file:open(Name, Modes)),
    try
        done(file:sync(Device))
    after
        file:close(Device)
    end.

opened({ok, Opened}) -> Opened;
opened({error, Why}) -> fail(Why).

done(ok) -> ok;
done({error, Why}) -> fail(Why).

%% The error doesn't name the file, because the caller doesn't know that name.
-spec fail(term()) -> no_return().
fail({file_error, _, Posix}) -> throw({io, Posix});
fail(Posix) when is_atom(Posix) -> throw({io, Posix});
fail(Why) -> throw(Why).

%% ---- reading ----

%% @doc Makes a table of a file. At most so many atoms may be new. Throws
%% the reason why not.
-spec load(binary(), boolean(), non_neg_integer()) -> {ok, larder:table()}.
load(Path, Verify, NewAtoms) ->
    Limit = erlang:system_info(atom_count) + NewAtoms,
    reading(Path, fun(Log) ->
        {Header, First, Continuation} = read_header(Log, Limit),
        Table = new_table(Header),
        try
            Sum = erlang:md5_update(erlang:md5_init(), First),
            Left = size_of(Path) - ?START - stored(First),
            Found = read_objects(chunk(Log, Continuation, ?CHUNK), Log, Table, Limit, {0, Sum, Left}),
            verify(Found, Header, Verify),
            {ok, named(Table)}
        catch
            Class:Why:Stack ->
                drop(Table),
                erlang:raise(Class, Why, Stack)
        end
    end).

%% A public table may have been renamed or deleted by other processes meanwhile.
named(Table) ->
    case larder:info(Table, named_table) of
        true -> larder:info(Table, name);
        false -> Table;
        undefined -> throw(cannot_create_table)
    end.

drop(Table) ->
    try
        larder:delete(Table)
    catch
        error:badarg -> true
    end.

reading(Path, Read) ->
    case first_bytes(Path, 8) of
        {ok, <<?MAGIC, ?CLOSED>>} -> ok;
        _ -> throw(badfile)
    end,
    case disk_log:open([{name, make_ref()}, {file, characters(Path)}, {mode, read_only}]) of
        {ok, Log} ->
            try
                Read(Log)
            after
                disk_log:close(Log)
            end;
        {error, Why} ->
            throw({read_error, Why})
    end.

read_header(Log, Limit) ->
    case chunk(Log, start, 1) of
        {Continuation, [Binary]} -> {checked(term(Binary, Limit)), Binary, Continuation};
        _ -> throw(badfile)
    end.

%% Returns the next terms, as binaries. All bytes before them must belong to terms.
chunk(Log, Continuation, Count) ->
    case disk_log:bchunk(Log, Continuation, Count) of
        eof -> eof;
        {error, {corrupt_log_file, _}} -> throw(badfile);
        {error, Why} -> throw({read_error, Why});
        {Next, Binaries} -> {Next, Binaries};
        {Next, Binaries, 0} -> {Next, Binaries};
        {_, _, _} -> throw(badfile)
    end.

%% The first term as a map, with all that a table needs.
checked(Term) when is_tuple(Term) ->
    Header = maps:from_list([Item || {Name, _} = Item <- tuple_to_list(Term), is_atom(Name)]),
    case Header of
        #{major_version := Version} when not (is_integer(Version) andalso Version =< ?VERSION) ->
            throw({unsupported_file_version, {Version, maps:get(minor_version, Header, 0)}});
        #{name := _, type := _, protection := _, named_table := _, keypos := _, size := _} ->
            Header;
        #{} ->
            throw(badfile)
    end;
checked(_) ->
    throw(badfile).

%% Returns the id of the table.
new_table(#{name := Name, type := Type, protection := Protection, keypos := Keypos} = Header) ->
    %% A file may have anything here, also options that ask for more than a table.
    lists:member(Type, [set, ordered_set, bag, duplicate_bag])
        andalso lists:member(Protection, [public, protected, private])
        orelse throw(cannot_create_table),
    Options = [Type, Protection, {keypos, Keypos}] ++
              [Option || Option <- [named_table, compressed], is_set(Option, Header)] ++
              [{Option, maps:get(Option, Header)}
               || Option <- [read_concurrency, write_concurrency], maps:is_key(Option, Header)],
    try
        larder:new(Name, Options)
    of
        Name -> created(larder:whereis(Name));
        Id -> Id
    catch
        error:_ -> throw(cannot_create_table)
    end.

%% Others may have deleted it at once.
created(undefined) -> throw(cannot_create_table);
created(Id) -> Id.

is_set(Option, Header) ->
    case maps:get(Option, Header, false) of
        Set when is_boolean(Set) -> Set;
        _ -> throw(badfile)
    end.

%% Count and checksum of the objects, and those in the file's last term. All bytes must have been
%% read: disk_log passes over the head of a last term without the rest.
read_objects(eof, _Log, _Table, _Limit, {Count, Sum, Left}) ->
    Left =:= 0 orelse throw(badfile),
    {Count, Sum, []};
read_objects({Continuation, Binaries}, Log, Table, Limit, {Count, Sum, Left}) ->
    {Objects, Hashed, Last} = terms(Binaries, Limit),
    insert(Table, Objects),
    Found = {Count + length(Objects), erlang:md5_update(Sum, Hashed),
             Left - lists:sum([stored(Binary) || Binary <- Binaries])},
    case Last of
        none ->
            read_objects(chunk(Log, Continuation, ?CHUNK), Log, Table, Limit, Found);
        Items ->
            eof =:= chunk(Log, Continuation, ?CHUNK) orelse throw(badfile),
            {Final, FinalSum, _} = Found,
            {Final, FinalSum, Items}
    end.

%% The number of bytes of a term in a log: in front of it are its size and a mark, and before a long
%% one a checksum, too.
stored(Binary) when byte_size(Binary) >= 65528 -> 24 + byte_size(Binary);
stored(Binary) -> 8 + byte_size(Binary).

size_of(Path) ->
    {ok, Info} = file:read_file_info(Path, [raw]),
    element(2, Info).

terms([], _Limit) ->
    {[], [], none};
terms([Binary | Binaries], Limit) ->
    case term(Binary, Limit) of
        ['$end_of_table', Items] when length(Items) > 0, Binaries =:= [] ->
            {[], [], Items};
        Object ->
            {Objects, Hashed, Last} = terms(Binaries, Limit),
            {[Object | Objects], [Binary | Hashed], Last}
    end.

%% Decodes a term. The shortest encoding of an atom has three bytes, so the size of the encoding
%% limits how many new atoms it can have. If there is no room for so many, they are counted. Both
%% are done before a term with new atoms is decoded.
term(Binary, Limit) ->
    try
        binary_to_term(Binary, [safe])
    catch
        error:badarg ->
            Room = Limit - erlang:system_info(atom_count),
            plain_size(Binary) div 3 =< Room orelse new_atoms(plain(Binary), 1, #{}, Room),
            unsafe_term(Binary)
    end.

%% A compressed term says how long it is without compression, which binary_to_term/1 checks.
plain_size(<<131, 80, Size:32, _/binary>>) -> Size;
plain_size(Binary) -> byte_size(Binary).

unsafe_term(Binary) ->
    try
        binary_to_term(Binary)
    catch
        error:badarg -> throw(badfile)
    end.

%% The encoding after its first byte.
plain(<<131, 80, _Size:32, Compressed/binary>>) ->
    try
        zlib:uncompress(Compressed)
    catch
        error:_ -> throw(badfile)
    end;
plain(<<131, Plain/binary>>) -> Plain;
plain(_) -> throw(badfile).

%% Goes through the encoding of so many terms. Throws if more atoms than there is room for are new.
new_atoms(_, _, Names, Room) when map_size(Names) > Room ->
    throw(system_limit);
new_atoms(_, 0, _, _) ->
    ok;
new_atoms(Binary, Terms, Names, Room) ->
    case head(Binary) of
        {Parts, Rest} -> new_atoms(Rest, Terms - 1 + Parts, Names, Room);
        {Encoding, Name, Rest} ->
            new_atoms(Rest, Terms - 1, with_new(Encoding, Name, Names), Room)
    end.

with_new(Encoding, Name, Names) ->
    try
        _ = binary_to_existing_atom(Name, Encoding),
        Names
    catch
        error:_ -> Names#{Name => Encoding}
    end.

%% The first term, with the terms that it consists of left out: their number, and what follows; or
%% the name of an atom, and what follows.
head(<<97, _, Rest/binary>>) -> {0, Rest};
head(<<98, _:32, Rest/binary>>) -> {0, Rest};
head(<<110, N, _, _:N/binary, Rest/binary>>) -> {0, Rest};
head(<<111, N:32, _, _:N/binary, Rest/binary>>) -> {0, Rest};
head(<<70, _:64, Rest/binary>>) -> {0, Rest};
head(<<99, _:31/binary, Rest/binary>>) -> {0, Rest};
head(<<106, Rest/binary>>) -> {0, Rest};
head(<<107, N:16, _:N/binary, Rest/binary>>) -> {0, Rest};
head(<<109, N:32, _:N/binary, Rest/binary>>) -> {0, Rest};
head(<<77, N:32, _, _:N/binary, Rest/binary>>) -> {0, Rest};
head(<<108, N:32, Rest/binary>>) -> {N + 1, Rest};
head(<<104, N, Rest/binary>>) -> {N, Rest};
head(<<105, N:32, Rest/binary>>) -> {N, Rest};
head(<<116, N:32, Rest/binary>>) -> {2 * N, Rest};
head(<<100, N:16, Name:N/binary, Rest/binary>>) -> {latin1, Name, Rest};
head(<<115, N, Name:N/binary, Rest/binary>>) -> {latin1, Name, Rest};
head(<<118, N:16, Name:N/binary, Rest/binary>>) -> {utf8, Name, Rest};
head(<<119, N, Name:N/binary, Rest/binary>>) -> {utf8, Name, Rest};
%% Pids, ports and references: the name of the node, and numbers.
head(<<88, Rest/binary>>) -> of_node(Rest, 12);
head(<<103, Rest/binary>>) -> of_node(Rest, 9);
head(<<89, Rest/binary>>) -> of_node(Rest, 8);
head(<<102, Rest/binary>>) -> of_node(Rest, 5);
head(<<120, Rest/binary>>) -> of_node(Rest, 12);
head(<<90, N:16, Rest/binary>>) -> of_node(Rest, 4 + 4 * N);
head(<<114, N:16, Rest/binary>>) -> of_node(Rest, 1 + 4 * N);
head(<<101, Rest/binary>>) -> of_node(Rest, 5);
%% Of a fun, the module, two integers and a pid come before its free variables.
head(<<112, _:32, _, _:128, _:32, Free:32, Rest/binary>>) -> {4 + Free, Rest};
head(<<113, Rest/binary>>) -> {3, Rest};
head(_) -> throw(badfile).

of_node(Binary, Size) ->
    case head(Binary) of
        {Encoding, Name, <<_:Size/binary, Rest/binary>>} -> {Encoding, Name, Rest};
        _ -> throw(badfile)
    end.

insert(Table, Objects) ->
    try
        true = larder:insert(Table, Objects)
    catch
        error:badarg -> throw(why_not_inserted(larder:info(Table, id)))
    end.

why_not_inserted(undefined) -> cannot_create_table;
why_not_inserted(_Id) -> badfile.

%% Compares the last term with the objects that were read, and checks the items of the first term.
verify({Count, Sum, Items}, #{size := Size} = Header, Verify) ->
    said(md5, Items, erlang:md5_final(Sum)) orelse throw(checksum_error),
    said(count, Items, Count) orelse throw(invalid_object_count),
    Promised = case Header of
                   #{extended_info := Info} when length(Info) > 0 -> Info;
                   #{} -> []
               end,
    [lists:keymember(Item, 1, Items) orelse throw(badfile)
     || {Name, Item} <- [{md5sum, md5}, {object_count, count}], lists:member(Name, Promised)],
    not Verify orelse lists:keymember(count, 1, Items) orelse Size =:= Count
        orelse throw(invalid_object_count).

said(Item, Items, Found) ->
    case lists:keyfind(Item, 1, Items) of
        {Item, Said} -> Said =:= Found;
        false -> true;
        _ -> throw(badfile)
    end.

%% ---- what is in a file ----

%% @doc What is in a file's first term.
-spec info(binary()) -> {ok, [{atom(), term()}]}.
info(Path) ->
    reading(Path, fun(Log) ->
        {Header, _, _} = read_header(Log, erlang:system_info(atom_count) + 1000),
        {ok, [{Item, maps:get(Item, Header)}
              || Item <- [name, type, protection, named_table, keypos, size]] ++
             [{extended_info, maps:get(extended_info, Header, [])},
              {version, {maps:get(major_version, Header, 0),
                         maps:get(minor_version, Header, 0)}}]}
    end).
