%% @private
%% @doc Reads a compiled module: whether it uses `ets', and which named tables it creates or refers
%% to. Makes the same module on Larder.
%%
%% The parse transform and the compiler make the new module from the debug information of the old
%% one. The other chunks of the file (documentation, those of Elixir's compiler, the path of the
%% source) are preserved.
-module(larder_move_beam).

-export([read/1, moved/2, is_moved/1, words/1]).

-export_type([beam/0, moved/0]).

-type beam() ::
        #{file := file:filename(),
          module := module(),
          %% Whether it may use ets, and whether it has the debug information to compile it again.
          uses := no | yes | no_debug_info,
          %% Named tables that it creates, and those that it passes to a function of ets by name.
          %% Without debug information: all its atoms.
          makes := [atom()],
          names := [atom()],
          mnesia := boolean()}.

-type moved() :: {moved, binary(), [larder_move:warning()]} | {untouched, [larder_move:warning()]}
               | {left, {compiler, iodata()}}.

%% Chunks that the compiler writes.
-define(COMPILED, ["AtU8", "Atom", "Code", "StrT", "ImpT", "ExpT", "LocT", "FunT", "LitT", "Line",
                   "Type", "Meta", "Attr", "Dbgi", "Abst"]).

%% A chunk by which a module that was moved is known.
-define(MARK, "LrdM").

%% @doc Reads how a module uses `ets'.
-spec read(file:filename()) -> {ok, beam()} | {error, {file:filename(), term()}}.
read(File) ->
    case larder_transform_handed:chunks(File, [imports, atoms, debug_info, "LitT", "Dbgi"]) of
        {ok, {Module, [{_, Imports}, {_, Numbered}, {_, Debug}, {_, Literals}, {_, Stored}]}} ->
            Atoms = [Atom || {_, Atom} <- Numbered],
            Beam = #{file => File, module => Module, uses => no, makes => [], names => [],
                     mnesia => lists:keymember(mnesia, 1, Imports)},
            case lists:member(ets, Atoms) orelse lists:member(dets, Atoms)
                orelse says_ets(Literals) of
                true -> {ok, maps:merge(Beam, uses(Module, public(Debug, Stored), Imports, Atoms))};
                false -> {ok, Beam}
            end;
        {error, Why} ->
            {error, {File, Why}}
    end.

