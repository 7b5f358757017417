"""Watches."""

import pytest

from integration.lib.zkwire import (
    ERR, EV, FLAG, OP, Conn, Event, add_watch, create, eventually, expect, four_letter, read, request, set_data,
)

STANDARD_CHILD, STANDARD_DATA, ANY, PERSISTENT, RECURSIVE = 1, 2, 3, 4, 5


def watch_count(port):
    line = next(line for line in four_letter(port, "mntr").splitlines() if line.startswith("zk_watch_count"))
    return int(line.split()[1])


def test_B46_recursive_events_carry_the_changed_path(connect, root):
    c = connect()
    c.add_watch(root, recursive=True)
    c.create(f"{root}/a")
    c.create(f"{root}/a/b")
    c.set(f"{root}/a/b", b"x")
    c.delete(f"{root}/a/b")
    assert c.taken_events() == [
        (EV.CREATED, f"{root}/a"), (EV.CREATED, f"{root}/a/b"), (EV.CHANGED, f"{root}/a/b"),
        (EV.DELETED, f"{root}/a/b"),
    ]
    everything = connect()
    everything.add_watch("/", recursive=True)
    c.set(f"{root}/a", b"x")
    assert (EV.CHANGED, f"{root}/a") in everything.taken_events()


def test_B47_children_changed_never_comes_from_a_recursive_watch(connect, root):
    c = connect()
    c.create(f"{root}/a")
    c.add_watch(root, recursive=True)
    c.create(f"{root}/a/b")
    c.delete(f"{root}/a/b")
    assert {kind for kind, _ in c.taken_events()} == {EV.CREATED, EV.DELETED}
    c.children(f"{root}/a", watch=True)
    c.create(f"{root}/a/c")
    assert c.taken_events() == [(EV.CREATED, f"{root}/a/c"), (EV.CHILD, f"{root}/a")]


