"""The pages keep their word: code runs, commands work, links lead somewhere.

A ``python`` block that is followed by a ``text`` block must print exactly that. The
blocks of a page share one namespace and one folder, in order, and so do the commands.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import typer
from reference.scripts import load_script

import ebbtide
from ebbtide import _core
from ebbtide.bench import suites
from ebbtide.cli import main
from ebbtide.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
COMMAND_PAGES = [*PAGES, ROOT / "examples" / "README.md", ROOT / "CONTRIBUTING.md"]
LINKED_PAGES = sorted(
    {
        *COMMAND_PAGES,
        ROOT / "CHANGELOG.md",
        *ROOT.glob("tests/*/README.md"),
        *ROOT.glob("models/*/*.md"),
    }
)
SLICE_TURNS = 40
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[tuple[str, str, str | None]]:
    """Fenced blocks as (language, text, the text block right behind it or None)."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    result: list[tuple[str, str, str | None]] = []
    for i, match in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        adjacent = after is not None and not text[match.end() : after.start()].strip()
        output = (
            after.group(2) if after is not None and adjacent and after.group(1) == "text" else None
        )
        result.append((match.group(1), match.group(2), output))
    return result


def python_pages() -> list[Path]:
    return [page for page in PAGES if any(lang == "python" for lang, _, _ in blocks(page))]


def commands(page: Path) -> list[list[str]]:
    """Words of each command line in the page's ``sh`` blocks, comments left out."""
    lines = [
        line
        for language, text, _ in blocks(page)
        if language == "sh"
        for line in text.replace("\\\n", " ").splitlines()
    ]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", python_pages(), ids=name_of)
def test_python_blocks_run_and_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for number, (language, code, expected) in enumerate(blocks(page)):
        if language != "python":
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, f"{name_of(page)}, block {number}", "exec"), namespace)
        if expected is not None:
            assert printed.getvalue() == expected, f"{name_of(page)}, block {number}"


def test_a_page_that_lies_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\nwords\n\n```text\n3\n```\n")
    assert blocks(page) == [
        ("python", "print(1)\n", "2\n"),
        ("text", "2\n", None),
        ("text", "3\n", None),
    ]


def copy_examples(folder: Path) -> None:
    """Put what the pages read into a folder: the beginning of the example, and an export."""
    (folder / "examples").mkdir()
    source = (ROOT / "examples" / "conversation.jsonl").read_text(encoding="utf-8")
    turns = source.splitlines(keepends=True)[:SLICE_TURNS]
    (folder / "examples" / "conversation.jsonl").write_text("".join(turns), encoding="utf-8")
    shutil.copy(ROOT / "examples" / "chatgpt.json", folder / "examples")


