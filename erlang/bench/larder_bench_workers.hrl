%% The loop of one worker among several, included as larder_bench_loops.hrl is.

-spec new_with([term()]) -> {ok, term()} | refused.
new_with(Options) ->
    try {ok, ?TABLES:new(bench, [public | Options])}
    catch error:badarg -> refused
    end.

%% Puts half of the keys of the range into the table, which half and in which order at random.
-spec prefill(term(), pos_integer(), 1 | 2) -> ok.
prefill(T, Range, Arity) ->
    Place = larder_bench_rows:places(at_random, Range, 1),
    Half = Range div 2,
    lists:foreach(fun(I) -> put_row(T, Place(I), Arity) end, lists:seq(1, Half)),
    Half = rows(T),
    ok.

%% After a run: as many rows as are said to be, all of them of the range.
-spec sound(term(), pos_integer()) -> ok.
sound(T, Range) ->
    N = rows(T),
    Head = {{'$1'}, [{'>=', '$1', 1}, {'=<', '$1', Range}], [true]},
    N = ?TABLES:select_count(T, [Head, setelement(1, Head, {'$1', '$1'})]),
    ok.

%% Works until told to stop; how many operations that were. Some in any case: a machine that does
%% something else may let it begin after the word to stop, and rates are divided by one another.
-spec work(term(), larder_bench_scaling:mix(), pos_integer()) -> non_neg_integer().
work(T, Mix, Seed) -> work(T, Mix, rand:mwc59_seed(Seed), 0).

work(T, Mix, Random, Done) ->
    Next = some(T, Mix, Random, 100),
    receive stop -> Done + 100
    after 0 -> work(T, Mix, Next, Done + 100)
    end.

%% What comes next is drawn from 32 bits, the key from 32 more.
some(_, _, Random, 0) -> Random;
some(T, {Insert, Delete, Lookup, Other, Range, Arity} = Mix, Random, Left) ->
    Random1 = rand:mwc59(Random),
    Random2 = rand:mwc59(Random1),
    Key = (rand:mwc59_value32(Random2) * Range) bsr 32 + 1,
    Random3 = case rand:mwc59_value32(Random1) of
                  What when What < Insert -> put_row(T, Key, Arity), Random2;
                  What when What < Delete -> true = ?TABLES:delete(T, Key), Random2;
                  What when What < Lookup -> look(T, Key), Random2;
                  _ -> other(Other, T, Key, Range, Random2)
              end,
    some(T, Mix, Random3, Left - 1).

put_row(T, Key, 1) -> true = ?TABLES:insert(T, {Key});
put_row(T, Key, 2) -> true = ?TABLES:insert(T, {Key, Key}).

look(T, Key) ->
    case ?TABLES:lookup(T, Key) of
        [] -> ok;
        [{Key}] -> ok;
        [{Key, Key}] -> ok
    end.

other({next, N}, T, Key, Range, Random) -> steps(N, T, Key, Range, Random);
other(count_all, T, _, _, Random) ->
    true = ?TABLES:select_count(T, [{'_', [], [true]}]) > 0,
    Random;
other({count, N}, T, Key, _, Random) ->
    true = ?TABLES:select_count(T,
                                [{{'$1'}, [{'andalso', {'>', '$1', Key}, {'=<', '$1', Key + N}}],
                                  [true]}]) =< N,
    Random.

%% A key that is gone has no next one in a set: on from another.
steps(0, _, _, _, Random) -> Random;
steps(N, T, Key, Range, Random) ->
    try ?TABLES:next(T, Key) of
        '$end_of_table' -> Random;
        Next -> steps(N - 1, T, Next, Range, Random)
    catch error:badarg ->
            Random1 = rand:mwc59(Random),
            steps(N - 1, T, (rand:mwc59_value32(Random1) * Range) bsr 32 + 1, Range, Random1)
    end.
