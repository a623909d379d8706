%% @doc `rebar3 larder move': moves the compiled modules of a project and its dependencies from
%% `ets' to Larder (see {@link larder_move}).
%%
%% ```
%% {project_plugins, [larder]}.         % in rebar.config
%%
%% rebar3 larder move                   # the project and its dependencies
%% rebar3 larder move --plan            # only shows what would move
%% rebar3 larder move --undo            # restores the originals
%% rebar3 larder move --path DIRECTORY  # the modules below it; or a .beam file
%% '''
%%
%% `--force' moves even if modules that stay share named tables with those that
%% move. `--beside DIRECTORY' also searches the modules there for such tables. It
%% and `--path' may be repeated.
%%
%% A module that is compiled again uses `ets' again. So move after the last
%% `rebar3 compile', before a release is assembled.
-module(larder_rebar).

-export([init/1, do/1, format_error/1]).

%% The states of rebar3 are its own.
-type state() :: term().

%% @private Called by rebar3, which finds this module by `providers' in the application's
%% environment.
-spec init(state()) -> {ok, state()}.
init(State) ->
    Provider = providers:create(
        [{name, move}, {namespace, larder}, {module, ?MODULE}, {bare, true},
         {deps, [{default, compile}]},
         {example, "rebar3 larder move --plan"},
         {short_desc, "Moves the compiled project, dependencies included, from ets to Larder."},
         {desc, "Moves compiled modules from ets to Larder: the project and its dependencies, or"
                " what --path names."},
         {opts, [{plan, undefined, "plan", undefined, "only says what would move"},
                 {undo, undefined, "undo", undefined, "puts the originals back"},
                 {force, undefined, "force", undefined,
                  "moves although modules that stay share tables with those that move"},
                 {beside, undefined, "beside", string,
                  "looks at the modules of this directory for such tables, too"},
                 {path, undefined, "path", string, "this directory or .beam file"}]}]),
    {ok, rebar_state:add_provider(State, Provider)}.

%% @private
-spec do(state()) -> {ok, state()} | {error, string()}.
do(State) ->
    {Options, _} = rebar_state:command_parsed_args(State),
    Targets = case [Path || {path, Path} <- Options] of
        [] -> built(State);
        Paths -> Paths
    end,
    Forced = [force || lists:member(force, Options)],
    Beside = [{beside, Directory} || {beside, Directory} <- Options],
    Result = case {lists:member(undo, Options), lists:member(plan, Options)} of
        {true, _} -> larder_move:undo(Targets);
        {_, true} -> larder_move:plan(Targets, Forced ++ Beside);
        _ -> larder_move:move(Targets, Forced ++ Beside)
    end,
    case Result of
        {ok, Files} when is_list(Files) ->
            io:format("~w modules are those of ets again~n", [length(Files)]),
            {ok, State};
        {ok, Plan} ->
            io:put_chars(larder_move:format(Plan)),
            {ok, State};
        {error, Why} ->
            {error, format_error(Why)}
    end.

%% @private
-spec format_error(term()) -> string().
format_error(Why) ->
    unicode:characters_to_list(["larder: ", larder_move:format_error(Why)]).

%% Where the project and its dependencies are built, but for Larder.
built(State) ->
    Apps = rebar_state:project_apps(State) ++ rebar_state:all_deps(State),
    [unicode:characters_to_list(rebar_app_info:ebin_dir(App))
     || App <- Apps, rebar_app_info:name(App) =/= <<"larder">>].
