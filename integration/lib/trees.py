"""What each member of an ensemble holds, compared node by node."""

from integration.lib.zkwire import OP, read

# Their Stat or data are a member's own, or lazily kept, on a genuine server.
NOT_COMPARED = ("/zookeeper",)


def dump(conn, root="/"):
    """Path → (data, Stat) of everything below `root`, as this member holds it after a sync."""
    conn.sync("/")
    found, level = {}, [root]
    while level:
        requests = []
        for path in level:
            requests += [(OP.GET_DATA, read(path)), (OP.GET_CHILDREN, read(path))]
        replies = conn.pipeline(requests, window=200)
        deeper = []
        for path, data, children in zip(level, replies[::2], replies[1::2], strict=True):
            if data.err or children.err:
                continue  # deleted in between
            reader = data.reader()
            found[path] = (reader.buffer(), reader.stat())
            reader = children.reader()
            names = reader.vector(reader.ustring)
            below = [f"{path.rstrip('/')}/{name}" for name in sorted(names)]
            deeper += [child for child in below if not child.startswith(NOT_COMPARED)]
        level = deeper
    return found


def differences(ensemble, root="/"):
    """Lines that say where members differ; empty when all hold the same. Nothing may be written meanwhile."""
    held = {}
    for member in ensemble:
        with member.connect_soon() as conn:
            held[member] = dump(conn, root)
    first, *others = held
    lines = []
    for other in others:
        for path in sorted(held[first].keys() | held[other].keys()):
            one, two = held[first].get(path), held[other].get(path)
            if one != two:
                lines.append(f"{path}: {first} has {one}, {other} has {two}")
    return lines


def assert_same(ensemble, root="/"):
    found = differences(ensemble, root)
    assert not found, f"members differ in {len(found)} nodes:\n" + "\n".join(found[:10])
