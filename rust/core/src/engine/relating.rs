//! Relations found anew: after an erasure, as if what is gone had never been there, and
//! while a memory is reindexed, with what callers stated from its place on.

use super::Engine;
use super::decisions::{overruled, related};
use crate::error::Result;
use crate::lineage::{Anew, Edge};
use crate::store::{DecisionLog, DecisionRow, Store, stated_seq};
use crate::types::{InteractionId, Relation};
use serde_json::Value;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What callers stated, by the turn that was the newest then.
pub(super) type Stated = Vec<(InteractionId, Edge)>;

impl Engine {
    /// Brings back every relation of the store. What a caller stated is in force once all
    /// turns are taken in that were there when it was said.
    pub(super) fn load_edges(&mut self, store: &Store) -> Result<()> {
        self.stated_later.clear();
        let next = self.pending.first().copied();
        let edges = store.edges(&self.namespace)?;
        let stated = edges.iter().filter(|e| e.by_caller && next.is_some());
        let places = self.places(store, stated)?;
        for edge in edges {
            match places.get(&edge).copied().filter(|at| next <= Some(*at)) {
                Some(place) => {
                    self.lineage.announce(&edge)?;
                    self.stated_later.push((place, edge));
                }
                None => self.lineage.add(edge)?,
            }
        }
        self.stated_later.sort();
        Ok(())
    }

