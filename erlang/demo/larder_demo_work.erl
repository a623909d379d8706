%% @doc The work that `make run' gives to both table modules: the same operations, on the same rows,
%% in the same order.
%%
%% An operation says how its environment is made (`setup', not timed), what is timed (`run'), how
%% the two outcomes are compared (`compare', not timed) and what is thrown away afterwards
%% (`cleanup'). Whatever is random was drawn beforehand, so that both modules see the same keys in
%% the same order.
-module(larder_demo_work).

-export([data/2, operations/1]).

-export_type([operation/0, side/0]).

-type tables() :: #{atom() => term()}.
-type side() :: {module(), Env :: term(), Result :: term()}.
-type operation() :: #{name := string(),
                       rows := non_neg_integer(),
                       setup := fun((module(), tables()) -> term()),
                       run := fun((module(), Env :: term()) -> term()),
                       compare := fun((side(), side()) -> ok | {differs, term()}),
                       cleanup := fun((module(), Env :: term()) -> term()),
                       %% The operation makes this table, which later ones use.
                       makes => atom()}.

%% @doc The rows and the random draws, made once from the packages.
-spec data([larder_demo_debian:package()], rand:state()) -> map().
data(Packages, Random0) ->
    Ordered = [{{section(R), installed(R), Name}, maps:get(priority, R, <<>>),
                maps:get(version, R, <<>>)}
               || {Name, R} <- Packages],
    Reverse = larder_demo_debian:reverse_dependencies(Packages),
    Names = [Name || {Name, _} <- Packages],
    Sorted = lists:sort([K || {K, _, _} <- Ordered]),
    Sections = lists:usort([S || {S, _, _} <- Sorted]),
    {Shuffled, Random1} = shuffle(Names, Random0),
    {Keys, Random2} = shuffle(Sorted, Random1),
    {Targets, Random3} = shuffle(lists:usort([T || {T, _, _} <- Reverse]), Random2),
    {Mixed, Random4} = shuffle(Names ++ [<<N/binary, "-absent">> || N <- Names], Random3),
    {Updates, _} = shuffle(Names ++ Names, Random4),
    #{packages => Packages, ordered => Ordered, reverse => Reverse, names => Shuffled, keys => Keys,
      targets => Targets, mixed => Mixed, updates => Updates, sections => Sections,
      section_of => [{section(R), installed(R)} || {_, R} <- Packages],
      biggest => biggest_section(Sorted),
      size_ranges => size_ranges(Keys, 200),
      key_ranges => key_ranges(Sorted, Keys, 30, 100)}.

section(Record) -> maps:get(section, Record, <<"unknown">>).
installed(Record) -> maps:get(installed_size, Record, 0).

shuffle(List, Random0) ->
    {Tagged, Random} = lists:mapfoldl(fun(X, R0) -> {N, R} = rand:uniform_s(R0), {{N, X}, R} end,
                                      Random0, List),
    {[X || {_, X} <- lists:sort(Tagged)], Random}.