@pytest.fixture(scope="module")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the first turns of the example conversation, made through the facade."""
    folder = tmp_path_factory.mktemp("docs")
    copy_examples(folder)
    lines = (folder / "examples" / "conversation.jsonl").read_text(encoding="utf-8").splitlines()
    with ebbtide.Memory.open(folder / "small.db") as memory:
        memory.add_many(json.loads(line) for line in lines)
    return folder / "small.db"


def ebbtide_commands(page: Path, *, evaluating: bool = False) -> list[list[str]]:
    """Commands of a page: those of `ebbtide eval`, which need datasets, or the others."""
    return [
        words
        for words in commands(page)
        if words[0] == "ebbtide" and (words[1] == "eval") == evaluating
    ]


def understand(words: list[str]) -> None:
    """Have the command line take a command apart, without running it."""
    command, rest = typer.main.get_command(app), words[1:]
    context = command.make_context("ebbtide", rest)
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        _, command, rest = command.resolve_command(context, rest)
        context = command.make_context(command.name, list(rest), parent=context)


@pytest.mark.parametrize(
    "page", [p for p in COMMAND_PAGES if ebbtide_commands(p, evaluating=True)], ids=name_of
)
def test_evaluation_commands_of_the_pages_are_understood(page: Path) -> None:
    for words in ebbtide_commands(page, evaluating=True):
        understand(words)


def run_command(words: list[str], folder: Path) -> None:
    """Run a command of `ebbtide` in a folder; `> FILE` at its end is understood.

    In this process, which has the libraries loaded: that real processes work is shown in
    `tests/integration`. Only what talks over standard input gets one of its own.
    """
    written = words[-1] if words[-2] == ">" else None
    words = words[1:-2] if written else words[1:]
    if words[0] == "mcp":
        done = subprocess.run(
            [sys.executable, "-c", "from ebbtide.cli import main; main()", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        status, printed, said = done.returncode, done.stdout, done.stderr
    else:
        out, err = io.StringIO(), io.StringIO()
        streams = redirect_stdout(out), redirect_stderr(err)
        with contextlib.chdir(folder), streams[0], streams[1], pytest.raises(SystemExit) as ended:
            main(words)
        status, printed, said = ended.value.code or 0, out.getvalue(), err.getvalue()
    assert status == 0, f"ebbtide {shlex.join(words)}: {said}"
    if written is not None:
        (folder / written).write_text(printed, encoding="utf-8")


@pytest.mark.parametrize("page", [p for p in COMMAND_PAGES if ebbtide_commands(p)], ids=name_of)
def test_commands_of_the_pages_work(
    page: Path, small_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_examples(tmp_path)
    monkeypatch.setattr(suites, "_RECORDS", 100)
    for words in ebbtide_commands(page):
        store = tmp_path / words[words.index("--store") + 1] if "--store" in words else None
        if store is not None and words[1] not in ("replay", "import") and not store.exists():
            shutil.copy(small_store, store)
        if words[1] == "serve":  # it ends when it is told to
            understand(words)
            continue
        if words[1] == "bench":
            # As the page has it, it measures for minutes. The sections run all the same: these
            # two here, the others in tests/unit/test_bench.py.
            understand(words)
            if "--section" in words:
                continue
            words += ["--turns", "50", "--rounds", "1"]
            words += ["--section", "start-up", "--section", "replay"]
        run_command(words, tmp_path)


def test_make_targets_of_the_pages_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named: set[str] = set()
    for page in COMMAND_PAGES:
        named |= {words[1] for words in commands(page) if words[0] == "make" and len(words) > 1}
        named |= set(re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")))
    assert {"demo", "test"} <= named
    assert named <= targets


def test_the_command_line_reference_is_fresh() -> None:
    script = load_script("cli_reference")
    for which, page in script.PAGES.items():
        assert page.read_text(encoding="utf-8") == script.render(which), (
            "run: python scripts/cli_reference.py"
        )
    assert script.main(["--check"]) == 0


def test_every_command_stands_beside_its_python_twin() -> None:
    script = load_script("cli_reference")
    names = [command.name for command in script.commands()]
    assert {"ebbtide ask", "ebbtide config show", "ebbtide eval locomo"} <= set(names)
    pages = "\n".join(page.read_text(encoding="utf-8") for page in script.PAGES.values())
    for name in names:
        part = pages.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        beside = part.partition('<div class="beside" markdown>')[2].partition("</div>")[0]
        shell, _, python = beside.partition("```python\n")
        assert re.search(rf"^```sh\n(.*\n)*{name}\b", shell.strip(), re.MULTILINE), name
        assert python.strip(), name


def test_a_command_without_a_twin_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script("cli_reference")
    text = script.TWINS.read_text(encoding="utf-8")
    short = tmp_path / "twins.md"
    monkeypatch.setattr(script, "TWINS", short)
    section = "## ebbtide stats\n\n" + script.twins(text)["ebbtide stats"]
    for changed, said in (
        (text.replace(section, ""), "ebbtide stats stands"),
        (text + "\n## ebbtide dance\n", "ebbtide dance stands"),
        (text.replace(section, "## ebbtide stats\n\nNo code."), "ebbtide stats needs"),
    ):
        short.write_text(changed, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            script.render("cli")


def test_the_configuration_reference_is_fresh() -> None:
    script = load_script("config_reference")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.render(), "run: python scripts/config_reference.py"
    assert script.main(["--check"]) == 0


def test_a_stale_configuration_reference_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script("config_reference")
    stale = tmp_path / "configuration.md"
    stale.write_text(script.render().replace("4096", "4095"), encoding="utf-8")
    monkeypatch.setattr(script, "PAGE", stale)
    assert script.main(["--check"]) == 1
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0


def test_every_setting_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    sections: dict[str, object] = dict(ebbtide.Config().to_dict())
    while sections:
        section, keys = sections.popitem()
        assert isinstance(keys, dict)
        inner = {key: value for key, value in keys.items() if isinstance(value, dict)}
        sections |= {f"{section}.{key}": value for key, value in inner.items()}
        part = page.partition(f"## [{section}]")[2].partition("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
        assert sorted(listed) == sorted(set(keys) - set(inner)), section


def test_every_error_code_is_explained_and_no_other() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \|", page, re.MULTILINE)
    assert listed == list(_core.error_codes())


def test_error_families_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| `(\w+)`", page, re.MULTILINE)
    assert {family for family, _ in rows} == {c.split(".")[0] for c in _core.error_codes()}
    assert all(issubclass(getattr(ebbtide, name), ebbtide.EbbtideError) for _, name in rows)


def test_the_formulas_of_concepts_show_the_defaults() -> None:
    page = " ".join((ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").split())
    config = ebbtide.Config()
    w, decay, p = config["scoring_weights"], config["temporal_decay"], config["pruning_priority"]
    tiers = config["memory_tiers"]
    for shown in (
        (
            f"{w['alpha_density']}·ID + {w['gamma_sentiment']}·|S| + {w['beta_entities']}·E_norm"
            f" − {-w['delta_technical']}·D"
        ),
        (
            f"{w['lambda_operational']}·({w['eta_constraint']}·constraint"
            f" + {w['eta_preference']}·preference + {w['eta_current_state']}·current_state"
            f" + {w['eta_correction']}·correction + {w['eta_replacement']}·replacement"
            f" + {w['eta_past_state']}·past_state)"
        ),
        (
            f"{w['user_correction_boost']:.2f}·is_user_correction"
            f" + {w['preference_update_boost']:.2f}·is_preference_update"
            f" + {w['constraint_boost']:.2f}·is_constraint"
            f" − {w['corrected_by_user_penalty']}·corrected_by_user"
        ),
        f"x0 = {w['sigmoid_midpoint']}",
        f"E_cap = {w['entity_cap']}",
        f"below {w['social_threshold']} is raised to at least {w['min_social_score']}",
        f"λ = {decay['lambda_base']}, η = {decay['inertia_strength']}",
        f"Ω_eff < {decay['hard_kill_threshold']}",
        f"healthy if Ω_eff > {tiers['healthy_min']}",
        f"critical if Ω_eff ≤ {tiers['critical_max']:.2f}",
        (
            f"{p['rho_constraint']:.2f}·constraint + {p['rho_preference']:.2f}·preference"
            f" + {p['rho_current_state']:.2f}·current_state + {p['rho_correction']:.2f}·correction"
            f" + {p['rho_replacement']:.2f}·replacement"
        ),
        f"{p['superseded_past_penalty']} if the turn no longer stands",
        f"W = {config['capacity']['window_size']} unit vectors",
        f"`protect_last = {config['capacity']['protect_last']}`",
    ):
        assert shown in page, shown


def test_recall_explains_every_feature_and_penalty() -> None:
    page = (ROOT / "docs" / "recall.md").read_text(encoding="utf-8")
    weighed = ebbtide._core.weighed()
    names = [*weighed["answerability_weights"], *weighed["answerability_penalties"]]
    weights = ebbtide.Config()["retrieval"]
    values = [*weights["answerability_weights"], *weights["answerability_penalties"]]
    for name, weight in zip(names, values, strict=True):
        assert re.search(rf"^\|(?: \d+ \|)? `{name}` \| {weight} \|", page, re.MULTILINE), name


def test_recall_explains_every_ranking_term() -> None:
    page = (ROOT / "docs" / "recall.md").read_text(encoding="utf-8")
    table = page.partition("| term | value |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(ebbtide.Config()["ranking"])


def test_every_public_name_has_a_docstring() -> None:
    for name in ebbtide.__all__:
        if name.startswith("__"):
            continue
        thing = getattr(ebbtide, name)
        assert (thing.__doc__ or "").strip(), name
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    inner = value if isinstance(value, property) else getattr(thing, member)
                    assert (inner.__doc__ or "").strip(), f"{name}.{member}"


@pytest.mark.parametrize(
    "name", ["ebbtide.config", "ebbtide.importers.export", "ebbtide.memory", "ebbtide.store"]
)
def test_docstring_examples_work(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def anchors(page: Path) -> set[str]:
    """Anchors that GitHub gives the page's headings."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", head.lower()).strip() for head in heads)
    return {re.sub(r"\s", "-", head) for head in plain}


@pytest.mark.parametrize("page", LINKED_PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{name_of(page)}: {target}"


def test_backticked_paths_of_the_pages_exist() -> None:
    pattern = re.compile(r"`((?:python|rust|scripts|tests|docs|examples)/[\w./-]*\w)`")
    for page in LINKED_PAGES:
        for path in pattern.findall(page.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{name_of(page)}: {path}"
