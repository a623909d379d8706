%% @private
%% @doc Scans, with the results and continuations of the functions of `larder'. The results are in
%% the order of the scan. The native functions return the results of several slices in reverse.
-module(larder_select).

-export([all/4, some/5, every/1, again/1, in_order/1]).

%% @doc Returns the results of a pattern or a match specification for all objects.
-spec all(larder:table(), match | match_object | select, term(), forward | backward) -> [term()].
all(Table, Kind, Spec, Direction) ->
    in_order(larder_nif:select_all(Table, Kind, Spec, Direction)).

%% @doc Like all/4, with a limit.
-spec some(larder:table(), match | match_object | select, term(), term(), forward | backward) ->
          {[term()], larder:continuation()} | '$end_of_table'.
some(Table, Kind, Spec, Limit, Direction) ->
    in_order(larder_nif:select_some(Table, Kind, Spec, Limit, Direction)).

%% @doc Returns all objects.
-spec every(larder:table()) -> [tuple()].
every(Table) ->
    in_order(larder_nif:every(Table)).

%% @doc Continues some/5.
-spec again(term()) -> {[term()], larder:continuation()} | '$end_of_table'.
again({Table, Limit, Direction, Place, Program})
  when is_reference(Table), is_integer(Limit), is_atom(Direction), is_binary(Place) ->
    in_order(larder_nif:select_again(Table, Limit, Direction, Place, Program));
again('$end_of_table' = End) ->
    End;
again(Other) ->
    erlang:error({larder, no_continuation(Other)}).

%% A tuple that begins like a continuation fails with the error of its table,
%% if that can't be read.
no_continuation(Other) when is_tuple(Other), Other =/= {} ->
    case larder_nif:member(element(1, Other), key) of
        {larder, Cause} -> Cause;
        _ -> none
    end;
no_continuation(_) ->
    none.

%% @doc Returns the result of a native function that works in slices, in order.
-spec in_order(term()) -> term().
in_order({more, Reversed, Continuation}) ->
    {lists:reverse(Reversed), Continuation};
in_order({more, Reversed}) ->
    lists:reverse(Reversed);
in_order(Result) ->
    Result.
