"use strict";

// Uses the interface of `zookeeper`, the binding to the C client.

const { fork } = require("child_process");
const { once } = require("events");
const ZooKeeper = require("zookeeper");
const { assert, eventually, failOver, insist, main, refused, step, watch } = require("./steps");

const [hosts, members] = process.argv.slice(2);
const { constants } = ZooKeeper;
// The promises are rejected with "CODE text".
const code = (error) => Number(String(error.message).split(" ")[0]);
const LOST = [constants.ZCONNECTIONLOSS, constants.ZOPERATIONTIMEOUT];
const lost = (error) => LOST.includes(code(error)) || /ZINVALIDSTATE/.test(error.message);

async function connect(config = {}) {
    const usual = { timeout: 10000, debug_level: constants.ZOO_LOG_LEVEL_ERROR, host_order_deterministic: false };
    const client = new ZooKeeper({ connect: hosts, ...usual, ...config });
    await new Promise((resolve) => {
        client.once("connect", resolve);
        client.init({});
    });
    return client;
}

async function close(client) {
    const over = new Promise((resolve) => client.once("close", resolve));
    client.close();
    await over;
}

const owner = (stat) => stat.ephemeralOwner;
const id = (client) => client.client_id;

async function createModes() {
    const c = await connect();
    await c.create("/modes", "m", constants.ZOO_PERSISTENT);
    assert.strictEqual(await c.create("/modes/s-", "s", constants.ZOO_PERSISTENT | constants.ZOO_SEQUENCE), "/modes/s-0000000000");
    assert.strictEqual(await c.create("/modes/e", "e", constants.ZOO_EPHEMERAL), "/modes/e");
    assert.strictEqual(await c.create("/modes/es-", "es", constants.ZOO_EPHEMERAL_SEQUENTIAL), "/modes/es-0000000002");
    await c.create("/modes/c", "c", constants.ZOO_CONTAINER);
    await c.create("/modes/t", "t", constants.ZOO_PERSISTENT_WITH_TTL, 3600000);
    await c.create("/modes/t-", "t", constants.ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 3600000);
    await refused(c.create("/modes/c", "", 0), constants.ZNODEEXISTS, code);
    await refused(c.create("/modes/none/child", "", 0), constants.ZNONODE, code);
    await refused(c.create("/modes/e/child", "", 0), constants.ZNOCHILDRENFOREPHEMERALS, code);
    assert.strictEqual(String(owner(await c.exists("/modes/e", false))), id(c));
    await close(c);
    const other = await connect();
    await other.sync("/");
    const children = await other.get_children("/modes", false);
    assert.deepStrictEqual(children.sort(), ["c", "s-0000000000", "t", "t-0000000005"]);
    await close(other);
}

async function data() {
    const c = await connect();
    await c.create("/data", "zero", 0);
    const large = Buffer.alloc(500000, "x");
    assert.strictEqual((await c.set("/data", large, 0)).version, 1);
    await refused(c.set("/data", "two", 0), constants.ZBADVERSION, code);
    const [stat, bytes] = await c.get("/data", false);
    assert(bytes.equals(large) && stat.version === 1 && stat.dataLength === 500000);
    assert.strictEqual(await c.pathExists("/data/none", false), false);
    await c.create("/data/child", "", 0);
    const [children, parent] = await c.get_children2("/data", false);
    assert.deepStrictEqual(children, ["child"]);
    assert.strictEqual(parent.numChildren, 1);
    await refused(c.delete_("/data", -1), constants.ZNOTEMPTY, code);
    await refused(c.delete_("/data/child", 3), constants.ZBADVERSION, code);
    await c.delete_("/data/child", 0);
    await c.delete_("/data", 1);
    await refused(c.get("/data", false), constants.ZNONODE, code);
    const made = await new Promise((resolve, reject) => {
        c.mkdirp("/data/a/b/c", (error, success) => (error ? reject(error) : resolve(success)));
    });
    assert.strictEqual(made, true);
    assert.strictEqual(await c.pathExists("/data/a/b/c", false), true);
    await close(c);
}

async function accessLists() {
    const ann = await connect();
    const stranger = await connect();
    await new Promise((resolve, reject) => {
        ann.add_auth("digest", "ann:secret", (rc, error) => (rc ? reject(new Error(`${rc} ${error}`)) : resolve()));
    });
    await ann.create("/acl", "hers", 0);
    await ann.set_acl("/acl", 0, [{ perms: constants.ZOO_PERM_ALL, scheme: "auth", auth: "" }]);
    const [acls, stat] = await ann.get_acl("/acl");
    assert.strictEqual(acls.length, 1);
    assert(acls[0].scheme === "digest" && acls[0].auth.startsWith("ann:") && stat.aversion === 1, JSON.stringify(acls));
    await stranger.sync("/");
    await refused(stranger.get("/acl", false), constants.ZNOAUTH, code);
    await refused(stranger.set("/acl", "x", -1), constants.ZNOAUTH, code);
    const open = [{ perms: constants.ZOO_PERM_ALL, scheme: "world", auth: "anyone" }];
    await refused(stranger.set_acl("/acl", -1, open), constants.ZNOAUTH, code);
    await refused(ann.set_acl("/acl", 0, open), constants.ZBADVERSION, code);
    await ann.set_acl("/acl", 1, [{ perms: constants.ZOO_PERM_READ, scheme: "ip", auth: "127.0.0.1" }, ...acls]);
    await stranger.sync("/");
    await stranger.get("/acl", false);
    await close(ann);
    await close(stranger);
}

const fires = async (seen, type, path) => {
    const event = await seen.next();
    assert.strictEqual(event[0], type, `event ${event}`);
    assert.strictEqual(event[2], path);
};

