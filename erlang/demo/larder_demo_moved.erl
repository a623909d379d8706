%% @doc The part of `make run' in which a program of Debian's is moved to Larder, and works: Yaws,
%% a web server, from the package `erlang-yaws', which `scripts/setup.sh run' unpacks under
%% _build/yaws. Yaws has its sessions, the files that it serves and the state of its logs in tables
%% of `ets'.
%%
%% ```
%%   package ──copy──> copy ──larder_move──> moved copy
%%      |                                        |
%%    node: Yaws                            node: Yaws         visitors count their visits in a
%%    on ets                                on Larder          session, and fetch files
%%                                               |
%%                               originals <──undo
%% '''
%%
%% Each answer has to be right, each table has to be where it is meant to be, and the originals have
%% to be as they were; otherwise the program ends with an error.
-module(larder_demo_moved).

-export([run/1, serve/2, tables/0]).

-export_type([options/0, result/0]).

-type options() :: #{package := file:filename(),      % Yaws, with its ebin
                     work := file:filename(),         % a folder, which is made anew
                     visitors := pos_integer(),       % at the same time
                     visits := pos_integer()}.        % of each
-type result() :: #{seconds := float(), modules := pos_integer(), untouched := non_neg_integer(),
                    sessions := pos_integer(), requests := pos_integer(),
                    ets := float(), larder := float()}.
%% How many modules moved, and how many had nothing to do with `ets'; on each side: sessions at the
%% end, and requests; requests a second on `ets' and on Larder.

-define(FILES, 20).
%% The sides take turns.
-define(ROUNDS, 3).
-define(PATIENCE, 20_000).

%% A page that counts a visitor's visits.
-define(PAGE, "<erl>
out(Arg) ->
    Cookie = yaws_api:find_cookie_val(\"visitor\", Arg),
    case yaws_api:cookieval_to_opaque(Cookie) of
        {ok, N} ->
            yaws_api:replace_cookie_session(Cookie, N + 1),
            {content, \"text/plain\", integer_to_list(N + 1)};
        {error, _} ->
            [yaws_api:set_cookie(\"visitor\", yaws_api:new_cookie_session(1), []),
             {content, \"text/plain\", \"1\"}]
    end.
</erl>").

%% @doc Moves a copy of the package, and has both do the same.
-spec run(options()) -> result().
run(#{package := Package, work := Work, visitors := Visitors, visits := Visits}) ->
    Start = erlang:monotonic_time(millisecond),
    _ = file:del_dir_r(Work),
    Copy = filename:join(Work, "yaws"),
    copy(Package, Copy),
    {ok, #{moves := [_ | _] = Moves, left := [], untouched := Untouched}} = larder_move:move(Copy),
    io:format("Yaws, a web server: ~w modules moved to Larder, ~w have nothing to do with ets~n",
              [length(Moves), Untouched]),
    Site = site(filename:join(Work, "site")),
    Servers = [server(Side, Yaws, Site, filename:join(Work, Side))
               || {Side, Yaws} <- [{ets, Package}, {larder, Copy}]],
    Rates = [[visited(Server, Visitors, Visits) || Server <- Servers]
             || _ <- lists:seq(1, ?ROUNDS)],
    [Ets, Larder] = [ended(Server, ?ROUNDS * Visitors, [lists:nth(N, Round) || Round <- Rates])
                     || {N, Server} <- lists:enumerate(Servers)],
    {ok, Undone} = larder_move:undo(Copy),
    {undone, true} = {undone, length(Undone) =:= length(Moves)
                              andalso content(Copy) =:= content(Package)},
    io:format("the originals are in their places again~n"),
    #{seconds => (erlang:monotonic_time(millisecond) - Start) / 1000,
      modules => length(Moves), untouched => Untouched,
      sessions => ?ROUNDS * Visitors, requests => ?ROUNDS * requests(Visitors, Visits),
      ets => Ets, larder => Larder}.

copy(From, To) ->
    lists:foreach(fun({Name, Content}) ->
                      ok = filelib:ensure_dir(filename:join(To, Name)),
                      ok = file:write_file(filename:join(To, Name), Content)
                  end, content(From)).

%% The files below a folder, by their names.
content(Folder) ->
    [{Name, element(2, {ok, _} = file:read_file(filename:join(Folder, Name)))}
     || Name <- lists:sort(filelib:wildcard("**", Folder)),
        filelib:is_regular(filename:join(Folder, Name))].

%% The folder that is served: the page, and files of other sizes.
site(Folder) ->
    ok = filelib:ensure_path(Folder),
    ok = file:write_file(filename:join(Folder, "count.yaws"), ?PAGE),
    [ok = file:write_file(filename:join(Folder, file_name(N)), file_content(N))
     || N <- lists:seq(0, ?FILES - 1)],
    Folder.

file_name(N) -> integer_to_list(N) ++ ".txt".

file_content(N) -> binary:copy(<<"a line\n">>, 1 + N * N).

%% ---- the server, on a node of its own ----

%% Yaws writes what it compiles below its user's home.
server(Side, Yaws, Site, Home) ->
    ok = filelib:ensure_path(Home),
    Paths = [filename:join(Yaws, "ebin")
             | [filename:dirname(code:which(Module)) || Module <- [larder, ?MODULE]]],
    Args = ["-kernel", "logger_level", "error"
            | lists:append([["-pa", filename:absname(Path)] || Path <- Paths])],
    {ok, Node, _} = peer:start_link(#{connection => standard_io, args => Args,
                                      env => [{"HOME", filename:absname(Home)}]}),
    Port = call(Node, serve, [filename:absname(Site), filename:absname(Home)]),
    {Side, Node, Port}.

call(Node, Function, Arguments) ->
    peer:call(Node, ?MODULE, Function, Arguments, ?PATIENCE).

%% Requests a second.
visited({_Side, _Node, Port}, Visitors, Visits) ->
    {Microseconds, _} = timer:tc(fun() -> visitors(Port, Visitors, Visits) end),
    requests(Visitors, Visits) / Microseconds * 1.0e6.

requests(Visitors, Visits) -> 2 * Visitors * Visits.

%% All that Yaws keeps has to be on its side, and nothing on the other.
ended({Side, Node, _Port}, Sessions, Rates) ->
    Tables = call(Node, tables, []),
    ok = peer:stop(Node),
    {Side, [{Side, yaws_code, Files}, {Side, yaws_log, _},
            {Side, yaws_session_server, Sessions}]} = {Side, Tables},
    true = Files > 0,
    Median = lists:nth((?ROUNDS + 1) div 2, lists:sort(Rates)),
    io:format("  on ~-7s ~w sessions, all visits counted; ~w requests a second~n",
              [[atom_to_list(Side), $:], Sessions, round(Median)]),
    Median.

%% @private
%% @doc Starts Yaws, and answers with its port.
serve(Site, Logs) ->
    ok = yaws:start_embedded(Site, [{port, 0}, {listen, {127, 0, 0, 1}}, {servername, "localhost"}],
                             [{logdir, Logs}, {id, "moved"}], "moved"),
    {ok, _, [[Server]]} = yaws_api:getconf(),
    yaws_api:get_listen_port(Server).

%% @private
%% @doc The tables of Yaws: on which side each is, its name and its size.
tables() ->
    lists:sort([{Side, Name, Side:info(Table, size)}
                || Side <- [ets, larder], Table <- Side:all(),
                   "yaws_" ++ _ <- [atom_to_list(Side:info(Table, name))],
                   Name <- [Side:info(Table, name)]]).

%% ---- those who visit it ----

visitors(Port, Visitors, Visits) ->
    Running = [spawn_monitor(fun() -> visitor(Port, N, Visits) end)
               || N <- lists:seq(1, Visitors)],
    [receive
         {'DOWN', Monitor, process, Pid, normal} -> ok;
         {'DOWN', Monitor, process, Pid, Why} -> error({visitor, Why})
     end || {Pid, Monitor} <- Running].

visitor(Port, N, Visits) ->
    Options = [binary, {active, false}, {nodelay, true}],
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, Options),
    visit(Socket, "", N, 1, Visits),
    gen_tcp:close(Socket).

visit(_Socket, _Cookie, _Who, N, Visits) when N > Visits ->
    ok;
visit(Socket, Cookie0, Who, N, Visits) ->
    Count = integer_to_binary(N),
    {Set, Count} = get(Socket, "/count.yaws", Cookie0),
    Cookie = case Set of
                 none -> Cookie0;
                 _ -> hd(string:lexemes(Set, ";"))
             end,
    File = (Who + N) rem ?FILES,
    Content = file_content(File),
    {none, Content} = get(Socket, [$/ | file_name(File)], Cookie),
    visit(Socket, Cookie, Who, N + 1, Visits).

%% The cookie that an answer sets, and its body.
get(Socket, Path, Cookie) ->
    ok = gen_tcp:send(Socket, ["GET ", Path, " HTTP/1.1\r\nHost: localhost\r\n",
                               [["Cookie: ", Cookie, "\r\n"] || Cookie =/= ""], "\r\n"]),
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    {ok, {http_response, _, 200, _}} = gen_tcp:recv(Socket, 0, ?PATIENCE),
    Headers = headers(Socket),
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, Body} = gen_tcp:recv(Socket, binary_to_integer(maps:get('Content-Length', Headers)),
                              ?PATIENCE),
    {maps:get('Set-Cookie', Headers, none), Body}.

headers(Socket) ->
    case gen_tcp:recv(Socket, 0, ?PATIENCE) of
        {ok, {http_header, _, Name, _, Value}} -> (headers(Socket))#{Name => Value};
        {ok, http_eoh} -> #{}
    end.
