# SPDX-License-Identifier: MIT
"""What a run measures: programs under versions, and a few once more under other conditions."""
import contextlib
import dataclasses
import os
import subprocess
import sys

import support

from bench import processes, say
from bench.catalogue import Program, named

# These versions run every program, all others a few.
FULL_PYTHONS = ("3.15", "3.11", "3.8")
FEW_PROGRAMS = ("calls-10", "generators", "coroutines")

# What others are compared with; they take long.
RIVAL_PROGRAMS = FEW_PROGRAMS + ("calls-1000", "genexprs")

# Sizes that differ in nothing but depth or width are left to --only.
LEFT_OUT = ("flat-10", "flat-100", "flat-1000", "shared-30", "shared-200", "shared-5-64",
            "shared-5-65", "shared-5-66", "recursion-300", "recursion-5000", "threads-1",
            "threads-8", "threads-256", "threads-1000")

CONDITION_PYTHON = "3.11"  # of the distribution, so that everybody can run it
CONDITION_PROGRAMS = ("calls-10", "generators", "coroutines", "dying")


@dataclasses.dataclass(frozen=True)
class Condition:
    """Both the target and pysample are started with the wrapper."""
    name: str
    wrapper: tuple = ()
    is_busy: bool = False  # a loop runs on every CPU

    def is_possible(self, interpreter):
        if self.wrapper and (os.geteuid() != 0 or interpreter.origin != "system"):
            say("not measured: %s (it takes root, and an interpreter that anybody can run)"
                % self.name)
            return False
        return True

    @contextlib.contextmanager
    def holding(self):
        loops = [processes.start(["taskset", "-c", str(cpu), sys.executable, "-c",
                                  "while True: pass"], stdout=subprocess.DEVNULL)
                 for cpu in sorted(os.sched_getaffinity(0))] if self.is_busy else []
        try:
            yield
        finally:
            for loop in loops:
                processes.end(loop)


USUAL = Condition("")
CONDITIONS = (Condition("as nobody", tuple(support.AS_NOBODY)),
              Condition("beside busy loops", is_busy=True))


@dataclasses.dataclass(frozen=True)
class Unit:
    """Measured in one go, on one process."""
    interpreter: support.Interpreter
    program: Program
    condition: Condition = USUAL

    def __str__(self):
        return " ".join(filter(None, (self.interpreter.minor, self.program.name,
                                      self.condition.name)))


def units(interpreters, programs, is_full):
    """In the order in which they are measured. is_full: nobody has asked for something less."""
    found = []
    for minor, interpreter in interpreters.items():
        for program in programs:
            if is_full and (program.name in LEFT_OUT or (
                    minor not in FULL_PYTHONS and program.name not in FEW_PROGRAMS)):
                continue
            found.append(Unit(interpreter, program))
    interpreter = interpreters.get(CONDITION_PYTHON)
    if is_full and interpreter:
        found += [Unit(interpreter, program, condition) for condition in CONDITIONS
                  if condition.is_possible(interpreter) for program in named(CONDITION_PROGRAMS)]
    return found
