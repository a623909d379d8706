%% @private
%% @doc Secondary indexes: the implementation of the functions of `larder'.
-module(larder_index).

-export([lookup/3, select/3, some/4, again/1, explain/2, info/1]).

%% @doc Returns the objects that have a value in an index.
-spec lookup(larder:table(), atom(), term()) -> [tuple()].
lookup(Table, Name, Value) ->
    larder_select:in_order(larder_nif:index_lookup(Table, Name, Value)).

%% @doc Returns the results of a match specification for the objects of an index, in its order.
-spec select(larder:table(), atom(), larder:match_spec()) -> [term()].
select(Table, Name, Spec) ->
    larder_select:in_order(larder_nif:index_select_all(Table, Name, Spec)).

%% @doc Like select/3, with a limit.
-spec some(larder:table(), atom(), larder:match_spec(), term()) ->
          {[term()], larder:index_continuation()} | '$end_of_table'.
some(Table, Name, Spec, Limit) ->
    larder_select:in_order(larder_nif:index_select_some(Table, Name, Spec, Limit)).

%% @doc Continues some/4.
-spec again(term()) -> {[term()], larder:index_continuation()} | '$end_of_table'.
again({Table, Name, Limit, Place, Program})
  when is_reference(Table), is_atom(Name), is_integer(Limit), is_binary(Place) ->
    larder_select:in_order(larder_nif:index_select_again(Table, Name, Limit, Place, Program));
again('$end_of_table' = End) ->
    End;
again(_) ->
    erlang:error({larder, none}).

%% @doc Returns how a match specification would be evaluated.
-spec explain(larder:table(), larder:match_spec()) -> larder:plan().
explain(Table, Spec) ->
    {Plan, Rows, Indexes} = larder_nif:explain(Table, Spec),
    #{plan => Plan, rows => Rows, indexes => maps:from_list(Indexes)}.

%% @doc Converts what the library returns of indexes, for `info(Table, indexes)'.
-spec info([tuple()]) -> [map()].
info(Indexes) ->
    [#{name => Name, on => On, options => Options, ready => Ready, size => Size, bytes => Bytes}
     || {Name, On, Options, Ready, Size, Bytes} <- Indexes].
