%% @private
%% @doc Finds the directories of the programs of a running node, for `larder_move'.
%%
%% The files are read and written here, so the node has to be on this machine.
-module(larder_move_node).

-export([connect/2, ask/2, archives/1, format/1, format_error/1]).

%% OTP and Elixir have tables of their own in ets, and run on any node.
-define(SYSTEM, [asn1, common_test, compiler, crypto, debugger, dialyzer, diameter, edoc, eldap,
                 erl_docgen, erl_interface, erts, et, eunit, ftp, inets, jinterface, kernel,
                 megaco, mnesia, observer, odbc, os_mon, parsetools, public_key, reltool,
                 runtime_tools, sasl, snmp, ssh, ssl, stdlib, syntax_tools, tftp, tools, wx, xmerl,
                 eex, elixir, ex_unit, iex, logger, mix, larder]).
-define(TIMEOUT, 10000).

%% @doc Makes this node one that can ask the other, with its cookie.
-spec connect(string(), string() | none) -> {ok, node()} | {error, larder_move:reason()}.
connect(Name, Cookie) ->
    case [is_alive() orelse start(Name), string:split(Name, "@")] of
        [false, _] -> {error, {node, Name, no_distribution}};
        [true, [_, _]] -> named(list_to_atom(Name), Cookie);
        [true, [_]] ->
            [_, Host] = string:split(atom_to_list(node()), "@"),
            named(list_to_atom(Name ++ "@" ++ Host), Cookie)
    end.

named(Node, Cookie) ->
    Cookie =:= none orelse erlang:set_cookie(Node, list_to_atom(Cookie)),
    {ok, Node}.

%% A host with a dot in it is a long name.
start(Name) ->
    Kind = case string:split(Name, "@") of
               [_, Host] -> case lists:member($., Host) of true -> longnames; false -> shortnames end;
               [_] -> shortnames
           end,
    %% epmd has to run: a node of this machine has started it.
    Own = list_to_atom("larder_move_" ++ os:getpid() ++
                           case Kind of
                               longnames -> "@" ++ lists:last(string:split(Name, "@"));
                               shortnames -> ""
                           end),
    element(1, net_kernel:start([Own, Kind])) =:= ok.

%% @doc Asks a node for the directories of some applications, or of all that runs there (`chosen'),
%% and of what else runs there (`others'). Of those, `archives' are the archives with modules.
-spec ask(node(), [atom()] | running) -> {ok, larder_move:running()} | {error, larder_move:reason()}.
ask(Node, What) ->
    Call = fun(Module, Function, Args) -> erpc:call(Node, Module, Function, Args, ?TIMEOUT) end,
    try
        {ok, Here} = inet:gethostname(),
        case Call(inet, gethostname, []) of
            {ok, Here} -> ok;
            {ok, There} -> throw({elsewhere, There})
        end,
        All = directories(Call),
        Running = [Directory || Directory <- All, filelib:is_dir(Directory),
                                not is_of_system(Directory)],
        {Chosen, Wanted} = case What of
                               running -> {Running, All};
                               _ -> Named = [application(Call, Application) || Application <- What],
                                    {[Directory || Directory <- Named, archives([Directory]) =:= []],
                                     Named}
                           end,
        {ok, #{node => Node, has_larder => Call(code, which, [larder]) =/= non_existing,
               chosen => Chosen, others => Running -- Chosen, archives => archives(Wanted)}}
    catch
        throw:Why -> {error, {node, Node, Why}};
        error:{erpc, _} -> {error, {node, Node, unreachable}}
    end.

application(Call, Application) ->
    case Call(code, lib_dir, [Application, ebin]) of
        {error, bad_name} -> throw({no_application, Application});
        Directory -> Directory
    end.

%% The directories of the applications that run and of the modules that are loaded. Modules may lie
%% in archives; these aren't directories of files.
directories(Call) ->
    Applications = [Application || {Application, _, _} <- Call(application, which_applications, [])],
    Files = [File || {_, File} <- Call(code, all_loaded, []), is_list(File), File =/= []],
    lists:usort([filename:dirname(File) || File <- Files] ++
                [Directory || Application <- Applications,
                              Directory <- [Call(code, lib_dir, [Application, ebin])],
                              is_list(Directory)]).

%% @doc The archives that paths lead to or into.
-spec archives([file:filename()]) -> [file:filename()].
archives(Paths) ->
    lists:usort([Before ++ ".ez" || Path <- Paths,
                                    [Before, _] <- [string:split(Path ++ "/", ".ez/")],
                                    filelib:is_regular(Before ++ ".ez")]).

is_of_system(Directory) ->
    lists:any(fun(App) -> lists:member(list_to_atom(filename:basename(App, ".app")), ?SYSTEM) end,
              filelib:wildcard("*.app", Directory)).

%% @doc What is to be done for a node to use what was moved.
-spec format(larder_move:running()) -> iolist().
format(#{node := Node, has_larder := HasLarder}) ->
    [io_lib:format("  ~tw keeps its loaded modules, and its tables in ets, until it is restarted~n",
                   [Node]),
     [io_lib:format("  ~tw has no larder in its code path: restart it with larder in ERL_LIBS, or by "
                    "-pa~n", [Node]) || not HasLarder]].

%% @doc Describes why a node couldn't be asked.
-spec format_error(larder_move:reason()) -> iolist().
format_error({node, Node, unreachable}) ->
    io_lib:format("~ts doesn't answer: is that its name, and --cookie its cookie?", [Node]);
format_error({node, Node, no_distribution}) ->
    io_lib:format("this node can't be made one that asks ~ts: is epmd running?", [Node]);
format_error({node, Node, {elsewhere, Host}}) ->
    io_lib:format("~ts is on ~ts: run this command there, where its files are", [Node, Host]);
format_error({node, Node, {no_application, Application}}) ->
    io_lib:format("~ts has no application ~tw in its code path", [Node, Application]).
