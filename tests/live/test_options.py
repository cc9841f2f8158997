# SPDX-License-Identifier: MIT
"""The table of options, the help, the manual page and the shell completions agree."""
import os
import re
import shutil
import subprocess
import unittest

import support

MANUAL = os.path.join(support.ROOT, "docs", "pysample.1")
HELP_WIDTH = 88

# Completes the words that it is given, the last of them unfinished.
BASH = """\
. /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pysample
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completion(shell):
    result = support.pysample("completion", shell)
    assert (result.status, result.stderr) == (0, ""), result
    return result.stdout


def options_by_command():
    """{command: its long options}, from the completion of bash."""
    return {command: set(re.findall(r"--([\w-]+)", words))
            for command, words in re.findall(r'^\t\t(\w+)\) options="(.*?)"', completion("bash"), re.M)}


class Options(unittest.TestCase):

    def setUp(self):
        self.options = options_by_command()

    def test_every_command_is_there(self):
        text = support.pysample("--help").stdout
        self.assertEqual(set(self.options), set(re.findall(r"^  (\w+) +[a-z]", text, re.M)))

    def test_help(self):
        """The help names every option once, and no line is too long."""
        for command, expected in self.options.items():
            with self.subTest(command):
                text = support.pysample(command, "--help").stdout
                listed = re.findall(r"^  (?:-\w,|   ) --([\w-]+)", text, re.M)
                self.assertEqual(sorted(listed), sorted(expected))
                rows = text.split("\nFormats, ")[0].split("\n")
                self.assertEqual([row for row in rows if len(row) > HELP_WIDTH], [])

    def test_manual(self):
        """The manual has all options, and no others."""
        documented = set(re.findall(r"Fl -([\w-]+)", support.read(MANUAL)))
        self.assertEqual(documented - {"help", "version"},
                         set().union(*self.options.values()) - {"help"})

    def complete(self, *words):
        result = subprocess.run(["bash", "-c", BASH, "bash", *words], input=completion("bash"),
                                capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash(self):
        for words, expected in ((("pysample", "at"), ["attach"]),
                                (("pysample", "attach", "--eng"), ["--engine"]),
                                (("pysample", "attach", "--engine", "p"), ["preempt"]),
                                (("pysample", "report", "-f", "specu"), []),
                                (("pysample", "report", "-f", "speeds"), ["speedscope"]),
                                (("pysample", "report", "--mode", "g"), ["gil"]),
                                (("pysample", "jit", "--engine"), []),
                                (("pysample", "completion", "b"), ["bash"])):
            with self.subTest(words):
                self.assertEqual(self.complete(*words), expected)

    def test_bash_files_and_processes(self):
        with support.fresh_folder() as (folder, _):
            path = os.path.join(folder, "out.pysample")
            with open(path, "wb"):
                self.assertEqual(self.complete("pysample", "report", path[:-4]), [path])
                self.assertEqual(self.complete("pysample", "attach", "-o", path[:-4]), [path])
        pid = str(os.getpid())
        self.assertIn(pid, self.complete("pysample", "dump", pid[:1]))

    def test_other_shells_can_read_theirs(self):
        for shell in "zsh", "fish":
            text = completion(shell)
            self.assertIn("attach", text)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=text, text=True, check=True)

    def test_unknown_value(self):
        result = support.pysample("core", "--native=some", "core")
        self.assertEqual((result.status, result.stdout), (2, ""))
        self.assertIn("unknown value 'some' of --native: ", result.stderr)

    def test_no_such_shell(self):
        for args in ([], ["tcsh"], ["bash", "zsh"]):
            result = support.pysample("completion", *args)
            self.assertEqual((result.status, result.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main()
