//! The three gates of the policy `quality`: relevance, faithfulness & consistency,
//! completeness (the D-Mem paper, section 3.2 and appendix A.7, where a language
//! model judges an answer; here the evidence for one is measured).

use crate::retrieve::QueryFrame;
use crate::retrieve::words::contains_words;
use crate::text::fold;
use serde::Serialize;

/// One evidence turn as the gates see it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Folded text.
    pub text: String,
    /// Speaker, lower case.
    pub speaker: Option<String>,
    /// Its content lemmas.
    pub terms: Vec<String>,
    /// The dates it speaks of and that of its saying, in words, folded.
    pub dates: String,
    /// Answerability (eq. 34) as a share of the most there is.
    pub answerability: f64,
    /// Share of the question's content that it has, weighed by rarity.
    pub specificity: f64,
    /// Whether it holds something of the kind asked for.
    pub answers: bool,
    /// Whether it stands for what is asked: false where it no longer does and the
    /// past is not asked about.
    pub stands: bool,
}

/// What the gates ask for.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// Least answerability of the best evidence.
    pub answerability: f64,
    /// Least specificity of one of the three best.
    pub specificity: f64,
    /// Least coverage by all of them.
    pub coverage: f64,
    /// Sources for a list.
    pub list_sources: usize,
}

/// One thing that a gate looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// `relevance`, `faithfulness_consistency` or `completeness`.
    pub gate: &'static str,
    /// What was measured.
    pub check: &'static str,
    /// What was found.
    pub value: f64,
    /// What passes: at least this.
    pub least: f64,
    /// Whether it passed.
    pub passed: bool,
    /// What is missing or in conflict.
    pub missing: Vec<String>,
}

fn check(gate: &'static str, check: &'static str, value: f64, least: f64) -> Check {
    Check {
        gate,
        check,
        value,
        least,
        passed: value >= least,
        missing: Vec::new(),
    }
}

/// A check that nothing is missing.
fn nothing_missing(gate: &'static str, check: &'static str, missing: Vec<String>) -> Check {
    let passed = missing.is_empty();
    Check {
        gate,
        check,
        value: f64::from(u8::from(passed)),
        least: 1.0,
        passed,
        missing,
    }
}

/// The best of the evidence is about the question.
pub fn relevance(seen: &[Seen], needs: &Needs) -> Vec<Check> {
    let best = seen.first().map_or(0.0, |s| s.answerability);
    let specific = seen.iter().take(3).map(|s| s.specificity);
    vec![
        check("relevance", "answerability", best, needs.answerability),
        check(
            "relevance",
            "specificity",
            specific.fold(0.0, f64::max),
            needs.specificity,
        ),
    ]
}

/// Nothing in the evidence contradicts it, and an answer, if there is one, says
/// nothing that it does not.
///
/// Args: `conflicts`, facts that contradict each other and still stand.
pub fn faithfulness(seen: &[Seen], conflicts: Vec<String>, answer: Option<&str>) -> Vec<Check> {
    const GATE: &str = "faithfulness_consistency";
    let stands = seen.first().is_none_or(|s| s.stands);
    let mut checks = vec![
        nothing_missing(GATE, "conflicts", conflicts),
        check(GATE, "best_stands", f64::from(u8::from(stands)), 1.0),
    ];
    if let Some(answer) = answer {
        let held = |part: &String| {
            let part = fold(part);
            seen.iter().any(|s| {
                contains_words(&s.text, &part)
                    || contains_words(&s.dates, &part)
                    || s.speaker
                        .as_deref()
                        .is_some_and(|n| contains_words(n, &part))
            })
        };
        let missing = hard_parts(answer)
            .into_iter()
            .filter(|p| !held(p))
            .collect();
        checks.push(nothing_missing(GATE, "answer", missing));
    }
    checks
}

