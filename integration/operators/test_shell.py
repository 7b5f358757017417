"""`quenda shell` against the goldens of the genuine one, and what it has of its own."""

import pytest
from integration.lib.quenda_server import QuendaServer
from integration.operators.shell_session import CFG, SESSIONS, golden, quenda_shell, run


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.stem)
def test_sessions_read_as_the_genuine_shells(session, tmp_path):
    with QuendaServer(tmp_path / "server", CFG) as server:
        assert run(session, server.port, quenda_shell(tmp_path)) == golden(session).read_text()
