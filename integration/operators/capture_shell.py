"""Captures what the genuine shell prints in the sessions of shell_sessions/, as the goldens of test_shell.py.

    python3 -m integration.operators.capture_shell [name...]

Each session has a fresh genuine server.
"""

import pathlib
import subprocess
import sys
import tempfile

from integration.operators.shell_session import CFG, SESSIONS, genuine_shell, golden, run
from integration.zookeeper import genuine


def shell():
    """The command of the genuine shell, fetched first if the cache lacks it."""
    script = pathlib.Path(genuine.__file__).with_name("install-shell")
    done = subprocess.run([str(script)], stdout=subprocess.PIPE, text=True, check=True)
    folder = pathlib.Path(done.stdout.strip().splitlines()[-1])
    return genuine_shell(genuine.class_path(), sorted(folder.glob("*.jar")))


def main():
    wanted = sys.argv[1:]
    command = shell()
    for session in SESSIONS:
        if wanted and session.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            with genuine.GenuineZooKeeper(folder, CFG, heap="200m") as server:
                text = run(session, server.port, command)
        golden(session).write_text(text)
        print(f"{golden(session)}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
