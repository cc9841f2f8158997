# SPDX-License-Identifier: MIT
"""A small web shop: it serves pages over loopback and does what shops do besides.

Threads: the customers (who ask for pages), the server, the log analyser, and the nightly report,
which is slow: a profile shows why.
"""
import collections
import hashlib
import html
import http.client
import http.server
import json
import random
import re
import socketserver
import string
import threading
import time

import ready

PRODUCTS = [
    {
        "id": number,
        "name": " ".join(word.capitalize() for word in words),
        "price": 100 + number * 37 % 4900,
        "tags": sorted({words[0], words[1][:3], "sale" if number % 5 == 0 else "new"}),
    }
    for number, words in enumerate(
        (first, second)
        for first in ("blue", "red", "small", "large", "wooden", "steel", "quiet")
        for second in ("chair", "table", "lamp", "shelf", "clock", "vase")
    )
]

ROW = string.Template("<tr><td>$name</td><td>$price</td><td>$tags</td></tr>")
PAGE = string.Template("<html><h1>$title</h1><table>$rows</table></html>")
LOG_LINE = re.compile(
    r'(?P<host>\S+) \[(?P<time>[^]]+)\] "(?P<verb>[A-Z]+) (?P<path>[^ "]*)" '
    r"(?P<status>\d{3}) (?P<size>\d+)")

access_log = collections.deque(maxlen=4000)


class Catalogue:
    def __init__(self, products):
        self.products = products

    def search(self, words):
        wanted = [word.lower() for word in words]
        return [product for product in self.products if self.matches(product, wanted)]

    @staticmethod
    def matches(product, wanted):
        text = product["name"].lower() + " " + " ".join(product["tags"])
        return any(word in text for word in wanted)


class Basket:
    def __init__(self, products):
        self.items = collections.Counter(product["id"] for product in products)
        self.prices = {product["id"]: product["price"] for product in products}

    @property
    def total(self):
        return sum(self.prices[item] * nr for item, nr in self.items.items()) - self.discount()

    def discount(self):
        return sum(sorted(self.prices.values())[: len(self.items) // 3])


catalogue = Catalogue(PRODUCTS)


def render(title, products):
    rows = "".join(
        ROW.substitute(
            name=html.escape(product["name"]),
            price="%.2f" % (product["price"] / 100),
            tags=", ".join(product["tags"]),
        )
        for product in products
    )
    return PAGE.substitute(title=html.escape(title), rows=rows)


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        route, _, query = self.path.partition("?")
        if route == "/search":
            self.answer(render("Found", catalogue.search(query.split("+"))), "text/html")
        else:
            self.answer(json.dumps(self.checkout(int(query or 0))), "application/json")

    @staticmethod
    def checkout(seed):
        basket = Basket(random.Random(seed).choices(PRODUCTS, k=30))
        receipt = hashlib.sha256(repr(basket.items).encode()).hexdigest()
        return {"total": basket.total, "items": basket.items, "receipt": receipt}

    def answer(self, body, kind):
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.log_request(200, len(data))

    def log_request(self, code="-", size="-"):
        if size != "-":
            access_log.append('%s [%s] "%s %s" %s %s' % (
                self.client_address[0], self.date_time_string(), self.command, self.path,
                code, size))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def customers(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    chance = random.Random(1)
    while True:
        if chance.random() < 0.7:
            connection.request("GET", "/search?" + chance.choice(["chair", "sale+red", "steel"]))
        else:
            connection.request("GET", "/checkout?%d" % chance.randrange(1000))
        answer = connection.getresponse()
        body = answer.read()
        if answer.getheader("Content-Type") == "application/json":
            json.loads(body)
        time.sleep(0.001)


def analyse_log():
    while True:
        sizes = collections.defaultdict(int)
        for line in list(access_log):
            found = LOG_LINE.match(line)
            if found:
                sizes[found["path"].partition("?")[0]] += int(found["size"])
        time.sleep(0.05)


def edit_distance(first, second):
    """Slow on purpose and called for every pair, as the profile shows."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def similar_products(product):
    return sorted(PRODUCTS, key=lambda other: edit_distance(product["name"], other["name"]))[1:4]


def nightly_report():
    while True:
        report = {product["id"]: similar_products(product) for product in PRODUCTS}
        json.dumps(report, indent=2)
        time.sleep(0.005)


def main():
    server = Server(("127.0.0.1", 0), Shop)
    jobs = {
        "server": server.serve_forever,
        "customers": lambda: customers(server.server_address[1]),
        "log": analyse_log,
    }
    for name, job in jobs.items():
        threading.Thread(target=job, name=name, daemon=True).start()
    ready.announce(port=server.server_address[1])
    nightly_report()


if __name__ == "__main__":
    main()
