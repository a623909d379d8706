%% @doc What `make bench' measures: the rows of its table, their targets, and the courses that
%% measure them.
%%
%% A course is one table that goes through some steps, one after the other; the last step leaves it
%% empty. Several steps, of several courses, may belong to one row of the table.
-module(larder_bench_work).

-export([rows/0, courses/0, memories/0, target/2]).

-export_type([row/0, step/0, course/0, memory/0]).

-type row() :: atom().
-type step() :: insert_up | lookup_up | counter_up | delete_up | insert | lookup | miss | counter
    | delete | lookup_many
              | next | select_count | match_one | match_all | foldl | insert_mixed | lookup_mixed
              | delete_mixed.
-type course() :: #{type := set | ordered_set, shape := larder_bench_rows:shape(),
                    steps := [{step(), row() | unmeasured, Name :: string()}]}.
-type memory() :: #{row := row(), name := string(), type := atom(),
                    shape := larder_bench_rows:shape(),
                    order := in_order | at_random}.

%% Where the targets stand.
-define(SIZES, [1000, 65536, 1048576, 16777216]).

%% @doc The rows of the table: what it is, and the most that Larder's time (or memory) may be, as a
%% part of that of `ets', at each of the sizes 1,000, 65,536, 1,048,576 and 16,777,216.
-spec rows() -> [{row(), string(), [float()]}].
rows() ->
    [{set_write, "set {int,int}: insert, counter, delete", [0.9, 0.5, 0.45, 0.35]},
     {set_read, "set {int,int}: random lookup", [0.9, 0.45, 0.5, 0.42]},
     {set_many, "set: lookup_many of 1,000 random keys", [0.8, 0.4, 0.25, 0.2]},
     {ordered, "ordered_set {int,int}, random", [0.8, 0.45, 0.3, 0.2]},
     {ordered_up, "ordered_set {int,int}, in order", [0.9, 0.9, 0.9, 0.8]},
     {set_walk, "first and next: set", [0.9, 0.6, 0.5, 0.5]},
     {ordered_walk, "first and next: ordered_set", [1.5, 1.5, 1.2, 1.2]},
     {scan, "over all rows", [0.8, 0.5, 0.4, 0.3]},
     {mixed, "rows of mixed terms", [1.2, 0.9, 0.7, 0.6]},
     {memory_plain, "memory: set; ordered_set filled in order", [0.4, 0.27, 0.27, 0.27]},
     {memory_mixed, "memory: rows of mixed terms", [0.5, 0.35, 0.35, 0.35]},
     {memory_random, "memory: ordered_set filled at random", [0.5, 0.38, 0.38, 0.38]}].

%% @doc The target of a row at a size; none for a size that has none.
-spec target(row(), pos_integer()) -> float() | none.
target(Row, Size) ->
    {Row, _, Targets} = lists:keyfind(Row, 1, rows()),
    proplists:get_value(Size, lists:zip(?SIZES, Targets), none).

%% @doc All courses, in the order in which they run.
-spec courses() -> [course()].
courses() ->
    [#{type => set, shape => ints, steps => [{insert_up, set_write, "insert, in order"},
                                             {counter_up, set_write, "update_counter, in order"},
                                             {delete_up, set_write, "delete, in order"}]},
     #{type => set, shape => ints, steps => [{insert, set_write, "insert, random"},
                                             {lookup, set_read, "hit"},
                                             {miss, set_read, "miss"},
                                             {lookup_many, set_many,
                                              "lookup_many (ets: a list of lookups)"},
                                             {next, set_walk, "first, next"} | scans("set")]
                                            ++ [{counter, set_write, "update_counter, random"},
                                                {delete, set_write, "delete, random"}]},
     #{type => ordered_set, shape => ints, steps => [{insert_up, ordered_up, "insert"},
                                                     {lookup_up, ordered_up, "lookup"},
                                                     {delete_up, unmeasured, ""}]},
     #{type => ordered_set, shape => ints, steps => [{insert, ordered, "insert"},
                                                     {lookup, ordered, "lookup"},
                                                     {next, ordered_walk, "first, next"}
                                                         | scans("ordered_set")]
                                                    ++ [{counter, ordered, "update_counter"},
                                                        {delete, ordered, "delete"}]}]
        ++ [mixed(Type, Shape) || Shape <- [binaries, tuples], Type <- [set, ordered_set]].

scans(Type) ->
    [{Step, scan, Name ++ ", " ++ Type}
     || {Step, Name} <- [{select_count, "select_count"}, {match_one, "match_object, one row found"},
                         {match_all, "match_object, all rows given"}, {foldl, "foldl"}]].

mixed(Type, Shape) ->
    #{type => Type, shape => Shape,
      steps => [{insert_mixed, mixed, "insert, " ++ name(Type, Shape)},
                                              {lookup_mixed, mixed,
                                               "lookup, " ++ name(Type, Shape)},
                                              {delete_mixed, unmeasured, ""}]}.

name(Type, Shape) ->
    lists:concat([Type, case Shape of binaries -> ", 16-byte key"; tuples -> ", tuple key" end]).

%% @doc What memory is measured of.
-spec memories() -> [memory()].
memories() ->
    [#{row => memory_plain, name => "set", type => set, shape => ints, order => in_order},
     #{row => memory_plain, name => "ordered_set, in order", type => ordered_set, shape => ints,
       order => in_order}]
        ++ [#{row => memory_mixed, name => name(Type, Shape), type => Type, shape => Shape,
              order => at_random}
            || Shape <- [binaries, tuples], Type <- [set, ordered_set, bag]]
        ++ [#{row => memory_random, name => "ordered_set, at random", type => ordered_set,
              shape => ints,
              order => at_random}].
