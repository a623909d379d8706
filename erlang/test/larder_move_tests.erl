%% Compiled programs that are moved from ets to Larder: small ones made here, and Mnesia.
-module(larder_move_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-define(IN_FOLDER(Test), {timeout, 300, fun() -> in_folder(fun Test/1) end}).

in_folder(Test) ->
    Folder = larder_test:file("move"),
    try
        Test(Folder)
    after
        file:del_dir_r(Folder)
    end.

%% Compiles sources into the application's ebin, and says where that is.
application(Folder, Name, Sources) ->
    application(Folder, Name, Sources, [debug_info]).

application(Folder, Name, Sources, Options) ->
    Ebin = filename:join([Folder, Name, "ebin"]),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    [begin
         {ok, Module, Beam} = compile:forms(forms(Source), [{source, "/src/of.erl"} | Options]),
         ok = file:write_file(filename:join(Ebin, atom_to_list(Module) ++ ".beam"), Beam)
     end || Source <- Sources],
    Ebin.

forms(Source) ->
    [begin
         {ok, Tokens, _} = erl_scan:string(Form),
         {ok, Parsed} = erl_parse:parse_form(Tokens),
         Parsed
     end || Form <- Source].

counter() ->
    ["-module(larder_m_counter).", "-export([run/0, start/0, up/0, where/1]).",
     "run() -> Self = self(), spawn(fun() -> Self ! start(), receive stop -> ok end end),"
     " receive larder_m_counts -> ok end.",
     "start() -> ets:new(larder_m_counts, [named_table, public]).",
     "up() -> ets:update_counter(larder_m_counts, n, 1, {n, 0}).",
     "where(ets) -> ets:info(larder_m_counts, size);"
     "where(_) -> apply(ets, info, [larder_m_counts, type])."].

reader() ->
    ["-module(larder_m_reader).", "-export([read/0])." ,
     "read() -> ets:lookup(larder_m_counts, n)."].

folds() ->
    ["-module(larder_m_reader).", "-export([read/0])." ,
     "read() -> ets:foldl(fun(Row, Rows) -> [Row | Rows] end, [], larder_m_counts)."].

imports() ->
    ["-module(larder_m_reader).", "-export([read/0]).", "-import(ets, [lookup/2]).",
     "read() -> lookup(larder_m_counts, n)."].

copies() ->
    ["-module(larder_m_reader).", "-export([read/0])." ,
     "read() -> dets:to_ets(larder_m_disk, larder_m_counts)."].

other() ->
    ["-module(larder_m_other).", "-export([f/0]).", "f() -> lists:seq(1, 3)."].

with_loaded(Beams, Test) ->
    Modules = [element(2, {module, _} = code:load_abs(filename:rootname(Beam))) || Beam <- Beams],
    try
        Test()
    after
        [begin code:purge(M), code:delete(M), code:purge(M) end || M <- Modules]
    end.

beams(Ebin) ->
    lists:sort(filelib:wildcard(filename:join(Ebin, "*.beam"))).

bytes(Files) ->
    [element(2, {ok, _} = file:read_file(File)) || File <- Files].

%% ---- a program moves, runs, and comes back ----

whole_program_test_() -> ?IN_FOLDER(whole_program).

whole_program(Folder) ->
    Ebin = application(Folder, "counter-1", [counter(), reader(), other()]),
    %% Each file has a second name.
    ok = file:make_symlink("counter-1", filename:join(Folder, "counter")),
    Beams = beams(Ebin),
    [Counter, _, Reader] = Beams,
    %% Documentation, as compilers of other languages keep it, and a mode of its own;
    %% compressed.
    {ok, _, Chunks} = beam_lib:all_chunks(Counter),
    {ok, WithDocs} = beam_lib:build_module(Chunks ++ [{"Docs", term_to_binary(documentation)}]),
    ok = file:write_file(Counter, zlib:gzip(WithDocs)),
    ok = file:change_mode(Counter, 8#640),
    Originals = bytes(Beams),

    {ok, Plan} = larder_move:plan(Folder),
    ?assertMatch(#{moves := [{larder_m_counter, Counter}, {larder_m_reader, Reader}],
                   left := [], untouched := 1, shared := [], mnesia := [], warnings := []}, Plan),
    ?assertEqual(Originals, bytes(Beams)),

    ?assertEqual({ok, Plan}, larder_move:move(Folder)),
    with_loaded(Beams, fun() ->
        larder_m_counts = larder_m_counter:start(),
        2 = length([larder_m_counter:up() || _ <- [1, 2]]),
        ?assertEqual([{n, 2}], larder_m_reader:read()),
        ?assertEqual({1, set}, {larder_m_counter:where(ets), larder_m_counter:where(other)}),
        ?assertEqual({undefined, 1}, {ets:info(larder_m_counts, size),
                                      larder:info(larder_m_counts, size)}),
        true = larder:delete(larder_m_counts)
    end),
    {ok, {_, [{"Docs", Docs}]}} = beam_lib:chunks(Counter, ["Docs"]),
    ?assertEqual(documentation, binary_to_term(Docs)),
    {ok, {_, [{compile_info, Info}]}} = beam_lib:chunks(Counter, [compile_info]),
    ?assertEqual("/src/of.erl", proplists:get_value(source, Info)),
    %% What moved can be read by tools, and says larder.
    {ok, {_, [{imports, Imports}, {abstract_code, {_, _}}]}} =
        beam_lib:chunks(Counter, [imports, abstract_code]),
    ?assertNot(lists:keymember(ets, 1, Imports)),
    {ok, #file_info{mode = Mode}} = file:read_file_info(Counter),
    ?assertEqual(8#640, Mode band 8#777),

    ?assertEqual({error, {moved_already, Counter}}, larder_move:move(Folder)),
    ?assertEqual({ok, [Counter, Reader]}, larder_move:undo(Folder)),
    ?assertEqual({Beams, Originals}, {beams(Ebin), bytes(Beams)}),
    ?assertEqual(length(Beams), length(element(2, file:list_dir(Ebin)))),
    ?assertEqual({ok, []}, larder_move:undo(Folder)).

%% ---- half a program ----

half_a_program_test_() -> ?IN_FOLDER(half_a_program).

half_a_program(Folder) ->
    Counter = application(Folder, "counter-1", [counter()]),
    Reader = application(Folder, "reader-1", [reader()]),
    Far = application(Folder ++ "/far", "reader-1", [reader()]),
    Originals = bytes(beams(Counter)),
    Shared = [{larder_m_counts, [larder_m_counter], [larder_m_reader]}],
    {error, {shared, #{shared := Shared}} = Why} = larder_move:move(Counter),
    ?assertMatch({match, _}, re:run(larder_move:format_error(Why), "larder_m_reader on ets")),
    ?assertEqual(Originals, bytes(beams(Counter))),
    %% The one that makes the table stays.
    ?assertMatch({ok, #{shared := [{larder_m_counts, [larder_m_reader], [larder_m_counter]}]}},
                 larder_move:plan(Reader)),
    %% Both move, by a list; or the user knows better.
    ?assertMatch({ok, #{shared := []}}, larder_move:move([Counter, Reader])),
    {ok, [_, _]} = larder_move:undo([Counter, Reader]),
    ?assertMatch({ok, #{shared := Shared}}, larder_move:move(Counter, [force])),
    {ok, [_]} = larder_move:undo(Folder),
    %% Modules that lie elsewhere are looked at if they are named.
    ok = file:del_dir_r(filename:dirname(Reader)),
    ?assertMatch({ok, #{shared := []}}, larder_move:plan(Counter)),
    ?assertMatch({error, {shared, #{shared := Shared}}}, larder_move:move(Counter, [{beside, Far}])),
    %% A table that is the third argument, or is passed to an imported function.
    [begin
         Beside = application(Folder ++ "/" ++ Name, "reader-1", [Reading]),
         ?assertMatch({error, {shared, #{shared := Shared}}},
                      larder_move:move(Counter, [{beside, Beside}]))
     end || {Name, Reading} <- [{"folds", folds()}, {"imports", imports()}, {"copies", copies()}]],
    %% The original, of which the one that moves is a copy, isn't loaded beside it.
    Original = application(Folder, "counter-0", [counter()]),
    ?assertMatch({ok, #{shared := []}}, larder_move:plan(Counter)),
    ?assertMatch({ok, #{shared := []}}, larder_move:plan(Counter, [{beside, Original}])),
    %% But another module of the original is one that stays.
    _ = application(Folder, "counter-0", [reader()]),
    ?assertMatch({ok, #{shared := Shared}}, larder_move:plan(Counter)),
    ok = file:del_dir_r(filename:dirname(Original)),
    %% The same file under another name is no other module.
    ok = file:make_symlink("counter-1", Folder ++ "/counter"),
    ?assertMatch({ok, #{shared := []}}, larder_move:move(Counter)).

%% A directory's name is no pattern, whatever is in it.
brackets_test_() -> ?IN_FOLDER(brackets).

brackets(Folder) ->
    Library = filename:join(Folder, "lib[1]{a,b}"),
    Counter = application(Library, "counter-1", [counter()]),
    _ = application(Library, "reader-1", [reader()]),
    ?assertMatch({error, {shared, #{shared := [{larder_m_counts, _, _}]}}},
                 larder_move:move(Counter)).

%% What is compiled again hasn't moved: it may move, and undo leaves it alone.
compiled_again_test_() -> ?IN_FOLDER(compiled_again).

compiled_again(Folder) ->
    Again = fun() -> application(Folder, "counter-1", [counter()]) end,
    Ebin = Again(),
    ?assertMatch({ok, #{}}, larder_move:move(Ebin)),
    ?assertMatch({error, {moved_already, _}}, larder_move:move(Ebin)),
    Ebin = Again(),
    Compiled = bytes(beams(Ebin)),
    ?assertEqual({ok, []}, larder_move:undo(Ebin)),
    ?assertEqual(Compiled, bytes(beams(Ebin))),
    ?assertMatch({ok, #{}}, larder_move:move(Ebin)),
    ?assertMatch({ok, [_]}, larder_move:undo(Ebin)),
    ?assertEqual(Compiled, bytes(beams(Ebin))),
    %% A move that was killed before it replaced the file.
    [Beam] = beams(Ebin),
    ok = file:make_link(Beam, Beam ++ ".of_ets"),
    ?assertMatch({ok, #{}}, larder_move:move(Ebin)),
    ?assertMatch({ok, [_]}, larder_move:undo(Ebin)),
    ?assertEqual(Compiled, bytes(beams(Ebin))).

no_debug_info_test_() -> ?IN_FOLDER(no_debug_info).

no_debug_info(Folder) -> no_debug_info(Folder, []).

%% Nor has one whose key isn't known.
encrypted_test_() -> ?IN_FOLDER(encrypted).

encrypted(Folder) -> no_debug_info(Folder, [debug_info, {debug_info_key, "a key"}]).

%% Nor one whose key is known: the new file would have the code in plain.
encrypted_with_key_test_() -> ?IN_FOLDER(encrypted_with_key).

encrypted_with_key(Folder) ->
    ok = beam_lib:crypto_key_fun(fun({debug_info, _, _, _}) -> "a key"; (_) -> ok end),
    try
        encrypted(Folder)
    after
        {ok, _} = beam_lib:clear_crypto_key_fun()
    end.

no_debug_info(Folder, Options) ->
    Ebin = application(Folder, "counter-1", [counter()]),
    _ = application(Folder, "counter-1", [reader(), other()], Options),
    {error, {shared, Plan}} = larder_move:move(Ebin),
    ?assertMatch(#{left := [{larder_m_reader, _, no_debug_info}], untouched := 1,
                   shared := [{larder_m_counts, [larder_m_counter], [larder_m_reader]}]}, Plan),
    ?assertMatch({match, _}, re:run(larder_move:format(Plan), "no debug information")).

%% Modules in an archive aren't moved, and the plan says so.
archive_test_() -> ?IN_FOLDER(archive).

archive(Folder) ->
    Ebin = application(Folder, "counter-1", [counter()]),
    Archive = filename:join(Folder, "reader-1.ez"),
    {ok, _, Beam} = compile:forms(forms(reader()), [debug_info]),
    Within = "reader-1/ebin/larder_m_reader.beam",
    {ok, _} = zip:create(Archive, [{Within, Beam}]),
    {ok, Plan} = larder_move:plan(Folder),
    ?assertMatch(#{moves := [{larder_m_counter, _}], archives := [Archive]}, Plan),
    ?assertMatch({match, _}, re:run(larder_move:format(Plan), "reader-1.ez isn't read")),
    [?assertEqual({error, {archive, Archive}}, larder_move:plan(Path))
     || Path <- [Archive, filename:join(Archive, Within)]],
    ?assertMatch({match, _}, re:run(larder_move:format_error({archive, Archive}), "unpack it")),
    %% What was unpacked is a folder like others.
    {ok, _} = zip:extract(Archive, [{cwd, Folder}]),
    ok = file:delete(Archive),
    ?assertMatch({ok, #{moves := [_, _], archives := []}}, larder_move:move(Folder)),
    ?assertMatch({ok, [_, _]}, larder_move:undo(Folder)),
    ?assertMatch({ok, #{moves := [_]}}, larder_move:plan(Ebin)).

%% Releases may be stripped of all but the debug information.
stripped_test_() -> ?IN_FOLDER(stripped).

stripped(Folder) ->
    Ebin = application(Folder, "counter-1", [counter()]),
    [Beam] = beams(Ebin),
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    {ok, Stripped} = beam_lib:build_module(lists:keydelete("CInf", 1, Chunks)),
    ok = file:write_file(Beam, Stripped),
    ?assertMatch({ok, #{moves := [{larder_m_counter, Beam}], left := []}}, larder_move:move(Ebin)),
    ?assertEqual({ok, [Beam]}, larder_move:undo(Ebin)),
    ?assertEqual([Stripped], bytes([Beam])).

%% The command that compiled a module may have had options that say what it exports, what its code
%% means, or of which errors it doesn't speak. A deterministic file doesn't tell them.
options_test_() -> ?IN_FOLDER(options).

options(Folder) ->
    Source = ["-module(larder_m_options).", "-compile([warnings_as_errors, {inline, [one/0]}]).",
              "-callback b() -> ok.",
              "up(T) -> ets:update_counter(T, n, one(), {n, 0}).",
              "one() -> 1.",
              "own(Unused) -> Tuple = {larder_m_options, 1}, Tuple:of_tuple().",
              "of_tuple({_, N}) -> N."],
    Options = [debug_info, export_all, tuple_calls, nowarn_export_all, nowarn_unused_vars],
    [begin
         Ebin = application(Folder, Name, [Source], More ++ Options),
         [Beam] = beams(Ebin),
         Exports = fun() ->
             {ok, {_, [{exports, Functions}]}} = beam_lib:chunks(Beam, [exports]),
             lists:sort(Functions)
         end,
         Before = Exports(),
         ?assertMatch({ok, #{moves := [_], left := []}}, larder_move:move(Ebin)),
         ?assertEqual(Before, Exports()),
         with_loaded([Beam], fun() ->
             Tab = larder:new(t, []),
             ?assertEqual(1, larder_m_options:up(Tab)),
             More =:= [] andalso ?assertEqual(1, larder_m_options:own(unused)),
             true = larder:delete(Tab)
         end)
     end || {Name, More} <- [{"plain-1", []}, {"deterministic-1", [deterministic]}]].

%% ---- warnings ----

warnings_test_() -> ?IN_FOLDER(warnings).

warnings(Folder) ->
    Frame = ["-module(larder_m_frame).", "-export([f/1]).",
             "f(T) -> {ets:info(T), {ets, lookup, [T, 1]}}."],
    _ = application(Folder, "a-1", [Frame]),
    {ok, #{warnings := [{_, [{_, larder_transform, {tuple, lookup}}]}]} = Plan} =
        larder_move:plan(Folder),
    ?assertMatch({match, _}, re:run(larder_move:format(Plan), "\\{ets, lookup, ...} stays")).

%% A table that has no name goes to a module that stays: beside what moves, or without debug
%% information. Neither is in the code path. One that moves as well may have it.
handed_test_() -> ?IN_FOLDER(handed).

handed(Folder) ->
    Giver = ["-module(larder_m_giver).", "-export([f/0]).",
             "f() -> T = ets:new(t, []), larder_m_taker:fill(T)."],
    Taker = ["-module(larder_m_taker).", "-export([fill/1]).", "fill(T) -> ets:insert(T, {1})."],
    Ebin = application(Folder, "giver-1", [Giver]),
    _ = application(Folder, "taker-1", [Taker]),
    Said = fun(Target) ->
        {ok, #{warnings := Warnings}} = larder_move:plan(Target),
        [Warning || {_, [{_, larder_transform, Warning}]} <- Warnings]
    end,
    ?assertEqual([{handed, larder_m_taker, fill, 1}], Said(Ebin)),
    ?assertEqual([], Said(Folder)),
    _ = application(Folder, "taker-1", [Taker], []),
    ?assertEqual([{handed, larder_m_taker, fill, 1}], Said(Folder)).

%% ---- all or none ----

all_or_none_test_() -> ?IN_FOLDER(all_or_none).

all_or_none(Folder) ->
    Ebin = application(Folder, "counter-1", [counter(), reader()]),
    Beams = beams(Ebin),
    Originals = bytes(Beams),
    %% The second can't be written.
    Blocked = filename:join(Ebin, "larder_m_reader.beam.new"),
    ok = file:make_dir(Blocked),
    Reader = filename:join(Ebin, "larder_m_reader.beam"),
    ?assertEqual({error, {Reader, eisdir}}, larder_move:move(Folder)),
    ?assertEqual({Beams, Originals}, {beams(Ebin), bytes(Beams)}),
    ok = file:del_dir(Blocked),
    ?assertEqual(2, length(element(2, file:list_dir(Ebin)))).

%% ---- what isn't moved ----

refused_test_() -> ?IN_FOLDER(refused).

refused(Folder) ->
    Ebin = application(Folder, "counter-1", [counter()]),
    [Beam] = beams(Ebin),
    [?assertEqual({error, Why}, larder_move:move(Target, Options))
     || {Target, Options, Why} <-
            [{Folder ++ "/none", [], {no_such_target, Folder ++ "/none"}},
             {no_such_application, [], {no_such_target, no_such_application}},
             {17, [], {no_such_target, 17}},
             {[], [], {no_modules, []}},
             {kernel, [], {part_of_the_system, kernel}},
             {[Beam, stdlib], [], {part_of_the_system, stdlib}},
             {Beam, [gently], {unknown_option, gently}},
             {Beam, gently, {unknown_option, gently}},
             {Beam, [force | gently], {unknown_option, [force | gently]}},
             {Beam, [{beside, [Folder | x]}], {unknown_option, {beside, [Folder | x]}}},
             {[Beam | x], [], {no_such_target, [Beam | x]}},
             {[$/ | x], [], {no_such_target, [$/ | x]}},
             {<<255, 254>>, [], {no_such_target, <<255, 254>>}},
             {{node, "x"}, [], {no_such_target, {node, "x"}}},
             {{node, node(), ["a"]}, [], {no_such_target, {node, node(), ["a"]}}},
             {{node, node(), [a | b]}, [], {no_such_target, {node, node(), [a | b]}}}]],
    ?assertEqual("foo", lists:flatten(larder_move:format_error(foo))),
    ok = file:write_file(filename:join(Ebin, "broken.beam"), "no beam"),
    {error, {_, {not_a_beam, _}} = Why} = larder_move:move(Ebin),
    ?assertMatch({match, _}, re:run(larder_move:format_error(Why), "broken.beam is no compiled")),
    %% Atoms that this release doesn't understand.
    {ok, _, Chunks} = beam_lib:all_chunks(Beam),
    Atoms = {"AtU8", <<1:32, 1, 255>>},
    {ok, Unknown} = beam_lib:build_module(lists:keyreplace("AtU8", 1, Chunks, Atoms)),
    ok = file:write_file(filename:join(Ebin, "broken.beam"), Unknown),
    {error, {_, {not_a_beam, of_later_release}} = Later} = larder_move:move(Ebin),
    ?assertMatch({match, _}, re:run(larder_move:format_error(Later), "compiled by a later OTP")),
    %% In a release, what Larder runs on is passed over.
    Kernel = application(Folder, "kernel-1", [reader()]),
    ok = file:write_file(filename:join(Kernel, "kernel.app"), ""),
    ok = file:delete(filename:join(Ebin, "broken.beam")),
    ?assertMatch({error, {shared, #{moves := [{larder_m_counter, _}]}}}, larder_move:move(Folder)).

%% ---- Mnesia, of this OTP ----

%% Moved in a copy, and run in a node of its own.
mnesia_test_() -> ?IN_FOLDER(mnesia).

mnesia(Folder) ->
    Ebin = filename:join([Folder, "mnesia-moved", "ebin"]),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    Files = filelib:wildcard(filename:join([code:lib_dir(mnesia), "ebin", "*"])),
    [{ok, _} = file:copy(File, filename:join(Ebin, filename:basename(File))) || File <- Files],
    {ok, #{left := [], shared := []}} = larder_move:move(Ebin),
    Script = "ok = mnesia:start(),"
             "{atomic, ok} = mnesia:create_table(t, [{ram_copies, [node()]}]),"
             "{atomic, ok} = mnesia:transaction(fun() -> mnesia:write({t, 1, one}) end),"
             "{atomic, [{t, 1, one}]} = mnesia:transaction(fun() -> mnesia:read(t, 1) end),"
             "io:format(\"~w\", [{larder:lookup(t, 1), ets:info(t)}]), halt().",
    Command = ["erl -noinput -pa ", filename:dirname(code:which(larder)), " -pa ", Ebin, " -eval '",
               Script, "'"],
    ?assertEqual("{[{t,1,one}],undefined}", os:cmd(lists:flatten(Command))).

%% ---- the command ----

command_test_() -> ?IN_FOLDER(command).

command(Folder) ->
    Ebin = application(Folder, "counter-1", [counter()]),
    Run = fun(Args) ->
        Line = ["erl -noinput -pa ", filename:dirname(code:which(larder)),
                " -eval 'larder_move:main(init:get_plain_arguments())' -extra ", Args,
                " 2>&1; echo $?"],
        string:trim(os:cmd(lists:flatten(Line)))
    end,
    ?assertMatch({match, _}, re:run(Run(["plan ", Ebin]), "^modules that move: 1, .*\n0$", [dotall])),
    ?assertMatch({match, _}, re:run(Run(["move ", Ebin]), "^modules that move: 1, .*\n0$", [dotall])),
    ?assertMatch({match, _}, re:run(Run(["move --force ", Ebin]), "undo that first\n\n?1$")),
    ?assertEqual("1 modules are those of ets again\n0", Run(["undo ", Ebin])),
    [?assertMatch({match, _}, re:run(Run(Args), "^usage: .*\n2$", [dotall]))
     || Args <- ["", "move", "rove x", "move --slowly x", "move --cookie c x"]].

%% ---- a running node ----

node_test_() -> ?IN_FOLDER(running_node).

running_node(Folder) ->
    Counter = application(Folder ++ "/a", "counter-1", [counter()]),
    Reader = application(Folder ++ "/b", "reader-1", [reader()]),
    %% It is in the code path, and neither runs nor is loaded.
    Unused = application(Folder ++ "/c", "unused-1", [renamed(reader(), larder_m_unused)]),
    Started = fun() ->
        Node = crew_nodes:start(Folder, 1, lists:append([["-pa", Ebin] || Ebin <- [Counter, Reader, Unused]])),
        ok = crew_nodes:call(Node, larder_m_counter, run, []),
        [] = crew_nodes:call(Node, larder_m_reader, read, []),
        {Node, crew_nodes:call(Node, ets, info, [larder_m_counts, size])}
    end,
    Run = fun(Command, Args) ->
        Line = ["LARDER_CLUSTER=", Folder, " erl -noinput -hidden -start_epmd false -epmd_module crew_ports"
                " -kernel logger_level none",
                [[" -pa ", filename:absname(filename:dirname(code:which(Module)))]
                 || Module <- [larder, crew_ports]],
                " -eval 'larder_move:main(init:get_plain_arguments())' -extra ", Command,
                " --node larder1@127.0.0.1 ", Args, " 2>&1; echo $?"],
        string:trim(os:cmd(lists:flatten(Line)))
    end,
    Cookie = "--cookie " ++ filename:basename(Folder),
    Says = fun(Words, Text) -> ?assertMatch({match, _}, re:run(Text, Words, [dotall])) end,
    {Node, Here} = Started(),
    try
        ?assertEqual(0, Here),
        Originals = bytes(beams(Counter) ++ beams(Reader)),
        Says("larder1@127.0.0.1 doesn't answer.*\n1$", Run("plan", "--cookie wrong")),
        Says("has no application no_such in its.*\n1$", Run("move", Cookie ++ " no_such")),
        Says("kernel.* can't be moved.*\n1$", Run("move", Cookie ++ " kernel")),
        Says("^modules that move: 2, .*until it is restarted\n0$", Run("plan", Cookie)),
        Says("both sides.*larder_m_counter would be on larder, larder_m_reader on ets.*1$",
             Run("move", Cookie ++ " counter")),
        ?assertEqual(Originals, bytes(beams(Counter) ++ beams(Reader))),
        Says("^modules that move: 2, .*0$", Run("move", Cookie)),
        ?assertEqual(0, crew_nodes:call(Node, ets, info, [larder_m_counts, size]))
    after
        crew_nodes:stop(Node)
    end,
    %% Its tables are Larder's, once it has been started again.
    {Again, There} = Started(),
    try
        ?assertEqual(undefined, There),
        ?assertEqual([larder_m_counts], crew_nodes:call(Again, larder, all, [])),
        Says("^2 modules are those of ets again\n0$", Run("undo", Cookie ++ " counter reader"))
    after
        crew_nodes:stop(Again)
    end,
    ?assertEqual({error, {node, nobody@nowhere, unreachable}}, larder_move:plan({node, nobody@nowhere})).

renamed([_ | Forms], Name) ->
    [lists:concat(["-module(", Name, ")."]) | Forms].