%% Whether the literals may contain an atom that ends in `ets'. Some compilers compress them. Most
%% modules contain none, and needn't be read any further.
says_ets(missing_chunk) -> false;
says_ets(<<0:32, Plain/binary>>) -> binary:match(Plain, <<"ets">>) =/= nomatch;
says_ets(<<_:32, Packed/binary>>) -> binary:match(zlib:uncompress(Packed), <<"ets">>) =/= nomatch.

%% Debug information that is encrypted counts as none, also if its key is known here: the new file
%% would have it in plain. In the file it begins with a zero, and otherwise with the 131 of a term.
public(_Debug, <<0, _/binary>>) -> missing_chunk;
public(Debug, _Stored) -> Debug.

uses(Module, Debug, Imports, Atoms) ->
    case {larder_transform_handed:forms(Module, Debug), lists:keymember(ets, 1, Imports)} of
        {{ok, Forms}, _} ->
            {Makes, Names} = tables(Forms),
            #{uses => yes, makes => Makes, names => Names};
        {none, true} ->
            #{uses => no_debug_info, makes => Atoms, names => Atoms};
        {none, false} ->
            #{}
    end.

%% ---- the module on Larder ----

%% @doc Compiles a module that uses `ets' again, in memory. The map has modules that stay.
-spec moved(beam(), #{module() => file:filename()}) -> moved().
moved(#{file := File, module := Module}, Beside) ->
    {ok, Binary} = file:read_file(File),
    {ok, {_, [{debug_info, Debug}]}} = beam_lib:chunks(Binary, [debug_info]),
    {ok, Forms0} = larder_transform_handed:forms(Module, Debug),
    Forms = lists:filtermap(fun of_code/1, Forms0),
    case larder_transform:parse_transform(Forms, [{larder_transform_files, Beside}]) of
        {warning, Forms, Warnings} -> {untouched, Warnings};
        {warning, Moved, Warnings} -> compiled(Binary, Moved, Warnings);
        {error, Errors, _} -> {left, {compiler, words(Errors)}};
        Forms -> {untouched, []};
        Moved -> compiled(Binary, Moved, [])
    end.

%% The forms without options that were for the source. The debug information is from after the
%% transforms; and options against warnings, of the command that compiled the source, are gone.
of_code({attribute, A, compile, Options}) ->
    case [Option || Option <- lists:flatten([Options]), not is_of_source(Option)] of
        [] -> false;
        Kept -> {true, {attribute, A, compile, Kept}}
    end;
of_code(_) ->
    true.

is_of_source({parse_transform, _}) -> true;
is_of_source(warnings_as_errors) -> true;
is_of_source(_) -> false.

compiled(Binary, Forms, Warnings) ->
    Options = [binary, debug_info, return_errors, no_spawn_compiler_process | kept_options(Binary)],
    case compile:noenv_forms(with_exports(Binary, Forms), Options) of
        {ok, _Module, Code} -> {moved, carry_over(Binary, Code), Warnings};
        {error, Errors, _} -> {left, {compiler, words(Errors)}}
    end.

%% Adds the exports that only an option of the command has made, export_all. A file may lack the
%% options that it was compiled with.
with_exports(Binary, Forms) ->
    {ok, {_, [{exports, Exports}]}} = beam_lib:chunks(Binary, [exports]),
    Said = lists:append([Functions || {attribute, _, export, Functions} <- Forms]),
    Unsaid = Exports -- Said,
    case [{Name, Arity} || {function, _, Name, Arity, _} <- Forms,
                           lists:member({Name, Arity}, Unsaid)] of
        [] ->
            Forms;
        More ->
            {Before, [{attribute, A, module, _} = Module | After]} =
                lists:splitwith(fun(Form) -> element(3, Form) =/= module end, Forms),
            Before ++ [Module, {attribute, A, export, More} | After]
    end.

%% Options that still matter for the abstract code. The others were for the source. A module that
%% was stripped may have kept its debug information alone.
kept_options(Binary) ->
    case beam_lib:chunks(Binary, [compile_info]) of
        {ok, {_, [{compile_info, Info}]}} ->
            [Option || Option <- proplists:get_value(options, Info, []), is_kept(Option)];
        {error, beam_lib, {missing_chunk, _, _}} ->
            []
    end.

is_kept(tuple_calls) -> true;
is_kept(strict_record_tests) -> true;
is_kept(no_strict_record_tests) -> true;
is_kept(inline) -> true;
is_kept({inline, _}) -> true;
is_kept({inline_size, _}) -> true;
is_kept(no_auto_import) -> true;
is_kept({no_auto_import, _}) -> true;
is_kept(deterministic) -> true;
is_kept(nowarn_shadow_vars) -> true;
is_kept(_) -> false.

%% The new code with the other chunks of the old file, and with its compile_info, which has the
%% path of the source.
carry_over(Old, New) ->
    {ok, _, OldChunks} = beam_lib:all_chunks(Old),
    {ok, _, NewChunks} = beam_lib:all_chunks(New),
    Carried = [Chunk || {Id, _} = Chunk <- OldChunks, not lists:member(Id, ?COMPILED)],
    Made = [Chunk || {Id, _} = Chunk <- NewChunks, not lists:keymember(Id, 1, Carried)],
    {ok, Binary} = beam_lib:build_module(Made ++ Carried ++ [{?MARK, <<"moved">>}]),
    Binary.

%% @doc Whether a file has a module as moved/2 has made it, and not one that was compiled since.
-spec is_moved(file:filename()) -> boolean().
is_moved(File) ->
    case larder_transform_handed:chunks(File, [?MARK]) of
        {ok, {_, [{_, Mark}]}} -> is_binary(Mark);
        {error, _} -> false
    end.

%% @doc Errors or warnings of the compiler, a line each.
-spec words([larder_move:warning()]) -> [iolist()].
words(Errors) ->
    [io_lib:format("~ts:~ts ~ts~n", [File, place(Location), Module:format_error(What)])
     || {File, Of} <- Errors, {Location, Module, What} <- Of].

place(none) -> "";
place({Line, Column}) -> io_lib:format("~w:~w:", [Line, Column]);
place(Line) -> io_lib:format("~w:", [Line]).

%% ---- tables ----

%% The named tables that a module creates, and those that it passes to functions of ets as atoms.
%% Names that are computed at run time aren't found.
tables(Forms) ->
    Imported = [{Function, Module} || {attribute, _, import, {Module, Functions}} <- Forms,
                                      Module =:= ets orelse Module =:= dets,
                                      Function <- Functions],
    {Makes, Names} = calls(Forms, maps:from_list(Imported), {[], []}),
    {lists:usort(Makes), lists:usort(Names)}.

calls({call, _, {remote, _, {atom, _, ets}, {atom, _, new}}, [{atom, _, Name}, Options]}, _,
      {Makes, Names} = Found) ->
    case is_named(Options) of
        true -> {[Name | Makes], Names};
        false -> Found
    end;
calls({call, _, {remote, _, {atom, _, Module}, Function}, Args}, Imported, {Makes, Names})
  when Module =:= ets; Module =:= dets ->
    Named = [Name || {atom, _, Name} <- table_argument(Module, Function, Args)],
    calls(Args, Imported, {Makes, Named ++ Names});
calls({call, A, {atom, _, Name} = Function, Args}, Imported, Found)
  when is_map_key({Name, length(Args)}, Imported) ->
    Module = {atom, A, map_get({Name, length(Args)}, Imported)},
    calls({call, A, {remote, A, Module, Function}, Args}, Imported, Found);
calls(Node, Imported, Found) when is_tuple(Node) ->
    calls(tuple_to_list(Node), Imported, Found);
calls([Node | Nodes], Imported, Found) ->
    calls(Nodes, Imported, calls(Node, Imported, Found));
calls(_, _, Found) ->
    Found.

%% The argument that is a table of ets. If the function isn't known, it is assumed to be the first.
table_argument(ets, {atom, _, Fold}, [_, _, Table]) when Fold =:= foldl; Fold =:= foldr -> [Table];
table_argument(ets, _, [Table | _]) -> [Table];
table_argument(dets, {atom, _, Copy}, [_, Table]) when Copy =:= to_ets; Copy =:= from_ets ->
    [Table];
table_argument(_, _, _) -> [].

%% An unknown list of options may contain named_table.
is_named({nil, _}) -> false;
is_named({cons, _, {atom, _, named_table}, _}) -> true;
is_named({cons, _, Option, Rest}) when element(1, Option) =:= atom; element(1, Option) =:= tuple ->
    is_named(Rest);
is_named(_) -> true.
