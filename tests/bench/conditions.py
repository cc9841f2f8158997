# SPDX-License-Identifier: MIT
"""Unusual conditions under which programs are measured."""
import contextlib
import dataclasses
import os
import subprocess
import sys
import typing

import support

from bench import processes, say
from bench.engines import NEED_RIGHTS

GROUP = "pysample-bench"
JOIN_AND_RUN = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclasses.dataclass(frozen=True)
class Condition:
    """The wrapper starts both the target and pysample."""
    name: str
    programs: tuple = ()
    wrapper: tuple = ()
    target_wrapper: typing.Callable = tuple  # for the target alone; called inside holding
    holding: typing.Callable = contextlib.nullcontext  # the condition holds inside this context
    drops_rights: bool = False  # pysample loses its rights
    requirement: str = ""
    is_possible: typing.Callable = lambda interpreter: True

    def engines(self, names):
        """Those of the engines that can be measured under it."""
        return [name for name in names if not self.drops_rights or name not in NEED_RIGHTS]


def is_open_to_all(interpreter):
    return os.geteuid() == 0 and interpreter.origin == "system"


# ---- a loop on every CPU ---------------------------------------------------------------


@contextlib.contextmanager
def busy_loops():
    loops = [processes.start(["taskset", "-c", str(cpu), sys.executable, "-c",
                              "while True: pass"], stdout=subprocess.DEVNULL)
             for cpu in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for loop in loops:
            processes.end(loop)


# ---- another control group, with as much weight as ours --------------------------------


def group_root():
    """The folder of the control groups that share the CPUs; None if there is none."""
    for path in "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct":
        if os.access(os.path.join(path, "cpu.shares"), os.W_OK):
            return path
    controllers = "/sys/fs/cgroup/cgroup.subtree_control"
    if os.access(controllers, os.W_OK) and "cpu" in support.read(controllers).split():
        return "/sys/fs/cgroup"
    return None


def group():
    return os.path.join(group_root(), GROUP)


@contextlib.contextmanager
def other_group():
    os.makedirs(group(), exist_ok=True)
    try:
        yield
    finally:
        os.rmdir(group())


def joining_group():
    return ("sh", "-c", JOIN_AND_RUN, group())


USUAL = Condition("")

# A program slightly above its aim is measured twice more; the median counts.
AGAIN = (Condition("second run"), Condition("third run"))

OTHERS = (
    Condition("as nobody", ("calls-10", "generators", "coroutines", "dying"),
              wrapper=tuple(support.AS_NOBODY), drops_rights=True,
              is_possible=is_open_to_all,
              requirement="root, and an interpreter that every user can run"),
    Condition("beside busy loops", ("calls-10", "generators", "coroutines", "dying"),
              holding=busy_loops),
    Condition("in another cgroup", ("calls-10",), target_wrapper=joining_group,
              holding=other_group, is_possible=lambda _: group_root() is not None,
              requirement="root, and a cpu controller"),
)


def available(interpreter):
    """The other conditions that can be measured; reports which cannot."""
    found = [one for one in OTHERS if one.is_possible(interpreter)]
    for one in OTHERS:
        if one not in found:
            say("not measured: %s (needs %s)" % (one.name, one.requirement))
    return found
