//! Long-term utility of a turn without a language model (D-MEM, section 4.1).
//!
//! D-MEM asks a model how long a turn matters and how much. Here both follow from the
//! facts that are read from every turn anyway. Transient is what says nothing that
//! could be asked for later: an acknowledgement, a momentary status, a short remark
//! off the thread. A turn that names somebody or something, gives a number, or
//! contradicts what is stored is never transient.

use crate::config::Rpe;
use crate::text;
pub use crate::types::Lifecycle;
use crate::types::{Facts, Provenance, Signals};

/// Every reason that a lifecycle may have.
pub const REASONS: [&str; 11] = [
    "phatic",
    "status",
    "aside",
    "conflict",
    "provenance",
    "signal",
    "fact",
    "dated_event",
    "own",
    "content",
    super::assessment::REASON,
];

/// A turn as utility sees it.
#[derive(Clone, Copy)]
pub struct Said<'a> {
    /// Raw text.
    pub text: &'a str,
    /// Its role.
    pub role: &'a str,
    /// What was read from it.
    pub facts: &'a Facts,
    /// What the caller said of its source.
    pub provenance: Option<&'a Provenance>,
    /// Whether a folded word or name is that of somebody who takes part.
    pub takes_part: &'a dyn Fn(&str) -> bool,
    /// Whether it has nothing to do with the newest notes (see `rpe::off_thread`).
    pub off_thread: bool,
    /// Whether it contradicts a stored claim.
    pub conflict: bool,
}

/// Least utility of a turn that is noted unless it hardly differs from a note: at
/// theta_low 0.3 and beta 0.4 that takes a surprise under 0.1.
const SHORT_TERM: f64 = 0.6;
/// Least utility of a turn that is always noted: 0.75 (0 + 0.4) = 0.3.
const PERSISTENT: f64 = 0.75;
/// Entities at which their share is full (eq. 4).
const ENTITY_CAP: f64 = 5.0;
/// Content lemmas that say nothing by themselves, whatever else the turn is.
const NO_CONTENT: usize = 2;

/// Words of a remark that is too short to go on about anything.
const TINY: usize = 6;

/// Signals of something that lasts; a current state may be over in a minute.
const LASTING: u8 = Signals::CONSTRAINT
    | Signals::PREFERENCE
    | Signals::CORRECTION
    | Signals::REPLACEMENT
    | Signals::PAST_STATE;

/// Entity labels that name somebody or something.
const NAMES: [&str; 11] = [
    "PERSON",
    "ORG",
    "GPE",
    "LOC",
    "FAC",
    "WORK_OF_ART",
    "PRODUCT",
    "EVENT",
    "NORP",
    "LAW",
    "LANGUAGE",
];
/// Entity labels that measure or count.
const QUANTITIES: [&str; 4] = ["CARDINAL", "QUANTITY", "MONEY", "PERCENT"];
/// Words of the first person.
const FIRST_PERSON: [&str; 6] = ["i", "my", "mine", "we", "our", "ours"];
/// Kin, work, home and health: of somebody's own they last.
const OWN: [&str; 40] = [
    "wife",
    "husband",
    "partner",
    "fiance",
    "fiancee",
    "girlfriend",
    "boyfriend",
    "mother",
    "mom",
    "mum",
    "father",
    "dad",
    "parents",
    "brother",
    "sister",
    "son",
    "daughter",
    "kids",
    "children",
    "grandma",
    "grandmother",
    "grandpa",
    "grandfather",
    "aunt",
    "uncle",
    "cousin",
    "niece",
    "nephew",
    "job",
    "career",
    "boss",
    "manager",
    "company",
    "apartment",
    "mortgage",
    "doctor",
    "surgery",
    "allergic",
    "allergy",
    "diagnosed",
];
/// Kinds of the cards that state something.
const STATING: [&str; 6] = [
    "relation",
    "fact",
    "current_state",
    "preference",
    "constraint",
    "correction",
];
/// Words that hand the turn on for a moment.
const MOMENTARY: [&[&str]; 17] = [
    &["brb"],
    &["afk"],
    &["one", "sec"],
    &["one", "second"],
    &["one", "moment"],
    &["one", "minute"],
    &["a", "sec"],
    &["just", "a", "second"],
    &["just", "a", "minute"],
    &["just", "a", "moment"],
    &["hold", "on"],
    &["hang", "on"],
    &["right", "back"],
    &["gotta", "run"],
    &["gotta", "go"],
    &["let", "me", "grab"],
    &["let", "me", "check"],
];
/// What a sentence opens with that goes on about what was said before.
const ANAPHORS: [&str; 13] = [
    "it", "they", "he", "she", "that", "those", "these", "this", "them", "his", "her", "their",
    "some",
];
/// What may stand before it.
const LEADS: [&str; 9] = [
    "and", "but", "so", "well", "yeah", "yep", "yes", "no", "nope",
];

