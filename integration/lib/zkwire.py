"""A ZooKeeper client at the level of bytes, for tests.

A normal client hides what these tests look at: the order of frames, the exact length of a reply, what happens when a
socket is cut in the middle of a session. Here every frame is visible, requests can be pipelined at will, and nothing
is retried or pinged behind the test's back.

    with Conn(port) as c:
        c.create("/a", b"x")                 # raises ZkError on a non-zero error code
        data, stat = c.get("/a", watch=True)
        xid = c.send(OP.SET_DATA, set_data("/a", b"y"))
        reply = c.reply()                    # events met on the way are in c.events
"""

import collections
import contextlib
import socket
import struct
import time

OPEN_ACL = ((31, "world", "anyone"),)
READ_ACL = ((1, "world", "anyone"),)
EVENT_XID = -1
PING_XID = -2
AUTH_XID = -4
SET_WATCHES_XID = -8


class OP:
    """Request types."""

    CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
    PING, GET_CHILDREN2, CHECK, MULTI, CREATE2, RECONFIG, CHECK_WATCHES, REMOVE_WATCHES = range(11, 19)
    CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL, MULTI_READ = range(19, 23)
    AUTH, SET_WATCHES, SASL, GET_EPHEMERALS, GET_ALL_CHILDREN_NUMBER, SET_WATCHES2, ADD_WATCH, WHO_AM_I = range(100, 108)
    CREATE_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1


