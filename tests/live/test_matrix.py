# SPDX-License-Identifier: MIT
"""Every interpreter that is here, in every state that its files can be in.

Each cell of the table starts tests/targets/few.py under an interpreter and holds
`dump` and `attach` against what the program itself says of its stacks. The table is
printed at the end; what is not "ok" has a number, and the reason below.

A changed interpreter is a copy of its executable, and of its libpython if it has
one, in a folder of their own, with PYTHONHOME and LD_LIBRARY_PATH to find the rest.
"""
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import unittest

import support
from support import Interpreter, pysample

OLDEST_MINOR, NEWEST_MINOR = 6, 15
NR_AT_A_TIME = 2


class NotPossible(Exception):
    """Why this cell cannot be tested here."""


class Wrong(Exception):
    """What pysample said that is not so."""


def version_key(interpreter):
    return [int(part) for part in interpreter.version.split(".")]


def matrix_interpreters():
    found = support.all_interpreters() + support.other_builds()
    return sorted((interpreter for interpreter in found
                   if version_key(interpreter) >= [3, OLDEST_MINOR]), key=version_key)


def not_tested_here():
    """A line for each kind of interpreter that there is none of."""
    found = matrix_interpreters()
    minors = ["3.%d" % minor for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1)]
    kinds = {
        "CPython": {one.minor for one in found},
        "debug builds of": {one.minor for one in found if one.origin.endswith("_d")},
        "a shared libpython of": {one.minor for one in found if len(files_of(one)) > 1},
    }
    for kind, there in kinds.items():
        absent = [minor for minor in minors if minor not in there]
        if absent:
            yield "not tested here: %s %s" % (kind, ", ".join(absent))


# ---- copies of interpreters ----------------------------------------------------------


@dataclasses.dataclass
class Copy:
    """An interpreter's own files, in a folder of their own."""

    interpreter: Interpreter
    folder: str  # as seen from outside of its root
    files: list  # their paths: the executable, and the libpython of a shared build
    environment: dict

    def moved(self, names):
        """Rename the files; a libpython is still found by its name, through a link."""
        moved = []
        for path, name in zip(self.files, names):
            moved.append(os.path.join(self.folder, name))
            os.rename(path, moved[-1])
        for path, name in zip(self.files[1:], names[1:]):
            os.symlink(name, path)
        self.files = moved
        path = moved[0][len(self.interpreter.root):]
        self.interpreter = dataclasses.replace(self.interpreter, path=path)


def files_of(interpreter):
    """Its executable and, of a shared build, its libpython, as seen from outside."""
    executable = os.path.realpath(interpreter.root + interpreter.path)
    with open(executable, "rb") as file:
        needed = re.findall(rb"\0(libpython3\.\d+[a-z]*\.so[.0-9]*)\0", file.read())
    libraries = os.path.join(os.path.dirname(os.path.dirname(executable)), "lib")
    paths = [os.path.join(libraries, os.fsdecode(name)) for name in needed]
    return [executable] + [path for path in paths if os.path.exists(path)][:1]


@contextlib.contextmanager
def copied(interpreter):
    originals = files_of(interpreter)
    prefix = os.path.dirname(os.path.dirname(originals[0]))[len(interpreter.root):]
    with support.fresh_folder(interpreter.root) as (outside, inside):
        files = [shutil.copy(path, outside) for path in originals]
        for path in files:
            os.chmod(path, 0o755)
        copy = dataclasses.replace(
            interpreter, path=os.path.join(inside, os.path.basename(files[0])))
        yield Copy(copy, outside, files, {"PYTHONHOME": prefix, "LD_LIBRARY_PATH": inside})


@contextlib.contextmanager
def target_of(copy):
    with support.python_target(copy.interpreter, "few", environment=copy.environment) as target:
        executable = os.path.realpath("/proc/%d/exe" % target.pid)
        if executable != copy.files[0]:
            raise AssertionError("%s runs, not %s" % (executable, copy.files[0]))
        for path in copy.files:
            if " %s\n" % path not in support.read("/proc/%d/maps" % target.pid):
                raise AssertionError("the target does not use " + path)
        yield target


