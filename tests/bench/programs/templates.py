# SPDX-License-Identifier: MIT
"""Renders pages from templates: {{ values | with | filters }}, {% if %}, {% for %}, and pages
that extend others by {% block %}. Every node renders itself by a generator of texts.

A page with a table and a list is rendered again and again; now and then its templates are
parsed again.
"""
import re

import ready

ROUNDS_PER_PARSING = 8

SOURCES = {
    "base": """<html>
<head><title>{% block title %}{{ site.name }}{% endblock %}</title></head>
<body>
<nav>{% for link in site.links %}<a href="/{{ link | lower }}">{{ link }}</a>{% endfor %}</nav>
{% block content %}Nothing here.{% endblock %}
<footer>{% block footer %}{{ site.name | upper }}, {{ site.year }}{% endblock %}</footer>
</body></html>
""",
    "shop": """{% extends base %}
{% block title %}{{ shop | title }} at {{ super }}{% endblock %}
{% block content %}<h1>{{ shop | title | escape }}</h1>
{% block list %}{% for item in items %}{{ item.name }} {% endfor %}{% endblock %}
{% endblock %}
""",
    "table": """{% extends shop %}
{% block list %}<table>
{% for item in items %}<tr><td>{{ loop.number }}</td><td>{{ item.name | title | escape }}</td>
{% if item.price %}<td>{{ item.price | money }}</td>{% else %}<td>sold out</td>{% endif %}
<td>{% for tag in item.tags %}{{ tag | escape | shorten }} {% endfor %}</td></tr>
{% endfor %}</table>
{{ items | prices | total | money }}{% endblock %}
""",
}

VALUES = {
    "site": {"name": "The Market", "year": 1998, "links": ["Home", "Shops", "About"]},
    "shop": "fruit & more",
    "items": [
        {"name": "apples", "price": 250, "tags": ["red", "green", "of this region"]},
        {"name": "pears <new>", "price": 320, "tags": ["soft"]},
        {"name": "plums", "price": 0, "tags": []},
        {"name": "quinces", "price": 410, "tags": ["hard", "for jelly & cheese"]},
        {"name": "medlars", "price": 590, "tags": ["rare", "late", "brown"]},
    ],
}


class TemplateError(Exception):
    """An error in a template."""


# ---- filters -------------------------------------------------------------------------

FILTERS = {}


def register(function):
    FILTERS[function.__name__] = function
    return function


@register
def upper(text):
    return text.upper()


@register
def lower(text):
    return text.lower()


@register
def title(text):
    return " ".join(word[:1].upper() + word[1:] for word in text.split())


@register
def escape(text):
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(char, entity)
    return text


@register
def shorten(text, length=10):
    return text if len(text) <= length else text[:length - 3] + "..."


@register
def money(cents):
    return "%d.%02d" % divmod(cents, 100)


@register
def prices(items):
    return [item["price"] for item in items]


@register
def total(numbers):
    return sum(number for number in numbers)


# ---- values --------------------------------------------------------------------------


class Context:
    """Values by name; inner ones hide outer ones."""

    def __init__(self, values, outer=None, blocks=None):
        self.values = values
        self.outer = outer
        self.blocks = blocks if blocks is not None else outer.blocks

    def inner(self, **values):
        return Context(values, self)

    def look_up(self, name):
        if name in self.values:
            return self.values[name]
        if self.outer is None:
            raise TemplateError("%r has no value" % name)
        return self.outer.look_up(name)


class Expression:
    """site.name | lower | escape"""

    def __init__(self, text):
        path, *filters = [part.strip() for part in text.split("|")]
        self.name, *self.keys = path.split(".")
        self.filters = [FILTERS[one] for one in filters]

    def evaluate(self, context):
        value = context.look_up(self.name)
        for key in self.keys:
            value = value[key]
        for apply in self.filters:
            value = apply(value)
        return value


# ---- nodes ---------------------------------------------------------------------------


class Text:
    def __init__(self, text):
        self.text = text

    def render(self, context):
        yield self.text


class Value:
    def __init__(self, expression):
        self.expression = expression

    def render(self, context):
        yield str(self.expression.evaluate(context))


class Nodes:
    def __init__(self, nodes):
        self.nodes = nodes

    def render(self, context):
        for node in self.nodes:
            yield from node.render(context)

    def blocks(self):
        """The blocks of the whole tree."""
        for node in self.nodes:
            if isinstance(node, Block):
                yield node
                yield from node.body.blocks()


