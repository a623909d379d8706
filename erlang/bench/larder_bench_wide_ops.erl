%% @doc The operations of the wide bench: what each is given, and on which tables it makes sense.
%%
%% Add an operation when a user would meet it; none is ever removed. An operation is a line of
%% lines/0, and a loop of larder_bench_wide_loops.hrl if none of those there fits.
-module(larder_bench_wide_ops).

-export([names/0, find/1, on/4, per_row/1, items/4, same/3]).
-export([large/0, large_kinds/0, by_name/0, by_name_kinds/0, shared/0, shared_kinds/0]).

-export_type([op/0, state/0]).

-type state() :: as_is | without_keys | without_others | with_rows | restored | exchanged | empty
    | filled.
%% What a table is brought into, see prepare/3 of the loops: without or with the part's keys and
%% rows; those rows alone instead of what was done to them; the same without the other keys, too;
%% all rows again.
-type op() :: #{name := atom(), loop := atom(), on := [atom()], least := 1 | 2, input := atom(),
                before := state(),
                later := state(), answer := exact | free | never, whole := boolean(),
                scan := boolean(),
                only := any | smallest | named | unnamed | prefix}.
%% `least': elements of a row. `answer': free where a hash table may choose its order, so that
%% answers can't be compared one by one; never where they are a table's own business. `whole': one
%% call goes over all rows. `scan': it builds nothing. `only': a restriction to some tables.

-define(ALL, [set, ordered_set, bag, duplicate_bag]).
-define(SETS, [set, ordered_set]).
-define(ORDERED, [ordered_set]).

