%% @doc Random match specifications: for the objects of diff_gen, mostly well
%% formed, with guards that meet the key, and every function that a
%% specification may call.
-module(diff_ms_gen).
-include_lib("proper/include/proper.hrl").

-export([spec/0, wrong_spec/0, boolean_spec/0, replace_clause/0, key_clause/0,
         expression/2, body_functions/0]).

-import(diff_gen, [key/0, value/0, pattern/0]).

spec() ->
    ?LET(N, frequency([{6, 1}, {2, 2}, {1, 3}]),
         vector(N, frequency([{6, ?LAZY(clause())}, {1, ?LAZY(key_clause())}]))).

%% @doc Specifications for select_count and select_delete.
boolean_spec() ->
    ?LET({Head, Body}, {frequency([{3, pattern()}, {2, key_head()}]),
                        frequency([{5, true}, {1, false}, {1, {is_integer, var_of(any)}},
                                   {1, '$_'}])},
         ?LET(Guards, guards(variables(Head)), [{Head, Guards, [bound(Body, Head)]}])).

bound({is_integer, _}, Head) ->
    case variables(Head) of
        [V | _] -> {is_integer, V};
        [] -> true
    end;
bound(Body, _) -> Body.

var_of(any) -> '$1'.

clause() ->
    ?LET(Head, frequency([{4, pattern()}, {2, key_head()}]),
         ?LET({Guards, Body}, {guards(variables(Head)), body(variables(Head))},
              {Head, Guards, Body})).

%% @doc A clause whose guards compare the key: what may narrow a range.
key_clause() ->
    ?LET(Head, key_head(),
         ?LET({Guards, Body},
              {?LET(Vars, key_variables(Head), list_up_to(3, key_guard(Vars))),
               elements(['$_', '$$'])},
              {Head, Guards, [Body]})).

key_head() ->
    oneof([{'$1', '_'}, {'$1', '$2'}, {'$1', '$2', '_'}, {'$1', '_', '$2'}, {{'$1', '$2'}, '_'},
           {{a, '$1'}, '$2'}, {{'$1', '$2'}, '_', '$3'}, {'$1'}, {exactly([a | '$1']), '_'},
           {{1, '$1'}, '_'}, {{'$1', 1}, '$2'}, {'_', '$1'}, '$1',
           {key(), '$1'}, {key(), '$1', '$2'}, {'$1', '$1'}]).

key_variables(Head) ->
    case variables(Head) of
        [] -> ['$1'];
        Vars -> Vars
    end.

key_guard(Vars) ->
    Term = frequency([{6, constant()}, {1, elements(Vars)}]),
    Compare = frequency([{4, {comparison(), elements(Vars), Term}},
                         {2, {comparison(), Term, elements(Vars)}},
                         {1, {comparison(), {element, integer(1, 3), '$_'}, Term}},
                         {1, {comparison(), {element, integer(1, 3), elements(Vars)}, Term}}]),
    frequency([{8, Compare},
               {1, {'andalso', Compare, Compare}}, {1, {'and', Compare, Compare}},
               {1, {'orelse', Compare, Compare}}, {1, {'or', Compare, Compare}},
               {1, {'not', Compare}}, {1, {is_integer, elements(Vars)}}]).

comparison() -> elements(['<', '=<', '>', '>=', '==', '=:=', '/=', '=/=']).

constant() ->
    ?LET(K, frequency([{4, key()}, {3, integer(-2, 3)}, {1, float(-2.0, 3.0)}]), quoted(K)).

%% A term as a specification must write it.
quoted({'$k', N}) -> {'$q', N};
quoted(T) when is_tuple(T) -> {const, T};
quoted(T) when is_list(T); is_map(T) -> {const, T};
quoted('_') -> {const, '_'};
quoted(T) -> T.

%% @doc Replacements, most of which keep the key by one of the proofs.
replace_clause() ->
    ?LET(Head, frequency([{3, key_head()}, {2, pattern()}]),
         ?LET({Guards, Body},
              {guards(variables(Head)), replacement(Head, variables(Head))},
              {Head, Guards, [Body]})).