# ---- variants --------------------------------------------------------------------------
#
# Each is a context manager that yields (target, its process id in our namespace).


@contextlib.contextmanager
def as_is(interpreter):
    with support.python_target(interpreter, "few") as target:
        yield target, target.pid


@contextlib.contextmanager
def stripped(interpreter):
    if not shutil.which("strip"):
        raise NotPossible("no strip here (binutils)")
    with copied(interpreter) as copy:
        subprocess.run(["strip", *copy.files], check=True, stderr=subprocess.DEVNULL)
        with target_of(copy) as target:
            yield target, target.pid


# Where an ELF64 header has e_shoff, and e_shnum with e_shstrndx behind it (elf(5)).
SHOFF, SHOFF_BYTES = 0x28, 8
SHNUM, SHNUM_BYTES = 0x3C, 4


@contextlib.contextmanager
def no_sections(interpreter):
    with copied(interpreter) as copy:
        for path in copy.files:
            with open(path, "r+b") as file:
                if file.read(5) != b"\x7fELF\x02":
                    raise NotPossible("only for 64-bit ELF files")
                for offset, size in ((SHOFF, SHOFF_BYTES), (SHNUM, SHNUM_BYTES)):
                    file.seek(offset)
                    file.write(bytes(size))
        with target_of(copy) as target:
            yield target, target.pid


@contextlib.contextmanager
def renamed(interpreter):
    with copied(interpreter) as copy:
        copy.moved(["app", "engine.so"])
        with target_of(copy) as target:
            yield target, target.pid


def assert_deleted(target, copy):
    for path in copy.files:
        if " %s (deleted)\n" % path not in support.read("/proc/%d/maps" % target.pid):
            raise AssertionError(path + " is not deleted")


@contextlib.contextmanager
def deleted(interpreter):
    with copied(interpreter) as copy, target_of(copy) as target:
        for path in copy.files:
            os.unlink(path)
        assert_deleted(target, copy)
        yield target, target.pid


def other_files(interpreter):
    """Those of the next interpreter: what an upgrade leaves at the path. Ours if there
    is only one."""
    others = matrix_interpreters()
    other = others[(others.index(interpreter) + 1) % len(others)]
    files = [support.PYSAMPLE] if other == interpreter else files_of(other)
    return files[0], files[-1]


@contextlib.contextmanager
def replaced(interpreter):
    with copied(interpreter) as copy, target_of(copy) as target:
        for path, other in zip(copy.files, other_files(interpreter)):
            shutil.copy(other, path + ".new")
            os.rename(path + ".new", path)
        assert_deleted(target, copy)
        yield target, target.pid


# $1 is the new root; what follows are the folders to be seen in it, "--" and a command.
ENTER_ROOT = """
set -e
root=$1
shift
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do
	mount --rbind "$1" "$root$1"
	shift
done
shift
exec "$@"
"""


