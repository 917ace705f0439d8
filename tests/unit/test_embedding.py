"""The embedder of a model: bit-identity, passages, spans, queries, custom models, errors."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.helping import helped

from ebbtide.analysis import embedding
from ebbtide.analysis.canonical import canonical_passages
from ebbtide.analysis.embedding import Embedder, ModelEmbedder, Passage, at_once
from ebbtide.errors import ConfigError

TEXTS = [
    "Rosa: I adopted a grey cat in March, her name is Pebble.",
    "Ok.",
    "Which day suits you better, Tuesday or Thursday?",
    "The quarterly figures are in the shared folder, revenue is up 8 %.",
    "Zoë ate naïve crêpes 😂 in Łódź.",
    "Nikolai: my shift ends at nine, so I can pick you up at the station around half past.",
    "Sure!",
    "Fine.",
    "We left the tent at home because the forecast promised three dry days in a row.",
    "word " * 150,
]


@pytest.fixture(scope="module")
def embedder() -> ModelEmbedder:
    pytest.importorskip(
        "ebbtide_model_bge_small_en", reason="the default model's wheel is not installed"
    )
    return ModelEmbedder()


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def same(a: Sequence[Passage], b: Sequence[Passage]) -> bool:
    return len(a) == len(b) and all(
        (x.start, x.end) == (y.start, y.end)
        and x.vector.tobytes() == y.vector.tobytes()
        and x.tokens.tobytes() == y.tokens.tobytes()
        and x.token_spans.tobytes() == y.token_spans.tobytes()
        for x, y in zip(a, b, strict=True)
    )


def test_what_is_stored_is_what_encode_gives(embedder: ModelEmbedder) -> None:
    texts = [*TEXTS, "", "word " * 2000, TEXTS[0]]
    expected = [canonical_passages(passages) for passages in embedder.encode(texts)]
    with ThreadPoolExecutor(2) as executor:
        ways = [embedder.begin(texts, at_once)(), embedder.begin(texts, executor.submit)()]
    for found in ways:
        for some, right in zip(found, expected, strict=True):
            assert len(some) == len(right)
            for one, other in zip(some, right, strict=True):
                assert (one.start, one.end) == (other.start, other.end)
                assert one.vector.tobytes() == other.vector.tobytes()
                assert one.tokens is not None
                assert other.tokens is not None
                assert one.tokens.shape == other.tokens.shape
                assert one.tokens.tobytes() == other.tokens.tobytes()


def test_it_is_an_embedder(embedder: ModelEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.dimension == 384
    assert embedder.fingerprint.startswith("bge-small-en-v1.5/cls/512/")
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.encode([]) == []


def test_alone_in_a_batch_and_reordered_are_the_same_bits(embedder: ModelEmbedder) -> None:
    together = embedder.encode(TEXTS)
    alone = [embedder.encode([text])[0] for text in TEXTS]
    turned = embedder.encode(TEXTS[::-1])[::-1]
    for first, second, third in zip(together, alone, turned, strict=True):
        assert same(first, second)
        assert same(first, third)


def test_more_than_goes_through_at_once_is_the_same_bits(embedder: ModelEmbedder) -> None:
    texts = [f"item number {number} today, " * (1 + number % 7) for number in range(120)]
    pieces = sum(len(passages[0].tokens) for passages in embedder.encode(texts))
    assert pieces > 2 * embedding.GROUP_TOKENS
    together = embedder.embed(texts)
    assert together.tobytes() == np.stack([embedder.embed([t])[0] for t in texts]).tobytes()


def test_a_graph_gets_rows_of_one_length(tmp_path: Path) -> None:
    embedder = ModelEmbedder(tiny_model(tmp_path / "tiny"))
    texts = ["a", "red fox", "fox", "a red", *["red a"] * 3, *[f"fox {n}" for n in range(40)]]
    network = embedder._model.network
    assert network.of_one_length
    for group in embedder._groups(sorted({(2,) * (1 + n % 5) + (n,) for n in range(60)}, key=len)):
        assert len({len(ids) for ids in group}) == 1
        assert len(group) <= embedding.GROUP_ROWS
    alone = [embedder.embed([text])[0] for text in texts]
    assert embedder.embed(texts).tobytes() == np.stack(alone).tobytes()


def test_threads_do_not_change_a_bit(embedder: ModelEmbedder) -> None:
    two = ModelEmbedder(threads=2)
    assert two.fingerprint == embedder.fingerprint
    for a, b in zip(embedder.encode(TEXTS), two.encode(TEXTS), strict=True):
        assert same(a, b)


def test_concurrent_callers_get_their_own_results(embedder: ModelEmbedder) -> None:
    expected = [embedder.embed([text])[0].tobytes() for text in TEXTS]
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(embedder.embed, [text]) for text in TEXTS * 3]
        found = [job.result()[0].tobytes() for job in jobs]
    assert found == expected * 3


def test_equal_texts_are_computed_once(
    embedder: ModelEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    network = embedder._model.network
    original = network.rows

    def spy(texts: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        sizes.append(len(texts))
        return original(texts)

    monkeypatch.setattr(network, "rows", spy)
    vectors = embedder.embed(["Hello there.", "Bye.", "Hello there.", "hello there."])
    assert sizes == [2]
    assert vectors[0].tobytes() == vectors[2].tobytes()
    assert vectors[0].tobytes() != vectors[1].tobytes()


def test_embed_is_the_vector_of_the_first_passage(embedder: ModelEmbedder) -> None:
    long_text = "The archive of the harbour office is damp. " * 120
    vectors = embedder.embed([*TEXTS, long_text])
    for vector, passages in zip(vectors, embedder.encode([*TEXTS, long_text]), strict=True):
        assert vector.tobytes() == passages[0].vector.tobytes()


@pytest.mark.parametrize("text", ["", "   \n\t", "\u200b\x00"])
def test_nothing_to_embed_gives_a_zero_vector(embedder: ModelEmbedder, text: str) -> None:
    (passage,) = embedder.encode([text])[0]
    assert (passage.start, passage.end) == (0, len(text))
    assert not passage.vector.any()
    assert passage.vector.shape == (384,)
    assert passage.tokens.shape == (0, 384)
    assert passage.token_spans.shape == (0, 2)
    assert not embedder.embed([text]).any()
    assert not embedder.embed_query(text).any()
    assert not embedder.encode_query(text).vector.any()


def test_spans_are_characters_of_the_text(embedder: ModelEmbedder) -> None:
    text = "Zoë 😂 ate naïve 日本 crêpes\U0001f600!"
    (passage,) = embedder.encode([text])[0]
    assert (passage.start, passage.end) == (0, len(text))
    words = [text[start:end] for start, end in passage.token_spans]
    expected = ["Zoë", "😂", "ate", "naïve", "日", "本", "cr", "êp", "es", "\U0001f600", "!"]
    assert [word for word in words if word] == expected
    assert passage.token_spans.dtype == np.int32
    assert len(passage.tokens) == len(passage.token_spans)


def test_a_lone_surrogate_keeps_the_spans_right(embedder: ModelEmbedder) -> None:
    text = "before \ud83d after"
    (passage,) = embedder.encode([text])[0]
    assert [text[start:end] for start, end in passage.token_spans] == ["before", "after"]


def test_arrays_are_read_only(embedder: ModelEmbedder) -> None:
    (passage,) = embedder.encode(["Hello there."])[0]
    for array in (passage.vector, passage.tokens, passage.token_spans):
        assert not array.flags.writeable


def test_a_needle_in_a_long_text_has_its_own_passage(embedder: ModelEmbedder) -> None:
    filler = "The minutes of the meeting list budget items and parking spaces. "
    needle = "Wilhelmina keeps a tame raven named Octavius in the bell tower. "
    text = filler * 300 + needle + filler * 20
    passages = embedder.encode([text])[0]
    assert len(passages) > 5
    query = embedder.embed_query("What is the name of Wilhelmina's raven?")
    scores = [cosine(query, passage.vector) for passage in passages]
    best = passages[int(np.argmax(scores))]
    start = text.index(needle)
    assert best.start <= start
    assert start + len(needle.strip()) <= best.end
    assert max(scores) - float(np.median(scores)) > 0.02


def test_passages_cover_a_long_text_and_overlap(embedder: ModelEmbedder) -> None:
    text = "  " + " ".join(f"unquestionably{i} so" for i in range(900)) + "  "
    passages = embedder.encode([text])[0]
    assert passages[0].start == 0
    assert passages[-1].end == len(text)
    for passage in passages:
        assert len(passage.tokens) <= 510
        assert len(passage.tokens) == len(passage.token_spans)
    for before, after in itertools.pairwise(passages):
        shared = [span for span in before.token_spans.tolist() if span[0] >= after.start]
        assert len(shared) >= embedding.OVERLAP
        assert after.token_spans.tolist()[: len(shared)] == shared
        assert text[after.start - 1] == " "


@pytest.mark.parametrize(("pieces", "count"), [(509, 1), (510, 1), (511, 2)])
def test_the_limit_is_510_word_pieces(embedder: ModelEmbedder, pieces: int, count: int) -> None:
    passages = embedder.encode(["so " * pieces])[0]
    assert len(passages) == count
    assert len(passages[0].tokens) == min(pieces, 510)


def test_one_endless_word_still_ends() -> None:
    bounds = list(embedding._window_bounds([0] * 2000, 510))
    assert bounds[0] == (0, 510)
    assert bounds[-1][1] == 2000
    assert all(a < c <= b < d for (a, b), (c, d) in itertools.pairwise(bounds))
    assert list(embedding._window_bounds([None] * 9, 4)) == [(0, 4), (3, 7), (6, 9)]


def test_query_prefix_is_for_the_vector_only(embedder: ModelEmbedder) -> None:
    question = "Where does Rosa keep her cat?"
    query = embedder.encode_query(question)
    (plain,) = embedder.encode([question])[0]
    prefixed = embedder.embed([embedder.query_prefix + question])[0]
    assert query.vector.tobytes() == prefixed.tobytes()
    assert query.vector.tobytes() == embedder.embed_query(question).tobytes()
    assert query.vector.tobytes() != plain.vector.tobytes()
    assert query.tokens.tobytes() == plain.tokens.tobytes()
    assert query.token_spans.tobytes() == plain.token_spans.tobytes()


def test_two_threads_share_a_question(embedder: ModelEmbedder) -> None:
    question = "Where does Rosa keep her cat?"
    with ThreadPoolExecutor(2) as pool:
        shared = embedder.begin_query(question, pool.submit)()
    alone = embedder.encode_query(question)
    assert (shared.start, shared.end) == (alone.start, alone.end)
    for mine, theirs in (
        (shared.vector, alone.vector),
        (shared.tokens, alone.tokens),
        (shared.token_spans, alone.token_spans),
    ):
        assert mine.tobytes() == theirs.tobytes()
        assert not mine.flags.writeable


def test_help_changes_no_bit(embedder: ModelEmbedder) -> None:
    assert not embedder.assist(), "nothing is embedded"
    alone = [embedder.embed([text]).tobytes() for text in TEXTS]
    with helped(embedder):
        for _ in range(5):
            assert [embedder.embed([text]).tobytes() for text in TEXTS] == alone


def test_paraphrases_are_closer_than_unrelated_texts(embedder: ModelEmbedder) -> None:
    pairs = [
        (
            "My cat is ill and I took her to the vet.",
            "The kitty was sick, so we saw an animal doctor.",
        ),
        ("The server crashed last night.", "Our machine went down yesterday evening."),
        ("She plays the cello in an orchestra.", "He is a violinist with the city philharmonic."),
        ("We are saving money for a house.", "They put cash aside to buy a home."),
    ]
    left, right = (embedder.embed([pair[side] for pair in pairs]) for side in (0, 1))
    for row in range(len(pairs)):
        scores = [cosine(left[row], other) for other in right]
        rival = max(score for column, score in enumerate(scores) if column != row)
        assert scores[row] > rival + 0.05


def test_the_question_finds_its_answer(embedder: ModelEmbedder) -> None:
    vectors = embedder.embed(TEXTS)
    query = embedder.embed_query("What is the name of Rosa's pet?")
    assert int(np.argmax([cosine(query, vector) for vector in vectors])) == 0


def test_missing_package_names_it_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ebbtide_model_bge_small_en", None)
    with pytest.raises(ConfigError, match="pip install ebbtide-model-bge-small-en") as caught:
        ModelEmbedder()
    assert caught.value.code == "config.model_missing"


def tiny_model(
    folder: Path, kind: int | None = None, third: str = "token_type_ids", **manifest: object
) -> Path:
    """A BERT-like model of three inputs: word + segment embedding, times the mask."""
    onnx = pytest.importorskip("onnx", reason="onnx is needed to write a test model")
    tokenizers = pytest.importorskip("tokenizers")
    folder.mkdir(exist_ok=True)
    vocabulary = {word: i for i, word in enumerate(["[CLS]", "[SEP]", "[UNK]", "a", "red", "fox"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=12)
    tokenizer.save(str(folder / "tokenizer.json"))
    helper, kinds = onnx.helper, onnx.TensorProto
    names = ["input_ids", "attention_mask", third]
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    segments = np.array([[0.5, 0.25], [9, 9]], np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Gather", ["segments", third], ["kinds"]),
        helper.make_node("Add", ["words", "kinds"], ["sum"]),
        helper.make_node("Cast", ["attention_mask"], ["seen"], to=kinds.FLOAT),
        helper.make_node("Unsqueeze", ["seen", "axis"], ["column"]),
        helper.make_node("Mul", ["sum", "column"], ["last_hidden_state"]),
    ]
    constants = {"table": table, "segments": segments, "axis": np.array([2], np.int64)}
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(n, kind or kinds.INT64, ["b", "t"]) for n in names],
        [helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, ["b", "t", 2])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "model.onnx")
    if manifest:
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", [6, 7], ids=["int32", "int64"])
def test_a_custom_model_with_mask_and_segments(tmp_path: Path, kind: int) -> None:
    embedder = ModelEmbedder(tiny_model(tmp_path / "tiny", kind))
    assert embedder.dimension == 2
    assert embedder.fingerprint.startswith("tiny/cls/512/")
    (passage,) = embedder.encode(["a red fox a red fox"])[0]
    assert passage.vector.tolist() == [0.5, 1.25]
    assert passage.tokens[:3].tolist() == [[6.5, 7.25], [8.5, 9.25], [10.5, 11.25]]
    assert len(passage.tokens) == 6
    assert embedder.encode_query("fox").vector.tolist() == [0.5, 1.25]


def test_the_manifest_of_a_custom_model_counts(tmp_path: Path) -> None:
    settings = {"name": "mine", "dimension": 2, "max_tokens": 6, "query_prefix": "red "}
    embedder = ModelEmbedder(tiny_model(tmp_path / "tiny", pooling="mean", **settings))
    assert embedder.fingerprint.startswith("mine/mean/6/")
    assert embedder.embed(["fox"]).tolist() == [[(0 + 10 + 2) / 3 + 0.5, (1 + 11 + 3) / 3 + 0.25]]
    assert embedder.embed_query("fox").tolist() == embedder.embed(["red fox"])[0].tolist()
    text = "a red fox a red fox"
    spans = [(p.start, p.end) for p in embedder.encode([text])[0]]
    assert spans == [(0, 11), (10, len(text))]


def test_the_fingerprint_changes_with_each_file(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny")
    before = ModelEmbedder(folder).fingerprint
    copy = shutil.copytree(folder, tmp_path / "copy" / "tiny")
    assert ModelEmbedder(copy).fingerprint == before
    tokenizer = copy / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text("utf-8") + "\n", encoding="utf-8")
    assert ModelEmbedder(copy).fingerprint != before


def test_missing_directory_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*no such directory.*model\.onnx"):
        ModelEmbedder(tmp_path / "nowhere")
    for name in ("model.onnx", "tokenizer.json"):
        folder = tiny_model(tmp_path / name)
        (folder / name).unlink()
        with pytest.raises(ConfigError, match=rf"{name}' cannot be used: no such file"):
            ModelEmbedder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    folder = tiny_model(tmp_path / "tiny")
    (folder / name).write_bytes(b"\x00\x01 not this")
    with pytest.raises(ConfigError, match=f"{name}' cannot be used"):
        ModelEmbedder(folder)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"dimension": 3}, r"width is 2, manifest\.json says 3"),
        ({"dimension": "2"}, "`dimension` must be a positive integer"),
        ({"max_tokens": 0}, "`max_tokens` must be a positive integer"),
        ({"max_tokens": 2}, "leaves no room"),
        ({"pooling": "max"}, "`pooling` must be 'cls' or 'mean'"),
        ({"query_prefix": 7}, "`query_prefix` must be a string"),
        ({"sha256": {"model.onnx": "0"}}, r"model\.onnx.*differs from manifest\.json"),
        ({"sha256": []}, "`sha256` must map"),
    ],
)
def test_a_wrong_manifest_is_refused(
    tmp_path: Path, manifest: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        ModelEmbedder(tiny_model(tmp_path / "tiny", **manifest))
    assert caught.value.code == "config.model_unusable"


def test_threads_and_inputs_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="threads must be 1 or more"):
        ModelEmbedder(tiny_model(tmp_path / "tiny"), threads=0)
    with pytest.raises(ConfigError, match="input 'position_ids' is not one of"):
        ModelEmbedder(tiny_model(tmp_path / "other", third="position_ids"))