%% @doc All names, in the order of the table.
-spec names() -> [atom()].
names() -> [Name || #{name := Name} <- all()].

%% @doc The operation of that name.
-spec find(atom()) -> op().
find(Name) ->
    [Op] = [Op || #{name := N} = Op <- all(), N =:= Name],
    Op.

%% @doc Whether the operation is there for tables of a type with rows of a kind.
-spec on(op(), atom(), larder_bench_wide_kinds:kind(), {pos_integer(), ref | name}) -> boolean().
on(#{on := On, least := Least, only := Only}, Type, Kind, {Size, By}) ->
    lists:member(Type, On) andalso larder_bench_wide_kinds:arity(Kind) >= Least andalso
        case Only of
            any -> true;
            smallest -> Size =< 10;
            named -> By =:= name;
            unnamed -> By =:= ref;
            prefix -> Kind =:= tuple
        end.

%% @doc Whether its time is given by row and not by call.
-spec per_row(op()) -> boolean().
per_row(#{whole := Whole}) -> Whole.

%%% What is measured of large tables, of tables by name and with two processes.

-spec large() -> [atom()].
large() ->
    [insert, insert_over, insert_new_hit, lookup_hit, lookup_miss, member_hit, delete_hit,
     take_insert,
     update_counter, update_element, next, select_key, match_object_key, select_count_all,
     select_count_guard, select_none, select_element_guard, foldl, walk_next, churn, queue].

-spec large_kinds() -> [atom()].
large_kinds() -> [int, bin16, tuple, ref, rec5].

-spec by_name() -> [atom()].
by_name() ->
    [insert_over, lookup_hit, lookup_miss, lookup_element, member_hit, delete_hit, update_counter,
     next, select_key,
     match_object_key, select_count_all, walk_next, info_size, whereis, fixtable].

-spec by_name_kinds() -> [atom()].
by_name_kinds() -> [int, bin16, ref, rec20].

-spec shared() -> [atom()].
shared() -> [insert_over, lookup_hit, member_hit, update_counter, take_insert, lookup_insert, next].

-spec shared_kinds() -> [atom()].
shared_kinds() -> [int, bin16, tuple, ref, rec20].

%%% The table

all() -> [op(Line) || Line <- lines(), there(element(1, Line))].

%% Functions that `ets' of this release does not have can't be compared.
there(lookup_element_default) -> erlang:system_info(otp_release) >= "26";
there(lookup_element_default_miss) -> there(lookup_element_default);
there(update_element_default) -> erlang:system_info(otp_release) >= "27";
there(first_lookup) -> there(update_element_default);
there(next_lookup) -> there(update_element_default);
there(walk_next_lookup) -> there(update_element_default);
there(_) -> true.

op({Name, Loop, On, Input}) -> op({Name, Loop, On, Input, as_is, as_is, []});
op({Name, Loop, On, Input, Marks}) -> op({Name, Loop, On, Input, as_is, as_is, Marks});
op({Name, Loop, On, Input, Before, Later}) -> op({Name, Loop, On, Input, Before, Later, []});
op({Name, Loop, On, Input, Before, Later, Marks}) ->
    Is = fun(Mark) -> lists:member(Mark, Marks) end,
    #{name => Name, loop => Loop, on => On, input => Input, before => Before, later => Later,
      least => case Is(two) of true -> 2; false -> 1 end,
      answer => hd([A || A <- [free, never], Is(A)] ++ [exact]),
      whole => Is(whole), scan => Is(scan),
      only => hd([O || O <- [smallest, named, unnamed, prefix], Is(O)] ++ [any])}.

%% A line is the name, the loop, the types and what it is given. Then may come the states before and
%% after, which are as_is otherwise, and then marks.
lines() ->
    inserts() ++ lookups() ++ removals() ++ updates() ++ steps() ++ queries_by_key() ++ queries()
        ++ traversals() ++ mixtures() ++ fills() ++ tables().

inserts() ->
    [{insert, insert, ?ALL, rows, without_keys, as_is},
     {insert_over, insert, ?ALL, changed, as_is, restored, [two]},
     {insert_same, insert, ?ALL, rows, as_is, restored},
     {insert_list, insert, ?ALL, lists, without_keys, as_is},
     {insert_list_over, insert, ?SETS, lists},
     {insert_new, insert_new, ?ALL, rows, without_keys, restored},
     {insert_new_hit, insert_new, ?ALL, rows},
     {insert_new_list, insert_new, ?ALL, lists, without_keys, restored}].

lookups() ->
    [{lookup_hit, lookup, ?ALL, keys},
     {lookup_miss, lookup, ?ALL, others},
     {lookup_element, lookup_element, ?ALL, key_at},
     {lookup_element_miss, lookup_element_caught, ?ALL, other_at},
     {lookup_element_default, lookup_element_default, ?ALL, key_at},
     {lookup_element_default_miss, lookup_element_default, ?ALL, other_at},
     {member_hit, member, ?ALL, keys},
     {member_miss, member, ?ALL, others}].

removals() ->
    [{delete_hit, delete, ?ALL, keys, as_is, with_rows},
     {delete_miss, delete, ?ALL, others},
     {delete_object, delete_object, ?ALL, rows, as_is, with_rows},
     {delete_object_miss, delete_object, ?ALL, changed, [two]},
     {take_hit, take, ?ALL, keys, as_is, with_rows},
     {take_miss, take, ?ALL, others},
     {take_insert, take_insert, ?ALL, key_row, as_is, restored}].

updates() ->
    [{lookup_insert, lookup_insert, ?SETS, key_changed, as_is, restored, [two]},
     {update_counter, update_counter, ?SETS, by_one, as_is, restored, [two]},
     {update_counter_op, update_counter, ?SETS, by_op, as_is, restored, [two]},
     {update_counter_wrap, update_counter, ?SETS, by_wrapping, as_is, restored, [two]},
     {update_counter_list, update_counter, ?SETS, by_list, as_is, restored, [two]},
     {update_counter_default, update_counter_default, ?SETS, by_one_default, as_is, restored,
      [two]},
     {update_counter_new, update_counter_default, ?SETS, others_default, as_is, without_others,
      [two]},
     {update_element, update_element, ?SETS, element, as_is, restored, [two]},
     {update_element_list, update_element, ?SETS, elements, as_is, restored, [two]},
     {update_element_default, update_element_default, ?SETS, element_default, as_is, restored,
      [two]}].

steps() ->
    [{first, first, ?ALL, keys, [free]},
     {last, last, ?ALL, keys, [free]},
     {next, next, ?ALL, keys, [free]},
     {prev, prev, ?ALL, keys, [free]},
     {next_absent, next, ?ORDERED, others},
     {first_lookup, first_lookup, ?ALL, keys, [free]},
     {next_lookup, next_lookup, ?ALL, keys, [free]}].

queries_by_key() ->
    [{select_key, select, ?ALL, key_spec},
     {select_key_miss, select, ?ALL, other_spec},
     {select_key_same, select, ?ALL, same_spec},
     {select_key_vars, select, ?ALL, key_vars_spec, [two]},
     {select_key_guard, select, ?ALL, key_guard_spec, [two]},
     {select_key_limit, select_ten, ?ALL, key_spec},
     {select_keys, select, ?ALL, keys_spec},
     {select_prefix, select, ?ORDERED, prefix_spec, [prefix]},
     {select_count_key, select_count, ?ALL, key_true_spec},
     {select_delete_key, select_delete, ?ALL, key_true_spec, as_is, with_rows},
     {select_replace_key, select_replace, ?SETS, key_replace_spec, as_is, restored, [two]},
     {match_key, match, ?ALL, key_pattern},
     {match_object_key, match_object, ?ALL, key_pattern},
     {match_object_row, match_object, ?ALL, rows},
     {match_delete_key, match_delete, ?ALL, key_pattern, as_is, with_rows},
     {match_spec_compile, match_spec_compile, ?ALL, key_spec, [never]}].

queries() ->
    [{select_all, select, ?ALL, all_spec, [whole]},
     {select_vars, select, ?ALL, vars_spec, [whole, two]},
     {select_guard, select, ?ALL, guard_spec, [whole, two]},
     {select_element_guard, select, ?ALL, element_guard_spec, [whole, two]},
     {select_clauses, select, ?ALL, clauses_spec, [whole, two]},
     {select_none, select, ?ALL, none_spec, [whole, two, scan]},
     {select_none_pattern, select, ?ALL, none_pattern_spec, [whole, two, scan]},
     {select_none_element, select, ?ALL, none_element_spec, [whole, two, scan]},
     {select_limit, select_limited, ?ALL, limited_spec, [whole]},
     {select_reverse, select_reverse, ?ORDERED, all_spec, [whole]},
     {select_count_all, select_count, ?ALL, true_spec, [whole, scan]},
     {select_count_guard, select_count, ?ALL, true_guard_spec, [whole, two, scan]},
     {select_delete_all, select_delete, ?ALL, true_spec, as_is, filled, [whole]},
     {select_delete_guard, select_delete, ?ALL, true_guard_spec, as_is, filled, [whole, two]},
     {select_replace_all, select_replace, ?SETS, replace_spec, as_is, filled, [whole, two]},
     {match_all, match, ?ALL, key_var_pattern, [whole]},
     {match_object_all, match_object, ?ALL, any_pattern, [whole]},
     {match_object_value, match_object, ?ALL, value_pattern, [whole, two]},
     {match_object_limit, match_limited, ?ALL, limited_pattern, [whole]},
     {match_delete_all, match_delete, ?ALL, any_pattern, as_is, filled, [whole]}].

traversals() ->
    [{tab2list, tab2list, ?ALL, once, [whole]},
     {foldl, foldl, ?ALL, count_fun, [whole]},
     {foldr, foldr, ?ALL, count_fun, [whole]},
     {walk_next, walk_next, ?ALL, once, [whole]},
     {walk_prev, walk_prev, ?ALL, once, [whole]},
     {walk_fixed, walk_fixed, ?ALL, once, [whole]},
     {walk_lookup, walk_lookup, ?ALL, once, [whole]},
     {walk_next_lookup, walk_next_lookup, ?ALL, once, [whole]},
     {walk_slots, walk_slots, ?ALL, once, [whole]},
     {drain_next_delete, drain_next_delete, ?ALL, once, as_is, filled, [whole]},
     {drain_delete_next, drain_delete_next, ?ORDERED, once, as_is, filled, [whole]},
     {drain_first_delete, drain_first_delete, ?ALL, once, as_is, filled, [whole]},
     {drain_first_take, drain_first_take, ?ALL, once, as_is, filled, [whole]},
     {drain_last_delete, drain_last_delete, ?ORDERED, once, as_is, filled, [whole]}].

mixtures() ->
    [{churn, churn, ?ALL, churn, without_others, exchanged},
     {queue, queue, ?ALL, queue, without_others, exchanged},
     {queue_first, queue_first, ?ORDERED, other_rows, as_is, filled}].

fills() ->
    [{fill_random, fill_empty, ?ALL, all_rows, empty, filled, [whole]},
     {fill_in_order, fill_empty, ?ALL, sorted_rows, empty, filled, [whole]},
     {fill_reversed, fill_empty, ?ALL, reversed_rows, empty, filled, [whole]},
     {fill_list, insert, ?ALL, all_rows, empty, filled, [whole]},
     {delete_all_objects, delete_all_objects, ?ALL, once, as_is, filled, [whole]}].

tables() ->
    [{info, info, ?ALL, keys, [never]},
     {info_size, info_item, ?ALL, sizes},
     {info_memory, info_item, ?ALL, memories, [never]},
     {fixtable, fixtable, ?ALL, keys},
     {rename, rename, ?ALL, names, [unnamed, never]},
     {whereis, whereis, ?ALL, keys, [named]},
     {new_delete, new_delete, ?ALL, options, [smallest]},
     {new_insert_delete, new_insert_delete, ?ALL, options_rows, [smallest]}].

%%% What they are given

%% @doc The items of an operation from a part of the table's data: made before the time is taken.
-spec items(op(), atom(), larder_bench_wide_kinds:kind(),
            {larder_bench_wide_kinds:part(), pos_integer()}) -> [term()].
items(#{input := Input}, Type, Kind, {#{rows := Rows, other_rows := Others} = Part, Size}) ->
    Local = Part#{rows := larder_bench_wide_kinds:local(Kind, Rows),
                  other_rows := larder_bench_wide_kinds:local(Kind, Others)},
    Arity = larder_bench_wide_kinds:arity(Kind),
    given(Input, Local, #{arity => Arity, at => min(2, Arity), size => Size,
                          options => [Type, public | larder_bench_wide_kinds:options(Kind)]}).

given(keys, #{keys := Keys}, _) -> Keys;
given(others, #{others := Keys}, _) -> Keys;
given(rows, #{rows := Rows}, _) -> Rows;
given(other_rows, #{other_rows := Rows}, _) -> Rows;
given(changed, #{rows := Rows}, _) -> [changed(Row) || Row <- Rows];
given(lists, #{rows := Rows}, _) -> cut(Rows, 100);
given(key_at, #{keys := Keys}, #{at := At}) -> [{K, At} || K <- Keys];
given(other_at, #{others := Keys}, #{at := At}) -> [{K, At} || K <- Keys];
given(key_row, #{rows := Rows}, _) -> [{element(1, Row), Row} || Row <- Rows];
given(key_changed, #{rows := Rows}, _) -> [{element(1, Row), changed(Row)} || Row <- Rows];
given(by_one, #{keys := Keys}, _) -> [{K, 1} || K <- Keys];
given(by_op, #{keys := Keys}, _) -> [{K, {2, 3}} || K <- Keys];
given(by_wrapping, #{keys := Keys}, #{size := Size}) -> [{K, {2, 1, Size div 2, 0}} || K <- Keys];
given(by_list, #{keys := Keys}, _) -> [{K, [{2, 1}, {2, 0}, {2, 5}]} || K <- Keys];
given(by_one_default, #{rows := Rows}, _) -> [{element(1, Row), {2, 1}, Row} || Row <- Rows];
given(others_default, #{other_rows := Rows}, _) -> [{element(1, Row), {2, 1}, Row} || Row <- Rows];
given(element, #{keys := Keys}, _) -> [{K, {2, 17}} || K <- Keys];
given(elements, #{keys := Keys}, #{arity := Arity}) -> [{K, [{2, 17}, {Arity, 18}]} || K <- Keys];
given(element_default, #{rows := Rows}, _) -> [{element(1, Row), {2, 17}, Row} || Row <- Rows];
%% With the key bound.
given(key_spec, #{keys := Keys}, Is) -> [key_spec(K, Is) || K <- Keys];
given(other_spec, #{others := Keys}, Is) -> [key_spec(K, Is) || K <- Keys];
given(same_spec, #{keys := [K | _] = Keys}, Is) -> Spec = key_spec(K, Is), [Spec || _ <- Keys];
given(key_vars_spec, #{keys := Keys}, Is) ->
    [[{with_key(K, vars(Is)), [], [{{'$2', '$2'}}]}] || K <- Keys];
given(key_guard_spec, #{keys := Keys}, Is) ->
    [[{with_key(K, vars(Is)), [{'>', '$2', 0}], ['$_']}] || K <- Keys];
given(keys_spec, #{keys := Keys}, Is) ->
    [[{with_key(K, any(Is)), [], ['$_']} || K <- Four] || Four <- cut(Keys, 4)];
given(prefix_spec, #{keys := Keys}, Is) ->
    [[{with_key(setelement(3, K, '_'), any(Is)), [], ['$_']}] || K <- Keys];
given(key_true_spec, #{keys := Keys}, Is) -> [[{with_key(K, any(Is)), [], [true]}] || K <- Keys];
given(key_replace_spec, #{keys := Keys}, Is) ->
    [[{with_key(K, numbered(Is)), [], [replacement(Is, {const, K})]}] || K <- Keys];
given(key_pattern, #{keys := Keys}, Is) -> [with_key(K, any(Is)) || K <- Keys];
%% Over all rows.
given(all_spec, _, _) -> [[{'_', [], ['$_']}]];
given(vars_spec, _, Is) -> [[{vars(Is), [], [{{'$1', '$2'}}]}]];
given(guard_spec, _, Is) -> [[{vars(Is), [{'=<', '$2', tenth(Is)}], ['$_']}]];
given(element_guard_spec, _, Is) -> [[{'$1', [{'=<', {element, 2, '$1'}, tenth(Is)}], ['$1']}]];
given(clauses_spec, _, #{size := Size} = Is) ->
    [[{setelement(2, any(Is), Size div 2), [], ['$_']},
      {vars(Is), [{'>', '$2', Size - tenth(Is)}], ['$2']},
      {vars(Is), [{'=<', '$2', tenth(Is)}], [{{last, '$2'}}]}]];
given(none_spec, _, Is) -> [[{vars(Is), [{'<', '$2', 0}], ['$_']}]];
given(none_pattern_spec, _, Is) -> [[{setelement(2, any(Is), none), [], ['$_']}]];
given(none_element_spec, _, _) -> [[{'$1', [{'<', {element, 2, '$1'}, 0}], ['$_']}]];
given(limited_spec, _, _) -> [{[{'_', [], ['$_']}], 100}];
given(true_spec, _, _) -> [[{'_', [], [true]}]];
given(true_guard_spec, _, Is) -> [[{vars(Is), [{'=<', '$2', tenth(Is)}], [true]}]];
given(replace_spec, _, Is) -> [[{setelement(1, numbered(Is), '$1'), [], [replacement(Is, '$1')]}]];
given(key_var_pattern, _, Is) -> [setelement(1, any(Is), '$1')];
given(any_pattern, _, Is) -> [any(Is)];
given(value_pattern, _, #{size := Size} = Is) -> [setelement(2, any(Is), Size div 2)];
given(limited_pattern, _, Is) -> [{any(Is), 100}];
given(once, _, _) -> [once];
given(count_fun, _, _) -> [fun(_, N) -> N + 1 end];
%% Mixtures: the table keeps its size within a row.
given(churn, #{keys := Keys, other_rows := Rows}, _) -> turns(Keys, Rows);
given(queue, #{keys := Keys, other_rows := Rows}, _) -> turns(lists:sort(Keys), lists:sort(Rows));
given(all_rows, #{all := Rows}, _) -> [Rows];
given(sorted_rows, #{all := Rows}, _) -> [lists:sort(Rows)];
given(reversed_rows, #{all := Rows}, _) -> [lists:reverse(lists:sort(Rows))];
%% About the table.
given(sizes, #{keys := Keys}, _) -> [size || _ <- Keys];
given(memories, #{keys := Keys}, _) -> [memory || _ <- Keys];
given(names, #{keys := Keys}, _) ->
    element(1, lists:mapfoldl(fun(_, {A, B}) -> {A, {B, A}} end,
                              {larder_bench_wide_one, larder_bench_wide_two}, Keys));
given(options, #{keys := Keys}, #{options := Options}) -> [Options || _ <- Keys];
given(options_rows, #{keys := Keys, rows := Rows}, #{options := Options}) ->
    Ten = lists:sublist(Rows, 10),
    [{Options, Ten} || _ <- Keys].

%% Another number than any row has.
changed(Row) -> setelement(2, Row, -element(2, Row)).

cut([], _) -> [];
cut(List, N) when length(List) =< N -> [List];
cut(List, N) -> {Front, Rest} = lists:split(N, List), [Front | cut(Rest, N)].

turns([K | Keys], [Row | Rows]) -> [{K, Row} | turns(Keys, Rows)];
turns(_, _) -> [].

tenth(#{size := Size}) -> max(1, Size div 10).

any(#{arity := Arity}) -> erlang:make_tuple(Arity, '_').
vars(Is) ->
    list_to_tuple(lists:sublist(['$1', '$2'] ++ tl(tl(tuple_to_list(any(Is)))),
                                maps:get(arity, Is))).
with_key(K, Pattern) -> setelement(1, Pattern, K).
key_spec(K, Is) -> [{with_key(K, any(Is)), [], ['$_']}].

%% All elements by number, so that a replacement can name them.
numbered(#{arity := Arity}) -> list_to_tuple([variable(N) || N <- lists:seq(1, Arity)]).
replacement(#{arity := Arity}, Key) ->
    {list_to_tuple([Key, {'+', '$2', 1} | [variable(N) || N <- lists:seq(3, Arity)]])}.
variable(N) -> list_to_atom("$" ++ integer_to_list(N)).

%%% Answers

%% @doc Whether both sides have answered alike; a hash table and a bag choose the order of what they
%% give.
-spec same(op(), atom(), {[term()], [term()]}) -> boolean().
same(#{answer := never}, _, {A, B}) -> length(A) =:= length(B);
same(#{answer := free}, Type, {A, B}) when Type =/= ordered_set -> length(A) =:= length(B);
same(#{loop := walk_slots}, _, {A, B}) -> flat(A) =:= flat(B);
same(_, ordered_set, {A, B}) -> A =:= B;
same(#{loop := Loop}, _, {A, B}) ->
    case lists:member(Loop,
                      [select_limited, match_limited, walk_lookup, walk_next_lookup,
                       drain_first_take]) of
        true -> flat(A) =:= flat(B);
        false -> [plain(Answer) || Answer <- A] =:= [plain(Answer) || Answer <- B]
    end.

plain(List) when is_list(List) -> lists:sort(List);
plain(Other) -> Other.

%% Of lists of rows, all rows.
flat(Answers) -> [lists:sort(lists:append(Parts)) || Parts <- Answers].
