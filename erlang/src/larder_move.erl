%% @doc Moves compiled programs from `ets' to Larder.
%%
%% A program that exists as `.beam' files, such as an installed package or a release,
%% is moved without its sources. Each module that calls `ets' is compiled again from
%% its debug information, as if it had been compiled with `larder_transform'.
%% Modules of Elixir are moved like those of Erlang.
%%
%% ```
%% larder_move:plan("/srv/app/lib").        % what would move, and what can't
%% larder_move:move("/srv/app/lib").        % {ok, Plan} | {error, Why}
%% larder_move:undo("/srv/app/lib").        % the originals again
%% '''
%%
%% The argument is a directory, a `.beam' file, the name of an application, a running node, or a
%% list of these. Of a directory, all `.beam' files below it are moved. The applications `kernel',
%% `stdlib', `compiler' and `larder' of a release are skipped.
%%
%% `{node, Node, Applications}' stands for applications in the code path of a running node of this
%% machine. `{node, Node}' stands for the applications that run there, and for the folders of all
%% loaded modules, except for the applications of OTP, Elixir and Larder. `undo' accepts both, too.
%%
%% The original of `m.beam' is kept beside it as `m.beam.of_ets'. If `m' is compiled again later, it
%% uses `ets' again, and can be moved again. Either all modules move or none. A module without debug
%% information that calls `ets' isn't moved, and the plan names it. Archives (`.ez') aren't read;
%% the plan names those that lie among the files.
%%
%% <h3>Half a program</h3>
%%
%% `ets' can't access a table of Larder. So modules that share a named
%% table must move together. If a module that moves and one that stays have a named table in
%% common, nothing is changed, and the error names the table and the modules.
%% The modules that stay are those that can't be moved, those of other applications in the same
%% library directory, and those below the directories of the option
%% `{beside, Directories}'. A table that is passed to a function of one of these causes a warning,
%% as in `larder_transform'. With `force' the modules are moved even so.
%%
%% <h3>Running the moved program</h3>
%%
%% The program needs the application `larder' in its code path (`ERL_LIBS', or
%% `-pa'). A release in embedded mode needs it in its boot script. A running node
%% keeps its loaded modules, and its tables in `ets', until it is restarted.
%%
%% The commands are `scripts/larder_move plan DIRECTORY', `move' and `undo', or, with a running
%% node, `scripts/larder_move plan --node NODE [--cookie COOKIE] [APPLICATION...]';
%% in a Mix project `mix larder.move'; in a rebar3 project `rebar3 larder move'
%% (see {@link larder_rebar}).
-module(larder_move).

-export([plan/1, plan/2, move/1, move/2, undo/1, format/1, format_error/1, main/1]).

-export_type([target/0, option/0, plan/0, running/0, warning/0, reason/0]).

-include_lib("kernel/include/file.hrl").

-define(ORIGINAL, ".of_ets").

-type target() :: file:filename() | atom() | {node, node()} | {node, node(), [atom()]} | [target()].
%% Paths, names of applications, or a running node.

-type option() :: force | {beside, file:filename() | [file:filename()]}.

-type plan() ::
        #{moves := [{module(), file:filename()}],
          left := [{module(), file:filename(), no_debug_info | {compiler, iodata()}}],
          archives := [file:filename()],
          untouched := non_neg_integer(),
          shared := [{atom(), [module()], [module()]}],
          mnesia := [module()],
          nodes := [running()],
          warnings := [warning()]}.
%% `moves': the modules that are compiled again. `left': modules that call `ets' and can't be
%% moved. `archives': archives of modules, which aren't read. `untouched': the number of modules
%% that don't use `ets'. `shared': named tables that are used both by modules that move and by
%% modules that stay. `mnesia': the modules that move and call Mnesia, if Mnesia stays. `nodes': the
%% running nodes among the targets, and whether they find Larder.

-type running() :: #{node := node(), has_larder := boolean(),
                     chosen => [file:filename()], others => [file:filename()],
                     archives => [file:filename()]}.
%% `has_larder': whether the node finds the module `larder'.

