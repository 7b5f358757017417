"""Records how real clients and a genuine ZooKeeper 3.9.5 exchange SASL tokens, frame by frame, for the tests of the
frontend:

    python3 integration/sasl/goldens/record_clients.py > crates/frontend/tests/golden/sasl_clients.txt
"""

import pathlib
import socket
import struct
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
sys.dont_write_bytecode = True

from kazoo.client import KazooClient  # noqa: E402
from kazoo.protocol.states import KeeperState  # noqa: E402

from integration.lib import target  # noqa: E402
from integration.lib.zkwire import OP, eventually  # noqa: E402
from integration.sasl import java_client, servers  # noqa: E402

USERS = {"bob": "bobsecret", "zo\u00eb": "cl\u00e9"}


class Recorder:
    """Between one client and the server: keeps the frames of both directions."""

    def __init__(self, port):
        self.server = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.frames = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def hosts(self):
        return f"127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server))
            for sign, source, sink in ((">", client, server), ("<", server, client)):
                threading.Thread(target=self._pass, args=(sign, source, sink), daemon=True).start()

    def _pass(self, sign, source, sink):
        pending, first = b"", True
        while True:
            try:
                piece = source.recv(65536)
            except OSError:
                piece = b""
            if not piece:
                sink.close()
                return
            pending += piece
            while len(pending) >= 4 and len(pending) >= 4 + struct.unpack_from(">i", pending)[0]:
                length = struct.unpack_from(">i", pending)[0]
                if not first:
                    self.frames.append((sign, pending[4 : 4 + length]))
                pending, first = pending[4 + length :], False
            sink.sendall(piece)

    def exchange(self):
        """The frames with tokens, and their answers."""
        asked = set()
        for sign, payload in list(self.frames):
            xid, second = struct.unpack_from(">ii", payload)
            if sign == ">" and second == OP.SASL:
                asked.add(xid)
                yield sign, payload
            elif sign == "<" and xid in asked:
                asked.discard(xid)
                yield sign, payload


def kazoo(recorder, user, password):
    states = []
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    client = KazooClient(recorder.hosts, sasl_options=options)
    client.add_listener(lambda _: states.append(client.client_state))
    client.start_async()
    wanted = KeeperState.CONNECTED if password == USERS.get(user) else KeeperState.AUTH_FAILED
    eventually(lambda: wanted in states, 60)
    client.stop()
    client.close()


def java(recorder, user, password):
    with tempfile.TemporaryDirectory() as folder:
        java_client.compiled.cache_clear()
        java_client.client(folder, java_client.jaas_file(folder, user, password), recorder, "read", "/zookeeper")


def main():
    print("# How real clients authenticate at ZooKeeper 3.9.5: the user, then each frame without its length.")
    with tempfile.TemporaryDirectory() as folder:
        server = servers.prepared(pathlib.Path(folder), servers.jaas(USERS), {})
        assert target.TARGET == "genuine", "set TARGET=genuine"
        with server:
            for name, run in (("kazoo", kazoo), ("java", java)):
                for user, password in (("bob", "bobsecret"), ("zo\u00eb", "cl\u00e9"), ("bob", "wrong")):
                    recorder = Recorder(server.port)
                    run(recorder, user, password)
                    print(f"{name} as {user}")
                    for sign, payload in recorder.exchange():
                        print(sign, payload.hex())


main()