    /// The newest turn when callers stated these; the later of the two where that is lost.
    fn places<'a>(
        &self,
        store: &Store,
        edges: impl Iterator<Item = &'a Edge>,
    ) -> Result<BTreeMap<Edge, InteractionId>> {
        let mut said = BTreeMap::new();
        let mut places = BTreeMap::new();
        for edge in edges {
            let said = match said.entry(edge.older) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.said_of(store, edge.older)?),
            };
            let at = said.get(&(edge.newer, edge.relation)).copied();
            places.insert(edge.clone(), at.unwrap_or(edge.older.max(edge.newer)));
        }
        Ok(places)
    }

    /// When callers stated what they stated of a turn, by the newer one and the relation.
    fn said_of(
        &self,
        store: &Store,
        older: InteractionId,
    ) -> Result<BTreeMap<(InteractionId, Relation), InteractionId>> {
        let mut said = BTreeMap::new();
        for row in store.decision_rows(&self.namespace, older)? {
            if row.kind == "relate" {
                let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
                let relation = detail["relation"].as_str().and_then(Relation::parse);
                if let (Some(by), Some(relation)) = (detail["by"].as_u64(), relation) {
                    said.entry((by, relation)).or_insert(row.at);
                }
            }
        }
        Ok(said)
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
        let everything = !waiting.is_empty();
        for (_, edge) in waiting.extract_if(.., |(_, e)| touches(e)) {
            self.lineage.enforce(edge);
        }
        self.lineage.without(gone, everything)
    }

    /// Relates what is left, in memory and in the store.
    pub(super) fn relate_anew(&mut self, store: &Store, mut anew: Anew) -> Result<()> {
        if anew.is_empty() {
            return Ok(());
        }
        let places = self.places(store, anew.stated.iter())?;
        self.tell_again(&mut anew, &places);
        for changed in self.lineage.changes(&anew) {
            for edge in &changed.gone {
                store.erase_edge(&self.namespace, edge)?;
            }
            for edge in &changed.new {
                store.insert_edge(&self.namespace, edge)?;
            }
            self.log_anew(store, changed.older, &anew, &places)?;
        }
        Ok(())
    }

    /// Every turn left has its say again, in order, and callers theirs in between.
    fn tell_again(&mut self, anew: &mut Anew, places: &BTreeMap<Edge, InteractionId>) {
        let mut stated: Stated = places.iter().map(|(e, at)| (*at, e.clone())).collect();
        stated.sort();
        let mut stated = stated.into_iter().peekable();
        for (id, claims) in std::mem::take(&mut anew.claims) {
            while let Some((_, edge)) = stated.next_if(|(place, _)| *place < id) {
                self.lineage.enforce(edge);
            }
            if let Some(meta) = self.turns.get(&id) {
                { &mut self.lineage }.tell_again(anew, id, &meta.role, meta.signals, &claims);
            }
        }
        for (_, edge) in stated {
            self.lineage.enforce(edge);
        }
    }

    /// Writes down the decisions on a turn's relations as they are now.
    fn log_anew(
        &self,
        store: &Store,
        older: InteractionId,
        anew: &Anew,
        places: &BTreeMap<Edge, InteractionId>,
    ) -> Result<()> {
        let mut rows: BTreeMap<InteractionId, Vec<DecisionRow>> = BTreeMap::new();
        for row in store.decision_rows(&self.namespace, older)? {
            rows.entry(row.at).or_default().push(row);
        }
        let mut due = self.decided_on(older, anew, places);
        let moments: BTreeSet<_> = rows.keys().chain(due.keys()).copied().collect();
        for at in moments {
            let former = rows.remove(&at).unwrap_or_default();
            let now = numbered(due.remove(&at).unwrap_or_default(), &former, anew);
            let same =
                |(a, b): (&DecisionRow, &DecisionRow)| a.kind == b.kind && a.detail == b.detail;
            if former.len() == now.len() && former.iter().zip(&now).all(same) {
                continue;
            }
            store.erase_decisions_at(&self.namespace, older, at)?;
            let mut log = DecisionLog::new(store);
            for row in &now {
                let key = self.namespace.key(older);
                log.add(key, at, row.seq, &row.kind, &row.detail)?;
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
    ) -> BTreeMap<InteractionId, Vec<DecisionRow>> {
        let (stated, found): (Vec<&Edge>, Vec<&Edge>) =
            self.lineage.newer(older).iter().partition(|e| e.by_caller);
        let mut each: Vec<(&Edge, bool)> = found.into_iter().map(|e| (e, true)).collect();
        each.extend(anew.refused(older).map(|e| (e, false)));
        each.sort();
        let mut due: BTreeMap<InteractionId, Vec<DecisionRow>> = BTreeMap::new();
        let mut so_far: Vec<&Edge> = Vec::new();
        for (edge, stands) in each {
            let (kind, detail) = if stands {
                so_far.push(edge);
                let said = stated.iter().filter(|e| {
                    let place = places.get(**e).copied();
                    place.unwrap_or(0) < edge.newer
                });
                let standing: Vec<&Edge> = so_far.iter().chain(said).copied().collect();
                let validity = self.lineage.validity_by(older, &standing);
                ("supersede", related(edge, validity))
            } else {
                ("overruled", overruled(edge))
            };
            due.entry(edge.newer).or_default().push(DecisionRow {
                at: edge.newer,
                seq: 0,
                kind: kind.into(),
                detail: detail.to_string(),
            });
        }
        due
    }
}

/// The decisions of one moment, numbered as an insertion numbers them; what callers stated
/// keeps its number, behind all of those.
fn numbered(mut now: Vec<DecisionRow>, former: &[DecisionRow], anew: &Anew) -> Vec<DecisionRow> {
    let kept = former.iter().filter(|row| stays(row, anew)).cloned();
    let (stated, others): (Vec<_>, Vec<_>) = kept.partition(|row| row.kind == "relate");
    now.extend(others);
    for (seq, row) in (1..).zip(&mut now) {
        row.seq = seq;
    }
    now.extend(stated.into_iter().map(|row| DecisionRow {
        seq: stated_seq(row.seq),
        ..row
    }));
    now
}

/// Whether a decision is none of those that are made anew.
fn stays(row: &DecisionRow, anew: &Anew) -> bool {
    match row.kind.as_str() {
        "supersede" => false,
        "overruled" => !anew.whole && !anew.gone.contains(&row.at),
        "relate" => {
            let detail: Value = serde_json::from_str(&row.detail).unwrap_or_default();
            let by = detail["by"].as_u64();
            by.is_none_or(|by| !anew.gone.contains(&by))
        }
        _ => true,
    }
}
