# SPDX-License-Identifier: MIT
"""The results as Markdown."""
import collections
import itertools
import statistics
import sys

from bench import machine_load
from bench.estimates import ratio
from bench.samplers import engine_of, is_ours

# (heading, field of Row, digits)
NUMBERS = (
    ("stacks/s", "stacks_per_s", 0),
    ("ticks/s", "ticks_per_s", 0),
    ("CPU µs/stack", "cpu_us_per_stack", 2),
    ("CPU/sleep", "sleep_ratio", 2),
    ("lost %", "lost_percent", 2),
    ("impossible %", "impossible_percent", 3),
    ("self %", "self_percent", 1),
    ("floor", "self_floor", 1),
    ("pair %", "pair_percent", 1),
    ("floor", "pair_floor", 1),
    ("whole %", "whole_percent", 1),
    ("floor", "whole_floor", 1),
    ("thread %", "thread_percent", 1),
    ("floor", "thread_floor", 1),
    ("reads/tick", "reads_per_tick", 2),
    ("sleeps/tick", "sleeps_per_tick", 2),
    ("clocks/tick", "clock_reads_per_tick", 2),
    ("late %", "late_percent", 1),
    ("p99 late µs", "p99_late_us", 0),
    ("RSS MiB", "rss_mib", 1),
    ("waited %", "waited_percent", 1),
    ("target waited %", "target_waited_percent", 1),
    ("load", "load", 2),
    ("stolen %", "stolen_percent", 1),
)


def floor_range(row):
    low, high = (row.distance("whole", part) for part in ("floor_low", "floor_high"))
    return None if low is None else "%.1f–%.1f" % (low, high)


def reasons_text(lost_percents):
    return ", ".join("%s %.2f" % (reason, percent)
                     for reason, percent in sorted((lost_percents or {}).items())
                     if percent >= 0.005) or None


FAR = 1.0  # a distance that is more than this above its floor, in percent, is printed in bold

# (heading, Row -> text or None)
TEXTS = (("floor 95 %", floor_range),
         ("lost % by reason", lambda row: reasons_text(row.lost_percents)))


def cell(value, digits):
    return "–" if value is None else "%.*f" % (digits, value)


def spread(values, digits, aim=None):
    """The median and the range, and whether the median misses the aim."""
    if not values:
        return "–"
    middle = statistics.median(values)
    between = " to " if min(values) < 0 else "–"
    text = "%.*f (%.*f%s%.*f)" % (digits, middle, digits, min(values), between, digits, max(values))
    return text + (" **no**" if aim is not None and middle > aim else "")


def mark(row):
    """The mark of a row that was measured while the machine was busy."""
    return " (!)" if machine_load.is_disturbed(row) else ""


def line(cells):
    return "| " + " | ".join(cells) + " |"


def print_table(headings, nr_texts, rows):
    """nr_texts: the number of columns on the left that are no numbers."""
    print(line(headings))
    print(line(["---"] * nr_texts + ["---:"] * (len(headings) - nr_texts)))
    for row in rows:
        print(line(row))
    sys.stdout.flush()


def columns_with_values(rows):
    """The columns for which at least one row has a value."""
    return [column for column in NUMBERS
            if any(getattr(row, column[1]) is not None for row in rows)]


def print_rows(version, rows):
    columns = columns_with_values(rows)
    print("\n### CPython %s\n" % version)
    print_table(("program", "rate", "sampler") + tuple(one[0] for one in columns)
                + tuple(heading for heading, _ in TEXTS), 3, [
        (" ".join(filter(None, (row.program, row.condition))) + mark(row), row.rate, row.sampler)
        + tuple(cell(getattr(row, field), digits) for _, field, digits in columns)
        + tuple(text(row) or "–" for _, text in TEXTS) for row in rows])


def print_ratios(rows):
    """pysample's figures over each other profiler's."""
    ours = collections.defaultdict(list)
    for row in rows:
        if is_ours(row.sampler) and not row.condition:
            ours[row.python, row.program, row.rate].append(row)
    others = [row for row in rows if not is_ours(row.sampler)]
    if not others:
        return
    print("\n### pysample / others\n")
    print_table(
        ("python", "program", "rate", "ours", "other", "stacks/s", "CPU/stack", "RSS"), 5,
        [(row.python, row.program, row.rate, mine.sampler, row.sampler) + tuple(
            cell(ratio(getattr(mine, field), getattr(row, field)), 2)
            for field in ("stacks_per_s", "cpu_us_per_stack", "rss_mib"))
         for row in others for mine in ours[row.python, row.program, row.rate]])


