//! Evidence and the active conversation as one block of text under a token budget.

use super::Engine;
use super::page::{Line, Page, Part};
use super::read::{Evidence, Recall, RecallOptions};
use super::tiers::Tiers;
use crate::config::{RecurrencePolicy, Render};
use crate::error::Result;
use crate::render;
use crate::retrieve::Query;
use crate::text::fold;
use crate::types::{InteractionId, StoredTurn, TimeExpression, Validity};
use std::collections::{BTreeMap, BTreeSet};

/// Active turns that are read in one go.
const TOGETHER: usize = 16;

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
        let mut active = Conversation::new(self, &config.render, include_active);
        let tiers = self.recall_tiers(query, options)?;
        let filled = |recall: &Recall, active: &mut Conversation<'_>| -> Result<Context> {
            let mut filling = Filling::new(self, budget, &config.render);
            filling.recalled(recall, query, &tiers, &config.policy.recurrence)?;
            filling.active(active)?;
            Ok(filling.finish())
        };
        // What the active block will show anyway is not shown twice: it goes
        // there if the whole block fits, else it stays evidence.
        if !active.fits(budget / 2)? {
            return filled(&recall, &mut active);
        }
        let there = active.turns();
        let (left_out, kept): (Vec<_>, Vec<_>) =
            { recall.evidence.into_iter() }.partition(|e| there.contains(&e.turn.interaction_id));
        recall.evidence = kept;
        let context = filled(&recall, &mut active)?;
        let shown = |e: &Evidence| context.shown.contains(&e.turn.interaction_id);
        if left_out.iter().all(shown) {
            return Ok(context);
        }
        // The other evidence has left the active block too little.
        recall.evidence.extend(left_out);
        recall.evidence.sort_by_key(|e| e.rank);
        filled(&recall, &mut active)
    }
}

/// The active turns that still stand, newest first. They are read as far as they are asked
/// for: a small page shows few of them.
struct Conversation<'a> {
    engine: &'a Engine,
    settings: &'a Render,
    read: Vec<Line>,
    /// Those that were not read yet, in id order.
    rest: Vec<InteractionId>,
}

impl<'a> Conversation<'a> {
    fn new(engine: &'a Engine, settings: &'a Render, include: bool) -> Self {
        let entries = engine.active.entries().iter().filter(|_| include);
        let stands = |id: &InteractionId| engine.lineage.validity(*id) == Validity::Current;
        Self {
            engine,
            settings,
            read: Vec::new(),
            rest: entries.map(|e| e.id).filter(stands).collect(),
        }
    }

    /// The line of the turn that comes `at` places after the newest.
    fn line(&mut self, at: usize) -> Result<Option<&Line>> {
        while self.read.len() <= at && !self.rest.is_empty() {
            self.read_on()?;
        }
        Ok(self.read.get(at))
    }

    /// Reads the next turns with the dates that they name; none that was erased meanwhile.
    fn read_on(&mut self) -> Result<()> {
        let left = self.rest.len().saturating_sub(TOGETHER);
        let engine = self.engine;
        engine.store().reading(|store| {
            for id in self.rest.split_off(left).into_iter().rev() {
                let Some(turn) = store.turn(&engine.namespace, id)? else {
                    continue;
                };
                let known = engine.known(store, id)?;
                let times = known.as_ref().map_or(&[][..], |k| &k.facts.times);
                let text = line(&engine.complete(turn), times, None, self.settings);
                self.read.push(Line::new(&engine.counter, Some(id), text));
            }
            Ok(())
        })
    }

    /// Whether they all fit on a page of their own.
    fn fits(&mut self, budget: u32) -> Result<bool> {
        let mut page = Page::new(&self.engine.counter, budget, self.settings.end_marker);
        let mut at = 0;
        while let Some(line) = self.line(at)? {
            if !page.add(Part::Active, line.clone()) {
                return Ok(false);
            }
            at += 1;
        }
        Ok(true)
    }

    /// Those that were read.
    fn turns(&self) -> BTreeSet<InteractionId> {
        self.read.iter().filter_map(|l| l.id).collect()
    }
}

/// A page, and what puts lines on it.
struct Filling<'a> {
    engine: &'a Engine,
    settings: &'a Render,
    page: Page<'a>,
    /// What evidence was tried, whether it fitted or not.
    tried: BTreeSet<InteractionId>,
}

