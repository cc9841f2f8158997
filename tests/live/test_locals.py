# SPDX-License-Identifier: MIT
"""`pysample dump --locals`: the variables of every frame are what the interpreter says."""
import json
import unittest

import support
from support import per_interpreter, pysample

USUAL_CHARS = 100
MANY_CHARS = 1000


def dump(pid, *options):
    result = pysample("dump", pid, "--json", *options)
    if result.status:
        raise AssertionError("dump ended with %d: %s" % (result.status, result.stderr))
    return json.loads(result.stdout)


def cut(text, nr_chars):
    """What a text of so many characters at most is shown as."""
    return text if len(text) <= nr_chars else text[:nr_chars - 1] + "\u2026"


def frames_with_variables(dumped):
    """The frames of the only thread that run a function."""
    (thread,) = dumped["threads"]
    return [frame for frame in thread["frames"] if not frame["name"].endswith("<module>")]


@per_interpreter
class Values(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(support.python_target(cls.interpreter, "values"))
        support.wait_until(lambda: cls.target.state() == "S", "the target is parked")

    def assert_truth(self, dumped, nr_chars):
        frames = frames_with_variables(dumped)[:-1]  # without that of tell()
        truths = self.target.report["frames"]
        self.assertEqual([frame["name"].rpartition(".")[2] for frame in frames],
                         [truth["name"] for truth in truths])
        for frame, truth in zip(frames, truths):
            expected = {name: [kind, cut(text, nr_chars)]
                        for name, (kind, text) in truth["variables"].items()}
            found = {variable["name"]: [variable["kind"], variable["value"]]
                     for variable in frame["locals"]}
            if truth["name"] == "Body":  # which has names, but no variables of its own
                self.assertEqual(list(found), ["then"])
                continue
            with self.subTest(function=truth["name"]):
                self.assertEqual(found, expected)
                self.assertEqual(len(found), len(frame["locals"]), "a variable is there twice")
                self.assertEqual([variable["name"] for variable in
                                  frame["locals"]][:len(truth["arguments"])], truth["arguments"])

    def test_values_are_those_of_the_target(self):
        self.assert_truth(dump(self.target.pid, "--locals"), USUAL_CHARS)

    def test_long_values(self):
        self.assert_truth(dump(self.target.pid, "--max-value", MANY_CHARS), MANY_CHARS)

    def test_short_values(self):
        for nr_chars in 1, 2, 7:
            self.assert_truth(dump(self.target.pid, "--locals", "--max-value", nr_chars),
                              nr_chars)

    def test_text_has_them_below_their_frames(self):
        lines = pysample("dump", self.target.pid, "--locals").stdout.splitlines()
        for frame in frames_with_variables(dump(self.target.pid, "--locals"))[:-1]:
            first = next(i for i, line in enumerate(lines)
                         if line.endswith(", line %d, in %s" % (frame["line"], frame["name"])))
            expected = ["    %s = %s" % (variable["name"], variable["value"])
                        for variable in frame["locals"]]
            self.assertEqual(lines[first + 1:first + 1 + len(expected)], expected)
            del lines[first]

    def test_nothing_without_the_option(self):
        dumped = dump(self.target.pid)
        for frame in dumped["threads"][0]["frames"]:
            self.assertNotIn("locals", frame)
        self.assertNotIn(" = ", pysample("dump", self.target.pid).stdout)
