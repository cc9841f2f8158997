# SPDX-License-Identifier: MIT
import collections
import unittest

from bench import stacks
from bench.catalogue import ALL_PROGRAMS

CALLS = next(one for one in ALL_PROGRAMS if one.name == "calls-10")
CHURN = next(one for one in ALL_PROGRAMS if one.name == "churn")
THREADS = next(one for one in ALL_PROGRAMS if one.name == "threads-8")

AUSTIN = """\
# austin: 3.7.0
# mode: wall
P12;T0:12;/x/calls.py:<module>:38;/x/calls.py:calls:26 103
P12;T0:12;/x/calls.py:<module>:38;/x/calls.py:calls:27;:GC: 99
P12;T0:12;/x/calls.py:<module>:38;:INVALID: 99
P12;T0:12;C:/x/calls.py:<module>:38 99
# duration: 400
# errors: 2/5
"""


class Formats(unittest.TestCase):
    def test_pysample(self):
        text = ('# run {"command_line":"python 3"}\n'
                "<module> (/x y/calls.py:1);calls (/x y/calls.py:20) 3\n"
                "<module> (/x y/calls.py:1);calls (/x y/calls.py:21) 2\n"
                "[no python frames] 1\n"
                "<module> (/x y/calls.py:1);<GC> 4\n")
        self.assertEqual(stacks.of_pysample(text), {
            ("<module>", "calls"): 5, ("[no python frames]",): 1, ("<module>",): 4})

    def test_threads_of_pysample(self):
        text = ("# run {}\n"
                "thread Thread-7 (work) (104);run (/x/threading.py:1);work (/x/a.py:3) 2\n")
        (names, count), = stacks.of_pysample(text).items()
        self.assertEqual((names, count), (("thread Thread-7 (work)", "run", "work"), 2))
        self.assertEqual(stacks.thread_of(names), ("thread Thread-7 (work)",))
        self.assertEqual(stacks.without_thread(names), ("run", "work"))
        self.assertEqual(stacks.thread_of(("work",)), ())

    def test_profiling_sampling(self):
        text = ("tid:17;/x/calls.py:<module>:38;/x/calls.py:calls:26;<GC>:0 3\n"
                "tid:17;/x/calls.py:<module>:38;<native> 1\n")
        text = text.replace("<GC>:0", "~:<GC>:0")
        self.assertEqual(stacks.of_profiling_sampling(text),
                         {("<module>", "calls"): 3, ("<module>",): 1})

    def test_py_spy(self):
        text = ("process 12:\"python calls.py\";thread (12): MainThread;"
                "<module> (calls.py:38);calls (calls.py:26) 7\n"
                "<module> (calls.py:38) 2\n")
        self.assertEqual(stacks.of_py_spy(text), {("<module>", "calls"): 7, ("<module>",): 2})

    def test_austin(self):
        seen, nr_invalid, metadata = stacks.of_austin(AUSTIN)
        self.assertEqual(seen, {("<module>", "calls"): 2, ("<module>",): 1})
        self.assertEqual(nr_invalid, 1)
        self.assertEqual(metadata["duration"], "400")

    def test_what_is_no_profile_is_refused(self):
        with self.assertRaises(AssertionError):
            stacks.of_pysample("Error: no such process\n")


class Working(unittest.TestCase):
    def test_numbers_of_functions_that_are_alike_do_not_count(self):
        seen = {("fresh_1", "inner_1"): 2, ("fresh_20", "inner_20"): 3}
        self.assertEqual(stacks.working(seen, CHURN), {("fresh", "inner"): 5})

    def test_parked_threads_do_not_count(self):
        parked = ("start",) + ("descend",) * 9 + ("park",)
        for thread in (), ("thread 7",):
            working = thread + ("calls", "leaf_a")
            self.assertEqual(stacks.working({thread + parked: 70, working: 10}, THREADS),
                             {working: 10})


class Impossible(unittest.TestCase):
    def test_percent(self):
        good = ("<module>",) + ("recurse",) * 10 + ("calls",)
        seen = collections.Counter({good: 97, good + ("calls",): 2, (): 1})
        self.assertEqual(stacks.impossible_percent(seen, CALLS), 3)
        self.assertEqual(stacks.impossible_percent(collections.Counter(), CALLS), 0)

    def test_a_cut_stack_is_judged_by_what_is_left(self):
        seen = collections.Counter({("recurse", "calls"): 1, ("calls", "recurse"): 1})
        self.assertEqual(stacks.impossible_percent(seen, CALLS), 100)
        self.assertEqual(stacks.impossible_percent(seen, CALLS, 2), 50)


if __name__ == "__main__":
    unittest.main()
