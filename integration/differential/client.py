"""A bare connection to a server: frames in, frames out, nothing interpreted behind the caller's back."""

import socket
import struct
import time

from integration.differential import jute, ops

HOST = "127.0.0.1"
ZERO_PASSWD = bytes(16)


class Closed(OSError):
    """The server closed the connection."""


class TimedOut(OSError):
    """The server neither answered nor closed in time."""


class Connection:
    """One TCP connection. `timeout` bounds every wait for a frame, in seconds."""

    def __init__(self, port, timeout=20.0):
        self.timeout = timeout
        self.sock = socket.create_connection((HOST, port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.closed = False

    def send(self, data):
        """Sends raw bytes; a connection the server has closed swallows them, the next receive tells."""
        try:
            self.sock.sendall(data)
        except (ConnectionError, BrokenPipeError):
            pass

    def receive(self, timeout=None):
        """The payload of the next frame."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            if len(self.buffer) >= 4:
                (length,) = struct.unpack(">i", self.buffer[:4])
                if len(self.buffer) >= 4 + length:
                    payload, self.buffer = self.buffer[4:4 + length], self.buffer[4 + length:]
                    return payload
            self._fill(deadline)

    def receive_until_closed(self, timeout):
        """All frames up to the close. Raises TimedOut, with the frames in `args[0]`, when it stays open."""
        frames = []
        deadline = time.monotonic() + timeout
        while True:
            try:
                frames.append(self.receive(max(0.0, deadline - time.monotonic())))
            except Closed:
                return frames
            except TimedOut:
                raise TimedOut(frames) from None

    def close(self):
        self.closed = True
        self.sock.close()

    def leave(self):
        """Ends the stream and waits until the server has let go of the connection. ZooKeeper, when it learns late
        of a lost connection, forgets the one that has resumed its session meanwhile."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
            self.receive_until_closed(5.0)
        except OSError:
            pass  # closed already, or never closed: both are as good as left
        self.close()

    def _fill(self, deadline):
        if self.closed:
            raise Closed
        self.sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            piece = self.sock.recv(1 << 20)
        except TimeoutError:
            raise TimedOut from None
        except ConnectionError:
            piece = b""
        if not piece:
            self.close()
            raise Closed
        self.buffer += piece

    def call(self, op, fields, xid=1):
        """Sends one request and returns (events, reply); for set-up and cleaning work."""
        self.send(jute.frame(ops.encode_request(xid, op, fields)))
        events = []
        while True:
            payload = self.receive()
            if payload[:4] == b"\xff\xff\xff\xff":
                events.append(ops.decode_event(payload))
            else:
                return events, ops.decode_reply(op, payload)


def connect_payload(timeout_ms=30000, session_id=0, passwd=ZERO_PASSWD, last_zxid=0, read_only=False, version=0):
    """A ConnectRequest; `read_only` None leaves the optional byte out."""
    payload = jute.encode("ConnectRequest", {
        "protocolVersion": version, "lastZxidSeen": last_zxid, "timeOut": timeout_ms, "sessionId": session_id,
        "passwd": passwd,
    })
    return payload if read_only is None else payload + bytes([int(read_only)])


def decode_connect(payload):
    """A ConnectResponse as a dict; "readOnly" is None when the byte is absent."""
    reader = jute.Reader(payload)
    response = reader.record("ConnectResponse")
    rest = reader.rest()
    response["readOnly"] = rest[0] if rest else None
    if len(rest) > 1:
        response["rest"] = rest[1:]
    return response


def open_session(port, **request):
    """A connection with an established session, and the ConnectResponse."""
    connection = Connection(port)
    connection.send(jute.frame(connect_payload(**request)))
    return connection, decode_connect(connection.receive())


SUPER_AUTH = {"type": 0, "scheme": "digest", "auth": b"super:test"}


def authenticate(connection, auth=None):
    _, reply = connection.call(ops.AUTH, auth or SUPER_AUTH, xid=-4)
    if reply["err"] != 0:
        raise RuntimeError(f"auth refused: {reply}")
