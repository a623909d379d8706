%% @private
%% @doc The texts of the warnings of larder_transform.
-module(larder_transform_words).

-export([text/1]).

-spec text(term()) -> io_lib:chars().
text({missing, Function, Arity}) ->
    io_lib:format("larder has no function ~tw/~w, this stays a call of ets", [Function, Arity]);
text({tuple, Function}) ->
    io_lib:format("{ets, ~tw, ...} stays: whoever applies it calls ets, and frames of a stack "
                  "now say larder", [Function]);
text({module, {argument, Function}}) ->
    io_lib:format("the arguments ets, ~tw stay: whoever applies them calls ets", [Function]);
text({module, {variable, Variable}}) ->
    io_lib:format("~ts is a module here, and stays ets", [Variable]);
text({module, {parameter, Function, Arity}}) ->
    io_lib:format("~tw/~w takes a module here, which stays ets", [Function, Arity]);
text({module, {fun_parameter, Variable, Arity}}) ->
    io_lib:format("~ts/~w takes a module here, which stays ets", [Variable, Arity]);
text({handed, Module, Function, Arity}) ->
    io_lib:format("a table of larder goes to ~tw:~tw/~w, which may give it to ets",
                  [Module, Function, Arity]);
text({traced, Module, Function}) ->
    io_lib:format("~tw:~tw has ets as an argument, but this module's calls are now of larder",
                  [Module, Function]);
text({otp_table, Table}) ->
    io_lib:format("the table ~tw is one of OTP or Elixir, this stays a call of ets", [Table]);
text({option, Option}) ->
    io_lib:format("~tp is no option of larder_transform", [Option]);
text(Other) ->
    io_lib:format("~tp", [Other]).
