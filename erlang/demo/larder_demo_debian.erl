%% @doc The Debian package index of this machine, as Erlang terms.
%%
%% The lists that apt keeps under /var/lib/apt/lists are read (compressed or not); a machine that
%% has none has at least /var/lib/dpkg/status, which is written in the same format: paragraphs of
%% `Field: value' lines, a value going on over lines that begin with a space. Nothing is ever made
%% up: without either file there is an error.
-module(larder_demo_debian).

-export([places/0, read/2, reverse_dependencies/1]).

-export_type([package/0, relation/0, reverse/0, places/0]).

-define(LISTS, "/var/lib/apt/lists").
-define(STATUS, "/var/lib/dpkg/status").
-define(APT_HELPER, "/usr/lib/apt/apt-helper").

-type places() :: #{lists := file:filename(), status := file:filename(),
                    apt_helper := file:filename()}.
%% Where the index and apt's own reader are.
-type relation() :: [{Name :: binary(), any | {Op :: binary(), Version :: binary()}}].
%% One of several alternatives: `default-mta | mail-transport-agent'.
-type package() :: {Name :: binary(), #{atom() | binary() => term()}}.
-type reverse() :: {Target :: binary(), Dependent :: binary(), Kind :: atom()}.

%% @doc Where a Debian machine has them.
-spec places() -> places().
places() -> #{lists => ?LISTS, status => ?STATUS, apt_helper => ?APT_HELPER}.

%% @doc The files read, and the packages by name, in the order of the names. A package that several
%% files have is taken from the last of them. `Progress' is told what is being read.
-spec read(fun((iodata()) -> ok), places()) -> {[file:filename()], [package()]}.
read(Progress, #{apt_helper := AptHelper} = Places) ->
    Files = files(Places),
    All = lists:foldl(fun(File, Acc) ->
                          Progress(["reading ", File]),
                          maps:merge(Acc, maps:from_list(parse(contents(File, AptHelper))))
                      end, #{}, Files),
    map_size(All) > 0 orelse error({no_packages_in, Files}),
    {Files, lists:sort(maps:to_list(All))}.

%% @doc Who depends on what: a row for each dependency that a package names, alternatives included.
-spec reverse_dependencies([package()]) -> [reverse()].
reverse_dependencies(Packages) ->
    lists:usort([{Target, Name, Kind}
                 || {Name, Record} <- Packages,
                    Kind <- [pre_depends, depends, recommends],
                    Alternatives <- maps:get(Kind, Record, []),
                    {Target, _} <- Alternatives]).

%%% Files

files(#{lists := Folder, status := Status}) ->
    Pattern = filename:join(Folder, "*_Packages*"),
    Lists = [F || F <- filelib:wildcard(Pattern), filelib:is_regular(F), readable(F)],
    case {Lists, filelib:file_size(Status)} of
        {[_ | _], _} -> lists:sort(Lists);
        {[], Size} when Size > 0 -> [Status];
        {[], _} -> error({no_package_index, [Pattern, Status]})
    end.

%% Beside the lists lie other files, such as `..._Packages.diff_Index'.
readable(File) -> plain(File) orelse compressed(File).

plain(File) -> lists:suffix("_Packages", File).

compressed(File) ->
    lists:any(fun(Extension) -> lists:suffix("_Packages" ++ Extension, File) end,
              maps:keys(decompressors())).

%% Decompression is left to apt itself, which reads whatever it has written; without it, to the
%% usual tools.
contents(File, AptHelper) ->
    case {compressed(File), filelib:is_regular(AptHelper)} of
        {false, _} -> {ok, Bytes} = file:read_file(File), Bytes;
        {true, true} -> output_of(AptHelper, ["cat-file", File]);
        {true, false} -> output_of(decompressor(filename:extension(File)), ["-dc", File])
    end.

decompressors() ->
    #{".lz4" => "lz4", ".gz" => "gzip", ".xz" => "xz", ".bz2" => "bzip2", ".zst" => "zstd"}.

decompressor(Extension) ->
    Tool = maps:get(Extension, decompressors()),
    case os:find_executable(Tool) of
        false -> error({needed_to_read_the_package_lists, Tool});
        Path -> Path
    end.

output_of(Program, Args) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, binary, exit_status, use_stdio, hide]),
    collect(Port, Program, Args, []).

collect(Port, Program, Args, Acc) ->
    receive
        {Port, {data, Bytes}} -> collect(Port, Program, Args, [Acc, Bytes]);
        {Port, {exit_status, 0}} -> iolist_to_binary(Acc);
        {Port, {exit_status, Status}} -> error({failed, Program, Args, Status})
    end.

