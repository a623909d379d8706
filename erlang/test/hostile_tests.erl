%% @doc Data and specifications made to hurt: keys whose hashes are alike, terms of a million
%% levels, maps of a million keys, large binaries and parts of them, atoms by the million,
%% specifications built to explode. What they take, of time and of memory, stays within what
%% docs/promises.md names.
-module(hostile_tests).

-export([hash_flooding_test_/0, deep_terms_test_/0, deep_keys_test_/0, wide_maps_test_/0,
         wide_rows_test_/0, wide_rows_from_both_ends_test_/0, longer_elements_test_/0,
         large_binaries_test_/0,
         sub_binaries_pin_nothing_test_/0, no_atoms_from_data_test_/0, a_file_of_atoms_test_/0,
         a_file_of_compressed_atoms_test_/0, files_of_atoms_test_/0,
         more_atoms_than_the_limit_test_/0,
         exploding_specifications_test_/0, lying_files_test_/0, terms_from_noise_test_/0,
         altered_funs_test_/0, records_of_later_releases_test_/0]).

%% So many of the types, or all of them when there is time (LARDER_CASES over 100).
tests(Title, Seconds, Count, Fun) ->
    [larder_test:tc(lists:concat([Title, ", ", Type]), Seconds, larder, fun() -> Fun(Type) end)
     || larder_test:sut() =:= larder, Type <- types(Count)].

types(Count) ->
    lists:sublist([ordered_set, set, bag, duplicate_bag], min(4, larder_test:scaled(Count))).

test(Title, Seconds, Fun) ->
    [larder_test:tc(Title, Seconds, larder, Fun) || larder_test:sut() =:= larder].

%% Hash flooding ----------------------------------------------------------------------------------

%% Keys that Erlang's own hash takes for one, and keys whose bytes differ in few bits: every table
%% hashes with a secret of its own, so they cost what other keys cost. Compared side by side, best
%% of three.
hash_flooding_test_() ->
    tests("keys made to collide", 120, 2, fun(Type) ->
        Count = 10000,
        Plain = filled(Type, [{{plain, rand:uniform(1 bsl 50)}, 1} || _ <- lists:seq(1, Count)]),
        [begin
             Hostile = filled(Type, [{K, 1} || K <- Keys]),
             {Title, true} = {Title, Hostile < 8 * Plain + 50000}
         end || {Title, Keys} <- colliding(Count)]
    end).

filled(Type, Rows) ->
    lists:min([begin
        T = larder:new(hostile, [Type]),
        {Us, _} = larder_test:microseconds(fun() ->
            [true = larder:insert(T, Row) || Row <- Rows],
            [[_ | _] = larder:lookup(T, element(1, Row)) || Row <- Rows]
        end),
        true = larder:delete(T),
        Us
    end || _ <- lists:seq(1, 3)]).

colliding(Count) ->
    [{phash2, collisions(Count, 16)},
     {low_bits, [K bsl 40 || K <- lists:seq(1, Count)]},
     {multiples, [K * 65536 || K <- lists:seq(1, Count)]},
     {long_and_alike, [<<0:400, K:32>> || K <- lists:seq(1, Count)]},
     {tuples, [{{{K band 1, K bsr 1}}} || K <- lists:seq(1, Count)]}].

%% Keys in one of 2^Bits classes of erlang:phash2/2.
collisions(Count, Bits) ->
    collisions(Count, 1 bsl Bits, 0, []).

collisions(0, _, _, Found) -> Found;
collisions(Count, Range, N, Found) ->
    case erlang:phash2(N, Range) < max(1, Range div 256) of
        true -> collisions(Count - 1, Range, N + 1, [N | Found]);
        false -> collisions(Count, Range, N + 1, Found)
    end.

%% Depth -------------------------------------------------------------------------------------------

-define(DEEP, 1000000).

