"""Every test here, and the type checker and the linter where they are installed; one count."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import List, Tuple

import native

# Tests of whole programs, which run a second time with the native part.
THROUGH_LIBHOB = [
    "test_wsgi",
    "test_asgi",
    "test_websocket",
    "test_loop",
    "test_probe",
    "test_samples",
    "test_served",
]
FOLDER = Path(__file__).resolve().parent


class Tools(unittest.TestCase):
    """What others say of the package."""

    def run_tool(self, *command: str) -> None:
        done = subprocess.run(
            command,
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_mypy_finds_nothing(self) -> None:
        if importlib.util.find_spec("mypy") is None:
            self.skipTest(f"mypy is not installed for {sys.executable}")
        self.run_tool(sys.executable, "-m", "mypy", "--strict")

    def test_ruff_finds_nothing(self) -> None:
        self.run_tool(self.ruff(), "check", "src")

    def test_ruff_would_format_nothing(self) -> None:
        self.run_tool(self.ruff(), "format", "--check", "src")

    def ruff(self) -> str:
        found = shutil.which(os.environ.get("RUFF", "ruff"))
        if found is None:
            self.skipTest("ruff is not installed: `make setup` takes it from PyPI")
        return found


def main(words: List[str]) -> int:
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    if words:
        suite.addTests(loader.loadTestsFromNames(words))
    else:
        suite.addTests(loader.discover(str(FOLDER)))
        suite.addTests(loader.loadTestsFromTestCase(Tools))
    results = [run(suite)]
    found = native.environment()
    if not words and not isinstance(found, str):
        print(f"once more through {found['HOB_LIBRARY']}", flush=True)
        os.environ.update(found)
        results.append(run(loader.loadTestsFromNames(THROUGH_LIBHOB)))
    passed, failed, skipped = map(sum, zip(*results))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if not failed and passed else 1


def run(suite: unittest.TestSuite) -> Tuple[int, int, int]:
    """Runs tests; how many passed, failed and were skipped."""
    runner = unittest.TextTestRunner(stream=sys.stdout, warnings="error")
    result = runner.run(suite)
    # A test with several failing parts is one failed test.
    failed = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    count = result.testsRun - len(result.skipped) - len(failed)
    return count, len(failed), len(result.skipped)


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    sys.exit(main(sys.argv[1:]))