%%% Paragraphs

parse(Bytes) ->
    [Package || Paragraph <- binary:split(Bytes, <<"\n\n">>, [global]),
                {_, _} = Package <- [package(Paragraph)]].

package(Paragraph) ->
    Fields = fields(binary:split(Paragraph, <<"\n">>, [global]), []),
    case maps:from_list([field(Name, Value) || {Name, Value} <- Fields]) of
        #{package := Name} = Record -> {Name, Record};
        #{} -> none
    end.

%% Lines to {Name, Value}; a line that begins with a space belongs to the field before it.
fields([<<C, _/binary>> = Line | Lines], [{Name, Value} | Acc]) when C =:= $\s; C =:= $\t ->
    fields(Lines, [{Name, <<Value/binary, $\n, Line/binary>>} | Acc]);
fields([Line | Lines], Acc) ->
    case binary:split(Line, <<":">>) of
        [Name, Value] -> fields(Lines, [{Name, skip_spaces(Value)} | Acc]);
        [_] -> fields(Lines, Acc)
    end;
fields([], Acc) ->
    Acc.

field(Name, Value) ->
    case known(Name) of
        {Key, text} -> {Key, binary:copy(Value)};
        {Key, number} -> {Key, binary_to_integer(Value)};
        {Key, words} -> {Key, [binary:copy(W) || W <- words(Value, <<",">>)]};
        {Key, relations} -> {Key, [relation(R) || R <- words(Value, <<",">>)]};
        unknown -> {binary:copy(Name), binary:copy(Value)}
    end.

words(Value, Separator) ->
    Words = [trim(Part) || Part <- binary:split(Value, Separator, [global])],
    [Word || Word <- Words, Word =/= <<>>].

%% string:trim/1 knows all of Unicode, and takes half a minute over the whole index; here a blank is
%% a blank.
trim(Bytes) -> skip_spaces_at_end(skip_spaces(Bytes)).

skip_spaces(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\n -> skip_spaces(Rest);
skip_spaces(Bytes) -> Bytes.

skip_spaces_at_end(<<>>) -> <<>>;
skip_spaces_at_end(Bytes) ->
    case binary:last(Bytes) of
        C when C =:= $\s; C =:= $\t;
        C =:= $\n -> skip_spaces_at_end(binary:part(Bytes, 0, byte_size(Bytes) - 1));
        _ -> Bytes
    end.

-spec relation(binary()) -> relation().
relation(Text) ->
    [alternative(A) || A <- words(Text, <<"|">>)].

%% `name:arch (op version) [arch ...]': the name without its architecture, and the version that is
%% asked for.
alternative(Text) ->
    [Name | Rest] = binary:split(Text, [<<" ">>, <<"(">>]),
    [Bare | _] = binary:split(Name, <<":">>),
    {binary:copy(Bare), constraint(Rest)}.

constraint([Rest]) ->
    case binary:split(skip_spaces(Rest), [<<"(">>, <<" ">>, <<")">>], [global, trim_all]) of
        [Op, Version | _] -> {binary:copy(Op), binary:copy(Version)};
        _ -> any
    end;
constraint([]) ->
    any.

%% The fields that get an atom for a key; the others keep their name.
known(<<"Package">>) -> {package, text};
known(<<"Version">>) -> {version, text};
known(<<"Section">>) -> {section, text};
known(<<"Priority">>) -> {priority, text};
known(<<"Architecture">>) -> {architecture, text};
known(<<"Multi-Arch">>) -> {multi_arch, text};
known(<<"Maintainer">>) -> {maintainer, text};
known(<<"Source">>) -> {source, text};
known(<<"Homepage">>) -> {homepage, text};
known(<<"Description">>) -> {description, text};
known(<<"Description-md5">>) -> {description_md5, text};
known(<<"Filename">>) -> {filename, text};
known(<<"MD5sum">>) -> {md5sum, text};
known(<<"SHA256">>) -> {sha256, text};
known(<<"Installed-Size">>) -> {installed_size, number};
known(<<"Size">>) -> {size, number};
known(<<"Tag">>) -> {tag, words};
known(<<"Depends">>) -> {depends, relations};
known(<<"Pre-Depends">>) -> {pre_depends, relations};
known(<<"Recommends">>) -> {recommends, relations};
known(<<"Suggests">>) -> {suggests, relations};
known(<<"Enhances">>) -> {enhances, relations};
known(<<"Conflicts">>) -> {conflicts, relations};
known(<<"Breaks">>) -> {breaks, relations};
known(<<"Replaces">>) -> {replaces, relations};
known(<<"Provides">>) -> {provides, relations};
known(_) -> unknown.
