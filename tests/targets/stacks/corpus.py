# SPDX-License-Identifier: MIT
"""Parked in every situation that has ever confused a stack walker; see parking.py.

Runs on CPython 3.6 and newer. Situations that a version does not have are left out. Lines are
tested by statements.py and its companions.
"""
import abc
import asyncio
import collections
import contextlib
import functools
import gc
import importlib
import json
import operator
import os
import re
import shutil
import signal
import sys
import tempfile
import weakref

import parking
import statements

try:
    import contextvars
    import dataclasses
except ImportError:  # 3.6
    contextvars = dataclasses = None

SITUATIONS = []
COLD_ONLY = []


def situation(function):
    """Park twice: in code that runs for the first time, and in specialised code."""
    SITUATIONS.append(function)
    return function


def situation_once(function):
    """Park once: the situation cannot be repeated."""
    COLD_ONLY.append(function)
    return function


def since(minor, decorator):
    """The decorator from 3.MINOR on; before, one that changes nothing."""
    return decorator if sys.version_info >= (3, minor) else lambda function: function


def run_coroutine(coroutine):
    if hasattr(asyncio, "run"):  # 3.7 and newer
        return asyncio.run(coroutine)
    return asyncio.new_event_loop().run_until_complete(coroutine)


# ---- calls -----------------------------------------------------------------


@situation
def call_over_several_lines(park):
    return dict(
        a=1,
        b=[
            len("something else"),
            park(),
        ],
        c=3,
    )


@situation
def chained_calls(park):
    class Query:
        def where(self, *_):
            return self

        def run(self, action):
            return action()

    return (
        Query()
        .where(1)
        .where(
            2,
        )
        .run(
            park
        )
    )


def decorated_by(label):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        wrapper.label = label
        return wrapper

    return decorate


@situation
@decorated_by("outer")
@decorated_by(
    "inner"
)
def decorated(park):
    return park()


@situation
def lambdas(park):
    return (lambda: (lambda n:
                     (n, park()))(1))()


@situation
def nested_functions_and_classes(park):
    def middle():
        class Inner:
            class Innermost:
                def method(self):
                    def deepest(*, key):
                        return key()

                    return deepest(key=park)

        return Inner.Innermost().method()

    return middle()


@situation
def defaults_and_starred(park):
    def many(a, b=2, c=3, *args, d, e=5, **kwargs):
        return park(), a, b, c, args, d, e, kwargs

    return many(*[1, 2, 3, 4, 5], **{"d": 1, "z": 26})


@situation
def cells_and_closures(park):
    total = 0

    def add():
        nonlocal total
        total += 1
        park()

    add()
    return total


# ---- comprehensions and generators -----------------------------------------


@situation
def list_comprehension(park):
    return [
        n
        for n in range(3)
        if n < 2 or
        park()
    ]


@situation
def nested_comprehensions(park):
    return {n: {m for m in [park() for _ in range(1)]} for n in range(1)}


@situation
def generator_expression(park):
    return any(park() for _ in range(1))


def counting(park, last):
    for n in range(last + 1):
        if n == last:
            park()
        yield n


@situation
def generator_on_top_of_for(park):
    for n in counting(park, 30):
        pass
    return n


@situation
def generator_on_top_of_next(park):
    return next(counting(park, 0))


@situation
def generator_on_top_of_c(park):
    return list(counting(park, 3))


@situation
def generator_in_the_middle(park):
    def producer():
        for n in range(30):
            yield consume(n)

    def consume(n):
        return park() if n == 29 else n

    return [n for n in producer()]


@situation
def generator_sent_to(park):
    def echo():
        while True:
            if (yield) == "park":
                park()

    generator = echo()
    next(generator)
    for n in range(20):
        generator.send(n)
    generator.send("park")


@situation
def generator_thrown_into(park):
    def catcher():
        try:
            yield
        except KeyError:
            park()
            yield

    generator = catcher()
    next(generator)
    generator.throw(KeyError())


@situation
def generator_closed(park):
    def closing():
        try:
            yield
        finally:
            park()

    generator = closing()
    next(generator)
    generator.close()


@situation
def yield_from_chain(park):
    def link(depth):
        if depth:
            yield from link(depth - 1)
        else:
            yield from counting(park, 10)

    return sum(link(12))


@situation
def suspended_generators_around(park):
    waiting = [counting(int, 5) for _ in range(4)]
    for generator in waiting:
        next(generator)
    created = counting(park, 0)  # not begun yet
    park()
    return waiting, created


@situation
def iterator_class(park):
    class Iterator:
        def __iter__(self):
            return self

        def __next__(self):
            park()
            raise StopIteration

    for _ in Iterator():
        pass


