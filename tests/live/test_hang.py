# SPDX-License-Identifier: MIT
"""`pysample dump -s` says where programs hang: what their threads wait in, and for whom."""
import contextlib
import json
import os
import signal
import unittest

import support
from support import dump, pysample

VERSIONS = ("3.8", "3.12", "3.13", "3.15")

# The shell waits for the target, which ends with it.
BELOW_A_SHELL = ["sh", "-c", '"$@"; :', "sh", *support.TIED_TO_US]


def threads_of(dumped):
    """All threads of a dump of several processes, by id."""
    return {thread["tid"]: thread for process in dumped["processes"]
            for thread in process["threads"]}


def holds_open(pid, path):
    """Whether a process has a file open."""
    folder = "/proc/%d/fd" % pid
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(os.path.join(folder, name)) == path:
                return True
    return False


@contextlib.contextmanager
def frozen(pid):
    """Freeze a process with a control group of its own, by version 1 or else 2."""
    base, file, on, off, state, is_frozen = (
        ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN")
        if os.path.isdir("/sys/fs/cgroup/freezer") else
        ("/sys/fs/cgroup", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"))
    group = os.path.join(base, "pysample-test-%d" % pid)
    try:
        os.mkdir(group)
    except OSError as error:
        raise unittest.SkipTest("no control group can be made: %s" % error)

    def write(folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="ascii") as target:
            target.write(text)

    try:
        write(group, "cgroup.procs", str(pid))
        write(group, file, on)
        support.wait_until(lambda: is_frozen in support.read(os.path.join(group, state)),
                           "the process is frozen")
        yield
    finally:
        write(group, file, off)
        write(base, "cgroup.procs", str(pid))
        os.rmdir(group)


class HangTestCase(unittest.TestCase):
    maxDiff = 4000

    def dump_until(self, pid, is_hanging):
        """A dump in which all threads are where they will stay."""
        found = []

        def look():
            found[:] = [dump(pid, "-s")]
            return is_hanging(threads_of(found[0]))

        support.wait_until(look, "the threads hang")
        return found[0]

    def check_holders(self, way, kind, deadlock="Deadlock: "):
        """The holders are those that the program knows, and so is the deadlock."""
        with support.python_target(self.interpreter, "hangs", way) as target:
            holders = {int(tid): holder for tid, holder in target.report["holders"].items()}
            dumped = self.dump_until(target.pid, lambda threads: all(
                tid in threads and (threads[tid]["waiting"] or {}).get("system_call") == "futex"
                for tid in holders))
            text = pysample("dump", "-s", target.pid).stdout
        waiting = {tid: threads_of(dumped)[tid]["waiting"] for tid in holders}
        found = {tid: facts["holder"] and facts["holder"]["tid"]
                 for tid, facts in waiting.items()}
        self.assertEqual(found, holders)
        for tid, holder in holders.items():
            self.assertIn(kind, waiting[tid]["text"])
            self.assertIn(waiting[tid]["text"], text)
            self.assertEqual("held by" in waiting[tid]["text"], holder not in (None, tid))
        self.assertEqual(len(dumped["findings"]), bool(target.report["deadlock"]))
        for tid in target.report["deadlock"]:
            self.assertIn(" %d " % tid, dumped["findings"][0])
            self.assertIn("\n" + deadlock, text)
            self.assertIn(" %d " % tid, text[text.index("\n" + deadlock):].split("\n")[1])


@support.per_minor(*VERSIONS)
@support.slow_per_free_threaded
class Locks(HangTestCase):
    def test_two_locks(self):
        self.check_holders("locks", "a threading.Lock")

    def test_two_rlocks(self):
        self.check_holders("rlocks", "a threading.RLock")

    def test_one_lock_twice(self):
        self.check_holders("twice", "a threading.Lock that it is likely to hold itself",
                           "Likely deadlock: ")

    def test_more_deadlocks_than_people_read(self):
        with support.python_target(self.interpreter, "hangs", "twenty") as target:
            dumped = self.dump_until(target.pid, lambda threads: sum(
                bool(thread["waiting"] and thread["waiting"]["holder"])
                for thread in threads.values()) == 20)
            text = pysample("dump", target.pid).stdout
        self.assertEqual(len(dumped["findings"]), 20)
        self.assertEqual(text.count("\nLikely deadlock: "), 16)
        self.assertIn("\n… and 4 more\n\n", text)

    def test_a_lock_released_inside_its_statement(self):
        self.check_holders("released", "a threading.Lock that it is likely to hold itself",
                           "Likely deadlock: ")

    def test_a_holder_waits_for_something_else(self):
        self.check_holders("held_in_a_wait", "a threading.Lock")

    def test_nobody_is_named_without_evidence(self):
        self.check_holders("unknown", "a threading.Lock")

    def test_locks_of_three_processes(self):
        self.check_holders("processes", "a multiprocessing lock")

    def test_recursive_locks_of_three_processes(self):
        self.check_holders("recursive_processes", "a multiprocessing lock")

    def test_a_child_has_a_copy_of_the_claim(self):
        self.check_holders("forked", "a multiprocessing lock")


@support.per_minor(*VERSIONS)
@support.slow_per_free_threaded
class Waits(HangTestCase):
    def test_an_exhausted_pool_is_one_group(self):
        with support.python_target(self.interpreter, "hangs", "pool") as target:
            users = set(target.report["users"])

            def is_hanging(threads):
                return sum(bool(threads[tid]["waiting"]) and
                           threads[tid]["waiting"]["system_call"] == "futex"
                           for tid in users if tid in threads) == 6

            dumped = self.dump_until(target.pid, is_hanging)
            text = pysample("dump", "-s", target.pid).stdout
            alone = pysample("dump", "-s", "--no-group", target.pid).stdout
        groups = [{thread["tid"] for thread in group["threads"]} for group in dumped["groups"]]
        self.assertEqual(sorted(len(group) for group in groups if group & users), [2, 6])
        self.assertEqual(sorted(group["count"] for group in dumped["groups"]),
                         sorted(map(len, groups)))
        self.assertIn("\n6 threads of process %d " % target.pid, text)
        self.assertIn("\n2 threads of process %d " % target.pid, text)
        self.assertNotIn("\n6 threads ", alone)

    def test_both_ends_of_a_socket(self):
        with support.python_target(self.interpreter, "hangs", "socket") as target:
            tid = target.report["tid_of_client"]
            dumped = self.dump_until(target.pid, lambda threads: (
                threads[tid]["waiting"] or {}).get("system_call") == "recvfrom")
        self.assertEqual(threads_of(dumped)[tid]["waiting"]["text"],
                         "waits in recvfrom on socket " + " → ".join(target.report["ends"]))

    def test_locks_of_files(self):
        with support.python_target(self.interpreter, "hangs", "file_locks") as target:
            holders = {int(tid): pid for tid, pid in target.report["waiters"].items()}
            dumped = self.dump_until(target.pid, lambda threads: all(
                (threads[tid]["waiting"] or {}).get("system_call") in ("fcntl", "flock")
                for tid in holders))
        for tid, pid in holders.items():
            self.assertTrue(threads_of(dumped)[tid]["waiting"]["text"].endswith(
                ", locked by process %d" % pid), threads_of(dumped)[tid]["waiting"])

    def test_a_frozen_process(self):
        """Its thread is in no system call, or still in one, but waits for something else."""
        with support.python_target(self.interpreter, "busy") as target, \
                frozen(target.pid):
            dumped = dump(target.pid)
        waiting = [thread["waiting"] for thread in dumped["threads"]
                   if thread["tid"] == target.pid]
        self.assertEqual(waiting[0]["text"], "is frozen")

    def test_pipes_and_children(self):
        with support.python_target(self.interpreter, "hangs", "children") as target:
            report = target.report
            dumped = self.dump_until(target.pid, lambda threads: all(
                threads[report[who]]["waiting"] for who in ("reader", "waiter")))
            text = pysample("dump", "-s", target.pid).stdout
        threads = threads_of(dumped)
        self.assertEqual(threads[report["reader"]]["waiting"]["text"],
                         "waits in read on a pipe from process %d" % report["writer"])
        self.assertEqual(threads[report["waiter"]]["waiting"]["text"],
                         "waits in wait4 for process %d" % report["child"])
        self.assertEqual({other["pid"]: (other["command"], other["parent_pid"], other["problem"])
                          for other in dumped["others"]},
                         {pid: ("sleep", target.pid, None)
                          for pid in (report["writer"], report["child"])})
        self.assertRegex(text, r"\n2 processes without Python: sleep \(\d+, \d+\)\n")


@support.per_minor(*VERSIONS)
class Watch(unittest.TestCase):
    def watch_until(self, text, target, end, *options):
        """The output of a watch that is ended once it has printed text."""
        process = support.start_pysample("dump", "--watch", "0.1", *options, target.pid)
        lines = []
        for line in process.stdout:
            lines.append(line.decode())
            if text in lines[-1]:
                break
        end(process)
        result = support.finish(process)
        self.assertEqual(result.status, 0, result.stderr)
        return "".join(lines), result.stderr

    def test_what_hangs_does_not_change(self):
        with support.python_target(self.interpreter, "hangs", "locks") as target:
            output, _ = self.watch_until("Unchanged for 1 s: ", target,
                                         lambda process: process.send_signal(signal.SIGINT))
        self.assertEqual(output.count(", in take_both"), 1)

    def test_what_runs_is_not_unchanged(self):
        with support.python_target(self.interpreter, "hangs", "poll") as target:
            output, _ = self.watch_until("Unchanged for 1 s: ", target,
                                         lambda process: process.send_signal(signal.SIGINT))
        poller = "Thread %d " % target.report["tid_of_poller"]
        self.assertIn("\nSame stack again: " + poller, output)
        self.assertEqual([line for line in output.splitlines()
                          if line.startswith("Unchanged") and poller in line], [])

    def test_threads_that_are_not_grouped(self):
        with support.python_target(self.interpreter, "hangs", "pool") as target:
            users = target.report["users"]
            output, _ = self.watch_until("Unchanged for 1 s: Thread %d " % users[-1], target,
                                         lambda process: process.send_signal(signal.SIGINT),
                                         "--no-group")
        self.assertNotIn("\nWas ", output)
        for tid in users:
            self.assertIn("\nUnchanged for 1 s: Thread %d " % tid, output)

    def test_it_ends_with_the_process(self):
        with support.python_target(self.interpreter, "hangs", "socket") as target:
            _, errors = self.watch_until("Unchanged", target,
                                         lambda process: target.process.kill())
            self.assertIn("process %d has ended" % target.pid, errors)


@support.per_minor(*VERSIONS)
class Trees(unittest.TestCase):
    is_quick = False

    def test_a_restless_process_never_fails(self):
        with support.python_target(self.interpreter, "restless") as target:
            for _ in range(100):
                self.assertIn(target.pid, [process["pid"] for process in
                                           dump(target.pid, "-s")["processes"]])

    def test_the_program_of_a_shell(self):
        with support.python_target(self.interpreter, "busy",
                                   wrapper=BELOW_A_SHELL) as target:
            dumped = dump(target.pid, "-s")
            text = pysample("dump", "-s", target.pid)
        self.assertEqual([(other["pid"], other["command"]) for other in dumped["others"]],
                         [(target.pid, "sh")])
        self.assertEqual([(process["pid"], process["parent_pid"])
                          for process in dumped["processes"]],
                         [(target.report["pid"], target.pid)])
        self.assertIn("\n1 process without Python: sh (%d)\n" % target.pid, text.stdout)

    def test_the_first_process_ends_meanwhile(self):
        with support.python_target(self.interpreter, "busy",
                                   wrapper=["sh", "-c", '"$@"; :', "sh"]) as target:
            try:
                process = support.start_pysample("dump", "-s", "--json", "--wait", "100",
                                                 target.pid)
                support.wait_until(lambda: holds_open(process.pid, "/proc/%d" % target.pid),
                                   "pysample waits for the shell to run Python")
                target.process.kill()
                result = support.finish(process)
            finally:
                os.kill(target.report["pid"], signal.SIGKILL)
        self.assertEqual(result.status, 0, result.stderr)
        dumped = json.loads(result.stdout)
        self.assertEqual([(other["pid"], other["parent_pid"], other["problem"])
                          for other in dumped["others"]], [(target.pid, None, "has ended")])
        self.assertEqual([process["pid"] for process in dumped["processes"]],
                         [target.report["pid"]])

    def test_nothing_to_dump(self):
        with support.plain_target("sleep", "3600") as process:
            result = pysample("dump", "-s", process.pid)
        self.assertEqual((result.status, result.stdout), (3, ""))
        self.assertIn("no CPython", result.stderr)