impl<'a> Filling<'a> {
    fn new(engine: &'a Engine, budget: u32, settings: &'a Render) -> Self {
        Self {
            engine,
            settings,
            page: Page::new(&engine.counter, budget, settings.end_marker),
            tried: BTreeSet::new(),
        }
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
        let whole = self.page.budget;
        if tiers.is_empty() {
            self.evidence(recall, query);
            return Ok(());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let part = (f64::from(whole) * p.share) as u32;
        // A small context is raw evidence's alone; the tiers get what is left over.
        let kept_free = if whole < p.share_from { 0 } else { part };
        self.page.budget = whole - kept_free;
        self.evidence(recall, query);
        self.page.budget = whole.min(self.page.tokens() + part);
        let places = recall.evidence.iter().enumerate();
        let places: BTreeMap<InteractionId, usize> =
            places.map(|(at, e)| (e.turn.interaction_id, at)).collect();
        let shown = self.shown();
        let mut told = BTreeSet::new();
        self.facts(tiers, p.k_sem, &places, &shown, &mut told)?;
        self.episodes(tiers, p.k_epi, &places, &shown, &told)?;
        self.page.budget = whole;
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
            if self.page.count(Part::Facts) == most {
                break;
            }
            let Some(fact) = self.engine.fact(id)? else {
                continue;
            };
            let place = (fact.excerpt.interaction_id, fact.excerpt.start);
            if fact.written.is_some() || told.insert(place) {
                let text = fact.written.unwrap_or(fact.excerpt.text);
                self.add(Part::Facts, None, text);
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
            if self.page.count(Part::Episodes) == most {
                break;
            }
            let Some(episode) = self.engine.episode(id)? else {
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
                self.add(Part::Episodes, None, lines.join(" "));
            }
        }
        Ok(())
    }

    fn shown(&self) -> BTreeSet<InteractionId> {
        let parts = [Part::Structured, Part::Supporting];
        parts.into_iter().flat_map(|p| self.page.turns(p)).collect()
    }

    /// Adds a line unless that is more than the budget; whether it was added.
    fn add(&mut self, part: Part, id: Option<InteractionId>, text: String) -> bool {
        let line = Line::new(&self.engine.counter, id, text);
        self.page.add(part, line)
    }

    fn evidence(&mut self, recall: &Recall, query: &Query) {
        for e in &recall.evidence {
            let id = e.turn.interaction_id;
            if !self.tried.insert(id) {
                continue;
            }
            let text = line(&e.turn, &e.times, None, self.settings);
            if !self.add(Part::Structured, Some(id), text) {
                // Whole items only; but the best one is never left out for its length.
                if self.page.count(Part::Structured) == 0 {
                    self.cut_to_fit(e, query);
                }
                continue;
            }
            for s in &e.support {
                let id = s.turn.interaction_id;
                if self.tried.insert(id) {
                    let text = line(&s.turn, &[], None, self.settings);
                    self.add(
                        Part::Supporting,
                        Some(id),
                        format!("{text} ({})", s.relation),
                    );
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
        let mut kept: Option<Line> = None;
        loop {
            let cut = (sentences[from].0, sentences[to].1);
            let text = line(&e.turn, &e.times, Some(cut), self.settings);
            if !self.add(Part::Structured, Some(e.turn.interaction_id), text) {
                break;
            }
            kept = self.page.take(Part::Structured);
            if to + 1 < sentences.len() {
                to += 1;
            } else if from > 0 {
                from -= 1;
            } else {
                break;
            }
        }
        if let Some(line) = kept {
            self.page.add(Part::Structured, line);
        }
    }

    /// The newest turns that fit and are not evidence.
    fn active(&mut self, conversation: &mut Conversation<'_>) -> Result<()> {
        let mut at = 0;
        while let Some(line) = conversation.line(at)? {
            at += 1;
            let tried = line.id.is_some_and(|id| self.tried.contains(&id));
            if !tried && !self.page.add(Part::Active, line.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn finish(self) -> Context {
        let parts = [Part::Structured, Part::Supporting, Part::Active];
        Context {
            text: self.page.text(),
            shown: parts.into_iter().flat_map(|p| self.page.turns(p)).collect(),
            tokens: self.page.tokens(),
        }
    }
}

fn line(
    turn: &StoredTurn,
    times: &[TimeExpression],
    cut: Option<(usize, usize)>,
    settings: &Render,
) -> String {
    render::line(&render::Line { turn, times, cut }, settings.resolve_dates)
}

/// The place of a turn in the recall; after all of them where it is not in it.
fn place(places: &BTreeMap<InteractionId, usize>, turn: InteractionId) -> usize {
    places.get(&turn).copied().unwrap_or(usize::MAX)
}