replacement(Head, Vars) when is_tuple(Head), tuple_size(Head) >= 1 ->
    Key = element(1, Head),
    Second = case Head of {_, S} -> S; {_, S, _} -> S; _ -> '_' end,
    Kept = frequency([{4, as_body(Key)}, {2, {element, 1, '$_'}}, {2, {const, as_plain(Key)}},
                      {1, {'+', '$1', 0}}, {1, as_plain(Key)}, {1, {element, 2, '$_'}}]),
    oneof(['$_', {{Kept, elements([a, 1, {const, {x}}])}}, {{Kept, as_body(Second), 7}},
           {{Kept, as_body(Second)}}, {{Kept, expression(Vars, 1), new}}, {{Kept}},
           {{Kept, '$$'}}, {const, {1, 2}}, {setelement, 2, '$_', x}, 1]);
replacement(_, Vars) ->
    oneof(['$_', '$_', {{{element, 1, '$_'}, x}}, expression(Vars, 1)]).

as_body('_') -> 1;
as_body({'$k', _} = T) -> {const, T};
as_body(T) when is_tuple(T) -> {list_to_tuple([as_body(X) || X <- tuple_to_list(T)])};
as_body([H | T]) -> [as_body(H) | as_body(T)];
as_body(T) -> T.

as_plain('_') -> 1;
as_plain(T) -> T.

guards(Vars) ->
    frequency([{3, []}, {4, ?LET(G, guard(Vars), [G])},
               {1, ?LET({A, B}, {guard(Vars), guard(Vars)}, [A, B])}]).

guard([]) -> expression([], 2);
guard(Vars) ->
    frequency([{3, ?LAZY(key_guard(Vars))}, {2, ?LAZY(expression(Vars, 2))},
               {1, {circuit(), ?LAZY(expression(Vars, 1)), ?LAZY(expression(Vars, 1))}}]).

body(Vars) ->
    frequency([{6, ?LET(B, result(Vars), [B])},
               {1, ?LET({A, B}, {result(Vars), result(Vars)}, [A, B])}]).

result(Vars) ->
    frequency([{3, elements(['$_', '$$'])}, {4, ?LAZY(expression(Vars, 3))}]).

%% @doc An expression over these variables, at most so deep.
%% The keys of maps are constants: OTP 25.2.3 builds broken maps of computed
%% keys when it selects from a table, and at times aborts.
expression(Vars, 0) ->
    frequency([{6, case Vars of [] -> constant(); _ -> elements(Vars) end}, {3, constant()},
               {1, elements(['$_', '$$', true, false])}, {2, integer(-3, 3)}]);
