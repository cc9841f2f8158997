# SPDX-License-Identifier: MIT
"""Every file describes its run, in whatever format: the command lines, the versions, the mode,
the rates asked for and achieved, and what was lost, by reason.
"""
import gzip
import json
import os
import re
import unittest
import xml.etree.ElementTree

import labels
import oracle
import subjects
import support
import tools
from test_html import meta_of
from test_svg import SVG

# They hide threads that wait in the mode busy. All others have every sample.
HIDE_IDLE = ("collapsed", "callgrind", "svg", "json")
NAMES = ("arguments", "command_line", "pysample", "python", "mode", "requested_hz", "achieved_hz",
         "wall_s", "ticks", "samples", "late_ticks")
FORMATS = re.compile(r"^Formats, [^\n]*:\n((?:  \w+ [^\n]*\n)+)", re.M)
RATE = re.compile(r"(?P<achieved>[\d.]+) of (?P<asked>[\d.]+) Hz · (?P<samples>\d+) samples "
                  r"· [<\d.]+% lost(?: \((?P<lost>[a-z_0-9 ,]+)\))?"
                  r" · (?P<late>\d+) late tick")
TARGET = re.compile(r"(?:pid \d+ · )?Python (?P<python>\S+) · .* "
                    r"· (?P<mode>\w+ time(?: of busy threads)?)"
                    r"(?: · [\d.]+ s of CPU time)? · pysample (?P<pysample>\S+)")


def runs_of(pairs):
    """A list of dicts. A name that is repeated begins another run."""
    runs = [{}]
    for name, value in pairs:
        if name in runs[-1]:
            runs.append({})
        runs[-1][name] = value
    return runs


def pairs_of(lines):
    return [line.split(": ", 1) for line in lines if ": " in line]


def escaped(value):
    """As in texts for people."""
    return labels.escaped(value)


def recording(paths):
    """The lines of the processes of a run come last, and are not among its pairs."""
    result = support.pysample("report", "--info", *paths)
    lines = [line for line in result.stdout.split("\n") if not line.startswith("process: ")]
    return runs_of(pairs_of(lines)), escaped


def of_file(form, read, shown, suffix="", needed=()):
    return lambda paths, options=(): (
        read(subjects.report(*paths, form=form, suffix=suffix, options=[*options, *needed])), shown)


def pprof_comments(path):
    node, npm = tools.npm("pprof-format")
    return json.loads(tools.run(node, os.path.join(tools.HERE, "pprof_decode.mjs"), npm,
                                path))["comments"]


def pprof(path):
    return runs_of(pairs_of(re.sub(r"^run \d+ ", "", comment) for comment in pprof_comments(path)))


