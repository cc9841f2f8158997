# SPDX-License-Identifier: MIT
"""What the interactive flame graph draws, as a person sees it in a browser: functions with their
callers and callees, lines of source, and stacks in the order of time.
"""
import collections
import dataclasses
import json
import os
import unittest
import xml.etree.ElementTree

import labels
import oracle
import page_views
import subjects
import support
import tools
from test_html import STATES, both, meta_of
from test_svg import SVG

NOTHING_SET = {"state": "all", "threads": None, "from": None, "to": None, "lines": False,
               "weight": "time"}
ALWAYS = {"at first", "together"}  # other situations only with --all
LEAST_FOUND, LEAST_DRAWN = 2, 3.5  # px: boxes that are checked, and boxes that must be there


def in_page(frame):
    """A function's frame in the collapsed stacks that the page makes."""
    function = page_views.in_json(frame.function)
    return labels.collapsed(labels.by_function(frame._replace(function=function)))


@dataclasses.dataclass
class Situation:
    """A page's settings, and what they leave of a recording."""

    name: str
    state: dict
    is_shown: object  # at any time: what the chart draws
    shown: page_views.Shown


def of_threads(meta, indices):
    wanted = {(meta["threads"][index]["tid"], meta["threads"][index]["name"]) for index in indices}

    def passes(recording, sample):
        thread = recording.thread_of(sample)
        return (thread.tid, labels.as_json(thread.name)) in wanted
    return passes