expression(Vars, Depth) ->
    Less = ?LAZY(expression(Vars, Depth - 1)),
    frequency([{3, expression(Vars, 0)},
               {3, ?LET({F, A}, elements(body_functions()), call(F, vector(A, Less)))},
               {2, {arithmetic(), Less, Less}},
               {2, {comparison(), Less, Less}},
               {1, {elements(['and', 'or', 'xor']), Less, Less}},
               {1, call(elements(['and', 'or']), [Less, Less, Less])},
               {2, ?LAZY(short_circuit(Vars))},
               {1, {{Less, Less}}}, {1, {{}}}, {1, {{Less}}}, {1, [Less, Less]},
               {1, ?LET({A, B}, {Less, Less}, exactly([A | B]))}, {1, {const, value()}},
               {1, ?LET({K, V}, {elements([a, 1, 1.0, 'EXIT']), plain()}, #{K => V})},
               {1, ?LET({V, W}, {plain(), plain()}, #{a => V, b => W})}]).

%% The values of maps, too. A map in a body that has a variable or `$_' in it is not copied out of
%% the table by OTP before 25.3.2.7: the collector then writes into the table's own terms, and the
%% emulator aborts or gives nonsense some time later (erlang/otp, pull request 7712).
plain() -> elements([0, 1.5, b, <<"b">>]).

circuit() -> elements(['andalso', 'orelse']).

%% The first argument is always evaluated, the others mostly aren't. A variable that occurs first in
%% an argument that is skipped is a trap of OTP 25.2.3: where a body has it again, `ets' takes it
%% for copied, and its result points into the table. What comes of that is nonsense, or the emulator
%% aborts for want of absurd amounts of memory. So variables of the others are also in the first.
short_circuit(Vars) ->
    ?LET(First, truth(Vars, ['$_', '$$']),
         begin
             Other = truth([V || V <- Vars, lists:member(V, atoms(First))], []),
             call(circuit(), ?LET(N, integer(1, 2), [First | vector(N, Other)]))
         end).

%% What is true or false. In a body, `andalso' and `orelse' of anything else leave the stack of OTP
%% 25.2.3 out of step.
truth(Vars, Whole) ->
    Value = frequency([{6, elements(Vars)} || Vars =/= []]
                      ++ [{1, elements(Whole)} || Whole =/= []]
                      ++ [{3, constant()}, {2, integer(-3, 3)}]),
    frequency([{3, {comparison(), Value, Value}}, {1, boolean()}, {1, {is_integer, Value}}]).

call(F, Args) -> ?LET({Name, L}, {F, Args}, list_to_tuple([Name | L])).

arithmetic() ->
    elements(['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', 'bsl', 'bsr']).

%% @doc Name and number of arguments of what this release lets a specification
%% call.
body_functions() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            Known = [FA || FA <- all_functions(), is_known(FA)],
            persistent_term:put(?MODULE, Known),
            Known;
        Known -> Known
    end.

is_known({Name, Arity}) ->
    Call = list_to_tuple([Name | lists:duplicate(Arity, 1)]),
    element(1, erlang:match_spec_test({1}, [{'_', [], [Call]}], table)) =:= ok.

all_functions() ->
    [{is_atom, 1}, {is_float, 1}, {is_integer, 1}, {is_list, 1}, {is_number, 1}, {is_pid, 1},
     {is_port, 1}, {is_reference, 1}, {is_tuple, 1}, {is_map, 1}, {is_binary, 1},
     {is_bitstring, 1}, {is_boolean, 1}, {is_function, 1}, {is_function, 2},
     {is_map_key, 2}, {map_get, 2}, {abs, 1}, {element, 2}, {hd, 1}, {tl, 1}, {length, 1},
     {size, 1}, {bit_size, 1}, {byte_size, 1}, {tuple_size, 1}, {map_size, 1}, {round, 1},
     {trunc, 1}, {float, 1}, {binary_part, 2}, {binary_part, 3}, {node, 0}, {node, 1},
     {self, 0}, {'not', 1}, {'bnot', 1}, {'-', 1}, {'+', 1}, {is_record, 3}, {is_record, 2}].

%% @doc Things that no specification is.
wrong_spec() ->
    elements([[], a, [a], [{a}], [{'_', [], []}], [{'_', [], ['$1']}], [{{'$1'}, [], ['$2']}],
              [{{'$1'}, [nonsense], ['$1']}], [{{'$1'}, [{nonsense, 1}], ['$1']}],
              [{{'$1'}, [], [{hd}]}], [{{'$1'}, [{'+', 1}], [{'+', 1, 2, 3}]}],
              [{{'$1'}, [], ['$1'] ++ b}], [{{'$1'}, [true | x], ['$1']}],
              [{{'$1'}, [], ['$1']} | x], [{1, [], [true]}], [{'$1x', [], [true]}],
              [{{'_'}, [], [{message, a}]}], [{{'_'}, [], [{return_trace}]}],
              [{{'_'}, [], [{self, 1}]}], [{{'$1'}, [], [{{a}, b}]}], [{{'$1'}, [], [{}]}],
              [{#{'$1' => a}, [], ['$_']}], [{{#{'$1' => a}}, [], ['$_']}],
              [{{'$1'}, [], [{const}]}], [{{'$1'}, [], [{const, 1, 2}]}],
              [{{'$1'}, [{'andalso', true}], [{'orelse'}]}], [{{'$1'}, [{'and'}], [{'or', true}]}],
              [{{'$1000000001'}, [], ['$1000000001']}], [{{'$1000000000'}, [], ['$1000000000']}],
              [{{'$1'}, [], [{is_record, '$1', 2}]}], [{{'$1'}, [{is_record, '$1', a, b}], [1]}]]).

%% The variables that a head binds.
variables(Head) ->
    lists:usort([V || V <- atoms(Head), is_variable(atom_to_list(V))]).

is_variable("$0") -> true;
is_variable([$$, D | Rest]) when D >= $1, D =< $9 ->
    length(Rest) < 9 andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Rest);
is_variable(_) -> false.

atoms(Atom) when is_atom(Atom) -> [Atom];
atoms(Tuple) when is_tuple(Tuple) -> atoms(tuple_to_list(Tuple));
atoms([H | T]) -> atoms(H) ++ atoms(T);
atoms(Map) when is_map(Map) -> atoms(maps:values(Map));
atoms(_) -> [].

list_up_to(N, Type) ->
    ?LET(Len, integer(1, N), vector(Len, Type)).
