%% @private
%% @doc Tables of known functions: where calls of `ets' and `dets' go; which calls take a module,
%% function and arguments; which start a process; which trace a module.
-module(larder_transform_known).

-export([target/3, is_ets_function/1, is_missing/1, supported/0, types/0]).
-export([module_arg_positions/3, mfa_tuple_position/3, callback_arg_position/3, inspects_module/2]).
-export([takes_a_table/1, is_otp_table/1]).

%% ---- where calls of a function go ----

%% @doc `{moved, Module}': the module has a function of the same name. `missing': a function of
%% `ets' that Larder lacks. `stays': a call that isn't changed. The name or the arity may be unknown
%% at compile time; Larder is assumed to have such a function of `ets'.
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

%% @doc Whether a function of `ets' is known to be missing in Larder.
-spec is_missing({atom(), arity() | unknown}) -> boolean().
is_missing({unknown, _Arity}) -> false;
is_missing({_Name, unknown}) -> false;
is_missing(Function) -> not lists:member(Function, supported()).

%% @doc Whether the atom names a function of `ets'.
-spec is_ets_function(atom()) -> boolean().
is_ets_function(Name) ->
    lists:keymember(Name, 1, functions()).

%% @doc The functions of `ets' that `larder' has under the same name. They are listed here because
%% asking the module `larder' would load it, and its native code, into every compiler.
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

%% @doc The types of `ets', some of which have two names, and those of `larder'.
-spec types() -> #{atom() => atom()}.
types() ->
    #{table => table, tab => table, tid => tid, table_access => access, table_type => type,
      match_spec => match_spec, match_pattern => match_pattern,
      compiled_match_spec => compiled_match_spec, comp_match_spec => compiled_match_spec}.

%% ---- calls by module, function and arguments ----

%% @doc The argument positions at which a call may have a module, in the order in which they are
%% tried. The function and its arguments follow the module.
-spec module_arg_positions(module(), atom(), arity()) -> [pos_integer()].
module_arg_positions(erlang, Name, 3)
  when Name =:= apply; Name =:= hibernate; Name =:= make_fun; Name =:= function_exported;
       Name =:= spawn_request -> [1];
%% Module, function, arguments, options; or a node before them.
module_arg_positions(erlang, spawn_request, 4) -> [1, 2];
module_arg_positions(erlang, spawn_request, 5) -> [2];
module_arg_positions(erlang, Name, Arity) -> spawn_positions(Name, Arity);
module_arg_positions(proc_lib, hibernate, 3) -> [1];
module_arg_positions(proc_lib, Name, Arity)
  when Arity >= 3, Arity =< 5,
  (Name =:= start orelse Name =:= start_link orelse Name =:= start_monitor) -> [1];
module_arg_positions(proc_lib, Name, Arity) -> spawn_positions(Name, Arity);
module_arg_positions(timer, tc, Arity) when Arity =:= 3; Arity =:= 4 -> [1];
module_arg_positions(timer, Name, 4)
  when Name =:= apply_after; Name =:= apply_interval; Name =:= apply_repeatedly -> [2];
module_arg_positions(rpc, Name, 3) when Name =:= multicall; Name =:= eval_everywhere -> [1];
module_arg_positions(rpc, multicall, 4) -> [1, 2];
module_arg_positions(rpc, Name, Arity)
  when Arity =:= 4 orelse Arity =:= 5,
       Name =:= call orelse Name =:= block_call orelse Name =:= cast orelse Name =:= async_call
           orelse Name =:= multicall orelse Name =:= eval_everywhere -> [2];
module_arg_positions(erpc, Name, Arity)
  when Arity >= 4, Name =:= call orelse Name =:= cast orelse Name =:= multicall orelse
       Name =:= multicast orelse Name =:= send_request -> [2];
module_arg_positions(Module, Name, Arity)
  when Module =:= peer orelse Module =:= ct_rpc, Name =:= call orelse Name =:= cast,
       Arity =:= 4 orelse Arity =:= 5 -> [2];
module_arg_positions('Elixir.Task', Name, 3)
  when Name =:= async; Name =:= start; Name =:= start_link -> [1];
module_arg_positions('Elixir.Task.Supervisor', Name, Arity)
  when Name =:= async orelse Name =:= async_nolink orelse Name =:= start_child,
       Arity =:= 4 orelse Arity =:= 5 -> [2];
module_arg_positions(_, _, _) -> [].

spawn_positions(spawn_opt, 4) -> [1];
spawn_positions(spawn_opt, 5) -> [2];
spawn_positions(Name, Arity) when Name =:= spawn; Name =:= spawn_link; Name =:= spawn_monitor ->
    case Arity of
        3 -> [1];
        4 -> [2];
        _ -> []
    end;
