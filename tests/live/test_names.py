# SPDX-License-Identifier: MIT
"""Arguments, which hold passwords, are in no output unless --full-command asks for them."""
import json
import os
import unittest

import support
from support import pysample, python_target

SECRET = "hunter2"


class Arguments(unittest.TestCase):

    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def outputs_of(self, *command):
        """Everything that a run writes: {name: text}. Compressed formats are made plain."""
        paths = {name: os.path.join(self.folder, name) for name in (
            "a.pysample", "a.html", "a.svg", "a.jsonl", "a.collapsed", "summary", "stats")}
        arguments = ["--header", "--stats-json", paths["stats"], "-o", paths["summary"], "-f", "summary"]
        for name in "a.pysample", "a.html", "a.svg", "a.jsonl", "a.collapsed":
            arguments += ["-o", paths[name]]
        result = pysample(command[0], *arguments, *command[1:])
        self.assertEqual(result.status, 0, result)
        texts = {name: support.read(path) for name, path in paths.items()}
        texts["stderr"] = result.stderr
        for options in (["--info"], ["--info", "--json"], ["-f", "callgrind"], ["-f", "speedscope"]):
            texts["report " + " ".join(options)] = pysample(
                "report", *options, paths["a.pysample"]).stdout
        return texts

    def assert_shown(self, texts, is_shown):
        for name, text in texts.items():
            with self.subTest(name):
                if not is_shown:
                    self.assertNotIn(SECRET, text)
                elif name not in ("stderr", "a.html", "a.pysample"):
                    self.assertIn(SECRET, text)  # the others may be compressed

    def test_attach(self):
        for options in [], ["--full-command"]:
            with python_target(support.newest_interpreter(), "busy", "--password", SECRET) as target:
                texts = self.outputs_of("attach", "-d", "0.5", *options, target.pid)
            self.assert_shown(texts, bool(options))
            line = json.loads(texts["stats"])["command_line"]
            if not options:
                self.assertRegex(line, r"\Apython[\d.]* busy\.py\Z")

    def test_run(self):
        script = os.path.join(self.folder, "job.py")
        with open(script, "w", encoding="ascii") as file:
            file.write("import time\nfor _ in range(50): time.sleep(0.01)\n")
        python = min((found for found in support.supported_interpreters() if not found.root),
                     key=support.version_key).path
        for options in [], ["--full-command"]:
            texts = self.outputs_of("run", *options, "--", python, "-u", script, SECRET)
            self.assert_shown(texts, bool(options))
            if not options:
                stats = json.loads(texts["stats"])
                name = os.path.basename(python) + " job.py"
                self.assertEqual(stats["command_line"], name)
                self.assertRegex(stats["arguments"], r"\Apysample run .* -- %s\Z" % name)

    def test_dump(self):
        with python_target(support.newest_interpreter(), "busy", SECRET) as target:
            for options in [], ["--json"], ["-v"]:
                self.assertNotIn(SECRET, pysample("dump", *options, target.pid).stdout)
                self.assertIn(SECRET, pysample("dump", "--full-command", *options,
                                               target.pid).stdout)
            self.assertNotIn(SECRET, pysample("doctor", target.pid).stdout)
