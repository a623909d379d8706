%% @doc A bank: transactions, snapshots and a feed at work on the same tables.
%%
%% ```
%%   tellers ── transactions ──> accounts, tills
%%                                 │         │
%%   auditor <──── snapshots ──────┴─────────┘   the sum never varies
%%                                 │
%%   mirror  <──── feed ───── accounts           the same, in a table of its own
%% '''
%%
%% A teller moves an amount from one account to another and takes a fee of 1 for
%% its till: a transaction on both tables. So neither table's sum stays as it is,
%% but that of both does. The auditor adds up snapshots of both, taken at one
%% instant. The mirror copies a snapshot of the accounts, and from there on does
%% what the feed tells.
%%
%% The program checks all of it, and ends with status 1 if anything is wrong.
%% `make bank' runs it; ACCOUNTS, SECONDS and TELLERS say how large and how long.
-module(bank).

-export([main/1, run/1]).

-export_type([options/0, result/0]).

-type options() :: #{accounts := pos_integer(), seconds := number(), tellers := pos_integer(),
                     %% Tellers that use no transactions: the audits have to notice.
                     careless => boolean()}.
-type result() :: #{accounts := pos_integer(), seconds := float(), transfers := non_neg_integer(),
                    refused := non_neg_integer(), again := non_neg_integer(),
                    audits := pos_integer(), events := non_neg_integer(),
                    resyncs := non_neg_integer()}.

%% What each account has in the beginning.
-define(BALANCE, 1000).
-define(FEE, 1).
%% No account has this number. It is written last, so that the mirror knows the end.
-define(CLOSED, closed).
%% Events that the mirror may fall behind before it has to begin again.
-define(BEHIND, 1000000).

%% Objects that are read of a snapshot at a time.
-define(PIECE, 5000).

%% What the processes share.
-record(bank, {accounts :: larder:table(), tills :: larder:table(), size :: pos_integer(),
               total :: integer(), figures :: counters:counters_ref()}).

%% The figures.
-define(TRANSFERS, 1).
-define(REFUSED, 2).
-define(RUNS, 3).
-define(AUDITS, 4).
-define(EVENTS, 5).
-define(RESYNCS, 6).

%% @doc For the command line: accounts, seconds, tellers. Ends the node.
-spec main([string()]) -> no_return().
main([Accounts, Seconds, Tellers]) ->
    crew:main("bank", fun() ->
        run(#{accounts => list_to_integer(Accounts), seconds => list_to_integer(Seconds),
              tellers => list_to_integer(Tellers)})
    end).

