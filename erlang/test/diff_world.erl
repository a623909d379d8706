%% @doc Runs one list of commands against `ets' and against the module under
%% test, in lock step, and says where they first differ.
%%
%% Three actors, processes that live and die, carry the commands out; each
%% command runs on both modules in the same actor. Tables, names, actors and
%% continuations stand in a command as `{'$t', 1}', `{'$n', 1}', `{'$p', 1}'
%% and small numbers, so that a failing list of commands can be read, shrunk
%% and run again. Every outcome is first brought into a form that doesn't
%% show which module gave it.
%%
%% A command is {Actor, Operation}:
%%   {new, Slot, Name, Options}          ets:new, its table goes to the slot
%%   {call, Function, Args}              any other function
%%   {walk, Slot, How}                   a whole traversal by single steps
%%   {open, Slot, Function, Args, Cont}  the first chunk; keeps its continuation
%%   {more, Cont, direct | repaired}     the next chunk
%%   {run_ms, List, Spec}                match_spec_compile and match_spec_run
%%   {file, Slot, SaveOptions}           tab2file, tabfile_info, file2tab
%%   {kill, Reason}                      the actor exits; a new one takes its place
-module(diff_world).
-include("diff.hrl").

-export([run/2]).

-define(ACTORS, [1, 2, 3]).
-define(NAMES, [1, 2, 3]).
-define(PATIENCE, 30000).

-record(world, {sut :: module(),
                actors = #{} :: #{pos_integer() => pid()},
                dead :: pid(),
                tables = #{} :: #{pos_integer() => {term(), term()}},
                known = [] :: [{term(), term()}],
                conts = #{} :: #{pos_integer() => {term(), term()}}}).

%% @doc `ok', or the first difference.
-spec run(module(), [term()]) -> ok | {differ, map()}.
run(Sut, Commands) ->
    World = start(Sut),
    try
        steps(Commands, 1, World)
    after
        stop()
    end.

start(Sut) ->
    put(diff_actors, []),
    Actors = maps:from_list([{A, new_actor()} || A <- ?ACTORS]),
    #world{sut = Sut, actors = Actors, dead = larder_test:dead_pid()}.

%% Every actor ever started is stopped, also when a step fails half way.
stop() ->
    [begin
         Mon = monitor(process, Pid),
         exit(Pid, kill),
         receive {'DOWN', Mon, _, _, _} -> ok end
     end || Pid <- erase(diff_actors)].

