"""Captures the configuration files that genuine servers write when their members change, as the golden of test_config.py.

    python3 -m integration.operators.capture_members [file]
"""

import pathlib
import sys
import tempfile

from integration.lib.ensemble import Ensemble
from integration.operators.members_story import CFG, story

GOLDEN = pathlib.Path(__file__).parent / "golden" / "members.txt"


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN
    with tempfile.TemporaryDirectory() as folder:
        with Ensemble(pathlib.Path(folder).resolve(), cfg=CFG, target="genuine") as ensemble:
            lines, _, _ = story(ensemble)
    target.write_text("".join(f"{line}\n" for line in lines))
    print(f"{target}: {len(lines)} lines")


if __name__ == "__main__":
    main()
