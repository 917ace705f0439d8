//! Analysed turns for the benches, the same on every machine.
//!
//! Shaped like the example conversation as the real models see it: 72 characters,
//! 8 terms, 1.3 entities, 0.7 cues, 0.3 time expressions, one claim in 13 turns,
//! one card in 6, one passage of 384 dimensions and (where asked for) 22 token vectors.

#![allow(dead_code)]

use ebbtide_core::score::vector::{quantise, quantise_token};
use ebbtide_core::types::{
    AnalysedTurn, CardFacts, Claim, Cue, Entity, Facts, NewTurn, Passage, Signals, Stamp,
    TimeExpression,
};

/// Dimension of the vectors.
pub const DIMENSION: usize = 384;
/// Token vectors of a turn.
pub const TOKENS: usize = 22;

const WORDS: &str = "time year people way day man thing woman life child world school state family \
student group country problem hand part place case week company system program question work \
government number night point home water room mother area money story fact month lot right study \
book eye job word business issue side kind head house service friend father power hour game line \
end member law car city community name president team minute idea kid body information back parent \
face others level office door health person art war history party result change morning reason \
research girl guy moment air teacher force education invoice deadline garden kitchen flight dinner \
birthday budget server release meeting dentist hiking painting running moving cooking planning \
thinking talked wanted needed started finished visited remembered decided painted travelled bought";

/// A small generator of numbers (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `n` numbers in [-1, 1).
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (2.0 * self.unit() - 1.0) as f32).collect()
    }
}

/// Turn after turn.
pub struct Turns {
    numbers: Numbers,
    words: Vec<&'static str>,
    at: usize,
    token_vectors: bool,
}

impl Turns {
    /// A stream of turns.
    pub fn new(token_vectors: bool) -> Self {
        Self {
            numbers: Numbers(7),
            words: WORDS.split_whitespace().collect(),
            at: 0,
            token_vectors,
        }
    }

    fn word(&mut self) -> &'static str {
        // The smaller of two draws: common words come more often.
        let n = self.words.len();
        let at = self.numbers.below(n).min(self.numbers.below(n));
        self.words[at]
    }

    /// Turns of one conversation are alike: about a cosine of 0.5 to each other.
    fn near_vector(&mut self) -> Vec<f32> {
        let mut raw = self.numbers.floats(DIMENSION);
        raw.iter_mut().for_each(|x| *x += 0.6);
        raw
    }

    fn facts(&mut self, words: &[&str], length: u32) -> Facts {
        let odd = |n: &mut Numbers, of: usize| n.below(of) == 0;
        let mut facts = Facts {
            density: self.numbers.unit(),
            sentiment: self.numbers.unit(),
            entity_count: self.numbers.below(3) as u32,
            social: odd(&mut self.numbers, 12),
            terms: words.iter().take(8).map(|w| (*w).to_owned()).collect(),
            ..Facts::default()
        };
        facts.entities = (0..facts.entity_count)
            .map(|_| Entity {
                text: self.word().to_owned(),
                label: "PERSON".into(),
                start: 3,
                end: 9,
            })
            .collect();
        if odd(&mut self.numbers, 3) {
            facts.signals = Signals(1 << self.numbers.below(8));
            facts.cues = (0..2)
                .map(|_| Cue {
                    signal: "preference".into(),
                    text: self.word().to_owned(),
                    start: 0,
                    end: 6,
                    rule: "preference.verb".into(),
                })
                .collect();
        }
        if odd(&mut self.numbers, 13) {
            facts.signals = Signals(facts.signals.0 | Signals::CURRENT_STATE);
            facts.claims = vec![Claim {
                kind: "current_state".into(),
                subject: format!("person {}", self.at / 336),
                identity: self.word().to_owned(),
                value: self.word().to_owned(),
                old_value: None,
                negated: false,
            }];
        }
        if odd(&mut self.numbers, 6) {
            facts.cards = vec![CardFacts {
                kind: "fact".into(),
                subject: "ana".into(),
                predicate: self.word().to_owned(),
                object: format!("{} {}", self.word(), self.word()),
                negated: false,
                temporal: "current".into(),
                start: 0,
                end: length,
                identity: None,
                first: None,
                last: None,
                terms: (0..5).map(|_| self.word().to_owned()).collect(),
            }];
        }
        if odd(&mut self.numbers, 4) {
            facts.times = vec![TimeExpression {
                text: "next week".into(),
                start: 8,
                end: 17,
                first: Some("2024-02-05".into()),
                last: Some("2024-02-11".into()),
                grain: "week".into(),
                words: "5–11 February 2024".into(),
            }];
        }
        facts
    }
}

impl Iterator for Turns {
    type Item = AnalysedTurn;

    fn next(&mut self) -> Option<AnalysedTurn> {
        let number = self.at;
        self.at += 1;
        let count = 8 + self.numbers.below(9);
        let mut words: Vec<&str> = (0..count).map(|_| self.word()).collect();
        let text = format!("{}.", words.join(" "));
        words.dedup();
        let facts = self.facts(&words, text.len() as u32);
        let mut tokens = Vec::new();
        if self.token_vectors {
            for _ in 0..TOKENS {
                quantise_token(&self.numbers.floats(DIMENSION), &mut tokens);
            }
        }
        let user = number.is_multiple_of(2);
        Some(AnalysedTurn {
            turn: NewTurn {
                role: if user { "user" } else { "assistant" }.into(),
                speaker: Some(if user { "Ana" } else { "Assistant" }.into()),
                timestamp: Some(Stamp {
                    given: "2024-01-08T09:02:47Z".into(),
                    utc_micros: 1_704_704_567_000_000 + number as i64 * 60_000_000,
                    naive: false,
                }),
                session_id: Some(format!("s{}", number / 30)),
                external_id: Some(format!("t{number}")),
                text: text.clone(),
                ..NewTurn::default()
            },
            facts,
            assessment: None,
            passages: vec![Passage {
                start: 0,
                end: text.len() as u32,
                vector: quantise(&self.near_vector()),
                tokens,
            }],
            card_vectors: Vec::new(),
        })
    }
}