-type warning() :: {file:filename(), [{erl_anno:location() | none, module(), term()}]}.
%% Of the compiler's form: the source, and places there.

-type reason() ::
        {no_such_target, term()}
      | {node, node() | string(), unreachable | no_distribution | {elsewhere, string()}
                                  | {no_application, atom()}}
      | {no_modules, target()} | {archive, file:filename()} | {moved_already, file:filename()}
      | {part_of_the_system, atom()} | {shared, plan()} | {unknown_option, term()}
      | {file:filename(), term()}.

%% ---- plan ----

%% @doc Like plan/2, without options.
-spec plan(target()) -> {ok, plan()} | {error, reason()}.
plan(Target) ->
    plan(Target, []).

%% @doc Returns what move/2 would do. Nothing is changed.
-spec plan(target(), [option()]) -> {ok, plan()} | {error, reason()}.
plan(Target, Options) ->
    try
        {Plan, _Moved} = planned(Target, Options),
        {ok, Plan}
    catch
        throw:{reason, Why} -> {error, Why}
    end.

planned(Target, Options) ->
    Nodes = nodes_of(Target),
    Directories = options(Options) ++ lists:append([Others || #{others := Others} <- Nodes]),
    {Archives, Files} = lists:partition(fun is_archive/1, files(Target)),
    [fail({archive, Archive}) || Files =:= [], Archive <- Archives],
    Files =/= [] orelse fail({no_modules, Target}),
    [fail({moved_already, File}) || File <- Files, is_moved(File)],
    Beams = read(Files),
    Using = [Beam || #{uses := yes} = Beam <- Beams],
    Beside = beside(Files, Directories),
    Bare = [Beam || #{uses := no_debug_info} = Beam <- Beams],
    Staying = maps:from_list([{Module, File}
                              || #{module := Module, file := File} <- Beside ++ Bare]),
    Made = lists:zip(Using, each(fun(Beam) -> larder_move_beam:moved(Beam, Staying) end, Using)),
    Moved = [Beam || {Beam, {moved, _, _}} <- Made],
    Left = [{Beam, Why} || {Beam, {left, Why}} <- Made] ++
           [{Beam, no_debug_info} || Beam <- Bare],
    Plan = #{moves => [{Module, File} || #{module := Module, file := File} <- Moved],
             archives => lists:usort(Archives ++ lists:append([Some || #{archives := Some} <- Nodes])),
             left => [{Module, File, Why} || {#{module := Module, file := File}, Why} <- Left],
             untouched => length(Beams) - length(Moved) - length(Left),
             shared => shared(Moved, [Beam || {Beam, _} <- Left] ++ Beside),
             mnesia => uses_mnesia(Moved),
             nodes => [maps:without([chosen, others, archives], Node) || Node <- Nodes],
             warnings => warnings([element(tuple_size(Result), Result)
                                   || {_, Result} <- Made, element(1, Result) =/= left], Moved)},
    {Plan, [{File, Binary} || {#{file := File}, {moved, Binary, _}} <- Made]}.

%% Whether a module has moved. An original alone doesn't show that: if the module was compiled again
%% since, the original is that of an earlier version.
is_moved(File) ->
    filelib:is_regular(File ++ ?ORIGINAL) andalso larder_move_beam:is_moved(File).

%% Modules that call Mnesia, if it doesn't move itself. They may name its tables to ets at run time.
uses_mnesia(Moved) ->
    case [Module || #{module := mnesia_lib = Module} <- Moved] of
        [] -> [Module || #{module := Module, mnesia := true} <- Moved];
        _ -> []
    end.

%% Drops the warnings of tables that are passed to modules which move, too.
warnings(Warnings, Moved) ->
    Modules = [Module || #{module := Module} <- Moved],
    Kept = [{File, [Warning || Warning <- Of, not is_handed_to(Modules, Warning)]}
            || {File, Of} <- lists:append(Warnings)],
    [Of || {_, [_ | _]} = Of <- Kept].

is_handed_to(Modules, {_, larder_transform, {handed, Module, _, _}}) ->
    lists:member(Module, Modules);
is_handed_to(_Modules, _Warning) ->
    false.

options(Options) ->
    lists:append([case Option of
                      force -> [];
                      {beside, [Char | _] = Directory} when is_integer(Char) -> [Directory];
                      {beside, Directories} when length(Directories) >= 0 -> Directories;
                      _ -> fail({unknown_option, Option})
                  end || Option <- proper(Options, unknown_option)]).

%% The guard fails for an improper list, and for any other term.
proper(List, _) when length(List) >= 0 -> List;
proper(Other, Why) -> fail({Why, Other}).

-spec fail(reason()) -> no_return().
fail(Why) -> throw({reason, Why}).

read(Files) ->
    [case Read of
         {ok, Beam} -> Beam;
         {error, Why} -> fail(Why)
     end || Read <- each(fun larder_move_beam:read/1, Files)].

%% Like lists:map/2, in as many processes as there are schedulers.
each(Fun, Items) ->
    Workers = erlang:system_info(schedulers_online),
    Numbered = lists:zip(lists:seq(1, length(Items)), Items),
    Parts = [[Item || {N, _} = Item <- Numbered, N rem Workers =:= Part]
             || Part <- lists:seq(0, Workers - 1)],
    Caller = self(),
    Running = [spawn_monitor(fun() -> Caller ! {self(), [{N, Fun(Item)} || {N, Item} <- Part]} end)
               || Part <- Parts],
    Results = [receive
                   {Pid, Some} -> demonitor(Monitor, [flush]), Some;
                   {'DOWN', Monitor, process, Pid, Why} -> exit(Why)
               end || {Pid, Monitor} <- Running],
    [Result || {_, Result} <- lists:sort(lists:append(Results))].

%% ---- which files ----

%% The files of a target. A file with several names is returned once: library directories have links
%% to versions.
files(Target) ->
    Named = [{identity(File), File} || File <- lists:usort(find(Target))],
    lists:sort(maps:values(maps:from_list(lists:reverse(Named)))).

find([]) ->
    [];
find(Application) when is_atom(Application) ->
    Directory = case code:lib_dir(Application) of
                    {error, bad_name} -> fail({no_such_target, Application});
                    Found -> filename:join(Found, "ebin")
                end,
    not is_of_system(Directory) orelse fail({part_of_the_system, Application}),
    find(Directory);
find([Char | _] = Path) when is_integer(Char) ->
    io_lib:char_list(Path) orelse fail({no_such_target, Path}),
    case {filelib:is_dir(Path), filename:extension(Path)} of
        {true, _} ->
            below(Path);
        {false, Extension} ->
            [fail({archive, Archive}) || Archive <- larder_move_node:archives([Path])],
            Extension =:= ".beam" orelse fail({no_such_target, Path}),
            [filename:absname(Path)]
    end;
find(Path) when is_binary(Path) ->
    case unicode:characters_to_list(Path) of
        [_ | _] = Characters -> find(Characters);
        _ -> fail({no_such_target, Path})
    end;
find(Targets) when is_list(Targets) ->
    lists:append([find(Target) || Target <- proper(Targets, no_such_target)]);
find(Other) ->
    case nodes_of(Other) of
        [#{chosen := Directories}] ->
            lists:append([files_in(Directory) || Directory <- Directories]);
        [] ->
            fail({no_such_target, Other})
    end.

below(Directory) ->
    Add = fun(File, Folders) ->
              maps:update_with(filename:dirname(filename:absname(File)),
                               fun(Files) -> [filename:absname(File) | Files] end,
                               [filename:absname(File)], Folders)
          end,
    Folders = filelib:fold_files(Directory, "\\.(beam|ez)$", true, Add, #{}),
    lists:append([Files || {Folder, Files} <- maps:to_list(Folders), not is_of_system(Folder)]).

is_archive(File) -> filename:extension(File) =:= ".ez".

files_in(Directory) ->
    not is_of_system(Directory) orelse fail({part_of_the_system, Directory}),
    named(Directory, "*.beam").

%% The files that a pattern names below a directory, whose own name is no pattern.
named(Directory, Pattern) ->
    [filename:join(Directory, Name) || Name <- filelib:wildcard(Pattern, Directory)].

%% The running nodes among the targets, with the directories of what is to be moved, and of others.
nodes_of({node, Node}) ->
    nodes_of({node, Node, running});
nodes_of({node, Node, What}) when is_atom(Node), What =:= running orelse length(What) >= 0 ->
    What =:= running orelse lists:all(fun is_atom/1, What)
        orelse fail({no_such_target, {node, Node, What}}),
    case larder_move_node:ask(Node, What) of
        {ok, Running} -> [Running];
        {error, Why} -> fail(Why)
    end;
nodes_of([Target | Targets]) ->
    nodes_of(Target) ++ nodes_of(Targets);
nodes_of(_) ->
    [].

%% Applications that Larder itself runs on, and its own.
is_of_system(Ebin) ->
    lists:any(fun(Application) -> filelib:is_regular(filename:join(Ebin, Application)) end,
              ["kernel.app", "stdlib.app", "compiler.app", "larder.app"]).

%% ---- tables that both sides use ----

%% The modules that stay beside those that move: of the applications in the same library directory,
%% and of those that the option names. A module of the same name as one that moves isn't loaded
%% beside it: the application is there twice, as a copy.
beside(Files, Directories) ->
    Libraries = lists:usort([filename:dirname(Application)
                             || File <- Files,
                                {"ebin", Application} <- [split(filename:dirname(File))]]),
    Around = [File || Library <- Libraries,
                      File <- named(Library, "*/ebin/*.beam")],
    Named = lists:append([find(Directory) || Directory <- Directories]),
    These = maps:from_keys([filename:basename(File) || File <- Files], true),
    Others = [File || File <- lists:usort(Around ++ Named),
                      not is_map_key(filename:basename(File), These)],
    Read = each(fun larder_move_beam:read/1, Others),
    [Beam || {ok, #{uses := Uses} = Beam} <- Read, Uses =/= no].

identity(File) ->
    case file:read_file_info(File, [raw]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, _} -> File
    end.

split(Directory) ->
    {filename:basename(Directory), filename:dirname(Directory)}.

%% A table is shared if one side makes it and the other names it. Those that OTP makes stay with it.
shared(Moved, Stay) ->
    Pairs = [{Table, here(Table, Moved), here(Table, Stay)}
             || Table <- lists:usort(tables(makes, Moved ++ Stay)),
                not larder_transform_known:is_otp_table(Table)],
    [Shared || {_, [_ | _], [_ | _]} = Shared <- Pairs].

tables(Kind, Beams) ->
    lists:append([maps:get(Kind, Beam) || Beam <- Beams]).

here(Table, Beams) ->
    [Module || #{module := Module, makes := Makes, names := Names} <- Beams,
               lists:member(Table, Makes) orelse lists:member(Table, Names)].

%% ---- move and undo ----

%% @doc Like move/2, without options.
-spec move(target()) -> {ok, plan()} | {error, reason()}.
move(Target) ->
    move(Target, []).

%% @doc Moves modules, all or none. The options are `force' and `{beside, Directories}'.
-spec move(target(), [option()]) -> {ok, plan()} | {error, reason()}.
move(Target, Options) ->
    try
        {#{shared := Shared} = Plan, Moved} = planned(Target, Options),
        Shared =:= [] orelse lists:member(force, Options) orelse fail({shared, Plan}),
        replace(Moved, []),
        {ok, Plan}
    catch
        throw:{reason, Why} -> {error, Why}
    end.

%% A file is there under its name at every moment, as the original or as the new one.
replace([], _Done) ->
    ok;
replace([{File, Binary} | Files], Done) ->
    New = File ++ ".new",
    Written = in_turn([fun() -> file:write_file(New, Binary) end,
                       fun() -> same_mode(File, New) end,
                       fun() -> forget(File ++ ?ORIGINAL) end,
                       fun() -> file:make_link(File, File ++ ?ORIGINAL) end,
                       fun() -> file:rename(New, File) end]),
    case Written of
        ok ->
            replace(Files, [File | Done]);
        {error, Posix} ->
            _ = file:delete(New),
            _ = file:delete(File ++ ?ORIGINAL),
            lists:foreach(fun restore/1, Done),
            fail({File, Posix})
    end.

in_turn([]) -> ok;
in_turn([Step | Steps]) ->
    case Step() of
        ok -> in_turn(Steps);
        {error, _} = Error -> Error
    end.

same_mode(File, New) ->
    case file:read_file_info(File) of
        {ok, #file_info{mode = Mode}} -> file:change_mode(New, Mode);
        Error -> Error
    end.

forget(Original) ->
    case file:delete(Original) of
        {error, enoent} -> ok;
        Other -> Other
    end.

restore(File) ->
    file:rename(File ++ ?ORIGINAL, File).

%% @doc Restores the originals, and returns which. A module that was compiled again since it was
%% moved stays as it is.
-spec undo(target()) -> {ok, [file:filename()]} | {error, reason()}.
undo(Target) ->
    try
        Files = [File || File <- files(Target), is_moved(File)],
        [case restore(File) of
             ok -> ok;
             {error, Posix} -> fail({File, Posix})
         end || File <- Files],
        {ok, Files}
    catch
        throw:{reason, Why} -> {error, Why}
    end.

%% ---- words ----

%% @doc Formats a plan as readable text.
-spec format(plan()) -> iolist().
format(#{moves := Moves, left := Left, archives := Archives, untouched := Untouched,
         shared := Shared,
         mnesia := Mnesia, nodes := Nodes, warnings := Warnings}) ->
    [io_lib:format("modules that move: ~w, that have nothing to do with ets: ~w, "
                   "that call ets and are left: ~w~n",
                   [length(Moves), Untouched, length(Left)]),
     [io_lib:format("  moves  ~ts~n", [File]) || {_, File} <- Moves],
     [io_lib:format("  left   ~ts: ~ts~n", [File, why_left(Why)]) || {_, File, Why} <- Left],
     [io_lib:format("  archive ~ts isn't read: if its modules use ets, unpack it, remove it, and "
                    "plan again~n", [Archive]) || Archive <- Archives],
     [["  shared ", Line] || Line <- shared_words(Shared)],
     [io_lib:format("  mnesia stays on ets, and ~ts call it: if they also look into its tables by "
                    "functions of ets, move mnesia, too~n", [names(Mnesia)]) || Mnesia =/= []],
     [["  ", Line] || Line <- larder_move_beam:words(Warnings)],
     [larder_move_node:format(Node) || Node <- Nodes]].

why_left(no_debug_info) ->
    "it has no debug information, or that is encrypted, or its compiler isn't in the code path "
    "(Elixir: ERL_LIBS)";
why_left({compiler, Words}) -> ["the compiler refuses it: ", Words].

names(Modules) ->
    lists:join(", ", [io_lib:format("~tw", [Module]) || Module <- Modules]).

shared_words(Shared) ->
    [io_lib:format("~tw: ~ts would be on larder, ~ts on ets~n", [Table, names(Move), names(Stay)])
     || {Table, Move, Stay} <- Shared].

%% @doc Describes why nothing was changed, and what to do about it.
-spec format_error(reason() | term()) -> iolist().
format_error({no_such_target, Target}) ->
    io_lib:format("~tp is no directory, no .beam file and no application in the code path",
                  [Target]);
format_error({no_modules, Target}) ->
    io_lib:format("there are no .beam files in ~tp", [Target]);
format_error({archive, Archive}) ->
    io_lib:format("~ts is an archive, whose modules can't be moved: unpack it, and remove it",
                  [Archive]);
format_error({moved_already, File}) ->
    io_lib:format("~ts was moved before: undo that first", [File]);
format_error({part_of_the_system, Application}) ->
    io_lib:format("~tp can't be moved: Larder itself runs on it", [Application]);
format_error({node, _, _} = Why) ->
    larder_move_node:format_error(Why);
format_error({shared, #{shared := Shared}}) ->
    ["modules on both sides use these named tables: move them together, or force it\n",
     [["  ", Line] || Line <- shared_words(Shared)]];
format_error({unknown_option, Option}) ->
    io_lib:format("~tp is no option: force, {beside, Directories}", [Option]);
format_error({File, {not_a_beam, of_later_release}}) ->
    io_lib:format("~ts is damaged, or compiled by a later OTP than this one", [File]);
format_error({File, {not_a_beam, _}}) ->
    io_lib:format("~ts is no compiled module", [File]);
format_error({[_ | _] = File, Posix}) ->
    io_lib:format("~ts: ~ts", [File, file:format_error(Posix)]);
format_error(Other) ->
    io_lib:format("~tp", [Other]).

%% ---- the command line ----

%% @doc The command `plan | move | undo [--force] [--beside DIRECTORY] PATH...', or with
%% `--node NODE [--cookie COOKIE] [APPLICATION...]' in place of the paths.
%% Halts the node. The status is 0 on success, 1 on failure, 2 if the command is
%% unknown.
-spec main([string()]) -> no_return().
main([Command | Args]) when Command =:= "plan"; Command =:= "move"; Command =:= "undo" ->
    case arguments(Args, #{names => [], options => []}) of
        #{node := Node, names := Names} = Given ->
            case larder_move_node:connect(Node, maps:get(cookie, Given, none)) of
                {ok, Name} -> run(Command, target(Name, lists:reverse(Names)), Given);
                {error, Why} -> halt_with({1, failed(Why)})
            end;
        #{cookie := _} -> usage();
        #{names := [_ | _] = Paths} = Given -> run(Command, lists:reverse(Paths), Given);
        _ -> usage()
    end;
main(_) ->
    usage().

-spec usage() -> no_return().
usage() ->
    halt_with({2, "usage: larder_move plan | move | undo [--force] [--beside DIRECTORY] PATH...\n"
                  "       larder_move plan | move | undo [--force] [--beside DIRECTORY]\n"
                  "                   --node NODE [--cookie COOKIE] [APPLICATION...]\n"
                  "  plan   says what would move and what can't\n"
                  "  move   moves .beam files and directories of them from ets to Larder\n"
                  "  undo   puts the originals back\n"
                  "  NODE   a running node of this machine: these applications of it, or all that\n"
                  "         it runs but OTP and Elixir\n"}).

arguments(["--force" | Args], #{options := Options} = Given) ->
    arguments(Args, Given#{options := [force | Options]});
arguments(["--beside", Directory | Args], #{options := Options} = Given) ->
    arguments(Args, Given#{options := [{beside, Directory} | Options]});
arguments(["--node", Node | Args], Given) -> arguments(Args, Given#{node => Node});
arguments(["--cookie", Cookie | Args], Given) -> arguments(Args, Given#{cookie => Cookie});
arguments(["--" ++ _ | _], _Given) -> unknown;
arguments([Name | Args], #{names := Names} = Given) -> arguments(Args, Given#{names := [Name | Names]});
arguments([], Given) -> Given.

target(Node, []) -> {node, Node};
target(Node, Names) -> {node, Node, [list_to_atom(Name) || Name <- Names]}.

-spec run(string(), target(), map()) -> no_return().
run(Command, Target, #{options := Options}) ->
    Result = case Command of
                 "plan" -> plan(Target, Options);
                 "move" -> move(Target, Options);
                 "undo" -> undo(Target)
             end,
    halt_with(case {Command, Result} of
                  {_, {error, Why}} -> {1, failed(Why)};
                  {"undo", {ok, Files}} ->
                      {0, io_lib:format("~w modules are those of ets again~n", [length(Files)])};
                  {_, {ok, Plan}} -> {0, format(Plan)}
              end).

failed(Why) ->
    ["larder_move: ", format_error(Why), $\n].

-spec halt_with({0..2, iodata()}) -> no_return().
halt_with({Status, Words}) ->
    io:format(case Status of 0 -> standard_io; _ -> standard_error end, "~ts", [Words]),
    halt(Status).
