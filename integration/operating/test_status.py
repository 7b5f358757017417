"""`quenda status` beside members that are well, gone, strangers, and started from flags alone."""

import pathlib
import re
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import ServerProcess, free_port  # noqa: E402
from integration.lib.quenda_server import QuendaServer, quenda_binary  # noqa: E402
from integration.lib.zkwire import Conn  # noqa: E402
from integration.operating.cli import eventually, quenda, status, until  # noqa: E402

@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    with Ensemble(tmp_path_factory.mktemp("three")) as ensemble:
        yield ensemble


def test_one_address_shows_all_members(ensemble):
    report = until(ensemble[1].address, code=0)
    leader = ensemble.leader()
    assert report["leader"] == leader.number
    assert [row["id"] for row in report["members"]] == [1, 2, 3]
    assert {row["status"]["digest"] for row in report["members"]} == {report["members"][0]["status"]["digest"]}
    roles = {row["id"]: row["status"]["role"] for row in report["members"]}
    assert sorted(roles.values()) == ["follower", "follower", "leader"] and roles[leader.number] == "leader"
    text = quenda("status", "--servers", ensemble[1].address)
    assert text.code == 0 and text.out.splitlines()[-1] == "healthy: 3 of 3 voters answer, 1 of them may fail"


def test_a_member_that_is_gone_degrades_and_a_lost_quorum_is_down(ensemble):
    gone, left, last = ensemble.followers()[0], ensemble.leader(), ensemble.followers()[1]
    gone.kill9()
    report = until(left.address, code=1)
    assert any(f"member {gone.number} " in problem and "cannot be reached" in problem for problem in report["problems"])
    last.kill9()
    report = until(left.address, code=3)
    assert report["problems"][0].startswith("nobody leads")
    gone.start()
    last.start()
    until(left.address, code=0)


def test_an_old_copy_of_the_data_is_noticed_and_an_empty_directory_heals_it(ensemble, tmp_path):
    ensemble.wait_serving()
    member, copy = ensemble.followers()[0], tmp_path / "copy"
    member.stop()
    shutil.copytree(member.data, copy)
    member.start()
    until(member.address, code=0)
    with member.connect() as conn:
        for number in range(20):
            conn.create(f"/after-the-copy-{number}")
    member.kill9()
    member.wipe()
    shutil.copytree(copy, member.data, dirs_exist_ok=True)
    member.spawn()
    text = f"member {member.number} ({member.address}) has data older than what it has confirmed"
    found = eventually(lambda: [problem for problem in status(member.address)[1]["problems"] if text in problem])
    report = status(member.address)[1]
    assert report["problems"] == found, "said once, and nothing that follows from it"
    assert "0 of them may fail" in quenda("status", "--servers", member.address).out
    assert "older than what it has confirmed" in member.log_tail()
    member.kill9()
    member.wipe()
    member.start()
    until(member.address, code=0)
    assert member.alive() and "0 of them" not in quenda("status", "--servers", member.address).out


def test_nobody_there_is_down():
    result = quenda("status", "--servers", f"127.0.0.1:{free_port()}")
    assert result.code == 3 and "no member answers" in result.out


def test_a_stranger_is_told_from_a_member(ensemble, tmp_path):
    with QuendaServer(tmp_path) as alone:
        _, report = status(ensemble[1].address, f"127.0.0.1:{alone.port}")
        assert any("another cluster" in problem for problem in report["problems"]), report["problems"]


def test_a_member_that_runs_alone_is_healthy(tmp_path):
    with QuendaServer(tmp_path) as alone:
        report = until(f"127.0.0.1:{alone.port}", code=0)
        assert report["members"][0]["status"]["role"] == "standalone"


class FlagMember(ServerProcess):
    """A member that is started from its command line alone."""

    def __init__(self, folder, number, lines, port):
        super().__init__(folder, port=port)
        self.args = ["--my-id", str(number), "--data-dir", str(folder / "data")]
        self.args += [word for line in lines for word in ("--server", line)]

    def command(self):
        return [str(quenda_binary()), "serve", *self.args]


def test_three_members_start_from_three_command_lines(tmp_path):
    ports = {number: [free_port() for _ in range(3)] for number in (1, 2, 3)}
    lines = [f"{number}=127.0.0.1:{q}:{e};{c}" for number, (q, e, c) in ports.items()]
    members = [FlagMember(tmp_path / str(number), number, lines, ports[number][2]) for number in ports]
    try:
        for member in members:
            member.data_dir.mkdir(parents=True)
            member.spawn()
        report = until(f"127.0.0.1:{members[0].port}", code=0)
        assert [row["id"] for row in report["members"]] == [1, 2, 3]
    finally:
        for member in members:
            member.kill9()


def test_a_member_of_an_ensemble_does_not_start_without_the_others(tmp_path):
    with Ensemble(tmp_path) as ensemble:
        member = ensemble[1]
        ensemble.stop()
        alone = quenda("serve", "--my-id", "1", "--client-port", "0", "--data-dir", member.data)
        assert alone.code == 2 and "belongs to an ensemble with 3 members" in alone.err, alone


def test_a_member_that_ran_alone_becomes_three_with_its_data(tmp_path):
    ports = {number: [free_port() for _ in range(3)] for number in (1, 2, 3)}
    lines = [f"{number}=127.0.0.1:{q}:{e};127.0.0.1:{c}" for number, (q, e, c) in ports.items()]
    members = [FlagMember(tmp_path / str(number), number, lines, ports[number][2]) for number in ports]
    first = members[0]
    alone = quenda_alone(first)
    try:
        with Conn(alone.port) as conn:
            conn.create("/kept", b"1")
        alone.stop()
        for member in members:
            member.data_dir.mkdir(parents=True, exist_ok=True)
            member.spawn()
        report = until(f"127.0.0.1:{first.port}", code=0)
        assert [row["id"] for row in report["members"]] == [1, 2, 3]
        with Conn(members[2].port) as conn:
            assert conn.get("/kept")[0] == b"1"
    finally:
        for member in [*members, alone]:
            member.kill9()


def quenda_alone(member):
    """A server without server lines on the data directory of `member`."""
    alone = FlagMember(member.data_dir, member.args[1], [], free_port())
    alone.args += ["--client-address", "127.0.0.1", "--client-port", str(alone.port)]
    alone.data_dir.mkdir(parents=True)
    alone.spawn()
    until(f"127.0.0.1:{alone.port}", code=0)
    return alone


def test_the_readme_has_command_lines_that_parse():
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    commands = re.findall(r"^quenda serve --my-id (\d) .*$", readme, flags=re.MULTILINE)
    assert commands == ["1", "2", "3"]
