# SPDX-License-Identifier: MIT
"""The recordings that the tests read, and the reports that pysample makes of them."""
import atexit
import contextlib
import dataclasses
import fcntl
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "live"))

import oracle  # noqa: E402
import recording_reader  # noqa: E402
import support  # noqa: E402
import synthetic  # noqa: E402

# Shared by all processes that run tests. The first of them, which imports this, deletes it.
FOLDER = tempfile.mkdtemp(prefix="pysample-test-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

SECONDS = 3
JIT = {"PYTHON_JIT": "1"}
LIVE_OUTPUTS = (".collapsed", ".summary", ".jsonl")


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    path: str
    recording: oracle.Recording
    report: dict = None  # the target's report, if there is a target

    def view(self, **how):
        return oracle.View(self.recording, **how)

    def __str__(self):
        return self.name


def path_of(name):
    return os.path.join(FOLDER, name)


@contextlib.contextmanager
def _made_once(name):
    """Yield whether the block must make the file: the first process does, the others wait."""
    with open(path_of(name + ".lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not os.path.exists(path_of(name))


@functools.lru_cache(maxsize=None)
def made_up():
    with _made_once("made-up.pysample") as needed:
        truth = synthetic.make(path_of("making")) if needed else None
        if truth:
            os.rename(path_of("making"), path_of("made-up.pysample"))
    return Subject("made up", path_of("made-up.pysample"),
                   recording_reader.read(path_of("made-up.pysample")))


@functools.lru_cache(maxsize=None)
def live(interpreter=None):
    """A recording of tests/targets/names/nasty.py, with the other outputs of the same run."""
    interpreter = interpreter or support.newest_interpreter()
    name = interpreter.label + ".pysample"
    with _made_once(name) as needed:
        if needed:
            with support.python_target(interpreter, "nasty") as target:
                support.wait_until(lambda: record(target, name), "every function is seen")
    return Subject(str(interpreter), path_of(name), recording_reader.read(path_of(name)),
                   load_json(name + ".json"))


def record(target, name):
    """Whether every function of the target is in the recording. If not, the recording is
    dropped."""
    outputs = [path_of(name + suffix) for suffix in (".making.pysample", *LIVE_OUTPUTS)]
    result = support.pysample("attach", target.pid, "-q", "--idle", "-r", 1000, "-d", SECONDS, *itertools.chain(
        *(("-o", path) for path in outputs)))
    if result.status:
        raise AssertionError("attach: %d %s" % (result.status, result.stderr))
    read = {(function.qualname, function.path)
            for frames in recording_reader.read(outputs[0]).stacks for function, _ in frames}
    if not {tuple(map(support.shown, pair)) for pair in target.report["functions"]} <= read:
        return False
    with open(path_of(name + ".json"), "w", encoding="ascii") as file:
        json.dump(target.report, file)
    os.rename(outputs[0], path_of(name))
    return True


def record_jit(target, name):
    """Whether code of the JIT is in the recording. If not, the recording is dropped."""
    path = path_of("making-" + name)
    result = support.pysample("attach", "-n", "-r", 500, "-d", SECONDS, "-o", path, target.pid)
    if "no C frames" in result.stderr:
        raise unittest.SkipTest(result.stderr)
    if result.status == 5:
        return False
    if result.status:
        raise AssertionError("attach: %d %s" % (result.status, result.stderr))
    if not any(one.flags & oracle.IN_JIT for one in recording_reader.read(path).samples):
        return False
    os.rename(path, path_of(name))
    return True


def load_json(name):
    with open(path_of(name), encoding="ascii") as file:
        return json.load(file)


def lives():
    """One recording or, if everything is tested, one of each version that has code.replace()."""
    if not os.environ.get(support.ALL):
        return [live()]
    return [live(found) for found in support.tested_interpreters()
            if support.version_key(found) >= [3, 8]]


def has_jit(interpreter):
    """Whether it has a JIT and lists the JIT's code, which 3.14 does not."""
    if support.version_key(interpreter) < [3, 15]:
        return False
    run = subprocess.run([*interpreter.command(), "-c", "import sys; print(sys._jit.is_enabled())"],
                         env={**os.environ, **JIT}, capture_output=True, text=True, check=False)
    return run.stdout == "True\n"


@functools.lru_cache(maxsize=None)
def in_jit():
    """A list of one recording, of tests/targets/jit/jitloop.py with C frames. Empty where there is
    no JIT or where C frames cannot be had."""
    found = [one for one in support.tested_interpreters() if has_jit(one)]
    name = "jit.pysample"
    if not found:
        return []
    with _made_once(name) as needed:
        if needed:
            try:
                with support.python_target(found[0], "jitloop", environment=JIT) as target:
                    support.wait_until(lambda: record_jit(target, name), "its code is seen")
            except unittest.SkipTest:
                return []
    return [Subject("in the JIT", path_of(name), recording_reader.read(path_of(name)))]


def each(check):
    """Run a test on every subject, its first argument, each in a sub-test."""
    @support.thorough_with_all
    @functools.wraps(check)
    def check_each(case, *arguments, **options):
        for subject in [made_up(), *lives(), *in_jit()]:
            with case.subTest(subject.name):
                check(case, subject, *arguments, **options)
    return check_each


_numbers = itertools.count()


def report(*paths, form, options=(), suffix=""):
    """The path of the report that `pysample report` makes of recordings, without process roots."""
    out = path_of("%d-%d-%s%s" % (os.getpid(), next(_numbers), form, suffix))
    result = support.pysample("report", "--plumbing", "--merge-processes", *paths, "-f", form, "-o", out, *options)
    if result.status:
        raise AssertionError("report: %d %s" % (result.status, result.stderr))
    return out


def different(got, expected, limit=4):
    """Where two dicts differ, in a few lines; empty if they are equal."""
    keys = [key for key in {**expected, **got} if got.get(key) != expected.get(key)]
    shown = keys[:limit] + keys[max(limit, len(keys) - limit):]
    lines = ["%.300r: got %r, expected %r" % (key, got.get(key), expected.get(key))
             for key in shown]
    return "\n".join(lines + ["%d differ of %d" % (len(keys), len(expected))] * bool(keys))


def assert_same(case, got, expected):
    """Compare two dicts and show the differences."""
    if got != expected:
        case.fail(different(dict(got), dict(expected)))
    case.assertTrue(expected, "nothing is compared")
