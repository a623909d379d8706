/* Native functions of larder_bench_instructions: they tell callgrind, under which the emulator
 * runs, when to begin and when to write down. Outside valgrind they do nothing. */
#include <erl_nif.h>
#include <string.h>
#include <valgrind/callgrind.h>

/* instrument(): from here on the program is counted; before, it runs at nearly full speed. */
static ERL_NIF_TERM instrument(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    CALLGRIND_START_INSTRUMENTATION;
    return enif_make_atom(env, RUNNING_ON_VALGRIND ? "true" : "false");
}

/* zero(): forgets what was counted since the last dump. */
static ERL_NIF_TERM zero(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    CALLGRIND_ZERO_STATS;
    return enif_make_atom(env, "ok");
}

/* dump(Text): writes down what was counted since zero(), under this text. */
static ERL_NIF_TERM dump(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char text[256];
    ErlNifBinary said;
    (void)argc;
    if (!enif_inspect_iolist_as_binary(env, argv[0], &said) || said.size >= sizeof text)
        return enif_make_badarg(env);
    memcpy(text, said.data, said.size);
    text[said.size] = 0;
    CALLGRIND_DUMP_STATS_AT(text);
    return enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {
    {"instrument", 0, instrument, 0},
    {"zero", 0, zero, 0},
    {"dump", 1, dump, 0},
};

ERL_NIF_INIT(larder_bench_instructions, functions, NULL, NULL, NULL, NULL)
