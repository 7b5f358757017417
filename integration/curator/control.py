"""Servers for the scenarios, and what the scenarios may ask to be done to them.

A scenario connects to the control port, sends one line, and gets one back that begins with `ok` or says what went wrong:

    kill          kill -9 of the leader; it is started again once another one leads
    pause N       SIGSTOP of the leader for N seconds
    add           a further member is started, which is in nobody's configuration yet: its `server.N=` line
    joined N      waits until N members follow the leader and have caught up with it
    leader        the address of the leader for clients
    follower      the `server.N=` line of a member that follows
"""

import socketserver
import threading
import time

from integration.lib.ensemble import START_SECONDS, Ensemble
from integration.lib.process import four_letter_word

# The password is `secret`.
SUPER_DIGEST = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="


class Servers:
    """One member that runs alone, or an ensemble."""

    def __init__(self, folder, members):
        cfg = {
            "reconfigEnabled": "true",
            "znode.container.checkIntervalMs": "100",
            "extendedTypesEnabled": "true",
            "DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
        }
        self.alone = members == 1
        self.ensemble = Ensemble(folder, members, cfg=cfg)

    def __enter__(self):
        try:
            self.ensemble.spawn()
            if self.alone:
                self.ensemble[1].wait_serving(START_SECONDS)
            else:
                self.ensemble.wait_serving()
            self._control = ControlServer(self)
            threading.Thread(target=self._control.serve_forever, daemon=True).start()
            return self
        except BaseException:
            self.ensemble.close()
            raise

    def __exit__(self, *_):
        self._control.shutdown()
        self._control.server_close()
        self.ensemble.close()

    @property
    def control_port(self):
        return self._control.server_address[1]

    @property
    def hosts(self):
        return self.ensemble.hosts

    def leader(self):
        return self.ensemble[1] if self.alone else self.ensemble.leader()

    def do(self, line):
        word, *arguments = line.split()
        return {"kill": self.kill, "pause": self.pause, "add": self.add,
                "leader": self.leader_address, "joined": self.joined, "follower": self.follower}[word](*arguments)

    def kill(self):
        leader = self.leader()
        leader.kill9()
        if not self.alone:
            self.ensemble.wait_leader()
        leader.spawn()
        leader.wait_serving()
        return ""

    def pause(self, seconds):
        leader = self.leader()
        leader.pause()
        time.sleep(float(seconds))
        leader.resume()
        leader.wait_serving()
        return ""

    def add(self):
        number = max(self.ensemble.members) + 1
        member = self.ensemble.add(number)
        member.spawn()
        return f"server.{number}={member.line()}"

    def leader_address(self):
        return self.leader().address

    def joined(self, followers):
        """A member that joins takes part in votes as soon as it has caught up; the leader counts it from then on."""
        deadline = time.monotonic() + START_SECONDS
        while f"zk_synced_followers\t{followers}\n" not in four_letter_word(self.leader().port, "mntr"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the leader does not have {followers} followers")
            time.sleep(0.05)
        return ""

    def follower(self):
        member = self.ensemble.followers()[0]
        return f"server.{member.number}={member.line()}"


class ControlServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, servers):
        self.servers = servers
        super().__init__(("127.0.0.1", 0), ControlHandler)


class ControlHandler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode()
        try:
            answer = f"ok {self.server.servers.do(line)}"
        except Exception as error:  # whatever it is, the scenario fails with it
            answer = f"failed: {error}".replace("\n", " ")
        self.wfile.write(answer.encode() + b"\n")
