# SPDX-License-Identifier: MIT
"""The static flame graph, read by an XML parser: what its boxes say, and where they are."""
import collections
import re
import unittest
import xml.etree.ElementTree

import labels
import oracle
import subjects

SVG = "{http://www.w3.org/2000/svg}"
WIDTH, SIDE_PAD, MIN_WIDTH, MAX_ROWS = 1200, 10, 0.1, 500  # output/formats/flamegraph_svg.h
TITLE = re.compile(r"(?s)(.*) \(([\d,]+) (samples|microseconds), (\d+\.\d\d)%\)")
LEFT_OUT = re.compile(r"([\d,]+) frames? (narrower|deeper)")


def number(text):
    return int(text.replace(",", ""))


class Image:
    """The titles of all boxes, and (left, right) of each box by row."""

    def __init__(self, path):
        root = xml.etree.ElementTree.parse(path).getroot()
        self.boxes, self.rows = collections.Counter(), collections.defaultdict(list)
        for group in root.iter(SVG + "g"):
            title = group.find(SVG + "title").text
            name, count, unit, percent = TITLE.fullmatch(title).groups()
            self.boxes[name, number(count), unit, percent] += 1
            box = group.find(SVG + "rect")
            left, width = float(box.get("x")), float(box.get("width"))
            self.rows[int(box.get("y"))].append((left, left + width))
        notes = "".join(text.text or "" for text in root.iter(SVG + "text"))
        self.left_out = {what: number(count) for count, what in LEFT_OUT.findall(notes)}
        self.scripts = [found.tag for found in root.iter() if found.tag != found.tag.lower()
                        or found.tag in (SVG + "script", SVG + "foreignobject")]


def expected(view, key):
    """The boxes of an image, and the numbers of those that are left out."""
    of = "ns" if view.mode == "cpu" else "samples"
    unit = "microseconds" if view.mode == "cpu" else "samples"
    stacks = {names or (oracle.IDLE,): weight
              for names, weight in view.stacks(key).items() if getattr(weight, of)}
    whole = getattr(view.whole(), of)
    late = view.late() if key is oracle.by_line else ()
    boxes, left_out = collections.Counter(), collections.Counter()
    weights = {(None, *names): weight for names, weight in stacks.items()}
    for names, weight in oracle.prefixes(weights).items():
        value = getattr(weight, of)
        if value / whole * (WIDTH - 2 * SIDE_PAD) < MIN_WIDTH:
            left_out["narrower"] += 1
        elif len(names) > MAX_ROWS:
            left_out["deeper"] += 1
        else:
            name = labels.by_line(names[-1], late) if len(names) > 1 else "all"
            count = (value + 500) // 1000 if of == "ns" else value
            boxes[name, count, unit, "%.2f" % (100 * (value / whole))] += 1
    return boxes, dict(left_out)


def as_function(frame):
    return oracle.Frame(frame.function, frame.function.first_line)


class Svg(unittest.TestCase):
    @subjects.each
    def check(self, subject, options=(), key=as_function, **how):
        image = Image(subjects.report(subject.path, form="svg", options=options,
                                      suffix=".svg"))
        boxes, left_out = expected(subject.view(**how), key)
        subjects.assert_same(self, image.boxes, boxes)
        self.assertEqual(image.left_out, left_out)
        self.assertEqual(image.scripts, [])
        self.check_places(image)

    def check_places(self, image):
        """No box overlaps another, and each is above one of the row below."""
        below = None
        for _, row in sorted(image.rows.items(), reverse=True):
            row.sort()
            for (_, end), (start, _) in zip(row, row[1:]):
                self.assertLessEqual(end, start + 0.15)
            for start, end in row if below else ():
                self.assertTrue(any(left - 0.15 <= start and end <= right + 0.15
                                    for left, right in below), (start, end))
            below = row

    def test_functions(self):
        self.check()

    def test_lines(self):
        self.check(["--lines"], oracle.by_line)

    def test_cpu(self):
        self.check(["--mode", "cpu"], mode="cpu")
