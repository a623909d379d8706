%% @private
%% @doc tab2file, file2tab and tabfile_info, with the options and errors of `ets', for files of
%% Larder and of `ets'.
%%
%% All parts of a file of Larder have checksums. The file names its version. Errors are those of
%% `ets':
%%
%% <ul>
%% <li>`{read_error, {file_error, File, Posix}}': it can't be read;</li>
%% <li>`{read_error, {not_a_log_file, File}}': it is neither a file of Larder nor of `ets';</li>
%% <li>`{unsupported_file_version, Version}': a later Larder wrote it;</li>
%% <li>`badfile': it is cut short;</li>
%% <li>`checksum_error': it was altered;</li>
%% <li>`invalid_object_count': objects are missing;</li>
%% <li>`cannot_create_table': there is a table of that name, or the file asks for one
%%     that can't be made here;</li>
%% <li>`system_limit': it has more new atoms than half of those that the node can still
%%     create.</li>
%% </ul>
-module(larder_file).

-export([save/3, load/2, info/1]).

-include_lib("kernel/include/file.hrl").

%% How often a file is read that others replace meanwhile.
-define(TRIES, 100).

%% ---- tab2file ----

%% @doc Writes the table to a file of another name first, so that a write that
%% fails leaves what was there.
-spec save(larder:table(), file:name(), [term()]) -> ok | {error, term()}.
save(Table, File, Options) ->
    try
        %% If the table isn't there, and the options or the name are wrong, too.
        _ = larder_release:names_table_first() andalso defined(larder:info(Table, id)),
        {Format, Sync, Extended} = save_options(Options, {unsaid, unsaid, unsaid}),
        Path = path(File, eaccess),
        %% By its id: its name may become that of another table meanwhile.
        Id = defined(larder:info(Table, id)),
        %% The objects of a snapshot are counted here, in slices. The number is in the header.
        _ = defined(larder:info(Id, size)),
        while_there(Id, fun() ->
            case Format of
                larder -> save(Id, Path, Sync, Extended, File);
                ets -> larder_file_ets:save(Id, Path, Sync, Extended)
            end
        end)
    catch
        throw:{io, Posix} -> {error, unwritten(Posix, File)};
        throw:Why -> {error, Why}
    end.

save(Table, Path, Sync, Extended, File) ->
    true = larder:safe_fixtable(Table, true),
    try
        written(larder_nif:save(Table, Path, Sync, term_to_binary(Extended)), File)
    after
        larder_file_ets:unfix(Table)
    end.

defined(undefined) -> throw(badtab);
defined(Id) -> Id.

%% A call fails in several ways when the table is deleted meanwhile.
while_there(Table, Call) ->
    try
        Call()
    catch
        error:Why:Stack ->
            _ = defined(larder:info(Table, id)),
            erlang:raise(error, Why, Stack)
    end.

written(ok, _File) -> ok;
written({error, {io, Posix}}, File) -> throw(unwritten(Posix, File)).

%% What is there can't be replaced, or the name can't be that of a file. If nothing is there, it is
%% the name of a folder: it ends with a slash.
unwritten(Posix, File) when Posix =:= eisdir; Posix =:= enotdir; Posix =:= eloop;
Posix =:= enametoolong; Posix =:= eacces; Posix =:= eperm; Posix =:= ebusy; Posix =:= erofs ->
    case file:read_file_info(File) of
        {error, enoent} when Posix =:= enotdir -> {file_error, File, eisdir};
        {error, enoent} -> {file_error, File, Posix};
        _ -> eaccess
    end;
unwritten(Posix, File) -> {file_error, File, Posix}.

