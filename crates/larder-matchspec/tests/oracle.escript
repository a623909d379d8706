#!/usr/bin/env escript
%% -*- erlang -*-
%% Random match specifications and objects, and what Erlang makes of them.
%%
%% Usage: oracle.escript Seed Count File
%%
%% File gets one record after the other, each a length (four bytes, high ones first) and a term in
%% the external format. The first is {Self, Node}; each other one is {Spec, Object, Result}: Result
%% is {ok, Term}, nomatch, badarg or system_limit.
-mode(compile).

main([Seed, Count, File]) ->
    rand:seed(exsss, list_to_integer(Seed)),
    {ok, Out} = file:open(File, [write, raw, binary, delayed_write]),
    put(identifiers, identifiers()),
    emit(Out, {self(), node()}),
    [emit(Out, record(Kind)) || Kind <- kinds(list_to_integer(Count))],
    ok = file:close(Out).

emit(Out, Term) ->
    Bytes = term_to_binary(Term),
    ok = file:write(Out, [<<(byte_size(Bytes)):32>>, Bytes]).

kinds(Count) -> [kind(rand:uniform(20)) || _ <- lists:seq(1, Count)].

kind(1) -> mutated;
kind(2) -> shape;
kind(N) when N =< 7 -> keyed;
kind(_) -> plain.

record(Kind) ->
    Object = object(Kind),
    Spec = spec(Kind, Object),
    case is_safe(Spec) of
        true -> record(Kind, Spec, Object);
        false -> record(Kind)
    end.

record(Kind, Spec, Object) ->
    Record = {Spec, Object, result(Spec, Object)},
    %% Where keys of a map in a body come to one value, Erlang (25.2.3) may make a map that has a
    %% key twice, or worse if there are three: so bodies have maps of at most two computed keys, and
    %% what does not survive the external format is left out.
    try binary_to_term(term_to_binary(Record)) of
        Record -> Record;
        _ -> record(Kind)
    catch
        error:badarg -> record(Kind)
    end.

%% Whether Erlang (25.2.3) gives the results of a specification. A variable that a body has first in
%% an argument which `andalso' or `orelse' skips, and then again, isn't copied out of the object:
%% the result points to what is freed, and the emulator may end with a segmentation fault. So
%% variables of the other arguments have to be in the first one, which is always evaluated. `$$' has
%% all of them.
is_safe([{_, _, Body} | Rest]) -> is_safe_body(Body) andalso is_safe(Rest);
is_safe([_ | Rest]) -> is_safe(Rest);
is_safe(_) -> true.

is_safe_body({const, _}) -> true;
is_safe_body(Tuple) when is_tuple(Tuple) ->
    case tuple_to_list(Tuple) of
        [Op, First | Others] when Op =:= 'andalso'; Op =:= 'orelse' ->
            Sure = evaluated(First),
            lists:all(fun is_safe_body/1, [First | Others])
                andalso (lists:member('$$', Sure) orelse evaluated(Others) -- Sure =:= []);
        Parts -> lists:all(fun is_safe_body/1, Parts)
    end;
is_safe_body([H | T]) -> is_safe_body(H) andalso is_safe_body(T);
is_safe_body(Map) when is_map(Map) -> is_safe_body(maps:to_list(Map));
is_safe_body(_) -> true.

%% The variables of an expression, without those that may be skipped; `$$' is one of them.
evaluated({const, _}) -> [];
evaluated(Tuple) when is_tuple(Tuple) ->
    case tuple_to_list(Tuple) of
        [Op, First | _] when Op =:= 'andalso'; Op =:= 'orelse' -> evaluated(First);
        Parts -> evaluated(Parts)
    end;
evaluated([H | T]) -> lists:usort(evaluated(H) ++ evaluated(T));
evaluated(Map) when is_map(Map) -> evaluated(maps:to_list(Map));
evaluated('$$') -> ['$$'];
evaluated(Term) -> variables(Term, []).

