# SPDX-License-Identifier: MIT
"""Shared by the live tests: interpreters, targets, and running pysample.

Nothing started here outlives its context manager or this process: each target asks the kernel to
kill it when its parent dies.
"""
import atexit
import collections
import contextlib
import dataclasses
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TARGETS = os.path.join(ROOT, "tests", "targets")
PYSAMPLE = os.path.abspath(os.environ.get("PYSAMPLE", os.path.join(ROOT, "build", "pysample")))

def _reset_environment():
    """Make the environment the same however the tests were started, even by nohup(1) or a shell's
    `&`: what we start ignores and blocks no signal, inherits no settings from the environment,
    and makes files that others may read."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    of_python = signal.SIGPIPE, signal.SIGXFSZ  # subprocess restores their defaults
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN and number not in of_python:
            # We keep ignoring it. A handler, unlike SIG_IGN, is reset to the default in what we
            # start.
            signal.signal(number,
                          signal.SIG_DFL if number == signal.SIGCHLD else lambda *_: None)
    os.environ.update(LC_ALL="C.UTF-8", TERM="xterm")
    for name in "LANGUAGE", "NO_COLOR", "DEBUGINFOD_URLS":
        os.environ.pop(name, None)
    os.umask(0o022)


_reset_environment()

# A hang is a failure: nothing here takes nearly that long, even on a busy machine.
PATIENCE_S = int(os.environ.get("PYSAMPLE_PATIENCE_S", 180))

SUPPORTED = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
SANITIZED = ("3.10", "3.11", "3.13", "3.15")
# One version for each layout of threads and frames. 3.7 to 3.9 are laid out as 3.10; 3.13 as
# 3.12, with the tables of 3.14.
LAYOUTS = ("3.6", "3.10", "3.11", "3.12", "3.14", "3.15")
# The versions that every change is tested on, out of those that a test is for; at least one is
# always used. A class sets `quick_on = (...)` if fewer are enough, and `is_quick = False` if it
# takes too long.
QUICK = ("3.8", "3.11", "3.15")
ALL = "PYSAMPLE_TEST_ALL"  # environment variable: run every test on every version
REFUSED = ("2.7",)
OLDEST_MINOR, NEWEST_MINOR = 6, 15  # minor versions of 3.N, for tests at either end
TESTBED_VERSIONS = ("3.13", "3.14", "3.15")
FREE_THREADED = ("3.13", "3.14", "3.15")  # built by scripts/testbed


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


# ---- interpreters ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Interpreter:
    path: str  # as seen inside root
    version: str  # "3.15.2"; in the benchmark "3.15.2t" if free-threaded
    root: str = ""  # of its file system; "" is ours
    origin: str = "system"

    @property
    def minor(self):
        return ".".join(self.version.split(".")[:2]) + "t" * self.version.endswith("t")

    @property
    def is_free_threaded(self):
        return "-nogil" in self.origin

    @property
    def label(self):
        return "%s_%s" % (self.origin.replace("-", "_"), self.version.replace(".", "_"))

    def command(self):
        return (["chroot", self.root] if self.root else []) + [self.path]

    def __str__(self):
        return "%s (%s)" % (self.version, self.origin)


def _version_of(command):
    """ "3.15.2", or None if it does not run."""
    try:
        result = subprocess.run(command + ["--version"], capture_output=True, text=True,
                                timeout=PATIENCE_S)
    except OSError:
        return None
    found = re.match(r"Python (\d+\.\d+\.\d+)", result.stdout + result.stderr)
    return found and found.group(1)


def _testbed_root():
    result = subprocess.run([os.path.join(ROOT, "scripts", "testbed"), "--path"],
                            capture_output=True, text=True)
    return result.stdout.strip()


def _candidates():
    yield Interpreter("/usr/bin/python3", "", origin="system")
    for version in TESTBED_VERSIONS:  # the system of a guest (tests/guests) is the testbed's
        path = "/usr/bin/python" + version
        if os.path.exists(path) and not os.path.samefile(path, "/usr/bin/python3"):
            yield Interpreter(path, "", origin="system")
    yield Interpreter("/usr/bin/python3.11d", "", origin="system-dbg")
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python"))):
        yield Interpreter(path, "", origin="pyenv")
    root = _testbed_root()
    if os.geteuid() == 0 and os.path.isdir(root):
        for version in TESTBED_VERSIONS:
            for suffix, origin in ("", "testbed"), ("d", "testbed-dbg"):
                path = "/usr/bin/python%s%s" % (version, suffix)
                if os.path.exists(root + path):
                    yield Interpreter(path, "", root=root, origin=origin)


def _that_run(candidates):
    found = []
    for candidate in candidates:
        version = _version_of(candidate.command())
        if version:
            found.append(dataclasses.replace(candidate, version=version))
    return found


@functools.lru_cache(maxsize=None)
def all_interpreters():
    return _that_run(_candidates())


BUILD_NAME = re.compile(r"python3\.\d+(|d|t|td)")
BUILDS = {"": "", "d": "-dbg", "t": "-nogil", "td": "-nogil-dbg"}  # by the end of the name


def _builds_in(folder, root, origin):
    """Every executable in folder with a version in its name."""
    for name in sorted(os.listdir(root + folder) if os.path.isdir(root + folder) else []):
        found = BUILD_NAME.fullmatch(name)
        if found:
            yield Interpreter("%s/%s" % (folder, name), "", root=root,
                              origin=origin + BUILDS[found.group(1)])


@functools.lru_cache(maxsize=None)
def interpreters_since_36():
    """Every build found here, oldest first, supported or not."""
    root = _testbed_root()
    builds = [*_builds_in("/usr/bin", "", "system"), *_builds_in("/usr/local/bin", "", "local")]
    if os.geteuid() == 0 and os.path.isdir(root):
        builds += [*_builds_in("/usr/bin", root, "testbed"),
                   *_builds_in("/usr/local/bin", root, "testbed")]
    found = {os.path.realpath(one.root + one.path): one
             for one in _that_run(builds) + all_interpreters()}
    return sorted((one for one in found.values() if version_key(one) >= [3, OLDEST_MINOR]),
                  key=version_key)


def free_threaded_interpreters():
    """One non-debug build of each version that is installed."""
    by_minor = {found.minor: found for found in interpreters_since_36()
                if found.origin.endswith(BUILDS["t"])}
    return [by_minor[minor] for minor in FREE_THREADED if minor in by_minor]


@functools.lru_cache(maxsize=None)
def musl_interpreter():
    """The testbed's build for musl, or None."""
    root = _testbed_root()
    folder = "/usr/local/musl/bin"
    paths = sorted(glob.glob(root + folder + "/python3.*[0-9]")) if os.geteuid() == 0 else []
    found = _that_run([Interpreter(path[len(root):], "", root=root, origin="testbed-musl")
                       for path in paths])
    return found[-1] if found else None


