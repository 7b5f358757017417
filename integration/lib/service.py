"""The coordination service under an application: one server or an ensemble, and the troubles that it is put to.

    with Service(folder, members=3) as service:
        application(service.hosts)
        service.fail_over()

TARGET chooses Quenda or a genuine ZooKeeper, see integration/lib/target.py.
"""

import contextlib
import re

from integration.lib.ensemble import ENSEMBLE_CFG, Ensemble
from integration.lib.process import four_letter_word
from integration.lib.target import build_server
from integration.lib.zkwire import Closed, Conn, Refused, ZkError, eventually

PATIENCE_SECONDS = 120.0


class Service:
    """`members` is 1 (no membership configured) or more."""

    def __init__(self, folder, members):
        self.members = members
        folder.mkdir(parents=True, exist_ok=True)
        if members == 1:
            self._running = build_server(folder, dict(ENSEMBLE_CFG), heap="200m")
        else:
            self._running = Ensemble(folder, members)

    def __enter__(self):
        self._running.__enter__()
        return self

    def __exit__(self, *exception):
        self._running.__exit__(*exception)

    @property
    def hosts(self):
        """Connection string of all members."""
        return self._running.hosts

    @property
    def addresses(self):
        one = self._running
        return [(one.host, one.port)] if self.members == 1 else one.addresses

    @contextlib.contextmanager
    def connection(self):
        """A session with whichever member serves, on a tree that is not behind."""
        conn = eventually(self._connect, PATIENCE_SECONDS, "a member that serves")
        try:
            conn.sync("/")
            yield conn
        finally:
            conn.close()

    def read(self, action):
        """`action(connection)`, tried again while the members find out where they stand."""
        def attempt():
            try:
                with self.connection() as conn:
                    return (action(conn),)
            except (Closed, OSError):
                return None
            except ZkError as error:
                if error.code != -4:
                    raise
                return None
        return eventually(attempt, PATIENCE_SECONDS, "an answer")[0]

    def connected(self):
        """Ids of the sessions that have a connection at this moment, as `cons` of all members tells."""
        found = set()
        for host, port in self.addresses:
            with contextlib.suppress(OSError):
                found |= set(re.findall(r"sid=0x([0-9a-f]+)", four_letter_word(port, "cons", host=host)))
        return {int(session, 16) for session in found}

    def wait_connected(self, sessions):
        """Until each of these has found a member again."""
        eventually(lambda: {session % (1 << 64) for session in sessions} <= self.connected(), PATIENCE_SECONDS,
                   "the connection of every session")

    def _connect(self):
        for host, port in self.addresses:
            try:
                return Conn(port, host=host, timeout=20000)
            except (Closed, OSError, Refused):
                continue
        return None

    def fail_over(self):
        """kill -9 of the leader and, once another one leads, its return. One server alone is killed and started."""
        if self.members == 1:
            self._running.restart(hard=True, timeout=PATIENCE_SECONDS)
            return
        leader = self._running.leader()
        leader.kill9()
        self._running.wait_serving(timeout=PATIENCE_SECONDS)
        leader.start(PATIENCE_SECONDS)

    def roll(self):
        """A restart of every member in turn, the leader last."""
        if self.members == 1:
            self._running.restart(timeout=PATIENCE_SECONDS)
            return
        leader = self._running.leader()
        for member in [member for member in self._running if member is not leader] + [leader]:
            member.restart(timeout=PATIENCE_SECONDS)
            self._running.wait_serving(timeout=PATIENCE_SECONDS)

    @contextlib.contextmanager
    def outage(self):
        """No majority while the block runs: the leader and all others but one are killed."""
        if self.members == 1:
            self._running.kill9()
            yield
            self._running.start(PATIENCE_SECONDS)
            return
        leader = self._running.leader()
        others = [member for member in self._running if member is not leader]
        killed = [leader, *others[1:]]
        for member in killed:
            member.kill9()
        yield
        for member in killed:
            member.spawn()
        self._running.wait_serving(timeout=PATIENCE_SECONDS)
