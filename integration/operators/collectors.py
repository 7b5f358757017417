"""How collectors read `mntr`, `stat` and `ruok`, by what is known of their parsers."""

import re

NOT_SERVING = "This ZooKeeper instance is not currently serving requests"
# What collectd's plugin and OpenTelemetry's receiver look for, without `zk_`.
CLASSIC = """avg_latency min_latency max_latency packets_received packets_sent num_alive_connections outstanding_requests
znode_count watch_count ephemerals_count approximate_data_size""".split()
OF_LEADER = "followers synced_followers pending_syncs".split()
OPEN_TELEMETRY = [*CLASSIC, "open_file_descriptor_count", "max_file_descriptor_count", "fsync_threshold_exceed_count"]


def telegraf(answer):
    """Fields and the tag `state`. One line that does not match makes it drop all of them."""
    fields, state = {}, ""
    for line in answer.splitlines():
        match = re.match(r"^zk_(\w[\w.\-]*)\s+([\w.\-]+)", line)
        assert match, f"Telegraf drops the answer for {line!r}"
        name, value = match.groups()
        if name == "server_state":
            state = value
        else:
            fields[name] = int(value) if re.fullmatch(r"[+-]?\d+", value) else value
    return fields, state


def zookeeper_exporter(mntr, ruok):
    """Metrics as the exporter makes them of two words."""
    lines = mntr.splitlines()
    if lines and "is not executed because it is not in the whitelist" in lines[0]:
        return {"zk_up": 0}
    metrics = {"zk_up": 1, "zk_ruok": int(ruok == "imok")}
    if lines and lines[0] == NOT_SERVING:
        return {**metrics, "zk_server_leader": 1}
    for line in lines:
        parts = re.split(r"[\t ]+", line.strip())
        name, value = parts[0].replace("-", "_"), parts[1]
        if name == "zk_server_state":
            metrics["zk_server_leader"] = int(value == "leader")
        elif name == "zk_version":
            metrics[f'zk_version{{version="{value.split("-")[0]}"}}'] = 1
        elif name == "zk_peer_state":
            metrics[f'zk_peer_state{{state="{value}"}}'] = 1
        else:
            # Prometheus takes what it exposes: a name by its rules, and a number.
            assert re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name), line
            metrics[name] = float(value)
    return metrics


def collectd(answer):
    """What fits into its buffer of 4096 bytes, numbers as C's `atol` reads them."""
    found = {}
    for line in answer.encode()[:4096].decode("utf-8", "ignore").splitlines():
        parts = line.split()
        if len(parts) == 2 and parts[0].startswith("zk_"):
            digits = re.match(r"[+-]?\d+", parts[1])
            found.setdefault(parts[0][3:], int(digits[0]) if digits else 0)
    return found


def open_telemetry(answer):
    """Whole numbers alone; other lines are passed over."""
    found = {}
    for line in answer.splitlines():
        match = re.match(r"(^zk_\w+)\s+([\w.\-]+)", line)
        if match and re.fullmatch(r"[+-]?\d+", match[2]):
            found[match[1][3:]] = int(match[2])
    return found


def datadog_stat(answer):
    """`stat` line by line: the order counts, not the names."""
    lines = iter(answer.splitlines())
    version = re.search(r"\d+\.\d+\.\d+", next(lines))
    if version is None:
        return {"mode": "inactive"}
    next(lines)  # the heading of the clients
    clients = 0
    while next(lines).strip():
        clients += 1
    value = lambda: next(lines).split(":", 1)[1].strip()  # noqa: E731
    least, mean, most = value().split("/")
    found = {"clients": clients, "latency": (float(least), float(mean), float(most))}
    for name in ("received", "sent", "connections", "outstanding"):
        found[name] = int(value())
    found["zxid"] = int(value(), 16)
    found["mode"] = value().lower()
    # A leader says something of proposals as well, behind or in front of the count.
    found["nodes"] = int(next(line for line in lines if line.startswith("Node count")).split(":")[1])
    return found


def datadog_mntr(answer):
    """Metrics and the mode: a line in which it finds not just two words is passed over."""
    lines = answer.splitlines()
    if lines[0] == NOT_SERVING:
        return {}, "inactive"
    metrics, mode = {}, "inactive"
    for line in lines[1:]:
        parts = line.split()
        if len(parts) != 2:
            continue
        if parts[0] == "zk_server_state":
            mode = parts[1].lower()
            continue
        name = re.sub("^zk", "zookeeper", parts[0]).replace("_", ".", 1)
        metrics[name] = float(parts[1])
    return metrics, mode
