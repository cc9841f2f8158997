# SPDX-License-Identifier: MIT
"""The identity of threads: names, ids, interpreters, and threads that Python does not know."""
import json
import os
import re
import signal
import unittest

import support
import test_attach
from support import dump, per_interpreter, per_layout, pysample
from test_attach import wait_until_sampling

NAME_MAX_BYTES = 127


def name_shown(name):
    """A name as pysample keeps it."""
    return support.shown(name).encode()[:NAME_MAX_BYTES].decode(errors="ignore")


def names_of(report, key):
    return {int(tid): name_shown(name) for tid, name in report[key].items()}


def root_label(name, tid):
    escaped = re.sub(r"[;\x00-\x1f\x7f]",
                     lambda found: ":" if found.group() == ";" else "\\x%02x" % ord(found.group()),
                     name)
    return "thread %s (%d)" % (escaped, tid)


@per_interpreter
class Threads(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.target = self.enterContext(support.python_target(self.interpreter, "named"))
        self.report = self.target.report

    def assert_dumped(self, dumped, report, own_tid=lambda tid: tid):
        by_tid = {}
        for thread in dumped["threads"]:
            # Up to 3.11 the main thread has a state in each interpreter that it made.
            by_tid.setdefault(own_tid(thread["tid"]), []).append(thread)
        named = names_of(report, "named")
        for tid, name in named.items():
            self.assertIn(name, [thread["name"] for thread in by_tid[tid]])
        for tid in report["unnamed"]:
            (thread,) = by_tid[tid]
            self.assertEqual(thread["name"], thread["os_name"])
        for tid, name in names_of(report, "subs").items():
            inner = [thread for thread in by_tid[tid] if thread["interpreter"]]
            self.assertEqual([thread["name"] for thread in inner], [name])
        (main,) = [thread for thread in dumped["threads"] if thread["main"]]
        self.assertEqual(own_tid(main["tid"]), report["main"])
        self.assertEqual(main["name"], "MainThread")
        self.assertTrue(all(by_tid), "a thread's id is not known")
        reported = set(named) | set(report["unnamed"]) | set(names_of(report, "subs"))
        self.assertEqual(set(by_tid), reported)

    def test_names_and_ids(self):
        self.assert_dumped(dump(self.target.pid), self.report)

    def native_tids(self):
        """The kernel's threads that no Python thread has reported. There is one."""
        reported = [int(tid) for key in ("named", "subs") for tid in self.report[key]]
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % self.target.pid)}
        return sorted(tids - set(reported) - set(self.report["unnamed"]))

    def test_os_names_are_the_kernels(self):
        for thread in dump(self.target.pid)["threads"]:
            comm = support.read("/proc/%d/task/%d/comm" % (self.target.pid, thread["tid"]))
            self.assertEqual(thread["os_name"].encode()[:5], comm.rstrip("\n").encode(
                errors="surrogateescape")[:5])

    def test_native_threads(self):
        tid, = self.native_tids()
        support.wait_until(lambda: support.state("%d/task/%d" % (self.target.pid, tid)) == "S",
                           "the thread waits")
        dumped = dump(self.target.pid, "-v")
        native = dumped["native_threads"]
        self.assertEqual([thread["tid"] for thread in native], [tid])
        self.assertEqual({thread["state"] for thread in native}, {"S"})
        self.assertIsNone(dump(self.target.pid)["native_threads"])
        self.assertRegex(pysample("dump", "-s", "-v", self.target.pid).stdout,
                         r"\nNative threads of process %d \S.* unknown to Python:\n  Thread %d "
                         % (self.target.pid, native[0]["tid"]))
        text = pysample("dump", "-v", self.target.pid).stdout
        self.assertRegex(text, r'\n  Thread %d ".*": waits' % native[0]["tid"])

    def test_text_escapes_names(self):
        text = pysample("dump", self.target.pid).stdout
        self.assertIn('"tab\\x09and\\x0aline; and colon"', text)
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]")
        text = pysample("dump", "--no-group", self.target.pid).stdout
        for tid, name in names_of(self.report, "subs").items():
            self.assertRegex(text, r'Thread %d "%s" in interpreter [1-9]' % (tid, name))

    def roots_until(self, sample, enough, what):
        """The roots of the stacks of sample(), once they are enough."""
        roots = set()

        def is_enough():
            roots.clear()
            roots.update(stack[0] for stack in sample())
            return enough(roots)

        support.wait_until(is_enough, what)
        return roots

    def sample(self, target, *options):
        """The stacks of one run, by thread."""
        result = pysample("attach", "-t", *support.COLLAPSED, target.pid, *options)
        if result.status == 5:
            return {}
        self.assertEqual(result.status, 0, result.stderr)
        return support.parse_collapsed(result.stdout)

    def test_roots_of_a_profile(self):
        named = {root_label(name, tid) for tid, name in names_of(self.report, "named").items()}
        subs = [r"thread %s \(%d, interpreter [1-9]\d*\)" % (name, tid)
                for tid, name in names_of(self.report, "subs").items()]
        self.roots_until(lambda: self.sample(self.target, "-d", "0.3"), lambda roots: (
            named <= roots and all(any(re.fullmatch(sub, root) for root in roots)
                                   for sub in subs)), "every thread is seen by name")

    def test_renamed_while_it_is_sampled(self):
        """The whole profile has its new name."""
        tid, new_names = self.report["renamed"], []

        def sample():
            process = support.start_pysample("attach", "-t", *support.COLLAPSED, self.target.pid)
            wait_until_sampling(process, 0.3)
            if not new_names:
                os.kill(self.target.pid, signal.SIGUSR1)
                new_names.append(json.loads(self.target.process.stdout.readline()))
            result = support.end_by_signal(process)
            return support.parse_collapsed(result.stdout)

        roots = self.roots_until(sample, lambda roots: any("(%d)" % tid in root for root in roots),
                                 "the renamed thread is seen")
        self.assertEqual([root for root in roots if "(%d)" % tid in root],
                         ["thread %s (%d)" % (new_names[0], tid)])

    def test_some_threads_only(self):
        """By name, pattern and id; a name counts from when it is known."""
        name, tid = next(iter(names_of(self.report, "named").items()))[::-1]
        for options in ["--thread", name], ["--thread", name[:-1] + "?"], ["--thread", tid]:
            with self.subTest(options):
                self.roots_until(lambda options=options: self.sample(
                    self.target, "-d", "0.3", "--thread", "nobody", *options),
                    lambda roots: roots == {root_label(name, tid)}, "only it is seen")

    def test_no_thread_matches(self):
        folder, _ = self.enterContext(support.fresh_folder())
        for name in "a.collapsed", "a.pysample":
            path = os.path.join(folder, name)
            result = support.run_with_samples(lambda path=path: pysample(
                "attach", "-d", "0.3", "-o", path, "--thread", "nobody", self.target.pid))
            self.assertFalse(os.path.exists(path))
            self.assertEqual((result.status, result.stdout), (5, ""))
            self.assertRegex(result.stderr, r"(?m)^pysample: no thread of process %d matches --thread, "
                             r"so there is no profile; its threads: .*\(\d+\)" % self.target.pid)

    def test_doctor_counts_them(self):
        result = pysample("doctor", self.target.pid)
        nr_threads = len(dump(self.target.pid)["threads"])
        nr_named = nr_threads - len(self.report["unnamed"])
        self.assertRegex(result.stdout, r"(?m)^names +%d of %d threads named by threading, "
                         r"%d with a kernel thread id$" % (nr_named, nr_threads, nr_threads))

    @unittest.skipIf(os.geteuid() != 0, "needs root: a PID namespace")
    def test_in_a_container(self):
        with support.python_target(self.interpreter, "named",
                                   wrapper=support.IN_A_CONTAINER) as target:
            pid = support.child_of(target.pid)
            tids = support.innermost_tids(pid)
            self.assert_dumped(dump(pid), target.report, tids.get)