result(Spec, Object) ->
    try ets:match_spec_run([Object], ets:match_spec_compile(Spec)) of
        [Result] -> {ok, Result};
        [] -> nomatch
    catch
        error:Reason when Reason =:= badarg; Reason =:= system_limit -> Reason
    end.

%% Specifications

spec(shape, Object) ->
    {Head, Guards, Body} = clause(Object),
    pick([[], {Head, Guards, Body}, [{Head, Guards}], [{Head, Guards, []}],
          [{Head, Guards, Body} | x], [{Head, Guards, Body, 1}],
          [{Head, Guards ++ x, Body}], [{Head, Guards, Body ++ x}], [{Head, true, Body}],
          [{Head, Guards, '$_'}],
          [[Head, Guards, Body]], term(3), [{term(3), [], ['$_']}],
          [{pattern(term(3), 3), [], ['$_', '$$']}]]);
spec(keyed, Object) -> [keyed(Object) || _ <- lists:seq(1, pick([1, 1, 1, 2]))];
spec(mutated, Object) ->
    Spec = spec(plain, Object),
    mutate(Spec);
spec(plain, Object) ->
    [clause(Object) || _ <- lists:seq(1, pick([1, 1, 1, 2, 3]))].

clause(Object) ->
    Head = head(Object),
    Vars = variables(Head),
    Guards = [guard(Vars) || _ <- lists:seq(1, pick([0, 0, 1, 1, 2]))],
    Body = [expr(Vars, 4) || _ <- lists:seq(1, pick([1, 1, 1, 2]))],
    {Head, Guards, Body}.

%% A clause whose guards are about the key, the first element.
keyed({Key, _}) ->
    Pattern = key_pattern(Key),
    Head = pick([{Pattern, '_'}, {Pattern, '_'}, {Pattern, '$9'}, {Pattern, '$9'}, '$5', '_']),
    Vars = variables(Head),
    Bound = case is_tuple(Head) of true -> Pattern; false -> Key end,
    {Head, [key_guard(Vars, Bound, Key, 2) || _ <- lists:seq(1, rand:uniform(3))],
     [pick(['$_', '$$', true])]}.

key_pattern(Key) ->
    case rand:uniform(4) of
        1 -> pick(['$1', '$2', '_', Key]);
        2 -> pattern(Key, 3);
        _ when is_tuple(Key); is_list(Key), Key =/= [] -> inner(Key, 3);
        _ -> '$1'
    end.

key_guard(Vars, Pattern, Key, Depth) when Depth > 0 ->
    case rand:uniform(5) of
        1 -> list_to_tuple([pick(['and', 'andalso'])
                            | [key_guard(Vars, Pattern, Key, Depth - 1) || _ <- lists:seq(1, 2)]]);
        2 -> {pick(['or', 'orelse']), key_guard(Vars, Pattern, Key, 0),
              key_guard(Vars, Pattern, Key, 0)};
        _ -> key_guard(Vars, Pattern, Key, 0)
    end;
key_guard(Vars, Pattern, Key, 0) ->
    Whole = [{element, 1, '$5'} || lists:member('$5', Vars)],
    About = pick([variable(Vars), variable(Vars), {element, 1, '$_'}, quoted(Pattern) | Whole]),
    Against = pick([near(Key), near(Key), near(part(Key)), {const, term(2)}, number()]),
    case rand:uniform(2) of
        1 -> {pick(comparisons()), About, Against};
        2 -> {pick(comparisons()), Against, About}
    end.

%% A pattern as an expression that builds the same.
quoted(Tuple) when is_tuple(Tuple) -> {list_to_tuple([quoted(E) || E <- tuple_to_list(Tuple)])};
quoted([H | T]) -> [quoted(H) | quoted(T)];
quoted(Atom) when is_atom(Atom) -> Atom;
quoted(Term) -> {const, Term}.

