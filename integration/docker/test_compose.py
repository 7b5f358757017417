"""docker/compose.yaml: three members that form an ensemble, lose one and get it back, stop, and go on."""

import os
import secrets
import subprocess

import pytest
from container import REPOSITORY, Container, docker, wait_until

from integration.lib.process import free_port

MEMBERS = ("zoo1", "zoo2", "zoo3")
HAS_PLUGIN = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


class Ensemble:
    """The project of docker/compose.yaml under a name and on ports of its own."""

    def __init__(self, image):
        self.project = f"quenda-test-{secrets.token_hex(4)}"
        self.ports = [free_port() for _ in MEMBERS]
        self.env = dict(os.environ, QUENDA_IMAGE=image, QUENDA_HEALTH_INTERVAL="500ms")
        for number, port in enumerate(self.ports, 1):
            self.env[f"QUENDA_PORT_{number}"] = str(port)

    def compose(self, *arguments, check=True):
        binary, first = ("docker", ["compose"]) if HAS_PLUGIN else ("docker-compose", [])
        project = ("--project-name", self.project, "--file", str(REPOSITORY / "docker/compose.yaml"))
        return docker(*first, *project, *arguments, check=check, binary=binary, env=self.env)

    def up(self, *arguments):
        self.compose("up", "--detach", "--no-build", *arguments)
        self.wait_healthy()

    def member(self, service):
        label = "label=com.docker.compose"
        chosen = ("--filter", f"{label}.project={self.project}", "--filter", f"{label}.service={service}")
        return Container(docker("ps", "--quiet", "--all", *chosen))

    def members(self):
        return {service: self.member(service) for service in MEMBERS}

    def wait_healthy(self):
        for member in self.members().values():
            member.wait_healthy()

    def modes(self):
        return {service: member.mode() for service, member in self.members().items()}

    def leader(self):
        return next((service for service, mode in self.modes().items() if mode == "leader"), None)

    def port(self, service):
        return self.ports[MEMBERS.index(service)]


@pytest.fixture
def ensemble(image):
    ensemble = Ensemble(image)
    yield ensemble
    ensemble.compose("down", "--volumes", "--timeout", "5", check=False)


def restart(ensemble, service, zk, local):
    """One member is away and the other two go on; `local` is a client of that member, `zk` one of all three."""
    ensemble.member(service).stop()
    zk.retry(zk.ensure_path, f"/while-{service}-was-away")
    wait_until("the other two have a leader", lambda: ensemble.leader() not in (None, service))
    ensemble.member(service).start().wait_healthy()
    assert local.retry(local.exists, f"/while-{service}-was-away"), "it has what it missed"


def test_three_members_work_as_one(ensemble, client):
    ensemble.up()
    assert sorted(ensemble.modes().values()) == ["follower", "follower", "leader"]

    writers = {service: client(ensemble.port(service)) for service in MEMBERS}
    for writer, zk in writers.items():
        zk.create(f"/{writer}", writer.encode())
        for other in writers.values():
            other.sync("/")
            assert other.get(f"/{writer}")[0] == writer.encode()
    zk = client(*ensemble.ports)
    zk.create("/alive", ephemeral=True)
    session = zk.client_id

    for service in MEMBERS:
        restart(ensemble, service, zk, local=writers[service])
    assert zk.client_id == session
    assert zk.retry(zk.exists, "/alive").owner_session_id == session[0]

    # Another container with the same volumes, and as a rule another address behind the name.
    ensemble.up("--force-recreate", "zoo2")
    assert client(ensemble.port("zoo2")).exists("/zoo1")

    ensemble.compose("stop", "--timeout", "30")
    assert {service: member.state()["ExitCode"] for service, member in ensemble.members().items()} == dict.fromkeys(
        MEMBERS, 0
    )
    ensemble.up()
    assert sorted(ensemble.modes().values()) == ["follower", "follower", "leader"]
    zk.retry(zk.sync, "/")
    assert set(zk.retry(zk.get_children, "/")) >= {*MEMBERS, "while-zoo1-was-away", "alive"}
    assert zk.client_id == session, "the session outlives a stop of all members"


def test_a_members_own_host_may_be_a_wildcard(run, image):
    """Compose files in the field write 0.0.0.0 for the member itself, so no two files are the same."""
    network = f"quenda-test-{secrets.token_hex(4)}"
    docker("network", "create", network)
    members = []
    try:
        for own in MEMBERS:
            lines = [
                f"server.{number}={'0.0.0.0' if name == own else name}:2888:3888;2181"
                for number, name in enumerate(MEMBERS, 1)
            ]
            variables = ("--env", f"ZOO_MY_ID={MEMBERS.index(own) + 1}", "--env", f"ZOO_SERVERS={' '.join(lines)}")
            members.append(run("--network", network, "--network-alias", own, *variables, port=free_port()))
        for member in members:
            member.wait_healthy()
        assert sorted(member.mode() for member in members) == ["follower", "follower", "leader"]
    finally:
        for member in members:
            docker("rm", "--force", "--volumes", member.name)
        docker("network", "rm", network)
