#!/usr/bin/env escript
%% Random terms and what Erlang says of them, for the test `erlang.rs`.
%% Arguments: seed, number of pairs. Writes frames to the file given: a length in four bytes, then
%% term_to_binary of {A, B, Text of A, lt|eq|gt by term order, Identical, Binary of A}.
-mode(compile).

main([Seed, N, File]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    {ok, Out} = file:open(File, [write, raw, binary, delayed_write]),
    lists:foreach(fun(_) -> pair(Out) end, lists:seq(1, list_to_integer(N))),
    ok = file:close(Out).

pair(Out) ->
    A = term(rand:uniform(4)),
    B = case rand:uniform(3) of
            1 -> term(rand:uniform(4));
            _ -> change(A)
        end,
    Order = if A < B -> lt; A > B -> gt; true -> eq end,
    Text = unicode:characters_to_binary(io_lib:format("~0tp", [A])),
    Frame = term_to_binary({A, B, Text, Order, A =:= B,
                            term_to_binary(A, [{compressed, rand:uniform(10) - 1}])}),
    ok = file:write(Out, [<<(byte_size(Frame)):32>>, Frame]).

term(0) -> leaf();
term(D) ->
    case rand:uniform(8) of
        1 -> list_to_tuple(terms(D - 1));
        2 -> terms(D - 1);
        3 -> terms(D - 1) ++ leaf();
        4 -> maps:from_list([{term(D - 1), term(D - 1)} || _ <- lists:seq(1, rand:uniform(5) - 1)]);
        5 -> closure(D - 1);
        _ -> leaf()
    end.

terms(D) -> [term(D) || _ <- lists:seq(1, rand:uniform(5) - 1)].

%% Something near: a part of it replaced.
change(T) when is_tuple(T), tuple_size(T) > 0 ->
    I = rand:uniform(tuple_size(T)),
    setelement(I, T, change(element(I, T)));
change([H | T]) ->
    case rand:uniform(2) of
        1 -> [change(H) | T];
        2 -> [H | change(T)]
    end;
change(M) when map_size(M) > 0 ->
    K = lists:nth(rand:uniform(map_size(M)), maps:keys(M)),
    case rand:uniform(3) of
        1 -> M#{K := change(maps:get(K, M))};
        2 -> (maps:remove(K, M))#{change(K) => maps:get(K, M)};
        3 -> maps:remove(K, M)
    end;
change(I) when is_integer(I) ->
    case rand:uniform(4) of
        1 -> try float(I) catch error:_ -> I end;
        2 -> I + 1;
        3 -> -I;
        4 -> I
    end;
change(F) when is_float(F) ->
    case rand:uniform(3) of
        1 -> trunc(F);
        2 -> -F;
        3 -> trunc(F) + 1
    end;
change(B) when is_bitstring(B) -> <<B/bitstring, (rand:uniform(4) - 1):(rand:uniform(9))>>;
change(T) ->
    case rand:uniform(3) of
        1 -> leaf();
        _ -> T
    end.

leaf() -> leaf(rand:uniform(22)).

leaf(1) -> rand:uniform(5) - 3;
leaf(2) -> rand:uniform(1000) - 500;
leaf(3) -> sign() * (1 bsl rand:uniform(80)) + rand:uniform(3) - 2;
leaf(4) -> sign() * (rand:uniform(1 bsl 60) bsl rand:uniform(1200));
leaf(5) -> float(rand:uniform(5) - 3);
leaf(6) -> (rand:uniform() - 0.5) * math:pow(10, rand:uniform(40) - 20);
leaf(7) -> some_float();
leaf(8) -> lists:nth(rand:uniform(8), ['', a, b, ab, 'Ab', true, 'an atom', '\0']);
leaf(9) -> list_to_atom([rand:uniform(255) || _ <- lists:seq(1, rand:uniform(4))]);
leaf(10) -> list_to_atom([16#400 + rand:uniform(64) || _ <- lists:seq(1, rand:uniform(4))]);
leaf(11) -> [];
leaf(12) -> <<>>;
leaf(13) -> rand:bytes(rand:uniform(6) - 1);
leaf(14) -> << <<(rand:uniform(3) - 1)>> || _ <- lists:seq(1, rand:uniform(4))>>;
leaf(15) -> <<(rand:uniform(64) - 1):(rand:uniform(20))>>;
leaf(16) -> rand:bytes(60 + rand:uniform(100));
leaf(17) -> identifier();
leaf(18) -> identifier();
leaf(19) ->
    lists:nth(rand:uniform(4),
              [fun lists:map/2, fun lists:map/3, fun lists:foldl/3, fun maps:map/2]);
leaf(20) -> lists:seq(1, rand:uniform(20));
leaf(21) -> "text";
leaf(22) -> lists:nth(rand:uniform(4), [self(), make_ref(), hd(erlang:ports()), whereis(init)]).

sign() -> 2 * rand:uniform(2) - 3.

some_float() ->
    <<X:64>> = rand:bytes(8),
    case <<X:64>> of
        <<F/float>> -> F;
        _ -> -0.0
    end.

node_name() -> lists:nth(rand:uniform(4), [<<"a@h">>, <<"b@h">>, <<"zz@h">>, <<"b@">>]).

small() -> lists:nth(rand:uniform(4), [0, 1, 2, rand:uniform(1 bsl 28) - 1]).

identifier() ->
    Name = node_name(),
    Atom = <<119, (byte_size(Name)), Name/binary>>,
    Creation = rand:uniform(3),
    binary_to_term(case rand:uniform(4) of
        1 -> <<131, 88, Atom/binary, (small()):32, (small()):32, Creation:32>>;
        2 -> <<131, 89, Atom/binary, (small()):32, Creation:32>>;
        3 -> <<131, 120, Atom/binary, (small()):64, Creation:32>>;
        4 -> Words = [small() || _ <- lists:seq(1, 3 + 2 * (rand:uniform(2) - 1))],
             <<131, 90, (length(Words)):16, Atom/binary, Creation:32,
               (<< <<W:32>> || W <- Words>>)/binary>>
    end).

closure(D) ->
    X = term(D),
    Y = leaf(),
    lists:nth(rand:uniform(3), [fun() -> X end, fun(Z) -> {X, Y, Z} end, fun(Z) -> {Z, Y} end]).
