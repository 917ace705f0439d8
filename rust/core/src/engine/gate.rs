//! The gate in front of the memory: what it decided, and what it kept out.
//!
//! Nothing here is state of its own: verdicts and links are rows of the store, and the
//! window of similarities and the shadow buffer are read off them. So a memory that is
//! reopened, or from which a turn was erased, goes on as if it had always been so.

use super::links::Links;
use super::{Engine, TurnMeta};
use crate::config::Rpe;
use crate::error::Result;
use crate::index::Flat;
use crate::policy::assessment;
use crate::policy::rpe::{self, Link, Tier, Verdict};
use crate::policy::utility::{self, Said};
use crate::store::{Derived, Namespace, Store};
use crate::text;
use crate::types::{AnalysedTurn, Assessment, Decision, InteractionId, StoredTurn};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Turns whose speakers take part in the conversation.
const TAKING_PART: usize = 50;

/// What the gate knows of a memory's turns.
#[derive(Debug, Default)]
pub(super) struct Gate {
    verdicts: BTreeMap<InteractionId, Verdict>,
    links: Links,
    skipped: BTreeMap<InteractionId, TurnMeta>,
    shadow: Flat,
}

impl Gate {
    /// Verdicts and links as the store has them; skipped turns come one by one.
    pub(super) fn load(store: &Store, ns: &Namespace) -> Result<Self> {
        let mut gate = Self {
            verdicts: store.verdicts(ns)?.into_iter().collect(),
            ..Self::default()
        };
        for link in store.links(ns)? {
            gate.links.insert(&link);
        }
        Ok(gate)
    }

    /// Whether the gate kept that turn out.
    pub(super) fn skips(&self, id: InteractionId) -> bool {
        self.verdicts.get(&id).is_some_and(|v| v.tier == Tier::Skip)
    }

    /// Forgets turns, given in id order.
    pub(super) fn remove(&mut self, ids: &[InteractionId]) {
        for id in ids {
            self.verdicts.remove(id);
            self.skipped.remove(id);
            self.links.remove(*id);
        }
        self.shadow.remove(ids);
    }

    /// Turns that are kept out.
    pub(super) fn skipped(&self) -> &BTreeMap<InteractionId, TurnMeta> {
        &self.skipped
    }

    /// A number of each of the newest `window` turns that were noted, oldest first. With
    /// the others among them, much small talk would make all that is said of the
    /// conversation's own matter look expected.
    fn of_notes(&self, window: usize, number: impl Fn(&Verdict) -> Option<f64>) -> Vec<f64> {
        let noted = self
            .verdicts
            .values()
            .rev()
            .filter(|v| v.tier != Tier::Skip);
        let mut window: Vec<f64> = noted.filter_map(number).take(window).collect();
        window.reverse();
        window
    }

    /// Skipped turns close to a question, best first, of the newest `shadow_size`.
    pub(super) fn in_shadow(
        &self,
        query: &[i16],
        c: &Rpe,
        admit: impl Fn(InteractionId, &TurnMeta) -> bool + Sync,
    ) -> Vec<(InteractionId, f64)> {
        let newest = self.skipped.keys().rev();
        let Some(oldest) = newest.take(c.shadow_size).min().copied() else {
            return Vec::new();
        };
        let meets = |id| self.skipped.get(&id).is_some_and(|m| admit(id, m));
        let admit = |id| id >= oldest && meets(id);
        let near = |hit: &(InteractionId, f64)| hit.1 > c.fallback_similarity;
        let hits = self.shadow.search(query, c.fallback_limit, -1.0, admit);
        hits.into_iter().filter(near).collect()
    }

    /// Notes linked with one, nearest first, equal ones by id.
    pub(super) fn linked(&self, id: InteractionId) -> Vec<(InteractionId, f64)> {
        self.links.of(id)
    }

    pub(super) fn verdict(&self, id: InteractionId) -> Option<&Verdict> {
        self.verdicts.get(&id)
    }

