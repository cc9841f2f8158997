#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Join the page's sources into a C file (README.md), or with --parts into its two parts.

usage: bundle.py OUT.c
       bundle.py --parts PAGE LOADER
"""
import gzip
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ["model", "colour", "stage", "flame", "chart", "strip", "heat", "table", "source", "export", "page"]


WORD = re.compile(r"[\w$]+|\+\+|--")
REGEX = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")


def tokens(text, at=0, until=None):
    """Yield the tokens of a script without comments, each with its end. until: a template's }."""
    depth, last = 0, "("
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
            continue
        if char == until and not depth:
            return
        found = STRING.match(text, at) or WORD.match(text, at)
        if char == "/" and (last in tuple("(,=:;!&|?{}[>") or last == "return"):
            found = REGEX.match(text, at)
        if char == "`":
            token = template(text, at)
        else:
            token = found.group() if found else char
        depth += (token == "{") - (token == "}")
        at += len(token)
        last = token
        yield token, at


def template(text, start):
    """Return the template literal at start, unchanged."""
    at = start + 1
    while text[at] != "`":
        if text.startswith("${", at):
            at = max((end for _, end in tokens(text, at + 2, "}")), default=at + 2)
            at = text.index("}", at)
        at += 2 if text[at] == "\\" else 1
    return text[start : at + 1]


def compact(text):
    """Remove unnecessary white space from a script whose statements all end in ; or }."""
    out, last = [], ""
    for token, _ in tokens(text):
        word = re.match(r"[\w$]", token) and re.search(r"[\w$]$", last)
        same = token[0] in "+-" and last[-1:] == token[0]
        if word or same:
            out.append(" ")
        out.append(token)
        last = token
    return "".join(out)


def without_comments(text, line_comments):
    """Remove block comments that begin a line, // lines, indentation and empty lines."""
    text = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*\n", "", text, flags=re.S | re.M)
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(l for l in lines if l and not (line_comments and l.startswith("//")))


def module(name):
    text = (HERE / f"{name}.mjs").read_text(encoding="utf-8")
    text = re.sub(r"^import\b[^;]*;\n", "", text, flags=re.M)
    return re.sub(r"^export ", "", text, flags=re.M)


def script():
    body = without_comments("\n".join(module(name) for name in MODULES), True)
    return '(()=>{"use strict";' + compact(body) + "})();"


def page():
    css = without_comments((HERE / "viewer.css").read_text(encoding="utf-8"), False)
    html = (HERE / "viewer.html").read_text(encoding="utf-8")
    html = re.sub(r"<!--.*?-->", "", html, flags=re.S)
    html = "\n".join(line.strip() for line in html.split("\n") if line.strip())
    return gzip.compress("\0".join([css, html, script()]).encode(), 9, mtime=0)


def loader():
    text = compact(without_comments((HERE / "loader.js").read_text(encoding="utf-8"), True))
    assert "</" not in text
    return text.encode()


def c_array(kind, name, data):
    """Define an array of bytes, even for strings, because the length of literals is limited."""
    rows = (data[i : i + 24] for i in range(0, len(data), 24))
    body = "\n".join("\t" + "".join(f"{byte}," for byte in row) for row in rows)
    return f"const {kind} {name}[{len(data)}] = {{\n{body}\n}};\n"


def main():
    if sys.argv[1] == "--parts":
        pathlib.Path(sys.argv[2]).write_bytes(page())
        pathlib.Path(sys.argv[3]).write_bytes(loader())
        return
    text = '/* Made by output/assets/bundle.py. */\n#include "output/page/viewer.h"\n\n'
    text += c_array("unsigned char", "viewer_page", page())
    text += "const size_t viewer_page_bytes = sizeof(viewer_page);\n\n"
    text += c_array("char", "viewer_loader", loader() + b"\0")
    pathlib.Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
