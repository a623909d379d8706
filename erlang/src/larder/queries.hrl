%% Patterns and match specifications. Part of module larder: see larder.erl.

%% ---- by pattern ----

%% @doc What the pattern's variables are bound to, for each object that fits: a list in
%% the order of the variables' numbers. In a pattern, `_' fits everything and `$1', `$2'
%% and so on are variables; the same variable twice fits equal terms only.
%%
%% A pattern with a bound key looks at that key alone, one with a bound prefix of an
%% ordered_set's tuple key at those keys. Others go through the table: it takes O(n), in
%% slices, and others write meanwhile. Each object that is there throughout is seen once.
-spec match(table(), match_pattern()) -> [[term()]].
match(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match, Pattern, forward), [Table, Pattern]).

%% @doc As match/2, so many at a time, with a continuation for match/1; `$end_of_table'
%% if nothing fits. What others write in between may be seen or not.
-spec match(table(), match_pattern(), pos_integer()) ->
    {[[term()]], continuation()} | '$end_of_table'.
match(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Goes on with a match/3, and gives the next objects and a continuation, or
%% `$end_of_table'. `badarg' for what is no continuation, and if the table is gone or no
%% longer to be read.
-spec match(continuation()) -> {[[term()]], continuation()} | '$end_of_table'.
match(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc The objects that fit a pattern. As match/2 otherwise.
%%
%% The pattern is compared by `=:=', also in an ordered_set.
-spec match_object(table(), match_pattern()) -> [tuple()].
match_object(Table, Pattern) ->
    ?TRY(larder_select:all(Table, match_object, Pattern, forward), [Table, Pattern]).

%% @doc As match_object/2, so many at a time, with a continuation for match_object/1;
%% `$end_of_table' if nothing fits. What others write in between may be seen or not.
-spec match_object(table(), match_pattern(), pos_integer()) ->
    {[tuple()], continuation()} | '$end_of_table'.
match_object(Table, Pattern, Limit) ->
    ?TRY(larder_select:some(Table, match_object, Pattern, Limit, forward),
         [Table, Pattern, Limit]).

%% @doc Goes on with a match_object/3, and gives the next objects and a continuation, or
%% `$end_of_table'. `badarg' as of match/1.
-spec match_object(continuation()) -> {[tuple()], continuation()} | '$end_of_table'.
match_object(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc Deletes the objects that fit a pattern. Each object goes at one moment, not all
%% of them together: a reader may see some gone and others still there.
%%
%% It goes through what match/2 would.
-spec match_delete(table(), match_pattern()) -> true.
match_delete(Table, Pattern) ->
    _ = ?TRY(larder_nif:match_delete(Table, Pattern), [Table, Pattern]),
    true.

%% @doc What a match specification makes of the objects, as a list; those of an
%% ordered_set come in order. A specification is a list of `{Pattern, Guards, Result}';
%% fun2ms/1 makes one of a fun.
%%
%% A bound key, a bound prefix of an ordered_set's tuple key, and guards on an
%% ordered_set's key limit what is looked at. Otherwise it takes O(n), in slices: nobody
%% waits, and each object that is there throughout is seen once. A select of a snapshot/1
%% is of one moment.
%%
%% `badarg' for a specification that is none; the shell and format_error/2 say what is
%% wrong with it.
-spec select(table(), match_spec()) -> [term()].
select(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, forward), [Table, Spec]).

%% @doc As select/2, so many at a time, with a continuation for select/1; `$end_of_table'
%% if nothing fits. What others write in between may be seen or not. Nothing is kept for
%% a continuation that is not used.
-spec select(table(), match_spec(), pos_integer()) -> {[term()], continuation()} | '$end_of_table'.
select(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, forward),
         [Table, Spec, Limit]).

%% @doc Goes on with a select/3, and gives the next results and a continuation, or
%% `$end_of_table'. `badarg' as of match/1.
-spec select(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc As select/2; an ordered_set is gone through from its last key. The results of
%% other tables come in no particular order.
-spec select_reverse(table(), match_spec()) -> [term()].
select_reverse(Table, Spec) ->
    ?TRY(larder_select:all(Table, select, Spec, backward), [Table, Spec]).

%% @doc As select_reverse/2, so many at a time, with a continuation for select_reverse/1.
%% `$end_of_table' if nothing fits.
-spec select_reverse(table(), match_spec(), pos_integer()) ->
    {[term()], continuation()} | '$end_of_table'.
select_reverse(Table, Spec, Limit) ->
    ?TRY(larder_select:some(Table, select, Spec, Limit, backward),
         [Table, Spec, Limit]).

%% @doc Goes on with a select_reverse/3, and gives the next results and a continuation,
%% or `$end_of_table'. `badarg' as of match/1.
-spec select_reverse(continuation()) -> {[term()], continuation()} | '$end_of_table'.
select_reverse(Continuation) ->
    ?TRY(larder_select:again(Continuation), [Continuation]).

%% @doc For how many objects a match specification gives `true'; other results don't
%% count. No object is copied. It looks at what select/2 would.
-spec select_count(table(), match_spec()) -> non_neg_integer().
select_count(Table, Spec) ->
    ?TRY(larder_nif:select_count(Table, Spec), [Table, Spec]).

%% @doc Deletes the objects for which a match specification gives `true', and says how
%% many. Each object goes at one moment (of a bag, each key's objects), not all of them
%% together: others may see some gone.
%%
%% It looks at what select/2 would.
-spec select_delete(table(), match_spec()) -> non_neg_integer().
select_delete(Table, Spec) ->
    ?TRY(larder_nif:select_delete(Table, Spec), [Table, Spec]).

%% @doc Deletes the objects that a match specification matches, and gives what it makes
%% of them: what select/2 would give, from the first key of an ordered_set on. Each object
%% (in a bag, those of a key) is deleted and given by itself, at one moment: what is given
%% is what was deleted, and of several takers one gets it. Takes the time of select/2 and
%% that of the deletions. What a process has taken that is killed meanwhile is lost.
%%
%% ```
%% Expired = larder:select_take(Sessions, [{{'_', '$1'}, [{'<', '$1', Now}], ['$_']}]).
%% '''
-spec select_take(table(), match_spec()) -> [term()].
select_take(Table, Spec) ->
    ?TRY(larder_select:in_order(larder_nif:select_take(Table, Spec)), [Table, Spec]).

%% @doc Replaces objects by what a match specification makes of them, which has to have
%% the same key, and says how many. Each object by itself is replaced at one moment, and
%% only if it still is the one that the specification saw.
%%
%% `badarg' for a specification that could change a key, and for a bag.
-spec select_replace(table(), match_spec()) -> non_neg_integer().
select_replace(Table, Spec) ->
    ?TRY(larder_nif:select_replace(Table, Spec), [Table, Spec]).

%% @doc All objects, in an ordered_set's order. It takes O(n), in slices, and sees each
%% object that is there throughout once; of a snapshot/1, those of one moment.
-spec tab2list(table()) -> [tuple()].
tab2list(Table) ->
    ?TRY(larder_select:every(Table), [Table]).

%% ---- match specifications ----

%% @doc Compiles a match specification for match_spec_run/2. `badarg' for a specification
%% that is none. What is compiled is good in this node only: see is_compiled_ms/1.
-spec match_spec_compile(match_spec()) -> compiled_match_spec().
match_spec_compile(Spec) ->
    ?TRY(larder_nif:compile(Spec), [Spec]).

%% @doc Compiles a match specification with parameters: for what is asked again and again
%% with other values. `{bind, N}' stands for the Nth value, from 1 to 255: in a pattern, in
%% guards, in a result. `{Prepared, Values}', with a list of the values, is a match
%% specification for every function that takes one, and nothing is compiled then.
%%
%% ```
%% Prepared = larder:prepare([{{{user, {bind, 1}}, '$1', '$2'}, [{'>', '$2', {bind, 2}}], ['$1']}]),
%% Names = larder:select(Users, {Prepared, [7, 1000]}).
%% '''
%%
%% A value is a constant, whatever it is: `$1' and tuples in it are themselves, and a pattern
%% matches it by `=:='. What is looked at is chosen for the values: those under the key, in the
%% range or of the index that the specification names by parameters (explain/2). In
%% `{const, X}' nothing is a parameter. A map in a pattern is never taken for a key, if a
%% parameter is in that key, too.
%%
%% It is of no table and no process, and may be used with all of them, as long as it is in
%% this node's memory. It is quickest with tables of one key position. `badarg' for a
%% specification that is none, and where it is used, for more or fewer values than it has
%% parameters.
-spec prepare(match_clauses()) -> prepared_match_spec().
prepare(Spec) ->
    ?TRY(larder_nif:prepare(Spec), [Spec]).

%% @doc What a compiled match specification makes of the terms of a list, in their order.
%% Terms that don't fit are left out. `badarg' if it is no compiled specification or no
%% proper list.
-spec match_spec_run([term()], compiled_match_spec()) -> [term()].
match_spec_run(Terms, Program) ->
    ?TRY(lists:reverse(larder_nif:run(Terms, Program, [])), [Terms, Program]).

%% @doc Whether a term is a compiled match specification: not any more, if it has been
%% somewhere else than in this node's memory. Then match_spec_compile/1 makes a new one.
-spec is_compiled_ms(term()) -> boolean().
is_compiled_ms(Term) ->
    larder_nif:is_compiled(Term).

%% @doc Makes a continuation good again that was somewhere else, such as in a file. The
%% match specification is the one with which it began. A continuation that is good comes
%% back as it is.
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

%% @doc Tries a match specification on a tuple. `{ok, Result}', where the result is false
%% if it doesn't fit; or `{error, List}' with what is wrong, in words.
-spec test_ms(tuple(), match_spec()) -> {ok, term()} | {error, [{warning | error, string()}]}.
test_ms(Term, Spec) ->
    try larder_nif:test(Term, Spec) of
        {ok, _} = Result -> Result;
        false -> {ok, false}
    catch
        error:{larder, _} -> larder_info:why_not(Term, Spec)
    end.

%% @doc The match specification of a fun. The parse transform `larder_transform' puts it
%% in the call's place when compiling; in the shell it is done when called.
%%
%% The fun has one argument, a tuple, with guards and a body as a match specification
%% knows them. A fun of a compiled module without the transform is an error.
-spec fun2ms(function()) -> match_spec() | {error, transform_error}.
fun2ms(Fun) ->
    larder_ms:fun2ms(Fun).
