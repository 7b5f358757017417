"use strict";

// Uses all of node-zookeeper-client's interface.

const zookeeper = require("node-zookeeper-client");
const { assert, eventually, failOver, insist, main, refused, step, watch } = require("./steps");

const [hosts] = process.argv.slice(2);
const { ACL, CreateMode, Event, Exception, Id, Permission, State } = zookeeper;
const name = (error) => error.code;
const lost = (error) => error.code === Exception.CONNECTION_LOSS;

/** A session. Each operation `c.do.NAME(...)` is a promise of what the callback gets. */
async function connect(options = {}) {
    const client = zookeeper.createClient(hosts, { sessionTimeout: 10000, spinDelay: 200, retries: 0, ...options });
    const states = [];
    client.on("state", (state) => states.push(state.name));
    const operations = new Proxy({}, {
        get: (_, method) => (...words) => new Promise((resolve, reject) => {
            client[method](...words, (error, ...results) => {
                if (error) {
                    error.results = results[0];
                    reject(error);
                } else {
                    resolve(results.length > 1 ? results : results[0]);
                }
            });
        }),
    });
    client.connect();
    await eventually("a session", () => client.getState() === State.SYNC_CONNECTED);
    return { client, states, do: operations, id: client.getSessionId().toString("hex"), close: () => client.close() };
}

/** Closes and waits for the end of the connection. */
async function close(c) {
    const over = new Promise((resolve) => c.client.once("disconnected", resolve));
    c.close();
    await over;
}

/** Cuts the connection for good, and does not end the session. */
function abandon(c) {
    c.client.connectionManager.findNextServer = () => {};
    c.client.connectionManager.socket.destroy();
}

/** node-zookeeper-client has no sync: a write brings its session's member up to date. */
async function catchUp(c) {
    await insist(() => c.do.mkdirp("/catch-up"), lost);
    await c.do.setData("/catch-up", Buffer.from(c.id));
}

const owner = (stat) => stat.ephemeralOwner.toString("hex");

async function createModes() {
    const c = await connect();
    await c.do.create("/modes");
    const sequential = await c.do.create("/modes/s-", Buffer.from("s"), CreateMode.PERSISTENT_SEQUENTIAL);
    assert.strictEqual(sequential, "/modes/s-0000000000");
    assert.strictEqual(await c.do.create("/modes/p", Buffer.from("p"), CreateMode.PERSISTENT), "/modes/p");
    const ephemeral = await c.do.create("/modes/e", CreateMode.EPHEMERAL);
    const both = await c.do.create("/modes/es-", CreateMode.EPHEMERAL_SEQUENTIAL);
    assert.strictEqual(both, "/modes/es-0000000003");
    assert.strictEqual(owner(await c.do.exists(ephemeral)), c.id);
    await refused(c.do.create("/modes/p"), Exception.NODE_EXISTS, name);
    await refused(c.do.create("/modes/none/child"), Exception.NO_NODE, name);
    await refused(c.do.create("/modes/e/child"), Exception.NO_CHILDREN_FOR_EPHEMERALS, name);
    await close(c);
    const other = await connect();
    await catchUp(other);
    const [children, stat] = await other.do.getChildren("/modes");
    assert.deepStrictEqual(children.sort(), ["p", "s-0000000000"]);
    assert.strictEqual(stat.cversion, 6);
    await close(other);
}

async function data() {
    const c = await connect();
    await c.do.create("/data", Buffer.from("zero"));
    const large = Buffer.alloc(500000, "x");
    assert.strictEqual((await c.do.setData("/data", large, 0)).version, 1);
    await refused(c.do.setData("/data", Buffer.from("two"), 0), Exception.BAD_VERSION, name);
    const [bytes, stat] = await c.do.getData("/data");
    assert(bytes.equals(large) && stat.dataLength === 500000 && stat.version === 1);
    assert.strictEqual(await c.do.exists("/data/none"), null);
    await c.do.mkdirp("/data/a/b/c", Buffer.from("deep"));
    // It lists one level, whatever its name says.
    assert.deepStrictEqual(await c.do.listSubTreeBFS("/data/a/b"), ["/data/a/b", "/data/a/b/c"]);
    await refused(c.do.remove("/data/a"), Exception.NOT_EMPTY, name);
    await refused(c.do.remove("/data/a/b/c", 7), Exception.BAD_VERSION, name);
    await c.do.removeRecursive("/data/a/b");
    await c.do.removeRecursive("/data");
    await refused(c.do.getData("/data"), Exception.NO_NODE, name);
    await refused(c.do.remove("/data"), Exception.NO_NODE, name);
    await close(c);
}

