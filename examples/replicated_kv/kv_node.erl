%% @doc What the nodes of replicated_kv do: they start Ra, send commands, and say how long the
%% store's server was busy with snapshots. Called by replicated_kv.
-module(kv_node).

-export([start/1, restart/1, form/2, formed/0, add/2, fill/2, begin_writing/2, end_writing/0, digest/1,
         leader/0, measure/2, die_in_snapshot/0, installed/0, crash/0]).

-define(SERVER, {kv, node()}).
-define(WRITER, kv_writer).
%% Rows of a command that fills.
-define(ROWS, 1000).
-define(VALUE, <<"sixteen bytes!!!">>).
%% Commands of a writer that are in flight.
-define(WINDOW, 64).
%% A prime: a writer goes through the keys in no order.
-define(STEP, 7919).
-define(PATIENCE, 600_000).

%% @doc Starts Ra, whose files are in this folder.
-spec start(Folder :: file:filename()) -> ok.
start(Folder) ->
    {ok, _} = ra:start_in(Folder),
    ok.

%% @doc Starts Ra, and the server that was there.
-spec restart(Folder :: file:filename()) -> ok.
restart(Folder) ->
    ok = start(Folder),
    ok = ra:restart_server(default, ?SERVER).

%% @doc Starts the store on all nodes.
-spec form({module, module(), kv:config()}, [node()]) -> ok.
form(Machine, Nodes) ->
    {ok, Started, []} = ra:start_cluster(default, kv, Machine, [{kv, Node} || Node <- Nodes]),
    true = length(Started) =:= length(Nodes),
    ok.

%% @doc Ra writes the names of its servers to disc half a second later: now, as nodes get killed.
-spec formed() -> ok.
formed() ->
    {ok, Names} = ra_system:lookup_name(default, directory_rev),
    ok = dets:sync(Names).

%% @doc Adds to what there is under a key.
-spec add(Key :: term(), integer()) -> integer().
add(Key, Amount) ->
    {ok, {ok, Sum}, _} = ra:process_command(?SERVER, {add, Key, Amount}, ?PATIENCE),
    Sum.

%% @doc Puts a value under the keys from `From' to `Rows - 1'.
-spec fill(From :: non_neg_integer(), Rows :: non_neg_integer()) -> ok.
fill(From, Rows) when From >= Rows ->
    ok;
fill(From, Rows) ->
    To = min(From + ?ROWS, Rows) - 1,
    {ok, ok, _} = ra:process_command(?SERVER, {fill, From, To, ?VALUE}, ?PATIENCE),
    fill(To + 1, Rows).

%% @doc The server that leads, as this node knows it.
-spec leader() -> {kv, node()} | unknown.
leader() ->
    case ra:members(?SERVER, 2000) of
        {ok, _, {kv, _} = Leader} -> Leader;
        _ -> unknown
    end.

%% ---- writers ----

-record(writer, {me :: atom(), range :: pos_integer(), leader :: {kv, node()},
                 seq = 1 :: pos_integer(),
                 %% Commands in flight, and whether each one adds.
                 sent = #{} :: #{pos_integer() => boolean()},
                 %% Additions that were done, and those of which nobody knows.
                 added = 0 :: non_neg_integer(), unknown = 0 :: non_neg_integer()}).

