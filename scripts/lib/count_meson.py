# SPDX-License-Identifier: MIT
"""Prints the numbers "passed failed skipped" of meson's test logs (testlog*.json)."""
import json
import sys

counts = {"passed": 0, "failed": 0, "skipped": 0}
KINDS = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as log:
        for line in log:
            counts[KINDS.get(json.loads(line)["result"], "failed")] += 1
if not sum(counts.values()):
    sys.exit("no tests in %s" % sys.argv[1:])
print(*counts.values())
