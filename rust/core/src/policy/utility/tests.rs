use super::*;
use crate::config;
use crate::types::{CardFacts, Entity, TimeExpression};

fn settings() -> Rpe {
    config::load("default", "").unwrap().policy.rpe
}

/// Facts of so many content lemmas.
fn facts(terms: &[&str], signals: u8) -> Facts {
    Facts {
        terms: terms.iter().map(|t| (*t).to_owned()).collect(),
        signals: Signals(signals),
        ..Facts::default()
    }
}

fn judged(text: &str, facts: &Facts, thread: Option<f64>) -> (Lifecycle, &'static str, f64) {
    let said = Said {
        text,
        role: "user",
        facts,
        provenance: None,
        takes_part: &|name| matches!(name, "ana" | "joe"),
        off_thread: thread.is_some_and(|t| t < 0.74),
        conflict: false,
    };
    judge(&said, &settings())
}

fn entity(text: &str, label: &str) -> Entity {
    Entity {
        text: text.into(),
        label: label.into(),
        start: 0,
        end: 0,
    }
}

fn card(kind: &str) -> CardFacts {
    CardFacts {
        kind: kind.into(),
        subject: "user".into(),
        predicate: "be".into(),
        object: "x".into(),
        negated: false,
        temporal: "none".into(),
        start: 0,
        end: 0,
        identity: None,
        first: None,
        last: None,
        terms: Vec::new(),
    }
}

fn day() -> TimeExpression {
    TimeExpression {
        text: "yesterday".into(),
        start: 0,
        end: 0,
        first: Some("2024-01-01".into()),
        last: Some("2024-01-01".into()),
        grain: "day".into(),
        words: String::new(),
    }
}

#[test]
fn what_says_nothing_is_transient() {
    let ack = facts(&["sound", "really", "great", "idea"], Signals::ACK_LIKE);
    let found = judged("that sounds like a really great idea!", &ack, Some(0.9));
    assert_eq!(found, (Lifecycle::Transient, "phatic", 0.0));
    let two = facts(&["long", "day"], 0);
    assert_eq!(judged("such a long day", &two, Some(0.9)).1, "phatic");
    assert_eq!(judged("I had a long day", &two, Some(0.9)).1, "content");
    let seven = ["a", "b", "c", "d", "e", "f", "g"];
    let long = facts(&seven, Signals::ACK_LIKE);
    assert_eq!(
        judged("great, it a b c d e f g", &long, Some(0.9)).1,
        "content"
    );
}

#[test]
fn a_question_after_another_sentence_is_kept() {
    let asks = facts(
        &["wow", "get", "run"],
        Signals::ACK_LIKE | Signals::QUERY_LIKE,
    );
    let found = judged("Wow! What got you into running?", &asks, Some(0.9));
    assert_eq!(found.0, Lifecycle::ShortTerm);
    let bare = facts(&["port"], Signals::QUERY_LIKE);
    assert_eq!(judged("which port?", &bare, Some(0.9)).1, "content");
    let reacts = facts(&["really"], Signals::QUERY_LIKE | Signals::ACK_LIKE);
    assert_eq!(judged("oh, really?", &reacts, Some(0.9)).1, "phatic");
}

#[test]
fn a_momentary_status_is_transient_up_to_its_length() {
    let f = facts(&["hold", "door", "ring", "someone"], 0);
    assert_eq!(
        judged("hold on, someone is at the door", &f, Some(0.9)).1,
        "status"
    );
    let words = "hold on, this is a longer story of how I once got to be where I am".to_owned();
    assert_eq!(judged(&words, &f, Some(0.9)).1, "content");
}

#[test]
fn a_short_remark_off_the_thread_is_transient() {
    let f = facts(&["pigeon", "funny", "bird"], 0);
    let text = "pigeons are such funny little birds";
    assert_eq!(judged(text, &f, Some(0.739)).1, "aside");
    assert_eq!(judged(text, &f, Some(0.74)).1, "content", "on the thread");
    assert_eq!(judged(text, &f, None).1, "content", "too few notes to tell");
    let goes_on = "they are such funny little birds anyway";
    assert_eq!(judged(goes_on, &f, Some(0.5)).1, "content", "goes on");
    let two = "pigeons again. such funny little birds";
    assert_eq!(judged(two, &f, Some(0.5)).1, "aside", "two brief sentences");
    let two = "pigeons again on the roof over there. such funny little birds";
    assert_eq!(judged(two, &f, Some(0.5)).1, "content");
    let mut states = f.clone();
    states.cards.push(card("relation"));
    assert_eq!(judged(text, &states, Some(0.5)).1, "fact");
    let foreign = facts(&["wo", "der", "hund", "schlafen", "tun"], 0);
    let text = "wo der hund schlafen tut";
    assert_eq!(judged(text, &foreign, Some(0.5)).1, "content", "not read");
}

#[test]
fn names_and_numbers_are_never_transient() {
    let mut f = facts(&["see"], 0);
    f.entities.push(entity("Porto", "GPE"));
    assert_ne!(judged("saw Porto", &f, Some(0.1)).0, Lifecycle::Transient);
    f.entities = vec![entity("Joe", "PERSON")];
    assert_eq!(
        judged("thanks, Joe", &f, Some(0.1)).1,
        "phatic",
        "takes part"
    );
    let missed = facts(&["see"], 0);
    assert_ne!(
        judged("I saw Rex", &missed, Some(0.1)).0,
        Lifecycle::Transient
    );
    assert_eq!(judged("Seen. Sure", &missed, Some(0.1)).1, "phatic");
    assert_ne!(
        judged("gate 14", &missed, Some(0.1)).0,
        Lifecycle::Transient
    );
    f.entities = vec![entity("three", "CARDINAL")];
    assert_ne!(judged("only three", &f, Some(0.1)).0, Lifecycle::Transient);
    f.entities = vec![entity("one", "CARDINAL")];
    assert_eq!(judged("that one", &f, Some(0.1)).1, "phatic");
}

