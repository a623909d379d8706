%% @private
%% @doc `larder:fun2ms/1' at run time: a fun that was typed in the shell
%% becomes a match specification.
%%
%% In compiled code the call does not reach this module: the parse transform
%% `larder_transform' (or `ms_transform', for what is spelled `ets:fun2ms')
%% has replaced it. A compiled fun can't be taken apart, so one that does
%% reach it is an error, with the words of `ets'.
-module(larder_ms).

-export([fun2ms/1]).

%% @doc The match specification of a shell fun. If the fun can't be
%% translated, prints why and gives `{error, transform_error}'.
%%
%% Errors: exits with `{badarg, _}' for a fun that was compiled;
%% `function_clause' for what is no fun.
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

%% A sentence as a list of atoms: part of what ets promises.
compiled_fun() ->
    [function, called, with, real, 'fun', should, be, transformed, with,
     parse_transform, 'or', called, with, a, 'fun', generated, in, the, shell].
