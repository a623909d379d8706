%% @private
%% @doc The native functions, for the other modules of Larder.
%%
%% They raise `error:{larder, Cause}', where `Cause' is an error cause of `ets', `none' or
%% `system_limit'. Those on single objects return `{larder, Cause}' instead. A function that runs
%% for more than about half a millisecond yields, and continues later.
%%
%% The library is `larder_nif' in the application's `priv' folder. The folder beside this module's
%% file is tried first.
-module(larder_nif).
-compile({larder_transform, keep_ets}).

-on_load(load/0).

-define(STUB, erlang:nif_error({larder, library_not_loaded})).

%% The functions, each a stub until the library is loaded; and ?VERSION, that of the library that
%% belongs to these modules.
-include("larder_nif_stubs.hrl").

load() ->
    load(places()).

%% Loads the first library that can be loaded. Otherwise, returns the error of the last one that
%% exists.
load([Place | Places]) ->
    case erlang:load_nif(Place, samples()) of
        {error, {load_failed, _}} when Places =/= [] -> load(Places);
        Result -> Result
    end.

%% Terms from which the library learns the layout of terms: [Alias, Fun, its two free variables,
%% twice fun M:F/A]; exact_map_keys(); the number of schedulers; the version of these modules, as
%% the library refuses those of another version; native_records(); checks_defaults(); and a
%% reference that keeps something alive.
samples() ->
    %% Words that occur nowhere else in the fun, whose creator is this process.
    {A, B} = {group_leader(), erlang:whereis(init)},
    [an_alias(), fun(C) -> {A, B, C} end, A, B, fun erlang:abs/1, fun erlang:node/0,
     exact_map_keys(), erlang:system_info(schedulers), ?VERSION, native_records(),
     checks_defaults(), atomics:new(1, [])].

%% Whether `ets' treats a pattern whose key contains a map, but no variables, as that exact key.
%% Releases until 2024 do; later ones match it as a pattern.
exact_map_keys() ->
    Tab = ets:new(?MODULE, []),
    true = ets:insert(Tab, {#{a => 1}}),
    Exact = ets:match(Tab, {#{}}) =:= [],
    true = ets:delete(Tab),
    Exact.

%% Whether is_record(Term, Module, Name) in a match specification asks for a native record, as from
%% OTP 29 on. In earlier releases it fails.
native_records() ->
    Spec = ets:match_spec_compile([{'_', [], [{is_record, '$_', module, name}]}]),
    ets:match_spec_run([{}], Spec) =:= [false].

%% Whether `ets' refuses a default that is too short for a key also if there is an object, as from
%% OTP 29 on.
checks_defaults() ->
    Tab = ets:new(?MODULE, []),
    true = ets:insert(Tab, {key, 1}),
    try ets:update_counter(Tab, key, 1, {}) of
        2 -> false
    catch
        error:badarg -> true
    after
        ets:delete(Tab)
    end.

an_alias() ->
    case erlang:function_exported(erlang, alias, 0) of
        true ->
            Alias = apply(erlang, alias, []),
            true = apply(erlang, unalias, [Alias]),
            Alias;
        false ->
            none
    end.

places() ->
    Beside = case code:which(?MODULE) of
                 File when is_list(File) -> [filename:join([filename:dirname(File), "..", "priv",
                                                            "larder_nif"])];
                 _ -> []
             end,
    InApplication = case code:priv_dir(larder) of
                        {error, _} -> [];
                        Priv -> [filename:join(Priv, "larder_nif")]
                    end,
    case Beside ++ InApplication of
        [] -> ["larder_nif"];
        Places -> Places
    end.
