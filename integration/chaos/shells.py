"""The C and the Java client, through their shells: one session each that sets a node and holds an ephemeral one all the
time."""

import re

from integration.chaos.workload import Workload
from integration.lib.shell import Shell

# Connection loss, operation timeout: of unknown fate. System error: refused.
UNKNOWN_CODES = ("-4", "-7", "ConnectionLoss", "OperationTimeout")
REFUSED_CODES = ("-1", "SystemError")


class ShellClient(Workload):
    """`_set` gives the code of an answer, "" for a success."""

    pause = 0.2

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.path, self.ephemeral = f"/chaos/{self.name}", f"/chaos/{self.name}-ephemeral"
        self.hosts = ",".join(f"{host}:{port}" for host, port in self.addresses)
        self.shell = None
        self.acknowledged, self.asked, self.lost = 0, 0, 0

    def setup(self, admin):
        admin.create(self.path, b"")

    def workers(self):
        self.shell = self._open()
        return [self._step]

    def _open(self):
        """A connected shell that has made its ephemeral node."""
        raise NotImplementedError

    def _set(self, number):
        raise NotImplementedError

    def _step(self, _choose):
        self.asked += 1
        code = self._set(self.asked)
        if code in ("-112", "SessionExpired"):
            self.lost += 1
        elif not code:
            self.acknowledged = self.asked
            self.counts["sets"] += 1
            self.progress.acknowledged()
        elif code in UNKNOWN_CODES:
            self.errors[code] += 1
        elif code in REFUSED_CODES:
            self.refused(code)
        else:
            self.violations.append(f"it was answered {code}")

    def check(self, ensemble):
        with ensemble.leader().connect_soon() as conn:
            conn.sync("/")
            found = int(conn.get(self.path)[0] or b"0")
            if not self.acknowledged <= found <= self.asked:
                self.violations.append(f"acknowledged {self.acknowledged} of {self.asked}, found {found}")
            if conn.exists(self.ephemeral) is None:
                self.violations.append("its ephemeral is gone")

    @property
    def lost_sessions(self):
        return self.lost

    def close(self):
        if self.shell is not None:
            self.shell.run("quit", seconds=30.0)
            self.shell.ended()  # with its session closed
            self.shell.kill()


class CClient(ShellClient):
    name = "c-client"

    def _open(self):
        shell = Shell(["/usr/lib/zookeeper/bin/cli_mt", self.hosts], seconds=30.0)
        shell.wait_for("Got a new session id")
        shell.run(f"create +e {self.ephemeral}", "rc = 0$")
        return shell

    def _set(self, number):
        text = self.shell.run(f"set {self.path} {number}", rf"^{self.path}: rc = -?\d+", seconds=60.0)
        code = re.findall(r"rc = (-?\d+)", text)[-1]
        return "" if code == "0" else code


class JavaClient(ShellClient):
    name = "java-client"

    def _open(self):
        small = {"JVMFLAGS": "-Xmx96m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
        shell = Shell(["/usr/share/zookeeper/bin/zkCli.sh", "-server", self.hosts], small, seconds=60.0)
        shell.wait_for("state:SyncConnected")
        shell.run(f"create -e {self.ephemeral}", f"Created {self.ephemeral}")
        return shell

    def _set(self, number):
        done = r"^dataVersion = \d+|KeeperErrorCode = \w+"
        text = self.shell.run(f"set -s {self.path} {number}", done, seconds=60.0)
        codes = re.findall(r"KeeperErrorCode = (\w+)", text)
        return codes[-1] if codes else ""
