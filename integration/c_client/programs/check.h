/* Steps that pass or fail, waiting for what a callback brings, and asking the harness to do something to the servers.
 *
 * A program prints "ok NAME" or "FAILED NAME: where" for every step. "? ACTION" asks the harness, which answers with a
 * line. A failed CHECK ends its step. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper.h>

#define PATIENCE_SECONDS 30
#define TEXT 4096

static const char *hosts;     /* all servers */
static int members;           /* how many */
static jmp_buf step_over;
static char step_problem[512];
static int failed_steps;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            snprintf(step_problem, sizeof step_problem, "%s:%d: %s", __FILE__, __LINE__, #condition); \
            longjmp(step_over, 1); \
        } \
    } while (0)

/* Both are evaluated once; the answer is what people want to see. */
#define CHECK_RC(wanted, call) \
    do { \
        int wanted_ = (wanted), rc_ = (call); \
        if (rc_ != wanted_) { \
            snprintf(step_problem, sizeof step_problem, "%s:%d: %s is %d (%s), not %d", __FILE__, __LINE__, #call, rc_, \
                     zerror(rc_), wanted_); \
            longjmp(step_over, 1); \
        } \
    } while (0)

#define STEP(name) run_step(#name, name)

static inline void run_step(const char *name, void (*step)(void))
{
    if (setjmp(step_over) == 0) {
        step();
        printf("ok %s\n", name);
    } else {
        failed_steps++;
        printf("FAILED %s: %s\n", name, step_problem);
    }
    fflush(stdout);
}

static inline void ask(const char *action)
{
    char line[64];
    printf("? %s\n", action);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    CHECK(strcmp(line, "done\n") == 0);
}

static inline void begin(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s HOSTS MEMBERS\n", argv[0]);
        exit(2);
    }
    hosts = argv[1];
    members = atoi(argv[2]);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
}

/* What a completion has brought. */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, rc;
    char text[TEXT];
    int length; /* of the data; -1 for none */
    struct Stat stat;
    int count; /* of strings or access entries */
    char strings[64][128];
    int perms;
};

/* Events that a watcher has seen, in order. */
struct events {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    struct { int type, state; char path[256]; } list[256];
};

static inline void make_answer(struct answer *a)
{
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->length = -1;
}

static inline void make_events(struct events *e)
{
    memset(e, 0, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
}

static inline struct timespec patience(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    return until;
}

static inline void answered(struct answer *a, int rc)
{
    a->rc = rc;
    a->done = 1;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* The completions of every kind. `data` is the answer. */
static inline void on_void(int rc, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    answered(a, rc);
}

static inline void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) a->stat = *stat;
    answered(a, rc);
}

static inline void on_string(int rc, const char *value, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) snprintf(a->text, TEXT, "%s", value);
    answered(a, rc);
}

static inline void on_string_stat(int rc, const char *value, const struct Stat *stat, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) {
        snprintf(a->text, TEXT, "%s", value);
        a->stat = *stat;
    }
    answered(a, rc);
}

static inline void on_data(int rc, const char *value, int length, const struct Stat *stat, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) {
        a->length = length;
        if (length > 0) memcpy(a->text, value, length < TEXT ? length : TEXT);
        a->stat = *stat;
    }
    answered(a, rc);
}

static inline void keep_strings(struct answer *a, const struct String_vector *strings)
{
    int i;
    a->count = strings->count;
    for (i = 0; i < strings->count && i < 64; i++) snprintf(a->strings[i], sizeof a->strings[i], "%s", strings->data[i]);
}

static inline void on_strings(int rc, const struct String_vector *strings, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) keep_strings(a, strings);
    answered(a, rc);
}

static inline void on_strings_stat(int rc, const struct String_vector *strings, const struct Stat *stat, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) {
        keep_strings(a, strings);
        a->stat = *stat;
    }
    answered(a, rc);
}

static inline void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct answer *a = (struct answer *)data;
    pthread_mutex_lock(&a->lock);
    if (rc == ZOK) {
        a->count = acl->count;
        if (acl->count > 0) {
            a->perms = acl->data[0].perms;
            snprintf(a->text, TEXT, "%s:%s", acl->data[0].id.scheme, acl->data[0].id.id);
        }
        a->stat = *stat;
    }
    answered(a, rc);
}

static inline int has_string(const struct answer *a, const char *name)
{
    int i;
    for (i = 0; i < a->count && i < 64; i++)
        if (strcmp(a->strings[i], name) == 0) return 1;
    return 0;
}

static inline void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct events *e = context;
    (void)zh;
    pthread_mutex_lock(&e->lock);
    if (e->count < 256) {
        e->list[e->count].type = type;
        e->list[e->count].state = state;
        snprintf(e->list[e->count].path, sizeof e->list[e->count].path, "%s", path ? path : "");
        e->count++;
    }
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

#ifdef THREADED

/* Waits for the completion; its return code. */
static inline int wait_answer(struct answer *a)
{
    struct timespec until = patience();
    int late = 0, rc;
    pthread_mutex_lock(&a->lock);
    while (!a->done && !late) late = pthread_cond_timedwait(&a->changed, &a->lock, &until);
    rc = a->done ? a->rc : ZOPERATIONTIMEOUT;
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* Waits for an event behind the first `from`; its place, or -1. */
static inline int wait_event(struct events *e, int from, int type, int state, const char *path)
{
    struct timespec until = patience();
    int late = 0, i = from, found = -1;
    pthread_mutex_lock(&e->lock);
    while (found < 0 && !late) {
        for (; i < e->count && found < 0; i++)
            if (e->list[i].type == type && (state == 0 || e->list[i].state == state) &&
                (path == NULL || strcmp(e->list[i].path, path) == 0))
                found = i;
        if (found < 0) late = pthread_cond_timedwait(&e->changed, &e->lock, &until);
    }
    pthread_mutex_unlock(&e->lock);
    return found;
}

static inline int count_events(struct events *e)
{
    int count;
    pthread_mutex_lock(&e->lock);
    count = e->count;
    pthread_mutex_unlock(&e->lock);
    return count;
}

/* The handle's server may be behind another's: waits until it knows what is written by now. */
static inline void catch_up(zhandle_t *zh)
{
    static struct answer synced;
    make_answer(&synced);
    CHECK_RC(ZOK, zoo_async(zh, "/", on_string, &synced));
    CHECK_RC(ZOK, wait_answer(&synced));
}

/* Waits for a state of the handle. */
static inline int wait_state(zhandle_t *zh, int state)
{
    int tries;
    for (tries = 0; tries < PATIENCE_SECONDS * 100; tries++) {
        if (zoo_state(zh) == state) return 1;
        usleep(10000);
    }
    return 0;
}

/* A connected client that tells its events. */
static inline zhandle_t *connect_client(const char *to, struct events *e, int timeout, const clientid_t *id, int flags)
{
    zhandle_t *zh;
    make_events(e);
    zh = zookeeper_init(to, on_event, timeout, id, e, flags);
    CHECK(zh != NULL);
    CHECK(wait_event(e, 0, ZOO_SESSION_EVENT, flags & ZOO_READONLY ? 0 : ZOO_CONNECTED_STATE, NULL) >= 0);
    return zh;
}

#endif
#endif
