# SPDX-License-Identifier: MIT
"""speedscope's format, checked by its own JSON schema and by the application itself in a
browser."""
import collections
import json
import os
import unittest

import labels
import subjects
import support
import tools


def key(frame):
    function = frame.function
    return (labels.as_json(function.qualname) or "?", labels.as_json(function.path),
            function.first_line)


def shown_frame(frame):
    return frame["name"], frame.get("file", ""), frame.get("line", 0)


def sampled_stacks(profile, frames):
    """{tuple of frames: weight} of a profile of type sampled."""
    stacks = collections.Counter()
    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
        stacks[tuple(frames[index] for index in stack)] += weight
    return stacks


def evented_stacks(profile, frames):
    """The same for a profile of type evented, which lists when frames open and close."""
    stacks, stack, last = collections.Counter(), (), profile["startValue"]
    for event in profile["events"]:
        stacks[stack] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack += (frames[event["frame"]],)
        else:
            if stack[-1] != frames[event["frame"]]:
                raise AssertionError("the closed frame is not the innermost one")
            stack = stack[:-1]
    if stack:
        raise AssertionError("frames are left open")
    return stacks


STACKS = {"sampled": sampled_stacks, "evented": evented_stacks}
UNITS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 1000000}


def profiles(document):
    """[{tuple of frames: ns}], one for each profile; time without a frame is left out."""
    frames = [shown_frame(frame) for frame in document["shared"]["frames"]]
    found = []
    for profile in document["profiles"]:
        stacks = STACKS[profile["type"]](profile, frames)
        found.append({stack: round(weight * UNITS[profile["unit"]])
                      for stack, weight in stacks.items() if stack and weight})
    return found


def thread_key(recording, sample):
    thread = recording.thread_of(sample)
    return thread.process, thread.tid, thread.interpreter, thread.name


def expected(view):
    threads = collections.defaultdict(dict)
    for (thread, *stack), weight in view.stacks(key, group=thread_key).items():
        threads[thread]  # a profile, even without a Python frame
        if stack and weight.ns:
            threads[thread][tuple(stack)] = weight.ns
    return list(threads.values())


class Speedscope(unittest.TestCase):
    def same(self, document, expected_threads):
        """Compare the threads, which may be in any order."""
        got = profiles(document)
        self.assertEqual(len(got), len(expected_threads))
        for thread in expected_threads:
            if thread not in got:
                nearest = max(got, key=lambda one: len(one.items() & thread.items()))
                subjects.assert_same(self, nearest, thread)
            got.remove(thread)

    def write(self, subject, *options):
        return subjects.report(subject.path, form="speedscope", options=options,
                               suffix=".speedscope.json")

    @subjects.each
    def test_file(self, subject):
        for mode in ("wall", "cpu"):
            document = json.loads(support.read(self.write(subject, "--mode", mode)))
            self.same(document, expected(subject.view(mode=mode)))

    @subjects.each
    def test_schema(self, subject):
        try:
            import jsonschema
        except ImportError:
            tools.absent("jsonschema", "python3-jsonschema")
        _, npm = tools.npm("speedscope")
        schema = json.loads(support.read(os.path.join(
            npm, "node_modules/speedscope/dist/release/file-format-schema.json")))
        jsonschema.validate(json.loads(support.read(self.write(subject))), schema)

    @subjects.each
    def test_application(self, subject):
        tools.npm("speedscope")
        answer = tools.in_browser("speedscope_export.mjs", self.write(subject))
        self.assertEqual((answer["complaints"], answer["requests"]), ([], []))
        self.same(answer["export"], expected(subject.view()))
