%% Patterns and match specifications. Part of module larder: see larder.erl.

%% ---- by pattern ----

%% @doc Returns the bindings of the variables of a pattern, for each object that matches: a list
%% in the order of the variables' numbers. In a pattern, `_' matches any term, and `$1', `$2'
%% and so on are variables. A variable that occurs twice matches equal terms only.
%%
%% A pattern with a bound key reads only the objects with that key. In an ordered_set, a pattern
%% with a bound prefix of a tuple key reads only the keys with that prefix. Other patterns scan
%% the table: that takes O(n), in slices, and other processes may write in between. Each object
%% that is in the table throughout is returned exactly once.
-spec match(table(), match_pattern()) -> [[term()]].
match(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match, Pattern, forward), [Table, Pattern]).

%% @doc Like match/2, but returns up to `Limit' results at a time, with a continuation for
%% match/1. Returns `$end_of_table' if nothing matches. Writes between the calls may be seen or not.
-spec match(table(), match_pattern(), pos_integer()) ->
    {[[term()]], continuation()} | '$end_of_table'.
match(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Continues a match/3: returns the next results and a continuation, or `$end_of_table'.
%% Fails with `badarg' if the argument isn't a continuation, if the table is gone, or if the
%% process may no longer read it.
-spec match(continuation()) -> {[[term()]], continuation()} | '$end_of_table'.
match(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Returns the objects that match a pattern. Otherwise like match/2.
%%
%% Terms of the pattern are compared by `=:=', even in an ordered_set.
-spec match_object(table(), match_pattern()) -> [tuple()].
match_object(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match_object, Pattern, forward), [Table, Pattern]).

%% @doc Like match_object/2, but returns up to `Limit' objects at a time, with a continuation for
%% match_object/1. Returns `$end_of_table' if nothing matches. Writes between the calls may be
%% seen or not.
-spec match_object(table(), match_pattern(), pos_integer()) ->
    {[tuple()], continuation()} | '$end_of_table'.
match_object(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match_object, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Continues a match_object/3: returns the next objects and a continuation, or
%% `$end_of_table'. Fails with `badarg' like match/1.
-spec match_object(continuation()) -> {[tuple()], continuation()} | '$end_of_table'.
match_object(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Deletes the objects that match a pattern. Each object is deleted atomically, but not
%% all of them together: a reader may see some of them gone and others still there.
%%
%% It reads the same objects as match/2.
-spec match_delete(table(), match_pattern()) -> true.
match_delete(Table, Pattern) ->
    _ = ?TRY(larder_nif:match_delete(Table, Pattern), [Table, Pattern]),
    true.

%% @doc Returns the results of a match specification for the objects that match, as a list. Those
%% of an ordered_set are in the order of their keys. A specification is a list of `{Pattern, Guards,
%% Result}'; fun2ms/1 creates one from a fun.
%%
%% A bound key, a bound prefix of an ordered_set's tuple key, and guards on the key of an
%% ordered_set limit which objects are read. Otherwise it takes O(n), in slices. No process waits
%% for it, and each object that is in the table throughout is read exactly once. A select on a
%% snapshot/1 sees one instant.
%%
%% Fails with `badarg' if the specification is invalid. The shell and format_error/2 describe what
%% is wrong with it.
-spec select(table(), match_spec()) -> [term()].
select(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, forward), [Table, Spec]).

%% @doc Like select/2, but returns up to `Limit' results at a time, with a continuation for
%% select/1. Returns `$end_of_table' if nothing matches. Writes between the calls may be seen or
%% not. A continuation that isn't used holds no resources.
-spec select(table(), match_spec(), pos_integer()) -> {[term()], continuation()} | '$end_of_table'.
select(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, forward),
         [Table, Spec, Limit]).

%% @doc Continues a select/3: returns the next results and a continuation, or
%% `$end_of_table'. Fails with `badarg' like match/1.
-spec select(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Like select/2, but reads an ordered_set from its last key. The results of
%% other tables are in no particular order.
-spec select_reverse(table(), match_spec()) -> [term()].
select_reverse(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, backward), [Table, Spec]).

%% @doc Like select_reverse/2, but returns up to `Limit' results at a time, with a continuation for
%% select_reverse/1. Returns `$end_of_table' if nothing matches.
-spec select_reverse(table(), match_spec(), pos_integer()) ->
    {[term()], continuation()} | '$end_of_table'.
select_reverse(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, backward),
         [Table, Spec, Limit]).

