# SPDX-License-Identifier: MIT
"""The programs that are measured, and which stacks each of them can have.

That follows from a program's text alone (tests/bench/programs), so that a stack that never
existed needs no second opinion. Where the text is too long for that, the program itself
reports which function calls which (programs/pairs.py).
"""
import dataclasses
import re
import subprocess

import support

from bench.stacks import without_thread


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    file: str
    argument: int | str | None
    possible: re.Pattern  # of the names of a stack, outermost first, joined by ";"
    possible_cut: re.Pattern  # of its innermost names, where outer ones were cut off
    parked: re.Pattern  # stacks of threads that wait for ever, which say nothing about time
    numbering: re.Pattern  # the part of a name in which functions that are alike differ
    nr_threads: int = 1
    quick: bool = False
    second: int | str | None = None  # second argument: a number of frames or threads, …
    times_itself: bool = False  # it accounts for its own time: stack_times.py

    def arguments(self, folder):
        return ["%s/%s.py" % (folder, self.file)] + [
            str(argument) for argument in (self.argument, self.second) if argument]

    def command(self, interpreter, folder):
        return interpreter.command() + ["-B"] + self.arguments(folder)

    def can_have(self, names, max_frames=None):
        """Whether it can ever have that stack. max_frames: the sampler keeps only this many
        innermost frames."""
        pattern = self.possible_cut if len(names) == max_frames else self.possible
        text = ";".join(without_thread(names))
        return bool(pattern.fullmatch(text) or self.parked.fullmatch(text))

    def is_parked(self, names):
        return bool(self.parked.fullmatch(";".join(without_thread(names))))

    @property
    def measures_threads(self):
        """Whether its time is measured by thread, too."""
        return self.nr_threads > 1 and not self.times_itself


@dataclasses.dataclass(frozen=True)
class PairedProgram(Program):
    """A stack is possible if each of its functions was seen to be called by the next outer one,
    under the interpreter with which the program was last started."""
    rounds: int = 0
    known: set = dataclasses.field(default_factory=set, compare=False, repr=False)

    def command(self, interpreter, folder):
        self.learn(interpreter, folder)
        return super().command(interpreter, folder)

    def learn(self, interpreter, folder):
        run = subprocess.run(
            interpreter.command() + ["-B", folder + "/pairs.py", str(self.rounds)]
            + self.arguments(folder), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=support.target_environment(folder), timeout=LEARNING_S)
        if run.returncode:
            raise RuntimeError("%s has no pairs under %s: %s" % (
                self.name, interpreter, run.stderr.strip()[-300:]))
        self.known.clear()
        self.known.update(tuple(line.split("\t")) for line in run.stdout.splitlines())

    def can_have(self, names, max_frames=None):
        names = without_thread(names)
        chain = names if len(names) == max_frames else ("",) + names  # "" calls the outermost
        return bool(names) and self.known.issuperset(zip(chain, chain[1:]))


LEARNING_S = 120  # a program that takes longer does not end
NEVER = re.compile(r"(?!)")


def program(file, argument, possible, possible_cut=NEVER, parked=NEVER, numbering=NEVER,
            nr_threads=1, quick=False, second=None, times_itself=False):
    name = "-".join([file] + [str(part) for part in (argument, second) if part])
    return Program(name, file, argument, re.compile(possible), re.compile(possible_cut),
                   re.compile(parked), re.compile(numbering), nr_threads, quick, second,
                   times_itself)


def paired(file, argument, rounds, parked=NEVER, nr_threads=1):
    name = "-".join([file] + ([argument] if argument else []))
    return PairedProgram(name, file, argument, NEVER, NEVER, re.compile(parked), NEVER, nr_threads,
                         rounds=rounds)


# ---- parts of patterns ---------------------------------------------------------------


def beginnings(names):
    """A pattern for the first none, one, two… of the names."""
    pattern = ""
    for name in reversed(names):
        pattern = "(;%s%s)?" % (name, pattern)
    return pattern


def within(name, classes):
    """A pattern for a function's name, which from 3.11 on includes where it is defined."""
    return r"(%s)?%s" % (re.escape(classes), name)


def chain(letter):
    return beginnings(["%s_%d" % (letter, i) for i in range(6)])


def generator(letter):
    return beginnings([part + letter for part in ("outer_", "inner_", "leaf_")])


def coroutine(letter):
    return r"(;send_%s(;outer_%s(;inner_%s(;leaf_%s|;pause)?)?)?)?" % ((letter,) * 4)


def sharing(letter):
    return beginnings(["by_" + letter, "shared", "leaf_" + letter])


def expression(letter):
    return beginnings(["add_" + letter, within("<genexpr>", "add_%s.<locals>." % letter),
                       "leaf_" + letter])


def driver(letter):
    """Every level of the recursion resumes the generator after the deeper ones have returned."""
    return r"((;drive_%s){1,20}%s)?" % (letter, beginnings(["shared", "leaf_" + letter]))


def wide(letter):
    return beginnings(["outer_" + letter, "inner_" + letter, "leaf_" + letter])


def dying(letter):
    """An object that dies when a function returns dies in the caller, so that the function and
    __del__ are never in one stack."""
    kind = "Dying" + letter.upper()
    return "(;make_%s(;%s|;work_%s)?|;%s(;leaf_%s)?)?" % (
        letter, within("__init__", kind + "."), letter, within("__del__", kind + "."), letter)


