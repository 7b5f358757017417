"""A member that gets another quorum port while it runs."""

import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import free_port  # noqa: E402
from integration.operating.cli import eventually, until  # noqa: E402

CFG = {"reconfigEnabled": "true", "skipACL": "yes"}


def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def move(ensemble, member, port):
    """Gives the member this quorum port, as an operator does it."""
    member.quorum_port = port
    with ensemble.leader().connect_soon() as conn:
        conn.reconfig(f"server.{member.number}={member.line()}")


def test_it_moves_as_soon_as_the_port_is_free(tmp_path):
    with Ensemble(tmp_path, cfg=CFG) as ensemble:
        moved = ensemble.followers()[0]
        old = moved.quorum_port
        with socket.create_server((moved.host, 0)) as taken:
            new = taken.getsockname()[1]
            move(ensemble, moved, new)
            eventually(lambda: "which cannot be opened" in moved.log_tail())
            assert listens(moved.host, old)
        eventually(lambda: not listens(moved.host, old))
        assert listens(moved.host, new)
        until(moved.address, code=0)
        # The others know it by the new address alone, and find it there when they start again.
        for other in ensemble:
            if other is not moved:
                other.restart()
                until(moved.address, code=0)


def test_a_member_that_starts_with_its_old_line_listens_on_both(tmp_path):
    with Ensemble(tmp_path, cfg=CFG) as ensemble:
        moved = ensemble.leader()
        old, new = moved.quorum_port, free_port()
        move(ensemble, moved, new)
        eventually(lambda: listens(moved.host, new) and not listens(moved.host, old))
        moved.stop()
        # What writes the configuration anew at every start brings the old line back.
        (moved.folder / "zoo.cfg").write_text((moved.folder / "zoo.cfg.bak").read_text())
        moved.start()
        eventually(lambda: listens(moved.host, new))
        assert listens(moved.host, old)
        until(moved.address, code=0)
