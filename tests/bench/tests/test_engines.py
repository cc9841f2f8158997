# SPDX-License-Identifier: MIT
"""Which engines are measured."""
import contextlib
import io
import types
import unittest
from unittest import mock

from bench import engines


class Engines(unittest.TestCase):
    def available(self, refusal, requested=None):
        with mock.patch.object(engines, "refusal", return_value=refusal), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            found = engines.available(types.SimpleNamespace(pysample="pysample"), requested)
        return found, said.getvalue()

    def test_both_where_bpf_is_allowed(self):
        self.assertEqual(self.available(None), (("bpf", "preempt"), ""))

    def test_what_is_not_allowed_is_named(self):
        self.assertEqual(self.available("it takes CAP_BPF"), (
            ("preempt",), "bench: not measured: --engine bpf (it takes CAP_BPF)\n"))

    def test_requested_engine_is_the_only_one(self):
        self.assertEqual(self.available("it takes CAP_BPF", "racing")[0], ("racing",))


if __name__ == "__main__":
    unittest.main()
