/* Many requests at once: threads that share one handle, handles that each have a thread, and pipelines. */
#include "check.h"

#define THREADS 8
#define REQUESTS 200
#define PIPELINE 2000

struct worker {
    zhandle_t *zh;
    int number, wrong;
};

static struct events session;
static zhandle_t *zh;

/* Makes, reads, changes and removes nodes of its own, and checks what it is told. */
static void *work(void *context)
{
    struct worker *w = context;
    char path[64], text[32], value[32];
    struct Stat stat;
    int i, length;
    for (i = 0; i < REQUESTS; i++) {
        snprintf(path, sizeof path, "/load/%d-%d", w->number, i);
        snprintf(value, sizeof value, "%d", i * 7 + w->number);
        length = sizeof text;
        if (zoo_create(w->zh, path, value, (int)strlen(value), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) != ZOK ||
            zoo_get(w->zh, path, 0, text, &length, &stat) != ZOK || length != (int)strlen(value) ||
            memcmp(text, value, length) != 0 || zoo_set2(w->zh, path, "x", 1, 0, &stat) != ZOK || stat.version != 1 ||
            zoo_set(w->zh, path, "x", 1, 0) != ZBADVERSION || zoo_delete(w->zh, path, 1) != ZOK ||
            zoo_exists(w->zh, path, 0, &stat) != ZNONODE)
            w->wrong++;
    }
    return NULL;
}

static void crowd(zhandle_t **handles)
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){handles[i], i, 0};
        CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (i = 0; i < THREADS; i++) CHECK(workers[i].wrong == 0);
}

static void threads_share_a_handle(void)
{
    zhandle_t *handles[THREADS];
    struct Stat stat;
    int i;
    zh = connect_client(hosts, &session, 20000, NULL, 0);
    CHECK_RC(ZOK, zoo_create(zh, "/load", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    for (i = 0; i < THREADS; i++) handles[i] = zh;
    crowd(handles);
    CHECK_RC(ZOK, zoo_exists(zh, "/load", 0, &stat));
    CHECK(stat.numChildren == 0 && stat.cversion == 2 * THREADS * REQUESTS);
}

static void each_thread_has_a_handle(void)
{
    static struct events events[THREADS];
    zhandle_t *handles[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) handles[i] = connect_client(hosts, &events[i], 20000, NULL, 0);
    crowd(handles);
    for (i = 0; i < THREADS; i++) CHECK_RC(ZOK, zookeeper_close(handles[i]));
}

/* Replies come in the order of the requests, and zxids grow. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_there = PTHREAD_COND_INITIALIZER;
static int next_reply, disordered;
static int64_t newest;

static void on_reply(int rc, const struct Stat *stat, const void *data)
{
    pthread_mutex_lock(&lock);
    if (rc != ZOK || (intptr_t)data != next_reply || stat->mzxid <= newest || stat->version != next_reply + 1) disordered++;
    if (rc == ZOK) newest = stat->mzxid;
    next_reply++;
    pthread_cond_signal(&all_there);
    pthread_mutex_unlock(&lock);
}

static void a_long_pipeline_keeps_its_order(void)
{
    struct timespec until = patience();
    int late = 0;
    intptr_t i;
    CHECK_RC(ZOK, zoo_create(zh, "/pipeline", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    for (i = 0; i < PIPELINE; i++) CHECK_RC(ZOK, zoo_aset(zh, "/pipeline", "abc", 3, (int)i, on_reply, (void *)i));
    pthread_mutex_lock(&lock);
    while (next_reply < PIPELINE && !late) late = pthread_cond_timedwait(&all_there, &lock, &until);
    pthread_mutex_unlock(&lock);
    CHECK(next_reply == PIPELINE && disordered == 0);
}

static void sequence_numbers_of_all_threads_differ(void)
{
    static struct answer answers[256];
    int seen[256] = {0}, i, number;
    CHECK_RC(ZOK, zoo_create(zh, "/numbers", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    for (i = 0; i < 256; i++) {
        make_answer(&answers[i]);
        CHECK_RC(ZOK, zoo_acreate(zh, "/numbers/n", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE | ZOO_EPHEMERAL, on_string, &answers[i]));
    }
    for (i = 0; i < 256; i++) {
        CHECK_RC(ZOK, wait_answer(&answers[i]));
        number = atoi(answers[i].text + strlen("/numbers/n"));
        CHECK(number == i && !seen[number]);
        seen[number] = 1;
    }
}

/* zookeeper_close() ends the thread that tells the answers, and there are requests that it has told nothing of by then, on
 * every server. What it does tell is an answer, or that the handle is closing: never that the connection was lost. */
static void closed_with_requests_under_way(void)
{
    static struct events mine;
    static struct answer answers[100];
    zhandle_t *other = connect_client(hosts, &mine, 20000, NULL, 0);
    time_t start = time(NULL);
    int i;
    for (i = 0; i < 100; i++) {
        make_answer(&answers[i]);
        CHECK_RC(ZOK, zoo_aget_children(other, "/numbers", 0, on_strings, &answers[i]));
    }
    CHECK_RC(ZOK, zookeeper_close(other));
    CHECK(time(NULL) - start < PATIENCE_SECONDS);
    for (i = 0; i < 100; i++) {
        if (answers[i].done && answers[i].rc == ZOK) CHECK(answers[i].count == 256);
        else if (answers[i].done) CHECK_RC(ZCLOSING, answers[i].rc);
    }
    CHECK_RC(ZOK, zookeeper_close(zh));
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    STEP(threads_share_a_handle);
    STEP(each_thread_has_a_handle);
    STEP(a_long_pipeline_keeps_its_order);
    STEP(sequence_numbers_of_all_threads_differ);
    STEP(closed_with_requests_under_way);
    return failed_steps != 0;
}
