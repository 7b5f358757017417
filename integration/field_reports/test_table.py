"""The README's table and the tests say the same."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


def test_every_row_of_the_table_has_its_tests():
    tested = {}
    for path in HERE.glob("test_*.py"):
        for name in re.findall(r"^def test_(B\d+)_", path.read_text(), re.MULTILINE):
            tested.setdefault(name, set()).add(path.name)
    listed = {}
    for line in (HERE / "README.md").read_text().splitlines():
        if line.startswith("| B"):
            rows, where = line.strip("| ").split(" | ")
            for row in rows.split():
                listed[row] = re.findall(r"test_b?\w+\.py", where)
    assert tested.keys() <= listed.keys(), sorted(tested.keys() - listed.keys())
    for row, files in listed.items():
        if files:
            assert row in tested and set(files) & tested[row], f"{row} has no test in {files}"
        else:
            assert row not in tested, f"{row} has a test, the table says it has none"
