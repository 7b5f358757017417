"""Where the members of an ensemble live: all on 127.0.0.1, or each in a network namespace of its own.

In namespaces every member has an address of its own on a bridge and its own packet filter, so that the way between
two members can be cut in one direction or both, silently, as a broken switch does it: nothing is refused, nothing is
reset, packets just do not arrive. The clients stay in the namespace of the test. Needs root, iproute2 and iptables
(`integration/install` brings them).
"""

import contextlib
import itertools
import os
import pathlib
import re
import socket
import subprocess

from integration.lib.process import HOST


class NetworkError(Exception):
    """A namespace, bridge or filter rule could not be made."""


def run(*words, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise NetworkError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Loopback:
    """Members on 127.0.0.1, told apart by their ports. The ways between them cannot be cut."""

    def __init__(self):
        self._taken = set()

    def address(self, _member):
        return HOST

    def prefix(self, _member):
        return ()

    def ports(self, _member):
        """Client, quorum and election port: free at this moment, never the same twice."""
        ports = []
        with contextlib.ExitStack() as held:
            while len(ports) < 3:
                probe = held.enter_context(socket.socket())
                probe.bind((HOST, 0))
                port = probe.getsockname()[1]
                if port not in self._taken:
                    self._taken.add(port)
                    ports.append(port)
        return ports

    def heal(self):
        pass

    def close(self):
        pass


class Namespaces:
    """One namespace a member, all on one bridge, which is in a namespace of its own: packet filters of the machine
    (Docker's, for one) do not see what goes over it."""

    _numbers = itertools.count()

    def __init__(self):
        if os.geteuid() != 0:
            raise NetworkError("network namespaces need root")
        sweep()
        self._id = f"{os.getpid()}-{next(self._numbers)}"
        self._short = self._id.replace("-", "x")
        self._members = set()
        self._net = self._free_net()
        self._hub = f"quenda-{self._id}-hub"
        outside, inside = f"q{self._short}", "outside"
        try:
            run("ip", "netns", "add", self._hub)
            self._in_hub("link", "add", "bridge", "type", "bridge")
            self._in_hub("link", "set", "bridge", "up")
            run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", self._hub)
            self._in_hub("link", "set", inside, "master", "bridge")
            self._in_hub("link", "set", inside, "up")
            run("ip", "address", "add", f"{self._net}.254/24", "dev", outside)
            run("ip", "link", "set", outside, "up")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _free_net():
        """A /24 of 10.200.0.0/13 that no interface has."""
        used = run("ip", "-o", "-4", "address")
        start = os.getpid() % 2048
        for number in range(start, start + 2048):
            net = f"10.{200 + number % 2048 // 256}.{number % 256}"
            if f" {net}." not in used:
                return net
        raise NetworkError("no free network in 10.200.0.0/13")

    def _in_hub(self, *words):
        return run("ip", "-n", self._hub, *words)

    def _namespace(self, member):
        """The member's namespace, made when it is first asked for."""
        name = f"quenda-{self._id}-{member}"
        if member not in self._members:
            self._members.add(member)
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            port = f"m{member}"
            run("ip", "-n", self._hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._in_hub("link", "set", port, "master", "bridge")
            self._in_hub("link", "set", port, "up")
            run("ip", "-n", name, "address", "add", f"{self.address(member)}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        return name

    def address(self, member):
        return f"{self._net}.{member}"

    def prefix(self, member):
        return ("ip", "netns", "exec", self._namespace(member))

    def ports(self, _member):
        return [2181, 2888, 3888]

    def drop(self, source, target):
        """From now on nothing that `source` sends arrives at `target`; the other direction is left alone."""
        name = self._namespace(target)
        run("ip", "netns", "exec", name, "iptables", "-w", "-A", "INPUT", "-s", self.address(source), "-j", "DROP")

    def cut(self, one, other):
        self.drop(one, other)
        self.drop(other, one)

    def isolate(self, member, others):
        """Cuts a member off from the others; its clients still reach it."""
        for other in others:
            if other != member:
                self.cut(member, other)

    def cut_clients(self, member):
        """Cuts the clients (whatever is in the namespace of the test) off from a member."""
        name = self._namespace(member)
        source = f"{self._net}.254"
        run("ip", "netns", "exec", name, "iptables", "-w", "-A", "INPUT", "-s", source, "-j", "DROP")

    def heal(self):
        """Takes back every cut."""
        for member in self._members:
            run("ip", "netns", "exec", self._namespace(member), "iptables", "-w", "-F", "INPUT")

    def close(self):
        for member in self._members:
            run("ip", "netns", "delete", f"quenda-{self._id}-{member}", check=False)
        run("ip", "netns", "delete", self._hub, check=False)
        # The outer end goes with its peer, but not at once.
        run("ip", "link", "delete", f"q{self._short}", check=False)


def sweep():
    """Removes namespaces whose process is gone: a run that was killed could not tidy up."""
    for line in run("ip", "netns", "list").splitlines():
        found = re.match(r"quenda-(\d+)-\d+-\w+", line)
        if found and not pathlib.Path(f"/proc/{found[1]}").exists():
            run("ip", "netns", "delete", found[0], check=False)
