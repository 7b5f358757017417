"""An application does its real work on one server or three, in counted steps, while servers are lost.

    def play(stage):
        with stage.step("a topic is created"):
            ...

    if __name__ == "__main__":
        sys.exit(main("kafka", play, client="Kafka", version="3.9", ran="…"))

Command line of such a suite: --members 1|3, --bounded, --keep FOLDER, and --secured where the application proves who it
is. TARGET chooses the server, see integration/lib/target.py. A step that fails is counted and the next one runs, unless it was `needed`.
"""

import argparse
import contextlib
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

from integration.lib.compat import record
from integration.lib.ensemble import ENSEMBLE_CFG, Ensemble
from integration.lib.process import four_letter_word, free_port
from integration.lib.program import wait_until
from integration.lib.target import IS_QUENDA, TARGET, build_server
from integration.lib.trees import assert_same
from integration.lib.zkwire import Closed, Conn, eventually


SUPER, SUPER_DIGEST = b"super:test", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="


class GivenUp(Exception):
    """What the rest is built on has failed."""


class One:
    """A server that runs alone."""

    def __init__(self, folder, cfg):
        self._server = build_server(pathlib.Path(folder), {**ENSEMBLE_CFG, **cfg}, port=free_port(), heap="256m")

    @property
    def addresses(self):
        return [(self._server.host, self._server.port)]

    def start(self):
        self._server.start()

    def lose(self):
        """It crashes and is started again at once; there is no other."""
        self._server.restart(hard=True)

    def regain(self):
        pass

    def restart_each(self):
        self._server.restart()

    @contextlib.contextmanager
    def outage(self):
        """Nobody serves while the block runs."""
        self._server.kill9()
        yield
        self._server.start()

    def connect(self):
        return Conn(self._server.port, host=self._server.host)

    def check_same(self):
        pass

    def close(self):
        self._server.kill9()

    def logs(self):
        return self._server.log_tail(3000)


class Three:
    """An ensemble that loses its leader."""

    def __init__(self, folder, cfg):
        self._ensemble = Ensemble(folder, members=3, cfg=cfg)
        self._lost = None

    @property
    def addresses(self):
        return self._ensemble.addresses

    def start(self):
        self._ensemble.start()

    def lose(self):
        self._lost = self._ensemble.leader()
        self._lost.kill9()
        self._ensemble.wait_leader()

    def regain(self):
        self._lost.start()
        self._lost = None

    def restart_each(self):
        """A rolling restart, the leader last."""
        leader = self._ensemble.leader()
        for member in [*(other for other in self._ensemble if other is not leader), leader]:
            member.restart()
            self._ensemble.wait_serving()

    @contextlib.contextmanager
    def outage(self):
        """No majority while the block runs: the leader and one follower are killed."""
        leader = self._ensemble.leader()
        killed = [leader, next(member for member in self._ensemble if member is not leader)]
        for member in killed:
            member.kill9()
        yield
        for member in killed:
            member.spawn()
        self._ensemble.wait_serving()

    def connect(self):
        return self._ensemble.leader().connect_soon()

    def check_same(self):
        assert_same(self._ensemble)

    def close(self):
        self._ensemble.close()

    def logs(self):
        return self._ensemble.log_tails()


