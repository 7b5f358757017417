"""A picture of ratios: a row for each load, a dot for each server, on a scale of powers of ten with 1 in it."""

from integration.compare import chart

ROW, GROUP_GAP, LEFT, TOP = 19, 10, 210, 66
WIDTH = chart.WIDTH
RIGHT = WIDTH - 60


def write(path, title, rows):
    """`rows` are (title, {name: ratio}), or None for a gap."""
    names = list(dict.fromkeys(name for row in rows if row for name in row[1]))
    # The compared one last: it is drawn above the others.
    axis = chart.Axis([1.0, *(ratio for row in rows if row for ratio in row[1].values())], LEFT, RIGHT, log=True)
    bottom = TOP + sum(ROW if row else GROUP_GAP for row in rows)
    body = []
    for tick in axis.ticks:
        body += [chart.line(axis.at(tick), TOP - 8, axis.at(tick), bottom, "g"),
                 chart.text(axis.at(tick), bottom + 18, f"{chart.short(tick)} ×", "middle")]
    body.append(chart.line(axis.at(1.0), TOP - 8, axis.at(1.0), bottom, "a"))
    for number, name in enumerate(names):
        x = LEFT + number * 110
        body += [chart.mark(number, x, 42, chart.COLOURS[number]), chart.text(x + 12, 46, name)]
    body.append(chart.text(RIGHT, 46, "1 × is ZooKeeper", "end"))
    y = TOP
    for row in rows:
        if row is None:
            y += GROUP_GAP
            continue
        words, found = row
        middle = y + ROW / 2
        body += [chart.text(LEFT - 12, middle + 4, words, "end"), chart.line(LEFT, middle, RIGHT, middle, "g")]
        for name, ratio in found.items():
            number = names.index(name)
            body.append(chart.mark(number, axis.at(ratio), middle, chart.COLOURS[number]))
        if names[-1] in found:
            body.append(chart.text(RIGHT + 8, middle + 4, chart.short(float(f"{found[names[-1]]:.3g}"))))
        y += ROW
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(chart.frame(title, int(bottom + 32), body))
