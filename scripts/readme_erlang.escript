#!/usr/bin/env escript
%%! -noinput
%% readme_erlang.escript FILE EBIN: runs the blocks that FILE marks as Erlang, as a shell would; a
%% match that fails is an error.
main([File, Ebin]) ->
    true = code:add_patha(Ebin),
    {ok, Text} = file:read_file(File),
    {match, Blocks} = re:run(Text, "```erlang\n(.*?)```", [global, dotall, {capture, [1], list}]),
    [run(Block) || [Block] <- Blocks],
    io:format("~b blocks of ~ts ran~n", [length(Blocks), File]).

run(Block) ->
    {ok, Tokens, _} = erl_scan:string(Block),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, _} = erl_eval:exprs(Expressions, erl_eval:new_bindings()).
