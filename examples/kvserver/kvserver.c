/* A key-value server over a Unix socket: one ordered table, a thread for each connection.
 *
 *   kvserver SOCKET [FILE]
 *
 * FILE is read at the start, if it is there, and written at the end: on SIGINT or SIGTERM. Requests
 * and answers are lines. A key has no blanks; a value goes to the end of its line.
 *
 *   SET key value     OK
 *   NEW key value     OK, or NONE if the key is there
 *   GET key           = value, or NONE
 *   DEL key           OK, or NONE
 *   ADD key number    = sum; a counter that is not there begins with 0
 *   RANGE low high    key value, for each key from low on and before high; then OK
 *   MOVE from to n    OK, or NONE if `from` has less than n: two counters change at one instant
 *   WATCH             what changes from here on, a line each: SET key value, DEL key, or LOST
 *                     number if the client is too slow for that many changes; it ends with the
 *                     connection
 *   SIZE              = how many keys there are
 *   SAVE              OK: FILE is written now
 *
 * What goes wrong is ERR and the words of the library. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <larder.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_LINE = 64 << 10, MOST_CONNECTIONS = 1000, PAGE = 256 };

static larder_table *table;
static const char *file;

static void die(const char *what) {
    fprintf(stderr, "kvserver: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void must(larder_status status) {
    if (status <= LARDER_NONE) return;
    fprintf(stderr, "kvserver: %s: %s\n", larder_status_name(status), larder_message());
    exit(1);
}

/* --- connections: who is there, so that they can be ended --- */

static int connections[MOST_CONNECTIONS], count, is_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;

static bool enter(int fd) {
    pthread_mutex_lock(&lock);
    bool may = !is_over && count < MOST_CONNECTIONS;
    if (may) connections[count++] = fd;
    pthread_mutex_unlock(&lock);
    return may;
}

static void leave(int fd) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (connections[i] == fd) {
            connections[i] = connections[--count];
            break;
        }
    pthread_cond_signal(&left);
    pthread_mutex_unlock(&lock);
}

/* Ends all connections, and waits until their threads have left the table. */
static void end_all(void) {
    pthread_mutex_lock(&lock);
    is_over = 1;
    for (int i = 0; i < count; i++) shutdown(connections[i], SHUT_RDWR);
    while (count > 0) pthread_cond_wait(&left, &lock);
    pthread_mutex_unlock(&lock);
}

static bool going_on(void) {
    pthread_mutex_lock(&lock);
    bool on = !is_over;
    pthread_mutex_unlock(&lock);
    return on;
}

/* --- answers --- */

/* The line of a status: a call that found nothing is no failure. */
static void say(FILE *out, larder_status status) {
    if (status == LARDER_OK)
        fputs("OK\n", out);
    else if (status == LARDER_NONE)
        fputs("NONE\n", out);
    else
        fprintf(out, "ERR %s\n", larder_message());
}

/* A key or value: a text as it is, a number in digits; what a file of others has, as Erlang prints
 * it. */
static void print(FILE *out, larder_view view) {
    const uint8_t *bytes;
    size_t len;
    int64_t number;
    if (larder_view_binary(view, &bytes, &len))
        fwrite(bytes, 1, len, out);
    else if (larder_view_int(view, &number))
        fprintf(out, "%lld", (long long)number);
    else {
        len = larder_view_text(view, NULL, 0);
        char *text = malloc(len + 1);
        if (!text) return;
        larder_view_text(view, text, len + 1);
        fwrite(text, 1, len, out);
        free(text);
    }
}

static void print_row(FILE *out, larder_view row) {
    print(out, larder_view_element(row, 0));
    fputc(' ', out);
    print(out, larder_view_element(row, 1));
    fputc('\n', out);
}

/* --- requests --- */

/* The next word of a line; empty at its end. */
static char *word(char **line) {
    char *begin = *line + strspn(*line, " ");
    char *end = begin + strcspn(begin, " ");
    *line = *end ? end + 1 : end;
    *end = 0;
    return begin;
}

static bool number(const char *text, int64_t *n) {
    char *end;
    errno = 0;
    long long found = strtoll(text, &end, 10);
    *n = found;
    return *text && !*end && errno == 0;
}

static void get(FILE *out, larder_terms *found, const char *key) {
    larder_status status = larder_get(table, larder_key_str(key), found);
    if (status != LARDER_OK) {
        say(out, status);
        return;
    }
    fputs("= ", out);
    print(out, larder_terms_get(found, 0));
    fputc('\n', out);
}

