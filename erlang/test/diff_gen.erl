%% @doc Random keys, objects, tables' options and match patterns, drawn from a
%% small pool with nasty members, so that operations meet.
-module(diff_gen).
-include_lib("proper/include/proper.hrl").

-export([pool/0, made/1, hot/0, from_pool/0, key/0, value/0, object/0, wrong_object/0, objects/0,
         oracle/1, compressed/0, options/1, table_option/0, pattern/0, element_pattern/0, any_term/0,
         negative_zero/0, deep_list/1, external_pid/1, external_ref/1,
         external_port/1]).

%% @doc Keys that nearly every command uses.
hot() ->
    [1, 2, 1.0, a, {a, 1}, {a, 1.0}, {a, 2}, "ab", <<"x">>, -1].

%% @doc Every kind of term, with the corners of each: made once, because some
%% are born new each time (references, ports, closures).
pool() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Pool = make_pool(),
            persistent_term:put(?MODULE, Pool),
            Pool;
        Pool -> Pool
    end.

make_pool() ->
    numbers() ++ others() ++ containers() ++ identities().

numbers() ->
    [0, 0.0, negative_zero(), 127, 128, -128, 255, 256, 1 bsl 31, 1 bsl 32,
     (1 bsl 59) - 1, 1 bsl 59, -(1 bsl 59), -(1 bsl 59) - 1, 1 bsl 60,
     (1 bsl 63) - 1, 1 bsl 63, -(1 bsl 63), -(1 bsl 63) - 1, 1 bsl 64,
     -(1 bsl 64), (1 bsl 64) + 1, 18446744073709551616.0, 1 bsl 2000,
     -(1 bsl 2000), 9007199254740992, 9007199254740993, 9007199254740992.0,
     1.5, -1.5, 1.0e308, -1.0e308, 2.2250738585072014e-308, 5.0e-324].

others() ->
    Long = list_to_binary(lists:duplicate(200, $l)),
    <<_:50/binary, Part:100/binary, _/binary>> = Long,
    [true, false, undefined, '', 'é', '日本', 'a b', '$1x', list_to_atom(lists:duplicate(255, $z)),
     <<>>, <<0>>, <<"x", 0>>, <<0:512>>, <<0:520>>, <<0:1016>>, <<0:1024>>, Long, Part, <<5:3>>,
     <<1:1>>,
     <<0:1>>, <<255, 1:1>>, <<0:521>>, <<160:8>>,
     %% At the lengths at which an order key changes its form.
     <<0:4096>>, <<0:4099>>, <<0:4104>>, <<0:4360>>, <<0:16000>>, <<0:4096, 1>>].

