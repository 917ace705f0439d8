//! Full Deliberation (the D-Mem paper, section 3.3): the whole raw history read in
//! chunks, each sentence scored against the question.
//!
//! Nothing of the indexes is used but the rarity of words, so turns are found that no
//! index holds. Between chunks the store is free for others; what is kept of the
//! history is the messages before a chunk and a bounded number of sentences.

use super::stems::{Stems, ascending};
use super::{Engine, metadata};
use crate::config::{Archive, Config, Deliberation};
use crate::error::Result;
use crate::render;
use crate::retrieve::deliberation::score::{self, Parts};
use crate::retrieve::deliberation::select::{self, Rules, Sentence};
use crate::retrieve::features::{self, Judge};
use crate::retrieve::late::Matches;
use crate::retrieve::{Filters, Query};
use crate::score::vector;
use crate::store::Scanned;
use crate::text::{self, fold};
use crate::types::{Facts, InteractionId, State, StoredTurn};
use ebbtide_simd::{Question, packed};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Sentences in memory at most; beyond it the worse half is let go.
const MOST: usize = 4096;
/// What a sentence that only asks counts: it is about the matter, but tells nothing.
const ASKS: f64 = 0.8;

/// What a scan found.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Scan {
    /// Chunks read.
    pub(super) chunks: u64,
    /// Messages read.
    pub(super) messages: u64,
    /// Sentences scored.
    pub(super) sentences: u64,
    /// Sentences at or above `emit_score`.
    pub(super) emitted: u64,
    /// None reached `keep_score`: these are there for want of better ones.
    pub(super) low_confidence: bool,
    /// Sentences kept, best first.
    #[serde(skip)]
    pub(super) kept: Vec<Sentence>,
    /// Score from 0 to 10 of each turn that scored at least `fallback_score`.
    #[serde(skip)]
    pub(super) scores: BTreeMap<InteractionId, f64>,
}

/// What is remembered of a message for those after it.
struct Before {
    session: Option<String>,
    matches: Matches,
    /// Numbers of the question's stems that it has, ascending.
    terms: Vec<u32>,
}

/// What is remembered while the history is read.
struct Remembered {
    stems: Stems,
    before: VecDeque<Before>,
}

/// The question, made ready once.
struct Asked<'a> {
    query: &'a Query,
    judge: Judge<'a>,
    /// Its tokens, laid out for comparison.
    tokens: Question,
    weights: Vec<f64>,
    /// Its content, each term with its stem's number and its rarity.
    terms: Vec<(u32, f64)>,
}

/// One sentence with what it says.
struct Read {
    from: usize,
    to: usize,
    text: String,
    /// Numbers of its stems, ascending.
    stems: Vec<u32>,
    matches: Matches,
}

impl Engine {
    pub(super) fn full_deliberation(
        &self,
        query: &Query,
        config: &Config,
        filters: &Filters,
    ) -> Result<Scan> {
        let d = &config.deliberation;
        let (asked, mut memory) = self.asked(query);
        let mut scan = Scan::default();
        let mut found: Vec<Sentence> = Vec::new();
        let mut from = 0;
        loop {
            let mut chunk = self
                .store()
                .chunk(&self.namespace, from, d.chunk_messages)?;
            let Some(last) = chunk.last() else { break };
            from = last.turn.interaction_id + 1;
            chunk.retain(|m| self.knows(m.turn.interaction_id));
            scan.chunks += u64::from(!chunk.is_empty());
            for message in &chunk {
                scan.messages += 1;
                let sentences = self.read_message(message, &asked, &mut memory, config);
                if self.may_be_shown(&message.turn, filters) {
                    take_down(&mut scan, &mut found, sentences, d);
                }
            }
        }
        scan.scores = best_by_turn(&found);
        let cosine = |a, b| self.turn_cosine(a, b);
        (scan.kept, scan.low_confidence) = select::select(found, &rules(d), cosine);
        Ok(scan)
    }

    /// Up to `limit` turns of the raw history from id `from` on that this memory has and the
    /// caller's filters let in, in id order: what somebody else's scan reads.
    pub fn history_page(
        &self,
        from: InteractionId,
        limit: u32,
        filters: &Filters,
    ) -> Result<Vec<StoredTurn>> {
        self.open_only()?;
        let mut found: Vec<StoredTurn> = Vec::new();
        let mut next = from;
        loop {
            let page = self.page(next, limit, None)?;
            let Some(last) = page.last() else {
                return Ok(found);
            };
            next = last.interaction_id + 1;
            let shown =
                |t: &StoredTurn| self.knows(t.interaction_id) && self.may_be_shown(t, filters);
            found.extend(page.into_iter().filter(shown));
            if found.len() >= limit as usize {
                found.truncate(limit as usize);
                return Ok(found);
            }
        }
    }