%% `format' and `extended_info' may be given once; a second one is refused like an unknown option.
%% `sync' is true if any of several is.
save_options([], {Format, Sync, Extended}) ->
    {said(Format, larder), said(Sync, false), said(Extended, [])};
save_options([{format, Format} | Options], {unsaid, Sync, Extended})
  when Format =:= larder; Format =:= ets ->
    save_options(Options, {Format, Sync, Extended});
save_options([{sync, Sync} | Options], {Format, Synced, Extended}) when is_boolean(Sync) ->
    save_options(Options, {Format, Synced =:= true orelse Sync, Extended});
save_options([{extended_info, Items} | Options], {Format, Sync, unsaid}) ->
    Given = extended_items(Items),
    Extended = [Item || Item <- [object_count, md5sum], lists:member(Item, Given)],
    save_options(Options, {Format, Sync, Extended});
save_options([Option | _], _) ->
    throw({unknown_option, Option});
save_options(Other, _) ->
    throw({malformed_option, Other}).

said(unsaid, Usual) -> Usual;
said(Said, _Usual) -> Said.

extended_items([]) -> [];
extended_items([Item | Items]) when Item =:= object_count;
Item =:= md5sum -> [Item | extended_items(Items)];
extended_items([Item | _]) -> throw({unknown_option, [{extended_info, [Item]}]});
extended_items(Other) -> throw({malformed_option, Other}).

%% ---- file2tab ----

%% @doc Creates a table from a file of Larder or of `ets'. Checksums are always verified. With
%% `{verify, true}' the whole file is verified before the table is created.
-spec load(file:name(), term()) -> {ok, larder:table()} | {error, term()}.
load(File, Options) ->
    try
        Verify = verify(Options),
        Path = path(File, unopened(File)),
        of_one_file(Path, fun() -> load(File, Path, Verify) end)
    catch
        throw:{io, _} = Why -> {error, unreadable(Why, File)};
        throw:Why -> {error, Why}
    end.

load(File, Path, Verify) ->
    case larder_nif:load_table(Path, Verify, new_atoms()) of
        {error, {not_larder, NewAtoms}} ->
            larder_file_ets:is_one(Path) orelse throw(unreadable(not_larder, File)),
            larder_file_ets:load(Path, Verify, NewAtoms);
        Result ->
            loaded(Result, File)
    end.

%% A file of `ets' is opened several times. If another file gets its name meanwhile, by a save, what
%% was read is of both. Then the new one is read.
of_one_file(Path, Read) ->
    of_one_file(Path, Read, ?TRIES).

of_one_file(Path, Read, Tries) ->
    %% No other file gets its number while it is open.
    Opened = file:open(Path, [read, raw, binary]),
    Outcome =
        try
            {ok, Read()}
        catch
            throw:Why -> {refused, Why, is_replaced(Path, Opened)}
        after
            [file:close(Device) || {ok, Device} <- [Opened]]
        end,
    case Outcome of
        {ok, Result} -> Result;
        {refused, _, true} when Tries > 1 -> of_one_file(Path, Read, Tries - 1);
        {refused, Reason, _} -> throw(Reason)
    end.

%% Whether the name is another file's than the one that was opened by it.
is_replaced(Path, {ok, Device}) -> number(Device) =/= number(Path);
is_replaced(_, {error, _}) -> false.

