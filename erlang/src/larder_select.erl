%% @private
%% @doc Scans as the functions of `larder' return them: results in the order of
%% the scan, and continuations. The native functions return the results of
%% several slices in reverse.
-module(larder_select).

-export([all/4, some/5, every/1, again/1, in_order/1]).

%% @doc What a pattern or a match specification makes of all objects.
-spec all(larder:table(), match | match_object | select, term(), forward | backward) -> [term()].
all(Table, Kind, Spec, Direction) ->
    in_order(larder_nif:select_all(Table, Kind, Spec, Direction)).

%% @doc As all/4, so many at a time.
-spec some(larder:table(), match | match_object | select, term(), term(), forward | backward) ->
          {[term()], larder:continuation()} | '$end_of_table'.
some(Table, Kind, Spec, Limit, Direction) ->
    in_order(larder_nif:select_some(Table, Kind, Spec, Limit, Direction)).

%% @doc All objects.
-spec every(larder:table()) -> [tuple()].
every(Table) ->
    in_order(larder_nif:every(Table)).

%% @doc Goes on with some/5.
-spec again(term()) -> {[term()], larder:continuation()} | '$end_of_table'.
again({Table, Limit, Direction, Place, Program})
  when is_reference(Table), is_integer(Limit), is_atom(Direction), is_binary(Place) ->
    in_order(larder_nif:select_again(Table, Limit, Direction, Place, Program));
again('$end_of_table' = End) ->
    End;
again(Other) ->
    erlang:error({larder, no_continuation(Other)}).

%% What begins like a continuation has the error of the table that it names,
%% if that can't be read.
no_continuation(Other) when is_tuple(Other), Other =/= {} ->
    _ = larder_nif:member(element(1, Other), key),
    none;
no_continuation(_) ->
    none.

%% @doc The result of a native function that works in slices, in order.
-spec in_order(term()) -> term().
in_order({more, Reversed, Continuation}) ->
    {lists:reverse(Reversed), Continuation};
in_order({more, Reversed}) ->
    lists:reverse(Reversed);
in_order(Result) ->
    Result.
