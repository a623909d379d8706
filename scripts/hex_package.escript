#!/usr/bin/env escript
%% hex_package.escript FOLDER FILE: makes the package for Hex of what is in a folder, a checkout or
%% the like of one, as `mix hex.build` and `rebar3 hex build` would: what larder.app.src names under
%% `files'. Hex itself isn't needed. Prints the SHA-256 of the package, by which Hex knows it.
%%
%% A package is a tar archive of four files (hexpm/specifications, package_tarball.md):
%%
%%   VERSION           3, the version of this format
%%   metadata.config   what it is, as Erlang terms (package_metadata.md)
%%   contents.tar.gz   its files
%%   CHECKSUM          SHA-256 of these three, one after the other
%%
%% The same folder gives the same bytes: entries are sorted, and have no date and no owner.
-mode(compile).

main([Folder, File]) ->
    Target = filename:absname(File),
    ok = file:set_cwd(Folder),
    {ok, [{application, larder, Properties}]} = file:consult("erlang/larder.app.src"),
    Files = lists:usort(lists:flatmap(fun below/1, proplists:get_value(files, Properties))),
    Version = <<"3">>,
    Metadata = metadata(Properties, Files),
    Contents = zlib:gzip(tar(Target, [{Name, Name} || Name <- Files])),
    Checksum = binary:encode_hex(crypto:hash(sha256, [Version, Metadata, Contents])),
    Package = tar(Target, [{"VERSION", Version}, {"CHECKSUM", Checksum},
                           {"metadata.config", Metadata}, {"contents.tar.gz", Contents}]),
    ok = file:write_file(Target, Package),
    io:format("~s~n", [string:lowercase(binary:encode_hex(crypto:hash(sha256, Package)))]);
main(_) ->
    io:put_chars(standard_error, "larder: hex_package.escript FOLDER FILE\n"),
    halt(2).

%% The files of a path: itself, or all that is below a folder.
below(Path) ->
    case {filelib:is_dir(Path), filelib:is_regular(Path)} of
        {true, _} -> [Name || Name <- filelib:wildcard(Path ++ "/**"), filelib:is_regular(Name)];
        {_, true} -> [Path];
        _ -> io:format(standard_error, "larder: ~s is not there~n", [Path]), halt(1)
    end.

metadata(Properties, Files) ->
    Of = fun(Key) -> text(proplists:get_value(Key, Properties)) end,
    Terms = [{<<"name">>, <<"larder">>},
             {<<"app">>, <<"larder">>},
             {<<"version">>, Of(vsn)},
             {<<"description">>, Of(description)},
             {<<"elixir">>, elixir()},
             {<<"licenses">>, [text(Name) || Name <- proplists:get_value(licenses, Properties)]},
             {<<"links">>,
              [{text(Name), text(Url)} || {Name, Url} <- proplists:get_value(links, Properties)]},
             {<<"build_tools">>, [<<"mix">>, <<"rebar3">>, <<"make">>]},
             {<<"requirements">>, []},
             {<<"files">>, [text(Name) || Name <- Files]}],
    unicode:characters_to_binary([io_lib:format("~tp.~n", [Term]) || Term <- Terms]).

%% What mix.exs asks for.
elixir() ->
    {ok, Mix} = file:read_file("mix.exs"),
    {match, [Requirement]} = re:run(Mix, "elixir: \"([^\"]+)\"", [{capture, all_but_first, binary}]),
    Requirement.

text(Text) -> unicode:characters_to_binary(Text).

%% Files by their names, or as they are given. erl_tar writes to a file.
tar(Target, Entries) ->
    Place = Target ++ ".new",
    {ok, Tar} = erl_tar:open(Place, [write]),
    Plain = [{atime, 0}, {mtime, 0}, {ctime, 0}, {uid, 0}, {gid, 0}],
    [ok = erl_tar:add(Tar, Content, Name, Plain) || {Name, Content} <- Entries],
    ok = erl_tar:close(Tar),
    {ok, Bytes} = file:read_file(Place),
    ok = file:delete(Place),
    Bytes.
