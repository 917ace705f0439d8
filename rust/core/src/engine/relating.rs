//! Relations found anew: after an erasure, as if what is gone had never been there, and
//! while a memory is reindexed, with what callers stated from its place on.

use super::Engine;
use super::decisions::{overruled, related};
use crate::error::Result;
use crate::lineage::{Anew, Edge};
use crate::store::{DecisionLog, DecisionRow, Store, stated_seq};
use crate::types::InteractionId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What callers stated, by the turn that was the newest then.
pub(super) type Stated = Vec<(InteractionId, Edge)>;

impl Engine {
    /// Brings back every relation of the store. What a caller stated is in force once all
    /// turns are taken in that were there when it was said.
    pub(super) fn load_edges(&mut self, store: &Store) -> Result<()> {
        self.stated_later.clear();
        for edge in store.edges(&self.namespace)? {
            let waits = self.pending.first().copied().filter(|_| edge.by_caller);
            if let Some(next) = waits {
                let place = self.place_of(store, &edge)?;
                if place >= next {
                    self.lineage.announce(&edge)?;
                    self.stated_later.push((place, edge));
                    continue;
                }
            }
            self.lineage.add(edge)?;
        }
        self.stated_later.sort();
        Ok(())
    }

    /// The newest turn when a caller stated this; the later of the two where that is lost.
    fn place_of(&self, store: &Store, edge: &Edge) -> Result<InteractionId> {
        let rows = store.decision_rows(&self.namespace, edge.older)?;
        let said = rows.iter().filter(|r| r.kind == "relate").find(|r| {
            let detail: Value = serde_json::from_str(&r.detail).unwrap_or_default();
            detail["by"] == edge.newer && detail["relation"] == edge.relation.as_str()
        });
        Ok(said.map_or(edge.older.max(edge.newer), |r| r.at))
    }

    /// Puts in force what callers stated before the next turn that is still to be taken in.
    pub(super) fn enforce_stated(&mut self) {
        let next = self.pending.first().copied();
        let before = |(place, _): &(InteractionId, Edge)| next.is_none_or(|next| *place < next);
        let due = self.stated_later.partition_point(before);
        for (_, edge) in self.stated_later.drain(..due) {
            self.lineage.enforce(edge);
        }
    }

    /// Takes turns that are about to go out of the lineage.
    pub(super) fn unrelate(&mut self, gone: &[InteractionId]) -> Anew {
        let touches = |e: &Edge| gone.contains(&e.older) || gone.contains(&e.newer);
        let waiting = &mut self.stated_later;
        for (_, edge) in waiting.extract_if(.., |(_, e)| touches(e)) {
            self.lineage.enforce(edge);
        }
        self.lineage.without(gone)
    }

    /// Relates what is left, in memory and in the store.
    pub(super) fn relate_anew(
        &mut self,
        store: &Store,
        mut anew: Anew,
        gone: &[InteractionId],
    ) -> Result<()> {
        if anew.is_empty() {
            return Ok(());
        }
        let mut places = BTreeMap::new();
        for edge in std::mem::take(&mut anew.stated) {
            let place = self.place_of(store, &edge)?;
            places.insert(edge, place);
        }
        self.tell_again(store, &mut anew, &places)?;
        for changed in self.lineage.changes(&anew) {
            for edge in &changed.gone {
                store.erase_edge(&self.namespace, edge)?;
            }
            for edge in &changed.new {
                store.insert_edge(&self.namespace, edge)?;
            }
            self.log_anew(store, changed.older, &anew, &places, gone)?;
        }
        Ok(())
    }

    /// Every turn left has its say again, in order, and callers theirs in between.
    fn tell_again(
        &mut self,
        store: &Store,
        anew: &mut Anew,
        places: &BTreeMap<Edge, InteractionId>,
    ) -> Result<()> {
        let mut stated: Stated = places.iter().map(|(e, at)| (*at, e.clone())).collect();
        stated.sort();
        let mut stated = stated.into_iter().peekable();
        for id in anew.turns.clone() {
            while let Some((_, edge)) = stated.next_if(|(place, _)| *place < id) {
                self.lineage.enforce(edge);
            }
            let found = store.text_and_facts(&self.namespace, id)?;
            if let (Some((_, facts)), Some(meta)) = (found, self.turns.get(&id)) {
                let (signals, claims) = (facts.signals, &facts.claims);
                { &mut self.lineage }.tell_again(anew, id, &meta.role, signals, claims);
            }
        }
        for (_, edge) in stated {
            self.lineage.enforce(edge);
        }
        Ok(())
    }

