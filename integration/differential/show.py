"""Steps and packets as short lines for a person."""

from integration.differential import ops

STAT_ORDER = ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "aversion", "ephemeralOwner",
              "dataLength", "numChildren")


def value(item):
    if isinstance(item, dict) and "czxid" in item:
        return "stat(" + " ".join(f"{name}={item[name]}" for name in STAT_ORDER) + ")"
    if isinstance(item, dict) and set(item) == {"perms", "scheme", "id"}:
        return f"{item['perms']}:{item['scheme']}:{item['id']!r}"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{name}: {value(inner)}" for name, inner in item.items()) + "}"
    if isinstance(item, list):
        return "[" + ", ".join(value(inner) for inner in item) + "]"
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], int):
        return f"{ops.name(item[0])}{value(item[1])}"
    text = repr(item)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(item)})"


def request(item):
    mangle = f" mangled {value(item['mangle'])}" if item.get("mangle") else ""
    return f"{ops.name(item['op'])} xid={item['xid']} {value(item['fields'])}{mangle}"


def step(item):
    """One line, more when the step has several requests."""
    where = "" if item["slot"] is None else f" [{item['slot']}]"
    head = f"{item['kind']}{where}"
    if "connect" in item:
        head += " " + value(item["connect"])
    if "bytes" in item:
        head += " " + value(item["bytes"])
    if "path" in item:
        head += " " + item["path"]
    lines = [request(r) for r in item.get("requests", [])]
    if len(lines) == 1 and item["kind"] == "requests":
        return f"{where.strip()} {lines[0]}"
    return "\n".join([head, *(f"      {line}" for line in lines)])


def packet(item):
    if item is None:
        return "nothing"
    if item["kind"] == "event":
        body = item["body"]
        return f"event {ops.EVENTS.get(body['type'], body['type'])} {body['path']!r} state={body['state']} zxid={item['zxid']}"
    if item["kind"] == "reply":
        err = f"{item['err']} {ops.ERRORS.get(item['err'], '')}".strip()
        rest = f" and {value(item['rest'])} behind" if item.get("rest") else ""
        name = "?" if item["op"] is None else ops.name(item["op"])
        return f"reply {name} xid={item['xid']} zxid={item['zxid']} err={err} {value(item['body'])}{rest}"
    return f"{item['kind']} " + " ".join(f"{k}={value(v)}" for k, v in item.items() if k != "kind")
