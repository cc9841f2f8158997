# SPDX-License-Identifier: MIT
"""An interpreter of a small language: a lexer, a parser, and an evaluator of syntax trees.

The language has numbers, lists, functions with closures, if, while and return. Its programs
compute Fibonacci numbers and primes, sort, and use closures, again and again.
"""
import collections
import operator
import re

import ready

FIBONACCI = """
let fib = fn(n) {
    if n < 2 { return n; }
    return fib(n - 1) + fib(n - 2);
};
let sum = 0;
while sum < 100 { sum = sum + fib(6); }
sum;
"""

PRIMES = """
let is_prime = fn(n) {
    let divisor = 2;
    while divisor * divisor <= n {
        if n % divisor == 0 { return false; }
        divisor = divisor + 1;
    }
    return true;
};
let primes = [];
let n = 2;
while n < 60 {
    if is_prime(n) { push(primes, n); }
    n = n + 1;
}
len(primes);
"""

SORT = """
let numbers = fn(count) {
    let list = [];
    let n = 7;
    while len(list) < count {
        n = (n * 25 + 13) % 101;
        push(list, n);
    }
    return list;
};
let merge = fn(a, b) {
    let merged = [];
    let i = 0;
    let j = 0;
    while i < len(a) or j < len(b) {
        if j >= len(b) or (i < len(a) and a[i] <= b[j]) {
            push(merged, a[i]);
            i = i + 1;
        } else {
            push(merged, b[j]);
            j = j + 1;
        }
    }
    return merged;
};
let merge_sort = fn(list, from, until) {
    if until - from < 2 { return [list[from]]; }
    let middle = (from + until - (from + until) % 2) / 2;
    return merge(merge_sort(list, from, middle), merge_sort(list, middle, until));
};
merge_sort(numbers(16), 0, 16);
"""

CLOSURES = """
let counter = fn(step) {
    let count = 0;
    return fn() { count = count + step; return count; };
};
let map = fn(list, function) {
    let mapped = [];
    let i = 0;
    while i < len(list) {
        push(mapped, function(list[i]));
        i = i + 1;
    }
    return mapped;
};
let compose = fn(f, g) { return fn(x) { return f(g(x)); }; };
let by_three = counter(3);
map([1, 2, 3, 4], compose(fn(x) { return x * x; }, fn(x) { return x + by_three(); }));
"""

SORTED = [1, 6, 28, 38, 41, 48, 50, 51, 54, 62, 67, 72, 76, 87, 90, 96]
PROGRAMS = [(FIBONACCI, 104), (PRIMES, 17), (SORT, SORTED), (CLOSURES, [16, 64, 144, 256])]


class MinilangError(Exception):
    """An error in a program, with the line if it is known."""


# ---- lexer ---------------------------------------------------------------------------

Token = collections.namedtuple("Token", "kind text line")

TOKENS = re.compile(r"""
    (?P<space>[ \t\n]+)
  | (?P<number>\d+)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<symbol>==|!=|<=|>=|[-+*/%<>=(){}\[\],;])
""", re.VERBOSE)

KEYWORDS = {"let", "fn", "if", "else", "while", "return", "true", "false", "and", "or"}


def tokens_of(source):
    line = 1
    position = 0
    while position < len(source):
        found = TOKENS.match(source, position)
        if not found:
            raise MinilangError("line %d: unexpected %r" % (line, source[position]))
        kind, text = found.lastgroup, found.group()
        if kind != "space":
            yield Token(text if kind == "symbol" or text in KEYWORDS else kind, text, line)
        line += text.count("\n")
        position = found.end()
    yield Token("end", "", line)


# ---- environments and values ---------------------------------------------------------


class Scope:
    def __init__(self, outer=None):
        self.outer = outer
        self.values = {}

    def declare(self, name, value):
        self.values[name] = value

    def holder(self, name):
        scope = self
        while scope is not None:
            if name in scope.values:
                return scope
            scope = scope.outer
        raise MinilangError("%r has no value" % name)

    def get(self, name):
        return self.holder(name).values[name]

    def set(self, name, value):
        self.holder(name).values[name] = value


class Returned(Exception):
    def __init__(self, value):
        super().__init__()
        self.value = value


class Closure:
    def __init__(self, parameters, body, scope):
        self.parameters = parameters
        self.body = body
        self.scope = scope

    def __call__(self, *arguments):
        if len(arguments) != len(self.parameters):
            raise MinilangError("%d arguments for %d parameters" % (
                len(arguments), len(self.parameters)))
        scope = Scope(self.scope)
        for name, value in zip(self.parameters, arguments):
            scope.declare(name, value)
        try:
            self.body.run(scope)
        except Returned as returned:
            return returned.value
        return None


# ---- trees ---------------------------------------------------------------------------


class Node:
    """Its parts are named by __slots__, in that order."""
    __slots__ = ()

    def __init__(self, *parts):
        for name, part in zip(self.__slots__, parts):
            setattr(self, name, part)


class Literal(Node):
    __slots__ = ("value",)

    def run(self, scope):
        return self.value


class Name(Node):
    __slots__ = ("name",)

    def run(self, scope):
        return scope.get(self.name)

    def assign(self, scope, value):
        scope.set(self.name, value)


class List(Node):
    __slots__ = ("items",)

    def run(self, scope):
        return [item.run(scope) for item in self.items]


