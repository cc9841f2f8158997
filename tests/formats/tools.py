# SPDX-License-Identifier: MIT
"""The independent consumers, as far as they are here: who needs one that is not is skipped."""
import json
import os
import re
import shutil
import subprocess
import unittest

import support

HERE = os.path.dirname(os.path.abspath(__file__))
FLAMEGRAPH_PL = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
PATIENCE_S = 170


def run(*command, **options):
    """What it prints; it has to end well and to say nothing on stderr."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=PATIENCE_S, **options)
    if result.returncode:
        raise AssertionError("%s: %d %s" % (command[0], result.returncode,
                                            result.stderr.decode(errors="replace")[-2000:]))
    return result.stdout.decode("utf-8")


def absent(what, package):
    raise unittest.SkipTest("no %s here (%s)" % (what, package))


def program(name, package):
    return shutil.which(name) or absent(name, package)


def file(path, package):
    return path if os.path.exists(path) else absent(os.path.basename(path), package)


def npm(*packages):
    """The folder whose node_modules has them, and a node to run it with."""
    node = program("node", "nodejs")
    folder = run(os.path.join(support.ROOT, "scripts", "consumers"), "--path").strip()
    for package in packages:
        file(os.path.join(folder, "node_modules", package), "npm's %s, scripts/consumers" % package)
    return node, folder


def in_browser(script, *arguments):
    """The JSON that one of our scripts prints that drives chromium."""
    node, folder = npm("playwright-core")
    file(os.environ.get("PYSAMPLE_CHROMIUM", "/usr/bin/chromium"), "chromium")
    return json.loads(run(node, os.path.join(HERE, script), folder, *arguments))


def node_major(command):
    found = re.match(r"v(\d+)", run(*command, "--version"))
    return int(found.group(1))


def testbed_with(path, package):
    """The root of the testbed, if it has that."""
    root = run(os.path.join(support.ROOT, "scripts", "testbed"), "--path").strip()
    if os.geteuid():
        absent(package, "the testbed needs root")
    file(root + path, package + " of the testbed, scripts/testbed")
    return root
