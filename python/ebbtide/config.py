"""Settings: presets, TOML files, and changes on top of them.

Defaults, types and ranges live in one place, the annotated
``rust/core/src/config/defaults.toml``; this module only carries them.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from ebbtide import _core
from ebbtide.errors import ConfigError
from ebbtide.messages import reason

__all__ = ["PRESETS", "Config"]

PRESETS = ("default", "paper")
"""Names of the presets, the one in use without a choice first."""

_ACCEPTED_WITHOUT_EFFECT = {
    ("ltm", "recall_limit"): "[retrieval] final_recall_limit limits recall",
    ("ltm", "chroma_path"): "the archive lives in the store file itself",
    ("ltm", "collection_name"): "namespaces of the store play its part",
    ("ltm", "cards_path"): "cards live in the store file itself",
    ("ltm", "cards_collection_name"): "cards live in the store file itself",
}


class Config:
    """A checked, immutable configuration.

    Attributes:
        name: Preset that it starts from.
        embedder: An object with ``embed``, ``dimension`` and ``fingerprint``
            that replaces the configured embedding model, or None.

    Example:
        >>> config = Config.preset("default").replace(capacity={"token_budget": 1024})
        >>> config["capacity"]["token_budget"]
        1024
    """

    __slots__ = ("_changes", "_json", "_presets", "_values", "embedder", "name")

    def __init__(
        self,
        name: str = "default",
        changes: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        embedder: Any = None,
    ) -> None:
        """Resolve a preset with changes on top.

        Raises:
            ConfigError: For an unknown preset, section or key (naming the
                nearest known one), a wrong type, or a value out of its range.
        """
        if not isinstance(name, str):
            message = f"a preset's name is text, not {type(name).__name__}"
            raise ConfigError(message, "config.preset")
        _quoted(name)  # refuses what is not valid Unicode
        self.name = name
        self.embedder = embedder
        if not isinstance(changes, Mapping | None):
            message = f"changes take sections with their keys, not {type(changes).__name__}"
            raise ConfigError(message, "config.type")
        with _shallow():
            self._changes = {where: _keys(where, keys) for where, keys in (changes or {}).items()}
            text = _to_toml(self._changes)
        values = json.loads(_core.load_config(name, text))
        self._json = json.dumps(values)
        self._values: Mapping[str, Any] = _fixed(values)
        self._presets: dict[str, Config] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it was made of, so that worker processes can have it."""
        return _rebuilt, (self.name, self._changes, self.embedder)

    @classmethod
    def preset(cls, name: str) -> Config:
        """The preset of that name: ``"default"`` or ``"paper"``.

        Raises:
            ConfigError: ``config.preset``: there is no such preset.
        """
        return cls(name)

    @classmethod
    def load(cls, path: str | Path, *, preset: str = "default") -> Config:
        """Read a TOML file; what it does not name keeps the preset's value.

        The paper's own files load unchanged.

        Raises:
            ConfigError: If the file cannot be read or says something unusable.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, ValueError, TypeError) as error:  # a NUL in the name, no name at all
            why = reason(error)  # without the path again
            message = f"the configuration {path} cannot be read: {why}"
            raise ConfigError(message, "config.syntax") from error
        _core.load_config(preset, text)  # names the line of a syntax error
        import tomllib

        try:
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            # The core's TOML is newer than Python's: a trailing comma, `\e` in a text.
            message = f"the configuration {path} is not TOML 1.0: {error}"
            raise ConfigError(message, "config.syntax") from error
        return cls(preset, values)

    def replace(self, **sections: Mapping[str, Any]) -> Config:
        """A copy with some keys changed: ``config.replace(capacity={"token_budget": 512})``.

        Raises:
            ConfigError: As for a new configuration.
        """
        changes = {section: dict(keys) for section, keys in self._changes.items()}
        with _shallow():
            for section, keys in sections.items():
                changes[section] = _merged(changes.get(section, {}), _keys(section, keys))
        return Config(self.name, changes, embedder=self.embedder)

    def with_embedder(self, embedder: Any) -> Config:
        """A copy that embeds with the given object instead of the configured model.

        Raises:
            ConfigError: ``config.type`` or ``config.range``: its ``dimension`` or
                ``fingerprint`` cannot be one.
        """
        changes = {section: dict(keys) for section, keys in self._changes.items()}
        changes.setdefault("nlp", {})["vector_dim"] = _dimension_of(embedder)
        _check_fingerprint(embedder)
        return Config(self.name, changes, embedder=embedder)

    def on_preset(self, name: str) -> Config:
        """The same changes on top of another preset.

        Raises:
            ConfigError: As for a new configuration; what fits one preset may not fit another.
        """
        if name not in self._presets:
            # Every memory of a store asks for each.
            self._presets[name] = Config(name, self._changes, embedder=self.embedder)
        return self._presets[name]

    def notes(self) -> list[str]:
        """One sentence for each key that is set but has no effect here."""
        return [
            f"[{section}] {key} has no effect: {why}"
            for (section, key), why in _ACCEPTED_WITHOUT_EFFECT.items()
            if key in self._changes.get(section, {})
        ]

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Every setting, by section."""
        values: dict[str, dict[str, Any]] = json.loads(self.to_json())
        return values

    def to_json(self) -> str:
        """Every setting as JSON text, keys in the order of the defaults."""
        return self._json

    def __getitem__(self, section: str) -> Mapping[str, Any]:
        """The settings of a section; lists are tuples, and nothing in it can be changed.

        Raises:
            KeyError: If there is no such section.
        """
        found: Mapping[str, Any] = self._values[section]
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self._json == other._json and self.embedder is other.embedder

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"Config({self.name!r}, {self._changes!r})"