async function transaction() {
    const c = await connect();
    await c.do.mkdirp("/txn/old");
    const commit = (txn) => new Promise((resolve, reject) => {
        txn.commit((error, results) => (error ? reject(Object.assign(error, { results })) : resolve(results)));
    });
    const results = await commit(c.client.transaction()
        .check("/txn", 0)
        .create("/txn/n-", Buffer.from("n"), CreateMode.PERSISTENT_SEQUENTIAL)
        .setData("/txn", Buffer.from("new"), 0)
        .remove("/txn/old"));
    assert.deepStrictEqual(results.map((result) => result.type), [13, 1, 5, 2]);
    assert.strictEqual(results[1].path, "/txn/n-0000000001");
    assert.strictEqual(results[2].stat.version, 1);
    const failed = commit(c.client.transaction()
        .setData("/txn", Buffer.from("lost"), -1)
        .check("/txn", 9)
        .remove("/txn/none"));
    await refused(failed, Exception.BAD_VERSION, name);
    const errors = (await failed.catch((error) => error.results)).map((result) => result.err);
    assert.deepStrictEqual(errors, [0, Exception.BAD_VERSION, -2]);
    assert.strictEqual((await c.do.getData("/txn"))[0].toString(), "new");
    await close(c);
}

async function accessLists() {
    const ann = await connect();
    const stranger = await connect();
    const all = [new ACL(Permission.ALL, new Id("auth", ""))];
    await refused(ann.do.create("/acl", all), Exception.INVALID_ACL, name);
    ann.client.addAuthInfo("digest", Buffer.from("ann:secret"));
    await ann.do.create("/acl", Buffer.from("hers"), all);
    const [acls, stat] = await ann.do.getACL("/acl");
    assert.strictEqual(acls.length, 1);
    assert.strictEqual(acls[0].id.scheme, "digest");
    assert(acls[0].id.id.startsWith("ann:") && acls[0].permission === Permission.ALL && stat.aversion === 0);
    await catchUp(stranger);
    await refused(stranger.do.getData("/acl"), Exception.NO_AUTH, name);
    await refused(stranger.do.setData("/acl", Buffer.from("x")), Exception.NO_AUTH, name);
    await ann.do.setACL("/acl", [new ACL(Permission.READ, new Id("ip", "127.0.0.1")), acls[0]], 0);
    await catchUp(stranger);
    await stranger.do.getData("/acl");
    await refused(stranger.do.setACL("/acl", ACL.OPEN_ACL_UNSAFE), Exception.NO_AUTH, name);
    await refused(ann.do.setACL("/acl", ACL.OPEN_ACL_UNSAFE, 0), Exception.BAD_VERSION, name);
    await close(ann);
    await close(stranger);
}

const fires = async (seen, type, path) => {
    const [event] = await seen.next();
    assert.strictEqual(event.getType(), type);
    assert.strictEqual(event.getPath(), path);
};

async function watches() {
    const c = await connect();
    const other = await connect();
    const [created, changed, children, gone] = [watch(), watch(), watch(), watch()];
    assert.strictEqual(await c.do.exists("/watched", created.callback), null);
    await other.do.create("/watched");
    await fires(created, Event.NODE_CREATED, "/watched");
    await c.do.getData("/watched", changed.callback);
    await c.do.getChildren("/watched", children.callback);
    await other.do.create("/watched/child");
    await fires(children, Event.NODE_CHILDREN_CHANGED, "/watched");
    assert.strictEqual(changed.seen.length, 0);
    await other.do.setData("/watched", Buffer.from("new"));
    await fires(changed, Event.NODE_DATA_CHANGED, "/watched");
    await c.do.exists("/watched/child", gone.callback);
    await other.do.remove("/watched/child");
    await fires(gone, Event.NODE_DELETED, "/watched/child");
    await other.do.setData("/watched", Buffer.from("once"));
    await catchUp(c);
    assert.deepStrictEqual([created, changed, children, gone].map((each) => each.seen.length), [0, 0, 0, 0]);
    await close(c);
    await close(other);
}