@per_layout
class Baton(test_attach.AttachTestCase):
    """Threads that run one after the other: at no instant do two of them work."""

    ENGINE = support.PREEMPT  # it reads all of them at one instant

    def check(self, *options):
        def sample():
            profile = self.profile(target, "-t", "-d", "0.6", *options)
            working = [count for stack, count in profile.stacks.items()
                       if "work" in support.names(stack[1:])]
            self.assertLessEqual(sum(working), profile.stats["ticks"])
            return profile.stacks

        with support.python_target(self.interpreter, "baton") as target:
            support.sampled_until(sample, lambda stacks: len(
                {stack[0] for stack in stacks if "work" in support.names(stack[1:])}) > 1,
                "two have worked")

    def test_at_1_khz(self):
        self.check()

    def test_at_full_speed(self):
        self.check("-r", "max")


@per_interpreter
class NewThreads(unittest.TestCase):
    def test_threads_that_are_named_soon_after_they_start(self):
        """The process makes threads all the time, and none ever has a wrong name."""
        def sample():
            result = pysample("attach", "-t", "-d", "0.5", *support.COLLAPSED, target.pid)
            if result.status == 5:
                return {}
            self.assertEqual(result.status, 0, result.stderr)
            stacks = support.parse_collapsed(result.stdout)
            for found in workers(stacks):
                self.assertEqual(found.group(1), found.group(2))
            return stacks

        def workers(stacks):
            named = re.compile(r"thread worker of (\d+) \((\d+)\)")
            return [found for found in map(named.match, {stack[0] for stack in stacks}) if found]

        with support.python_target(self.interpreter, "naming") as target:
            support.sampled_until(sample, lambda stacks: len(workers(stacks)) > 1,
                                  "named threads are seen")


if __name__ == "__main__":
    unittest.main()