/// The evidence has all that is asked for.
pub fn completeness(
    seen: &[Seen],
    q: &QueryFrame,
    needs: &Needs,
    idf: impl Fn(&str) -> f64,
) -> Vec<Check> {
    const GATE: &str = "completeness";
    let (covered, lacking) = coverage(seen, &q.name_free_terms, idf);
    let mut content = check(GATE, "coverage", covered, needs.coverage);
    if !content.passed {
        content.missing = lacking;
    }
    let mut checks = vec![content, nothing_missing(GATE, "entities", unnamed(seen, q))];
    #[allow(clippy::cast_precision_loss)]
    let answering = seen.iter().filter(|s| s.answers).count() as f64;
    match q.answer_type.as_str() {
        "time" => checks.push(check(GATE, "date", answering, 1.0)),
        "quantity" => checks.push(check(GATE, "number", answering, 1.0)),
        "list" => {
            // A source is a turn that has something of the question, not any turn.
            #[allow(clippy::cast_precision_loss)]
            let sources = seen
                .iter()
                .filter(|s| s.specificity >= needs.specificity)
                .count() as f64;
            #[allow(clippy::cast_precision_loss)]
            checks.push(check(GATE, "sources", sources, needs.list_sources as f64));
        }
        _ => {}
    }
    checks
}

/// Share of the terms, weighed by rarity, that any of the evidence has; 1 for no
/// terms; and those that none has.
fn coverage(seen: &[Seen], terms: &[String], idf: impl Fn(&str) -> f64) -> (f64, Vec<String>) {
    let (mut held, mut all) = (0.0, 0.0);
    let mut lacking = Vec::new();
    for term in terms {
        let weight = idf(term);
        all += weight;
        if seen
            .iter()
            .any(|s| s.terms.contains(term) || s.text.contains(term.as_str()))
        {
            held += weight;
        } else {
            lacking.push(term.clone());
        }
    }
    (if all > 0.0 { held / all } else { 1.0 }, lacking)
}

/// Entities of the question that nothing names, by any of their names, and nobody bears.
fn unnamed(seen: &[Seen], q: &QueryFrame) -> Vec<String> {
    let held = |name: &str| {
        let name = fold(name);
        seen.iter().any(|s| {
            contains_words(&s.text, &name)
                || contains_words(&s.dates, &name)
                || s.speaker
                    .as_deref()
                    .is_some_and(|n| contains_words(n, &name))
        })
    };
    let aliases = |i: usize| q.aliases.get(i).into_iter().flatten();
    q.entities
        .iter()
        .enumerate()
        .filter(|(i, e)| !held(&e.text) && !aliases(*i).any(|a| held(a)))
        .map(|(_, e)| e.text.clone())
        .collect()
}