static larder_status set_new(larder_terms *row, const char *key, const char *value) {
    larder_terms_clear(row);
    larder_status status = larder_push_tuple(row, 2);
    if (status == LARDER_OK) status = larder_push_binary(row, (const uint8_t *)key, strlen(key));
    if (status == LARDER_OK) status = larder_push_binary(row, (const uint8_t *)value, strlen(value));
    return status == LARDER_OK ? larder_insert_new(table, larder_terms_get(row, 0)) : status;
}

static void range(FILE *out, larder_terms *found, const char *low, const char *high) {
    larder_rows *rows;
    larder_status status = larder_range(table, larder_key_str(low), larder_key_str(high), false, &rows);
    if (status == LARDER_OK) {
        while ((status = larder_rows_next(rows, PAGE, found)) == LARDER_OK)
            for (size_t i = 0; i < larder_terms_count(found); i++) print_row(out, larder_terms_get(found, i));
        larder_rows_free(rows);
        if (status == LARDER_NONE) status = LARDER_OK;
    }
    say(out, status);
}

/* A transaction: what it reads holds when it commits, or it is run again. */
static larder_status move(const char *from, const char *to, int64_t n) {
    const larder_table *tables[] = {table};
    larder_transaction *transaction;
    larder_status status = larder_begin(tables, 1, &transaction);
    if (status != LARDER_OK) return status;
    const larder_table *view = larder_transaction_table(transaction, 0);
    do {
        int64_t has = 0;
        status = larder_get_i64(view, larder_key_str(from), &has);
        if (status == LARDER_OK && has < n) status = LARDER_NONE;
        if (status == LARDER_OK) status = larder_add_i64(view, larder_key_str(from), -n, NULL);
        if (status == LARDER_OK) status = larder_add_i64(view, larder_key_str(to), n, NULL);
        if (status == LARDER_OK) status = larder_commit(transaction);
    } while (status == LARDER_CONFLICT);
    larder_transaction_free(transaction);
    return status;
}

/* Whether the client has gone. What it says while it watches is no request, and is dropped: its end
 * comes after it. */
static bool is_gone(int fd) {
    char dropped[512];
    ssize_t got;
    while ((got = recv(fd, dropped, sizeof dropped, MSG_DONTWAIT)) > 0) continue;
    return got == 0;
}

/* Follows the table until the connection or the server ends. */
static void watch(FILE *out, int fd) {
    larder_feed *feed;
    const larder_change *change;
    larder_status status = larder_subscribe(table, NULL, 0, NULL, &feed);
    say(out, status);
    if (status != LARDER_OK) return;
    bool is_there = fflush(out) == 0;
    while (is_there && going_on() && !is_gone(fd)) {
        while ((status = larder_feed_next(feed, 100, &change)) == LARDER_OK) {
            if (change->event == LARDER_EVENT_OVERFLOW) {
                fprintf(out, "LOST %llu\n", (unsigned long long)change->lost);
            } else if (change->after.bytes) {
                fputs("SET ", out);
                print_row(out, change->after);
            } else if (change->before.bytes) {
                fputs("DEL ", out);
                print(out, larder_view_element(change->before, 0));
                fputc('\n', out);
            }
            if (!change->more && fflush(out) != 0) break;
        }
        if (status != LARDER_NONE) break;
    }
    larder_feed_free(feed);
}

/* Does what a line asks for; whether another one may follow. */
static bool request(FILE *out, int fd, larder_terms *terms, char *line) {
    const char *what = word(&line), *key = word(&line);
    int64_t n = 0;
    if (strcmp(what, "SET") == 0 && *key) {
        say(out, larder_put_str(table, larder_key_str(key), line));
    } else if (strcmp(what, "NEW") == 0 && *key) {
        say(out, set_new(terms, key, line));
    } else if (strcmp(what, "GET") == 0 && *key) {
        get(out, terms, key);
    } else if (strcmp(what, "DEL") == 0 && *key) {
        say(out, larder_remove(table, larder_key_str(key)));
    } else if (strcmp(what, "ADD") == 0 && *key && number(line, &n)) {
        larder_status status = larder_add_i64(table, larder_key_str(key), n, &n);
        status == LARDER_OK ? (void)fprintf(out, "= %lld\n", (long long)n) : say(out, status);
    } else if (strcmp(what, "RANGE") == 0 && *key && *line) {
        range(out, terms, key, word(&line));
    } else if (strcmp(what, "MOVE") == 0 && *key) {
        const char *to = word(&line);
        if (*to && number(line, &n) && n >= 0)
            say(out, move(key, to, n));
        else
            fputs("ERR MOVE takes two keys and a number that is not negative\n", out);
    } else if (strcmp(what, "WATCH") == 0) {
        watch(out, fd);
        return false;
    } else if (strcmp(what, "SIZE") == 0) {
        fprintf(out, "= %zu\n", larder_size(table));
    } else if (strcmp(what, "SAVE") == 0 && file) {
        say(out, larder_table_save(table, file));
    } else {
        fprintf(out, "ERR no such request, or not with these words: %s %s\n", what, key);
    }
    return true;
}

