#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the line table decoder with CPython's own, instruction by instruction.

    linetable_oracle.py CLI            test against the interpreter that runs this
    linetable_oracle.py --emit         only print the cases of this interpreter
    linetable_oracle.py --check CLI    only check such cases, read from stdin

CLI is built from tests/tools/linetable_cli.c. Use the last two for an interpreter
that lives where CLI cannot run:

    chroot ROOT python3.15 - --emit < linetable_oracle.py | linetable_oracle.py --check CLI

The output begins with the format of the table, as linetable_cli calls it. A
case is a line of text: first line, offset, table, "|", then the position that CPython
gives (co_positions(): line, column, end line, end column, -1 for None; before 3.11
only the line, of co_lines() on 3.10 and of dis.findlinestarts() before) and where it
is from. The last line is "end", so that truncated output is recognised. Needs
CPython 3.6 or newer, nothing but the standard library.
"""
import ast
import dis
import importlib.util
import itertools
import random
import subprocess
import sys
import types
import unittest

MODULES = """
    _collections_abc _pydecimal _pyio abc argparse ast asyncio.base_events asyncio.tasks
    base64 bisect calendar codecs collections concurrent.futures.thread configparser
    contextlib copy csv dataclasses datetime difflib dis email.message enum fnmatch
    fractions functools glob gzip heapq html.parser http.client http.cookies importlib
    importlib._bootstrap inspect io ipaddress json.decoder keyword linecache locale
    logging logging.config mimetypes multiprocessing.pool ntpath opcode os pathlib
    pickle pickletools platform plistlib posixpath pprint queue random re
    sched selectors shlex shutil socket ssl stat statistics string subprocess tarfile
    tempfile textwrap threading timeit token tokenize traceback types typing unittest.case
    unittest.mock urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile
""".split()

# Statements over several lines, with every construct that leaves a mark in the table.
NASTY = (
    """
def call(a, b,
         c=None, *, d=(
             1,
             2)):
    return call(
        a,

        call(b,
             call(c, d=
                  d)),
        c=[x
           for x
           in (
               a, b)
           if x]
    ) + \\
        call(a, b) ; a = \\
        b
""",
    """
@call
@call(
    1,
    2)
class Outer(
        Base, metaclass
        =Meta):
    '''doc
    string'''
    field: int = (
                  3)
    class Inner:
        def method(self): return lambda: (lambda *a:
            super().method(
                *a, **{}))
""",
    """
async def waits(it):
    async with it as a, \\
            it as b:
        async for x in it: await x; yield (await
            it)
    done = [y async for y in
            it if await y]
""",
    """
def handles():
    try:
        with a as b, c as d: return b
    except (ValueError,
            KeyError) as e:
        raise TypeError(
            e) from e
    except: pass
    finally:
        for i in range(3):
            if i: continue
            else: break
        else:
            del i
    for a, \\
            b in c:
        try: return a
        finally: call(
            b)
    while (a or
           b): a = f"{a!r:>{b}}" \\
        f"{b}"
""",
    """
def chains(x):
    assert x, (
            "no")
    global g; g = x if x else (
        not x)
    return 1 < x < \\
        3 < y
""",
    """
def umlauts(): return "\u00e4\u00f6\u00fc", "\U0001f600" + call("\u4e2d\u6587",
    "\u4e2d") + \u00e4(1)
""",
)
NASTY_SINCE = {
    8: (
        """
def walrus(a, b=1, /, *, c=(yielded :=
                            3)):
    while (d := call(
            a)) and (e :=
                     d): continue
    try: call()
    finally:
        for f in a:
            try: return f
            finally: continue
""",
    ),
    10: (
        """
def matches(x):
    match x:
        case {"a": [1, *rest], **kw} if (rest
                                         and kw):
            return rest
        case Point(x=0, y=(0 |
                           1)): return f"{x!r:>{y}} {x}"
        case _: pass
    with (call(x) as y,
          call(y)
          ): return y
""",
    ),
    11: (
        """
def groups():
    try: call()
    except* (
            OSError): pass
