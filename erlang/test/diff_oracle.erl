%% @doc The `ets' of this machine as the oracle, and the outcome of a call as
%% something that can be compared.
%%
%% Four things are added to what OTP 25 has. The functions of newer releases
%% are modelled on the old ones. And a list is inserted in its order (OTP 25.2.3
%% turns small lists round in a bag, and in every type those during which it runs
%% out of reductions): the oracle inserts lists one by one where that tells. And where
%% that release would read memory that isn't the caller's, the oracle knows the
%% answer itself. Last, several clauses with bound keys are run over the whole
%% of an ordered_set: the range that OTP 25.2.3 takes from them misses objects
%% when 1 and 1.0 meet in it ([{{{1.0,2},'_'},[],['$_']},{{{1,'_'},'_'},[],['$_']}]
%% doesn't find {{1,1},0}).
-module(diff_oracle).
-include("diff.hrl").

-export([outcome/3, library_function/1]).



%% @doc What became of a call: `{ok, Value}', or an exception as its class,
%% reason, the function and arguments on top of the stack, the cause in its
%% error_info, and which arguments format_error/2 blames.
%% `oracle' stands for `ets' with these additions.
outcome(oracle, Function, Args) ->
    oracle(Function, Args);
outcome(Module, Function, Args) ->
    try apply(Module, Function, Args) of
        Value -> {ok, Value}
    catch
        Class:Reason:Stack -> raised(Class, Reason, Stack)
    end.

raised(Class, Reason, [{Module, Function, Args, Info} = Top | _]) ->
    {Cause, Blamed} = case lists:keyfind(error_info, 1, Info) of
        false -> {none, none};
        {_, ErrorInfo} ->
            Formatter = maps:get(module, ErrorInfo, Module),
            {maps:get(cause, ErrorInfo, none), blamed(Formatter, Reason, Top)}
    end,
    #raised{class = Class, reason = reason(Reason), function = Function,
            arguments = Args, cause = Cause, blamed = Blamed}.

%% The reason of a failed fun names the stack; only its head is compared.
reason({Reason, [{_, _, _, _} | _]}) -> Reason;
reason(Reason) -> Reason.

blamed(Formatter, Reason, Top) ->
    try Formatter:format_error(Reason, [Top]) of
        Map -> lists:sort(maps:keys(Map))
    catch
        error:function_clause when Formatter =:= erl_stdlib_errors -> any;
        Class:Error -> {format_error_failed, Class, Error}
    end.

%% @doc Functions that `ets' writes in Erlang: an error there shows some inner
%% call on top of the stack, which is nobody's promise.
library_function(Function) ->
    lists:member(Function, [foldl, foldr, tab2list, tab2file, file2tab, tabfile_info,
                            init_table, from_dets, to_dets, table, i, match_delete,
                            match_spec_run, select_delete, delete_all_objects,
                            repair_continuation, test_ms, fun2ms]).

%% The additions -----------------------------------------------------------------

oracle(insert, [Table, List]) when is_list(List) ->
    in_list_order(insert, Table, List, fun() -> {ok, true} end);
oracle(insert_new, [Table, List]) when is_list(List) ->
    in_list_order(insert_new, Table, List, fun() ->
        KeyPos = ets:info(Table, keypos),
        case lists:any(fun(Object) -> ets:member(Table, element(KeyPos, Object)) end, List) of
            true -> {ok, false};
            false -> {ok, true}
        end
    end);
oracle(lookup_element, [Table, Key, Pos, Default] = Args) ->
    case outcome(ets, lookup_element, [Table, Key, Pos]) of
        #raised{cause = badkey} -> {ok, Default};
        Outcome -> instead(Outcome, Args)
    end;
%% `take' of OTP 25.2.3 counts an object twice that match_delete has removed from a fixed bag.
oracle(take, [Table, _] = Args) ->
    case outcome(ets, info, [Table, fixed]) of
        {ok, true} ->
            Found = outcome(ets, lookup, Args),
            case outcome(ets, delete, Args) of
                {ok, true} -> Found;
                #raised{} = Raised -> Raised#raised{function = take}
            end;
        _ ->
            outcome(ets, take, Args)
    end;
