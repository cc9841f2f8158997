# SPDX-License-Identifier: MIT
"""Runs one `pysample attach` to its end: its stacks and its statistics."""
import collections
import dataclasses
import json
import os
import subprocess
import tempfile

import support

from bench import stacks
from bench.engines import NO_SAMPLE


@dataclasses.dataclass
class Attached:
    labels: dict  # {frames as pysample writes them: how often}
    stacks: collections.Counter  # the same by function names
    stats: dict

    @property
    def cpu_s(self):
        return self.stats["cpu_user_s"] + self.stats["cpu_sys_s"]

    @property
    def nr_lost(self):
        return sum(self.stats["lost"].values())


def attach(tools, pid, seconds, hz, *options):
    """RuntimeError if it fails. A run without a sample is no failure."""
    with tempfile.TemporaryDirectory() as folder:
        stats = os.path.join(folder, "stats.json")
        run = subprocess.run(
            [tools.pysample, "attach", "-q", "-d", str(seconds), "-r", str(hz), "-f", "collapsed",
             "--mode", "wall", "--stats-json", stats, *options, str(pid)],
            capture_output=True, text=True, check=False)
        if run.returncode not in (0, NO_SAMPLE):
            raise RuntimeError("%s: %s" % (" ".join(run.args), run.stderr.strip()[-300:]))
        return Attached(support.parse_collapsed(run.stdout), stacks.of_pysample(run.stdout),
                        json.loads(support.read(stats)))
