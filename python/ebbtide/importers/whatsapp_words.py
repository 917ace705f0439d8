"""What a WhatsApp message says, apart from what the app wrote into it.

The app's own words come in the phone's language. An iPhone puts the mark U+200E before
them; for Android the common languages are listed.
"""

from __future__ import annotations

import re

from ebbtide.importers.texts import Words, clean

__all__ = ["message_words", "plain_name", "split_sender"]

_LRM = "\u200e"
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_OMITTED = (
    r"(?:omitted|ausgeschlossen|weggelassen|omitid[oa]s?|omis(?:es?)?|omess[oia]|ocult[oa]|"
    r"ocultad[oa]s?|weggelaten|utelatt|utelämnad[et]?|udeladt|pominięto|dahil edilmedi|"
    r"без медиафайлов|пропущен[оы]?|제외됨|생략됨|省略|已忽略|已省略|略過|ohitettu|jätetty pois|"
    r"kihagyva|vynechán[ayo]?|omise)"
)
_MEDIA = re.compile(
    rf"^{_LRM}?<[^<>\n]{{0,30}}{_OMITTED}[^<>\n]{{0,12}}>$|{_LRM}[^<>\n{_LRM}]{{0,40}}{_OMITTED}\.?"
    rf"|{_LRM}<[^<>:\n]{{3,20}}: ?[^<>/\n]{{1,120}}\.\w{{2,5}}>"
    rf"|^{_LRM}?[^\n/]{{1,120}}\.\w{{2,5}} \((?:file attached|archivo adjunto|Datei angehängt|"
    r"fichier joint|arquivo anexado|file allegato|bestand bijgevoegd|bifogad fil|vedlagt fil|"
    r"вложенный файл|첨부 파일|添付ファイル|文件附件|档案已附加|dosya ekli|"
    r"plik dołączony|załączony plik)\)$",
    re.IGNORECASE | re.MULTILINE,
)
_EDITED = re.compile(
    rf"(?<!\s)\s*{_LRM}?<(?:This message was edited|Diese Nachricht wurde bearbeitet|"
    r"Se editó este mensaje|Este mensaje fue editado|Ce message a été modifié|"
    r"(?:Esta )?[Mm]ensagem (?:foi )?editada|Questo messaggio è stato modificato|"
    r"Dit bericht is bewerkt|Bericht bewerkt|Данное сообщение изменено|Сообщение изменено|"
    r"Bu mesaj düzenlendi)\.?>\s*$"
)
_DELETED = re.compile(
    r"(?:This message was deleted(?: by admin .{1,80})?|You deleted this message(?: as admin)?|"
    r"Diese Nachricht wurde (?:von .{1,80} )?gelöscht|Du hast diese Nachricht gelöscht|"
    r"Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje|"
    r"Ce message a été supprimé|Vous avez supprimé ce message|"
    r"(?:Esta m|M)ensagem (?:foi )?apagada|Você apagou esta mensagem|Apagou esta mensagem|"
    r"Questo messaggio è stato eliminato|Hai eliminato questo messaggio|"
    r"Dit bericht is verwijderd|(?:U hebt|Je hebt) dit bericht verwijderd|"
    r"Detta meddelande raderades|Du raderade det här meddelandet|"
    r"Denne meldingen ble slettet|Du slettet denne meldingen|"
    r"Tämä viesti poistettiin|Poistit tämän viestin|"
    r"Данное сообщение удалено|Вы удалили данное сообщение|"
    r"Bu mesaj silindi|Bu mesajı sildiniz|Ta wiadomość została usunięta|"
    r"삭제된 메시지입니다\.?|이 메시지를 삭제했습니다\.?|"
    r"このメッセージは削除されました|メッセージを削除しました|此消息已删除|您已删除此消息)[.。]?",
    re.IGNORECASE,
)
_ENCLOSED = re.compile(
    r"(?:location|live location shared|standort|ubicación|position|localização|localizzazione)"
    r"(?::| \().*|.{1,120}\.vcf.*",
    re.IGNORECASE,
)
_POLL = re.compile(r"(?:poll|umfrage|encuesta|sondage|enquete|sondaggio|peiling):", re.IGNORECASE)
_UNKNOWN = re.compile(r"^~\s*")
_NOTHING = ("null", "Waiting for this message. This may take a while.")
"""What stands for a message that the phone does not have (seen once, say)."""


def split_sender(rest: str) -> tuple[str | None, str, bool]:
    """Who wrote a line, what, and whether the app did; nobody wrote a notice.

    A name may hold a colon: where the app's mark follows one, that is the one.
    """
    at = rest.find(f": {_LRM}")
    generated = at > 0
    if not generated:
        at = rest.find(": ")
        if at <= 0 and rest.endswith(":"):  # the text begins in the next line
            at = len(rest) - 1
    if at <= 0:
        return None, rest, True
    name = rest[:at].strip()
    # Ana created group "Trip: Porto": the colon is inside a title.
    if name.count('"') % 2 or any(name.count(a) != name.count(b) for a, b in ("“”", "«»", "„“")):
        return None, rest, True
    return (name or None), rest[at + 1 :].lstrip(" "), generated


def plain_name(name: str) -> str:
    """A sender's name without marks; ``~`` stands before names that are not in the contacts."""
    name = " ".join(_DIRECTION.sub("", name).split())
    return _UNKNOWN.sub("", name) or name


def message_words(text: str, *, generated: bool) -> Words:
    """The words of a message, or why it has none.

    Args:
        text: All its lines.
        generated: Whether it begins with the app's mark.
    """
    text = _EDITED.sub("", text)
    bare = clean(_DIRECTION.sub("", text))
    if _DELETED.fullmatch(bare):
        return Words("", "deleted")
    if bare in _NOTHING:
        return Words("", "empty")
    rest = clean(_DIRECTION.sub("", _MEDIA.sub("", text)))
    if not rest:
        return Words("", "attachment" if bare else "empty")
    if generated and rest == bare and not _POLL.match(bare):
        return Words("", "attachment" if _ENCLOSED.fullmatch(bare) else "system")
    return Words(rest)
