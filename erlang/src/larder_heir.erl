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

%% @doc Guards the calling process, if the options name an heir.
-spec guard(term()) -> ok.
guard(Options) when is_list(Options) ->
    case lists:keymember(heir, 1, Options) of
        true -> guard(fun larder_nif:guard_wanted/0, self());
        false -> ok
    end;
guard(Option) ->
    guard([Option]).

%% @doc Guards the process that a table is about to be given to, if the table
%% has an heir.
-spec guard_next(larder:table(), term()) -> ok.
guard_next(Table, Pid) ->
    guard(fun() -> larder_nif:guard_of_next(Table, Pid) end, Pid).

%% Only the timers may refer to the guards: the garbage collection frees other references.
guard(Wanted, Owner) ->
    case Wanted() of
        false ->
            ok;
        Guard ->
            _ = erlang:send_after(?NEVER, Owner, Guard),
            timers(?GUARD_TIMERS, Owner),
            true = erlang:garbage_collect(self(), [{type, minor}]),
            guard(Wanted, Owner)
    end.

timers(0, _) ->
    ok;
timers(N, Owner) ->
    _ = erlang:send_after(?NEVER, Owner, []),
    timers(N - 1, Owner).
