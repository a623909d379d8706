%% @doc Files that end early or were altered, disks that are full, modules that are loaded again
%% while tables live, memory that there isn't.
-module(fault_tests).

-export([cut_and_altered_files_test_/0, full_disk_test_/0, file_too_large_test_/0,
         no_folder_test_/0, slash_test_/0, no_descriptors_test_/0,
         modules_loaded_again_test_/0, replaced_library_test_/0, removed_and_loaded_again_test_/0,
         absurd_sizes_test_/0]).

%% Files ------------------------------------------------------------------------------------------

%% Cut at every byte, and with every byte altered: one of the errors that larder_file names, and no
%% table.
cut_and_altered_files_test_() ->
    [larder_test:tc(lists:concat(["files cut and altered, ", Type, " ", Title]), 120, larder,
                    fun() ->
        in_folder(fun(Dir) -> every_cut(Dir, [Type | Options]) end)
     end) || larder_test:sut() =:= larder,
             {Type, Title, Options} <- [{set, "", []}, {ordered_set, "compressed", [compressed]},
                                        {bag, "named", [named_table]},
                                        {duplicate_bag, "", []}]].

every_cut(Dir, Options) ->
    File = filename:join(Dir, "whole"),
    Cut = filename:join(Dir, "cut"),
    T = larder:new(fault_file, Options),
    true = larder:insert(T,
                         [{1, a}, {2, <<1:900>>}, {3, #{x => [1.5, "text"]}},
                          {4, self(), make_ref()}]),
    ok = larder:tab2file(T, File, [{extended_info, [object_count, md5sum]}]),
    true = larder:delete(T),
    {ok, Whole} = file:read_file(File),
    Size = byte_size(Whole),
    [begin
         ok = file:write_file(Cut, Bytes),
         [refused(Cut, Options, Verify) || Verify <- [false, true]],
         %% A new file each time: some file systems wait for the disk where one is written anew.
         ok = file:delete(Cut)
     end || Bytes <- [binary:part(Whole, 0, N) || N <- lists:seq(0, Size - 1)]
                     ++ [altered(Whole, N) || N <- lists:seq(0, Size - 1)]
                     ++ [<<Whole/binary, 0>>]],
    ok = file:write_file(Cut, Whole),
    {ok, Again} = larder:file2tab(Cut),
    4 = larder:info(Again, size),
    true = larder:delete(Again).

altered(Whole, N) ->
    <<A:N/binary, Byte, B/binary>> = Whole,
    <<A/binary, (Byte bxor (1 bsl (N rem 8))), B/binary>>.

refused(File, Options, Verify) ->
    {error, Why} = larder:file2tab(File, [{verify, Verify}]),
    true = named(Why),
    case larder:tabfile_info(File) of
        {ok, [{name, fault_file} | _]} -> ok;
        {error, Other} -> true = named(Other)
    end,
    [] = [T || T <- larder:all(), larder:info(T, name) =:= fault_file],
    lists:member(named_table, Options) andalso (undefined = larder:whereis(fault_file)).

named({read_error, {not_a_log_file, _}}) -> true;
named({unsupported_file_version, _}) -> true;
named(Why) -> lists:member(Why, [badfile, checksum_error, invalid_object_count]).

in_folder(Fun) ->
    Dir = larder_test:file("faults"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try Fun(Dir) after file:del_dir_r(Dir) end.

%% A disk of 256 KiB, where the system lets us mount one.
full_disk_test_() ->
    [larder_test:tc("a full disk", 60, larder, fun() ->
        in_folder(fun(Dir) ->
            case os:cmd("mount -t tmpfs -o size=256k larder_fault " ++ Dir ++ " && echo mounted") of
                "mounted\n" ->
                    try save_until_full(Dir) after os:cmd("umount " ++ Dir) end;
                Why ->
                    io:format(user, "    not tried: no small disk can be mounted here (~ts); "
                                    "file_too_large_test_ tries a limit instead~n",
                                    [string:trim(Why)])
            end
        end)
     end) || larder_test:sut() =:= larder].

save_until_full(Dir) ->
    File = filename:join(Dir, "table"),
    Small = larder:new(small, []),
    true = larder:insert(Small, [{K, K} || K <- lists:seq(1, 100)]),
    ok = larder:tab2file(Small, File),
    Large = larder:new(large, []),
    true = larder:insert(Large, [{K, rand:bytes(100)} || K <- lists:seq(1, 10000)]),
    {error, {file_error, File, enospc}} = larder:tab2file(Large, File),
    {error, {file_error, File, enospc}} = larder:tab2file(Large, File, [{sync, true}]),
    left_as_it_was(Dir, File),
    [true = larder:delete(T) || T <- [Small, Large]].

%% The good file is there, and nothing beside it.
left_as_it_was(Dir, File) ->
    {ok, [Name]} = file:list_dir(Dir),
    Name = filename:basename(File),
    {ok, T} = larder:file2tab(File, [{verify, true}]),
    100 = larder:info(T, size),
    true = larder:delete(T).

%% A limit on the size of files, in a node of its own. For files of `ets' it is so small that the
%% end of the file, which disk_log writes when it closes, is the first that is beyond it.
file_too_large_test_() ->
    %% The log server stays when it has been started: that is no leak.
    _ = disk_log:all(),
    [larder_test:tc(lists:concat(["a file beyond the limit, ", Format]), 60, larder, fun() ->
        in_folder(fun(Dir) ->
            "{error,{file_error,\"table\",efbig}}" = in_a_node(
                Dir, lists:concat(["trap '' XFSZ; ulimit -f ", Limit, "; "]),
                filename:absname(filename:dirname(code:which(larder))),
                lists:concat([
                    "O = [{format, ", Format, "}], "
                    "T = larder:new(t, []), larder:insert(T, [{K, K} || K <- lists:seq(1, 100)]), "
                    "ok = larder:tab2file(T, \"table\", O), "
                    "larder:insert(T, [{K, lists:seq(1, 100)} || K <- lists:seq(1, ", Rows, ")]), "
                    "io:format(\"~p\", [larder:tab2file(T, \"table\", O)])"])),
            left_as_it_was(Dir, filename:join(Dir, "table"))
        end)
     end) || larder_test:sut() =:= larder,
             {Format, Limit, Rows} <- [{larder, 64, 5000}, {ets, 64, 5000}, {ets, 16, 300}]].

%% Evaluates an expression in another node and gives what it printed.
in_a_node(Dir, Before, Ebin, Expression) ->
    Name = filename:join(Dir, "expression"),
    ok = file:write_file(Name, [Expression, ".\n"]),
    Said = os:cmd(lists:flatten([
        "cd ", Dir, "; bash -c \"", Before, "exec erl -noinput -boot start_clean -pa ", Ebin,
        " -eval 'file:eval(\\\"expression\\\"), halt(0, [{flush, true}]).'\" 2>&1"])),
    ok = file:delete(Name),
    Said.

no_folder_test_() ->
    [larder_test:tc("nowhere to write", 30, larder, fun() ->
        in_folder(fun(Dir) ->
            T = larder:new(t, []),
            Missing = filename:join([Dir, "missing", "table"]),
            {error, {file_error, Missing, enoent}} = larder:tab2file(T, Missing),
            {error, eaccess} = larder:tab2file(T, Dir),
            ok = file:write_file(filename:join(Dir, "file"), ""),
            Under = filename:join([Dir, "file", "table"]),
            {error, eaccess} = larder:tab2file(T, Under),
            {ok, ["file"]} = file:list_dir(Dir),
            %% A file that even root can't replace, and folders that can't be replaced.
            Fixed = [File || File <- ["/sys/kernel/uevent_seqnum"], filelib:is_regular(File)],
            [{error, eaccess} = larder:tab2file(T, Name, [{format, Format}])
             || Name <- ["/", Dir ++ "/.." | Fixed], Format <- [larder, ets]],
            ok = file:make_symlink("loop", filename:join(Dir, "loop")),
            Loop = filename:join(Dir, "loop"),
            {error, {read_error, {file_error, Loop, eloop}}} = larder:file2tab(Loop),
            {error, eaccess} = larder:tab2file(T, filename:join(Loop, "table")),
            true = larder:delete(T)
        end)
     end) || larder_test:sut() =:= larder].

%% The name of a folder isn't that of the file without the slash.
slash_test_() ->
    [larder_test:tc("a name with a slash at its end", 30, larder, fun() ->
        in_folder(fun(Dir) ->
            T = larder:new(t, []),
            File = filename:join(Dir, "file"),
            ok = larder:tab2file(T, File),
            Before = file:read_file(File),
            true = larder:insert(T, {1}),
            [begin
                 {error, _} = larder:tab2file(T, Name, [{format, Format}]),
                 {error, {read_error, {file_error, Name, _}}} = larder:file2tab(Name),
                 {error, {read_error, {file_error, Name, _}}} = larder:tabfile_info(Name)
             end || Name <- [File ++ "/", File ++ "//", Dir ++ "/none/", Dir ++ "/", "/",
                             list_to_binary(File ++ "/")], Format <- [larder, ets]],
            %% As in ets.
            None = Dir ++ "/none/",
            [{error, {file_error, None, eisdir}} = larder:tab2file(T, None, [{format, Format}])
             || Format <- [larder, ets]],
            {ok, ["file"]} = file:list_dir(Dir),
            Before = file:read_file(File),
            true = larder:delete(T)
        end)
     end) || larder_test:sut() =:= larder].

%% In a node of its own that may open no more files, or one: then a file can be written, and its
%% folder can't be opened, which `sync' asks for.
no_descriptors_test_() ->
    Ebin = filename:absname(filename:dirname(code:which(larder))),
    [larder_test:tc("no more open files", 60, larder, fun() ->
        in_folder(fun(Dir) ->
            Failed = "{error,{file_error,table,emfile}}",
            Said = in_a_node(Dir, "ulimit -n 128; ", Ebin,
                "T = larder:new(t, []), larder:insert(T, [{K, K} || K <- lists:seq(1, 100)]), "
                "Save = fun(Sync) -> larder:tab2file(T, table, [{sync, Sync}]) end, "
                "ok = Save(true), larder:insert(T, {more, 1}), _ = io_lib:format(\"~w\", [x]), "
                "Fill = fun(Fill, Fs) -> case file:open(\"/dev/null\", [read, raw]) of "
                "{ok, F} -> Fill(Fill, [F | Fs]); {error, emfile} -> Fs end end, "
                "[One | More] = Fill(Fill, []), "
                "None = {Save(false), larder:file2tab(table)}, file:close(One), Last = Save(true), "
                "[file:close(F) || F <- More], io:format(\"~w~w\", [None, Last])"),
            Said = lists:concat(["{", Failed, ",{error,{read_error,{file_error,table,emfile}}}}",
                                 Failed]),
            left_as_it_was(Dir, filename:join(Dir, "table"))
        end)
     end) || larder_test:sut() =:= larder].

%% Modules that are loaded again -------------------------------------------------------------------

%% While others read, write and scan, every module is purged and loaded again, over and over;
%% tables, ids, continuations and compiled specifications are those of before.
modules_loaded_again_test_() ->
    [larder_test:tc("modules are loaded again under a load", 120, larder, fun loaded_again/0)
     || larder_test:sut() =:= larder].

loaded_again() ->
    Named = larder:new(fault_reload, [named_table, public, ordered_set]),
    T = larder:new(t, [public]),
    Rows = [{K, K} || K <- lists:seq(1, 20000)],
    [true = larder:insert(Tab, Rows) || Tab <- [Named, T]],
    {_, Continuation} = larder:select(Named, [{{'$1', '_'}, [], ['$1']}], 100),
    Compiled = larder:match_spec_compile([{{'$1', '_'}, [], ['$1']}]),
    Blob = binary:copy(<<"x">>, 1000),
    true = larder:insert(T, {blob, Blob}),
    [{blob, Kept}] = larder:lookup(T, blob),
    Workers = [spawn_monitor(fun() -> work(T, Named, 0) end) || _ <- lists:seq(1, 4)],
    Told = larder:new(t, []),
    Feed = larder:subscribe(Told, all, #{}),
    [begin
         load_again(Module, Round),
         %% Purged, too: a process that waited in the old code would be killed.
         Module =:= larder_feed andalso code:purge(larder_feed),
         true = larder:insert(Told, {{Module, Round}}),
         receive {larder, Feed, _, {insert, {{Module, Round}}}} -> ok end
     end || Round <- lists:seq(1, larder_test:scaled(4)), Module <- modules()],
    true = larder:delete(Told),
    {Again, _} = larder:select(Continuation),
    true = Again =:= lists:seq(101, 200),
    [7] = larder:match_spec_run([{7, 8}], Compiled),
    true = larder:is_compiled_ms(Compiled),
    Blob = Kept,
    20000 = larder:info(Named, size),
    true = lists:member(T, larder:all()),
    [{7, 7}] = larder:lookup(T, 7),
    %% Whoever waits in old code would be killed by a purge: workers may be, tables not.
    [begin
         P ! stop,
         receive {'DOWN', Mon, process, P, Why} -> true = element(1, Why) =:= worked
                 andalso element(2, Why) > 0 end
     end || {P, Mon} <- Workers],
    %% Owners are still noticed when they go.
    {Owner, Gone} = spawn_monitor(fun() -> larder:new(fault_reload_owner, [named_table]) end),
    receive {'DOWN', Gone, process, Owner, normal} -> ok end,
    undefined = larder:whereis(fault_reload_owner),
    [true = larder:delete(Tab) || Tab <- [Named, T]].

modules() -> [larder_nif, larder, larder_fold, larder_file, larder_info, larder_feed].

load_again(Module, Round) ->
    true = larder_test:wait_until(fun() -> code:soft_purge(Module) end),
    case Round rem 2 of
        0 -> {module, Module} = code:load_file(Module);
        1 ->
            {Module, Code, File} = code:get_object_code(Module),
            {module, Module} = code:load_binary(Module, File, Code)
    end.

work(T, Named, N) ->
    %% Each has worked once at least, however quickly the modules are loaded.
    receive stop when N > 0 -> exit({worked, N})
    after 0 ->
        20000 = larder:select_count(Named, [{'_', [], [true]}]),
        K = 1 + N rem 1000,
        [{K, K}] = larder:lookup(T, K),
        true = larder:insert(T, {{self(), N}, N}),
        true = larder:delete(T, {self(), N}),
        20000 = larder:foldl(fun(_, Sum) -> Sum + 1 end, 0, Named),
        true = larder:insert(Named, [{I, I} || I <- lists:seq(1, 300)]),
        work(T, Named, N + 1)
    end.

%% The library is replaced on disk, as an upgrade of the application does it, and the module loaded
%% again: the node goes on with the library that it has, and its tables.
replaced_library_test_() ->
    [larder_test:tc("the library is replaced on disk", 60, larder, fun() ->
        in_folder(fun(Dir) ->
            Ebin = filename:dirname(code:which(larder_nif)),
            Library = filename:join([Dir, "priv", "larder_nif.so"]),
            [ok = filelib:ensure_dir(filename:join([Dir, Sub, "x"])) || Sub <- ["ebin", "priv"]],
            [{ok, _} = file:copy(Beam, filename:join([Dir, "ebin", filename:basename(Beam)]))
             || Beam <- filelib:wildcard(filename:join(Ebin, "*.beam"))],
            [{ok, _} = file:copy(filename:join([Ebin, "..", "priv", "larder_nif.so"]), Name)
             || Name <- [Library, Library ++ ".new"]],
            "{[{a,1}],true,2}" = in_a_node(Dir, "", filename:join(Dir, "ebin"),
                "T = larder:new(t, []), larder:insert(T, {a, 1}), "
                "ok = file:rename(\"priv/larder_nif.so.new\", \"priv/larder_nif.so\"), "
                "{module, larder_nif} = code:load_file(larder_nif), "
                "io:format(\"~w\", [{larder:lookup(T, a), larder:insert(T, {b, 2}), larder:info(T, size)}])")
        end)
     end) || larder_test:sut() =:= larder].

%% A module that was deleted and purged before it is loaded again is the one case in which ids are
%% lost: the emulator forgets what the references of the old module's tables are. They are badarg;
%% named tables are whole, and the node lives.
removed_and_loaded_again_test_() ->
    [larder_test:tc("the module is removed, then loaded", 60, larder, fun() ->
        in_folder(fun(Dir) ->
            "{badarg,[{7,{7}}],1001,[n],[n]}" =
                in_a_node(Dir, "", filename:absname(filename:dirname(code:which(larder))),
                "T = larder:new(t, []), larder:insert(T, {a, binary:copy(<<1>>, 1000)}), [{a, B}] = larder:lookup(T, a), "
                "N = larder:new(n, [named_table]), larder:insert(N, [{K, {K}} || K <- lists:seq(1, 1000)]), "
                "true = code:delete(larder_nif), code:purge(larder_nif), {module, _} = code:load_file(larder_nif), "
                "R = try larder:lookup(T, a) catch error:Why -> Why end, larder:insert(N, {B, 1}), "
                "{P, M} = spawn_monitor(fun() -> larder:new(x, [named_table]) end), "
                "receive {'DOWN', M, process, P, normal} -> ok end, "
                "io:format(\"~w\", [{R, larder:lookup(N, 7), larder:info(N, size), [n || lists:member(n, larder:all())], "
                "[X || X <- [n, x], larder:whereis(X) =/= undefined]}])")
        end)
     end) || larder_test:sut() =:= larder].

%% Memory ------------------------------------------------------------------------------------------

%% Numbers that would ask for more memory than there is are answered at once, and nothing is set
%% aside for them.
absurd_sizes_test_() ->
    [larder_test:tc("absurd sizes", 60, larder, fun() ->
        Huge = [1 bsl 27, 1 bsl 31, 1 bsl 32, 1 bsl 40, 1 bsl 58, 1 bsl 59 - 1, 1 bsl 64],
        [begin
             T = larder:new(t, [Type]),
             true = larder:insert(T, [{K, K} || K <- lists:seq(1, 10)]),
             {All, _} = some(larder:select(T, [{'_', [], ['$_']}], 1 bsl 58)),
             10 = length(All),
             [begin
                  _ = (catch larder:select(T, [{'_', [], ['$_']}], N)),
                  _ = (catch larder:slot(T, N)),
                  _ = (catch larder:lookup_element(T, 1, N)),
                  _ = (catch larder:update_element(T, 1, {N, x})),
                  _ = (catch larder:update_counter(T, 1, {N, 1}))
              end || N <- Huge],
             10 = larder:info(T, size),
             true = larder:delete(T)
         end || Type <- [set, ordered_set, bag, duplicate_bag]],
        [new_with(Option) || N <- Huge, Option <- [{keypos, N} | structure_options(N)]]
     end) || larder_test:sut() =:= larder].

some({Found, Continuation}) -> {Found, Continuation};
some('$end_of_table') -> {[], '$end_of_table'}.

structure_options(N) ->
    [{structure, {Name, [{Option, N}]}}
     || #{name := Name, options := Options} <- larder:structures(),
        {Option, #{default := Default}} <- maps:to_list(Options), is_integer(Default)].

new_with(Option) ->
    try larder:new(t, [public, Option]) of
        T ->
            true = larder:info(T, memory) < 1 bsl 24,
            true = larder:delete(T)
    catch error:badarg -> refused
    end.
