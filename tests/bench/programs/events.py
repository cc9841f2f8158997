# SPDX-License-Identifier: MIT
"""Simulates a bank by events: customers come, wait for a teller or leave, and some go on to
the safe; a machine breaks down and is repaired. Processes are generators that yield what they
wait for, as in SimPy.

Every round simulates the same day with the same random numbers.
"""
import collections
import heapq
import math
import random

import ready

SEED = 7
OPEN_MINUTES = 120
NR_TELLERS = 3
MEAN_BETWEEN_CUSTOMERS = 1.0
MEAN_SERVICE = 2.6
PATIENCE = 6.0
SAFE_SHARE = 0.3
MEAN_AT_SAFE = 4.0
MEAN_UNTIL_BREAKDOWN = 30.0
MEAN_REPAIR = 5.0


# ---- events --------------------------------------------------------------------------


class Event:
    """Happens once, and then resumes what waits for it."""

    def __init__(self, simulation):
        self.simulation = simulation
        self.callbacks = []
        self.is_due = False
        self.value = None

    def succeed(self, value=None):
        if not self.is_due:
            self.is_due = True
            self.value = value
            self.simulation.schedule(self, 0)
        return self

    def happen(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self)


class Timeout(Event):
    def __init__(self, simulation, delay, value=None):
        super().__init__(simulation)
        self.is_due = True
        self.value = value
        simulation.schedule(self, delay)


class AnyOf(Event):
    """Happens with the first of several events, which is its value."""

    def __init__(self, simulation, events):
        super().__init__(simulation)
        for event in events:
            event.callbacks.append(self.succeed)


class Process(Event):
    """A generator, resumed by the event that it yielded. As an event it is the generator's end."""

    def __init__(self, simulation, generator):
        super().__init__(simulation)
        self.generator = generator
        simulation.processes.add(self)
        start = Event(simulation)
        start.callbacks.append(self.resume)
        start.succeed()

    def resume(self, event):
        try:
            awaited = self.generator.send(event.value)
        except StopIteration as stop:
            self.simulation.processes.discard(self)
            self.succeed(stop.value)
        else:
            awaited.callbacks.append(self.resume)


class Simulation:
    def __init__(self, seed):
        self.now = 0.0
        self.random = random.Random(seed)
        self.heap = []
        self.nr_scheduled = 0
        self.processes = set()  # those that have not ended

    def schedule(self, event, delay):
        self.nr_scheduled += 1  # at the same time the older event comes first
        heapq.heappush(self.heap, (self.now + delay, self.nr_scheduled, event))

    def event(self):
        return Event(self)

    def timeout(self, delay):
        return Timeout(self, delay)

    def any_of(self, *events):
        return AnyOf(self, events)

    def process(self, generator):
        return Process(self, generator)

    def exponential(self, mean):
        return -mean * math.log(1.0 - self.random.random())

    def step(self):
        self.now, _, event = heapq.heappop(self.heap)
        event.happen()

    def run(self, until):
        while self.heap and self.heap[0][0] <= until:
            self.step()

    def end(self):
        """End the processes here. Otherwise the garbage collector does so at any point."""
        for process in self.processes:
            process.generator.close()


# ---- resources -----------------------------------------------------------------------


class Request(Event):
    def __init__(self, simulation, priority):
        super().__init__(simulation)
        self.priority = priority
        self.since = simulation.now


class Resource:
    """Up to capacity users have it at once. The others wait, the most urgent one in front."""

    def __init__(self, simulation, capacity):
        self.simulation = simulation
        self.capacity = capacity
        self.users = set()
        self.queue = []
        self.length = TimeAverage(simulation)
        self.load = TimeAverage(simulation)

    def request(self, priority=1):
        request = Request(self.simulation, priority)
        self.queue.append(request)
        self.queue.sort(key=lambda one: (one.priority, one.since))
        self.serve()
        return request

    def release(self, request):
        self.users.discard(request)
        self.serve()

    def withdraw(self, request):
        if request in self.queue:
            self.queue.remove(request)
            self.measure()

    def serve(self):
        while self.queue and len(self.users) < self.capacity:
            request = self.queue.pop(0)
            self.users.add(request)
            request.succeed(request)
        self.measure()

    def measure(self):
        self.length.change(len(self.queue))
        self.load.change(len(self.users) / self.capacity)


