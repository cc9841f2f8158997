# SPDX-License-Identifier: MIT
"""What there is to measure with: interpreters, tools, namespaces."""
import dataclasses
import os
import re
import shutil
import subprocess
import sys

import support

from bench import ROOT, say

# The default, and the only version on which profiling.sampling, new in it, is measured.
NEWEST_PYTHON = "3.15"

# Set after scripts/bench has started itself again: see enter_mount_namespace().
INSIDE = "PYSAMPLE_BENCH_HAS_A_MOUNT_NAMESPACE"


@dataclasses.dataclass(frozen=True)
class Tools:
    """The programs of one build folder."""
    folder: str

    @property
    def pysample(self):
        return os.path.join(self.folder, "pysample")

    @property
    def stopwalk(self):
        return os.path.join(self.folder, "tests", "stopwalk")

    @property
    def sleeploop(self):
        return os.path.join(self.folder, "tests", "sleeploop")

    @property
    def make_recording(self):
        return os.path.join(self.folder, "tests", "make_recording")

    @property
    def unwind_cli(self):
        return os.path.join(self.folder, "tests", "unwind_cli")

    @property
    def jit_times(self):
        return os.path.join(self.folder, "tests", "jit_times")

    @property
    def proofs(self):
        return os.path.join(self.folder, "tests", "proofs")

    @property
    def proofs_target(self):
        return os.path.join(self.folder, "tests", "proofs_target")

    def build(self):
        if not os.path.exists(os.path.join(self.folder, "build.ninja")):
            subprocess.run(["meson", "setup", self.folder, ROOT], check=True, stdout=sys.stderr)
        subprocess.run(["ninja", "-C", self.folder, "pysample", "tests/stopwalk",
                        "tests/sleeploop", "tests/make_recording", "tests/jit_times",
                        "tests/proofs", "tests/proofs_target",
                        "tests/libfile_memory.so"],
                       check=True, stdout=subprocess.DEVNULL)


def enter_mount_namespace():
    """Start this script again in a mount namespace, in which /proc can be mounted into the testbed,
    so that programs inside can find processes. The mount ends with the script.

    Target and sampler have to share the namespace: otherwise the paths in /proc/PID/maps are not
    relative to the reader's root."""
    if INSIDE in os.environ or os.geteuid() != 0 or not shutil.which("unshare"):
        return
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--", sys.executable, *sys.argv])


def can_run_profiling_sampling(interpreters):
    """Whether profiling.sampling can run; reports why not."""
    found = interpreters.get(NEWEST_PYTHON)
    if not found:
        return False
    if not found.root or os.path.exists(found.root + "/proc/self"):
        return True
    why = "no mount namespace can be made"
    if INSIDE in os.environ:
        result = subprocess.run(["mount", "-t", "proc", "proc", found.root + "/proc"],
                                capture_output=True, text=True)
        if result.returncode == 0:
            return True
        why = result.stderr.strip()
    say("not measured: profiling.sampling (/proc cannot be mounted in the testbed: %s)" % why)
    return False


def free_threaded():
    """Free-threaded interpreters, with versions that say so: "3.15.2t"."""
    return [dataclasses.replace(one, version=one.version + "t")
            for one in support.free_threaded_interpreters()]


def choose_interpreters(wanted):
    """{minor version: interpreter}, the testbed's before others; reports what is missing."""
    preference = ("testbed", "system", "pyenv")
    there = [one for one in support.all_interpreters() if one.origin in preference]
    there.sort(key=lambda one: preference.index(one.origin))
    chosen = {}
    for minor in wanted:
        found = [one for one in there + free_threaded() if one.minor == minor]
        if found:
            chosen[minor] = found[0]
        else:
            why = ("scripts/testbed installs it, as root"
                   if minor.rstrip("t") in support.TESTBED_VERSIONS else "not installed")
            say("not measured: CPython %s (%s)" % (minor, why))
    return chosen


def describe_machine():
    model = re.search(r"model name\s*: (.*)", support.read("/proc/cpuinfo"))
    return "%s, %d cores, Linux %s" % (
        model.group(1) if model else os.uname().machine, os.cpu_count(), os.uname().release)