%% @doc Lets a process send commands: keys below `Range' are written and deleted, and every fourth
%% command adds one to the key `{writer, Me}'.
-spec begin_writing(Me :: atom(), Range :: pos_integer()) -> ok.
begin_writing(Me, Range) ->
    Writer = spawn(fun() -> write(#writer{me = Me, range = Range, leader = found()}) end),
    true = register(?WRITER, Writer),
    ok.

%% @doc Ends it, after how many commands. Of its additions so many are done, and so many may be.
-spec end_writing() -> {Commands :: non_neg_integer(), Added :: non_neg_integer(),
                        Unknown :: non_neg_integer()}.
end_writing() ->
    Monitor = monitor(process, ?WRITER),
    ?WRITER ! {stop, self()},
    receive
        {written, Result} -> Result;
        {'DOWN', Monitor, _, _, Reason} -> error({writer_failed, Reason})
    after ?PATIENCE -> error(writer_stuck)
    end.

write(Writer) ->
    receive
        {stop, From} -> From ! {written, finish(Writer)}
    after 0 -> write(answered(1000, sent(Writer)))
    end.

finish(#writer{sent = Sent, seq = Seq, added = Added, unknown = Unknown})
  when map_size(Sent) =:= 0 -> {Seq - 1, Added, Unknown};
finish(Writer) -> finish(answered(5000, Writer)).

sent(#writer{sent = Sent} = Writer) when map_size(Sent) >= ?WINDOW ->
    Writer;
sent(#writer{sent = Sent, seq = Seq, leader = Leader} = Writer) ->
    Command = command(Seq, Writer),
    ok = ra:pipeline_command(Leader, Command, Seq, normal),
    sent(Writer#writer{seq = Seq + 1, sent = Sent#{Seq => element(1, Command) =:= add}}).

command(Seq, #writer{me = Me}) when Seq rem 4 =:= 0 -> {add, {writer, Me}, 1};
command(Seq, #writer{range = Range}) when Seq rem 4 =:= 1 -> {delete, Seq * ?STEP rem Range};
command(Seq, #writer{range = Range}) -> {put, Seq * ?STEP rem Range, Seq}.

%% Takes what comes next. Commands to a leader that is gone are never answered.
answered(Patience, #writer{sent = Sent} = Writer) ->
    receive
        {ra_event, _, {applied, Replies}} ->
            lists:foldl(fun({Seq, _}, W) -> done(Seq, W) end, Writer, Replies);
        {ra_event, _, {rejected, {not_leader, _, Seq}}} ->
            Writer#writer{sent = maps:remove(Seq, Sent), leader = found()}
    after Patience ->
        Adding = length([Seq || {Seq, true} <- maps:to_list(Sent)]),
        Writer#writer{sent = #{}, leader = found(), unknown = Writer#writer.unknown + Adding}
    end.

%% What is answered after all stays unknown.
done(Seq, #writer{sent = Sent, added = Added} = Writer) ->
    case maps:take(Seq, Sent) of
        {true, Others} -> Writer#writer{sent = Others, added = Added + 1};
        {false, Others} -> Writer#writer{sent = Others};
        error -> Writer
    end.

found() ->
    case leader() of
        unknown -> timer:sleep(50), found();
        Leader -> Leader
    end.

%% ---- what the server has ----

%% @doc What this node's copy has in it. A server that is being sent a snapshot does not answer.
-spec digest(module()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()} | unknown.
digest(Module) ->
    case ra:local_query(?SERVER, {Module, digest, []}, 10_000) of
        {ok, {_, Digest}, _} -> Digest;
        {timeout, _} -> unknown;
        {error, _} -> unknown
    end.

%% @doc How many snapshots of others this node's server has taken over since it started.
-spec installed() -> non_neg_integer().
installed() ->
    #{?SERVER := #{snapshot_installed := Installed}} = ra_counters:overview(),
    Installed.

%% @doc Kills the server, which its supervisor starts again. Returns once it is there.
-spec crash() -> ok.
crash() ->
    Pid = whereis(kv),
    Monitor = monitor(process, Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    started_again(2000).

started_again(Tries) when Tries > 0 ->
    case ra:ping(?SERVER, 1000) of
        {pong, _} -> ok;
        _ -> timer:sleep(5), started_again(Tries - 1)
    end.

%% ---- snapshots ----

%% @doc Until this node's server has begun so many snapshots, or so many milliseconds have passed:
%% how long it was busy beginning one, and how long others waited for an answer of it. Both in
%% microseconds.
-spec measure(Snapshots :: pos_integer(), Milliseconds :: pos_integer()) ->
          #{snapshots := non_neg_integer(), begun := [non_neg_integer()],
            waited := non_neg_integer(), median := non_neg_integer()}.
measure(Snapshots, Milliseconds) ->
    Asker = spawn_link(fun() -> ask([]) end),
    Begun = traced(fun() -> begun(Snapshots, deadline(Milliseconds), none, []) end),
    Asker ! {stop, self()},
    Waits = receive {waits, All} -> lists:sort(All) end,
    #{snapshots => length(Begun), begun => Begun, waited => lists:last(Waits),
      median => lists:nth((length(Waits) + 1) div 2, Waits)}.

deadline(Milliseconds) -> erlang:monotonic_time(millisecond) + Milliseconds.

ask(Waits) ->
    receive
        {stop, From} -> From ! {waits, Waits}
    after 1 ->
        {Microseconds, {pong, _}} = timer:tc(fun() -> ra:ping(?SERVER, 60_000) end),
        ask([Microseconds | Waits])
    end.

%% The server's calls for a snapshot are traced: that of Larder's, in the command, and that of Ra,
%% after a batch of commands, which prepares it and starts the writer.
traced(Fun) ->
    Return = [{'_', [], [{return_trace}]}],
    _ = code:ensure_loaded(larder_ra),
    _ = erlang:trace_pattern({larder_ra, release_cursor, 2}, Return, [local]),
    _ = erlang:trace_pattern({ra_snapshot, begin_snapshot, '_'}, Return, [local]),
    1 = erlang:trace(whereis(kv), true, [call, monotonic_timestamp]),
    try
        Fun()
    after
        _ = erlang:trace(whereis(kv), false, [all]),
        erlang:trace_pattern({'_', '_', '_'}, false, [local])
    end.

%% The times of one snapshot are added.
begun(Snapshots, _, _, Begun) when length(Begun) >= Snapshots ->
    Begun;
begun(Snapshots, Deadline, Taken, Begun) ->
    receive
        {trace_ts, _, call, {Module, _, _}, Since} ->
            receive
                {trace_ts, _, return_from, {Module, _, _}, _, Until} ->
                    Took = erlang:convert_time_unit(Until - Since, native, microsecond),
                    case Module of
                        larder_ra -> begun(Snapshots, Deadline, Took, Begun);
                        ra_snapshot when Taken =:= none ->
                            begun(Snapshots, Deadline, none, [Took | Begun]);
                        ra_snapshot ->
                            begun(Snapshots, Deadline, none, [Taken + Took | Begun])
                    end
            end
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> Begun
    end.

%% @doc Ends this node, without another word, when its server's snapshot begins to be written.
-spec die_in_snapshot() -> no_return().
die_in_snapshot() ->
    {module, _} = code:ensure_loaded(larder_ra_file),
    1 = erlang:trace_pattern({larder_ra_file, write, 2}, true, []),
    1 = erlang:trace(whereis(kv), true, [call, set_on_spawn]),
    die_while_it_writes().

%% A writer that has ended before it was suspended has left a whole snapshot: then the next one.
die_while_it_writes() ->
    receive
        {trace, Writer, call, {larder_ra_file, write, _}} ->
            try erlang:suspend_process(Writer) of
                true -> halt(137, [{flush, false}])
            catch
                error:badarg -> die_while_it_writes()
            end
    end.
