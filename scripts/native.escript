#!/usr/bin/env escript
%% native.escript: puts the native library into priv/, for rebar3 and mix, which run it before they
%% compile.
%%
%% A package has a list of the prebuilt libraries that were published with it, prebuilt.sha256. If
%% one is for this platform, its archive is got, checked against that list, and unpacked. If there
%% is none, or it can't be got, `make nif` builds the library with cargo; a line says so. An archive
%% with another checksum than the list's is never used: the compilation fails.
%%
%%   LARDER_BUILD=1       builds the library, whatever is there prebuilt
%%   LARDER_PREBUILT=DIR  where the archives are: a folder, or the URL of one. Without it they come
%%                        from the release of the repository that larder.app.src links to, if it
%%                        links to one
%%
%% A checkout has no list of checksums, and always builds.
-mode(compile).

-define(LIBRARY, "larder_nif.so").
%% Of one step of a download, in milliseconds.
-define(CONNECT, 15000).
-define(DOWNLOAD, 120000).
%% Variables of the environment that are meant for another program's Makefile, and would be settings
%% of ours: what was given to a `make` that compiles the program, and names that we use.
-define(NOT_OURS, ["MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MAKEFILES",
                   "PROFILE", "QUIET", "LOCKED"]).

main([]) ->
    ok = file:set_cwd(filename:dirname(filename:dirname(filename:absname(escript:script_name())))),
    case is_set("LARDER_BUILD") of
        true -> build();
        false -> prebuilt(checksums())
    end;
%% The end of an archive's name, for who makes one here.
main(["platform"]) ->
    io:format("~s~n", [platform()]);
main(_) ->
    die("native.escript: no arguments, or platform").

%% ---- a prebuilt library ----

%% The package's list: lines of SHA-256 and name, as sha256sum writes and reads them.
checksums() ->
    case file:read_file("prebuilt.sha256") of
        {ok, Text} ->
            [{binary_to_list(Name), string:lowercase(Sum)}
             || Line <- binary:split(Text, <<"\n">>, [global]),
                [Sum, Name] <- [string:lexemes(Line, " *")]];
        {error, enoent} ->
            none
    end.

prebuilt(none) ->
    is_set("LARDER_PREBUILT") andalso
        say("larder: LARDER_PREBUILT is passed over: without the list of checksums that a package"
            " has, no prebuilt library can be trusted"),
    build();
prebuilt(Sums) ->
    case [Entry || {Name, _} = Entry <- Sums, is_for_here(Name)] of
        [{Name, Sum} | _] -> install(Name, Sum);
        [] -> instead("no library is prebuilt for " ++ platform())
    end.

%% larder-VERSION-nif-MAJOR.MINOR-PLATFORM.tar.gz: a library for an older minor version of the
%% interface loads, too.
is_for_here(Name) ->
    Pattern = "^\\Qlarder-" ++ version() ++ "-nif-\\E([0-9]+)[.]([0-9]+)\\Q-" ++ platform()
        ++ ".tar.gz\\E$",
    case re:run(Name, Pattern, [{capture, all_but_first, list}]) of
        {match, [Major, Minor]} ->
            [OurMajor, OurMinor] = string:lexemes(erlang:system_info(nif_version), "."),
            Major =:= OurMajor andalso list_to_integer(Minor) =< list_to_integer(OurMinor);
        nomatch ->
            false
    end.

%% The emulator's, not the machine's: an emulator may be one for musl on a machine with glibc.
platform() ->
    Parts = [Cpu | _] = string:lexemes(erlang:system_info(system_architecture), "-"),
    Known = #{"amd64" => "x86_64", "arm64" => "aarch64"},
    maps:get(Cpu, Known, Cpu) ++ "-" ++ system(os:type(), lists:last(Parts)).

system({unix, linux}, "musl" ++ _) -> "linux-musl";
system({unix, linux}, "gnu" ++ Abi) -> "linux-gnu" ++ Abi;
system({unix, darwin}, _) -> "apple-darwin";
system(_, Other) -> Other.

%% An archive that was got stays under _build: compiling again needs no network.
install(Name, Sum) ->
    Kept = filename:join(["_build", "prebuilt", Name]),
    case file:read_file(Kept) of
        {ok, Archive} ->
            case sum(Archive) of
                Sum -> unpack(Kept, Archive);
                _ -> fetch(place(), Name, Sum, Kept)
            end;
        {error, _} ->
            fetch(place(), Name, Sum, Kept)
    end.

fetch(none, _Name, _Sum, _Kept) ->
    instead("the package names no place of prebuilt libraries, nor does LARDER_PREBUILT");
fetch(Place, Name, Sum, Kept) ->
    From = Place ++ "/" ++ Name,
    case read(From) of
        {ok, Archive} ->
            case sum(Archive) of
                Sum ->
                    ok = filelib:ensure_dir(Kept),
                    ok = replace(Kept, Archive),
                    say("larder: the native library is " ++ From),
                    unpack(From, Archive);
                Other ->
                    die(["larder: ", From, " is not the library that was published with this"
                         " package, and is not used.\n",
                         "  its SHA-256:   ", Other, "\n",
                         "  prebuilt.sha256: ", Sum, "\n",
                         "  LARDER_BUILD=1 builds the library from its sources."])
            end;
        {error, Why} ->
            instead([From, " can't be had (", Why, ")"])
    end.

