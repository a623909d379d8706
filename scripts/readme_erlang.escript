#!/usr/bin/env escript
%%! -noinput
%% readme_erlang.escript FILE EBIN...: runs the blocks that FILE marks as Erlang. A block that is a
%% module is compiled and loaded. Others run as in a shell; a match that fails is an error.
main([File | Ebins]) ->
    ok = code:add_pathsa(Ebins),
    {ok, Text} = file:read_file(File),
    {match, Blocks} = re:run(Text, "```erlang\n(.*?)```", [global, dotall, {capture, [1], list}]),
    [run(Block) || [Block] <- Blocks],
    io:format("~b blocks of ~ts ran~n", [length(Blocks), File]).

run("-module(" ++ _ = Source) ->
    {ok, Tokens, _} = erl_scan:string(Source),
    {ok, Module, Beam} = compile:forms(forms(Tokens), [report, warnings_as_errors]),
    {module, Module} = code:load_binary(Module, "", Beam);
run(Block) ->
    {ok, Tokens, _} = erl_scan:string(Block),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, _} = erl_eval:exprs(Expressions, erl_eval:new_bindings()).

forms([]) ->
    [];
forms(Tokens) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    [element(2, {ok, _} = erl_parse:parse_form(Form ++ [Dot])) | forms(Rest)].