# ---- coroutines -------------------------------------------------------------


@situation
def coroutine_without_loop(park):
    async def outer():
        return await middle()

    async def middle():
        return await inner()

    async def inner():
        return park()

    try:
        outer().send(None)
    except StopIteration:
        pass


@situation
def coroutines_under_asyncio(park):
    async def main():
        await asyncio.sleep(0)
        return await asyncio.gather(waiter(), worker(3))

    async def waiter():
        await asyncio.sleep(0.001)

    async def worker(depth):
        if depth:
            await worker(depth - 1)
        else:
            await asyncio.sleep(0)
            park()

    run_coroutine(main())


@situation
def async_generator(park):
    async def numbers():
        for n in range(20):
            if n == 19:
                park()
            yield n

    async def main():
        async for n in numbers():
            await asyncio.sleep(0)
        return [n async for n in numbers()]

    run_coroutine(main())


@since(7, situation)
def async_with(park):
    @contextlib.asynccontextmanager
    async def managed():
        await asyncio.sleep(0)
        park()
        yield

    async def main():
        async with managed():
            pass

    run_coroutine(main())


# ---- special methods and attributes ----------------------------------------


class Special:
    def __init__(self, park):
        self.action = park

    @property
    def attribute(self):
        return self.action()

    @classmethod
    def of_class(cls, park):
        return park()

    @staticmethod
    def static(park):
        return park()

    def __getattr__(self, name):
        return self.action()

    def __call__(self):
        return self.action()

    def __getitem__(self, index):
        return self.action()

    def __contains__(self, item):
        return self.action()

    def __add__(self, other):
        return self.action()

    def __bool__(self):
        return bool(self.action())

    def __str__(self):
        return str(self.action())

    def __format__(self, spec):
        return str(self.action())

    def __lt__(self, other):
        return self.action()

    def __eq__(self, other):
        return self.action()

    def __hash__(self):
        return self.action()

    def __enter__(self):
        return self.action()

    def __exit__(self, *_):
        return None


SPECIAL_USES = {
    "property": lambda park: Special(park).attribute,
    "class method": Special.of_class,
    "static method": Special.static,
    "__getattr__": lambda park: Special(park).missing,
    "__call__": lambda park: Special(park)(),
    "__getitem__": lambda park: Special(park)[0],
    "__contains__": lambda park: 1 in Special(park),
    "__add__": lambda park: Special(park) + 1,
    "__bool__": lambda park: not Special(park),
    "__str__": lambda park: "%s" % Special(park),
    "__format__": lambda park: f"{Special(park):>3}",
    "__lt__": lambda park: min(Special(park), Special(park)),
    "__eq__": lambda park: Special(park) == 1,
    "__hash__": lambda park: {Special(park)},
}


@since(8, situation)
def cached_property(park):
    """Has a class of its own: before 3.12 all objects of a class share a lock."""

    class Cached:
        @functools.cached_property
        def attribute(self):
            return park()

    return Cached().attribute


@situation
def with_statement(park):
    with Special(park):
        pass


@situation
def context_manager(park):
    @contextlib.contextmanager
    def managed():
        yield 1
        park()

    with managed() as n:
        del n


class Base:
    def __init__(self, park):
        self.result = park()


class Derived(Base):
    def __init__(self, park):
        super().__init__(
            park
        )


@situation
def init(park):
    return Base(park)


@situation
def init_through_super(park):
    return [Derived(park) for _ in range(1)]


@situation
def new(park):
    class Made:
        def __new__(cls, action):
            action()
            return super().__new__(cls)

    return Made(park)


@since(7, situation)
def dataclass_post_init(park):
    @dataclasses.dataclass
    class Point:
        x: int

        def __post_init__(self):
            park()

    return Point(1)


@situation
def metaclass(park):
    class Meta(type):
        def __new__(mcs, name, bases, namespace, **kwargs):
            made = super().__new__(mcs, name, bases, namespace)
            park()
            return made

        def __call__(cls):
            return super().__call__()

    class Made(metaclass=Meta, option=1):
        pass

    return Made()


@situation
def class_body(park):
    class Outer:
        class Inner:
            value = park()

    return Outer


@situation
def class_hooks(park):
    class Hooked:
        def __init_subclass__(cls, **kwargs):
            park()

    class Sub(Hooked):
        pass

    return Sub


@situation
def set_name(park):
    class Named:
        def __set_name__(self, owner, name):
            park()

    class Owner:
        attribute = Named()

    return Owner


