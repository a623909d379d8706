/* Operations that take effect together, and transactions. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { ACCOUNTS = 20, THREADS = 4, TRANSFERS = 500, MONEY = 100 };

static larder *world;
static larder_terms *t, *out;

static int told(const char *what) { return strstr(larder_message(), what) != NULL; }

static void operations(void) {
    larder_table *stock = NULL, *orders = NULL;
    OK(larder_table_new(world, "stock", NULL, &stock));
    OK(larder_table_new(world, "orders", NULL, &orders));
    OK(larder_insert(stock, term(t, "{pears, 3}")));
    larder_operations *order = larder_operations_new();
    size_t first = 77;
    OK(larder_operations_commit(order, &first));
    larder_view row = term(t, "{pears, 3}");
    OK(larder_op_check(order, stock, larder_view_element(row, 0), t));
    OK(larder_op_add(order, stock, larder_view_element(row, 0), 2, -1));
    OK(larder_op_insert_new(order, orders, row));
    OK(larder_op_update(order, orders, larder_view_element(row, 0), 2, term(out, "ordered")));
    larder_terms_clear(t); /* The list has copies. */
    OK(larder_operations_commit(order, &first));
    CHECK(first == 77);
    OK(larder_lookup(stock, term(t, "pears"), out));
    CHECK(reads(larder_terms_get(out, 0), "{pears,2}"));
    OK(larder_lookup(orders, term(t, "pears"), out));
    CHECK(reads(larder_terms_get(out, 0), "{pears,ordered}"));
    /* Now there are two: the first doesn't hold, and nothing happens. */
    ENDS(LARDER_NONE, larder_operations_commit(order, &first));
    CHECK(first == 1);

    larder_operations_clear(order);
    OK(larder_op_insert(order, stock, term(t, "{plums, 1}")));
    OK(larder_op_delete(order, stock, term(t, "pears")));
    OK(larder_op_check(order, stock, term(t, "pears"), NULL));
    OK(larder_op_insert_new(order, orders, term(t, "{pears, x}")));
    ENDS(LARDER_NONE, larder_operations_commit(order, &first));
    CHECK(first == 4 && larder_size(stock) == 1);
    OK(larder_delete(orders, term(t, "pears"), NULL));
    OK(larder_operations_commit(order, NULL));
    CHECK(larder_size(stock) == 1 && larder_contains(stock, term(t, "plums")) == LARDER_OK);

    larder_operations_clear(order);
    OK(larder_op_delete_row(order, stock, term(t, "{plums, 1}")));
    OK(larder_op_insert(order, stock, term(t, "{figs, many}")));
    OK(larder_op_add(order, stock, term(t, "figs"), 2, 1));
    ENDS(LARDER_NOT_INTEGER, larder_operations_commit(order, &first));
    CHECK(larder_contains(stock, term(t, "plums")) == LARDER_OK && larder_size(stock) == 1);
    larder_operations_clear(order);
    OK(larder_op_insert(order, stock, term(t, "no_row")));
    ENDS(LARDER_BAD_ROW, larder_operations_commit(order, &first));

    ENDS(LARDER_BAD_TERM, larder_op_insert(order, stock, NOTHING));
    ENDS(LARDER_BAD_ARGUMENT, larder_op_insert(NULL, stock, row));
    ENDS(LARDER_BAD_ARGUMENT, larder_op_delete(order, NULL, term(t, "x")));
    ENDS(LARDER_BAD_ARGUMENT, larder_operations_commit(NULL, &first));
    larder_operations_free(order), larder_operations_free(NULL);
    larder_table_free(stock), larder_table_free(orders);
}

