%% @private
%% @doc Guards of processes whose tables have an heir. They make sure that the heir is informed of
%% the owner's end before processes that are linked to the owner or monitor it. The library's module
%% `owners' explains how.
-module(larder_heir).

-export([guard/1, guard_next/2]).

%% The time of the timers of a guard, in milliseconds: 34 years, so they never fire.
-define(NEVER, 1 bsl 40).
%% Enough timers for an exiting process to use up its reductions.
-define(GUARD_TIMERS, 50).

%% @doc Guards the calling process, if the options name an heir. To be called before the heir is
%% set: a process that is killed while it gets its guards has no heir yet. The options may be
%% anything.
-spec guard(term()) -> true.
guard(Option) when is_tuple(Option) ->
    guard([Option]);
guard([{heir, none} | Options]) ->
    guard(Options);
guard([Option | _]) when element(1, Option) =:= heir ->
    guard(fun larder_nif:guard_wanted/0, self());
guard([_ | Options]) ->
    guard(Options);
guard(_) ->
    true.

%% @doc Guards the process that a table is about to be given to, if the table
%% has an heir.
-spec guard_next(larder:table(), term()) -> true.
guard_next(Table, Pid) ->
    guard(fun() -> larder_nif:guard_of_next(Table, Pid) end, Pid).

guard(Wanted, Owner) ->
    case Wanted() of
        false -> true;
        Guard -> keep(Guard, Wanted, Owner)
    end.

%% Only the timers may refer to the guards. The garbage collection frees other references, which
%% are all young: no guard is used after its timer was started.
keep(Guard, Wanted, Owner) ->
    _ = erlang:send_after(?NEVER, Owner, Guard),
    timers(?GUARD_TIMERS, Owner),
    case Wanted() of
        false -> erlang:garbage_collect(self(), [{type, minor}]);
        Next -> keep(Next, Wanted, Owner)
    end.

timers(0, _) ->
    ok;
timers(N, Owner) ->
    _ = erlang:send_after(?NEVER, Owner, []),
    timers(N - 1, Owner).
