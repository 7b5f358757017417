"""Two PostgreSQL servers under Patroni, and `patronictl`."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psycopg

from integration.lib.process import ServerError, free_port
from integration.lib.program import Program, wait_until

SCOPE = "demo"
HOME = f"/service/{SCOPE}"
PASSWORDS = {"superuser": ("postgres", "rows"), "replication": ("replicator", "stream")}
LONG = 240.0
# A session's timeout (the shortest that Patroni takes), the period of its loop, how long it tries again.
TTL, LOOP_WAIT, RETRY_TIMEOUT = 20, 2, 8


def postgres_programs():
    """The folder of the newest PostgreSQL that is installed."""
    found = pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres")
    return max(found, key=lambda path: int(path.parts[-3])).parent


def unprivileged():
    """Words in front of a command that must not run as root. Root's own files stay readable: Python may be among them."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
            "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]


def runs(pid):
    """Whether there is such a process that has not ended."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


class Member:
    """One Patroni with its PostgreSQL."""

    def __init__(self, stage, name):
        self.name = name
        self.folder = stage.folder / name
        self.folder.mkdir()
        self.data = self.folder / "data"
        self.port, self.rest_port = free_port(), free_port()
        self.config = self.folder / "patroni.yml"
        # YAML reads JSON.
        self.config.write_text(json.dumps(self._settings(stage), indent=1))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        command = [*unprivileged(), sys.executable, "-m", "patroni", self.config]
        self.program = stage.add(Program(name, command, self.folder))

    def __repr__(self):
        return self.name

    def _settings(self, stage):
        users = {role: {"username": name, "password": password} for role, (name, password) in PASSWORDS.items()}
        return {
            "scope": SCOPE,
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self.rest_port}", "connect_address": f"127.0.0.1:{self.rest_port}"},
            "zookeeper": {"hosts": stage.hosts, **(stage.secured.settings if stage.secured else {})},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL, "loop_wait": LOOP_WAIT, "retry_timeout": RETRY_TIMEOUT,
                    "synchronous_mode": True,  # what is acknowledged is on both, so that nothing may be missing
                    "postgresql": {"use_pg_rewind": True, "parameters": {"max_connections": 30, "shared_buffers": "32MB"}},
                },
                "initdb": [{"encoding": "UTF8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self.data), "bin_dir": str(postgres_programs()),
                "pgpass": str(self.folder / "pgpass"),
                "authentication": users,
                "basebackup": [{"checkpoint": "fast"}],
                "pg_hba": ["host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"],
                "parameters": {"unix_socket_directories": str(self.folder)},
            },
        }

    def start(self):
        self.program.start()

    def stop(self):
        """SIGTERM. Patroni stops its PostgreSQL as well, unless it is paused."""
        self.program.stop()

    def postmaster(self):
        """The process id of its PostgreSQL; None while there is none."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None
        return pid if runs(pid) else None

    def kill9(self):
        """Patroni and PostgreSQL at once."""
        if postmaster := self.postmaster():
            os.kill(postmaster, signal.SIGKILL)
        self.program.kill9()
        wait_until(lambda: not self.postmaster(), LONG, f"the end of {self}")

    def status(self):
        """What its REST interface tells; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest_port}/patroni", timeout=10.0) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as answer:  # "unavailable" has a body as well
            return json.load(answer)
        except (OSError, ValueError):
            return {}

    def ask(self, query):
        """The first row of an answer of this PostgreSQL, whatever its role."""
        user, password = PASSWORDS["superuser"]
        with psycopg.connect(host="127.0.0.1", port=self.port, user=user, password=password, dbname="postgres",
                             connect_timeout=10, autocommit=True) as connection:
            return connection.execute(query).fetchone()


class PatroniCluster:
    """Two members."""

    def __init__(self, stage):
        self.members = [Member(stage, name) for name in ("pg1", "pg2")]

    def __iter__(self):
        return iter(self.members)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self:
            member.kill9()

    def other(self, member):
        return next(one for one in self if one is not member)

    def primary(self):
        """The member that accepts writes; None when there is none."""
        primaries = [member for member in self if member.status().get("role") == "primary"
                     and member.status().get("state") == "running"]
        if len(primaries) > 1:
            raise AssertionError("two primaries")
        return primaries[0] if primaries else None

    def settled(self):
        """The primary, once its replica streams from it on the same timeline and is the synchronous one; else None."""
        primary = self.primary()
        if not primary:
            return None
        mine, others = primary.status(), self.other(primary).status()
        streams = others.get("replication_state") == "streaming" and others.get("sync_standby")
        return primary if streams and mine.get("timeline") == others.get("timeline") else None

    def wait_settled(self):
        return wait_until(self.settled, LONG, "a primary with a synchronous replica")

    def ctl(self, *words, say=None, seconds=120.0):
        """`patronictl`; returns what it prints."""
        command = [pathlib.Path(sys.executable).with_name("patronictl"), "-c", str(self.members[0].config), *words]
        done = subprocess.run(command, input=say, capture_output=True, text=True, timeout=seconds, check=False)
        if done.returncode:
            raise ServerError(f"patronictl {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


class Writer:
    """Inserts consecutive numbers into whichever server accepts writes, and knows which of them are acknowledged."""

    def __init__(self, cluster):
        user, password = PASSWORDS["superuser"]
        ports = ",".join(str(member.port) for member in cluster)
        self._target = (f"host=127.0.0.1,127.0.0.1 port={ports} user={user} password={password} dbname=postgres "
                        "target_session_attrs=read-write connect_timeout=5")
        self.acknowledged = []
        self._moments = []

    def run(self, ended):
        """Until `ended` (an event) is set."""
        number, connection = 0, None
        while not ended.is_set():
            try:
                if connection is None:
                    connection = psycopg.connect(self._target, autocommit=True)
                    connection.execute("create table if not exists numbers (number bigint primary key)")
                number += 1
                connection.execute("insert into numbers values (%s)", (number,))
                self.acknowledged.append(number)
                self._moments.append(time.monotonic())
                ended.wait(0.02)
            except psycopg.Error:  # of unknown fate: the next number, with whoever accepts it
                if connection is not None:
                    connection.close()
                    connection = None
                ended.wait(0.2)
        if connection is not None:
            connection.close()

    def longest_pause_since(self, moment):
        """The longest time without an acknowledged row from `moment` up to now."""
        marks = [moment, *(at for at in self._moments if at > moment), time.monotonic()]
        return max(later - earlier for earlier, later in zip(marks, marks[1:], strict=False))

    def wait_for_more(self, count=20):
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, LONG, f"{count} more rows")

    def missing(self, member, acknowledged):
        """How many of these a server does not have."""
        user, password = PASSWORDS["superuser"]
        with psycopg.connect(host="127.0.0.1", port=member.port, user=user, password=password, dbname="postgres") as link:
            found = {number for (number,) in link.execute("select number from numbers")}
        return len(set(acknowledged) - found)
