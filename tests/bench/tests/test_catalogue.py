# SPDX-License-Identifier: MIT
"""Every program's own stacks are possible, and stacks that it can never have are not."""
import os
import unittest

from bench.catalogue import (ALL_PROGRAMS, CLOCKED, IDLE, TASK_SERVER, TREES, WORKERS, PairedProgram,
                             named)
from bench.processes import PROGRAMS

# {program: (stacks that it can have, stacks that it cannot)}, without what all of them have in
# common. Each was seen once, or would be seen if a rule were broken.
RECURSE_10 = "<module>" + ";recurse" * 10
CASES = {
    "calls-10": (
        [RECURSE_10 + below for below in (";calls", ";calls;leaf_a", ";calls;leaf_b",
                                          ";calls;leaf_b;leaf_a")],
        ["", "<module>", RECURSE_10, RECURSE_10 + ";calls;leaf_a;leaf_a",
         RECURSE_10 + ";calls;leaf_a;leaf_b", RECURSE_10 + ";leaf_a",
         RECURSE_10 + ";recurse;calls", "<module>" + ";recurse" * 9 + ";calls",
         "recurse;" * 10 + "calls", RECURSE_10 + ";calls;park"]),
    "flat-10": ([RECURSE_10 + ";flat"], [RECURSE_10, RECURSE_10 + ";flat;flat", "flat"]),
    "chains": (
        ["<module>;alternate", "<module>;alternate;a_0;a_1;a_2", "<module>;alternate;b_0",
         "<module>;alternate;b_0;b_1;b_2;b_3;b_4;b_5"],
        ["<module>", "<module>;alternate;a_1", "<module>;alternate;a_0;a_2",
         "<module>;alternate;a_0;b_1", "<module>;alternate;a_0;b_0", "alternate;a_0"]),
    "shared-5": (
        ["<module>;alternate;by_a", "<module>;alternate;by_b;shared;leaf_b"],
        ["<module>;alternate;by_a;shared;leaf_b", "<module>;alternate;shared",
         "<module>;alternate;by_a;leaf_a", "<module>;alternate;by_a;by_b"]),
    "shared-5-64": (
        ["<module>" + ";recurse" * 64 + below for below in (
            ";alternate", ";alternate;by_a;shared;leaf_a", ";alternate;by_b;shared")],
        ["<module>;alternate;by_a;shared;leaf_a",
         "<module>" + ";recurse" * 63 + ";alternate;by_a",
         "<module>" + ";recurse" * 64 + ";alternate;by_a;shared;leaf_b",
         "<module>" + ";recurse" * 64 + ";alternate;shared"]),
    "generators": (
        ["<module>;alternate", "<module>;alternate;outer_a;inner_a;leaf_a",
         "<module>;alternate;outer_b;inner_b"],
        ["<module>;alternate;inner_a", "<module>;alternate;outer_a;inner_b",
         "<module>;alternate;outer_a;leaf_a", "<module>;outer_a"]),
    "drivers": (
        ["<module>;alternate", "<module>;alternate" + ";drive_a" * 20,
         "<module>;alternate;drive_a;shared;leaf_a",
         "<module>;alternate" + ";drive_b" * 7 + ";shared"],
        ["<module>;alternate;shared", "<module>;alternate;shared;leaf_a",
         "<module>;alternate" + ";drive_a" * 21, "<module>;alternate;drive_a;drive_b",
         "<module>;alternate;drive_a;shared;leaf_b", "<module>;alternate;drive_b;leaf_b"]),
    "coroutines": (
        ["<module>;alternate;send_a;outer_a;inner_a;pause",
         "<module>;alternate;send_b;outer_b;inner_b;leaf_b"],
        ["<module>;alternate;outer_a", "<module>;alternate;send_a;inner_a",
         "<module>;alternate;send_a;outer_b", "<module>;alternate;send_a;outer_a;inner_a;leaf_b",
         "<module>;alternate;send_a;outer_a;inner_a;leaf_a;pause"]),
    "genexprs": (
        ["<module>;alternate;add_a;add_a.<locals>.<genexpr>;leaf_a",
         "<module>;alternate;add_b;<genexpr>"],
        ["<module>;alternate;add_a;add_b.<locals>.<genexpr>", "<module>;alternate;add_a;leaf_a",
         "<module>;alternate;<genexpr>", "<module>;alternate;add_b;<genexpr>;leaf_a",
         "<module>;alternate;add_a;addXa.<locals>.<genexpr>"]),
    "recursion-300": (
        ["<module>;alternate", "<module>;alternate" + ";down_a" * 300,
         "<module>;alternate;down_b"],
        ["<module>;alternate" + ";down_a" * 301, "<module>;alternate;down_a;down_b",
         "<module>;down_a"]),
    "recursion-5000": (
        ["<module>;alternate" + ";down_a" * 5000], ["<module>;alternate" + ";down_b" * 5001]),
    "locals-1800": (
        ["<module>;alternate;outer_a;inner_a;leaf_a", "<module>;alternate;outer_b"],
        ["<module>;alternate;outer_a;inner_b", "<module>;alternate;inner_a",
         "<module>;alternate;outer_b;leaf_b"]),
    "dying": (
        ["<module>;alternate;make_a;DyingA.__init__", "<module>;alternate;make_b;work_b",
         "<module>;alternate;DyingA.__del__;leaf_a", "<module>;alternate;__del__;leaf_b"],
        ["<module>;alternate;make_a;DyingA.__del__", "<module>;alternate;make_a;work_b",
         "<module>;alternate;DyingA.__del__;leaf_b", "<module>;alternate;leaf_a",
         "<module>;alternate;make_a;DyingB.__init__",
         "<module>;alternate;make_a;DyingA.__init__;work_a"]),
    "churn": (
        ["<module>;churn", "<module>;churn;<module>", "<module>;churn;fresh_7;inner_7;leaf",
         "<module>;churn;fresh_70"],
        ["<module>;churn;fresh_7;inner_8", "<module>;churn;inner_7",
         "<module>;churn;fresh_7;inner_71", "<module>;churn;fresh_7;leaf",
         "<module>;churn;<module>;leaf"]),
    "threads-64": (
        [RECURSE_10 + ";calls;leaf_b;leaf_a", "start" + ";descend" * 9 + ";park"],
        [RECURSE_10 + ";park", "start" + ";descend" * 8 + ";park", "start" + ";descend" * 9,
         "<module>;start" + ";descend" * 9 + ";park", "[no python frames]"]),
    "lambdas": (
        ["<module>;make", "<module>;make;<module>", "<module>;make;call_7;made_7",
         "<module>;make;call_7;made_7;made_7.<locals>.<lambda>;leaf",
         "<module>;make;call_70;made_70;<lambda>"],
        ["<module>;make;call_7;made_8", "<module>;make;call_7;made_70", "<module>;make;made_7",
         "<module>;make;call_7;made_7;made_8.<locals>.<lambda>", "<module>;make;call_7;<lambda>",
         "<module>;make;call_7;made_7;leaf", "<module>;make;<module>;call_7"]),
    "period": (
        ["<module>;tick", "<module>;tick;work", "<module>;tick;rest"],
        ["<module>", "<module>;tick;work;rest", "<module>;tick;rest;work", "<module>;work"]),
    "ccalls": (
        ["<module>;pack_all", "<module>;pack_all;pack", "hash_all;before_digest;leaf_digest",
         "<module>;pack_all;before_pack;leaf_pack", "hash_all;digest"],
        ["<module>;hash_all", "hash_all;pack", "<module>;pack_all;digest", "pack_all;pack",
         "<module>;pack_all;before_pack;leaf_digest", "hash_all;leaf_digest",
         "<module>;pack_all;pack;leaf_pack"]),
    "allocator": (
        ["<module>;fill_arrays;make_array", "<module>;fill_arrays;before_array;leaf_array",
         "fill_maps;free_map", "fill_maps;before_map"],
        ["fill_maps;make_array", "<module>;fill_maps", "fill_arrays;make_array",
         "fill_maps;before_array", "fill_maps;make_map;touch_map",
         "<module>;fill_arrays;before_array;leaf_map"]),
}

