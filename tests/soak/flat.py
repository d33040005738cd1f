"""Whether a series of measurements is flat: the slope of least squares, and its error.

Measurements that follow each other are not independent. So they are averaged in blocks,
and the error is that of a line through the averages.
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


def averages(points):
    """Returns at most BLOCKS points, each the average of as many neighbours."""
    size = max(1, math.ceil(len(points) / BLOCKS))
    blocks = [points[at:at + size] for at in range(0, len(points), size)]
    return [(sum(x for x, _ in block) / len(block), sum(y for _, y in block) / len(block))
            for block in blocks]


def fit(points):
    """Fits a line to points of (minutes, value); None when there are too few."""
    points = averages(points)
    if len(points) < 4:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    error = math.sqrt(rest / (len(points) - 2) / spread)
    return Line(mean_y, slope, error, points[-1][0] - points[0][0])


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