class Index(Node):
    __slots__ = ("sequence", "index")

    def run(self, scope):
        return self.sequence.run(scope)[self.index.run(scope)]

    def assign(self, scope, value):
        self.sequence.run(scope)[self.index.run(scope)] = value


class Binary(Node):
    __slots__ = ("function", "left", "right")

    def run(self, scope):
        return self.function(self.left.run(scope), self.right.run(scope))


class And(Node):
    __slots__ = ("left", "right")

    def run(self, scope):
        return self.left.run(scope) and self.right.run(scope)


class Or(Node):
    __slots__ = ("left", "right")

    def run(self, scope):
        return self.left.run(scope) or self.right.run(scope)


class Function(Node):
    __slots__ = ("parameters", "body")

    def run(self, scope):
        return Closure(self.parameters, self.body, scope)


class Call(Node):
    __slots__ = ("function", "arguments")

    def run(self, scope):
        function = self.function.run(scope)
        return function(*[argument.run(scope) for argument in self.arguments])


class Let(Node):
    __slots__ = ("name", "value")

    def run(self, scope):
        scope.declare(self.name, self.value.run(scope))


class Assign(Node):
    __slots__ = ("target", "value")

    def run(self, scope):
        self.target.assign(scope, self.value.run(scope))


class If(Node):
    __slots__ = ("condition", "body", "otherwise")

    def run(self, scope):
        if self.condition.run(scope):
            self.body.run(scope)
        elif self.otherwise:
            self.otherwise.run(scope)


class While(Node):
    __slots__ = ("condition", "body")

    def run(self, scope):
        while self.condition.run(scope):
            self.body.run(scope)


class Return(Node):
    __slots__ = ("value",)

    def run(self, scope):
        raise Returned(self.value.run(scope))


class Block(Node):
    """Has the value of its last statement."""
    __slots__ = ("statements",)

    def run(self, scope):
        value = None
        for statement in self.statements:
            value = statement.run(scope)
        return value


# ---- parser --------------------------------------------------------------------------

BINARY_LEVELS = [
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.floordiv, "%": operator.mod},
]


class Parser:
    """Parses by recursive descent, with a method for each rule of the grammar."""

    def __init__(self, source):
        self.tokens = tokens_of(source)
        self.token = next(self.tokens)

    def advance(self):
        token = self.token
        self.token = next(self.tokens, token)
        return token

    def accept(self, kind):
        return self.advance() if self.token.kind == kind else None

    def expect(self, kind):
        if self.token.kind != kind:
            raise MinilangError("line %d: %r instead of %s" % (
                self.token.line, self.token.text, kind))
        return self.advance()

    def program(self):
        return Block(list(self.statements("end")))

    def block(self):
        self.expect("{")
        block = Block(list(self.statements("}")))
        self.expect("}")
        return block

    def statements(self, end):
        while self.token.kind != end:
            yield self.statement()

    def statement(self):
        if self.accept("if"):
            return self.conditional()
        if self.accept("while"):
            return While(self.expression(), self.block())
        statement = self.simple()
        self.expect(";")
        return statement

    def conditional(self):
        condition = self.expression()
        body = self.block()
        return If(condition, body, self.block() if self.accept("else") else None)

    def simple(self):
        if self.accept("let"):
            name = self.expect("name").text
            self.expect("=")
            return Let(name, self.expression())
        if self.accept("return"):
            return Return(self.expression())
        expression = self.expression()
        return Assign(expression, self.expression()) if self.accept("=") else expression

    def expression(self):
        left = self.conjunction()
        while self.accept("or"):
            left = Or(left, self.conjunction())
        return left

    def conjunction(self):
        left = self.binary(0)
        while self.accept("and"):
            left = And(left, self.binary(0))
        return left

    def binary(self, level):
        if level == len(BINARY_LEVELS):
            return self.postfix()
        left = self.binary(level + 1)
        while self.token.kind in BINARY_LEVELS[level]:
            function = BINARY_LEVELS[level][self.advance().kind]
            left = Binary(function, left, self.binary(level + 1))
        return left

    def postfix(self):
        value = self.primary()
        while True:
            if self.accept("("):
                value = Call(value, self.items(")"))
            elif self.accept("["):
                value = Index(value, self.expression())
                self.expect("]")
            else:
                return value

    def items(self, end):
        items = []
        while not self.accept(end):
            items.append(self.expression())
            if self.token.kind != end:
                self.expect(",")
        return items

    def primary(self):
        token = self.advance()
        if token.kind == "number":
            return Literal(int(token.text))
        if token.kind in ("true", "false"):
            return Literal(token.kind == "true")
        if token.kind == "name":
            return Name(token.text)
        if token.kind == "[":
            return List(self.items("]"))
        if token.kind == "fn":
            return self.function()
        if token.kind == "(":
            value = self.expression()
            self.expect(")")
            return value
        raise MinilangError("line %d: unexpected %r" % (token.line, token.text))

    def function(self):
        self.expect("(")
        parameters = [parameter.name for parameter in self.items(")")]
        return Function(parameters, self.block())


def push(items, item):
    items.append(item)


def globals_of_minilang():
    scope = Scope()
    scope.declare("len", len)
    scope.declare("push", push)
    return scope


def evaluate(source):
    return Parser(source).program().run(globals_of_minilang())


def main():
    ready.announce()
    for _ in ready.rounds():
        for source, expected in PROGRAMS:
            value = evaluate(source)
            if value != expected:
                raise MinilangError("%r instead of %r" % (value, expected))


main()
