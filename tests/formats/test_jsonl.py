# SPDX-License-Identifier: MIT
"""JSON Lines, checked by the sums that DuckDB makes of them."""
import collections
import json
import os
import re
import unittest

import labels
import oracle
import subjects
import support
import tools

KINDS = ("python", "collector", "native", "jit", "kernel", "task")

LOAD = """
CREATE TABLE rows AS SELECT * FROM read_json('%s', format = 'newline_delimited',
    maximum_object_size = 100000000, columns = {
    type: 'VARCHAR', id: 'BIGINT', run: 'JSON', pid: 'BIGINT', command_line: 'VARCHAR',
    process: 'BIGINT', tid: 'BIGINT', name: 'VARCHAR', main: 'BOOLEAN', interpreter: 'BIGINT',
    frames: 'STRUCT(name VARCHAR, path VARCHAR, line INTEGER, first_line INTEGER, kind VARCHAR)[]',
    time_ns: 'BIGINT', thread: 'BIGINT', stack: 'BIGINT', wall_ns: 'BIGINT', cpu_ns: 'BIGINT',
    on_cpu: 'BOOLEAN', gil: 'BOOLEAN', waits_for_gil: 'BOOLEAN', gc: 'BOOLEAN',
    exception: 'BOOLEAN', jit: 'BOOLEAN', idle: 'BOOLEAN', approximate: 'BOOLEAN'});
CREATE VIEW seen AS SELECT s.* EXCLUDE (frames), k.frames FROM rows s JOIN rows k ON s.stack = k.id
    WHERE s.type = 'sample' AND k.type = 'stack';
"""

SELF = """
SELECT f.name, f.path, f.first_line, f.kind, count(*), sum(wall_ns) FROM
    (SELECT frames[-1] AS f, wall_ns FROM seen) GROUP BY ALL
"""

# Counts once, however often a function is in a stack.
TOTAL = """
SELECT f.name, f.path, f.first_line, f.kind, count(*), sum(wall_ns) FROM
    (SELECT unnest(list_distinct(list_transform(frames, lambda f: {
        'name': f.name, 'path': f.path, 'first_line': f.first_line, 'kind': f.kind}))) AS f,
        wall_ns FROM seen) GROUP BY ALL
"""

LINES = """
SELECT f.name, f.path, f.line, f.kind, count(*), sum(wall_ns) FROM
    (SELECT frames[-1] AS f, wall_ns FROM seen) GROUP BY ALL
"""

THREADS = """
SELECT p.pid, t.tid, t.name, t.main, t.interpreter, p.command_line, count(*),
    sum(s.wall_ns), sum(s.cpu_ns), min(s.time_ns), max(s.time_ns)
FROM seen s JOIN rows t ON s.thread = t.id JOIN rows p ON t.process = p.id
WHERE t.type = 'thread' AND p.type = 'process' GROUP BY ALL
"""

STATES = """
SELECT on_cpu, gil, waits_for_gil, gc, exception, jit, idle, approximate, count(*), sum(wall_ns)
    FROM seen GROUP BY ALL
"""


def numbers(rows, texts):
    """Convert integers that come as strings, being longer than 32 bits. texts: columns of real
    strings."""
    return [[int(value) if index not in texts and isinstance(value, str) else value
             for index, value in enumerate(row)] for row in rows]


def key(frame, line=None):
    function = frame.function
    if frame == oracle.IDLE:
        return (None,) * 4
    name = labels.decoded_by_javascript(labels.as_json(function.qualname))
    line = function.first_line if line is None else line
    return name, labels.as_json(function.path), line or None, KINDS[function.kind]


def state(sample):
    return (bool(sample.flags & oracle.ON_CPU) if sample.flags & oracle.CPU_MEASURED else None,
            *(bool(sample.flags & flag) for flag in (
                oracle.HOLDS_GIL, oracle.WAITS_FOR_GIL, oracle.GC, oracle.EXCEPTION,
                oracle.IN_JIT, oracle.WAITING, oracle.APPROXIMATE)))