""",
    ),
    12: (
        "type Alias[T: (int,\n str)] = list[\nT]\ndef generic[T](\n x: T): return T\n",
        'def formats(x): return f"{x!r:>{\n x\n}} {\n x.y}" f"{\nx}"\n',
    ),
}


def nasty_texts():
    """The texts that this version can compile."""
    since = [texts for minor, texts in NASTY_SINCE.items() if sys.version_info >= (3, minor)]
    return list(itertools.chain(NASTY, *since))


def nasty_sources():
    yield from nasty_texts()
    yield "x = " + "f(" * 60 + ",\n".join("a" * 3 for _ in range(200)) + ")" * 60
    for width in (79, 80, 94, 127, 128, 200, 4095, 4096, 70000):
        yield "x = (" + " " * width + "f(a)" + " " * width + ", b.c)\n"
        yield "def f(): return" + " " * width + " a." + "b" * width + ".c\n"
    for gap in (1, 2, 3, 15, 31, 32, 63, 64, 1000, 40000):
        yield "f(a," + "\n" * gap + "b)(" + "\n" * gap + "c, d)\n" + "\n" * gap + "g()\n"


def nested(where, code):
    """Yield a code object and all code objects inside it, each with its origin."""
    yield where, code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from nested(where, const)


def library_codes():
    for name in MODULES:
        try:
            code = importlib.util.find_spec(name).loader.get_code(name)
        except (ImportError, AttributeError):  # not in this version or installation
            continue
        yield from nested(name, code)


def nasty_codes():
    for source in nasty_sources():
        yield from nested("<nasty>", compile(source, "<nasty>", "exec", dont_inherit=True))


def scattered_codes():
    """Code compiled from a syntax tree whose positions jump about or have no columns."""
    dice = random.Random(311)
    # The older tables need an entry for each step of 127 lines.
    scales = (3, 100, 10**6, 2**30) if FORMAT == "locations" else (3, 100, 400, 10**4)
    for source, scale in itertools.product(nasty_texts(), scales):
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno = dice.randint(1, scale)
                node.end_lineno = node.lineno + dice.choice((0, 0, 1, scale // 2))
                node.col_offset = dice.choice((0, 7, 79, 80, 128, 10**5))
                node.end_col_offset = node.col_offset + dice.choice((0, 1, 15, 16, 10**5))
                if dice.random() < 0.3:
                    node.end_lineno = node.lineno
                    node.col_offset = node.end_col_offset = -1
        code = compile(tree, "<scattered>", "exec", dont_inherit=True)
        yield from nested("<scattered>", code)


def with_table(code, table, first_line):
    if hasattr(code, "replace"):  # 3.8 and newer
        name = "co_lnotab" if FORMAT == "lnotab" else "co_linetable"
        return code.replace(co_firstlineno=first_line, **{name: table})
    return types.CodeType(
        code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
        code.co_flags, code.co_code, code.co_consts, code.co_names, code.co_varnames,
        code.co_filename, code.co_name, first_line, table, code.co_freevars, code.co_cellvars)


def varint(value):
    chunks = []
    while value >= 64:
        chunks.append(value & 63 | 64)
        value >>= 6
    return bytes(chunks + [value])


def svarint(value):
    return varint(-value << 1 | 1 if value < 0 else value << 1)


def random_pairs(dice, units):
    """One entry of an older table, as one or two pairs."""
    nones = [b"\x80"] if FORMAT == "ranges" else []
    deltas = [bytes([delta & 255]) for delta in (0, 1, -1, 5, -3, 126, 127, -127)] + nones
    extra = b"\0" + bytes([dice.choice((1, 127, 129))]) if dice.random() < 0.3 else b""
    return extra + bytes([2 * units]) + dice.choice(deltas)


def random_entry(dice, units):
    """One entry of any kind."""
    if FORMAT != "locations":
        return random_pairs(dice, units)
    kind = dice.randrange(16)
    head = bytes([0x80 | kind << 3 | units - 1])
    delta = svarint(dice.choice((0, 1, -1, 3, -3, 31, 32, -32, 5000, -5000, 10**6)))
    if kind < 10:
        return head + bytes([dice.randrange(128)])
    if kind < 13:
        return head + bytes([dice.randrange(128), dice.randrange(128)])
    if kind == 13:
        return head + delta
    if kind == 14:
        rest = (dice.choice((0, 1, 63, 64, 10**6)), dice.choice((0, 1, 64, 10**6)),
                dice.choice((0, 1, 64, 10**6)))
        return head + delta + b"".join(map(varint, rest))
    return head


def made_up_codes():
    """Real bytecode with valid tables that no compiler writes."""
    dice = random.Random(657)
    code = compile(NASTY[0], "<made up>", "exec", dont_inherit=True)
    for _ in range(200):
        table = b""
        units = len(code.co_code) // 2
        while units:
            length = dice.randint(1, min(8, units))
            table += random_entry(dice, length)
            units -= length
        first = dice.choice((1, 100, 10**8))
        yield "<made up>", with_table(code, table, first)


UNKNOWN = (-1, -1, -1)


def by_line_starts(code):
    lines = []
    starts = [start for start in dis.findlinestarts(code) if start[0] < len(code.co_code)]
    for (begin, line), (end, _) in zip(starts, starts[1:] + [(len(code.co_code), None)]):
        lines += [line] * ((end - begin) // 2)
    return [(known(line),) + UNKNOWN for line in lines]


def by_ranges(code):
    return [(known(line),) + UNKNOWN
            for begin, end, line in code.co_lines() for _ in range(begin, end, 2)]


def by_positions(code):
    for line, end_line, column, end_column in code.co_positions():
        if line is None or line < 0:
            yield (0,) + UNKNOWN
        else:
            yield (line,) + tuple(-1 if number is None else number
                                  for number in (column, end_line, end_column))


# linetable_cli's name for the tables of this version, and CPython's own decoder of them.
if sys.version_info >= (3, 11):
    FORMAT, positions_of = "locations", by_positions
elif sys.version_info >= (3, 10):
    FORMAT, positions_of = "ranges", by_ranges
else:
    FORMAT, positions_of = "lnotab", by_line_starts


def known(line):
    """Convert CPython's None and negative lines to the decoder's 0."""
    return max(line or 0, 0)


def cases(where, code):
    """The cases of a code object: each instruction, and one offset beyond each end."""
    table = (code.co_lnotab if FORMAT == "lnotab" else code.co_linetable).hex() or "-"
    first = code.co_firstlineno
    positions = list(positions_of(code))
    if len(positions) != len(code.co_code) // 2:
        raise AssertionError("%s: %d positions for %d units"
                             % (where, len(positions), len(code.co_code)))
    expected = [(-2, (first,) + UNKNOWN)]
    expected += [(2 * i, position) for i, position in enumerate(positions)]
    if FORMAT != "lnotab":  # lnotab has no end
        expected.append((2 * len(positions), (0,) + UNKNOWN))
    for offset, position in expected:
        yield f"{first} {offset} {table} | {' '.join(map(str, position))} {where}"
        table = "="


def all_cases(*groups):
    for group in groups:
        for where, code in group():
            name = getattr(code, "co_qualname", code.co_name)
            yield from cases(f"{where}:{name}".replace(" ", "_"), code)


def failures(cli, table_format, lines):
    """Run the cases through cli. Return their number and a line for each wrong one."""
    inputs, expected = [], []
    for line in lines:
        question, answer = line.rstrip("\n").split(" | ")
        inputs.append(question + "\n")
        expected.append(answer.rsplit(" ", 1))
    run = subprocess.run([cli, table_format], input="".join(inputs), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True)
    outputs = run.stdout.splitlines()
    wrong = [
        f"{where}: {question.split()[:2]}: expected {position}, not {output}"
        for question, (position, where), output in zip(inputs, expected, outputs)
        if position != output
    ]
    if run.returncode or len(outputs) != len(inputs):
        wrong.append(f"{cli}: status {run.returncode}, {len(outputs)} lines for "
                     f"{len(inputs)} cases\n{run.stderr}")
    return len(inputs), wrong


def emit():
    print(FORMAT)
    for case in all_cases(library_codes, nasty_codes, scattered_codes, made_up_codes):
        print(case)
    print("end")
    return 0


def check(cli, lines):
    """Check the output of emit() and print a summary. Return the exit status."""
    if not lines or lines[-1] != "end\n":
        print("the cases are incomplete", file=sys.stderr)
        return 1
    nr_cases, wrong = failures(cli, lines[0].strip(), lines[1:-1])
    print(*wrong[:20], f"{nr_cases} cases, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


class LinetableOracle(unittest.TestCase):
    cli = None

    def expect_same(self, group):
        nr_cases, wrong = failures(self.cli, FORMAT, all_cases(group))
        self.assertGreater(nr_cases, 1000)
        self.assertEqual(wrong[:20], [], f"{len(wrong)} of {nr_cases} cases are wrong")

    def test_standard_library(self):
        self.assertGreater(len({where for where, _ in library_codes()}), len(MODULES) // 2)
        self.expect_same(library_codes)

    def test_nasty_source(self):
        self.expect_same(nasty_codes)

    def test_scattered_positions(self):
        self.expect_same(scattered_codes)

    def test_made_up_tables(self):
        self.expect_same(made_up_codes)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--check":
        return check(arguments[1], sys.stdin.readlines())
    if len(arguments) != 1 or (arguments[0].startswith("-") and arguments[0] != "--emit"):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "--emit":
        return emit()
    LinetableOracle.cli = arguments[0]
    return not unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
