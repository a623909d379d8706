%% @doc The readers of the program behind `make run': package lists as apt
%% writes them, plain or compressed, and the status file of dpkg for a machine
%% that has no lists. The files are made here.
-module(demo_tests).

-export([reading_test_/0, whole_run_test_/0]).

-define(COMPRESSED, [{".gz", "gzip"}, {".xz", "xz"}, {".bz2", "bzip2"},
                     {".lz4", "lz4"}, {".zst", "zstd"}]).

reading_test_() ->
    [case_("a plain list", fun(Dir) -> reads(Dir, "", plain) end)]
        ++ [case_(Ext ++ " by " ++ Tool, fun(Dir) -> reads(Dir, Ext, Tool) end)
            || {Ext, Tool} <- ?COMPRESSED, os:find_executable(Tool) =/= false]
        ++ [case_(Ext ++ " by apt", fun(Dir) -> reads_with_apt(Dir, Ext, Tool) end)
            || {Ext, Tool} <- ?COMPRESSED, os:find_executable(Tool) =/= false,
               filelib:is_regular(apt_helper())]
        ++ [case_("several lists, and what is no list", fun several/1),
            case_("the status file of dpkg", fun status/1),
            case_("neither", fun neither/1),
            case_("a list that is damaged", fun damaged/1),
            case_("a list without packages", fun empty/1),
            case_("every field", fun fields/1)].

%% Without gzip and xz there would be little of a test left.
whole_run_test_() ->
    [case_("the tools are here", fun(_) ->
         [] = [Tool || Tool <- ["gzip", "xz"], os:find_executable(Tool) =:= false]
     end)]
        ++ [larder_test:tc("the whole program on a status file", 300, Sut, fun() ->
                in_folder(fun(Dir) -> whole_run(Dir, Sut) end)
            end) || Sut <- larder_test:other_suts()].

case_(Title, Fun) ->
    {Title, {timeout, 60, fun() -> in_folder(Fun) end}}.

in_folder(Fun) ->
    Name = io_lib:format("larder-demo-~s-~b", [os:getpid(), erlang:unique_integer([positive])]),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), lists:flatten(Name)),
    ok = filelib:ensure_dir(filename:join([Dir, "lists", "x"])),
    try Fun(Dir) after ok = file:del_dir_r(Dir) end.

apt_helper() -> maps:get(apt_helper, larder_demo_debian:places()).

%% Nothing of this machine's: no lists, no status file, no apt.
places(Dir) ->
    #{lists => filename:join(Dir, "lists"), status => filename:join(Dir, "status"),
      apt_helper => filename:join(Dir, "no-apt")}.

%% The names and the versions, and the files that were read.
read(Places) ->
    {Files, Packages} = larder_demo_debian:read(fun(_) -> ok end, Places),
    {[filename:basename(F) || F <- Files], [{N, V} || {N, #{version := V}} <- Packages]}.

reads(Dir, Ext, Tool) -> reads_at(Dir, places(Dir), Ext, Tool).

reads_with_apt(Dir, Ext, Tool) ->
    reads_at(Dir, (places(Dir))#{apt_helper := apt_helper()}, Ext, Tool).

reads_at(Dir, Places, Ext, Tool) ->
    Name = "mirror.example.org_debian_dists_x_main_binary-amd64_Packages",
    write_list(Dir, Name, Tool, text([{"beta", "2"}, {"alpha", "1"}])),
    {[File], [{<<"alpha">>, <<"1">>}, {<<"beta">>, <<"2">>}]} = read(Places),
    File = Name ++ Ext.

%% `Tool' compresses its standard input; the list is removed again by it.
write_list(Dir, Name, Tool, Text) ->
    Path = filename:join([Dir, "lists", Name]),
    ok = file:write_file(Path, Text),
    case Tool of
        plain -> ok;
        "lz4" -> run("lz4", ["-q", "--rm", Path, Path ++ ".lz4"]);
        "zstd" -> run("zstd", ["-q", "--rm", Path]);
        _ -> run(Tool, [Path])
    end.

run(Tool, Args) ->
    Port = open_port({spawn_executable, os:find_executable(Tool)},
                     [{args, Args}, exit_status, stderr_to_stdout, hide]),
    0 = ended(Port).

ended(Port) ->
    receive
        {Port, {data, _}} -> ended(Port);
        {Port, {exit_status, Status}} -> Status
    end.

text(Packages) ->
    [["Package: ", Name, "\nVersion: ", Version, "\nDescription: some text\n of two lines\n\n"]
     || {Name, Version} <- Packages].

