/* Sessions, ephemerals and watches while a server is lost and comes back, sessions that are taken over, expire, and what
 * a lone server may still do. */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static zhandle_t *zh;
static struct events session;
static struct answer a;
static struct events data, kids, made;

static void set_up(void)
{
    struct String_vector names = {0, NULL};
    char text[8];
    int length = sizeof text;
    zh = connect_client(hosts, &session, 20000, NULL, 0);
    make_events(&data);
    make_events(&kids);
    make_events(&made);
    CHECK_RC(ZOK, zoo_create(zh, "/fail", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK_RC(ZOK, zoo_create(zh, "/fail/e", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(zh, "digest", "user:pw", 7, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZOK, zoo_create(zh, "/fail/mine", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
    CHECK_RC(ZOK, zoo_wget(zh, "/fail", on_event, &data, text, &length, NULL));
    CHECK_RC(ZOK, zoo_wget_children(zh, "/fail", on_event, &kids, &names));
    deallocate_String_vector(&names);
    CHECK_RC(ZNONODE, zoo_wexists(zh, "/fail/later", on_event, &made, NULL));
}

/* Tries again while the connection is lost; the last word counts. */
static int persistently(int (*call)(void))
{
    int tries, rc = ZOK;
    for (tries = 0; tries < PATIENCE_SECONDS * 20; tries++) {
        rc = call();
        if (rc != ZCONNECTIONLOSS && rc != ZOPERATIONTIMEOUT && rc != ZINVALIDSTATE) return rc;
        usleep(50000);
    }
    return rc;
}

static int write_something(void)
{
    return zoo_set(zh, "/fail/mine", "again", 5, -1);
}

static void the_session_outlives_a_lost_server(void)
{
    int64_t id = zoo_client_id(zh)->client_id;
    struct Stat stat;
    ask("lose");
    CHECK_RC(ZOK, persistently(write_something)); /* the identity is told again too */
    CHECK(wait_state(zh, ZOO_CONNECTED_STATE));
    CHECK(zoo_client_id(zh)->client_id == id);
    CHECK_RC(ZOK, zoo_exists(zh, "/fail/e", 0, &stat));
    CHECK(stat.ephemeralOwner == id);
    CHECK(count_events(&data) == 0 || data.list[0].type == ZOO_SESSION_EVENT);
}

static void its_watches_are_set_again(void)
{
    static struct events mine;
    zhandle_t *other = connect_client(hosts, &mine, 20000, NULL, 0);
    CHECK_RC(ZOK, zoo_set(other, "/fail", "x", 1, -1));
    CHECK_RC(ZOK, zoo_create(other, "/fail/later", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK(wait_event(&data, 0, ZOO_CHANGED_EVENT, 0, "/fail") >= 0);
    CHECK(wait_event(&kids, 0, ZOO_CHILD_EVENT, 0, "/fail") >= 0);
    CHECK(wait_event(&made, 0, ZOO_CREATED_EVENT, 0, "/fail/later") >= 0);
    CHECK_RC(ZOK, zookeeper_close(other));
}

static void the_lost_server_comes_back(void)
{
    ask("regain");
    CHECK_RC(ZOK, persistently(write_something));
}

/* Another process with a session of its own and the ephemeral `path`; it says who it is, and later its state. */
struct other {
    pid_t pid;
    int says;
    clientid_t id;
};

static struct other another_process(const char *path, int timeout)
{
    static struct events mine;
    struct other other;
    int ends[2], i, state;
    CHECK(pipe(ends) == 0);
    other.pid = fork();
    CHECK(other.pid >= 0);
    if (other.pid == 0) {
        zhandle_t *own;
        make_events(&mine);
        own = zookeeper_init(hosts, on_event, timeout, NULL, &mine, 0);
        if (!wait_state(own, ZOO_CONNECTED_STATE) ||
            zoo_create(own, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) != ZOK)
            _exit(1);
        if (write(ends[1], zoo_client_id(own), sizeof(clientid_t)) != sizeof(clientid_t)) _exit(1);
        for (i = 0; i < PATIENCE_SECONDS * 100 && !is_unrecoverable(own); i++) usleep(10000);
        state = zoo_state(own);
        _exit(write(ends[1], &state, sizeof state) != sizeof state);
    }
    close(ends[1]);
    other.says = ends[0];
    CHECK(read(other.says, &other.id, sizeof other.id) == sizeof other.id);
    return other;
}

static void end(struct other *other)
{
    kill(other->pid, SIGKILL);
    waitpid(other->pid, NULL, 0);
    close(other->says);
}

static void a_session_is_taken_over(void)
{
    static struct events mine;
    struct other other = another_process("/fail/taken", 20000);
    zhandle_t *second;
    struct Stat stat;
    end(&other);
    second = connect_client(hosts, &mine, 20000, &other.id, 0);
    CHECK(zoo_client_id(second)->client_id == other.id.client_id);
    catch_up(second);
    CHECK_RC(ZOK, zoo_exists(second, "/fail/taken", 0, &stat));
    CHECK(stat.ephemeralOwner == other.id.client_id);
    CHECK_RC(ZOK, zookeeper_close(second));
    catch_up(zh);
    CHECK_RC(ZNONODE, zoo_exists(zh, "/fail/taken", 0, NULL));
}

static void a_session_expires(void)
{
    struct other other = another_process("/fail/silent", 2000);
    int tries, state;
    catch_up(zh);
    CHECK_RC(ZOK, zoo_exists(zh, "/fail/silent", 0, NULL));
    kill(other.pid, SIGSTOP);
    for (tries = 0; tries < 3000 && zoo_exists(zh, "/fail/silent", 0, NULL) != ZNONODE; tries++) usleep(10000);
    CHECK_RC(ZNONODE, zoo_exists(zh, "/fail/silent", 0, NULL));
    kill(other.pid, SIGCONT);
    CHECK(read(other.says, &state, sizeof state) == sizeof state);
    CHECK(state == ZOO_EXPIRED_SESSION_STATE);
    end(&other);
}

static void a_wrong_password_gets_no_session(void)
{
    static struct events mine;
    clientid_t id = *zoo_client_id(zh);
    zhandle_t *thief;
    id.passwd[3] ^= 0x55;
    make_events(&mine);
    thief = zookeeper_init(hosts, on_event, 20000, &id, &mine, 0);
    CHECK(thief != NULL);
    CHECK(wait_event(&mine, 0, ZOO_SESSION_EVENT, ZOO_EXPIRED_SESSION_STATE, NULL) >= 0);
    zookeeper_close(thief);
    CHECK_RC(ZOK, persistently(write_something));
}

static void servers_in_the_given_order(void)
{
    static struct events mine;
    char first[64];
    zhandle_t *ordered;
    int i, length = (int)strcspn(hosts, ",");
    snprintf(first, sizeof first, "%.*s", length, hosts);
    zoo_deterministic_conn_order(1);
    for (i = 0; i < 5; i++) {
        ordered = connect_client(hosts, &mine, 20000, NULL, 0);
        CHECK(strcmp(zoo_get_current_server(ordered), first) == 0);
        CHECK_RC(ZOK, zookeeper_close(ordered));
    }
    zoo_deterministic_conn_order(0);
}

static void other_servers_than_before(void)
{
    static struct events mine;
    const char *last = strrchr(hosts, ',') ? strrchr(hosts, ',') + 1 : hosts;
    zhandle_t *moving = connect_client(hosts, &mine, 20000, NULL, 0);
    int64_t id = zoo_client_id(moving)->client_id;
    CHECK_RC(ZOK, zoo_set_servers_resolution_delay(moving, 500));
    CHECK_RC(ZOK, zoo_set_servers(moving, last));
    zoo_cycle_next_server(moving);
    CHECK(wait_state(moving, ZOO_CONNECTED_STATE));
    CHECK_RC(ZOK, zoo_exists(moving, "/fail", 0, NULL));
    CHECK(zoo_client_id(moving)->client_id == id);
    CHECK_RC(ZOK, zookeeper_close(moving));
}

static void one_server_of_three_is_read_only(void)
{
    static struct events mine, refused;
    char text[16], where[64];
    int length = sizeof text, tries;
    struct Stat stat;
    zhandle_t *reader, *writer;
    if (members == 1) return;
    ask("lose-quorum"); /* all but the first */
    snprintf(where, sizeof where, "%.*s", (int)strcspn(hosts, ","), hosts);
    reader = connect_client(where, &mine, 20000, NULL, ZOO_READONLY);
    CHECK(wait_state(reader, ZOO_READONLY_STATE));
    CHECK_RC(ZOK, zoo_get(reader, "/fail", 0, text, &length, &stat));
    CHECK_RC(ZNOTREADONLY, zoo_set(reader, "/fail", "", 0, -1));
    CHECK_RC(ZNOTREADONLY, zoo_create(reader, "/fail/no", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    /* Who has not asked for it is not served. */
    make_events(&refused);
    writer = zookeeper_init(where, on_event, 20000, NULL, &refused, 0);
    CHECK(writer != NULL);
    usleep(1000000);
    CHECK(zoo_state(writer) != ZOO_CONNECTED_STATE && zoo_state(writer) != ZOO_READONLY_STATE);
    zookeeper_close(writer);
    ask("regain-quorum");
    for (tries = 0; tries < 3000 && zoo_set(reader, "/fail", "", 0, -1) != ZOK; tries++) usleep(10000);
    CHECK(wait_state(reader, ZOO_CONNECTED_STATE));
    CHECK_RC(ZOK, zoo_set(reader, "/fail", "", 0, -1));
    CHECK_RC(ZOK, zookeeper_close(reader));
}

static void the_session_is_still_there(void)
{
    struct Stat stat;
    CHECK_RC(ZOK, persistently(write_something));
    CHECK_RC(ZOK, zoo_exists(zh, "/fail/e", 0, &stat));
    CHECK_RC(ZOK, zookeeper_close(zh));
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    STEP(set_up);
    STEP(the_session_outlives_a_lost_server);
    STEP(its_watches_are_set_again);
    STEP(the_lost_server_comes_back);
    STEP(a_session_is_taken_over);
    STEP(a_wrong_password_gets_no_session);
    STEP(a_session_expires);
    STEP(servers_in_the_given_order);
    STEP(other_servers_than_before);
    STEP(one_server_of_three_is_read_only);
    STEP(the_session_is_still_there);
    return failed_steps != 0;
}
