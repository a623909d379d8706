%% @private
%% @doc The native functions, as they are. For module `larder' only.
%%
%% Each raises `error:{larder, Cause}', where `Cause' is one that `ets' has, or
%% `none', or `system_limit'. Long work is done in slices: a function that
%% runs for longer than about half a millisecond yields and goes on later.
%%
%% The library is `larder_nif' in the application's `priv' folder, which is
%% looked for beside this module's file first.
-module(larder_nif).

-on_load(load/0).

-define(STUB, erlang:nif_error({larder, library_not_loaded})).

%% The functions, each a stub until the library is loaded.
-include("larder_nif_stubs.hrl").

load() ->
    load(places()).

%% The first library that loads; if none does, what was wrong with the last
%% that is there.
load([Place | Places]) ->
    case erlang:load_nif(Place, samples()) of
        {error, {load_failed, _}} when Places =/= [] -> load(Places);
        Result -> Result
    end.

%% Terms whose layout the library looks at: [Alias, Fun, its free variables,
%% two times fun M:F/A]; and exact_map_keys().
samples() ->
    %% Words that nothing else in a fun is: its creator is this process.
    {A, B} = {group_leader(), erlang:whereis(init)},
    [an_alias(), fun(C) -> {A, B, C} end, A, B, fun erlang:abs/1, fun erlang:node/0,
     exact_map_keys()].

%% Whether `ets' takes a key without variables that holds a map for that key, as releases did until
%% 2024, or for a pattern.
exact_map_keys() ->
    Tab = ets:new(?MODULE, []),
    true = ets:insert(Tab, {#{a => 1}}),
    Exact = ets:match(Tab, {#{}}) =:= [],
    true = ets:delete(Tab),
    Exact.

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
