%% @doc Runs one operation on both sides, several times, and compares what comes out every time.
%%
%% Each timed run has a process of its own, so that the heap of one run is no burden to the next.
%% Which side goes first alternates, so that neither always finds the caches warm. What is reported
%% is the median.
-module(larder_demo_measure).

-export([operation/4, memory/3]).

-export_type([outcome/0]).

-type outcome() :: #{name := string(), rows := non_neg_integer(), repeats := non_neg_integer(),
                     times := {Nanoseconds :: number(), number()} | none,
                     memory := {BytesARow :: number(), number()} | none,
                     difference := none | term()}.

%% Repeats: this many, but no new one is begun once an operation has taken so long, setting up and
%% comparing included.
-define(REPEATS, 5).
-define(ENOUGH_MS, 6_000).
%% Words: the results of most operations fit, so that timing is not about collecting garbage.
-define(HEAP, 4_000_000).

%% @doc Measures an operation with the two modules, on the tables that earlier operations made.
-spec operation(larder_demo_work:operation(), {module(), module()}, {map(), map()}, integer()) ->
          {outcome(), {map(), map()}}.
operation(Op, Modules, Tables, Deadline) ->
    repeat(Op, Modules, Tables, [], min(Deadline, erlang:monotonic_time(millisecond) + ?ENOUGH_MS)).

repeat(Op, Modules, Tables, Times, Until) ->
    N = length(Times),
    case N >= ?REPEATS orelse N > 0 andalso erlang:monotonic_time(millisecond) > Until of
        true ->
            {outcome(Op, Times, memory_of(Op, Modules, Tables), none), Tables};
        false ->
            case once(Op, Modules, Tables, N rem 2) of
                {ok, Pair, Tables1} ->
                    repeat(Op, Modules, Tables1, [Pair | Times], Until);
                {differs, What, Tables1} ->
                    {outcome(Op, Times, none, What), Tables1}
            end
    end.

outcome(#{name := Name, rows := Rows}, Times, Memory, Difference) ->
    #{name => lists:flatten(Name), rows => Rows, repeats => length(Times), memory => Memory,
      difference => Difference,
      times => case Times of
                   [] -> none;
                   _ -> {median([A || {A, _} <- Times]), median([B || {_, B} <- Times])}
               end}.

median(List) ->
    Sorted = lists:sort(List),
    N = length(Sorted),
    (lists:nth((N + 1) div 2, Sorted) + lists:nth(N div 2 + 1, Sorted)) / 2.

%% One run on each side. An exception on one side is a difference.
once(#{setup := Setup, compare := Compare} = Op, {ModA, ModB}, {TablesA, TablesB}, First) ->
    try
        EnvA = Setup(ModA, TablesA),
        EnvB = Setup(ModB, TablesB),
        {{NsA, ResultA}, {NsB, ResultB}} =
            case First of
                0 -> A = timed(Op, ModA, EnvA), {A, timed(Op, ModB, EnvB)};
                1 -> B = timed(Op, ModB, EnvB), {timed(Op, ModA, EnvA), B}
            end,
        case in_own_process(fun() -> Compare({ModA, EnvA, ResultA}, {ModB, EnvB, ResultB}) end) of
            ok ->
                Tables = {keep(Op, ModA, EnvA, TablesA), keep(Op, ModB, EnvB, TablesB)},
                {ok, {NsA, NsB}, Tables};
            {differs, What} ->
                {differs, What, {TablesA, TablesB}}
        end
    catch
        Class:Reason:Stack -> {differs, {Class, Reason, Stack}, {TablesA, TablesB}}
    end.

%% A table that the operation makes takes the place of the one that its last run made.
keep(#{makes := Key}, Mod, Table, Tables) ->
    case Tables of
        #{Key := Old} -> Mod:delete(Old);
        #{} -> ok
    end,
    Tables#{Key => Table};
keep(#{cleanup := Cleanup}, Mod, Env, Tables) ->
    Cleanup(Mod, Env),
    Tables.

timed(#{run := Run}, Mod, Env) ->
    erlang:garbage_collect(),
    in_own_process(fun() ->
                       Start = erlang:monotonic_time(),
                       Result = Run(Mod, Env),
                       End = erlang:monotonic_time(),
                       {erlang:convert_time_unit(End - Start, native, nanosecond), Result}
                   end).

in_own_process(Fun) ->
    Parent = self(),
    {Pid, Monitor} =
        spawn_opt(fun() -> Parent ! {self(), try {ok, Fun()} catch C:R:S -> {C, R, S} end} end,
                               [monitor, {min_heap_size, ?HEAP}]),
    receive
        {Pid, Outcome} ->
            receive {'DOWN', Monitor, process, Pid, _} -> ok end,
            case Outcome of
                {ok, Result} -> Result;
                {Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack)
            end;
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    end.

memory_of(#{makes := Key}, {ModA, ModB}, {#{} = TablesA, #{} = TablesB}) ->
    {memory(ModA, Key, TablesA), memory(ModB, Key, TablesB)};
memory_of(_, _, _) ->
    none.

%% @doc Bytes a row, by what the table says of itself.
-spec memory(module(), atom(), map()) -> float().
memory(Mod, Key, Tables) ->
    Table = map_get(Key, Tables),
    Mod:info(Table, memory) * erlang:system_info(wordsize) / max(1, Mod:info(Table, size)).
