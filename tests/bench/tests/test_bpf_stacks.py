# SPDX-License-Identifier: MIT
"""How possible and impossible stacks are counted."""
import collections
import unittest

from bench import attach_run, bpf_stacks
from bench.catalogue import named
from bench.tests.test_results import printed


def attached(stacks, lost=()):
    stacks = collections.Counter({tuple(text.split(";")): count
                                  for text, count in stacks.items()})
    return attach_run.Attached({}, stacks, {"lost": dict(lost), "samples": stacks.total()})


class Possible(unittest.TestCase):
    HOT = "<module>" + ";recurse" * 10 + ";calls"
    PARKED = "start" + ";descend" * 9 + ";park"

    def row(self, stacks, lost=()):
        row = bpf_stacks.Row("3.15.2", "threads-8", 0, 0, 0, 5)
        bpf_stacks.add(row, named(["threads-8"])[0], attached(stacks, lost))
        return row

    def test_threads_that_wait_are_judged_and_do_not_count(self):
        row = self.row({self.HOT: 6, self.PARKED: 70, "calls": 2}, {"fault": 1})
        self.assertEqual((row.nr_stacks, row.nr_impossible, row.nr_lost), (8, 2, 1))
        self.assertEqual(row.example, "calls")

    def test_an_impossible_stack_is_a_fault_and_so_is_having_none(self):
        bpf_stacks.check([self.row({self.HOT: 6})])
        with self.assertRaisesRegex(RuntimeError, r"threads-8 on 3.15.2: 2, as calls"):
            bpf_stacks.check([self.row({self.HOT: 6, "calls": 2})])
        with self.assertRaisesRegex(RuntimeError, "no stacks of: threads-8"):
            bpf_stacks.check([self.row({self.PARKED: 70})])

    def test_total(self):
        text = printed(bpf_stacks.print_rows, [self.row({self.HOT: 3}, {"fault": 1})] * 2)
        self.assertIn("| all |  | 6 | 0 | 25.000 | 10 |", text)

    def test_every_program_has_stacks_known_from_its_text(self):
        programs = named(bpf_stacks.PROGRAMS)
        self.assertEqual(len(programs), len(bpf_stacks.PROGRAMS))


if __name__ == "__main__":
    unittest.main()