def version_key(interpreter):
    return [int(part) for part in interpreter.version.rstrip("t").split(".")]


def supported_interpreters():
    return [found for found in all_interpreters() if found.minor in SUPPORTED]


def _preference(interpreter):
    origins = ("testbed", "system", "local", "pyenv")
    return origins.index(interpreter.origin) if interpreter.origin in origins else len(origins)


def tested_interpreters():
    """One build of each version; test_matrix.py covers every build. A pysample with sanitizers is
    slow and is tested only on the versions that differ most."""
    minors = SANITIZED if is_sanitized() else SUPPORTED
    best = {}
    for found in sorted(supported_interpreters(), key=_preference, reverse=True):
        if found.minor in minors:
            best[found.minor] = found
    return [best[minor] for minor in minors if minor in best]


def refused_interpreters():
    """One build of each unsupported version that is installed."""
    by_minor = {found.minor: found for found in all_interpreters() if found.minor in REFUSED}
    return [by_minor[minor] for minor in sorted(by_minor)]


def newest_interpreter():
    """For tests where the version does not matter. There is always one: ours."""
    return max(supported_interpreters(), key=version_key)


def absent_versions():
    """One line for each version that the tests are for and that is not installed."""
    present = {found.minor for found in all_interpreters()}
    for minor in SUPPORTED + REFUSED:
        if minor not in present:
            why = "no testbed" if minor in TESTBED_VERSIONS else "no such interpreter here"
            yield "not tested here: %s (%s)" % (minor, why)
    for minor in TESTBED_VERSIONS:
        if minor in present and not any(found.minor == minor and found.origin == "testbed"
                                        for found in all_interpreters()):
            yield "not tested here: %s of Debian, non-PIE and stripped (no testbed)" % minor
    free_threaded = {found.minor for found in free_threaded_interpreters()}
    for minor in FREE_THREADED:
        if minor not in free_threaded:
            yield "not tested here: %st, free-threaded (run scripts/testbed to see why)" % minor
    if not musl_interpreter():
        yield "not tested here: musl (run scripts/testbed to see why)"


