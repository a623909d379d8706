%% A Mnesia on Larder that keeps its tables on disc: the modules of this OTP's Mnesia, compiled
%% again with the parse transform from the abstract code in their beams, in a node of their own. The
%% same is asked of Mnesia as it is.
-module(mnesia_tests).

-include_lib("eunit/include/eunit.hrl").

-export([fill/1, kept/0]).

-define(ROWS, 500).
-define(TABLES,
        [{kept_set, [{disc_copies, [node()]}, {index, [3]}]},
         {kept_ordered, [{disc_copies, [node()]}, {type, ordered_set}]},
         {kept_bag, [{disc_copies, [node()]}, {type, bag}]},
         {kept_disc_only, [{disc_only_copies, [node()]}, {index, [3]}]},
         {lost, [{ram_copies, [node()]}]}]).

%% It starts, writes, ends (in three ways), starts again, and has its rows.
disc_schema_test_() ->
    {setup,
     fun() -> Dir = folder(), compile(Dir), Dir end,
     fun(Dir) -> file:del_dir_r(Dir) end,
     fun(Dir) ->
         [{lists:flatten(io_lib:format("~w ~w", [Side, End])),
           {timeout, 120, fun() -> restarted(Side, End, Dir) end}}
          || Side <- [ets, larder], End <- [stop, kill, dump]]
     end}.

restarted(Side, End, Dir) ->
    Place = filename:join(Dir, atom_to_list(Side) ++ "_" ++ atom_to_list(End)),
    Args = ["-pa" | code_path()] ++ ["-pa" || Side =:= larder] ++ [Dir || Side =:= larder] ++
           ["-mnesia", "dir", "\"" ++ Place ++ "\"", "-kernel", "logger_level", "error"],
    with_node(Args, fun(Peer) -> ?assertEqual(Side, peer:call(Peer, ?MODULE, fill, [End], 60000)) end),
    with_node(Args, fun(Peer) ->
        {Now, Tables} = peer:call(Peer, ?MODULE, kept, [], 60000),
        ?assertEqual({Side, []}, {Now, [{Has -- Should, Should -- Has}
                                        || {Has, Should} <- lists:zip(Tables, expected()),
                                           Has =/= Should]})
    end).

with_node(Args, Fun) ->
    {ok, Peer, _} = peer:start(#{connection => standard_io, args => Args}),
    try
        Fun(Peer)
    after
        peer:stop(Peer)
    end.

code_path() ->
    [filename:dirname(code:which(Module)) || Module <- [larder, ?MODULE]].

compile(Dir) ->
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Beams = filelib:wildcard(filename:join([code:lib_dir(mnesia), "ebin", "*.beam"])),
    [?assertEqual([], compile_one(Beam, Dir)) || Beam <- Beams].

%% What the transform says of the module, but for the tables that it hands to other modules: these
%% are moved, too, one by one.
compile_one(Beam, Dir) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {ok, Module, Code, Warnings} =
        compile:forms(Forms, [binary, return, {parse_transform, larder_transform},
                              {larder_transform, {nowarn, [handed]}}]),
    ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), Code),
    [W || {_, List} <- Warnings, {_, larder_transform, _} = W <- List].

folder() ->
    filename:join(os:getenv("TMPDIR", "/tmp"),
                  "larder_t_mnesia_" ++ os:getpid() ++ "_" ++
                      integer_to_list(erlang:unique_integer([positive]))).

%% ---- in the node ----

%% Says whose tables they are.
fill(End) ->
    ok = mnesia:create_schema([node()]),
    ok = mnesia:start(),
    [{atomic, ok} = mnesia:create_table(Table, Options) || {Table, Options} <- ?TABLES],
    [{atomic, ok} = mnesia:transaction(fun() -> [mnesia:write(Row) || Row <- rows(Table)], ok end)
     || {Table, _} <- ?TABLES],
    {atomic, ok} = mnesia:transaction(fun() -> mnesia:delete({kept_set, 7}) end),
    ok = mnesia:dirty_write({kept_set, 1, changed}),
    Side = side(),
    ended(End),
    Side.

ended(stop) -> stopped = mnesia:stop();
%% All that the log has goes into the tables' files; then the node ends without a word to Mnesia.
ended(dump) ->
    dumped = mnesia:dump_log(),
    {atomic, ok} = mnesia:dump_tables([lost]),
    %% Mnesia leaves it to dets when a table of disc_only_copies is written.
    ok = dets:sync(kept_disc_only);
ended(kill) -> ok = mnesia:sync_log(), exit(whereis(mnesia_sup), kill).

kept() ->
    ok = mnesia:start(),
    ok = mnesia:wait_for_tables([Table || {Table, _} <- ?TABLES], 30000),
    {side(), [lists:sort(mnesia:dirty_match_object(Table, {Table, '_', '_'}))
              || Table <- [kept_set, kept_disc_only, kept_ordered, kept_bag]] ++
             [lists:sort(mnesia:dirty_index_match_object({Table, '_', even}, 3))
              || Table <- [kept_set, kept_disc_only]]}.

side() ->
    case {ets:info(kept_ordered, size), larder:info(kept_ordered, size)} of
        {undefined, Size} when is_integer(Size) -> larder;
        {Size, undefined} when is_integer(Size) -> ets
    end.

rows(kept_bag) -> lists:append([[{kept_bag, K, a}, {kept_bag, K, b}] || K <- lists:seq(1, ?ROWS)]);
rows(Table) -> [{Table, K, element(1 + K rem 2, {even, odd})} || K <- lists:seq(1, ?ROWS)].

expected() ->
    Changed = [case K of 1 -> {kept_set, K, changed}; _ -> Row end
               || {_, K, _} = Row <- rows(kept_set), K =/= 7],
    [Changed, rows(kept_disc_only), rows(kept_ordered), rows(kept_bag)] ++
        [[Row || {_, _, even} = Row <- rows(Table)] || Table <- [kept_set, kept_disc_only]].
