%% Erlang modules and a native library of different versions: the library isn't loaded, and says
%% which versions met.
-module(larder_version_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OTHER, "0.0.9").

%% A node that starts with modules of another version.
other_modules_are_refused_test_() ->
    {timeout, 60, fun() ->
        in_folder(fun(Dir) ->
            ok = file:write_file(filename:join(Dir, "larder_nif.beam"), other_modules()),
            Said = erl([ebin(), Dir], "{error, on_load_failure} = code:ensure_loaded(larder_nif)"),
            says_both_versions(Said)
        end)
    end}.

%% Modules of another version that are loaded into a node where the library is in use: the node
%% keeps the modules that it has, and its tables.
other_modules_are_no_upgrade_test_() ->
    {timeout, 60, fun() ->
        in_folder(fun(Dir) ->
            File = filename:join(Dir, "other"),
            ok = file:write_file(File, other_modules()),
            Said = erl([ebin()],
                       "T = larder:new(t, []), true = larder:insert(T, {1, a}),"
                       "{ok, Other} = file:read_file(\"" ++ File ++ "\"),"
                       "{error, on_load_failure} ="
                       "  code:load_binary(larder_nif, code:which(larder_nif), Other),"
                       "[{1, a}] = larder:lookup(T, 1), true = larder:delete(T),"
                       "larder:delete(larder:new(t, []))"),
            says_both_versions(Said)
        end)
    end}.

says_both_versions(Said) ->
    [?assertNotEqual({nomatch, Said}, {string:find(Said, Text), Said})
     || Text <- ["larder: the native library's version is " ++ version(),
                 "that of the Erlang modules is " ++ ?OTHER, "restart the node", "~done~"]].

%% What a node says that evaluates these expressions. The last path comes first.
erl(Paths, Expressions) ->
    Options = ["-pa " ++ lists:join(" ", Paths), " -env ERL_CRASH_DUMP_SECONDS 0 "],
    Eval = Expressions ++ ", io:put_chars(\"~done~\"), halt().",
    os:cmd(lists:flatten(["erl -noinput -boot start_clean ", Options, "-eval '", Eval, "' 2>&1"])).

%% The module that loads the library, compiled for another version.
other_modules() ->
    File = code:which(larder_nif),
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(File, [abstract_code]),
    Version = version(),
    Replaced = [erl_syntax:revert(erl_syntax_lib:map(
        fun(Tree) ->
            case erl_syntax:type(Tree) =:= string andalso erl_syntax:string_value(Tree) of
                Version -> erl_syntax:string(?OTHER);
                _ -> Tree
            end
        end, Form)) || Form <- Forms],
    ?assertNotEqual(Forms, Replaced),
    {ok, larder_nif, Beam} = compile:forms(Replaced),
    Beam.

%% The application's version. That the modules have it, other_modules/0 finds.
version() ->
    _ = application:load(larder),
    {ok, Version} = application:get_key(larder, vsn),
    Version.

ebin() -> filename:absname(filename:dirname(code:which(larder))).

in_folder(Fun) ->
    Dir = larder_test:file("versions"),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    try Fun(filename:absname(Dir)) after file:del_dir_r(Dir) end.
