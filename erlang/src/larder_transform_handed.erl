%% @private
%% @doc Which parameters of a module's functions are passed to `ets' as tables, according to the
%% debug information of its beam file.
%%
%% In each function, a variable of a parameter
%%
%% <ol>
%% <li>`reaches' `ets', if it is the table in a call of `ets', or an argument of a local function
%%     whose parameter reaches `ets';</li>
%% <li>is `kept', if it occurs anywhere else but in guards: in a message, in a state, in a call of
%%     another module. Whether it reaches `ets' isn't known then.</li>
%% </ol>
%%
%% Scopes of variables aren't distinguished, and only plain renaming (`X = T') is followed.
-module(larder_transform_handed).

-export([table_position/2, parameters/1, of_file/3, takes/4, variables/1, chunks/2, forms/2]).
-export_type([parameters/0]).

-type parameters() :: none | unknown
                    | #{{atom(), arity(), Position :: pos_integer()} => reaches | kept}.
%% `none': the module isn't there, or calls no function of `ets'. `unknown': it does, and has no
%% debug information.

%% @doc The position of the argument that is the table, for a function of `ets'.
-spec table_position(atom(), arity() | unknown) -> pos_integer() | none.
table_position(Name, 3) when Name =:= foldl; Name =:= foldr -> 3;
table_position(Name, 1) when Name =:= match; Name =:= match_object; Name =:= select;
                          Name =:= select_reverse; Name =:= is_compiled_ms;
                          Name =:= match_spec_compile -> none;
table_position(Name, Arity) ->
    case Name =/= new andalso Name =/= fun2ms andalso Name =/= test_ms andalso Name =/= file2tab
        andalso Name =/= tabfile_info andalso Name =/= match_spec_run
        andalso Name =/= repair_continuation andalso Name =/= module_info
        andalso larder_transform_known:is_ets_function(Name) of
        true when Arity =/= 0 -> 1;
        _ -> none
    end.

%% @doc Reads a module from the code path. A module of OTP has no parameters that are `kept': most
%% of them call `ets' for tables of their own. If it has no debug information, the parameters are
%% those of {@link larder_transform_known:takes_a_table/1}.
-spec parameters(module()) -> parameters().
parameters(Module) ->
    case code:which(Module) of
        [_ | _] = File -> of_file(Module, File, lists:prefix(code:lib_dir() ++ "/", File));
        _ -> none
    end.

%% @doc Like parameters/1, of a beam file.
-spec of_file(module(), file:filename(), IsOfOtp :: boolean()) -> parameters().
of_file(Module, File, IsOfOtp) ->
    case chunks(File, [imports, debug_info]) of
        {ok, {_, [{imports, Imports}, {debug_info, Debug}]}} when is_list(Imports) ->
            case {lists:keymember(ets, 1, Imports), IsOfOtp} of
                {true, true} -> of_otp(Module, of_forms(Module, forms(Module, Debug)));
                {true, false} -> of_forms(Module, forms(Module, Debug));
                {false, _} -> none
            end;
        _ ->
            none
    end.

of_otp(Module, unknown) ->
    maps:from_list([{Parameter, reaches}
                    || Parameter <- larder_transform_known:takes_a_table(Module)]);
of_otp(_Module, Parameters) ->
    maps:filter(fun(_, How) -> How =:= reaches end, Parameters).

of_forms(Module, {ok, Forms}) ->
    Local = maps:from_list([{{Name, Arity}, []} || {function, _, Name, Arity, _} <- Forms]),
    Uses = lists:append([clause_uses(Module, Local, Function, Clause)
                         || {function, _, Name, Arity, Clauses} <- Forms,
                            Function <- [{Name, Arity}], Clause <- Clauses]),
    Kept = maps:from_list([{Parameter, kept} || {kept, Parameter} <- Uses]),
    Reaches = maps:from_list([{Parameter, reaches} || {reaches, Parameter} <- Uses]),
    Passed = [{From, To} || {passed, From, To} <- Uses],
    close(Passed, maps:merge(Kept, Reaches));
of_forms(_Module, none) ->
    unknown.

%% Marks the parameters that are passed as a parameter that is known to reach `ets' or to be kept.
close(Passed, Known) ->
    Found = lists:foldl(
        fun({From, To}, Acc) ->
            case {maps:get(To, Acc, none), maps:get(From, Acc, none)} of
                {none, _} -> Acc;
                {_, reaches} -> Acc;
                {How, _} -> Acc#{From => How}
            end
        end, Known, Passed),
    case Found of
        Known -> Known;
        _ -> close(Passed, Found)
    end.

clause_uses(Module, Local, {Name, Arity}, {clause, _, Patterns, _Guards, Body}) ->
    Positions = lists:zip(lists:seq(1, Arity), Patterns),
    Named = maps:from_list([{Variable, {Name, Arity, Position}}
                            || {Position, Pattern} <- Positions, Variable <- variables(Pattern)]),
    uses(Body, {Module, Local, renamed(Body, Named)}).

