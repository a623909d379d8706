%% @private
%% @doc Tables as sources of QLC queries: table/1,2.
%%
%% A query reads the table in one of three ways, and QLC chooses between the
%% first two itself:
%%
%% <ul>
%% <li>by key, when the query compares the key with constants or joins on it
%%     (`lookup_fun'; keys are equal by `==' in an ordered_set, by `=:=' else);</li>
%% <li>by traversal, `n_objects' at a time, with the query's patterns and
%%     filters as a match specification (`select'), so that only what matches
%%     is copied;</li>
%% <li>key by key (`first_next', `last_prev'), or by a match specification of
%%     the caller's (`{select, MS}', without lookups then).</li>
%% </ul>
%%
%% The table is fixed from a query's first answer to its last, or until its cursor is deleted.
%% Options, their defaults, errors, and the output of `qlc:info/1' are those of `ets'.
-module(larder_qlc).

-export([table/2]).

-record(options, {
    traverse = select :: first_next | last_prev | select | {select, larder:match_spec()},
    n_objects = 100 :: pos_integer(),
    %% Options of QLC, which checks them.
    rest = [] :: [term()]
}).

%% @doc Returns a query handle for the table. Fails with `badarg' if an option has an invalid
%% value, and with the error of info/2 if `Tab' can't be a table.
-spec table(larder:table(), [term()] | term()) -> qlc:query_handle().
table(Name, Given) ->
    Tab = resolved(Name, Given),
    case parse(listify(Given)) of
        badarg ->
            erlang:raise(error, badarg, [{larder, table, [Tab, Given], []}]);
        #options{} = Options ->
            handle(Tab, Given, Options)
    end.

%% The table that has a name now, if `ets' of this release looks it up at once.
resolved(Name, Given) when is_atom(Name) ->
    case larder_release:resolves_names() andalso larder:whereis(Name) of
        false -> Name;
        undefined -> erlang:raise(error, badarg,
                                  [{larder, table, [Name, Given], larder_error:info(id)}]);
        Id -> Id
    end;
resolved(Tab, _Given) ->
    Tab.

handle(Tab, Given, #options{traverse = Traverse, rest = Rest} = Options) ->
    Callbacks = [
        {pre_fun, fun(_) -> larder:safe_fixtable(Tab, true) end},
        {post_fun, fun() -> larder:safe_fixtable(Tab, false) end},
        {info_fun, fun(Item) -> info(Tab, Item) end},
        {format_fun, fun(What) -> format(Tab, Given, What) end},
        {key_equality, key_equality(Tab)},
        {lookup_fun, lookup_fun(Tab, Traverse)}
    ],
    qlc:table(traverse_fun(Tab, Options), Callbacks ++ Rest).

%% ---- options ----

%% If an option is given twice, the first counts. The second is passed to QLC.
parse(List) ->
    parse([traverse, n_objects], List, #options{}).

parse([], Rest, Options) ->
    Options#options{rest = Rest};
parse([Name | Names], List, Options) ->
    case lists:keyfind(Name, 1, List) of
        false ->
            parse(Names, List, Options);
        Option ->
            case set(Option, Options) of
                badarg -> badarg;
                Options1 -> parse(Names, lists:keydelete(Name, 1, List), Options1)
            end
    end.

set({n_objects, default}, Options) ->
    Options;
set({n_objects, N}, Options) when is_integer(N), N >= 1 ->
    Options#options{n_objects = N};
set({traverse, {select, _} = Select}, Options) ->
    Options#options{traverse = Select};
set({traverse, How}, Options) when How =:= first_next; How =:= last_prev; How =:= select ->
    Options#options{traverse = How};
set(_, _Options) ->
    badarg.

listify(List) when is_list(List) -> List;
listify(Option) -> [Option].

%% ---- reading ----

traverse_fun(Tab, #options{traverse = first_next}) ->
    fun() -> forward(Tab, larder:first(Tab)) end;
traverse_fun(Tab, #options{traverse = last_prev}) ->
    fun() -> backward(Tab, larder:last(Tab)) end;
traverse_fun(Tab, #options{traverse = {select, Spec}, n_objects = N}) ->
    fun() -> chunk(larder:select(Tab, Spec, N)) end;
traverse_fun(Tab, #options{traverse = select, n_objects = N}) ->
    fun(Spec) -> chunk(larder:select(Tab, Spec, N)) end.

%% QLC reads a list whose tail may be a fun that returns the next part.
forward(_Tab, '$end_of_table') ->
    [];
forward(Tab, Key) ->
    larder:lookup(Tab, Key) ++ fun() -> forward(Tab, larder:next(Tab, Key)) end.

backward(_Tab, '$end_of_table') ->
    [];
backward(Tab, Key) ->
    larder:lookup(Tab, Key) ++ fun() -> backward(Tab, larder:prev(Tab, Key)) end.

chunk('$end_of_table') ->
    [];
chunk({Answers, Continuation}) ->
    Answers ++ fun() -> chunk(larder:select(Continuation)) end.

lookup_fun(_Tab, {select, _Spec}) ->
    undefined;
lookup_fun(Tab, _Traverse) ->
    fun(_KeyPos, Keys) -> lists:flatmap(fun(Key) -> larder:lookup(Tab, Key) end, Keys) end.

%% ---- what QLC asks ----

key_equality(Tab) ->
    case larder:info(Tab, type) of
        ordered_set -> '==';
        _ -> '=:='
    end.

info(Tab, num_of_objects) -> larder:info(Tab, size);
info(Tab, keypos) -> larder:info(Tab, keypos);
info(Tab, is_unique_objects) -> larder:info(Tab, type) =/= duplicate_bag;
info(Tab, is_sorted_key) -> larder:info(Tab, type) =:= ordered_set;
info(_Tab, _) -> undefined.

%% ---- what qlc:info/1 shows: the call that would read the same ----

format(Tab, [], {all, _Depth, _Limit}) ->
    {larder, table, [Tab]};
format(Tab, Given, {all, _Depth, _Limit}) ->
    {larder, table, [Tab, Given]};
format(Tab, Given, {match_spec, Spec}) ->
    {larder, table, [Tab, [{traverse, {select, Spec}} | listify(Given)]]};
format(Tab, _Given, {lookup, _KeyPos, [Key], _Depth, Limit}) ->
    io_lib:format("~w:lookup(~w, ~w)", [larder, Tab, Limit(Key)]);
format(Tab, _Given, {lookup, _KeyPos, Keys, _Depth, Limit}) ->
    io_lib:format("lists:flatmap(fun(V) -> ~w:lookup(~w, V) end, ~w)",
                  [larder, Tab, [Limit(Key) || Key <- Keys]]).
