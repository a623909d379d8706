%% @doc Every structure that larder:structures/0 lists, on every type of table
%% that it carries, does what `ets' does; and what is asked for that isn't there
%% is refused with words that say what is.
-module(structures_tests).
-export([same_as_ets_test_/0, each_is_made_with_its_defaults_test/0,
         what_is_missing_is_reported_test/0,
         files_keep_the_structure_test/0, other_names_test/0, the_page_says_what_is_there_test/0,
         full_test_/0, fixed_linear_hash_test_/0, stats_take_no_time_test_/0]).
-include_lib("proper/include/proper.hrl").

same_as_ets_test_() ->
    [larder_test:tc(lists:concat([Name, ", ", Type]), 120, Sut, fun() ->
        larder_test:check_property(lists:concat(["structures ", Name, " ", Type]),
                                   larder_test:scaled(40),
                                   prop_same(Sut, {structure, Name}, Type, Types))
     end) || Sut <- larder_test:suts(), Sut =:= larder,
             #{name := Name, types := Types} <- larder:structures(), Name =/= default,
             Type <- Types].

%% Tables of types that the structure doesn't carry have the default.
prop_same(Sut, Structure, Type, Types) ->
    More = fun(T) -> [Structure || lists:member(T, Types)] end,
    ?FORALL(Commands, diff_commands:sequence(Type, More),
            begin
                Result = diff_world:run(Sut, Commands),
                ?WHENFAIL(io:format("~p~n", [Result]), Result =:= ok)
            end).

each_is_made_with_its_defaults_test() ->
    [begin
         Said = [{O, D} || {O, #{default := D}} <- maps:to_list(Options)],
         T = larder:new(t, [Type, {structure, {Name, Said}}]),
         true = larder:insert(T, [{K, K} || K <- lists:seq(1, 100)]),
         Name = larder:info(T, structure),
         100 = larder:info(T, size),
         100 = larder:select_count(T, [{{'$1', '$1'}, [], [true]}]),
         #{leaves := _, contended := _} = larder:info(T, stats),
         true = is_binary(About),
         true = larder:delete(T)
     end || #{name := Name, types := Types, options := Options,
              about := About} <- larder:structures(),
            Type <- Types],
    ok.

what_is_missing_is_reported_test() ->
    Words = fun(Options) ->
        try larder:new(t, Options) of
            T -> {made, T}
        catch
            error:badarg:Stack -> maps:get(2, larder:format_error(badarg, Stack))
        end
    end,
    Says = fun(Options, Parts) ->
        Text = iolist_to_binary(Words(Options)),
        [{Part, true} = {Part, binary:match(Text, Part) =/= nomatch} || Part <- Parts]
    end,
    Fault = fun(Options) -> try larder:new(t, Options) catch error:Reason -> Reason end end,
    Says([{structure, avocado}], [<<"avocado">>, <<"default">>, <<"catree">>]),
    Says([{structure, {btree, [{n, 4}]}}], [<<"'n'">>, <<"reader_groups">>]),
    Says([{structure, {btree, [{m, 1}]}}], [<<"'m'">>, <<"from 3 to 1024">>]),
    [Says([{structure, {btree, [{m, M}]}}], [<<"'m'">>, <<"from 3 to 1024">>])
     || M <- [1 bsl 70, 4.0, "4"]],
    Says([{structure, {catree, [{over, "avl"}]}}], [<<"'over'">>, <<"one of avl">>]),
    Says([{structure, {default, [{m, 4}]}}], [<<"no options">>]),
    Says([ordered_set, {structure, chained}], [<<"order of keys">>, <<"avl">>]),
    badarg = Fault([{structure, {btree, [m]}}]),
    badarg = Fault([{structure, {btree, [{m, 4} | m]}}]),
    badarg = Fault([{structure, "btree"}]),
    ok.

%% A file says what its table was built on.
files_keep_the_structure_test() ->
    File = larder_test:file("structure"),
    T = larder:new(t,
                   [ordered_set,
                    {structure, {catree, [{over, btree}, {m, 8}, {random_join, false}]}}]),
    true = larder:insert(T, [{K} || K <- lists:seq(1, 50)]),
    ok = larder:tab2file(T, File),
    {ok, Back} = larder:file2tab(File),
    ok = file:delete(File),
    catree = larder:info(Back, structure),
    true = larder:tab2list(T) =:= larder:tab2list(Back),
    true = larder:delete(T),
    true = larder:delete(Back).

%% A structure that has two names says the one that it is listed under.
other_names_test() ->
    T = larder:new(t, [bag, {structure, {judyeh, [{bits, 24}]}}]),
    true = larder:insert(T, [{K rem 10, K} || K <- lists:seq(1, 100)]),
    judyl_hash = larder:info(T, structure),
    [{3, 3}, {3, 13} | _] = larder:lookup(T, 3),
    #{judy_bytes := Bytes, leaves := 10} = larder:info(T, stats),
    true = Bytes > 0,
    true = larder:delete(T).

%% docs/structures.md has a section for each structure, with its types, its options and its figures.
the_page_says_what_is_there_test() ->
    {ok, Page} = file:read_file(filename:join(root(), "docs/structures.md")),
    [_ | Sections] = binary:split(Page, <<"\n## ">>, [global]),
    Section = fun(Title) ->
        [Text] = [T || T <- Sections, hd(binary:split(T, <<"\n">>)) =:= Title],
        Text
    end,
    Common = figures(Section(<<"Figures that all have">>)),
    [begin
         Text = Section(<<"`", (atom_to_binary(Name))/binary, "`">>),
         Carries = lists:join(<<", ">>, [atom_to_binary(Type) || Type <- Types]),
         {Name, true} = {Name,
                         binary:match(Text, iolist_to_binary(["*Types:* ", Carries, "."]))
                             =/= nomatch},
         Said = [{binary_to_atom(O), Takes, Default}
                 || [O, Takes, Default, _] <- rows(Text, <<"\\|[^|\n]*option">>, 4)],
         There = [{O, Takes, iolist_to_binary(io_lib:format("`~p`", [Default]))}
                  || {O, #{takes := Takes, default := Default}} <- maps:to_list(Options)],
         {Name, Same} = {Name, lists:sort(Said)},
         {Name, Same} = {Name, lists:sort(There)},
         T = larder:new(t, [hd(Types), {structure, Name}]),
         Figures = lists:sort(maps:keys(larder:info(T, stats))),
         {Name, Figures} = {Name, lists:usort(Common ++ figures(Text))},
         true = larder:delete(T)
     end || #{name := Name, types := Types, options := Options} <- larder:structures()],
    true = length(Sections) =:= length(larder:structures()) + 3.

figures(Text) ->
    [binary_to_atom(Figure) || [Figure, _] <- rows(Text, <<"\\| stats">>, 2)].

%% The cells of the table whose head begins so; the name in the first cell without its quotes.
rows(Text, Head, Cells) ->
    case re:run(Text, [Head, "[^\n]*\n\\|[-|]*\n((?:\\|[^\n]*\n)*)"],
                [{capture, all_but_first, binary}]) of
        nomatch -> [];
        {match, [Lines]} ->
            [row(Line, Cells) || Line <- binary:split(Lines, <<"\n">>, [global, trim])]
    end.

row(Line, Cells) ->
    [<<>>, Name | Rest] = binary:split(Line, [<<"| ">>, <<" | ">>, <<" |">>], [global]),
    [binary:replace(Name, <<"`">>, <<>>, [global]) | lists:sublist(Rest, Cells - 1)].

