/* The single-threaded library: one loop that asks it what it waits for, and feeds it. */
#include <poll.h>

#include "check.h"

static zhandle_t *zh;
static struct events session;
static struct answer a;

/* One turn of the loop. */
static int turn(zhandle_t *handle, int patience_ms)
{
    struct pollfd ready = {-1, 0, 0};
    struct timeval left = {0, 0};
    int interest = 0, events = 0, rc, wait_ms;
    rc = zookeeper_interest(handle, &ready.fd, &interest, &left);
    if (ready.fd < 0) {
        usleep(10000);
        return rc;
    }
    ready.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) | (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    wait_ms = (int)(left.tv_sec * 1000 + left.tv_usec / 1000);
    poll(&ready, 1, wait_ms < patience_ms ? wait_ms : patience_ms);
    if (ready.revents & (POLLIN | POLLERR | POLLHUP)) events |= ZOOKEEPER_READ;
    if (ready.revents & POLLOUT) events |= ZOOKEEPER_WRITE;
    return zookeeper_process(handle, events);
}

static int run_until(int *condition)
{
    time_t end = time(NULL) + PATIENCE_SECONDS;
    while (!*condition && time(NULL) < end) turn(zh, 20);
    return *condition;
}

static int finish(void)
{
    return run_until(&a.done) ? a.rc : ZOPERATIONTIMEOUT;
}

static int seen(struct events *e, int type, const char *path)
{
    time_t end = time(NULL) + PATIENCE_SECONDS;
    int i;
    while (time(NULL) < end) {
        for (i = 0; i < e->count; i++)
            if (e->list[i].type == type && strcmp(e->list[i].path, path) == 0) return 1;
        turn(zh, 20);
    }
    return 0;
}

static int reached(int state)
{
    time_t end = time(NULL) + PATIENCE_SECONDS;
    while (zoo_state(zh) != state && time(NULL) < end) turn(zh, 20);
    return zoo_state(zh) == state;
}

static void session_is_made(void)
{
    make_events(&session);
    zh = zookeeper_init(hosts, on_event, 20000, NULL, &session, 0);
    CHECK(zh != NULL);
    CHECK(reached(ZOO_CONNECTED_STATE));
    CHECK(zoo_client_id(zh)->client_id != 0);
}

static void every_request(void)
{
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate(zh, "/single", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate2(zh, "/single/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_string_stat, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget(zh, "/single", 0, on_data, &a));
    CHECK_RC(ZOK, finish());
    CHECK(a.length == 3 && memcmp(a.text, "one", 3) == 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset(zh, "/single", "two", 3, 0, on_stat, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset(zh, "/single", "two", 3, 0, on_stat, &a));
    CHECK_RC(ZBADVERSION, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget_children2(zh, "/single", 0, on_strings_stat, &a));
    CHECK_RC(ZOK, finish());
    CHECK(a.count == 1 && has_string(&a, "e"));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget_acl(zh, "/single", on_acl, &a));
    CHECK_RC(ZOK, finish());
    CHECK(a.count == 1 && a.perms == ZOO_PERM_ALL);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_async(zh, "/single", on_string, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    zoo_create_op_init(&ops[0], "/single/m", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_check_op_init(&ops[1], "/single", 9);
    CHECK_RC(ZOK, zoo_amulti(zh, 2, ops, results, on_void, &a));
    CHECK_RC(ZBADVERSION, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_agetconfig(zh, 0, on_data, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(zh, "digest", "u:p", 3, on_void, &a));
    CHECK_RC(ZOK, finish());
}

static void a_watch(void)
{
    static struct events mine;
    make_events(&mine);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awget(zh, "/single", on_event, &mine, on_data, &a));
    CHECK_RC(ZOK, finish());
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset(zh, "/single", "three", 5, -1, on_stat, &a));
    CHECK_RC(ZOK, finish());
    CHECK(seen(&mine, ZOO_CHANGED_EVENT, "/single"));
}

static void pings_keep_the_session(void)
{
    int64_t id = zoo_client_id(zh)->client_id;
    time_t end = time(NULL) + 3;
    make_answer(&a);
    while (time(NULL) < end) turn(zh, 50);
    CHECK_RC(ZOK, zoo_aexists(zh, "/single/e", 0, on_stat, &a));
    CHECK_RC(ZOK, finish());
    CHECK(a.stat.ephemeralOwner == id);
}

static void the_session_outlives_a_lost_server(void)
{
    static struct events mine;
    int64_t id = zoo_client_id(zh)->client_id;
    time_t end = time(NULL) + PATIENCE_SECONDS;
    make_events(&mine);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awget(zh, "/single", on_event, &mine, on_data, &a));
    CHECK_RC(ZOK, finish());
    ask("lose");
    do {
        make_answer(&a);
        CHECK_RC(ZOK, zoo_aexists(zh, "/single/e", 0, on_stat, &a));
    } while (finish() != ZOK && time(NULL) < end);
    CHECK(a.rc == ZOK && a.stat.ephemeralOwner == id && zoo_client_id(zh)->client_id == id);
    do {
        make_answer(&a);
        CHECK_RC(ZOK, zoo_aset(zh, "/single", "again", 5, -1, on_stat, &a));
    } while (finish() != ZOK && time(NULL) < end);
    CHECK(a.rc == ZOK);
    CHECK(seen(&mine, ZOO_CHANGED_EVENT, "/single"));
    ask("regain");
}

static void session_is_closed(void)
{
    CHECK_RC(ZOK, zookeeper_close(zh));
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    STEP(session_is_made);
    STEP(every_request);
    STEP(a_watch);
    STEP(pings_keep_the_session);
    STEP(the_session_outlives_a_lost_server);
    STEP(session_is_closed);
    return failed_steps != 0;
}
