"""multi."""

from integration.lib.zkwire import ERR, EV, FLAG, OP, Conn, check, create, delete, multi, results, set_data


def test_B37_a_failed_multi_fires_nothing(connect, root):
    c = connect()
    c.get(root, watch=True)
    failed = c.multi((OP.SET_DATA, set_data(root, b"x")), (OP.CHECK, check(root, 99)))
    assert [entry.err for entry in failed] == [0, ERR.BAD_VERSION]
    assert c.taken_events() == []
    c.set(root, b"y")
    c.set(root, b"z")
    assert c.taken_events() == [(EV.CHANGED, root)]


def test_B38_a_successful_multi_fires_what_the_single_operations_fire(connect, root):
    def operations(base):
        return (
            (OP.SET_DATA, set_data(base, b"x")), (OP.CREATE, create(f"{base}/c")), (OP.DELETE, delete(f"{base}/c")),
        )

    seen = {}
    for name in ("single", "multi"):
        c, base = connect(), f"{root}/{name}"
        c.create(base)
        c.add_watch(base)
        watcher = connect()
        watcher.get(base, watch=True)
        watcher.children(base, watch=True)
        watcher.exists(f"{base}/c", watch=True)
        if name == "multi":
            assert [entry.err for entry in c.multi(*operations(base))] == [0, 0, 0]
        else:
            for op, body in operations(base):
                c.call(op, body).ok()
        seen[name] = [
            (kind, path.removeprefix(base)) for conn in (c, watcher) for kind, path in conn.taken_events()
        ]
    assert seen["multi"] == seen["single"]
    assert seen["multi"] == [
        (EV.CHANGED, ""), (EV.CHILD, ""), (EV.CHILD, ""), (EV.CHANGED, ""), (EV.CREATED, "/c"), (EV.CHILD, ""),
    ]


def test_B38_events_of_a_multi_carry_its_zxid_and_precede_its_reply(connect, root):
    c = connect()
    c.add_watch(root, recursive=True)
    reply = c.call(OP.MULTI, multi((OP.CREATE, create(f"{root}/a")), (OP.CREATE, create(f"{root}/b"))))
    assert [(event.type, event.path) for event in c.events] == [(1, f"{root}/a"), (1, f"{root}/b")]
    assert {event.zxid for event in c.events} <= {reply.zxid, -1}
    assert c.exists(f"{root}/a").czxid == c.exists(f"{root}/b").czxid == reply.zxid


def test_B40_layout_of_a_failed_multi(connect, root):
    c = connect()
    before = c.sync("/") and c.last_zxid
    stat = c.exists(root)
    reply = c.call(
        OP.MULTI,
        multi(
            (OP.CREATE, create(f"{root}/a")), (OP.DELETE, delete(f"{root}/missing")),
            (OP.SET_DATA, set_data(root, b"x")),
        ),
    )
    assert (reply.err, reply.zxid) == (ERR.OK, before + 1)
    error = "ffffffff 00 {0} {0}".format
    assert reply.body == bytes.fromhex(
        error("00000000") + error("ffffff9b") + error("fffffffe") + "ffffffff 01 ffffffff"
    )
    assert c.exists(root) == stat
    assert c.children(root) == []


def test_B41_create2_in_a_multi_keeps_its_stat(connect, root):
    reply = connect().call(OP.MULTI, multi((OP.CREATE2, create(f"{root}/a", b"123"))))
    (entry,) = results(reply)
    assert (entry.type, entry.path) == (OP.CREATE2, f"{root}/a")
    assert entry.stat.czxid == reply.zxid
    assert entry.stat.data_length == 3


def test_B43_both_events_of_one_multi_survive_a_cut_between_them(connect, root):
    watcher, writer = connect(), connect()
    paths = [f"{root}/a", f"{root}/b"]
    for path in paths:
        writer.create(path)
        watcher.get(path, watch=True)
    zxid = writer.call(OP.MULTI, multi(*((OP.SET_DATA, set_data(path, b"x")) for path in paths))).zxid
    first = watcher.event()
    assert first.path in paths
    watcher.drop()
    again = watcher.resume(last_zxid=zxid - 1)
    again.set_watches(zxid - 1, data=paths)
    assert sorted((event.type, event.path) for event in again.events) == [(3, path) for path in paths]
    again.close()


def test_multi_sees_its_own_earlier_operations(connect, root):
    c = connect()
    done = c.multi(
        (OP.CREATE, create(f"{root}/t")), (OP.CREATE, create(f"{root}/t/u")),
        (OP.SET_DATA, set_data(f"{root}/t", b"1", 0)), (OP.CHECK, check(f"{root}/t", 1)),
        (OP.DELETE, delete(f"{root}/t/u")), (OP.DELETE, delete(f"{root}/t", 1)),
    )
    assert [entry.err for entry in done] == [0] * 6
    ephemeral_parent = c.multi(
        (OP.CREATE, create(f"{root}/e", flags=FLAG.EPHEMERAL)), (OP.CREATE, create(f"{root}/e/x"))
    )
    assert [entry.err for entry in ephemeral_parent] == [0, ERR.NO_CHILDREN_FOR_EPHEMERALS]
    numbered = (OP.CREATE, create(f"{root}/s", flags=FLAG.SEQUENTIAL))
    c.multi(numbered, (OP.CHECK, check(root, 77)))  # burns no number
    first, second = (int(entry.path[-10:]) for entry in c.multi(numbered, numbered))
    assert (first, second) == (1, 2)


def test_empty_multi_takes_a_zxid(connect):
    c = connect()
    before = c.sync("/") and c.last_zxid
    reply = c.call(OP.MULTI, multi())
    assert (reply.err, reply.zxid, reply.body.hex()) == (0, before + 1, "ffffffff01ffffffff")


def test_B44_a_multi_is_whole_after_a_crash(own_server, long):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/a")
        c.create("/b")
    for round_ in range(20 if long else 3):
        c = Conn(server.port)
        operations = tuple((OP.SET_DATA, set_data(path, b"%d" % round_)) for path in ("/a", "/b"))
        for _ in range(50):
            c.send(OP.MULTI, multi(*operations))
        acknowledged = sum(1 for _ in range(10 * round_ % 50) if c.reply().err == 0)
        server.restart(hard=True)
        with Conn(server.port) as after:
            (a, stat), (b, other) = after.get("/a"), after.get("/b")
            assert a == b
            assert stat.version == other.version >= acknowledged