/// What of an answer can be checked word for word: numbers, and names, that is words
/// with a capital letter that do not open a sentence.
fn hard_parts(answer: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut opens = true;
    for raw in answer.split_whitespace() {
        let word = raw.trim_matches(|c: char| !c.is_alphanumeric());
        let number = word.chars().any(|c| c.is_ascii_digit());
        let name = !opens && word.chars().count() > 1 && word.starts_with(char::is_uppercase);
        if (number || name) && !found.iter().any(|f| f == word) {
            found.push(word.to_owned());
        }
        opens = raw.ends_with(['.', '!', '?', ':']);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::query::QueryEntity;

    const NEEDS: Needs = Needs {
        answerability: 0.5,
        specificity: 0.5,
        coverage: 0.75,
        list_sources: 2,
    };

    fn seen(text: &str, answerability: f64, specificity: f64) -> Seen {
        Seen {
            text: text.into(),
            speaker: Some("ana".into()),
            answerability,
            specificity,
            stands: true,
            ..Seen::default()
        }
    }

    fn passed(checks: &[Check]) -> Vec<bool> {
        checks.iter().map(|c| c.passed).collect()
    }

    #[test]
    fn relevance_is_the_best_and_the_most_specific_of_three() {
        let evidence = [
            seen("", 0.5, 0.2),
            seen("", 0.9, 0.4),
            seen("", 0.9, 0.5),
            seen("", 0.9, 1.0),
        ];
        assert_eq!(passed(&relevance(&evidence, &NEEDS)), [true, true]);
        assert_eq!(passed(&relevance(&evidence[..2], &NEEDS)), [true, false]);
        assert_eq!(
            passed(&relevance(&[seen("", 0.49, 1.0)], &NEEDS)),
            [false, true]
        );
        assert_eq!(passed(&relevance(&[], &NEEDS)), [false, false]);
    }

    #[test]
    fn a_conflict_or_a_best_turn_that_no_longer_stands_fails() {
        let mut old = seen("", 1.0, 1.0);
        assert_eq!(
            passed(&faithfulness(&[old.clone()], vec![], None)),
            [true, true]
        );
        let said = vec!["ana live_in: rome / porto".to_owned()];
        assert_eq!(
            passed(&faithfulness(&[old.clone()], said, None)),
            [false, true]
        );
        old.stands = false;
        assert_eq!(passed(&faithfulness(&[old], vec![], None)), [true, false]);
    }

    #[test]
    fn an_answers_numbers_dates_and_names_must_be_in_the_evidence() {
        let mut turn = seen("i moved to porto with 2 cats yesterday", 1.0, 1.0);
        turn.dates = "8 may 2023, 1:56 pm 7 may 2023".into();
        let missing = |answer: &str| {
            faithfulness(std::slice::from_ref(&turn), vec![], Some(answer))[2]
                .missing
                .clone()
        };
        assert!(missing("Ana moved to Porto on 7 May 2023.").is_empty());
        assert_eq!(missing("She moved to Lisbon with 3 cats"), ["Lisbon", "3"]);
        assert!(missing("Nobody knows").is_empty());
    }

    #[test]
    fn coverage_weighs_by_rarity() {
        let q = QueryFrame {
            name_free_terms: vec!["port".into(), "proxy".into()],
            ..QueryFrame::default()
        };
        let idf = |t: &str| if t == "port" { 3.0 } else { 1.0 };
        let checks = completeness(&[seen("the port", 1.0, 1.0)], &q, &NEEDS, idf);
        assert!((checks[0].value - 0.75).abs() < 1e-12 && checks[0].passed);
        let checks = completeness(&[seen("the proxy", 1.0, 1.0)], &q, &NEEDS, idf);
        assert_eq!((checks[0].value, checks[0].passed), (0.25, false));
        assert_eq!(checks[0].missing, ["port"]);
        assert!(completeness(&[], &QueryFrame::default(), &NEEDS, idf)[0].passed);
    }

    #[test]
    fn every_entity_must_be_named_by_one_of_its_names_or_speak() {
        let named = |text: &str| QueryEntity {
            text: text.into(),
            ..QueryEntity::default()
        };
        let q = QueryFrame {
            entities: vec![named("Ana"), named("Rui Costa"), named("Oslo")],
            aliases: vec![vec![], vec!["Rui".into()], vec![]],
            ..QueryFrame::default()
        };
        let checks = completeness(&[seen("i met rui", 1.0, 1.0)], &q, &NEEDS, |_| 1.0);
        assert_eq!(checks[1].missing, ["Oslo"]);
    }

    #[test]
    fn when_wants_a_date_how_many_a_number_and_a_list_two_sources() {
        let asks = |kind: &str, evidence: &[Seen]| {
            let q = QueryFrame {
                answer_type: kind.into(),
                ..QueryFrame::default()
            };
            let checks = completeness(evidence, &q, &NEEDS, |_| 1.0);
            (
                checks.last().map(|c| c.check),
                checks.iter().all(|c| c.passed),
            )
        };
        let plain = seen("", 1.0, 0.5);
        let answering = Seen {
            answers: true,
            ..plain.clone()
        };
        let one = std::slice::from_ref;
        assert_eq!(asks("time", one(&plain)), (Some("date"), false));
        assert_eq!(asks("time", one(&answering)), (Some("date"), true));
        assert_eq!(asks("quantity", one(&plain)), (Some("number"), false));
        assert_eq!(asks("quantity", &[answering]), (Some("number"), true));
        let thin = seen("", 1.0, 0.49);
        assert_eq!(
            asks("list", &[plain.clone(), thin]),
            (Some("sources"), false)
        );
        assert_eq!(
            asks("list", &[plain.clone(), plain]),
            (Some("sources"), true)
        );
    }
}
