%% @doc Sessions of a web service: found by their token and by their user, and
%% gone when nobody asks for them.
%%
%% ```
%%   browsers ── log in, ask, log out ──> sessions   {Token, User, Since}   set
%%                                          │          {idle, Milliseconds}
%%                                          │          an index of User
%%   mirror  <── feed ──────────────────────┤   what came, and how it went
%%   auditor <── snapshots ─────────────────┘   nobody has more than he may
%% '''
%%
%% A session that nobody asks for expires. One of a kiosk lives for a fixed time,
%% whoever asks. A user has at most five sessions: who logs in once more loses
%% the oldest. That is a transaction, which finds a user's sessions by the index,
%% so two who log in at once don't both count four. "Log out everywhere" is a
%% `match_delete' of the user, which takes the index by itself.
%%
%% Each browser has users of its own, of which it knows what it may find: a
%% session that it asked for lately is there, one that it has left alone for long
%% enough is gone, and none is left where it has logged out. Other users are
%% everybody's. The auditor counts the sessions of each user in a snapshot, and
%% asks the snapshot's index for them. The mirror follows the feed. When all have
%% stopped, the last sessions expire: then the mirror is empty, too, and what
%% came is what went.
%%
%% The program checks all of it, and ends with status 1 if anything is wrong.
%% `make sessions' runs it; USERS, SECONDS, BROWSERS and IDLE say how many users
%% all share, how long, how many processes, and after how many milliseconds a
%% session expires.
-module(sessions).

-export([main/1, run/1]).

-export_type([options/0, result/0]).

-type options() :: #{users := pos_integer(), seconds := number(), browsers := pos_integer(),
                     idle := pos_integer(),
                     %% Shared users log in without a transaction: the audits have to notice.
                     careless => boolean()}.
-type result() :: #{users := pos_integer(), seconds := float(), logins := pos_integer(),
                    asked := pos_integer(), gone := non_neg_integer(),
                    everywhere := non_neg_integer(), logged_out := non_neg_integer(),
                    expired := non_neg_integer(), audits := pos_integer()}.

%% Sessions that a user may have.
-define(MOST, 5).
%% Sessions of its own users that a browser asks for in turns.
-define(OPEN, 100).
%% Users that are a browser's own.
-define(OWN, 40).
%% How much longer than its time a session may seem to live or to have died: clocks count whole
%% milliseconds.
-define(SLACK, 5).
%% Users whose sessions an audit asks the index for.
-define(SAMPLE, 20).
%% Sessions that are read of a snapshot at a time.
-define(PIECE, 1000).
%% Milliseconds in which the library removes what has expired, at the most.
-define(PATIENCE, 30_000).
%% Events that the feed keeps for the mirror.
-define(LIMIT, 1_000_000).

-record(service, {table :: larder:table(), users :: pos_integer(), idle :: pos_integer(),
                  careless :: boolean(), figures :: counters:counters_ref()}).

%% The figures.
-define(LOGINS, 1).
-define(ASKED, 2).
-define(GONE, 3).
-define(EVERYWHERE, 4).
-define(AUDITS, 5).

%% @doc For the command line: users, seconds, processes, milliseconds. Ends the
%% node.
-spec main([string()]) -> no_return().
main(Texts) ->
    crew:main("sessions", fun() ->
        [Users, Seconds, Browsers, Idle] = [list_to_integer(Text) || Text <- Texts],
        run(#{users => Users, seconds => Seconds, browsers => Browsers, idle => Idle})
    end).

%% @doc Runs the service for so long, and says what it does. Whatever is wrong
%% is an error of this call.
-spec run(options()) -> result().
run(#{users := Users, seconds := Seconds, browsers := Browsers, idle := Idle} = Options) ->
    io:format("Sessions of ~b users, which expire after ~b ms; ~b browsers; a mirror and an"
              " auditor.~n", [Users, Idle, Browsers]),
    Table = larder:new(sessions, [set, public, {idle, Idle}, {index, [{user, 2, []}]}]),
    Service = #service{table = Table, users = Users, idle = Idle,
                       careless = maps:get(careless, Options, false),
                       figures = counters:new(?AUDITS, [atomics])},
    Self = self(),
    Mirror = crew:start(fun() -> mirror(Table, Idle, Self) end),
    receive
        mirror -> ok;
        {'DOWN', _, process, _, Reason} -> error(Reason)
    end,
    Auditor = crew:start(fun() -> audit(Service) end),
    Begin = erlang:monotonic_time(millisecond),
    Working = [crew:start(fun() -> browse(Service, N, [], []) end) || N <- lists:seq(1, Browsers)],
    try
        crew:watch(Begin, Begin + round(Seconds * 1000), fun(Took) -> line(Service, Took) end),
        lists:foreach(fun crew:stop/1, Working),
        Took = (erlang:monotonic_time(millisecond) - Begin) / 1000,
        crew:stop(Auditor),
        crew:stop(Mirror),
        Went = receive {went, Kinds} -> Kinds end,
        report(Service, Took, Went)
    after
        lists:foreach(fun crew:kill/1, [Auditor, Mirror | Working]),
        larder:delete(Table)
    end.

count(#service{figures = Figures}, Figure) -> counters:add(Figures, Figure, 1).
figure(#service{figures = Figures}, Figure) -> counters:get(Figures, Figure).

now_ms() -> erlang:monotonic_time(millisecond).

%% How far all are.
line(#service{table = Table} = Service, Took) ->
    Asked = figure(Service, ?ASKED),
    io_lib:format("~b sessions, ~b logins, ~b requests (~b a second), ~b audits",
                  [larder:info(Table, size), figure(Service, ?LOGINS), Asked,
                   round(Asked / Took), figure(Service, ?AUDITS)]).

%%% Browsers

%% A session as its browser knows it. Of what happened at some moment during a call it knows two
%% times between which that was.
-record(session, {token :: binary(), user :: term(), asked :: span(),
                  until = infinity :: span() | infinity}).

-type span() :: {Earliest :: integer(), Latest :: integer()}.

%% `Open': the sessions that it asks for in turns. `Left': those that it has left alone, the oldest
%% first.
browse(Service, N, Open, Left) ->
    case crew:is_to_stop() of
        true ->
            ok;
        false ->
            {Open1, Left1} = step(Service, N, Open, gone(Service, Left)),
            browse(Service, N, Open1, Left1)
    end.

