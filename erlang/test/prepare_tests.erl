%% prepare: a specification with parameters does, with their values, what ets does with the values
%% written out; in every function that takes a specification; and errors are described.
-module(prepare_tests).
-include_lib("proper/include/proper.hrl").

-export([beside_ets_test_/0, all_functions_test_/0, constants_test_/0, plans_test_/0,
         shared_test_/0, views_test_/0, words_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

one(Title, Fun) ->
    [larder_test:tc(Title, 240, larder, Fun)].

%% Beside ets -------------------------------------------------------------------------------------

%% Random specifications, some of whose constants become parameters.
beside_ets_test_() ->
    [larder_test:tc(lists:concat(["parameters are the constants of ets, ", Type]), 240, larder,
                    fun() ->
        Counts = counters:new(1, []),
        larder_test:check_property(lists:concat(["prepare ", Type]), larder_test:scaled(400),
                                   prop(Type, Counts)),
        true = counters:get(Counts, 1) > 100
     end) || Type <- ?TYPES].

prop(Type, Counts) ->
    ?FORALL({Objects, Spec, Seed},
            {list(diff_gen:object()), diff_ms_gen:spec(), integer(1, 1 bsl 30)},
            same(Type, diff_gen:made(Objects), diff_gen:made(Spec), Seed, Counts)).

same(Type, Objects, Spec, Seed, Counts) ->
    _ = rand:seed(exsss, {Seed, 0, 1}),
    {Parametric, Values} = parameters(Spec),
    [T, Oracle] = [M:new(t, [public, Type]) || M <- [larder, ets]],
    [true = M:insert(X, Object) || Object <- Objects, {M, X} <- [{larder, T}, {ets, Oracle}]],
    counters:add(Counts, 1, length(Values)),
    Expected = [as(Type, answer(fun() -> ets:select(Oracle, Spec) end)),
                answer(fun() -> ets:select_count(Oracle, Spec) end)],
    Given = answer(fun() -> {larder:prepare(Parametric), Values} end),
    Got = case Given of
              badarg -> [badarg, badarg];
              _ -> [as(Type, larder:select(T, Given)), larder:select_count(T, Given)]
          end,
    [true = M:delete(X) || {M, X} <- [{larder, T}, {ets, Oracle}]],
    ?WHENFAIL(io:format("~p~n~p~n~p~n", [Parametric, Values, [Expected, Got]]), Expected =:= Got).

answer(Fun) ->
    try Fun() catch error:badarg -> badarg end.

as(ordered_set, Results) -> Results;
as(_, badarg) -> badarg;
as(_, Results) -> lists:sort([{erlang:phash2(Result), Result} || Result <- Results]).

%% The specification with parameters for some of its constants, and their values.
parameters(Spec) ->
    put(values, []),
    New = [{head(Head), [expression(G) || G <- Guards], [expression(B) || B <- Body]}
           || {Head, Guards, Body} <- Spec],
    {New, lists:reverse(erase(values))}.

in_place_of(Value) ->
    Values = get(values),
    %% A value that is there already may have one parameter or two.
    case [N || {N, V} <- lists:zip(lists:seq(length(Values), 1, -1), Values), V =:= Value] of
        [N | _] -> {bind, N};
        [] ->
            put(values, [Value | Values]),
            {bind, length(Values) + 1}
    end.

head(Head) when is_tuple(Head), tuple_size(Head) > 0 ->
    [Key | Rest] = tuple_to_list(Head),
    %% A map in the key is a pattern if it has a parameter, and was a key without.
    list_to_tuple([case has_map(Key) of true -> Key; false -> pattern(Key) end
                   | [pattern(Element) || Element <- Rest]]);
head(Head) ->
    Head.

pattern(Term) ->
    case is_ground(Term) andalso rand:uniform(2) =:= 1 of
        true -> in_place_of(Term);
        false -> parts(fun pattern/1, Term)
    end.

parts(Fun, [Head | Tail]) -> [Fun(Head) | case Tail of
                                              [] -> [];
                                              [_ | _] -> parts(Fun, Tail);
                                              _ -> Fun(Tail)
                                          end];
parts(Fun, Tuple) when is_tuple(Tuple) -> list_to_tuple([Fun(E) || E <- tuple_to_list(Tuple)]);
parts(Fun, Map) when is_map(Map) -> maps:map(fun(_, Value) -> Fun(Value) end, Map);
parts(_, Term) -> Term.

expression({const, Value} = Constant) ->
    case rand:uniform(2) of
        1 -> in_place_of(Value);
        2 -> Constant
    end;
expression({Inner}) when is_tuple(Inner) ->
    {parts(fun expression/1, Inner)};
expression(Call) when is_tuple(Call), tuple_size(Call) > 0 ->
    [Name | Args] = tuple_to_list(Call),
    list_to_tuple([Name | [expression(Arg) || Arg <- Args]]);
expression(Term) when is_list(Term), Term =/= []; is_map(Term) ->
    parts(fun expression/1, Term);
expression(Term) ->
    case Term =/= {} andalso is_ground(Term) andalso rand:uniform(2) =:= 1 of
        true when Term =:= '$_'; Term =:= '$$' -> Term;
        true -> in_place_of(Term);
        false -> Term
    end.

is_ground(Atom) when is_atom(Atom) ->
    re:run(atom_to_binary(Atom), "^(_|\\$[0-9]+)$") =:= nomatch;
is_ground([Head | Tail]) -> is_ground(Head) andalso is_ground(Tail);
is_ground(Tuple) when is_tuple(Tuple) -> is_ground(tuple_to_list(Tuple));
is_ground(Map) when is_map(Map) -> false;
is_ground(_) -> true.

has_map([Head | Tail]) -> has_map(Head) orelse has_map(Tail);
has_map(Tuple) when is_tuple(Tuple) -> has_map(tuple_to_list(Tuple));
has_map(Term) -> is_map(Term).

%% Functions --------------------------------------------------------------------------------------

%% Every function that takes a specification takes one with values.
all_functions_test_() ->
    one("every function takes a specification with values", fun() ->
        Rows = [{{user, N}, N rem 3, N} || N <- lists:seq(1, 30)],
        T = larder:new(t, [ordered_set, {index, [{group, 2, []}]}]),
        true = larder:insert(T, Rows),
        InGroup = larder:prepare([{{'_', {bind, 1}, '$1'}, [{'<', '$1', {bind, 2}}], ['$1']}]),
        Spec = {InGroup, [0, 10]},
        [3, 6, 9] = larder:select(T, Spec),
        [9, 6, 3] = larder:select_reverse(T, Spec),
        {[3, 6], More} = larder:select(T, Spec, 2),
        {[9], '$end_of_table'} = chunk(larder:select(More)),
        {[9, 6], Less} = larder:select_reverse(T, Spec, 2),
        {[3], '$end_of_table'} = chunk(larder:select_reverse(Less)),
        Outside = setelement(5, More, make_ref()),
        {[9], _} = larder:select(larder:repair_continuation(Outside, Spec)),
        [3, 6, 9] = larder:index_select(T, group, Spec),
        {[3, 6], Next} = larder:index_select(T, group, Spec, 2),
        {[9], _} = larder:index_select(Next),
        #{plan := {index, group}, rows := 10} = larder:explain(T, Spec),
        [3] = larder:match_spec_run(lists:sublist(Rows, 5), larder:match_spec_compile(Spec)),
        {ok, 3} = larder:test_ms({{user, 3}, 0, 3}, Spec),
        {ok, false} = larder:test_ms({{user, 3}, 1, 3}, Spec),
        Count = larder:prepare([{{{user, {bind, 1}}, '_', '_'}, [], [true]}]),
        1 = larder:select_count(T, {Count, [7]}),
        0 = larder:select_count(T, {Count, [70]}),
        Ref = larder:subscribe(T, {Count, [7]}, #{}),
        1 = larder:select_delete(T, {Count, [7]}),
        0 = larder:select_delete(T, {Count, [7]}),
        receive {larder, Ref, _, {delete, {{user, 7}, 1, 7}}} -> ok
        after 5000 -> error(not_told)
        end,
        Take = larder:prepare([{{{user, '$1'}, '_', '_'}, [{'=<', '$1', {bind, 1}}], ['$1']}]),
        [1, 2] = larder:select_take(T, {Take, [2]}),
        [] = larder:select_take(T, {Take, [2]}),
        Replace = larder:prepare([{{{user, {bind, 1}}, '$1', '$2'}, [],
                                   [{{{{user, {bind, 1}}}, '$1', {bind, 2}}}]}]),
        1 = larder:select_replace(T, {Replace, [8, {new, '$1'}]}),
        [{{user, 8}, 2, {new, '$1'}}] = larder:lookup(T, {user, 8}),
        true = larder:delete(T)
    end).

chunk({Results, '$end_of_table'}) -> {Results, '$end_of_table'};
chunk({Results, More}) -> {Results, larder:select(More)}.

%% Values -----------------------------------------------------------------------------------------

%% Terms that would be something else in a specification are themselves as values.
constants_test_() ->
    one("values are constants", fun() ->
        Values = ['_', '$1', '$_', '$$', true, {const, a}, {{a}}, {'+', 1, 2}, ['$1' | '_'],
                  #{'$1' => '_'}, {bind, 1}, 1, 1.0, <<"b">>, binary:copy(<<"b">>, 200), self(),
                  make_ref(), fun lists:append/1, maps:from_list([{N, N} || N <- lists:seq(1, 40)])],
        Numbered = lists:zip(lists:seq(1, length(Values)), Values),
        Head = larder:prepare([{{{bind, 1}, '$1'}, [], [{{'$1', {bind, 1}}}]}]),
        Part = larder:prepare([{{'$1', {x, [{bind, 1} | '_']}}, [], ['$1']}]),
        Rest = larder:prepare([{{'$1', {x, ['_' | {bind, 1}]}}, [], ['$1']}]),
        Pair = larder:prepare([{{'$1', '$2'}, [{'=:=', '$2', {{x, {bind, 1}}}}], ['$1']}]),
        [begin
             T = larder:new(t, [Type]),
             true = larder:insert(T, [{V, N} || {N, V} <- Numbered]),
             Own = fun(V) -> [{N, V} || {N, W} <- Numbered, W =:= V] end,
             [true = Own(V) =:= larder:select(T, {Head, [V]}) || V <- Values, V =/= 1, V =/= 1.0],
             true = larder:delete_all_objects(T),
             true = larder:insert(T, [{N, {x, [V | V]}} || {N, V} <- Numbered]),
             [[N] = larder:select(T, {Part, [V]}) || {N, V} <- Numbered],
             [[N] = larder:select(T, {Rest, [V]}) || {N, V} <- Numbered],
             true = larder:insert(T, [{N, {x, V}} || {N, V} <- Numbered]),
             [true = lists:member(N, larder:select(T, {Pair, [V]})) || {N, V} <- Numbered],
             true = larder:delete(T)
         end || Type <- ?TYPES]
    end).

%% Plans are chosen for the values.
plans_test_() ->
    one("plans are chosen for the values", fun() ->
        T = larder:new(t, [ordered_set, {index, [{v, 2, []}]}]),
        true = larder:insert(T, [{{N div 10, N}, N} || N <- lists:seq(1, 1000)]),
        Plan = fun(Spec, Values) -> maps:get(plan, larder:explain(T, {larder:prepare(Spec), Values})) end,
        key = Plan([{{{3, {bind, 1}}, '_'}, [], [true]}], [35]),
        key = Plan([{{{bind, 1}, '_'}, [], [true]}], [{3, 35}]),
        range = Plan([{{{{bind, 1}, '_'}, '_'}, [], [true]}], [3]),
        range = Plan([{{'$1', '_'}, [{'<', '$1', {bind, 1}}], [true]}], [{1}]),
        {index, v} = Plan([{{'_', {bind, 1}}, [], [true]}], [3]),
        {index, v} = Plan([{{'_', '$1'}, [{'>', '$1', {bind, 1}}], [true]}], [990]),
        scan = Plan([{{'_', '$1'}, [{'=/=', '$1', {bind, 1}}], [true]}], [990]),
        nothing = Plan([{{'$1', '_'}, [{'<', '$1', {bind, 1}}, {'>', '$1', {bind, 2}}], [true]}],
                       [{1}, {2}]),
        true = larder:delete(T)
    end).

%% One for tables of different key positions, and for many processes.
shared_test_() ->
    one("one prepared specification serves all tables and processes", fun() ->
        Prepared = larder:prepare([{{{bind, 1}, {bind, 2}}, [], ['$_']}]),
        Tables = [larder:new(t, [Type, public, {keypos, Position}])
                  || Type <- ?TYPES, Position <- [1, 2]],
        [true = larder:insert(T, [{N, -N} || N <- lists:seq(1, 100)]) || T <- Tables],
        Work = fun() ->
            [[{N, M}] = larder:select(T, {Prepared, [N, M]})
             || T <- Tables, N <- lists:seq(1, 100), M <- [-N]]
        end,
        Workers = [spawn_monitor(Work) || _ <- lists:seq(1, 4)],
        [receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end || {Pid, Ref} <- Workers],
        [#{plan := key} = larder:explain(T, {Prepared, [1, -1]}) || T <- Tables],
        %% A table that is gone is the error of any call.
        [true = larder:delete(T) || T <- Tables],
        {'EXIT', {badarg, _}} = (catch larder:select(hd(Tables), {Prepared, [1, 2]}))
    end).

%% Snapshots and transactions.
views_test_() ->
    one("snapshots and transactions take values", fun() ->
        T = larder:new(t, [public]),
        true = larder:insert(T, [{N, N} || N <- lists:seq(1, 10)]),
        P = larder:prepare([{{{bind, 1}, '$1'}, [], ['$1']}]),
        S = larder:snapshot(T),
        true = larder:insert(T, {3, new}),
        [3] = larder:select(S, {P, [3]}),
        {atomic, [new]} = larder:transaction([T], fun([V]) -> larder:select(V, {P, [3]}) end),
        true = larder:release(S),
        true = larder:delete(T)
    end).

%% Words ------------------------------------------------------------------------------------------

words_test_() ->
    one("errors are described", fun() ->
        T = larder:new(t, []),
        P = larder:prepare([{{{bind, 1}, '$1'}, [{'<', '$1', {bind, 3}}], ['$1']}]),
        larder_test:is_said([
             {prepare, [a], "{1,.*a match specification is a list"},
             {prepare, [[{{{bind, 0}}, [], ['$_']}]], "{bind, 0} is no parameter"},
             {prepare, [[{{a}, [], [a]}, {{'$1'}, [], [{bind, 300}]}]],
              "clause 2: {bind, 300} is no parameter"},
             {prepare, [[{{bind, 1}, [], ['$_']}]], "not for a whole head"},
             {prepare, [[{{'$1'}, [], [{nonsense, {bind, 1}}]}]], "no function nonsense"},
             {prepare, [[{{{bind, 1}}, [], ['$2']}]], "\\$2 is not bound"},
             {select, [T, {P, [1]}], "{2,.*{bind, 2} has no value; parameters: 3, values: 1"},
             {select, [T, {P, [1, 2, 3, 4]}], "parameters: 3, values: 4"},
             {select, [T, {P, [1, 2 | 3]}], "not a list"},
             {select, [T, {P, x}], "not a list"},
             {select, [T, {make_ref(), [1]}], "neither a list of clauses nor"},
             {select, [T, {P}], "{2,.*not a valid match specification"},
             {select_count, [T, {P, []}], "{bind, 1} has no value"},
             {select_delete, [T, {P, []}], "{bind, 1} has no value"},
             {select_take, [T, {P, []}], "{bind, 1} has no value"},
             {select_replace, [T, {P, []}], "{bind, 1} has no value"},
             {select, [T, {P, []}, 5], "{bind, 1} has no value"},
             {select, [T, {P, [1, 2, 3]}, 0], "^\\[{3,"},
             {match_spec_compile, [{P, []}], "{bind, 1} has no value"},
             {explain, [T, {P, []}], "{bind, 1} has no value"},
             {select, [nonsense, {P, [1, 2, 3]}], "^\\[{1,[^{]*}\\]$"}]),
        [] = larder:select(T, {P, [1, 2, 3]}),
        false = larder:is_compiled_ms(P),
        {'EXIT', {badarg, _}} = (catch larder:match_spec_run([], P)),
        {error, [_ | _]} = larder:test_ms({a}, {P, [1]}),
        true = larder:delete(T)
    end).
