%% @doc Term order and identity: what a table takes for the same key, and in
%% which order it keeps keys, against Erlang's own operators.
-module(diff_order_tests).
-include_lib("proper/include/proper.hrl").

-export([order_of_pairs_test_/0, order_of_lists_test_/0, order_of_every_pair_of_the_pool_test_/0, planted_faults_are_found_test_/0]).

order_of_pairs_test_() ->
    [larder_test:tc("pairs", 200, Sut, fun() ->
        larder_test:check_property(lists:concat(["diff_order pairs ", Sut]),
                                   cases(Sut, 5000), prop_pair(Sut))
     end) || Sut <- larder_test:suts()].

order_of_lists_test_() ->
    [larder_test:tc("lists", 200, Sut, fun() ->
        larder_test:check_property(lists:concat(["diff_order lists ", Sut]),
                                   cases(Sut, 500), prop_list(Sut))
     end) || Sut <- larder_test:suts()].

%% Every pair of the pool, nothing left to chance.
order_of_every_pair_of_the_pool_test_() ->
    [larder_test:tc("the whole pool", 200, Sut, fun() ->
        Pool = diff_gen:hot() ++ diff_gen:pool(),
        [] = [{A, B, Wrong} || A <- Pool, B <- Pool, Wrong <- [wrong(Sut, A, B)], Wrong =/= []],
        ok
     end) || Sut <- larder_test:suts()].

planted_faults_are_found_test_() ->
    {"finds equal_is_identical", {timeout, 60, fun() ->
        Sut = diff_planted:load(equal_is_identical),
        {Result, _, _} = larder_test:try_property(5000, prop_pair(Sut), [noshrink]),
        ok = diff_planted:unload(Sut),
        false = Result
    end}}.

cases(diff_sound, N) -> larder_test:scaled(max(1, N div 10));
cases(_, N) -> larder_test:scaled(N).

prop_pair(Sut) ->
    ?FORALL(Pair, {anything(), close_to()},
            begin
                {A, Near} = diff_gen:made(Pair),
                B = near(A, Near),
                Wrong = wrong(Sut, A, B),
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [A, B, Wrong]), Wrong =:= [])
            end).

prop_list(Sut) ->
    ?FORALL(Symbolic, resize(60, list(anything())),
            begin
                Keys = diff_gen:made(Symbolic),
                T = Sut:new(diff_order, [ordered_set]),
                E = ets:new(diff_order, [ordered_set]),
                [true = Sut:insert(T, {K, N}) andalso ets:insert(E, {K, N})
                 || {N, K} <- lists:zip(lists:seq(1, length(Keys)), Keys)],
                Result = Sut:tab2list(T) =:= ets:tab2list(E)
                    andalso is_sorted([K || {K, _} <- Sut:tab2list(T)]),
                Sut:delete(T),
                ets:delete(E),
                Result
            end).

is_sorted([A, B | Rest]) -> A < B andalso is_sorted([B | Rest]);
is_sorted(_) -> true.

%% What a table says of two keys, where it should say what Erlang says.
wrong(Sut, A, B) ->
    Set = Sut:new(diff_order, [set]),
    Ordered = Sut:new(diff_order, [ordered_set]),
    [Sut:insert(T, [{A, first}]) || T <- [Set, Ordered]],
    Said = [{identical, A =:= B, Sut:lookup(Set, B) =/= []},
            {equal, A == B, Sut:member(Ordered, B)},
            {identical_new, A =/= B, Sut:insert_new(Set, {B, second})},
            {equal_new, A /= B, Sut:insert_new(Ordered, {B, second})},
            {order, A < B, A /= B andalso [{A, first}, {B, second}] =:= Sut:tab2list(Ordered)},
            {below, A > B, Sut:prev(Ordered, A) =/= '$end_of_table'},
            {comes_back, [{A, first}], [R || {_, first} = R <- Sut:lookup(Set, A)]},
            {signs, signs(A), signs(element(1, hd(Sut:lookup(Set, A))))}],
    [Sut:delete(T) || T <- [Set, Ordered]],
    [S || {_, Expected, Got} = S <- Said, Expected =/= Got].

%% The signs of the zeros in a term, which `=:=' doesn't tell before OTP 27.
signs([H | T]) -> signs(H) ++ signs(T);
signs(Tuple) when is_tuple(Tuple) -> signs(tuple_to_list(Tuple));
signs(Map) when is_map(Map) -> signs(maps:to_list(Map));
signs(F) when is_float(F), F == 0.0 -> <<Sign:1, _:63>> = <<F/float>>, [Sign];
signs(_) -> [].

%% Terms ------------------------------------------------------------------------------

anything() ->
    ?SIZED(Size, anything(min(Size, 8))).

anything(0) ->
    frequency([{3, diff_gen:key()}, {3, diff_gen:from_pool()}, {1, integer()}, {1, float()},
               {1, binary()}, {1, bitstring()}, {1, integer(-1 bsl 70, 1 bsl 70)}]);
anything(N) ->
    Less = ?LAZY(anything(N div 3)),
    frequency([{4, anything(0)},
               {2, ?LET(L, short_list(Less), list_to_tuple(L))},
               {2, short_list(Less)},
               {1, ?LET({L, T}, {short_list(Less), Less}, L ++ T)},
               {2, ?LET(L, short_list({Less, Less}), maps:from_list(L))}]).

short_list(Type) ->
    ?LET(Len, integer(0, 3), vector(Len, Type)).

%% The second of a pair: often the first with a small change.
close_to() ->
    frequency([{3, {is, anything()}}, {1, same}, {1, as_float}, {1, plus_one},
               {2, {wrapped, diff_gen:key()}}]).

near(_, {is, B}) -> B;
near(A, same) -> A;
near(A, as_float) -> floats(A);
near(A, plus_one) when is_integer(A) -> A + 1;
near(A, plus_one) when is_tuple(A) -> erlang:append_element(A, 1);
near(A, plus_one) when is_list(A) -> [A | A];
near(A, plus_one) when is_map(A) -> A#{zzz => 1};
near(A, plus_one) when is_binary(A) -> <<A/binary, 0>>;
near(A, plus_one) -> [A];
near(A, {wrapped, K}) when is_map(A) -> A#{K => 1};
near(A, {wrapped, K}) when is_tuple(A), tuple_size(A) > 0 -> setelement(tuple_size(A), A, K);
near(A, {wrapped, K}) -> [A | K].

%% Every integer that a float can hold as that float.
floats(I) when is_integer(I) ->
    try float(I) catch error:badarg -> I end;
floats([H | T]) -> [floats(H) | floats(T)];
floats(Tuple) when is_tuple(Tuple) -> list_to_tuple(floats(tuple_to_list(Tuple)));
floats(Map) when is_map(Map) -> maps:map(fun(_, V) -> floats(V) end, Map);
floats(Other) -> Other.