step(#service{table = Table, users = Users} = Service, N, Open, Left) ->
    case rand:uniform(200) of
        1 ->
            log_out(Service, {shared, rand:uniform(Users)}),
            {Open, Left};
        Other when Other < 6 ->
            _ = log_in(Service, {shared, rand:uniform(Users)}),
            {Open, Left};
        6 ->
            User = {own, N, rand:uniform(?OWN)},
            log_out(Service, User),
            [] = larder:index_lookup(Table, user, User),
            {[Session || #session{user = Own} = Session <- Open, Own =/= User], Left};
        Other when Other < 20, length(Open) < ?OPEN ->
            {[open(Service, N) | Open], Left};
        20 when Open =/= [] ->
            Session = lists:nth(rand:uniform(length(Open)), Open),
            {lists:delete(Session, Open), Left ++ [Session]};
        _ when Open =/= [] ->
            {tl(Open) ++ ask(Service, hd(Open)), Left};
        _ ->
            {Open, Left}
    end.

%% A session of an own user, or of a kiosk, which lives for a fixed time.
open(Service, N) ->
    case rand:uniform(10) of
        1 -> log_in_at_kiosk(Service, {kiosk, N});
        _ -> log_in(Service, {own, N, rand:uniform(?OWN)})
    end.

%% In a service it comes from `crypto:strong_rand_bytes(16)'.
token() -> <<(rand:uniform(1 bsl 62)):64, (rand:uniform(1 bsl 62)):64>>.

log_in_at_kiosk(#service{table = Table, idle = Idle} = Service, User) ->
    {Token, Ttl} = {token(), 2 * Idle},
    Before = now_ms(),
    true = larder:insert(Table, {Token, User, Before}, #{ttl => Ttl}),
    After = now_ms(),
    count(Service, ?LOGINS),
    #session{token = Token, user = User, asked = {Before, After},
             until = {Before + Ttl, After + Ttl}}.

log_in(#service{table = Table, careless = Careless} = Service, User) ->
    {Token, Before} = {token(), now_ms()},
    Carelessly = Careless andalso element(1, User) =:= shared,
    Enter = fun(T) ->
        Own = lists:keysort(3, larder:index_lookup(T, user, User)),
        Surplus = lists:sublist(Own, max(0, length(Own) + 1 - ?MOST)),
        %% Here another may log in, too.
        Carelessly andalso erlang:yield(),
        lists:foreach(fun({Old, _, _}) -> larder:delete(T, Old) end, Surplus),
        larder:insert(T, {Token, User, Before})
    end,
    {atomic, true} = case Carelessly of
                         false -> larder:transaction([Table], fun([T]) -> Enter(T) end);
                         true -> {atomic, Enter(Table)}
                     end,
    count(Service, ?LOGINS),
    #session{token = Token, user = User, asked = {Before, now_ms()}}.

log_out(#service{table = Table} = Service, User) ->
    true = larder:match_delete(Table, {'_', User, '_'}),
    count(Service, ?EVERYWHERE).

%% The session, if it is there. Of a kiosk's it is sure, as far as its clock tells; another may have
%% been the oldest of too many.
ask(#service{table = Table, idle = Idle} = Service, Session) ->
    #session{token = Token, user = User, asked = {Asked, _}, until = Until} = Session,
    Before = now_ms(),
    Found = larder:lookup(Table, Token),
    After = now_ms(),
    count(Service, ?ASKED),
    case {Found, Until} of
        {[{Token, User, _}], {_, Latest}} when Before > Latest + ?SLACK ->
            exit({lives_on, Session});
        {[{Token, User, _}], _} ->
            [Session#session{asked = {Before, After}}];
        {[], {Earliest, _}} when After < Earliest - ?SLACK, After < Asked + Idle - ?SLACK ->
            exit({lost, Session});
        {[], _} ->
            count(Service, ?GONE),
            []
    end.

%% Those that were left alone for long enough are gone. A read moves the end on by up to an eighth
%% more than the time.
gone(_, []) ->
    [];
gone(#service{idle = Idle} = Service, [#session{token = Token, asked = {_, Asked}} | Left] = All) ->
    case now_ms() > Asked + Idle + Idle div 8 + ?SLACK of
        true ->
            [] = larder:lookup(Service#service.table, Token),
            count(Service, ?GONE),
            gone(Service, Left);
        false ->
            All
    end.

%%% The mirror

mirror(Table, Idle, To) ->
    {Snapshot, Feed} = larder:snapshot_and_subscribe(Table, all, #{limit => ?LIMIT}),
    0 = larder:info(Snapshot, size),
    true = larder:release(Snapshot),
    To ! mirror,
    {Rows, Kinds} = follow(Feed, {#{}, #{}}, infinity),
    %% The rest expires: a kiosk's session lives longest.
    {Left, All} = follow(Feed, {Rows, Kinds}, 2 * Idle + ?PATIENCE),
    true = larder:unsubscribe(Feed),
    0 = map_size(Left),
    To ! {went, All}.

%% Until it is told to stop; then until no row is left. `Most' is how long nothing may happen then.
follow(_, {Rows, _} = Mirror, Most) when Most =/= infinity, map_size(Rows) =:= 0 ->
    Mirror;
follow(Feed, Mirror, Most) ->
    receive
        stop -> Mirror;
        {larder, Feed, _, Events} when is_list(Events) ->
            follow(Feed, lists:foldl(fun told/2, Mirror, Events), Most);
        {larder, Feed, _, Event} ->
            follow(Feed, told(Event, Mirror), Most)
    after Most ->
        exit({sessions_left, map_size(element(1, Mirror))})
    end.

told({insert, {Token, _, _} = Row}, {Rows, Kinds}) ->
    false = is_map_key(Token, Rows),
    {Rows#{Token => Row}, counted(insert, Kinds)};
told({Kind, {Token, _, _} = Row}, {Rows, Kinds}) when Kind =:= delete; Kind =:= expire ->
    {Row, Others} = maps:take(Token, Rows),
    {Others, counted(Kind, Kinds)};
told(Event, _) ->
    exit({told, Event}).

counted(Kind, Kinds) -> maps:update_with(Kind, fun(N) -> N + 1 end, 1, Kinds).

%%% The auditor

audit(Service) ->
    audit_once(Service),
    case crew:is_to_stop(20) of
        true -> audit_once(Service);
        false -> audit(Service)
    end.

%% What each user has, as of one instant.
audit_once(#service{table = Table} = Service) ->
    Snapshot = larder:snapshot(Table),
    Users = crew:in_pieces(fun(Rows, Counts) ->
        lists:foldl(fun({_, User, _}, Own) -> counted(User, Own) end, Counts, Rows)
    end, #{}, larder:select(Snapshot, [{'_', [], ['$_']}], ?PIECE)),
    Shared = [{User, N} || {{shared, _} = User, N} <- maps:to_list(Users)],
    [exit({sessions, N, 'of', User}) || {User, N} <- Shared, N > ?MOST],
    Sample = lists:sublist(maps:to_list(Users), ?SAMPLE),
    [N =:= length(larder:index_lookup(Snapshot, user, User)) orelse exit({index, User, N})
     || {User, N} <- Sample],
    true = larder:release(Snapshot),
    count(Service, ?AUDITS).

%%% The end

report(#service{table = Table} = Service, Took, Kinds) ->
    [Logins, Asked, Gone, Everywhere, Audits] =
        [figure(Service, Figure) || Figure <- lists:seq(?LOGINS, ?AUDITS)],
    #{insert := Logins} = Kinds,
    {Out, Expired} = {maps:get(delete, Kinds, 0), maps:get(expire, Kinds, 0)},
    Logins = Out + Expired,
    0 = larder:info(Table, size),
    io:format("~b logins, ~b requests in ~.1f s, ~b a second; ~b times somebody logged out"
              " everywhere.~n",
              [Logins, Asked, Took, round(Asked / Took), Everywhere]),
    io:format("The mirror was told of ~b sessions that were logged out and ~b that expired: all"
              " that there were.~n", [Out, Expired]),
    io:format("~b audits found nobody with more than ~b sessions, and the index to agree.~n",
              [Audits, ?MOST]),
    #{users => Service#service.users, seconds => Took, logins => Logins, asked => Asked,
      gone => Gone, everywhere => Everywhere, logged_out => Out, expired => Expired,
      audits => Audits}.