async function watches() {
    const c = await connect();
    const other = await connect();
    const [created, changed, children, gone] = [watch(), watch(), watch(), watch()];
    assert.strictEqual(await c.w_pathExists("/watched", created.callback), false);
    await other.create("/watched", "", 0);
    await fires(created, constants.ZOO_CREATED_EVENT, "/watched");
    await c.w_get("/watched", changed.callback);
    await c.w_get_children("/watched", children.callback);
    await other.create("/watched/child", "", 0);
    await fires(children, constants.ZOO_CHILD_EVENT, "/watched");
    assert.strictEqual(changed.seen.length, 0);
    await other.set("/watched", "new", -1);
    await fires(changed, constants.ZOO_CHANGED_EVENT, "/watched");
    await c.w_get_children2("/watched/child", gone.callback);
    await other.delete_("/watched/child", -1);
    await fires(gone, constants.ZOO_DELETED_EVENT, "/watched/child");
    await other.set("/watched", "once", -1);
    await c.sync("/");
    assert.deepStrictEqual([created, changed, children, gone].map((each) => each.seen.length), [0, 0, 0, 0]);
    await close(c);
    await close(other);
}

async function configuration() {
    const c = await connect();
    const [stat, text] = await c.getconfig(false);
    assert(stat.version >= -1 && Buffer.isBuffer(text));
    assert(members === "1" || text.includes("server.1="), String(text));
    await close(c);
}

async function takeOver() {
    // A process of its own: in this one the first client would come back and take its session over again.
    const first = fork(__filename, [hosts, "leave"]);
    const [left] = await once(first, "message");
    await once(first, "exit");
    const second = await connect({ client_id: left.id, client_password: left.password });
    assert.strictEqual(id(second), left.id);
    const path = "/taken";
    assert.strictEqual(String(owner(await second.exists(path, false))), left.id);
    await close(second);
    const witness = await connect();
    await witness.sync("/");
    assert.strictEqual(await witness.pathExists(path, false), false);
    await close(witness);
}

/** What the first process of `takeOver` does: it leaves a session and an ephemeral behind. */
async function leave() {
    const c = await connect({ timeout: 20000 });
    await c.create("/taken", "", constants.ZOO_EPHEMERAL);
    process.send({ id: id(c), password: c.client_password }, () => process.kill(process.pid, "SIGKILL"));
}

async function sessionEnds() {
    const other = await connect({ timeout: 20000 });
    const c = await connect();
    const path = await c.create("/closing", "", constants.ZOO_EPHEMERAL);
    const gone = watch();
    await other.sync("/");
    await other.w_exists(path, gone.callback);
    await close(c);
    await fires(gone, constants.ZOO_DELETED_EVENT, path);
    await close(other);
}

async function failover() {
    const clients = [];
    for (let i = 0; i < 5; i++) {
        clients.push({ client: await connect({ timeout: 30000 }) });
    }
    await clients[0].client.create("/failover", "0", 0);
    for (const c of clients) {
        c.id = id(c.client);
        await c.client.sync("/");
        c.path = await c.client.create("/failover/m-", "", constants.ZOO_EPHEMERAL_SEQUENTIAL);
        c.seen = watch();
        // Besides events of nodes, watches hear of their connection; only the former matter here.
        const ofNodes = (type, ...rest) => type !== constants.ZOO_SESSION_EVENT && c.seen.callback(type, ...rest);
        await c.client.w_get("/failover", ofNodes);
    }
    await failOver();
    for (const c of clients) {
        const stat = await insist(() => c.client.exists(c.path, false), lost);
        assert.strictEqual(String(owner(stat)), c.id);
        assert.strictEqual(id(c.client), c.id);
        assert.strictEqual(c.seen.seen.length, 0);
    }
    await insist(() => clients[0].client.set("/failover", "1", -1), lost);
    for (const c of clients) {
        await fires(c.seen, constants.ZOO_CHANGED_EVENT, "/failover");
        await close(c.client);
    }
}

async function counter() {
    const c = await connect({ timeout: 30000 });
    await c.create("/counter", "0", 0);
    let acknowledged = 0;
    let open = 0;
    let going = true;
    const adding = (async () => {
        while (going) {
            try {
                const [stat, bytes] = await c.get("/counter", false);
                await c.set("/counter", String(Number(bytes) + 1), stat.version).catch((error) => {
                    open += lost(error);
                    throw error;
                });
                acknowledged += 1;
            } catch (error) {
                if (!lost(error) && code(error) !== constants.ZBADVERSION) {
                    throw error;
                }
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
        }
    })();
    const more = async () => {
        const from = acknowledged;
        await eventually("twenty further additions", () => acknowledged >= from + 20);
    };
    await more();
    await failOver();
    await more();
    going = false;
    await adding;
    const [stat, bytes] = await c.get("/counter", false);
    const value = Number(bytes);
    assert(value >= acknowledged && value <= acknowledged + open, `${value}: ${acknowledged} acknowledged, ${open} open`);
    assert.strictEqual(stat.version, value);
    await close(c);
}

const play = async () => {
    await step("create: every mode, and what it leaves behind", createModes);
    await step("data, children, versions", data);
    await step("access lists: digest, address, and an unproven identity", accessLists);
    await step("watches: creation, data, children, deletion, each once", watches);
    await step("configuration: getconfig", configuration);
    await step("session: taken over by its id and password", takeOver);
    await step("session: its ephemerals go when it is closed", sessionEnds);
    await step("failover: sessions, ephemerals and watches live on", failover);
    await step("failover: a counter that is added to all the while", counter);
};

if (members === "leave") {
    leave();
} else {
    main(play);
}
