# SPDX-License-Identifier: MIT
"""Stacks as samplers write them, and figures about a set of them.

A set of stacks is a Counter: {names, outermost first: how often it was seen}. Where threads are
told apart, the outermost name is the thread's.
"""
import collections
import re

import support

# Names that are no functions: samplers' markers for what the thread was doing.
MARKERS = ("<GC>", "<native>", ":GC:")

THREAD = "thread "  # a thread's name begins like this, and no function's does


def without_thread(names):
    return names[1:] if names and names[0].startswith(THREAD) else names


def thread_of(names):
    """(name of the thread,), or () where threads are not told apart"""
    return names[:len(names) - len(without_thread(names))]


def name_before_place(label):
    """The name in "FUNCTION (FILE:LINE)", as pysample and py-spy write it."""
    return label.rpartition(" (")[0] or label


def name_between_colons(label):
    """The name in "FILE:FUNCTION:LINE", as profiling.sampling and austin write it."""
    return label.rsplit(":", 2)[1] if label.count(":") >= 2 and label[0] != ":" else label


def names_of(labels, name_of):
    return tuple(name for name in map(name_of, labels) if name not in MARKERS)


def named(collapsed, name_of, is_thread=None):
    """Collapsed stacks by names. is_thread: whether a label is the thread's, which is left out."""
    stacks = collections.Counter()
    for labels, count in collapsed.items():
        frames = [label for label in labels if not (is_thread and is_thread(label))]
        stacks[names_of(frames, name_of)] += count
    return stacks


def of_pysample(text):
    """The output of any build; older ones write nothing about the run. `-t` tells threads apart."""
    return named(support.parse_stacks(support.split_collapsed(text)[1]), name_before_place)


def of_profiling_sampling(text):
    return named(support.parse_stacks(text), name_between_colons,
                 lambda label: label.startswith("tid:"))


def of_py_spy(text):
    """The output of `record -f raw`."""
    return named(support.parse_stacks(text), name_before_place,
                 lambda label: label.startswith(("process ", "thread ")))


AUSTIN_LINE = re.compile(r"P[^;]*;T[^;]*;?(?P<frames>.*) (?P<metric>\d+)")
AUSTIN_METADATA = re.compile(r"# (?P<key>\w+): (?P<value>.*)")


def of_austin(text):
    """(stacks, number of lines without a stack, {key: value of the metadata}). A line of austin is
    one sample, and its number is the time that it stands for."""
    stacks, metadata, nr_invalid = collections.Counter(), {}, 0
    for line in text.splitlines():
        about = AUSTIN_METADATA.fullmatch(line)
        sample = AUSTIN_LINE.fullmatch(line)
        if about:
            metadata[about["key"]] = about["value"]
        elif sample:
            labels = sample["frames"].split(";")
            if ":INVALID:" in labels:
                nr_invalid += 1
            else:
                stacks[names_of(labels, name_between_colons)] += 1
    return stacks, nr_invalid, metadata


# ---- figures -------------------------------------------------------------------------


def pooled(sets):
    return sum(sets, collections.Counter())


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def impossible_percent(stacks, program, max_frames=None):
    bad = sum(count for names, count in stacks.items() if not program.can_have(names, max_frames))
    return percent(bad, stacks.total())


def working(stacks, program):
    """{stack: how often} for the threads that work, with functions that are alike as one."""
    counts = collections.Counter()
    for names, count in stacks.items():
        if not program.is_parked(names):
            counts[tuple(program.numbering.sub("", name) for name in names)] += count
    return counts