/// How long a turn matters, why, and its utility in [0, 1].
pub fn judge(said: &Said<'_>, c: &Rpe) -> (Lifecycle, &'static str, f64) {
    let folded = text::fold(said.text);
    let seen = Seen::of(said, &folded, words(said.text));
    let (lifecycle, reason) = lifecycle(said, &seen, c);
    (lifecycle, reason, utility(lifecycle, said, &seen))
}

/// Whether a turn is transient, as far as it tells by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transience {
    /// It says something that could be asked for later.
    #[default]
    Never,
    /// Where it has nothing to do with what is talked of.
    OffThread,
    /// In any talk.
    Always,
}

/// Whether a turn is transient, but for the thread and what is stored: `off_thread` and
/// `conflict` are not looked at. Long turns are so only where they are social or
/// acknowledge something, and those that state something only where they are a status.
pub fn transience(said: &Said<'_>, c: &Rpe) -> Transience {
    let f = said.facts;
    let light = f.social || f.signals.has(Signals::ACK_LIKE);
    let most = match f.signals.has(LASTING) || has_card(f, &STATING) {
        true => c.status_words,
        false if light => usize::MAX,
        false => c.aside_words.max(c.status_words),
    };
    let marked = said.provenance.is_some_and(counts);
    let words = words(said.text);
    if marked || words > most || !may_be_transient(said) {
        return Transience::Never;
    }
    let said = Said {
        off_thread: true,
        ..*said
    };
    let folded = text::fold(said.text);
    let seen = Seen::of(&said, &folded, words);
    match transient(&said, &seen, c) {
        Some("aside") => Transience::OffThread,
        // Two words may be the answer to a question, if it was one on the matter.
        Some("phatic") if !light && !seen.momentary() => Transience::OffThread,
        Some(_) => Transience::Always,
        None => Transience::Never,
    }
}

/// Somebody's word in which nothing could be looked up.
fn may_be_transient(said: &Said<'_>) -> bool {
    !matches!(said.role, "system" | "tool") && !could_be_looked_up(said)
}

fn could_be_looked_up(said: &Said<'_>) -> bool {
    counts_something(said) || names_something(said)
}

/// What of a turn the rules look at.
struct Seen<'a> {
    /// Runs of letters and digits, folded.
    folded: Vec<&'a str>,
    words: usize,
    /// Distinct content lemmas, the speakers' names apart.
    lemmas: usize,
    sentences: usize,
    dated: bool,
    lasting: bool,
    first_person: bool,
    own: bool,
    /// A card that states something.
    fact: bool,
    event: bool,
    /// The analysis can read its language: there are function words.
    read: bool,
}

impl<'a> Seen<'a> {
    fn of(said: &Said<'_>, text: &'a str, words: usize) -> Self {
        let f = said.facts;
        let mut folded = Vec::with_capacity(words);
        folded.extend(text::words_of(text));
        let has = |list: &[&str]| folded.iter().any(|w| list.contains(w));
        let mut lemmas: Vec<&str> = f.terms.iter().map(String::as_str).collect();
        lemmas.sort_unstable();
        lemmas.dedup();
        let lemmas = lemmas.iter().filter(|l| !(said.takes_part)(l)).count();
        let bigrams = text::cjk_bigrams(said.text).len();
        let words = words + bigrams;
        let first_person = has(&FIRST_PERSON);
        Self {
            words,
            lemmas: lemmas + bigrams,
            sentences: sentences(said.text),
            dated: f.times.iter().any(|t| t.first.is_some()),
            lasting: f.signals.has(LASTING),
            first_person,
            own: first_person && has(&OWN),
            fact: has_card(f, &STATING),
            event: has_card(f, &["event"]),
            read: 20 * (f.terms.len() + bigrams) <= 17 * words || words <= 3,
            folded,
        }
    }

