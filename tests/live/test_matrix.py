# SPDX-License-Identifier: MIT
"""Every installed interpreter, in every state that its files can be in.

Each cell of the table starts tests/targets/stacks/few_situations.py under an interpreter and
compares `dump` and `attach` with the stacks that the program reports. The table is printed at the
end. A cell that is not "ok" has a number, with the reason below.
"""
import collections.abc
import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import multiprocessing
import os
import re
import shutil
import unittest

import support
from support import Interpreter, pysample
from support.python_copies import (NotPossible, copied, drop_sections, files_of, rename, rooted,
                                   strip)

NR_AT_A_TIME = 2


class Wrong(Exception):
    """What pysample reported wrongly."""


def not_tested_here():
    """One line for each kind of interpreter that is not installed."""
    found = support.interpreters_since_36()
    minors = ["3.%d" % minor for minor in range(support.OLDEST_MINOR, support.NEWEST_MINOR + 1)]
    kinds = {
        "CPython": {one.minor for one in found},
        "debug builds of": {one.minor for one in found if one.path.endswith("d")},
        "a shared libpython of": {one.minor for one in found if len(files_of(one)) > 1},
    }
    for kind, there in kinds.items():
        absent = [minor for minor in minors if minor not in there]
        if absent:
            yield "not tested here: %s %s" % (kind, ", ".join(absent))


# ---- a target ------------------------------------------------------------------------


@dataclasses.dataclass
class Subject:
    """A target, and the pysample that reads it."""

    target: support.Target
    pid: int  # in our PID namespace
    pysample: collections.abc.Callable = pysample

    def assert_maps(self, paths, suffix=""):
        maps = support.read("/proc/%d/maps" % self.pid)
        for path in paths:
            if " %s%s\n" % (path, suffix) not in maps:
                raise AssertionError("the target does not map %s%s" % (path, suffix))


@contextlib.contextmanager
def subject(interpreter, environment=None):
    with support.python_target(interpreter, "few_situations", environment=environment) as target:
        yield Subject(target, target.pid)


@contextlib.contextmanager
def subject_of(copy):
    with subject(copy.interpreter, copy.environment) as found:
        found.assert_maps(copy.files)
        yield found


# ---- variants --------------------------------------------------------------------------
#
# Each is a context manager that yields a Subject.


def as_is(interpreter):
    return subject(interpreter)


def delete(found, copy):
    for path in copy.files:
        os.unlink(path)
    found.assert_maps(copy.files, " (deleted)")


@contextlib.contextmanager
def changed(change, interpreter):
    with copied(interpreter) as copy:
        change(copy)
        with subject_of(copy) as found:
            yield found


@contextlib.contextmanager
def deleted(interpreter):
    with copied(interpreter) as copy, subject_of(copy) as found:
        delete(found, copy)
        yield found


@contextlib.contextmanager
def bare(interpreter):
    """Strip, drop sections, rename and delete, all at once."""
    with copied(interpreter) as copy:
        for change in (strip, drop_sections, rename):
            change(copy)
        with subject_of(copy) as found:
            delete(found, copy)
            yield found


def other_files(interpreter):
    """Files of the next interpreter, as an upgrade would leave them; ours if there is no other."""
    others = support.interpreters_since_36()
    other = others[(others.index(interpreter) + 1) % len(others)]
    files = [support.PYSAMPLE] if other == interpreter else files_of(other)
    return files[0], files[-1]


@contextlib.contextmanager
def replaced(interpreter):
    with copied(interpreter) as copy, subject_of(copy) as found:
        for path, other in zip(copy.files, other_files(interpreter)):
            shutil.copy(other, path + ".new")
            os.rename(path + ".new", path)
        found.assert_maps(copy.files, " (deleted)")
        yield found


@contextlib.contextmanager
def subject_in_root(interpreter, wrapper, environment=None):
    with support.python_target(interpreter, "few_situations", wrapper=wrapper,
                               environment=environment) as target:
        yield Subject(target, support.child_of(target.pid))


@contextlib.contextmanager
def own_root(interpreter):
    with rooted(interpreter) as (inside, wrapper), subject_in_root(inside, wrapper) as found:
        yield found


class NobodysInterpreter(Interpreter):
    """Runs as another user without any capability. It still dies with its parent."""

    def command(self):
        return ["chroot", self.root, "setpriv", "--pdeathsig", "KILL", "--reuid=65534",
                "--regid=65534", "--clear-groups", "--inh-caps=-all", "--", self.path]


@contextlib.contextmanager
def nobodys(interpreter):
    """In a separate root, because another user may not see the interpreter's folder. pysample
    runs as that user, too."""
    with rooted(interpreter) as (inside, wrapper):
        inside = NobodysInterpreter(**vars(inside))
        with subject_in_root(inside, wrapper) as found:
            found.pysample = support.pysample_as_nobody
            yield found


@contextlib.contextmanager
def nobodys_deleted(interpreter):
    with rooted(interpreter) as (inside, wrapper), \
            copied(interpreter, NobodysInterpreter(**vars(inside))) as copy, \
            subject_in_root(copy.interpreter, wrapper, copy.environment) as found:
        delete(found, copy)
        found.pysample = support.pysample_as_nobody
        yield found