class Stage:
    """What an application's scenario finds: `servers`, `folder`, `bounded`, and the programs it has started. `secured` is
    what the suite has made of its keys and certificates; None where everybody may do everything."""

    def __init__(self, folder, members, bounded, cfg, secured=None):
        self.folder = pathlib.Path(folder)
        self.members = members
        self.bounded = bounded
        self.secured = secured
        if secured:
            cfg = {**cfg, **secured.cfg, "DigestAuthenticationProvider.superDigest": SUPER_DIGEST}
        self.servers = (One if members == 1 else Three)(self.folder / "servers", cfg)
        self.programs = []
        self.passed = self.failed = 0

    @property
    def hosts(self):
        """The connection string."""
        return ",".join(f"{host}:{port}" for host, port in self.servers.addresses)

    @property
    def lost(self):
        """What `servers.lose` does, in words."""
        return "the leader is killed" if self.members > 1 else "the server is killed and started"

    def add(self, program):
        """Ended with the stage, whatever happens."""
        self.programs.append(program)
        return program

    @contextlib.contextmanager
    def step(self, what, needed=False):
        began = time.monotonic()
        try:
            yield
        except Exception as error:
            self.failed += 1
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {what} ({time.monotonic() - began:.1f} s)", flush=True)
            if needed:
                raise GivenUp(what) from error
        else:
            self.passed += 1
            print(f"ok     {what} ({time.monotonic() - began:.1f} s)", flush=True)

    @contextlib.contextmanager
    def connection(self):
        """A session of our own, to look at what the application keeps in the tree."""
        with self._connected() as conn:
            if self.secured:
                conn.auth("digest", SUPER)
            conn.sync("/")
            yield conn

    def look(self, action):
        """`action(connection)` once more while the servers find out where they stand; its answer."""
        def attempt():
            try:
                with self.connection() as conn:
                    return (action(conn),)
            except (Closed, OSError):
                return None

        return wait_until(attempt, 60.0, "an answer")[0]

    def wait_connected(self, sessions):
        """Until each of these sessions (ids) has found a server again, as `cons` of all servers tells."""
        wanted = {session % (1 << 64) for session in sessions}
        wait_until(lambda: wanted <= self._sessions(), 60.0, "the connection of every session")

    def _sessions(self):
        found = set()
        for host, port in self.servers.addresses:
            with contextlib.suppress(OSError):
                found |= {int(sid, 16) for sid in re.findall(r"sid=0x([0-9a-f]+)", four_letter_word(port, "cons", host=host))}
        return found

    def _connected(self):
        def attempt():
            try:
                return self.servers.connect()
            except (Closed, OSError):
                return None

        return eventually(attempt, 60.0, "a connection")

    def owners(self, path):
        """Child of `path` → session that owns it and zxid that made it: equal as long as it is the same ephemeral."""
        with self.connection() as conn:
            if conn.exists(path) is None:
                return {}
            stats = {name: conn.exists(f"{path}/{name}") for name in conn.children(path)}
        return {name: (stat.ephemeral_owner, stat.czxid) for name, stat in stats.items() if stat}

    def close(self):
        with contextlib.ExitStack() as all_of_them:  # one that cannot be ended does not save the others
            all_of_them.callback(self.servers.close)
            for program in self.programs:
                all_of_them.callback(program.kill9)


def main(name, play, *, client, version, ran, cfg=None, left_out=0, why="", doc="", secure=None):
    """Plays the scenario, records its counts, returns the exit code. `secure(folder)` makes what `--secured` needs there;
    its `cfg` goes into zoo.cfg."""
    options = _options(doc, secure)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = options.keep or tempfile.mkdtemp(prefix=f"quenda-{name}-")
    began = time.monotonic()
    secured = secure(pathlib.Path(folder) / "secrets") if secure and options.secured else None
    stage = Stage(folder, options.members, options.bounded, cfg or {}, secured)
    try:
        with stage.step(f"{options.members} server(s) of {TARGET}", needed=True):
            stage.servers.start()
        play(stage)
    except GivenUp as reason:
        print(f"given up: the rest needs {reason}", flush=True)
    finally:
        if stage.failed:
            print(stage.servers.logs(), *(f"--- {program.name}\n{program.tail()}" for program in stage.programs), sep="\n")
        stage.close()
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{name}, {options.members} member(s), {time.monotonic() - began:.0f} s", flush=True)
    if secured:
        name, ran = f"{name}-secured", f"{ran}; {secured.says}"
    if IS_QUENDA:
        record(f"{name}-{options.members}", client=client, version=version, ran=ran, members=options.members,
               command=f"make {name.replace('_', '-')}", passed=stage.passed, failed=stage.failed, left_out=left_out, why=why)
    else:
        print(f"{stage.passed} passed, {stage.failed} failed, {left_out} skipped", flush=True)
    return 1 if stage.failed or not stage.passed else 0


def _options(doc, secure):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, choices=(1, 3), default=3, help="servers (default 3)")
    parser.add_argument("--bounded", action="store_true", help="less of everything, for a short run")
    if secure:
        parser.add_argument("--secured", action="store_true", help="over TLS, with proofs of identity and access lists")
    parser.add_argument("--keep", metavar="FOLDER", help="work in this folder and leave it behind")
    return parser.parse_args()
