%% @doc The rows and keys of `make bench', and the orders in which they come.
%%
%% A row has a number from 1 to N. Random orders are permutations of the numbers that need no
%% memory: rounds of multiplication and exclusive or over the next power of two, in which what falls
%% beyond N is sent round again. The same seed gives the same order everywhere.
-module(larder_bench_rows).

-include("larder_bench_rows.hrl").

-export([data/2, row/2, key/2, places/3]).

-export_type([shape/0, data/0]).

-type shape() :: ints | binaries | tuples.
%% `{I, I}'; rows of mixed terms under a key of 16 bytes; the same under a tuple of three.
-type data() :: #{size := pos_integer(), sum := pos_integer(), insert := [term()],
                  visit := [term()], lists := [[term()]]}.
%% Keys in the order of insertion, and in another random order for everything after it: a row's
%% place in memory is often that of its insertion, and visits in that order would not be random to
%% the processor. For mixed rows, `{Key, I}'.

-define(MANY, 1000).

%% @doc What the loops need for `Size' rows.
-spec data(shape(), pos_integer()) -> data().
data(Shape, Size) ->
    Visit = keys(Shape, Size, 2),
    #{size => Size, sum => Size * (Size + 1) div 2, insert => keys(Shape, Size, 1), visit => Visit,
      lists => case Shape of ints -> cut(Visit, Size, min(Size, ?MANY)); _ -> [] end}.

keys(Shape, Size, Seed) ->
    Place = places(at_random, Size, Seed),
    keys(Shape, Place, Size, []).

keys(_, _, 0, Keys) -> Keys;
keys(Shape, Place, N, Keys) -> keys(Shape, Place, N - 1, [prepared(Shape, Place(N)) | Keys]).

prepared(ints, I) -> I;
prepared(Shape, I) -> {key(Shape, I), I}.

%% Lists of a thousand; a shorter rest is left away, so that every list counts the same.
cut(Keys, Left, Many) when Left >= Many ->
    {List, Rest} = lists:split(Many, Keys),
    [List | cut(Rest, Left - Many, Many)];
cut(_, _, _) -> [].

%% @doc Row number `I'.
-spec row(shape(), pos_integer()) -> tuple().
row(ints, I) -> {I, I};
row(Shape, I) -> ?MIXED(key(Shape, I), I).

%% @doc The key of row number `I'.
-spec key(shape(), pos_integer()) -> term().
key(ints, I) -> I;
key(binaries, I) -> <<(I * 16#9E3779B97F4A7C15):64, I:64>>;
key(tuples, I) -> {user, I bsr 4, I band 15}.

%% @doc Which row comes at each place from 1 to N.
-spec places(in_order | at_random, pos_integer(), pos_integer()) ->
    fun((pos_integer()) -> pos_integer()).
places(in_order, _, _) -> fun(I) -> I end;
places(at_random, N, Seed) ->
    Bits = bits(N - 1, 1),
    Mask = 1 bsl Bits - 1,
    Half = (Bits + 1) div 2,
    {A, B, C} = {(Seed * 16#9E3779) band Mask bor 1,
                 (Seed * 16#5851F5 + 16#2C1B3C6) band Mask bor 1, Seed * 16#3C6EF3},
    fun(I) -> mix(I - 1, N, {Mask, Half, A, B, C}) + 1 end.

%% Each step is a bijection of 0..Mask; N is over half of that, so that a walk is two steps on
%% average at the most.
mix(X, N, {Mask, Half, A, B, C} = How) ->
    X1 = (X * A + C) band Mask,
    X2 = (X1 bxor (X1 bsr Half)) * B band Mask,
    X3 = (X2 bxor (X2 bsr Half)) * A band Mask,
    case X3 bxor (X3 bsr Half) of
        Y when Y < N -> Y;
        Y -> mix(Y, N, How)
    end.

bits(N, Bits) when N bsr Bits =:= 0 -> Bits;
bits(N, Bits) -> bits(N, Bits + 1).
