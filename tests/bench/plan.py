# SPDX-License-Identifier: MIT
"""What a run measures: programs under versions, and a few again under unusual conditions."""
import dataclasses

import support

from bench import conditions
from bench.catalogue import Program, named
from bench.conditions import USUAL, Condition

# Every program is run under these versions, a few under all others.
FULL_PYTHONS = ("3.15", "3.11", "3.8")
FEW_PROGRAMS = ("calls-10", "generators", "coroutines")

# Programs on which other samplers are compared; those take long.
COMPARED_PROGRAMS = FEW_PROGRAMS + ("calls-1000", "genexprs")

# Sizes that differ only in depth or width are left to --only.
LEFT_OUT = ("flat-10", "flat-100", "flat-1000", "shared-5", "shared-30", "shared-200",
            "shared-5-64", "shared-5-65", "shared-5-66", "recursion-300", "recursion-5000",
            "threads-1", "threads-8", "threads-256", "threads-1000")

CONDITION_PYTHON = "3.11"  # of the distribution, so that everybody can run it


@dataclasses.dataclass(frozen=True)
class Unit:
    """What is measured in one go, on one process."""
    interpreter: support.Interpreter
    program: Program
    condition: Condition = USUAL

    def __str__(self):
        return " ".join(filter(None, (self.interpreter.minor, self.program.name,
                                      self.condition.name)))


def units(interpreters, programs, is_full):
    """The units in the order in which they are measured. is_full: nothing less was asked for."""
    found = []
    for minor, interpreter in interpreters.items():
        for program in programs:
            if is_full and (program.name in LEFT_OUT or (
                    minor not in FULL_PYTHONS and program.name not in FEW_PROGRAMS)):
                continue
            found.append(Unit(interpreter, program))
    interpreter = interpreters.get(CONDITION_PYTHON)
    if is_full and interpreter:
        found += [Unit(interpreter, program, condition)
                  for condition in conditions.available(interpreter)
                  for program in named(condition.programs)]
    return found


def again(units, is_near_limit):
    """The second and third runs of the units for which is_near_limit(unit) is true."""
    return [dataclasses.replace(unit, condition=condition) for unit in units
            if unit.condition == USUAL and is_near_limit(unit) for condition in conditions.AGAIN]
