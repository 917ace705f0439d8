//! Evidence and the active conversation as one block of text under a token budget.

use super::Engine;
use super::read::{Evidence, Recall, RecallOptions};
use super::tiers::Tiers;
use crate::config::RecurrencePolicy;
use crate::error::Result;
use crate::render::{self, Line};
use crate::retrieve::Query;
use crate::text::fold;
use crate::types::{InteractionId, StoredTurn, TimeExpression, Validity};
use std::collections::{BTreeMap, BTreeSet};

/// A rendered block and what is in it.
pub struct Context {
    /// The block; empty where nothing is shown.
    pub text: String,
    /// The turns it shows, best evidence first, then support, then the active ones in order.
    pub shown: Vec<InteractionId>,
    /// Its length by the memory's counter.
    pub tokens: u32,
}

impl Engine {
    /// The paper's four blocks, never over `max_tokens` by the memory's counter.
    ///
    /// Evidence is served first; the active conversation gets what is left,
    /// newest first, printed in order. What lineage suppresses never appears in
    /// the active block.
    pub fn render(
        &self,
        query: &Query,
        options: &RecallOptions,
        max_tokens: Option<u32>,
        include_active: bool,
    ) -> Result<Context> {
        let config = self.settings(options.preset.as_deref())?;
        let budget = max_tokens.unwrap_or(config.render.max_tokens);
        let mut recall = self.recall(query, options)?;
        let active = if include_active {
            self.visible_active()?
        } else {
            Vec::new()
        };
        let mut page = Page::new(
            self,
            budget,
            config.render.resolve_dates,
            config.render.end_marker,
        );
        // What the active block will show anyway is not shown twice: it goes
        // there if the whole block fits, else it stays evidence.
        let all_fit = page.would_fit(&active);
        if all_fit {
            let shown: BTreeSet<InteractionId> =
                active.iter().map(|t| t.0.interaction_id).collect();
            recall
                .evidence
                .retain(|e| !shown.contains(&e.turn.interaction_id));
        }
        let tiers = self.recall_tiers(query, options)?;
        page.recalled(&recall, query, &tiers, &config.policy.recurrence)?;
        page.active(&active);
        Ok(page.finish())
    }

    /// Active turns that still stand, in id order, with their time expressions.
    fn visible_active(&self) -> Result<Vec<(StoredTurn, Vec<TimeExpression>)>> {
        let mut turns = Vec::new();
        for entry in self.active.entries() {
            if self.lineage.validity(entry.id) == Validity::Current {
                let derived = self.store().derived(&self.namespace, entry.id)?;
                let turn = self.store().turn(&self.namespace, entry.id)?;
                let times = derived.map(|d| d.facts.times).unwrap_or_default();
                turns.extend(turn.map(|t| (self.complete(t), times)));
            }
        }
        Ok(turns)
    }
}

/// The text as it grows, and what it costs.
struct Page<'a> {
    engine: &'a Engine,
    budget: u32,
    resolve: bool,
    end_marker: bool,
    structured: Vec<Item>,
    supporting: Vec<Item>,
    episodes: Vec<String>,
    facts: Vec<String>,
    active: Vec<Item>,
    /// What evidence was tried, whether it fitted or not.
    tried: BTreeSet<InteractionId>,
}

/// One line and the turn that it shows.
struct Item {
    id: InteractionId,
    text: String,
}

impl Item {
    fn new(turn: &StoredTurn, text: String) -> Self {
        Self {
            id: turn.interaction_id,
            text,
        }
    }
}