    /// Writes down the decisions on a turn's relations as they are now.
    fn log_anew(
        &self,
        store: &Store,
        older: InteractionId,
        anew: &Anew,
        places: &BTreeMap<Edge, InteractionId>,
        gone: &[InteractionId],
    ) -> Result<()> {
        let mut rows: BTreeMap<InteractionId, Vec<DecisionRow>> = BTreeMap::new();
        for row in store.decision_rows(&self.namespace, older)? {
            rows.entry(row.at).or_default().push(row);
        }
        let mut due = self.decided_on(older, anew, places);
        let moments: BTreeSet<_> = rows.keys().chain(due.keys()).copied().collect();
        for at in moments {
            let former = rows.remove(&at).unwrap_or_default();
            let mut now = due.remove(&at).unwrap_or_default();
            let kept = former.iter().filter(|row| stays(row, anew, gone));
            let (stated, others): (Vec<_>, Vec<_>) = kept.partition(|r| r.kind == "relate");
            now.extend(others.iter().map(|r| (r.kind.clone(), r.detail.clone())));
            if { former.iter() }.map(|r| (&r.kind, &r.detail)).eq({
                let stated = stated.iter().map(|r| (&r.kind, &r.detail));
                now.iter().map(|(k, d)| (k, d)).chain(stated)
            }) {
                continue;
            }
            store.erase_decisions_at(&self.namespace, older, at)?;
            let mut log = DecisionLog::new(store);
            let key = self.namespace.key(older);
            for (seq, (kind, detail)) in (1..).zip(&now) {
                log.add(key, at, seq, kind, detail)?;
            }
            for row in stated {
                log.add(key, at, stated_seq(row.seq), &row.kind, &row.detail)?;
            }
        }
        Ok(())
    }

    /// What an insertion would have decided on a turn's relations, by its moment.
    fn decided_on(
        &self,
        older: InteractionId,
        anew: &Anew,
        places: &BTreeMap<Edge, InteractionId>,
    ) -> BTreeMap<InteractionId, Vec<(String, String)>> {
        let (stated, found): (Vec<&Edge>, Vec<&Edge>) =
            self.lineage.newer(older).iter().partition(|e| e.by_caller);
        let mut each: Vec<(&Edge, bool)> = found.into_iter().map(|e| (e, true)).collect();
        each.extend(anew.refused(older).map(|e| (e, false)));
        each.sort();
        let mut due: BTreeMap<InteractionId, Vec<(String, String)>> = BTreeMap::new();
        let mut so_far: Vec<&Edge> = Vec::new();
        for (edge, stands) in each {
            let decided = due.entry(edge.newer).or_default();
            if !stands {
                let detail = overruled(edge).to_string();
                decided.push(("overruled".into(), detail));
                continue;
            }
            so_far.push(edge);
            let said = stated.iter().filter(|e| {
                let place = places.get(**e).copied();
                place.unwrap_or(0) < edge.newer
            });
            let standing: Vec<&Edge> = so_far.iter().chain(said).copied().collect();
            let detail = related(edge, self.lineage.validity_by(older, &standing));
            decided.push(("supersede".into(), detail.to_string()));
        }
        due
    }
}

/// Whether a decision is none of those that are made anew.
fn stays(row: &DecisionRow, anew: &Anew, gone: &[InteractionId]) -> bool {
    match row.kind.as_str() {
        "supersede" => false,
        "overruled" => !anew.is_whole() && !gone.contains(&row.at),
        "relate" => {
            let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
            !gone.iter().any(|id| detail["by"] == *id)
        }
        _ => true,
    }
}
