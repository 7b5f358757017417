"""aiozk: all of its client and all of its recipes, with several clients, while a server is lost once."""

import asyncio
import datetime
import sys

from aiozk import ACL, ZKClient, exc
from aiozk.states import States
from steps import PATIENCE_SECONDS, ask, failures, told

HOSTS, MEMBERS = sys.argv[1], int(sys.argv[2])
ROOT = "/aiozk"


class Clients:
    """Three clients that see one tree, in one event loop over all steps."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.all = []

    def run(self, step):
        self.loop.run_until_complete(asyncio.wait_for(step, 3 * PATIENCE_SECONDS))

    async def start(self):
        first = ZKClient(HOSTS, session_timeout=20)
        await first.start()
        await first.ensure_path(ROOT)
        await first.close()
        self.all = [ZKClient(HOSTS, chroot=ROOT, session_timeout=20) for _ in range(3)]
        for client in self.all:
            await client.start()

    async def close(self):
        for client in self.all:
            await client.close()


async def becomes(condition, what):
    """Waits until the coroutine function says yes; a lost connection is a no."""
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        try:
            if await condition():
                return
        except (exc.ConnectError, exc.SessionLost, exc.TimeoutError):
            pass
        assert asyncio.get_running_loop().time() < end, f"never: {what}"
        await asyncio.sleep(0.02)


async def raises(error, call):
    try:
        await call
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


async def nodes(one, two, _):
    assert await one.create("/node", "data") == "/node"
    assert await one.get_data("/node") == b"data"
    data, stat = await one.get("/node")
    assert (data, stat.version, stat.data_length) == (b"data", 0, 4)
    await one.set("/node", "again", 0)
    await raises(exc.BadVersion, one.set("/node", "never", 0))
    await raises(exc.NodeExists, one.create("/node"))
    await raises(exc.NoNode, one.get("/none"))
    assert await one.create("/node/s-", sequential=True) == "/node/s-0000000000"
    await one.create("/node/e", ephemeral=True)
    await raises(exc.NoChildrenForEphemerals, one.create("/node/e/x"))
    await one.create("/node/c", container=True)
    assert sorted(await one.get_children("/node")) == ["c", "e", "s-0000000000"]
    await raises(exc.NotEmpty, one.delete("/node"))
    await becomes(lambda: two.exists("/node/e"), "the ephemeral at another client")
    await one.set_data("/node", "forced", force=True)
    await one.ensure_path("/node/a/b/c")
    await one.deleteall("/node")
    assert not await one.exists("/node")


async def access(one, *_):
    await one.create("/acl", acl=[ACL.make("world", "anyone", read=True, admin=True)])
    await raises(exc.NoAuth, one.set_data("/acl", "x", force=True))
    assert [entry.id.scheme for entry in await one.get_acl("/acl")] == ["world"]
    await one.set_acl("/acl", [ACL.make("world", "anyone", read=True, write=True, create=True, delete=True, admin=True)])
    await one.set_data("/acl", "x", force=True)
    await raises(exc.InvalidACL, one.create("/bad", acl=[ACL.make("nonsense", "x", read=True)]))


async def transactions(one, *_):
    await one.create("/txn")
    transaction = one.begin_transaction()
    transaction.create("/txn/a", "1")
    transaction.set_data("/txn", "2")
    transaction.check_version("/txn", 1)
    result = await transaction.commit()
    assert result and result.created == {"/txn/a"} and result.updated == {"/txn"} and result.checked == {"/txn"}
    try:
        async with one.begin_transaction() as transaction:
            transaction.delete("/txn/a")
            transaction.check_version("/txn", 77)
    except exc.TransactionFailed:
        pass
    assert await one.exists("/txn/a")


async def watches(one, two, _):
    from aiozk import WatchEvent
    await one.create("/watch")
    await becomes(lambda: two.exists("/watch"), "the node at the other client")
    changed = two.wait_for_events([WatchEvent.DATA_CHANGED], "/watch")
    await two.get_data("/watch", watch=True)
    await one.set_data("/watch", "x", force=True)
    await asyncio.wait_for(changed, PATIENCE_SECONDS)
    grown = two.wait_for_events([WatchEvent.CHILDREN_CHANGED], "/watch")
    await two.get_children("/watch", watch=True)
    await one.create("/watch/a")
    await asyncio.wait_for(grown, PATIENCE_SECONDS)
    made = two.wait_for_events([WatchEvent.CREATED], "/watch/b")
    await two.exists("/watch/b", watch=True)
    await one.create("/watch/b")
    await asyncio.wait_for(made, PATIENCE_SECONDS)
    gone = two.wait_for_events([WatchEvent.DELETED], "/watch/b")
    await two.exists("/watch/b", watch=True)
    await one.delete("/watch/b")
    await asyncio.wait_for(gone, PATIENCE_SECONDS)


async def locks(*clients):
    inside, most, rounds = 0, 0, 0

    async def worker(client):
        nonlocal inside, most, rounds
        for _ in range(5):
            async with client.recipes.Lock("/lock"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.005)
                inside -= 1
                rounds += 1

    await asyncio.gather(*map(worker, clients))
    assert (most, rounds) == (1, 5 * len(clients)), (most, rounds)
    async with clients[0].recipes.Lock("/lock"):
        await raises(exc.TimeoutError, clients[1].recipes.Lock("/lock").acquire(timeout=0.3))


async def shared_locks(one, two, three):
    first, second, third = (client.recipes.SharedLock("/shared") for client in (one, two, three))
    async with first.reader_lock, second.reader_lock:
        await raises(exc.TimeoutError, third.writer_lock.acquire(timeout=0.3))
    async with third.writer_lock:
        await raises(exc.TimeoutError, first.reader_lock.acquire(timeout=0.3))


async def barriers(one, two, three):
    await one.recipes.Barrier("/barrier").create()
    await becomes(lambda: two.exists("/barrier"), "the barrier at another client")
    waiting = asyncio.ensure_future(two.recipes.Barrier("/barrier").wait(timeout=PATIENCE_SECONDS))
    await raises(exc.TimeoutError, one.recipes.Barrier("/barrier").wait(timeout=0.2))
    assert not waiting.done()
    await one.recipes.Barrier("/barrier").lift()
    await waiting
    doubles = [client.recipes.DoubleBarrier("/double", 3) for client in (one, two, three)]
    early = asyncio.ensure_future(doubles[0].enter(timeout=PATIENCE_SECONDS))
    await asyncio.sleep(0.2)
    assert not early.done()
    await asyncio.gather(early, *(double.enter(timeout=PATIENCE_SECONDS) for double in doubles[1:]))
    await asyncio.gather(*(double.leave(timeout=PATIENCE_SECONDS) for double in doubles))


async def counters(*clients):
    counters = [client.recipes.Counter("/counter") for client in clients]
    for counter in counters:
        await counter.start()
    await asyncio.gather(*(counter.incr() for counter in counters for _ in range(5)))
    await asyncio.gather(*(counter.decr() for counter in counters))
    assert int(await clients[0].get_data("/counter")) == 4 * len(clients)
    for counter in counters:
        counter.stop()


async def elections(one, two, _):
    first, second = one.recipes.LeaderElection("/election"), two.recipes.LeaderElection("/election")
    await first.volunteer()
    await first.wait_for_leadership(timeout=PATIENCE_SECONDS)
    await second.volunteer()
    assert not second.has_leadership
    await first.resign()
    await second.wait_for_leadership(timeout=PATIENCE_SECONDS)
    await second.resign()


async def leases(one, two, _):
    first, second = one.recipes.Lease("/lease"), two.recipes.Lease("/lease")
    await one.ensure_path("/lease")
    assert await first.obtain(datetime.timedelta(seconds=60))
    await becomes(lambda: two.get_children("/lease"), "the lease at another client")
    assert not await second.obtain(datetime.timedelta(seconds=60))
    await first.release()

    async def free():
        return await second.obtain(datetime.timedelta(seconds=60))

    await becomes(free, "the lease for the other one")
    await second.release()


async def parties(one, two, _):
    first, second = one.recipes.Party("/party", "one"), two.recipes.Party("/party", "two")
    await first.join()
    await second.join()

    async def members(party, names):
        return sorted(party.members) == names

    await becomes(lambda: members(first, ["one", "two"]), "both members at the first")
    await second.leave()
    await becomes(lambda: members(first, ["one"]), "the first alone")
    await first.leave()


async def tree_caches(one, two, _):
    await one.ensure_path("/cache/a")
    await becomes(lambda: two.exists("/cache/a"), "the node at another client")
    cache = two.recipes.TreeCache("/cache")
    await cache.start()
    await one.set_data("/cache/a", "1", force=True)
    await one.create("/cache/b", "2")

    async def same():
        return {"a", "b"} <= set(cache.root.children) and cache.a.value == b"1" and cache.b.value == b"2"

    await becomes(same, "the cache follows")
    await cache.stop()


async def watchers(one, two, _):
    await one.create("/watched", "0")
    await becomes(lambda: two.exists("/watched"), "the node at another client")
    seen, names = [], []
    data, children = two.recipes.DataWatcher(), two.recipes.ChildrenWatcher()
    data.add_callback("/watched", lambda value: _note(seen, value))
    children.add_callback("/watched", lambda value: _note(names, value))

    async def has(where, value):
        return where and where[-1] == value

    await becomes(lambda: has(seen, b"0"), "the first value")
    for number in (b"1", b"2"):
        await one.set_data("/watched", number, force=True)
        await becomes(lambda number=number: has(seen, number), "the next value")
    await one.create("/watched/kid")
    await becomes(lambda: has(names, ["kid"]), "the child")


async def _note(where, value):
    where.append(value)


async def a_lost_server(one, two, three):
    """A session that meets a server without a leader is given up by aiozk itself, so new ones may be in their place."""
    await one.create("/later")
    await becomes(lambda: two.exists("/later"), "the node at another client")
    seen = []
    data = two.recipes.DataWatcher()
    data.add_callback("/later", lambda value: _note(seen, value))
    await asyncio.get_running_loop().run_in_executor(None, ask, "lose")

    async def written():
        await asyncio.wait_for(one.set_data("/later", "behind", force=True), PATIENCE_SECONDS)
        return True

    async def followed():
        return seen and seen[-1] == b"behind"

    await becomes(written, "a write")
    await becomes(followed, "the watcher follows")
    for client in (one, two, three):
        await asyncio.wait_for(client.session.ensure_safe_state(), PATIENCE_SECONDS)
        assert client.session.state == States.CONNECTED
    await asyncio.get_running_loop().run_in_executor(None, ask, "regain")


def main():
    clients = Clients()
    told("clients start", lambda: clients.run(clients.start()))
    for step in (nodes, access, transactions, watches, locks, shared_locks, barriers, counters, elections, leases,
                 parties, tree_caches, watchers, a_lost_server):
        told(step.__name__.replace("_", " "), lambda step=step: clients.run(step(*clients.all)))
    told("locks once more", lambda: clients.run(locks(*clients.all)))
    told("clients close", lambda: clients.run(clients.close()))
    return 1 if failures else 0


sys.exit(main())
