#!/usr/bin/env escript
%% The documentation of the Erlang modules, by EDoc from their sources.
%%
%%   documentation.escript chunks EBIN...   puts it into the compiled modules, as chunks (EEP 48)
%%                                          that the shells' h() reads; folders without Larder's
%%                                          modules, and modules that have their chunk, are left
%%   documentation.escript pages DIR        writes it as pages
%%
%% Without the OTP applications edoc and xmerl no chunks are made; a line says so.
%%
%% EDoc reads no comments of files that are included. So it gets a copy of module larder with the
%% files of erlang/src/larder in their places, and the lines that it names are put right afterwards.
-mode(compile).

main(["chunks" | Folders]) ->
    case [Beam || Folder <- Folders, Name <- filelib:wildcard("larder*.beam", Folder),
                  Beam <- [filename:join(Folder, Name)], not has_chunk(Beam)] of
        [] -> ok;
        Beams -> chunks(Beams, [App || App <- ["edoc", "xmerl"], is_lacking(App)])
    end;
main(["pages", Folder]) ->
    with_copy(fun(Copy, _Lines) -> edoc(Copy, [{dir, Folder}]) end);
main(_) ->
    say("larder: documentation.escript: say chunks EBIN... or pages DIR"),
    halt(2).

%% ---- chunks ----

chunks(_Beams, [Lacking | _]) ->
    say(["larder: the OTP application ", Lacking, " is not here (Debian: erlang-", Lacking, "),"
         " so h(larder) in the shell will say little."]);
chunks(Beams, []) ->
    %% A program that depends on Larder builds without documentation, too.
    try
        with_copy(fun(Copy, Lines) ->
            edoc(Copy, [{dir, Copy}, {doclet, edoc_doclet_chunks}, {layout, edoc_layout_chunks}]),
            lists:foreach(fun(Beam) -> add_chunk(Beam, Copy, Lines) end, Beams)
        end)
    catch
        _:Reason -> say(io_lib:format("larder: no documentation: ~tp", [Reason]))
    end.

%% Its headers may be here without it.
is_lacking(App) -> code:where_is_file(App ++ ".app") =:= non_existing.

has_chunk(Beam) ->
    case beam_lib:chunks(Beam, ["Docs"]) of
        {ok, _} -> true;
        {error, beam_lib, {missing_chunk, _, _}} -> false
    end.

%% A module of Elixir, or one whose source is gone, has no documentation here.
add_chunk(Beam, Copy, Lines) ->
    Name = filename:basename(Beam, ".beam"),
    case file:read_file(filename:join([Copy, "chunks", Name ++ ".chunk"])) of
        {ok, Chunk} ->
            Docs = in_place(binary_to_term(Chunk), maps:get(Name, Lines, none)),
            {ok, _, Chunks} = beam_lib:all_chunks(Beam),
            {ok, New} = beam_lib:build_module(Chunks ++ [{"Docs", term_to_binary(Docs, [compressed])}]),
            replace(Beam, New);
        {error, enoent} ->
            ok
    end.

%% In one step: a running node may load the file at any moment.
replace(File, Content) ->
    ok = file:write_file(File ++ ".new", Content),
    ok = file:rename(File ++ ".new", File).

%% The functions by name, each with the file and line where it is written.
in_place({docs_v1, Anno, Language, Format, Module, Meta, Entries}, Lines) ->
    {docs_v1, place(Anno, Lines), Language, Format, Module, Meta,
     lists:sort([setelement(2, Entry, place(element(2, Entry), Lines)) || Entry <- Entries])}.

place(Anno, none) ->
    Anno;
place(Anno, Lines) ->
    {File, Line} = element(erl_anno:line(Anno), Lines),
    erl_anno:set_file(File, erl_anno:set_line(Line, Anno)).

%% ---- the sources in one piece ----

with_copy(Fun) ->
    Random = integer_to_list(erlang:system_time()) ++ os:getpid(),
    Copy = filename:join(os:getenv("TMPDIR", "/tmp"), "larder_documentation_" ++ Random),
    ok = filelib:ensure_dir(filename:join([Copy, "chunks", "x"])),
    try
        Fun(Copy, copy(Copy))
    after
        file:del_dir_r(Copy)
    end.

%% Copies the sources. Of those that include documented functions: where each line comes from.
copy(Copy) ->
    Sources = filename:join([filename:dirname(filename:absname(escript:script_name())), "..",
                             "erlang", "src"]),
    [{ok, _} = file:copy(File, filename:join(Copy, filename:basename(File)))
     || File <- filelib:wildcard(Sources ++ "/*.[eh]rl")],
    Lines = whole(Sources, "larder.erl"),
    ok = file:write_file(filename:join(Copy, "larder.erl"), [[Text, $\n] || {_, Text} <- Lines]),
    #{"larder" => list_to_tuple([Place || {Place, _} <- Lines])}.

whole(Sources, Name) ->
    {ok, Content} = file:read_file(filename:join(Sources, Name)),
    Lines = binary:split(Content, <<"\n">>, [global]),
    lists:append([line(Sources, {Name, N}, Line)
                  || {N, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)]).

line(Sources, _Place, <<"-include(\"larder/", _/binary>> = Line) ->
    [_, File, _] = binary:split(Line, <<"\"">>, [global]),
    whole(Sources, binary_to_list(File));
line(_Sources, Place, Line) ->
    [{Place, Line}].

edoc(Copy, Options) ->
    edoc:files(filelib:wildcard(Copy ++ "/*.erl"),
               [{preprocess, true}, {includes, [Copy]} | Options]).

say(Text) ->
    io:format(standard_error, "~ts~n", [Text]).