def test_B49_watches_that_fired_are_not_counted(own_server, long):
    server = own_server()
    count = 100_000 if long else 5000
    with Conn(server.port) as watcher, Conn(server.port) as writer:
        writer.create("/n")
        for _ in range(count // 100):
            # Asking again for what is there already must not count twice.
            assert all(not reply.err for reply in watcher.pipeline([(OP.GET_DATA, read("/n", True))] * 50))
            assert watch_count(server.port) == 1
            writer.pipeline([(OP.SET_DATA, set_data("/n", b"x"))] * 2)
            watcher.sync()
            assert len(watcher.events) == 1
            watcher.events.clear()
        assert watch_count(server.port) == 0


def test_B49_watches_on_expired_ephemerals_and_of_gone_sessions_are_not_counted(own_server):
    server = own_server()
    watcher, owner = Conn(server.port), Conn(server.port, timeout=1000)
    paths = [f"/e{index}" for index in range(500)]
    owner.pipeline((OP.CREATE, create(path, flags=FLAG.EPHEMERAL)) for path in paths)
    for op in (OP.GET_DATA, OP.EXISTS, OP.GET_CHILDREN):
        watcher.pipeline((op, read(path, True)) for path in paths)
    assert watch_count(server.port) == 1000  # a data and a child watch on each; exists is the same as data
    owner.drop()
    eventually(lambda: watcher.sync() and len(watcher.events) >= 500, 20, "deletion events")
    assert sorted((event.type, event.path) for event in watcher.events) == sorted((EV.DELETED, path) for path in paths)
    assert watch_count(server.port) == 0
    watcher.add_watch("/", recursive=True)
    watcher.add_watch("/n")
    watcher.exists("/m", watch=True)
    assert watch_count(server.port) >= 3
    watcher.drop()
    eventually(lambda: watch_count(server.port) == 0, 10, "watches of a cut connection gone")


def test_B50_set_watches_restores_every_list(connect, root):
    writer, c = connect(), connect()
    for name in ("data", "child", "persistent", "recursive"):
        writer.create(f"{root}/{name}")
    c.drop()
    c = c.resume()
    reply = c.set_watches(
        writer.sync("/") and writer.last_zxid, data=[f"{root}/data"], exist=[f"{root}/exist"],
        child=[f"{root}/child"], persistent=[f"{root}/persistent"], recursive=[f"{root}/recursive"],
    )
    assert (reply.xid, reply.body) == (-8, b"")
    assert c.taken_events() == []
    writer.set(f"{root}/data", b"x")
    writer.create(f"{root}/exist")
    writer.create(f"{root}/child/c")
    writer.create(f"{root}/persistent/c")
    writer.create(f"{root}/recursive/c")
    assert c.taken_events() == [
        (EV.CHANGED, f"{root}/data"), (EV.CREATED, f"{root}/exist"), (EV.CHILD, f"{root}/child"),
        (EV.CHILD, f"{root}/persistent"), (EV.CREATED, f"{root}/recursive/c"),
    ]
    c.close()


@pytest.mark.parametrize("way", ["delete", "expiry", "close"])
def test_B52_a_child_gone_during_a_disconnect_is_reported(connect, root, way):
    watcher, writer = connect(), connect()
    owner = connect(timeout=1000)
    owner.create(f"{root}/c", flags=FLAG.EPHEMERAL)
    watcher.children(root, watch=True)
    seen = watcher.sync("/") and watcher.last_zxid
    watcher.drop()
    if way == "delete":
        writer.delete(f"{root}/c")
    elif way == "close":
        owner.close()
    else:
        owner.drop()
    eventually(lambda: writer.exists(f"{root}/c") is None, 20, "the child's end")
    again = watcher.resume(last_zxid=seen)
    again.set_watches(seen, child=[root])
    assert [(event.type, event.path) for event in again.events] == [(EV.CHILD, root)]
    assert writer.exists(root).pzxid > seen
    if way == "delete":
        zxid = writer.create(f"{root}/d") and writer.delete(f"{root}/d")
        assert writer.exists(root).pzxid == zxid
    again.close()


def test_B53_set_watches_reports_what_happened_meanwhile(connect, root):
    c = connect()
    c.create(f"{root}/there")
    c.create(f"{root}/quiet")
    now = c.last_zxid
    c.set_watches(
        now, data=[f"{root}/gone", f"{root}/quiet"], exist=[f"{root}/there", f"{root}/later"], child=[f"{root}/gone"]
    )
    assert [(event.type, event.path) for event in c.events] == [
        (EV.DELETED, f"{root}/gone"), (EV.CREATED, f"{root}/there"), (EV.DELETED, f"{root}/gone"),
    ]
    assert {event.zxid for event in c.events} == {-1}
    c.events.clear()
    c.create(f"{root}/gone")  # was reported, so is not registered
    c.set(f"{root}/there", b"x")
    c.set(f"{root}/quiet", b"x")
    c.create(f"{root}/later")
    assert c.taken_events() == [(EV.CHANGED, f"{root}/quiet"), (EV.CREATED, f"{root}/later")]
    reply = c.call(OP.SET_WATCHES, (0).to_bytes(8, "big") + b"\xff" * 12, xid=-8)
    assert reply.err == ERR.MARSHALLING


KINDS = {
    STANDARD_CHILD: lambda c, path: c.children(path, watch=True),
    STANDARD_DATA: lambda c, path: c.get(path, watch=True),
    PERSISTENT: lambda c, path: c.add_watch(path),
    RECURSIVE: lambda c, path: c.add_watch(path, recursive=True),
}


@pytest.mark.parametrize("removed", [STANDARD_CHILD, STANDARD_DATA, ANY, PERSISTENT, RECURSIVE])
def test_B55_remove_watches_removes_only_that_kind(connect, root, removed):
    c = connect()
    with expect(ERR.NO_WATCHER):
        c.remove_watches(root, removed)
    for register in KINDS.values():
        register(c, root)
    c.check_watches(root, removed)
    c.remove_watches(root, removed)
    with expect(ERR.NO_WATCHER):
        c.check_watches(root, removed)
    with expect(ERR.NO_WATCHER):
        c.remove_watches(f"{root}/below", ANY)
    left = set() if removed == ANY else set(KINDS) - {removed}
    for kind in left:
        c.check_watches(root, kind)
    assert c.taken_events() == []  # the server says nothing about removals
    c.set(root, b"x")
    c.create(f"{root}/c")
    wanted = []
    if left & {STANDARD_DATA, PERSISTENT, RECURSIVE}:
        wanted.append((EV.CHANGED, root))
    if RECURSIVE in left:
        wanted.append((EV.CREATED, f"{root}/c"))
    if left & {STANDARD_CHILD, PERSISTENT}:
        wanted.append((EV.CHILD, root))
    assert c.taken_events() == wanted
    left -= {STANDARD_CHILD, STANDARD_DATA}  # used up
    for kind in (STANDARD_CHILD, STANDARD_DATA, PERSISTENT, RECURSIVE):
        assert c.call(OP.CHECK_WATCHES, add_watch(root, kind)).err == (0 if kind in left else ERR.NO_WATCHER)


@pytest.mark.parametrize("registered", list(KINDS))
@pytest.mark.parametrize("asked", [STANDARD_CHILD, STANDARD_DATA, ANY, PERSISTENT, RECURSIVE])
def test_B55_each_kind_answers_to_its_own_name_and_to_any(connect, root, registered, asked):
    c, other = connect(), connect()
    KINDS[registered](c, root)
    found = asked in (registered, ANY)
    assert other.call(OP.CHECK_WATCHES, add_watch(root, asked)).err == ERR.NO_WATCHER
    assert c.call(OP.CHECK_WATCHES, add_watch(root, asked)).err == (ERR.OK if found else ERR.NO_WATCHER)
    assert c.call(OP.REMOVE_WATCHES, add_watch(root, asked)).err == (ERR.OK if found else ERR.NO_WATCHER)
    assert c.call(OP.CHECK_WATCHES, add_watch(root, registered)).err == (ERR.NO_WATCHER if found else ERR.OK)


def test_B55_unknown_kinds(connect, root):
    c = connect()
    for kind in (0, 6, -1):
        assert c.call(OP.REMOVE_WATCHES, add_watch(root, kind)).err == ERR.MARSHALLING
        assert c.call(OP.CHECK_WATCHES, add_watch(root, kind)).err == ERR.MARSHALLING


def test_B56_a_child_watch_gets_no_data_events(connect, root):
    c, path = connect(), f"{root}/p"
    c.create(path)
    c.children(path, watch=True)
    c.set(path, b"x")
    assert c.taken_events() == []
    c.create(f"{path}/c")
    assert c.taken_events() == [(EV.CHILD, path)]
    c.children(path, watch=True)
    c.set(f"{path}/c", b"x")
    assert c.taken_events() == []
    c.delete(f"{path}/c")
    assert c.taken_events() == [(EV.CHILD, path)]
    c.children(path, watch=True)
    c.delete(path)
    assert c.taken_events() == [(EV.DELETED, path)]


def test_B56_one_deletion_is_told_once(connect, root):
    c, path = connect(), f"{root}/p"
    c.create(path)
    c.get(path, watch=True)
    c.exists(path, watch=True)
    c.children(path, watch=True)
    c.delete(path)
    assert c.taken_events() == [(EV.DELETED, path)]


def test_B58_the_event_comes_before_the_new_state(server, connect, root, long):
    reader, writer = connect(), connect()
    for round_ in range(2000 if long else 200):
        value = b"%d" % round_
        reader.get(root, watch=True)
        writer.send(OP.SET_DATA, set_data(root, value))
        seen = None
        while True:
            reader.send_bytes(b"".join(request(xid, OP.GET_DATA, read(root)) for xid in range(1, 6)))
            replies = 0
            while replies < 5:
                message = reader.message()
                if isinstance(message, Event):
                    assert seen is None, "a one-shot watch fired twice"
                    seen = message
                    continue
                replies += 1
                if message.reader().buffer() == value:
                    assert seen is not None, "the new value was seen before its event"
            if seen:
                break
        assert writer.reply().err == 0


def test_B58_own_write_own_watch(connect, root):
    c = connect()
    c.get(root, watch=True)
    c.send(OP.SET_DATA, set_data(root, b"x"))
    assert isinstance(c.message(), Event)
    assert c.reply().err == 0


def test_B59_watches_set_again_after_a_restart_all_fire(own_server):
    server = own_server()
    paths = [f"/n{index}" for index in range(1000)]
    watcher = Conn(server.port)
    watcher.pipeline((OP.CREATE, create(path)) for path in paths)
    watcher.pipeline((OP.GET_DATA, read(path, True)) for path in paths)
    seen = watcher.last_zxid
    server.restart(hard=True)
    with watcher.resume(last_zxid=seen) as again, Conn(server.port) as writer:
        again.set_watches(seen, data=paths)
        assert not again.events
        writer.pipeline((OP.SET_DATA, set_data(path, b"x")) for path in paths)
        assert sorted(again.taken_events()) == sorted((EV.CHANGED, path) for path in paths)


def test_events_are_filtered_by_read_permission(connect, root):
    c, owner = connect(), connect()
    owner.auth("digest", b"o:p")
    own = ((31, "auth", ""),)
    c.add_watch(root, recursive=True)
    c.exists(f"{root}/hidden", watch=True)
    owner.create(f"{root}/hidden", acl=own)
    owner.set(f"{root}/hidden", b"x")
    owner.create(f"{root}/open")
    owner.delete(f"{root}/hidden")
    assert c.taken_events() == [(EV.CREATED, f"{root}/open")]


def test_a_session_close_fires_once_for_a_common_parent(connect, root):
    watcher, owner = connect(), connect()
    for name in "abc":
        owner.create(f"{root}/{name}", flags=FLAG.EPHEMERAL)
    watcher.children(root, watch=True)
    for name in "abc":
        watcher.exists(f"{root}/{name}", watch=True)
    owner.close()
    watcher.sync()
    assert sorted((event.type, event.path) for event in watcher.events) == [
        (EV.DELETED, f"{root}/a"), (EV.DELETED, f"{root}/b"), (EV.DELETED, f"{root}/c"), (EV.CHILD, root),
    ]
    assert len({event.zxid for event in watcher.events}) == 1