def _dimension_of(embedder: Any) -> int:
    dimension = getattr(embedder, "dimension", None)
    try:
        if not isinstance(dimension, bool):
            return operator.index(dimension)  # type: ignore[arg-type]  # or it raises
    except TypeError:
        pass
    kind = type(dimension).__name__
    message = f"an embedder's dimension must be a whole number of at least 1, not a {kind}"
    raise ConfigError(message, "config.type")


def _check_fingerprint(embedder: Any) -> None:
    try:
        str(getattr(embedder, "fingerprint", "")).encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"an embedder's fingerprint is not valid Unicode at character {error.start}"
        raise ConfigError(message, "config.type") from error


@contextmanager
def _shallow() -> Iterator[None]:
    """Whatever is nested as no setting is, or in itself, is refused."""
    try:
        yield
    except RecursionError:
        message = "settings are nested too deeply; give sections with their keys"
        raise ConfigError(message, "config.type") from None


def _keys(section: str, keys: Any) -> dict[str, Any]:
    if not isinstance(section, str):
        message = f"a section's name is text, not {type(section).__name__}"
        raise ConfigError(message, "config.type")
    if not isinstance(keys, Mapping):
        message = f"[{section}] takes keys with values, not {type(keys).__name__}"
        raise ConfigError(message, "config.type")
    own: dict[str, Any] = {}
    for key, value in keys.items():
        if isinstance(value, Mapping):
            own[key] = _keys(f"{section}.{key}", value)
        else:
            own[key] = list(value) if isinstance(value, list) else value
    return own


class _Section(dict[str, Any]):
    """A section that nobody can change. A copy of it is an ordinary dictionary."""

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a configuration is not changed; make another one with Config.replace")

    __setitem__ = __delitem__ = __ior__ = _refused
    clear = pop = popitem = setdefault = update = _refused

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _fixed(value: Any) -> Any:
    """JSON data that nobody can change."""
    if isinstance(value, dict):
        return _Section({key: _fixed(item) for key, item in value.items()})
    return tuple(map(_fixed, value)) if isinstance(value, list) else value


def _to_toml(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of plain values as TOML; JSON scalars and lists are TOML ones."""
    return "\n".join(
        line for section, keys in changes.items() for line in _section([section], keys)
    )


def _section(path: list[str], keys: Mapping[str, Any]) -> list[str]:
    """A section, then those in it (``policy.rpe``)."""
    lines = [f"[{'.'.join(map(_quoted, path))}]"]
    inner: list[str] = []
    for key, value in keys.items():
        if isinstance(value, Mapping):
            inner += _section([*path, str(key)], value)
        else:
            lines.append(f"{_quoted(str(key))} = {_value(key, value)}")
    return lines + inner


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The old keys with the new ones on top, sections in a section likewise."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = _merged(before, value)
        merged[key] = value
    return merged


def _quoted(text: str) -> str:
    """JSON text is TOML text, but for escaped surrogate pairs and a bare DEL."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"a setting is not valid Unicode at character {error.start}"
        raise ConfigError(message, "config.type") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(key: str, value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(key, item) for item in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # nan, inf and -inf are TOML, too
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return json.dumps(value)
    message = (
        f"{key} must be text, a number in range, true, false or a list, "
        f"not a {type(value).__name__}"
    )
    raise ConfigError(message, "config.type")


def _rebuilt(name: str, changes: Mapping[str, Mapping[str, Any]], embedder: Any) -> Config:
    return Config(name, changes, embedder=embedder)