static void transactions(void) {
    larder_table *tables[2] = {NULL, NULL};
    OK(larder_table_new(world, "from", NULL, &tables[0]));
    OK(larder_table_new(world, "to", NULL, &tables[1]));
    OK(larder_insert(tables[0], term(t, "{alice, 10}")));
    OK(larder_insert(tables[1], term(t, "{bob, 0}")));
    const larder_table *both[] = {tables[0], tables[1]};
    larder_transaction *transaction = NULL;
    OK(larder_begin(both, 2, &transaction));
    const larder_table *from = larder_transaction_table(transaction, 0), *to = larder_transaction_table(transaction, 1);
    CHECK(from != NULL && to != NULL && larder_transaction_table(transaction, 2) == NULL);
    int64_t sum = 0;
    OK(larder_add(from, term(t, "alice"), 2, -3, NOTHING, &sum));
    OK(larder_add(to, term(t, "bob"), 2, 3, NOTHING, &sum));
    CHECK(sum == 3);
    OK(larder_validate(transaction));
    /* Nobody else sees it, and somebody writes what it has read. */
    OK(larder_add(tables[1], term(t, "bob"), 2, 5, NOTHING, &sum));
    CHECK(sum == 5);
    ENDS(LARDER_CONFLICT, larder_validate(transaction));
    ENDS(LARDER_CONFLICT, larder_validate(transaction));
    ENDS(LARDER_CONFLICT, larder_commit(transaction));
    CHECK(told("begun anew"));
    CHECK(larder_transaction_table(transaction, 0) == from && larder_transaction_table(transaction, 1) == to);
    /* What it wrote is gone, and what others wrote is there. */
    OK(larder_add(from, term(t, "alice"), 2, -3, NOTHING, &sum));
    CHECK(sum == 7);
    OK(larder_add(to, term(t, "bob"), 2, 3, NOTHING, &sum));
    CHECK(sum == 8);
    OK(larder_validate(transaction));
    OK(larder_commit(transaction));
    ENDS(LARDER_NO_TABLE, larder_validate(transaction));
    ENDS(LARDER_NO_TABLE, larder_lookup(from, term(t, "alice"), out));
    ENDS(LARDER_NO_TABLE, larder_commit(transaction));
    larder_transaction_free(transaction);
    OK(larder_lookup(tables[1], term(t, "bob"), out));
    CHECK(reads(larder_terms_get(out, 0), "{bob,8}"));

    /* What a failed call reads is its key alone. */
    OK(larder_begin(both + 1, 1, &transaction));
    to = larder_transaction_table(transaction, 0);
    ENDS(LARDER_BAD_KEY, larder_add(to, term(t, "eve"), 2, 1, NOTHING, NULL));
    CHECK(told("table to, key eve"));
    OK(larder_insert(to, term(t, "{eve, 1}")));
    OK(larder_insert(tables[1], term(t, "{fay, 1}")));
    OK(larder_commit(transaction));
    larder_transaction_free(transaction);

    /* One that has only read doesn't fail, whatever others have written. */
    OK(larder_begin(both, 2, &transaction));
    OK(larder_lookup(larder_transaction_table(transaction, 1), term(t, "bob"), out));
    OK(larder_add(tables[1], term(t, "bob"), 2, 1, NOTHING, NULL));
    ENDS(LARDER_CONFLICT, larder_validate(transaction));
    OK(larder_commit(transaction));
    larder_transaction_free(transaction);

    /* One that is given up had no effect; nor one that fails. */
    OK(larder_begin(both, 1, &transaction));
    from = larder_transaction_table(transaction, 0);
    OK(larder_clear(from, NULL));
    CHECK(larder_size(from) == 0 && larder_size(tables[0]) == 1);
    CHECK(larder_table_rename(from, "x") == LARDER_BAD_ARGUMENT && told("transaction"));
    larder_transaction_free(transaction);
    CHECK(larder_size(tables[0]) == 1);
    OK(larder_add_index(tables[0], "second", 2, LARDER_INDEX_UNIQUE));
    OK(larder_begin(both, 1, &transaction));
    from = larder_transaction_table(transaction, 0);
    CHECK(larder_insert(from, term(t, "{carol, 7}")) != LARDER_OK || larder_commit(transaction) != LARDER_OK);
    larder_transaction_free(transaction);
    CHECK(larder_size(tables[0]) == 1);
    OK(larder_begin(both, 1, &transaction));
    OK(larder_insert(larder_transaction_table(transaction, 0), term(t, "{dan, 1}")));
    OK(larder_table_drop(tables[0]));
    ENDS(LARDER_NO_TABLE, larder_validate(transaction));
    ENDS(LARDER_NO_TABLE, larder_commit(transaction));
    larder_transaction_free(transaction);

    transaction = NULL;
    const larder_table *twice[] = {tables[1], tables[1]}, *null[] = {NULL};
    ENDS(LARDER_BAD_OPTION, larder_begin(twice, 2, &transaction));
    ENDS(LARDER_BAD_ARGUMENT, larder_begin(null, 1, &transaction));
    ENDS(LARDER_BAD_ARGUMENT, larder_begin(both, 0, &transaction));
    ENDS(LARDER_BAD_ARGUMENT, larder_begin(NULL, 1, &transaction));
    ENDS(LARDER_BAD_ARGUMENT, larder_begin(both + 1, 1, NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_commit(NULL));
    ENDS(LARDER_BAD_ARGUMENT, larder_validate(NULL));
    CHECK(transaction == NULL && larder_transaction_table(NULL, 0) == NULL);
    larder_transaction_free(NULL);
    larder_table_free(tables[0]), larder_table_free(tables[1]);
}

/* Many threads move money: what a transaction reads always adds up. */
static larder_table *bank;

static void *transfers(void *data) {
    unsigned random = (unsigned)(size_t)data;
    const larder_table *tables[] = {bank};
    for (int i = 0; i < TRANSFERS; i++) {
        larder_transaction *transaction;
        larder_status status;
        OK(larder_begin(tables, 1, &transaction));
        const larder_table *view = larder_transaction_table(transaction, 0);
        do {
            int64_t sum = 0, one = 0;
            for (int account = 0; account < ACCOUNTS; account++) {
                OK(larder_get_i64(view, larder_key_i64(account), &one));
                sum += one;
            }
            CHECK(sum == ACCOUNTS * MONEY);
            random = random * 1103515245 + 12345;
            int from = random / 65536 % ACCOUNTS, to = (from + 1 + random / 7 % (ACCOUNTS - 1)) % ACCOUNTS;
            OK(larder_add_i64(view, larder_key_i64(from), -1, NULL));
            OK(larder_add_i64(view, larder_key_i64(to), 1, NULL));
        } while ((status = larder_commit(transaction)) == LARDER_CONFLICT);
        OK(status);
        larder_transaction_free(transaction);
    }
    return NULL;
}

static void many(void) {
    OK(larder_table_new(world, "bank", NULL, &bank));
    for (int account = 0; account < ACCOUNTS; account++) OK(larder_put_i64(bank, larder_key_i64(account), MONEY));
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, transfers, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    int64_t sum = 0, one = 0;
    for (int account = 0; account < ACCOUNTS; account++) {
        OK(larder_get_i64(bank, larder_key_i64(account), &one));
        sum += one;
    }
    CHECK(sum == ACCOUNTS * MONEY);
    larder_table_free(bank);
}

/* Threads use the tables of a transaction, and the table itself, while another one commits: each
 * call is of one attempt. */
enum { ATTEMPTS = 300, OWN = 10, UNTOUCHED = 7 };
static larder_table *line;
static const larder_table *shared;
static atomic_bool over;

static void *uses(void *data) {
    const larder_key own = larder_key_i64(OWN + (int64_t)(size_t)data);
    const larder_key untouched = larder_key_i64(UNTOUCHED);
    larder_terms *found = larder_terms_new(), *key = larder_terms_new();
    OK(larder_push_int(key, UNTOUCHED));
    int64_t n = 0;
    while (!over) {
        larder_status status = larder_get_i64(shared, untouched, &n);
        CHECK(status == LARDER_NO_TABLE || (status == LARDER_OK && n == UNTOUCHED));
        status = larder_lookup(shared, larder_terms_get(key, 0), found);
        CHECK(status == LARDER_NO_TABLE ||
              (status == LARDER_OK && reads(larder_terms_get(found, 0), "{7,7}")));
        status = larder_add_i64(shared, own, 1, &n);
        CHECK(status == LARDER_NO_TABLE || (status == LARDER_OK && n > 0));
        status = larder_select_count(shared, "[{{'$1','_'},[{'<','$1',10}],[true]}]", NULL);
        CHECK(status == LARDER_NO_TABLE || status == LARDER_OK);
        OK(larder_get_i64(line, untouched, &n));
        CHECK(n == UNTOUCHED);
        OK(larder_add_i64(line, larder_key_i64(-1), 1, NULL));
    }
    larder_terms_free(found), larder_terms_free(key);
    return NULL;
}

static void while_others_use_it(void) {
    const larder_key first = larder_key_i64(0);
    OK(larder_table_new(world, "line", NULL, &line));
    OK(larder_put_i64(line, first, 0));
    OK(larder_put_i64(line, larder_key_i64(UNTOUCHED), UNTOUCHED));
    const larder_table *const tables[] = {line};
    larder_transaction *transaction;
    OK(larder_begin(tables, 1, &transaction));
    shared = larder_transaction_table(transaction, 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, uses, (void *)i) == 0);
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        larder_rows *rows;
        OK(larder_each(shared, false, &rows));
        OK(larder_rows_next(rows, 1, out));
        OK(larder_add_i64(shared, first, 1, NULL));
        OK(larder_add_i64(line, first, 1, NULL));
        ENDS(LARDER_CONFLICT, larder_commit(transaction));
        CHECK(larder_transaction_table(transaction, 0) == shared);
        ENDS(LARDER_NO_TABLE, larder_rows_next(rows, 1, out));
        larder_rows_free(rows);
    }
    /* What the other threads count in the view, they change in the table. */
    larder_status status;
    do {
        OK(larder_add_i64(shared, first, 1, NULL));
        status = larder_commit(transaction);
        CHECK(status == LARDER_OK || status == LARDER_CONFLICT);
    } while (status != LARDER_OK);
    over = true;
    for (size_t i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    ENDS(LARDER_NO_TABLE, larder_get_i64(shared, first, NULL));
    larder_transaction_free(transaction);
    int64_t n = 0;
    OK(larder_get_i64(line, first, &n));
    CHECK(n == ATTEMPTS + 1);
    larder_table_free(line);
}

int main(void) {
    world = larder_new();
    t = larder_terms_new(), out = larder_terms_new();
    operations();
    transactions();
    many();
    while_others_use_it();
    larder_terms_free(t), larder_terms_free(out);
    larder_free(world);
    OK(larder_quiesce(60000));
    puts("ok");
    return 0;
}