part(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 -> pick(tuple_to_list(Tuple));
part([H | T]) -> pick([H, H, T]);
part(Term) -> Term.

%% Something not far from a term.
near(N) when is_integer(N) -> pick([N, N - 1, N + 1, float_of(N), {'+', N, 1}]);
near(F) when is_float(F) -> pick([F, F + 1, -F]);
near(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 ->
    N = rand:uniform(tuple_size(Tuple)),
    {const, setelement(N, Tuple, pick([scalar(), element(N, Tuple), number()]))};
near([H | T]) -> {const, pick([[H | T], [scalar() | T], [H], [H, scalar() | T]])};
near(Term) -> {const, pick([Term, scalar()])}.

float_of(N) when abs(N) < 1 bsl 60 -> float(N);
float_of(N) -> N.

head(Object) ->
    case rand:uniform(16) of
        1 -> '_';
        2 -> pick(['$1', '$0', '$7']);
        3 -> list_to_tuple([pattern(term(2), 3) || _ <- lists:seq(1, rand:uniform(3))]);
        _ -> list_to_tuple([pattern(E, 4) || E <- tuple_to_list(Object)])
    end.

%% A pattern that may well match the term.
pattern(_, 0) -> '_';
pattern(Term, Depth) ->
    case rand:uniform(10) of
        N when N =< 2 -> '_';
        N when N =< 5 -> variable();
        6 -> Term;
        7 -> term(2);
        _ -> inner(Term, Depth - 1)
    end.

inner(Tuple, Depth) when is_tuple(Tuple) ->
    list_to_tuple([pattern(E, Depth) || E <- tuple_to_list(Tuple)]);
inner([H | T], Depth) ->
    case rand:uniform(4) of
        1 -> [pattern(H, Depth) | variable()];
        2 -> [pattern(H, Depth) | '_'];
        _ -> [pattern(H, Depth) | rest(T, Depth)]
    end;
inner(Map, Depth) when is_map(Map) ->
    maps:map(fun(_, V) -> pattern(V, Depth) end,
             maps:filter(fun(_, _) -> rand:uniform(3) > 1 end, Map));
inner(Term, _) -> Term.

rest([], _) -> [];
rest(T, Depth) -> inner(T, Depth).

%% No large number: Erlang renumbers sparse variables all over the clause, atoms in constants and in
%% keys of maps included.
variable() -> pick(['$1', '$1', '$2', '$2', '$3', '$4', '$0', '$9', '$10']).

variables(Head) -> lists:usort(variables(Head, [])).

variables(Atom, Acc) when is_atom(Atom) ->
    case atom_to_list(Atom) of
        [$$, D | Ds] when D >= $1, D =< $9; D =:= $0, Ds =:= [] ->
            case lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Ds) of
                true -> [Atom | Acc];
                false -> Acc
            end;
        _ -> Acc
    end;
variables([H | T], Acc) -> variables(T, variables(H, Acc));
variables(Tuple, Acc) when is_tuple(Tuple) ->
    lists:foldl(fun variables/2, Acc, tuple_to_list(Tuple));
variables(Map, Acc) when is_map(Map) -> lists:foldl(fun variables/2, Acc, maps:values(Map));
variables(_, Acc) -> Acc.

guard(Vars) ->
    case rand:uniform(8) of
        1 -> expr(Vars, 4);
        2 -> {pick(['and', 'or', 'andalso', 'orelse']), guard(Vars), guard(Vars)};
        3 -> {'not', guard(Vars)};
        4 -> {pick(tests()), simple(Vars)};
        5 -> true;
        _ -> {pick(comparisons()), simple(Vars), simple(Vars)}
    end.

simple(Vars) -> pick([expr(Vars, 1), expr(Vars, 2), variable(Vars), variable(Vars)]).

variable([]) -> '$_';
variable(Vars) -> pick(Vars).

tests() ->
    [is_atom, is_float, is_integer, is_list, is_number, is_pid, is_port, is_reference, is_tuple,
     is_map, is_binary, is_function].

comparisons() -> ['>', '>=', '<', '=<', '==', '=:=', '/=', '=/='].

unary() ->
    tests() ++ [abs, hd, tl, length, size, bit_size, byte_size, map_size, round, trunc, float, node,
                '+', '-', 'not', 'bnot'].

binary() ->
    comparisons()
        ++ [is_map_key, map_get, element, element, element, binary_part, '+', '-', '*', '/', 'div',
            'rem', 'band', 'bor', 'bxor', 'bsl',
                      'bsr', 'xor'].

%% Expressions, now and then wrong ones.
expr(Vars, 0) -> leaf(Vars);
expr(Vars, Depth) ->
    D = Depth - 1,
    case rand:uniform(44) of
        N when N =< 10 -> leaf(Vars);
        N when N =< 16 -> {list_to_tuple(exprs(Vars, D))};
        N when N =< 20 -> exprs(Vars, D);
        21 -> [expr(Vars, D) | expr(Vars, D)];
        22 -> [expr(Vars, D), expr(Vars, D) | leaf(Vars)];
        23 -> maps:from_list([{expr(Vars, D), expr(Vars, D)}
                              || _ <- lists:seq(1, rand:uniform(3) - 1)]);
        24 -> maps:from_list([{scalar(), expr(Vars, D)} || _ <- lists:seq(1, rand:uniform(4) - 1)]);
        N when N =< 28 -> {pick(unary()), expr(Vars, D)};
        N when N =< 34 -> {pick(binary()), operand(Vars, D), operand(Vars, D)};
        35 -> {element, rand:uniform(4), pick(['$_', expr(Vars, D)])};
        36 -> {pick([is_record, binary_part]), expr(Vars, D), pick([k, 0, 1, expr(Vars, D)]),
               pick([1, 2, -1, expr(Vars, D)])};
        37 -> list_to_tuple([pick(['and', 'or', 'andalso', 'orelse'])
                             | [boolean(Vars, D) || _ <- lists:seq(1, rand:uniform(4))]]);
        38 -> {const, term(3)};
        39 -> pick([{self}, {node}]);
        40 -> {pick([map_get, is_map_key]), scalar(), expr(Vars, D)};
        41 -> {pick([hd, tl, length]), pick(['$$', expr(Vars, D)])};
        42 -> {pick(['+', '-', '*', 'div', 'rem', 'band', 'bsl', 'bsr']), number(), number()};
        43 -> {pick([hd, tl]), {tl, pick(['$$', exprs(Vars, D)])}};
        44 ->
            case rand:uniform(12) of
                1 -> pick([{}, {{{}}}, '$99', {foo, 1}, {'$1', 1}, {1, 2}, {const}, {const, 1, 2},
                           {'and'}, {'orelse'}, {return_trace}, {is_record, a, b},
                           {'$_'}, {display, 1}, {self, 1}, {'+', 1, 2, 3}]);
                _ -> leaf(Vars)
            end
    end.

exprs(Vars, D) -> [expr(Vars, D) || _ <- lists:seq(1, rand:uniform(4) - 1)].

operand(Vars, D) -> pick([number(), expr(Vars, D), leaf(Vars)]).

boolean(Vars, D) -> pick([true, false, {is_atom, leaf(Vars)}, expr(Vars, D)]).

leaf(Vars) ->
    case rand:uniform(12) of
        1 -> '$_';
        2 -> '$$';
        N when N =< 4 -> number();
        N when N =< 6 -> scalar();
        7 -> pick([identifier(), -0.0]);
        _ -> variable(Vars)
    end.

%% Changes one place of a specification.
mutate(Term) ->
    case rand:uniform(3) of
        1 -> pick(['$_', '$$', '$1', '$5', '_', 1, [], {}, {{}}, true, #{}, #{'$1' => 1},
                   #{{'$1'} => 1}, {const, a}]);
        _ -> deeper(Term)
    end.

deeper(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 ->
    N = rand:uniform(tuple_size(Tuple)),
    setelement(N, Tuple, mutate(element(N, Tuple)));
deeper([H | T]) ->
    case rand:uniform(3) of
        1 -> [H | mutate(T)];
        _ -> [mutate(H) | T]
    end;
deeper(_) -> pick(['$3', x]).

%% Terms

object(keyed) -> {key(), scalar()};
object(_) ->
    list_to_tuple([pick([term(4), term(4), term(4), -0.0])
                   || _ <- lists:seq(1, pick([1, 2, 2, 3, 3, 4]))]).

term(0) -> scalar();
term(Depth) ->
    D = Depth - 1,
    case rand:uniform(14) of
        N when N =< 5 -> scalar();
        N when N =< 7 -> list_to_tuple(terms(D));
        N when N =< 9 -> terms(D);
        10 -> [term(D) | scalar()];
        11 -> maps:from_list([{scalar(), term(D)} || _ <- lists:seq(1, rand:uniform(4) - 1)]);
        12 -> maps:from_list([{term(D), term(D)}
                              || _ <- lists:seq(1, pick([1, 2, 1, 2, 1, 2, 40]))]);
        13 -> identifier();
        14 -> number()
    end.

terms(D) -> [term(D) || _ <- lists:seq(1, rand:uniform(4) - 1)].

key() ->
    case rand:uniform(6) of
        1 -> scalar();
        2 -> number();
        3 -> term(3);
        4 -> [small_key() || _ <- lists:seq(1, rand:uniform(3))];
        5 -> [small_key() | pick([small_key(), [], identifier()])];
        6 -> list_to_tuple([small_key() || _ <- lists:seq(1, rand:uniform(3))])
    end.

small_key() ->
    case rand:uniform(8) of
        1 -> {small_key(), small_key()};
        2 -> identifier();
        3 -> scalar();
        _ -> pick([0, 1, 2, 3, a, b, 1.0, 2.5, <<"abc">>, []])
    end.

scalar() ->
    case rand:uniform(10) of
        N when N =< 4 -> number();
        N when N =< 7 ->
            pick([a, b, k, true, false, '', undefined, 'EXIT', 'ö', '$01', '$', 'a b', x, y]);
        8 -> pick([[], {}, <<>>, #{}]);
        9 -> pick([<<"abc">>, <<1:3>>, <<"abc", 1:1>>, binary:copy(<<"x">>, 64),
                   binary:copy(<<"x">>, 65), binary:copy(<<"y">>, 300), <<0>>, <<0, 0>>]);
        10 -> pick(['_', '$1', '$2', '$_', '$$', true, false])
    end.

number() ->
    case rand:uniform(6) of
        1 -> pick([0, 1, 2, -1, 127, 128, -128, 255, 256, 1 bsl 31, 1 bsl 53 + 1, 1 bsl 59,
                   1 bsl 63, -(1 bsl 63), 1 bsl 63 - 1, 1 bsl 64, 1 bsl 70]);
        2 -> pick([0.0, 1.0, 2.0, -1.0, 1.5, 2.5, -2.5, 9007199254740992.0, 1.0e300, 1.0e-300,
                   9.223372036854775807e18]);
        _ -> rand:uniform(5) - 1
    end.

identifier() -> pick(get(identifiers)).

identifiers() ->
    Far = fun(Tag, Rest) -> binary_to_term(<<131, Tag, 119, 7, "far@box", Rest/binary>>) end,
    One = 1,
    [self(), list_to_pid("<0.1.0>"), make_ref(), hd(erlang:ports()), fun lists:map/2,
     fun erlang:node/0, fun() -> One end, fun(X) -> X + One end,
     Far(88, <<7:32, 0:32, 3:32>>), Far(89, <<7:32, 3:32>>),
     binary_to_term(<<131, 90, 0, 3, 119, 7, "far@box", 3:32, 1:32, 2:32, 3:32>>)].

pick(List) -> lists:nth(rand:uniform(length(List)), List).
