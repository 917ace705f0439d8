"""The public surface: explicit, complete, and what the contract of this version says."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ebbtide
from ebbtide import _core

PACKAGE = Path(ebbtide.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def declared(path: Path) -> list[str] | None:
    """The names in a module's ``__all__``, or None where it has none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            value = node.value  # type: ignore[attr-defined]
            return [ast.literal_eval(item) for item in value.elts]
    return None


def bound(path: Path) -> set[str]:
    """Names bound at the top level of a module."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


ROOT = Path(__file__).parents[2]
OUTSIDE = sorted(
    path for folder in ("benches", "models", "scripts") for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_stands_outside_imports_what_is_there(path: Path) -> None:
    """Benches and scripts are run by hand: nobody else notices that a name has moved."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ebbtide":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_exports(path: Path) -> None:
    names = declared(path)
    assert names is not None, "no __all__"
    assert len(names) == len(set(names))
    assert set(names) <= bound(path)


def test_the_package_exports_exactly_what_it_says() -> None:
    there = {
        name
        for name, value in vars(ebbtide).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert there == set(ebbtide.__all__) - {"__version__"}


def test_modules_take_from_each_other_only_what_is_exported() -> None:
    exported = {path: set(declared(path) or ()) for path in MODULES}
    wrong: list[str] = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            origin = node.module if isinstance(node, ast.ImportFrom) else None
            if not (origin or "").startswith("ebbtide.") or origin == "ebbtide._core":
                continue
            base = PACKAGE.joinpath(*str(origin).split(".")[1:])
            module = base.with_suffix(".py")
            source = module if module.is_file() else base / "__init__.py"
            for alias in node.names:
                submodule = (base / f"{alias.name}.py").is_file() or (base / alias.name).is_dir()
                if alias.name not in exported.get(source, set()) and not submodule:
                    wrong.append(f"{name_of(path)}:{node.lineno}: {origin}.{alias.name}")
    assert wrong == []


def parameters(function: object) -> str:
    """Names of the parameters: positional ones, ``*``, keyword-only ones with ``=`` if optional."""
    words: list[str] = []
    star = False
    for p in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if p.name == "self":
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        words.append(p.name + ("=" if p.default is not p.empty else ""))
    return " ".join(words)


CONTRACT = {
    "open": "path * namespace= config= read_only=",
    "in_memory": "* config=",
    "add": "text * role= speaker= timestamp= session_id= external_id= provenance= metadata= wait=",
    "add_many": "turns * progress=",
    "retrieve": "query_text * limit= max_tokens= query_time= preset= filters=",
    "render_context": "query_text * max_tokens= query_time= include_active= preset=",
    "trace": "query_text *",
    "turns": "* state=",
    "get": "interaction_id= * external_id=",
    "delete": "interaction_id= * external_id=",
    "delete_all": "",
    "history": "interaction_id= * external_id=",
    "relate": "newer relation older",
    "explain": "interaction_id= * external_id=",
    "stats": "",
    "digest": "",
    "count_tokens": "text",
    "flush": "",
    "close": "",
    "warm_up": "",
    "reindex": "*",
}


@pytest.mark.parametrize("method", CONTRACT)
def test_methods_of_memory_take_what_the_contract_says(method: str) -> None:
    have = parameters(getattr(ebbtide.Memory, method)).split()
    want = CONTRACT[method].split()
    split = want.index("*") if "*" in want else len(want)
    assert have[:split] == want[:split], "positional parameters, in order"
    assert set(want) <= set(have) | {"*"}
    # More may be added, but only as optional keywords.
    assert all(word.endswith("=") for word in set(have) - set(want) - {"*"})


@pytest.mark.parametrize(
    ("thing", "fields"),
    [
        (
            ebbtide.Turn,
            (
                "text role speaker timestamp session_id external_id provenance metadata "
                "interaction_id record_id state validity"
            ),
        ),
        (
            ebbtide.WriteReport,
            "accepted duplicates evicted superseded tiers active_tokens over_budget_tokens",
        ),
        (
            ebbtide.RetrievedEvidence,
            "rank score kind turn channels features support confidence",
        ),
        (ebbtide.SupportTurn, "turn relation"),
        (ebbtide.Eviction, "interaction_id reason"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_records_have_the_fields_of_the_contract(thing: type, fields: str) -> None:
    assert dataclasses.is_dataclass(thing)
    assert set(fields.split()) <= {f.name for f in dataclasses.fields(thing)}
    params = thing.__dataclass_params__  # type: ignore[attr-defined]
    assert params.frozen


def test_store_and_config_have_the_methods_of_the_contract() -> None:
    for name in ("open", "memory", "namespaces", "delete", "close"):
        assert callable(getattr(ebbtide.Store, name))
    assert parameters(ebbtide.Config.load).split()[0] == "path"
    assert parameters(ebbtide.Config.preset) == "name"
    assert ebbtide.Config.preset("paper").name == "paper"
    assert ebbtide.Config().name == "default"
    assert callable(ebbtide.Config().replace)


def test_importers_take_what_the_contract_says() -> None:
    from ebbtide import importers

    assert parameters(importers.read) == "format path * conversation= timezone= date_order="
    assert parameters(importers.detect) == "path"
    assert parameters(importers.preview) == "turns * keep="
    # What replay asks of a transcript.
    assert {"place", "local", "skipped", "__iter__"} <= set(dir(importers.ExportPart))
    for name in importers.__all__:
        assert hasattr(importers, name)


KERNELS = {
    "decay": "omega age * lambda_base= inertia= healthy_min= critical_max=",
    "prune": "effective adjustment tokens * budget healthy_min= evict_healthy=",
    "divergence": "vectors * window=",
    "cosine_top_k": "vectors query * k",
    "overlap": "offsets documents count query * k",
    "bm25": "offsets documents counts lengths query * k",
}


def test_kernels_take_what_the_contract_says() -> None:
    from ebbtide import kernels

    assert sorted(KERNELS) == sorted(kernels.__all__)
    for name, want in KERNELS.items():
        assert parameters(getattr(kernels, name)) == want


def test_error_classes_and_their_family() -> None:
    for name in ("ConfigError", "InputError", "StoreError", "NotFoundError"):
        assert issubclass(getattr(ebbtide, name), ebbtide.EbbtideError)
    assert issubclass(ebbtide.SchemaVersionError, ebbtide.StoreError)
    assert issubclass(ebbtide.FingerprintError, ebbtide.StoreError)
    assert ebbtide.InputError("x", "input.field").code == "input.field"


def test_every_code_in_the_python_sources_is_on_the_list() -> None:
    families = {code.split(".")[0] for code in _core.error_codes()}
    pattern = re.compile(rf'"((?:{"|".join(sorted(families))})\.[a-z_]+)"')
    used = {
        (name_of(path), code)
        for path in MODULES
        for code in pattern.findall(path.read_text(encoding="utf-8"))
        if not code.endswith((".db", ".toml", ".jsonl"))
    }
    unknown = sorted((p, c) for p, c in used if c not in _core.error_codes())
    assert len(used) > 5
    assert unknown == []


def test_every_error_is_made_with_a_code() -> None:
    """Without one it has ``error``, which no caller can tell from another."""
    families = {name for name in ebbtide.__all__ if name.endswith("Error")}
    made, without = 0, []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in families:
                made += 1
                spread = any(isinstance(given, ast.Starred) for given in node.args)
                named = any(given.arg == "code" for given in node.keywords)
                if len(node.args) < 2 and not spread and not named:
                    without.append((name_of(path), node.lineno))
    assert made > 100
    assert without == []


def test_importing_the_package_is_light() -> None:
    """No model library, no thread, no file of the home folder: `import ebbtide` only defines."""
    code = (
        "import sys, threading, ebbtide\n"
        "heavy = {'spacy', 'onnxruntime', 'vaderSentiment', 'tokenizers', 'numpy', 'typer'}\n"
        "print(sorted(heavy & set(sys.modules)), threading.active_count())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""},
    )
    assert done.stdout.strip() == "[] 1"
