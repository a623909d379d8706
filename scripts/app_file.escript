#!/usr/bin/env escript
%% app_file.escript APP_SRC EBIN: writes the application file next to the compiled modules that it
%% lists.
main([AppSrc, Ebin]) ->
    {ok, [{application, App, Props}]} = file:consult(AppSrc),
    Modules = [list_to_atom(filename:basename(F, ".beam"))
               || F <- lists:sort(filelib:wildcard(Ebin ++ "/*.beam"))],
    App1 = {application, App, lists:keystore(modules, 1, Props, {modules, Modules})},
    %% Whole or not at all: make takes the file for the sign that all is done.
    File = filename:join(Ebin, atom_to_list(App) ++ ".app"),
    ok = file:write_file(File ++ ".new", io_lib:format("~tp.~n", [App1])),
    ok = file:rename(File ++ ".new", File).
