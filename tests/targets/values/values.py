# SPDX-License-Identifier: MIT
"""Holds values of every kind in the variables of its frames, and reports them.

Names and values are the interpreter's own account of its frames (f_locals), as repr() shows them.
Values that are not builtins are written down here as pysample shows them. Runs on CPython 3.6 and
newer.
"""
import collections
import enum
import json
import os
import sys

from ready import announce

_read_end, _write_end = os.pipe()
MAX_DECIMAL = 1 << 14310
LONGEST = 2000  # characters of a value in the report
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)
PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, set,
         frozenset, dict, type(...), type(NotImplemented), type, type(len), type(json.dumps))


class Order:
    def __init__(self, number):
        self.id = number
        self.total = 3.5
        self.name = "it's"
        self.inside = [1, None]


class Slots:
    __slots__ = ("beta", "alpha", "unset")

    def __init__(self):
        self.alpha, self.beta = 1, "two"


class MoreSlots(Slots):
    __slots__ = ("gamma",)

    def __init__(self):
        super().__init__()
        self.gamma = 3.0


class Parted:
    """Its attributes are in another order than those of other instances."""

    def __init__(self, first):
        if first:
            self.a = 1
        self.b, self.c = 2, 3


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    pass


class Numbers(list):
    pass


class Fails(Exception):
    pass


Point = collections.namedtuple("Point", "x y")


def attributes(value):
    """The names and values of an object's attributes, in pysample's order."""
    found = list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        for name in sorted(kind.__dict__.get("__slots__", ())):
            if hasattr(value, name):
                found.append((name, getattr(value, name)))
    return found


def shown(value, inside=False):
    kind = type(value)
    if kind is int and abs(value) >= MAX_DECIMAL:
        return hex(value)
    if kind is list and value and type(value[0]) is Slots:
        return "[%s]" % ", ".join(shown(item, inside) for item in value)
    if isinstance(value, type):
        return type.__repr__(value)
    if kind in PLAIN:
        return repr(value)
    if isinstance(value, BaseException):
        return kind.__name__ + "(" + ", ".join(map(repr, value.args)) + ")"
    if kind is type(json):
        return "<module %r>" % value.__name__
    if kind is type(value_method):
        owner = value.__self__
        return "<bound method %s of %s object at %#x>" % (
            value.__func__.__qualname__, type(owner).__name__, id(owner))
    text = "<%s at %#x" % (kind.__name__, id(value))
    for base in (int, str, list, tuple, dict):
        if isinstance(value, base):
            return "%s %s>" % (text, base.__repr__(value))
    if not inside:
        for name, attribute in attributes(value):
            text += " %s=%s" % (name, shown(attribute, True))
    return text + ">"


def cell_kinds(code):
    """The kind of each variable of a function."""
    nr_arguments = code.co_argcount + code.co_kwonlyargcount
    nr_arguments += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    kinds = dict.fromkeys(code.co_freevars, "free")
    kinds.update(dict.fromkeys(code.co_cellvars, "local"))
    kinds.update(dict.fromkeys(code.co_varnames, "local"))
    kinds.update(dict.fromkeys(code.co_varnames[:nr_arguments], "argument"))
    return kinds


def truth_of(frame):
    """The variables of functions. What a class body has of those around it has no truth here."""
    kinds = cell_kinds(frame.f_code)
    names = [name for name in frame.f_locals if name in kinds]
    return {"name": frame.f_code.co_name,
            "arguments": [name for name in frame.f_code.co_varnames
                          if kinds[name] == "argument" and name in names],
            "variables": {name: [kinds[name], shown(frame.f_locals[name])[:LONGEST]]
                          for name in names}}


def report():
    """Report all functions that are running, and stay."""
    frame = sys._getframe(1)
    truths = []
    while frame.f_back:
        truths.append(truth_of(frame))
        frame = frame.f_back
    announce(frames=truths[::-1], parking=_read_end)
    os.read(_read_end, 1)


