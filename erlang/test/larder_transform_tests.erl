%% The parse transform, seen through the compiler: what a module compiled with
%% it calls, what it answers beside the same source compiled without, and
%% what the compiler says, where.
-module(larder_transform_tests).

-include_lib("eunit/include/eunit.hrl").

%% ---- what is rewritten ----

%% Every way of saying ets that the transform promises to see. Nothing of it
%% may be left: the word is not even among the module's atoms.
nothing_of_ets_is_left_test() ->
    Beam = compiled(everything(), [with]),
    ?assertNot(lists:member(ets, atoms(Beam))),
    ?assert(lists:member({larder, insert, 2}, imports(Beam))).

the_source_alone_says_ets_test() ->
    Beam = compiled(everything(), []),
    ?assert(lists:member(ets, atoms(Beam))),
    ?assertNot(lists:member(larder, atoms(Beam))).

everything() ->
    "-import(ets, [lookup/2, tab2list/1]).\n"
    "-define(STORE(T, X), ets:insert(T, X)).\n"
    "-record(state, {tab = ets:new(t, [public]) :: ets:tid() | ets:tab(), n}).\n"
    "-type tabs() :: [ets:tid() | ets:table()].\n"
    "-type var() :: ets:match_spec().\n"
    "-spec make(var()) -> tabs().\n"
    "make(_) -> [(#state{})#state.tab].\n"
    "calls(T) ->\n"
    "    ?STORE(T, {1, a}),\n"
    "    F = member,\n"
    "    true = ets:F(T, 1),\n"
    "    [{1, a}] = lookup(T, 1),\n"
    "    [[{1, a}]] = [lookup(T, K) || K <- [1], ets:member(T, K)],\n"
    "    #{k := {1, a}} = #{k => hd(tab2list(T))},\n"
    "    case ets:info(T, size) of N when N > 0 -> N; _ -> 0 end.\n"
    "funs(T) ->\n"
    "    G = fun ets:first/1, N = last, H = fun ets:N/1,\n"
    "    {G(T), H(T), (fun() -> ets:info(T, type) end)()}.\n"
    "applied(T) ->\n"
    "    A = [T, {2, b}],\n"
    "    true = apply(ets, insert, A),\n"
    "    true = erlang:apply(ets, insert, [T, {3, c}]),\n"
    "    F = size_of(T), G = erlang:make_fun(ets, tab2list, 1),\n"
    "    {_, M} = spawn_monitor(ets, insert, [T, {4, d}]),\n"
    "    receive {'DOWN', M, _, _, normal} -> ok end,\n"
    "    P = proc_lib:spawn(ets, insert, [T, {5, e}]),\n"
    "    M2 = monitor(process, P),\n"
    "    receive {'DOWN', M2, _, _, _} -> ok end,\n"
    "    {_, true} = timer:tc(ets, insert, [T, {6, f}]),\n"
    "    true = rpc:call(node(), ets, insert, [T, {7, g}]),\n"
    "    true = erpc:call(node(), ets, insert, [T, {8, h}], 5000),\n"
    "    {F, length(G(T)), erlang:function_exported(ets, insert, 2)}.\n"
    "size_of(T) -> ets:info(T, size).\n"
    "specs(T) ->\n"
    "    X = 1,\n"
    "    ets:select(T, ets:fun2ms(fun({K, V}) when K > X -> {V, K} end)).\n".

%% Each call that takes a module, a function and arguments, alone.
module_arguments_test_() ->
    [{Call, fun() ->
        Beam = compiled("a(T, N) -> " ++ Call ++ ".\n", [with]),
        ?assertEqual({false, true},
                     {lists:member(ets, atoms(Beam)), lists:member(larder, atoms(Beam))})
      end}
     || Call <- ["apply(ets, insert, [T, N])", "erlang:apply(ets, insert, [T | N])",
                 "apply(ets, N, T)",
                 "spawn(ets, insert, T)", "spawn(N, ets, insert, T)", "spawn_link(ets, insert, T)",
                 "erlang:spawn_link(N, ets, insert, T)", "spawn_monitor(ets, insert, T)",
                 "spawn_opt(ets, insert, T, [])", "spawn_opt(N, ets, insert, T, [])",
                 "spawn_request(ets, insert, T)", "spawn_request(ets, insert, [T, N], [])",
                 "spawn_request(N, ets, insert, [T, N])", "spawn_request(N, ets, insert, T, [])",
                 "erlang:hibernate(ets, insert, T)", "erlang:make_fun(ets, insert, N)",
                 "erlang:function_exported(ets, insert, N)", "proc_lib:spawn_link(ets, insert, T)",
                 "proc_lib:spawn_opt(N, ets, insert, T, [])", "proc_lib:start(ets, insert, T, N)",
                 "proc_lib:hibernate(ets, insert, T)", "timer:tc(ets, insert, T)",
                 "timer:tc(ets, insert, T, second)", "timer:apply_after(N, ets, insert, T)",
                 "timer:apply_interval(N, ets, insert, T)", "rpc:call(N, ets, insert, T)",
                 "rpc:call(N, ets, insert, T, 100)", "rpc:cast(N, ets, insert, T)",
                 "rpc:multicall(ets, insert, T)", "rpc:multicall(ets, insert, [T, N], 100)",
                 "rpc:multicall(N, ets, insert, T)", "rpc:eval_everywhere(N, ets, insert, T)",
                 "erpc:call(N, ets, insert, T)", "erpc:multicall(N, ets, insert, T, 100)",
                 "erpc:send_request(N, ets, insert, T)", "peer:call(N, ets, insert, T)",
                 "ct_rpc:call(N, ets, insert, T, 100)", "'Elixir.Task':async(ets, insert, [T, N])",
                 "'Elixir.Task.Supervisor':async(N, ets, insert, [T, N])",
                 "rpc:parallel_eval([{ets, insert, [T, N]}, {ets, info, [T]}])",
                 "rpc:pmap({ets, N}, [size], [T])"]].