VARIANTS = {
    "as is": as_is,
    "stripped": functools.partial(changed, strip),
    "no sections": functools.partial(changed, drop_sections),
    "renamed": functools.partial(changed, rename),
    "deleted": deleted,
    "replaced": replaced,
    "bare": bare,
    "own root": own_root,
    "nobody": nobodys,
    "nobody, deleted": nobodys_deleted,
}


# ---- a cell ------------------------------------------------------------------------------


def run(found, *arguments):
    result = found.pysample(*arguments)
    if result.status:
        raise Wrong("%s: status %d: %s" % (arguments[0], result.status, result.stderr.strip()))
    return result.stdout


def first_difference(got, expected):
    for number, (one, other) in enumerate(zip(got, expected)):
        if one != other:
            return "frame %d is %r, not %r" % (number, one, other)
    return "%d frames, not %d" % (len(got), len(expected))


def check_dump(found):
    dumped = json.loads(run(found, "dump", found.pid, "--json"))
    target = found.target
    if dumped["python"] != target.report["python"]:
        raise Wrong("dump: version %(python)s" % dumped)
    tids = support.innermost_tids(found.pid)
    threads = {tids.get(thread["tid"]): support.dumped_frames(thread)
               for thread in dumped["threads"]}
    truths = {truth["tid"]: truth for truth in target.report["threads"]}
    if set(threads) != set(truths) or len(threads) != len(dumped["threads"]):
        raise Wrong("dump: threads %s, not %s" % (sorted(map(str, threads)), sorted(truths)))
    for tid, truth in truths.items():
        expected = support.expected_frames(truth)
        if threads[tid] != expected:
            raise Wrong("dump: %s: %s" % (truth["situation"],
                                          first_difference(threads[tid], expected)))


def sampled(found):
    """{stack: count} of a run; empty if no stack could be proven."""
    result = found.pysample("attach", found.pid, "-q", "-d", "0.2", "-r", "1khz",
                            *support.COLLAPSED, "--lines")
    if support.has_no_proven_stack(result):
        return {}
    if result.status:
        raise Wrong("attach: status %d: %s" % (result.status, result.stderr.strip()))
    return support.without_gc(support.parse_collapsed(result.stdout))


def check_attach(found):
    """Only true stacks are seen, and all of them."""
    expected = {support.expected_stack(truth, "line")
                for truth in found.target.report["threads"]}

    def sample():
        stacks = sampled(found)
        for stack in stacks:
            if stack not in expected:
                nearest = max(expected, key=lambda other: len(
                    os.path.commonprefix([other, stack])))
                raise Wrong("attach: " + first_difference(stack, nearest))
        return stacks

    support.sampled_until(sample, lambda stacks: set(stacks) == expected, "all are seen")


def check_cell(interpreter, variant):
    """None if all is well, else the exception with the reason."""
    try:
        with VARIANTS[variant](interpreter) as found:
            support.wait_until_parked(found.target, found.pid)
            check_dump(found)
            check_attach(found)
    except (NotPossible, Wrong) as reason:
        return reason
    except Exception as error:  # a fault of this test, shown as such
        return AssertionError("the test itself: %s: %s" % (type(error).__name__, error))
    return None


# ---- the table ----------------------------------------------------------------------------

TABLE = {}  # {interpreter: {variant: None or the exception}}


def general(reason):
    """The text of a reason without what differs between cells."""
    text = " ".join(str(reason).split())
    return re.sub(r"process \d+", "process N", re.sub(r"/tmp/pysample-test-\w+", "/tmp/…", text))


def table_lines():
    notes = []

    def shown(reason):
        if reason is None:
            return "ok"
        text = general(reason)
        if text not in notes:
            notes.append(text)
        return "%s [%d]" % ("—" if isinstance(reason, NotPossible) else "RED",
                            notes.index(text) + 1)

    rows = [["interpreter", *VARIANTS]]
    for interpreter in sorted(TABLE, key=support.version_key):
        rows.append([str(interpreter), *map(shown, TABLE[interpreter].values())])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    for number, note in enumerate(notes, 1):
        yield "[%d] %s" % (number, note)
    yield from not_tested_here()


def tearDownModule():
    if TABLE:
        print("", *table_lines(), sep="\n", flush=True)


class Matrix(unittest.TestCase):
    """One test for each interpreter."""

    alone = True  # it runs several cells at once itself

    @classmethod
    def setUpClass(cls):
        support.pysample_for_nobody()  # made here: a child could not delete it

    def check_row(self, interpreter):
        # No threads: a child that has not called exec yet keeps open for writing what another
        # thread writes, and such a file cannot be executed.
        with concurrent.futures.ProcessPoolExecutor(
                NR_AT_A_TIME, mp_context=multiprocessing.get_context("fork")) as pool:
            reasons = pool.map(check_cell, [interpreter] * len(VARIANTS), VARIANTS)
            cells = TABLE[interpreter] = dict(zip(VARIANTS, reasons))
        for variant, reason in cells.items():
            with self.subTest(variant=variant):
                if isinstance(reason, NotPossible):
                    self.skipTest(str(reason))
                if reason is not None:
                    self.fail(str(reason))


support.one_test_each(Matrix, Matrix.check_row, support.interpreters_since_36())

if __name__ == "__main__":
    unittest.main()
