# SPDX-License-Identifier: MIT
import contextlib
import io
import json
import os
import tempfile
import unittest

from bench import proofs


def counts(looks=100, proven=90, wrong=0, disagree=0, has_rseq=True):
    """As proofs prints them."""
    def verdicts(names, nr_wrong):
        return {name: {"asked": looks, "proven": proven, "wrong": nr_wrong}
                if has_rseq or name in ("clock", "runs", "count alone")
                else {"asked": 0, "proven": 0, "wrong": 0} for name in names}
    return {"looks": looks, "unread": 1, "moved": 5, "slept": 2, "threads": 1, "kernel": 3,
            "witnesses": verdicts(proofs.WITNESSES, wrong),
            "weak_rules": verdicts(proofs.WEAK_RULES, 7),
            "pairs": {"rseq, not clock": {"stood": 3, "moved": 4}},
            "disagreements": {"clock, word": disagree, "runs, clock": disagree}}


def row(target="pinned", **values):
    return proofs.ProofRow(target, 1.5, 0.1, counts(**values))


def table(rows):
    """{name: cells} of everything that is printed"""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        proofs.print_rows(rows)
    lines = [line.strip("| ").split(" | ") for line in text.getvalue().splitlines()
             if line.startswith("| ")]
    found = {}
    for cells in lines:
        found.setdefault(cells[0], []).append(cells[1:])
    return found


class Tables(unittest.TestCase):
    def test_sum_is_of_every_number(self):
        total = proofs.total([row(looks=100, wrong=1), row(looks=50, proven=10, disagree=2)])
        self.assertEqual(total.counts["looks"], 150)
        self.assertEqual(total.counts["witnesses"]["clock"],
                         {"asked": 150, "proven": 100, "wrong": 1})
        self.assertEqual(total.counts["pairs"]["rseq, not clock"], {"stood": 6, "moved": 8})
        self.assertEqual((proofs.wrong(total), proofs.disagreements(total)), (3, 4))

    def test_rows(self):
        found = table([row(), row("musl", has_rseq=False, wrong=2, disagree=1)])
        self.assertEqual(found["pinned"], [["100", "5", "2", "90.0", "90.0", "90.0", "0", "0", "3"],
                                           ["7 / 90", "7 / 90", "7 / 90"]])
        self.assertEqual(found["musl"], [["100", "5", "2", "–", "90.0", "90.0", "4", "2", "3"],
                                         ["–", "–", "7 / 90"]])
        self.assertEqual(found["all"], [["200", "10", "4", "90.0", "90.0", "90.0", "4", "2", "6"],
                                        ["7 / 90", "7 / 90", "14 / 180"]])
        self.assertEqual(found["rseq, not clock"], [["6", "8"]])


class Faults(unittest.TestCase):
    def test_no_fault(self):
        proofs.check([row(), row("forks")])

    def test_wrong_proofs_and_disagreements_are_faults(self):
        for values in ({"wrong": 1}, {"disagree": 1}):
            with self.subTest(values), self.assertRaisesRegex(RuntimeError, r"\(forks: \d\)"):
                proofs.check([row(), row("forks", **values)])

    def test_a_witness_that_never_proves_is_a_fault(self):
        proofs.check([row(), row("forks", proven=0), row("musl", has_rseq=False)])
        with self.assertRaisesRegex(RuntimeError, "proved nothing: rseq, clock, runs"):
            proofs.check([row(proven=0), row("forks", proven=0)])


class Measuring(unittest.TestCase):
    def test_each_row_is_kept_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            proofs.save(path, "a machine", [row()])
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        self.assertEqual((content["machine"], content["stacks"]), ("a machine", []))
        self.assertEqual(proofs.ProofRow(**content["rows"][0]), row())

    def test_rights_and_signal_are_one_command(self):
        """A later change of rights would cancel the signal."""
        command = proofs.without_rights(proofs.Target("moved", "free", is_nobody=True))
        self.assertEqual(command.count("setpriv"), 1)
        self.assertLessEqual({"--reuid=65534", "--clear-groups", "--pdeathsig"}, set(command))
        self.assertEqual(command[-1], "--")
        self.assertEqual(proofs.without_rights(proofs.Target("moved", "free")),
                         proofs.support.TIED_TO_US)


if __name__ == "__main__":
    unittest.main()
