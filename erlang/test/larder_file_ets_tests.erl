%% Files of ets:tab2file: read as ets reads them, written for ets, refused when they are damaged.
-module(larder_file_ets_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

-define(INFOS, [[], [object_count], [md5sum], [object_count, md5sum]]).
-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

%% The log server stays when it has been started: that is no leak.
in_folder(Test) ->
    _ = disk_log:all(),
    ?LEAK_FREE(begin
        Folder = larder_test:file("file_ets"),
        ok = filelib:ensure_dir(Folder ++ "/x"),
        try Test(Folder ++ "/file") after file:del_dir_r(Folder) end
    end).

rows(Count) ->
    [{{key, I rem (Count div 2 + 1)}, I, #{I => <<I:600>>}, self(), fun lists:map/2, 1.5 * I}
     || I <- lists:seq(1, Count)].

%% ---- files of ets, and files for ets ----

read_test_() ->
    [{lists:flatten(io_lib:format("~w ~w ~w", [Type, Count, Extended])),
      in_folder(fun(File) -> copied(ets, larder, Type, Count, Extended, [], File) end)}
     || Type <- ?TYPES, Count <- [0, 1, 3000], Extended <- ?INFOS].

%% A file that is replaced while it is read, by one of the other format or of another length.
replaced_test_() ->
    {timeout, 120, in_folder(fun(File) ->
        Tables = [{filled(Count), Format} || Count <- [10, 300], Format <- [larder, ets]],
        Save = fun({T, Format}) -> ok = larder:tab2file(T, File, [{format, Format}]) end,
        lists:foreach(Save, Tables),
        {Saver, Monitor} = spawn_monitor(fun() -> saving(Save, Tables) end),
        [begin
             {ok, T} = larder:file2tab(File),
             true = larder:delete(T),
             {ok, _} = larder:tabfile_info(File)
         end || _ <- lists:seq(1, 300)],
        exit(Saver, kill),
        receive {'DOWN', Monitor, process, Saver, killed} -> ok end,
        [true = larder:delete(T) || {T, _} <- Tables]
    end)}.

filled(Count) ->
    T = larder:new(larder_t_replaced, [public]),
    true = larder:insert(T, rows(Count)),
    T.

saving(Save, Tables) ->
    lists:foreach(Save, Tables),
    saving(Save, Tables).

written_test_() ->
    [{lists:flatten(io_lib:format("~w ~w ~w", [Type, Count, Extended])),
      in_folder(fun(File) ->
          copied(larder, ets, Type, Count, Extended, [{format, ets}], File),
          copied(larder, larder, Type, Count, Extended, [{format, ets}], File)
      end)} || Type <- ?TYPES, Count <- [0, 1, 3000], Extended <- ?INFOS].

copied(From, To, Type, Count, Extended, Format, File) ->
    T = From:new(larder_t_files, [Type, {keypos, 1}, named_table, public, diff_gen:compressed()]),
    true = From:insert(T, rows(Count)),
    ok = From:tab2file(T, File, [{extended_info, Extended} | Format]),
    Objects = From:tab2list(T),
    OfKeys = of_keys(From, T),
    Infos = infos(From, T),
    true = From:delete(T),
    ?assertEqual(ets:tabfile_info(File), larder:tabfile_info(File)),
    [begin
         {ok, larder_t_files} = To:file2tab(File, [{verify, Verify}]),
         ?assertEqual(lists:sort(Objects), lists:sort(To:tab2list(larder_t_files))),
         %% Objects of one key keep their order. (OTP before 25.3 turns lists round. And `ets' may
         %% end each chunk of a file among the objects of a key, whose order is lost then.)
         Others = [K || {K, Objects1, Objects2} <- lists:zip3(lists:seq(1, 1500), OfKeys,
                                                              of_keys(To, larder_t_files)),
                        Objects1 =/= Objects2],
         Chunks = case From of ets -> Count div 100; larder -> 0 end,
         ?assert(To =:= ets orelse length(Others) =< Chunks),
         ?assertEqual(Infos, infos(To, larder_t_files)),
         {error, cannot_create_table} = To:file2tab(File),
         true = To:delete(larder_t_files)
     end || Verify <- [true, false]].

of_keys(Module, T) ->
    [Module:lookup(T, {key, K}) || K <- lists:seq(1, 1500)].

infos(Module, T) ->
    [Module:info(T, Item) || Item <- [name, type, keypos, protection, named_table, compressed, size,
                                      read_concurrency, write_concurrency]].

%% ---- what is written is of one moment, and replaces what was there when it is whole ----

one_moment_test_() ->
    {timeout, 60, in_folder(fun(File) ->
        T = larder:new(t, [public]),
        Keys = lists:seq(1, 20000),
        true = larder:insert(T, [{K, 0} || K <- Keys]),
        Writer = spawn_link(fun() -> all_again(T, Keys, 1) end),
        [begin
             ok = larder:tab2file(T, File, [{format, ets}, {extended_info, [object_count, md5sum]}]),
             {ok, Copy} = larder:file2tab(File, [{verify, true}]),
             ?assertMatch([_], lists:usort([V || {_, V} <- larder:tab2list(Copy)])),
             ?assertEqual(20000, larder:info(Copy, size)),
             true = larder:delete(Copy)
         end || _ <- lists:seq(1, 5)],
        unlink(Writer),
        Monitor = monitor(process, Writer),
        exit(Writer, kill),
        receive {'DOWN', Monitor, _, _, _} -> ok end,
        true = larder:delete(T)
    end)}.

all_again(T, Keys, N) ->
    true = larder:insert(T, [{K, N} || K <- Keys]),
    all_again(T, Keys, N + 1).

sources_test_() ->
    in_folder(fun(File) ->
        T = larder:new(t, [ordered_set]),
        true = larder:insert(T, [{1, a}, {2, b}]),
        S = larder:snapshot(T),
        true = larder:delete(T, 1),
        Written = fun(Source) ->
            ok = larder:tab2file(Source, File, [{format, ets}, {sync, true}]),
            {ok, Copy} = ets:file2tab(File, [{verify, true}]),
            Objects = ets:tab2list(Copy),
            true = ets:delete(Copy),
            Objects
        end,
        ?assertEqual([{1, a}, {2, b}], Written(S)),
        ?assertEqual([{2, b}], Written(T)),
        {atomic, Seen} = larder:transaction([T], fun([X]) -> larder:insert(X, {3, c}), Written(X) end),
        ?assertEqual([{2, b}, {3, c}], Seen),
        {atomic, {ok, Info}} = larder:transaction([T], fun([X]) ->
            ok = larder:tab2file(X, File, [{format, ets}]),
            larder:tabfile_info(File)
        end),
        ?assertEqual({protection, protected}, lists:keyfind(protection, 1, Info)),
        ?assertEqual(false, larder:info(T, safe_fixed)),
        true = larder:release(S),
        true = larder:delete(T),
        [begin
             Other = larder:new(t, [Type, {structure, Name}]),
             true = larder:insert(Other, [{1, a}, {2, b}]),
             ?assertEqual([{1, a}, {2, b}], lists:sort(Written(Other))),
             ?assertEqual(false, larder:info(Other, safe_fixed)),
             true = larder:delete(Other)
         end || #{name := Name, types := [Type | _]} <- larder:structures()]
    end).

%% Long objects aren't all encoded before the first one is written.
long_objects_saved_test_() ->
    {timeout, 60, in_folder(fun(File) ->
        T = larder:new(t, []),
        true = larder:insert(T, [{I, binary:copy(<<I>>, 100_000)} || I <- lists:seq(1, 1000)]),
        true = erlang:garbage_collect(),
        Before = erlang:memory(binary),
        Watcher = spawn_link(fun() -> most(0) end),
        ok = larder:tab2file(T, File, [{format, ets}]),
        Watcher ! {say, self()},
        receive {most, Most} -> ?assert(Most - Before < 50_000_000) end,
        true = larder:delete(T)
    end)}.

most(Most) ->
    Now = max(Most, erlang:memory(binary)),
    receive {say, To} -> To ! {most, Now} after 1 -> most(Now) end.

refused_saves_test_() ->
    in_folder(fun(File) ->
        T = larder:new(t, []),
        Folder = filename:dirname(File),
        Both = [{format, ets}],
        ok = larder:tab2file(T, File, Both),
        {ok, Good} = file:read_file(File),
        %% The name of a folder.
        ok = file:make_dir(File ++ "_folder"),
        ?assertEqual({error, eaccess}, larder:tab2file(T, File ++ "_folder", Both)),
        ?assertEqual({error, {file_error, File ++ "_none/x", enoent}},
                     larder:tab2file(T, File ++ "_none/x", Both)),
        ?assertEqual({error, badtab}, larder:tab2file(no_such_table, File, Both)),
        ?assertEqual({error, {unknown_option, {format, dets}}},
                     larder:tab2file(T, File, [{format, dets}])),
        ?assertEqual({error, {unknown_option, {format, ets}}},
                     larder:tab2file(T, File, [{format, ets}, {format, ets}])),
        true = larder:delete(T),
        %% A table of another, who alone may read it.
        Private = spawn_link(fun() ->
            larder:new(larder_t_private, [private, named_table]),
            receive stop -> ok end
        end),
        wait_for(larder_t_private),
        ?assertError(badarg, larder:tab2file(larder_t_private, File, Both)),
        Monitor = monitor(process, Private),
        Private ! stop,
        receive {'DOWN', Monitor, _, _, _} -> ok end,
        ?assertEqual({ok, Good}, file:read_file(File)),
        ?assertEqual(["file", "file_folder"], lists:sort(element(2, file:list_dir(Folder))))
    end).

wait_for(Name) ->
    case larder:whereis(Name) of
        undefined -> timer:sleep(1), wait_for(Name);
        _ -> ok
    end.

%% ---- tables that others rename or delete meanwhile ----

-define(NOW, larder_t_meanwhile_now).
-define(THEN, larder_t_meanwhile_then).
-define(COUNT, 20000).

%% With another name, a table is saved and loaded all the same. One that is deleted is an error: the
%% file that was there stays, and no part of a table.
meanwhile_test_() ->
    [{lists:flatten(io_lib:format("~w ~w", [Format, Act])),
      {timeout, 60, in_folder(fun(File) ->
          [begin saved_meanwhile(Format, Act, File), loaded_meanwhile(Act, File) end
           || _ <- lists:seq(1, 5)]
      end)}} || Format <- [larder, ets], Act <- [renamed, deleted]].

saved_meanwhile(Format, Act, File) ->
    ?NOW = larder:new(?NOW, [public, named_table]),
    true = larder:insert(?NOW, [{I, <<I:400>>} || I <- lists:seq(1, ?COUNT)]),
    ok = larder:tab2file(?NOW, File, [{format, Format}]),
    Saved = beside(fun() -> length(element(2, file:list_dir(filename:dirname(File)))) > 1 end, Act,
                   fun() -> larder:tab2file(?NOW, File, [{format, Format}]) end),
    ?assert(Saved =:= ok orelse {Saved, Act} =:= {{error, badtab}, deleted}),
    [begin
         ?assertEqual(false, larder:info(Name, fixed)),
         true = larder:delete(Name)
     end || Name <- there()],
    {ok, Info} = larder:tabfile_info(File),
    ?assertEqual({size, ?COUNT}, lists:keyfind(size, 1, Info)).

loaded_meanwhile(Act, File) ->
    Loaded = beside(fun() -> there() =/= [] end, Act, fun() -> larder:file2tab(File) end),
    case {Loaded, Act, [{Name, larder:info(Name, size)} || Name <- there()]} of
        {{ok, _}, renamed, [{Name, ?COUNT}]} -> true = larder:delete(Name);
        {{ok, _}, deleted, []} -> ok;
        %% The other process didn't run in time.
        {{ok, ?NOW}, deleted, [{?NOW, ?COUNT}]} -> true = larder:delete(?NOW);
        {{error, cannot_create_table}, deleted, []} -> ok
    end.

there() -> [Name || Name <- [?NOW, ?THEN], larder:whereis(Name) =/= undefined].

%% Calls `Fun' while another process waits for a condition, and then changes the table.
beside(Condition, Act, Fun) ->
    {Other, Monitor} = spawn_monitor(fun() ->
        wait_until(Condition),
        [case Act of
             renamed -> larder:rename(Name, hd([?NOW, ?THEN] -- [Name]));
             deleted -> true = larder:delete(Name)
         end || Name <- there()]
    end),
    Result = Fun(),
    receive {'DOWN', Monitor, _, _, _} -> ok
    after 100 -> exit(Other, kill), receive {'DOWN', Monitor, _, _, _} -> ok end
    end,
    Result.

wait_until(Condition) -> Condition() orelse wait_until(Condition).

%% ---- damaged files ----

%% Cut at every byte, and with every byte altered, of a file with a sum and a count: an error, and
%% no table. A few bytes of identifiers mean nothing, and the table is the same without them.
cut_and_altered_test_() ->
    [{atom_to_list(Module), {timeout, 120, in_folder(fun(File) ->
        T = Module:new(larder_t_cut, [bag]),
        true = Module:insert(T, [{1, a}, {1, <<1:900>>}, {3, #{x => [1.5, "text"]}}, {4, self()}]),
        ok = Module:tab2file(T, File, [{extended_info, [object_count, md5sum]} | Format]),
        true = Module:delete(T),
        {ok, Whole} = file:read_file(File),
        Size = byte_size(Whole),
        [begin
             ok = file:write_file(File, Bytes),
             [refused(File, Verify) || Verify <- [false, true]],
             %% A new file each time: some file systems wait for the disk where one is written anew.
             ok = file:delete(File)
         end || Bytes <- [binary:part(Whole, 0, N) || N <- lists:seq(0, Size - 1)] ++
                         [altered(Whole, N) || N <- lists:seq(0, Size - 1)] ++
                         [<<Whole/binary, 0>>]]
    end)}} || {Module, Format} <- [{ets, []}, {larder, [{format, ets}]}]].

altered(Whole, N) ->
    <<A:N/binary, Byte, B/binary>> = Whole,
    <<A/binary, (Byte bxor (1 bsl (N rem 8))), B/binary>>.

refused(File, Verify) ->
    case larder:file2tab(File, [{verify, Verify}]) of
        {error, Why} -> ?assert(is_named(Why));
        {ok, Table} ->
            ?assertMatch([{1, a}, {1, <<1:900>>}, {3, #{x := [1.5, "text"]}}, {4, _}],
                         lists:sort(larder:tab2list(Table))),
            true = larder:delete(Table)
    end,
    case larder:tabfile_info(File) of
        {ok, [{name, _} | _]} -> ok;
        {error, Other} -> ?assert(is_named(Other))
    end,
    ?assertEqual([], [T || T <- larder:all(), larder:info(T, name) =:= larder_t_cut]).

is_named({read_error, {not_a_log_file, _}}) -> true;
is_named({unsupported_file_version, _}) -> true;
is_named(Why) ->
    lists:member(Why, [badfile, checksum_error, invalid_object_count, cannot_create_table]).

%% The number of bytes before the term with this number.
after_terms(<<Start:8/binary, Terms/binary>>, Count) ->
    lists:foldl(fun(_, At) ->
                    <<_:At/binary, Size:32, _/binary>> = Terms,
                    At + 8 + Size
                end, 0, lists:seq(1, Count)) + byte_size(Start).

%% Half a file, which ets loads as if it were all, and other files that only look like one.
wrong_files_test_() ->
    in_folder(fun(File) ->
        T = ets:new(t, []),
        true = ets:insert(T, [{I, I} || I <- lists:seq(1, 1000)]),
        ok = ets:tab2file(T, File),
        true = ets:delete(T),
        {ok, Whole} = file:read_file(File),
        ok = file:write_file(File, binary:part(Whole, 0, byte_size(Whole) div 2)),
        {ok, Half} = ets:file2tab(File),
        ?assert(ets:info(Half, size) < 1000),
        ?assertEqual({error, badfile}, larder:file2tab(File)),
        %% Cut after the head of a term.
        ok = file:write_file(File, binary:part(Whole, 0, 8 + after_terms(Whole, 500))),
        ?assertEqual({error, badfile}, larder:file2tab(File)),
        %% Its writer was stopped before the end.
        <<Magic:4/binary, _Closed:4/binary, Rest/binary>> = Whole,
        ok = file:write_file(File, [Magic, 6, 7, 8, 9, Rest]),
        ?assertEqual({error, badfile}, larder:file2tab(File)),
        [begin
             ok = file:delete(File),
             {ok, Log} = disk_log:open([{name, log}, {file, File}]),
             ok = disk_log:log_terms(Log, Terms),
             ok = disk_log:close(Log),
             ?assertEqual({error, Why}, larder:file2tab(File)),
             case Terms of
                 [Header | _] when is_tuple(Header), Why =/= badfile -> ok;
                 _ -> larder:tabfile_info(File)
             end
         end || {Terms, Why} <-
                    [{[], badfile},
                     {[some_term], badfile},
                     {[{{name, t}, {type, set}}], badfile},
                     {[odd({ttl, 1}, public)], cannot_create_table},
                     {[odd(set, {heir, self(), x})], cannot_create_table},
                     {[header([{major_version, 2}, {minor_version, 3}])],
                      {unsupported_file_version, {2, 3}}},
                     {[header([]), not_an_object], badfile},
                     {[header([]), {}], badfile},
                     {[header([{extended_info, [md5sum]}]), {1}], badfile},
                     {[header([{extended_info, [object_count]}]), {1},
                       ['$end_of_table', [{count, 2}]]], invalid_object_count},
                     {[header([]), {1}, ['$end_of_table', [{count, 1, 1}]]], badfile},
                     {[header([]), {1}, ['$end_of_table', [{md5}]]], badfile},
                     {[header([{extended_info, [md5sum]}]), {1},
                       ['$end_of_table', [{md5, <<0:128>>}]]], checksum_error},
                     {[header([]), {1}, ['$end_of_table', [{count}]]], badfile},
                     {[header([]), {1}, ['$end_of_table', [{md5, <<0:128>>, x}]]], badfile},
                     {[odd(tree, public)], cannot_create_table}]]
    end).

%% disk_log takes names that are characters. Others are refused by an error of `ets', where the
%% system has them.
raw_names_test_() ->
    in_folder(fun(File) ->
        T = ets:new(t, []),
        ok = ets:tab2file(T, File),
        true = ets:delete(T),
        Raw = <<(list_to_binary(File))/binary, 255>>,
        case file:native_name_encoding() =:= utf8 andalso file:rename(File, Raw) of
            ok ->
                Refused = {error, {read_error, {file_error, Raw, einval}}},
                ?assertEqual(Refused, larder:file2tab(Raw)),
                ?assertEqual(Refused, larder:tabfile_info(Raw)),
                ok = file:delete(Raw);
            _ ->
                ok
        end
    end).

odd(Type, Protection) ->
    {{name, t}, {type, Type}, {protection, Protection}, {named_table, false}, {keypos, 1},
     {size, 0}}.

header(Items) ->
    list_to_tuple([{name, t}, {type, set}, {protection, public}, {named_table, false}, {keypos, 1},
                   {size, 1} | Items]).

%% The number of objects that the header has may be wrong, if others wrote meanwhile.
count_of_the_header_test_() ->
    in_folder(fun(File) ->
        {ok, Log} = disk_log:open([{name, log}, {file, File}]),
        ok = disk_log:log_terms(Log, [header([]), {1, a}, {2, b}]),
        ok = disk_log:close(Log),
        [begin
             {ok, T} = Module:file2tab(File),
             ?assertEqual(2, Module:info(T, size)),
             true = Module:delete(T),
             ?assertEqual({error, invalid_object_count}, Module:file2tab(File, [{verify, true}]))
         end || Module <- [ets, larder]]
    end).

%% One new atom in an object that is so long that it could have more than a node has room for.
long_objects_test_() ->
    [{lists:flatten(io_lib:format("~w", [Options])), in_folder(fun(File) ->
        Size = 2 * (erlang:system_info(atom_limit) - erlang:system_info(atom_count)),
        Terms = [self(), make_ref(), hd(erlang:ports()), fun lists:map/2, fun() -> Size end, 1.5,
                 1 bsl 80, -(1 bsl 3000), [a | b], "text", <<5:3>>, #{a => [x]}, 300, {}, '\x{e4}',
                 list_to_tuple(lists:seq(1, 300))],
        Object = {1, Terms, <<0:Size/unit:8>>, larder_t_name_1},
        Written = term_to_binary(Object, Options),
        ?assertEqual(Object, binary_to_term(Written)),
        %% This test must not make the atom, so it alters the bytes.
        New = <<"larder_t_name_", ($2 + length(Options))>>,
        Altered = case Options of
                      [] -> renamed(Written, New);
                      [compressed] ->
                          <<131, 80, Plain:32, Compressed/binary>> = Written,
                          [131, 80, <<Plain:32>>,
                           zlib:compress(renamed(zlib:uncompress(Compressed), New))]
                  end,
        ?assertError(badarg, binary_to_existing_atom(New)),
        {ok, Log} = disk_log:open([{name, log}, {file, File}]),
        ok = disk_log:log(Log, header([])),
        ok = disk_log:blog(Log, iolist_to_binary(Altered)),
        ok = disk_log:close(Log),
        {ok, T} = larder:file2tab(File),
        [{1, Read, <<0:Size/unit:8>>, Name}] = larder:lookup(T, 1),
        ?assertEqual({Terms, New}, {Read, atom_to_binary(Name)}),
        true = larder:delete(T)
    end)} || Options <- [[], [compressed]]].

renamed(Bytes, New) -> binary:replace(Bytes, <<"larder_t_name_1">>, New).
