%% @private
%% @doc What larder_transform knows of modules: what becomes of a function of
%% `ets' or `dets', where calls take a module, a function and arguments, which
%% calls start processes, which trace `ets'.
-module(larder_transform_known).

-export([target/3, is_ets_function/1, is_missing/1, supported/0, types/0]).
-export([places/3, tuple_place/3, start_place/3, traces/2, is_table_of_otp/1]).

%% ---- what becomes of a function ----

%% @doc `{moved, Module}': the function has the same name there. `missing': a
%% function of `ets' that larder lacks. `stays': nothing to do with us. The
%% name or the arity may be unknown at compile time; such a function of `ets' is
%% taken to be there.
-spec target(module(), atom(), arity() | unknown) -> {moved, module()} | missing | stays.
target(ets, Name, Arity) ->
    case is_missing({Name, Arity}) of
        true -> missing;
        false -> {moved, larder}
    end;
target(dets, Name, Arity) when Name =:= to_ets orelse Name =:= from_ets,
                               Arity =:= 2 orelse Arity =:= unknown ->
    {moved, larder_dets};
target(_Module, _Name, _Arity) ->
    stays.

%% @doc Whether a function of `ets' is known not to be larder's.
-spec is_missing({atom(), arity() | unknown}) -> boolean().
is_missing({unknown, _Arity}) -> false;
is_missing({_Name, unknown}) -> false;
is_missing(Function) -> not lists:member(Function, supported()).

%% @doc Whether the word names a function of `ets'.
-spec is_ets_function(atom()) -> boolean().
is_ets_function(Name) ->
    lists:keymember(Name, 1, functions()).

%% @doc The functions that a module may go on calling under the same name. A list of its own,
%% because asking the module `larder' would load it, and its native code, into every compiler.
-spec supported() -> [{atom(), arity()}].
supported() ->
    [{Name, Arity} || {Name, Arities} <- functions(), Arity <- Arities].

functions() ->
    [{all, [0]}, {delete, [1, 2]}, {delete_all_objects, [1]}, {delete_object, [2]},
     {file2tab, [1, 2]}, {first, [1]}, {first_lookup, [1]}, {foldl, [3]}, {foldr, [3]},
     {from_dets, [2]}, {fun2ms, [1]}, {give_away, [3]}, {i, [0, 1, 2, 3]}, {info, [1, 2]},
     {init_table, [2]}, {insert, [2]}, {insert_new, [2]}, {is_compiled_ms, [1]}, {last, [1]},
     {last_lookup, [1]}, {lookup, [2]}, {lookup_element, [3, 4]}, {match, [1, 2, 3]},
     {match_delete, [2]}, {match_object, [1, 2, 3]}, {match_spec_compile, [1]},
     {match_spec_run, [2]}, {member, [2]}, {module_info, [0, 1]}, {new, [2]}, {next, [2]},
     {next_lookup, [2]}, {prev, [2]}, {prev_lookup, [2]}, {rename, [2]},
     {repair_continuation, [2]}, {safe_fixtable, [2]}, {select, [1, 2, 3]},
     {select_count, [2]}, {select_delete, [2]}, {select_replace, [2]},
     {select_reverse, [1, 2, 3]}, {setopts, [2]}, {slot, [2]}, {tab2file, [2, 3]},
     {tab2list, [1]}, {tabfile_info, [1]}, {table, [1, 2]}, {take, [2]}, {test_ms, [2]},
     {to_dets, [2]}, {update_counter, [3, 4]}, {update_element, [3, 4]}, {whereis, [1]}].

%% @doc Types of ets, some under two names, and ours.
-spec types() -> #{atom() => atom()}.
types() ->
    #{table => table, tab => table, tid => tid, table_access => access, table_type => type,
      match_spec => match_spec, match_pattern => match_pattern,
      compiled_match_spec => compiled_match_spec, comp_match_spec => compiled_match_spec}.

%% ---- calls by module, function and arguments ----

%% @doc Where a call may have its module argument, before a function and its
%% arguments; the first of these that holds the module counts.
-spec places(module(), atom(), arity()) -> [pos_integer()].
places(erlang, Name, 3) when Name =:= apply; Name =:= hibernate; Name =:= make_fun;
                             Name =:= function_exported; Name =:= spawn_request -> [1];
%% Module, function, arguments, options; or a node before them.
places(erlang, spawn_request, 4) -> [1, 2];
places(erlang, spawn_request, 5) -> [2];
places(erlang, Name, Arity) -> spawn_places(Name, Arity);
places(proc_lib, hibernate, 3) -> [1];
places(proc_lib, Name, Arity)
  when Arity >= 3, Arity =< 5,
  (Name =:= start orelse Name =:= start_link orelse Name =:= start_monitor) -> [1];