deep() ->
    Deep = fun Nest(0, _, Term) -> Term; Nest(N, Wrap, Term) -> Nest(N - 1, Wrap, Wrap(Term)) end,
    [{tuples, Deep(?DEEP, fun(T) -> {T} end, x)},
     {lists, Deep(?DEEP, fun(T) -> [T] end, x)},
     {tails, Deep(?DEEP, fun(T) -> [a | T] end, x)},
     {maps, Deep(?DEEP div 50, fun(T) -> #{a => T} end, x)},
     {map_pairs, Deep(?DEEP div 5, fun(T) -> #{511 => T, 512 => 1} end, x)},
     {map_keys, Deep(?DEEP div 50, fun(T) -> #{T => a} end, x)},
     {mixed, Deep(?DEEP div 10, fun(T) -> {[#{a => {T, 1.5}}], <<"b">>} end, x)}].

%% A million levels in and out, compared, matched, saved and loaded: no stack is used up.
deep_terms_test_() ->
    tests("terms of a million levels", 200, 1, fun(Type) ->
        T = larder:new(hostile, [Type]),
        [begin
             true = larder:insert(T, {Name, Term}),
             [{Name, Back}] = larder:lookup(T, Name),
             true = Back =:= Term,
             true = larder:insert(T, {Name, Term}),
             1 = larder:select_count(T,
                                     [{{Name, '$1'}, [{'=:=', '$1', '$1'}],
                                       [true]}]) - length(larder:lookup(T, Name)) + 1,
             true = larder:delete_object(T, {Name, Term}),
             [] = larder:lookup(T, Name),
             true = larder:insert(T, {Name, Term}),
             within(20, fun() -> [_] = larder:match_object(T, {Name, Term}) end)
         end || {Name, Term} <- deep()],
        File = larder_test:file("hostile"),
        ok = larder:tab2file(T, File),
        {ok, Copy} = larder:file2tab(File),
        true = lists:sort(larder:tab2list(T)) =:= lists:sort(larder:tab2list(Copy)),
        ok = file:delete(File),
        [true = larder:delete(Tab) || Tab <- [T, Copy]]
    end).

%% Keys of a hundred thousand levels, two of which differ at the bottom alone.
deep_keys_test_() ->
    tests("keys of many levels", 100, 3, fun(Type) ->
        T = larder:new(hostile, [Type]),
        Nest = fun(Bottom) -> lists:foldl(fun(_, In) -> {In} end, Bottom, lists:seq(1, 100000)) end,
        %% A large map takes another way into a key.
        InMap = fun(Bottom) -> (maps:from_keys(lists:seq(1, 40), 0))#{7 := Nest(Bottom)} end,
        Keys = [Nest(B) || B <- [1, 2, a, "text", #{}]] ++ [InMap(B) || B <- [1, 2]],
        [true = larder:insert(T, {K, N}) || {K, N} <- lists:zip(Keys, lists:seq(1, 7))],
        [[{_, N}] = larder:lookup(T, K) || {K, N} <- lists:zip(Keys, lists:seq(1, 7))],
        [[] = larder:lookup(T, K) || K <- [Nest(3), InMap(3)]],
        7 = walked(T, larder:first(T), 0),
        [true = larder:delete(T, K) || K <- Keys],
        0 = larder:info(T, size),
        true = larder:delete(T)
    end).

walked(_, '$end_of_table', N) -> N;
walked(T, Key, N) -> walked(T, larder:next(T, Key), N + 1).

%% Breadth -----------------------------------------------------------------------------------------

wide_maps_test_() ->
    tests("maps of a million keys", 200, 1, fun(Type) ->
        T = larder:new(hostile, [Type]),
        Map = maps:from_list([{{K rem 7, K}, K} || K <- lists:seq(1, 1000000)]),
        within(20, fun() -> true = larder:insert(T, {map, Map}) end),
        within(20, fun() -> [{map, Back}] = larder:lookup(T, map), true = Back =:= Map end),
        %% As a key, where the type's order is to be found out.
        Small = maps:from_list([{K, K} || K <- lists:seq(1, 100000)]),
        true = larder:insert(T, {Small, 1}),
        true = larder:insert(T, {Small#{0 => 0}, 2}),
        [{_, 1}] = larder:lookup(T, Small),
        within(20, fun() -> [5] = larder:select(T, [{{map, #{{5, 5} => '$1'}}, [], ['$1']}]) end),
        true = larder:delete(T),
        %% The pairs of a map from a file lie in another order than those of the same map in a
        %% pattern.
        File = larder_test:file("wide"),
        U = larder:new(hostile, [Type]),
        true = larder:insert(U, {map, Small}),
        ok = larder:tab2file(U, File),
        true = larder:delete(U),
        {ok, V} = larder:file2tab(File),
        within(20, fun() -> [_] = larder:match_object(V, {'_', Small}) end),
        true = larder:delete(V),
        ok = file:delete(File)
    end).

%% All elements of a row at once, each named for itself and from the back: not the square of them.
wide_rows_test_() ->
    test("rows of 100,000 elements", 200, fun() ->
        Count = 100000,
        Places = lists:seq(Count, 2, -1),
        [begin
             T = larder:new(hostile, Options),
             true = larder:insert(T, list_to_tuple(lists:seq(1, Count))),
             within(5, fun() ->
                 true = larder:update_element(T, 1, [{P, -P} || P <- Places ++ Places]) end),
             Sums = within(5,
                           fun() -> larder:update_counter(T, 1, [{P, 2 * P} || P <- Places]) end),
             Sums = Places,
             true = larder:lookup(T, 1) =:= [list_to_tuple(lists:seq(1, Count))],
             true = larder:delete(T)
         end || Options <- [[], [ordered_set], [compressed]]]
    end).

%% The counters of a row from both ends in turn. Each has so many bytes that no length of a group
%% is known.
wide_rows_from_both_ends_test_() ->
    test("100,000 counters from both ends", 200, fun() ->
        Count = 100000,
        [begin
             T = larder:new(hostile, Options),
             true = larder:insert(T, list_to_tuple([key | lists:duplicate(Count, 1 bsl 300)])),
             Places = lists:append([[P, Count + 3 - P] || P <- lists:seq(2, Count div 2 + 1)]),
             Sums = within(5, fun() -> larder:update_counter(T, key, [{P, 1} || P <- Places]) end),
             [1 bsl 300 + 1] = lists:usort(Sums),
             true = larder:delete(T)
         end || Options <- [[], [ordered_set]]]
    end).

%% All elements of a row at once, each by one of another length.
longer_elements_test_() ->
    test("400,000 elements become longer", 200, fun() ->
        Count = 400000,
        [begin
             T = larder:new(hostile, Options),
             true = larder:insert(T, list_to_tuple([key | lists:duplicate(Count, 1)])),
             within(10, fun() ->
                 true = larder:update_element(T, key, [{P, 1000} || P <- lists:seq(2, Count + 1)])
             end),
             true = larder:lookup(T, key) =:= [list_to_tuple([key | lists:duplicate(Count, 1000)])],
             true = larder:delete(T)
         end || Options <- [[], [ordered_set]]]
    end).

within(Seconds, Fun) ->
    {Us, Result} = larder_test:microseconds(Fun),
    {within, Seconds, true} = {within, Seconds, Us < Seconds * 1000000},
    Result.

%% Binaries ----------------------------------------------------------------------------------------

-define(LARGE, 100000000).

%% 100 MB in a row: kept once, however often it is stored into its place, read and read again; gone
%% with the row.
large_binaries_test_() ->
    test("binaries of 100 MB", 120, fun() ->
        T = larder:new(hostile, []),
        Large = binary:copy(<<"0123456789">>, ?LARGE div 10),
        Before = rss(),
        true = larder:insert(T, {large, Large}),
        %% What lies outside of the table is not counted, as with `ets'.
        true = larder:info(T, memory) < 10000,
        [begin [{large, Back}] = larder:lookup(T, large), true = byte_size(Back) =:= ?LARGE end
         || _ <- lists:seq(1, 20)],
        [[true] = larder:select(T, [{{large, '$1'}, [], [{is_binary, '$1'}]}])
         || _ <- lists:seq(1, 20)],
        [true = larder:insert(T, {large, Large}) || _ <- lists:seq(1, 5)],
        true = larder:info(T, memory) < 10000,
        erlang:garbage_collect(),
        true = larder_test:wait_until(fun() -> rss() < Before + 2 * ?LARGE end, 10000),
        true = larder:delete_all_objects(T),
        true = larder_test:wait_until(fun() -> rss() < Before + ?LARGE div 2 end, 10000),
        true = larder:delete(T),
        true = byte_size(Large) =:= ?LARGE
    end).

%% What is stored of a large binary does not keep the rest; what was read from a table and is kept
%% by a process is just what was stored.
sub_binaries_pin_nothing_test_() ->
    test("parts of large binaries pin nothing", 120, fun() ->
        T = larder:new(hostile, [public]),
        Before = {rss(), erlang:memory(binary)},
        {Pid, Mon} = spawn_monitor(fun() ->
            [begin
                 Large = binary:copy(<<N>>, ?LARGE div 4),
                 true = larder:insert(T,
                                      {N, binary:part(Large, 1000, Size),
                                       [binary:part(Large, 5, 10)]})
             end || {N, Size} <- lists:zip(lists:seq(1, 8),
                                           [1, 64, 65, 100, 1000, 10000, 63, 4000])]
        end),
        receive {'DOWN', Mon, process, Pid, Why} -> normal = Why end,
        {Rss, Binary} = Before,
        true = larder_test:wait_until(fun() -> erlang:memory(binary) < Binary + ?LARGE div 10 end),
        true = larder_test:wait_until(fun() -> rss() < Rss + ?LARGE div 2 end, 10000),
        true = larder:info(T, memory) * erlang:system_info(wordsize) < 200000,
        Parts = [Part || N <- lists:seq(1, 8), {_, Part, _} <- larder:lookup(T, N)],
        %% Bits, not bytes, is what OTP 27 says of short binaries.
        [true = binary:referenced_byte_size(Part) =< 8 * byte_size(Part) + 64 || Part <- Parts],
        true = larder:delete(T)
    end).

%% Resident bytes of the node.
rss() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:lexemes(binary_to_list(Text), " "),
    list_to_integer(Pages) * 4096.

%% Atoms -------------------------------------------------------------------------------------------

%% Nothing that is stored, looked up, matched or printed makes an atom.
no_atoms_from_data_test_() ->
    tests("no atoms from data", 60, 4, fun(Type) ->
        T = larder:new(hostile, [Type]),
        Work = fun(Rounds) ->
            [begin
                 Text = integer_to_list(N) ++ "_no_atom_yet",
                 Row = {Text, list_to_binary(Text), #{Text => {N, N * 1.5}}},
                 true = larder:insert(T, Row),
                 [Row] = larder:lookup(T, Text),
                 [] = larder:lookup(T, list_to_binary(Text)),
                 [Text] = larder:select(T, [{{'$1', list_to_binary(Text), '_'}, [], ['$1']}]),
                 _ = larder:info(T),
                 _ = (catch larder:update_counter(T, Text, {2, Text})),
                 _ = (catch larder:info(T, Text)),
                 _ = (catch larder:new(Text, [{Text, Text}])),
                 _ = (catch larder:new(t, [{structure, Text}])),
                 true = larder:delete(T, Text)
             end || N <- lists:seq(1, Rounds)]
        end,
        Work(3),
        Before = erlang:system_info(atom_count),
        Work(200),
        Before = erlang:system_info(atom_count),
        true = larder:delete(T)
    end).

%% A file with more atoms than the node has room for is refused: the node lives, and has none of
%% them. Made in a node that has the room, loaded in one that has not.
a_file_of_atoms_test_() ->
    a_file_of_atoms(larder, 1000) ++ a_file_of_atoms(ets, 50000).

%% Files of ets are read object by object: up to half of the room is taken before one is refused.
a_file_of_atoms(Format, Taken) ->
    test(lists:concat(["a file of atoms, ", Format]), 120, fun() ->
        File = larder_test:file(lists:concat(["atoms_", Format])),
        "ok" = in_a_node("+t 400000",
            "T = larder:new(t, []), "
            "[larder:insert(T, {N, list_to_atom(\"hostile_\" ++ integer_to_list(N))}) || N <- lists:seq(1, 150000)], "
            "io:format(\"~w\", [larder:tab2file(T, \"" ++ File ++ "\", [{format, " ++ atom_to_list(Format)
                ++ "}])])"),
        "{{error,system_limit},true,[]}" = in_a_node("+t 100000",
            "ok = element(1, {ok, code:ensure_loaded(larder_file)}), Count = erlang:system_info(atom_count), "
            "R = larder:file2tab(\"" ++ File ++ "\"), "
            "io:format(\"~w\", [{R, erlang:system_info(atom_count) < Count + " ++ integer_to_list(Taken) ++ ", larder:all()}])"),
        %% Where there is room it is loaded.
        "{150000,hostile_7}" = in_a_node("+t 400000",
            "{ok, T} = larder:file2tab(\"" ++ File ++ "\"), "
            "io:format(\"~w\", [{larder:info(T, size), larder:lookup_element(T, 7, 2)}])"),
        ok = file:delete(File)
    end).

%% Atoms of files whose objects nobody has read yet take room, too: neither several files nor one
%% that is tried again and again take more of it than there is. Then all that was loaded is read.
files_of_atoms_test_() ->
    test("several files of atoms", 120, fun() ->
        File = larder_test:file("atoms"),
        "ok" = in_a_node("+t 400000",
            "[begin T = larder:new(t, []), "
            "[larder:insert(T, {list_to_atom(lists:concat([hostile_, Name, N]))}) || N <- lists:seq(1, Count)], "
            "ok = larder:tab2file(T, lists:concat([\"" ++ File ++ "\", Name]), [{format, Format}]) "
            "end || {Name, Count, Format} <- [{a, 20000, larder}, {b, 20000, larder}, {c, 20000, larder}, "
            "{d, 70000, larder}, {e, 20000, ets}]], io:format(\"ok\")"),
        [Said = in_a_node("+t 60000",
            "Limit = erlang:system_info(atom_limit), "
            "Files = [lists:concat([\"" ++ File ++ "\", Name]) || Name <- " ++ Names ++ "], "
            "R = [larder:file2tab(Name) || Name <- Files], "
            "[_ = larder:tab2list(T) || {ok, T} <- R], "
            "io:format(\"~w\", [[element(1, Loaded) || Loaded <- R]])")
         || {Names, Said} <- [{"[a, b, c]", "[ok,error,error]"}, {"[a, e]", "[ok,error]"},
                              {"[d, d, d, d, d, d]", "[error,error,error,error,error,error]"}]],
        [ok = file:delete(File ++ Name) || Name <- ["a", "b", "c", "d", "e"]]
    end).

%% The emulator rounds its limit of atoms up: a node can have some more than it says. A file that
%% has no new ones is loaded there.
more_atoms_than_the_limit_test_() ->
    test("more atoms than the limit", 60, fun() ->
        File = larder_test:file("few_atoms"),
        "{true,1}" = in_a_node("+t 20000",
            "T = larder:new(t, []), true = larder:insert(T, {1, one}), ok = larder:tab2file(T, \""
                ++ File ++ "\"), "
            "{ok, First} = larder:file2tab(\"" ++ File ++ "\"), true = larder:delete(First), "
            "Limit = erlang:system_info(atom_limit), "
            "Fill = fun Fill(N) -> case erlang:system_info(atom_count) > Limit + 8 of true -> ok; "
            "    false -> _ = list_to_atom(\"fill_\" ++ integer_to_list(N)), Fill(N + 1) end end, Fill(1), "
            "{ok, U} = larder:file2tab(\"" ++ File ++ "\"), "
            "io:format(\"~w\", [{erlang:system_info(atom_count) > Limit, larder:info(U, size)}])"),
        ok = file:delete(File)
    end).

%% A compressed term has many atoms in few bytes.
a_file_of_compressed_atoms_test_() ->
    test("a file of ets with compressed atoms", 120, fun() ->
        File = larder_test:file("atoms_compressed"),
        "ok" = in_a_node("+t 400000",
            "File = \"" ++ File ++ "\", ok = larder:tab2file(larder:new(t, []), File, [{format, ets}]), "
            "{ok, Old} = disk_log:open([{name, old}, {file, File}, {mode, read_only}]), "
            "{_, [Header], 0} = disk_log:bchunk(Old, start, 1), ok = disk_log:close(Old), ok = file:delete(File), "
            "Letter = fun(N, Unit) -> $a + N div Unit rem 25 end, "
            "Atom = fun(N) -> list_to_atom([Letter(N, Unit) || Unit <- [15625, 625, 25, 1]]) end, "
            "Row = term_to_binary({1, [Atom(N) || N <- lists:seq(0, 249999)]}, [{compressed, 9}]), "
            "{ok, New} = disk_log:open([{name, new}, {file, File}]), "
            "ok = disk_log:blog_terms(New, [Header, Row]), io:format(\"~w\", [disk_log:close(New)])"),
        "{{error,system_limit},true}" = in_a_node("+t 400000",
            "Count = erlang:system_info(atom_count), R = larder:file2tab(\"" ++ File ++ "\"), "
            "io:format(\"~w\", [{R, erlang:system_info(atom_count) < Count + 100000}])"),
        ok = file:delete(File)
    end).

%% What another node prints.
in_a_node(Flags, Expression) ->
    Ebin = filename:absname(filename:dirname(code:which(larder))),
    Name = larder_test:file("expression"),
    ok = file:write_file(Name, [Expression, ".\n"]),
    Said = os:cmd(lists:concat(["erl ", Flags, " -noinput -boot start_clean -pa ", Ebin,
                                " -eval 'file:eval(\"", Name,
                                "\"), halt(0, [{flush, true}]).' 2>&1"])),
    ok = file:delete(Name),
    Said.

%% Specifications ----------------------------------------------------------------------------------

%% Built to take exponential time or memory where parts are copied or tried again: many clauses,
%% many variables of one name, results that hold the object many times over, guards that nest. Each
%% takes what is in proportion to specification and result.
exploding_specifications_test_() ->
    tests("specifications built to explode", 100, 1, fun(Type) ->
        T = larder:new(hostile, [Type]),
        true = larder:insert(T, [{K, lists:duplicate(50, K)} || K <- lists:seq(1, 100)]),
        [within(10, fun() -> {Title, _} = {Title, attempt(T, Spec)} end)
         || {Title, Spec} <- exploding()],
        100 = larder:info(T, size),
        true = larder:delete(T)
    end).

attempt(T, Spec) ->
    [case (catch apply(larder, F, [T, Spec])) of
         Answer when is_list(Answer); is_integer(Answer) -> ok;
         {'EXIT', {Why, _}} when Why =:= badarg; Why =:= system_limit -> refused
     end || F <- [select, select_count]].

exploding() ->
    Nest = fun Nest(0, _, Term) -> Term; Nest(N, Wrap, Term) -> Nest(N - 1, Wrap, Wrap(Term)) end,
    Wide = list_to_tuple(['$1', '$2']),
    [{doubling_guards,
      [{Wide, [Nest(15, fun(G) -> {'andalso', G, G} end, {is_integer, '$1'})], [true]}]},
     {doubling_orelse,
      [{Wide, [Nest(15, fun(G) -> {'orelse', G, G} end, {is_atom, '$1'})], [true]}]},
     {doubling_sums, [{Wide, [], [Nest(13, fun(G) -> {'+', G, G} end, '$1')]}]},
     {doubling_products, [{Wide, [], [Nest(12, fun(G) -> {'*', G, G} end, '$1')]}]},
     {doubling_shifts, [{Wide, [], [Nest(6, fun(G) -> {'bsl', G, G} end, '$1')]}]},
     {huge_shift, [{Wide, [], [{'bsl', 1, 1 bsl 40}]}]},
     {doubling_results, [{Wide, [], [Nest(8, fun(G) -> {{G, G}} end, '$_')]}]},
     {deep_not, [{Wide, [Nest(900, fun(G) -> {'not', G} end, {is_integer, '$1'})], [true]}]},
     {too_deep, [{Wide, [Nest(1000000, fun(G) -> {'not', G} end, true)], [true]}]},
     {many_clauses,
      [{{K, '_'}, [{'==', K, {element, 1, '$_'}}], [true]} || K <- lists:seq(1, 20000)]},
     {many_guards, [{Wide, [{'>', '$1', -K} || K <- lists:seq(1, 50000)], [true]}]},
     {same_variable, [{{'$1', lists:duplicate(50, '$1')}, [], ['$1']}]},
     {large_variable, [{{'$1', '$99999999'}, [], ['$99999999']}]},
     {huge_variable, [{{'$1', list_to_atom("$" ++ lists:duplicate(200, $9))}, [], ['$1']}]},
     {objects_over_and_over, [{Wide, [], [lists:duplicate(2000, '$_')]}]},
     {wide_head, [{list_to_tuple(lists:duplicate(100000, '_')), [], [true]}]}].

%% Files -------------------------------------------------------------------------------------------

%% Files whose checksums are right and whose contents lie: no options that are none, no object that
%% isn't one, no claim of size is believed. An error of file2tab's, and no table.
lying_files_test_() ->
    test("files that lie", 60, fun() ->
        File = larder_test:file("lies"),
        T = larder:new(liar, []),
        true = larder:insert(T, [{K, [K]} || K <- lists:seq(1, 5)]),
        ok = larder:tab2file(T, File),
        true = larder:delete(T),
        {ok, <<Head:14/binary, Header/binary>>} = file:read_file(File),
        <<_:10/binary, Length:32/little>> = Head,
        <<Fields:Length/binary, _:32, Chunk/binary>> = Header,
        <<Kind, Access, Write, Flags, Keypos:64/little, Objects:64/little, Rest/binary>> = Fields,
        Make = fun(F) ->
            New = <<(binary:part(Head, 0, 10))/binary, (byte_size(F)):32/little, F/binary>>,
            <<New/binary, (erlang:crc32(New)):32/little, Chunk/binary>>
        end,
        Fine = Make(Fields),
        {ok, Fine} = file:read_file(File),
        Field = fun(A, B, C, D, E, F) ->
            Make(<<A, B, C, D, E:64/little, F:64/little, Rest/binary>>) end,
        Lies = [Field(9, Access, Write, Flags, Keypos, Objects),
                Field(Kind, 9, Write, Flags, Keypos, Objects),
                Field(Kind, Access, 9, Flags, Keypos, Objects),
                Field(Kind, Access, Write, Flags, 0, Objects),
                Field(Kind, Access, Write, Flags, 3, Objects),
                Field(Kind, Access, Write, Flags, 1 bsl 63, Objects),
                Make(<<Kind, Access, Write, Flags, Keypos:64/little, Objects:64/little,
                       4:32/little, "liar", 7:32/little, "nothing", 0:32>>),
                Make(<<Kind, Access, Write, Flags, Keypos:64/little, Objects:64/little,
                       16#ffffffff:32>>)],
        [begin
             ok = file:write_file(File, Lie),
             {error, _} = larder:file2tab(File),
             {error, _} = larder:file2tab(File, [{verify, true}]),
             _ = larder:tabfile_info(File),
             [] = [U || U <- larder:all(), larder:info(U, name) =:= liar]
         end || Lie <- Lies],
        %% An object of ten megabytes in ten kilobytes: nothing is unpacked.
        Zeros = term_to_binary({1, binary:copy(<<0>>, 10000000)}, [{compressed, 9}]),
        Part = <<$C, (byte_size(Zeros)):32/little, 1:32/little, Zeros/binary>>,
        Before = binary:part(Fine, 0, byte_size(Fine) - byte_size(Chunk)),
        ok = file:write_file(File, [Before, Part, <<(erlang:crc32(Part)):32/little>>]),
        {error, checksum_error} = larder:file2tab(File),
        %% More objects foretold than there are: the number is a remark of the time when the save
        %% began.
        ok = file:write_file(File, Field(Kind, Access, Write, Flags, Keypos, 1 bsl 62)),
        {ok, U} = larder:file2tab(File),
        5 = larder:info(U, size),
        true = larder:delete(U),
        %% An integer that this emulator can't have.
        Bytes = 1 bsl 23,
        Object = <<131, 104, 2, 97, 1, 111, Bytes:32, 0, (binary:copy(<<255>>, Bytes))/binary>>,
        refused = try binary_to_term(Object) of _ -> taken catch error:badarg -> refused end,
        Large = <<$C, (byte_size(Object)):32/little, 1:32/little, Object/binary>>,
        Summed = binary:part(Fine, 0, 14 + Length + 4),
        End = <<$E, 1:64/little, 0:256>>,
        ok = file:write_file(File, [Summed, Large, <<(erlang:crc32(Large)):32/little>>,
                                    End, <<(erlang:crc32(End)):32/little>>]),
        {error, _} = larder:file2tab(File),
        ok = file:delete(File)
    end).

%% Noise -------------------------------------------------------------------------------------------

%% Terms made of altered external format: whatever the emulator takes for a term comes back as it
%% went in, as value and as key. LARDER_CASES scales how many.
terms_from_noise_test_() ->
    test("terms from noise", 300, fun() ->
        Seed = case os:getenv("LARDER_SEED") of
            None when None =:= false;
            None =:= "random" ->
                {rand:uniform(1 bsl 30), rand:uniform(1 bsl 30), rand:uniform(1 bsl 30)};
            Text -> list_to_tuple([list_to_integer(W) || W <- string:lexemes(Text, ", {}")])
        end,
        io:format(user, "    noise: LARDER_SEED=~w~n", [Seed]),
        _ = rand:seed(exsss, Seed),
        Tables = [larder:new(noise, [Type | More]) || Type <- types(4), More <- [[], [compressed]]],
        Seeds = [term_to_binary(Term) || Term <- noise_seeds()],
        Made = lists:sum([noise(Tables, lists:nth(rand:uniform(length(Seeds)), Seeds))
                          || _ <- lists:seq(1, larder_test:scaled(20000))]),
        true = Made > larder_test:scaled(1000),
        [true = larder:delete(T) || T <- Tables]
    end).

noise(Tables, Bytes) ->
    try binary_to_term(mutated(Bytes, rand:uniform(4)), [safe]) of
        Term ->
            T = lists:nth(rand:uniform(length(Tables)), Tables),
            true = larder:insert(T, {key, Term}),
            true = lists:member({key, Term}, larder:lookup(T, key)),
            true = larder:delete(T, key),
            true = larder:insert(T, {Term, 1}),
            [{Back, 1}] = larder:lookup(T, Term),
            true = Back =:= Term,
            true = larder:member(T, Term),
            [_] = larder:match_object(T, {'_', 1}),
            true = larder:delete(T, Term),
            0 = larder:info(T, size),
            1
    catch error:badarg -> 0
    end.

%% A fun whose external format was altered has fewer free variables, or more, than others of its
%% code. It is stored as it is.
altered_funs_test_() ->
    test("altered funs", 60, fun() ->
        {A, B} = {rand:uniform(9), rand:uniform(9)},
        Fun = fun(C) -> {A, B, C} end,
        Funs = [Fun | [with_free(Fun, Free) || Free <- [0, 1, 3, 200]]],
        [begin
             T = larder:new(hostile, [Type]),
             Rows = [{N, Stored} || {N, Stored} <- lists:enumerate(Order)],
             true = larder:insert(T, Rows),
             [[Row] = larder:lookup(T, N) || {N, _} = Row <- Rows],
             true = larder:delete_all_objects(T),
             true = larder:insert(T, [{Key, 1} || Key <- Order]),
             [[{Key, 1}] = larder:lookup(T, Key) || Key <- Order],
             true = erlang:garbage_collect(),
             true = larder:delete(T)
         end || Type <- types(4), Order <- [Funs, lists:reverse(Funs)]]
    end).

%% A fun of the same code with so many free variables, each 7. The last two of the external format
%% are the fun's own, which are small integers.
with_free(Fun, Free) ->
    <<131, 112, _:32, Head:21/binary, 2:32, Rest/binary>> = term_to_binary(Fun),
    Code = binary:part(Rest, 0, byte_size(Rest) - 4),
    Body = [Head, <<Free:32>>, Code, lists:duplicate(Free, <<97, 7>>)],
    binary_to_term(iolist_to_binary([131, 112, <<(4 + iolist_size(Body)):32>>, Body])).

mutated(Bytes, 0) -> Bytes;
mutated(Bytes, N) ->
    Size = byte_size(Bytes),
    At = rand:uniform(Size) - 1,
    <<A:At/binary, B, C/binary>> = Bytes,
    mutated(case rand:uniform(6) of
        1 -> <<A/binary, (rand:uniform(256) - 1), C/binary>>;
        2 -> <<A/binary, (B bxor (1 bsl (rand:uniform(8) - 1))), C/binary>>;
        3 when Size > 2 -> <<A/binary, C/binary>>;
        4 -> <<A/binary, B, B, C/binary>>;
        5 -> <<A/binary, (element(rand:uniform(4), {0, 255, 127, 128})), C/binary>>;
        _ -> <<A/binary, (B + 1), C/binary>>
    end, N - 1).

%% No references of this node and no funs: OTP 25 makes terms of altered ones that bring it down
%% when they are copied, by ets:insert/2 or a message.
noise_seeds() ->
    [1, -1, 1 bsl 70, -(1 bsl 200), 1.5, -0.0, a, [], "text", [a | b], {}, {1, {2, 3}},
     #{a => 1, 2 => #{}},
     maps:from_list([{K, K} || K <- lists:seq(1, 40)]), <<"binary">>, <<1:13>>, <<0:1000>>, self(),
     hd(erlang:ports()), fun lists:map/2, [1.5, {a, "b", #{c => [d]}}],
     fun erlang:self/0, lists:seq(1, 300), list_to_tuple(lists:seq(1, 300))].

%% Terms of later releases -------------------------------------------------------------------------

%% From OTP 29 on there are records that are no tuples. Larder has no form for them: badarg, and
%% nothing else happens, where they are asked for, too. (The emulator's own native interface ends
%% the node when it is asked what they are.)
records_of_later_releases_test_() ->
    case native_record() of
        none -> [];
        Record -> tests("native records", 60, 4, fun(Type) -> records(Type, Record) end)
    end.

records(Type, Record) ->
    T = larder:new(hostile, [Type]),
    true = larder:insert(T, {1, kept}),
    [{F, badarg} = {F, refused(fun() -> apply(larder, F, [T | Args]) end)}
     || Term <- [Record, [Record], {x, Record}, #{a => Record}, #{Record => a}],
        {F, Args} <- [{insert, [{1, Term}]}, {insert, [{Term, 1}]}, {insert, [[{2, a}, {Term, 1}]]},
                      {lookup, [Term]}, {delete, [Term]},
                      {delete_object, [{1, Term}]}, {insert_new, [{Term}]},
                      {match_object, [{1, Term}]}, {match, [{Term, '_'}]}, {match_delete, [{1, Term}]},
                      {select, [[{{1, Term}, [], ['$_']}]]}, {select_count, [[{{Term, '_'}, [], [true]}]]},
                      {select, [[{{'_', '$1'}, [{'=:=', '$1', {const, Term}}], ['$_']}]]}]],
    [{1, kept}] = larder:tab2list(T),
    true = larder:delete(T).

refused(Fun) ->
    try Fun() of
        Result -> Result
    catch
        error:Reason -> Reason
    end.

%% One, if this release has them: older compilers don't read the source.
native_record() ->
    File = larder_test:file("record"),
    Source = "-module(hostile_record).\n-export([make/0]).\n-record #pair{a, b}.\nmake() -> #pair{a = 1, b = 2}.\n",
    ok = file:write_file(File ++ ".erl", Source),
    Compiled = compile:file(File, [binary, return_errors]),
    ok = file:delete(File ++ ".erl"),
    case Compiled of
        {ok, Module, Code} ->
            {module, Module} = code:load_binary(Module, File, Code),
            Module:make();
        _ ->
            none
    end.