oracle(first_lookup, [Table] = Args) -> step_lookup(first, first_lookup, Table, Args);
oracle(last_lookup, [Table] = Args) -> step_lookup(last, last_lookup, Table, Args);
oracle(next_lookup, [Table, _] = Args) -> step_lookup(next, next_lookup, Table, Args);
oracle(prev_lookup, [Table, _] = Args) -> step_lookup(prev, prev_lookup, Table, Args);
oracle(update_element, [Table, Key, Spec, Default] = Args) ->
    case is_refused_first(Table, Default) of
        true -> instead(outcome(ets, update_element, Args), Args);
        false -> update_element(Table, Key, Spec, Default, Args)
    end;
oracle(update_counter, [Table, Key, Ops, Default] = Args) when is_tuple(Default) ->
    case {is_refused_first(Table, Default), ets_would_crash(Table, Key, Default)} of
        {true, _} -> outcome(ets, update_counter, Args);
        {false, true} -> instead(outcome(ets, update_counter, [Table, Key, Ops]), Args, any);
        {false, false} -> count_without_trace(Table, Key, Ops, Default)
    end;
oracle(Function, [Table, [_, _ | _] = Spec | Limit] = Args)
  when Function =:= select; Function =:= select_reverse; Function =:= select_count;
       Function =:= select_delete; Function =:= select_replace ->
    case type(Table) of
        ordered_set ->
            %% A clause that never holds, and has no key: nothing is skipped.
            Whole = [{'_', [false], ['$_']} | Spec],
            case outcome(ets, Function, [Table, Whole | Limit]) of
                #raised{} -> outcome(ets, Function, Args);
                Outcome -> Outcome
            end;
        _ -> outcome(ets, Function, Args)
    end;
