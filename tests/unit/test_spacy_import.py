"""spaCy comes without its command line, and loses nothing by it."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
from ebbtide.analysis.spacy_import import import_spacy

spacy = import_spacy()
assert spacy is import_spacy() is sys.modules["spacy"]
assert not {"spacy.cli", "spacy.cli.info", "typer"} & sys.modules.keys()
assert spacy.blank("en")("Two words").text == "Two words"
assert spacy.info(silent=True)["spacy_version"] == spacy.__version__
assert "typer" in sys.modules
assert callable(spacy.cli.download)
assert sys.modules["spacy.cli.info"].__file__
try:
    spacy.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
else:
    raise SystemExit("an attribute that is none")
"""
_CLI_BEFORE = """
import sys
import spacy.cli
from ebbtide.analysis.spacy_import import import_spacy

assert import_spacy() is spacy
assert spacy.info is sys.modules["spacy.cli.info"].info
"""
_ATTRIBUTE_BEFORE_INFO = """
from ebbtide.analysis.spacy_import import import_spacy

assert callable(import_spacy().cli.download)
"""


def _runs(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_the_command_line_is_loaded_when_asked_for() -> None:
    _runs(_SCRIPT)
    _runs(_ATTRIBUTE_BEFORE_INFO)


def test_a_spacy_imported_before_stays_as_it_is() -> None:
    _runs(_CLI_BEFORE)