    /// Feeds a digest, where there is anything.
    pub(super) fn digest(&self, hash: &mut Sha256) {
        for (id, v) in &self.verdicts {
            hash.update(id.to_le_bytes());
            hash.update([v.tier as u8, v.lifecycle as u8, u8::from(v.conflict)]);
            hash.update(v.reason.as_bytes());
            for x in [v.utility, v.surprise, v.rpe] {
                hash.update(x.to_bits().to_le_bytes());
            }
        }
        for link in self.links.iter() {
            hash.update(link.newer.to_le_bytes());
            hash.update(link.older.to_le_bytes());
            hash.update(link.cosine.to_bits().to_le_bytes());
        }
    }
}

impl Engine {
    /// Whether this memory has a gate. What one kept out earlier is an ordinary
    /// turn to a memory that is opened without.
    pub(super) fn gated(&self) -> bool {
        self.config.policy.gate == "rpe"
    }

    /// The gate's verdict on a turn that is about to be taken in; none without a gate.
    pub(super) fn verdict_on(
        &self,
        id: InteractionId,
        analysed: &AnalysedTurn,
        model: Option<&Assessment>,
        conflict: bool,
    ) -> Option<Verdict> {
        if !self.gated() {
            return None;
        }
        let c = &self.config.policy.rpe;
        let vector = &analysed.passages[0].vector;
        let nearest = self.flat.search(vector, 1, -1.0, |_| true);
        let similarity = nearest.first().map(|hit| hit.1);
        let thread = self.thread(vector, c);
        let past = self.gate.of_notes(c.window, |v| v.similarity);
        let mut surprise = rpe::surprise(similarity, &past, self.turns.len(), c);
        if conflict {
            surprise = surprise.max(c.conflict_surprise);
        }
        let names = self.taking_part(analysed.turn.speaker.as_deref());
        let said = Said {
            text: &analysed.turn.text,
            role: &analysed.turn.role,
            facts: &analysed.facts,
            provenance: analysed.turn.provenance.as_ref(),
            takes_part: &|name| names.contains(name),
            off_thread: rpe::off_thread(
                thread,
                || self.gate.of_notes(c.window, |v| v.thread),
                self.turns.len(),
                c,
            ),
            conflict,
        };
        let rules = utility::judge(&said, c);
        let (lifecycle, reason, utility) = model.map_or(rules, |m| assessment::over(m, rules));
        let rpe = rpe::rpe(utility, surprise, c);
        Some(Verdict {
            tier: rpe::tier(rpe, id, c),
            lifecycle,
            reason,
            utility,
            similarity,
            thread,
            surprise,
            conflict,
            rpe,
        })
    }

    /// What a language model said of a turn: now, or when it was taken in first.
    pub(super) fn assessment_of(
        &self,
        store: &Store,
        id: InteractionId,
        given: Option<&Assessment>,
    ) -> Result<Option<Assessment>> {
        if !self.gated() || self.config.policy.rpe.utility != "llm" {
            return Ok(None);
        }
        match given {
            Some(given) => {
                store.put_assessment(&self.namespace, id, given)?;
                Ok(Some(given.clone()))
            }
            None => store.assessment(&self.namespace, id),
        }
    }

    /// Cosine of the nearest of the newest notes, once there are enough of them.
    fn thread(&self, vector: &[i16], c: &Rpe) -> Option<f64> {
        if self.turns.len() < c.least {
            return None;
        }
        let newest = self.turns.keys().rev().take(c.thread_notes);
        newest
            .map(|id| self.flat.similarity(vector, *id))
            .reduce(f64::max)
    }

