"""Runs tests as `python3 -m unittest` does, and then prints the slowest ones with their
seconds.

Usage: slowest.py COUNT [ARGUMENT of unittest]...
"""

import sys
import time
import unittest


class Timed(unittest.TextTestResult):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.seconds = []

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        self.seconds.append((time.monotonic() - self.began, test.id()))
        super().stopTest(test)


def main():
    sys.path.insert(0, ".")
    count, runner = int(sys.argv[1]), unittest.TextTestRunner(resultclass=Timed)
    result = unittest.main(module=None, argv=["slowest.py", *sys.argv[2:]],
                           testRunner=runner, exit=False).result
    for seconds, name in sorted(result.seconds, reverse=True)[:count]:
        print(f"{seconds:7.2f} s  {name}")
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
