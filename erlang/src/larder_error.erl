%% @private
%% @doc Describes what was wrong with a call.
%%
%% An exception of `larder' has `error_info', like one of `ets': the cause is an atom in the first
%% frame of the stack. The description is created when the exception is printed (by the shell, or in
%% a crash report).
%%
%% The descriptions are those of `ets', from the module `erl_stdlib_errors': the frame is passed to
%% it as if it came from `ets'.
%%
%% ```
%%   {larder, F, Args, Info}            the frame as it was raised
%%        |  as_ets/2                   functions that older releases lack, or
%%        v                             that ets raises under another name
%%   {ets, F1, Args1, Info1}
%%        |  erl_stdlib_errors:format_error/2
%%        v
%%   #{1 => Text, 3 => Text ...}        argument number => description
%%        |  amend/4                    descriptions that only Larder has
%%        v
%%   #{...}
%%        |  said/3                     "Larder table"; why a specification is invalid
%%        v
%%   #{...}
%% '''
%%
%% Nothing here may fail: a failure while an error is being printed would hide the
%% error. For a frame that can't be explained the result is an empty map.
-module(larder_error).
-compile({larder_transform, keep_ets}).

-export([reason/1, info/1, format_error/2, why_no_spec/1]).

%% Causes that the formatter of every supported release knows. It would fail for another cause,
%% so `none' is passed instead.
-define(KNOWN_CAUSES,
        [none, type, id, access, table_type, badkey, keypos, position, owner, not_owner]).

-define(SUBSCRIBES(Function),
        Function =:= subscribe; Function =:= snapshot_and_subscribe).

-define(BY_RANK(Function), Function =:= rank; Function =:= nth; Function =:= slice;
        Function =:= count_range).

-define(BY_INDEX(Function), Function =:= index_lookup; Function =:= index_select).

-define(NO_REPLACEMENT(Clause),
        "not a valid match specification: " Clause
        "the result is not for certain an object with the key of the one that it replaces").

%% A cause that the library raises. `itself' is handled by `larder': it says that the result is the
%% atom `badkey'.
-type cause() :: atom() | {not_unique | no_index, Name :: atom()}.
-type words() :: #{pos_integer() | general | reason => unicode:chardata()}.

%% @doc Returns the reason of an exception with this cause of the library.
-spec reason(cause()) -> badarg | system_limit | larder_internal.
reason(system_limit) -> system_limit;
reason(full) -> system_limit;
reason(larder_internal) -> larder_internal;
reason(_Cause) -> badarg.

%% @doc Returns the options of `erlang:error/3' that make the shell call format_error/2.
-spec info(cause()) -> [{error_info, #{module := larder, cause => cause()}}].
info(Cause) when Cause =:= none; Cause =:= system_limit; Cause =:= larder_internal ->
    [{error_info, #{module => larder}}];
info(Cause) ->
    [{error_info, #{module => larder, cause => Cause}}].

%% @doc Explains the first frame of `Stacktrace': argument number to words.
-spec format_error(Reason :: term(), Stacktrace :: [term()]) -> words().
format_error(Reason, [{_Module, Function, Args, Info} | _]) when is_list(Args) ->
    try
        explained(Reason, Function, Args, cause(Info))
    catch
        %% The frame isn't one that `larder' raises, or a table was deleted meanwhile.
        _:_ -> #{}
    end;
format_error(_Reason, _Stacktrace) ->
    #{}.

explained(Reason, Function, Args, Cause) ->
    {EtsFunction, EtsArgs} = as_ets(Function, Args),
    Words = case default_words(Reason, Function, Args, EtsArgs, Cause) of
                Known when map_size(Known) > 0 ->
                    Known;
                _ ->
                    Asked = ask_ets(Reason, EtsFunction, EtsArgs, known(EtsFunction, Cause)),
                    amend(Function, Args, Cause, Asked)
            end,
    Amended = maps:filter(fun(N, Text) -> not is_bound(N, Text, Args) end, Words),
    maps:map(fun(N, Text) -> said(N, Text, Args) end, Amended).

%% From OTP 29 on `ets' has words for a default without a key. The formatter of an earlier release
%% fails for that cause.
default_words(Reason, Function, [Tab, Key, _, Default], [_, _, Spec | _], default) ->
    ask_ets(Reason, Function, [Tab, Key, Spec, Default], default);
default_words(_Reason, _Function, _Args, _EtsArgs, _Cause) ->
    #{}.

cause(Info) when is_list(Info) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, #{cause := Cause}} -> Cause;
        _ -> none
    end;
cause(_) ->
    none.

%% Only the formatter of `new' handles already_exists itself.
known(new, already_exists) ->
    already_exists;
known(_Function, Cause) ->
    case lists:member(Cause, ?KNOWN_CAUSES) of
        true -> Cause;
        false -> none
    end.

%% The call of ets that has the same descriptions, with its arguments at the same places.
as_ets(lookup_element, [Tab, Key, Pos, _Default]) ->
    {lookup_element, [Tab, Key, Pos]};
as_ets(lookup_elements, [Tab, Key, Positions | _Default]) ->
    {lookup_element, [Tab, Key, one_position(Positions)]};
as_ets(update_element, [Tab, Key, Spec, _Default]) ->
    {update_element, [Tab, Key, proper(Spec)]};
as_ets(update_element, [Tab, Key, Spec]) ->
    {update_element, [Tab, Key, proper(Spec)]};
as_ets(update_counter, [Tab, Key, Spec | Default]) ->
    {update_counter, [Tab, Key, in_elements(proper(Spec)) | Default]};
as_ets(Function, [Tab, Key | _]) when Function =:= update_map; Function =:= remove_map_key ->
    {member, [Tab, Key]};
as_ets(insert, [Tab, Object, _Options]) ->
    {insert, [Tab, Object]};
as_ets(expire, [Tab, Key, _Ttl]) ->
    {member, [Tab, Key]};
as_ets(ttl, Args) ->
    {member, Args};
as_ets(Function, [Tab, Keys]) when Function =:= lookup_many; Function =:= take_many ->
    {member, [Tab, Keys]};
as_ets(next_lookup, Args) ->
    {next, Args};
as_ets(prev_lookup, Args) ->
    {prev, Args};
as_ets(Function, [_, _] = Args) when Function =:= select_delete; Function =:= match_delete;
                                     Function =:= select_take ->
    {internal_select_delete, Args};
as_ets(Function, [Tab, Arg | _]) when ?BY_RANK(Function) ->
    {member, [Tab, Arg]};
as_ets(Function, [Tab, Name | _]) when ?BY_INDEX(Function); Function =:= add_index;
                                       Function =:= drop_index ->
    {member, [Tab, Name]};
as_ets(prepare, Args) ->
    {match_spec_compile, Args};
as_ets(explain, Args) ->
    {select_count, Args};
as_ets(Function, [Tab, all, _Options]) when ?SUBSCRIBES(Function) ->
    {member, [Tab, all]};
as_ets(Function, [Tab, Spec, _Options]) when ?SUBSCRIBES(Function) ->
    {select, [Tab, Spec]};
as_ets(Function, Args) ->
    {Function, Args}.

%% The formatter of ets fails for an improper list of operations. It gets another invalid term in
%% its place.
proper(List) when is_list(List) ->
    try length(List) of
        _ -> List
    catch
        error:badarg -> improper
    end;
proper(Spec) ->
    Spec.

%% Operations on counters in maps as operations on elements: ets knows no others, and would blame
%% them.
in_elements(Operations) when is_list(Operations) ->
    [in_element(Operation) || Operation <- Operations];
in_elements(Operation) ->
    in_element(Operation).

in_element(Operation) when is_tuple(Operation), tuple_size(Operation) > 0 ->
    case element(1, Operation) of
        {Position, _MapKey} -> setelement(1, Operation, Position);
        {Position, _MapKey, Initial} when is_integer(Initial) -> setelement(1, Operation, Position);
        _ -> Operation
    end;
in_element(Operation) ->
    Operation.

%% The position that explains an error: the first invalid one.
one_position(Positions) ->
    case is_list(proper(Positions)) of
        true -> hd([P || P <- Positions, not (is_integer(P) andalso P > 0)] ++ [1]);
        false -> 1
    end.

ask_ets(Reason, Function, Args, Cause) ->
    Info = [{error_info, #{module => erl_stdlib_errors, cause => Cause}}],
    try
        erl_stdlib_errors:format_error(Reason, [{ets, Function, Args, Info}])
    catch
        _:_ -> #{}
    end.

%% Whether ets takes a valid specification for invalid, because it doesn't know parameters.
is_bound(N, <<"not a valid match specification">>, Args) when is_integer(N) ->
    case lists:nth(N, Args) of
        {_Prepared, _Values} = Spec -> compiles(Spec);
        _ -> false
    end;
is_bound(_N, _Text, _Args) ->
    false.

%% The descriptions say that tables are Larder's, and why the emulator finds a specification
%% invalid. Those of ets say only that it is.
said(N, <<"not a valid match specification">> = Text, Args) when is_integer(N) ->
    case why_no_spec(lists:nth(N, Args)) of
        "" -> Text;
        Why -> unicode:characters_to_binary([Text, ": ", Why])
    end;
said(_N, Text, _Args) when is_binary(Text) ->
    lists:foldl(fun({Old, New}, Said) -> binary:replace(Said, Old, New) end, Text,
                [{<<"an ETS table">>, <<"a Larder table">>},
                 {<<"ETS table">>, <<"Larder table">>}]);
said(_N, Text, _Args) ->
    Text.

%% @doc Why a match specification is none; nothing if that isn't known. Of several clauses
%% the first one that is wrong is named.
-spec why_no_spec(term()) -> string().
why_no_spec([_, _ | _] = Clauses) when length(Clauses) > 1 ->
    Whys = [{N, why_no_clause([Clause])} || {N, Clause} <- lists:enumerate(Clauses)],
    case [Wrong || {_, Why} = Wrong <- Whys, Why =/= ""] of
        [{N, Why} | _] -> lists:flatten(io_lib:format("clause ~b: ~ts", [N, Why]));
        [] -> ""
    end;
why_no_spec({Prepared, Values}) when is_reference(Prepared) ->
    case larder_nif:parameters(Prepared) of
        false -> "neither a list of clauses nor {Prepared, Values}";
        Count -> why_no_values(Count, Values)
    end;
why_no_spec(Spec) ->
    why_no_clause(Spec).

why_no_values(Count, Values) ->
    case is_list(proper(Values)) andalso length(Values) of
        false -> "the values of its parameters are not a list";
        Count -> "a value can't be read";
        Given ->
            Missing = [io_lib:format("{bind, ~b} has no value; ", [Given + 1]) || Given < Count],
            lists:flatten([Missing, io_lib:format("parameters: ~b, values: ~b", [Count, Given])])
    end.

%% For a specification with parameters, the library returns the reason.
prepare_words(Spec) ->
    Text = <<"not a match specification with parameters">>,
    try larder_nif:prepare_fault(Spec) of
        none -> #{};
        {Clause, Why} when length(Spec) > 1 ->
            #{1 => io_lib:format("~ts: clause ~b: ~ts", [Text, Clause, Why])};
        {_Clause, Why} -> #{1 => io_lib:format("~ts: ~ts", [Text, Why])};
        Why -> #{1 => io_lib:format("~ts: ~ts", [Text, Why])}
    catch
        _:_ -> #{1 => Text}
    end.

why_no_clause(Spec) ->
    try erlang:match_spec_test({}, Spec, table) of
        {error, Errors} ->
            case [Text || {error, Text} <- Errors] of
                [[First | Rest] | _] ->
                    Text = [string:to_lower(First) | string:trim(Rest, trailing, ".")],
                    lists:flatten(string:replace(Text, "does_not_exist", "does not exist"));
                [] -> ""
            end;
        _ -> ""
    catch
        _:_ -> ""
    end.

%% A snapshot is read-only, whatever else is wrong.
amend(_Function, _Args, read_only, _Words) ->
    #{1 => <<"the table is a snapshot, which can't be written">>};
%% A view is no table of its own.
amend(_Function, _Args, view, _Words) ->
    #{1 => <<"the table is a transaction's view, which can't be deleted, renamed or given away, or "
             "get other options">>};
%% A value that is taken, however it was to be written.
amend(_Function, _Args, {not_unique, Name}, _Words) ->
    general("another object has this value in the unique index ~tp", [Name]);
%% A structure that doesn't grow; limits.
amend(commit, [Operations], full, _Words) ->
    full_of([element(2, Operation) || Operation <- Operations]);
amend(transaction, [Tables | _], full, _Words) ->
    full_of(Tables);
amend(_Function, [Tab | _], full, _Words) ->
    full_words(Tab);
%% A table without bounds; a time that is none.
amend(_Function, _Args, unbounded, _Words) ->
    #{1 => <<"the table has no bounds: make it with an option such as {ttl, infinity}">>};
amend(_Function, _Args, unlimited, _Words) ->
    #{1 => <<"the table has no limits: make it with an option such as {max_size, infinity}">>};
amend(insert, [_, Object, Options], _Cause, Words) ->
    ttl_words(Options, maps:merge(Words, one_object_words(Object)));
amend(expire, [_, _, Ttl], _Cause, Words) ->
    time_words(Ttl, Words);
%% update_element/4: a default that isn't a tuple explains the error, whatever the element
%% specification is, unless the cause is keypos or position.
amend(update_element, [Tab, _Key, _Spec, Default], Cause, Words) ->
    case Words of
        #{1 := _} ->
            Words;
        _ when Cause =:= keypos ->
            Words;
        _ when Cause =:= position ->
            Words#{3 => position_words(Tab)};
        _ ->
            case tuple_words(Tab, Default) of
                none -> Words;
                Text -> #{4 => Text}
            end
    end;
amend(lookup_elements, [_Tab, _Key, Positions | _], _Cause, Words) ->
    case is_list(proper(Positions)) of
        true -> Words;
        false -> Words#{3 => <<"not a list of positions">>}
    end;
amend(Function, [_Tab, Keys], none, Words) when Function =:= lookup_many; Function =:= take_many ->
    case is_list(proper(Keys)) of
        true -> Words;
        false -> Words#{2 => <<"not a list">>}
    end;
%% The words of commit/1 are about its operations, whatever the cause.
amend(commit, [Operations], Cause, _Words) when not is_tuple(Cause) ->
    #{1 => commit_words(Operations, Cause)};
%% Maps.
amend(_Function, _Args, badmap, _Words) ->
    #{3 => <<"the element at this position is not a map">>};
amend(update_counter, _Args, badmapkey, _Words) ->
    #{3 => <<"the map has no such key: {{Position, MapKey, Initial}, Increment} begins with an integer">>};
amend(Function, Args, Cause, Words) when Function =:= update_map; Function =:= remove_map_key ->
    map_words(Args, Cause, Words);
%% Secondary indexes.
amend(index_select, [_Continuation], {no_index, Name}, _Words) ->
    #{1 => io_lib:format("a continuation of the index ~tp, which the table no longer has", [Name])};
amend(_Function, _Args, {no_index, Name}, _Words) ->
    #{2 => io_lib:format("the table has no index ~tp, or it is not ready", [Name])};
amend(Function, [_, _], table_type, _Words) when Function =:= add_index; Function =:= drop_index ->
    #{1 => <<"the table can have no indexes: it is on a structure, or a transaction's view">>};
amend(add_index, [Tab, Index], _Cause, Words) when map_size(Words) =:= 0 ->
    #{2 => index_words(Tab, Index)};
amend(drop_index, [_Tab, _Name], none, Words) when map_size(Words) =:= 0 ->
    #{2 => <<"not an atom">>};
amend(Function, [_Tab, Name | _], none, Words) when ?BY_INDEX(Function), not is_atom(Name) ->
    Words#{2 => <<"not an atom">>};
amend(index_select, [_Tab, _Name, Spec | Limit], none, Words) when map_size(Words) =:= 0 ->
    maps:merge(spec_words(3, Spec), limit_words(Limit));
amend(index_select, [_Continuation], _Cause, _Words) ->
    #{1 => <<"not a continuation of index_select/4">>};
amend(prepare, [Spec], _Cause, _Words) ->
    prepare_words(Spec);
%% Ranks.
amend(_Function, _Args, unranked, _Words) ->
    #{1 => <<"only tables of type ordered_set have ranks, and none with bounds or on a structure"
             " but the default">>};
amend(nth, [_Tab, N], none, Words) when map_size(Words) =:= 0 ->
    place_words(2, N);
amend(slice, [_Tab, From, Count], none, Words) when map_size(Words) =:= 0 ->
    maps:merge(place_words(2, From), count_words(3, Count));
%% Memory.
amend(memory, [_Items], _Cause, _Words) ->
    #{1 => <<"not an item of larder:memory(), and not a list of them">>};
amend(top, [N, By], _Cause, _Words) ->
    maps:merge(count_words(1, N),
               maps:from_list([{2, <<"not one of memory, size and contention">>}
                               || not lists:member(By, [memory, size, contention])]));
%% Snapshots.
amend(snapshot, [Tables], Cause, Words) ->
    snapshot_words(Tables, Cause, Words);
amend(release, [_], not_snapshot, _Words) ->
    #{1 => <<"not a snapshot">>};
amend(release, [_], not_owner, _Words) ->
    #{1 => <<"the calling process is not the owner of the snapshot">>};
amend(diff, [Old, New], Cause, _Words) ->
    diff_words(Old, New, Cause);
%% Transactions.
amend(transaction, [_, _, _], not_in_transaction, _Words) ->
    #{1 => <<"a table is not one of the transaction that this one is a part of">>};
amend(transaction, [_, _, _], structure, _Words) ->
    #{1 => <<"a table is named twice">>};
amend(transaction, [_, _, _], table_type, _Words) ->
    #{1 => <<"a table is a snapshot, a transaction's view, or on a structure that has no"
             " transactions">>};
amend(transaction, [Tables, Fun, Options], none, _Words) ->
    maps:from_list([{1, <<"not a list of tables">>} || not is_list(proper(Tables))]
                   ++ [{2, <<"not a fun with one argument">>} || not is_function(Fun, 1)]
                   ++ [{3, <<"not a map of the options retries and timeout, each a non-negative"
                             " integer or infinity">>}
                       || not (is_map(Options) andalso larder_transaction:are_options(Options))]);
%% Feeds.
amend(Function, [_, _, _], is_snapshot, _Words) when ?SUBSCRIBES(Function) ->
    #{1 => <<"a snapshot doesn't change">>};
amend(Function, [_, _, _], structure, _Words) when ?SUBSCRIBES(Function) ->
    #{1 => <<"a transaction's view, or a table on a structure, that has no feed">>};
%% Without another explanation, ets blames the specification, valid or not.
amend(Function, [_, Spec, Options], _Cause, Words) when ?SUBSCRIBES(Function) ->
    case larder_feed:are_options(Options) of
        true ->
            Words;
        false ->
            Others = case compiles(Spec) of true -> maps:remove(2, Words); false -> Words end,
            Others#{3 => <<"not a map of the options limit and mailbox, with positive integers">>}
    end;
amend(unsubscribe, [_], not_owner, _Words) ->
    #{1 => <<"the subscription of another process">>};
amend(unsubscribe, [_], _Cause, _Words) ->
    #{1 => <<"not a subscription">>};
%% A structure, or its options: the library knows which exist.
amend(new, [_Name, Options], structure, Words) ->
    case fault(Options) of
        none -> Words;
        Text -> Words#{2 => Text}
    end;
%% Invalid bounds.
amend(Function, [_, Options], Cause, Words)
  when Function =:= new, Cause =:= none; Function =:= setopts, Cause =/= not_owner ->
    bound_words(Options, Words);
amend(select_replace, [Tab, Spec], none, #{2 := _} = Words) ->
    case compiles(Spec) of
        true -> Words#{2 => replace_words(Tab, Spec)};
        false -> Words
    end;
%% A specification may use what larder's compiler knows and this release's
%% does not (docs/semantics.md, 5): then it is not what was wrong.
amend(Function, [_Tab, Spec, _Limit], _Cause, #{2 := _} = Words)
  when Function =:= select; Function =:= select_reverse; Function =:= select_count ->
    case compiles(Spec) of
        true -> maps:remove(2, Words);
        false -> Words
    end;
amend(_Function, _Args, _Cause, Words) ->
    Words.

%% The library's error for options that it can read.
fault(Options) ->
    try
        larder_nif:fault(Options)
    catch
        _:_ -> none
    end.

%% What is wrong with a change of a map.
map_words(Args, position, Words) ->
    case is_below_one(Args) of
        true -> map_words(Args, none, Words);
        false -> Words#{3 => <<"position is greater than the size of the object">>}
    end;
map_words(_Args, keypos, Words) -> Words#{3 => <<"the position of the key may not be changed">>};
map_words([Tab, _Key, Changes], none, Words) ->
    IsChange = fun(Change) ->
        is_tuple(Change) andalso lists:member(tuple_size(Change), [2, 3])
            andalso is_integer(element(1, Change)) andalso element(1, Change) > 0
    end,
    case is_list(proper(Changes)) andalso lists:all(IsChange, Changes) of
        true when map_size(Words) =:= 0 ->
            far_or_bag(Tab, [element(1, Change) || Change <- Changes]);
        true -> Words;
        false -> Words#{3 => <<"not a list of {Position, MapKey, Value} and {Position, MapKey}">>}
    end;
map_words([_Tab, _Key, Position | _], none, Words)
  when not is_integer(Position); Position < 1 ->
    Words#{3 => <<"not a positive integer">>};
map_words([Tab, _Key, Position | _], none, Words) when map_size(Words) =:= 0 ->
    far_or_bag(Tab, [Position]);
map_words([Tab | _], _Cause, Words) when map_size(Words) =:= 0 ->
    far_or_bag(Tab, []);
map_words(_Args, _Cause, Words) ->
    Words.

%% Whether a position is that of no object.
is_below_one([_Tab, _Key, Changes]) ->
    lists:any(fun(Change) -> element(1, Change) < 1 end, Changes);
is_below_one([_Tab, _Key, Position | _]) ->
    Position < 1.

%% The library refuses large integers before it looks at the object.
far_or_bag(Tab, Positions) ->
    case larder:info(Tab, type) of
        Type when Type =:= bag; Type =:= duplicate_bag ->
            #{1 => <<"the table is a bag, whose keys have no one object">>};
        _ ->
            case lists:any(fun(Position) -> Position >= 1 bsl 59 end, Positions) of
                true -> #{3 => <<"position is greater than the size of the object">>};
                false -> #{}
            end
    end.

%% What is wrong with an index that is to be added.
index_words(Tab, Index) ->
    case index_shape(Index) of
        none ->
            case fault([{index, [Index]}]) of
                none -> index_place(Tab, element(1, Index));
                Text -> Text
            end;
        Text ->
            Text
    end.

index_shape({Name, Position, _}) when is_atom(Name), is_integer(Position), Position < 1 ->
    io_lib:format("index ~tp: positions count from 1", [Name]);
index_shape({Name, _On, Options}) when is_atom(Name), is_list(Options) ->
    case is_list(proper(Options)) andalso other_options(Options) of
        false -> io_lib:format("index ~tp: its options are not a proper list", [Name]);
        [] -> none;
        [Other | _] -> io_lib:format("index ~tp: ~tp is none of the options unique, ordered and each",
                                     [Name, Other])
    end;
index_shape(Index) ->
    io_lib:format("~tp is not an index {Name, Position | Expression, Options}", [Index]).

other_options(Options) ->
    [Other || Other <- Options, not lists:member(Other, [unique, ordered, each])].

index_place(Tab, Name) ->
    try [Name || #{name := Own} <- larder:info(Tab, indexes), Own =:= Name] of
        [] -> <<"the table can have no indexes, or the position is none">>;
        _ -> io_lib:format("the table has an index ~tp already", [Name])
    catch
        _:_ -> <<"not an index of the table">>
    end.

spec_words(Argument, Spec) ->
    case compiles(Spec) of
        true -> #{};
        false -> #{Argument => <<"not a valid match specification">>}
    end.

%% Which clause select_replace refuses, if the specification is otherwise valid. The table may have
%% been deleted; then it isn't known.
replace_words(Tab, Spec) ->
    try refused_clauses(larder:info(Tab, keypos), Spec) of
        [N | _] when length(Spec) > 1 -> io_lib:format(?NO_REPLACEMENT("clause ~b: "), [N]);
        _ -> <<?NO_REPLACEMENT("")>>
    catch
        error:_ -> <<?NO_REPLACEMENT("")>>
    end.

%% Tries each clause on a table of its own.
refused_clauses(KeyPos, Spec) ->
    Trial = larder:new(?MODULE, [private, {keypos, KeyPos}]),
    Refuses = fun(Clause) ->
        try larder_nif:select_replace(Trial, [Clause]) of
            _ -> false
        catch
            error:_ -> true
        end
    end,
    try
        [N || is_list(Spec), {N, Clause} <- lists:enumerate(Spec), Refuses(Clause)]
    after
        larder:delete(Trial)
    end.

%% As in `ets', a limit is less than 2^59.
limit_words([Limit]) when not is_integer(Limit); Limit < 1 -> #{4 => <<"not a positive integer">>};
limit_words([Limit]) when Limit >= 1 bsl 59 -> #{4 => <<"out of range">>};
limit_words(_) -> #{}.

%% What is wrong with a place in the order, if anything is.
place_words(_, N) when is_integer(N) -> #{};
place_words(Argument, _) -> #{Argument => <<"not an integer">>}.

count_words(Argument, N) when is_integer(N), N < 0 -> #{Argument => <<"out of range">>};
count_words(Argument, N) -> place_words(Argument, N).

%% What is wrong with the operations of a commit.
commit_words(_Operations, access) ->
    <<"an operation's table has insufficient access rights">>;
commit_words(_Operations, Cause) when Cause =:= structure; Cause =:= table_type ->
    <<"an operation updates an object of a bag, or its table is a snapshot, a transaction's view, "
      "or on a structure that has no transactions">>;
commit_words(_Operations, keypos) ->
    <<"an operation updates the element of the key">>;
commit_words(_Operations, position) ->
    <<"an operation updates an element beyond the size of its object">>;
commit_words(_Operations, badmap) ->
    <<"an operation counts in an element that is not a map">>;
commit_words(_Operations, badmapkey) ->
    <<"an operation counts under a key that its map does not have">>;
commit_words(Operations, _Cause) when length(Operations) >= 0 ->
    Texts = [{N, operation_fault(Operation)} || {N, Operation} <- lists:enumerate(Operations)],
    case [Fault || {_, Text} = Fault <- Texts, Text =/= none] of
        [{N, Text} | _] -> io_lib:format("operation ~b: ~ts", [N, Text]);
        [] -> object_words(Operations)
    end;
commit_words(_Operations, _Cause) ->
    <<"not a list of operations">>.

%% Each operation is valid by itself, so an object is not what one of them needs.
object_words(Operations) ->
    case lists:keymember(update_counter, 1, Operations) of
        true -> <<"an operation adds to an element that is not an integer">>;
        false -> <<"not a list of operations that can be made">>
    end.

%% What is seen to be wrong with an operation by itself, or none.
operation_fault(Operation) ->
    case is_tuple(Operation) andalso tuple_to_list(Operation) of
        [check, Table, _Key, _Objects] ->
            table_fault(Table, []);
        [Name | [Table, _] = Args]
          when Name =:= insert; Name =:= insert_new; Name =:= delete; Name =:= delete_object ->
            table_fault(Table, argument_words(Name, Args));
        [Name, Table, _Key, Change] when Name =:= update_counter; Name =:= update_element ->
            table_fault(Table, change_words(Name, Table, Change));
        [insert, Table, Objects, Options] ->
            Texts = maps:values(ttl_words(Options, #{})),
            table_fault(Table, argument_words(insert, [Table, Objects]) ++ Texts);
        [expire, Table, _Key, Ttl] ->
            table_fault(Table, maps:values(time_words(Ttl, #{})));
        _ ->
            <<"none of those of larder:operation()">>
    end.

argument_words(Name, Args) ->
    maps:values(explained(badarg, Name, Args, none)).

%% What is wrong with a change, whatever the object is. Where nothing is, ets blames the object:
%% with the cause `badkey' its absence, without a cause the counter or the position.
change_words(update_counter, Table, Change) ->
    Words = explained(badarg, update_counter, [Table, key, Change], badkey),
    maps:values(maps:with([3], Words));
change_words(update_element, Table, Change) ->
    Words = explained(badarg, update_element, [Table, key, Change], none),
    case {info(Table, type), Words} of
        {Type, _} when Type =:= bag; Type =:= duplicate_bag -> [<<"updates an object of a bag">>];
        {_, #{3 := <<"out of range">>}} -> [];
        _ -> maps:values(maps:with([3], Words))
    end.

table_fault(Table, Texts) ->
    case {info(Table, size), Texts} of
        {Size, []} when is_integer(Size) -> none;
        {Size, [Text | _]} when is_integer(Size) -> Text;
        _ -> <<"its table doesn't exist">>
    end.

snapshot_words(_Tables, is_snapshot, _Words) ->
    #{1 => <<"a snapshot of a snapshot can't be taken">>};
snapshot_words(_Tables, structure, _Words) ->
    #{1 => <<"a view of a transaction, or a table on a structure, that has no snapshots">>};
snapshot_words(Tables, _Cause, Words) when is_list(Tables) ->
    try [Table || Table <- Tables, table_words(Table) =/= none] of
        [] -> #{};
        [Table | _] -> #{1 => io_lib:format("~tp: ~ts", [Table, table_words(Table)])}
    catch
        _:_ -> Words#{1 => <<"not a list of tables">>}
    end;
snapshot_words(_Table, _Cause, Words) ->
    Words.

diff_words(_Old, _New, other_table) ->
    #{general => <<"the snapshots are of different tables">>};
diff_words(Old, New, not_snapshot) ->
    maps:from_list([{N, <<"not a snapshot">>} || {N, Table} <- [{1, Old}, {2, New}],
                                                 not is_snapshot(Table)]);
diff_words(Old, New, _Cause) ->
    maps:from_list([{N, table_words(Table)} || {N, Table} <- [{1, Old}, {2, New}],
                                               table_words(Table) =/= none]).

is_snapshot(Table) ->
    is_map(info(Table, snapshot)).

%% As larder:info/2; `undefined' also for what is no table.
info(Table, Item) ->
    try larder:info(Table, Item) catch error:_ -> undefined end.

%% The first invalid bound among options.
bound_words(Option, Words) when is_tuple(Option) ->
    bound_words([Option], Words);
bound_words(Options, Words) when is_list(Options), length(Options) >= 0 ->
    case [Text || {Tag, Value} <- Options, Text <- bound_fault(Tag, Value)] of
        [Text | _] -> Words#{2 => Text};
        [] -> Words
    end;
bound_words(_, Words) ->
    Words.

bound_fault(Tag, Value) when Tag =:= ttl; Tag =:= idle ->
    [[atom_to_list(Tag), " takes milliseconds or infinity"] || time_words(Value, #{}) =/= #{}];
bound_fault(Tag, Value) when Tag =:= max_size; Tag =:= max_memory ->
    [[atom_to_list(Tag), " takes a positive integer or infinity"]
     || not (Value =:= infinity orelse is_integer(Value) andalso Value > 0)];
bound_fault(evict, Value) ->
    [<<"evict takes tinylfu, lru, sieve or none">>
     || not lists:member(Value, [tinylfu, lru, sieve, none])];
bound_fault(index, Indexes) ->
    case proper(Indexes) of
        List when is_list(List) ->
            [Text || Index <- List, Text <- [index_shape(Index)], Text =/= none];
        _ ->
            [<<"index takes a list">>]
    end;
bound_fault(_, _) ->
    [].

%% insert/3 takes one object.
one_object_words(Objects) when is_list(Objects) -> #{2 => <<"not a tuple">>};
one_object_words(_Object) -> #{}.

ttl_words(#{ttl := Ttl} = Options, Words) when map_size(Options) =:= 1 -> time_words(Ttl, Words);
ttl_words(_, Words) -> Words#{3 => <<"not a map of ttl alone">>}.

time_words(infinity, Words) -> Words;
time_words(Ms, Words) when is_integer(Ms), Ms >= 0 -> Words;
time_words(_, Words) -> Words#{3 => <<"neither milliseconds nor infinity">>}.

%% Why a table can't be read, or none.
table_words(Table) ->
    try larder:member(Table, key) of
        _ -> none
    catch
        error:badarg:Stack ->
            Words = ask_ets(badarg, member, [Table, key], cause(element(4, hd(Stack)))),
            said(1, maps:get(1, Words, none), [Table])
    end.

full_words(Tab) ->
    try {larder:info(Tab, structure), larder:info(Tab, stats)} of
        {_, #{weight := Weight}} ->
            #{max_size := Most, max_memory := Bytes} = larder:info(Tab, bounds),
            general("the table is full: it has ~b objects and may have ~p, they take ~b bytes and may take ~p, "
                    "and it evicts nothing", [larder:info(Tab, size), Most, Weight, Bytes]);
        {Structure, #{limit := Limit}} ->
            general("the table is full: its structure, '~ts', was made for ~b objects and does not grow",
                    [Structure, Limit]);
        _ ->
            #{}
    catch
        _:_ -> #{}
    end.

%% Of several tables, those that have a limit and evict nothing.
full_of(Tables) ->
    case lists:filter(fun is_limited/1, lists:usort(Tables)) of
        [] -> #{};
        [Table] -> full_words(Table);
        Several -> general("one of the tables ~tp is full, and evicts nothing", [Several])
    end.

%% What concerns no single argument: a binary, as Elixir 1.14.0 puts it beside other texts.
general(Format, Args) ->
    #{general => unicode:characters_to_binary(io_lib:format(Format, Args))}.

is_limited(Table) ->
    case larder:info(Table, bounds) of
        #{evict := none, max_size := Most, max_memory := Bytes} ->
            Most =/= infinity orelse Bytes =/= infinity;
        _ ->
            false
    end.

compiles(Spec) ->
    try larder:match_spec_compile(Spec) of
        _ -> true
    catch
        _:_ -> false
    end.

%% The description of ets for a position beyond the object, in update_counter.
position_words(Tab) ->
    maps:get(3, ask_ets(badarg, update_counter, [Tab, key, {1, 1}], position), <<"out of range">>).

%% The description of ets for an object that isn't a tuple, or is empty.
tuple_words(Tab, Term) ->
    maps:get(2, ask_ets(badarg, delete_object, [Tab, Term], none), none).