class Jsonl(unittest.TestCase):
    def query(self, subject, question, texts=(0, 1, 3)):
        node, npm = tools.npm("@duckdb/node-api")
        path = subjects.report(subject.path, form="jsonl")
        return numbers(json.loads(tools.run(
            node, os.path.join(tools.HERE, "duckdb_query.mjs"), npm, LOAD % path, question)),
            texts)

    @subjects.each
    def check(self, subject, question, key, of):
        got = {tuple(row[:4]): tuple(row[4:]) for row in self.query(subject, question)}
        totals = subject.view().totals(key)
        subjects.assert_same(self, got, {name: tuple(getattr(total, of))
                                         for name, total in totals.items()
                                         if getattr(total, of).samples
                                         and (name[0] is not None or of == "self")})

    def test_self(self):
        self.check(SELF, key, "self")

    def test_total(self):
        self.check(TOTAL, key, "total")

    def test_lines(self):
        self.check(LINES, lambda frame: key(frame, frame.line), "self")

    @subjects.each
    def test_threads(self, subject):
        expected = {}
        for sample in subject.recording.samples:
            thread = subject.recording.thread_of(sample)
            process = subject.recording.process_of(sample)
            who = (process.pid, thread.tid or None, thread.name, thread.is_main, thread.interpreter,
                   process.command_line)
            before = expected.get(who, (0, 0, None, sample.time, 0))
            cpu = sample.cpu if sample.flags & oracle.CPU_MEASURED else None
            expected[who] = (before[0] + 1, before[1] + sample.wall,
                             before[2] if cpu is None else (before[2] or 0) + cpu,
                             min(before[3], sample.time), max(before[4], sample.time))
        got = {tuple(row[:6]): tuple(row[6:]) for row in self.query(subject, THREADS, (2, 5))}
        subjects.assert_same(self, got, expected)

    @subjects.each
    def test_states(self, subject):
        expected = collections.defaultdict(lambda: oracle.NOTHING)
        for sample in subject.recording.samples:
            expected[state(sample)] = oracle.plus(expected[state(sample)],
                                                  oracle.Weight(1, sample.wall))
        got = {tuple(row[:-2]): tuple(row[-2:]) for row in self.query(subject, STATES, ())}
        subjects.assert_same(self, got, dict(expected))


def documented(database):
    """The statements for a database in docs/formats.md."""
    text = support.read(os.path.join(support.ROOT, "docs", "formats.md"))
    block = re.search(r"^In %s\b[^\n]*:\n\n```sql\n(.*?)```\n" % database, text, re.M | re.S)[1]
    return [statement.strip() for statement in block.split(";") if statement.strip()]


class Document(unittest.TestCase):
    """The queries in docs/formats.md, run as they are printed there."""

    def query(self, subject, number):
        """Rows of names and a sum in seconds, the largest first."""
        node, npm = tools.npm("@duckdb/node-api")
        table, *questions = documented("DuckDB")
        self.assertEqual(len(questions), 2)
        with support.fresh_folder() as (folder, _):
            os.symlink(subjects.report(subject.path, form="jsonl"),
                       os.path.join(folder, "profile.jsonl"))
            return numbers(json.loads(tools.run(
                node, os.path.join(tools.HERE, "duckdb_query.mjs"), npm, table, questions[number],
                cwd=folder)), (0, 1))

    @subjects.each
    def check(self, subject, number, nr_names, of):
        totals = subject.view().totals(lambda frame: key(frame)[:nr_names])
        expected = {names: getattr(total, of).ns for names, total in totals.items()
                    if getattr(total, of).samples and (names[0] is not None or of == "self")}
        largest = sorted(expected.values(), reverse=True)[:20]
        rows = [(tuple(names), seconds) for *names, seconds in self.query(subject, number)]
        self.assertEqual([seconds for _, seconds in rows], [ns / 1e9 for ns in largest])
        self.assertEqual(len(dict(rows)), len(rows))
        for names, seconds in rows:
            self.assertEqual(seconds, expected[names] / 1e9, names)

    def test_self(self):
        self.check(0, 2, "self")

    def test_total(self):
        self.check(1, 3, "total")

    def test_clickhouse(self):
        self.assertEqual(len(documented("ClickHouse")), 1)
        self.skipTest("not tested here: the query for ClickHouse in docs/formats.md")
