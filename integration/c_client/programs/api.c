/* Every call of the C client, synchronous and asynchronous, with its failures. */
#include "check.h"

static zhandle_t *zh;
static struct events session;
static struct answer a;

/* The header declares a pointer to a pointer where the library wants the function itself. */
#define REMOVED ((void_completion_t *)on_void)

static void make(const char *path, const char *value)
{
    CHECK_RC(ZOK, zoo_create(zh, path, value, (int)strlen(value), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
}

static void session_is_made(void)
{
    const clientid_t *id;
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int mark = 7;
    zh = connect_client(hosts, &session, 20000, NULL, 0);
    id = zoo_client_id(zh);
    CHECK(id->client_id != 0);
    CHECK(zoo_recv_timeout(zh) > 0 && zoo_recv_timeout(zh) <= 20000);
    CHECK(zoo_state(zh) == ZOO_CONNECTED_STATE);
    CHECK(!is_unrecoverable(zh));
    CHECK(zoo_get_context(zh) == &session);
    zoo_set_context(zh, &mark);
    CHECK(zoo_get_context(zh) == &mark);
    zoo_set_context(zh, &session);
    CHECK(zoo_set_watcher(zh, on_event) == on_event);
    CHECK(zookeeper_get_connected_host(zh, (struct sockaddr *)&address, &length) != NULL);
    CHECK(strlen(zoo_get_current_server(zh)) > 0);
}

static void create_in_every_mode(void)
{
    char path[128];
    struct Stat stat;
    make("/api", "root");
    CHECK_RC(ZNODEEXISTS, zoo_create(zh, "/api", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK_RC(ZNONODE, zoo_create(zh, "/none/a", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK_RC(ZBADARGUMENTS, zoo_create(zh, "bad", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK_RC(ZOK, zoo_create(zh, "/api/null", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK_RC(ZOK, zoo_create(zh, "/api/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path));
    CHECK(strcmp(path, "/api/s-0000000001") == 0);
    CHECK_RC(ZOK, zoo_create2(zh, "/api/e", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path, &stat));
    CHECK(stat.ephemeralOwner == zoo_client_id(zh)->client_id && stat.dataLength == 1);
    CHECK_RC(ZNOCHILDRENFOREPHEMERALS, zoo_create(zh, "/api/e/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path));
    CHECK_RC(ZOK, zoo_create2(zh, "/api/es-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path, &stat));
    CHECK(strcmp(path, "/api/es-0000000003") == 0);
    CHECK_RC(ZOK, zoo_create2(zh, "/api/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path, &stat));
    CHECK_RC(ZOK, zoo_create2_ttl(zh, "/api/t", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100000, path, sizeof path, &stat));
    CHECK_RC(ZOK, zoo_create_ttl(zh, "/api/ts-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 100000, path, sizeof path));
    CHECK(strcmp(path, "/api/ts-0000000006") == 0);
    CHECK_RC(ZBADARGUMENTS, zoo_create_ttl(zh, "/api/t2", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, -7, path, sizeof path));
    CHECK_RC(ZINVALIDACL, zoo_create(zh, "/api/x", "", 0, &(struct ACL_vector){0, NULL}, 0, path, sizeof path));
}

static void read_and_write(void)
{
    char text[64];
    int length = sizeof text;
    struct Stat stat, later;
    CHECK_RC(ZOK, zoo_get(zh, "/api", 0, text, &length, &stat));
    CHECK(length == 4 && memcmp(text, "root", 4) == 0 && stat.version == 0 && stat.numChildren == 7);
    length = sizeof text;
    CHECK_RC(ZOK, zoo_get(zh, "/api/null", 0, text, &length, NULL));
    CHECK(length == -1);
    CHECK_RC(ZNONODE, zoo_get(zh, "/api/none", 0, text, &length, &stat));
    CHECK_RC(ZOK, zoo_set2(zh, "/api", "changed", 7, 0, &later));
    CHECK(later.version == 1 && later.mzxid > stat.mzxid && later.czxid == stat.czxid && later.dataLength == 7);
    CHECK_RC(ZBADVERSION, zoo_set(zh, "/api", "again", 5, 0));
    CHECK_RC(ZOK, zoo_set(zh, "/api", NULL, -1, -1));
    CHECK_RC(ZNONODE, zoo_set(zh, "/api/none", "", 0, -1));
    CHECK_RC(ZOK, zoo_exists(zh, "/api", 0, &later));
    CHECK(later.version == 2 && later.dataLength == 0);
    CHECK_RC(ZNONODE, zoo_exists(zh, "/api/none", 0, &later));
    CHECK_RC(ZNOTEMPTY, zoo_delete(zh, "/api", -1));
    CHECK_RC(ZBADVERSION, zoo_delete(zh, "/api/null", 3));
    CHECK_RC(ZOK, zoo_delete(zh, "/api/null", 0));
    CHECK_RC(ZNONODE, zoo_delete(zh, "/api/null", -1));
}

static void children(void)
{
    struct String_vector names = {0, NULL};
    struct Stat stat;
    CHECK_RC(ZOK, zoo_get_children(zh, "/api", 0, &names));
    CHECK(names.count == 6);
    deallocate_String_vector(&names);
    CHECK_RC(ZOK, zoo_get_children2(zh, "/api", 0, &names, &stat));
    CHECK(names.count == 6 && stat.numChildren == 6);
    deallocate_String_vector(&names);
    CHECK_RC(ZNONODE, zoo_get_children(zh, "/api/none", 0, &names));
}

static void asynchronous_creates(void)
{
    make("/async", "");
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate(zh, "/async/a", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strcmp(a.text, "/async/a") == 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate2(zh, "/async/s-", "22", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, on_string_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strcmp(a.text, "/async/s-0000000001") == 0 && a.stat.dataLength == 2);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate_ttl(zh, "/async/t", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 60000, on_string, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate2_ttl(zh, "/async/ts-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 60000, on_string_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strcmp(a.text, "/async/ts-0000000003") == 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate(zh, "/async/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, on_string, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_acreate(zh, "/async/a", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, &a));
    CHECK_RC(ZNODEEXISTS, wait_answer(&a));
}

static void asynchronous_reads_and_writes(void)
{
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget(zh, "/async/a", 0, on_data, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.length == 1 && a.text[0] == '1');
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset(zh, "/async/a", "new", 3, 0, on_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.stat.version == 1);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset(zh, "/async/a", "new", 3, 0, on_stat, &a));
    CHECK_RC(ZBADVERSION, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aexists(zh, "/async/a", 0, on_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.stat.dataLength == 3);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aexists(zh, "/async/none", 0, on_stat, &a));
    CHECK_RC(ZNONODE, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget_children(zh, "/async", 0, on_strings, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.count == 5 && has_string(&a, "a") && has_string(&a, "ts-0000000003"));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget_children2(zh, "/async", 0, on_strings_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.count == 5 && a.stat.numChildren == 5);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_async(zh, "/async", on_string, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strcmp(a.text, "/async") == 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_adelete(zh, "/async/t", -1, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_adelete(zh, "/async/t", -1, on_void, &a));
    CHECK_RC(ZNONODE, wait_answer(&a));
}

static void large_values(void)
{
    int size = 900 * 1024, length = size;
    char *value = malloc(size), *back = malloc(size);
    int i;
    for (i = 0; i < size; i++) value[i] = (char)(i * 31 >> 3);
    CHECK_RC(ZOK, zoo_create(zh, "/large", value, size, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK_RC(ZOK, zoo_get(zh, "/large", 0, back, &length, NULL));
    CHECK(length == size && memcmp(value, back, size) == 0);
    free(value);
    free(back);
}

static void multi_of_every_kind(void)
{
    char one[64], two[64];
    struct Stat set, made;
    zoo_op_t ops[6];
    zoo_op_result_t results[6];
    make("/multi", "0");
    make("/multi/old", "");
    zoo_create_op_init(&ops[0], "/multi/a", "a", 1, &ZOO_OPEN_ACL_UNSAFE, 0, one, sizeof one);
    zoo_create_op_init(&ops[1], "/multi/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, two, sizeof two);
    zoo_set_op_init(&ops[2], "/multi/a", "b", 1, 0, &set);
    zoo_check_op_init(&ops[3], "/multi/a", 1);
    zoo_delete_op_init(&ops[4], "/multi/old", -1);
    zoo_create_op_init(&ops[5], "/multi/e", "xyz", 3, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0);
    CHECK_RC(ZOK, zoo_multi(zh, 6, ops, results));
    CHECK_RC(ZOK, zoo_exists(zh, "/multi/e", 0, &made));
    CHECK(strcmp(one, "/multi/a") == 0 && strcmp(two, "/multi/s-0000000002") == 0 && set.version == 1);
    CHECK(made.dataLength == 3 && made.czxid == set.mzxid && made.ephemeralOwner == zoo_client_id(zh)->client_id);
    CHECK(results[0].err == ZOK && results[5].err == ZOK);
    CHECK_RC(ZNONODE, zoo_exists(zh, "/multi/old", 0, NULL));
}

static void multi_that_fails(void)
{
    char one[64];
    struct Stat stat;
    zoo_op_t ops[3];
    zoo_op_result_t results[3];
    zoo_create_op_init(&ops[0], "/multi/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, one, sizeof one);
    zoo_check_op_init(&ops[1], "/multi/a", 7);
    zoo_set_op_init(&ops[2], "/multi", "1", 1, -1, &stat);
    CHECK_RC(ZBADVERSION, zoo_multi(zh, 3, ops, results));
    CHECK(results[0].err == ZOK && results[1].err == ZBADVERSION && results[2].err == ZRUNTIMEINCONSISTENCY);
    CHECK_RC(ZNONODE, zoo_exists(zh, "/multi/x", 0, NULL));
    zoo_create_op_init(&ops[1], "/multi/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, one, sizeof one);
    CHECK_RC(ZNODEEXISTS, zoo_multi(zh, 2, ops, results));
    zoo_delete_op_init(&ops[0], "/multi", -1);
    CHECK_RC(ZNOTEMPTY, zoo_multi(zh, 1, ops, results));
    zoo_set_op_init(&ops[0], "/multi/none", "", 0, -1, &stat);
    CHECK_RC(ZNONODE, zoo_multi(zh, 1, ops, results));
    make_answer(&a);
    zoo_set_op_init(&ops[0], "/multi", "2", 1, -1, &stat);
    zoo_create_op_init(&ops[1], "/multi/y", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, one, sizeof one);
    CHECK_RC(ZOK, zoo_amulti(zh, 2, ops, results, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strcmp(one, "/multi/y") == 0 && stat.version == 1);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_amulti(zh, 2, ops, results, on_void, &a));
    CHECK_RC(ZNODEEXISTS, wait_answer(&a));
    CHECK(results[0].err == ZOK && results[1].err == ZNODEEXISTS);
}

static void access_lists(void)
{
    struct ACL_vector acl;
    struct Stat stat;
    static struct events mine;
    zhandle_t *owner = connect_client(hosts, &mine, 20000, NULL, 0);
    char text[16];
    int length = sizeof text;
    CHECK_RC(ZINVALIDACL, zoo_create(owner, "/acl", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(owner, "digest", "user:pw", 7, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZOK, zoo_create(owner, "/acl", "secret", 6, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
    CHECK_RC(ZOK, zoo_get_acl(owner, "/acl", &acl, &stat));
    CHECK(acl.count == 1 && acl.data[0].perms == ZOO_PERM_ALL && strcmp(acl.data[0].id.scheme, "digest") == 0);
    CHECK(strncmp(acl.data[0].id.id, "user:", 5) == 0 && stat.aversion == 0);
    deallocate_ACL_vector(&acl);
    catch_up(zh);
    CHECK_RC(ZNOAUTH, zoo_get(zh, "/acl", 0, text, &length, NULL));
    CHECK_RC(ZNOAUTH, zoo_set(zh, "/acl", "", 0, -1));
    CHECK_RC(ZNOAUTH, zoo_create(zh, "/acl/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK_RC(ZNOAUTH, zoo_set_acl(zh, "/acl", -1, &ZOO_OPEN_ACL_UNSAFE));
    CHECK_RC(ZBADVERSION, zoo_set_acl(owner, "/acl", 5, &ZOO_READ_ACL_UNSAFE));
    CHECK_RC(ZOK, zoo_set_acl(owner, "/acl", 0, &ZOO_READ_ACL_UNSAFE));
    catch_up(zh);
    length = sizeof text;
    CHECK_RC(ZOK, zoo_get(zh, "/acl", 0, text, &length, NULL));
    CHECK_RC(ZNOAUTH, zoo_set(owner, "/acl", "", 0, -1));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aget_acl(owner, "/acl", on_acl, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(a.count == 1 && a.perms == ZOO_PERM_READ && strcmp(a.text, "world:anyone") == 0 && a.stat.aversion == 1);
    CHECK_RC(ZOK, zookeeper_close(owner));
}

static void super_user(void)
{
    static struct events mine;
    zhandle_t *super = connect_client(hosts, &mine, 20000, NULL, 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(super, "digest", "super:test", 10, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZOK, zoo_set(super, "/acl", "by force", 8, -1));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aset_acl(super, "/acl", -1, &ZOO_OPEN_ACL_UNSAFE, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZOK, zoo_set(zh, "/acl", "free", 4, -1));
    CHECK_RC(ZOK, zookeeper_close(super));
}

static void unknown_scheme_ends_the_session(void)
{
    static struct events mine;
    zhandle_t *other = connect_client(hosts, &mine, 20000, NULL, 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(other, "nonsense", "x", 1, on_void, &a));
    CHECK_RC(ZAUTHFAILED, wait_answer(&a));
    CHECK(wait_event(&mine, 0, ZOO_SESSION_EVENT, ZOO_AUTH_FAILED_STATE, NULL) >= 0);
    CHECK(is_unrecoverable(other) == ZINVALIDSTATE);
    zookeeper_close(other);
}

static void watchers(void)
{
    static struct events data, made, kids;
    struct String_vector names = {0, NULL};
    char text[16];
    int length = sizeof text, from;
    make_events(&data);
    make_events(&made);
    make_events(&kids);
    make("/watch", "");
    CHECK_RC(ZOK, zoo_wget(zh, "/watch", on_event, &data, text, &length, NULL));
    CHECK_RC(ZNONODE, zoo_wexists(zh, "/watch/new", on_event, &made, NULL));
    CHECK_RC(ZOK, zoo_wget_children(zh, "/watch", on_event, &kids, &names));
    deallocate_String_vector(&names);
    CHECK_RC(ZOK, zoo_set(zh, "/watch", "x", 1, -1));
    CHECK(wait_event(&data, 0, ZOO_CHANGED_EVENT, ZOO_CONNECTED_STATE, "/watch") == 0);
    make("/watch/new", "");
    CHECK(wait_event(&made, 0, ZOO_CREATED_EVENT, ZOO_CONNECTED_STATE, "/watch/new") == 0);
    CHECK(wait_event(&kids, 0, ZOO_CHILD_EVENT, ZOO_CONNECTED_STATE, "/watch") == 0);
    /* Once only */
    CHECK_RC(ZOK, zoo_set(zh, "/watch", "y", 1, -1));
    CHECK_RC(ZOK, zoo_exists(zh, "/watch", 0, NULL));
    CHECK(count_events(&data) == 1);
    /* Asynchronous ones */
    make_events(&data);
    make_events(&made);
    make_events(&kids);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awget(zh, "/watch/new", on_event, &data, on_data, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awexists(zh, "/watch/later", on_event, &made, on_stat, &a));
    CHECK_RC(ZNONODE, wait_answer(&a));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awget_children2(zh, "/watch", on_event, &kids, on_strings_stat, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZOK, zoo_delete(zh, "/watch/new", -1));
    CHECK(wait_event(&data, 0, ZOO_DELETED_EVENT, ZOO_CONNECTED_STATE, "/watch/new") == 0);
    CHECK(wait_event(&kids, 0, ZOO_CHILD_EVENT, ZOO_CONNECTED_STATE, "/watch") == 0);
    make_events(&kids);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awget_children(zh, "/watch", on_event, &kids, on_strings, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make("/watch/later", "");
    CHECK(wait_event(&made, 0, ZOO_CREATED_EVENT, ZOO_CONNECTED_STATE, "/watch/later") == 0);
    CHECK(wait_event(&kids, 0, ZOO_CHILD_EVENT, ZOO_CONNECTED_STATE, "/watch") == 0);
    /* The handle's own watcher, for calls with a flag */
    from = count_events(&session);
    CHECK_RC(ZOK, zoo_exists(zh, "/watch/later", 1, NULL));
    CHECK_RC(ZOK, zoo_delete(zh, "/watch/later", -1));
    CHECK(wait_event(&session, from, ZOO_DELETED_EVENT, ZOO_CONNECTED_STATE, "/watch/later") >= 0);
}

static void watches_are_removed(void)
{
    static struct events data, kids;
    struct String_vector names = {0, NULL};
    struct Stat stat;
    char text[16];
    int length = sizeof text;
    make_events(&data);
    make_events(&kids);
    CHECK_RC(ZOK, zoo_wget(zh, "/watch", on_event, &data, text, &length, NULL));
    CHECK_RC(ZOK, zoo_remove_watches(zh, "/watch", ZWATCHTYPE_DATA, on_event, &data, 0));
    CHECK_RC(ZNOWATCHER, zoo_remove_watches(zh, "/watch", ZWATCHTYPE_DATA, on_event, &data, 0));
    length = sizeof text;
    CHECK_RC(ZOK, zoo_wget(zh, "/watch", on_event, &data, text, &length, NULL));
    CHECK_RC(ZOK, zoo_wget_children2(zh, "/watch", on_event, &kids, &names, &stat));
    deallocate_String_vector(&names);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aremove_all_watches(zh, "/watch", ZWATCHTYPE_ANY, 0, REMOVED, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK_RC(ZNOWATCHER, zoo_remove_all_watches(zh, "/watch", ZWATCHTYPE_ANY, 0));
    length = sizeof text;
    CHECK_RC(ZOK, zoo_wget(zh, "/watch", on_event, &data, text, &length, NULL));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_aremove_watches(zh, "/watch", ZWATCHTYPE_DATA, on_event, &data, 0, REMOVED, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    /* Nothing tells of what happens now. A watch that is still there would be told before the reply. */
    CHECK_RC(ZOK, zoo_set(zh, "/watch", "z", 1, -1));
    CHECK_RC(ZOK, zoo_create(zh, "/watch/z", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    CHECK_RC(ZOK, zoo_exists(zh, "/watch", 0, NULL));
    CHECK(count_events(&data) == 0 && count_events(&kids) == 0);
}

static void configuration(void)
{
    char text[TEXT];
    int length = sizeof text;
    struct Stat stat;
    static struct events mine;
    CHECK_RC(ZOK, zoo_getconfig(zh, 0, text, &length, &stat));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_agetconfig(zh, 0, on_data, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_events(&mine);
    length = sizeof text;
    CHECK_RC(ZOK, zoo_wgetconfig(zh, on_event, &mine, text, &length, &stat));
    make_answer(&a);
    CHECK_RC(ZOK, zoo_awgetconfig(zh, on_event, &mine, on_data, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    if (members == 1) return;
    text[length] = 0;
    CHECK(strstr(text, "server.1=") && strstr(text, "server.3=") && strstr(text, "version="));
}

static void reconfiguration(void)
{
    char text[TEXT];
    int length = sizeof text;
    struct Stat stat;
    static struct events mine, changed;
    zhandle_t *super;
    const char *joining = "server.9=127.0.0.1:1:2:observer;127.0.0.1:3";
    if (members == 1) {
        CHECK_RC(ZUNIMPLEMENTED, zoo_reconfig(zh, joining, NULL, NULL, -1, text, &length, &stat));
        return;
    }
    CHECK_RC(ZNOAUTH, zoo_reconfig(zh, joining, NULL, NULL, -1, text, &length, &stat));
    super = connect_client(hosts, &mine, 20000, NULL, 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_add_auth(super, "digest", "super:test", 10, on_void, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    make_events(&changed);
    length = sizeof text;
    CHECK_RC(ZOK, zoo_wgetconfig(zh, on_event, &changed, text, &length, &stat));
    length = sizeof text;
    CHECK_RC(ZBADARGUMENTS, zoo_reconfig(super, "nonsense", NULL, NULL, -1, text, &length, &stat));
    length = sizeof text;
    CHECK_RC(ZBADVERSION, zoo_reconfig(super, joining, NULL, NULL, 77, text, &length, &stat));
    length = sizeof text;
    CHECK_RC(ZOK, zoo_reconfig(super, joining, NULL, NULL, -1, text, &length, &stat));
    text[length < TEXT ? length : TEXT - 1] = 0;
    CHECK(strstr(text, joining) != NULL);
    CHECK(wait_event(&changed, 0, ZOO_CHANGED_EVENT, ZOO_CONNECTED_STATE, "/zookeeper/config") == 0);
    make_answer(&a);
    CHECK_RC(ZOK, zoo_areconfig(super, NULL, "9", NULL, -1, on_data, &a));
    CHECK_RC(ZOK, wait_answer(&a));
    CHECK(strstr(a.text, joining) == NULL);
    CHECK_RC(ZOK, zookeeper_close(super));
}

static void containers_and_ttl_go_by_themselves(void)
{
    int tries;
    char path[64];
    CHECK_RC(ZOK, zoo_create(zh, "/box", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, NULL, 0));
    make("/box/a", "");
    CHECK_RC(ZOK, zoo_delete(zh, "/box/a", -1));
    CHECK_RC(ZOK, zoo_create_ttl(zh, "/short", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 100, path, sizeof path));
    for (tries = 0; tries < 1000; tries++) {
        if (zoo_exists(zh, "/box", 0, NULL) == ZNONODE && zoo_exists(zh, "/short", 0, NULL) == ZNONODE) return;
        usleep(20000);
    }
    CHECK(!"they are still there");
}

static void under_a_root_of_its_own(void)
{
    char with[512], text[8];
    int length = sizeof text;
    static struct events mine, seen;
    zhandle_t *inside;
    make("/jail", "");
    snprintf(with, sizeof with, "%s/jail", hosts);
    inside = connect_client(with, &mine, 20000, NULL, 0);
    CHECK_RC(ZOK, zoo_create(inside, "/a", "in", 2, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    make_events(&seen);
    CHECK_RC(ZOK, zoo_wget(inside, "/a", on_event, &seen, text, &length, NULL));
    CHECK_RC(ZOK, zoo_set(zh, "/jail/a", "out", 3, -1));
    CHECK(wait_event(&seen, 0, ZOO_CHANGED_EVENT, ZOO_CONNECTED_STATE, "/a") == 0);
    CHECK_RC(ZOK, zookeeper_close(inside));
}

static void session_is_closed(void)
{
    static struct events mine;
    zhandle_t *other;
    CHECK_RC(ZOK, zookeeper_close(zh));
    other = connect_client(hosts, &mine, 20000, NULL, 0);
    catch_up(other);
    CHECK_RC(ZNONODE, zoo_exists(other, "/api/e", 0, NULL));
    CHECK_RC(ZOK, zoo_exists(other, "/api/s-0000000001", 0, NULL));
    CHECK_RC(ZOK, zookeeper_close(other));
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    STEP(session_is_made);
    STEP(create_in_every_mode);
    STEP(read_and_write);
    STEP(children);
    STEP(asynchronous_creates);
    STEP(asynchronous_reads_and_writes);
    STEP(large_values);
    STEP(multi_of_every_kind);
    STEP(multi_that_fails);
    STEP(access_lists);
    STEP(super_user);
    STEP(unknown_scheme_ends_the_session);
    STEP(watchers);
    STEP(watches_are_removed);
    STEP(configuration);
    STEP(reconfiguration);
    STEP(containers_and_ttl_go_by_themselves);
    STEP(under_a_root_of_its_own);
    STEP(session_is_closed);
    return failed_steps != 0;
}
