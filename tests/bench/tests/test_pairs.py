# SPDX-License-Identifier: MIT
"""Which function calls which in a program, and which stacks are therefore possible."""
import sys
import unittest

import support

from bench.catalogue import ALL_PROGRAMS, PairedProgram
from bench.processes import PROGRAMS

PAIRED = [one for one in ALL_PROGRAMS if isinstance(one, PairedProgram)]
OURS = support.Interpreter(sys.executable, "%d.%d.%d" % sys.version_info[:3])
THREAD = "Thread._bootstrap;Thread._bootstrap_inner;Thread.run;"

# {program: (stacks that it can have, stacks that it cannot)}, by qualified names.
CASES = {
    "handoff-semaphores": (
        ["<module>;main;work;burst_1;spin", THREAD + "work;burst_8",
         THREAD + "work;Semaphores.receive;Semaphore.acquire;Condition.wait"],
        ["<module>;main;burst_1", "<module>;main;work;spin", "<module>;work;burst_1;spin",
         THREAD + "work;burst_2;burst_3", "work;burst_8", THREAD + "main",
         THREAD + "work;Semaphores.send;Semaphore.acquire;Condition.wait"]),
    "handoff-queues": (
        [THREAD + "work;Queues.send;Queue.put;Condition.notify"],
        [THREAD + "work;Queues.receive;Queue.put", THREAD + "work;Semaphores.receive"]),
    "handoff-sockets": (
        [THREAD + "work;Sockets.receive", "<module>;main;Sockets.send"],
        [THREAD + "work;Sockets.receive;spin", "<module>;main;Sockets.receive"]),
    "pool": (
        ["<module>;main;Future.result;Condition.wait", THREAD + "_worker"],
        [THREAD + "_worker;task_1", THREAD + "_worker;spin", "<module>;main;task_1",
         "<module>;main;_worker"]),
    "aserver": (
        ["<module>;BaseEventLoop.run_until_complete;BaseEventLoop.run_forever;"
         "BaseEventLoop._run_once;Handle._run;render;to_text;spin"],
        ["<module>;BaseEventLoop.run_until_complete;BaseEventLoop.run_forever;"
         "BaseEventLoop._run_once;Handle._run;render;spin",
         "<module>;BaseEventLoop.run_forever",
         "render;to_text;spin"]),
    "minilang": (
        ["<module>;main;evaluate;Parser.program;Parser.statements;Parser.statement",
         "<module>;main;evaluate;Parser.__init__;tokens_of",
         "<module>;main;evaluate;Block.run;Let.run;Call.run;Closure.__call__;Block.run;Return.run"],
        ["<module>;main;Parser.program", "<module>;main;evaluate;tokens_of;push",
         "<module>;main;evaluate;Block.run;tokens_of",
         "<module>;main;evaluate;Scope.get;Name.run"]),
    "templates": (
        ["<module>;main;Templates.render;Nodes.render;Block.render;Block.render_version;"
         "Nodes.render;For.render;Nodes.render;Value.render;Expression.evaluate;escape",
         "<module>;main;Templates.render;Templates.lineage;Templates.get;Parser.parse;Parser.nodes;"
         "Parser.nodes_until;split"],
        ["<module>;main;Nodes.render", "<module>;main;Templates.render;Text.render",
         "<module>;main;Templates.render;Nodes.render;escape",
         "<module>;main;Templates.render;Templates.lineage;split"]),
    "events": (
        ["<module>;main;simulate;Simulation.run;Simulation.step;Event.happen;Process.resume;"
         "Bank.customer;Bank.serve;Simulation.timeout;Timeout.__init__;Event.__init__",
         "<module>;main;simulate;Bank.report;Histogram.percentile"],
        ["<module>;main;simulate;Simulation.run;Bank.customer", "<module>;main;simulate;Tally.add",
         "<module>;main;simulate;Bank.report;Bank.customer",
         "<module>;main;simulate;Simulation.run;Simulation.step;Event.happen;Process.resume;"
         "Bank.serve"]),
}


def names_of(text):
    return tuple(support.name_in(OURS, name) for name in text.split(";"))


class Pairs(unittest.TestCase):
    def test_possible_stacks(self):
        for program in PAIRED:
            program.learn(OURS, PROGRAMS)
            possible, impossible = CASES[program.name]
            for text in possible:
                self.assertTrue(program.can_have(names_of(text)), (program.name, text))
            for text in impossible:
                self.assertFalse(program.can_have(names_of(text)), (program.name, text))

    def test_every_program_has_cases(self):
        self.assertEqual(set(CASES), {one.name for one in PAIRED})

    def test_only_pairs_are_possible(self):
        program = PAIRED[0]
        program.known.clear()
        self.assertFalse(program.can_have(("<module>",)))
        program.known.update([("", "a"), ("a", "b"), ("b", "a")])
        self.assertTrue(program.can_have(tuple("ababa")))
        self.assertFalse(program.can_have(tuple("abb")))
        self.assertFalse(program.can_have(()))

    def test_the_outermost_name_of_a_cut_stack_needs_no_caller(self):
        program = PAIRED[0]
        program.known.clear()
        program.known.update([("", "a"), ("a", "b"), ("b", "c")])
        self.assertTrue(program.can_have(("b", "c"), 2))
        self.assertFalse(program.can_have(("b", "c"), 3))
        self.assertFalse(program.can_have(("c", "b"), 2))

    def test_threads_that_wait_are_parked(self):
        for name, text in (("handoff-queues", THREAD + "work;Queues.receive;Queue.get;"
                                              "Condition.wait"),
                           ("handoff-sockets", THREAD + "work;Sockets.receive"),
                           ("handoff-sockets", THREAD + "work;Sockets.send"),
                           ("pool", THREAD + "_worker"),
                           ("pool", "<module>;main;Future.result;Condition.wait")):
            program = next(one for one in PAIRED if one.name == name)
            self.assertTrue(program.is_parked(names_of(text)), text)
            self.assertFalse(program.is_parked(names_of(THREAD + "work;burst_1;spin")))

    def test_a_failing_program_is_reported(self):
        with self.assertRaisesRegex(RuntimeError, "has no pairs"):
            PAIRED[0].learn(OURS, "/nonexistent")


if __name__ == "__main__":
    unittest.main()