#[test]
fn what_lasts_is_persistent() {
    let long = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let text = "this is what I have to say to all of you";
    let by = |signals, cards: &[&str], dated: bool, text: &str| {
        let mut f = facts(&long, signals);
        f.cards = cards.iter().map(|k| card(k)).collect();
        f.times.extend(dated.then(day));
        judged(text, &f, Some(0.9)).1
    };
    assert_eq!(by(Signals::PREFERENCE, &[], false, text), "signal");
    assert_eq!(by(Signals::CURRENT_STATE, &[], false, text), "content");
    assert_eq!(by(0, &["current_state"], false, text), "fact");
    assert_eq!(by(0, &["event"], false, text), "content");
    assert_eq!(by(0, &["event"], true, text), "dated_event");
    assert_eq!(
        by(0, &[], false, "so then my sister and the boat went under"),
        "own"
    );
}

#[test]
fn by_itself_a_turn_is_transient_always_or_only_off_the_thread() {
    let by = |text: &str, f: &Facts, role: &str| {
        let said = Said {
            text,
            role,
            facts: f,
            provenance: None,
            takes_part: &|name| name == "ana",
            off_thread: false,
            conflict: true,
        };
        transience(&said, &settings())
    };
    let thanks = facts(&["great"], Signals::ACK_LIKE);
    assert_eq!(by("great, thanks", &thanks, "user"), Transience::Always);
    assert_eq!(by("great, thanks", &thanks, "tool"), Transience::Never);
    assert_eq!(by("great, thanks Ana", &thanks, "user"), Transience::Always);
    assert_eq!(by("great, thanks Ben", &thanks, "user"), Transience::Never);
    let brb = facts(&["door"], 0);
    assert_eq!(by("brb, at the door", &brb, "user"), Transience::Always);
    let remark = facts(&["radio", "loud", "again"], 0);
    let text = "the radio is so loud again";
    assert_eq!(by(text, &remark, "user"), Transience::OffThread);
    let two = facts(&["yellow", "tomato"], 0);
    assert_eq!(by("yellow tomatoes", &two, "user"), Transience::OffThread);
    let long = "the radio and ".repeat(7);
    assert_eq!(by(&long, &remark, "user"), Transience::Never, "21 words");
    let preference = facts(&["radio", "quiet"], Signals::PREFERENCE);
    assert_eq!(
        by("the radio quiet", &preference, "user"),
        Transience::Never
    );
}

#[test]
fn the_caller_and_a_conflict_overrule_the_words() {
    let f = facts(&[], Signals::ACK_LIKE);
    let mark = Provenance {
        is_user_correction: true,
        ..Provenance::default()
    };
    let mut said = Said {
        text: "ok",
        role: "user",
        facts: &f,
        provenance: Some(&mark),
        takes_part: &|_| false,
        off_thread: false,
        conflict: false,
    };
    let c = settings();
    assert_eq!(judge(&said, &c).1, "provenance");
    said.conflict = true;
    assert_eq!(judge(&said, &c).1, "conflict");
    said.conflict = false;
    said.provenance = None;
    assert_eq!(judge(&said, &c).0, Lifecycle::Transient);
    said.role = "tool";
    assert_eq!(
        judge(&said, &c).0,
        Lifecycle::ShortTerm,
        "an output is not talk"
    );
}

#[test]
fn utility_matches_hand_worked_values() {
    let mut f = facts(&["a", "b", "c", "d", "e", "f", "g", "h"], 0);
    let text = "this is what there is to be said of it";
    assert!((judged(text, &f, Some(0.9)).2 - 0.6).abs() < 1e-12);
    f.density = 0.4;
    f.entity_count = 2;
    // Content 0.1 * 0.4 + 0.05 * 2 / 5 = 0.06; half of it counts in the short term.
    assert!((judged(text, &f, Some(0.9)).2 - 0.63).abs() < 1e-12);
    f.times.push(day());
    f.cards.push(card("event"));
    // Persistent: 0.75 + 0.06 + 0.025 for the date.
    assert!((judged(text, &f, Some(0.9)).2 - 0.835).abs() < 1e-12);
    f.cards.push(card("fact"));
    f.density = 1.0;
    f.entity_count = 9;
    // All of it: 0.1 + 0.05 + 0.05 + 0.025 + 0.025 = 0.25.
    let most = judged("I have 3 of them", &f, Some(0.9)).2;
    assert!((most - 1.0).abs() < 1e-12, "{most}");
}

#[test]
fn sentences_end_before_white_space() {
    assert_eq!(sentences("no end"), 1);
    assert_eq!(sentences("One. Two! \"Three?\" four :)"), 4);
    assert_eq!(sentences("One. :)"), 1);
    assert_eq!(sentences("v1.2 is out..."), 1);
    assert_eq!(sentences(""), 1);
}

#[test]
fn languages_without_spaces_are_counted_by_pairs() {
    let f = facts(&["妈妈"], 0);
    let found = judged("我妈妈对海鲜过敏,一吃虾就全身发痒。", &f, Some(0.1));
    assert_ne!(found.0, Lifecycle::Transient);
}

#[test]
fn words_are_stretches_with_a_letter_or_digit() {
    for (text, count) in [
        ("", 0),
        (" - -- \t", 0),
        ("don't stop", 2),
        ("one--two", 1),
        ("a\u{b}b\nc", 3),
        ("(4) .", 1),
        ("é ü\u{a0}x", 3),
        ("東京 –", 1),
    ] {
        assert_eq!(words(text), count, "{text:?}");
    }
}
