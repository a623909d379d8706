%% @private
%% @doc The items of info/1,2, from what the library returns for a table, and the errors of
%% test_ms/2.
-module(larder_info).

-export([all/1, item/2, why_not/2]).

%% The items of `ets:info/1', in its order, but `node'.
-define(FACTS, [id, decentralized_counters, read_concurrency, write_concurrency, compressed, memory,
                owner, heir, name, size, named_table, type, keypos, protection]).

%% @doc Returns all items of info/1.
-spec all(larder:table()) -> undefined | [{atom(), term()}].
all(Table) ->
    case larder_nif:info_list(Table, ?FACTS) of
        undefined ->
            undefined;
        [Id, Decentralized, Read, Write, Compressed, Memory, Owner, Heir, Name, Size, Named, Type,
         Keypos, Protection] ->
            [{id, Id}, {decentralized_counters, Decentralized}, {read_concurrency, Read},
             {write_concurrency, Write}, {compressed, Compressed}, {memory, Memory}, {owner, Owner},
             {heir, Heir}, {name, Name}, {size, Size}, {node, node()}, {named_table, Named},
             {type, Type}, {keypos, Keypos}, {protection, Protection}]
    end.

%% @doc Returns one item, or `undefined' if the table doesn't exist.
-spec item(larder:table(), atom()) -> term().
item(Table, node) -> convert(larder_nif:info(Table, type), fun(_) -> node() end);
item(Table, binary) -> convert(larder_nif:info(Table, type), fun(_) -> [] end);
item(Table, stats) -> convert(larder_nif:info(Table, stats), fun stats/1);
item(Table, indexes) -> convert(larder_nif:info(Table, indexes), fun larder_index:info/1);
item(Table, bounds) -> convert(larder_nif:info(Table, bounds), fun bounds/1);
item(Table, safe_fixed) -> convert(larder_nif:info(Table, safe_fixed), fun safe_fixed/1);
item(Table, snapshot) -> convert(larder_nif:info(Table, snapshot), fun snapshot/1);
item(Table, safe_fixed_monotonic_time) ->
    convert(larder_nif:info(Table, safe_fixed), fun safe_fixed_monotonic_time/1);
item(Table, Item) -> larder_nif:info(Table, Item).

convert(undefined, _) -> undefined;
convert(Fact, Make) -> Make(Fact).

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

bounds(false) ->
    false;
bounds({Ttl, Idle}) ->
    #{ttl => Ttl, idle => Idle};
bounds({Ttl, Idle, Size, Memory, Evict}) ->
    #{ttl => Ttl, idle => Idle, max_size => Size, max_memory => Memory, evict => Evict}.

snapshot(false) ->
    false;
snapshot({Table, Number, Age}) ->
    #{table => Table, number => Number, age => Age}.

stats({{Leaves, InnerNodes, Depth, Splits, Merges, Contended}, More}) ->
    maps:merge(#{leaves => Leaves, inner_nodes => InnerNodes, depth => Depth, splits => Splits,
                 merges => Merges, contended => Contended},
               maps:from_list(More)).

%% @doc Returns why a match specification is invalid, in the words of the emulator. If the emulator
%% accepts it, the reason isn't known.
-spec why_not(term(), term()) -> {error, [{warning | error, string()}]}.
why_not(_Term, {Prepared, _Values} = Spec) when is_reference(Prepared) ->
    {error, [{error, larder_error:why_no_spec(Spec)}]};
why_not(Term, Spec) ->
    case erlang:match_spec_test(Term, Spec, table) of
        {error, _} = Error -> Error;
        _ -> {error, [{error, "The match specification is not one that Larder can run."}]}
    end.
