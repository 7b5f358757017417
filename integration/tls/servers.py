"""Servers with TLS, of TARGET's kind."""

import socket
import ssl
import time

from integration.lib.process import free_port
from integration.lib.target import TARGET, build_server
from integration.lib.zkwire import Conn, connect_request
from integration.tls.material import PASSWORD

IS_QUENDA = TARGET == "quenda"


def cfg(material, key_store="keystore.pem", trust_store="truststore.pem", **more):
    """What zoo.cfg says on TLS. A genuine server speaks TLS 1.3 alone unless told otherwise, needs another class, and
    reads changed files when told to."""
    # A genuine server takes a password for the sign that a key in PEM is encrypted.
    password = None if key_store.endswith(".pem") and "encrypted" not in key_store else PASSWORD
    entries = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": material.path(key_store),
        "ssl.keyStore.password": password,
        "ssl.trustStore.location": material.path(trust_store),
        "ssl.trustStore.password": PASSWORD,
        "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
        "client.certReload": "true",
    }
    return {**entries, **{name.replace("__", "."): value for name, value in more.items()}}


def start(folder, entries):
    """A server that serves, with `secure_port` if it has one."""
    for _ in range(3):
        port = free_port()
        server = build_server(folder, {**entries, "secureClientPort": str(port)}, heap="256m")
        try:
            server.start()
        except Exception:
            if "in use" not in server.log_tail():
                raise
            continue
        server.secure_port = port
        # A genuine server opens it behind the other one.
        soon(lambda: is_open(port))
        return server
    raise AssertionError("no free port")


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except ConnectionError:
        return False


def context(material, client="client", version=None, verify=True):
    """What Python's ssl needs to be the client of this name, or nobody."""
    it = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    it.load_verify_locations(material.path("ca.pem"))
    it.check_hostname = verify
    if not verify:
        it.verify_mode = ssl.CERT_NONE
    if client:
        it.load_cert_chain(material.path(f"{client}.pem"), material.path(f"{client}.key"))
    if version:
        it.minimum_version = it.maximum_version = version
    return it


def connect(port, context, seconds=20.0):
    plain = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    try:
        return context.wrap_socket(plain, server_hostname="localhost")
    except BaseException:
        plain.close()
        raise


def word(port, context, text):
    """The whole answer to a four-letter word."""
    with connect(port, context) as sock:
        sock.sendall(text.encode())
        return read_to_end(sock).decode()


def read_to_end(sock):
    pieces = []
    while True:
        try:
            piece = sock.recv(65536)
        except (ssl.SSLEOFError, ConnectionError):
            piece = b""
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def is_let_in(port, context):
    """Whether a client gets a word answered; in TLS 1.3 it learns only then that its certificate was refused."""
    try:
        return word(port, context, "ruok") == "imok"
    except OSError:
        return False


class SecureConn(Conn):
    """A raw connection over TLS that holds a session."""

    def __init__(self, port, context, **options):
        super().__init__(port, handshake=False, **options)
        self.sock = context.wrap_socket(self.sock, server_hostname="localhost")
        self.sock.sendall(connect_request(self.timeout))
        self.finish_handshake()


def soon(condition, seconds=20.0):
    """Waits until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)
