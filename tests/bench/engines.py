# SPDX-License-Identifier: MIT
"""The engines of pysample that are measured in turn."""
import os
import subprocess

from bench import say

ENGINES = ("bpf", "preempt")
NEED_RIGHTS = ("bpf", "tick")
NO_SAMPLE = 5  # pysample's exit status if it could take no sample


def refusal(pysample, engine):
    """What pysample says if it cannot use an engine on this very process; else None."""
    run = subprocess.run([pysample, "attach", "-q", "--engine", engine, "-d", "0.05", "-f",
                          "collapsed", str(os.getpid())],
                         capture_output=True, text=True, check=False)
    if run.returncode in (0, NO_SAMPLE):
        return None
    return run.stderr.strip().removeprefix("pysample: ") or "status %d" % run.returncode


def available(tools, requested=None, engines=ENGINES):
    """The engines that can be measured here, or the one asked for; reports which cannot."""
    if requested:
        return (requested,)
    found = []
    for engine in engines:
        why = refusal(tools.pysample, engine) if engine in NEED_RIGHTS else None
        if why:
            say("not measured: --engine %s (%s)" % (engine, why))
        else:
            found.append(engine)
    return tuple(found)