def situations(subject, meta):
    """Everything, the first view, a brush, threads, lines, and all of these together."""
    start = round(meta["start_ms"] * 1000)
    times = sorted({sample.time // 1000 - start for sample in subject.recording.samples})
    brush = {"from": times[len(times) // 3], "to": times[len(times) // 2]}
    threads = [0, len(meta["threads"]) - 1]

    def in_brush(_, sample):
        return brush["from"] <= sample.time // 1000 - start < brush["to"]

    some = of_threads(meta, threads)
    for name, change, *filters in (
            ("busy", {"state": "busy"}, STATES["busy"]),
            ("at first", {}, STATES["all"]),
            ("by samples", {"weight": "samples"}, STATES["all"]),
            ("lines", {"lines": True}, STATES["all"]),
            ("brush", brush, STATES["all"], in_brush),
            ("threads", {"state": "all", "threads": threads}, both(STATES["all"], some)),
            ("together", {"state": "cpu", "threads": threads, "lines": True, **brush},
             both(STATES["cpu"], some), in_brush)):
        if name not in ALWAYS and not os.environ.get(support.ALL):
            continue
        view = subject.view(passes=both(*filters))
        yield Situation(name, {**NOTHING_SET, **change}, filters[0],
                        page_views.Shown(view, by_samples=name == "by samples"))


class Views(unittest.TestCase):
    def write(self, subject):
        path = subjects.report(subject.path, form="flamegraph", suffix=".html",
                               options=["--no-source"])
        return path, list(situations(subject, meta_of(path)))

    def see(self, path, steps):
        """What page_drawn.mjs reports for each step: (situation, view, what to read, argument)."""
        answer = tools.in_browser("page_drawn.mjs", path, [
            [{**situation.state, "view": view}, what, argument]
            for situation, view, what, argument in steps])
        self.assertEqual(answer["complaints"], [])
        return zip((situation for situation, *_ in steps), answer["seen"], strict=True)


class Exports(Views):
    @subjects.each
    def test_collapsed(self, subject):
        path, found = self.write(subject)
        found = [one for one in found if not one.state["lines"]]
        for situation, text in self.see(path, [(one, "flame", "saved", "Collapsed")
                                               for one in found]):
            with self.subTest(situation.name):
                expected = collections.Counter()
                for frames, weight in situation.shown.view.stacks(in_page).items():
                    number = (weight.samples if situation.state["weight"] == "samples"
                              else round(weight.ns / 1000))
                    if number:
                        expected[frames or (labels.IDLE,)] += number
                subjects.assert_same(self, support.parse_stacks(text), expected)

    @subjects.each
    def test_svg(self, subject):
        path, found = self.write(subject)
        ((_, text),) = self.see(path, [(found[0], "flame", "saved", "Image")])
        root = xml.etree.ElementTree.fromstring(text)
        runs, _ = support.split_collapsed(
            "".join("# %s\n" % line for line in root.find(SVG + "metadata").text.splitlines()))
        self.assertEqual(runs, meta_of(path)["runs"])


class Functions(Views):
    @subjects.each
    def test_table(self, subject):
        path, found = self.write(subject)
        for situation, rows in self.see(path, [(one, "table", "table", None) for one in found]):
            with self.subTest(situation.name):
                expected = list(situation.shown.table())
                subjects.assert_same(self, *(collections.Counter(
                    json.dumps(row, sort_keys=True) for row in side) for side in (rows, expected)))
                self.assertEqual(*([(row["self"], row["total"]) for row in side]
                                   for side in (rows, expected)))

    @subjects.each
    def test_calls(self, subject):
        path, found = self.write(subject)
        steps = [(one, function) for one in found if one.name != "by samples"
                 for function in self.chosen(one.shown)]
        seen = self.see(path, [(one, "table", "calls", page_views.label(function))
                               for one, function in steps])
        for (situation, sides), (_, function) in zip(seen, steps, strict=True):
            expected = situation.shown.calls(function, situation.state["lines"])
            for side, name, paths in zip(sides, ("callers", "callees"), expected, strict=True):
                with self.subTest(situation.name, of=function, side=name):
                    self.check(side, paths, name == "callers")

    @staticmethod
    def chosen(shown):
        """Two functions with unique labels that have callers, callees and recursion."""
        names = collections.Counter(map(page_views.label, shown.view.totals(oracle.by_function)))
        deep = collections.Counter()
        for frames, weight in shown.stacks:
            functions = [frame.function for frame in frames[:60]]
            for place, function in enumerate(functions):
                if names[page_views.label(function)] == 1:
                    again = functions.count(function) - 1
                    deep[function] += min(place, len(functions) - place - 1, 3) + again
        ranked = [function for function, _ in deep.most_common()]
        return [ranked[0], ranked[len(ranked) // 3]]

    def check(self, side, expected, upwards):
        """Each box stands on its caller's, or hangs from it, and is as wide as its share."""
        rows = sorted({block["y"] for block in side["blocks"]}, reverse=upwards)
        whole = expected[next(iter(expected))][0].ns
        found = collections.defaultdict(list)
        above = {}
        for y in rows:
            level = {}
            for block in side["blocks"]:
                if block["y"] == y and not block["few"] and block["w"] >= LEAST_FOUND:
                    self.put(block, above, found, level)
            above = level
        for path, weights in found.items():
            self.assertIn(path, expected)
            allowed = [(page_views.duration(one.ns // 1000), page_views.count(one.samples),
                        one.ns / whole * side["width"]) for one in expected[path]]
            for time, samples, width in weights:
                self.assertTrue(any((time, samples) == one[:2] and abs(width + 0.5 - one[2]) <= 1
                                    for one in allowed), (path, time, samples, width, allowed))
        depth = len(rows) - 1  # the last row may be cut
        for path, weights in expected.items():
            if len(path) <= depth and all(
                    one.ns / whole * side["width"] >= LEAST_DRAWN for one in weights):
                self.assertEqual(len(found[path]), len(weights), path)

    @staticmethod
    def put(block, above, found, level):
        middle = block["x"] + block["w"] / 2
        outside = max((start for start in above if start <= middle), default=None)
        name, place, _, (_, time, samples, *_), *_ = block["tip"]
        path = above.get(outside, ()) + ((name, place),)
        found[path].append((time, samples, block["w"]))
        level[block["x"]] = path


class Source(Views):
    @subjects.each
    def test_files(self, subject):
        path, found = self.write(subject)
        for situation, rows in self.see(path, [(one, "source", "files", None) for one in found]):
            with self.subTest(situation.name):
                shown = situation.shown
                all_ns = shown.view.whole().ns
                expected = sorted(((file.self.ns, file.total.ns, self.title(name))
                                   for name, file in shown.source.items()), reverse=True)
                self.assertEqual(sorted(rows), sorted(
                    [title, page_views.percent(own / all_ns), page_views.percent(total / all_ns)]
                    for own, total, title in expected))
                self.assertEqual([row[1:] for row in rows], [
                    [page_views.percent(own / all_ns), page_views.percent(total / all_ns)]
                    for own, total, _ in expected])

    @staticmethod
    def title(path):
        return labels.escaped(labels.as_json(path))

    @subjects.each
    def test_lines(self, subject):
        path, found = self.write(subject)
        steps = []
        for situation in found:
            for number, (name, file) in enumerate(situation.shown.source.items()):
                lines = situation.shown.lines_of(file)
                if lines:
                    steps.append((situation, name, max(lines) if number % 2 else 0))
        seen = self.see(path, [(one, "source", "source", [self.title(name), line])
                               for one, name, line in steps])
        for (situation, drawn), (_, name, line) in zip(seen, steps, strict=True):
            with self.subTest(situation.name, path=name, line=line):
                self.assertEqual(drawn["title"], self.title(name))
                self.check(drawn, situation.shown, name, line)

    def check(self, drawn, shown, name, chosen):
        file = shown.source[name]
        lines = shown.lines_of(file)
        here = chosen or max(sorted(lines), key=lambda line: lines[line][0].ns)
        rows, before = [], None
        for line in sorted(lines):
            if before is not None and line > before + 1:
                rows.append(["", False])
            rows.append(self.row(shown, line, lines[line], line == here))
            before = line
        self.assertEqual([self.sorted_names(row) for row in drawn["lines"]],
                         [self.sorted_names(row) for row in rows])
        most = shown.measure(lines[here][1])
        for links, expected in zip(drawn["around"], shown.around(name, here), strict=True):
            expected = [[page_views.percent(us / most), title] for us, title in expected]
            self.assertEqual([link[0] for link in links],
                             [link[0] for link in expected[:page_views.MOST_LINKS]])
            self.assertEqual([link for link in links if link not in expected], [])

    @staticmethod
    def row(shown, line, figures, is_here):
        own, total, functions = figures
        all_ns = shown.view.whole().ns
        amounts = [shown.amount(us) if us else "" for us in map(shown.measure, (own, total))]
        return [*amounts, str(line), "self %s, total %s: %s" % (
            page_views.percent(own.ns / all_ns), page_views.percent(total.ns / all_ns),
            ", ".join(map(page_views.name_of, functions))), is_here]

    @staticmethod
    def sorted_names(row):
        """The functions in a title come in any order."""
        figures, colon, names = row[-2].partition(": ")
        return [*row[:-2], figures + colon, sorted(names.split(", ")), row[-1]]


class TimeOrder(Views):
    is_quick = False

    @subjects.each
    def test_chart(self, subject):
        path, found = self.write(subject)
        meta = meta_of(path)
        charts = [page_views.Chart(subject.recording, meta, one.is_shown, one.state["threads"],
                                   one.state["lines"]) for one in found]
        steps = [(one, "chart", "chart", [lane.y for lane in chart.lanes])
                 for one, chart in zip(found, charts, strict=True)]
        for (situation, seen), chart in zip(self.see(path, steps), charts, strict=True):
            state = situation.state
            begin = chart.first if state["from"] is None else state["from"]
            end = chart.end if state["to"] is None else state["to"]
            self.assertTrue(any(part["blocks"] for part in seen), "nothing is drawn")
            for part in seen:
                with self.subTest(situation.name, scroll=part["scroll"]):
                    self.check_blocks(part, list(chart.blocks(part, begin, end)))
                    self.check_heads(part, chart)
                    for block in part["blocks"]:
                        if "at" in block:
                            self.assertEqual(block["tip"], chart.tip(
                                part, *block["at"], begin, end), block["at"])

    def check_blocks(self, part, expected):
        """Blocks are side by side, with a pixel between them where there is room."""
        self.assertEqual(subjects.different(
            {(block["x"], block["y"]): block["w"] for block in part["blocks"]},
            {(block.x, block.y): block.width - (block.width > 3) for block in expected}), "")
        names = {(block.x, block.y): block.name for block in expected}
        for block in part["blocks"]:
            text, name = block.get("text") or "", names[block["x"], block["y"]]
            self.assertTrue(text == name or name.startswith(text.removesuffix("…")), (text, name))
            if block["w"] > 600 and len(name) < 40:
                self.assertEqual(text, name)

    def check_heads(self, part, chart):
        for lane in chart.lanes:
            y = lane.y - part["scroll"]
            if -1 < y < part["height"] - page_views.HEAD:
                self.assertIn([lane.name, y + 11], part["others"])


if __name__ == "__main__":
    unittest.main()
