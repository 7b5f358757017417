"""Where a test program of the C client runs: a network namespace, since its ports are built in, with a script in the
place of the one that starts its servers (integration/c_client/zkServer.sh)."""

import os
import pathlib
import shutil
import subprocess

from integration.lib.quenda_server import quenda_binary
from integration.lib.target import IS_QUENDA
from integration.zookeeper.genuine import DEFAULT_VERSION, class_path

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 400


class Bench:
    def __init__(self, client, folder, members):
        self.client = pathlib.Path(client)
        self.folder = pathlib.Path(folder)
        self.members = members
        self.server = self._server_script()
        self.certificates = self._make_certificates()

    def run(self, name, program, *arguments):
        """The exit status ("timeout" when it had to be ended) and what was said."""
        work = self.folder / name
        for part in ("tests", "root/bin", "data"):
            (work / part).mkdir(parents=True)
        for place in ("tests/zkServer.sh", "root/bin/zkServer.sh"):
            (work / place).symlink_to(HERE / "zkServer.sh")
        env = dict(os.environ, C_CLIENT_WORK=str(work / "data"), C_CLIENT_MEMBERS=str(self.members),
                   C_CLIENT_SERVER=str(self.server), ZKROOT=str(work / "root"))
        # A process namespace of its own ends the servers with the program, whatever becomes of it; the shell stays as
        # its first process, which has to take what others have left. /tmp/certs is built into the tests.
        inside = (f'ip link set lo up && mkdir -p /tmp/certs && mount --bind "{self.certificates}" /tmp/certs && '
                  f'"{program}" {" ".join(arguments)}; exit $?')
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside]
        log = work / "output"
        with open(log, "wb") as output:
            process = subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT)
            try:
                status = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                status = "timeout"
            finally:
                process.kill()
                process.wait()
        return status, log.read_text("utf-8", "replace")

    def _server_script(self):
        """Becomes the server, with the configuration file as its argument."""
        script = self.folder / "server"
        if IS_QUENDA:
            line = f'exec "{quenda_binary()}" serve --config "$1"'
        else:
            line = ('exec java $SERVER_JVMFLAGS -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Xmx200m '
                    f'-cp "{class_path(DEFAULT_VERSION)}" org.apache.zookeeper.server.quorum.QuorumPeerMain "$1"')
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        return script

    def _make_certificates(self):
        """By the client's own script; the server's also as PEM, which needs no password."""
        folder = self.folder / "certs"
        folder.mkdir()
        shutil.copy(self.client / "ssl" / "gencerts.sh", folder)
        subprocess.run(["./gencerts.sh", "tests.example"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for name, parts in {"server": ("server.crt", "serverkey.pem"), "servertrust": ("root.crt", "server.crt")}.items():
            (folder / f"{name}.pem").write_text("".join((folder / part).read_text() for part in parts))
        return folder
