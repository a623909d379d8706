%% @doc Every kind of term, as key and in a row, in each type of table, beside `ets'; the two forms
%% of large maps; and the same where the layout of one kind of term, or of all, is not known.
-module(larder_terms_tests).

-include_lib("eunit/include/eunit.hrl").

-export([all/0]).

terms_test_() ->
    [{timeout, 60,
      {atom_to_list(Type),
       fun() -> [row(Type, Options, Row) || Options <- [[], [compressed]], Row <- rows()] end}}
     || Type <- types()].

%% Long elements lie outside of their rows. Lists of many cells are made in several runs.
long_elements_come_back_test_() ->
    [{atom_to_list(Type), {timeout, 60, fun() -> long_elements_come_back(Type) end}}
     || Type <- types()].

long_elements_come_back(Type) ->
    Tab = larder:new(t, [Type]),
    Empty = larder:info(Tab, memory),
    List = fun(N) -> [case I rem 50 of 0 -> {I, <<I:1600>>, [I]}; _ -> I end
                      || I <- lists:seq(1, N)] end,
    Long = [List(N) || N <- [500, 999, 1000, 1001, 1999, 2000, 2001, 30_000]]
        ++ [list_to_tuple(List(2000)), maps:from_list([{I, {I}} || I <- List(2000)]),
            List(3000) ++ improper, [List(3000), List(3000)], 1 bsl 20_000, <<0:20_001>>],
    Rows = [{K, 0, Element, x} || {K, Element} <- lists:enumerate(Long)],
    true = larder:insert(Tab, Rows),
    ?assert(larder:info(Tab, memory) > Empty + 20_000),
    Same = fun(Row) -> ?assertEqual([Row], larder:lookup(Tab, element(1, Row))) end,
    [Same(Row) || Row <- Rows],
    ?assertEqual(lists:sort(Rows), lists:sort(larder:tab2list(Tab))),
    ?assertEqual(Rows, lists:append([larder:match_object(Tab, Row) || Row <- Rows])),
    case lists:member(Type, [set, ordered_set]) of
        true ->
            [?assertEqual(1, larder:update_counter(Tab, K, 1)) || {K, _, _, _} <- Rows],
            [true = larder:update_element(Tab, K, {4, [y]}) || {K, _, _, _} <- Rows],
            [Same({K, 1, Element, [y]}) || {K, 0, Element, x} <- Rows],
            [true = larder:update_element(Tab, K, [{2, Element}, {3, 0}])
             || {K, _, Element, _} <- Rows],
            [Same({K, Element, 0, [y]}) || {K, _, Element, _} <- Rows];
        false -> ok
    end,
    [larder:delete_object(Tab, Row) || {K, _, _, _} <- Rows, Row <- larder:lookup(Tab, K)],
    ?assertEqual([], larder:tab2list(Tab)),
    true = larder:delete(Tab).

%% Binaries of 65 to 127 bytes are given back as parts of one, if they stand near each other.
binaries_near_each_other_come_back_test_() ->
    [{lists:concat([Type]), {timeout, 60, fun() -> binaries_near_each_other_come_back(Type) end}}
     || Type <- [set, ordered_set, bag]].

binaries_near_each_other_come_back(Type) ->
    _ = rand:seed(exsss, {1, 2, 3}),
    Tab = larder:new(t, [Type]),
    Rows = [list_to_tuple([N | [part(rand:uniform(9)) || _ <- lists:seq(1, rand:uniform(30))]])
            || N <- lists:seq(1, 500)],
    true = larder:insert(Tab, Rows),
    Read = [Row || N <- lists:seq(1, 500), Row <- larder:lookup(Tab, N)],
    ?assertEqual(Rows, Read),
    ?assertEqual(lists:sort(Rows), lists:sort(larder:tab2list(Tab))),
    Seconds = [larder:lookup_element(Tab, N, 2) || N <- lists:seq(1, 500)],
    ?assertEqual([element(2, Row) || Row <- Rows],
                 case Type of bag -> lists:append(Seconds); _ -> Seconds end),
    true = larder:delete(Tab),
    erlang:garbage_collect(),
    ?assertEqual(Rows, Read),
    %% A part keeps no more than the others of its object, and at most 1,024 bytes.
    [?assert(binary:referenced_byte_size(Element) =< 1024)
     || Row <- Read, Element <- tuple_to_list(Row), is_binary(Element)].

part(1) -> rand:uniform(300);
part(2) -> [random(70), random(90), {random(127), random(64)}];
part(3) -> #{a => random(65), b => 1, c => random(66)};
part(4) -> rand:uniform();
part(5) -> random(rand:uniform(63));
part(6) -> random(300);
part(_) -> random(60 + rand:uniform(70)).

random(Size) -> list_to_binary([rand:uniform(256) - 1 || _ <- lists:seq(1, Size)]).

%% The emulator appends in place to a binary that it made by appending. What a table holds of it
%% stays as it was, and the process goes on to append.
appended_test_() ->
    [{atom_to_list(Type), fun() -> appended(Type, Options) end}
     || Type <- types(), Options <- [[], [compressed]]].

appended(Type, Options) ->
    T = larder:new(t, [Type | Options]),
    Count = 40,
    Last = lists:foldl(
             fun(I, B) ->
                     true = larder:insert(T, {I, B, B}),
                     <<_:3/binary, Part/binary>> = B,
                     true = larder:insert(T, {{I}, Part, [B]}),
                     <<B/binary, I:256>>
             end, <<1:256>>, lists:seq(2, Count)),
    ?assertEqual(32 * Count, byte_size(Last)),
    [begin
         Expected = << <<N:256>> || N <- lists:seq(1, I - 1) >>,
         <<_:3/binary, Part/binary>> = Expected,
         ?assertEqual([{I, Expected, Expected}], larder:lookup(T, I)),
         ?assertEqual([{{I}, Part, [Expected]}], larder:lookup(T, {I}))
     end || I <- lists:seq(2, Count)],
    true = larder:delete(T).

%% Of a thousand funs each is stored as it is, with the binaries that it refers to, however many
%% others have become known since.
many_funs_test_() ->
    {timeout, 60, fun() ->
        Clauses = [io_lib:format("f(~b, X) -> fun(Y) -> {X, Y, ~b} end", [I, I])
                   || I <- lists:seq(1, 1000)],
        Source = ["-module(larder_many_funs). -export([f/2]). ", lists:join("; ", Clauses), "."],
        {module, M} = code:load_binary(larder_many_funs, "larder_many_funs", compiled(Source)),
        Large = binary:copy(<<7>>, 500000),
        T = larder:new(t, [set]),
        ?assertEqual([], [I || _ <- [1, 2], I <- lists:seq(1, 1000),
                               copies(T, M:f(I, Large)) > 0]),
        true = larder:delete(T)
    end}.

compiled(Source) ->
    Forms = fun Next(Text, Found) ->
        case erl_scan:tokens([], Text, 1) of
            {done, {ok, Tokens, _}, Rest} ->
                {ok, Form} = erl_parse:parse_form(Tokens),
                Next(Rest, [Form | Found]);
            _ -> lists:reverse(Found)
        end
    end,
    {ok, _, Binary} = compile:forms(Forms(lists:flatten(Source) ++ " ", []), []),
    Binary.

%% How many large binaries more the process has when it has stored and read a fun. (Since OTP 27
%% that which keeps a stored binary counts as a small one.)
copies(T, Fun) ->
    true = larder:insert(T, {k, Fun}),
    Before = binaries(),
    [{k, Found}] = larder:lookup(T, k),
    After = binaries(),
    true = Found =:= Fun,
    length(After -- Before).

binaries() ->
    {binary, All} = process_info(self(), binary),
    lists:usort([Id || {Id, Size, _} <- All, Size >= 500000]).

%% Identifiers of many nodes, of each node several of each kind: each is given back as it is.
identifiers_of_other_nodes_test_() ->
    [{atom_to_list(Type), {timeout, 60, fun() -> identifiers_of_other_nodes(Type) end}}
     || Type <- [set, ordered_set, bag]].

identifiers_of_other_nodes(Type) ->
    Nodes = [{list_to_binary(["other", integer_to_list(N rem 700), "@nowhere"]), N rem 5 + 1}
             || N <- lists:seq(1, 1400)],
    All = lists:usort(lists:append([[other_pid(N, 7, 0), other_pid(N, 1 bsl 27, 1 bsl 31),
                                     other_port(N, 3), other_reference(N, [1, 2, 3]),
                                     other_reference(N, [7 bsl 25, 0, 0, 5, 0])] || N <- Nodes])),
    E = ets:new(e, [Type]),
    L = larder:new(l, [Type]),
    [begin
         true = ets:insert(E, Row),
         true = larder:insert(L, Row)
     end || I <- All, Row <- [{I, node(I)}, {{I}, [I | I]}]],
    [?assert(ets:lookup(E, Key) =:= larder:lookup(L, Key)) || I <- All, Key <- [I, {I}]],
    ?assert(lists:sort(ets:tab2list(E)) =:= lists:sort(larder:tab2list(L))),
    erlang:garbage_collect(),
    [?assertEqual([{I, node(I)}], larder:lookup(L, I)) || I <- All],
    true = ets:delete(E),
    true = larder:delete(L).

%% An alias that a table has given back is one, also as a part of another term.
aliases_stay_aliases_test() ->
    case erlang:function_exported(erlang, alias, 0) of
        false -> ok;
        true ->
            Alias = apply(erlang, alias, []),
            T = larder:new(t, [ordered_set]),
            true = larder:insert(T, [{1, Alias}, {2, [alias | Alias]}, {{Alias}, 3}]),
            [{1, A}, {2, [alias | B]}, {{C}, 3}] = larder:tab2list(T),
            [begin
                 ?assert(Alias =:= Found),
                 Found ! {told, N},
                 ?assertEqual(N, receive {told, M} -> M after 5000 -> nothing end)
             end || {N, Found} <- [{a, A}, {b, B}, {c, C}, {d, larder:lookup_element(T, 1, 2)}]],
            true = apply(erlang, unalias, [A]),
            B ! {told, e},
            ?assertEqual(nothing, receive {told, M} -> M after 100 -> nothing end),
            true = larder:delete(T)
    end.

%% A reference that keeps something alive does so while a row has it, and takes little memory.
objects_are_kept_test() ->
    T = larder:new(t, [set]),
    Count = 10000,
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    [begin
         Counter = counters:new(1, []),
         ok = counters:put(Counter, 1, N),
         true = larder:insert(T, {N, Counter})
     end || N <- lists:seq(1, Count)],
    erlang:garbage_collect(),
    %% As many counters without a table take some 200 bytes each.
    ?assert(erlang:memory(total) - Before < 800 * Count),
    ?assertEqual([], [N || N <- lists:seq(1, Count),
                           [{_, Counter}] <- [larder:lookup(T, N)],
                           counters:get(Counter, 1) =/= N]),
    %% They come to other rows, and are written over there: none is lost or kept too long.
    [true = larder:insert(T, {N, [Counter], Counter}) || {N, Counter} <- larder:tab2list(T)],
    [true = larder:insert(T, Row) || Row <- larder:tab2list(T)],
    ?assertEqual([], [N || {N, [A], B} <- larder:tab2list(T),
                           counters:get(A, 1) =/= N orelse counters:get(B, 1) =/= N]),
    true = larder:delete_all_objects(T),
    ?assert(larder_test:wait_until(fun() ->
        erlang:garbage_collect(),
        erlang:memory(total) - Before < 100 * Count
    end)),
    Object = ets:new(kept, [public]),
    true = larder:insert(T, {table, Object}),
    true = ets:insert(larder:lookup_element(T, table, 2), {still, there}),
    ?assertEqual([{still, there}], ets:lookup(Object, still)),
    true = larder:delete(T).

%% A file has the numbers of a reference. Where they are read, the emulator finds the object, if it
%% is alive, also if nothing but a table has made the numbers known.
objects_are_found_by_files_test() ->
    T = larder:new(t, [set]),
    Kept = [begin
                Counter = counters:new(1, []),
                ok = counters:put(Counter, 1, N),
                true = larder:insert(T, {N, Counter, [{Counter}]}),
                Counter
            end || N <- lists:seq(1, 3)],
    File = larder_test:file("kept_objects"),
    ok = larder:tab2file(T, File),
    {ok, Read} = larder:file2tab(File),
    ok = file:delete(File),
    ?assertEqual([{N, N} || N <- lists:seq(1, 3)],
                 [{counters:get(A, 1), counters:get(B, 1)}
                  || N <- lists:seq(1, 3), [{_, A, [{B}]}] <- [larder:lookup(Read, N)]]),
    ?assertEqual([1, 2, 3], [counters:get(Counter, 1) || Counter <- Kept]),
    true = larder:delete(Read),
    true = larder:delete(T).

%% A binary that a comprehension or a loop has built is shared, as others are: it isn't copied to
%% memory that the emulator doesn't know.
built_binaries_are_shared_test() ->
    T = larder:new(t, [set]),
    {Count, Bytes} = {1000, 2000},
    erlang:garbage_collect(),
    Before = erlang:memory(binary),
    [true = larder:insert(T, {N, << <<(N + I)>> || I <- lists:seq(1, Bytes) >>})
     || N <- lists:seq(1, Count)],
    erlang:garbage_collect(),
    ?assert(erlang:memory(binary) - Before > Count * Bytes div 2),
    ?assertEqual([], [N || N <- lists:seq(1, Count),
                           larder:lookup_element(T, N, 2)
                               =/= << <<(N + I)>> || I <- lists:seq(1, Bytes) >>]),
    true = larder:delete(T).

large_maps_test_() ->
    [{timeout, 60, {atom_to_list(Type), fun() -> large_maps(Type) end}} || Type <- types()].

%% Each proof fails by itself, and all together: the terms are the same by official functions.
unproved_test_() ->
    Kinds = ["integer", "reference", "binary", "fun", "map", "tree", "heap_top", "magic", "port",
             "foreign"],
    [{timeout, 120, {Kind, fun() -> unproved(Kind) end}}
     || Kind <- Kinds ++ [lists:flatten(lists:join(",", Kinds))]].

unproved(Kinds) ->
    Paths = lists:append([["-pa", filename:dirname(code:which(M))] || M <- [larder, ?MODULE]]),
    {ok, Peer, _} =
        peer:start(#{connection => standard_io, args => Paths,
                     env => [{"LARDER_UNPROVED", Kinds}]}),
    try ?assertEqual(ok, peer:call(Peer, ?MODULE, all, [], 100000))
    after peer:stop(Peer)
    end.

%% @doc All of it, for a node that knows less of the emulator.
-spec all() -> ok.
all() ->
    [row(Type, [], Row) || Type <- types(), Row <- rows()],
    [large_maps(Type) || Type <- [set, bag]],
    ok.

types() -> [set, ordered_set, bag, duplicate_bag].

rows() ->
    [Row || T <- terms(), Row <- [{T, 1, x}, {k, T, T}, {T, x, T, 1, T, 2, 3, 4, 5, T, 6}]].

terms() ->
    R = make_ref(),
    Alias = try apply(erlang, alias, []) catch error:undef -> R end,
    Large = binary:copy(<<"abc">>, 1000),
    <<_:10/binary, Part:2500/binary, _/binary>> = Large,
    <<_:10/binary, Small:200/binary, _/binary>> = Large,
    <<First:2900/binary, _/binary>> = Large,
    <<_:3, Odd:100/bitstring, _/bitstring>> = Large,
    Appended = lists:foldl(fun(I, B) -> <<B/binary, I:64>> end, <<>>, lists:seq(1, 100)),
    A = {some, free},
    F = fun(X) -> {X, A, R} end,
    G = fun() -> ok end,
    Nested = fun(N, Wrap) -> lists:foldl(fun(I, Acc) -> Wrap(I, Acc) end, x, lists:seq(1, N)) end,
    Map = fun(N) -> maps:from_list([{K, K} || K <- lists:seq(1, N)]) end,
    [1, -1, 127, 128, -128, 1 bsl 40, 1 bsl 59 - 1, 1 bsl 59, -(1 bsl 59), 1 bsl 63 - 1, 1 bsl 63,
     -(1 bsl 63),
     -(1 bsl 63) - 1, 1 bsl 64 - 1, 1 bsl 64, 1 bsl 300, -(1 bsl 2000),
     1.5, -0.0, 0.0, 1.0e300, a, '', true, [], [1], [1 | 2], [a, b | c], "string",
     lists:seq(1, 127), lists:seq(1, 128), lists:seq(1, 129), lists:seq(1, 5000),
     lists:seq(1, 200) ++ tail,
     {}, {1}, {1, 2, 3}, list_to_tuple(lists:seq(1, 300)), self(), R, Alias, hd(erlang:ports()),
     a_port(7), a_port(1 bsl 28 - 1), a_port(1 bsl 28 + 7), a_port(1 bsl 40 + 7),
     list_to_pid("<0.7777.3>"), other_pid(a_node(), 7, 9), other_pid(a_node(), 1 bsl 27, 1 bsl 31),
     other_port(a_node(), 11), other_reference(a_node(), [1, 2, 3]),
     other_reference(a_node(), [1, 0, 0]), other_reference(a_node(), [5, 4, 3, 2, 1]),
     other_reference(a_node(), [5, 4, 3, 2, 0]), other_reference(a_node(), [1, 2]),
     <<>>, <<"x">>, binary:copy(<<7>>, 64), binary:copy(<<7>>, 65), binary:copy(<<7>>, 127),
     binary:copy(<<7>>, 128),
     Large, Part, Small, First, Odd, Appended, <<1:1>>, <<5:13>>, <<Large/binary, 1:3>>,
     #{}, #{a => 1}, #{b => 1, a => 2, c => #{}}, Map(32), Map(33), Map(1000),
     maps:from_list([{integer_to_binary(I), Large} || I <- lists:seq(1, 40)]),
     #{1 => a, 1.0 => b, "x" => c, <<"y">> => d, {z} => e, R => f, self() => g, F => h, a => i},
     #{F => 1},
     F, G, fun erlang:abs/1, fun lists:map/2, fun ?MODULE:all/0,
     Nested(15, fun(I, T) -> {I, [T], #{k => T}} end), Nested(200, fun(I, T) -> [I, T] end),
     Nested(200, fun(_, T) -> #{a => T, 1 => Map(3)} end),
     Nested(70, fun(_, T) -> (Map(40))#{1 := T, 2 := F} end),
     {F, G, R, Large, #{F => G}}, atomics:new(1, []), {k, counters:new(1, [])}].

row(Type, Options, Row) ->
    L = larder:new(t, [Type | Options]),
    E = diff_gen:oracle([Type | Options]),
    Key = element(1, Row),
    true = larder:insert(L, Row),
    true = ets:insert(E, Row),
    ?assert(ets:lookup(E, Key) =:= larder:lookup(L, Key)),
    ?assert(larder:member(L, Key)),
    ?assertNot(larder:insert_new(L, Row)),
    ?assert([Row] =:= larder:tab2list(L)),
    ?assert(Key =:= larder:first(L)),
    ?assertEqual('$end_of_table', larder:next(L, Key)),
    ?assert(ets:match_object(E, Row) =:= larder:match_object(L, Row)),
    true = larder:insert(L, Row),
    true = ets:insert(E, Row),
    ?assert(ets:lookup(E, Key) =:= larder:lookup(L, Key)),
    true = larder:delete_object(L, Row),
    ?assertEqual([], larder:lookup(L, Key)),
    true = larder:insert(L, [Row]),
    ?assert([Row] =:= larder:take(L, Key)),
    ?assertEqual(0, larder:info(L, size)),
    true = larder:delete(L),
    true = ets:delete(E).

%% A large map has one form when it comes from the emulator, and another when the library makes it:
%% from a file, or from a match specification. They are one map.
large_maps(Type) ->
    One = maps:from_list([{I, {I, <<I:800>>}} || I <- lists:seq(1, 40)]),
    Two = maps:from_list([{I, I} || I <- lists:seq(1, 33)]),
    Others = case Type of bag -> 100; duplicate_bag -> 100; _ -> 0 end,
    [begin
         Row = {1, X, a},
         T = from_file(Type, [Row | [{1, X, I} || I <- lists:seq(1, N)]]),
         Size = larder:info(T, size),
         ?assert(lists:member(Row, larder:lookup(T, 1))),
         true = larder:insert(T, Row),
         ?assertEqual(case Type of duplicate_bag -> Size + 1; _ -> Size end, larder:info(T, size)),
         ?assertMatch([Row | _], larder:match_object(T, Row)),
         true = larder:delete_object(T, Row),
         ?assertNot(lists:member(Row, larder:lookup(T, 1))),
         true = larder:delete(T)
     end || X <- [One, Two, {One, [Two]}], N <- lists:usort([0, Others])],
    [begin
         T = from_file(Type, [{Key, 1}]),
         ?assert([{Key, 1}] =:= larder:lookup(T, Key)),
         ?assert(Key =:= larder:first(T)),
         ?assertEqual('$end_of_table', larder:next(T, Key)),
         true = larder:delete(T, Key),
         ?assertEqual(0, larder:info(T, size)),
         true = larder:delete(T)
     end || Key <- [One, Two, {One, [Two]}, #{One => 1, Two => 2}]],
    specifications(Type, Two).

specifications(Type, Map) ->
    T = larder:new(t, [Type]),
    true = larder:insert(T, {1, Map}),
    Select = fun(Guards, Body) -> larder:select(T, [{{1, '$1'}, Guards, [Body]}]) end,
    ?assertEqual([Map], Select([], Map)),
    ?assertEqual([true], Select([{'=:=', '$1', {const, Map}}], true)),
    ?assertEqual([true], Select([{'=:=', '$1', Map}], {is_map, '$1'})),
    ?assertEqual([33], Select([{'==', '$1', Map}], {map_size, '$1'})),
    ?assertEqual([7], Select([], {map_get, 7, '$1'})),
    %% A pattern's keys come in another order than those of the map.
    ?assertEqual([[5, 31, 2]],
                 larder:match(T, {1, #{17 => '$2', 5 => '$0', 30 => '_', 31 => '$1', 2 => '$2'}})
                                   ++ [[5, 31, 2]
                                       || larder:match(T, {1, #{5 => '$0', 31 => '$1', 2 => '$2'}})
                                           =/= [[5, 31, 2]]]
                                   ++ larder:match(T, {1, #{5 => '$0', 31 => '$1', 2 => '$2'}})),
    Other = Map#{1 => 2},
    larder:info(T, type) =:= set andalso
        begin
            ?assertEqual(1, larder:select_replace(T, [{{1, '$1'}, [], [{{1, Other}}]}])),
            ?assert([{1, Other}] =:= larder:lookup(T, 1)),
            true = larder:delete_object(T, {1, Other}),
            ?assertEqual(0, larder:info(T, size))
        end,
    true = larder:delete(T).

%% A table that has these rows as a file has them.
from_file(Type, Rows) ->
    File = larder_test:file("terms"),
    T = larder:new(t, [Type]),
    true = larder:insert(T, Rows),
    ok = larder:tab2file(T, File),
    true = larder:delete(T),
    {ok, Back} = larder:file2tab(File),
    ok = file:delete(File),
    Back.

%% The port of this node with a number. Releases that have no such ports have an atom.
a_port(Number) ->
    %% Newer releases write numbers of 64 bits, and each reads them.
    {Node, Creation} = case term_to_binary(hd(erlang:ports())) of
        <<131, 89, Tag, Length, Name:Length/binary, _:32, C/binary>> -> {[Tag, Length, Name], C};
        <<131, 120, Tag, Length, Name:Length/binary, _:64, C/binary>> -> {[Tag, Length, Name], C}
    end,
    External = iolist_to_binary([131, 120, Node, <<Number:64>>, Creation]),
    try binary_to_term(External)
    catch error:badarg -> no_port
    end.

%% Identifiers of a node that doesn't exist.
a_node() -> {<<"other@nowhere">>, 77}.

other_pid({Name, Creation}, Id, Serial) ->
    other(88, Name, <<Id:32, Serial:32, Creation:32>>).

other_port({Name, Creation}, Number) ->
    other(89, Name, <<Number:32, Creation:32>>).

other_reference({Name, Creation}, Numbers) ->
    Rest = [<<Creation:32>>, [<<N:32>> || N <- Numbers]],
    binary_to_term(iolist_to_binary([131, 90, <<(length(Numbers)):16>>, atom(Name), Rest])).

other(Tag, Name, Rest) -> binary_to_term(iolist_to_binary([131, Tag, atom(Name), Rest])).

atom(Name) -> [119, byte_size(Name), Name].
