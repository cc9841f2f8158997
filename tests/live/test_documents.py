# SPDX-License-Identifier: MIT
"""Every pysample command in the documents runs as it is written.

Only what a reader would put in is put in: a process id, an address, the path of a core. Seconds
become twentieths, so that nobody waits a minute. Programs of others that are not installed are
replaced by stand-ins that read their input."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import support
from support import core_files

DOCUMENTS = ["README.md", "CONTRIBUTING.md",
             *sorted(os.path.relpath(path, support.ROOT)
                     for path in glob.glob(os.path.join(support.ROOT, "docs", "*.md")))]
MANUAL = "docs/pysample.1"
SHORTER = 20

APP = """\
import time
end = time.monotonic() + 0.3
def parse(n):
    return sum(i * i for i in range(n))
while time.monotonic() < end:
    parse(1000)
"""

# sudo is root already, or somebody else for good.
STAND_INS = {
    "sudo": 'if [ "$1" = -u ]; then user=$2; shift 2; exec setpriv --reuid="$user" --regid=nogroup'
            ' --clear-groups --inh-caps=-all --no-new-privs -- "$@"; fi; exec "$@"',
    "coredumpctl": "exec cat core.1234",
    "flamegraph.pl": "exec cat",
    "jq": "exec cat",
}


def blocks(text):
    """(language, text) of each block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M)


def commands_of(path):
    """The lines that run pysample, as they are written."""
    text = support.read(os.path.join(support.ROOT, path))
    if path == MANUAL:
        lines = re.findall(r"^\.Dl \$ (.*)$", text, re.M)
    else:
        lines = [re.sub(r"\s+# .*", "", line) for language, block in blocks(text)
                 if language == "sh" for line in block.splitlines()]
        lines += [line[2:] for language, block in blocks(text) if not language
                  for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if re.search(r"(^|[|;&] *|sudo (-\S+ \S+ )?)pysample ", line)]


def options_by_command():
    result = support.pysample("completion", "bash")
    return {command: set(words.split()) for command, words in
            re.findall(r'^\t\t(\w+)\) options="(.*?)"', result.stdout, re.M)}


def shorter(line):
    """Twentieths of the seconds that it takes; a second if there is no end to it."""

    def twentieth(found):
        return "%s%.3g%s" % (found[1], float(found[2]) / SHORTER, found[3])

    if "--loop" in line and " -d " not in line:
        line = line.replace("--loop", "-d 20 --loop")
    return re.sub(r"((?:-d|--from|--to) )(\d+)(s?)\b", twentieth, line)


class Documents(unittest.TestCase):

    def setUp(self):
        self.interpreter = support.newest_interpreter()
        folder, _ = self.enterContext(support.fresh_folder())
        self.folder = folder
        os.chmod(folder, 0o777)  # nobody writes there, too
        self.programs = os.path.join(folder, "programs")
        os.mkdir(self.programs)
        shutil.copy(support.PYSAMPLE, os.path.join(self.programs, "pysample"))
        for name, script in STAND_INS.items():
            if name in ("sudo", "coredumpctl") or not shutil.which(name):
                path = os.path.join(self.programs, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\n%s\n" % script)
                os.chmod(path, 0o755)
        with open(os.path.join(folder, "app.py"), "w", encoding="utf-8") as file:
            file.write(APP)

    def run_line(self, line):
        """(status, output of both kinds)"""
        environment = dict(support.target_environment(self.folder))
        environment["PATH"] = self.programs + ":" + environment["PATH"]
        run = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=self.folder,
                             env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=support.PATIENCE_S)
        return run.returncode, run.stdout + run.stderr

    def put_in(self, line, pid):
        line = re.sub(r"\$\(pgrep -f \w+\.py\)|\b1234\b(?!\.)(?<!core\.1234)|\bPID\b", str(pid), line)
        # The name of the program in the text, too, which is not the name of ours.
        script = support.read("/proc/%d/cmdline" % pid).rstrip("\0").split("\0")[-1]
        line = re.sub(r"(--name )\w+\.py\b", lambda found: found[1] + script, line)
        line = re.sub(r"^pysample top (?!-b |.*--batch)", "pysample top -b -c 1 ", line)  # no terminal
        line = line.replace("/var/lib/systemd/coredump/core.shop.*", "core.shop.*")
        return shorter(re.sub(r"(?<=core -n )core$", "core.1234", line))

    def leave_cores(self):
        """Of an interpreter whose files are found without help."""
        self.enterContext(core_files.kernel_cores())
        ours = [one for one in support.supported_interpreters() if not one.root]
        core = self.enterContext(core_files.crashed(ours[0], "single", "segv"))
        for name in "core.1234", "core.shop.1":
            os.symlink(core.path, os.path.join(self.folder, name))

    def test_commands(self):
        lines = [(path, line) for path in [*DOCUMENTS, MANUAL] for line in commands_of(path)]
        self.assertGreater(len(lines), 20)
        target = self.enterContext(support.python_target(
            self.interpreter, "demo", environment={"PYTHONPERFSUPPORT": "1"}))
        self.leave_cores()
        status, text = self.run_line("pysample run -o old.pysample python3 app.py")
        self.assertEqual(status, 0, text)
        os.symlink("old.pysample", os.path.join(self.folder, "new.pysample"))
        for path, line in lines:
            with self.subTest(line, path=path):
                written = self.put_in(line, target.pid)
                if "0x7f3c60a01200" in written:
                    code = re.search(r"^(0x[0-9a-f]+)", self.run_line(
                        "pysample jit %d | grep -o '0x[0-9a-f]*'" % target.pid)[1], re.M)
                    if not code:
                        continue  # before 3.12 CPython makes no code
                    written = written.replace("0x7f3c60a01200", code.group(1))
                status, text = self.run_line(written)
                if "sudo -u nobody" in line:
                    self.assertIn("CAP_SYS_PTRACE", text)
                else:
                    self.assertEqual(status, 0, written + "\n" + text)

    def test_mentioned_options(self):
        """Each option that the text gives a command is one of that command's."""
        known = options_by_command()
        for path in DOCUMENTS:
            text = support.read(os.path.join(support.ROOT, path))
            for command, rest in re.findall(r"\bpysample (\w+)((?: +[^\s`|;&]+)*)", text):
                for word in rest.split() if command in known else ():
                    if command in ("run", "jit") and not word.startswith("-"):
                        break  # what follows is the program's own
                    if re.fullmatch(r"--[a-z][\w-]*", word):
                        with self.subTest(path=path, command=command):
                            self.assertIn(word, known[command])


class Installed(unittest.TestCase):

    def test_it_is_found_and_runs(self):
        """What `meson install` puts in place."""
        build = os.path.dirname(support.PYSAMPLE)
        if not shutil.which("meson") or not os.path.exists(os.path.join(build, "build.ninja")):
            self.skipTest("not tested here: installing (no build folder)")
        with support.fresh_folder() as (folder, _):
            done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild"],
                                  env={**os.environ, "DESTDIR": folder}, capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            found = {os.path.relpath(os.path.join(at, name), folder)
                     for at, _, names in os.walk(folder) for name in names}
            program = [name for name in found if name.endswith("bin/pysample")]
            self.assertEqual(len(program), 1, found)
            self.assertTrue(any(name.endswith("man1/pysample.1") for name in found), found)
            run = subprocess.run([os.path.join(folder, program[0]), "--version"],
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