    /// It hands the turn on for a moment.
    fn momentary(&self) -> bool {
        let opens = |words: &[&str]| MOMENTARY.iter().any(|m| words.starts_with(m));
        (0..self.folded.len()).any(|at| opens(&self.folded[at..]))
    }
}

fn lifecycle(said: &Said<'_>, s: &Seen<'_>, c: &Rpe) -> (Lifecycle, &'static str) {
    use Lifecycle::{Persistent, ShortTerm, Transient};
    if said.conflict {
        return (Persistent, "conflict");
    }
    if said.provenance.is_some_and(counts) {
        return (Persistent, "provenance");
    }
    if may_be_transient(said)
        && let Some(reason) = transient(said, s, c)
    {
        return (Transient, reason);
    }
    if s.lasting {
        return (Persistent, "signal");
    }
    if s.fact {
        return (Persistent, "fact");
    }
    if s.dated && (s.event || s.first_person) {
        return (Persistent, "dated_event");
    }
    if s.own || (s.first_person && could_be_looked_up(said)) {
        return (Persistent, "own");
    }
    (ShortTerm, "content")
}

/// Why a turn in which nothing could be looked up is transient.
fn transient(said: &Said<'_>, s: &Seen<'_>, c: &Rpe) -> Option<&'static str> {
    if !(s.dated || s.lasting || s.fact) && phatic(said, s, c) {
        return Some("phatic");
    }
    if !s.dated && s.words <= c.status_words && s.momentary() {
        return Some("status");
    }
    (s.read && aside(said, s, c)).then_some("aside")
}

/// Social, next to no content, or an acknowledgement with little of it. A question that
/// is neither asks for what comes next, and so belongs to it.
fn phatic(said: &Said<'_>, s: &Seen<'_>, c: &Rpe) -> bool {
    let signals = said.facts.signals;
    let (acknowledges, asks) = (
        signals.has(Signals::ACK_LIKE),
        signals.has(Signals::QUERY_LIKE),
    );
    if asks && s.sentences > 1 && s.lemmas > 1 {
        return false;
    }
    let empty = s.lemmas <= NO_CONTENT - usize::from(s.first_person);
    said.facts.social
        || (empty && (acknowledges || !asks))
        || (acknowledges && s.sentences == 1 && s.lemmas <= c.phatic_terms)
}

/// A short remark that has nothing to do with the newest notes and states no fact. One
/// that goes on about what was said before is not off the thread, unless it is tiny.
fn aside(said: &Said<'_>, s: &Seen<'_>, c: &Rpe) -> bool {
    let asks = said.facts.signals.has(Signals::QUERY_LIKE);
    let one_thing = s.sentences == 1 || (s.sentences == 2 && asks);
    let brief = s.words <= c.brief_words && s.sentences == 2 && !s.event;
    let short = (s.words <= c.aside_words && one_thing) || brief;
    let states = s.lasting || s.fact || s.own || (s.dated && s.event);
    let goes_on = || s.words > TINY && opens_with_anaphor(&s.folded);
    said.off_thread && short && !states && !goes_on()
}

/// Whether there is a card of one of these kinds.
fn has_card(facts: &Facts, kinds: &[&str]) -> bool {
    let mut cards = facts.cards.iter();
    cards.any(|card| kinds.contains(&card.kind.as_str()))
}

/// Whether the caller marked the turn as one to keep.
fn counts(p: &Provenance) -> bool {
    p.is_user_correction || p.is_preference_update || p.is_constraint
}

