%% @doc The stateful property: any commands, on any tables, do the same in
%% `ets' and in the module under test. Run first with `ets' against itself.
-module(diff_statem_tests).
-include_lib("proper/include/proper.hrl").

-export([same_as_ets_test_/0, short_defaults_test_/0, faults_are_found_test_/0]).

-define(TYPES, [set, ordered_set, bag, duplicate_bag]).

same_as_ets_test_() ->
    [larder_test:tc(lists:concat(["same as ets, ", Type]), 300, Sut, fun() ->
        larder_test:check_property(lists:concat(["diff_statem ", Type, " ", Sut]),
                                   cases(Sut), prop_same(Sut, Type))
     end) || Sut <- larder_test:suts(), Type <- ?TYPES].

%% The suite itself needs fewer cases than the module that it is made for.
cases(diff_sound) -> larder_test:scaled(60);
cases(_) -> larder_test:scaled(400).

prop_same(Sut, Type) ->
    ?FORALL(Commands, diff_commands:sequence(Type),
            begin
                Result = diff_world:run(Sut, Commands),
                ?WHENFAIL(io:format("~p~n", [Result]), Result =:= ok)
            end).

%% Releases differ in when they refuse a default without a key. The oracle knows it of each.
short_defaults_test_() ->
    [{lists:flatten(io_lib:format("~w ~w ~0p", [F, Key, Default])),
      fun() ->
          Result = refused(oracle, ets, F, Args),
          Result = refused(larder, larder, F, Args)
      end}
     || F <- [update_counter, update_element], Key <- [k, new], Default <- [{}, {x}, {x, 1}, x],
        Args <- [[Key, {3, 2}, Default]]].

refused(Sut, Module, Function, Args) ->
    T = Module:new(t, [{keypos, 2}]),
    true = Module:insert(T, {1, k, 1}),
    Value = case diff_oracle:outcome(Sut, Function, [T | Args]) of
                {ok, Given} -> Given;
                Raised -> element(1, Raised)
            end,
    Objects = Module:tab2list(T),
    true = Module:delete(T),
    {Value, Objects}.

%% Each planted fault is found, in no more cases than the module gets.
faults_are_found_test_() ->
    [{lists:concat(["finds ", Fault]), {timeout, 120, fun() ->
        Sut = diff_planted:load(Fault),
        {Result, _, _} = larder_test:try_property(3000, prop_found(Sut, Type), [noshrink]),
        ok = diff_planted:unload(Sut),
        false = Result
    end}} || {Fault, Type} <- diff_planted:faults()].

prop_found(Sut, Type) ->
    ?FORALL(Commands, diff_commands:sequence(Type), diff_world:run(Sut, Commands) =:= ok).