spawn_positions(_, _) -> [].

%% @doc The position of the argument that is a tuple of module, function and perhaps arguments, or a
%% list of such tuples.
-spec mfa_tuple_position(module(), atom(), arity()) -> pos_integer() | none.
mfa_tuple_position(rpc, parallel_eval, 1) -> 1;
mfa_tuple_position(rpc, pmap, 3) -> 1;
mfa_tuple_position(_, _, _) -> none.

%% ---- other uses of a module ----

%% @doc Whether a call traces or replaces the module that its first argument names, alone or as the
%% first element of a tuple.
-spec inspects_module(module(), atom()) -> boolean().
inspects_module(erlang, trace_pattern) -> true;
inspects_module(dbg, Name) ->
    lists:member(Name, [tp, tpl, tpe, ctp, ctpl, ctpg, ctpe]);
inspects_module(recon_trace, calls) -> true;
inspects_module(meck, _) -> true;
inspects_module(cprof, _) -> true;
inspects_module(int, _) -> true;
inspects_module(_, _) -> false.

%% @doc The position of the callback module in a call that starts a process. The next argument is
%% passed to `init/1'.
-spec callback_arg_position(module(), atom(), arity()) -> pos_integer() | none.
callback_arg_position(Behaviour, Name, Arity)
  when Behaviour =:= gen_server orelse Behaviour =:= gen_statem,
       Name =:= start orelse Name =:= start_link orelse Name =:= start_monitor,
       Arity =:= 3 orelse Arity =:= 4 -> Arity - 2;
callback_arg_position(supervisor, start_link, Arity) when Arity =:= 2; Arity =:= 3 -> Arity - 1;
callback_arg_position(gen_event, Name, 3) when Name =:= add_handler; Name =:= add_sup_handler -> 2;
callback_arg_position('Elixir.GenServer', Name, Arity)
  when Name =:= start orelse Name =:= start_link, Arity =:= 2 orelse Arity =:= 3 -> 1;
callback_arg_position('Elixir.Supervisor', start_link, 3) -> 1;
callback_arg_position(_, _, _) -> none.

%% @doc The functions of a module of OTP that give a table of their caller to `ets', with the
%% position of the table. It is asked where the module has no debug information, so that its code
%% can't say it.
-spec takes_a_table(module()) -> [{atom(), arity(), pos_integer()}].
takes_a_table(mnesia_lib) ->
    %% Each function twice: without the type of the storage, and after it.
    [{Name, Arity + Storage, Position + Storage}
     || {Name, Arity, Position} <-
            [{db_erase, 2, 1}, {db_erase_tab, 1, 1}, {db_first, 1, 1}, {db_foldl, 3, 3},
             {db_get, 2, 1}, {db_init_chunk, 2, 1}, {db_last, 1, 1}, {db_match_erase, 2, 1},
             {db_match_object, 2, 1}, {db_next_key, 2, 1}, {db_prev_key, 2, 1}, {db_put, 2, 1},
             {db_select, 2, 1}, {db_slot, 2, 1}, {db_update_counter, 3, 1}],
        Storage <- [0, 1]] ++
    [{db_fixtable, 3, 2}, {db_foldl, 6, 4}, {db_init_chunk, 1, 1}, {db_select_init, 4, 2}];
takes_a_table(mnesia_index) ->
    [{db_get, 2, 1}, {db_match_erase, 2, 1}, {db_put, 2, 1}];
takes_a_table(observer_backend) ->
    [{get_table, 3, 2}];
takes_a_table(httpd_util) ->
    [{lookup, 2, 1}, {lookup, 3, 1}, {lookup_mime, 2, 1}, {lookup_mime, 3, 1},
     {lookup_mime_default, 2, 1}, {lookup_mime_default, 3, 1}, {multi_lookup, 2, 1}];
takes_a_table(_) ->
    [].

%% @doc Whether kernel, stdlib or Elixir creates a table of this name. Such a table is always one of
%% `ets'.
-spec is_otp_table(atom()) -> boolean().
is_otp_table(Name) ->
    lists:member(Name,
                 [ac_tab, code_names, dets_owners, dets_registry, disk_log_names, disk_log_pids,
                  file_io_servers,
                  global_locks, global_lost_connections, global_names, global_names_ext,
                  global_node_resources, global_pid_ids, global_pid_names, inet_cache, inet_db,
                  inet_hosts_byaddr, inet_hosts_byname, inet_hosts_file_byaddr,
                  inet_hosts_file_byname, inet_sockets, logger, pg, sys_dist, timer_tab,
                  elixir_config, elixir_modules]).