%% @doc Runs the bank for so long, and says what it does. Whatever is wrong is an
%% error of this call.
-spec run(options()) -> result().
run(#{seconds := Seconds, tellers := Tellers} = Options) ->
    Bank = open(Options),
    Auditor = crew:start(fun() -> audit(Bank) end),
    Mirror = crew:start(fun() -> mirror(Bank) end),
    Transfer = case Options of
                   #{careless := true} -> fun carelessly/4;
                   #{} -> fun transfer/4
               end,
    Begin = erlang:monotonic_time(millisecond),
    Working = [crew:start(fun() -> teller(Bank, Till, Transfer) end)
               || Till <- lists:seq(1, Tellers)],
    try
        crew:watch(Begin, Begin + round(Seconds * 1000), fun(Took) -> line(Bank, Took) end),
        lists:foreach(fun crew:stop/1, Working),
        Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
        crew:stop(Auditor),
        close(Bank, Mirror, Took)
    after
        lists:foreach(fun crew:kill/1, [Auditor, Mirror | Working]),
        larder:delete(Bank#bank.accounts),
        larder:delete(Bank#bank.tills)
    end.

open(#{accounts := Size}) when Size < 2 ->
    error({accounts, Size, a_transfer_needs, 2});
open(#{accounts := Size, tellers := Tellers}) ->
    io:format("A bank of ~b accounts with ~b each; ~b tellers, an auditor, a mirror.~n",
              [Size, ?BALANCE, Tellers]),
    Accounts = larder:new(accounts, [set, public]),
    Tills = larder:new(tills, [set, public]),
    fill(Accounts, 1, Size),
    true = larder:insert(Tills, [{Till, 0} || Till <- lists:seq(1, Tellers)]),
    #bank{accounts = Accounts, tills = Tills, size = Size, total = Size * ?BALANCE,
          figures = counters:new(?RESYNCS, [atomics])}.

fill(_, First, Size) when First > Size ->
    ok;
fill(Accounts, First, Size) ->
    Last = min(First + 9999, Size),
    true = larder:insert(Accounts, [{N, ?BALANCE} || N <- lists:seq(First, Last)]),
    fill(Accounts, Last + 1, Size).

count(#bank{figures = Figures}, Figure, N) -> counters:add(Figures, Figure, N).
figure(#bank{figures = Figures}, Figure) -> counters:get(Figures, Figure).

%% How far all are.
line(Bank, Took) ->
    Transfers = figure(Bank, ?TRANSFERS),
    io_lib:format("~b transfers (~b a second), ~b audits, the mirror has had ~b changes",
                  [Transfers, round(Transfers / Took), figure(Bank, ?AUDITS),
                   figure(Bank, ?EVENTS)]).

%%% Tellers

teller(Bank, Till, Transfer) ->
    case crew:is_to_stop() of
        true ->
            ok;
        false ->
            From = rand:uniform(Bank#bank.size),
            To = 1 + (From + rand:uniform(Bank#bank.size - 1) - 1) rem Bank#bank.size,
            case Transfer(Bank, Till, {From, To}, rand:uniform(?BALANCE)) of
                {atomic, ok} -> count(Bank, ?TRANSFERS, 1);
                {aborted, no_funds} -> count(Bank, ?REFUSED, 1)
            end,
            teller(Bank, Till, Transfer)
    end.

transfer(#bank{accounts = Accounts, tills = Tills} = Bank, Till, Between, Amount) ->
    larder:transaction([Accounts, Tills], fun([A, T]) ->
        count(Bank, ?RUNS, 1),
        move(A, T, Till, Between, Amount)
    end).

%% What a transfer would be without a transaction.
carelessly(#bank{accounts = Accounts, tills = Tills} = Bank, Till, Between, Amount) ->
    count(Bank, ?RUNS, 1),
    try
        {atomic, move(Accounts, Tills, Till, Between, Amount)}
    catch
        exit:{aborted, Reason} -> {aborted, Reason}
    end.

move(Accounts, Tills, Till, {From, To}, Amount) ->
    [{From, Has}] = larder:lookup(Accounts, From),
    [{To, Had}] = larder:lookup(Accounts, To),
    Has >= Amount orelse larder:abort(no_funds),
    true = larder:insert(Accounts, [{From, Has - Amount}, {To, Had + Amount - ?FEE}]),
    _ = larder:update_counter(Tills, Till, ?FEE),
    ok.

%%% The auditor

audit(Bank) ->
    audit_once(Bank),
    case crew:is_to_stop(20) of
        true -> audit_once(Bank);
        false -> audit(Bank)
    end.

%% Both tables as of one instant.
audit_once(#bank{accounts = Accounts, tills = Tills, total = Total} = Bank) ->
    Snapshots = larder:snapshot([Accounts, Tills]),
    Sum = lists:sum([sum(Snapshot) || Snapshot <- Snapshots]),
    lists:foreach(fun larder:release/1, Snapshots),
    Sum =:= Total orelse exit({the_sum_varies, Sum, Total}),
    count(Bank, ?AUDITS, 1).

sum(Table) ->
    crew:in_pieces(fun(Numbers, Sum) -> lists:sum(Numbers) + Sum end, 0,
                   larder:select(Table, [{{'_', '$1'}, [], ['$1']}], ?PIECE)).

%%% The mirror

mirror(#bank{accounts = Accounts} = Bank) ->
    Mirror = larder:new(mirror, [set, protected]),
    {Snapshot, Feed} = larder:snapshot_and_subscribe(Accounts, all, #{limit => ?BEHIND}),
    true = crew:in_pieces(fun(Objects, true) -> larder:insert(Mirror, Objects) end, true,
                          larder:select(Snapshot, [{'_', [], ['$_']}], ?PIECE)),
    true = larder:release(Snapshot),
    case larder:member(Mirror, ?CLOSED) of
        true -> wait_for_end(Mirror);
        false -> follow(Bank, Mirror, Feed, 0)
    end.

%% The numbers of commits only grow.
follow(Bank, Mirror, Feed, Last) ->
    receive
        {larder, Feed, Seq, Events} when Seq >= Last ->
            List = case is_list(Events) of true -> Events; false -> [Events] end,
            case apply_all(List, Mirror) of
                ok ->
                    count(Bank, ?EVENTS, length(List)),
                    follow(Bank, Mirror, Feed, Seq);
                closed ->
                    wait_for_end(Mirror);
                overflow ->
                    %% It fell behind by too much: it begins again.
                    count(Bank, ?RESYNCS, 1),
                    true = larder:unsubscribe(Feed),
                    true = larder:delete(Mirror),
                    flush(Feed),
                    mirror(Bank)
            end;
        {larder, Feed, Seq, _} ->
            exit({the_feed_goes_back, Last, Seq})
    end.

flush(Feed) ->
    receive {larder, Feed, _, _} -> flush(Feed) after 0 -> ok end.

apply_all([], _) ->
    ok;
apply_all([{insert, {?CLOSED, _} = Object} | _], Mirror) ->
    true = larder:insert(Mirror, Object),
    closed;
apply_all([{replace, {Key, _} = Old, New} | Rest], Mirror) ->
    %% No change is missing, and none comes twice.
    case larder:lookup(Mirror, Key) of
        [Old] -> true = larder:insert(Mirror, New);
        Other -> exit({the_mirror_has, Other, instead_of, Old})
    end,
    apply_all(Rest, Mirror);
apply_all([{overflow, _} | _], _) ->
    overflow.

%% Whoever asks may look at the mirror until it is told to stop.
wait_for_end(Mirror) ->
    receive {is_complete, From} -> From ! {mirror, Mirror} end,
    receive stop -> ok end.

%%% The end

%% The tellers have stopped. Compares what there is.
close(#bank{accounts = Accounts, tills = Tills} = Bank, {Pid, Monitor} = Mirror, Took) ->
    Transfers = figure(Bank, ?TRANSFERS),
    io:format("The tellers have stopped: ~b transfers in ~.1f s, ~b a second; ~b refused for lack of funds, ~b run again.~n",
              [Transfers, Took, round(Transfers / Took), figure(Bank, ?REFUSED), again(Bank)]),
    Fees = sum(Tills),
    Fees =:= ?FEE * Transfers orelse error({fees, Fees, transfers, Transfers}),
    io:format("The tills have the fee of each transfer. ~b audits found the sum of both tables to be ~b.~n",
              [figure(Bank, ?AUDITS), Bank#bank.total]),
    Snapshot = larder:snapshot(Accounts),
    true = larder:insert(Accounts, {?CLOSED, true}),
    Pid ! {is_complete, self()},
    receive
        {mirror, Table} -> same(Snapshot, Table);
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end,
    true = larder:release(Snapshot),
    crew:stop(Mirror),
    io:format("The mirror has had ~b changes, began again ~b times, and is the same as a snapshot: ~b accounts.~n",
              [figure(Bank, ?EVENTS), figure(Bank, ?RESYNCS), Bank#bank.size]),
    #{accounts => Bank#bank.size, seconds => Took, transfers => Transfers,
      refused => figure(Bank, ?REFUSED), again => again(Bank), audits => figure(Bank, ?AUDITS),
      events => figure(Bank, ?EVENTS), resyncs => figure(Bank, ?RESYNCS)}.

again(Bank) ->
    figure(Bank, ?RUNS) - figure(Bank, ?TRANSFERS) - figure(Bank, ?REFUSED).

%% The mirror has what the snapshot has, and the end.
same(Snapshot, Mirror) ->
    [{?CLOSED, true}] = larder:lookup(Mirror, ?CLOSED),
    {Accounts, Mirrored} = {larder:info(Snapshot, size), larder:info(Mirror, size)},
    Mirrored =:= Accounts + 1 orelse error({accounts, Accounts, mirrored, Mirrored - 1}),
    crew:in_pieces(fun(Objects, ok) ->
        lists:foreach(fun(Object) -> same_object(Object, Mirror) end, Objects)
    end, ok, larder:select(Snapshot, [{'_', [], ['$_']}], ?PIECE)).

same_object({Key, _} = Object, Mirror) ->
    case larder:lookup(Mirror, Key) of
        [Object] -> ok;
        Other -> error({account, Object, mirrored, Other})
    end.
