"""Whether a series of measurements is flat: the slope of least squares, and its error.

Measurements that follow each other are not independent. So they are averaged in blocks,
and the error is that of a line through the averages.

Memory follows the load: a machine with more time for the run makes more tasks, and more
tasks are kept. So a point can name the load. What follows the load is taken out of the
series before the slope over time is judged.
"""
import dataclasses
import math

BLOCKS = 20


@dataclasses.dataclass
class Line:
    mean: float
    slope: float  # per minute
    error: float  # standard error of the slope
    minutes: float

    def growth(self):
        """Returns what the series has grown by at least, as far as its noise tells."""
        return (self.slope - 2 * self.error) * self.minutes

    def __str__(self):
        return f"{self.mean:.0f} {self.slope:+.2f} ± {self.error:.2f}/min"


def mean(values):
    return sum(values) / len(values)


def averages(points):
    """Returns at most BLOCKS points, each the average of as many neighbours."""
    size = max(1, math.ceil(len(points) / BLOCKS))
    blocks = [points[at:at + size] for at in range(0, len(points), size)]
    return [tuple(mean(column) for column in zip(*block)) for block in blocks]


def without(load, values):
    """Returns the values less their mean, and less what follows the load."""
    values = [value - mean(values) for value in values]
    load = [value - mean(load) for value in load]
    spread = sum(x * x for x in load)
    share = sum(x * y for x, y in zip(load, values)) / spread if spread else 0
    return [y - share * x for x, y in zip(load, values)]


def fit(points):
    """Fits a line to points of (minutes, value) or (minutes, value, load); None when
    there are too few, or when time and load cannot be told apart."""
    points = averages(points)
    if len(points) < 5:
        return None
    minutes, values, *loads = zip(*points)
    load = loads[0] if loads else [0] * len(points)
    times, heights = without(load, minutes), without(load, values)
    spread = sum(x * x for x in times)
    if spread < 1e-9:
        return None
    slope = sum(x * y for x, y in zip(times, heights)) / spread
    rest = sum((y - slope * x) ** 2 for x, y in zip(times, heights))
    error = math.sqrt(rest / (len(points) - 2 - len(loads)) / spread)
    return Line(mean(values), slope, error, minutes[-1] - minutes[0])


def self_test():
    """A leak in noise is found, and noise alone is none."""
    def noise(at):
        return 300 * math.sin(at * 1.7) + 200 * math.sin(at * 0.31)

    still = fit([(at / 10, 20000 + noise(at)) for at in range(600)])
    leak = fit([(at / 10, 20000 + noise(at) + 20 * at) for at in range(600)])
    assert still.growth() < 100, still
    assert abs(leak.slope - 200) < 10 and leak.growth() > 10000, leak
    exact = fit([(at, 3 + 2 * at) for at in range(10)])
    assert abs(exact.slope - 2) < 1e-9 and exact.error < 1e-9, exact
    assert fit([(0, 1), (1, 2)]) is None
    # The load doubles in the middle. What follows the load is no leak; a leak stays one.
    loads = [(at / 10, 40 if at < 300 else 80) for at in range(600)]
    follows = fit([(x, 200 * load + noise(10 * x), load) for x, load in loads])
    leaks = fit([(x, 200 * load + noise(10 * x) + 200 * x, load) for x, load in loads])
    blind = fit([(x, 200 * load + noise(10 * x)) for x, load in loads])
    assert follows.growth() < 100 and blind.growth() > 5000, (follows, blind)
    assert abs(leaks.slope - 200) < 20 and leaks.growth() > 10000, leaks