def print_work(rows):
    if not rows:
        return
    print("\n### The target's work, sampler on / off\n")
    print_table(
        ("python", "program", "rate", "sampler", "pairs", "per second", "95 % interval",
         "per second of its CPU time", "95 % interval", "sampler's CPU %", "target waited %",
         "load", "stolen %"), 4,
        [(row.python, row.program + mark(row), row.rate, row.sampler, str(row.pairs),
          cell(row.wall_ratio, 4), "%s–%s" % (cell(row.wall_low, 4), cell(row.wall_high, 4)),
          cell(row.ratio, 4), "%s–%s" % (cell(row.low, 4), cell(row.high, 4)),
          cell(row.sampler_cpu_percent, 1), cell(row.target_waited_percent, 1),
          cell(row.load, 2), cell(row.stolen_percent, 1)) for row in rows])


def describe_settings(settings):
    """What was asked for, in words."""
    said = ["a quick run"] if settings["quick"] else []
    said.append("rates: " + " and ".join(settings["rates"]))
    said += ["%g s per window" % settings["seconds"]] if settings["seconds"] else []
    engines = settings.get("engines") or filter(None, [settings.get("engine")])
    said += ["--engine " + engine for engine in engines]
    said.append("%d turns" % settings["turns"])
    said.append("%d stops for the truth in each" % settings["stops"])
    said += ["read while the sampler runs"] if settings.get("truth_meanwhile") else []
    said.append("%d pairs of on and off with work" % settings["pairs"])
    said.append("pysample with SHA-256 %s…" % settings["pysample"])
    return "; ".join(said)


def column_of(row):
    return " ".join(filter(None, (row.python, engine_of(row.sampler))))


def print_matrix(title, rows, text):
    """One row for each program, one column for each version and engine. text: Row -> the cell."""
    columns = list(dict.fromkeys(column_of(row) for row in rows))
    cells = {}
    for row in rows:
        program = " ".join(filter(None, ("`%s`" % row.program, getattr(row, "condition", ""))))
        cells.setdefault(program, {})[column_of(row)] = text(row)
    print("\n### %s\n" % title)
    print_table(("program", *columns), 1, [
        (program, *(found.get(column) or "" for column in columns))
        for program, found in cells.items()])


def distance_text(row):
    text = "%s (%s)" % (cell(row.whole_percent, 1), cell(row.whole_floor, 1))
    return "**%s**" % text if row.whole_excess > FAR else text


def print_overview(rows):
    """How far pysample is from the truth, and what it loses and takes: what most readers want."""
    for rate in dict.fromkeys(row.rate for row in rows):
        ours = [row for row in rows if is_ours(row.sampler) and row.rate == rate]
        judged = [row for row in ours if row.whole_excess is not None]
        if judged:
            print_matrix("Whole stacks at %s: distance in %% (floor in brackets)" % rate,
                         judged, distance_text)
            print_matrix("Lost at %s, %%" % rate, judged, lambda row: cell(row.lost_percent, 2))
        if ours:
            print_matrix("CPU at %s, µs per stack" % rate, ours,
                         lambda row: cell(row.cpu_us_per_stack, 1))
            print_matrix("RSS at %s, MiB" % rate, ours, lambda row: cell(row.rss_mib, 1))


def lost_work_text(row):
    """Per cent, and the 95 % interval."""
    low, high = (None if ratio is None else 100 - 100 * ratio
                 for ratio in (row.wall_high, row.wall_low))
    return "%.1f (%s to %s)" % (100 - 100 * row.wall_ratio, cell(low, 1), cell(high, 1))


def print_lost_work(rows):
    for rate in dict.fromkeys(row.rate for row in rows):
        ours = [row for row in rows if is_ours(row.sampler) and row.rate == rate]
        if ours:
            print_matrix("Work that the target loses at %s, %%" % rate, ours, lost_work_text)


def print_results(results):
    print(results.machine)
    print(describe_settings(results.settings))
    for version, rows in itertools.groupby(results.rows, lambda row: row.python):
        print_rows(version, list(rows))
    print_overview(results.rows)
    print_ratios(results.rows)
    print_lost_work(results.work)
    print_work(results.work)
