%% @doc The kinds of rows of the wide bench, and the data of a table of one kind.
%%
%% The first element of a row is its key, the second, where there is one, its number: counters count
%% it, guards compare it. Keys are made of numbers from 1 on; the keys above those of the table are
%% not in it.
-module(larder_bench_wide_kinds).

-export([kinds/0, options/1, arity/1, types/1, data/3, size_of/2, local/2]).

-export_type([kind/0, part/0, data/0]).

-type kind() :: atom().
-type part() :: #{keys := [term()], rows := [tuple()], others := [term()], other_rows := [tuple()],
                  all := [tuple()]}.
%% A part of the table's keys and their rows; as many keys that are not there, and rows for them;
%% all rows of the table, in another random order.
-type data() :: #{parts := [part()], size := pos_integer(), keys := pos_integer()}.

%% Keys of a part, and words of one at the most, so that a part of large rows is small.
-define(PART, 1000).
-define(PART_WORDS, 500_000).
%% Parts that are kept: those of large tables are more than a processor's second cache together.
-define(PARTS(Size), if Size < 500_000 -> 16; true -> 64 end).
%% Objects under a key in the kind `several'.
-define(SEVERAL, 5).

%% @doc All kinds: first those of keys, whose rows are `{Key, Number}', then those of rows, whose
%% keys are small integers.
-spec kinds() -> [kind()].
kinds() ->
    [int, int62, bignum, float, atom, bin16, bin65, bin2048, string, tuple, nested, pid,
     remote_pid, ref, function, map,
     one, rec5, rec20, rec60, row_bin2048, row_subbinary, row_map3, row_map33, row_map1000,
     row_function,
     row_refs, row_remote, row_alias, row_counter, row_deep, row_list200, row_improper, row_bitstring, row_mixed, monitor, compressed,
     several].

%% @doc What a table of the kind is made with.
-spec options(kind()) -> [term()].
options(compressed) -> [compressed];
options(_) -> [].

%% @doc The types that the kind is stored in.
-spec types(kind()) -> [atom()].
types(several) -> [bag, duplicate_bag];
types(_) -> [set, ordered_set, bag, duplicate_bag].

%% @doc The elements of a row.
-spec arity(kind()) -> pos_integer().
arity(Kind) -> tuple_size(hd(rows(Kind, 1))).

%% @doc Words of a row as a term.
-spec size_of(kind(), pos_integer()) -> pos_integer().
size_of(Kind, Size) ->
    Numbers = lists:seq(1, Size, max(1, Size div 24)),
    Words = lists:sum([words(Row) || I <- Numbers, Row <- rows(Kind, I)]),
    max(1, Words div (length(Numbers) * objects(Kind))).

%% Binaries count where they are shared, too: they are there once at least.
words(Row) -> erts_debug:flat_size(Row) + binaries(Row).

binaries(B) when is_binary(B), byte_size(B) > 64 -> byte_size(B) div 8;
binaries(T) when is_tuple(T) -> lists:sum([binaries(E) || E <- tuple_to_list(T)]);
binaries(_) -> 0.

objects(several) -> ?SEVERAL;
objects(_) -> 1.