steps([], N, World) ->
    case final_check(World) of
        [] -> ok;
        Found -> {differ, #{step => N, command => final_check, differences => Found}}
    end;
steps([Symbolic | Rest], N, World0) ->
    {Actor, Operation} = Command = diff_gen:made(Symbolic),
    {Compared, World} = step(Actor, Operation, World0),
    case [D || {O, S} = D <- Compared, not same(O, S)] of
        [] -> steps(Rest, N + 1, World);
        Found ->
            {differ, #{step => N, command => Command,
                       differences => [#{ets => O, World#world.sut => S} || {O, S} <- Found]}}
    end.

same(#raised{cause = any} = Oracle, #raised{} = Got) ->
    {Oracle#raised.class, Oracle#raised.reason} =:= {Got#raised.class, Got#raised.reason};
%% Which arguments format_error/2 blames for a specification is a matter of how
%% closely it looks; that the cause is the same is compared.
same(#raised{function = F} = Oracle, #raised{function = F} = Got)
  when F =:= select; F =:= select_reverse; F =:= select_count; F =:= select_replace;
       F =:= match; F =:= match_object ->
    Oracle#raised{blamed = any} =:= Got#raised{blamed = any};
same(#raised{blamed = any} = Oracle, #raised{} = Got) ->
    Oracle =:= Got#raised{blamed = any};
same(Oracle, Got) ->
    Oracle =:= Got.

%% Actors -------------------------------------------------------------------

new_actor() ->
    Pid = spawn(fun actor/0),
    put(diff_actors, [Pid | get(diff_actors)]),
    Pid.

actor() ->
    receive
        {'$do', From, Fun} -> From ! {'$done', self(), Fun()}, actor();
        {'$exit', Reason} -> exit(Reason)
    end.

act(Actor, Fun, #world{actors = Actors}) ->
    Pid = maps:get(Actor, Actors),
    Pid ! {'$do', self(), Fun},
    receive {'$done', Pid, Result} -> Result
    after ?PATIENCE -> error({actor_hangs, process_info(Pid, current_stacktrace)})
    end.

both(Actor, Fun, #world{sut = Sut} = World) ->
    act(Actor, fun() -> {Fun(oracle), Fun(Sut)} end, World).

%% Steps --------------------------------------------------------------------

step(Actor, {new, Slot, Name, Options}, World) ->
    {O, S} = both(Actor, fun(M) ->
        told(Options, outcome(M, new, [name(M, Name), resolve(M, Options, World)]))
    end, World),
    After = case {O, S} of
        {{ok, OT}, {ok, ST}} ->
            World#world{tables = maps:put(Slot, {OT, ST}, World#world.tables),
                        known = [{OT, ST} | World#world.known]};
        _ -> World
    end,
    {[pair(new, exact, O, S, After)], After};
step(Actor, {call, Function, Args}, World) ->
    Kind = kind(Function, Args, World),
    {O, S} = both(Actor, fun(M) -> outcome(M, Function, resolve(M, Args, World)) end, World),
    {[pair(Function, Kind, O, S, World) | messages(Function, World)], World};
step(Actor, {walk, Slot, How}, World) ->
    {O, S} = both(Actor, fun(M) -> walk(M, table(M, Slot, World), How) end, World),
    {[pair(walk, ordering(Slot, World), O, S, World)], World};
step(Actor, {open, Slot, Function, Pattern, Limit, Cont}, World) ->
    {O, S} = both(Actor, fun(M) ->
        outcome(M, Function, [table(M, Slot, World), Pattern, Limit])
    end, World),
    chunk(ordering(Slot, World), Function, Pattern, Cont, O, S, World);
step(Actor, {more, Cont, Through}, #world{conts = Conts} = World) ->
    case Conts of
        #{Cont := {Order, Function, Pattern, OC, SC}} ->
            {O, S} = both(Actor, fun(M) ->
                outcome(M, Function,
                        [through(Through, M, spec(Function, Pattern), pick(M, OC, SC))])
            end, World),
            chunk(Order, Function, Pattern, Cont, O, S, World);
        _ -> {[], World}
    end;
step(Actor, {run_ms, List, Spec}, World) ->
    {O, S} = both(Actor, fun(M) -> run_ms(M, List, Spec) end, World),
    {[pair(match_spec_run, exact, O, S, World)], World};
step(Actor, {file, Slot, Options}, World) ->
    {O, S} = both(Actor, fun(M) -> through_file(M, table(M, Slot, World), Options) end, World),
    {[pair(file, exact, O, S, World)], World};
step(Actor, {kill, Reason}, #world{actors = Actors} = World0) ->
    Pid = maps:get(Actor, Actors),
    Mon = monitor(process, Pid),
    case Reason of
        kill -> exit(Pid, kill);
        _ -> Pid ! {'$exit', Reason}
    end,
    receive {'DOWN', Mon, process, Pid, _} -> ok end,
    World = World0#world{actors = Actors#{Actor := new_actor()}},
    {settled(World) ++ messages(kill, World), World}.

outcome(M, Function, Args) ->
    diff_oracle:outcome(M, Function, Args).

pick(oracle, Oracle, _) -> Oracle;
pick(_, _, Sut) -> Sut.

%% Continuations --------------------------------------------------------------

%% On an ordered_set both must give the same chunk, and come to the end in the
%% same call. Elsewhere a chunk may hold anything; only whether the call
%% succeeded is compared, and the pair is kept as long as both can go on.
chunk(Order, Function, Pattern, Cont, {ok, O}, {ok, S}, World) ->
    Pair = case Order of
        exact -> {{ok, chunk_view(O)}, {ok, chunk_view(S)}};
        multiset -> {ok, ok}
    end,
    Conts = case {O, S} of
        {{_, OC}, {_, SC}} -> maps:put(Cont, {Order, Function, Pattern, OC, SC}, World#world.conts);
        _ -> maps:remove(Cont, World#world.conts)
    end,
    {[Pair], World#world{conts = Conts}};
chunk(_, Function, _, _, #raised{arguments = Args} = O, #raised{} = S, World)
  when length(Args) =:= 1 ->
    %% The argument is the continuation itself, whose form is private.
    {[pair(Function, exact, O#raised{arguments = continuation},
           S#raised{arguments = continuation}, World)], World};
chunk(_, Function, _, _, O, S, World) ->
    {[pair(Function, exact, O, S, World)], World}.

chunk_view({Found, '$end_of_table'}) -> {plain(Found, #{}), '$end_of_table'};
chunk_view({Found, _}) -> {plain(Found, #{}), continuation};
chunk_view('$end_of_table') -> '$end_of_table'.

through(direct, _, _, Cont) -> Cont;
through(repaired, _, _, '$end_of_table') -> '$end_of_table';
through(repaired, oracle, Spec, Cont) -> through(repaired, ets, Spec, Cont);
through(repaired, M, Spec, Cont) ->
    M:repair_continuation(binary_to_term(term_to_binary(Cont)), Spec).

spec(match, Pattern) -> [{Pattern, [], ['$$']}];
spec(match_object, Pattern) -> [{Pattern, [], ['$_']}];
spec(_, Spec) -> Spec.

%% Whole traversals -------------------------------------------------------------

walk(M, T, foldl) -> outcome(M, foldl, [fun(X, Acc) -> [X | Acc] end, [], T]);
walk(M, T, foldr) -> outcome(M, foldr, [fun(X, Acc) -> [X | Acc] end, [], T]);
walk(M, T, keys) -> single(M, T, first, next, fun(K) -> {K, unsigned(K)} end);
walk(M, T, keys_back) -> single(M, T, last, prev, fun(K) -> {K, unsigned(K)} end);
walk(M, T, rows) ->
    single(M, T, first_lookup, next_lookup, fun({K, R}) -> {K, {unsigned(K), R}} end);
walk(M, T, rows_back) ->
    single(M, T, last_lookup, prev_lookup, fun({K, R}) -> {K, {unsigned(K), R}} end);
walk(M, T, slots) -> slots(M, T, 0, []);
walk(M, T, {Function, Pattern, Limit}) ->
    chunks(M, Function, outcome(M, Function, [T, Pattern, Limit]), []).

%% A bag may hold objects under 0.0 and under -0.0, which are one key before
%% OTP 27; which of the two names the group nobody can tell with =:=. (An atom:
%% the compiler takes `0.0' here for the key itself, sign and all.)
unsigned(Key) when is_float(Key), Key == 0 -> either_zero;
unsigned(Key) -> Key.

single(M, T, First, Next, Split) ->
    single(M, T, Next, Split, outcome(M, First, [T]), []).

single(_, _, _, _, {ok, '$end_of_table'}, Acc) -> {ok, lists:reverse(Acc)};
single(M, T, Next, Split, {ok, Found}, Acc) when length(Acc) < 100000 ->
    {Key, Row} = Split(Found),
    single(M, T, Next, Split, outcome(M, Next, [T, Key]), [Row | Acc]);
single(_, _, _, _, {ok, _}, _) -> no_end;
single(_, _, _, _, Raised, _) -> Raised.

slots(M, T, N, Acc) ->
    case outcome(M, slot, [T, N]) of
        {ok, '$end_of_table'} -> {ok, lists:append(lists:reverse(Acc))};
        {ok, Objects} when N < 100000 -> slots(M, T, N + 1, [Objects | Acc]);
        {ok, _} -> no_end;
        Raised -> Raised
    end.

chunks(_, _, {ok, '$end_of_table'}, Acc) -> {ok, lists:append(lists:reverse(Acc))};
chunks(M, Function, {ok, {Found, Cont}}, Acc) when length(Acc) < 100000 ->
    chunks(M, Function, outcome(M, Function, [Cont]), [Found | Acc]);
chunks(_, _, {ok, _}, _) -> no_end;
chunks(_, _, Raised, _) -> Raised.

run_ms(M, List, Spec) ->
    case outcome(M, match_spec_compile, [Spec]) of
        {ok, Compiled} ->
            true = M =:= oracle orelse M:is_compiled_ms(Compiled),
            outcome(M, match_spec_run, [List, Compiled]);
        Raised -> Raised
    end.

%% A table through a file and back; what comes back is looked at and dropped.
through_file(M, T, Options) ->
    File = larder_test:file("diff"),
    try
        Saved = lax(outcome(M, tab2file, [T, File, Options])),
        Described = case outcome(M, tabfile_info, [File]) of
            {ok, {ok, Info}} -> {ok, tabfile_view(Info)};
            {ok, {error, _}} -> {ok, error};
            Other -> lax(Other)
        end,
        {ok, [Saved, Described, loaded(M, outcome(M, file2tab, [File, [{verify, true}]]))]}
    after
        file:delete(File)
    end.

tabfile_view(Info) ->
    [lists:keyfind(Key, 1, Info)
     || Key <- [name, type, protection, named_table, keypos, size, extended_info]].

loaded(oracle, Outcome) -> loaded(ets, Outcome);
loaded(M, {ok, {ok, T}}) ->
    View = {[M:info(T, Item) || Item <- [type, keypos, protection, compressed, name, named_table,
                                         size, owner, heir]],
            multiset(plain(M:tab2list(T), #{}))},
    M:delete(T),
    View;
loaded(_, {ok, {error, {read_error, _}}}) -> read_error;
loaded(_, Outcome) -> lax(Outcome).

%% Names -------------------------------------------------------------------------

name(oracle, N) -> list_to_atom("diff_ets_" ++ integer_to_list(N));
name(_, N) -> list_to_atom("diff_sut_" ++ integer_to_list(N)).

table(M, Slot, #world{tables = Tables}) ->
    case Tables of
        #{Slot := {O, S}} -> pick(M, O, S);
        _ -> no_such_table
    end.

%% The error of a call that `ets' was told less of has the same arguments.
told(Options, #raised{arguments = [Name, _]} = Raised) ->
    Raised#raised{arguments = [Name, Options]};
told(_, Outcome) -> Outcome.

resolve(M, {'$t', Slot}, World) -> table(M, Slot, World);
resolve(M, {'$n', N}, _) -> name(M, N);
resolve(_, {'$p', Actor}, #world{actors = Actors}) -> maps:get(Actor, Actors);
resolve(_, '$dead', #world{dead = Dead}) -> Dead;
%% `ets' is told nothing of structures.
resolve(oracle, [{structure, _} | T], World) -> resolve(oracle, T, World);
resolve(M, [H | T], World) -> [resolve(M, H, World) | resolve(M, T, World)];
resolve(M, Tuple, World) when is_tuple(Tuple) ->
    list_to_tuple(resolve(M, tuple_to_list(Tuple), World));
resolve(_, Term, _) -> Term.

%% Comparison ------------------------------------------------------------------

%% How the outcome of a function is compared.
kind(info, [_], _) -> info_list;
kind(info, [_, Item], _) -> {info, Item};
kind(all, _, _) -> known_tables;
kind(whereis, _, _) -> presence;
kind(match_spec_compile, _, _) -> presence;
kind(Function, [Table | _], World) ->
    case type(Table, World) of
        ordered_set -> exact;
        undefined -> exact;
        _ -> unordered_kind(Function)
    end;
kind(_, _, _) -> exact.

unordered_kind(F) when F =:= first; F =:= last; F =:= next; F =:= prev;
                       F =:= first_lookup; F =:= last_lookup; F =:= next_lookup;
                       F =:= prev_lookup -> success;
unordered_kind(slot) -> nothing;
unordered_kind(F) when F =:= select; F =:= match; F =:= match_object;
                       F =:= select_reverse; F =:= tab2list -> multiset;
unordered_kind(_) -> exact.

ordering(Slot, World) ->
    case type({'$t', Slot}, World) of
        ordered_set -> exact;
        _ -> multiset
    end.

type({Mark, _} = Table, World) when Mark =:= '$t'; Mark =:= '$n' ->
    ets:info(resolve(oracle, Table, World), type);
type(_, _) -> undefined.

pair(Function, Kind, O, S, World) ->
    Map = mapping(World),
    OV = view(Kind, O, Map),
    SV = view(Kind, S, Map),
    case OV of
        #raised{function = Function} ->
            case diff_oracle:library_function(Function) of
                true -> {lax(OV), lax(SV)};
                false -> {OV, SV}
            end;
        _ -> {lax(OV), lax(SV)}
    end.

lax(#raised{} = Raised) -> Raised#raised{function = any, arguments = any, blamed = any};
lax(Value) -> Value.

%% How many slots a hash has is its own affair.
view(nothing, _, _) -> any;
view(Kind, {ok, Value}, Map) -> {ok, value_view(Kind, Value, Map)};
view(_, #raised{arguments = Args, reason = Reason} = Raised, Map) ->
    Raised#raised{arguments = plain(Args, Map), reason = plain(Reason, Map)};
view(_, Other, Map) -> plain(Other, Map).

value_view(exact, Value, Map) -> plain(Value, Map);
value_view(multiset, Value, Map) when is_list(Value) -> multiset(plain(Value, Map));
value_view(multiset, Value, Map) -> plain(Value, Map);
value_view(success, _, _) -> some;
value_view(presence, undefined, _) -> undefined;
value_view(presence, _, _) -> some;
value_view({info, Item}, Value, Map) -> plain(info_view(Item, Value), Map);
value_view(info_list, undefined, _) -> undefined;
value_view(info_list, List, Map) ->
    plain([{Item, info_view(Item, Value)} || {Item, Value} <- lists:sort(List)], Map);
value_view(known_tables, Tables, Map) ->
    lists:sort([Known || T <- Tables, Known <- [maps:get(T, Map, none)], Known =/= none]).

info_view(_, undefined) -> undefined;
info_view(memory, Words) -> {integer, is_integer(Words) andalso Words > 0};
info_view(id, Id) -> {reference, is_reference(Id)};
info_view(safe_fixed, {{_, _, _}, Pids}) -> lists:sort(Pids);
info_view(safe_fixed_monotonic_time, {Time, Pids}) when is_integer(Time) -> lists:sort(Pids);
info_view(binary, Binaries) -> {list, is_list(Binaries)};
info_view(stats, _) -> private;
%% `ets' goes on showing an heir that died; it counts as none all the same.
info_view(heir, Heir) when is_pid(Heir) ->
    case is_process_alive(Heir) of
        true -> Heir;
        false -> none
    end;
info_view(_, Value) -> Value.

mapping(#world{known = Known, sut = Sut}) ->
    Tables = lists:zip(lists:seq(1, length(Known)), lists:reverse(Known)),
    Ids = [{Id, {'$table', N}} || {N, {O, S}} <- Tables, Id <- [O, S]],
    Names = [{name(M, N), {'$name', N}} || M <- [oracle, Sut], N <- ?NAMES],
    maps:from_list(Ids ++ Names).

%% A term without the names that only one module knows, and with the sign of
%% zero made visible, which `=:=' doesn't tell apart before OTP 27.
plain(Term, Map) when is_map_key(Term, Map) -> maps:get(Term, Map);
plain([H | T], Map) -> [plain(H, Map) | plain(T, Map)];
plain(Tuple, Map) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple), Map));
plain(Term, Map) when is_map(Term) ->
    {'$map', multiset([{plain(K, Map), plain(V, Map)} || {K, V} <- maps:to_list(Term)])};
plain(Float, _) when is_float(Float), Float == 0.0 ->
    <<Sign:1, _:63>> = <<Float/float>>,
    {'$zero', Sign};
plain(Term, _) -> Term.

%% Sorted with ties (1 and 1.0) broken by the bytes.
multiset(List) ->
    [T || {T, _} <- lists:sort([{T, term_to_binary(T)} || T <- List])].

%% After a death or a gift --------------------------------------------------------

messages(Function, World) when Function =:= give_away; Function =:= kill ->
    Map = mapping(World),
    Oracles = [O || {O, _} <- everything(World)],
    [begin
         {Theirs, Ours} = lists:partition(fun
             ({'ETS-TRANSFER', T, _, _}) -> lists:member(T, Oracles);
             (_) -> false
         end, act(A, fun drain/0, World)),
         {multiset(plain(Theirs, Map)), multiset(plain(Ours, Map))}
     end || A <- ?ACTORS];
messages(_, _) -> [].

drain() ->
    receive Message -> [Message | drain()] after 0 -> [] end.

%% Every table that was ever made, and every name, as a table may be renamed.
everything(#world{known = Known, sut = Sut}) ->
    [{name(oracle, N), name(Sut, N)} || N <- ?NAMES] ++ Known.

%% An owner's tables and fixations end with it; that may take the module under
%% test a moment, though never long.
settled(#world{sut = Sut} = World) ->
    Known = everything(World),
    View = fun(M, T) ->
        {M:info(T, owner), info_view(heir, M:info(T, heir)),
         info_view(safe_fixed, M:info(T, safe_fixed))}
    end,
    Open = fun() -> [P || {O, S} <- Known, P <- [{View(ets, O), View(Sut, S)}],
                          element(1, P) =/= element(2, P)] end,
    case larder_test:wait_until(fun() -> Open() =:= [] end) of
        true -> [];
        false -> Open()
    end.

%% At the end: every table, looked at by its owner.
final_check(#world{actors = Actors, sut = Sut} = World) ->
    Map = mapping(World),
    [D || {O, S} <- lists:usort(everything(World)),
          {A, Pid} <- maps:to_list(Actors),
          ets:info(O, owner) =:= Pid,
          D <- [act(A, fun() -> {contents(ets, O, Map), contents(Sut, S, Map)} end, World)],
          element(1, D) =/= element(2, D)].

contents(M, T, Map) ->
    Objects = M:tab2list(T),
    KeyPos = M:info(T, keypos),
    Sorted = case M:info(T, type) of
        ordered_set -> plain(Objects, Map);
        _ -> multiset(plain(Objects, Map))
    end,
    Keys = maps:keys(maps:from_keys([element(KeyPos, X) || X <- Objects], key)),
    Groups = [plain(M:lookup(T, K), Map) || K <- Keys],
    {value_view(info_list, M:info(T), Map), Sorted, Groups}.
