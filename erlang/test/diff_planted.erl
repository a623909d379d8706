%% @doc Stand-ins for the module under test, made of `ets' itself: a sound one
%% that differs in nothing, and some with one fault each. A differential suite
%% has to accept the first and to find each of the others, or it shows nothing.
%%
%% load/1 makes a module, `diff_sound' or `diff_fault_NAME', that exports what
%% `ets' exports (and what newer releases do); each of its functions comes
%% back here.
-module(diff_planted).
-include("diff.hrl").

-export([load/1, unload/1, faults/0, call/3]).

%% @doc The faults, each with the type of table that shows it.
faults() ->
    [{list_reversed, bag}, {equal_is_identical, set}, {cause_lost, set},
     {insert_new_overwrites, ordered_set}, {counter_half_done, set}, {gift_lost, set},
     {size_wrong, duplicate_bag}, {limit_ignored, ordered_set}, {prev_skips, ordered_set},
     {replace_any_key, set}, {readers_may_write, set}].

%% @doc Makes and loads the stand-in for a fault, or the one without (none).
-spec load(atom()) -> module().
load(Fault) ->
    Name = name(Fault),
    Forms = [{attribute, 1, module, Name}, {attribute, 1, export, functions()}
             | [function(Fault, F, A) || {F, A} <- functions()]],
    {ok, Name, Code} = compile:forms(Forms, []),
    {module, Name} = code:load_binary(Name, "", Code),
    Name.

%% @doc Removes a stand-in.
-spec unload(module()) -> ok.
unload(Name) ->
    _ = code:purge(Name),
    _ = code:delete(Name),
    _ = code:purge(Name),
    ok.

name(none) -> diff_sound;
name(Fault) -> list_to_atom("diff_fault_" ++ atom_to_list(Fault)).

functions() ->
    Newer = [{first_lookup, 1}, {last_lookup, 1}, {next_lookup, 2}, {prev_lookup, 2},
             {lookup_element, 4}, {update_element, 4}],
    lists:usort(Newer ++ [FA || {F, _} = FA <- ets:module_info(exports), F =/= module_info]).

%% F(V1, ..., VA) -> diff_planted:call(Fault, F, [V1, ..., VA]).
function(Fault, F, Arity) ->
    Vars = [{var, 1, list_to_atom("V" ++ integer_to_list(N))} || N <- lists:seq(1, Arity)],
    List = lists:foldr(fun(V, Acc) -> {cons, 1, V, Acc} end, {nil, 1}, Vars),
    Call = {call, 1, {remote, 1, {atom, 1, ?MODULE}, {atom, 1, call}},
            [{atom, 1, Fault}, {atom, 1, F}, List]},
    {function, 1, F, Arity, [{clause, 1, Vars, [], [Call]}]}.

%% @doc One call of a stand-in.
call(Fault, Function, Args) ->
    case faulty(Fault, Function, Args) of
        {ok, Value} -> Value;
        #raised{class = Class, reason = Reason, function = F, arguments = As, cause = Cause} ->
            Info = maps:merge(#{module => erl_stdlib_errors}, cause(Fault, Cause)),
            erlang:raise(Class, Reason, [{ets, F, As, [{error_info, Info}]}])
    end.

cause(cause_lost, _) -> #{};
cause(_, any) -> #{};
cause(_, none) -> #{};
cause(_, Cause) -> #{cause => Cause}.

faulty(list_reversed, insert, [T, L]) ->
    diff_oracle:outcome(ets, insert, [T, L]);
faulty(equal_is_identical, lookup, [T, Key]) when is_float(Key), Key == trunc(Key) ->
    case right(lookup, [T, Key]) of
        {ok, []} -> right(lookup, [T, trunc(Key)]);
        Other -> Other
    end;
faulty(insert_new_overwrites, insert_new, [T, X]) ->
    right(insert, [T, X]);
faulty(counter_half_done, update_counter, [T, Key, [Op | _] = Ops]) ->
    case right(update_counter, [T, Key, Ops]) of
        #raised{} = Raised -> _ = right(update_counter, [T, Key, [Op]]), Raised;
        Other -> Other
    end;
faulty(gift_lost, give_away, [T, Pid, Data]) ->
    case ets:info(T, owner) =:= self() andalso is_pid(Pid) andalso node(Pid) =:= node()
         andalso Pid =/= self() andalso is_process_alive(Pid) of
        true -> {ok, true};
        false -> right(give_away, [T, Pid, Data])
    end;
faulty(size_wrong, info, [T, size]) ->
    case right(info, [T, size]) of
        {ok, Size} when is_integer(Size), Size > 3 -> {ok, Size + 1};
        Other -> Other
    end;
faulty(limit_ignored, select, [T, Spec, Limit]) when is_integer(Limit), Limit > 1 ->
    right(select, [T, Spec, Limit + 1]);
faulty(prev_skips, prev, [T, Key]) ->
    case right(prev, [T, Key]) of
        {ok, Found} when is_integer(Found) -> right(prev, [T, Found]);
        Other -> Other
    end;
faulty(replace_any_key, select_replace, [T, Spec]) ->
    case {right(select_replace, [T, Spec]), catch ets:info(T, size)} of
        {#raised{cause = Cause}, Size} when Cause =:= none, is_integer(Size) -> {ok, 0};
        {Other, _} -> Other
    end;
faulty(readers_may_write, delete, [T, Key]) ->
    case right(delete, [T, Key]) of
        #raised{cause = access} -> {ok, true};
        Other -> Other
    end;
faulty(list_one_by_one, insert, [T, L]) when is_list(L) ->
    [ets:insert(T, Object) || Object <- L],
    {ok, true};
faulty(guard_off_by_one, select, [T, [{Head, [{'>=', '$1', Low} | Guards], Body}]]) ->
    right(select, [T, [{Head, [{'>', '$1', Low} | Guards], Body}]]);
faulty(_, Function, Args) ->
    right(Function, Args).

right(Function, Args) ->
    diff_oracle:outcome(oracle, Function, Args).
