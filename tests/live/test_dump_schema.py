# SPDX-License-Identifier: MIT
"""The JSON of real dumps has the form that docs/dump.schema.json describes."""
import unittest

import support
from support import core_files, dump, schemas
from test_locals import values_target


def frames_of(process):
    return [frame for owner in process["threads"] + (process["tasks"] or [])
            for frame in owner["frames"]]


def shortened(process):
    """With fewer frames: the validator takes milliseconds for each."""
    for owner in process["threads"] + (process["tasks"] or []):
        del owner["frames"][10:]
    return process


class SchemaTestCase(unittest.TestCase):
    def checked(self, dumped):
        for process in dumped.get("processes", [dumped]):
            shortened(process)
        schemas.validate(dumped, "dump.schema.json")
        return dumped


@support.per_minor("3.8", "3.15")
class Dumps(SchemaTestCase):
    def test_source_and_locals(self):
        with values_target(self.interpreter) as target:
            process = self.checked(dump(target.pid, "--source", "--locals"))
        frames = frames_of(process)
        self.assertTrue(any(frame["locals"] for frame in frames))
        if not self.interpreter.root:  # its files are in another root
            self.assertTrue(any(frame["source"] for frame in frames))

    def test_native(self):
        with support.python_target(self.interpreter, "every_wait") as target:
            process = self.checked(dump(target.pid, "-n", "-v"))
        self.assertTrue(any(frame["address"] for frame in frames_of(process)))

    def test_a_tree_that_waits(self):
        def holder(pid):
            found = self.checked(dump(pid, "-s"))
            return [thread for process in found["processes"] for thread in process["threads"]
                    if (thread["waiting"] or {}).get("holder")]

        with support.python_target(self.interpreter, "hangs", "locks") as target:
            support.wait_until(lambda: holder(target.pid), "a thread waits for another")

    def test_core(self):
        with core_files.kernel_cores(), core_files.crashed(self.interpreter, "single") as core:
            process = self.checked(core_files.core_json(core.path))
        self.assertTrue(process["death"])


@support.per_minor("3.15")
class Tasks(SchemaTestCase):
    def setUp(self):
        if support.version_key(self.interpreter) < [3, 8]:
            self.skipTest("tasks of %s are not read" % self.interpreter.minor)
        target = self.enterContext(support.parked_target(self.interpreter, "tasks"))
        self.process = dump(target.pid)
        self.process["tasks"] = [task for task in self.process["tasks"]
                                 if task["frames"] and task["awaited_by"]][:10]
        self.assertTrue(self.process["tasks"])

    def test_tasks(self):
        self.checked(self.process)

    def test_faults_are_found(self):
        """A member that is unknown, missing or of another type is found, wherever it is."""
        process, is_valid = self.process, schemas.validator("dump.schema.json").is_valid
        del process["tasks"][1:], process["threads"][1:]
        (thread,), (task,) = process["threads"], process["tasks"]
        del thread["frames"][1:], task["frames"][1:]
        for owner in process, thread, thread["frames"][0], task, task["frames"][0]:
            correct = dict(owner)
            for key in correct:
                for fault in {**correct, key: {"a": 1}}, {**correct, key + "_": 1}, {
                        one: correct[one] for one in correct if one != key}:
                    owner.clear()
                    owner.update(fault)
                    self.assertFalse(is_valid(process), (key, sorted(fault)))
            owner.clear()
            owner.update(correct)
        self.checked(process)


if __name__ == "__main__":
    unittest.main()
