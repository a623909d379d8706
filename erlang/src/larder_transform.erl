%% @doc A parse transform: replaces `ets' in a module by Larder.
%%
%% ```
%% -compile({parse_transform, larder_transform}).
%% '''
%%
%% or, for a whole project, `{erl_opts, [{parse_transform, larder_transform}]}' in rebar.config. The
%% source of the module isn't changed. Without the option it uses `ets' again.
%%
%% <h3>What is rewritten</h3>
%%
%% <ul>
%% <li>calls: `ets:F(...)', also in macros and records, and with
%%     a variable as `F';</li>
%% <li>`dets:to_ets/2' and `dets:from_ets/2': the replacements in `larder_dets' accept tables
%%     of Larder and of `ets';</li>
%% <li>funs: `fun ets:F/A';</li>
%% <li>calls by module, function and arguments where the module is the atom
%%     `ets': apply, the spawn family, `hibernate', `make_fun',
%%     `function_exported', and those of `proc_lib', `timer', `rpc', `erpc',
%%     `peer', and of Elixir's `Task';</li>
%% <li>imports: `-import(ets, [...])';</li>
%% <li>types: `ets:tid()', `ets:tab()', `ets:match_spec()' and the others, in
%%     specs, types and records;</li>
%% <li>`ets:fun2ms' and `larder:fun2ms' with a literal fun: they become match
%%     specifications through `ms_transform', with its checks, errors and
%%     warnings. `ms_transform.hrl' may be included as well; it isn't needed.</li>
%% </ul>
%%
%% <h3>What isn't rewritten, with a warning</h3>
%%
%% The compiler warns of code that isn't rewritten, and may refer to a table that is now in
%% Larder. Each kind of warning has a name:
%%
%% <ul>
%% <li>`missing': a function that Larder lacks;</li>
%% <li>`tuple': `{ets, F, A}', which another function may apply, or which may
%%     match a stack frame;</li>
%% <li>`module': the atom `ets' as an argument before a function's name, or in a
%%     variable that the function uses as a module;</li>
%% <li>`handed': a table is passed to a function that gives it to `ets'. The function may be of OTP
%%     or of any other module whose beam file can be found. The table may be an argument of a call,
%%     of `apply' and its like, of a tuple `{M, F, [T]}', or of the start of a `gen_server' and its
%%     like. If a variable was bound to a new table, it is enough that the other function keeps it,
%%     in a module that calls `ets'. Modules that the same options compile into the same folder
%%     aren't warned of, because they move as well;</li>
%% <li>`traced': tracing, mocking or profiling of `ets', which no longer sees
%%     these calls;</li>
%% <li>`otp_table': a call of `ets' on a table that OTP or Elixir has created, such as `ac_tab', if
%%     the table's name is in the arguments. Such a table is always in `ets'. So the call stays,
%%     also if it is one of an imported function, or by module, function and arguments.</li>
%% </ul>
%%
%% An option silences a kind, a function of the module at hand, a kind in a function, or everything:
%%
%% ```
%% -compile({larder_transform, {nowarn, [traced, {print_stack, 2}, {tuple, {init, 1}}]}}).
%% -compile({larder_transform, nowarn}).
%% '''
%%
%% A module name that is only known at run time (`Mod:insert(...)') isn't rewritten, and causes no
%% warning. Nor does a table that reaches other modules in a message, by `give_away' or through an
%% heir, in a row, or from a function's result.
%%
%% <h3>Only fun2ms</h3>
%%
%% In a module that uses both, `larder:fun2ms' and `ets:fun2ms' can be rewritten alone; all other
%% calls of `ets' stay:
%%
%% ```
%% -compile({parse_transform, larder_transform}).
%% -compile({larder_transform, keep_ets}).
%% '''
%%
%% <h3>Elixir</h3>
%%
%% `@compile {:parse_transform, :larder_transform}' in a module does the same
%% for `:ets'. Compiler options in the environment do it for a project
%% with its dependencies: docs/semantics.md has the command.
-module(larder_transform).

-export([parse_transform/2, parse_transform_info/0, format_error/1, supported/0]).

-import(larder_transform_known, [target/3]).

%% Steps:
%%  1. larder:fun2ms, and fun2ms where it is imported, are spelled ets:fun2ms;
%%  2. ms_transform replaces each by a match specification. It sees the rest
%%     of the source as it was written, so that its messages quote what the
%%     reader can find;
%%  3. ets is replaced by larder, form by form. Nothing is moved and every
%%     annotation stays, so that errors and warnings keep their places.

-define(KINDS, [missing, tuple, module, handed, traced, otp_table]).

-type name() :: {atom, atom()} | {field, atom(), atom()}.

%% The state of the walk over the forms.
-record(state, {
    file = "nofile" :: string(),
    module :: module() | undefined,
    %% Functions that this module defines, and functions that it imports, with their module: a call
    %% of one of these without a module is not the auto-imported one.
    own = #{} :: #{{atom(), arity()} => this | module()},
    %% Which parameters of this module's functions are used as a module.
    module_parameters = #{} :: #{{atom(), arity()} => [pos_integer()]},
    %% The same of the current function's funs, by the variables that they are in.
    fun_parameters = #{} :: #{{atom(), arity()} => [pos_integer()]},
    %% Kinds of warnings, functions, and kinds in functions that are silenced.
    silenced = [] :: [atom() | {atom(), arity()} | {atom(), {atom(), arity()}}],
    %% Atoms and record fields that the module uses as tables.
    names = #{} :: #{name() => []},
    %% The folder of the modules that the same command compiles with this transform, if the
    %% transform is an option of the command. These modules move as well.
    folder = none :: none | file:filename(),
    %% Beam files that aren't in the code path.
    files = #{} :: #{module() => file:filename()},
    %% Which parameters other modules give to ets.
    parameters = #{} :: #{module() => larder_transform_handed:parameters()},
    %% The current function: its name; its variables that are used as a module; those that are bound
    %% to a new table; those that are given to ets as a table.
    function :: {atom(), arity()} | undefined,
    modules = [] :: [atom()],
    tables = [] :: [atom()],
    used = [] :: [atom()],
    %% Annotations of nodes that have a warning, be it a silenced one, and should get no other.
    warned = [] :: [erl_anno:anno()],
    warnings = [] :: [{string(), [{term(), module(), term()}]}]
}).

%% @doc Called by the compiler.
-spec parse_transform([tuple()], [term()]) ->
    [tuple()] | {warning, [tuple()], list()} | {error, list(), list()}.
parse_transform(Forms, Options) ->
    case {options(Forms, Options), match_specs(Forms)} of
        {{error, Errors}, _} ->
            {error, Errors, []};
        {_, {error, _, _} = Error} ->
            Error;
        {{ok, Given}, {Forms1, Warnings}} ->
            case lists:member(keep_ets, Given) of
                true -> result(Forms1, Warnings);
                false -> rewrite_forms(Forms1, #state{silenced = silenced(Given),
                                                     folder = folder(Options),
                                                     files = files(Options)}, Warnings)
            end
    end.

%% @private
-spec parse_transform_info() -> #{error_location := column}.
parse_transform_info() ->
    #{error_location => column}.

%% @private
-spec supported() -> [{atom(), arity()}].
supported() ->
    larder_transform_known:supported().

%% @doc The text of a warning.
-spec format_error(term()) -> io_lib:chars().
format_error(Warning) ->
    larder_transform_words:text(Warning).

result(Forms, []) -> Forms;
result(Forms, Warnings) -> {warning, Forms, Warnings}.

%% ---- options ----

%% The options of the transform, {larder_transform, Options}, from the compiler's options and from
%% the source; or errors with their places.
options(Forms, Options) ->
    Given = [{none, Option} || {larder_transform, Option} <- Options] ++
            [{erl_anno:location(A), Option}
             || {attribute, A, compile, Value} <- Forms,
                {larder_transform, Option} <- flat(Value)],
    Flat = [{Location, Option} || {Location, Options1} <- Given, Option <- flat(Options1)],
    case [{Location, ?MODULE, {option, Option}}
          || {Location, Option} <- Flat, not is_option(Option)] of
        [] -> {ok, [Option || {_, Option} <- Flat]};
        Wrong -> {error, [{source_file(Forms), Wrong}]}
    end.

%% The options in nested lists. An improper list is an option by itself, and no valid one.
flat(Options) when is_list(Options) ->
    case is_proper(Options) of
        true -> lists:append([flat(Option) || Option <- Options]);
        false -> [Options]
    end;
flat(Option) ->
    [Option].

%% The guard fails for an improper list.
is_proper(List) when length(List) >= 0 -> true;
is_proper(_) -> false.

is_option(keep_ets) -> true;
is_option(nowarn) -> true;
is_option({nowarn, What}) ->
    is_proper(What) andalso
        lists:all(fun({Kind, {_, _} = Function}) -> is_kind(Kind) andalso is_function_name(Function);
                     ({_, _} = Function) -> is_function_name(Function);
                     (Kind) -> is_kind(Kind)
                  end, What);
is_option(_) -> false.

is_kind(Kind) -> lists:member(Kind, ?KINDS).

is_function_name({Name, Arity}) -> is_atom(Name) andalso is_integer(Arity).

silenced(Given) ->
    lists:append([case Option of
                      nowarn -> ?KINDS;
                      {nowarn, What} -> What;
                      keep_ets -> []
                  end || Option <- Given]).

source_file([{attribute, _, file, {File, _}} | _]) -> File;
source_file(_) -> "nofile".

%% The folder into which the same command compiles modules with this transform. The options of
%% a source precede those of the command, of which erlc, rebar3 and Mix give the folder first.
folder(Options) ->
    case lists:dropwhile(fun({outdir, _}) -> false; (_) -> true end, Options) of
        [{outdir, Folder} | After] ->
            case lists:member({parse_transform, ?MODULE}, After) of
                true -> filename:absname(Folder);
                false -> none
            end;
        [] ->
            none
    end.

%% larder_move names the modules that lie beside those that it moves.
files(Options) ->
    proplists:get_value(larder_transform_files, Options, #{}).

%% ---- 1. and 2.: fun2ms ----

match_specs(Forms) ->
    case lists:mapfoldl(spell_fun2ms(imports_fun2ms(Forms)), false, Forms) of
        {Spelled, true} -> ms_transform(Spelled);
        {_Unchanged, false} -> {Forms, []}
    end.

ms_transform(Forms) ->
    case ms_transform:parse_transform(Forms, []) of
        {error, _, _} = Error -> Error;
        {warning, Forms1, Warnings} -> {Forms1, Warnings};
        Forms1 -> {Forms1, []}
    end.

imports_fun2ms(Forms) ->
    lists:any(
        fun({attribute, _, import, {Module, Functions}}) when Module =:= ets; Module =:= larder ->
                lists:member({fun2ms, 1}, Functions);
           (_) ->
                false
        end,
        Forms).

%% The accumulator says whether a fun2ms was found.
spell_fun2ms(Imported) ->
    fun({function, A, Name, Arity, Clauses}, Any) ->
            {Clauses1, Any1} = walk(fun(Node, Acc) -> fun2ms_node(Node, Imported, Acc) end, Clauses,
                                    Any),
            {{function, A, Name, Arity, Clauses1}, Any1};
       (Form, Any) ->
            {Form, Any}
    end.

fun2ms_node({call, A, {remote, A1, {atom, A2, Module}, {atom, _, fun2ms} = Name}, [_] = Args}, _, _)
  when Module =:= larder; Module =:= ets ->
    {{call, A, {remote, A1, {atom, A2, ets}, Name}, Args}, true};
fun2ms_node({call, A, {atom, A1, fun2ms} = Name, [_] = Args}, true, _Any) ->
    {{call, A, {remote, A1, {atom, A1, ets}, Name}, Args}, true};
fun2ms_node(Node, _Imported, Any) ->
    {Node, Any}.

%% ---- 3.: ets becomes larder ----

rewrite_forms(Forms, State, Warnings0) ->
    {_, Names} = walk(fun names/2, [Form || {function, _, _, _, _} = Form <- Forms], #{}),
    Start = State#state{own = own_functions(Forms), names = Names,
                      module_parameters = module_parameters(Forms)},
    {Rewritten, #state{warnings = Warnings}} = lists:mapfoldl(fun form/2, Start, Forms),
    result(lists:append(Rewritten), Warnings0 ++ lists:reverse(Warnings)).

own_functions(Forms) ->
    maps:from_list(
        [{{Name, Arity}, this} || {function, _, Name, Arity, _} <- Forms] ++
        [{Function, Module} || {attribute, _, import, {Module, Functions}} <- Forms,
                               Module =/= erlang, Function <- Functions]).

%% Rewrites a form to a list of forms. An import may become two: functions that move, and others.
form({attribute, _, file, {File, _}} = Form, State) ->
    {[Form], State#state{file = File}};
form({attribute, _, module, Module} = Form, State) ->
    {[Form], State#state{module = Module}};
form({attribute, A, import, {Module, Functions}}, State) when Module =:= ets; Module =:= dets ->
    import(A, Module, Functions, State#state{function = undefined});
%% A type, a record or a function may have the name of a function of ets. So the walk begins below
%% the name.
form({attribute, A, Kind, {Name, Body, Params}}, State)
  when Kind =:= type; Kind =:= opaque; Kind =:= nominal ->
    {Body1, State1} = walk(fun ets_node/2, Body, State),
    {[{attribute, A, Kind, {Name, Body1, Params}}], State1};
form({attribute, A, Kind, {Name, Body}}, State)
  when Kind =:= record; Kind =:= spec; Kind =:= callback ->
    {Body1, State1} = walk(fun ets_node/2, Body, State#state{function = undefined}),
    {[{attribute, A, Kind, {Name, Body1}}], State1};
form({function, A, Name, Arity, Clauses}, State) ->
    InFunction = State#state{function = {Name, Arity}},
    {Clauses1, State1} = lists:mapfoldl(fun clause/2, InFunction, Clauses),
    {[{function, A, Name, Arity, Clauses1}], State1};
form(Form, State) ->
    {[Form], State}.

import(A, Module, Functions, State) ->
    Targets = [{Function, target(Module, Name, Arity)} || {Name, Arity} = Function <- Functions],
    Part = fun(Is) -> [Function || {Function, Target} <- Targets, Is(Target)] end,
    Moved = case Module of ets -> larder; dets -> larder_dets end,
    {[{attribute, A, import, {From, Some}}
      || {From, [_ | _] = Some} <- [{Moved, Part(fun(T) -> T =:= {moved, Moved} end)},
                                    {Module, Part(fun is_atom/1)}]],
     lists:foldl(fun({Name, Arity}, State1) -> warn(A, {missing, Name, Arity}, State1) end, State,
                 Part(fun(T) -> T =:= missing end))}.

%% The scope of a variable is a clause.
clause(Clause, State) ->
    {_, {Modules, Tables, Used}} = walk(fun variables/2, Clause, {[], [], []}),
    {_, Funs} = walk(fun fun_parameters/2, Clause, []),
    walk(fun ets_node/2, Clause, State#state{modules = Modules, tables = Tables, used = Used,
                                             fun_parameters = module_positions(Funs)}).

variables({remote, _, {var, _, Variable}, _} = Node, {Modules, Tables, Used}) ->
    {Node, {[Variable | Modules], Tables, Used}};
variables({function, {var, _, Variable}, _, _} = Node, {Modules, Tables, Used}) ->
    {Node, {[Variable | Modules], Tables, Used}};
variables({match, _, {var, _, Variable}, Made} = Node, {Modules, Tables, Used}) ->
    case makes_a_table(Made) of
        true -> {Node, {Modules, [Variable | Tables], Used}};
        false -> {Node, {Modules, Tables, Used}}
    end;
variables(Node, {Modules, Tables, Used} = Found) ->
    case table_of_call(Node) of
        {var, _, Variable} -> {Node, {Modules, Tables, [Variable | Used]}};
        _ -> {Node, Found}
    end.

%% The table in a call of ets.
table_of_call({call, _, {remote, _, {atom, _, ets}, {atom, _, Name}}, Args}) ->
    case larder_transform_handed:table_position(Name, length(Args)) of
        none -> none;
        Position -> lists:nth(Position, Args)
    end;
table_of_call(_) ->
    none.

%% Named tables that the module makes, and atoms and record fields that it gives to ets as tables.
names({call, _, {remote, _, {atom, _, ets}, {atom, _, new}}, [Named, Options]} = Node, Names) ->
    {_, IsNamed} = walk(fun({cons, _, {atom, _, named_table}, _} = Cons, _) -> {Cons, true};
                           (Other, Is) -> {Other, Is}
                        end, Options, false),
    {Node, case IsNamed of true -> add_name(Named, Names); false -> Names end};
names(Node, Names) ->
    {Node, add_name(table_of_call(Node), Names)}.

add_name({atom, _, Name}, Names) -> Names#{{atom, Name} => []};
add_name({record_field, _, _, Record, {atom, _, Field}}, Names) ->
    Names#{{field, Record, Field} => []};
add_name(_, Names) -> Names.

makes_a_table({call, _, {remote, _, {atom, _, ets}, {atom, _, Name}}, _}) ->
    Name =:= new orelse Name =:= whereis;
makes_a_table(_) ->
    false.

%% Which parameters of a function are a variable that a clause uses as a module.
module_parameters(Forms) ->
    module_positions([{{Name, Arity}, Clauses} || {function, _, Name, Arity, Clauses} <- Forms]).

%% A fun is called by the variable that it is bound to, or by its own name.
fun_parameters({match, _, {var, _, Variable}, {'fun', _, {clauses, Clauses}}} = Node, Funs) ->
    {Node, [named_fun(Variable, Clauses) | Funs]};
fun_parameters({match, _, {var, _, Variable}, {named_fun, _, _, Clauses}} = Node, Funs) ->
    {Node, [named_fun(Variable, Clauses) | Funs]};
fun_parameters({named_fun, _, Name, Clauses} = Node, Funs) ->
    {Node, [named_fun(Name, Clauses) | Funs]};
fun_parameters(Node, Funs) ->
    {Node, Funs}.

named_fun(Name, [{clause, _, Params, _, _} | _] = Clauses) ->
    {{Name, length(Params)}, Clauses}.

module_positions(Functions) when is_list(Functions) ->
    maps:from_list(
        [{Function, Positions}
         || {Function, Clauses} <- Functions,
            [_ | _] = Positions <- [lists:usort(lists:flatmap(fun module_positions/1, Clauses))]]);
module_positions({clause, _, Params, _, _} = Clause) ->
    {_, {Modules, _, _}} = walk(fun variables/2, Clause, {[], [], []}),
    [Position || {Position, {var, _, Variable}} <- numbered(Params),
                 lists:member(Variable, Modules)].

numbered(List) ->
    lists:zip(lists:seq(1, length(List)), List).

%% ---- nodes ----

ets_node({call, A, {remote, A1, {atom, A2, Module}, Name} = Callee, Args} = Node, State) ->
    case call_target(Module, Name, length(Args), Args) of
        {moved, To} -> {{call, A, {remote, A1, {atom, A2, To}, Name}, Args}, State};
        {stays, Warning} -> {Node, warn(A1, Warning, State)};
        stays -> other_call(A, Callee, Args, handed(A1, Module, atom_of(Name), Args, State))
    end;
ets_node({call, A, {atom, A1, Name} = Callee, Args}, #state{own = Own} = State)
  when map_get({Name, length(Args)}, Own) =:= ets ->
    case call_target(ets, Callee, length(Args), Args) of
        %% The import moves. So the call names the module.
        {stays, {otp_table, _} = Warning} ->
            {{call, A, {remote, A1, {atom, A1, ets}, Callee}, Args}, warn(A1, Warning, State)};
        _ ->
            other_call(A, Callee, Args, State)
    end;
ets_node({call, A, Callee, Args}, State) ->
    other_call(A, Callee, Args, State);
ets_node({'fun', A, {function, Module, Name, Arity}} = Node, State) ->
    case target(atom_of(Module), atom_of(Name), arity_of(Arity)) of
        {moved, To} -> {{'fun', A, {function, spelled(Module, To), Name, Arity}}, State};
        missing -> {Node, warn(A, {missing, atom_of(Name), arity_of(Arity)}, State)};
        stays -> {Node, State}
    end;
ets_node({remote_type, A, [{atom, A1, ets}, {atom, A2, Type}, Params]} = Node, State) ->
    case larder_transform_known:types() of
        #{Type := Ours} ->
            {{remote_type, A, [{atom, A1, larder}, {atom, A2, Ours}, Params]}, State};
        #{} -> {Node, State}
    end;
ets_node({tuple, A, [{atom, _, ets}, {atom, _, Name}, _ | Rest]} = Node,
         #state{warned = Warned} = State)
  when length(Rest) < 2 ->
    case larder_transform_known:is_ets_function(Name) andalso not lists:member(A, Warned) of
        true -> {Node, warn(A, {tuple, Name}, State)};
        false -> {Node, State}
    end;
%% A module, function and arguments that another function may apply, such as in a child
%% specification.
ets_node({tuple, A, [{atom, _, Module}, {atom, _, Name}, Args]} = Node, State) ->
    {Node, handed_in_list(A, Module, Name, Args, State)};
ets_node({match, A, {var, _, Variable}, {atom, _, ets}} = Node, #state{modules = Modules} = State) ->
    case lists:member(Variable, Modules) of
        true -> {Node, warn(A, {module, {variable, Variable}}, State)};
        false -> {Node, State}
    end;
ets_node(Node, State) ->
    {Node, State}.

%% The atom of a node, if it is one. Older tools write fun ets:F/A with bare atoms.
atom_of({atom, _, Atom}) -> Atom;
atom_of(Atom) when is_atom(Atom) -> Atom;
atom_of(_) -> unknown.

spelled({atom, A, _}, To) -> {atom, A, To};
spelled(_, To) -> To.

%% The arity of a node, if it is one.
arity_of({integer, _, Arity}) -> Arity;
arity_of(Arity) when is_integer(Arity) -> Arity;
arity_of(_) -> unknown.

%% Where a call goes, from its arguments, as far as they are known. It may stay with a warning.
-spec call_target(module(), Name :: tuple(), arity() | unknown, Args :: [tuple()]) ->
    {moved, module()} | {stays, Warning :: tuple()} | stays.
call_target(Module, Name, Arity, Args) ->
    case target(Module, atom_of(Name), Arity) of
        {moved, larder} ->
            case otp_table(atom_of(Name), Arity, Args) of
                none -> {moved, larder};
                Table -> {stays, {otp_table, Table}}
            end;
        missing -> {stays, {missing, atom_of(Name), Arity}};
        Other -> Other
    end.

%% The table of a call of ets, if OTP or Elixir has created it. If the function isn't known, the
%% table is assumed to be the first argument.
otp_table(Name, Arity, Args) ->
    Position = case Name of
                   unknown -> 1;
                   _ -> larder_transform_handed:table_position(Name, Arity)
               end,
    case [Table || {N, {atom, _, Table}} <- numbered(Args), N =:= Position,
                   larder_transform_known:is_otp_table(Table)] of
        [Table] -> Table;
        [] -> none
    end.

%% A call of another function: rewrites calls of ets that it applies, and warns if it uses ets or a
%% table in another way.
other_call(A, Callee, Args, State) ->
    {Module, Name} = called(Callee, length(Args), State),
    Positions = larder_transform_known:module_arg_positions(Module, Name, length(Args)),
    {Args1, State1} = arguments(Positions, Args, State),
    Tuples = larder_transform_known:mfa_tuple_position(Module, Name, length(Args)),
    {Args2, State2} = in_tuple(Tuples, Args1, State1),
    State3 = lists:foldl(fun(Look, Acc) -> Look(Acc) end, State2,
                        [fun(S) -> parameters(A, Callee, Args2, S) end,
                         fun(S) -> started(A, Module, Name, Args2, S) end,
                         fun(S) -> applied_table(A, Positions, Args2, S) end,
                         fun(S) -> traced(A, Module, Name, Args2, S) end]),
    %% If none of these has warned, look for ets before a function's name.
    State4 = case State3#state{parameters = State#state.parameters} of
                State -> ets_before_function(Args2, State3);
                _ -> State3
            end,
    {exporter(Module, Name, Args, {call, A, Callee, Args2}), State4}.

%% Only a module that is loaded exports anything: `ets' always is, Larder from its first call on.
exporter(erlang, function_exported, [{atom, _, From} | _], {call, A, _, [{atom, _, To} | _]} = Call)
  when From =/= To ->
    Anno = erl_anno:set_generated(true, A),
    Loads = {call, Anno, {remote, Anno, {atom, Anno, code}, {atom, Anno, ensure_loaded}},
             [{atom, Anno, To}]},
    {block, Anno, [{match, Anno, {var, Anno, '_'}, Loads}, Call]};
exporter(_Module, _Name, _Args, Call) ->
    Call.

%% The module and the function of a call, as far as they are known. For a function of this module
%% the module is unknown.
called({remote, _, Module, Name}, _Arity, _State) ->
    {atom_of(Module), atom_of(Name)};
called({atom, _, Name}, Arity, #state{own = Own}) ->
    case maps:is_key({Name, Arity}, Own) orelse not erl_internal:bif(Name, Arity) of
        true -> {unknown, Name};
        false -> {erlang, Name}
    end;
called(_, _, _) ->
    {unknown, unknown}.

%% ---- calls by module, function and arguments ----

%% Rewrites the module at the first of the positions that has ets or dets.
arguments([], Args, State) ->
    {Args, State};
arguments([Position | Positions], Args, State) ->
    case lists:split(min(Position - 1, length(Args)), Args) of
        {Before, [{atom, A, Module}, Name, Last | After]} when Module =:= ets; Module =:= dets ->
            case {is_list_form(Name), applied_target(Module, Name, Last)} of
                {true, _} ->
                    %% This ets is a function's name, and its arguments follow.
                    {Args, State};
                {false, {moved, To}} ->
                    {Before ++ [{atom, A, To}, Name, Last | After], State};
                {false, {stays, Warning}} ->
                    {Args, warn_once(A, A, Warning, State)};
                {false, stays} ->
                    {Args, State}
            end;
        _ ->
            arguments(Positions, Args, State)
    end.

applied_target(Module, Name, Last) ->
    call_target(Module, Name, applied_arity(Last), elements(Last)).

is_list_form({nil, _}) -> true;
is_list_form({cons, _, _, _}) -> true;
is_list_form(_) -> false.

%% The arity, from the third of module, function, arguments: a list, or an arity for make_fun and
%% function_exported.
applied_arity(Last) ->
    case arity_of(Last) of
        unknown -> list_length(Last, 0);
        Arity -> Arity
    end.

list_length({nil, _}, N) -> N;
list_length({cons, _, _, Tail}, N) -> list_length(Tail, N + 1);
list_length(_, _) -> unknown.

%% A tuple {ets, F, ...} that the function is known to apply, or a list of them.
in_tuple(none, Args, State) ->
    {Args, State};
in_tuple(Position, Args, State) ->
    {Before, [Applied | After]} = lists:split(Position - 1, Args),
    {Applied1, State1} = applied(Applied, After, State),
    {Before ++ [Applied1 | After], State1}.

applied({tuple, _, [{atom, _, ets}, Name, Last]} = Tuple, _After, State) ->
    applied_tuple(Tuple, [applied_target(ets, Name, Last)], State);
%% The function is called with each element of a list before the other arguments.
applied({tuple, _, [{atom, _, ets}, Name]} = Tuple, [Others, Firsts], State) ->
    Target = fun(First) -> applied_target(ets, Name, {cons, none, First, Others}) end,
    applied_tuple(Tuple, lists:map(Target, [{var, none, '_'} | elements(Firsts)]), State);
applied({cons, A, Head, Tail}, After, State) ->
    {Head1, State1} = applied(Head, After, State),
    {Tail1, State2} = applied(Tail, After, State1),
    {{cons, A, Head1, Tail1}, State2};
applied(Other, _After, State) ->
    {Other, State}.

%% The tuple stays if one of its calls does.
applied_tuple({tuple, A, [{atom, A1, ets} | Rest]} = Tuple, Targets, State) ->
    case [Warning || {stays, Warning} <- Targets] of
        [] -> {{tuple, A, [{atom, A1, larder} | Rest]}, State};
        [Warning | _] -> {Tuple, warn_once(A, A1, Warning, State)}
    end.

%% ---- warnings ----

%% ets is an argument of a function of this module, or of a fun, that uses the parameter as a
%% module.
parameters(A, {atom, _, Name}, Args, #state{module_parameters = Parameters} = State) ->
    parameters(A, parameter, Name, Args, Parameters, State);
parameters(A, {var, _, Variable}, Args, #state{fun_parameters = Parameters} = State) ->
    parameters(A, fun_parameter, Variable, Args, Parameters, State);
parameters(_A, _Callee, _Args, State) ->
    State.

parameters(A, Kind, Name, Args, Parameters, State) ->
    Positions = maps:get({Name, length(Args)}, Parameters, []),
    case [Position || {Position, {atom, _, ets}} <- numbered(Args),
                      lists:member(Position, Positions)] of
        [] -> State;
        _ -> warn(A, {module, {Kind, Name, length(Args)}}, State)
    end.

%% ets comes before the name of one of its functions, in a call that isn't known.
ets_before_function([{atom, A, ets}, {atom, _, Name} | Rest], State) ->
    case larder_transform_known:is_ets_function(Name) of
        true -> ets_before_function(Rest, warn(A, {module, {argument, Name}}, State));
        false -> ets_before_function(Rest, State)
    end;
ets_before_function([_ | Rest], State) ->
    ets_before_function(Rest, State);
ets_before_function([], State) ->
    State.

traced(A, Module, Name, [First | _], State) ->
    Of = case First of
             {atom, _, ets} -> A;
             {tuple, A1, [{atom, _, ets} | _]} -> A1;
             _ -> none
         end,
    case Of =/= none andalso larder_transform_known:inspects_module(Module, Name) of
        true -> warn_once(Of, A, {traced, Module, Name}, State);
        false -> State
    end;
traced(_A, _Module, _Name, [], State) ->
    State.

%% A table is passed to a function of another module that gives it to ets, as an argument of a call.
handed(A, Module, Name, Args, State) ->
    Function = {Name, length(Args)},
    Tables = [{Position, Certainty}
              || {Position, Arg} <- numbered(Args),
                 Certainty <- [table_certainty(Arg, State)], Certainty =/= no],
    tables_handed(A, Module, Function, Tables, State).

%% The same for tables whose positions and certainty (`table_certainty/2') are known.
tables_handed(_A, Module, {Name, _}, Tables, #state{module = This} = State)
  when Tables =:= []; Module =:= This; Module =:= erlang; not is_atom(Module); Name =:= unknown ->
    State;
tables_handed(A, Module, {Name, Arity} = Function, Tables, State) ->
    {Parameters, State1} = parameters_of(Module, State),
    case [Position || {Position, Certainty} <- Tables,
                      larder_transform_handed:takes(Parameters, Function, Position, Certainty)] of
        [] -> State1;
        _ -> warn(A, {handed, Module, Name, Arity}, State1)
    end.

parameters_of(Module, #state{parameters = Known, folder = Folder, files = Files} = State) ->
    case Known of
        #{Module := Parameters} ->
            {Parameters, State};
        #{} ->
            Parameters = case {Files, moves_as_well(Module, Folder)} of
                             {#{Module := File}, _} ->
                                 larder_transform_handed:of_file(Module, File, false);
                             {#{}, true} -> none;
                             {#{}, false} -> larder_transform_handed:parameters(Module)
                         end,
            {Parameters, State#state{parameters = Known#{Module => Parameters}}}
    end.

moves_as_well(_Module, none) ->
    false;
moves_as_well(Module, Folder) ->
    case code:which(Module) of
        [_ | _] = File -> filename:dirname(filename:absname(File)) =:= Folder;
        _ -> false
    end.

%% A call by module, function and arguments.
applied_table(A, Positions, Args, State) ->
    case [Applied || Position <- Positions,
                     [{atom, _, _}, {atom, _, _}, _] = Applied <- [lists:sublist(Args, Position, 3)]] of
        [[{atom, _, Module}, {atom, _, Name}, Last] | _] ->
            handed_in_list(A, Module, Name, Last, State);
        [] ->
            State
    end.

%% The same for the list of arguments of apply and its like.
handed_in_list(A, Module, Name, List, State) ->
    case list_length(List, 0) of
        unknown -> State;
        _ -> handed(A, Module, Name, elements(List), State)
    end.

%% The elements of a list, as far as they are written one by one.
elements({cons, _, Head, Tail}) -> [Head | elements(Tail)];
elements(_) -> [].

%% A process of a behaviour is started with a table in its argument.
started(A, Behaviour, Name, Args, State) ->
    case larder_transform_known:callback_arg_position(Behaviour, Name, length(Args)) of
        none ->
            State;
        Position ->
            case {lists:nth(Position, Args), has_table(lists:nth(Position + 1, Args), State)} of
                {{atom, _, Module}, true} ->
                    tables_handed(A, Module, {init, 1}, [{1, table}], State);
                _ ->
                    State
            end
    end.

has_table(Term, #state{tables = Tables}) ->
    lists:any(fun(Variable) -> lists:member(Variable, Tables) end,
              larder_transform_handed:variables(Term)).

%% Whether a term is a table: `table' if it is bound to a new one, `likely' if it is used as one
%% elsewhere.
table_certainty({var, _, Variable}, #state{tables = Tables, used = Used}) ->
    case {lists:member(Variable, Tables), lists:member(Variable, Used)} of
        {true, _} -> table;
        {false, true} -> likely;
        {false, false} -> no
    end;
table_certainty({atom, _, Name}, #state{names = Names}) -> likely({atom, Name}, Names);
table_certainty({record_field, _, _, Record, {atom, _, Field}}, #state{names = Names}) ->
    likely({field, Record, Field}, Names);
table_certainty(Arg, _State) ->
    case makes_a_table(Arg) of
        true -> table;
        false -> no
    end.

likely(Name, Names) ->
    case Names of
        #{Name := _} -> likely;
        #{} -> no
    end.

%% Warns of a node that should get no other warning.
warn_once(Node, Anno, Warning, #state{warned = Warned} = State) ->
    warn(Anno, Warning, State#state{warned = [Node | Warned]}).

warn(Anno, Warning, #state{file = File, silenced = Silenced, function = Function} = State) ->
    Kind = element(1, Warning),
    case lists:any(fun(Of) -> lists:member(Of, Silenced) end, [Kind, Function, {Kind, Function}]) of
        true ->
            State;
        false ->
            Located = {File, [{erl_anno:location(Anno), ?MODULE, Warning}]},
            State#state{warnings = [Located | State#state.warnings]}
    end.

%% ---- the walk ----

%% Calls Visit with each node, parents first, and continues with the children of the result. Visit
%% isn't called with constants, since a string is a list of integers.
walk(_Visit, {Kind, _, _} = Constant, Acc)
  when Kind =:= string; Kind =:= atom; Kind =:= integer; Kind =:= char; Kind =:= float;
  Kind =:= var ->
    {Constant, Acc};
walk(Visit, Node, Acc) when is_tuple(Node) ->
    {Node1, Acc1} = Visit(Node, Acc),
    {Parts, Acc2} = walk_each(Visit, tuple_to_list(Node1), Acc1),
    {list_to_tuple(Parts), Acc2};
walk(Visit, Nodes, Acc) when is_list(Nodes) ->
    walk_each(Visit, Nodes, Acc);
walk(_Visit, Other, Acc) ->
    {Other, Acc}.

walk_each(Visit, [Node | Nodes], Acc) ->
    {Node1, Acc1} = walk(Visit, Node, Acc),
    {Nodes1, Acc2} = walk_each(Visit, Nodes, Acc1),
    {[Node1 | Nodes1], Acc2};
walk_each(_Visit, Tail, Acc) ->
    {Tail, Acc}.
