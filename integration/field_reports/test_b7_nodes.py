"""Ephemeral, TTL and container nodes."""

import time

import pytest

from integration.lib.zkwire import ERR, EV, FLAG, OP, Conn, create_ttl, eventually, expect


def test_B77_a_parent_is_empty_once_its_ephemerals_have_expired(connect, root):
    c, owner = connect(), connect(timeout=1000)
    c.create(f"{root}/foo")
    owner.create(f"{root}/foo/bar", flags=FLAG.EPHEMERAL)
    with expect(ERR.NOT_EMPTY):
        c.delete(f"{root}/foo")
    owner.drop()
    eventually(lambda: c.exists(f"{root}/foo/bar") is None, 20, "expiry")
    assert c.exists(f"{root}/foo").num_children == 0
    c.delete(f"{root}/foo")


def test_B79_session_ids_stay_clear_of_the_marks(own_server, long):
    server = own_server()
    seen, opened = set(), []
    for index in range(10_000 if long else 500):
        conn = Conn(server.port)
        opened.append(conn)
        assert conn.session not in seen and conn.session != 0
        assert (conn.session >> 56) & 0xFF not in (0x80, 0xFF)
        seen.add(conn.session)
        stat = conn.create2(f"/e{index}", flags=FLAG.EPHEMERAL)[1]
        assert stat.ephemeral_owner == conn.session
    c = opened[0]
    assert c.create_ttl("/t", 60_000)[1].ephemeral_owner == 0
    assert c.create_container("/c")[1].ephemeral_owner == 0
    assert c.exists("/t").ephemeral_owner == c.exists("/c").ephemeral_owner == 0
    for conn in opened:
        conn.close()


def test_B80_a_ttl_node_goes_in_one_transaction_and_is_told_once(connect, root):
    c, watcher = connect(), connect()
    c.create_ttl(f"{root}/t", 700, b"x")
    start = time.monotonic()
    watcher.get(f"{root}/t", watch=True)
    watcher.children(root, watch=True)
    eventually(lambda: c.exists(f"{root}/t") is None, 20, "removal of the node")
    assert time.monotonic() - start > 0.6
    watcher.sync()
    assert [(event.type, event.path) for event in watcher.events] == [(EV.DELETED, f"{root}/t"), (EV.CHILD, root)]
    assert {event.zxid for event in watcher.events} <= {c.exists(root).pzxid, -1}


def test_B80_what_keeps_a_ttl_node(connect, root):
    c = connect()
    c.create_ttl(f"{root}/parent", 500)
    c.create(f"{root}/parent/child")
    c.create_ttl(f"{root}/touched", 1500)
    until = time.monotonic() + 3.5
    while time.monotonic() < until:
        c.set(f"{root}/touched", b"x")
        time.sleep(0.2)
    assert c.exists(f"{root}/touched"), "setData starts the time anew"
    assert c.exists(f"{root}/parent"), "a node with children stays"
    c.delete(f"{root}/parent/child")
    eventually(lambda: c.exists(f"{root}/parent") is None, 20, "removal of the emptied node")


@pytest.mark.parametrize("ttl", [0, -1, 1 << 40, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("flags", [FLAG.TTL, FLAG.TTL_SEQUENTIAL])
def test_B82_a_bad_ttl_is_refused(connect, root, ttl, flags):
    c = connect()
    assert c.call(OP.CREATE_TTL, create_ttl(f"{root}/n", ttl, flags=flags)).err == ERR.BAD_ARGUMENTS
    assert c.create(f"{root}/still-alive")


def test_B82_the_largest_ttl(connect, root):
    c = connect()
    assert c.create_ttl(f"{root}/n", (1 << 40) - 1)[0] == f"{root}/n"
    assert c.create_ttl(f"{root}/s", 1000, flags=FLAG.TTL_SEQUENTIAL)[0] == f"{root}/s0000000001"


def test_B83_a_container_goes_after_its_last_child(connect, root):
    c, watcher = connect(), connect()
    c.create_container(f"{root}/c")
    c.create(f"{root}/c/child")
    watcher.exists(f"{root}/c", watch=True)
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        assert c.exists(f"{root}/c"), "a container with a child was removed"
        time.sleep(0.1)
    c.delete(f"{root}/c/child")
    eventually(lambda: c.exists(f"{root}/c") is None, 20, "removal of the emptied container")
    assert watcher.event()[:3] == (EV.DELETED, 3, f"{root}/c")


def test_B83_a_container_that_was_never_used_gets_a_grace_period(connect, root):
    c = connect()
    c.create_container(f"{root}/c")
    start = time.monotonic()
    eventually(lambda: c.exists(f"{root}/c") is None, 30, "removal of the unused container")
    assert time.monotonic() - start > 3.5


def test_B83_children_race_with_the_collector(connect, root, long):
    """A container is never removed with a child in it, and a create in it either works or says that it is gone."""
    c = connect()
    path = f"{root}/c"
    until = time.monotonic() + (30 if long else 4)
    outcomes = set()
    while time.monotonic() < until:
        if c.exists(path) is None:
            c.create_container(path)
        try:
            c.create(f"{path}/child")
        except Exception as error:
            assert error.code == ERR.NO_NODE
            outcomes.add("gone")
            continue
        outcomes.add("created")
        assert c.exists(path), "removed with a child"
        c.delete(f"{path}/child")
    assert "created" in outcomes


def test_ephemerals_have_no_children(connect, root):
    c = connect()
    c.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    with expect(ERR.NO_CHILDREN_FOR_EPHEMERALS):
        c.create(f"{root}/e/c")


def test_flags_of_the_wrong_operation(connect, root):
    c = connect()
    assert c.create2(f"{root}/plain", flags=FLAG.CONTAINER)[1].ephemeral_owner == 0
    for flags in (FLAG.TTL, FLAG.TTL_SEQUENTIAL, 7, -1, 1 << 30):
        with expect(ERR.BAD_ARGUMENTS):
            c.create(f"{root}/n", flags=flags)
    # A container by operation, whatever the flags say.
    assert c.create2(f"{root}/c", flags=FLAG.EPHEMERAL, op=OP.CREATE_CONTAINER)[1].ephemeral_owner == 0