%% @doc The data of a table with `Size' rows.
-spec data(kind(), pos_integer(), pos_integer()) -> data().
data(Kind, Size, Seed) ->
    N = max(1, Size div objects(Kind)),
    Length = min(N, max(10, min(?PART, ?PART_WORDS div size_of(Kind, Size)))),
    Many = min(?PARTS(Size), N div Length),
    Visit = larder_bench_rows:places(at_random, N, Seed),
    Fill = larder_bench_rows:places(at_random, N, Seed + 1),
    Rows = list_to_tuple([rows(Kind, I) || I <- lists:seq(1, N)]),
    All = lists:append([element(Fill(I), Rows) || I <- lists:seq(1, N)]),
    Parts = [part(Kind, N, Rows, [Visit(I) || I <- lists:seq(P * Length + 1, (P + 1) * Length)],
                  All)
             || P <- lists:seq(0, Many - 1)],
    #{parts => Parts, size => N * objects(Kind), keys => N}.

part(Kind, N, Rows, Numbers, All) ->
    Others = [rows(Kind, N + I) || I <- Numbers],
    Own = [element(I, Rows) || I <- Numbers],
    #{keys => keys(Own), rows => lists:append(Own), all => All,
      others => keys(Others), other_rows => lists:append(Others)}.

keys(Rows) -> [element(1, Row) || [Row | _] <- Rows].

%% @doc The row as a process has it that has just made it: a part of a binary becomes a binary of
%% its own when it is copied, so that this one is cut out again.
-spec local(kind(), [tuple()]) -> [tuple()].
local(row_subbinary, Rows) -> [{K, I, cut(I)} || {K, I, _} <- Rows];
local(_, Rows) -> Rows.

rows(several, I) -> [{I, I * ?SEVERAL - J, row} || J <- lists:seq(0, ?SEVERAL - 1)];
rows(Kind, I) -> [row(Kind, I)].

row(one, I) -> {I};
row(rec5, I) -> record(5, I);
row(rec20, I) -> record(20, I);
row(rec60, I) -> record(60, I);
row(compressed, I) -> record(20, I);
row(monitor, I) -> {key(ref, I), I, key(pid, I), {call, [I, key(bin16, I)]}};
row(row_bin2048, I) -> {I, I, key(bin2048, I)};
row(row_subbinary, I) -> {I, I, cut(I)};
row(row_map3, I) -> {I, I, map(3, I)};
row(row_map33, I) -> {I, I, map(33, I)};
row(row_map1000, I) -> {I, I, map(1000, I)};
row(row_function, I) -> {I, I, key(function, I)};
row(row_refs, I) -> {I, I, key(ref, I), key(pid, I), [key(ref, I)]};
row(row_remote, I) -> {I, I, key(remote_pid, I), remote(90, <<0, 3>>, <<3:32, I:32, 1:32, 2:32>>)};
row(row_alias, I) -> {I, I, [alias | alias()]};
row(row_counter, I) -> {I, I, counters:new(1, [])};
row(row_deep, I) -> {I, I, deep(20, I)};
row(row_list200, I) -> {I, I, lists:seq(I, I + 199)};
row(row_improper, I) -> {I, I, [I, name, <<I:32>> | {rest, I}]};
row(row_bitstring, I) -> {I, I, <<I:64, 5:3>>};
row(row_mixed, I) -> {I, I, mixed(I rem 8, I)};
row(Kind, I) -> {key(Kind, I), I}.

key(int, I) -> I;
key(int62, I) -> 16#F000_0000_0000_0000 + I;
key(bignum, I) -> 1 bsl 300 + I * 16#9E3779B97F4A7C15;
key(float, I) -> I * 1.25;
key(atom, I) -> list_to_atom("larder_bench_wide_" ++ integer_to_list(I));
key(bin16, I) -> <<(I * 16#9E3779B97F4A7C15):64, I:64>>;
key(bin65, I) -> <<(key(bin16, I))/binary, 0:(49 * 8)>>;
key(bin2048, I) -> <<(key(bin16, I))/binary, 0:(2032 * 8)>>;
key(string, I) -> "the key of row " ++ integer_to_list(I);
key(tuple, I) -> {user, I bsr 4, I band 15};
key(nested, I) -> {account, {region, I bsr 8}, [{I band 255, <<I:32>>}, open]};
key(pid, I) -> list_to_pid(lists:concat(["<0.", I band 16#7FFF, ".", I bsr 15 + 1, ">"]));
key(remote_pid, I) -> remote(88, <<>>, <<(I band 16#7FFF):32, (I bsr 15 + 1):32, 3:32>>);
key(ref, _) -> make_ref();
key(function, I) -> fun() -> I end;
key(map, I) -> #{id => I, kind => person, <<"zone">> => I band 7}.

%% An identifier of another node, from its external format.
remote(Tag, Count, Numbers) ->
    binary_to_term(<<131, Tag, Count/binary, 119, 13, "larder@remote", Numbers/binary>>).

%% Mixed terms, as a program's records have them: {Key, Number, ...}.
record(Arity, I) -> list_to_tuple([I, I | [field(At rem 10, I + At) || At <- lists:seq(3, Arity)]]).

field(0, I) -> 1 bsl 70 + I;
field(1, I) -> I / 8;
field(2, I) -> "name " ++ integer_to_list(I);
field(3, I) -> <<"id-", (integer_to_binary(I))/binary>>;
field(4, _) -> undefined;
field(5, I) -> {date, 2026, I rem 12, I rem 28};
field(6, I) -> I * 1000;
field(7, I) -> I rem 2 =:= 0;
field(8, I) -> [I, tag];
field(9, I) -> <<I:128>>.

map(Pairs, I) -> maps:from_list([{P, I + P} || P <- lists:seq(1, Pairs)]).

deep(0, I) -> I;
deep(N, I) -> {node, N, deep(N - 1, I)}.

cut(I) -> binary:part(<<(key(bin16, I))/binary, 0:(1008 * 8), I:64, 0:(984 * 8)>>, 8, 1024).

mixed(0, I) -> I;
mixed(1, I) -> key(bin16, I);
mixed(2, I) -> record(20, I);
mixed(3, I) -> lists:seq(1, I rem 50);
mixed(4, I) -> binary:copy(<<I:64>>, 1 + I rem 100);
mixed(5, _) -> [];
mixed(6, I) -> map(3 + I rem 40, I);
mixed(7, I) -> deep(1 + I rem 10, I).