@situation
def abstract_subclass_check(park):
    class Checked(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            park()
            return True

    class Asked:
        pass

    return isinstance(Asked(), Checked)


# ---- C code that calls back --------------------------------------------------


@situation
def sorted_key(park):
    return sorted([3, 1, 2], key=lambda n: n if n > 1 else park())


@situation
def map_and_reduce(park):
    def add(a, b):
        return a + b if b < 3 else park()

    return functools.reduce(add, map(lambda n: n + 1, range(4)))


@situation
def c_in_between_twice(park):
    def inner(_):
        return park()

    def outer(_):
        return list(map(inner, [1]))

    return max([1], key=outer)


@situation
def regular_expression(park):
    return re.sub("b", lambda match: str(park()), "abc")


@situation
def json_default(park):
    def default(_):
        park()
        return 1

    return json.dumps({"a": [object()]}, default=default)


@situation
def iter_with_sentinel(park):
    def produce():
        park()

    return list(iter(produce, None))


@situation
def default_factory(park):
    def make():
        return park()

    return collections.defaultdict(make)["missing"]


@situation
def cached_function(park):
    @functools.lru_cache()
    def compute(n):
        return park()

    return compute(1)


@since(7, situation)
def single_dispatch(park):
    @functools.singledispatch
    def dispatched(_):
        return None

    @dispatched.register
    def _for_int(_: int):
        return park()

    return dispatched(1)


@since(7, situation)
def context_run(park):
    def inside():
        return park()

    return contextvars.copy_context().run(inside)


@situation
def method_caller(park):
    class Called:
        def method(self):
            return park()

    return operator.methodcaller("method")(Called())


@situation
def ctypes_callback(park):
    try:
        import ctypes
    except ImportError:
        return park()

    def callback():
        park()
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int)(callback)()


# ---- ends of life ------------------------------------------------------------


class Mortal:
    def __init__(self, park):
        self.action = park

    def __del__(self):
        self.action()


@situation
def del_statement(park):
    mortal = Mortal(park)
    del mortal


@situation
def del_of_a_dying_frame(park):
    """A frame's locals are destroyed when the frame is already on its way out."""

    def owner():
        mortal = Mortal(park)
        other = [mortal]
        return len(other)

    return owner()


@situation
def del_of_dying_frames_in_a_row(park):
    class Chain:
        def __init__(self, depth):
            self.depth = depth

        def __del__(self):
            if self.depth:
                hold(self.depth - 1)
            else:
                park()

    def hold(depth):
        chain = Chain(depth)
        return chain.depth

    return hold(3)


@situation
def del_in_a_container(park):
    container = {"key": [Mortal(park)]}
    container.clear()


@situation
def weak_reference_callback(park):
    class Referred:
        pass

    referred = Referred()
    reference = weakref.ref(referred, lambda _: park())
    del referred
    return reference


@situation_once
def garbage_collection(park):
    """Only one thread can be inside the collector."""
    first, second = Mortal(park), Mortal(int)
    first.other, second.other = second, first
    del first, second
    gc.collect()


# ---- exceptions ----------------------------------------------------------------


@situation
def except_and_finally(park):
    def fails():
        raise ValueError("expected")

    try:
        try:
            fails()
        except ValueError as error:
            raise KeyError("other") from error
        finally:
            park()
    except KeyError:
        pass


@situation
def except_clause(park):
    try:
        {}["missing"]
    except KeyError:
        park()


# ---- code from elsewhere ---------------------------------------------------------


@situation
def executed_text(park):
    source = "def inside():\n    park()\n\ninside()\n"
    exec(source, {"park": park})


@since(8, situation)
def executed_with_odd_names(park):
    """Names that would break a line of collapsed stacks, or a terminal."""

    def template(park):
        park()

    name = "a;b\n\x1b[31m c"
    names = {"co_name": name, "co_qualname": name, "co_filename": "/x;y/\t\"z\"\\.py"}
    code = template.__code__
    code = code.replace(**{key: value for key, value in names.items() if hasattr(code, key)})
    type(template)(code, {})(park)


@situation
def file_name_that_is_not_utf8(park):
    source = "def inside(park):\n    park()\n"
    namespace = {}
    exec(compile(source, "/x/\udcff\udc80.py", "exec"), namespace)
    namespace["inside"](park)


@situation
def evaluated_expression(park):
    return eval("[park() for _ in '1']", {"park": park})


@situation_once
def far_apart_lines(park):
    """Line numbers that need every form of the location table, forwards and backwards."""
    source = "\n" * 70000 + "def far(park):\n" + "\n" * 9000 + "    return (1,\n" + "\n" * 300
    source += "        park(\n" + "\n" * 200 + "        ))\n"
    namespace = {}
    exec(compile(source, "far.py", "exec"), namespace)
    namespace["far"](park)


