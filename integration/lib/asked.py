"""Programs, in whatever language, that use a client and ask for something to be done to the servers.

A program prints a line for every step, "ok NAME" or "FAILED NAME: why". A line "? lose" asks for the loss of a server,
and is answered by the line "done" on its standard input; so are the other methods of `One` and `Three` that it may ask.
"""

import pathlib
import subprocess
import threading

from integration.lib.ensemble import ENSEMBLE_CFG, Ensemble
from integration.lib.process import free_port
from integration.lib.target import build_server

SUPER = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # super:test
CFG = {
    "DigestAuthenticationProvider.superDigest": SUPER,
    "extendedTypesEnabled": "true",
    "reconfigEnabled": "true",
    "znode.container.checkIntervalMs": "200",
    "readonlymode.enabled": "true",
}
PROGRAM_SECONDS = 240


class One:
    def __init__(self, folder):
        self.server = build_server(pathlib.Path(folder), {**ENSEMBLE_CFG, **CFG}, port=free_port(), heap="200m")
        self.server.start()
        self.hosts = self.server.hosts

    def lose(self):
        self.server.restart(hard=True)

    def regain(self):
        pass

    def log(self):
        return self.server.log_tail(3000)

    def close(self):
        self.server.kill9()


class Three:
    def __init__(self, folder):
        self.ensemble = Ensemble(folder, members=3, cfg=CFG)
        try:
            self.ensemble.start()
        except BaseException:
            self.ensemble.close()
            raise
        self.hosts = self.ensemble.hosts
        self.lost = []

    def lose(self):
        """The leader is killed."""
        self.lost = [self.ensemble.leader()]
        self.lost[0].kill9()
        self.ensemble.wait_leader()

    def lose_quorum(self):
        """The first is the only one left."""
        self.lost = [self.ensemble[2], self.ensemble[3]]
        for member in self.lost:
            member.kill9()

    def regain(self):
        for member in self.lost:
            member.spawn()
        self.ensemble.wait_serving()

    regain_quorum = regain

    def log(self):
        return self.ensemble.log_tails()

    def close(self):
        self.ensemble.close()


def play(name, command, folder, members, env=None, cwd=None):
    """Runs the program with the connection string and the number of servers behind its command, on servers of its own;
    name and step → outcome."""
    servers = (One if members == 1 else Three)(folder)
    try:
        return _talk(name, [*command, servers.hosts, str(members)], servers, env, cwd)
    finally:
        servers.close()


def _talk(name, command, servers, env, cwd):
    outcomes, said = {}, []
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=env, cwd=cwd)
    chatter = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
    limit = threading.Timer(PROGRAM_SECONDS, process.kill)
    chatter.start()
    limit.start()
    try:
        for line in process.stdout:
            line = line.strip()
            if line.startswith("? "):
                getattr(servers, line[2:].replace("-", "_"))()
                process.stdin.write("done\n")
                process.stdin.flush()
            elif line.startswith("ok "):
                outcomes[f"{name} {line[3:]}"] = "passed"
            elif line.startswith("skipped "):
                outcomes[f"{name} {line[8:]}"] = "skipped"
            elif line:
                print(f"{name}: {line}", flush=True)
                if line.startswith("FAILED "):
                    outcomes[f"{name} {line[7:].partition(':')[0]}"] = "failed"
        status = process.wait()
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    chatter.join()
    if status != 0:
        # What it did not come to is not known here: its end counts as one failure.
        if "failed" not in outcomes.values():
            outcomes[f"{name} ends"] = "failed"
        print(f"--- {name} ended with {status}", "".join(said[-20:]), servers.log(), sep="\n", flush=True)
    return outcomes