def quick_interpreters(interpreters, quick_on=QUICK):
    """The interpreters of quick_on, or else the newest."""
    found = [one for one in interpreters if one.minor in quick_on]
    return found or sorted(interpreters, key=version_key)[-1:]


def thorough_with_all(tests):
    """Mark a test or a class that checks more when everything is asked for (ALL): it then counts
    as another test, which is not quick."""
    tests.is_quick = not os.environ.get(ALL)
    return tests


def is_quick(test):
    method = getattr(test, test.id().rpartition(".")[2], None)
    return getattr(method, "is_quick", getattr(test, "is_quick", True))


def _make_cases(base, interpreters, quick):
    module = sys.modules[base.__module__]
    for interpreter in interpreters:
        name = "%s_%s" % (base.__name__, interpreter.label)
        case = type(name, (base,), {
            "interpreter": interpreter, "__module__": base.__module__,
            "is_quick": interpreter in quick and getattr(base, "is_quick", True)})
        setattr(module, name, case)


def per_interpreter(base, minors=SUPPORTED):
    """Replace a test case by one for each of quick_interpreters() of minors, or, with ALL, for
    each of tested_interpreters(). Each finds its interpreter in self.interpreter."""
    quick = quick_interpreters([one for one in tested_interpreters() if one.minor in minors],
                               getattr(base, "quick_on", QUICK))
    _make_cases(base, tested_interpreters() if os.environ.get(ALL) else quick, quick)


def per_free_threaded(base, nr_quick=1):
    """The same for each of free_threaded_interpreters(). Used with per_interpreter(), below it.
    The newest nr_quick are quick tests."""
    found = free_threaded_interpreters()
    _make_cases(base, found, found[len(found) - nr_quick:])
    return base


# For classes whose quick tests are enough with a GIL.
slow_per_free_threaded = functools.partial(per_free_threaded, nr_quick=0)


def per_minor(*minors):
    """per_interpreter() for behaviour that differs between some versions only."""
    return functools.partial(per_interpreter, minors=minors)


per_layout = per_minor(*LAYOUTS)


def one_test_each(case, check, interpreters):
    """Add a test for each interpreter to a test case, which calls check(case, interpreter). By
    default the interpreters are those of QUICK."""
    thorough_with_all(case)
    for interpreter in quick_interpreters(interpreters) if case.is_quick else interpreters:

        def test(self, interpreter=interpreter):
            check(self, interpreter)

        name = "test_" + interpreter.label
        while hasattr(case, name):  # another build of that version
            name += "_other"
        setattr(case, name, test)


def state(pid):
    """The state letter of proc_pid_stat(5), of a process or of a thread: "PID/task/TID"."""
    return read("/proc/%s/stat" % pid).rpartition(")")[2].split()[0]


# ---- targets ----------------------------------------------------------------------


@dataclasses.dataclass
class Target:
    process: subprocess.Popen
    report: dict  # its first line of output, parsed
    errors: str  # path of the file with its stderr

    @property
    def pid(self):
        return self.process.pid

    def stderr(self):
        return read(self.errors)

    def state(self):
        return state(self.pid)

    def runs(self):
        return self.process.poll() is None


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("timed out waiting until " + what)
        time.sleep(0.005)


def _kill(process):
    if process.poll() is None:
        process.kill()
    process.wait(timeout=PATIENCE_S)
    if process.stdout:
        process.stdout.close()


@contextlib.contextmanager
def fresh_folder(root=""):
    """A folder that anybody may enter: its path from outside root and from inside."""
    outside = tempfile.mkdtemp(prefix="pysample-test-", dir=root + "/tmp")
    os.chmod(outside, 0o755)
    try:
        yield outside, outside[len(root):]
    finally:
        shutil.rmtree(outside, ignore_errors=True)


# A target dies with this process, however this process ends.
TIED_TO_US = ["setpriv", "--pdeathsig", "KILL", "--"]


def target_environment(folder):
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }


@contextlib.contextmanager
def python_target(interpreter, name, *args, wrapper=(), environment=None):
    """Run NAME.py, of a folder of tests/targets, until the block ends. All targets are copied into
    one folder, as they import each other. The report is the first line of output."""
    with fresh_folder(interpreter.root) as (outside, inside), contextlib.ExitStack() as stack:
        for path in glob.glob(os.path.join(TARGETS, "**", "*.py"), recursive=True):
            shutil.copy(path, outside)
        errors = os.path.join(outside, "stderr")
        with open(errors, "wb") as file:
            process = subprocess.Popen(
                TIED_TO_US + list(wrapper) + interpreter.command() + ["%s/%s.py" % (inside, name)]
                + [arg if isinstance(arg, bytes) else str(arg) for arg in args],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file,
                env={**target_environment(inside), **(environment or {})})
        stack.callback(_kill, process)
        line = process.stdout.readline()
        target = Target(process, {}, errors)
        if not line:
            raise AssertionError("%s.py did not start under %s: %s"
                                 % (name, interpreter, target.stderr()))
        target.report = json.loads(line)
        yield target


def wait_until_parked(target, pid):
    """Wait until the thread that reported the truth has ended."""
    parked = {thread["tid"] for thread in target.report["threads"]}
    wait_until(lambda: set(innermost_tids(pid).values()) == parked, "only parked threads are left")


def reads_from(pid, tid, descriptor):
    """Whether the thread is in a system call whose first argument is descriptor."""
    words = read("/proc/%d/task/%d/syscall" % (pid, tid)).split()
    return len(words) > 1 and int(words[1], 16) == descriptor


@contextlib.contextmanager
def parked_target(interpreter, name):
    """A target built on parking.py, once all its threads are where it says they are."""
    with python_target(interpreter, name) as target:
        wait_until_parked(target, target.pid)
        yield target


@contextlib.contextmanager
def parked_sub_interpreters(interpreter):
    """Three sub-interpreters, each where it says it is, and the main one in park()."""
    if version_key(interpreter) < [3, 8]:
        raise unittest.SkipTest("Python code of %s cannot make interpreters" % interpreter.minor)
    with python_target(interpreter, "subinterpreters") as target:
        for tid in [target.pid] + [truth["tid"] for truth in target.report["threads"]]:
            wait_until(lambda tid=tid: reads_from(target.pid, tid, target.report["parking"]),
                       "all threads are parked")
        yield target


@contextlib.contextmanager
def ended_main_thread_target(interpreter):
    """A process whose main thread has ended while another one works."""
    with python_target(interpreter, "ended_main_thread") as target:
        wait_until(lambda: target.state() == "Z", "the main thread has ended")
        yield target


# Loads a program at the same addresses each time.
FIXED_ADDRESSES = ["setarch", "--addr-no-randomize", "--"]

# A new PID and mount namespace, as a container has.
IN_A_CONTAINER = ["unshare", "--pid", "--fork", "--mount", "--kill-child", "--"]


def child_of(pid):
    """Return the only child of a process."""
    (child,) = read("/proc/%d/task/%d/children" % (pid, pid)).split()
    return int(child)


def descendant(pid):
    """Follow a chain of only children from pid and return the last one."""
    while True:
        children = read("/proc/%d/task/%d/children" % (pid, pid)).split()
        if not children:
            return pid
        (pid,) = map(int, children)


def innermost_tids(pid):
    """Return {tid in our PID namespace: tid in the process's own}."""
    tids = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            status = read("/proc/%d/task/%s/status" % (pid, tid))
            tids[int(tid)] = int(re.search(r"^NSpid:.*?(\d+)$", status, re.M).group(1))
    return tids


