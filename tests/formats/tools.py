# SPDX-License-Identifier: MIT
"""The independent consumers that are installed. A test that needs another one is skipped."""
import functools
import json
import os
import re
import shutil
import subprocess
import threading
import unittest

import support

HERE = os.path.dirname(os.path.abspath(__file__))
FLAMEGRAPH_PL = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
PATIENCE_S = 170
BROWSER_PATIENCE_S = 700  # two looks of browser.mjs


def run(*command, errors="strict", **options):
    """Return what the command prints. It must succeed. errors: as for decode(), where a program
    is known to print what is not UTF-8."""
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=PATIENCE_S, **options)
    if result.returncode:
        raise AssertionError("%s: %d %s" % (command[0], result.returncode,
                                            result.stderr.decode(errors="replace")[-2000:]))
    return result.stdout.decode("utf-8", errors)


def absent(what, package):
    raise unittest.SkipTest("no %s here (%s)" % (what, package))


def program(name, package):
    return shutil.which(name) or absent(name, package)


def file(path, package):
    return path if os.path.exists(path) else absent(os.path.basename(path), package)


def npm(*packages):
    """A node, and the folder whose node_modules has the packages."""
    node = program("node", "nodejs")
    folder = run(os.path.join(support.ROOT, "scripts", "consumers"), "--path").strip()
    for package in packages:
        file(os.path.join(folder, "node_modules", package), "npm's %s, scripts/consumers" % package)
    return node, folder


@functools.lru_cache(maxsize=None)
def browser():
    """The only browser.mjs of this process, with which it ends."""
    node, folder = npm("playwright-core")
    file(os.environ.get("PYSAMPLE_CHROMIUM", "/usr/bin/chromium"), "chromium")
    return subprocess.Popen([node, os.path.join(HERE, "browser.mjs"), folder],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def in_browser(script, *wanted):
    """What the look() of one of our scripts returns for a page in Chromium."""
    process = browser()
    timer = threading.Timer(BROWSER_PATIENCE_S, process.kill)
    timer.start()
    try:
        question = [os.path.join(HERE, script), *wanted]
        process.stdin.write(json.dumps(question).encode("ascii") + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except BrokenPipeError:
        line = b""
    finally:
        timer.cancel()
    if not line:
        browser.cache_clear()
        raise AssertionError("%s: the browser has ended: %d" % (script, process.wait()))
    reply = json.loads(line)
    if "error" in reply:
        raise AssertionError("%s: %s" % (script, reply["error"]))
    return reply["answer"]


def node_major(command):
    found = re.match(r"v(\d+)", run(*command, "--version"))
    return int(found.group(1))


def testbed_with(path, package):
    """The testbed's root, if it has that path."""
    root = run(os.path.join(support.ROOT, "scripts", "testbed"), "--path").strip()
    if os.geteuid():
        absent(package, "the testbed needs root")
    file(root + path, package + " of the testbed, scripts/testbed")
    return root
