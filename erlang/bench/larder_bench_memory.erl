%% @doc The memory of a row, each time in a fresh virtual machine: what the table says of itself,
%% and by how much the machine's resident memory grew. Only the second knows what allocators keep,
%% so that is what is judged.
-module(larder_bench_memory).

-export([measure/3, child/1]).

-export_type([measured/0]).

-type measured() :: #{row := larder_bench_work:row(), type := atom(), name := string(),
                      size := pos_integer(),
                      ets := [float()], larder := [float()],
                      info := {Ets :: float(), Larder :: float()}}.
%% Bytes a row: resident ones, and by `info(Table, memory)'.

%% What the background work of both sides needs to come to rest.
-define(REST_MS, 300).
%% Less than this can't be seen of resident memory.
-define(PAGE, 4096).

%% @doc Measures one of {@link larder_bench_work:memories/0} at a size. Small tables are filled in
%% numbers, up to about so many rows, because memory is given in large pieces.
-spec measure(larder_bench_work:memory(), pos_integer(), pos_integer()) -> measured().
measure(#{row := Row, name := Name, type := Type} = Memory, Size, Rows) ->
    Count = max(1, Rows div Size),
    {EtsInfo, Ets} = in_child(larder_bench_ets, Memory, Size, Count),
    {LarderInfo, Larder} = in_child(larder_bench_larder, Memory, Size, Count),
    #{row => Row, type => Type, name => Name, size => Size, ets => [Ets], larder => [Larder],
      info => {EtsInfo, LarderInfo}}.

in_child(Side, #{type := Type, shape := Shape, order := Order}, Size, Count) ->
    Words = [atom_to_list(W) || W <- [Side, Type, Shape, Order]]
        ++ [integer_to_list(N) || N <- [Size, Count]],
    Paths = lists:usort([filename:dirname(code:which(M)) || M <- [?MODULE, larder]]),
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noinput", "-pa"] ++ Paths
                       ++ ["-s", atom_to_list(?MODULE), "child" | Words]},
                      exit_status, binary, hide]),
    case output(Port, []) of
        {0, Text} ->
            {match, [Info, Resident]} = re:run(Text, "^bytes ([0-9.]+) ([0-9.]+)$",
                                               [{capture, [1, 2], list}, multiline]),
            {list_to_float(Info), list_to_float(Resident)};
        {Status, Text} ->
            error({failed, Words, Status, Text})
    end.

output(Port, Acc) ->
    receive
        {Port, {data, Bytes}} -> output(Port, [Acc, Bytes]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Acc)}
    end.

%% @doc What the fresh machine does.
-spec child([atom()]) -> no_return().
child([Side, Type, Shape, Order | Numbers]) ->
    [Size, Count] = [list_to_integer(atom_to_list(N)) || N <- Numbers],
    Options = [Type],
    %% Code is loaded, and the allocators have begun.
    First = Side:new(Options),
    ok = Side:fill(First, Shape, Order, 1),
    true = Side:delete(First),
    Before = resident(),
    Tables = [filled(Side, Options, Shape, Order, Size) || _ <- lists:seq(1, Count)],
    timer:sleep(?REST_MS),
    After = resident(),
    Info = lists:sum([Side:memory(T) || T <- Tables]),
    io:format("bytes ~.3f ~.3f~n",
              [Info / (Count * Size), max(?PAGE, After - Before) / (Count * Size)]),
    halt(0, [{flush, true}]).

filled(Side, Options, Shape, Order, Size) ->
    T = Side:new(Options),
    ok = Side:fill(T, Shape, Order, Size),
    T.

%% Bytes of this process that are in memory now.
resident() ->
    _ = [garbage_collect(P) || P <- processes()],
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [KiB]} = re:run(Status, "VmRSS:\\s+([0-9]+) kB", [{capture, [1], list}]),
    list_to_integer(KiB) * 1024.