/* Reads a line without its end; false when there is no more. `*good` is false of one that is too
 * long or has a zero byte: it is read to its end all the same, as the next request is after it. */
static bool read_line(FILE *in, char *line, bool *good) {
    size_t len = 0;
    int byte;
    *good = true;
    while ((byte = getc(in)) != EOF && byte != '\n') {
        if (byte == 0 || len + 1 == LONGEST_LINE)
            *good = false;
        else
            line[len++] = (char)byte;
    }
    line[len] = 0;
    return byte != EOF;
}

static void *serve(void *data) {
    int fd = (int)(intptr_t)data;
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    larder_terms *terms = larder_terms_new();
    char *line = malloc(LONGEST_LINE);
    bool good = false;
    while (in && out && line && read_line(in, line, &good)) {
        if (!good)
            fprintf(out, "ERR a line has %d bytes at most, and no zero\n", LONGEST_LINE - 1);
        else if (!request(out, fd, terms, line))
            break;
        if (fflush(out) != 0) break;
    }
    free(line);
    larder_terms_free(terms);
    if (out) fclose(out);
    leave(fd);
    in ? fclose(in) : close(fd);
    return NULL;
}

static int listener;

static void *accept_all(void *data) {
    (void)data;
    while (going_on()) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            /* Too many files are open, or it was interrupted: try again, but not at once. */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            continue;
        }
        pthread_t thread;
        if (!enter(fd)) {
            close(fd);
        } else if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0) {
            leave(fd);
            close(fd);
        } else {
            pthread_detach(thread);
        }
    }
    return NULL;
}

/* Whether a server is behind a socket: a connection to one that was killed is refused. */
static bool is_served(const struct sockaddr_un *address) {
    int probe = socket(AF_UNIX, SOCK_STREAM, 0);
    if (probe < 0) die("socket");
    int status = connect(probe, (const struct sockaddr *)address, sizeof *address);
    bool refused = status != 0 && errno == ECONNREFUSED;
    close(probe);
    return !refused;
}

static void listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) errno = ENAMETOOLONG, die(path);
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listener < 0) die("socket");
    /* One that was killed has left its socket. Whatever else is there was not meant, least of all a
     * server at work: it would be cut off, and the last one to end would write over FILE. */
    struct stat there;
    if (lstat(path, &there) == 0) {
        if (!S_ISSOCK(there.st_mode)) errno = EEXIST, die(path);
        if (is_served(&address)) errno = EADDRINUSE, die(path);
        unlink(path);
    }
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) die(path);
    if (listen(listener, 100) != 0) die(path);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: kvserver SOCKET [FILE]\n");
        return 2;
    }
    file = argv[2];

    /* All threads have these blocked: main alone waits for them. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);

    /* The socket is taken until the one before has saved its table. So FILE is read after that. */
    listen_at(argv[1]);
    larder *world = larder_new();
    if (file && access(file, F_OK) == 0) {
        must(larder_table_load(world, file, &table));
    } else {
        larder_options options = {.size = sizeof options, .kind = LARDER_ORDERED_SET};
        must(larder_table_new(world, "store", &options, &table));
    }
    printf("kvserver: %zu keys, at %s\n", larder_size(table), argv[1]);
    fflush(stdout);
    pthread_t acceptor;
    if (pthread_create(&acceptor, NULL, accept_all, NULL) != 0) die("a thread");

    int signal_number;
    sigwait(&ends, &signal_number);
    end_all();
    if (file) must(larder_table_save(table, file));
    /* First: a socket that refuses connections is replaced by the next server. */
    unlink(argv[1]);
    shutdown(listener, SHUT_RDWR);
    pthread_join(acceptor, NULL);
    close(listener);
    larder_table_free(table);
    larder_free(world);
    must(larder_quiesce(10000));
    return 0;
}