number(File) ->
    case file:read_file_info(File, [raw]) of
        {ok, #file_info{major_device = Disk, inode = Inode}} -> {Disk, Inode};
        {error, _} = Error -> Error
    end.

loaded({ok, _} = Result, _File) -> Result;
loaded({error, already_exists}, _File) -> throw(cannot_create_table);
loaded({error, Why}, File) -> throw(unreadable(Why, File)).

%% How many new atoms a file may have, if the emulator knows those of all earlier files. Atoms are
%% never freed, and a node that exceeds its limit of atoms ends. The emulator rounds the limit up,
%% so the count can exceed the limit that it reports.
new_atoms() ->
    max(0, erlang:system_info(atom_limit) - erlang:system_info(atom_count)) div 2.

verify(Options) ->
    verify(Options, false).

verify([], Verify) -> Verify;
verify([{verify, Verify} | Options], _) when is_boolean(Verify) -> verify(Options, Verify);
verify([Option | _], _) -> throw({unknown_option, Option});
verify(Other, _) -> throw({malformed_option, Other}).

%% ---- tabfile_info ----

%% @doc Returns what the file's header contains.
-spec info(file:name()) -> {ok, [{atom(), term()}]} | {error, term()}.
info(File) ->
    try
        Path = path(File, unopened(File)),
        of_one_file(Path, fun() -> info(File, Path) end)
    catch
        throw:{io, _} = Why -> {error, unreadable(Why, File)};
        throw:Why -> {error, Why}
    end.

info(File, Path) ->
    case larder_nif:file_header(Path) of
        {error, not_larder} ->
            larder_file_ets:is_one(Path) orelse throw(unreadable(not_larder, File)),
            larder_file_ets:info(Path);
        Header ->
            described(Header, File)
    end.

described({ok, {Name, Type, Protection, Named, Keypos, Objects, Extended, Version}}, _File) ->
    {ok, [{name, Name},
          {type, Type},
          {protection, Protection},
          {named_table, Named},
          {keypos, Keypos},
          {size, Objects},
          {extended_info, extended_info(Extended)},
          {version, {Version, 0}}]};
described({error, Why}, File) ->
    throw(unreadable(Why, File)).

%% The items that save/3 writes. Other bytes of a file aren't decoded, because decoding arbitrary
%% terms isn't safe.
extended_info(Bytes) ->
    [Item || Item <- [object_count, md5sum], binary:match(Bytes, atom_to_binary(Item)) =/= nomatch].

unreadable({io, Posix}, File) -> {read_error, {file_error, File, Posix}};
unreadable(not_larder, File) -> {read_error, {not_a_log_file, File}};
unreadable({newer_version, Version}, _File) -> {unsupported_file_version, {Version, 0}};
unreadable(cut_short, _File) -> badfile;
unreadable(damaged, _File) -> checksum_error;
unreadable(count, _File) -> invalid_object_count;
unreadable(system_limit, _File) -> system_limit.

%% The error for an argument that can't be a file name.
unopened(File) when is_list(File); is_atom(File); is_binary(File) ->
    {read_error, {file_error, File, badarg}};
unopened(File) ->
    {read_error, {badarg, [{file, File}, {mode, read_only}]}}.

%% The absolute name, in the encoding of the file system.
path(File, Otherwise) ->
    case name(fun() -> filename:flatten(File) end, File, Otherwise) of
        %% No file has the empty name.
        Flat when Flat =:= []; Flat =:= <<>> -> throw(refused(Otherwise, File, enoent));
        Flat ->
            Name = native(name(fun() -> filename:absname(Flat) end, File, Otherwise), Otherwise),
            with_slash(last(Flat), last(Name), Name)
    end.

%% A name with a slash at its end is that of a folder, also if there is a file without the slash.
with_slash($/, Last, Name) when Last =/= $/ -> <<Name/binary, $/>>;
with_slash(_, _, Name) -> Name.

last(Name) when is_binary(Name) -> binary:last(Name);
last(Name) -> lists:last(Name).

%% The name that `Make' returns. It fails if the argument isn't a name, or if the name is relative
%% and the current directory no longer exists.
name(Make, File, Otherwise) ->
    try
        Make()
    catch
        error:{badmatch, {error, Posix}} -> throw(refused(Otherwise, File, Posix));
        error:_ -> throw(Otherwise)
    end.

%% The error for a name that the system refuses.
refused({read_error, {file_error, File, badarg}}, _, Posix) ->
    {read_error, {file_error, File, Posix}};
refused(eaccess, File, Posix) -> {file_error, File, Posix}.

native(Name, Otherwise) ->
    Native = case is_binary(Name) of
                 true -> Name;
                 false -> encoded(Name)
             end,
    case is_binary(Native) andalso binary:match(Native, <<0>>) =:= nomatch of
        true -> Native;
        false -> throw(Otherwise)
    end.

%% Some lists that are no names are an exception.
encoded(Name) ->
    try
        unicode:characters_to_binary(Name, unicode, file:native_name_encoding())
    catch
        error:badarg -> error
    end.
