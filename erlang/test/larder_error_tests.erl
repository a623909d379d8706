%% The words of errors: for each way of calling wrong, those that larder gives
%% are those that ets gives.
-module(larder_error_tests).

-include_lib("eunit/include/eunit.hrl").
-include("leak_free.hrl").

%% Calls that differ from ets in nothing but the module. Each runs against
%% both, on tables made for it.
same_words_test_() ->
    [{lists:flatten(io_lib:format("~w~0p", [F, Args])),
      ?LEAK_FREE(?assertEqual(explain(ets, F, Args), explain(larder, F, Args)))}
     || {F, Args} <- wrong_calls()].

%% The list would prove little if the calls went through.
calls_do_fail_test() ->
    Went = [{F, Args} || {F, Args} <- wrong_calls(), explain(ets, F, Args) =:= no_error],
    ?assertEqual([], Went).

%% Most of them are explained, so equal is not equally empty.
calls_are_explained_test() ->
    Explained = [W
                 || {F, Args} <- wrong_calls(), {error, _, _, W} <- [explain(larder, F, Args)],
                    W =/= #{}],
    ?assert(length(Explained) > 100).

wrong_calls() ->
    table_argument() ++ others().

%% Every function with no table, a dead one, and one that isn't ours.
table_argument() ->
    [{F, [Tab | Args]}
     || {F, Args} <- [{delete, []}, {delete, [1]}, {delete_all_objects, []}, {delete_object, [{1}]},
                      {first, []}, {last, []}, {next, [1]}, {prev, [1]}, {lookup, [1]},
                      {lookup_element, [1, 1]}, {insert, [{1}]}, {insert, [x]}, {insert_new, [{1}]},
                      {insert_new, [[{1}, x]]}, {member, [1]}, {take, [1]}, {slot, [0]},
                      {update_counter, [1, 1]}, {update_counter, [1, x]},
                      {update_counter, [1, 1, {1, 1}]},
                      {update_element, [1, {2, 1}]}, {update_element, [1, x]},
                      {match, ['_']}, {match, ['_', 1]}, {match, ['_', 0]}, {match_object, ['_']},
                      {match_object, ['_', 1]}, {match_delete, ['_']},
                      {select, [[{'_', [], ['$_']}]]},
                      {select, [bad]}, {select, [[{'_', [], ['$_']}], 1]}, {select, [bad, x]},
                      {select_count, [[{'_', [], [true]}]]},
                      {select_delete, [[{{'_'}, [], [true]}]]},
                      {select_delete, [bad]}, {select_replace, [[{'$1', [], ['$1']}]]},
                      {select_reverse, [[{'_', [], ['$_']}]]},
                      {select_reverse, [[{'_', [], ['$_']}], 1]},
                      {rename, [other]}, {rename, ["x"]}, {safe_fixtable, [true]},
                      {safe_fixtable, [x]},
                      {give_away, [self, x]}, {give_away, [nopid, x]}, {setopts, [{heir, none}]},
                      {setopts, [bad]}, {tab2list, []}],
        Tab <- [no_such_table, dead, 17, ref, "tab"]
    ] ++
    [{F, [private | Args]}
     || {F, Args} <- [{delete, []}, {insert, [{1}]}, {lookup, [1]}, {first, []},
                                            {match, ['_']}, {select, [[{'_', [], ['$_']}]]},
                                            {update_counter, [1, 1]}, {update_element, [1, {2, 1}]},
                                            {safe_fixtable, [true]}, {delete_all_objects, []}]] ++
    [{F, [protected | Args]} || {F, Args} <- [{delete, []}, {insert, [{1}]}, {insert_new, [{1}]},
                                              {take, [1]}, {delete_object, [{1}]},
                                              {rename, [other]},
                                              {give_away, [self, x]}, {setopts, [{heir, none}]},
                                              {update_element, [1, {2, 1}]}]].

%% Wrong in the other arguments, on tables of our own.
others() ->
    [{insert, [set, x]}, {insert, [set, {}]}, {insert, [set, [{1}, {}]]},
     {insert, [set, [{1} | x]]},
     {insert, [keypos3, {1, 2}]}, {insert, [keypos3, [{1, 2, 3}, {1}]]},
     {insert_new, [set, x]}, {insert_new, [set, [{1} | x]]}, {delete_object, [set, x]},
     {delete_object, [set, {}]},
     {lookup_element, [set, nokey, 1]}, {lookup_element, [set, 1, 0]},
     {lookup_element, [set, 1, -1]},
     {lookup_element, [set, 1, 99]}, {lookup_element, [set, 1, x]},
     {lookup_element, [set, 1, 1 bsl 70]},
     {lookup_element, [set, nokey, x]}, {lookup_element, [set, nokey, 0]},
     {lookup_element, [set, nokey, -1]},
     {next, [set, nokey]}, {prev, [set, nokey]}, {slot, [set, -1]}, {slot, [set, x]},
     {slot, [set, 1 bsl 70]},
     {match, [x]}, {match_object, [x]}, {select, [x]}, {select_reverse, [x]}, {select, [{x, y}]},
     {match, [set, '_', 0]}, {match, [set, '_', x]}, {match_object, [set, '_', -1]},
     {select, [set, bad]}, {select, [set, [{'_', [], []}]]}, {select, [set, [{x, [], ['$1']}]]},
     {select, [set, bad, 1]}, {select, [set, bad, 0]}, {select, [set, [{'_', [], ['$_']}], 0]},
     {select, [set, [{'_', [], ['$_']}], x]}, {select, [set, [{'_', [{nofun, 1}], ['$_']}]]},
     {select_reverse, [set, bad]}, {select_reverse, [set, [{'_', [], ['$_']}], 0]},
     {select_count, [set, bad]}, {select_delete, [set, bad]}, {select_replace, [set, bad]},
     {select_replace, [set, [{{'$1', '$2'}, [], [{{'$2', '$1'}}]}]]},
     {select_replace, [bag, [{'$1', [], ['$1']}]]},
     {match_spec_compile, [bad]}, {match_spec_compile, [[{'_', [], ['$1']}]]},
     {match_spec_run, [[{1}], nocomp]},
     {update_counter, [set, nokey, 1]}, {update_counter, [set, nokey, x]},
     {update_counter, [set, 1, {1, 1}]},
     {update_counter, [set, 1, {9, 1}]}, {update_counter, [set, 1, {0, 1}]},
     {update_counter, [set, 1, {3, 1}]},
     {update_counter, [set, 1, {2, x}]}, {update_counter, [set, 1, [{2, 1}, {1, 1}]]},
     {update_counter, [set, 1, {2, 1, x, 0}]}, {update_counter, [set, 1, {2, 1, 0, x}]},
     {update_counter, [set, 1, x]}, {update_counter, [bag, 1, 1]},
     {update_counter, [set, new, 1, x]},
     {update_counter, [set, new, 1, {new}]}, {update_counter, [set, new, {1, 1}, {new, 1}]},
     {update_counter, [set, new, {2, x}, {new, 1}]}, {update_counter, [set, new, {9, 1}, {new, 1}]},
     {update_counter, [set, new, 1, {new, x}]}, {update_counter, [bag, 1, 1, {1, 1}]},
     {update_element, [set, 1, x]}, {update_element, [set, 1, {1, x}]},
     {update_element, [set, 1, {9, x}]},
     {update_element, [set, 1, {0, x}]}, {update_element, [set, 1, [{2, x}, {1, y}]]},
     {update_element, [bag, 1, {2, x}]},
     {new, ["name", []]}, {new, [name, x]}, {new, [name, [x]]}, {new, [name, [set | x]]},
     {new, ["name", x]}, {new, [name, [{keypos, 0}]]}, {new, [taken, [named_table]]},
     {rename, [taken, taken]}, {rename, [taken, "x"]}, {rename, [taken, taken2]},
     {give_away, [set, self, x]}, {give_away, [set, nopid, x]}, {give_away, [set, dead_pid, x]},
     {safe_fixtable, [set, x]}, {setopts, [set, x]}, {setopts, [set, [{heir, x}]]},
     {setopts, [set, {write_concurrency, true}]},
     {info, [17]}, {info, [set, no_item]}, {info, [ref, size]}, {whereis, [17]},
     {table, [set, {traverse, x}]}, {table, [set, [{n_objects, 0}]]},
     {repair_continuation, [x, bad]}].

%% What the newer functions say, on every release.
newer_functions_test_() ->
    Explain = fun(F, Args) -> {error, badarg, _, Words} = explain(larder, F, Args), Words end,
    Same = fun(F, Args, G, Args1) -> ?_assertEqual(Explain(G, Args1), Explain(F, Args)) end,
    [Same(lookup_element, [no_such_table, 1, 1, d], lookup_element, [no_such_table, 1, 1]),
     Same(lookup_element, [set, 1, 0, d], lookup_element, [set, 1, 0]),
     Same(lookup_element, [set, 1, x, d], lookup_element, [set, 1, x]),
     Same(lookup_element, [set, nokey, 0, d], lookup_element, [set, nokey, 0]),
     Same(lookup_element, [set, 1, 99, d], lookup_element, [set, 1, 99]),
     Same(next_lookup, [set, nokey], next, [set, nokey]),
     Same(prev_lookup, [set, nokey], prev, [set, nokey]),
     Same(first_lookup, [dead], first, [dead]),
     Same(last_lookup, [private], last, [private]),
     Same(update_element, [no_such_table, 1, {2, x}, {1, 1}], update_element,
          [no_such_table, 1, {2, x}]),
     Same(update_element, [set, 1, {1, x}, {1, 1}], update_element, [set, 1, {1, x}]),
     ?_assertMatch(#{4 := _}, Explain(update_element, [set, new, {2, x}, nope])),
     ?_assertMatch(#{4 := _}, Explain(update_element, [set, new, {2, x}, {}]))].

%% Calls that can't be compared: in OTP 25 the first brings the whole VM down,
%% and the words of the others fail themselves.
where_ets_fails_test_() ->
    Explain = fun(F, Args) -> {error, badarg, _, Words} = explain(larder, F, Args), Words end,
    [?_assertEqual(#{4 => <<"is an empty tuple">>}, Explain(update_counter, [set, new, 1, {}]))
     || not has_cause_default()] ++
    [?_assertEqual(Explain(update_element, [set, 1, x]),
                   Explain(update_element, [set, 1, [{2, x} | y]])),
     ?_assertEqual(Explain(update_counter, [set, 1, x]),
                   Explain(update_counter, [set, 1, [{2, 1} | y]])),
     ?_assertEqual(Explain(update_counter, [set, 1, x, {1, 1}]),
                   Explain(update_counter, [set, 1, [{2, 1} | y], {1, 1}]))].

%% From OTP 29 on `ets' refuses a default without a key at once, in words of its own.
defaults_test_() ->
    [{lists:flatten(io_lib:format("~w~0p", [F, Args])),
      ?LEAK_FREE(?assertEqual(explain(ets, F, Args), explain(larder, F, Args)))}
     || has_cause_default(), F <- [update_counter, update_element], Tab <- [set, keypos3, bag],
        Key <- [1, new], Spec <- [{2, 1}, {9, 1}, x], Default <- [{}, {x}, {x, 1}, x],
        Args <- [[Tab, Key, Spec, Default]],
        %% A short default that is long enough for a set, and bags, are compared above.
        Tab =:= keypos3 orelse Default =:= {} orelse Default =:= x].

has_cause_default() ->
    Frame = {ets, update_counter, [t, k, 1, {}], [{error_info, #{cause => default}}]},
    try is_map_key(4, erl_stdlib_errors:format_error(badarg, [Frame]))
    catch error:_ -> false
    end.

%% The shell's own printing finds the words.
printed_like_ets_test() ->
    Print = fun(Module) ->
        try Module:insert(no_such_table, {1}) catch error:R:S ->
            lists:flatten(erl_error:format_exception(error, R, [hd(S)]))
        end
    end,
    Of = fun(Text) -> lists:flatten(string:replace(Text, "ETS table", "Larder table")) end,
    ?assertEqual(lists:flatten(string:replace(Of(Print(ets)), "ets:insert", "larder:insert", all)),
                 Print(larder)).

%% Why a specification is invalid is reported, wherever one is accepted.
specifications_test_() ->
    Variable = [{{'$1'}, [], ['$2']}],
    Second = [{{'$1'}, [], ['$1']}, {{'$1'}, [{foo, '$1'}], ['$1']}],
    Whys = [{Variable, "variable $2 is unbound"},
            {[{{'$1'}, [{'>', '$1', '$7'}], ['$1']}], "variable $7 is unbound"},
            {[{{'$1'}, [{foo, '$1'}], ['$1']}], "function foo/1 does not exist"},
            {Second, "clause 2: function foo/1 does not exist"},
            {[{{'$1'}, [], []}], "body clause does not return anything"},
            {[{{'$1'}, '$1', ['$1']}], "match expression is not a list"},
            {[{'$1'}], "match program part is not a tuple of arity 3"},
            {bad, "match programs are not in a list"}],
    [{lists:flatten(io_lib:format("~w ~0p", [F, Spec])),
      fun() ->
          Tab = larder:new(t, []),
          Said = said(F, [case Arg of tab -> Tab; spec -> Spec; _ -> Arg end || Arg <- Args]),
          larder:delete(Tab),
          ?assertEqual("not a valid match specification: " ++ Why, Said)
      end} || {F, Args} <- [{select, [tab, spec]}, {select, [tab, spec, 5]},
                            {select_reverse, [tab, spec]}, {select_reverse, [tab, spec, 5]},
                            {select_count, [tab, spec]}, {select_delete, [tab, spec]},
                            {select_replace, [tab, spec]}, {match_spec_compile, [spec]},
                            {index_select, [tab, name, spec]}, {subscribe, [tab, spec, #{}]},
                            {snapshot_and_subscribe, [tab, spec, #{}]}],
              {Spec, Why} <- Whys].

%% A good specification that replaces objects by others with another key, or by none.
replacements_test_() ->
    Keeps = {{'$1', x}, [], [{{'$1', y}}]},
    Loses = {{'$1', '$2'}, [], [{{'$2', '$1'}}]},
    Why = "the result is not for certain an object with the key of the one that it replaces",
    [?_test(begin
                Tab = larder:new(t, [{keypos, KeyPos}]),
                Said = said(select_replace, [Tab, Spec]),
                larder:delete(Tab),
                ?assertEqual("not a valid match specification: " ++ Expected ++ Why, Said)
            end)
     || {KeyPos, Spec, Expected} <- [{1, [Loses], ""}, {1, [Keeps, Loses], "clause 2: "},
                                     {2, [Keeps], ""}, {1, [{{'$1'}, [], ['$1']}], ""}]].

%% An error may be described after the table has gone.
replacement_of_no_table_test() ->
    Tab = larder:new(t, []),
    Spec = [{{'$1', '$2'}, [], [{{'$2', '$1'}}]}],
    {Reason, Stack} = try larder:select_replace(Tab, Spec) catch error:R:S -> {R, S} end,
    larder:delete(Tab),
    #{2 := Text} = all_words(Reason, Stack),
    ?assertMatch("not a valid match specification: the result" ++ _,
                 unicode:characters_to_list(Text)).

said(F, Args) ->
    try apply(larder, F, Args) of
        Result -> {no_error, Result}
    catch
        error:badarg:Stack -> [Text] = maps:values(all_words(badarg, Stack)),
                              unicode:characters_to_list(Text)
    end.

%% The shell prints it.
specification_printed_test() ->
    try larder:match_spec_compile([{{'$1'}, [], ['$2']}]) catch error:R:S ->
        Printed = lists:flatten(erl_error:format_exception(error, R, [hd(S)])),
        ?assertNotEqual(nomatch, string:find(Printed, "variable $2 is unbound"))
    end.

%% Of the options of a subscription, whatever the specification is.
options_of_a_feed_test_() ->
    [{lists:flatten(io_lib:format("~w ~0p ~0p", [Function, Spec, Options])), fun() ->
        Table = larder:new(t, []),
        try larder:Function(Table, Spec, Options) of
            _ -> error(no_error)
        catch
            error:badarg:Stack ->
                ?assertEqual(Wrong, lists:sort(maps:keys(larder:format_error(badarg, Stack))))
        after
            larder:delete(Table)
        end
      end}
     || Function <- [subscribe, snapshot_and_subscribe],
        {Spec, Options, Wrong} <- [{all, #{limit => 0}, [3]},
                                   {[{'_', [], ['$_']}], #{limit => 0}, [3]},
                                   {[{'_', [], ['$_']}], #{mailbox => a}, [3]},
                                   {[{'_', [], ['$_']}], [], [3]},
                                   {spec, #{other => 1}, [2, 3]}, {spec, #{limit => 1}, [2]}]].

%% Arguments that no clause or call takes are errors of larder's function, as of ets's.
raised_by_larder_test_() ->
    [{atom_to_list(Function), fun() ->
        Table = larder:new(t, []),
        try apply(larder, Function, [Table || Function =/= tabfile_info] ++ Others) of
            _ -> error(no_error)
        catch
            error:Reason:Stack ->
                {Module, Raised, _, _} = hd(Stack),
                ?assertEqual({Expected, larder, Function}, {Reason, Module, Raised})
        after
            larder:delete(Table)
        end
      end}
     || {Function, Others, Expected} <-
            [{init_table, [no_fun], {badfun, no_fun}}, {tab2file, ["/nowhere", x], function_clause},
             {tabfile_info, [make_ref()], function_clause}]].

%% After the frames of the library comes the caller's, also of a call in tail position.
callers_test_() ->
    [{lists:flatten(io_lib:format("~w/~w", [F, length(Args)])),
      ?_assertMatch([{?MODULE, caller, 3, _} | _], frames(larder, F, Args))}
     || {F, Args} <- lists:usort([{F, Args} || {F, [no_such_table | _] = Args} <- wrong_calls()]) ++
            [{from_dets, [no_such_table, d]}, {to_dets, [no_such_table, d]},
             {foldl, [fun(_, A) -> A end, 0, no_such_table]},
             {foldr, [fun(_, A) -> A end, 0, no_such_table]},
             {init_table, [no_such_table, fun(read) -> end_of_input end]}]].

frames(Module, Function, Args) ->
    try caller(Module, Function, Args) of
        Result -> {no_error, Result}
    catch
        _:_:Stack -> [Frame || {?MODULE, _, _, _} = Frame <- Stack]
    end.

caller(Module, Function, Args) ->
    {called_in_tail_position(Module, Function, Args)}.

called_in_tail_position(Module, Function, Args) -> apply(Module, Function, Args).

%% Frames that nobody raised: never an exception.
odd_frames_test_() ->
    Info = fun(Cause) -> [{error_info, #{module => larder, cause => Cause}}] end,
    [?_assertEqual(#{}, larder_error:format_error(badarg, [])),
     ?_assertEqual(#{}, larder_error:format_error(badarg, [{larder, insert, 2, Info(id)}])),
     ?_assertEqual(#{}, larder_error:format_error(badarg, [{larder, insert, [a, {1}], []}])),
     ?_assertEqual(#{}, larder_error:format_error(badarg, [{larder, insert, [a, {1}], x}])),
     ?_assert(is_map(larder_error:format_error(badarg, [{larder, insert, [], Info(id)}]))),
     ?_assert(is_map(larder_error:format_error(badarg,
                                               [{larder, update_element, [a, b, c, d],
                                                 Info(default)}]))),
     ?_assert(is_map(larder_error:format_error(badarg,
                                               [{larder, nonsense, [a], Info({odd, cause})}])))].

%% The functions that ets lacks, and the options of new and setopts: whatever the argument is for
%% which a call fails, improper lists and large integers among them, there are words that say why.
wrong_arguments_are_explained_test_() ->
    [{timeout, 60, {atom_to_list(F), fun() -> wrong_arguments(F, Args) end}}
     || {F, Args} <- calls_of_larder()].

calls_of_larder() ->
    All = [{'_', [], ['$_']}],
    [{lookup_many, [tab, [1]]}, {take_many, [tab, [1]]}, {lookup_elements, [tab, 1, [2]]},
     {lookup_elements, [tab, 1, [2], []]}, {select_take, [tab, All]},
     {update_map, [tab, 1, 3, k, v]}, {update_map, [tab, 1, [{3, k, v}]]},
     {remove_map_key, [tab, 1, 3, k]}, {insert, [tab, {1, 2, #{}}, #{ttl => 1000}]},
     {expire, [tab, 1, 1000]}, {ttl, [tab, 1]}, {rank, [tab, 1]}, {nth, [tab, 1]},
     {slice, [tab, 1, 1]}, {count_range, [tab, 1, 2]}, {add_index, [tab, {i, 2, [each]}]},
     {drop_index, [tab, v]}, {index_lookup, [tab, v, 2]}, {index_select, [tab, v, All]},
     {index_select, [tab, v, All, 1]}, {index_select, ['$end_of_table']}, {explain, [tab, All]},
     {prepare, [All]}, {snapshot, [[tab]]}, {release, [tab]}, {diff, [tab, tab]},
     {transaction, [[tab], fun(_) -> ok end, #{}]}, {commit, [[{insert, tab, {1}}]]},
     {subscribe, [tab, all, #{}]}, {snapshot_and_subscribe, [tab, All, #{}]}, {unsubscribe, [x]},
     {memory, [total]}, {top, [1, size]}, {new, [name, [{ttl, 1}]]}, {setopts, [tab, [{ttl, 1}]]}].

wrong_arguments(F, Args) ->
    Wrong = [1 bsl 70, -(1 bsl 70), -1, 0, 1.0, x, [], [x], [a | b], [[a | b]], {}, {a}, {i, 2},
             {i, 2, [each | x]}, {i, 2, [unique, x]}, {i, [a | b], []}, {i, 0, []},
             [{index, [{i, 2, [each | x]}]}], [{index, [{i, 2, []} | x]}], [{index, x}],
             [{ttl, x}, {idle, 1} | y], [{ttl, -(1 bsl 70)}], [{max_size, 0}], [{max_memory, x}],
             [{evict, [a | b]}], [{structure, [a | b]}], [{structure, {avl, [a | b]}}],
             [{'_', [], ['$_' | x]}], [{'_', [], ['$_']} | x], {[a | b], [c | d]},
             [{3, k, v} | x], [{3, [k | x]}], [{3, k, v}, {1 bsl 70, k, v}], [[1, 2 | 3]], [1 bsl 70],
             #{ttl => [a | b]}, #{ttl => 1.0}, #{limit => 0}, #{retries => [a | b]}, #{},
             [{insert, tab, {1}} | x], [{insert, tab, [{1} | x]}], [{check, tab, 1, [a | b]}]],
    Missing = [{F, Real} || Real <- [replaced(N, Term, Args) || N <- lists:seq(1, length(Args)),
                                                                Term <- Wrong],
                            unexplained(F, Real)],
    ?assertEqual([], Missing).

replaced(N, Term, Args) ->
    {Before, [_ | After]} = lists:split(N - 1, Args),
    Before ++ [Term | After].

unexplained(F, Args) ->
    Tab = larder:new(t, [ordered_set, public, {ttl, infinity}, {index, [{v, 2, []}]}]),
    true = larder:insert(Tab, {1, 2, #{}}),
    Real = with_table(Tab, Args),
    try apply(larder, F, Real) of
        Result ->
            [larder:delete(Result) || F =:= new],
            false
    catch
        error:Reason:Stack -> map_size(larder:format_error(Reason, Stack)) =:= 0
    after
        larder:delete(Tab)
    end.

%% The table, wherever the arguments say `tab'.
with_table(Tab, tab) -> Tab;
with_table(Tab, [Head | Tail]) -> [with_table(Tab, Head) | with_table(Tab, Tail)];
with_table(Tab, Term) when is_tuple(Term) ->
    list_to_tuple([with_table(Tab, Part) || Part <- tuple_to_list(Term)]);
with_table(_Tab, Term) -> Term.

%% ---- making the call ----

%% The class, the reason, the cause, whether the stack begins with the call as
%% it was made, and the words. Atoms among the arguments that name one of the
%% tables below stand for it.
explain(Module, Function, Args) ->
    Tabs = tables(Module),
    Real = [maps:get(Arg, Tabs, Arg) || Arg <- Args],
    try apply(Module, Function, Real) of
        _ -> no_error
    catch
        Class:Reason:Stack ->
            {Class, Reason, {cause(Stack), frame(Function, Real, Stack)},
             words(Module, Reason, Stack)}
    after
        drop(Module, Tabs)
    end.

cause([{_, _, _, Info} | _]) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, ErrorInfo} -> maps:get(cause, ErrorInfo, none);
        false -> none
    end.

%% Inside ets some functions call another before they fail; larder need not.
frame(Function, _Args, _Stack)
  when Function =:= select_delete; Function =:= match_delete; Function =:= delete_all_objects;
       Function =:= tab2list; Function =:= repair_continuation; Function =:= match_spec_run ->
    elsewhere;
frame(Function, Args, [{Module, Function, Args, _} | _]) when Module =:= ets; Module =:= larder ->
    as_called;
frame(_Function, _Args, [Frame | _]) ->
    {not_as_called, Frame}.

%% Larder's tables are not of ETS, and a specification is wrong for a reason.
words(ets, Reason, Stack) ->
    maps:map(fun(_, Text) -> of_larder(Text) end, erl_stdlib_errors:format_error(Reason, Stack));
words(larder, Reason, Stack) ->
    maps:map(fun without_reason/2, all_words(Reason, Stack)).

of_larder(Text) ->
    Larder = string:replace(Text, "an ETS table", "a Larder table"),
    iolist_to_binary(string:replace(iolist_to_binary(Larder), "ETS table", "Larder table")).

without_reason(_, Text) ->
    case string:split(Text, "specification: ") of
        [Before, _Why] -> <<(iolist_to_binary(Before))/binary, "specification">>;
        [_] -> Text
    end.

all_words(Reason, [{_, _, _, Info} | _] = Stack) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, #{module := Formatter}} ->
            ?assertEqual(larder, Formatter),
            larder:format_error(Reason, Stack);
        false ->
            larder_error:format_error(Reason, Stack)
    end.

tables(Module) ->
    Dead = Module:new(dead, []),
    Module:delete(Dead),
    Set = Module:new(set, [public]),
    Bag = Module:new(bag, [bag, public]),
    Module:insert(Set, {1, 1, x}),
    Module:insert(Bag, {1, 1}),
    DeadPid = spawn(fun() -> ok end),
    Monitor = monitor(process, DeadPid),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    {Holder, Private, Protected} = others_tables(Module),
    #{dead => Dead, set => Set, bag => Bag, ref => make_ref(), self => self(), dead_pid => DeadPid,
      keypos3 => Module:new(k3, [{keypos, 3}]),
      taken => Module:new(larder_t_taken, [named_table]),
      taken2 => Module:new(larder_t_taken2, [named_table]),
      private => Private, protected => Protected, holder => Holder}.

others_tables(Module) ->
    Self = self(),
    Holder = spawn(fun() ->
        Tables = {self(), Module:new(private, [private]), Module:new(protected, [protected])},
        Self ! {tables, Tables},
        receive stop -> ok end
    end),
    receive {tables, {Holder, _, _} = Tables} -> Tables end.

drop(Module, #{holder := Holder} = Tabs) ->
    Monitor = monitor(process, Holder),
    Holder ! stop,
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    [catch Module:delete(Tab)
     || Tab <- maps:values(maps:with([set, bag, keypos3, taken, taken2], Tabs))],
    ok.