def numbers(then):
    none, true, false, ellipsis, other = None, True, False, ..., NotImplemented
    zero, one, minus, digit, two_digits = 0, 1, -1, (1 << 30) - 1, 1 << 30
    three_digits, wide, below = 1 << 60, 10**90 + 7, -(10**40)
    longest_decimal, hexadecimal, below_that = MAX_DECIMAL - 1, MAX_DECIMAL, -3 * MAX_DECIMAL
    million_digits = 1 << 3321928
    floats = [0.0, -0.0, 1.0, 0.1, 1e16, 1e-5, 1 / 3, 5e-324, 2.0**-44, 1.5e300]
    odd_floats = [float("inf"), float("-inf"), float("nan"), 123456.789, -2.5, 1e22]
    complexes = [1j, 1 + 2j, -0.5 - 1j, complex(0, float("inf"))]
    then()


def texts(then):
    empty, plain, single, double, both = "", "plain", "it's", 'say "x"', """both ' and " """
    escapes, controls, latin, greek = "\t\n\r\\", "\0\x1b[31m\x7f", "gr\xfc\xdf\xa0", "\u03b1\u0394"
    wide, surrogate, turned = "\U0001f600 smile", "\ud800\udc80", "a\u202eb\u2066c\u200b"
    long = "x" * 1000
    long_wide = "\u4e2d" * 300
    nothing, data, array, quoted = b"", b"abc\0\xff\n'", bytearray(b"xyz"), b"'\""
    long_data = b"\x01" * 70000
    no_array = bytearray()
    shifted = bytearray(b"0123456789")
    del shifted[:3]
    then()


def containers(then):
    no_list, no_tuple, no_set, no_frozen, no_dict = [], (), set(), frozenset(), {}
    items, single, nested = [1, "two", None], (1,), [[1, [2, (3, [4])]], {5: {6: "seven"}}]
    some, frozen = {1, 2, 3}, frozenset(["a"])
    removed_from = set(range(20))
    for number in range(18):
        removed_from.discard(number)
    by_text, mixed, by_other = {"a": 1, "b": [2]}, {1: "one", (2, 3): None}, {None: True}
    gone = {"a": 1, "b": 2, "c": 3}
    del gone["b"]
    emptied = dict.fromkeys(range(100), 0)
    for number in range(99):
        del emptied[number]
    many, large, large_dict, large_set = list(range(300)), tuple(range(99999)), {}, set()
    for number in range(200000):
        large_dict[number] = number
        large_set.add(number)
    itself = [1]
    itself.append(itself)
    dict_itself = {}
    dict_itself["me"] = dict_itself
    through = ([],)
    through[0].append(through)
    then()


def objects(then):
    order, slots, more_slots, bare = Order(7), Slots(), MoreSlots(), object()
    parted, whole = Parted(False), Parted(True)
    changed = Order(8)
    changed.more = "x"
    del changed.total
    of_dict = Order(9)
    its_dict = of_dict.__dict__
    own_dict = Order(10)
    own_dict.__dict__ = {"only": 1}
    nested = Order(11)
    nested.inside = Order(12)
    among = [Slots()]
    colour, text, count, point = Colour.RED, Text("abc"), Numbers([1, 2]), Point(1, "y")
    fails, fails_twice, fails_plainly = Fails("it", 1), ValueError("x"), KeyError()
    classes, function, module = Order, report, json
    inner_class, builtin, method = Colour, len, order.__init__
    method_of_list = count.append
    then()


def arguments(first, second=2, *rest, by_name, by_name_too="n", **others):
    local = first
    del first
    later = None
    del later
    others["then"]()


def closures(then, kept, changed):
    local_of_both = ["shared"]
    not_shared = 1

    def inside(own):
        nonlocal changed
        changed = [kept, own]
        local_of_both.append(own)
        then()

    inside("own")


def comprehension(then):
    factor = 3
    return [(lambda: factor + item, item, then()) for item in [5]]


def generator(then):
    inner = "of the generator"
    yield inner
    then()
    yield None


def from_generator(then):
    running = "it runs"
    for value in generator(then):
        last = value


def value_in_class(then):
    class Body:
        attribute = "of the class"
        then()


class Holder:
    def method(self):
        pass


value_method = Holder().method


def chain(functions):
    """Call the first, which calls the next, and so on; the last one calls report()."""
    if not functions:
        report()
    functions[0](lambda: chain(functions[1:]))


def call_arguments(then):
    arguments(1, by_name="b", then=then)


def call_more_arguments(then):
    arguments([1], "s", 3, 4, by_name=None, by_name_too=(), then=then)


def call_closures(then):
    closures(then, "kept", "old")


chain([numbers, texts, containers, objects, call_arguments, call_more_arguments, call_closures,
       comprehension, from_generator, value_in_class])