place() ->
    case os:getenv("LARDER_PREBUILT", "") of
        "" ->
            case proplists:get_value("Repository", property(links)) of
                undefined -> none;
                Repository -> Repository ++ "/releases/download/v" ++ version()
            end;
        Place ->
            is_url(Place) orelse filename:pathtype(Place) =:= absolute orelse
                die(["larder: LARDER_PREBUILT=", Place, " is neither a URL nor an absolute path"]),
            string:trim(Place, trailing, "/")
    end.

%% Written beside its place and moved there in one step: a running node that has the old one mapped
%% is not disturbed.
unpack(From, Archive) ->
    case erl_tar:extract({binary, Archive}, [memory, compressed, {files, [?LIBRARY]}]) of
        {ok, [{?LIBRARY, Library}]} ->
            Place = filename:join("priv", ?LIBRARY),
            ok = filelib:ensure_dir(Place),
            file:read_file(Place) =:= {ok, Library} orelse replace(Place, Library),
            ok;
        _ ->
            die(["larder: ", From, " has no ", ?LIBRARY])
    end.

replace(Place, Content) ->
    ok = file:write_file(Place ++ ".new", Content),
    file:rename(Place ++ ".new", Place).

sum(Archive) -> string:lowercase(binary:encode_hex(crypto:hash(sha256, Archive))).

%% ---- getting it ----

read(From) ->
    case is_url(From) of
        true ->
            try download(From)
            catch _:Reason -> {error, io_lib:format("~0tp", [Reason])}
            end;
        false ->
            case file:read_file(From) of
                {error, Reason} -> {error, file:format_error(Reason)};
                Read -> Read
            end
    end.

is_url(Place) ->
    lists:prefix("https://", Place) orelse lists:prefix("http://", Place).

%% OTP's own client. Debian has it in packages of its own (erlang-inets, erlang-ssl).
download(Url) ->
    [case application:ensure_all_started(App) of
         {ok, _} -> ok;
         {error, _} -> error({"the OTP application is missing", App})
     end || App <- [inets, ssl]],
    proxies(),
    Options = [{connect_timeout, ?CONNECT}, {timeout, ?DOWNLOAD}, {ssl, trust(Url)}],
    case httpc:request(get, {Url, [{"user-agent", "larder"}]}, Options, [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Body}} -> {ok, Body};
        {ok, {{_, Status, Phrase}, _, _}} -> {error, io_lib:format("~w ~s", [Status, Phrase])};
        {error, {failed_connect, Reasons}} -> {error, io_lib:format("~0tp", [lists:last(Reasons)])};
        {error, Reason} -> {error, io_lib:format("~0tp", [Reason])}
    end.

trust("https://" ++ _) ->
    [{verify, verify_peer}, {depth, 10}, {cacerts, public_key:cacerts_get()},
     {customize_hostname_check, [{match_fun, public_key:pkix_verify_hostname_match_fun(https)}]}];
trust(_) ->
    [].

%% As other clients have them.
proxies() ->
    NoProxy = string:lexemes(either("NO_PROXY", "no_proxy"), ", "),
    [case uri_string:parse(either(string:uppercase(Name), Name)) of
         #{host := Host} = Uri ->
             Proxy = {Host, maps:get(port, Uri, 80)},
             httpc:set_options([{Option, {Proxy, NoProxy}}]);
         _ ->
             none
     end || {Name, Option} <- [{"http_proxy", proxy}, {"https_proxy", https_proxy}]].

either(Name, OrElse) -> os:getenv(Name, os:getenv(OrElse, "")).

%% ---- building it ----

instead(Why) ->
    say(["larder: ", Why, ": building the native library with cargo"]),
    build().

build() ->
    case [Path || Name <- ["gmake", "make"], (Path = os:find_executable(Name)) =/= false] of
        [Make | _] ->
            %% It speaks for itself: its standard output is ours.
            Port = open_port({spawn_executable, Make},
                             [{args, ["nif"]}, {env, [{Name, false} || Name <- ?NOT_OURS]},
                              exit_status, nouse_stdio]),
            receive
                {Port, {exit_status, 0}} ->
                    ok;
                {Port, {exit_status, Status}} ->
                    die(io_lib:format("larder: `make nif` failed (exit status ~w); the lines above"
                                      " say why", [Status]))
            end;
        [] ->
            die("larder: building the native library needs make")
    end.

%% ---- the package ----

version() -> property(vsn).

property(Key) ->
    {ok, [{application, larder, Properties}]} = file:consult("erlang/larder.app.src"),
    proplists:get_value(Key, Properties).

is_set(Name) -> not lists:member(os:getenv(Name, ""), ["", "0"]).

say(Words) -> io:put_chars(standard_error, [Words, $\n]).

-spec die(iodata()) -> no_return().
die(Words) ->
    say(Words),
    halt(1).