@since(8, situation)
def no_line_numbers(park):
    """A code object whose line table is empty."""

    def template(park):
        park()

    table = "co_linetable" if hasattr(template.__code__, "co_linetable") else "co_lnotab"
    code = template.__code__.replace(**{table: b""})
    type(template)(code, {})(park)


@situation_once
def long_function(park):
    body = "".join("    x = x + %d\n" % n for n in range(4000))
    namespace = {}
    exec("def long(park):\n    x = 0\n" + body + "    return park(), x\n", namespace)
    namespace["long"](park)


MODULE = """\
def café(park):
    return naïve(park)

def naïve(park): return Δοκιμή().λόγος(park)

class Δοκιμή:
    def λόγος(self, park):
        return 日本語(
            park)

def 日本語(park):
    def 𐌰𐌱𐌲(_):
        return park()
    return [𐌰𐌱𐌲(𠀀) for 𠀀 in [1]]
"""
FOLDER = tempfile.mkdtemp(prefix="corpus-")
with open(os.path.join(FOLDER, "módulo_日本_𐌰.py"), "w", encoding="utf-8") as file:
    file.write(MODULE)
with open(os.path.join(FOLDER, "imported_while_parked.py"), "w", encoding="utf-8") as file:
    file.write("import parking\n\ndef at_import():\n    parking.park()\n\nat_import()\n")
sys.path.append(FOLDER)


@situation
def names_of_every_width(park):
    importlib.import_module("módulo_日本_𐌰").café(park)


@situation_once
def importing(park):
    """Has frozen frames. The module has its own park."""
    import imported_while_parked


# ---- depth -------------------------------------------------------------------------


def recurse(depth, park):
    if depth == 0:
        return park()
    return recurse(depth - 1, park)


@situation
def recursion_500(park):
    return recurse(500, park)


@situation_once
def recursion_over_many_chunks(park):
    return recurse(3000, park)


@situation
def back_from_the_deep(park):
    """Chunks that were given back are above the stack."""
    recurse(400, int)
    return recurse(3, park)


def ping(depth, park):
    return pong(depth - 1, park) if depth else park()


def pong(depth, park):
    return list(map(lambda d: ping(d, park), [depth]))


@situation
def recursion_through_c(park):
    return ping(60, park)


@situation_once
def huge_frame(park):
    """One frame that is larger than an ordinary chunk."""
    names = "".join("    v%d = %d\n" % (n, n) for n in range(4000))
    namespace = {}
    exec("def huge(park):\n" + names + "    return nested(park)\n"
         "def nested(park):\n    park()\n", namespace)
    namespace["huge"](park)


# ---- tracing -------------------------------------------------------------------------


@situation_once
def profile_function(park):
    def profiler(frame, event, arg):
        if event == "call" and frame.f_code is profiled.__code__:
            park()

    def profiled():
        return 1

    sys.setprofile(profiler)
    profiled()


@situation_once
def trace_function(park):
    def tracer(frame, event, arg):
        if frame.f_code is not traced.__code__:
            return None
        if event == "line" and frame.f_lineno == frame.f_code.co_firstlineno + 2:
            park()
        return tracer

    def traced():
        first = 1
        second = 2
        return first + second

    sys.settrace(tracer)
    traced()


# ---- threads that threading does not know ---------------------------------------------


def raw_function():
    parking.park()


def raw_generator():
    yield parking.park()


RAW_THREADS = [
    ("raw function", raw_function, ()),
    ("nothing but a generator", raw_generator().__next__, ()),
    ("no Python frame", parking.park, ()),
]


def signal_handler(park):
    def handler(number, frame):
        park()

    signal.signal(signal.SIGUSR1, handler)
    while True:  # CPython 3.10 may forget a signal that another thread received
        os.kill(os.getpid(), signal.SIGUSR1)


def main():
    gc.disable()
    sys.setrecursionlimit(10000)
    repeated = list(SPECIAL_USES.items())
    repeated += [(function.__name__, function) for function in SITUATIONS]
    situations = repeated + [(name + ", warm", parking.warm(use)) for name, use in repeated]
    situations += [(function.__name__, function) for function in COLD_ONLY]
    situations += statements.situations()
    # The first thread that needs the module would load it, so load it before any is parked.
    importlib.import_module("módulo_日本_𐌰")
    parking.main(situations, RAW_THREADS, signal_handler,
                 before_report=functools.partial(shutil.rmtree, FOLDER))


if __name__ == "__main__":
    main()