%% An empty ordered_set with write_concurrency has no end at slot 0, where one
%% without has it.
oracle(slot, [Table, 0] = Args) ->
    case {outcome(ets, slot, Args), type(Table)} of
        {#raised{cause = none}, ordered_set} ->
            case ets:info(Table, size) of
                0 -> {ok, '$end_of_table'};
                _ -> outcome(ets, slot, Args)
            end;
        {Outcome, _} -> Outcome
    end;
oracle(Function, Args) ->
    outcome(ets, Function, Args).

type(Table) ->
    try ets:info(Table, type) catch error:badarg -> undefined end.

%% A list, one object at a time, once it is known that all of it will go
%% in; anything else is left to `ets'.
in_list_order(Function, Table, List, Decide) ->
    case outcome(ets, Function, [Table, []]) of
        {ok, true} ->
            KeyPos = ets:info(Table, keypos),
            case all_fit(List, KeyPos) andalso (is_bag(Table) orelse repeats(KeyPos, List)) of
                true ->
                    {ok, Go} = Decide(),
                    Go andalso [ets:insert(Table, Object) || Object <- List],
                    {ok, Go};
                false -> outcome(ets, Function, [Table, List])
            end;
        _ -> outcome(ets, Function, [Table, List])
    end.

is_bag(Table) ->
    lists:member(ets:info(Table, type), [bag, duplicate_bag]).

%% Only where the order tells: one by one is not atomic.
repeats(KeyPos, List) ->
    length(lists:ukeysort(KeyPos, List)) < length(List).

all_fit([Object | Rest], KeyPos) when is_tuple(Object), tuple_size(Object) >= KeyPos ->
    all_fit(Rest, KeyPos);
all_fit([], _) -> true;
all_fit(_, _) -> false.

step_lookup(Step, Name, Table, Args) ->
    case outcome(ets, Step, Args) of
        {ok, '$end_of_table'} -> {ok, '$end_of_table'};
        {ok, Key} -> {ok, {Key, ets:lookup(Table, Key)}};
        #raised{function = Step} = Raised -> instead(Raised#raised{function = Name}, Args);
        Other -> Other
    end.

%% From OTP 29 on `ets' looks at the default first.
is_refused_first(Table, Default) ->
    try ets:info(Table, keypos) of
        KeyPos -> not all_fit([Default], KeyPos) andalso checks_defaults()
    catch
        error:badarg -> false
    end.

%% Whether `ets' refuses a default without a key also if there is an object.
checks_defaults() ->
    Scratch = ets:new(scratch, []),
    true = ets:insert(Scratch, {key, 1}),
    Outcome = outcome(ets, update_counter, [Scratch, key, 1, {}]),
    true = ets:delete(Scratch),
    Outcome =/= {ok, 2}.

%% The default is completed in a table of its own, so that a failing
%% specification leaves nothing behind.
update_element(Table, Key, _Spec, Default, Args) when not is_tuple(Default) ->
    %% Nothing is written, whatever the rest says; [] finds the table's own errors.
    case outcome(ets, update_element, [Table, Key, []]) of
        {ok, _} -> #raised{class = error, reason = badarg, function = update_element,
                           arguments = Args, cause = any, blamed = any};
        Outcome -> instead(Outcome, Args)
    end;
update_element(Table, Key, Spec, Default, Args) ->
    case outcome(ets, update_element, [Table, Key, Spec]) of
        {ok, false} ->
            KeyPos = ets:info(Table, keypos),
            case all_fit([Default], KeyPos) of
                true -> default_row(Table, KeyPos, Key, Spec, Default, Args);
                false -> #raised{class = error, reason = badarg, function = update_element,
                                 arguments = Args, cause = any, blamed = any}
            end;
        Outcome -> instead(Outcome, Args)
    end.

default_row(Table, KeyPos, Key, Spec, Default, Args) ->
    Row = setelement(KeyPos, Default, Key),
    Scratch = ets:new(scratch, [{keypos, KeyPos}]),
    try
        ets:insert(Scratch, Row),
        case outcome(ets, update_element, [Scratch, Key, Spec]) of
            {ok, true} -> ets:insert(Table, ets:tab2list(Scratch)), {ok, true};
            Outcome -> instead(Outcome, Args)
        end
    after
        ets:delete(Scratch)
    end.

%% OTP 25.2.3 reads past the end of a default that is too short for the key,
%% and at times aborts. The only right answer is badarg.
ets_would_crash(Table, Key, Default) ->
    try
        tuple_size(Default) < ets:info(Table, keypos) andalso not ets:member(Table, Key)
    catch
        error:badarg -> false
    end.

%% A default that is refused leaves a trace in a fixed table of `ets': its key is known there as one
%% that was deleted, and `next' and `prev' go on from it. So it is tried elsewhere first, if the key
%% isn't there and nothing else is wrong. What others do meanwhile counts once: a call without the
%% default that finds the key after all was the call.
count_without_trace(Table, Key, Ops, Default) ->
    Args = [Table, Key, Ops, Default],
    case outcome(ets, update_counter, [Table, Key, Ops]) of
        {ok, _} = Counted -> Counted;
        #raised{cause = badkey} -> count_new(Table, Key, Ops, Default, Args);
        #raised{} -> outcome(ets, update_counter, Args)
    end.

count_new(Table, Key, Ops, Default, Args) ->
    Empty = ets:new(?MODULE, [ets:info(Table, type), {keypos, ets:info(Table, keypos)}]),
    Elsewhere = outcome(ets, update_counter, [Empty, Key, Ops, Default]),
    ets:delete(Empty),
    case Elsewhere of
        #raised{} -> Elsewhere#raised{arguments = Args};
        {ok, _} -> outcome(ets, update_counter, Args)
    end.

instead(#raised{} = Raised, Args, Cause) ->
    Raised#raised{arguments = Args, cause = Cause, blamed = any};
instead({ok, _}, Args, Cause) ->
    #raised{class = error, reason = badarg, function = update_counter, arguments = Args,
            cause = Cause, blamed = any}.

instead(#raised{} = Raised, Args) -> Raised#raised{arguments = Args, blamed = any};
instead(Outcome, _) -> Outcome.
