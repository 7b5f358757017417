"""Pictures of figures as SVG: lines over a growing number, and bars beside each other.

They stand on the ground of whoever shows them, light or dark: the colours are of a middle tone, and text follows the
reader's preference. Lines differ by dash and mark as well as by colour.
"""

import dataclasses
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 168, 40, 52
COLOURS = ("#2f81f7", "#e0701c", "#2da44e", "#bf4b8a", "#8957e5", "#a8862a")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "1 3")
STYLE = """<style>
text{font:12px system-ui,sans-serif;fill:#4d5661}.t{font-size:14px;font-weight:600}
.g{stroke:#8b949e;stroke-opacity:.28}.a{stroke:#8b949e}
@media (prefers-color-scheme:dark){text{fill:#b6bfc9}}
</style>"""


@dataclasses.dataclass(frozen=True)
class Series:
    """One line: its name and its points, (x, y)."""

    name: str
    points: list


class Axis:
    """Maps values to a stretch of the picture, linearly from 0 or by powers of ten."""

    def __init__(self, values, begin, end, log):
        self.log, self.begin, self.end = log, begin, end
        if log:
            least, most = min(v for v in values if v > 0), max(values)
            self.low, self.high = math.floor(math.log10(least) + 1e-9), math.ceil(math.log10(most) - 1e-9)
            self.high = max(self.high, self.low + 1)
            self.ticks = [10.0**power for power in range(self.low, self.high + 1)]
        else:
            step = nice_step(max(values) or 1.0)
            count = max(math.ceil(max(values) / step - 1e-9), 1)
            self.low, self.high = 0.0, step * count
            self.ticks = [step * number for number in range(count + 1)]

    def at(self, value):
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def nice_step(most, steps=6):
    """The smallest of 1, 2, 5 times a power of ten with which `steps` of them reach `most`."""
    power = 10.0 ** math.floor(math.log10(most / steps))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power * steps >= most * (1 - 1e-9))


def short(value):
    """A number as a label: 20 k, 1.5 M, 0.25."""
    for bound, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= bound * (1 - 1e-9):
            return f"{value / bound:.4g}{unit}"
    return f"{value:.4g}"


def text(x, y, words, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def mark(kind, x, y, colour):
    if kind % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    if kind % 3 == 1:
        return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" fill="{colour}"/>'
    return f'<path d="M{x:.1f} {y - 4.4:.1f}l4.2 7.4h-8.4z" fill="{colour}"/>'


def frame(title, height, body):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, STYLE, f"<title>{escape(title)}</title>", text(12, 22, title, extra=' class="t"'), *body, "</svg>\n"])


def lines(path, title, x_label, y_label, series, x_log=True, y_log=False):
    """Writes a chart of lines; each of `series` is a `Series`."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    points = [point for entry in series for point in entry.points]
    xs = Axis([x for x, _ in points], LEFT, right, x_log)
    ys = Axis([y for _, y in points], bottom, TOP, y_log)
    body = []
    for tick in ys.ticks:
        body += [line(LEFT, ys.at(tick), right, ys.at(tick), "g"), text(LEFT - 8, ys.at(tick) + 4, short(tick), "end")]
    for tick in xs.ticks:
        body += [line(xs.at(tick), TOP, xs.at(tick), bottom, "g"), text(xs.at(tick), bottom + 18, short(tick), "middle")]
    body += [line(LEFT, bottom, right, bottom, "a"), line(LEFT, TOP, LEFT, bottom, "a")]
    body.append(text((LEFT + right) / 2, HEIGHT - 12, x_label, "middle"))
    middle = (TOP + bottom) / 2
    body.append(text(16, middle, y_label, "middle", f' transform="rotate(-90 16 {middle:.1f})"'))
    for number, entry in enumerate(series):
        body += curve(number, entry, xs, ys)
        colour, y = COLOURS[number % len(COLOURS)], TOP + 10 + 20 * number
        body += [mark(number, right + 18, y, colour), text(right + 30, y + 4, entry.name)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(frame(title, HEIGHT, body))


def curve(number, entry, xs, ys):
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    places = [(xs.at(x), ys.at(y)) for x, y in entry.points]
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    drawn = [f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>']
    return drawn + [mark(number, x, y, colour) for x, y in places]


def bars(path, title, label, groups, log=False):
    """Writes a chart of bars that lie beside each other in groups; `groups` is [(name, [(series, value), ...]), ...]."""
    names = list(dict.fromkeys(name for _, entries in groups for name, _ in entries))
    left, right = 210, WIDTH - 90
    thickness, gap = 13, 12
    bottom = TOP + 24 + sum(len(entries) * thickness + gap for _, entries in groups)
    xs = Axis([value for _, entries in groups for _, value in entries], left, right, log)
    body, y = [], TOP + 24
    for number, name in enumerate(names):
        x = left + number * 150
        body += [mark(1, x, TOP + 6, COLOURS[number % len(COLOURS)]), text(x + 10, TOP + 10, name)]
    for tick in xs.ticks:
        body += [line(xs.at(tick), TOP + 18, xs.at(tick), bottom, "g"), text(xs.at(tick), bottom + 16, short(tick), "middle")]
    for group, entries in groups:
        body.append(text(left - 10, y + len(entries) * thickness / 2 + 4, group, "end"))
        for name, value in entries:
            colour, width = COLOURS[names.index(name) % len(COLOURS)], max(xs.at(value) - left, 1.0)
            body.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{thickness - 2}" fill="{colour}"/>')
            body.append(text(left + width + 5, y + thickness - 3, short(value)))
            y += thickness
        y += gap
    body.append(text((left + right) / 2, bottom + 36, label, "middle"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(frame(title, bottom + 48, body))