# ---- statistics ----------------------------------------------------------------------


class TimeAverage:
    """The mean over time of a value that changes in steps."""

    def __init__(self, simulation):
        self.simulation = simulation
        self.value = 0.0
        self.since = simulation.now
        self.area = 0.0

    def change(self, value):
        self.area += self.value * (self.simulation.now - self.since)
        self.value = value
        self.since = self.simulation.now

    def mean(self):
        self.change(self.value)
        return self.area / self.simulation.now


class Tally:
    """Mean and deviation of numbers that come one by one (Welford's method)."""

    def __init__(self):
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, number):
        self.count += 1
        difference = number - self.mean
        self.mean += difference / self.count
        self.squares += difference * (number - self.mean)

    @property
    def deviation(self):
        return math.sqrt(self.squares / self.count) if self.count else 0.0


class Histogram:
    def __init__(self, width):
        self.width = width
        self.counts = collections.Counter()

    def add(self, number):
        self.counts[int(number // self.width)] += 1

    def percentile(self, share):
        rest = share * sum(self.counts.values())
        for place, count in sorted(self.counts.items()):
            rest -= count
            if rest <= 0:
                return (place + 1) * self.width
        return 0.0


# ---- the bank ------------------------------------------------------------------------


class Bank:
    def __init__(self, simulation):
        self.simulation = simulation
        self.tellers = Resource(simulation, NR_TELLERS)
        self.safe = Resource(simulation, 1)
        self.waits = Tally()
        self.stays = Histogram(0.5)
        self.nr_lost = 0
        self.nr_breakdowns = 0

    def open(self):
        self.simulation.process(self.customers())
        self.simulation.process(self.breakdowns())

    def customers(self):
        while True:
            yield self.simulation.timeout(self.simulation.exponential(MEAN_BETWEEN_CUSTOMERS))
            self.simulation.process(self.customer())

    def customer(self):
        begin = self.simulation.now
        turn = self.tellers.request()
        first = yield self.simulation.any_of(turn, self.simulation.timeout(PATIENCE))
        if first is not turn and turn not in self.tellers.users:
            self.tellers.withdraw(turn)
            self.nr_lost += 1
            return
        self.waits.add(self.simulation.now - begin)
        yield from self.serve(turn)
        if self.simulation.random.random() < SAFE_SHARE:
            yield self.simulation.process(self.visit_safe())
        self.stays.add(self.simulation.now - begin)

    def serve(self, turn):
        yield self.simulation.timeout(self.simulation.exponential(MEAN_SERVICE))
        self.tellers.release(turn)

    def visit_safe(self):
        turn = self.safe.request()
        yield turn
        yield self.simulation.timeout(self.simulation.exponential(MEAN_AT_SAFE))
        self.safe.release(turn)

    def breakdowns(self):
        """A teller whose machine is broken serves nobody."""
        while True:
            yield self.simulation.timeout(self.simulation.exponential(MEAN_UNTIL_BREAKDOWN))
            turn = self.tellers.request(priority=0)
            yield turn
            self.nr_breakdowns += 1
            yield self.simulation.timeout(self.simulation.exponential(MEAN_REPAIR))
            self.tellers.release(turn)

    def report(self):
        return {
            "served": self.waits.count,
            "lost": self.nr_lost,
            "breakdowns": self.nr_breakdowns,
            "wait": (self.waits.mean, self.waits.deviation),
            "stay, 90 %": self.stays.percentile(0.9),
            "queues": [one.length.mean() for one in (self.tellers, self.safe)],
            "loads": [one.load.mean() for one in (self.tellers, self.safe)],
        }


def simulate(seed):
    simulation = Simulation(seed)
    bank = Bank(simulation)
    bank.open()
    simulation.run(until=OPEN_MINUTES)
    simulation.end()
    return bank.report()


def main():
    ready.announce()
    first = simulate(SEED)
    for _ in ready.rounds():
        if simulate(SEED) != first:
            raise RuntimeError("a day was not like the others")


main()