%% @doc Continues a select_reverse/3: returns the next results and a continuation,
%% or `$end_of_table'. Fails with `badarg' like match/1.
-spec select_reverse(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select_reverse(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Returns the number of objects for which the result of a match specification is `true'.
%% Other results don't count. No object is copied. It reads the same objects as select/2.
-spec select_count(table(), match_spec()) -> non_neg_integer().
select_count(Table, Spec) ->
    ?TRY(larder_nif:select_count(Table, Spec), [Table, Spec]).

%% @doc Deletes the objects for which the result of a match specification is `true', and returns
%% their number. Each object is deleted atomically (in a bag, the objects of each key), but not
%% all of them together: other processes may see some of them gone.
%%
%% It reads the same objects as select/2.
-spec select_delete(table(), match_spec()) -> non_neg_integer().
select_delete(Table, Spec) ->
    ?TRY(larder_nif:select_delete(Table, Spec), [Table, Spec]).

%% @doc Deletes the objects that a match specification matches, and returns its results:
%% the list that select/2 would return. An ordered_set is read from its first key. Each
%% object (in a bag, the objects of a key) is deleted and returned atomically: the results are those
%% of the objects that were deleted, and if several processes take an object concurrently, exactly
%% one of them gets it. The cost is that of select/2 and of the deletions. If the process is killed
%% during the call, the objects that it has taken are lost.
%%
%% ```
%% Expired = larder:select_take(Sessions, [{{'_', '$1'}, [{'<', '$1', Now}], ['$_']}]).
%% '''
-spec select_take(table(), match_spec()) -> [term()].
select_take(Table, Spec) ->
    ?TRY(larder_select:in_order(larder_nif:select_take(Table, Spec)), [Table, Spec]).

%% @doc Replaces objects by the results of a match specification, and returns their number. A
%% result must have the same key as its object. Each object is replaced atomically, and only if it
%% is still the one that the specification has matched.
%%
%% Fails with `badarg' if the specification could change a key, and for a bag.
-spec select_replace(table(), match_spec()) -> non_neg_integer().
select_replace(Table, Spec) ->
    ?TRY(larder_nif:select_replace(Table, Spec), [Table, Spec]).

%% @doc Returns all objects, in the order of an ordered_set. It takes O(n), in slices. Each object
%% that is in the table throughout is returned exactly once. For a snapshot/1, the objects are
%% those of one instant.
-spec tab2list(table()) -> [tuple()].
tab2list(Table) ->
    ?TRY(larder_select:every(Table), [Table]).

%% ---- match specifications ----

%% @doc Compiles a match specification for match_spec_run/2. Fails with `badarg' if the
%% specification is invalid. The result is valid on this node only: see is_compiled_ms/1.
-spec match_spec_compile(match_spec()) -> compiled_match_spec().
match_spec_compile(Spec) ->
    ?TRY(larder_nif:compile(Spec), [Spec]).

%% @doc Compiles a match specification with parameters, for queries that are repeated with
%% other values. `{bind, N}' is the parameter for the Nth value, from 1 to 255. It may occur in a
%% pattern, in guards and in a result. All functions that take a match specification accept
%% `{Prepared, Values}', with a list of the values, and compile nothing then.
%%
%% ```
%% Prepared = larder:prepare([{{{user, {bind, 1}}, '$1', '$2'}, [{'>', '$2', {bind, 2}}], ['$1']}]),
%% Names = larder:select(Users, {Prepared, [7, 1000]}).
%% '''
%%
%% A value is a constant, whatever it contains: `$1' and tuples in it have no special meaning, and
%% a pattern matches it by `=:='. Each call chooses by its values which objects are read: those
%% of the key, of the range or of the index that the parameters determine (explain/2). In
%% `{const, X}' there are no parameters. If a key in a pattern contains both a parameter and a map,
%% the map is treated as a pattern, never as a part of a bound key.
%%
%% The result isn't bound to a table or a process. It can be used with all of them, on this node, as
%% long as it isn't garbage collected. It is fastest with tables of one key position. Fails with
%% `badarg' if the specification is invalid. A call with too many or too few values fails with
%% `badarg', too.
-spec prepare(match_clauses()) -> prepared_match_spec().
prepare(Spec) ->
    ?TRY(larder_nif:prepare(Spec), [Spec]).

%% @doc Returns the results of a compiled match specification for the terms of a list, in their
%% order. Terms that don't match are skipped. Fails with `badarg' if the specification isn't a
%% compiled one, or if the list is improper.
-spec match_spec_run([term()], compiled_match_spec()) -> [term()].
match_spec_run(Terms, Program) ->
    ?TRY(lists:reverse(larder_nif:run(Terms, Program, [])), [Terms, Program]).

%% @doc Returns whether a term is a usable compiled match specification. One that has been
%% outside of this node's memory, such as in a file, isn't usable any more. match_spec_compile/1
%% creates a new one.
-spec is_compiled_ms(term()) -> boolean().
is_compiled_ms(Term) ->
    larder_nif:is_compiled(Term).

%% @doc Makes a continuation usable again that has been outside of this node's memory, such as
%% in a file. `MatchSpec' must be the one with which the traversal began. A usable continuation
%% is returned unchanged.
-spec repair_continuation(C, match_spec()) -> C when C :: continuation() | index_continuation().
repair_continuation('$end_of_table' = End, _Spec) ->
    End;
repair_continuation({Table, Limit, Direction, Place, Program} = Continuation, Spec)
  when (is_atom(Table) orelse is_reference(Table)), is_integer(Limit), is_atom(Direction),
  is_binary(Place) ->
    case is_compiled_ms(Program) of
        true -> Continuation;
        false -> {Table, Limit, Direction, Place, match_spec_compile(Spec)}
    end;
repair_continuation({Table, Name, Limit, Place, Program} = Continuation, Spec)
  when is_reference(Table), is_atom(Name), is_integer(Limit), is_binary(Place) ->
    case is_compiled_ms(Program) of
        true -> Continuation;
        false -> {Table, Name, Limit, Place, match_spec_compile(Spec)}
    end.

%% @doc Tests a match specification on a tuple. Returns `{ok, Result}', where the result is false
%% if the tuple doesn't match, or `{error, List}' with descriptions of what is wrong.
-spec test_ms(tuple(), match_spec()) -> {ok, term()} | {error, [{warning | error, string()}]}.
test_ms(Term, Spec) ->
    try larder_nif:test(Term, Spec) of
        {ok, _} = Result -> Result;
        false -> {ok, false}
    catch
        error:{larder, _} -> larder_info:why_not(Term, Spec)
    end.

%% @doc Returns the match specification of a fun. The parse transform `larder_transform' replaces
%% the call by it at compile time. In the shell the fun is translated at run time.
%%
%% The fun has one argument, a tuple. Its guards and its body may use what match specifications
%% support. A fun of a module that was compiled without the transform is an error.
-spec fun2ms(function()) -> match_spec() | {error, transform_error}.
fun2ms(Fun) ->
    larder_ms:fun2ms(Fun).
