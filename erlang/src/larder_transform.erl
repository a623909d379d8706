%% @doc A parse transform: a module that says `ets' uses Larder.
%%
%% ```
%% -compile({parse_transform, larder_transform}).
%% '''
%%
%% or, for a whole project, `{erl_opts, [{parse_transform, larder_transform}]}'
%% in rebar.config. The module's source stays as it is; remove the option and
%% it uses ETS again.
%%
%% <h3>What is rewritten</h3>
%%
%% <ul>
%% <li>calls: `ets:F(...)', whatever macro or record they come from, also with
%%     a variable as `F';</li>
%% <li>funs: `fun ets:F/A';</li>
%% <li>calls by module, function and arguments where the module is the atom
%%     `ets': apply, the spawn family, `hibernate', `make_fun',
%%     `function_exported', and those of `proc_lib', `timer', `rpc' and `erpc';</li>
%% <li>imports: `-import(ets, [...])';</li>
%% <li>types: `ets:tid()', `ets:tab()', `ets:match_spec()' and the others, in
%%     specs, types and records;</li>
%% <li>`ets:fun2ms' and `larder:fun2ms' with a literal fun: they become match
%%     specifications by way of `ms_transform', with its checks, errors and
%%     warnings. `ms_transform.hrl' may be included as well; it isn't needed.</li>
%% </ul>
%%
%% What can't be seen at compile time stays: a module name in a variable
%% (`Mod:insert(...)'), or `ets' in a tuple that somebody else applies, as in
%% a supervisor's child specification.
%%
%% A function that Larder lacks stays a call of `ets', and the compiler warns.
%%
%% <h3>Only fun2ms</h3>
%%
%% A module that works with both may ask for `larder:fun2ms' alone; every
%% `ets' in it then stays:
%%
%% ```
%% -compile({parse_transform, larder_transform}).
%% -compile({larder_transform, keep_ets}).
%% '''
%%
%% <h3>Elixir</h3>
%%
%% Parse transforms are for Erlang modules. In Elixir write `:larder' for
%% `:ets', or use the module `Larder', which has the same functions with
%% documentation. To switch a whole module, keep the name in an attribute
%% (`@ets :larder', then `@ets.insert(tab, obj)').
-module(larder_transform).

-export([parse_transform/2, parse_transform_info/0, format_error/1, supported/0]).

%% Steps:
%%  1. larder:fun2ms, and fun2ms where it is imported, are spelled ets:fun2ms;
%%  2. ms_transform replaces each by a match specification. It sees the rest
%%     of the source as it was written, so that its messages quote what the
%%     reader can find;
%%  3. ets is replaced by larder, form by form. Nothing is moved and every
%%     annotation stays, so that errors and warnings keep their places.

%% A state of the walk over the forms.
-record(walk, {
    file = "nofile" :: string(),
    %% Functions that this module defines or imports: a call of one of these
    %% without a module is not the auto-imported one.
    own = #{} :: #{{atom(), arity()} => []},
    warnings = [] :: [{string(), [{term(), module(), term()}]}]
}).

%% @doc Called by the compiler.
-spec parse_transform([tuple()], [term()]) ->
    [tuple()] | {warning, [tuple()], list()} | {error, list(), list()}.
parse_transform(Forms, Options) ->
    case match_specs(Forms) of
        {error, _, _} = Error ->
            Error;
        {Forms1, Warnings} ->
            case keeps_ets(Forms, Options) of
                true -> result(Forms1, Warnings);
                false -> rewrite_forms(Forms1, Warnings)
            end
    end.

%% @private
-spec parse_transform_info() -> #{error_location := column}.
parse_transform_info() ->
    #{error_location => column}.

%% @doc The text of a warning.
-spec format_error(term()) -> io_lib:chars().
format_error({missing, Function, Arity}) ->
    io_lib:format("larder has no function ~tw/~w, this stays a call of ets", [Function, Arity]);
format_error(Other) ->
    io_lib:format("~tp", [Other]).

result(Forms, []) -> Forms;
result(Forms, Warnings) -> {warning, Forms, Warnings}.

keeps_ets(Forms, Options) ->
    InSource = [Given || {attribute, _, compile, Given} <- Forms],
    lists:member({larder_transform, keep_ets}, lists:flatten([Options | InSource])).

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

%% The accumulator tells whether there is any.
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

rewrite_forms(Forms, Warnings0) ->
    Start = #walk{own = own_functions(Forms)},
    {Rewritten, #walk{warnings = Warnings}} = lists:mapfoldl(fun form/2, Start, Forms),
    result(lists:append(Rewritten), Warnings0 ++ lists:reverse(Warnings)).

own_functions(Forms) ->
    maps:from_list(
        [{{Name, Arity}, []} || {function, _, Name, Arity, _} <- Forms] ++
        [{Function, []} || {attribute, _, import, {Module, Functions}} <- Forms,
                           Module =/= erlang, Function <- Functions]).

%% One form becomes a list of forms: an import may have to be parted.
form({attribute, _, file, {File, _}} = Form, Walk) ->
    {[Form], Walk#walk{file = File}};
form({attribute, A, import, {ets, Functions}}, Walk) ->
    {Here, Missing} = lists:partition(fun is_supported/1, Functions),
    {[{attribute, A, import, {Module, Part}}
      || {Module, [_ | _] = Part} <- [{larder, Here}, {ets, Missing}]],
     lists:foldl(fun({Name, Arity}, Walk1) -> warn(A, Name, Arity, Walk1) end, Walk, Missing)};
%% A type, a record or a function may have any name: only what is below the
%% name is walked.
form({attribute, A, Kind, {Name, Body, Params}}, Walk)
  when Kind =:= type; Kind =:= opaque; Kind =:= nominal ->
    {Body1, Walk1} = walk(fun ets_node/2, Body, Walk),
    {[{attribute, A, Kind, {Name, Body1, Params}}], Walk1};
form({attribute, A, Kind, {Name, Body}}, Walk)
  when Kind =:= record; Kind =:= spec; Kind =:= callback ->
    {Body1, Walk1} = walk(fun ets_node/2, Body, Walk),
    {[{attribute, A, Kind, {Name, Body1}}], Walk1};
form({function, A, Name, Arity, Clauses}, Walk) ->
    {Clauses1, Walk1} = walk(fun ets_node/2, Clauses, Walk),
    {[{function, A, Name, Arity, Clauses1}], Walk1};
form(Form, Walk) ->
    {[Form], Walk}.

ets_node({call, A, {remote, A1, {atom, A2, ets}, Name}, Args} = Node, Walk) ->
    case supports(Name, length(Args)) of
        true -> {{call, A, {remote, A1, {atom, A2, larder}, Name}, Args}, Walk};
        {false, Function, Arity} -> {Node, warn(A1, Function, Arity, Walk)}
    end;
ets_node({call, A, Callee, Args}, Walk) ->
    {Args1, Walk1} = arguments(module_places(Callee, length(Args), Walk), Args, Walk),
    {{call, A, Callee, Args1}, Walk1};
ets_node({'fun', A, {function, Module, Name, Arity}} = Node, Walk) ->
    case {is_ets(Module), supports(Name, arity(Arity))} of
        {false, _} -> {Node, Walk};
        {true, true} -> {{'fun', A, {function, larder_like(Module), Name, Arity}}, Walk};
        {true, {false, Function, N}} -> {Node, warn(A, Function, N, Walk)}
    end;
ets_node({remote_type, A, [{atom, A1, ets}, {atom, A2, Type}, Params]} = Node, Walk) ->
    case types() of
        #{Type := Ours} -> {{remote_type, A, [{atom, A1, larder}, {atom, A2, Ours}, Params]}, Walk};
        #{} -> {Node, Walk}
    end;
ets_node(Node, Walk) ->
    {Node, Walk}.

%% Older tools write fun ets:F/A with bare atoms.
is_ets({atom, _, ets}) -> true;
is_ets(ets) -> true;
is_ets(_) -> false.

larder_like({atom, A, ets}) -> {atom, A, larder};
larder_like(ets) -> larder.

%% An arity in the source, if it is there.
arity({integer, _, Arity}) -> Arity;
arity(Arity) when is_integer(Arity) -> Arity;
arity(_) -> unknown.

%% What can't be known at compile time is taken to be there.
supports({atom, _, Function}, Arity) -> supports(Function, Arity);
supports(Function, Arity) when is_atom(Function), is_integer(Arity) ->
    is_supported({Function, Arity}) orelse {false, Function, Arity};
supports(_Function, _Arity) -> true.

warn(Anno, Function, Arity, #walk{file = File, warnings = Warnings} = Walk) ->
    Warning = {erl_anno:location(Anno), ?MODULE, {missing, Function, Arity}},
    Walk#walk{warnings = [{File, [Warning]} | Warnings]}.

%% ---- calls by module, function and arguments ----

%% Tries the places in turn; the first that holds the atom ets counts.
arguments([], Args, Walk) ->
    {Args, Walk};
arguments([Place | Places], Args, Walk) ->
    case lists:split(Place - 1, Args) of
        {Before, [{atom, A, ets}, Name, Last | After]} ->
            case {is_list_form(Name), supports(Name, applied_arity(Last))} of
                {true, _} ->
                    %% ets is the function, what follows are its arguments.
                    {Args, Walk};
                {false, true} ->
                    {Before ++ [{atom, A, larder}, Name, Last | After], Walk};
                {false, {false, Function, Arity}} ->
                    {Args, warn(A, Function, Arity, Walk)}
            end;
        _ ->
            arguments(Places, Args, Walk)
    end.

is_list_form({nil, _}) -> true;
is_list_form({cons, _, _, _}) -> true;
is_list_form(_) -> false.

%% The third of module, function, arguments: a list, or for make_fun and
%% function_exported an arity.
applied_arity(Last) ->
    case arity(Last) of
        unknown -> list_length(Last, 0);
        Arity -> Arity
    end.

list_length({nil, _}, N) -> N;
list_length({cons, _, _, Tail}, N) -> list_length(Tail, N + 1);
list_length(_, _) -> unknown.

%% Where a call has its module argument.
module_places({remote, _, {atom, _, Module}, {atom, _, Name}}, Arity, _Walk) ->
    places(Module, Name, Arity);
module_places({atom, _, Name}, Arity, #walk{own = Own}) ->
    case maps:is_key({Name, Arity}, Own) orelse not erl_internal:bif(Name, Arity) of
        true -> [];
        false -> places(erlang, Name, Arity)
    end;
module_places(_, _, _) ->
    [].

places(erlang, Name, 3) when Name =:= apply; Name =:= hibernate; Name =:= make_fun;
                             Name =:= function_exported; Name =:= spawn_request -> [1];
%% Module, function, arguments, options; or a node before them.
places(erlang, spawn_request, 4) -> [1, 2];
places(erlang, spawn_request, 5) -> [2];
places(erlang, Name, Arity) -> spawn_places(Name, Arity);
places(proc_lib, hibernate, 3) -> [1];
places(proc_lib, Name, Arity)
  when Arity >= 3, Arity =< 5,
  (Name =:= start orelse Name =:= start_link orelse Name =:= start_monitor) -> [1];
places(proc_lib, Name, Arity) -> spawn_places(Name, Arity);
places(timer, tc, Arity) when Arity =:= 3; Arity =:= 4 -> [1];
places(timer, Name, 4) when Name =:= apply_after; Name =:= apply_interval;
Name =:= apply_repeatedly -> [2];
places(rpc, Name, 3) when Name =:= multicall; Name =:= eval_everywhere -> [1];
places(rpc, multicall, 4) -> [1, 2];
places(rpc, Name, Arity)
  when Arity =:= 4 orelse Arity =:= 5,
       Name =:= call orelse Name =:= block_call orelse Name =:= cast orelse Name =:= async_call
           orelse
       Name =:= multicall orelse Name =:= eval_everywhere -> [2];
places(erpc, Name, Arity)
  when Arity >= 4, Name =:= call orelse Name =:= cast orelse Name =:= multicall orelse
       Name =:= multicast orelse Name =:= send_request -> [2];
places(_, _, _) -> [].

spawn_places(spawn_opt, 4) -> [1];
spawn_places(spawn_opt, 5) -> [2];
spawn_places(Name, Arity) when Name =:= spawn; Name =:= spawn_link; Name =:= spawn_monitor ->
    case Arity of
        3 -> [1];
        4 -> [2];
        _ -> []
    end;
spawn_places(_, _) -> [].

%% ---- the walk ----

%% Calls Visit with each node, from the outside in, and goes on with what it
%% gives back. Constants are left out: a string is a list of integers.
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

%% ---- what larder has ----

is_supported(Function) ->
    lists:member(Function, supported()).

%% @private
%% The functions that a module may go on calling under the same name. A list
%% of its own, because asking the module `larder' would load it, and its
%% native code, into every compiler.
-spec supported() -> [{atom(), arity()}].
supported() ->
    [{Name, Arity} || {Name, Arities} <- functions(), Arity <- Arities].

functions() ->
    [{all, [0]}, {delete, [1, 2]}, {delete_all_objects, [1]}, {delete_object, [2]},
     {file2tab, [1, 2]}, {first, [1]}, {first_lookup, [1]}, {foldl, [3]}, {foldr, [3]},
     {from_dets, [2]}, {fun2ms, [1]}, {give_away, [3]}, {i, [0, 1, 2, 3]}, {info, [1, 2]},
     {init_table, [2]}, {insert, [2]}, {insert_new, [2]}, {is_compiled_ms, [1]}, {last, [1]},
     {last_lookup, [1]}, {lookup, [2]}, {lookup_element, [3, 4]}, {match, [1, 2, 3]},
     {match_delete, [2]}, {match_object, [1, 2, 3]}, {match_spec_compile, [1]},
     {match_spec_run, [2]}, {member, [2]}, {module_info, [0, 1]}, {new, [2]}, {next, [2]},
     {next_lookup, [2]}, {prev, [2]}, {prev_lookup, [2]}, {rename, [2]},
     {repair_continuation, [2]}, {safe_fixtable, [2]}, {select, [1, 2, 3]},
     {select_count, [2]}, {select_delete, [2]}, {select_replace, [2]},
     {select_reverse, [1, 2, 3]}, {setopts, [2]}, {slot, [2]}, {tab2file, [2, 3]},
     {tab2list, [1]}, {tabfile_info, [1]}, {table, [1, 2]}, {take, [2]}, {test_ms, [2]},
     {to_dets, [2]}, {update_counter, [3, 4]}, {update_element, [3, 4]}, {whereis, [1]}].

%% Types of ets, some under two names, and ours.
types() ->
    #{table => table, tab => table, tid => tid, table_access => access, table_type => type,
      match_spec => match_spec, match_pattern => match_pattern,
      compiled_match_spec => compiled_match_spec, comp_match_spec => compiled_match_spec}.
