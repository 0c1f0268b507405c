"""What a program is made of is imported without looking for garbage in it."""

import gc
import subprocess
import sys

import pytest

from backendai_hub.launcher.importing import imports


def test_nothing_is_looked_through_while_imports_are_made_nor_are_they_afterwards():
    before = gc.get_freeze_count()
    made = []
    try:
        with imports():
            assert not gc.isenabled()
            made = [[] for _ in range(10_000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() > before + len(made)
    finally:
        gc.unfreeze()


def test_an_import_that_fails_leaves_things_as_they_were():
    try:
        with pytest.raises(ImportError), imports():
            raise ImportError
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_the_hub_service_starts_without_looking_through_all_it_has_imported():
    code = (
        "import gc\n"
        "from backendai_hub.launcher.service import main\n"
        "try:\n"
        "    main(['--version'])\n"
        "finally:\n"
        "    print(gc.get_stats()[2]['collections'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "0", done.stdout + done.stderr
