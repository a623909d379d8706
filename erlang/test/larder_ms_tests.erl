%% larder:fun2ms/1 at run time, as a shell uses it.
-module(larder_ms_tests).

-include_lib("eunit/include/eunit.hrl").

shell_funs_test_() ->
    [?_assertEqual({Text, in_shell("ets", Text)}, {Text, in_shell("larder", Text)})
     || Text <- ["fun({A, B}) when A > B -> A end", "fun(X) -> X end", "fun({A, A, _}) -> [A] end",
                 "fun({A}) when A =:= Bound -> {A, Bound} end", "fun({A}) -> B = A end",
                 "fun(A, B) -> A end", "fun({A}) -> foo(A) end", "fun([A]) -> A end"]].

is_a_spec_test() ->
    ?assertEqual({[{{'$1', '$2'}, [{'>', '$1', '$2'}], ['$1']}], ""},
                 in_shell("larder", "fun({A, B}) when A > B -> A end")).

compiled_fun_test() ->
    Fun = fun({A}) -> A end,
    {badarg, {ets, fun2ms, Words}} = catch_exit(fun() -> apply(ets, fun2ms, [Fun]) end),
    ?assertEqual({badarg, {larder, fun2ms, Words}}, catch_exit(fun() -> larder:fun2ms(Fun) end)).

no_fun_test() ->
    try larder:fun2ms(17) of
        _ -> ?assert(false)
    catch
        error:function_clause:Stack -> ?assertMatch([{larder, fun2ms, [17], _} | _], Stack)
    end.

catch_exit(Fun) ->
    try Fun() of Result -> {returned, Result} catch exit:Reason -> Reason end.

%% The value, and what was printed.
in_shell(Module, Fun) ->
    {ok, Tokens, _} = erl_scan:string(Module ++ ":fun2ms(" ++ Fun ++ ")."),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    larder_test_io:capture(fun() ->
        {value, Value, _} = erl_eval:exprs(Exprs, [{'Bound', 7}]),
        Value
    end).
