%% docs/semantics.md and docs/promises.md name a test for each promise; here is the test
%% that the pages don't name what isn't there, and that the first leaves no function out.
-module(larder_docs_tests).

-export([root/0]).

-include_lib("eunit/include/eunit.hrl").

%% `module:function' is a test function of a suite that lies beside this one.
every_erlang_test_exists_test() ->
    Named = matches("`([a-z_0-9]+_tests):([a-z_0-9]+)`"),
    ?assert(length(Named) > 80),
    ?assertEqual([],
                 [lists:concat([M, ":", F]) || [M, F] <- lists:usort(Named), not is_test(M, F)]).

is_test(Module, Function) ->
    case code:ensure_loaded(list_to_atom(Module)) of
        {module, Loaded} -> lists:member({list_to_atom(Function), 0}, Loaded:module_info(exports));
        _ -> false
    end.

%% `crates/.../file.rs::name' is a test in that file; without a name, a file.
every_rust_test_exists_test() ->
    Named = matches("`((?:crates|fuzz)/[^`:]+\\.rs)(?:::([a-z_0-9]+))?`"),
    ?assertEqual([], [Place || Place <- lists:usort(Named), not is_rust_test(Place)]).

is_rust_test([File]) ->
    filelib:is_regular(filename:join(root(), File));
is_rust_test([File, Name]) ->
    case file:read_file(filename:join(root(), File)) of
        {ok, Text} -> string:find(Text, "fn " ++ Name ++ "(") =/= nomatch;
        _ -> false
    end.

%% `test/file.exs: title' is an ExUnit test of that title.
every_elixir_test_exists_test() ->
    Named = matches("`(test/[a-z_0-9]+\\.exs): ([^`]+)`"),
    ?assertEqual([],
                 [Title || [File, Title] <- lists:usort(Named), not is_elixir_test(File, Title)]).

is_elixir_test(File, Title) ->
    {ok, Text} = file:read_file(filename:join(root(), File)),
    string:find(Text, "test \"" ++ Title ++ "\"") =/= nomatch.

%% Each function that ets has, too, has its line: a row that begins with its name and arities. What
%% has a line is a function.
every_function_has_a_row_test() ->
    Rows = [{Name, [list_to_integer(A) || A <- string:lexemes(Arities, ",")]}
            || Cell <- matches("\n\\| ((?:`[a-z_0-9]+/[0-9,]+` ?)+)\\|"),
               [Name, Arities] <- named_in(Cell)],
    Described = [{list_to_atom(Name), Arity} || {Name, Arities} <- Rows, Arity <- Arities],
    Functions = larder_transform:supported() -- [{module_info, 0}, {module_info, 1}],
    ?assertEqual([], Functions -- Described),
    ?assertEqual([], Described -- larder:module_info(exports)).

named_in([Cell]) ->
    {match, Found} = re:run(Cell, "`([a-z_0-9]+)/([0-9,]+)`",
                            [global, {capture, all_but_first, list}]),
    Found.

%% Each promise has a test, or says in words why there is none: the rows of tables with a column
%% "held by".
every_promise_has_a_test_test() ->
    {ok, Page} = file:read_file(filename:join([root(), "docs", "promises.md"])),
    {match, Tables} = re:run(Page, "\n\\|[^\n]*\\| held by \\|\n\\|[-|]*\n((?:\\|[^\n]*\n)+)",
                             [global, {capture, all_but_first, binary}]),
    Rows = [Row || [Table] <- Tables, Row <- binary:split(Table, <<"\n">>, [global, trim])],
    ?assert(length(Rows) > 35),
    Test = "_test_?`|\\.rs(::[a-z_0-9]+)?`|nothing to hold",
    ?assertEqual([], [Row || Row <- Rows, re:run(Row, Test) =:= nomatch]).

matches(Regexp) ->
    matches("semantics.md", Regexp) ++ matches("promises.md", Regexp).

matches(Name, Regexp) ->
    {ok, Page} = file:read_file(filename:join([root(), "docs", Name])),
    case re:run(Page, Regexp, [global, unicode, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

%% The tests run in the repository or below it.
root() ->
    {ok, Here} = file:get_cwd(),
    root(Here).

root(Dir) ->
    case filelib:is_regular(filename:join([Dir, "docs", "semantics.md"])) of
        true -> Dir;
        false when Dir =:= "/" -> error(docs_semantics_not_found);
        false -> root(filename:dirname(Dir))
    end.
