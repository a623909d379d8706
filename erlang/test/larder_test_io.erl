%% A terminal for tests: answers a process's input requests from a list of
%% lines and keeps what it prints.
-module(larder_test_io).

-export([capture/1, capture/2]).

%% The value of `Fun()' and the text it printed.
-spec capture(fun(() -> Value)) -> {Value, string()}.
capture(Fun) ->
    capture(Fun, []).

%% The same, with the lines to be read. After the last one comes eof.
-spec capture(fun(() -> Value), [string()]) -> {Value, string()}.
capture(Fun, Lines) ->
    Terminal = spawn_link(fun() -> terminal(Lines, []) end),
    Before = group_leader(),
    group_leader(Terminal, self()),
    try
        Value = Fun(),
        {Value, printed(Terminal)}
    after
        group_leader(Before, self()),
        unlink(Terminal),
        exit(Terminal, kill)
    end.

printed(Terminal) ->
    Terminal ! {printed, self()},
    receive {Terminal, Text} -> Text end.

terminal(Lines, Printed) ->
    receive
        {printed, From} ->
            From ! {self(), lists:flatten(lists:reverse(Printed))},
            terminal(Lines, Printed);
        {io_request, From, Ref, Request} ->
            {Reply, Lines1, Text} = answer(Request, Lines),
            From ! {io_reply, Ref, Reply},
            terminal(Lines1, [Text | Printed])
    end.

answer({put_chars, Encoding, Module, Function, Args}, Lines) ->
    answer({put_chars, Encoding, apply(Module, Function, Args)}, Lines);
answer({put_chars, Encoding, Chars}, Lines) ->
    {ok, Lines, unicode:characters_to_list(Chars, Encoding)};
answer({get_line, _Encoding, Prompt}, []) ->
    {eof, [], prompt(Prompt)};
answer({get_line, _Encoding, Prompt}, [Line | Lines]) ->
    {Line, Lines, prompt(Prompt)};
answer(getopts, Lines) ->
    {[{encoding, unicode}], Lines, ""};
answer(_Other, Lines) ->
    {{error, enotsup}, Lines, ""}.

prompt(Prompt) ->
    io_lib:format("~ts", [Prompt]).