def gecko(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        sections = json.load(file)["meta"]["extra"]
    return [{entry["label"]: entry["value"] for entry in section["entries"]}
            for section in sections]


def callgrind(path):
    lines = re.findall(r"^desc: ([^\n]*)$", support.read(path), re.M)
    return runs_of(pairs_of(line for line in lines if not line.startswith("run: ")))


def jsonl(path):
    rows = map(json.loads, filter(None, support.read(path).split("\n")))
    return [row["run"] for row in rows if row["type"] == "run"]


def svg(path):
    text = xml.etree.ElementTree.parse(path).getroot().find(SVG + "metadata").text
    return runs_of(pairs_of(text.split("\n")))


READERS = {
    "collapsed": of_file("collapsed", lambda path: support.split_collapsed(
        support.read(path))[0], labels.as_json, needed=["--header"]),
    "recording": recording,
    "speedscope": of_file("speedscope", lambda path: json.loads(
        support.read(path))["pysample"]["runs"], labels.as_json),
    "pprof": of_file("pprof", pprof, escaped),
    "gecko": of_file("gecko", gecko, labels.as_json),
    "callgrind": of_file("callgrind", callgrind, escaped),
    "json": of_file("json", lambda path: json.loads(
        support.read(path))["profile"]["runs"], labels.as_json),
    "jsonl": of_file("jsonl", jsonl, labels.as_json),
    "flamegraph": of_file("flamegraph", lambda path: meta_of(path)["runs"], labels.as_json,
                          ".html"),
    "svg": of_file("svg", svg, escaped, ".svg"),
}


def svg_texts(path):
    return " ".join(text.text or "" for text in
                    xml.etree.ElementTree.parse(path).getroot().iter(SVG + "text"))


# Where each format has room for a note to people. The others have it among the pairs of each run:
# "native.user_cpu_only" and "jit_samples" in collapsed and jsonl.
NOTES = {
    "speedscope": ("", lambda path: json.loads(support.read(path))["name"]),
    "pprof": ("", lambda path: "\n".join(pprof_comments(path))),
    "gecko": ("", lambda path: gecko(path)[0].get("note", "")),
    "callgrind": ("", support.read),
    "json": ("", lambda path: json.loads(support.read(path))["caveats"] or ""),
    "svg": (".svg", svg_texts),
    "summary": ("", support.read),
    "flamegraph": (".html", lambda path: meta_of(path)["caveats"]),
}


class Caveats(unittest.TestCase):
    """Notes without which samples would be misread."""

    def notes(self, subject, form, *options):
        suffix, read = NOTES[form]
        return read(subjects.report(subject.path, form=form, suffix=suffix, options=options))

    def test_formats(self):
        self.assertEqual(set(NOTES), set(READERS) - {"recording", "collapsed", "jsonl"}
                         | {"summary"})

    def test_notes(self):
        subject = subjects.made_up()
        for form in NOTES:
            for mode in "wall", "cpu":
                with self.subTest(form, mode=mode):
                    samples = [sample for _, sample in subject.view(mode=mode).samples]
                    part = sum(bool(one.flags & oracle.IN_JIT) for one in samples) / len(samples)
                    text = self.notes(subject, form, "--mode", mode)
                    read = sum(bool(one.flags & oracle.APPROXIMATE) for one in samples)
                    self.assertIn("approximate in part: %.1f%% of stacks were read while their "
                                  "threads ran" % (100 * read / len(samples)), text)
                    self.assertIn("user CPU only", text)
                    self.assertIn("%.1f%% of samples ran in JIT code: their lines may be a few "
                                  "statements late" % (100 * part), text)

    def test_no_notes(self):
        for form in NOTES:
            with self.subTest(form):
                text = self.notes(subjects.live(), form, "--state", "!jit")
                self.assertNotIn("were read while", text)
                self.assertNotIn("user CPU only", text)
                self.assertNotIn("JIT code", text)

    def test_pairs(self):
        for form in READERS:
            with self.subTest(form):
                (info,), _ = READERS[form]([subjects.made_up().path])
                self.assertEqual(info["native.user_cpu_only"], "true")
                self.assertGreater(int(info["jit_samples"]), 0)
                self.assertEqual(info["engine"], "racing")
                self.assertGreater(int(info["approximate"]), 0)


class RunInfoInFormats(unittest.TestCase):
    def test_no_format_is_forgotten(self):
        text = FORMATS.search(support.pysample("report", "--help").stdout)[1]
        forms = {line.split()[0] for line in text.splitlines()}
        self.assertEqual({*READERS, "summary"}, forms)

    def check(self, form, wanted):
        runs, shown = READERS[form]([subject.path for subject in wanted])
        self.assertEqual(len(runs), len(wanted))
        for info, subject in zip(runs, wanted, strict=True):
            truth = subject.recording.info
            names = [name for name in truth if name in NAMES or name.startswith("lost.")]
            self.assertLess({"command_line", "mode", "achieved_hz"}, set(names))
            subjects.assert_same(self, {name: info.get(name) for name in names},
                                 {name: shown(truth[name]) for name in names})

    @support.thorough_with_all
    def test_all_but_a_summary(self):
        for form in READERS:
            for wanted in ([subjects.made_up()], subjects.lives(),
                           [subjects.made_up(), subjects.live()]):
                with self.subTest(form, of=[*map(str, wanted)]):
                    self.check(form, wanted)

    def test_mode_that_is_shown(self):
        path = subjects.made_up().path
        for form in READERS.keys() - {"recording"}:
            for mode in oracle.MODES:
                with self.subTest(form, mode=mode):
                    (info,), _ = READERS[form]([path], ["--mode", mode])
                    shown = "wall" if mode == "busy" and form not in HIDE_IDLE else mode
                    self.assertEqual((info["mode"], info["shown_mode"]), ("wall", shown))

    @subjects.each
    def test_summary(self, subject):
        """It is short: figures are rounded, and reasons are named only if something was lost."""
        truth = subject.recording.info
        command, target, rate, *_ = support.read(
            subjects.report(subject.path, form="summary")).split("\n")
        self.assertEqual(command, escaped(truth["command_line"]))
        shown = {**truth, "mode": {"busy": "wall time of busy threads"}.get(
            truth["mode"], truth["mode"] + " time")}
        found = TARGET.match(target)
        self.assertEqual(found.groupdict(), {name: shown[name] for name in found.groupdict()})
        found = RATE.match(rate)
        self.assertEqual((found["achieved"], found["asked"], found["samples"], found["late"]), (
            "%.0f" % float(truth["achieved_hz"]), truth["requested_hz"], truth["samples"],
            truth.get("late_ticks", "0")))  # a recording has no counter that stayed 0
        lost = dict(reason.split(" ") for reason in filter(None, (found["lost"] or "").split(", ")))
        self.assertEqual(lost, {name[5:]: value for name, value in truth.items()
                                if name.startswith("lost.") and value != "0"})


if __name__ == "__main__":
    unittest.main()