    /// Names of those who spoke lately, whole and by word, folded.
    fn taking_part(&self, speaker: Option<&str>) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = speaker.map(text::fold).into_iter().collect();
        let noted = self.turns.values().rev().take(TAKING_PART);
        let skipped = self.gate.skipped().values().rev().take(TAKING_PART);
        let known = noted.chain(skipped).filter_map(|m| m.speaker.as_deref());
        names.extend(known.map(str::to_owned));
        let words: Vec<String> = names
            .iter()
            .flat_map(|n| n.split_whitespace().map(str::to_owned))
            .collect();
        names.extend(words);
        names
    }

    /// Links that a turn makes which evolves the memory; call it before the turn is indexed.
    pub(super) fn links_of(&self, id: InteractionId, vector: &[i16]) -> Vec<Link> {
        let c = &self.config.policy.rpe;
        let near = self
            .flat
            .search(vector, c.links, c.link_similarity, |_| true);
        near.into_iter()
            .map(|(older, cosine)| Link {
                newer: id,
                older,
                cosine,
            })
            .collect()
    }

    /// Writes down a verdict and the links that follow from it.
    pub(super) fn keep_verdict(
        &mut self,
        store: &Store,
        id: InteractionId,
        verdict: Verdict,
        model: Option<&Assessment>,
        vector: &[i16],
    ) -> Result<Value> {
        store.insert_verdict(&self.namespace, id, &verdict)?;
        self.gate.verdicts.insert(id, verdict);
        let mut links = Vec::new();
        if verdict.tier == Tier::FullEvolution {
            links = self.links_of(id, vector);
        }
        for link in &links {
            store.insert_link(&self.namespace, link)?;
            self.gate.links.insert(link);
        }
        let mut detail = json!(verdict);
        detail["links"] = json!(links.iter().map(|l| l.older).collect::<Vec<_>>());
        if let Some(model) = model {
            detail["llm"] = told(model);
        }
        Ok(detail)
    }

    /// Keeps a turn out of every index but the shadow's.
    pub(super) fn put_in_shadow(&mut self, turn: &StoredTurn, derived: &Derived) {
        let id = turn.interaction_id;
        let dimension = derived.dimension();
        self.gate.shadow.push(id, &derived.vectors, dimension);
        let mut meta = self.meta_of(turn, &derived.facts);
        meta.archived = true;
        self.gate.skipped.insert(id, meta);
    }

    /// What the gate decided about a turn, its links, and the tags that newer turns
    /// brought to it; none where no gate judged it.
    pub(super) fn explain_gate(
        &self,
        id: InteractionId,
        decisions: &[Decision],
    ) -> Result<Option<Value>> {
        let Some(verdict) = self.gate.verdict(id) else {
            return Ok(None);
        };
        let mut overlay: BTreeMap<String, Vec<InteractionId>> = BTreeMap::new();
        let store = self.store();
        for newer in self.gate.links.newer_than(id) {
            if let Some(d) = store.derived(&self.namespace, newer)? {
                for tag in tags(&d.facts) {
                    overlay.entry(tag).or_default().push(newer);
                }
            }
        }
        let own = store.derived(&self.namespace, id)?;
        let mut explained = json!(verdict);
        // What a model said outlives a rebuild by the rules; here is why this verdict was given.
        if decisions.iter().any(|d| d.detail.get("llm").is_some())
            && let Some(model) = store.assessment(&self.namespace, id)?
        {
            explained["llm"] = told(&model);
        }
        explained["tags"] = json!(own.map(|d| tags(&d.facts)).unwrap_or_default());
        explained["overlay"] = json!(overlay);
        let links = self.gate.linked(id).into_iter();
        explained["links"] = links
            .map(|(id, cosine)| json!({"interaction_id": id, "cosine": cosine}))
            .collect();
        Ok(Some(explained))
    }

    /// Turns by tier, links, and the shadow buffer's length; none where no gate judged any.
    pub(super) fn gate_stats(&self) -> Option<Value> {
        if self.gate.verdicts.is_empty() {
            return None;
        }
        let count = |tier| {
            let verdicts = self.gate.verdicts.values();
            verdicts.filter(|v| v.tier == tier).count()
        };
        Some(json!({
            "skip": count(Tier::Skip),
            "construct_only": count(Tier::ConstructOnly),
            "full_evolution": count(Tier::FullEvolution),
            "links": self.gate.links.len(),
            "shadow": self.gate.skipped.len().min(self.config.policy.rpe.shadow_size),
        }))
    }
}

/// What a model said, or why the rules decided, and its cost.
fn told(model: &Assessment) -> Value {
    let said = model.said.as_ref();
    json!({
        "lifecycle": said.ok().map(|s| s.0),
        "utility": said.ok().map(|s| s.1),
        "failed": said.err(),
        "calls": model.cost.calls,
        "tokens": model.cost.tokens,
    })
}

/// What a note is filed under: its entities, and the topics it states something on.
fn tags(facts: &crate::types::Facts) -> BTreeSet<String> {
    let entities = facts.entities.iter().map(|e| text::fold(&e.text));
    let topics = facts.claims.iter().map(|c| c.identity.clone());
    entities.chain(topics).filter(|t| !t.is_empty()).collect()
}
