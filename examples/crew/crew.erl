%% @doc What the examples share: processes that work until they are told to
%% stop, and whose errors are those of the program.
-module(crew).

-export([main/2, start/1, stop/1, kill/1, is_to_stop/0, is_to_stop/1, watch/3, in_pieces/3]).

-export_type([worker/0]).

-type worker() :: {pid(), reference()}.

%% @doc Runs a program for the command line, and ends the node: with status 1 if
%% it found anything wrong.
-spec main(Name :: string(), fun(() -> term())) -> no_return().
main(Name, Program) ->
    Status = try
                 _ = Program(),
                 0
             catch
                 Class:Reason:Stack ->
                     io:format("~nThe ~s FAILED: ~p: ~tp~n~tp~n", [Name, Class, Reason, Stack]),
                     1
             end,
    halt(Status, [{flush, true}]).

%% @doc A process that calls the fun.
-spec start(fun(() -> term())) -> worker().
start(Fun) -> spawn_monitor(Fun).

%% @doc Asks a process to stop, and waits until it has.
-spec stop(worker()) -> ok.
stop({Pid, Monitor}) ->
    Pid ! stop,
    receive
        {'DOWN', Monitor, process, Pid, normal} -> ok;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

%% @doc Returns when the process has ended.
-spec kill(worker()) -> ok.
kill({Pid, Monitor}) ->
    true = demonitor(Monitor, [flush]),
    true = exit(Pid, kill),
    Again = monitor(process, Pid),
    receive {'DOWN', Again, process, Pid, _} -> ok end.

%% @doc Whether the calling process has been asked to stop.
-spec is_to_stop() -> boolean().
is_to_stop() -> is_to_stop(0).

%% @doc The same; waits so many milliseconds for it.
-spec is_to_stop(non_neg_integer()) -> boolean().
is_to_stop(Milliseconds) ->
    receive stop -> true after Milliseconds -> false end.

%% @doc Prints a line each second until the end: the seconds since the
%% beginning, and what the fun says. A worker that ends has found something
%% wrong. Both times are `erlang:monotonic_time(millisecond)'.
-spec watch(integer(), integer(), fun((Seconds :: float()) -> iodata())) -> ok.
watch(Begin, End, Line) ->
    Now = erlang:monotonic_time(millisecond),
    Next = max(Now, min(End, Now + 1000)),
    receive
        {'DOWN', _, process, _, Reason} -> error(Reason)
    after Next - Now -> ok
    end,
    Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
    io:format("  ~5.1f s: ~ts~n", [Took, Line(Took)]),
    case Next < End of
        true -> watch(Begin, End, Line);
        false -> ok
    end.

%% @doc Folds over what a limited select gives, piece by piece.
-spec in_pieces(fun((Piece :: [term()], Acc) -> Acc), Acc,
                {[term()], larder:continuation()} | '$end_of_table') -> Acc.
in_pieces(_, Acc, '$end_of_table') -> Acc;
in_pieces(Fun, Acc, {Piece, Continuation}) ->
    in_pieces(Fun, Fun(Piece, Acc), larder:select(Continuation)).
