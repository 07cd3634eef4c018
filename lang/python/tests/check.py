"""Every test here, and the type checker and the linter where they are installed; one count."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Dict, List

FOLDER = Path(__file__).resolve().parent


class Tools(unittest.TestCase):
    """What others say of the package."""

    def run_tool(self, module: str, *words: str) -> None:
        if importlib.util.find_spec(module) is None:
            self.skipTest(f"{module} is not installed for {sys.executable}")
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            cwd=FOLDER.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_mypy_finds_nothing(self) -> None:
        self.run_tool("mypy", "--strict")

    def test_ruff_finds_nothing(self) -> None:
        self.run_tool("ruff", "check", "src")

    def test_ruff_would_format_nothing(self) -> None:
        self.run_tool("ruff", "format", "--check", "src")


class Count(unittest.TextTestResult):
    """Counts tests as a person does: a test with failing parts is one failed test."""

    def good(self, failed: Dict[str, None]) -> int:
        return self.testsRun - len(self.skipped) - len(failed)


def main(words: List[str]) -> int:
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    if words:
        suite.addTests(loader.loadTestsFromNames(words))
    else:
        suite.addTests(loader.discover(str(FOLDER)))
        suite.addTests(loader.loadTestsFromTestCase(Tools))
    result = unittest.TextTestRunner(resultclass=Count, stream=sys.stdout, warnings="error").run(suite)
    assert isinstance(result, Count)
    failed = {}
    for test, _ in result.failures + result.errors:
        failed[getattr(test, "test_case", test).id()] = None
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    print(f"{result.good(failed)} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    return 0 if not failed and result.testsRun else 1


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    sys.exit(main(sys.argv[1:]))
