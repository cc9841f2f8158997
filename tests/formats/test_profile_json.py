# SPDX-License-Identifier: MIT
"""The profile as one JSON object: its schema, and its sums."""
import collections
import functools
import itertools
import json
import unittest

import labels
import oracle
import subjects
import support
from support import schemas

KINDS = ("python", "collector", "native", "jit", "kernel", "task")
ROOTS = ("process", "thread")
LEAST = 0.005
MOST_NODES, MOST_CALLS = 1000, 20


@functools.lru_cache(maxsize=None)
def key(function):
    return (labels.as_json(function.qualname), KINDS[function.kind], labels.as_json(function.path),
            function.first_line or None)


def key_of_json(function):
    return function["name"], function["kind"], function["path"], function["first_line"]


def weight(found):
    return oracle.Weight(found["samples"], found["weight"])


class Node:
    """A stack with all stacks that begin with it."""

    def __init__(self):
        self.weight = oracle.NOTHING
        self.below = {}

    def child(self, name):
        if name not in self.below:
            self.below[name] = Node()
        return self.below[name]


def tree_of(stacks):
    root = Node()
    for names, found in stacks.items():
        node = root
        for name in names:
            node = node.child(name)
            node.weight = oracle.plus(node.weight, found)
    return root


def calls_of(root):
    """{(caller, callee): Weight}. A stack counts once for a call."""
    sums, active = collections.defaultdict(lambda: oracle.NOTHING), collections.Counter()
    left = [(None, name, node) for name, node in root.below.items()]
    while left:
        caller, callee, node = left.pop()
        if node is None:
            active[caller, callee] -= 1
            continue
        if not active[caller, callee]:
            sums[caller, callee] = oracle.plus(sums[caller, callee], node.weight)
        active[caller, callee] += 1
        left.append((caller, callee, None))
        left += [(callee, name, below) for name, below in node.below.items()]
    return sums


def large_weights(root, least_ns):
    """The weights in ns of all nodes with so much, the most first."""
    left, found = [root], []
    while left:
        large = [node for node in left.pop().below.values() if node.weight.ns >= least_ns]
        found += [node.weight.ns for node in large]
        left += large
    return sorted(found, reverse=True)


class ProfileJson(unittest.TestCase):
    def read(self, subject, *options):
        text = support.read(subjects.report(subject.path, form="json", options=options))
        profile = json.loads(text)
        schemas.validate(profile, "profile.schema.json")
        return profile

    @subjects.each
    def check_functions(self, subject, *options, **how):
        profile = self.read(subject, *options)
        view = subject.view(**how)
        whole = view.whole()
        totals = view.totals(oracle.by_function)
        idle = totals.pop(oracle.IDLE.function, oracle.Total(oracle.NOTHING, oracle.NOTHING))
        expected = {key(function): total for function, total in totals.items()}
        listed = {key_of_json(function): oracle.Total(weight(function["own"]),
                                                      weight(function["total"]))
                  for function in profile["functions"] if function["kind"] not in ROOTS}
        self.assertEqual(weight(profile["profile"]), whole)
        for name, total in listed.items():
            self.assertEqual(total, expected[name], name)
        for name, total in expected.items():
            if total.total.ns >= LEAST * whole.ns and total.total.ns:
                self.assertIn(name, listed)
        own = weight(profile["functions_left_out"]["own"])
        for function in profile["functions"]:
            own = oracle.plus(own, weight(function["own"]))
        self.assertEqual(oracle.plus(own, weight(profile["profile"]["without_frames"])), whole)
        self.assertLessEqual(weight(profile["profile"]["without_frames"]), idle.self)
        self.assertEqual(profile["functions_left_out"]["count"], len(expected) - len(listed))

    def test_functions(self):
        self.check_functions()

    def test_cpu(self):
        self.check_functions("--mode", "cpu", mode="cpu")

    @subjects.each
    def test_calls(self, subject):
        profile = self.read(subject)
        functions = profile["functions"]
        names = {key_of_json(function) for function in functions}
        expected = calls_of(tree_of(subject.view().stacks(lambda frame: key(frame.function))))
        by_function = collections.defaultdict(dict)
        for call, total in expected.items():
            if set(call) <= names:
                by_function[call[1], "callers"][call[0]] = total
                by_function[call[0], "callees"][call[1]] = total
        for function, side in itertools.product(functions, ("callers", "callees")):
            if function["kind"] in ROOTS:
                continue
            found = {}
            for call in function[side]:
                other = call["function"] is not None and functions[call["function"]]
                if other and other["kind"] not in ROOTS:
                    found[key_of_json(other)] = weight(call["total"])
            all_calls = by_function[key_of_json(function), side]
            self.assertEqual(found, {name: all_calls[name] for name in found})
            left_out = [total.ns for name, total in all_calls.items() if name not in found]
            if left_out:
                self.assertEqual(len(function[side]), MOST_CALLS)
                self.assertLessEqual(max(left_out), min(total.ns for total in found.values()))

    @subjects.each
    def test_lines(self, subject):
        profile = self.read(subject)
        expected = {(key(frame.function), frame.line or None): total
                    for frame, total in subject.view().totals(oracle.by_line).items()}
        for function in profile["functions"]:
            for line in function["lines"]:
                total = expected[key_of_json(function), line["line"]]
                self.assertEqual((line["own"], line["total"]), (total.self.ns, total.total.ns))

    @subjects.each
    def test_threads(self, subject):
        """The roots of threads say which threads they are of."""
        profile = self.read(subject, "--threads", "--idle")
        sums = subject.view().stacks(lambda frame: frame, lambda recording, sample: (
            recording.thread_of(sample).tid or None,
            labels.as_json(recording.thread_of(sample).name)))
        expected = collections.Counter()
        for (thread, *_), found in sums.items():
            expected[thread] += found.ns
        got = collections.Counter()
        for function in profile["functions"]:
            if function["kind"] == "thread":
                got[function["thread"]["tid"], function["thread"]["name"]] += (
                    function["total"]["weight"])
        self.assertTrue(got)
        for thread, ns in got.items():
            self.assertEqual(ns, expected[thread], thread)

    @subjects.each
    def test_tree(self, subject):
        profile = self.read(subject)
        functions = profile["functions"]
        has_roots = any(functions[node["function"]]["kind"] == "process"
                        for node in profile["tree"])
        expected = tree_of(subject.view().stacks(
            lambda frame: key(frame.function),
            (lambda recording, sample: recording.process_of(sample).pid or None) if has_roots else None))
        found = []
        for node in profile["tree"]:
            above = expected if node["parent"] is None else found[node["parent"]]
            function = functions[node["function"]]
            found.append(above.below[function["pid"] if function["kind"] == "process"
                                     else key_of_json(function)])
            self.assertEqual(weight(node["total"]), found[-1].weight)
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(
            sorted((node.weight.ns for node in found), reverse=True),
            large_weights(expected, max(1, LEAST * subject.view().whole().ns))[:MOST_NODES])


if __name__ == "__main__":
    unittest.main()