@contextlib.contextmanager
def plain_target(*command, program=None):
    """A process that is not one of our Python targets. program: the executable that the command
    ends up as, if not its first word."""
    process = subprocess.Popen(TIED_TO_US + list(command), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        program = program or command[0]
        wanted = os.path.realpath(shutil.which(program))
        wait_until(lambda: os.path.realpath("/proc/%d/exe" % process.pid) == wanted,
                   program + " has begun")
        yield process
    finally:
        _kill(process)


def kernel_thread():
    """The id of a kernel thread that is visible from here, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = read("/proc/%s/stat" % pid).rpartition(")")[2].split()
            if int(fields[6]) & 0x00200000:  # PF_KTHREAD
                return int(pid)
    return None


# ---- pysample -----------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    status: int
    stdout: str
    stderr: str


SANITIZER_REPORT = re.compile(
    r"ERROR: (Address|Leak)Sanitizer|runtime error:|LeakSanitizer has encountered")


@functools.lru_cache(maxsize=None)
def is_sanitized():
    """Whether pysample is built with sanitizers. It is then several times slower, and bounds of
    throughput mean nothing."""
    with open(PYSAMPLE, "rb") as file:
        return b"__asan_init" in file.read()


def _finished(process, stdout, stderr):
    result = Result(process.returncode, stdout.decode("utf-8"),
                    stderr.decode("utf-8", errors="replace"))
    if SANITIZER_REPORT.search(result.stderr):
        raise AssertionError("a sanitizer reports:\n" + result.stderr)
    return result


PREEMPT = ["--engine", "preempt"]

# Collapsed stacks of all threads, those that wait included.
COLLAPSED = ["-f", "collapsed", "--mode", "wall"]

# Starts a command for which a system call fails: CALL ERRNO COMMAND...
FORBID_CALL = [sys.executable, os.path.join(HERE, "forbid_call.py")]

# Starts a pysample for which the kernel loads no BPF program.
WITHOUT_BPF = [*FORBID_CALL, "bpf", "EPERM"]


def start_pysample(*args, wrapper=(), **kwargs):
    return subprocess.Popen([*wrapper, PYSAMPLE, *[str(arg) for arg in args]],
                            stdin=subprocess.DEVNULL, stdout=kwargs.pop("stdout", subprocess.PIPE),
                            stderr=subprocess.PIPE, **kwargs)


def finish(process):
    """Wait for a pysample that was started and return its Result."""
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("pysample did not end: %s" % (process.args,)) from None
    return _finished(process, stdout or b"", stderr)


def nr_sleeps(pid):
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)$", read("/proc/%d/status" % pid),
                         re.M).group(1))


def wait_for_ticks(pid, nr_ticks=20):
    """Wait until a pysample has slept nr_ticks more times: it sleeps before each tick, however
    late."""
    wanted = nr_sleeps(pid) + nr_ticks
    wait_until(lambda: nr_sleeps(pid) >= wanted, "there are more ticks")


def pysample(*args, **kwargs):
    """Run pysample to its end."""
    return finish(start_pysample(*args, **kwargs))


@functools.lru_cache(maxsize=None)
def pysample_for_nobody():
    """A copy of pysample that any user can execute, wherever the build folder is."""
    folder = tempfile.mkdtemp(prefix="pysample-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "pysample")
    shutil.copy(PYSAMPLE, copy)
    os.chmod(copy, 0o755)
    return copy


AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all",
             "--no-new-privs", "--"]


def pysample_as_nobody(*args, limit=()):
    """Run pysample as nobody. limit: a command that sets limits first."""
    command = [*limit, *AS_NOBODY, pysample_for_nobody(), *[str(arg) for arg in args]]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd="/")
    return finish(process)


# ---- pysample's output -----------------------------------------------------------------


def shown(text):
    """A str of the target as pysample shows it: UTF-8 has no lone surrogates, C strings no NUL."""
    text = re.sub("[\ud800-\udfff]", lambda found: "\\u%04x" % ord(found.group()), text)
    return text.replace("\0", "\\x00")


def name_in(interpreter, qualified):
    """A function's name in that version: code objects have qualified names since 3.11."""
    return qualified if version_key(interpreter) >= [3, 11] else qualified.rpartition(".")[2]


def expected_frames(thread):
    """A thread's frames as `dump --json` must print them."""
    def known(line):
        return line if line > 0 else None

    return [dict(frame, name=shown(frame["name"]), path=shown(frame["path"]),
                 line=known(frame["line"]), first_line=known(frame["first_line"]))
            for frame in thread["frames"]]


PLACE_KEYS = ("name", "path", "line", "first_line")
FRAME_KEYS = PLACE_KEYS + ("column", "end_line", "end_column")


def dump(pid, *options):
    """What `dump --json` says."""
    result = pysample("dump", pid, "--json", *options)
    if result.status:
        raise AssertionError("dump ended with %d: %s" % (result.status, result.stderr))
    return json.loads(result.stdout)


def dumped_frames(thread, keys=FRAME_KEYS):
    """A thread's frames from `dump --json`, in the form of expected_frames()."""
    return [{key: frame[key] for key in keys} for frame in thread["frames"]]


RUN_LINE = re.compile(r"# (run|base) (\{.*\})\n")


def split_collapsed(text):
    """Return the runs that the first lines describe, those of a base last, and the text after
    them."""
    runs = []
    found = RUN_LINE.match(text)
    while found:
        runs.append(json.loads(found.group(2)))
        text = text[found.end():]
        found = RUN_LINE.match(text)
    return runs, text


def parse_stacks(text):
    """Parse collapsed stacks of any tool into {tuple of labels: count}. Checks the form of every
    line."""
    stacks = collections.Counter()
    for line in text.split("\n")[:-1]:
        labels, separator, count = line.rpartition(" ")
        if not separator or not count.isdigit() or re.search(r"[\x00-\x1f\x7f]", line):
            raise AssertionError("not a line of collapsed stacks: %r" % line)
        stacks[tuple(labels.split(";"))] += int(count)
    if text and not text.endswith("\n"):
        raise AssertionError("the last line is cut: %r" % text[-80:])
    return stacks


def parse_collapsed(text):
    """parse_stacks() for pysample's output, with --header or without."""
    return parse_stacks(split_collapsed(text)[1])


def label(frame, line):
    """A frame's label in collapsed stacks; line is "line" or "first_line"."""

    def escape(found):
        code = ord(found.group())
        return ":" if code == ord(";") else "\\x%02x" % code

    name, path = (re.sub(r"[;\x00-\x1f\x7f]", escape, shown(frame[key]))
                  for key in ("name", "path"))
    return "%s (%s:%d)" % (name, path, frame[line]) if frame[line] else "%s (%s)" % (name, path)


NO_PYTHON_FRAMES = "[no python frames]"
GC = "<GC>"  # the garbage collector's frame


def without_gc(stacks):
    """Stacks without the garbage collector's frames: when garbage is collected is chance."""
    counts = collections.Counter()
    for stack, count in stacks.items():
        counts[tuple(label for label in stack if label != GC)] += count
    return counts


def expected_stack(thread, line="first_line"):
    """A thread's stack as a key of parse_collapsed()."""
    return tuple(label(frame, line) for frame in thread["frames"]) or (NO_PYTHON_FRAMES,)


def is_beginning(stack, full):
    """Whether stack is what a sample shows of full without its innermost frames, possibly without
    any."""
    if stack[-1:] == (NO_PYTHON_FRAMES,):
        stack = stack[:-1]
    return stack == full[:len(stack)]


LABEL = re.compile(r"(?P<name>.*) \((?P<path>.*):(?P<line>\d+)\)$")


def parse_label(text):
    """(name, path, line)"""
    found = LABEL.match(text)
    if not found:
        raise AssertionError("not a label: %r" % text)
    return found.group("name"), found.group("path"), int(found.group("line"))


def names(stack):
    return [parse_label(text)[0] for text in stack if text not in (NO_PYTHON_FRAMES, GC)]


NO_PROVEN_STACK = "could be proven|the duration ended before the first sample"


def has_no_proven_stack(run):
    """Whether the machine was too busy to prove a stack of a short run."""
    return run.status == 5 and re.search(NO_PROVEN_STACK, run.stderr)


def stacks_of_run(run):
    """{tuple of labels: count} of a run that has ended; empty if it was unlucky."""
    if has_no_proven_stack(run):
        return {}
    if run.status:
        raise AssertionError(run)
    return parse_collapsed(run.stdout)


def run_with_samples(run):
    """The result of the first run that has samples."""
    results = []

    def has_samples():
        results.append(run())
        return not has_no_proven_stack(results[-1])

    wait_until(has_samples, "there are samples")
    return results[-1]


def sampled_until(sample, enough, what):
    """The stacks of one run, or of more until they are enough.

    How many stacks of a run are proven depends on the load of the machine. sample() returns the
    stacks of one run and has checked each of them.
    """
    stacks = collections.Counter()

    def is_enough():
        stacks.update(sample())
        return enough(stacks)

    wait_until(is_enough, what)
    return stacks


def end_by_signal(process, number=signal.SIGTERM):
    process.send_signal(number)
    return finish(process)
