# SPDX-License-Identifier: MIT
import random
import unittest

from bench.estimates import median, median_interval, ratio


class Estimates(unittest.TestCase):
    def test_median_leaves_out_what_is_not_known(self):
        self.assertEqual(median([3, None, 1, 2]), 2)
        self.assertIsNone(median([None]))
        self.assertIsNone(median(iter(())))

    def test_interval_is_of_the_right_order_statistics(self):
        # From tables of the binomial distribution; 5 values have no interval of 95 %.
        for count, low, high in (6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (60, 22, 39):
            values = list(range(1, count + 1))
            random.Random(1).shuffle(values)
            self.assertEqual(median_interval(values), ((count + 1) / 2, low, high), count)
        self.assertEqual(median_interval([1, 2, 3, 4, 5]), (3, None, None))
        self.assertEqual(median_interval([]), (None, None, None))

    def test_interval_covers_the_median_as_often_as_it_says(self):
        generator = random.Random(2)
        nr_covered = 0
        for _ in range(2000):
            _, low, high = median_interval([generator.expovariate(1) for _ in range(20)])
            nr_covered += low <= 0.6931471805599453 <= high
        self.assertGreater(nr_covered / 2000, 0.94)
        self.assertLess(nr_covered / 2000, 0.98)

    def test_ratio(self):
        self.assertEqual(ratio(3, 2), 1.5)
        self.assertEqual(ratio(0, 2), 0)
        for mine, theirs in (None, 2), (1, None), (1, 0):
            self.assertIsNone(ratio(mine, theirs))


if __name__ == "__main__":
    unittest.main()
