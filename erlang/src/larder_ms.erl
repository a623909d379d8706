%% @private
%% @doc `larder:fun2ms/1' at run time: translates a fun of the shell into a match specification.
%%
%% In compiled code, the parse transform `larder_transform' replaces the call (`ms_transform' those
%% of `ets:fun2ms'). A compiled fun can't be translated at run time. It causes the error of `ets'.
-module(larder_ms).

-export([fun2ms/1]).

%% @doc Returns the match specification of a shell fun. If the fun can't be translated, prints why
%% and returns `{error, transform_error}'. Exits with `{badarg, _}' if the fun was compiled, and
%% fails with `function_clause' if the argument isn't a fun.
-spec fun2ms(function()) -> larder:match_spec() | {error, transform_error}.
fun2ms(Fun) when is_function(Fun) ->
    case erl_eval:fun_data(Fun) of
        {fun_data, Bindings, Clauses} -> translate(Clauses, Bindings);
        _ -> exit({badarg, {larder, fun2ms, compiled_fun()}})
    end;
fun2ms(NoFun) ->
    erlang:raise(error, function_clause, [{larder, fun2ms, [NoFun], []}]).

translate(Clauses, Bindings) ->
    case ms_transform:transform_from_shell(ets, Clauses, Bindings) of
        {error, [{_File, [{_Location, _Module, What} | _]} | _], _Warnings} ->
            io:format("Error: ~ts~n", [ms_transform:format_error(What)]),
            {error, transform_error};
        Spec ->
            Spec
    end.

%% The reason is a sentence as a list of atoms, as in ets.
compiled_fun() ->
    [function, called, with, real, 'fun', should, be, transformed, with,
     parse_transform, 'or', called, with, a, 'fun', generated, in, the, shell].