%% The tests run in the repository or below it.
root() ->
    {ok, Here} = file:get_cwd(),
    root(Here).

root(Dir) ->
    case filelib:is_regular(filename:join(Dir, "docs/structures.md")) of
        true -> Dir;
        false when Dir =:= "/" -> error(docs_structures_not_found);
        false -> root(filename:dirname(Dir))
    end.

%% Michael's buckets don't grow: beyond its limit a table takes nothing new, says so, and is as it
%% was.
full_test_() ->
    [larder_test:tc(atom_to_list(Type), 60, larder, fun() -> full(Type) end)
     || Type <- [set, bag, duplicate_bag]].

full(Type) ->
    T = larder:new(t, [Type, {structure, {lockfree_hash, [{buckets, 2}, {chain, 50}]}}]),
    #{limit := 100} = larder:info(T, stats),
    true = larder:insert(T, [{K, K} || K <- lists:seq(1, 90)]),
    Refused = fun(Fun, Args) ->
        Before = lists:sort(larder:tab2list(T)),
        try apply(larder, Fun, [T | Args]) of
            Result -> error({not_refused, Fun, Result})
        catch
            error:system_limit:Stack ->
                #{general := Words} = larder:format_error(system_limit, Stack),
                {_, _} = binary:match(iolist_to_binary(Words), <<"made for 100 objects">>)
        end,
        Before = lists:sort(larder:tab2list(T)),
        true = length(Before) =:= larder:info(T, size)
    end,
    Refused(insert, [[{K, K} || K <- lists:seq(91, 101)]]),
    Refused(insert_new, [[{K, K} || K <- lists:seq(91, 101)]]),
    true = larder:insert(T, [{K, K} || K <- lists:seq(91, 100)]),
    Refused(insert, [{101, 101}]),
    Refused(insert_new, [{101, 101}]),
    Refused(insert, [[{101, 101}]]),
    false = larder:insert_new(T, {100, 101}),
    case Type of
        set ->
            Refused(update_counter, [101, 1, {101, 0}]),
            true = larder:insert(T, [{K, -K} || K <- lists:seq(1, 100)]),
            -8 = larder:update_counter(T, 9, 1),
            true = larder:insert(T, {9, 9});
        bag ->
            Refused(insert, [{100, 101}]);
        duplicate_bag ->
            Refused(insert, [{100, 100}])
    end,
    true = larder:delete(T, 1),
    true = larder:insert(T, {101, 101}),
    Refused(insert, [{102, 102}]),
    true = larder:delete_all_objects(T),
    true = larder:insert(T, {102, 102}),
    true = larder:delete(T).

