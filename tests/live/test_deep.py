# SPDX-License-Identifier: MIT
"""Deep stacks. 3.15 and newer show what need not be copied at every tick."""
import json
import os
import re
import shutil
import struct
import unittest

import support
from support import pysample

DEPTHS = (30, 300, 1000)
LAST_PROFILED_FRAME = 88  # offset in the thread state of 3.15


def possible(depth):
    chains = "|".join(r"(;chain_%s){0,%d}|(;chain_%s){%d};leaf_%s" % (x, depth, x, depth, x)
                      for x in "ab")
    return re.compile(r"<module>(;trunk){%d};alternate(%s|;announce.*)" % (depth, chains))


def has_word(interpreter):
    """Whether the version has the word for profilers. Older versions must be left alone."""
    return support.version_key(interpreter) >= [3, 15]


@support.per_minor("3.6", "3.14", "3.15")
class Deep(unittest.TestCase):
    def setUp(self):
        self.folder, _ = self.enterContext(support.fresh_folder())

    def attach(self, target, *options, wrapper=()):
        stats = os.path.join(self.folder, "stats")
        results = []

        def is_proven():
            results.append(pysample("attach", target.pid, "--engine", "preempt", "-t",
                                    *support.COLLAPSED, "--stats-json", stats, *options,
                                    wrapper=wrapper))
            return not support.has_no_proven_stack(results[-1])

        support.wait_until(is_proven, "some stack could be proven")
        result = results[-1]
        self.assertEqual(result.status, 0, result.stderr)
        result.stats = json.loads(support.read(stats))
        result.stacks = support.parse_collapsed(result.stdout)
        return result

    def anchor(self, target):
        """The value of last_profiled_frame in the main thread's state."""
        with open("/proc/%d/mem" % target.pid, "rb") as memory:
            memory.seek(target.report["thread_state"] + LAST_PROFILED_FRAME)
            return struct.unpack("Q", memory.read(8))[0]

    def assert_possible(self, stacks, depth):
        pattern = possible(depth)
        wrong = {len(stack): stack[-3:] for stack in stacks if "MainThread" in stack[0]
                 and not pattern.fullmatch(";".join(support.names(stack[1:])))}
        self.assertEqual(wrong, {})

    def test_chains_that_take_turns(self):
        if not has_word(self.interpreter):
            self.skipTest("this version has no last_profiled_frame")
        for depth in DEPTHS:
            for rate in ("2k", "max"):
                with self.subTest(depth=depth, rate=rate), \
                        support.python_target(self.interpreter, "deep", depth) as target:
                    self.check_chains(target, depth, rate)

    def check_chains(self, target, depth, rate):
        def sample():
            result = self.attach(target, "-d", "0.3", "-r", rate)
            self.assert_possible(result.stacks, depth)
            self.assertEqual(self.anchor(target), 0)
            nr_cached.append(result.stats["cached"])
            return result.stacks

        nr_cached = []
        support.sampled_until(sample, lambda stacks: any(nr_cached) or depth < 100,
                              "something was cached")

    def test_no_write_with_read_only(self):
        with support.python_target(self.interpreter, "deep", 300) as target:
            result = self.attach(target, "-d", "0.3", "-r", "max", "-v", "--read-only")
        self.assertEqual((result.stats["writes"], result.stats["cached"]), (0, 0))
        self.assertIn("frame cache off: ", result.stderr)

    def test_sandbox_forbids_writing(self):
        """Results are as without the cache; only --verbose mentions it."""
        if not has_word(self.interpreter):
            self.skipTest("pysample never writes to this version")
        for number in "EPERM", "ENOSYS":
            wrapper = (*support.FORBID_CALL, "process_vm_writev", number)
            with self.subTest(number), \
                    support.python_target(self.interpreter, "deep", 300) as target:
                quiet = self.attach(target, "-d", "0.3", "-r", "max", wrapper=wrapper)
                runs = []

                def is_reported():
                    """A run with few looks writes nothing."""
                    runs.append(self.attach(target, "-d", "0.2", "-r", "max", "-v",
                                            wrapper=wrapper))
                    return "frame cache off: the process cannot be written to\n" in runs[-1].stderr

                support.wait_until(is_reported, "the refusal is reported")
                self.assertEqual(self.anchor(target), 0)
            for result in quiet, *runs:
                self.assert_possible(result.stacks, 300)
                self.assertEqual((result.stats["writes"], result.stats["cached"]), (0, 0))
            self.assertNotIn("cache", quiet.stderr)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_writes_seen_by_the_kernel(self):
        """Threads end all the time, and only the main thread's state is written to."""
        if support.is_sanitized():
            self.skipTest("LeakSanitizer fails under a tracer")
        log = os.path.join(self.folder, "log")
        # Other calls must not stop: a sampler that stops at every call holds no CPU.
        wrapper = ("strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=process_vm_writev", "-o", log)
        with support.python_target(self.interpreter, "deep", 300, "threads") as target:
            for options in ([], ["--read-only"]):
                seconds = "1" if has_word(self.interpreter) else "0.3"
                result = self.attach(target, "-d", seconds, "-r", "2k", *options, wrapper=wrapper)
                addrs = [int(addr, 16) for addr in re.findall(
                    r"process_vm_writev\(.*\[\{iov_base=(0x[0-9a-f]+), iov_len=8\}\], 1, 0\)",
                    support.read(log))]
                self.assertEqual(len(addrs), result.stats["writes"])
                if has_word(self.interpreter) and not options:
                    self.assertEqual(set(addrs),
                                     {target.report["thread_state"] + LAST_PROFILED_FRAME})
                else:
                    self.assertEqual(addrs, [])

    def test_doctor_reports_the_cache(self):
        with support.python_target(self.interpreter, "deep", 30) as target:
            result = pysample("doctor", target.pid)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^frame cache  %s" % (
            "for deep stacks" if has_word(self.interpreter) else "none: "))


if __name__ == "__main__":
    unittest.main()
