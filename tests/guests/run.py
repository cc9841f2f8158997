#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run the smoke tests in guests: run.py [--boot] [--counts FILE] [--evidence FILE] [GUEST]...

GUEST is amd64 or arm64; both by default. scripts/testbed makes them, and scripts/package the
static programs that are tested. --boot only prints the versions of the guest's kernel and interpreters.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import guest  # noqa: E402

VERSIONS = """\
echo "Linux $(uname -rm)"
for python in /usr/bin/python3.[0-9]*; do
	case $python in *-config) ;; *) "$python" --version ;; esac
done"""
# What takes seconds elsewhere may take minutes here.
TESTS = """
export PYSAMPLE=/pysample/program PYSAMPLE_PATIENCE_S=3600
"$PYSAMPLE" --version
python3 tests/live/run.py --all --jobs 1 --counts /tmp/counts tests/guests
echo "counts: $(cat /tmp/counts)"
"""
COUNTS = "counts: "
NOT_SHOWN = re.compile(r"not tested here: |slowest: |%s|testing /pysample" % COUNTS)
DURATION = re.compile(r"(?: \([0-9.]+ s\)| in \d+ s)$")


class CannotRun(Exception):
    """The tests are skipped; says why."""


def make_program(machine):
    """The static program of the sources as they are now."""
    if subprocess.run([os.path.join(ROOT, "scripts", "package"), "--program", machine.name],
                      stdout=sys.stderr, check=False).returncode:
        raise CannotRun("scripts/package could not make the program")
    return os.path.join(ROOT, "build-package", "pysample-" + machine.name)


def check_can_boot(architecture):
    for tool in guest.MACHINES[architecture].emulator[0], "cpio":
        if not shutil.which(tool):
            raise CannotRun("%s is not installed" % tool)
    if subprocess.run([os.path.join(ROOT, "scripts", "testbed"), "--" + architecture, "--make"],
                      stdout=sys.stderr, check=False).returncode:
        raise CannotRun("scripts/testbed --%s could not make it" % architecture)


def lines_of(architecture, files, command):
    with guest.booted(architecture, files, command) as lines:
        yield from (line for line in lines if not isinstance(line, int))


def test(architecture, transcript):
    """Returns [passed, failed, skipped]."""
    check_can_boot(architecture)
    files = {"program": make_program(guest.MACHINES[architecture])}
    for name in "tests", "scripts/testbed":
        files[name] = os.path.join(ROOT, name)
    counts = None
    for line in lines_of(architecture, files, VERSIONS + TESTS):
        if line.startswith(COUNTS):
            counts = [int(word) for word in line[len(COUNTS):].split()]
        if not NOT_SHOWN.match(line):
            print(line, flush=True)
            transcript.append(DURATION.sub("", line))
    return counts or [0, 1, 0]


def write_evidence(path, transcript):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Guests\n\nWhat `scripts/testbed --amd64` and `--arm64` made, booted by "
                   "qemu-system in software, and the smoke tests in\nthem "
                   "([testing.md](../testing.md#guests)). Written by `tests/guests/run.py "
                   "--evidence`; without times, which an emulator's\nclock does not mean. The "
                   "program is that of commit %s.\n" % subprocess.run(
                       ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE,
                       text=True, check=True).stdout.strip())
        for architecture, lines in transcript.items():
            file.write("\n## %s\n\n```\n%s\n```\n" % (architecture, "\n".join(lines)))


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--boot", action="store_true", help="print versions and run no test")
    parser.add_argument("--counts", metavar="FILE", help="write: passed failed skipped (numbers)")
    parser.add_argument("--evidence", metavar="FILE", help="write the transcript as a page")
    parser.add_argument("guests", metavar="GUEST", nargs="*", choices=[*guest.MACHINES, []],
                        default=[])
    return parser.parse_args()


def main():
    args = options()
    counts, transcript = [0, 0, 0], {}
    for architecture in args.guests or guest.MACHINES:
        try:
            if args.boot:
                print(*lines_of(architecture, {}, VERSIONS), sep="\n", flush=True)
                continue
            print("guest %s" % architecture, flush=True)
            found = test(architecture, transcript.setdefault(architecture, []))
        except CannotRun as why:
            print("skipped: guest %s: %s" % (architecture, why))
            found = [0, 0, 1]
        except guest.GuestFailed as why:
            print("FAILED: guest %s: %s" % (architecture, why))
            found = [0, 1, 0]
        counts = [sum(pair) for pair in zip(counts, found)]
    if args.counts:
        with open(args.counts, "w", encoding="ascii") as file:
            file.write("%d %d %d\n" % tuple(counts))
    if args.evidence:
        write_evidence(args.evidence, transcript)
    sys.exit(bool(counts[1]))


if __name__ == "__main__":
    main()