places(proc_lib, Name, Arity) -> spawn_places(Name, Arity);
places(timer, tc, Arity) when Arity =:= 3; Arity =:= 4 -> [1];
places(timer, Name, 4) when Name =:= apply_after; Name =:= apply_interval;
Name =:= apply_repeatedly -> [2];
places(rpc, Name, 3) when Name =:= multicall; Name =:= eval_everywhere -> [1];
places(rpc, multicall, 4) -> [1, 2];
places(rpc, Name, Arity)
  when Arity =:= 4 orelse Arity =:= 5,
       Name =:= call orelse Name =:= block_call orelse Name =:= cast orelse Name =:= async_call
           orelse
       Name =:= multicall orelse Name =:= eval_everywhere -> [2];
places(erpc, Name, Arity)
  when Arity >= 4, Name =:= call orelse Name =:= cast orelse Name =:= multicall orelse
       Name =:= multicast orelse Name =:= send_request -> [2];
places(Module, Name, Arity)
  when Module =:= peer orelse Module =:= ct_rpc, Name =:= call orelse Name =:= cast,
       Arity =:= 4 orelse Arity =:= 5 -> [2];
places('Elixir.Task', Name, 3) when Name =:= async; Name =:= start; Name =:= start_link -> [1];
places('Elixir.Task.Supervisor', Name, Arity)
  when Name =:= async orelse Name =:= async_nolink orelse Name =:= start_child,
       Arity =:= 4 orelse Arity =:= 5 -> [2];
places(_, _, _) -> [].

spawn_places(spawn_opt, 4) -> [1];
spawn_places(spawn_opt, 5) -> [2];
spawn_places(Name, Arity) when Name =:= spawn; Name =:= spawn_link; Name =:= spawn_monitor ->
    case Arity of
        3 -> [1];
        4 -> [2];
        _ -> []
    end;
spawn_places(_, _) -> [].

%% @doc Which argument is a tuple of module, function and perhaps arguments, or
%% a list of such tuples.
-spec tuple_place(module(), atom(), arity()) -> pos_integer() | none.
tuple_place(rpc, parallel_eval, 1) -> 1;
tuple_place(rpc, pmap, 3) -> 1;
tuple_place(_, _, _) -> none.

%% ---- what is left ----

%% @doc Calls that look into a module when their first argument names it, alone or first in a tuple.
-spec traces(module(), atom()) -> boolean().
traces(erlang, trace_pattern) -> true;
traces(dbg, Name) ->
    lists:member(Name, [tp, tpl, tpe, ctp, ctpl, ctpg, ctpe]);
traces(recon_trace, calls) -> true;
traces(meck, _) -> true;
traces(cprof, _) -> true;
traces(int, _) -> true;
traces(_, _) -> false.

%% @doc Where a call that starts a process has the module of its callbacks; the next argument goes
%% to `init/1'.
-spec start_place(module(), atom(), arity()) -> pos_integer() | none.
start_place(Behaviour, Name, Arity)
  when Behaviour =:= gen_server orelse Behaviour =:= gen_statem,
       Name =:= start orelse Name =:= start_link orelse Name =:= start_monitor,
       Arity =:= 3 orelse Arity =:= 4 -> Arity - 2;
start_place(supervisor, start_link, Arity) when Arity =:= 2; Arity =:= 3 -> Arity - 1;
start_place(gen_event, Name, 3) when Name =:= add_handler; Name =:= add_sup_handler -> 2;
start_place('Elixir.GenServer', Name, Arity)
  when Name =:= start orelse Name =:= start_link, Arity =:= 2 orelse Arity =:= 3 -> 1;
start_place('Elixir.Supervisor', start_link, 3) -> 1;
start_place(_, _, _) -> none.

%% @doc Names of tables that kernel, stdlib and Elixir make: they are of `ets'
%% whatever a program is compiled with.
-spec is_table_of_otp(atom()) -> boolean().
is_table_of_otp(Name) ->
    lists:member(Name,
                 [ac_tab, code_names, dets_owners, dets_registry, file_io_servers,
                  global_locks, global_lost_connections, global_names, global_names_ext,
                  global_node_resources, global_pid_ids, global_pid_names, inet_cache, inet_db,
                  inet_hosts_byaddr, inet_hosts_byname, inet_hosts_file_byaddr,
                  inet_hosts_file_byname, inet_sockets, logger, sys_dist, timer_tab,
                  elixir_config, elixir_modules]).
