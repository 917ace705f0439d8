"""Imports go one way, in Rust and in Python, and the checks notice when they do not."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest
from reference.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "ebbtide"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load_script("check_layers")


def crate(folder: Path, **files: str) -> Path:
    """A source folder with a lib.rs that declares every given module."""
    names = dict.fromkeys(name.split("__")[0] for name in files)
    (folder / "lib.rs").write_text("".join(f"pub mod {name};\n" for name in names))
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".rs")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_the_core_keeps_its_layers(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.violations(check.SOURCE) == []
    assert check.main([]) == 0
    assert "layers hold" in capsys.readouterr().out


def test_every_module_of_the_core_is_checked(check: ModuleType) -> None:
    known = {name.split("::")[0] for names in check.LAYERS for name in names}
    there = {p.stem for p in check.SOURCE.iterdir() if p.suffix == ".rs" or p.is_dir()} - {"lib"}
    assert there == known


def test_an_upward_import_is_named_with_its_line(
    check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = crate(tmp_path, types="//! Words.\nuse crate::config::Config;\n", config="")
    assert check.violations(folder) == ["types.rs:2: `types` imports `config` from a higher layer"]
    assert check.main([str(folder)]) == 1
    assert "types.rs:2" in capsys.readouterr().out


def test_siblings_do_not_know_each_other(check: ModuleType, tmp_path: Path) -> None:
    folder = crate(tmp_path, lineage="", index="fn f() { crate::lineage::topic_key() }\n")
    assert check.violations(folder) == ["index.rs:1: `index` imports `lineage` from its own layer"]


def test_a_module_may_import_from_itself_and_from_below(check: ModuleType, tmp_path: Path) -> None:
    source = "use crate::score::decay;\nuse crate::score::vector::dot;\nuse crate::types::Facts;\n"
    folder = crate(tmp_path, score__prune=source, types="")
    assert check.violations(folder) == []


def test_a_submodule_with_a_layer_of_its_own_is_held_to_it(
    check: ModuleType, tmp_path: Path
) -> None:
    folder = crate(tmp_path, score__vector="use crate::score::decay::rate;\n")
    found = check.violations(folder)
    assert found == ["score/vector.rs:1: `score::vector` imports `score` from a higher layer"]


def test_groups_are_read_and_comments_are_not(check: ModuleType) -> None:
    source = (
        "// crate::engine\n/* crate::store */\nuse crate::{\n    types::{A, B},\n    error,\n};\n"
    )
    assert list(check.imports(source)) == [(4, "types"), (5, "error")]


def test_a_module_without_a_layer_is_noticed(check: ModuleType, tmp_path: Path) -> None:
    folder = crate(tmp_path, gadget="")
    assert check.violations(folder) == [
        "gadget.rs:1: the module has no layer",
        "lib.rs:1: `gadget` has no layer",
    ]


def test_a_wrong_folder_is_an_error(check: ModuleType, tmp_path: Path) -> None:
    assert check.main([str(tmp_path)]) == 2


def test_only_the_compiled_module_is_imported_from_the_package_itself() -> None:
    """The import contract ignores imports of `ebbtide` itself: nothing may hide there."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "cli") or path == PACKAGE / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{place}: relative import"
                if node.module == "ebbtide":
                    assert [a.name for a in node.names] == ["_core"], place
            elif isinstance(node, ast.Import):
                assert all(a.name != "ebbtide" for a in node.names), place


def test_the_import_contract_holds() -> None:
    from importlinter.application.use_cases import SUCCESS, lint_imports
    from importlinter.configuration import configure

    configure()
    result = lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None)
    assert result == SUCCESS
