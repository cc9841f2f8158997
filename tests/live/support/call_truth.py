# SPDX-License-Identifier: MIT
"""The calls in tests/targets/stacks/shortcalls.py, known without trampolines. A stack with any
other call, or one that goes through C without showing it, is wrong. The others are not proven
right.
"""
import collections
import itertools
import re

from support import trampoline_truth

DIRECTLY = {
    "<module>": {"main"},
    "main": {"Item.work", "recurse"},
    "Item.work": {"both", "nested"},
    "both": {"add", "double"},
    "nested": {"add", "double"},
    "numbers": {"both"},
    "recurse": {"recurse", "add"},
}
THROUGH_C = {"main": {"numbers", "nested", "Item.__lt__"}}
FUNCTIONS = set().union(*DIRECTLY.values(), *THROUGH_C.values())
RECURSIONS = 11  # recurse() calls itself ten times, and then add()


def names_of(stack):
    """The Python frames of a stack, outermost first, with None for C frames between them."""
    names = []
    for label in stack:
        python = trampoline_truth.PYTHON.match(label)
        if python or not names or names[-1]:
            names.append(python.group(1) if python else None)
    return names


def is_called(caller, through_c, name):
    return name in (THROUGH_C if through_c else DIRECTLY).get(caller, ())


def is_possible(stack):
    names = names_of(stack)
    python = [name for name in names if name]
    nr_recursions = python.count("recurse")
    if python[:1] != ["<module>"] or nr_recursions > RECURSIONS:
        return False
    if "recurse" in python and "add" in python and nr_recursions != RECURSIONS:
        return False
    between = [not outer for outer, name in itertools.pairwise(names) if name]
    calls = zip(python, between[len(between) - len(python) + 1:], python[1:])
    return all(is_called(*call) for call in calls)


MULTIPLIES = re.compile(r"_Py(Compact)?Long_Multiply \(")


def who_multiplies(stacks):
    """Count the samples in CPython's multiplication by the Python function that called it. Only
    double() does; trampoline_truth.GAP may stand in its place."""
    who = collections.Counter()
    for stack, number in stacks.items():
        if any(map(MULTIPLIES.match, stack)):
            python = [label for label in stack
                      if trampoline_truth.PYTHON.match(label) or label == trampoline_truth.GAP]
            who[python[-1].split(" (")[0]] += number
    return who


def judge(stacks):
    """Count the samples of collapsed stacks that are "possible", "with_gap" or "impossible". Also
    return the Python frames of each impossible stack."""
    counts = collections.Counter()
    examples = []
    for stack, number in stacks.items():
        if trampoline_truth.GAP in stack:
            counts["with_gap"] += number
        elif is_possible(stack):
            counts["possible"] += number
        else:
            counts["impossible"] += number
            examples.append(names_of(stack))
    return counts, examples
