%% delete_object: beside `ets', of objects that differ anywhere in one of their terms; and while
%% others write under the key.
-module(delete_object_tests).
-include_lib("proper/include/proper.hrl").

-export([beside_ets_test_/0, other_terms_test_/0, as_another_writes_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

%% Beside ets ------------------------------------------------------------------------------------

beside_ets_test_() ->
    [larder_test:tc(title("objects go that ets deletes", [Type | Options]), 240, larder, fun() ->
        larder_test:check_property(lists:concat(["delete_object ", Type]), larder_test:scaled(40),
                                   prop([Type | Options]))
     end) || Type <- ?TYPES, Options <- [[], [compressed]]].

prop(Options) ->
    ?FORALL({Objects, Others}, {list(diff_gen:object()), list(diff_gen:object())},
            same(Options, diff_gen:made(Objects), diff_gen:made(Others))).

same(Options, Objects, Others) ->
    Tables = tables(Options),
    [true = M:insert(T, Object) || Object <- Objects, {M, T} <- Tables],
    Steps = [Others, lists:append([others(Object) || Object <- Objects]), Objects],
    Answers = [{[true = M:delete_object(T, Object) || Object <- Step, {M, T} <- Tables],
                [as_they_are(M:tab2list(T)) || {M, T} <- Tables]} || Step <- Steps],
    [true = M:delete(T) || {M, T} <- Tables],
    ?WHENFAIL(io:format("~p~n", [Answers]),
              lists:all(fun({_, [Got, Expected]}) -> Got =:= Expected end, Answers)).

tables(Options) -> [{larder, larder:new(t, [public | Options])}, {ets, diff_gen:oracle(Options)}].

as_they_are(Objects) -> lists:sort([{Object, erlang:phash2(Object)} || Object <- Objects]).

%% An object with something else somewhere.
others(Object) ->
    Size = tuple_size(Object),
    [erlang:append_element(Object, x), erlang:append_element(Object, {x}),
     setelement(Size, Object, {element(Size, Object)})]
        ++ [setelement(At, Object, Other) || At <- lists:seq(2, Size),
                                             Other <- changed(element(At, Object))].

changed(Tuple) when is_tuple(Tuple) ->
    [erlang:append_element(Tuple, [])]
        ++ [setelement(At, Tuple, Other) || At <- lists:seq(1, tuple_size(Tuple)),
                                            Other <- changed(element(At, Tuple))];
changed([]) ->
    [[[]]];
changed([Head | Tail]) ->
    [Tail] ++ [[Other | Tail] || Other <- changed(Head)] ++ [[Head | Other] || Other <- changed(Tail)];
changed(Map) when is_map(Map) ->
    [Map#{{} => []}];
changed(Integer) when is_integer(Integer) ->
    [-Integer - 1] ++ [float(Integer) || abs(Integer) < 1 bsl 53];
changed(_) ->
    [[], other, 0].

%% Kinds of terms --------------------------------------------------------------------------------

other_terms_test_() ->
    [larder_test:tc(title("of each kind of term the one that is stored", [Type | Options]), 120, larder,
                    fun() -> [one_of(Type, Options, Term) || Term <- terms()] end)
     || Type <- ?TYPES, Options <- [[], [compressed]]].

terms() ->
    Deep = fun(Make) -> lists:foldl(fun(_, T) -> Make(T) end, 1, lists:seq(1, 200)) end,
    Improper = [a, {b} | c],
    Long = binary:copy(<<7>>, 3000),
    [{a, {1 bsl 70, [2.5, <<"text">>]}, #{}}, {make_ref(), self(), fun() -> ok end}, Improper,
     [Improper | Improper], "a string", [[], [[]], {}], {Long, <<1:3>>},
     #{k => {Long, Improper}, 1.0 => #{}}, maps:from_list([{I, {I}} || I <- lists:seq(1, 40)]),
     {atomics:new(1, [])}, Deep(fun(T) -> {T} end), Deep(fun(T) -> [T] end),
     Deep(fun(T) -> [T | x] end), Deep(fun(T) -> #{a => {T}, 1 => []} end)].

one_of(Type, Options, Term) ->
    Row = {1, {Term}, Term},
    Tables = [{_, T}, _] = tables([Type | Options]),
    [true = M:insert(X, R) || R <- [Row, {2, {Term}}], {M, X} <- Tables],
    lists:foreach(fun(Object) ->
                      [true = M:delete_object(X, Object) || {M, X} <- Tables],
                      [Got, Expected] = [as_they_are(M:tab2list(X)) || {M, X} <- Tables],
                      true = Got =:= Expected
                  end, [{1, {[]}, Term}, {1, {Term}, []}, {1.0, {Term}, Term}, {3, {Term}, Term}]
                       ++ [{1, {Other}, Term} || Other <- changed_once(Term)]),
    2 = larder:info(T, size),
    %% As another process has it: no part of it lies where it did.
    true = larder:delete_object(T, binary_to_term(term_to_binary(Row))),
    true = larder:delete_object(T, Row),
    [{2, {Term}}] = larder:tab2list(T),
    [true = M:delete(X) || {M, X} <- Tables].

%% Few of the others of a term with many parts.
changed_once(Term) ->
    Others = [Other || Other <- changed(Term), Other =/= Term],
    lists:sublist(Others, 3) ++ lists:nthtail(max(0, length(Others) - 3), Others).

%% Beside a writer -------------------------------------------------------------------------------

%% One process puts another object in the place of the one that the other deletes. Whichever comes
%% first, the new object is there afterwards.
as_another_writes_test_() ->
    [larder_test:tc(title("what took an object's place stays", Options), 120, larder,
                    fun() -> as_another_writes(Options, larder_test:scaled(5000)) end)
     || Options <- [[set], [ordered_set], [set, compressed]]].

as_another_writes(Options, Rounds) ->
    T = larder:new(t, [public | Options]),
    Turns = atomics:new(2, []),
    Row = fun(N) -> {key, {numbered, [N]}} end,
    {Pid, Ref} = spawn_monitor(fun() ->
        [begin
             await(Turns, 1, N),
             true = larder:delete_object(T, Row(2 * N)),
             atomics:put(Turns, 2, N)
         end || N <- lists:seq(1, Rounds)]
    end),
    [begin
         true = larder:insert(T, Row(2 * N)),
         atomics:put(Turns, 1, N),
         true = larder:insert(T, Row(2 * N + 1)),
         await(Turns, 2, N),
         [Found] = larder:lookup(T, key),
         true = Found =:= Row(2 * N + 1)
     end || N <- lists:seq(1, Rounds)],
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    true = larder:delete(T).

await(Turns, At, N) ->
    case atomics:get(Turns, At) >= N of
        true -> ok;
        false -> erlang:yield(), await(Turns, At, N)
    end.

title(Text, Options) -> lists:flatten(io_lib:format("~s, ~0p", [Text, Options])).