# {program: (what is left of possible stacks that were cut off, and of impossible ones)}
CUT_CASES = {
    "calls-1000": (["recurse;recurse;calls;leaf_a"], ["recurse;calls;leaf_a;leaf_a", "calls"]),
    "flat-1000": (["recurse;flat"], ["flat;recurse"]),
    "recursion-300": (["down_a;down_a"], ["down_a;down_b"]),
}


def program(name):
    return next(one for one in ALL_PROGRAMS if one.name == name)


class Catalogue(unittest.TestCase):
    def test_possible_stacks(self):
        for name, (possible, impossible) in CASES.items():
            for text in possible:
                self.assertTrue(program(name).can_have(tuple(text.split(";"))), (name, text))
            for text in impossible:
                self.assertFalse(program(name).can_have(tuple(text.split(";"))), (name, text))

    def test_cut_off(self):
        for name, (possible, impossible) in CUT_CASES.items():
            for text in possible + impossible:
                names = tuple(text.split(";"))
                self.assertEqual(program(name).can_have(names, len(names)), text in possible,
                                 (name, text))
                self.assertFalse(program(name).can_have(names), "cut, but it need not be")

    def test_every_program_has_cases(self):
        self.assertEqual({program(name).file for name in CASES},
                         {one.file for one in ALL_PROGRAMS
                          if not isinstance(one, PairedProgram)})  # test_pairs.py has those

    def test_every_file_is_a_program(self):
        files = {name[:-3] for name in os.listdir(PROGRAMS) if name.endswith(".py")}
        self.assertEqual(files - {"ready", "pairs", "waiting_threads"},
                         {one.file for one in ALL_PROGRAMS + WORKERS + CLOCKED + TREES
                          + [TASK_SERVER, IDLE]})

    def test_only_threads_that_wait_are_parked(self):
        parked = ("start",) + ("descend",) * 9 + ("park",)
        self.assertTrue(program("threads-8").is_parked(parked))
        self.assertFalse(program("threads-8").is_parked(tuple(RECURSE_10.split(";")) + ("calls",)))
        self.assertFalse(program("calls-10").is_parked(parked))

    def test_named(self):
        self.assertEqual([one.name for one in named(["calls", "work-10"])],
                         ["calls-10", "calls-100", "calls-1000", "work-10"])
        self.assertEqual(named(["call"]), [])


if __name__ == "__main__":
    unittest.main()
