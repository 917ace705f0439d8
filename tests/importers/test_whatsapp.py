"""WhatsApp's text files: dates of many phones, notices, attachments, equal messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide import InputError
from ebbtide.importers import Export, detect, read
from importers.makers import only, said, written, zipped


def chat(folder: Path, *lines: str, name: str = "WhatsApp Chat with Trip.txt") -> Path:
    return written(folder / name, "\n".join(lines))


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("31/12/24, 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("12/31/24, 9:41\u202fPM - Ana: x", "2024-12-31T21:41:00"),
        ("12/31/24, 12:05 AM - Ana: x", "2024-12-31T00:05:00"),
        ("12/31/24, 12:05 pm - Ana: x", "2024-12-31T12:05:00"),
        ("[31.12.24, 21:41:07] Ana: x", "2024-12-31T21:41:07"),
        ("31.12.2024, 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("31/12/2024 à 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("31/12/2024 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("31-12-2024 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("2024-12-31 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("2024-12-31, 9:41 p.m. - Ana: x", "2024-12-31T21:41:00"),
        ("2024/12/31 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("2024/12/31 下午9:41 - Ana: x", "2024-12-31T21:41:00"),
        ("2024. 12. 31. 21:41 - Ana: x", "2024-12-31T21:41:00"),
        ("[2024. 12. 31. 오후 9:41:07] Ana: x", "2024-12-31T21:41:07"),
        ("2024년 12월 31일 오전 12:41, Ana : x", "2024-12-31T00:41:00"),
        ("[31.12.2024 klo 21.41.07] Ana: x", "2024-12-31T21:41:07"),
        ("\u200f[٣١/١٢/٢٠٢٤، ٢١:٤١:٠٧] Ana: x", "2024-12-31T21:41:07"),
        ("\u200e[31/12/2024, 9:41:07\u202fp.\xa0m.] Ana: x", "2024-12-31T21:41:07"),
    ],
)
def test_dates_of_many_phones(tmp_path: Path, line: str, moment: str) -> None:
    path = chat(tmp_path, line)
    turn = only("whatsapp", path)
    assert (turn.timestamp, turn.speaker, turn.text) == (moment, "Ana", "x")
    assert detect(path) == "whatsapp"


def dates(path: Path, **options: str) -> tuple[list[str], Export]:
    export = read("whatsapp", path, **options)
    return [str(turn.timestamp)[:10] for turn in export], export


def test_one_late_day_settles_the_order_for_the_whole_file(tmp_path: Path) -> None:
    lines = ["2/1/25, 9:00 - A: x", "3/1/25, 9:00 - A: x", "13/1/25, 9:00 - A: x"]
    found, export = dates(chat(tmp_path, *lines))
    assert found == ["2025-01-02", "2025-01-03", "2025-01-13"]
    assert export.notes == []
    lines[-1] = "1/13/25, 9:00 - A: x"
    assert dates(chat(tmp_path, *lines))[0] == ["2025-02-01", "2025-03-01", "2025-01-13"]


def test_time_runs_forward_or_the_order_is_wrong(tmp_path: Path) -> None:
    lines = ["1/12/25, 9:00 - A: x", "2/1/25, 9:00 - A: x"]  # 12 January, then 1 February
    found, export = dates(chat(tmp_path, *lines))
    assert found == ["2025-01-12", "2025-02-01"]
    assert export.notes == []


def test_days_lie_close_together_and_a_guess_is_told(tmp_path: Path) -> None:
    lines = ["1/2/25, 9:00 - A: x", "2/2/25, 9:00 - A: x", "3/2/25, 9:00 - A: x"]
    found, export = dates(chat(tmp_path, *lines))
    assert found == ["2025-02-01", "2025-02-02", "2025-02-03"]
    assert "--date-order mdy" in export.notes[0]
    found, export = dates(chat(tmp_path, *lines), date_order="mdy")
    assert found == ["2025-01-02", "2025-02-02", "2025-03-02"]
    assert export.notes == []


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    lines = [f"26/10/25, 0{clock} - A: {n}" for n, clock in enumerate(["1:50", "2:10", "2:05"])]
    stamps = [
        turn.timestamp for turn in read("whatsapp", chat(tmp_path, *lines), timezone="Europe/Oslo")
    ]
    assert stamps == [
        "2025-10-26T01:50:00+02:00",
        "2025-10-26T02:10:00+02:00",
        "2025-10-26T02:05:00+01:00",
    ]


def test_equal_messages_stay_two_and_ids_do_not_depend_on_the_zone(tmp_path: Path) -> None:
    path = chat(
        tmp_path, "31/12/24, 21:41 - A: ok", "31/12/24, 21:41 - B: ok", "31/12/24, 21:41 - A: ok"
    )
    ids = [turn.external_id for turn in read("whatsapp", path)]
    assert len(set(ids)) == 3
    assert [turn.external_id for turn in read("whatsapp", path, timezone="Asia/Tokyo")] == ids
    # A later export, saved beside the first, has the same ids and more.
    more = path.read_text(encoding="utf-8") + "\n1/1/25, 0:01 - B: happy new year"
    again = written(tmp_path / "WhatsApp Chat with Trip (1).txt", more)
    assert [turn.external_id for turn in read("whatsapp", again)][:3] == ids


def test_what_the_phone_wrote_is_no_message(tmp_path: Path) -> None:
    at = "31/12/24, 21:41 - "
    path = chat(
        tmp_path,
        "a line above",
        f"{at}Ana changed the subject to “Porto: at last”",
        f"{at}Ana added Ben",
        f"{at}Ana: IMG-1.jpg (file attached)",
        f"{at}Ana: \u200eIMG-2.jpg (file attached)",
        "with a caption",
        f"{at}Ana: <Arquivo de mídia omitido>",
        f"{at}Ana: You deleted this message",
        f"{at}Ana: <not omitted> at all",
        f"{at}Ana: live: location: here",
        f"{at}Ana:",
        "begins below",
        f"{at}Ana: Hotel Sol <Se editó este mensaje.>",
        f"{at}Ana: [01/01/2025, 10:00:00] Ben: quoted",
        f"{at}Ana: 99/99/24, 10:00 - Ben: no date",
        "99/99/24, 10:00 - Ben: nor is this",
    )
    export = read("whatsapp", path)
    assert [turn.text for turn in export] == [
        "with a caption",
        "<not omitted> at all",
        "live: location: here",
        "begins below",
        "Hotel Sol",
        "[01/01/2025, 10:00:00] Ben: quoted",
        "99/99/24, 10:00 - Ben: no date\n99/99/24, 10:00 - Ben: nor is this",
    ]
    assert dict(export.skips) == {"unknown": 1, "system": 2, "attachment": 2, "deleted": 1}


def test_an_iphone_marks_its_own_words(tmp_path: Path) -> None:
    at = "[31/12/2024, 21:41:07] "
    path = chat(
        tmp_path,
        f"{at}Dr: Ana: \u200eMissed voice call",
        f"{at}Ana: \u200eLocation: https://maps.example/?q=1,2",
        f"{at}Ana: \u200eAna.vcf",
        f"{at}Ana: look at this \u200eimage omitted",
        f"{at}Ana: and this \u200e<attached: 1-PHOTO.jpg>",
        f"{at}Ana: \u200ePOLL:",
        "Where to?",
        "\u200eOPTION: Porto (2 votes)",
        f"{at}~\u202fBen\u202c: hi \u2068@\u2069Ana \u200e<This message was edited>",
    )
    export = read("whatsapp", path)
    assert said(export) == [
        ("Ana", "look at this"),
        ("Ana", "and this"),
        ("Ana", "POLL:\nWhere to?\nOPTION: Porto (2 votes)"),
        ("Ben", "hi @Ana"),
    ]
    assert dict(export.skips) == {"system": 1, "attachment": 2}


def test_names_of_chats(tmp_path: Path) -> None:
    line = "31/12/24, 21:41 - A: x"
    for name, title in [
        ("WhatsApp Chat with Trip: Porto.txt", "Trip: Porto"),
        ("WhatsApp-Chat mit Ana (2).txt", "Ana"),
        ("notes.txt", "notes"),
    ]:
        turn = only("whatsapp", chat(tmp_path, line, name=name))
        assert (turn.session_id, (turn.metadata or {})["title"]) == (f"whatsapp-{title}", title)
    path = zipped(tmp_path / "WhatsApp Chat - Ana.zip", {"_chat.txt": line, "1-PHOTO.jpg": b"\xff"})
    assert only("auto", path).session_id == "whatsapp-Ana"
    lone = written(tmp_path / "WhatsApp Chat - Ben" / "_chat.txt", line)
    assert only("auto", lone).session_id == "whatsapp-Ben"


def test_encodings_and_line_ends(tmp_path: Path) -> None:
    text = "31/12/24, 21:41 - Ana: één\u2028zwei\r\ndrei\r\n31/12/24, 21:42 - Ana: 👍\r\n"
    for data in (text.encode("utf-8-sig"), text.encode("utf-16")):
        path = written(tmp_path / "WhatsApp Chat with X.txt", data)
        assert [turn.text for turn in read("whatsapp", path)] == ["één\u2028zwei\ndrei", "👍"]
    path = written(tmp_path / "WhatsApp Chat with X.txt", text.encode("latin-1", "replace"))
    with pytest.raises(InputError, match="not UTF-8 near byte 24; save the file as UTF-8"):
        list(read("whatsapp", path))


def test_a_file_without_messages_says_so(tmp_path: Path) -> None:
    path = chat(tmp_path, "Dear diary,", "today nothing.")
    with pytest.raises(InputError, match="Export chat") as caught:
        list(read("whatsapp", path))
    assert caught.value.code == "input.transcript"
    with pytest.raises(InputError, match="not recognised"):
        detect(path)
