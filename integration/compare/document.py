"""What a run writes into the repository: its part of docs/performance.md, and files below docs/performance."""

import csv
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "performance.md"
FOLDER = DOCS / "performance"


def replace(name, text, page=PAGE):
    """Puts `text` between the lines `<!-- NAME: begin … -->` and `<!-- NAME: end -->`."""
    pattern = re.compile(rf"(<!-- {re.escape(name)}: begin[^\n]*-->\n).*?(<!-- {re.escape(name)}: end -->)", re.DOTALL)
    before = page.read_text()
    after, count = pattern.subn(lambda found: f"{found[1]}{text.strip()}\n{found[2]}", before)
    if count != 1:
        raise ValueError(f"{page.name} has {count} places for {name}")
    page.write_text(after)


def table(header, rows):
    """A table of Markdown; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in lines)


def write_csv(name, header, rows):
    """docs/performance/NAME.csv."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def number(value, digits=3):
    """Three digits, thousands apart: 1 230 000, 12.3, 0.0123."""
    if value is None:
        return "–"
    if value != 0 and abs(value) >= 10 ** (digits - 1):
        power = len(str(int(abs(value)))) - digits
        return f"{int(round(value, -power)):,}".replace(",", " ")
    return f"{value:.{digits}g}"