    fn asked<'a>(&self, query: &'a Query) -> (Asked<'a>, Remembered) {
        let terms = &query.frame.name_free_terms;
        let mut stems = Stems::new(terms);
        let each = |t: &String| (stems.number(t), self.lexical.idf(t));
        let asked = Asked {
            query,
            judge: self.judge_of(&query.frame),
            tokens: Question::new(&query.tokens, self.flat.dimension().max(1)),
            weights: self.token_weights(query),
            terms: terms.iter().map(each).collect(),
        };
        let before = VecDeque::new();
        (asked, Remembered { stems, before })
    }

    /// The caller's filters on a stored turn, which may be in no index.
    fn may_be_shown(&self, t: &StoredTurn, f: &Filters) -> bool {
        let kept = t.state == State::Active || self.config.ltm.archive() == Archive::Recalled;
        let speaker = t.speaker.as_deref().map(fold);
        kept && metadata::has(t.metadata.as_deref(), f.metadata.as_ref())
            && f.role.as_deref().is_none_or(|r| t.role == r)
            && f.speaker
                .as_deref()
                .is_none_or(|s| speaker.as_deref() == Some(&fold(s)))
            && f.session_id
                .as_deref()
                .is_none_or(|s| t.session_id.as_deref() == Some(s))
            && f.since
                .is_none_or(|s| t.utc_micros.is_some_and(|at| at >= s))
            && f.until
                .is_none_or(|u| t.utc_micros.is_some_and(|at| at <= u))
    }

    /// The sentences of one message with their scores.
    fn read_message(
        &self,
        message: &Scanned,
        asked: &Asked<'_>,
        memory: &mut Remembered,
        config: &Config,
    ) -> Vec<Sentence> {
        let none = Facts::default();
        let facts = message.derived.as_ref().map_or(&none, |d| &d.facts);
        let stems = &mut memory.stems;
        stems.make_room();
        let read = self.read_sentences(message, asked, stems, config);
        let facts_stems: Vec<u32> = facts.terms.iter().map(|t| stems.number(t)).collect();
        let mut whole = Matches::none(&asked.tokens);
        let mut terms = facts_stems.clone();
        for sentence in &read {
            whole.merge(&sentence.matches);
            terms.extend(&sentence.stems);
        }
        let terms = stems.asked_among(&ascending(terms)).to_vec();
        let session = &message.turn.session_id;
        let mut context = whole.clone();
        let mut context_terms = terms.clone();
        for earlier in memory.before.iter().filter(|b| b.session == *session) {
            context.merge(&earlier.matches);
            context_terms.extend(&earlier.terms);
        }
        let context_terms = ascending(context_terms);
        // Without token vectors the cosine of the whole turn takes their place.
        let bare = asked.query.tokens.is_empty() || message.tokens.is_empty();
        let whole_turn = bare.then(|| cosine_of(message, &asked.query.vector));
        let sentences = read
            .iter()
            .map(|s| {
                let mut together = s.matches.clone();
                together.merge(&context);
                let parts = Parts {
                    similarity: whole_turn.unwrap_or_else(|| s.matches.score(&asked.weights)),
                    similarity_in_context: whole_turn
                        .unwrap_or_else(|| together.score(&asked.weights)),
                    content: asked.share(&s.stems),
                    content_in_context: asked.share(&context_terms),
                    ..self.judged_parts(message, facts, &facts_stems, s, &read, &asked.judge)
                };
                let mut points = score::milli(&parts);
                if s.text.trim_end().ends_with('?') {
                    points = score::threshold(ASKS * f64::from(points) / 1000.0);
                }
                Sentence {
                    turn: message.turn.interaction_id,
                    from: s.from,
                    to: s.to,
                    score: points,
                }
            })
            .collect();
        memory.before.push_back(Before {
            session: session.clone(),
            matches: whole,
            terms,
        });
        while memory.before.len() > config.deliberation.context_messages {
            memory.before.pop_front();
        }
        sentences
    }

    fn read_sentences(
        &self,
        message: &Scanned,
        asked: &Asked<'_>,
        stems: &mut Stems,
        config: &Config,
    ) -> Vec<Read> {
        let chars: Vec<char> = message.turn.text.chars().collect();
        let places = places(message, &chars, config.nlp.speaker_prefix);
        let row = packed::row_bytes(self.flat.dimension().max(1));
        let rows = message.tokens.len() / row;
        let spans = render::sentences(&message.turn.text);
        let each = |(from, to): (usize, usize)| {
            let text = fold(&chars[from..to].iter().collect::<String>());
            let own = score::rows_of(&places, rows, from, to);
            let own: Vec<&[u8]> = { own.into_iter() }
                .map(|r| &message.tokens[r * row..(r + 1) * row])
                .collect();
            Read {
                from,
                to,
                stems: stems.numbers(text::words_of(&text)),
                text,
                matches: Matches::of(&asked.tokens, &own.concat()),
            }
        };
        spans.into_iter().map(each).collect()
    }

    /// The parts that the features of eq. 34 judge, on what the sentence itself says.
    fn judged_parts(
        &self,
        message: &Scanned,
        facts: &Facts,
        stems: &[u32],
        s: &Read,
        all: &[Read],
        judge: &Judge<'_>,
    ) -> Parts {
        let turn = &message.turn;
        let speaker = turn.speaker.as_deref().map(fold);
        let day = judge.day_of(render::local_micros(turn));
        let own = facts_of(facts, stems, s, all);
        let subject = features::Subject {
            text: &s.text,
            speaker: speaker.as_deref(),
            role: &turn.role,
            facts: &own,
            day: day.as_deref(),
            validity: self.lineage.validity(turn.interaction_id),
            cosine: 0.0,
            linked: false,
            has_card: false,
        };
        Parts {
            subject: judge.subject_match(&subject),
            predicate: judge.predicate_match(&subject),
            answer: judge.answer_span(&subject),
            time: judge.temporal_compatibility(&subject),
            ..Parts::default()
        }
    }
}