several(Dir) ->
    write_list(Dir, "a_Packages", "gzip", text([{"both", "old"}, {"one", "1"}])),
    write_list(Dir, "b_Packages", "xz", text([{"both", "new"}, {"two", "2"}])),
    write_list(Dir, "b_Packages.diff_Index", plain, text([{"not", "read"}])),
    write_list(Dir, "b_InRelease", plain, text([{"not", "read"}])),
    ok = filelib:ensure_dir(filename:join([Dir, "lists", "d_Packages", "x"])),
    ok = file:write_file(filename:join(Dir, "status"), text([{"not", "read"}])),
    {["a_Packages.gz", "b_Packages.xz"],
     [{<<"both">>, <<"new">>}, {<<"one">>, <<"1">>}, {<<"two">>, <<"2">>}]} = read(places(Dir)).

%% Also where there is no folder of lists at all.
status(Dir) ->
    ok = file:write_file(filename:join(Dir, "status"), text([{"here", "1.0-1"}])),
    Found = {["status"], [{<<"here">>, <<"1.0-1">>}]},
    Found = read(places(Dir)),
    ok = file:del_dir_r(filename:join(Dir, "lists")),
    Found = read(places(Dir)).

neither(Dir) ->
    {no_package_index, [_, _]} = refused(places(Dir)),
    ok = file:write_file(filename:join(Dir, "status"), ""),
    {no_package_index, [_, _]} = refused(places(Dir)).

damaged(Dir) ->
    ok = file:write_file(filename:join([Dir, "lists", "a_Packages.gz"]), "no such thing"),
    {failed, _, ["-dc", _], Status} = refused(places(Dir)),
    true = Status > 0.

empty(Dir) ->
    write_list(Dir, "a_Packages", "gzip", "\n"),
    {no_packages_in, [_]} = refused(places(Dir)).

refused(Places) ->
    try larder_demo_debian:read(fun(_) -> ok end, Places) of
        Result -> error({not_refused, Result})
    catch error:Reason -> Reason
    end.

fields(Dir) ->
    Text = "Package: x\nInstalled-Size: 686\nTag: a::b, c::d,\n e::f\n"
           "Depends: libc6 (>= 2.36), a:any | b (<< 1~),\n c [amd64]\n"
           "Pre-Depends: dpkg (>= 1.17)\nX-Odd: kept: as it is\nDescription: first\n .\n  last\n",
    write_list(Dir, "a_Packages", plain, Text),
    {_, [{<<"x">>, Record}]} = larder_demo_debian:read(fun(_) -> ok end, places(Dir)),
    #{package := <<"x">>, installed_size := 686,
      tag := [<<"a::b">>, <<"c::d">>, <<"e::f">>],
      depends := [[{<<"libc6">>, {<<">=">>, <<"2.36">>}}],
                  [{<<"a">>, any}, {<<"b">>, {<<"<<">>, <<"1~">>}}],
                  [{<<"c">>, any}]],
      pre_depends := [[{<<"dpkg">>, _}]],
      <<"X-Odd">> := <<"kept: as it is">>,
      description := <<"first\n .\n  last">>} = Record,
    [{<<"a">>, <<"x">>, depends}, {<<"b">>, <<"x">>, depends}, {<<"c">>, <<"x">>, depends},
     {<<"dpkg">>, <<"x">>, pre_depends}, {<<"libc6">>, <<"x">>, depends}] =
        larder_demo_debian:reverse_dependencies([{<<"x">>, Record}]).

%% The whole of it, on packages enough for every operation to find something.
%% In a process of its own, with which its tables go.
whole_run(Dir, Sut) ->
    Text = [["Package: p", integer_to_list(N), "\nStatus: install ok installed\n",
             "Section: s", integer_to_list(N rem 7), "\nInstalled-Size: ",
             integer_to_list(N * 37 rem 1000),
             "\nVersion: 1.", integer_to_list(N), "\nPriority: optional\n",
             "Depends: p", integer_to_list(N div 2), ", p", integer_to_list(N div 3),
             " | q (>= 1)\n\n"]
            || N <- lists:seq(1, 400)],
    ok = file:write_file(filename:join(Dir, "status"), Text),
    Results = filename:join(Dir, "results"),
    {Pid, Mon} = spawn_monitor(fun() ->
        exit({status, larder_demo:run({ets, Sut}, 42, Results, places(Dir))})
    end),
    {status, 0} = receive {'DOWN', Mon, process, Pid, Why} -> Why end,
    {ok, [_ | _]} = file:list_dir(Results).
