"""Asking an AdminServer, and the shape of its answers."""

import http.client
import json

HOST = "127.0.0.1"
COMMANDS = """configuration connection_stat_reset connections dirs dump environment get_trace_mask hash initial_configuration
is_read_only last_snapshot leader monitor observer_connection_stat_reset observers ruok server_stats set_trace_mask
stat_reset stats system_properties voting_view watch_summary watches watches_by_path zabstate""".split()
# Maps whose keys are data: ids, paths, names of figures.
OPEN_MAPS = {
    "expiry_time_to_session_ids",
    "session_id_to_ephemeral_paths",
    "session_id_to_watched_paths",
    "path_to_session_ids",
    "current_config",
}


class Answer:
    """Status, headers (names in lower case) and body of one answer."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


def admin_cfg(port):
    return {"admin.enableServer": "true", "admin.serverPort": str(port), "admin.serverAddress": HOST}


def ask(port, path, method="GET", body=None, headers=None, timeout=20.0, context=None):
    if context:
        connection = http.client.HTTPSConnection(HOST, port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def command(port, name, **options):
    return ask(port, f"/commands/{name}", **options)


def pretty(value, indent=0):
    """JSON as Jackson prints it."""
    inner = "  " * (indent + 1)
    if isinstance(value, dict):
        if not value:
            return "{ }"
        lines = [f"{inner}{json.dumps(key)} : {pretty(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * indent + "}"
    if isinstance(value, list):
        return "[ " + ", ".join(pretty(item, indent) for item in value) + " ]" if value else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def shape(value, name=None):
    """Keys in order and types of values; of a list or a map of data one element stands for all."""
    if isinstance(value, dict):
        if name in OPEN_MAPS:
            return {"*": next((shape(item) for item in value.values()), None)}
        return {key: shape(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


def described(answer):
    """What is to be the same for each server in the same state."""
    value = answer.json
    return {
        "status": answer.status,
        "content_type": answer.headers.get("content-type"),
        "command": value["command"],
        "error": value["error"],
        "shape": shape(value),
    }