%% `ets' is loaded from the start, Larder by its first call: what it exports is known before that.
exported_before_the_first_call_test_() ->
    {timeout, 60, fun() ->
        Beam = compiled("a(F) -> {erlang:function_exported(ets, insert, 2),\n"
                        "         erlang:function_exported(ets, F, 2),\n"
                        "         erlang:function_exported(dets, from_ets, 2)}.\n", [with]),
        {ok, Node, _} = peer:start_link(#{connection => standard_io,
                                          args => ["-pa", filename:dirname(code:which(larder))]}),
        {module, larder_t_source} = peer:call(Node, code, load_binary,
                                              [larder_t_source, "nofile", Beam]),
        ?assertEqual(false, peer:call(Node, code, is_loaded, [larder])),
        ?assertEqual({true, true, true}, peer:call(Node, larder_t_source, a, [lookup])),
        ok = peer:stop(Node)
    end}.

%% What dets does with a table of ets, in every way of saying it.
dets_test_() ->
    [{Call, fun() ->
        Beam = compiled(Import ++ "a(D, T) -> " ++ Call ++ ".\n", [with]),
        ?assert(lists:member(larder_dets, atoms(Beam))),
        ?assertEqual([], [F || {dets, F, 2} <- imports(Beam)])
      end}
     || {Import, Call} <-
            [{"", "dets:to_ets(D, T), dets:from_ets(D, T)"}, {"", "(fun dets:to_ets/2)(D, T)"},
             {"", "apply(dets, from_ets, [D, T])"}, {"", "spawn(dets, to_ets, [D, T])"},
             {"-import(dets, [to_ets/2, from_ets/2, lookup/2]).\n", "from_ets(D, T)"}]].

the_rest_of_dets_stays_test() ->
    Source = "-import(dets, [to_ets/2, lookup/2]).\n"
             "a(D) -> {dets:close(D), lookup(D, 1), apply(dets, insert, [D, {1}])}.\n",
    Imports = imports(compiled(Source, [with])),
    ?assert(lists:member({dets, close, 1}, Imports)),
    ?assert(lists:member({dets, lookup, 2}, Imports)).

%% A query over a table, whichever of the two transforms comes first.
qlc_test_() ->
    Source =
        "-include_lib(\"stdlib/include/qlc.hrl\").\n"
        "a() ->\n"
        "    T = ets:new(t, [ordered_set]),\n"
        "    ets:insert(T, [{K, K * K} || K <- lists:seq(1, 20)]),\n"
        "    Q = qlc:q([{K, V} || {K, V} <- ets:table(T), K =:= 3 orelse K =:= 5]),\n"
        "    R = {qlc:e(Q), qlc:e(qlc:q([K || {K, V} <- ets:table(T), V > 300]))},\n"
        "    ets:delete(T),\n"
        "    R.\n",
    Late = "-compile({parse_transform, larder_transform}).\n",
    [fun() ->
        Beam = compiled("-module(larder_t_query).\n", Text, Options),
        ?assertNot(lists:keymember(ets, 1, imports(Beam))),
        M = load(Beam),
        ?assertEqual({[{3, 9}, {5, 25}], [18, 19, 20]}, M:a()),
        code:purge(M),
        code:delete(M)
     end || {Text, Options} <- [{Source, [with]}, {Late ++ Source, []}, {Source ++ Late, []}]].

%% The same source, with and without, answers the same; and with it the
%% tables are larder's, not those of ets.
behaves_alike_test() ->
    Ets = load(compiled("-module(larder_t_ets).\n", everything_with_ms(), [])),
    Larder = load(compiled("-module(larder_t_larder).\n", everything_with_ms(), [with])),
    try
        [T1] = Ets:make(none),
        [T2] = Larder:make(none),
        [?assertEqual(Ets:F(T1), Larder:F(T2)) || F <- [calls, funs, applied]],
        ?assertEqual(lists:sort(Ets:specs(T1)), lists:sort(Larder:specs(T2))),
        ?assertEqual(8, larder:info(T2, size)),
        ?assertNot(lists:member(T2, ets:all())),
        larder:delete(T2),
        ets:delete(T1)
    after
        [begin code:purge(M), code:delete(M) end || M <- [Ets, Larder]]
    end.

everything_with_ms() ->
    "-include_lib(\"stdlib/include/ms_transform.hrl\").\n" ++ everything().

%% A module's own apply/3 is not the auto-imported one; a function named ets,
%% or data, is not the module.
other_ets_is_left_alone_test() ->
    Source =
        "-compile({no_auto_import, [apply/3]}).\n"
        "apply(A, B, C) -> {A, B, C}.\n"
        "own() -> apply(ets, insert, [1, 2]).\n"
        "ets(X) -> X.\n"
        "data() -> {ets, ets(1), fun ets/1, \"ets\", proc_lib:start(?MODULE, ets, [1], 10)}.\n"
        "options() -> fun() -> spawn_opt(?MODULE, ets, [1], []) end.\n",
    ?assertEqual(imports(compiled(Source, [])), imports(compiled(Source, [with]))),
    M = load(compiled("-module(larder_t_other).\n", Source, [with])),
    ?assertEqual({ets, insert, [1, 2]}, M:own()),
    code:purge(M),
    code:delete(M).

keep_ets_test() ->
    Source =
        "-compile({larder_transform, keep_ets}).\n"
        "a(T) -> ets:select(T, larder:fun2ms(fun({K, _}) -> K end)).\n",
    Imports = imports(compiled(Source, [with])),
    ?assert(lists:member({ets, select, 2}, Imports)),
    ?assertNot(lists:keymember(larder, 1, Imports)).

%% ---- fun2ms ----

fun2ms_is_ets_fun2ms_test_() ->
    [{timeout, 60, {Module ++ ": " ++ Fun,
                    ?_assertEqual(spec("ets", Fun, []), spec(Module, Fun, [with]))}}
     || Fun <- funs(), Module <- ["ets", "larder"]].

imported_fun2ms_test() ->
    Source =
        "-import(larder, [fun2ms/1]).\n"
        "a() -> fun2ms(fun({K, V}) when V > 1 -> K end).\n",
    M = load(compiled("-module(larder_t_spec).\n", Source, [with])),
    ?assertEqual([{{'$1', '$2'}, [{'>', '$2', 1}], ['$1']}], M:a()),
    code:purge(M),
    code:delete(M).

spec(Module, Fun, Options) ->
    Source =
        "-record(r, {a, b = 1, c}).\n"
        "-include_lib(\"stdlib/include/ms_transform.hrl\").\n"
        "spec(X) -> {X, " ++ Module ++ ":fun2ms(" ++ Fun ++ ")}.\n",
    M = load(compiled("-module(larder_t_spec).\n", Source, Options)),
    try
        M:spec(7)
    after
        code:purge(M),
        code:delete(M)
    end.

funs() ->
    ["fun({K, V}) -> {K, V} end",
     "fun(O) -> O end",
     "fun({K, _} = O) when K > X, K < 9 orelse is_atom(K) -> O end",
     "fun({K}) when K =:= 1; K =:= 2 -> K; ({A, A}) -> [A | bindings()] end",
     "fun(#r{a = A, b = 2}) -> {A, object()} end",
     "fun(#r{a = A} = R) when R#r.b =:= A -> element(2, R) end",
     "fun(R) when is_record(R, r) -> R#r{c = 5} end",
     "fun({{a, B}, [C | D]}) when hd(D) > C, B /= X -> #{B => C} end",
     "fun({K, V}) -> <<\"bin\">>, V + length([K]) end",
     "fun({K, V}) -> {const, K, \"str\", V, X} end"].

%% Errors and warnings are those of ms_transform on the same source, word for
%% word, at the same lines.
same_complaints_test_() ->
    [{Fun, ?_assertEqual(complaints("ets", Fun, []), complaints(Module, Fun, [with]))}
     || Fun <- bad_funs(), Module <- ["ets", "larder"]].

complaints_are_there_test() ->
    [?assertMatch({_, [_ | _]}, {Fun, complaints("larder", Fun, [with])}) || Fun <- bad_funs()].

lines_are_right_test() ->
    Source = "a(X) ->\n    larder:fun2ms(fun({X, Y}) ->\n                      Y\n                  end).\n",
    {ok, _, _, Warnings} = compile(Source, [with]),
    ?assert(lists:member({3, "variable 'X' shadowed in ms_transform fun head"}, texts(Warnings))),
    Unbound = "a() ->\n    larder:fun2ms(fun({K}) ->\n        Z\n    end).\n",
    {error, Errors, _} = compile(Unbound, [with]),
    ?assertEqual([{4, "variable 'Z' is unbound"}], texts(Errors)),
    Call = "a() ->\n    larder:fun2ms(fun({K}) when\n        m:f(K) -> K\n    end).\n",
    {error, Errors1, _} = compile(Call, [with]),
    ?assertEqual([{4, "fun containing the remote function call 'm:f/1' (called in guard) "
                      "cannot be translated into match_spec"}], texts(Errors1)).

complaints(Module, Fun, Options) ->
    Source =
        "-record(r, {a, b}).\n"
        "-include_lib(\"stdlib/include/ms_transform.hrl\").\n"
        "spec(X, F) -> {X, F,\n" ++ Module ++ ":fun2ms(\n" ++ Fun ++ ")}.\n",
    case compile(Source, Options) of
        {ok, _, _, Warnings} -> texts(Warnings);
        {error, Errors, Warnings} -> texts(Errors ++ Warnings)
    end.

bad_funs() ->
    ["fun({X, Y}) ->\n Y end",
     "fun({K}) ->\n Z end",
     "F",
     "fun(A, B) -> {A, B} end",
     "fun([A]) -> A end",
     "fun({K}) -> L = K end",
     "fun({K}) ->\n foo(K) end",
     "fun({K}) ->\n m:foo(K) end",
     "fun({K}) when\n bar:foo(K) -> K end",
     "fun(#s{a = A}) -> A end",
     "fun(#r{z = A}) -> A end",
     "fun({'$1'}) -> 1 end",
     "fun({K}) -> case K of 1 -> 2 end end",
     "fun({K = L}) -> L end",
     "fun({<<K>>}) -> K end"].

%% A type that the transform names is one that larder exports.
types_are_there_test() ->
    Source = lists:append(
        ["-type t" ++ T ++ "() :: ets:" ++ T ++ "().\n"
         || T <- ["table", "tab", "tid", "table_access", "table_type", "match_spec",
                  "match_pattern",
                  "compiled_match_spec", "comp_match_spec"]]),
    {ok, Beam} = file:read_file(code:which(larder)),
    Exported = lists:append([Types || {attribute, _, export_type, Types} <- forms(Beam)]),
    Named = [{Type, length(Params)}
             || {attribute, _, type,
                 {_, {remote_type, _, [{atom, _, larder}, {atom, _, Type}, Params]}, _}}
                    <- forms(compiled(Source, [with, debug_info]))],
    ?assertEqual(9, length(Named)),
    ?assertEqual([], Named -- (Exported ++ Exported)).

forms(Beam) ->
    {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    Forms.

%% ---- what larder lacks ----

missing_functions_warn_test() ->
    Source =
        "-import(ets, [no_such/1, insert/2]).\n"
        "a(T) -> ets:no_such(T).\n"
        "b() -> fun ets:no_such/3.\n"
        "c(T) -> apply(ets, no_such, [T, 1]).\n"
        "d(T) -> insert(T, {1}), no_such(T).\n",
    {ok, _, Beam, Warnings} = compile(Source, [with]),
    Text = fun(N) -> "larder has no function no_such/" ++ N ++ ", this stays a call of ets" end,
    ?assertEqual([{2, Text("1")}, {3, Text("1")}, {4, Text("3")}, {5, Text("2")}],
                 [W || {_, "larder has" ++ _} = W <- texts(Warnings)]),
    Imports = imports(Beam),
    ?assert(lists:member({ets, no_such, 1}, Imports)),
    ?assert(lists:member({larder, insert, 2}, Imports)).

%% ---- what stays, and the warnings about it ----

%% Kind, source, and the line and the beginning of the warning.
left() ->
    [{missing, "a(T) -> ets:no_such(T).\n", {2, "larder has no function no_such/1"}},
     {tuple, "a(T) ->\n {ok, {ets, insert, [T, {1}]}}.\n", {3, "{ets, insert, ...} stays"}},
     {tuple, "a([{ets, lookup, _, _} | _]) -> ok.\n", {2, "{ets, lookup, ...} stays"}},
     {module, "a(T) -> other:applies(ets, insert, T).\n", {2, "the arguments ets, insert stay"}},
     {module, "a(T) ->\n M = ets,\n M:tab2list(T).\n", {3, "M is a module here"}},
     {module, "a(T) -> b(ets, T).\nb(M, T) -> M:tab2list(T).\n", {2, "b/2 takes a module here"}},
     {module, "a(T) -> F = fun(M) -> M:tab2list(T) end,\nF(ets).\n",
      {3, "F/1 takes a module here"}},
     {module, "a() -> F = fun L(M, T) -> L(ets, M:prev(T, 1)) end,\nF(larder, t).\n",
      {2, "L/2 takes a module here"}},
     {handed, "a() ->\n T = ets:new(t, []),\n larder_t_takes:table(T).\n",
      {4, "a table of larder goes to larder_t_takes:table/1"}},
     {handed, "a() -> larder_t_takes:table(ets:new(t, [])).\n",
      {2, "a table of larder goes to larder_t_takes:table/1"}},
     %% A variable, a named table, a field of a record that is used as a table here; it reaches ets
     %% through a function of its own there.
     {handed, "a(T) -> ets:insert(T, {1}), larder_t_takes:through(x, T).\n",
      {2, "a table of larder goes to larder_t_takes:through/2"}},
     {handed, "a() ->\n larder_t_takes:through(x, t).\nb() -> ets:new(t, [public, named_table]).\n",
      {3, "a table of larder goes to larder_t_takes:through/2"}},
     {handed, "-record(s, {t}).\na(S) -> larder_t_takes:through(x, S#s.t).\n"
              "b(S) -> ets:info(S#s.t).\n",
      {3, "a table of larder goes to larder_t_takes:through/2"}},
     {handed, "a() -> T = ets:new(t, []), larder_t_takes:keep(T).\n",
      {2, "a table of larder goes to larder_t_takes:keep/1"}},
     {handed, "a(T) -> ets:info(T), spawn(larder_t_takes, through, [x, T]).\n",
      {2, "a table of larder goes to larder_t_takes:through/2"}},
     {handed, "a() -> T = ets:new(t, []), {ok, [{larder_t_takes, keep, [T]}]}.\n",
      {2, "a table of larder goes to larder_t_takes:keep/1"}},
     {handed, "a() -> T = ets:new(t, []), gen_server:start_link({local, a}, larder_t_takes, [1, T], []).\n",
      {2, "a table of larder goes to larder_t_takes:init/1"}},
     %% Functions of OTP.
     {handed, "a(T) -> ets:info(T), observer_backend:get_table(self(), T, true).\n",
      {2, "a table of larder goes to observer_backend:get_table/3"}},
     {handed, "a(T) -> ets:info(T), mnesia_lib:db_get(ram_copies, T, k).\n",
      {2, "a table of larder goes to mnesia_lib:db_get/3"}},
     {handed, "a(T, P) -> ets:info(T), ssl_pkix_db:clear(T, P), pg:which_groups(T).\n",
      {2, "a table of larder goes to pg:which_groups/1"}},
     {traced, "a() -> dbg:tp(ets, insert, 2, []).\n", {2, "dbg:tp has ets as an argument"}},
     {traced, "a() -> erlang:trace_pattern({ets, insert, 2}, true, []).\n",
      {2, "erlang:trace_pattern has ets as an argument"}},
     {traced, "a() -> meck:new(ets, [unstick]).\n", {2, "meck:new has ets as an argument"}},
     {otp_table, "a() -> ets:lookup(ac_tab, x).\n", {2, "the table ac_tab is one of OTP"}}].

left_warns_test_() ->
    {setup,
     fun() -> on_path("larder_t_takes", takes(), [debug_info]) end,
     fun off_path/1,
     [{Source, fun() -> ?assertMatch([_], said(Source, Begin)) end}
      || {_Kind, Source, Begin} <- left()]}.

%% Exactly one warning is given for each, and the kind, the function, or all of it silences that.
left_can_be_silenced_test_() ->
    {setup,
     fun() -> on_path("larder_t_takes", takes(), [debug_info]) end,
     fun off_path/1,
     [{Option ++ Source, fun() -> ?assertEqual(Count, length(of_transform(Head ++ Source))) end}
      || {Kind, Source, _} <- left(),
         {Option, Count} <-
             [{"", 1}, {"nowarn", 0}, {"[keep_ets]", 0}, {"{nowarn, [{a, 7}]}", 1}] ++
             [{"{nowarn, [" ++ atom_to_list(Kind) ++ "]}", 0}] ++
             [{"{nowarn, [{a, " ++ integer_to_list(arity(Source)) ++ "}]}", 0},
              {"{nowarn, [{" ++ atom_to_list(Kind) ++ ", {a, " ++ integer_to_list(arity(Source)) ++
                   "}}]}", 0},
              {"{nowarn, [{" ++ atom_to_list(Kind) ++ ", {a, 7}}]}", 1}],
         Head <- [["-compile({larder_transform, " ++ Option ++ "}).\n" || Option =/= ""]]]}.

arity(Source) ->
    {match, [Params]} = re:run(Source, "a\\((.*?)\\) ->", [{capture, all_but_first, list}]),
    case Params of
        "[" ++ _ -> 1;
        _ -> length(string:lexemes(Params, ","))
    end.

%% A module that gives tables to ets, keeps them, or looks at them.
takes() ->
    "table(T) -> ets:info(T).\n"
    "through(_, {_} = T) -> T;\n"
    "through(X, T) when is_atom(X) -> U = T, ends(fun() -> table(U) end).\n"
    "ends(F) -> F().\n"
    "keep(T) -> self() ! {table, T}.\n"
    "init([_, T]) -> {ok, T}.\n"
    "looks(T, K) when is_atom(T) -> ets:lookup(larder_t_own, K).\n"
    "name(T) -> other:register(T).\n".

%% What is given to another module but doesn't reach ets there.
not_handed_test_() ->
    {setup,
     fun() -> on_path("larder_t_takes", takes(), [debug_info]) end,
     fun off_path/1,
     [{Source, fun() -> ?assertEqual([], warnings(Source, [])) end}
      || Source <- [%% It is only looked at.
                    "a() -> larder_t_takes:looks(ets:new(t, []), 1).\n",
                    %% A key, an option, a name that is kept.
                    "a(T) -> ets:insert(T, {1}), larder_t_takes:table({T}).\n",
                    "a(T) -> ets:insert(T, {1}), larder_t_takes:through(T, x).\n",
                    "a() -> ets:info(t), larder_t_takes:name(t), {larder_t_takes, keep, [t]}.\n",
                    "a(T) -> ets:info(T), gen_server:start_link(larder_t_takes, [1, T], []).\n",
                    "a() -> ets:new(t, []), larder_t_takes:table(t).\n",
                    "a(T, K) -> ets:lookup(T, K), larder_t_takes:table(K).\n",
                    %% OTP calls ets for its own tables.
                    "a(T) -> T = ets:new(t, []), {file:open(T, []), rpc:call(T, m, f, []), dets:info(T),"
                    " mnesia:info(), qlc:q([X || X <- ets:table(T)]), gen_server:call(x, T),"
                    " ets:fun2ms(fun({K}) -> K end), digraph:new([T]), io:format(\"~p\", [T])}.\n"]]}.

%% Modules that the same command compiles move as well; a module that asks for the transform itself
%% moves alone.
handed_to_what_will_move_test_() ->
    {setup,
     fun() -> on_path("larder_t_takes", takes(), [debug_info]) end,
     fun off_path/1,
     fun({Dir, _}) ->
         Source = "a(T) -> ets:info(T), larder_t_takes:table(T).\n",
         Alone = "-compile({parse_transform, larder_transform}).\n" ++ Source,
         Transform = {parse_transform, larder_transform},
         [?_assertEqual([], own_warnings(Source, [{outdir, Dir}, Transform])),
          ?_assertMatch([_], own_warnings(Source, [{outdir, "/elsewhere"}, Transform])),
          ?_assertMatch([_], own_warnings(Alone, [{outdir, Dir}]))]
     end}.

%% Silencing one kind leaves the others, also where the compiler is told and not the module.
other_kinds_are_reported_test() ->
    Source = "a(T) -> meck:new(ets, []), ets:no_such(T), {ets, insert, T}.\n",
    Kinds = fun(Options) -> [element(1, What) || {_, What} <- warnings(Source, Options)] end,
    ?assertEqual([traced, missing, tuple], Kinds([])),
    ?assertEqual([missing, tuple], Kinds([{larder_transform, {nowarn, [traced]}}])),
    ?assertEqual([missing], Kinds([{larder_transform, [{nowarn, [traced]}, {nowarn, [tuple]}]}])),
    ?assertEqual([], Kinds([{larder_transform, nowarn}])).

%% A kind that is silenced in one function is reported in the others, and other kinds in this one.
kind_in_a_function_test() ->
    Source = "a(T) -> ets:no_such(T), {ets, insert, T}.\nb(T) -> {ets, insert, T}.\n",
    ?assertEqual([{2, missing}, {3, tuple}],
                 [{Line, element(1, What)}
                  || {Line, What} <- warnings(Source, [{larder_transform,
                                                        {nowarn, [{tuple, {a, 1}}]}}])]).

%% The functions of OTP that take a table, as they are listed, are those that its code shows.
otp_takes_tables_test_() ->
    [{atom_to_list(Module),
      fun() ->
          Shown = larder_transform_handed:parameters(Module),
          Exported = [{Name, Arity, Position} || {Name, Arity, Position} <- maps:keys(Shown),
                                                 erlang:function_exported(Module, Name, Arity)],
          Listed = larder_transform_known:takes_a_table(Module),
          ?assertEqual([], Listed -- Exported),
          ?assertEqual([], [Function || {Name, _, _} = Function <- Exported -- Listed,
                                        lists:keymember(Name, 1, Listed)]),
          %% Without debug information the list counts.
          {ok, Installed} = file:read_file(code:which(Module)),
          {ok, {_, Stripped}} = beam_lib:strip(Installed),
          Dir = folder(),
          File = filename:join(Dir, "stripped.beam"),
          ok = filelib:ensure_dir(File),
          ok = file:write_file(File, Stripped),
          ?assertEqual(lists:sort(Listed),
                       lists:sort(maps:keys(larder_transform_handed:of_file(Module, File, true)))),
          ok = file:del_dir_r(Dir)
      end} || Module <- [mnesia_lib, mnesia_index, observer_backend, httpd_util],
              {module, _} <- [code:ensure_loaded(Module)]].

%% The tuple is reported once, not twice.
a_traced_tuple_is_reported_once_test() ->
    ?assertMatch([{_, {traced, erlang, trace_pattern}}],
                 warnings("a() -> erlang:trace_pattern({ets, insert, 2}, true, []).\n", [])).

%% What only looks like it.
no_false_warnings_test() ->
    Source = "a(T, {ets, X}) -> {ets, X, {ets, store, T}, {ets, insert}, lists:keyfind(ets, 1, T)};\n"
             "a(T, ets) -> M = ets, {M, gen_server:call(T, ets), b(ets, T), lists:foldl(T, ets, [])};\n"
             "a(T, X) -> N = ets:new(T, []), {lists:member(N, X), b(N, N), X:store(N)}.\n"
             "b(M, T) -> {M, T}.\n"
             "c() -> {dbg:tp(lists, []), ets:new(logger, [named_table]), ets:lookup(mine, ac_tab)}.\n",
    ?assertEqual([], warnings(Source, [])).

%% The options of a project may compile Larder as well. Its calls of ets stay.
larder_itself_stays_test_() ->
    Ebin = filename:dirname(code:which(larder)),
    [{Beam, fun() ->
         {ok, {Module, [{debug_info, Debug}]}} = beam_lib:chunks(Beam, [debug_info]),
         {ok, Forms} = larder_transform_handed:forms(Module, Debug),
         ?assertEqual(Forms, larder_transform:parse_transform(Forms, []))
     end} || Beam <- filelib:wildcard(filename:join(Ebin, "larder*.beam"))].

%% A module that doesn't call ets, or that was moved itself, may have the table.
handed_to_what_moved_test_() ->
    [{Source, {setup,
               fun() -> on_path("larder_t_takes", Source, Options) end,
               fun off_path/1,
               fun() ->
                   ?assertEqual([], warnings("a() -> larder_t_takes:table(ets:new(t, [])).\n", []))
               end}}
     || {Source, Options} <- [{"table(T) -> ets:info(T).\n", [with]}, {"table(T) -> T.\n", []}]].

%% A call on a table of OTP answers the same with and without, whichever way it is said, and has one
%% warning, which its kind silences.
tables_of_otp_test_() ->
    Imports = "-import(ets, [info/2, foldl/3, member/2, new/2]).\n",
    [{Call, fun() ->
        Source = Imports ++ "a() ->\n F = info, R = " ++ Call ++ ",\n {F, R}.\n",
        [Ets, Larder] =
            [begin
                 M = load(compiled("-module(larder_t_otp).\n", Source, Options)),
                 Answer = M:a(),
                 code:purge(M),
                 code:delete(M),
                 Answer
             end || Options <- [[], [with]]],
        ?assertEqual(Ets, Larder),
        ?assertMatch([{4, {otp_table, _}}], warnings(Source, [])),
        ?assertEqual([], warnings(Source, [{larder_transform, {nowarn, [otp_table]}}]))
      end}
     || Call <- ["ets:info(ac_tab, named_table)", "ets:F(ac_tab, name)", "ets:whereis(inet_db)",
                 "ets:foldl(fun(_, N) -> N + 1 end, 0, inet_db)",
                 "apply(ets, info, [ac_tab, name])", "erlang:apply(ets, F, [ac_tab, name])",
                 "apply(ets, member, [inet_db | [hostname]])",
                 "apply(ets, foldl, [fun(_, N) -> N + 1 end, 0, inet_db])",
                 "begin {_, M} = spawn_monitor(ets, first, [ac_tab]), "
                     "receive {'DOWN', M, _, _, Why} -> Why end end",
                 "element(2, timer:tc(ets, member, [inet_db, hostname]))",
                 "rpc:call(node(), ets, tab2list, [inet_db])",
                 "erpc:call(node(), ets, tab2list, [inet_db])",
                 "rpc:parallel_eval([{ets, info, [ac_tab, name]}, {erlang, node, []}])",
                 "rpc:pmap({ets, info}, [name], [ac_tab, inet_db])",
                 "rpc:pmap({ets, foldl}, [0, inet_db], [fun(_, N) -> N + 1 end])",
                 "info(ac_tab, name)", "member(inet_db, hostname)",
                 "info(disk_log_names, size)", "info(disk_log_pids, size)", "info(pg, size)",
                 "foldl(fun(_, N) -> N + 1 end, 0, inet_db)"]].

%% An atom that a table of OTP has as its name isn't one in another place.
no_table_of_otp_test() ->
    Source = "-import(ets, [insert/2, delete/1]).\n"
             "a(T) -> ets:lookup(T, logger), insert(T, logger), apply(ets, lookup, [T, logger]),\n"
             "    ets:foldl(inet_db, logger, T), erlang:make_fun(ets, logger, 1), delete(T),\n"
             "    apply(dets, to_ets, [inet_db, T]), ets:new(logger, []), ets:match(logger),\n"
             "    rpc:pmap({ets, lookup}, [logger], [T]).\n",
    ?assertEqual([missing], [element(1, What) || {_, What} <- warnings(Source, [])]).

wrong_options_are_errors_test() ->
    [?assertEqual({Option, [{2, Option ++ " is no option of larder_transform"}]},
                  {Option, begin
                      {error, Errors, []} =
                          compile("-compile({larder_transform, " ++ Option ++ "}).\n", [with]),
                      texts(Errors)
                  end})
     || Option <- ["keep", "{nowarn,traced}", "{nowarn,[trace]}", "{nowarn,[{a}]}",
                   "{nowarn,[{trace,{a,1}}]}", "{nowarn,[{tuple,a}]}", "{silent,[]}",
                   "{nowarn,[missing|tuple]}", "[keep_ets|nowarn]"]].

said(Source, {Line, Begin}) ->
    [Text || {L, Text} <- of_transform(Source), L =:= Line, lists:prefix(Begin, Text)].

of_transform(Source) ->
    {ok, _, _, Warnings} = compile(lists:flatten(Source), [with]),
    Ours = [{File, [W || {_, larder_transform, _} = W <- List]} || {File, List} <- Warnings],
    texts(Ours).

warnings(Source, Options) ->
    own_warnings(Source, [with | Options]).

own_warnings(Source, Options) ->
    {ok, _, _, Warnings} = compile(Source, Options),
    [{line(Location), What}
     || {_, List} <- Warnings, {Location, larder_transform, What} <- List].

%% A module in a folder of the code path.
on_path(Name, Source, Options) ->
    Dir = folder(),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Beam = compiled("-module(" ++ Name ++ ").\n", Source, Options),
    ok = file:write_file(filename:join(Dir, Name ++ ".beam"), Beam),
    true = code:add_patha(Dir),
    {Dir, Name}.

off_path({Dir, Name}) ->
    code:del_path(Dir),
    code:purge(list_to_atom(Name)),
    code:delete(list_to_atom(Name)),
    file:delete(filename:join(Dir, Name ++ ".beam")),
    file:del_dir(Dir).

%% The list in the transform is that of the module, both ways.
supported_is_what_larder_has_test() ->
    Has = larder:module_info(exports),
    ?assertEqual([], larder_transform:supported() -- Has).

everything_documented_in_ets_is_supported_test() ->
    Internal = [{internal_delete_all, 2}, {internal_request_all, 0}, {internal_select_delete, 2},
                {match_spec_run_r, 3}],
    ?assertEqual([], ets:module_info(exports) -- (larder_transform:supported() ++ Internal)).

%% ---- compiling a source text ----

compiled(Source, Options) ->
    compiled("", Source, Options).

compiled(Head, Source, Options) ->
    {ok, _, Beam, _} = compile(Head, Source, Options),
    Beam.

compile(Source, Options) ->
    compile("", Source, Options).

%% The source is the text with a first line before it, so line numbers in it
%% are one more.
compile("", Source, Options) ->
    compile("-module(larder_t_source).\n", Source, Options);
compile(Module, Source, Options) ->
    Dir = folder(),
    [_, Name | _] = string:lexemes(Module, "()"),
    File = filename:join(Dir, Name ++ ".erl"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, [Module, Source]),
    try
        compile:file(File, [binary, return, export_all, nowarn_export_all |
                            [{parse_transform, larder_transform} || with <- Options] ++
                            [Option || Option <- Options, Option =/= with]])
    after
        file:delete(File),
        file:del_dir(Dir)
    end.

folder() ->
    filename:join(os:getenv("TMPDIR", "/tmp"),
                  "larder_t_" ++ os:getpid() ++ "_" ++
                      integer_to_list(erlang:unique_integer([positive]))).

load(Beam) ->
    {ok, {Module, _}} = beam_lib:chunks(Beam, []),
    {module, Module} = code:load_binary(Module, "nofile", Beam),
    Module.

%% The module's own name has `ets' in it nowhere as an atom of its own.
atoms(Beam) ->
    {ok, {_, [{atoms, Atoms}]}} = beam_lib:chunks(Beam, [atoms]),
    [Atom || {_, Atom} <- Atoms].

imports(Beam) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(Beam, [imports]),
    Imports.

texts(Infos) ->
    lists:sort([{line(Location), lists:flatten(Module:format_error(What))}
                || {_File, List} <- Infos, {Location, Module, What} <- List]).

line({Line, _Column}) -> Line;
line(Line) -> Line.
