%% @doc Random commands for diff_world: every function of `ets', weighted so
%% that most calls make sense and some don't.
-module(diff_commands).
-include_lib("proper/include/proper.hrl").

-export([sequence/1, sequence/2]).

%% Lazy: of all the branches only the one that is chosen is built.
-define(CALL(Function, Args), ?LAZY({call, Function, Args})).

-import(diff_gen, [key/0, value/0, object/0, wrong_object/0, objects/0, pattern/0]).

%% @doc A list of commands on three tables; the first is of the given type.
sequence(Type) ->
    sequence(Type, fun(_) -> [] end).

%% @doc The same, with more options for every table (a structure, say), by its
%% type.
sequence(Type, More) ->
    ?LET({Options, Objects, Rest},
         {opening_options(Type), list(object()), list(command(More))},
         [{1, {new, 1, 1, Options ++ More(Type)}},
          {1, {call, insert, [{'$t', 1}, fitting(Objects)]}} | Rest]).

%% The first table is one that the other actors mostly can use.
opening_options(Type) ->
    frequency([{1, [Type, public]}, {3, ?LET(O, diff_gen:options(Type), O ++ [public])},
               {1, diff_gen:options(Type)}]).

fitting(Objects) -> [O || O <- Objects, tuple_size(O) >= 2].

command(More) ->
    {frequency([{5, 1}, {1, 2}, {1, 3}]), operation(More)}.

operation(More) ->
    frequency([{1, ?LAZY(new(More))}, {40, ?LAZY(single())}, {12, ?LAZY(query())},
               {8, ?LAZY(whole())},
               {6, ?LAZY(walk())}, {6, ?LAZY(chunk())}, {3, ?LAZY(ownership())},
               {3, ?LAZY(mistaken())}]).

slot() -> frequency([{8, 1}, {2, 2}, {1, 3}]).

tab() -> frequency([{12, {'$t', slot()}}, {1, {'$n', integer(1, 3)}}]).

new(More) ->
    ?LET({Slot, Name, Type},
         {slot(), integer(1, 3), elements([set, ordered_set, bag, duplicate_bag])},
         ?LET(Options, diff_gen:options(Type), {new, Slot, Name, Options ++ More(Type)})).

%% Functions on one key or one object -------------------------------------------

single() ->
    frequency([{12, ?CALL(insert, [tab(), object()])},
               {5, ?CALL(insert, [tab(), objects()])},
               {3, ?CALL(insert_new, [tab(), object()])},
               {3, ?CALL(insert_new, [tab(), objects()])},
               {5, ?CALL(lookup, [tab(), key()])},
               {2, ?CALL(member, [tab(), key()])},
               {2, ?CALL(lookup_element, [tab(), key(), position()])},
               {2, ?CALL(lookup_element, [tab(), key(), position(), value()])},
               {4, ?CALL(delete, [tab(), key()])},
               {4, ?CALL(delete_object, [tab(), object()])},
               {3, ?CALL(take, [tab(), key()])},
               {4, ?CALL(update_counter, [tab(), key(), counter_ops()])},
               {3, ?CALL(update_counter, [tab(), key(), counter_ops(), default()])},
               {3, ?CALL(update_element, [tab(), key(), element_specs()])},
               {2, ?CALL(update_element, [tab(), key(), nonempty_specs(), default()])},
               {2, ?CALL(next, [tab(), key()])},
               {2, ?CALL(prev, [tab(), key()])},
               {1, ?CALL(first, [tab()])},
               {1, ?CALL(last, [tab()])},
               {1, ?CALL(next_lookup, [tab(), key()])},
               {1, ?CALL(prev_lookup, [tab(), key()])},
               {1, ?CALL(first_lookup, [tab()])},
               {1, ?CALL(last_lookup, [tab()])},
               {1, ?CALL(slot, [tab(), integer(-1, 3)])}]).

position() ->
    frequency([{6, integer(1, 4)}, {1, elements([0, -1, 100, 1 bsl 70, a, 1.0])}]).

default() ->
    frequency([{6, object()}, {1, wrong_object()}]).

counter_ops() ->
    frequency([{4, counter_step()}, {4, counter_op()}, {3, list(counter_op())},
               {1, elements([a, {3}, {a, 1}, {2, a}, [{2, 1} | b], [1], {2, 1, 2}, [a]])}]).

counter_step() ->
    frequency([{6, integer(-5, 5)},
               {1, elements([1 bsl 59, 1 bsl 63, -(1 bsl 63), 1 bsl 64, -(1 bsl 64),
                             (1 bsl 59) - 1])}]).

counter_op() ->
    frequency([{6, {position(), counter_step()}},
               {4, {position(), counter_step(), counter_step(), counter_step()}}]).

element_specs() ->
    frequency([{5, element_spec()}, {4, list(element_spec())},
               {1, elements([a, {2}, {2, a, b}, [{2, x} | y], [a]])}]).

nonempty_specs() ->
    frequency([{5, element_spec()}, {3, ?LET({A, B}, {element_spec(), element_spec()}, [A, B])}]).

element_spec() -> {position(), value()}.

%% Queries ------------------------------------------------------------------------

query() ->
    frequency([{3, ?CALL(match, [tab(), pattern()])},
               {3, ?CALL(match_object, [tab(), pattern()])},
               {2, ?CALL(match_delete, [tab(), pattern()])},
               {4, ?CALL(select, [tab(), spec()])},
               {2, ?CALL(select_reverse, [tab(), spec()])},
               {3, ?CALL(select_count, [tab(), count_spec()])},
               {3, ?CALL(select_delete, [tab(), count_spec()])},
               {4, ?CALL(select_replace, [tab(), replace_spec()])},
               {2, ?LAZY({run_ms, list(object()), spec()})}]).

spec() ->
    frequency([{4, ?LAZY(diff_ms_gen:spec())}, {3, ?LET(C, diff_ms_gen:key_clause(), [C])},
               {1, diff_ms_gen:wrong_spec()}]).

count_spec() ->
    frequency([{3, ?LAZY(diff_ms_gen:boolean_spec())}, {2, ?LAZY(spec())}]).

replace_spec() ->
    frequency([{8, ?LET(C, diff_ms_gen:replace_clause(), [C])}, {1, spec()}]).

%% Whole tables ---------------------------------------------------------------------

whole() ->
    frequency([{1, ?CALL(delete, [tab()])},
               {1, ?CALL(delete_all_objects, [tab()])},
               {2, ?CALL(rename, [tab(), {'$n', integer(1, 3)}])},
               {2, ?CALL(tab2list, [tab()])},
               {4, ?CALL(info, [tab(), info_item()])},
               {2, ?CALL(info, [tab()])},
               {1, ?CALL(all, [])},
               {2, ?CALL(whereis, [{'$n', integer(1, 3)}])},
               {6, ?CALL(safe_fixtable, [tab(), boolean()])},
               {1, {file, slot(), file_options()}}]).

info_item() ->
    elements([id, decentralized_counters, read_concurrency, write_concurrency, compressed,
              memory, owner, heir, name, size, size, size, node, named_table, type, keypos,
              protection, fixed, safe_fixed, safe_fixed_monotonic_time, stats, nonsense]).

file_options() ->
    elements([[], [], [{extended_info, [object_count]}], [{extended_info, [md5sum]}],
              [{extended_info, [md5sum, object_count]}, {sync, true}],
              [nonsense], [{extended_info, [nonsense]}]]).

walk() ->
    {walk, slot(), frequency([{2, keys}, {1, keys_back}, {1, rows}, {1, rows_back}, {1, slots},
                              {1, foldl}, {1, foldr},
                              {2, ?LAZY({select, diff_ms_gen:spec(), limit()})},
                              {1, ?LAZY({select_reverse, diff_ms_gen:spec(), limit()})},
                              {1, ?LAZY({match, pattern(), limit()})},
                              {1, ?LAZY({match_object, pattern(), limit()})}])}.

limit() -> frequency([{8, integer(1, 5)}, {1, elements([0, -1, 1000, 1 bsl 70, a])}]).

chunk() ->
    frequency([{1, ?LAZY({open, slot(), select, spec(), limit(), cont()})},
               {1, ?LAZY({open, slot(), select_reverse, spec(), limit(), cont()})},
               {1, ?LAZY({open, slot(), elements([match, match_object]), pattern(), limit(),
                          cont()})},
               {4, ?LAZY({more, cont(), elements([direct, direct, repaired])})}]).

cont() -> integer(1, 2).

%% Owners, and calls that are wrong ----------------------------------------------

ownership() ->
    frequency([{4, ?CALL(give_away, [tab(), actor(), elements([gift, {g, 1}, <<0:800>>])])},
               {4, ?CALL(setopts, [tab(), heir_options()])},
               {3, {kill, elements([normal, kill, crash])}}]).

actor() ->
    frequency([{8, {'$p', integer(1, 3)}}, {1, '$dead'}, {1, diff_gen:external_pid(1)}, {1, a}]).

heir_options() ->
    oneof([{heir, actor(), data}, [{heir, actor(), {d, 2}}], {heir, none}, [],
           [{heir, none}, {heir, none}],
           [{keypos, 1}], a, {nonsense, public}, [{heir, {'$p', 1}, a}, {heir, {'$p', 2}, b}]]).

mistaken() ->
    oneof([?CALL(insert, [tab(), wrong_object()]),
           ?CALL(insert_new, [tab(), wrong_object()]),
           ?CALL(delete_object, [tab(), wrong_object()]),
           ?CALL(lookup, [diff_gen:any_term(), key()]),
           ?CALL(select, [tab(), diff_gen:any_term()]),
           ?CALL(safe_fixtable, [tab(), a]),
           ?CALL(rename, [tab(), 17]),
           ?CALL(info, [tab(), 17])]).
