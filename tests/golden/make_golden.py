"""Make the golden store of this schema version: ``python tests/golden/make_golden.py``.

A later version must open it, find the same digests, and go on. Keep the file of each
version of the schema for good; run this once for each, when it is new.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.stand_ins import HashEmbedder, StubAnalyser, scripted

from ebbtide import Config, Store, _core
from ebbtide.analysis import analyser

FOLDER = Path(__file__).parent


def golden_store(schema: int) -> Path:
    """Where the store of a schema version is kept."""
    return FOLDER / f"store-schema-{schema}.db"


def config() -> Config:
    """Small, with the fixed stand-in for every model."""
    return Config().with_embedder(HashEmbedder(32)).replace(capacity={"token_budget": 120})


def record(store: Store) -> dict[str, object]:
    """What a later release must find again."""
    found: dict[str, object] = {}
    for name in store.namespaces():
        memory = store.memory(name)
        stats = memory.stats()
        found[name] = {
            "digest": memory.digest(),
            "turns": len(memory),
            "archived": stats["archived"],
            "superseded": stats["validity"].get("superseded", 0),
        }
    return found


def main() -> None:
    """Write the store and what is in it."""
    analyser.Analyser = StubAnalyser  # type: ignore[misc,assignment]
    path = golden_store(_core.schema_version())
    for old in FOLDER.glob(f"{path.name}*"):
        old.unlink()
    with Store.open(path, config=config()) as store:
        # A fixed receipt time, so that the file changes only when its contents do.
        import ebbtide.inputs

        ebbtide.inputs.time.time_ns = lambda: 1_700_000_000_000_000_000
        store.memory("ana").add_many(scripted(n) for n in range(40))
        store.memory("ana").add(
            "東京に住んでいます", speaker="Ana", timestamp="2024-03-01T09:00:00+09:00"
        )
        store.memory("ana").relate(12, "corrects", 3)
        store.memory("ana").delete(7)
        store.memory("luis").add_many(scripted(n) for n in range(100, 112))
        found = record(store)
    path.with_suffix(".json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
