from __future__ import annotations

import subprocess
import sys

import theory


def test_exports_exist_and_are_sorted():
    assert theory.__all__ == sorted(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)


def test_neither_numeric_packages_nor_checks_are_imported():
    code = "import sys, theory; print([n for n in ('numpy', 'scipy', 'checks') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