biggest_section(Keys) ->
    Counts = lists:foldl(fun({S, _, _}, M) -> maps:update_with(S, fun(N) -> N + 1 end, 1, M) end,
                         #{}, Keys),
    {_, Biggest} = lists:max([{N, S} || {S, N} <- maps:to_list(Counts)]),
    Biggest.

%% Sections with a range of sizes, from a random key on: [Size, 2·Size).
size_ranges(Keys, N) ->
    [{Section, Size, 2 * Size + 1} || {Section, Size, _} <- lists:sublist(Keys, N)].

%% Ranges of whole keys, each over the given number of rows.
key_ranges(Sorted, Keys, N, Rows) ->
    All = list_to_tuple(Sorted),
    Places = maps:from_list(lists:zip(Sorted, lists:seq(1, tuple_size(All)))),
    [{K, element(min(map_get(K, Places) + Rows, tuple_size(All)), All)}
     || K <- lists:sublist(Keys, N)].

%% @doc What is done, in order. The bag comes last: under the key of a package that twenty thousand
%% others need, each insertion looks at all the objects that are there, so that it takes longer than
%% the rest together.
-spec operations(map()) -> [operation()].
operations(Data) ->
    loads(Data) ++ lookups(Data) ++ ranges(Data) ++ scans(Data) ++ writes(Data)
        ++ [concurrent(Data)] ++ bag(Data).

%%% Loading

loads(#{packages := Packages, ordered := Ordered}) ->
    [load("load set by name", packages, [set, public], Packages, fun one_by_one/3),
     load("load ordered_set, one list", sections, [ordered_set, public], Ordered, fun as_list/3)].

load(Name, Key, Options, Rows, How) ->
    #{name => Name, rows => length(Rows), makes => Key,
      setup => fun(Mod, _) -> Mod:new(Key, Options) end,
      run => fun(Mod, T) -> How(Mod, T, Rows), T end,
      compare => fun same_tables/2,
      cleanup => fun(Mod, T) -> Mod:delete(T) end}.

one_by_one(Mod, T, Rows) -> lists:foreach(fun(Row) -> Mod:insert(T, Row) end, Rows).
as_list(Mod, T, Rows) -> Mod:insert(T, Rows).

%%% Point lookups

lookups(#{names := Names, keys := Keys, mixed := Mixed}) ->
    [read("lookup records, random", length(Names), packages,
          fun(Mod, T) -> sum(fun(N) -> [{_, R}] = Mod:lookup(T, N), installed(R) end, Names) end,
          same_for_each(lookup, Names)),
     read("member, half absent", length(Mixed), packages,
          fun(Mod, T) ->
              sum(fun(N) -> case Mod:member(T, N) of true -> 1; false -> 0 end end, Mixed) end,
          same_for_each(member, Mixed)),
     read("lookup in ordered_set, random", length(Keys), sections,
          fun(Mod, T) ->
              sum(fun(K) -> [{{_, Size, _}, _, _}] = Mod:lookup(T, K), Size end, Keys) end,
          same_for_each(lookup, Keys)),
     read("lookup_element, ordered_set", length(Keys), sections,
          fun(Mod, T) -> sum(fun(K) -> byte_size(Mod:lookup_element(T, K, 3)) end, Keys) end,
          fun same_results/2)].

sum(Fun, List) -> lists:foldl(fun(X, Sum) -> Sum + Fun(X) end, 0, List).

%%% Prefixes and ranges

ranges(#{keys := Keys, sections := Sections, size_ranges := SizeRanges, key_ranges := KeyRanges}) ->
    Rows = length(Keys),
    [read("select by prefix, all sections", Rows, sections,
          fun(Mod, T) -> [Mod:select(T, prefix_spec(S)) || S <- Sections] end),
     read("select by prefix and size range", length(SizeRanges), sections,
          fun(Mod, T) -> [Mod:select(T, size_spec(Range)) || Range <- SizeRanges] end),
     read("select by guards on the key", length(KeyRanges), sections,
          fun(Mod, T) -> [Mod:select(T, key_spec(Range)) || Range <- KeyRanges] end),
     read("select/3, whole table by 500", Rows, sections,
          fun(Mod, T) -> pages(Mod, Mod:select(T, [{{'$1', '_', '_'}, [], ['$1']}], 500), []) end),
     read("first and next, whole table", Rows, sections,
          fun(Mod, T) -> walk(Mod, T, Mod:first(T), []) end)].

prefix_spec(Section) -> [{{{Section, '$1', '$2'}, '_', '$3'}, [], [{{'$2', '$1', '$3'}}]}].

size_spec({Section, Low, High}) ->
    [{{{Section, '$1', '$2'}, '_', '_'}, [{'>=', '$1', Low}, {'<', '$1', High}], [{{'$1', '$2'}}]}].

key_spec({Low, High}) ->
    [{{'$1', '_', '$2'}, [{'>=', '$1', {const, Low}}, {'<', '$1', {const, High}}],
      [{{'$1', '$2'}}]}].

pages(_, '$end_of_table', Acc) -> lists:append(lists:reverse(Acc));
pages(Mod, {Page, Continuation}, Acc) -> pages(Mod, Mod:select(Continuation), [Page | Acc]).

walk(_, _, '$end_of_table', Acc) -> lists:reverse(Acc);
walk(Mod, T, Key, Acc) -> walk(Mod, T, Mod:next(T, Key), [Key | Acc]).

%%% Whole tables

scans(#{packages := Packages, biggest := Biggest}) ->
    Rows = length(Packages),
    [read("match_object on a map field", Rows, packages,
          fun(Mod, T) ->
              Mod:match_object(T, {'_', #{section => Biggest, multi_arch => <<"same">>}}) end,
          fun same_multisets/2),
     read("foldl over the records", Rows, packages,
          fun(Mod, T) -> Mod:foldl(fun per_priority/2, #{}, T) end),
     read("foldl over ordered_set", Rows, sections,
          fun(Mod, T) ->
              Mod:foldl(fun({Key, _, Version}, Acc) -> [{Key, Version} | Acc] end, [], T) end),
     read("tab2list of ordered_set", Rows, sections, fun(Mod, T) -> Mod:tab2list(T) end)].

per_priority({_, Record}, Acc) ->
    Size = installed(Record),
    maps:update_with(maps:get(priority, Record, none), fun({N, Sum}) -> {N + 1, Sum + Size} end,
                     {1, Size}, Acc).

%%% Writing

writes(#{section_of := SectionOf, packages := Packages, ordered := Ordered, biggest := Biggest}) ->
    [#{name => "update_counter over sections", rows => length(SectionOf),
       setup => fun(Mod, _) -> Mod:new(counters, [set, public]) end,
       run => fun(Mod, T) -> lists:foreach(fun({S, Size}) -> count(Mod, T, S, Size) end, SectionOf),
                             T end,
       compare => fun same_tables/2,
       cleanup => fun(Mod, T) -> Mod:delete(T) end},
     deletion("select_delete a section, set", [set, public], Packages,
              [{{'_', #{section => Biggest}}, [], [true]}]),
     deletion("select_delete a section, ordered", [ordered_set, public], Ordered,
              [{{{Biggest, '_', '_'}, '_', '_'}, [], [true]}])].

count(Mod, T, Section, Size) ->
    Mod:update_counter(T, Section, [{2, 1}, {3, Size}], {Section, 0, 0}).

deletion(Name, Options, Rows, Spec) ->
    #{name => Name, rows => length(Rows),
      setup => fun(Mod, _) -> T = Mod:new(copy, Options), true = Mod:insert(T, Rows), T end,
      run => fun(Mod, T) -> Mod:select_delete(T, Spec) end,
      compare => fun({ModA, TA, CountA}, {ModB, TB, CountB}) ->
                         case CountA =:= CountB of
                             true -> same_tables({ModA, TA, TA}, {ModB, TB, TB});
                             false -> {differs, {CountA, CountB}}
                         end
                 end,
      cleanup => fun(Mod, T) -> Mod:delete(T) end}.

%%% Readers and a writer

%% The writer changes two fields of a record together, over and over; every reader checks that it
%% never sees one without the other. What is left at the end does not depend on who ran when.
concurrent(#{packages := Packages, names := Names, updates := Updates}) ->
    Readers = max(2, erlang:system_info(schedulers_online)),
    #{name => io_lib:format("~b readers and a writer", [Readers]),
      rows => Readers * length(Names) + length(Updates),
      setup => fun(Mod, _) ->
                       T = Mod:new(live,
                                   [set, public, {read_concurrency, true},
                                    {write_concurrency, true}]),
                       true = Mod:insert(T,
                                         [{N, R#{writes => 0, check => 0}} || {N, R} <- Packages]),
                       T
               end,
      run => fun(Mod, T) -> {torn, 0} = readers_and_writer(Mod, T, Readers, Names, Updates), T end,
      compare => fun same_tables/2,
      cleanup => fun(Mod, T) -> Mod:delete(T) end}.

readers_and_writer(Mod, T, Readers, Names, Updates) ->
    Parent = self(),
    Start = fun(Fun) -> spawn_link(fun() -> Parent ! {self(), Fun()} end) end,
    Pids = [Start(fun() -> lists:foreach(fun(N) -> write(Mod, T, N) end, Updates), 0 end)
            | [Start(fun() -> sum(fun(N) -> torn(Mod, T, N) end, Names) end)
               || _ <- lists:seq(1, Readers)]],
    {torn, lists:sum([receive {Pid, Torn} -> Torn end || Pid <- Pids])}.

write(Mod, T, Name) ->
    [{_, #{writes := W} = Record}] = Mod:lookup(T, Name),
    Mod:insert(T, {Name, Record#{writes := W + 1, check := -(W + 1)}}).

torn(Mod, T, Name) ->
    case Mod:lookup(T, Name) of
        [{_, #{writes := W, check := C}}] when W =:= -C -> 0;
        _ -> 1
    end.

%%% The bag

bag(#{reverse := Reverse, targets := Targets}) ->
    [load("load bag of reverse deps", reverse, [bag, public], Reverse, fun one_by_one/3),
     read("lookup in bag, random", length(Reverse), reverse,
          fun(Mod, T) -> sum(fun(Target) -> length(Mod:lookup(T, Target)) end, Targets) end,
          same_for_each(lookup, Targets)),
     read("select_count over the bag", length(Reverse), reverse,
          fun(Mod, T) -> Mod:select_count(T, [{{'_', '_', recommends}, [], [true]}]) end)].

%%% Comparing

%% A read of a table that a load made, compared as it is (or as said).
read(Name, Rows, Table, Run) -> read(Name, Rows, Table, Run, fun same_results/2).

read(Name, Rows, Table, Run, Compare) ->
    #{name => Name, rows => Rows,
      setup => fun(_, Tables) -> map_get(Table, Tables) end,
      run => Run,
      compare => Compare,
      cleanup => fun(_, _) -> ok end}.

same_results({_, _, Same}, {_, _, Same}) -> ok;
same_results({_, _, A}, {_, _, B}) -> {differs, first_difference(A, B)}.

same_multisets({_, _, A}, {_, _, B}) -> same_results({x, x, lists:sort(A)}, {x, x, lists:sort(B)}).

%% The loop that is timed keeps only a sum, so that it measures the table and not the heap; here
%% every answer of the one is compared with the answer of the other.
same_for_each(Function, Keys) ->
    fun({ModA, TA, Same}, {ModB, TB, Same}) -> each(Function, Keys, {ModA, TA}, {ModB, TB});
       ({_, _, A}, {_, _, B}) -> {differs, {A, B}}
    end.

each(_, [], _, _) -> ok;
each(Function, [Key | Keys], {ModA, TA} = A, {ModB, TB} = B) ->
    case {ModA:Function(TA, Key), ModB:Function(TB, Key)} of
        {Same, Same} -> each(Function, Keys, A, B);
        {ResultA, ResultB} -> {differs, {Function, Key, ResultA, ResultB}}
    end.

%% Every object of both tables, in order where the type has one. (In what order a bag gives the
%% objects of one key is compared where they are looked up.)
same_tables({ModA, _, TA}, {ModB, _, TB}) ->
    same_results({x, x, objects(ModA, TA)}, {x, x, objects(ModB, TB)}).

objects(Mod, T) ->
    case Mod:info(T, type) of
        ordered_set -> Mod:tab2list(T);
        _ -> lists:sort(Mod:tab2list(T))
    end.

first_difference([Same | As], [Same | Bs]) -> first_difference(As, Bs);
first_difference([A | _], [B | _]) -> first_difference(A, B);
first_difference(A, B) -> {A, B}.
