"""Captures a genuine server's audit log of the session in audit_session.py, as the golden of test_audit.py.

    python3 -m integration.operators.capture_audit [file]
"""

import getpass
import pathlib
import re
import sys
import tempfile

from integration.operators.audit_session import CFG, normalised, session
from integration.zookeeper.genuine import GenuineZooKeeper

GOLDEN = pathlib.Path(__file__).parent / "golden" / "audit.txt"
LOGGER = "org.apache.zookeeper.audit.Slf4jAuditLogger"
LINE = re.compile(rf"(INFO|ERROR) {re.escape(LOGGER)} - (.*)")


def capture(folder):
    props = {f"org.slf4j.simpleLogger.log.{LOGGER}": "info"}
    server = GenuineZooKeeper(folder, CFG, props, heap="200m")
    server.start()
    session(server.port)
    server.stop()
    text = server.log_path.read_text("utf-8", "replace")
    return [f"{level}\t{message}" for level, message in LINE.findall(text)]


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN
    with tempfile.TemporaryDirectory() as folder:
        lines = capture(pathlib.Path(folder))
    target.write_text("".join(f"{line}\n" for line in normalised(lines, getpass.getuser())))
    print(f"{target}: {len(lines)} lines")


if __name__ == "__main__":
    main()
