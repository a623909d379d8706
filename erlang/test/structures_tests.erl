%% @doc Every structure that larder:structures/0 lists, on every type of table
%% that it carries, does what `ets' does; and what is asked for that isn't there
%% is refused with words that say what is.
-module(structures_tests).
-export([same_as_ets_test_/0, each_is_made_with_its_defaults_test/0, what_is_not_there_is_said_test/0,
         files_keep_the_structure_test/0, other_names_test/0]).
-include_lib("proper/include/proper.hrl").

same_as_ets_test_() ->
    [larder_test:tc(lists:concat([Name, ", ", Type]), 120, Sut, fun() ->
        larder_test:check_property(lists:concat(["structures ", Name, " ", Type]), larder_test:scaled(40),
                                   prop_same(Sut, {structure, Name}, Type, Types))
     end) || Sut <- larder_test:suts(), Sut =:= larder,
             #{name := Name, types := Types} <- larder:structures(), Name =/= default, Type <- Types].

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
     end || #{name := Name, types := Types, options := Options, about := About} <- larder:structures(),
            Type <- Types],
    ok.

what_is_not_there_is_said_test() ->
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
    Says([{structure, {default, [{m, 4}]}}], [<<"no options">>]),
    Says([ordered_set, {structure, chained}], [<<"order of keys">>, <<"avl">>]),
    badarg = Fault([{structure, {btree, [m]}}]),
    badarg = Fault([{structure, {btree, [{m, 4} | m]}}]),
    badarg = Fault([{structure, "btree"}]),
    ok.

%% A file says what its table was built on.
files_keep_the_structure_test() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(["larder_structure_", os:getpid()])),
    T = larder:new(t, [ordered_set, {structure, {catree, [{over, btree}, {m, 8}, {random_join, false}]}}]),
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
