# SPDX-License-Identifier: MIT
"""The parts of scripts/bench. See docs/benchmarks.md."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "live"))  # support: interpreters and folders
sys.dont_write_bytecode = True


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)
