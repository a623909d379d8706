%% @private
%% @doc The items of info/1,2, put together from what the library says of a
%% table, and the words of test_ms/2.
-module(larder_info).

-export([all/1, item/2, why_not/2]).

%% In the order of `ets:info/1'.
-define(ITEMS, [id, decentralized_counters, read_concurrency, write_concurrency, compressed, memory,
                owner, heir, name, size, node, named_table, type, keypos, protection]).

%% In the order of the library's tuple.
-record(facts, {id, name, named_table, type, keypos, protection, owner, heir, size, bytes, compressed,
                write_concurrency, read_concurrency, decentralized_counters, structure, fixed, stats, more_stats}).

%% @doc All items of info/1.
-spec all(undefined | tuple()) -> undefined | [{atom(), term()}].
all(undefined) ->
    undefined;
all(Tuple) ->
    Facts = facts(Tuple),
    [{Item, value(Item, Facts)} || Item <- ?ITEMS].

%% @doc One item. A table that is gone has none, whatever is asked for.
-spec item(atom(), undefined | tuple()) -> term().
item(_Item, undefined) ->
    undefined;
item(Item, Tuple) ->
    value(Item, facts(Tuple)).

facts(Tuple) ->
    list_to_tuple([facts | tuple_to_list(Tuple)]).

value(id, F) -> F#facts.id;
value(decentralized_counters, F) -> F#facts.decentralized_counters;
value(read_concurrency, F) -> F#facts.read_concurrency;
value(write_concurrency, F) -> F#facts.write_concurrency;
value(compressed, F) -> F#facts.compressed;
value(memory, F) -> words(F#facts.bytes);
value(owner, F) -> F#facts.owner;
value(heir, F) -> living(F#facts.heir);
value(name, F) -> F#facts.name;
value(size, F) -> F#facts.size;
value(node, _) -> node();
value(named_table, F) -> F#facts.named_table;
value(type, F) -> F#facts.type;
value(keypos, F) -> F#facts.keypos;
value(protection, F) -> F#facts.protection;
value(structure, F) -> F#facts.structure;
value(stats, F) -> maps:merge(stats(F#facts.stats), maps:from_list(F#facts.more_stats));
value(binary, _) -> [];
value(fixed, F) -> F#facts.fixed =/= false;
value(safe_fixed, F) -> safe_fixed(F#facts.fixed);
value(safe_fixed_monotonic_time, F) -> safe_fixed_monotonic_time(F#facts.fixed);
value(_Unknown, _) -> erlang:error({larder, none}).

words(Bytes) ->
    Word = erlang:system_info(wordsize),
    (Bytes + Word - 1) div Word.

living(none) ->
    none;
living(Heir) ->
    case is_process_alive(Heir) of
        true -> Heir;
        false -> none
    end.

safe_fixed(false) ->
    false;
safe_fixed({_Monotonic, System, By}) ->
    Micro = System div 1000,
    Second = Micro div 1000000,
    {{Second div 1000000, Second rem 1000000, Micro rem 1000000}, By}.

safe_fixed_monotonic_time(false) ->
    false;
safe_fixed_monotonic_time({Monotonic, _System, By}) ->
    {erlang:convert_time_unit(Monotonic, nanosecond, native), By}.

stats({Leaves, InnerNodes, Depth, Splits, Merges, Contended}) ->
    #{leaves => Leaves, inner_nodes => InnerNodes, depth => Depth, splits => Splits, merges => Merges,
      contended => Contended}.

%% @doc Why a match specification does not compile, in the words of the
%% emulator. One that compiles there does not compile here, and that is all
%% that can be said.
-spec why_not(term(), term()) -> {error, [{warning | error, string()}]}.
why_not(Term, Spec) ->
    case erlang:match_spec_test(Term, Spec, table) of
        {error, _} = Error -> Error;
        _ -> {error, [{error, "The match specification is not one that Larder can run."}]}
    end.
