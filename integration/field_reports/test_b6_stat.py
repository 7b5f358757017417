"""Stat fields and versions.

B73 and B74 (overflow of the sequence counter and of the data version) need a prepared state that no client can make in
reasonable time; they are tested where the state machine is.
"""

from integration.lib.zkwire import ERR, FLAG, OP, check, create, delete, expect, set_data


def test_B71_what_moves_a_parents_stat(connect, root):
    c = connect()

    def parent():
        stat = c.exists(root)
        return stat.cversion, stat.num_children, stat.pzxid, stat.version, stat.aversion

    start = c.exists(root)
    assert start.cversion == 0 and start.pzxid == start.czxid == start.mzxid
    child = c.create2(f"{root}/c")[1]
    assert parent() == (1, 1, child.czxid, 0, 0)
    c.set(f"{root}/c", b"x")
    c.set_acl(f"{root}/c", ((31, "world", "anyone"),))
    c.create(f"{root}/c/deeper")
    c.delete(f"{root}/c/deeper")
    assert parent() == (1, 1, child.czxid, 0, 0)
    zxid = c.delete(f"{root}/c")
    assert parent() == (2, 0, zxid, 0, 0)
    c.multi((OP.CREATE, create(f"{root}/a")), (OP.CREATE, create(f"{root}/b")), (OP.DELETE, delete(f"{root}/a")))
    assert parent() == (5, 1, c.last_zxid, 0, 0)
    zxid = c.last_zxid
    for operation in (
        lambda: c.create(f"{root}/b"), lambda: c.delete(f"{root}/none"), lambda: c.set(f"{root}/b", b"x", 7),
    ):
        try:
            operation()
        except Exception as error:  # each is refused, and a refusal moves nothing
            assert hasattr(error, "code")
    assert parent() == (5, 1, zxid, 0, 0)
    after = c.exists(root)
    assert (after.czxid, after.mzxid, after.ctime, after.mtime) == (start.czxid, start.mzxid, start.ctime, start.mtime)


def test_B71_a_session_close_moves_it_as_a_delete_does(connect, root):
    c, owner = connect(), connect()
    for name in "abc":
        owner.create(f"{root}/{name}", flags=FLAG.EPHEMERAL)
    owner.close()
    stat = c.exists(root)
    assert (stat.cversion, stat.num_children) == (6, 0)
    assert stat.pzxid == c.last_zxid


def test_B71_set_and_set_acl_of_the_node_itself(connect, root):
    c = connect()
    before = c.exists(root)
    after = c.set(root, b"123")
    assert (after.version, after.data_length, after.mzxid) == (1, 3, c.last_zxid)
    assert (after.czxid, after.ctime, after.pzxid) == (before.czxid, before.ctime, before.pzxid)
    acl = c.set_acl(root, ((31, "world", "anyone"),))
    assert acl == after._replace(aversion=1)
    for version, error in ((0, ERR.BAD_VERSION), (-2, ERR.BAD_VERSION)):
        with expect(error):
            c.set(root, b"x", version)
        with expect(error):
            c.set_acl(root, ((31, "world", "anyone"),), version)
    assert c.set(root, None, 1).data_length == 0
    assert c.get(root)[0] is None
    c.set(root, b"")
    assert c.get(root)[0] == b""


def test_B76_children_of_leaves_are_an_empty_list(connect, root):
    from integration.lib.zkwire import int32, read

    c = connect()
    assert c.call(OP.GET_CHILDREN, read(root)).body == int32(0)
    c.create(f"{root}/c")
    c.delete(f"{root}/c")
    assert c.call(OP.GET_CHILDREN, read(root)).body == int32(0)
    assert c.call(OP.GET_CHILDREN2, read(root)).body[:4] == int32(0)


def test_sequence_numbers_count_every_create(connect, root):
    c = connect()
    for name in "abc":
        c.create(f"{root}/{name}")
    assert c.create(f"{root}/s-", flags=FLAG.SEQUENTIAL) == f"{root}/s-0000000003"
    c.delete(f"{root}/s-0000000003")
    assert c.create(f"{root}/s-", flags=FLAG.EPHEMERAL_SEQUENTIAL) == f"{root}/s-0000000004"
    assert c.create(f"{root}/", flags=FLAG.SEQUENTIAL) == f"{root}/0000000005"
    with expect(ERR.NODE_EXISTS):
        c.create(f"{root}/a")
    assert c.create(f"{root}/..", flags=FLAG.SEQUENTIAL) == f"{root}/..0000000006"


def test_a_failed_write_takes_a_zxid_and_says_which(connect, root):
    c = connect()
    before = c.sync("/") and c.last_zxid
    replies = [
        c.call(OP.DELETE, delete(f"{root}/none")), c.call(OP.SET_DATA, set_data(root, b"x", 9)),
        c.call(OP.CREATE, create(root)), c.call(OP.DELETE, check(root, 5)),
    ]
    assert [reply.err for reply in replies] == [
        ERR.NO_NODE, ERR.BAD_VERSION, ERR.NODE_EXISTS, ERR.BAD_VERSION,
    ]
    assert [reply.zxid for reply in replies] == [before + 1, before + 2, before + 3, before + 4]
