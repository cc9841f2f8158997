# SPDX-License-Identifier: MIT
"""Distances between profiles and the truth: what chance causes, and what a fault causes."""
import collections
import random
import unittest

from bench import distances

SHARES = {("main", "a", "leaf"): 50, ("main", "b", "leaf"): 30, ("main", "b"): 20}


def windows(shares, nr_windows, nr_stacks, seed):
    chance = random.Random(seed)
    return [collections.Counter(chance.choices(list(shares), list(shares.values()), k=nr_stacks))
            for _ in range(nr_windows)]


class Distances(unittest.TestCase):
    TRUTH = windows(SHARES, 20, 500, 1)

    def test_a_profile_without_fault_is_at_the_floor(self):
        for nr_windows, nr_stacks in (20, 500), (20, 50), (4, 2500):
            with self.subTest(nr_windows=nr_windows, nr_stacks=nr_stacks):
                found = distances.measure(self.TRUTH, windows(SHARES, nr_windows, nr_stacks, 2))
                self.assertIsNone(found.pop("thread"))
                for one in found.values():
                    self.assertLess(one.profile - one.floor, 2)
                    self.assertLessEqual(one.floor_low, one.floor)
                    self.assertLessEqual(one.floor, one.floor_high)
                    self.assertGreater(one.floor_high, one.floor_low)

    def test_a_fault_shows_in_the_distance_of_what_it_moves(self):
        wrong = {("main", "a", "leaf"): 40, ("main", "b", "leaf"): 30, ("main", "b"): 20,
                 ("main", "leaf"): 10}
        found = distances.measure(self.TRUTH, windows(wrong, 20, 500, 3))
        self.assertLess(found["self"].profile, found["self"].floor + 2)
        for kind in "pair", "whole":
            self.assertAlmostEqual(found[kind].profile, 10, delta=2)
            self.assertGreater(found[kind].profile, found[kind].floor_high)

    def test_outer_frames_count_in_whole_stacks_alone(self):
        wrong = {("main", "a", "leaf"): 50, ("b", "leaf"): 30, ("main", "b"): 20}
        found = distances.measure(self.TRUTH, windows(wrong, 20, 500, 4))
        self.assertLess(found["pair"].profile, found["pair"].floor + 2)
        self.assertAlmostEqual(found["whole"].profile, 30, delta=3)

    def test_threads_are_compared_only_if_all_stacks_name_theirs(self):
        names = collections.Counter({("thread 1", "a"): 60, ("thread 2", "a"): 40})
        others = collections.Counter({("thread 1", "a"): 40, ("thread 2", "a"): 60})
        found = distances.measure([names] * 20, [others] * 20)
        self.assertEqual([found[kind].profile for kind in ("self", "pair", "whole")], [0] * 3)
        self.assertAlmostEqual(found["thread"].profile, 20, delta=2)
        self.assertLess(found["thread"].floor, 2)
        self.assertIsNone(distances.measure([names] * 20, self.TRUTH)["thread"])

    def test_chance_of_looks_at_the_truth(self):
        """10,000 looks at a share of a half: a deviation of 0.5 points, and a mean of 0.4."""
        halves = collections.Counter(a=1, b=1)
        self.assertAlmostEqual(distances.chance_percent(halves, 10000), 0.4, delta=0.15)
        self.assertAlmostEqual(distances.chance_percent(halves, 100), 4, delta=1.5)
        self.assertEqual(distances.chance_percent(halves, 1), 50)
        self.assertEqual(distances.chance_percent(halves, 7), distances.chance_percent(halves, 7))
        self.assertEqual(distances.chance_percent(collections.Counter(a=3, b=0), 5), 0)
        self.assertIsNone(distances.chance_percent(halves, 0))
        self.assertIsNone(distances.chance_percent(collections.Counter(), 5))

    def test_drift_raises_the_floor(self):
        drifting = [collections.Counter({("a",): 25 * i, ("b",): 500 - 25 * i})
                    for i in range(20)]
        still = distances.measure(self.TRUTH, self.TRUTH)["whole"]
        self.assertGreater(distances.measure(drifting, drifting)["whole"].floor, 3 * still.floor)

    def test_too_few_windows_have_no_distance(self):
        nothing = dict.fromkeys(distances.KINDS)
        self.assertEqual(distances.measure([], self.TRUTH), nothing)
        self.assertEqual(distances.measure(self.TRUTH[:1], self.TRUTH), nothing)
        self.assertEqual(distances.measure(self.TRUTH, [collections.Counter()]), nothing)

    def test_one_is_empty(self):
        self.assertIsNone(distances.total_variation_percent(collections.Counter(),
                                                            collections.Counter("a")))
        self.assertEqual(distances.total_variation_percent(collections.Counter("ab"),
                                                           collections.Counter("bc")), 50)


if __name__ == "__main__":
    unittest.main()