CALLS = r"calls(;leaf_b)?(;leaf_a)?"
PARKED = r"start(;descend){9};park"
MADE = (r"<module>;make(;<module>|;call_(?P<n>\d+)(;made_(?P=n)"
        r"(;(made_(?P=n)\.<locals>\.)?<lambda>(;leaf)?)?)?)?")
FRESH = r"<module>;churn(;<module>|;fresh_(?P<n>\d+)(;inner_(?P=n)(;leaf)?)?)?"


# Stacks that wait for a token, a task, a result, or for the GIL after send(2).
WAITING = r".*;((Condition\.)?wait|(Sockets\.)?(receive|send)|_worker)"


def alternate(of, depth=0):
    return "<module>%s;alternate(%s|%s)" % (";recurse" * depth, of("a"), of("b"))


ALL_PROGRAMS = [
    *(program("calls", depth, r"<module>(;recurse){%d};%s" % (depth, CALLS),
              r"(recurse;)+" + CALLS, quick=True)
      for depth in (10, 100, 1000)),
    *(program("flat", depth, r"<module>(;recurse){%d};flat" % depth, r"(recurse;)+flat")
      for depth in (10, 100, 1000)),
    program("chains", None, alternate(chain), quick=True),
    *(program("shared", steps, alternate(sharing)) for steps in (5, 30, 200)),
    # From 3.14 on a page boundary is in the head of the frame of the leaf, of shared, or of by_a
    # and by_b.
    *(program("shared", 5, alternate(sharing, depth), second=depth) for depth in (64, 65, 66)),
    program("generators", None, alternate(generator), quick=True),
    program("drivers", None, alternate(driver), quick=True),
    program("coroutines", None, alternate(coroutine), quick=True),
    program("genexprs", None, alternate(expression), quick=True),
    *(program("recursion", depth,
              r"<module>;alternate((;down_a){0,%d}|(;down_b){0,%d})" % (depth, depth),
              r"down_a(;down_a)*|down_b(;down_b)*", quick=depth == 300)
      for depth in (300, 1000, 5000)),
    program("locals", 1800, alternate(wide), quick=True),
    program("dying", None, alternate(dying), quick=True),
    program("churn", None, FRESH, numbering=r"_\d+$", quick=True),
    *(program("threads", count, r"<module>(;recurse){10};" + CALLS,
              parked=PARKED, nr_threads=count, quick=count in (1, 64))
      for count in (1, 8, 64, 256, 1000)),
    program("lambdas", None, MADE, numbering=r"_\d+"),
    program("period", None, r"<module>;tick(;work|;rest)?"),
    program("ccalls", None, r"<module>;pack_all(;pack|%s)?|hash_all(;digest|%s)?" % (
        beginnings(["before_pack", "leaf_pack"]), beginnings(["before_digest", "leaf_digest"])),
            nr_threads=2),
    program("allocator", None,
            r"<module>;fill_arrays(;make_array|;touch_array|%s)?"
            r"|fill_maps(;make_map|;touch_map|;free_map|%s)?" % (
                beginnings(["before_array", "leaf_array"]), beginnings(["before_map", "leaf_map"])),
            nr_threads=2, times_itself=True),
    *(paired("handoff", through, 100, WAITING, nr_threads=8)
      for through in ("semaphores", "queues", "sockets")),
    paired("pool", None, 200, WAITING, nr_threads=9),
    paired("aserver", None, 200),
    paired("minilang", None, 2),
    paired("templates", None, 2),
    paired("events", None, 2),
]

# Programs that count their own work: at a depth, or 10 deep beside waiting threads.
WORKERS = [*(program("work", depth, r"<module>(;recurse){%d};%s" % (depth, CALLS))
             for depth in (10, 100, 1000)),
           *(program("work", 10, r"<module>(;recurse){10};" + CALLS, parked=PARKED,
                     nr_threads=count, second=count) for count in (64, 1000))]

# Programs whose recordings are measured: many calls, deep recursion, several threads.
RECORDED = ["calls-10", "recursion-300", "threads-8"]

# Programs that are in step with a timer, or share their CPU: tick_clock.py.
CLOCKED = [program("clocked", kind,
                   r"<module>;alternate(;work|;%s(;.*)?)?" % within("rest", "rest_of.<locals>."),
                   second=milliseconds)
           for kind in ("socket", "poll", "sleep", "spin") for milliseconds in (1, 4, 10)]

# Programs of several processes: tree_*.py.
WORK = r"work_for_ever(;work(;parse|;compute|;render|;store)?)?"
TREES = [*(program("workers", kind, r"<module>(;start(;wait|;%s)?)?" % WORK, second=count)
           for kind, count in (("waiting", 1), ("waiting", 8), ("waiting", 64), ("busy", 64),
                               ("unequal", 8))),
         program("children", 1000, r"<module>(;start(;work)?)?", second=20),
         *(program("brief", 300, r"<module>(;.*)?", second=second)
           for second in (None, "children"))]

TASK_SERVER = program("task_server", 200, r"<module>(;.*)?")

IDLE = program("idle", None, r"<module>(;recurse){11}")


def tree(name):
    """The program of several processes that has this name."""
    return next(one for one in TREES if one.name == name)


def named(names):
    """The programs whose name or file is among the names."""
    return [one for one in ALL_PROGRAMS + WORKERS if {one.name, one.file} & set(names)]
