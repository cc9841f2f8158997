# SPDX-License-Identifier: MIT
"""The engines of pysample that are measured beside each other, in turn."""
import os
import subprocess

from bench import say

ENGINES = ("bpf", "preempt")
OF_ROOT = ("bpf", "tick")  # which takes rights
NO_SAMPLE = 5  # the exit status of pysample that could take none


def why_not(pysample, engine):
    """What pysample says where it cannot use an engine, on this very process; else None."""
    run = subprocess.run([pysample, "attach", "-q", "--engine", engine, "-d", "0.05", "-f",
                          "collapsed", str(os.getpid())],
                         capture_output=True, text=True, check=False)
    if run.returncode in (0, NO_SAMPLE):
        return None
    return run.stderr.strip().removeprefix("pysample: ") or "status %d" % run.returncode


def possible(tools, asked=None, engines=ENGINES):
    """Those that can be measured here, or the one that was asked for; says which cannot."""
    if asked:
        return (asked,)
    found = []
    for engine in engines:
        why = why_not(tools.pysample, engine) if engine in OF_ROOT else None
        if why:
            say("not measured: --engine %s (%s)" % (engine, why))
        else:
            found.append(engine)
    return tuple(found)
