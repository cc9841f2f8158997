# SPDX-License-Identifier: MIT
"""`--locals` of `dump` and `core`: every frame's variables are those that the interpreter
reports.
"""
import contextlib
import re
import unittest

import support
from support import core_files, dump, per_interpreter, pysample

USUAL_CHARS = 100
MANY_CHARS = 1000


def cut(text, nr_chars):
    """How a text is shown in at most nr_chars characters."""
    return text if len(text) <= nr_chars else text[:nr_chars - 1] + "\u2026"


@contextlib.contextmanager
def values_target(interpreter, name="values"):
    """A target, once it is parked."""
    with support.python_target(interpreter, name) as target:
        support.wait_until(lambda: support.reads_from(target.pid, target.pid,
                                                      target.report["parking"]), "it is parked")
        yield target


def without_c_names(text):
    """Leave out the names of builtins, which are in the files of their modules."""
    return re.sub(r"^(<built-in (function|method)).*", r"\1", text)


def frames_with_variables(dumped):
    """The frames of the only thread that run a function."""
    (thread,) = dumped["threads"]
    return [frame for frame in thread["frames"] if not frame["name"].endswith("<module>")]


class ValuesTestCase(unittest.TestCase):
    """The comparison with the target's report."""

    maxDiff = 4000
    target = None

    def assert_truth(self, dumped, nr_chars, has_c_names=True):
        frames = frames_with_variables(dumped)[:-1]  # without report()'s frame
        truths = self.target.report["frames"]
        self.assertEqual([frame["name"].rpartition(".")[2] for frame in frames],
                         [truth["name"] for truth in truths])
        for frame, truth in zip(frames, truths):
            expected = {name: [kind, cut(text, nr_chars)]
                        for name, (kind, text) in truth["variables"].items()}
            found = {variable["name"]: [variable["kind"], variable["value"]]
                     for variable in frame["locals"]}
            if truth["name"] == "Body":  # it has names, but no local variables
                self.assertEqual(list(found), ["then"])
                continue
            if not has_c_names:
                for variable in found, expected:
                    variable.update({name: [kind, without_c_names(value)]
                                     for name, (kind, value) in variable.items()})
            with self.subTest(function=truth["name"]):
                self.assertEqual(found, expected)
                self.assertEqual(len(found), len(frame["locals"]), "a variable is there twice")
                self.assertEqual([variable["name"] for variable in
                                  frame["locals"]][:len(truth["arguments"])], truth["arguments"])


@per_interpreter
@support.slow_per_free_threaded
class Values(ValuesTestCase):
    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(values_target(cls.interpreter))

    def test_values_are_those_of_the_target(self):
        self.assert_truth(dump(self.target.pid, "--locals"), USUAL_CHARS)

    def test_long_values(self):
        self.assert_truth(dump(self.target.pid, "--max-value", MANY_CHARS), MANY_CHARS)

    def test_short_values(self):
        for nr_chars in 1, 2, 7:
            self.assert_truth(dump(self.target.pid, "--locals", "--max-value", nr_chars),
                              nr_chars)

    def test_text_lists_variables_below_frames(self):
        lines = pysample("dump", self.target.pid, "--locals").stdout.splitlines()
        for frame in frames_with_variables(dump(self.target.pid, "--locals"))[:-1]:
            first = next(i for i, line in enumerate(lines)
                         if line.endswith(", line %d, in %s" % (frame["line"], frame["name"])))
            expected = ["    %s = %s" % (variable["name"], variable["value"])
                        for variable in frame["locals"]]
            self.assertEqual(lines[first + 1:first + 1 + len(expected)], expected)
            del lines[first]

    def test_no_variables_without_the_option(self):
        dumped = dump(self.target.pid)
        for frame in dumped["threads"][0]["frames"]:
            self.assertNotIn("locals", frame)
        self.assertNotIn(" = ", pysample("dump", self.target.pid).stdout)


@per_interpreter
class DeadValues(ValuesTestCase):
    """In a core, which lacks the names of CPython's types and, for most versions, the file that
    has them."""

    def setUp(self):
        self.enterContext(core_files.kernel_cores())

    def test_values_are_those_that_the_target_had(self):
        with values_target(core_files.in_its_folder(self.interpreter)) as self.target:
            core = core_files.aborted(self.target)
            self.assert_truth(core_files.core_json(core.path, "--locals"), USUAL_CHARS,
                              has_c_names=False)
            for frame in core_files.core_json(core.path)["threads"][0]["frames"]:
                self.assertNotIn("locals", frame)


@per_interpreter
class Damaged(unittest.TestCase):
    """Objects that contradict themselves or point to memory that is not there."""

    # Only as far as the result does not depend on other memory.
    EXPECTED = {
        "whole": r"\[1, 2\]",
        "last": r"'whole, too'",
        "no_type": r"<unreadable at {}>",
        "odd_type": r"<unreadable at {}>",
        "no_items": r"\[<unreadable at 0x10>\]",
        "many_items": r"\[4, .*",
        "less_than_none": r"<unreadable at {}>",
        "no_item": r"\[<unreadable at 0x0>\]",
        "odd_item": r"\[\[1, 2\], <unreadable at 0x13>\]",
        "long_tuple": r"\(8, 9, .*",
        "long_bytes": r"<unreadable at {}>|b.bytes.*\u2026",
        "long_text": r"<unreadable at {}>|.text.*\u2026",
        "no_table": r"{{<unreadable at {}>}}",
        "odd_mask": r"<unreadable at {}>",
        "too_many": r"{{12, <unreadable at {}>}}",
        "no_keys": r"<unreadable at {}>",
        "too_few": r"{{'b': 14, <unreadable at {}>}}",
        "no_array": r"<unreadable at {}>|bytearray\(<unreadable at {}>",
    }

    def test_the_rest_is_shown(self):
        with values_target(self.interpreter, "damaged") as target:
            dumped = dump(target.pid, "--locals")
            frame = frames_with_variables(dumped)[0]
            found = {variable["name"]: variable["value"] for variable in frame["locals"]}
            self.assertEqual(set(found), set(target.report["addrs"]))
            for name, pattern in self.EXPECTED.items():
                addr = "%#x" % target.report["addrs"][name]
                with self.subTest(name=name):
                    self.assertRegex(found[name], "^(%s)$" % pattern.format(addr, addr))


@per_interpreter
class Running(unittest.TestCase):
    def test_frames_are_there_while_it_runs(self):
        with support.python_target(self.interpreter, "busy") as target:
            for _ in range(20):
                self.assertEqual(len(dump(target.pid, "--locals")["threads"]), 3)


if __name__ == "__main__":
    unittest.main()
