%% The documentation that the shell shows (EEP 48): h(larder), h(larder, insert, 2), ht(larder).
-module(documentation_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/eep48.hrl").

%% The modules for users; all others say @private.
-define(PUBLIC, [larder, larder_mnesia, larder_move, larder_ra, larder_ra_snapshot, larder_rebar,
                 larder_transform]).

every_module_is_public_or_private_test() ->
    case application:load(larder) of
        ok -> ok;
        {error, {already_loaded, larder}} -> ok
    end,
    {ok, Modules} = application:get_key(larder, modules),
    Shown = [M || M <- Modules, #docs_v1{module_doc = #{}} <- [docs(M)]],
    ?assertEqual(?PUBLIC, lists:sort(Shown)),
    ?assertEqual([], [M || M <- Modules -- Shown, (docs(M))#docs_v1.module_doc =/= hidden]).

%% What is said of a table's function is more than its name in other words: two sentences.
every_function_is_described_test() ->
    ?assertEqual([], [{M, F, A} || M <- ?PUBLIC, {F, A} <- functions(M),
                                   sentences(text(M, {function, F, A})) < least(M)]).

least(larder) -> 2;
least(_) -> 1.

%% Some of the parse transform's are not for users.
functions(larder_transform) -> [{parse_transform, 2}, {format_error, 1}];
%% Mnesia calls the others.
functions(larder_mnesia) -> [{register, 0}, {register, 1}];
%% rebar3 calls them.
functions(larder_rebar) -> [];
%% Ra calls all of the one's; that one calls some of the other's.
functions(larder_ra_snapshot) -> [];
functions(larder_ra) ->
    [{new, 2}, {new, 3}, {table, 2}, {rest, 1}, {set_rest, 2}, {add_table, 3}, {drop_table, 2},
     {overview, 1}, {reply, 3}, {reply, 4}, {release_cursor, 2}];
functions(Module) -> Module:module_info(exports) -- [{module_info, 0}, {module_info, 1}].

every_type_is_described_test() ->
    #docs_v1{docs = Entries} = docs(larder),
    Types = [Key || {{type, _, _} = Key, _, _, _, _} <- Entries],
    ?assert(length(Types) > 15),
    ?assertEqual([], [Key || Key <- Types, sentences(text(larder, Key)) < 1]).

%% A quote that EDoc took for another one leaves its partner in the text.
quotes_are_in_pairs_test() ->
    Stray = [{M, Key} || M <- ?PUBLIC, #docs_v1{docs = Entries} <- [docs(M)],
                         {Key, _, _, #{<<"en">> := Doc}, _} <- Entries,
                         re:run(outside_code(Doc), "`|''") =/= nomatch],
    ?assertEqual([], Stray).

outside_code(Text) when is_binary(Text) -> Text;
outside_code({code, _Attributes, _Inner}) -> " ";
outside_code({_Tag, _Attributes, Inner}) -> outside_code(Inner);
outside_code(List) when is_list(List) -> lists:map(fun outside_code/1, List).

text(Module, Key) ->
    #docs_v1{docs = Entries} = docs(Module),
    case lists:keyfind(Key, 1, Entries) of
        {_, _, _, #{<<"en">> := Doc}, _} -> unicode:characters_to_list(plain(Doc));
        _ -> ""
    end.

plain(Text) when is_binary(Text) -> Text;
plain({code, _Attributes, Inner}) -> plain(Inner);
plain({_Tag, _Attributes, Inner}) -> [plain(Inner), " "];
plain(List) when is_list(List) -> lists:map(fun plain/1, List).

sentences(Text) ->
    case re:run(Text, "[a-z0-9)\\]'}][.:](\\s|$)", [global]) of
        {match, Found} -> length(Found);
        nomatch -> 0
    end.

%% What the shell makes of it.
renders_test_() ->
    [{atom_to_list(M), fun() -> larder_test_io:capture(fun() -> renders(M) end) end}
     || M <- ?PUBLIC].

renders(Module) ->
    Docs = docs(Module),
    ok = shell_docs:validate(Docs),
    ?assert(shown(shell_docs:render(Module, Docs))),
    [begin
         ?assert(shown(shell_docs:render(Module, F, Docs))),
         ?assert(shown(shell_docs:render(Module, F, A, Docs)))
     end || {F, A} <- functions(Module)],
    [?assert(shown(shell_docs:render_type(Module, T, A, Docs)))
     || {{type, T, A}, _, _, _, _} <- Docs#docs_v1.docs].

shown(Text) ->
    is_binary(unicode:characters_to_binary(Text)).

the_shell_shows_it_test() ->
    [begin
         %% What is longer than a page is asked for page by page.
         {ok, Said} = larder_test_io:capture(Ask, lists:duplicate(99, "y\n")),
         ?assertNotEqual({Words, nomatch}, {Words, string:find(Said, Words)})
     end || {Ask, Words} <- [{fun() -> c:h(larder) end, "Term storage"},
                             {fun() -> c:h(larder, insert) end, "-spec insert("},
                             {fun() -> c:h(larder, insert, 2) end, "-spec insert("},
                             {fun() -> c:ht(larder) end, "-type table() ::"},
                             {fun() -> c:ht(larder, table) end, "-type table() ::"}]].

%% A function is where it is written, not in the copy that EDoc reads.
places_test() ->
    #docs_v1{docs = Entries} = docs(larder),
    {_, Anno, _, _, _} = lists:keyfind({function, insert, 2}, 1, Entries),
    File = filename:join([larder_docs_tests:root(), "erlang", "src", erl_anno:file(Anno)]),
    {ok, Content} = file:read_file(File),
    Line = lists:nth(erl_anno:line(Anno), binary:split(Content, <<"\n">>, [global])),
    ?assertMatch(<<"insert(", _/binary>>, Line).

docs(Module) ->
    {ok, Docs} = code:get_doc(Module),
    Docs.
