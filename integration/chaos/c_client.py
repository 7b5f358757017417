"""The C client, through its shell: one session that sets a node and holds an ephemeral one all the time."""

import re

from integration.chaos.workload import Workload
from integration.lib.shell import Shell

PROGRAM = "/usr/lib/zookeeper/bin/cli_mt"


class CClient(Workload):
    name = "c-client"
    path, ephemeral = "/chaos/c", "/chaos/c-ephemeral"
    pause = 0.2

    def setup(self, admin):
        admin.create(self.path, b"")

    def workers(self):
        hosts = ",".join(f"{host}:{port}" for host, port in self.addresses)
        self.shell = Shell([PROGRAM, hosts], seconds=30.0)
        self.shell.wait_for("Got a new session id")
        self.shell.run(f"create +e {self.ephemeral}", "rc = 0$")
        self.acknowledged, self.asked, self.lost = 0, 0, 0
        return [self._step]

    def _step(self, _choose):
        self.asked += 1
        text = self.shell.run(f"set {self.path} {self.asked}", rf"^{self.path}: rc = -?\d+", seconds=60.0)
        code = int(re.findall(r"rc = (-?\d+)", text)[-1])
        if re.search(r"EXPIRED_SESSION|rc = -112", text):
            self.lost += 1
        if code == 0:
            self.acknowledged = self.asked
            self.counts["sets"] += 1
            self.progress.acknowledged()
        elif code in (-4, -7):  # connection loss, operation timeout: of unknown fate
            self.errors[f"rc {code}"] += 1
        elif code == -1:
            self.refused(code)
        else:
            self.violations.append(f"the C client was answered {code}")

    def check(self, ensemble):
        with ensemble.leader().connect_soon() as conn:
            conn.sync("/")
            found, asked = int(conn.get(self.path)[0] or b"0"), self.asked
            if not self.acknowledged <= found <= asked:
                self.violations.append(f"the C client was acknowledged {self.acknowledged} of {asked}, found {found}")
            if conn.exists(self.ephemeral) is None:
                self.violations.append("the C client's ephemeral is gone")

    @property
    def lost_sessions(self):
        return self.lost

    def close(self):
        if hasattr(self, "shell"):
            self.shell.run("quit", "Quitting", seconds=30.0)
            self.shell.ended()  # with its session closed
            self.shell.kill()