impl Asked<'_> {
    /// Share of the question's content, weighed by rarity, among these stems.
    fn share(&self, stems: &[u32]) -> f64 {
        let (mut held, mut all) = (0.0, 0.0);
        for (stem, idf) in &self.terms {
            all += idf;
            if stems.binary_search(stem).is_ok() {
                held += idf;
            }
        }
        if all > 0.0 {
            held / all
        } else {
            features::NEUTRAL
        }
    }
}

fn take_down(
    scan: &mut Scan,
    found: &mut Vec<Sentence>,
    sentences: Vec<Sentence>,
    d: &Deliberation,
) {
    let emit = score::threshold(d.emit_score);
    let least = emit.min(score::threshold(d.fallback_score));
    for sentence in sentences {
        scan.sentences += 1;
        scan.emitted += u64::from(sentence.score >= emit);
        if sentence.score >= least {
            found.push(sentence);
        }
    }
    if found.len() > MOST {
        found.sort_by(Sentence::best_first);
        found.truncate(MOST / 2);
    }
}

/// The best sentence of each turn, from 0 to 10.
pub(super) fn best_by_turn(found: &[Sentence]) -> BTreeMap<InteractionId, f64> {
    let mut best: BTreeMap<InteractionId, f64> = BTreeMap::new();
    for s in found {
        let score = f64::from(s.score) / 1000.0;
        let slot = best.entry(s.turn).or_insert(score);
        *slot = slot.max(score);
    }
    best
}

fn rules(d: &Deliberation) -> Rules {
    Rules {
        // What was not taken down cannot be kept.
        keep: score::threshold(d.keep_score).max(score::threshold(d.emit_score).saturating_sub(1)),
        filter_above: d.filter_above,
        budget: d.budget,
        fallback: score::threshold(d.fallback_score),
        fallback_limit: d.fallback_limit,
        duplicate: d.duplicate_cosine,
        lambda: d.filter_lambda,
    }
}

/// Cosine of the question and the nearest passage of a message; 0 without vectors.
fn cosine_of(message: &Scanned, question: &[i16]) -> f64 {
    let vectors = message.derived.as_ref().map_or(&[][..], |d| &d.vectors);
    if question.is_empty() {
        return 0.0;
    }
    let rows = vectors.chunks_exact(question.len());
    rows.map(|row| vector::dot(question, row))
        .max()
        .map_or(0.0, vector::cosine)
}

/// Where the words and marks stand that were embedded, passage by passage.
fn places(message: &Scanned, chars: &[char], with_speaker: bool) -> Vec<Option<usize>> {
    let mut places: Vec<Option<usize>> = Vec::new();
    if let Some(name) = message.turn.speaker.as_deref().filter(|_| with_speaker) {
        let name: Vec<char> = format!("{name}:").chars().collect();
        let count = score::words_and_marks(&name, 0, name.len()).len();
        places.extend(std::iter::repeat_n(None, count));
    }
    let spans = message.derived.as_ref().map_or(&[][..], |d| &d.spans);
    for (from, to) in spans {
        let own = score::words_and_marks(chars, *from as usize, *to as usize);
        places.extend(own.into_iter().map(Some));
    }
    places
}

/// The facts of a turn that lie in one sentence; `stems` are those of its terms. A lemma that
/// looks unlike its word ("go", "went") is in no sentence by its letters and counts in each.
fn facts_of(facts: &Facts, stems: &[u32], s: &Read, all: &[Read]) -> Facts {
    let inside = |start: u32, end: u32| start as usize >= s.from && (end as usize) <= s.to;
    let says = |read: &Read, stem: &u32| read.stems.binary_search(stem).is_ok();
    let here = |stem: &u32| says(s, stem) || !all.iter().any(|other| says(other, stem));
    let terms = facts.terms.iter().zip(stems);
    Facts {
        entities: facts
            .entities
            .iter()
            .filter(|e| inside(e.start, e.end))
            .cloned()
            .collect(),
        times: facts
            .times
            .iter()
            .filter(|t| inside(t.start, t.end))
            .cloned()
            .collect(),
        terms: terms
            .filter(|(_, stem)| here(stem))
            .map(|(term, _)| term.clone())
            .collect(),
        cards: facts
            .cards
            .iter()
            .filter(|c| inside(c.start, c.end))
            .cloned()
            .collect(),
        signals: facts.signals,
        social: facts.social,
        ..Facts::default()
    }
}