%% Fixed, linear hashing keeps its width and what is deleted; released, it lets go.
fixed_linear_hash_test_() ->
    [larder_test:tc(lists:concat([Type, ", ", Locks]), 60, larder,
                    fun() -> fixed_linear_hash(Type, Locks) end)
     || Type <- [set, bag, duplicate_bag], Locks <- [0, 16, auto]].

fixed_linear_hash(Type, Locks) ->
    T = larder:new(t, [Type, public, {structure, {linear_hash, [{locks, Locks}]}}]),
    Stats = fun(Figure) -> maps:get(Figure, larder:info(T, stats)) end,
    true = larder:insert(T, [{K, K} || K <- lists:seq(1, 2000)]),
    {Buckets, 0, 0} = {Stats(buckets), Stats(kept), Stats(frozen)},
    Memory = larder:info(T, memory),
    true = larder:safe_fixtable(T, true),
    {Fixer, Monitor} =
        spawn_monitor(fun() -> true = larder:safe_fixtable(T, true), receive stop -> ok end end),
    [true = larder:delete(T, K) || K <- lists:seq(1, 1990)],
    {Buckets, 1990, 1} = {Stats(buckets), Stats(kept), Stats(frozen)},
    {10, 0, []} = {larder:info(T, size),
                   larder:select_count(T, [{{'$1', '_'}, [{'<', '$1', 1000}], [true]}]),
                   larder:lookup(T, 77)},
    true = larder:info(T, memory) > Memory div 2,
    true = larder:insert(T, {77, again}),
    1989 = Stats(kept),
    true = larder:safe_fixtable(T, false),
    1 = Stats(frozen),
    Fixer ! stop,
    receive {'DOWN', Monitor, process, Fixer, _} -> ok end,
    true = larder_test:wait_until(fun() -> Stats(frozen) =:= 0 end),
    [true = larder:insert(T, {K, K}) || K <- lists:seq(3001, 3300)],
    0 = Stats(kept),
    [true = larder:delete(T, K) || K <- lists:seq(3001, 3300)],
    true = Stats(buckets) < Buckets,
    11 = larder:info(T, size),
    true = larder:safe_fixtable(T, true),
    true = larder:delete_all_objects(T),
    {1, 0} = {Stats(frozen), larder:info(T, size)},
    true = larder:delete(T).

%% Whatever a structure has to tell it tells at once: its size makes no difference.
stats_take_no_time_test_() ->
    [{atom_to_list(Name), {timeout, 60, fun() ->
         T = larder:new(t, [hd(Types), {structure, Name}]),
         true = larder:insert(T, [{K, K} || K <- lists:seq(1, 60000)]),
         Hundred = fun() -> [larder:info(T, stats) || _ <- lists:seq(1, 100)] end,
         %% A machine that does something else only makes it longer.
         Micros = lists:min([element(1, timer:tc(Hundred)) || _ <- lists:seq(1, 3)]),
         {Name, true} = {Name, Micros < 100 * 2000},
         true = larder:delete(T)
     end}} || #{name := Name, types := Types} <- larder:structures()].