def make_root(root, prefix):
    """A minimal root; the folders that have to be bound into it."""
    os.mkdir(os.path.join(root, "tmp"))
    os.mkdir(os.path.join(root, "proc"))
    bound = ["/usr"] + ([prefix] if prefix != "/usr" else [])
    for name in ("/bin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            os.symlink(os.readlink(name), root + name)
        elif os.path.isdir(name):
            bound.append(name)
    for path in bound:
        os.makedirs(root + path)
    return bound


@contextlib.contextmanager
def own_root(interpreter):
    """In a PID and a mount namespace; a testbed's has a root of its own anyhow."""
    if os.geteuid() != 0:
        raise NotPossible("needs root: namespaces and a root of its own")
    with contextlib.ExitStack() as stack:
        wrapper = list(support.IN_A_CONTAINER)
        if not interpreter.root:
            root, _ = stack.enter_context(support.fresh_folder())
            prefix = os.path.dirname(os.path.dirname(files_of(interpreter)[0]))
            wrapper += ["sh", "-c", ENTER_ROOT, "sh", root, *make_root(root, prefix), "--"]
            interpreter = dataclasses.replace(interpreter, root=root)
        target = stack.enter_context(support.python_target(interpreter, "few", wrapper=wrapper))
        yield target, support.child_of(target.pid)


VARIANTS = {
    "as is": as_is,
    "stripped": stripped,
    "no sections": no_sections,
    "renamed": renamed,
    "deleted": deleted,
    "replaced": replaced,
    "own root": own_root,
}


# ---- a cell ------------------------------------------------------------------------------


def run(*arguments):
    result = pysample(*arguments)
    if result.status:
        raise Wrong("%s: status %d: %s" % (arguments[0], result.status, result.stderr.strip()))
    return result.stdout


def first_difference(got, expected):
    for number, (one, other) in enumerate(zip(got, expected)):
        if one != other:
            return "frame %d is %r, not %r" % (number, one, other)
    return "%d frames, not %d" % (len(got), len(expected))


def check_dump(target, pid):
    dumped = json.loads(run("dump", pid, "--json"))
    if dumped["python"] != target.report["python"]:
        raise Wrong("dump: version %(python)s" % dumped)
    tids = support.innermost_tids(pid)
    threads = {tids.get(thread["tid"]): thread["frames"] for thread in dumped["threads"]}
    truths = {truth["tid"]: truth for truth in target.report["threads"]}
    if set(threads) != set(truths) or len(threads) != len(dumped["threads"]):
        raise Wrong("dump: threads %s, not %s" % (sorted(map(str, threads)), sorted(truths)))
    for tid, truth in truths.items():
        expected = support.expected_frames(truth)
        if threads[tid] != expected:
            raise Wrong("dump: %s: %s" % (truth["situation"],
                                          first_difference(threads[tid], expected)))


def check_attach(target, pid):
    """Every stack is there, and none but those; a first sample may be without its generators."""
    with support.fresh_folder() as (folder, _):
        stats_path = os.path.join(folder, "stats.json")
        got = support.parse_collapsed(run(
            "attach", pid, "-q", "-d", "0.3", "-r", "1khz", "-f", "collapsed", "--lines",
            "--stats-json", stats_path))
        stats = json.loads(support.read(stats_path))
    expected = collections.Counter(
        support.expected_stack(truth, "line") for truth in target.report["threads"])
    for stack in expected:
        if stack not in got:
            nearest = max(got, key=lambda found: len(os.path.commonprefix([found, stack])),
                          default=())
            raise Wrong("attach: " + first_difference(nearest, stack))
    extra = {stack: nr for stack, nr in got.items() if stack not in expected}
    for stack in extra:
        if not any(stack == full[:len(stack)] for full in expected):
            raise Wrong("attach: no such stack: %s" % (stack,))
    if sum(extra.values()) > stats["trimmed"]:
        raise Wrong("attach: %s" % extra)


def check_cell(interpreter, variant):
    """None if all is well, else the exception that says why not."""
    try:
        with VARIANTS[variant](interpreter) as (target, pid):
            support.wait_until_parked(target, pid)
            check_dump(target, pid)
            check_attach(target, pid)
    except (NotPossible, Wrong) as reason:
        return reason
    except Exception as error:  # of this test, and shown as such
        return AssertionError("the test itself: %s: %s" % (type(error).__name__, error))
    return None


# ---- the table ----------------------------------------------------------------------------

TABLE = {}  # {interpreter: {variant: None or the exception}}


def general(reason):
    """The text without what differs from one cell to the next."""
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

    rows = [["interpreter", *VARIANTS]] + [
        [str(interpreter), *(shown(cells[variant]) for variant in VARIANTS)]
        for interpreter, cells in sorted(TABLE.items(), key=lambda row: version_key(row[0]))]
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

    def check_row(self, interpreter):
        # No threads: a child that has not called exec yet holds what another one writes
        # open for writing, and that cannot be executed.
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


def add_tests():
    for interpreter in matrix_interpreters():
        def test(self, interpreter=interpreter):
            self.check_row(interpreter)

        setattr(Matrix, "test_" + interpreter.label, test)


add_tests()

if __name__ == "__main__":
    unittest.main()