impl<'a> Page<'a> {
    fn new(engine: &'a Engine, budget: u32, resolve: bool, end_marker: bool) -> Self {
        Self {
            engine,
            budget,
            resolve,
            end_marker,
            structured: Vec::new(),
            supporting: Vec::new(),
            episodes: Vec::new(),
            facts: Vec::new(),
            active: Vec::new(),
            tried: BTreeSet::new(),
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let gathered = !self.episodes.is_empty() || !self.facts.is_empty();
        if !self.structured.is_empty() || gathered {
            lines.push(render::RECALLED);
        }
        if !self.structured.is_empty() {
            lines.push(render::STRUCTURED);
            lines.extend(self.structured.iter().map(|i| i.text.as_str()));
            if !self.supporting.is_empty() {
                lines.push(render::SUPPORTING);
                lines.extend(self.supporting.iter().map(|i| i.text.as_str()));
            }
        }
        for (heading, block) in [
            (render::EPISODES, &self.episodes),
            (render::FACTS, &self.facts),
        ] {
            if !block.is_empty() {
                lines.push(heading);
                lines.extend(block.iter().map(String::as_str));
            }
        }
        if !self.active.is_empty() {
            lines.push(render::ACTIVE);
            lines.extend(self.active.iter().map(|i| i.text.as_str()));
        }
        if self.end_marker && !lines.is_empty() {
            lines.push(render::END);
        }
        lines.join("\n")
    }

    fn fits(&self) -> bool {
        self.engine.count_tokens(&self.text()) <= self.budget
    }

    fn line(
        &self,
        turn: &StoredTurn,
        times: &[TimeExpression],
        cut: Option<(usize, usize)>,
    ) -> String {
        render::line(&Line { turn, times, cut }, self.resolve)
    }

    fn would_fit(&mut self, active: &[(StoredTurn, Vec<TimeExpression>)]) -> bool {
        self.active = active
            .iter()
            .map(|(t, times)| Item::new(t, self.line(t, times, None)))
            .collect();
        let fits = self.engine.count_tokens(&self.text()) <= self.budget / 2;
        self.active.clear();
        fits
    }

    /// Evidence, then the episodes and facts in their share, then evidence again in what
    /// that leaves: raw text is never displaced by more than the share.
    fn recalled(
        &mut self,
        recall: &Recall,
        query: &Query,
        tiers: &Tiers,
        p: &RecurrencePolicy,
    ) -> Result<()> {
        let whole = self.budget;
        if tiers.is_empty() {
            self.evidence(recall, query);
            return Ok(());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let part = (f64::from(whole) * p.share) as u32;
        // A small context is raw evidence's alone; the tiers get what is left over.
        let kept_free = if whole < p.share_from { 0 } else { part };
        self.budget = whole - kept_free;
        self.evidence(recall, query);
        let used = self.engine.count_tokens(&self.text());
        self.budget = whole.min(used + part);
        let places = recall.evidence.iter().enumerate();
        let places: BTreeMap<InteractionId, usize> =
            places.map(|(at, e)| (e.turn.interaction_id, at)).collect();
        let shown = self.shown();
        let mut told = BTreeSet::new();
        self.facts(tiers, p.k_sem, &places, &shown, &mut told)?;
        self.episodes(tiers, p.k_epi, &places, &shown, &told)?;
        self.budget = whole;
        let shown = self.shown();
        self.tried.retain(|id| shown.contains(id));
        self.evidence(recall, query);
        Ok(())
    }

    /// Facts of turns that are not shown: those that recall ranks first, then by nearness.
    fn facts(
        &mut self,
        tiers: &Tiers,
        most: usize,
        places: &BTreeMap<InteractionId, usize>,
        shown: &BTreeSet<InteractionId>,
        told: &mut BTreeSet<(InteractionId, u32)>,
    ) -> Result<()> {
        let turn = |id: &u64| self.engine.stated_in(*id).filter(|t| !shown.contains(t));
        let new = tiers.facts.iter().filter_map(|id| Some((turn(id)?, *id)));
        let mut order: Vec<(usize, u64)> = new.map(|(t, id)| (place(places, t), id)).collect();
        order.sort_by_key(|o| o.0);
        for (_, id) in order.into_iter().take(2 * most) {
            let Some(fact) = self.engine.fact(id)?.filter(|_| self.facts.len() < most) else {
                break;
            };
            let place = (fact.excerpt.interaction_id, fact.excerpt.start);
            if fact.written.is_some() || told.insert(place) {
                self.facts.push(fact.written.unwrap_or(fact.excerpt.text));
                if !self.fits() {
                    self.facts.pop();
                }
            }
        }
        Ok(())
    }

    /// What episodes tell beyond the turns and facts that are shown, in the same order.
    fn episodes(
        &mut self,
        tiers: &Tiers,
        most: usize,
        places: &BTreeMap<InteractionId, usize>,
        shown: &BTreeSet<InteractionId>,
        told: &BTreeSet<(InteractionId, u32)>,
    ) -> Result<()> {
        let first = |id: &u64| {
            let turns = self.engine.quoted(*id).into_iter();
            turns
                .filter(|t| !shown.contains(t))
                .map(|t| place(places, t))
                .min()
        };
        let new = tiers
            .episodes
            .iter()
            .filter_map(|id| Some((first(id)?, *id)));
        let mut order: Vec<(usize, u64)> = new.collect();
        order.sort_by_key(|o| o.0);
        for (_, id) in order.into_iter().take(2 * most) {
            let Some(episode) = self
                .engine
                .episode(id)?
                .filter(|_| self.episodes.len() < most)
            else {
                break;
            };
            let new = episode.sentences.iter().filter(|s| {
                !shown.contains(&s.interaction_id) && !told.contains(&(s.interaction_id, s.start))
            });
            let mut lines: Vec<&str> = new.map(|s| s.text.as_str()).collect();
            if let Some(written) = &episode.written {
                lines = vec![written];
            }
            if !lines.is_empty() {
                self.episodes.push(lines.join(" "));
                if !self.fits() {
                    self.episodes.pop();
                }
            }
        }
        Ok(())
    }

    fn shown(&self) -> BTreeSet<InteractionId> {
        let blocks = [&self.structured, &self.supporting];
        blocks.into_iter().flatten().map(|i| i.id).collect()
    }

    fn evidence(&mut self, recall: &Recall, query: &Query) {
        for e in &recall.evidence {
            if !self.tried.insert(e.turn.interaction_id) {
                continue;
            }
            let line = self.line(&e.turn, &e.times, None);
            self.structured.push(Item::new(&e.turn, line));
            if !self.fits() {
                self.structured.pop();
                // Whole items only; but the best one is never left out for its length.
                if self.structured.is_empty() {
                    self.cut_to_fit(e, query);
                }
                continue;
            }
            for s in &e.support {
                if self.tried.insert(s.turn.interaction_id) {
                    let text = format!("{} ({})", self.line(&s.turn, &[], None), s.relation);
                    self.supporting.push(Item::new(&s.turn, text));
                    if !self.fits() {
                        self.supporting.pop();
                    }
                }
            }
        }
    }

    /// As many whole sentences around the best-matching one as the budget holds.
    fn cut_to_fit(&mut self, e: &Evidence, query: &Query) {
        let sentences = render::sentences(&e.turn.text);
        let chars: Vec<char> = e.turn.text.chars().collect();
        let shared = |span: &(usize, usize)| {
            let text = fold(&chars[span.0..span.1].iter().collect::<String>());
            query
                .frame
                .terms
                .iter()
                .filter(|t| text.contains(t.as_str()))
                .count()
        };
        let counts: Vec<usize> = sentences.iter().map(shared).collect();
        let Some(best) = (0..sentences.len()).max_by_key(|i| (counts[*i], usize::MAX - i)) else {
            return;
        };
        let (mut from, mut to) = (best, best);
        let mut kept: Option<Item> = None;
        loop {
            let cut = (sentences[from].0, sentences[to].1);
            let line = self.line(&e.turn, &e.times, Some(cut));
            self.structured.push(Item::new(&e.turn, line));
            let fits = self.fits();
            let item = self.structured.pop();
            if !fits {
                break;
            }
            kept = item;
            if to + 1 < sentences.len() {
                to += 1;
            } else if from > 0 {
                from -= 1;
            } else {
                break;
            }
        }
        self.structured.extend(kept);
    }

    fn active(&mut self, active: &[(StoredTurn, Vec<TimeExpression>)]) {
        for (turn, times) in active.iter().rev() {
            if self.tried.contains(&turn.interaction_id) {
                continue;
            }
            let item = Item::new(turn, self.line(turn, times, None));
            self.active.insert(0, item);
            if !self.fits() {
                self.active.remove(0);
                break;
            }
        }
    }

    fn finish(self) -> Context {
        let text = self.text();
        let blocks = [&self.structured, &self.supporting, &self.active];
        Context {
            tokens: self.engine.count_tokens(&text),
            shown: blocks.into_iter().flatten().map(|i| i.id).collect(),
            text,
        }
    }
}

/// The place of a turn in the recall; after all of them where it is not in it.
fn place(places: &BTreeMap<InteractionId, usize>, turn: InteractionId) -> usize {
    places.get(&turn).copied().unwrap_or(usize::MAX)
}