class ERR:
    """Error codes of replies."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    NO_WATCHER = -121
    QUOTA_EXCEEDED = -125


class FLAG:
    """Create modes."""

    PERSISTENT, EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL, CONTAINER, TTL, TTL_SEQUENTIAL = range(7)


class EV:
    """Event types."""

    CREATED, DELETED, CHANGED, CHILD = 1, 2, 3, 4


Stat = collections.namedtuple(
    "Stat",
    "czxid mzxid ctime mtime version cversion aversion ephemeral_owner data_length num_children pzxid",
)
_STAT = struct.Struct(">qqqqiiiqiiq")
Event = collections.namedtuple("Event", "type state path zxid")
Result = collections.namedtuple("Result", "type err path stat data children")


class ZkError(Exception):
    """A reply with a non-zero error code."""

    def __init__(self, code, zxid=None):
        super().__init__(f"error {code}")
        self.code = code
        self.zxid = zxid


class Closed(Exception):
    """The server closed the connection where a frame was expected."""


class Torn(Closed):
    """The connection ended within a frame, as when the server is killed."""


class Refused(Exception):
    """The server answered the handshake with "no such session"."""


@contextlib.contextmanager
def expect(code):
    """The block must fail with exactly this error code."""
    try:
        yield
    except ZkError as error:
        assert error.code == code, f"expected error {code}, got {error.code}"
        return
    raise AssertionError(f"expected error {code}, got success")


# --- encoding ---------------------------------------------------------------------------------------------------------


def boolean(value):
    return b"\x01" if value else b"\x00"


def int32(value):
    return struct.pack(">i", value)


def int64(value):
    return struct.pack(">q", value)


def buffer(value):
    return int32(-1) if value is None else int32(len(value)) + bytes(value)


def ustring(value):
    return buffer(value.encode() if isinstance(value, str) else value)


def vector(items, encode):
    return int32(-1) if items is None else int32(len(items)) + b"".join(encode(item) for item in items)


def acl_entry(entry):
    perms, scheme, ident = entry
    return int32(perms) + ustring(scheme) + ustring(ident)


def acls(entries):
    return vector(entries, acl_entry)


def create(path, data=b"", flags=0, acl=OPEN_ACL):
    return ustring(path) + buffer(data) + acls(acl) + int32(flags)


def create_ttl(path, ttl, data=b"", flags=FLAG.TTL, acl=OPEN_ACL):
    return create(path, data, flags, acl) + int64(ttl)


def delete(path, version=-1):
    return ustring(path) + int32(version)


check = delete


def set_data(path, data, version=-1):
    return ustring(path) + buffer(data) + int32(version)


def read(path, watch=False):
    """exists, getData, getChildren, getChildren2."""
    return ustring(path) + boolean(watch)


def set_acl(path, entries, version=-1):
    return ustring(path) + acls(entries) + int32(version)


def add_watch(path, mode):
    return ustring(path) + int32(mode)


def auth(scheme, data, kind=0):
    return int32(kind) + ustring(scheme) + buffer(data)


def set_watches(zxid, data=(), exist=(), child=(), persistent=None, recursive=None):
    body = int64(zxid) + b"".join(vector(paths, ustring) for paths in (data, exist, child))
    if persistent is not None or recursive is not None:
        body += vector(persistent or (), ustring) + vector(recursive or (), ustring)
    return body


def multi(*operations, terminate=True):
    """Each operation is (type, record)."""
    body = b"".join(int32(kind) + boolean(False) + int32(-1) + record for kind, record in operations)
    return body + (int32(-1) + boolean(True) + int32(-1) if terminate else b"")


def frame(payload):
    return int32(len(payload)) + payload


def request(xid, op, body=b""):
    """One whole request frame."""
    return frame(int32(xid) + int32(op) + body)


def connect_request(timeout=30000, session=0, passwd=bytes(16), last_zxid=0, read_only=False, version=0):
    """One whole handshake frame; `read_only=None` leaves the optional last byte out."""
    payload = int32(version) + int64(last_zxid) + int32(timeout) + int64(session) + buffer(passwd)
    return frame(payload if read_only is None else payload + boolean(read_only))


# --- decoding ---------------------------------------------------------------------------------------------------------


class Reader:
    """Takes primitive values off the front of a byte string."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        piece = self.data[self.at : self.at + count]
        assert len(piece) == count, f"record ends early: {self.data.hex()}"
        self.at += count
        return piece

    def boolean(self):
        return self.take(1) != b"\x00"

    def int32(self):
        return struct.unpack(">i", self.take(4))[0]

    def int64(self):
        return struct.unpack(">q", self.take(8))[0]

    def buffer(self):
        length = self.int32()
        return None if length < 0 else self.take(length)

    def ustring(self):
        raw = self.buffer()
        return None if raw is None else raw.decode("utf-8", "surrogatepass")

    def vector(self, decode):
        count = self.int32()
        return None if count < 0 else [decode() for _ in range(count)]

    def stat(self):
        return Stat(*_STAT.unpack(self.take(_STAT.size)))

    def acl_entry(self):
        return self.int32(), self.ustring(), self.ustring()

    def end(self):
        assert self.at == len(self.data), f"{len(self.data) - self.at} bytes behind the record: {self.data.hex()}"


class Reply:
    """A reply header and the undecoded record behind it."""

    def __init__(self, payload):
        reader = Reader(payload)
        self.xid, self.zxid, self.err = reader.int32(), reader.int64(), reader.int32()
        self.body = payload[16:]
        self.payload = payload

    def ok(self):
        if self.err:
            raise ZkError(self.err, self.zxid)
        return self

    def reader(self):
        return Reader(self.ok().body)

    def __repr__(self):
        return f"Reply(xid={self.xid}, zxid={self.zxid:#x}, err={self.err}, body={self.body.hex()})"


def results(reply):
    """The entries of a multi or multiRead reply."""
    reader, found = reply.reader(), []
    while True:
        kind, done, err = reader.int32(), reader.boolean(), reader.int32()
        if done:
            assert (kind, err) == (-1, -1), f"terminator ({kind}, {err})"
            reader.end()
            return found
        path = stat = data = children = None
        if kind == OP.ERROR:
            body = reader.int32()
            assert body == err, f"error entry says {err} and {body}"
        elif kind == OP.CREATE:
            path = reader.ustring()
        elif kind == OP.CREATE2:
            path, stat = reader.ustring(), reader.stat()
        elif kind == OP.SET_DATA:
            stat = reader.stat()
        elif kind == OP.GET_DATA:
            data, stat = reader.buffer(), reader.stat()
        elif kind == OP.GET_CHILDREN:
            children = reader.vector(reader.ustring)
        else:
            assert kind in (OP.DELETE, OP.CHECK), f"result of type {kind}"
        found.append(Result(kind, err, path, stat, data, children))