async function takeOver() {
    const first = await connect();
    const path = await first.do.create("/taken", CreateMode.EPHEMERAL);
    abandon(first);
    const keys = { sessionId: first.client.getSessionId(), sessionPassword: first.client.getSessionPassword() };
    const second = await connect(keys);
    assert.strictEqual(second.id, first.id);
    assert.strictEqual(owner(await second.do.exists(path)), first.id);
    await close(second);
    const witness = await connect();
    await catchUp(witness);
    assert.strictEqual(await witness.do.exists(path), null);
    await close(witness);

    const wrong = zookeeper.createClient(hosts, { ...keys, sessionPassword: Buffer.alloc(16, 1), sessionTimeout: 10000 });
    const states = [];
    wrong.on("state", (state) => states.push(state));
    wrong.connect();
    await eventually("a refusal", () => states.includes(State.EXPIRED), 30);
    assert(!states.includes(State.SYNC_CONNECTED));
}

async function reconnect() {
    const c = await connect();
    const path = await c.do.create("/reconnect", CreateMode.EPHEMERAL);
    const seen = watch();
    await c.do.getData(path, seen.callback);
    for (let i = 0; i < 3; i++) {
        c.states.length = 0;
        c.client.connectionManager.socket.destroy();
        await eventually("the session again", () => c.states.includes("SYNC_CONNECTED"));
        assert.strictEqual(c.client.getSessionId().toString("hex"), c.id);
    }
    assert.strictEqual(owner(await c.do.exists(path)), c.id);
    await c.do.setData(path, Buffer.from("new"));
    await fires(seen, Event.NODE_DATA_CHANGED, path);
    await close(c);
}

async function sessionEnds() {
    const other = await connect({ sessionTimeout: 20000 });
    for (const end of ["close", "expire"]) {
        const c = await connect({ sessionTimeout: 2000 });
        const path = await c.do.create(`/${end}`, CreateMode.EPHEMERAL);
        const gone = watch();
        await catchUp(other);
        assert(await other.do.exists(path, gone.callback));
        if (end === "close") {
            await close(c);
        } else {
            abandon(c);
        }
        await fires(gone, Event.NODE_DELETED, path);
    }
    await close(other);
}

async function failover() {
    const clients = [];
    for (let i = 0; i < 5; i++) {
        clients.push(await connect({ sessionTimeout: 30000 }));
    }
    await clients[0].do.create("/failover", Buffer.from("0"));
    for (const c of clients) {
        c.path = await c.do.create("/failover/m-", CreateMode.EPHEMERAL_SEQUENTIAL);
        c.seen = watch();
        await c.do.getData("/failover", c.seen.callback);
    }
    await failOver();
    for (const c of clients) {
        const stat = await insist(() => c.do.exists(c.path), lost);
        assert(stat && owner(stat) === c.id, `${c.path} is not ${c.id}'s`);
        assert.strictEqual(c.client.getSessionId().toString("hex"), c.id);
        assert.strictEqual(c.seen.seen.length, 0);
    }
    await insist(() => clients[0].do.setData("/failover", Buffer.from("1")), lost);
    for (const c of clients) {
        await fires(c.seen, Event.NODE_DATA_CHANGED, "/failover");
        await close(c);
    }
}

async function counter() {
    const c = await connect({ sessionTimeout: 30000 });
    await c.do.create("/counter", Buffer.from("0"));
    let acknowledged = 0;
    let open = 0;
    let going = true;
    const adding = (async () => {
        while (going) {
            try {
                const [bytes, stat] = await c.do.getData("/counter");
                await c.do.setData("/counter", Buffer.from(String(Number(bytes) + 1)), stat.version).catch((error) => {
                    open += lost(error);
                    throw error;
                });
                acknowledged += 1;
            } catch (error) {
                if (!lost(error) && error.code !== Exception.BAD_VERSION) {
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
    const [bytes, stat] = await c.do.getData("/counter");
    const value = Number(bytes);
    assert(value >= acknowledged && value <= acknowledged + open, `${value}: ${acknowledged} acknowledged, ${open} open`);
    assert.strictEqual(stat.version, value);
    await close(c);
}

main(async () => {
    await step("create: every mode, and what it leaves behind", createModes);
    await step("data, trees, versions", data);
    await step("transaction: all or nothing, with the reason of each part", transaction);
    await step("access lists: digest, address, and an unproven identity", accessLists);
    await step("watches: creation, data, children, deletion, each once", watches);
    await step("session: taken over by its id and password, and refused with a wrong one", takeOver);
    await step("session: the same one on new connections, with its watches", reconnect);
    await step("session: its ephemerals go when it is closed, and when it expires", sessionEnds);
    await step("failover: sessions, ephemerals and watches live on", failover);
    await step("failover: a counter that is added to all the while", counter);
});
