%% @doc What the environment says about a bench run. What can't be understood is an error, not
%% ignored.
-module(larder_bench_env).

-export([number/2, numbers/2, choice/2, share/2, seed/2, folder/1, time/1]).

%% @doc A positive number, or the default if the variable is not set.
-spec number(string(), pos_integer()) -> pos_integer().
number(Name, Default) ->
    case numbers(Name, [Default]) of
        [N] -> N;
        _ -> error({one_number_wanted, Name})
    end.

%% @doc Positive numbers between commas or blanks.
-spec numbers(string(), [pos_integer()]) -> [pos_integer()].
numbers(Name, Default) ->
    case words(Name) of
        [] -> Default;
        Words -> [positive(Name, W) || W <- Words]
    end.

positive(Name, Word) ->
    case string:to_integer(Word) of
        {N, ""} when N > 0 -> N;
        _ -> error({positive_number_wanted, Name, Word})
    end.

%% @doc Some of what there is; all of it if the variable is not set.
-spec choice(string(), [atom()]) -> [atom()].
choice(Name, All) ->
    case words(Name) of
        [] -> All;
        Words ->
            case Words -- [atom_to_list(A) || A <- All] of
                [] -> [A || A <- All, lists:member(atom_to_list(A), Words)];
                Unknown -> error({unknown, Name, Unknown, All})
            end
    end.

%% @doc A part of the whole, from 0 to 1.
-spec share(string(), float()) -> float().
share(Name, Default) ->
    case words(Name) of
        [] -> Default;
        [Word] ->
            case string:to_float(Word
                                 ++ case lists:member($., Word) of true -> ""; false -> ".0" end) of
                {Share, ""} when Share > 0, Share =< 1 -> Share;
                _ -> error({share_wanted, Name, Word})
            end
    end.

%% @doc A number that is said, or one at random if that is wanted.
-spec seed(string(), pos_integer()) -> pos_integer().
seed(Name, Default) ->
    case words(Name) of
        ["random"] -> rand:uniform(1 bsl 27);
        _ -> number(Name, Default)
    end.

words(Name) ->
    case os:getenv(Name) of
        false -> [];
        Text -> string:lexemes(Text, ", ")
    end.

%% @doc Where the files go: `LARDER_BENCH_OUT', or a folder of results.
-spec folder(string()) -> file:filename().
folder(What) ->
    case os:getenv("LARDER_BENCH_OUT") of
        false -> filename:join("results", What);
        Folder -> Folder
    end.

%% @doc Seconds, for people.
-spec time(number()) -> iolist().
time(Seconds) when Seconds < 99.5 -> io_lib:format("~b s", [max(1, round(Seconds))]);
time(Seconds) -> io_lib:format("~b min", [round(Seconds / 60)]).