containers() ->
    [{}, {a}, {a, 1, b}, {a, b, c}, {1, a}, {1.0, a}, {{}}, {a, {b, {c, 1}}}, [], [[]],
     [a], [a, b], [a | b], [1, 2 | <<"x">>], [1.0, 2 | <<"x">>], "a", "abc", [a, b, c],
     lists:seq(1, 300), deep_list(200), deep_tuple(200), {user, self(), <<0:520>>, 1.5},
     {user, [1 bsl 70, <<5:3>> | 1.0], #{a => 1}}, [make_ref(), {#{1.0 => x}, []} | self()],
     #{}, #{a => 1}, #{a => 1.0}, #{1 => a}, #{1.0 => a}, #{#{1.0 => x} => y},
     #{#{1 => x} => y}, #{0.0 => zero}, #{1 => a, 1.0 => b},
     maps:from_list([{I, I} || I <- lists:seq(1, 40)]),
     maps:from_list([{{k, I}, I * 1.0} || I <- lists:seq(1, 33)]), #{b => [], c => #{d => {}}},
     %% As elements, these are stored out of line.
     lists:seq(1, 2100), list_to_tuple(lists:duplicate(300, {<<0:1600>>, 1.5})),
     maps:from_list([{I, <<I:1600>>} || I <- lists:seq(1, 300)])].

identities() ->
    Captured = 17,
    [self(), make_ref(), hd(erlang:ports()), external_pid(1), external_pid(2),
     external_ref(1), external_ref(2), external_port(1), external_port(2),
     fun lists:map/2, fun erlang:self/0, fun(X) -> X end,
     fun(X) -> X + Captured end, fun(X) -> {X, Captured, deep_list(3)} end].

%% @doc Minus zero; written so that no compiler folds its sign away.
negative_zero() ->
    <<F/float>> = <<16#80, 0, 0, 0, 0, 0, 0, 0>>,
    F.

deep_list(0) -> [];
deep_list(N) -> [deep_list(N - 1)].

deep_tuple(0) -> bottom;
deep_tuple(N) -> {N, deep_tuple(N - 1)}.

%% @doc Identities of another node, as they come in from a file or a socket. Its
%% name sorts after that of a node without a name: references and ports of this
%% node come before those of others in the module under test, whatever the
%% names; Erlang sorts by name, so that the order changes when a node gets one.
external_pid(N) ->
    binary_to_term(<<131, 88, 119, 7, "zoo@far", N:32, 3:32, 77:32>>).

external_ref(N) ->
    binary_to_term(<<131, 90, 3:16, 119, 7, "zoo@far", 77:32, N:32, 5:32, 6:32>>).

external_port(N) ->
    binary_to_term(<<131, 120, 119, 7, "zoo@far", N:64, 77:32>>).

%% @doc A member of the pool as a command names it: `{'$k', N}'. Short names keep
%% generation quick and what fails readable; made/1 puts the terms in.
from_pool() ->
    {'$k', integer(1, length(pool()))}.

%% @doc A command with the pool's terms in their places; `{'$q', N}' is a term
%% as a match specification has to write it.
made({'$k', N}) -> lists:nth(N, pool());
made({'$q', N}) -> quoted(lists:nth(N, pool()));
made([H | T]) -> [made(H) | made(T)];
made(Tuple) when is_tuple(Tuple) -> list_to_tuple(made(tuple_to_list(Tuple)));
made(Map) when is_map(Map) ->
    maps:from_list([{made(K), made(V)} || {K, V} <- maps:to_list(Map)]);
made(Term) -> Term.

quoted(T) when is_tuple(T); is_list(T); is_map(T) -> {const, T};
quoted(T) -> T.

%% Generators -----------------------------------------------------------------

key() ->
    frequency([{7, elements(hot())}, {4, from_pool()}]).

value() ->
    frequency([{5, integer(-3, 3)}, {3, from_pool()}, {1, elements([a, b, c])}]).

%% Most objects have room for the key at 1 and at 2, and for counters.
object() ->
    frequency([{1, {key()}},
               {6, {key(), value()}},
               {6, {key(), key(), value()}},
               {2, {key(), key(), value(), value()}},
               {1, {key(), key(), 1, 2, 3, 4, 5, 6}}]).

wrong_object() ->
    elements([a, [], {}, [{1, 2}, b], [{1, 2} | b], [{1, 2} | {3, 4}], [[]], {x}, <<"bin">>]).

objects() ->
    frequency([{10, list(object())},
               {3, ?LET({L, N}, {list(object()), integer(1, 4)},
                        lists:append(lists:duplicate(N, L)))},
               {1, ?LET({L, W}, {list(object()), wrong_object()}, L ++ [W])},
               {1, ?LET({L, W}, {list(object()), wrong_object()}, L ++ W)}]).

%% @doc Options of new/2 for a type, in any order and with repetitions.
options(Type) ->
    ?LET(Extra, list_up_to(4, table_option()), shuffled([Type | Extra])).

shuffled(List) ->
    ?LET(Keys, vector(length(List), integer(0, 1000)),
         [X || {_, X} <- lists:keysort(1, lists:zip(Keys, List))]).

list_up_to(N, Type) ->
    ?LET(Len, integer(0, N), vector(Len, Type)).

table_option() ->
    frequency([{6, public}, {2, protected}, {1, private}, {2, named_table},
               {3, {keypos, elements([1, 1, 2, 2, 3])}}, {3, compressed()},
               {2, {write_concurrency, elements([true, false, auto])}},
               {2, {read_concurrency, boolean()}},
               {2, {decentralized_counters, boolean()}},
               {2, {heir, {'$p', integer(1, 3)}, elements([data, {d, 1}, "text", <<0:800>>])}},
               {1, {heir, none}},
               {1, {heir, '$dead', data}},
               {1, elements([{heir, a, b}, {keypos, 0}, nonsense, {write_concurrency, 1},
                             {read_concurrency, auto}])}]).

%% @doc A table of `ets' for rows with any of these terms; not compressed, see `compressed/0'.
oracle(Options) -> ets:new(oracle, [public | Options -- [compressed]]).

%% @doc The option of a compressed table, if `ets' can have one.
%% From OTP 27 on a compressed table of `ets' can bring the emulator down with
%% some of the terms here, ports and external funs (as ets against itself shows).
compressed() ->
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true -> public;
        false -> compressed
    end.

element_pattern() ->
    frequency([{6, elements(['_', '$1', '$2', '$3'])},
               {3, key()},
               {1, {element_var(), element_var()}},
               {1, {a, element_var()}},
               {1, ?LET(V, element_var(), exactly([a | V]))},
               {1, ?LET(V, element_var(), #{a => V})},
               {1, elements(['$0', '$17', '$00', '$x', '$', '_x'])}]).

element_var() ->
    elements(['_', '$1', '$2', '$4']).

%% @doc A match pattern for objects as object() makes them.
pattern() ->
    frequency([{1, '_'},
               {1, {element_pattern()}},
               {5, {element_pattern(), element_pattern()}},
               {5, {element_pattern(), element_pattern(), element_pattern()}},
               {1, {element_pattern(), element_pattern(), '_', '$9'}},
               {1, elements(['$1', a, [], {}, 1, #{}])}]).

any_term() ->
    oneof([from_pool(), key(), object()]).