fn utility(lifecycle: Lifecycle, said: &Said<'_>, s: &Seen<'_>) -> f64 {
    let f = said.facts;
    let one = |yes: bool| f64::from(u8::from(yes));
    let entities = (f64::from(f.entity_count) / ENTITY_CAP).min(1.0);
    // Shares of a quarter at most: what a persistent turn may have above its least.
    let content = 0.1 * f.density
        + 0.05 * entities
        + 0.05 * one(s.first_person && (s.fact || s.own))
        + 0.025 * one(counts_something(said))
        + 0.025 * one(s.dated);
    match lifecycle {
        Lifecycle::Transient => 0.0,
        Lifecycle::ShortTerm => SHORT_TERM + 0.5 * content,
        Lifecycle::Persistent => PERSISTENT + content,
    }
}

/// Part of a word.
const PART: u8 = 1;
/// White space.
const GAP: u8 = 2;
/// What each byte of ASCII text is: a part of a word, a gap, or neither.
const KINDS: [u8; 128] = {
    let mut kinds = [0; 128];
    let mut at = 0;
    while at < kinds.len() {
        let byte = at as u8;
        if byte.is_ascii_alphanumeric() {
            kinds[at] = PART;
        } else if byte == b' ' || (9 <= byte && byte <= 13) {
            kinds[at] = GAP;
        }
        at += 1;
    }
    kinds
};

/// Stretches between white space that have a letter or digit.
fn words(text: &str) -> usize {
    if text.is_ascii() {
        return stretches(text.bytes().map(|b| KINDS[usize::from(b & 127)]));
    }
    let kind = |c: char| {
        if c.is_alphanumeric() {
            PART
        } else {
            GAP * u8::from(c.is_whitespace())
        }
    };
    stretches(text.chars().map(kind))
}

/// Stretches that have a part of a word. Without branches: where words end is nothing that a
/// processor could foresee.
fn stretches(kinds: impl Iterator<Item = u8>) -> usize {
    let (mut count, mut inside) = (0, 0);
    for kind in kinds {
        let part = kind & PART;
        count += usize::from(part & !inside);
        inside = part | (inside & !(kind / GAP));
    }
    count
}

/// Stretches with a letter or digit between sentence ends that white space follows; at
/// least 1.
fn sentences(text: &str) -> usize {
    let (mut count, mut ended, mut said) = (0, false, false);
    for c in text.chars() {
        if matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？') {
            ended = true;
        } else if ended && c.is_whitespace() {
            count += usize::from(said);
            (ended, said) = (false, false);
        } else if !matches!(c, '"' | '\'' | '”' | '’' | ')' | ']') {
            ended = false;
            said |= c.is_alphanumeric();
        }
    }
    (count + usize::from(said)).max(1)
}

/// A name that is nobody's who takes part: one that the recogniser found, or a
/// capital inside a sentence that it missed.
fn names_something(said: &Said<'_>) -> bool {
    let other = |name: &str| {
        let name = text::fold(name);
        let bare = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s"));
        !(said.takes_part)(bare.unwrap_or(&name))
    };
    let found = said.facts.entities.iter().any(|e| {
        NAMES.contains(&e.label.as_str())
            && e.text.starts_with(char::is_uppercase)
            && other(&e.text)
    });
    if found {
        return true;
    }
    let words = said.text.split_whitespace();
    let mut pairs = words.clone().zip(words.skip(1));
    pairs.any(|(before, word)| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let first_person = || word == "I" || word.starts_with("I'") || word.starts_with("I’");
        let opens = || before.ends_with(['.', '!', '?', ':', '…', '"', '”', ')', '-', '—', '–']);
        word.starts_with(char::is_uppercase) && !first_person() && !opens() && other(word)
    })
}

/// A digit, or a number in words other than "one" and "first".
fn counts_something(said: &Said<'_>) -> bool {
    said.text.bytes().any(|b| b.is_ascii_digit())
        || said.facts.entities.iter().any(|e| {
            QUANTITIES.contains(&e.label.as_str())
                && !matches!(text::fold(&e.text).as_str(), "one" | "first")
        })
}

fn opens_with_anaphor(words: &[&str]) -> bool {
    let mut opening = words.iter().copied();
    match opening.next() {
        Some(lead) if LEADS.contains(&lead) => {
            opening.next().is_some_and(|w| ANAPHORS.contains(&w))
        }
        first => first.is_some_and(|w| ANAPHORS.contains(&w)),
    }
}

#[cfg(test)]
mod tests;
