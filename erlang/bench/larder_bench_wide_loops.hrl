%% The timed loops of the wide bench. Two modules include this file, each with its own TABLES, so
%% that both sides run the same instructions around each call.
%%
%% A loop goes over prepared items. In the mode `drop' it is timed and forgets the answers; in the
%% mode `keep' it returns them, so that what is checked is the very code that is timed.

-define(OP(Name, Item, Call),
        Name(T, [Item | Items], drop) -> _ = Call, Name(T, Items, drop);
        Name(T, [Item | Items], keep) -> [Call | Name(T, Items, keep)];
        Name(_, [], _) -> []).

-spec new(atom(), [term()]) -> term().
new(Name, Options) -> ?TABLES:new(Name, [public | Options]).

-spec delete(term()) -> true.
delete(T) -> ?TABLES:delete(T).

%% Words, by what the table says of itself.
-spec memory(term()) -> non_neg_integer().
memory(T) -> ?TABLES:info(T, memory).

%% All rows, in the order of the table.
-spec contents(term()) -> [tuple()].
contents(T) -> ?TABLES:tab2list(T).

%% @doc Brings a table into a state: what is done before and after a pass, outside the timing.
-spec prepare(larder_bench_wide_ops:state(), term(), larder_bench_wide_kinds:part()) -> ok.
prepare(as_is, _, _) -> ok;
prepare(without_keys, T, #{keys := Keys}) -> delete_each(T, Keys);
prepare(without_others, T, #{others := Keys}) -> delete_each(T, Keys);
prepare(with_rows, T, #{rows := Rows}) -> true = ?TABLES:insert(T, Rows), ok;
prepare(restored, T, Part) -> prepare(without_keys, T, Part), prepare(with_rows, T, Part);
prepare(exchanged, T, Part) -> prepare(without_others, T, Part), prepare(restored, T, Part);
prepare(empty, T, _) -> true = ?TABLES:delete_all_objects(T), ok;
prepare(filled, T, #{all := Rows}) ->
    true = ?TABLES:delete_all_objects(T),
    fill(T, Rows).

%% @doc Inserts rows one by one.
-spec fill(term(), [tuple()]) -> ok.
fill(T, [Row | Rows]) -> true = ?TABLES:insert(T, Row), fill(T, Rows);
fill(_, []) -> ok.

delete_each(T, [K | Keys]) -> true = ?TABLES:delete(T, K), delete_each(T, Keys);
delete_each(_, []) -> ok.

%% @doc Runs a loop on each table, for its time.
-spec run(atom(), [term()], [term()]) -> ok.
run(Loop, [T | Tables], Items) -> _ = loop(Loop, T, Items, drop), run(Loop, Tables, Items);
run(_, [], _) -> ok.

%% @doc Runs a loop once, for its answers.
-spec answers(atom(), term(), [term()]) -> [term()].
answers(Loop, T, Items) -> loop(Loop, T, Items, keep).

%% A line of larder_bench_wide_ops names a loop, so that all of them are exported.
loop(Loop, T, Items, Mode) -> ?MODULE:Loop(T, Items, Mode).

?OP(insert, Row, ?TABLES:insert(T, Row)).
?OP(insert_new, Row, ?TABLES:insert_new(T, Row)).
?OP(lookup, K, ?TABLES:lookup(T, K)).
?OP(lookup_element, {K, At}, ?TABLES:lookup_element(T, K, At)).
?OP(lookup_element_caught, {K, At},
    try ?TABLES:lookup_element(T, K, At) catch error:badarg -> none end).
?OP(member, K, ?TABLES:member(T, K)).
?OP(delete, K, ?TABLES:delete(T, K)).
?OP(delete_object, Row, ?TABLES:delete_object(T, Row)).
?OP(take, K, ?TABLES:take(T, K)).
?OP(take_insert, {K, Row},
    begin Taken = ?TABLES:take(T, K), true = ?TABLES:insert(T, Row), Taken end).
?OP(lookup_insert, {K, Row},
    begin Found = ?TABLES:lookup(T, K), true = ?TABLES:insert(T, Row), Found end).
?OP(update_counter, {K, By}, ?TABLES:update_counter(T, K, By)).
?OP(update_counter_default, {K, By, Row}, ?TABLES:update_counter(T, K, By, Row)).
?OP(update_element, {K, By}, ?TABLES:update_element(T, K, By)).
?OP(first, _, ?TABLES:first(T)).
?OP(last, _, ?TABLES:last(T)).
?OP(next, K, ?TABLES:next(T, K)).
?OP(prev, K, ?TABLES:prev(T, K)).
?OP(select, Spec, ?TABLES:select(T, Spec)).
?OP(select_ten, Spec, case ?TABLES:select(T, Spec, 10) of {Rows, _} -> Rows; End -> End end).
?OP(select_reverse, Spec, ?TABLES:select_reverse(T, Spec)).
?OP(select_count, Spec, ?TABLES:select_count(T, Spec)).
?OP(select_delete, Spec, ?TABLES:select_delete(T, Spec)).
?OP(select_replace, Spec, ?TABLES:select_replace(T, Spec)).
?OP(match, Pattern, ?TABLES:match(T, Pattern)).
?OP(match_object, Pattern, ?TABLES:match_object(T, Pattern)).
?OP(match_delete, Pattern, ?TABLES:match_delete(T, Pattern)).
?OP(select_limited, {Spec, Limit}, parts(select, ?TABLES:select(T, Spec, Limit), [])).
?OP(match_limited, {Pattern, Limit}, parts(match, ?TABLES:match_object(T, Pattern, Limit), [])).
?OP(match_spec_compile, Spec, ?TABLES:match_spec_compile(Spec)).
?OP(tab2list, _, ?TABLES:tab2list(T)).
?OP(foldl, Fun, ?TABLES:foldl(Fun, 0, T)).
?OP(foldr, Fun, ?TABLES:foldr(Fun, 0, T)).
?OP(walk_next, _, forward(T, ?TABLES:first(T), [])).
?OP(walk_prev, _, backward(T, ?TABLES:last(T), [])).
?OP(walk_fixed, _, begin
                       true = ?TABLES:safe_fixtable(T, true),
                       Keys = forward(T, ?TABLES:first(T), []),
                       true = ?TABLES:safe_fixtable(T, false),
                       Keys
                   end).
?OP(walk_lookup, _, reading(T, ?TABLES:first(T), [])).
?OP(walk_slots, _, slots(T, 0, ?TABLES:slot(T, 0), [])).
?OP(drain_next_delete, _, next_delete(T, ?TABLES:first(T), [])).
?OP(drain_delete_next, _, delete_next(T, ?TABLES:first(T), [])).
?OP(drain_first_delete, _, first_delete(T, ?TABLES:first(T), [])).
?OP(drain_first_take, _, first_take(T, ?TABLES:first(T), [])).
?OP(drain_last_delete, _, last_delete(T, ?TABLES:last(T), [])).
?OP(churn, {K, Row}, begin true = ?TABLES:insert(T, Row), ?TABLES:delete(T, K) end).
?OP(queue, {K, Row}, begin true = ?TABLES:insert(T, Row), ?TABLES:take(T, K) end).
?OP(queue_first, Row, begin true = ?TABLES:insert(T, Row), ?TABLES:take(T, ?TABLES:first(T)) end).
?OP(fill_empty, Rows, fill(T, Rows)).
?OP(delete_all_objects, _, ?TABLES:delete_all_objects(T)).
?OP(info_item, Item, ?TABLES:info(T, Item)).
?OP(info, _, ?TABLES:info(T)).
?OP(fixtable, _, begin true = ?TABLES:safe_fixtable(T, true), ?TABLES:safe_fixtable(T, false) end).
?OP(rename, Name, ?TABLES:rename(T, Name)).
?OP(whereis, _, ?TABLES:whereis(T) =/= undefined).

%% These make tables of their own; T is not looked at.
?OP(new_delete, Options, begin
                             New = ?TABLES:new(larder_bench_wide_new, Options),
                             ?TABLES:delete(New)
                         end).
?OP(new_insert_delete, {Options, Rows}, begin
                                            New = ?TABLES:new(larder_bench_wide_new, Options),
                                            ok = fill(New, Rows),
                                            ?TABLES:delete(New)
                                        end).

%% Functions that `ets' has in later releases alone: before them nothing calls these loops.
-if(?OTP_RELEASE >= 26).
?OP(lookup_element_default, {K, At}, ?TABLES:lookup_element(T, K, At, none)).
-else.
-dialyzer({nowarn_function, lookup_element_default/3}).
lookup_element_default(_, _, _) -> error(undef).
-endif.
-if(?OTP_RELEASE >= 27).
?OP(update_element_default, {K, By, Row}, ?TABLES:update_element(T, K, By, Row)).
?OP(first_lookup, _, ?TABLES:first_lookup(T)).
?OP(next_lookup, K, ?TABLES:next_lookup(T, K)).
?OP(walk_next_lookup, _, looking(T, ?TABLES:first_lookup(T), [])).

looking(_, '$end_of_table', Found) -> Found;
looking(T, {K, Rows}, Found) -> looking(T, ?TABLES:next_lookup(T, K), [Rows | Found]).
-else.
-dialyzer({nowarn_function,
           [update_element_default/3, first_lookup/3, next_lookup/3, walk_next_lookup/3]}).
update_element_default(_, _, _) -> error(undef).
first_lookup(_, _, _) -> error(undef).
next_lookup(_, _, _) -> error(undef).
walk_next_lookup(_, _, _) -> error(undef).
-endif.

forward(_, '$end_of_table', Keys) -> Keys;
forward(T, K, Keys) -> forward(T, ?TABLES:next(T, K), [K | Keys]).

backward(_, '$end_of_table', Keys) -> Keys;
backward(T, K, Keys) -> backward(T, ?TABLES:prev(T, K), [K | Keys]).

reading(_, '$end_of_table', Found) -> Found;
reading(T, K, Found) -> Rows = ?TABLES:lookup(T, K), reading(T, ?TABLES:next(T, K), [Rows | Found]).

slots(_, _, '$end_of_table', Found) -> Found;
slots(T, N, [], Found) -> slots(T, N + 1, ?TABLES:slot(T, N + 1), Found);
slots(T, N, Rows, Found) -> slots(T, N + 1, ?TABLES:slot(T, N + 1), [Rows | Found]).

parts(_, '$end_of_table', Found) -> Found;
parts(select, {Rows, Next}, Found) -> parts(select, ?TABLES:select(Next), [Rows | Found]);
parts(match, {Rows, Next}, Found) -> parts(match, ?TABLES:match_object(Next), [Rows | Found]).

%% A hash table that isn't fixed may pass rows over while it shrinks: those that are left are begun
%% with again.
next_delete(T, '$end_of_table', Keys) ->
    case ?TABLES:first(T) of
        '$end_of_table' -> Keys;
        K -> next_delete(T, K, Keys)
    end;
next_delete(T, K, Keys) ->
    Next = ?TABLES:next(T, K),
    true = ?TABLES:delete(T, K),
    next_delete(T, Next, [K | Keys]).

delete_next(_, '$end_of_table', Keys) -> Keys;
delete_next(T, K, Keys) ->
    true = ?TABLES:delete(T, K),
    delete_next(T, ?TABLES:next(T, K), [K | Keys]).

first_delete(_, '$end_of_table', Keys) -> Keys;
first_delete(T, K, Keys) ->
    true = ?TABLES:delete(T, K),
    first_delete(T, ?TABLES:first(T), [K | Keys]).

first_take(_, '$end_of_table', Found) -> Found;
first_take(T, K, Found) ->
    Rows = ?TABLES:take(T, K),
    first_take(T, ?TABLES:first(T), [Rows | Found]).

last_delete(_, '$end_of_table', Keys) -> Keys;
last_delete(T, K, Keys) ->
    true = ?TABLES:delete(T, K),
    last_delete(T, ?TABLES:last(T), [K | Keys]).