class If:
    def __init__(self, condition, body, otherwise):
        self.condition = condition
        self.body = body
        self.otherwise = otherwise

    def render(self, context):
        chosen = self.body if self.condition.evaluate(context) else self.otherwise
        yield from chosen.render(context)


class For:
    def __init__(self, name, items, body):
        self.name = name
        self.items = items
        self.body = body

    def render(self, context):
        for number, item in enumerate(self.items.evaluate(context), 1):
            inner = context.inner(**{self.name: item, "loop": {"number": number}})
            yield from self.body.render(inner)


class Block:
    """Renders the innermost page's block of that name; {{ super }} is the next one outwards."""

    def __init__(self, name, body):
        self.name = name
        self.body = body

    def render(self, context):
        yield from self.render_version(context, context.blocks[self.name])

    def render_version(self, context, versions):
        block, *outer = versions
        if outer and block.uses_super():
            context = context.inner(super="".join(self.render_version(context, outer)))
        yield from block.body.render(context)

    def uses_super(self):
        return any(isinstance(node, Value) and node.expression.name == "super"
                   for node in self.body.nodes)


# ---- parser --------------------------------------------------------------------------

TAGS = re.compile(r"{{(?P<value>.*?)}}|{%(?P<tag>.*?)%}")


def split(source):
    """Yields (kind, text) of each piece."""
    position = 0
    for found in TAGS.finditer(source):
        if found.start() > position:
            yield "text", source[position:found.start()]
        yield found.lastgroup, found.group(found.lastgroup).strip()
        position = found.end()
    if position < len(source):
        yield "text", source[position:]


class Parser:
    def __init__(self, source):
        self.pieces = split(source)
        self.parent = None
        self.end = ""  # the tag that ended the latest nodes

    def parse(self):
        nodes = self.nodes()
        if self.end:
            raise TemplateError("unexpected %s" % self.end)
        return Template(nodes, self.parent)

    def nodes(self, *ends):
        return Nodes(list(self.nodes_until(ends)))

    def nodes_until(self, ends):
        self.end = ""
        for kind, text in self.pieces:
            if kind == "text":
                yield Text(text)
            elif kind == "value":
                yield Value(Expression(text))
            elif text in ends:
                self.end = text
                return
            else:
                yield from self.tag(*text.split())
        if ends:
            raise TemplateError("no %s" % " or ".join(ends))

    def tag(self, name, *words):
        parse = getattr(self, "tag_" + name, None)
        if parse is None:
            raise TemplateError("unknown tag %s" % name)
        node = parse(*words)
        self.end = ""
        if node:
            yield node

    def tag_extends(self, name):
        self.parent = name

    def tag_block(self, name):
        return Block(name, self.nodes("endblock"))

    def tag_for(self, name, _, items):
        return For(name, Expression(items), self.nodes("endfor"))

    def tag_if(self, condition):
        body = self.nodes("else", "endif")
        otherwise = self.nodes("endif") if self.end == "else" else Nodes([])
        return If(Expression(condition), body, otherwise)


class Template:
    def __init__(self, nodes, parent):
        self.nodes = nodes
        self.parent = parent


class Templates:
    """All templates of a site. Each is parsed when it is first used."""

    def __init__(self, sources):
        self.sources = sources
        self.parsed = {}

    def get(self, name):
        if name not in self.parsed:
            self.parsed[name] = Parser(self.sources[name]).parse()
        return self.parsed[name]

    def lineage(self, name):
        """The template, the one that it extends, and so on."""
        while name is not None:
            template = self.get(name)
            yield template
            name = template.parent

    def render(self, name, values):
        blocks = {}
        for template in self.lineage(name):
            for block in template.nodes.blocks():
                blocks.setdefault(block.name, []).append(block)
        return "".join(template.nodes.render(Context(values, blocks=blocks)))


def main():
    ready.announce()
    for _ in ready.rounds():
        templates = Templates(SOURCES)
        for _ in range(ROUNDS_PER_PARSING):
            page = templates.render("table", VALUES)
        if "Fruit &amp; More" not in page or "15.70" not in page:
            raise TemplateError("wrong page:\n%s" % page)


main()