%% @doc The variables in a term of the source.
-spec variables(term()) -> [atom()].
variables({var, _, '_'}) -> [];
variables({var, _, Variable}) -> [Variable];
variables(Node) when is_tuple(Node) -> variables(tuple_to_list(Node));
variables([Node | Nodes]) -> variables(Node) ++ variables(Nodes);
variables(_) -> [].

renamed({match, _, {var, _, New}, {var, _, Old}}, Named) when is_map_key(Old, Named) ->
    Named#{New => maps:get(Old, Named)};
renamed(Node, Named) when is_tuple(Node) -> renamed(tuple_to_list(Node), Named);
renamed([Node | Nodes], Named) -> renamed(Nodes, renamed(Node, Named));
renamed(_, Named) -> Named.

uses({match, _, {var, _, _}, {var, _, _}}, _Context) ->
    [];
uses({clause, _, Patterns, _Guards, Body}, Context) ->
    uses(Patterns, Context) ++ uses(Body, Context);
uses({call, _, {remote, _, {atom, _, ets}, {atom, _, Name}}, Args}, Context) ->
    Position = table_position(Name, length(Args)),
    arguments(Args, fun(N) when N =:= Position -> reaches; (_) -> kept end, Context);
uses({call, _, {remote, _, {atom, _, Module}, {atom, _, Name}}, Args}, {Module, _, _} = Context) ->
    passed(Name, Args, Context);
uses({call, _, {atom, _, Name}, Args}, {_, Local, _} = Context) ->
    case is_map_key({Name, length(Args)}, Local) of
        true -> passed(Name, Args, Context);
        false -> uses(Args, Context)
    end;
uses({var, _, Variable}, {_, _, Named}) when is_map_key(Variable, Named) ->
    [{kept, maps:get(Variable, Named)}];
uses(Node, Context) when is_tuple(Node) ->
    uses(tuple_to_list(Node), Context);
uses([Node | Nodes], Context) ->
    uses(Node, Context) ++ uses(Nodes, Context);
uses(_, _Context) ->
    [].

passed(Name, Args, Context) ->
    arguments(Args, fun(N) -> {passed, {Name, length(Args), N}} end, Context).

%% The uses of the variables that are arguments, by position.
arguments(Args, How, {_, _, Named} = Context) ->
    lists:append([case Arg of
                      {var, _, Variable} when is_map_key(Variable, Named) ->
                          [use(How(N), maps:get(Variable, Named))];
                      _ ->
                          uses(Arg, Context)
                  end || {N, Arg} <- lists:zip(lists:seq(1, length(Args)), Args)]).

use({passed, To}, Parameter) -> {passed, Parameter, To};
use(How, Parameter) -> {How, Parameter}.

%% @doc Whether a function may give an argument to `ets' as a table. An argument that is only
%% `likely' a table, such as an atom, counts if the parameter is known to reach `ets'.
-spec takes(parameters(), {atom(), arity()}, pos_integer(), table | likely) -> boolean().
takes(none, _Function, _Place, _Sure) -> false;
takes(unknown, _Function, _Place, Certainty) -> Certainty =:= table;
takes(Parameters, {Name, Arity}, Position, Certainty) ->
    case Parameters of
        #{{Name, Arity, Position} := reaches} -> true;
        #{{Name, Arity, Position} := kept} -> Certainty =:= table;
        #{} -> false
    end.

%% @doc Chunks of a beam file, or `missing_chunk' each, also for one that is encrypted and whose key
%% isn't known. The module `beam_lib' reads a compressed file, such as one that was stripped, only
%% as a binary.
-spec chunks(file:filename(), [term()]) ->
    {ok, {module(), [{term(), term()}]}} | {error, term()}.
chunks(File, Names) ->
    case file:read_file(File) of
        {ok, Binary} ->
            chunks_in(Binary, Names);
        Error -> Error
    end.

chunks_in(Binary, Names) ->
    try beam_lib:chunks(Binary, Names, [allow_missing_chunks]) of
        {ok, _} = Chunks ->
            Chunks;
        {error, beam_lib, {key_missing_or_invalid, _, Encrypted}} ->
            {ok, {Module, Others}} = chunks_in(Binary, Names -- [Encrypted]),
            Found = maps:from_list([{Encrypted, missing_chunk} | Others]),
            {ok, {Module, [{Name, map_get(Name, Found)} || Name <- Names]}};
        {error, beam_lib, Why} ->
            {error, {not_a_beam, Why}}
    catch
        %% From OTP 28 on a module has its atoms in another form, which earlier releases don't know.
        error:_ ->
            {error, {not_a_beam, of_later_release}}
    end.

%% @doc The abstract code in a chunk of debug information of any compiler.
-spec forms(module(), term()) -> {ok, [tuple()]} | none.
forms(Module, {debug_info_v1, Backend, Data}) ->
    try Backend:debug_info(erlang_v1, Module, Data, []) of
        {ok, Forms} -> {ok, Forms};
        {error, _} -> none
    catch
        %% The compiler's module isn't on the code path.
        error:undef -> none
    end;
forms(_Module, _) ->
    none.