# --- connections ------------------------------------------------------------------------------------------------------


def tcp(port, host="127.0.0.1", timeout=20.0, receive_buffer=None):
    """A connected socket. `receive_buffer` (bytes) makes a reader that stops reading noticed early."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(timeout)
    try:
        sock.connect((host, port))
    except OSError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read_to_end(sock, timeout=20.0):
    """All bytes until the other side closes; a reset counts as a close."""
    sock.settimeout(timeout)
    pieces = []
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionError:
            piece = b""
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def four_letter(port, word, host="127.0.0.1", timeout=20.0):
    """The answer to a four-letter word, up to the close."""
    with tcp(port, host, timeout) as sock:
        sock.sendall(word.encode())
        return read_to_end(sock, timeout).decode()


class Conn:
    """One connection. Without `handshake=False` it holds a session when the constructor returns."""

    def __init__(
        self,
        port,
        timeout=30000,
        session=0,
        passwd=bytes(16),
        last_zxid=0,
        read_only=False,
        host="127.0.0.1",
        wait=20.0,
        handshake=True,
        receive_buffer=None,
    ):
        self.port, self.host, self.wait = port, host, wait
        self.sock = tcp(port, host, wait, receive_buffer)
        self.pending = bytearray()
        self.next_xid = 0
        self.events = collections.deque()
        self.last_zxid = last_zxid
        self.session, self.passwd, self.timeout = 0, bytes(16), timeout
        if handshake:
            try:
                self.sock.sendall(connect_request(timeout, session, passwd, last_zxid, read_only))
                self.finish_handshake(read_only)
            except BaseException:
                self.sock.close()
                raise

    def finish_handshake(self, read_only=False):
        """Reads the handshake's answer; raises Refused for "no such session", Closed when there is none."""
        payload = self.frame()
        self.handshake = payload
        reader = Reader(payload)
        version, self.timeout, self.session = reader.int32(), reader.int32(), reader.int64()
        self.passwd = reader.buffer()
        if read_only is not None:
            self.server_read_only = reader.boolean()
        reader.end()
        assert version == 0 and len(self.passwd) == 16, payload.hex()
        if self.timeout == 0:
            assert self.session == 0 and self.passwd == bytes(16), f"half a refusal: {payload.hex()}"
            raise Refused()

    def resume(self, **options):
        """A new connection for the same session."""
        keep = {"session": self.session, "passwd": self.passwd, "timeout": self.timeout, "host": self.host}
        return Conn(self.port, **{**keep, **options})

    # bytes and frames

    def send_bytes(self, data):
        self.sock.sendall(data)

    def frame(self, wait=None):
        """The next frame's payload, whatever it is."""
        deadline = time.monotonic() + (self.wait if wait is None else wait)
        while True:
            if len(self.pending) >= 4:
                length = struct.unpack_from(">i", self.pending)[0]
                assert 0 <= length < 1 << 30, f"frame length {length}"
                if len(self.pending) >= 4 + length:
                    payload = bytes(self.pending[4 : 4 + length])
                    del self.pending[: 4 + length]
                    return payload
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no frame in time")
            self.sock.settimeout(left)
            try:
                piece = self.sock.recv(262144)
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not piece:
                if self.pending:
                    raise Torn(f"closed within a frame: {self.pending.hex()}")
                raise Closed("closed by the server")
            self.pending += piece

    def message(self, wait=None):
        """The next Reply or Event."""
        reply = Reply(self.frame(wait))
        if reply.xid != EVENT_XID or len(reply.payload) == 16:
            if reply.xid > 0 and reply.zxid > self.last_zxid:
                self.last_zxid = reply.zxid
            return reply
        reader = Reader(reply.body)
        event = Event(reader.int32(), reader.int32(), reader.ustring(), reply.zxid)
        reader.end()
        assert event.state == 3, f"event state {event.state}"
        return event

    def reply(self, wait=None):
        """The next reply; events before it go to `events`."""
        while True:
            message = self.message(wait)
            if isinstance(message, Reply):
                return message
            self.events.append(message)

    def event(self, wait=None):
        """The next event, or None when none comes in time."""
        if self.events:
            return self.events.popleft()
        try:
            message = self.message(wait)
        except TimeoutError:
            return None
        assert isinstance(message, Event), f"a reply where an event was expected: {message}"
        return message

    def taken_events(self):
        """(type, path) of every event received so far, sync first: nothing that was due can still be under way."""
        self.sync("/")
        found = [(event.type, event.path) for event in self.events]
        self.events.clear()
        return found

    def send(self, op, body=b"", xid=None):
        """Sends a request without waiting; returns its xid."""
        if xid is None:
            self.next_xid += 1
            xid = self.next_xid
        self.sock.sendall(request(xid, op, body))
        return xid

    def call(self, op, body=b"", xid=None):
        """Sends one request and returns its reply."""
        sent = self.send(op, body, xid)
        reply = self.reply()
        assert reply.xid == sent, f"sent xid {sent}, answered {reply.xid}"
        return reply

    def pipeline(self, requests, window=500):
        """Sends many (op, body) with at most `window` unanswered; returns the replies in order."""
        requests, replies, sent = list(requests), [], 0
        while len(replies) < len(requests):
            batch = requests[sent : len(replies) + window]
            first = self.next_xid + 1
            self.next_xid += len(batch)
            self.sock.sendall(b"".join(request(first + n, op, body) for n, (op, body) in enumerate(batch)))
            sent += len(batch)
            # Half the window is drained before more is sent: frames stay batched, and neither side can block.
            for _ in range(min(max(window // 2, 1), sent - len(replies))):
                reply = self.reply()
                expected = self.next_xid - (sent - len(replies)) + 1
                assert reply.xid == expected, f"expected xid {expected}, answered {reply.xid}"
                replies.append(reply)
        return replies

    def expect_close(self, wait=None):
        """The server must close the connection, without one more byte."""
        try:
            payload = self.frame(wait)
        except Torn:
            raise AssertionError("expected a close, got a part of a frame") from None
        except Closed:
            self.sock.close()
            return
        raise AssertionError(f"expected a close, got a frame: {payload.hex()}")

    def drop(self):
        """Cuts the TCP connection without closing the session."""
        self.sock.close()

    def close(self):
        """Ends the session, if the connection still stands, then the connection."""
        try:
            if self.sock.fileno() >= 0:
                self.send(OP.CLOSE_SESSION)
                while self.reply().xid != self.next_xid:
                    pass
        except (OSError, Closed, AssertionError):
            pass
        finally:
            self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # operations: each raises ZkError on an error code

    def create(self, path, data=b"", flags=0, acl=OPEN_ACL):
        reader = self.call(OP.CREATE, create(path, data, flags, acl)).reader()
        created = reader.ustring()
        reader.end()
        return created

    def create2(self, path, data=b"", flags=0, acl=OPEN_ACL, op=OP.CREATE2):
        reader = self.call(op, create(path, data, flags, acl)).reader()
        created = reader.ustring(), reader.stat()
        reader.end()
        return created

    def create_container(self, path):
        return self.create2(path, flags=FLAG.CONTAINER, op=OP.CREATE_CONTAINER)

    def create_ttl(self, path, ttl, data=b"", flags=FLAG.TTL):
        reader = self.call(OP.CREATE_TTL, create_ttl(path, ttl, data, flags)).reader()
        created = reader.ustring(), reader.stat()
        reader.end()
        return created

    def delete(self, path, version=-1):
        reply = self.call(OP.DELETE, delete(path, version)).ok()
        assert not reply.body
        return reply.zxid

    def _stat(self, op, body):
        reader = self.call(op, body).reader()
        stat = reader.stat()
        reader.end()
        return stat

    def exists(self, path, watch=False):
        """The Stat, or None when there is no such node."""
        try:
            return self._stat(OP.EXISTS, read(path, watch))
        except ZkError as error:
            if error.code != ERR.NO_NODE:
                raise
            return None

    def get(self, path, watch=False):
        reader = self.call(OP.GET_DATA, read(path, watch)).reader()
        found = reader.buffer(), reader.stat()
        reader.end()
        return found

    def set(self, path, data, version=-1):
        return self._stat(OP.SET_DATA, set_data(path, data, version))

    def children(self, path, watch=False):
        reader = self.call(OP.GET_CHILDREN, read(path, watch)).reader()
        found = reader.vector(reader.ustring)
        reader.end()
        return sorted(found)

    def children2(self, path, watch=False):
        reader = self.call(OP.GET_CHILDREN2, read(path, watch)).reader()
        found = sorted(reader.vector(reader.ustring)), reader.stat()
        reader.end()
        return found

    def get_acl(self, path):
        reader = self.call(OP.GET_ACL, ustring(path)).reader()
        found = reader.vector(reader.acl_entry), reader.stat()
        reader.end()
        return found

    def set_acl(self, path, entries, version=-1):
        return self._stat(OP.SET_ACL, set_acl(path, entries, version))

    def sync(self, path="/"):
        reader = self.call(OP.SYNC, ustring(path)).reader()
        found = reader.ustring()
        reader.end()
        return found

    def ping(self):
        return self.call(OP.PING, xid=PING_XID).ok()

    def auth(self, scheme, data):
        return self.call(OP.AUTH, auth(scheme, data), xid=AUTH_XID).ok()

    def reconfig(self, joining=None, leaving=None, members=None, version=-1):
        """The new configuration's text and its Stat."""
        body = ustring(joining) + ustring(leaving) + ustring(members) + int64(version)
        reader = self.call(OP.RECONFIG, body).reader()
        found = reader.buffer().decode(), reader.stat()
        reader.end()
        return found

    def multi(self, *operations):
        return results(self.call(OP.MULTI, multi(*operations)))

    def multi_read(self, *operations):
        return results(self.call(OP.MULTI_READ, multi(*operations)))

    def add_watch(self, path, recursive=False):
        reply = self.call(OP.ADD_WATCH, add_watch(path, 1 if recursive else 0)).ok()
        assert reply.body == bytes(4), reply

    def remove_watches(self, path, kind):
        reply = self.call(OP.REMOVE_WATCHES, add_watch(path, kind)).ok()
        assert not reply.body, reply

    def check_watches(self, path, kind):
        reply = self.call(OP.CHECK_WATCHES, add_watch(path, kind)).ok()
        assert not reply.body, reply

    def set_watches(self, zxid, xid=SET_WATCHES_XID, **lists):
        op = OP.SET_WATCHES2 if {"persistent", "recursive"} & lists.keys() else OP.SET_WATCHES
        return self.call(op, set_watches(zxid, **lists), xid=xid).ok()

    def ephemerals(self, prefix="/"):
        reader = self.call(OP.GET_EPHEMERALS, ustring(prefix)).reader()
        return sorted(reader.vector(reader.ustring))

    def all_children_number(self, path):
        return self.call(OP.GET_ALL_CHILDREN_NUMBER, ustring(path)).reader().int32()

    def who_am_i(self):
        reader = self.call(OP.WHO_AM_I).reader()
        return sorted(reader.vector(lambda: (reader.ustring(), reader.ustring())))

    def delete_all(self, path):
        """Deletes a node and everything below it; a missing one is fine."""
        try:
            names = self.children(path)
            for name in names:
                self.delete_all(f"{path}/{name}")
            self.delete(path)
        except ZkError as error:
            if error.code != ERR.NO_NODE:
                raise


def eventually(condition, seconds=20.0, what="condition"):
    """Waits until `condition()` is true and returns its value; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)
