//! What a language model said of turns and wrote of episodes. These rows outlive a
//! rebuild, so that nothing is asked twice, but no turn that they may draw on.

use super::{Namespace, Store, id_of};
use crate::error::{Code, Error, Result};
use crate::types::{Assessment, Cost, InteractionId, Lifecycle};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeMap;

/// Most calls or tokens that one row counts for.
const MOST: u64 = 1 << 40;

/// Turns in a column.
type Ids = Vec<InteractionId>;

/// A version of an episode that is to be written, or was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writing {
    /// The episode.
    pub episode: u64,
    /// Which version of it.
    pub version: u32,
    /// The turn whose arrival made that version.
    pub at: InteractionId,
    /// Every turn behind it, in id order.
    pub sources: Vec<InteractionId>,
    /// Those of them that are new in it.
    pub fresh: Vec<InteractionId>,
    /// What the version before told, where there was one.
    pub past: Option<String>,
    /// What came of it; none while it is to be written.
    pub outcome: Option<Written>,
    /// Turns that its text and facts may draw on.
    pub drawn: Vec<InteractionId>,
}

/// What a language model wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Written {
    /// The episode; none: its sentences stand for it.
    pub text: Option<String>,
    /// What it leaves out, by the turn that says it; none: the rules choose.
    pub facts: Option<Vec<(InteractionId, String)>>,
    /// Why something is missing.
    pub failed: Option<String>,
    /// What it cost.
    pub cost: Cost,
}

/// A memory's use of a language model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Uses {
    /// Times that it decided.
    pub decided: u64,
    /// Times that it failed, wholly or in part.
    pub failed: u64,
    /// Replies.
    pub calls: u64,
    /// Tokens, replies from a cache at what they once cost.
    pub tokens: u64,
}

impl Store {
    /// Records what was said of a turn.
    pub fn put_assessment(&self, ns: &Namespace, id: InteractionId, a: &Assessment) -> Result<()> {
        let said = a.said.as_ref();
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO assessment (key, lifecycle, utility, failed, calls, tokens,
                 checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, row_sum(?1 & 1099511627775, ?2, ?3, ?4, ?5, ?6))",
            )?
            .execute(params![
                ns.key(id),
                said.ok().map(|s| s.0 as u8),
                said.ok().map(|s| s.1),
                said.err(),
                a.cost.calls.cast_signed(),
                a.cost.tokens.cast_signed(),
            ])?;
        Ok(())
    }

    /// What was said of a turn.
    pub fn assessment(&self, ns: &Namespace, id: InteractionId) -> Result<Option<Assessment>> {
        if !self.holds("wording")? {
            return Ok(None);
        }
        let row = self
            .conn
            .prepare_cached(
                "SELECT calls, tokens, lifecycle, utility, failed FROM assessment WHERE key = ?1",
            )?
            .query_row([ns.key(id)], |r| {
                let said: (Option<u8>, Option<f64>) = (r.get(2)?, r.get(3)?);
                Ok((cost_of(r, 0)?, said, r.get::<_, Option<String>>(4)?))
            })
            .optional()?;
        row.map(|(cost, said, failed)| {
            let said = match (said, failed) {
                ((Some(lifecycle), Some(utility)), _) => {
                    let known = Lifecycle::ALL.get(usize::from(lifecycle));
                    let lifecycle = known.ok_or_else(|| unreadable("lifecycle"))?;
                    Ok((*lifecycle, utility))
                }
                (_, failed) => Err(failed.unwrap_or_default()),
            };
            Ok(Assessment { said, cost })
        })
        .transpose()
    }

    /// Turns of which a model said something, failures apart.
    pub fn assessed(&self, ns: &Namespace) -> Result<Vec<InteractionId>> {
        if !self.holds("wording")? {
            return Ok(Vec::new());
        }
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare_cached(
            "SELECT key FROM assessment WHERE key >= ?1 AND key < ?2 AND utility IS NOT NULL",
        )?;
        let ids = statement.query_map([from, to], |r| Ok(id_of(r.get(0)?)))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Records what is to be written, or what came of it.
    pub fn put_writing(&self, ns: &Namespace, w: &Writing) -> Result<()> {
        let written = w.outcome.as_ref();
        let facts = written.and_then(|o| o.facts.as_ref());
        let cost = written.map(|o| o.cost).unwrap_or_default();
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO writing (namespace, episode, version, at, done, sources,
                 fresh, past, text, facts, failed, drawn, calls, tokens, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
                 row_sum(?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14))",
            )?
            .execute(params![
                ns.id,
                w.episode.cast_signed(),
                w.version,
                w.at.cast_signed(),
                written.is_some(),
                json(&w.sources),
                json(&w.fresh),
                w.past,
                written.and_then(|o| o.text.as_ref()),
                facts.map(json),
                written.and_then(|o| o.failed.as_ref()),
                json(&w.drawn),
                cost.calls.cast_signed(),
                cost.tokens.cast_signed(),
            ])?;
        Ok(())
    }

    /// One version of an episode, to be written or written.
    pub fn writing(&self, ns: &Namespace, episode: u64, version: u32) -> Result<Option<Writing>> {
        let sql = "SELECT * FROM writing WHERE namespace = ?1 AND episode = ?2 AND version = ?3";
        let found = self
            .conn
            .prepare_cached(sql)?
            .query_row(params![ns.id, episode.cast_signed(), version], writing_of)
            .optional()?;
        found.transpose()
    }

    /// What is to be written next: the order is that of the turns.
    pub fn next_writing(&self, ns: &Namespace) -> Result<Option<Writing>> {
        if !self.holds("wording")? {
            return Ok(None);
        }
        let sql = "SELECT * FROM writing WHERE namespace = ?1 AND done = 0
                   ORDER BY at, episode LIMIT 1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let found = statement.query_row([ns.id], writing_of).optional()?;
        found.transpose()
    }

    /// Gives up what was to be written: the episode is gone.
    pub fn drop_writing(&self, ns: &Namespace, episode: u64, version: u32) -> Result<()> {
        self.conn
            .prepare_cached(
                "DELETE FROM writing WHERE namespace = ?1 AND episode = ?2 AND version = ?3",
            )?
            .execute(params![ns.id, episode.cast_signed(), version])?;
        Ok(())
    }

    /// Texts by episode and version.
    pub fn texts(&self, ns: &Namespace) -> Result<BTreeMap<(u64, u32), String>> {
        if !self.holds("wording")? {
            return Ok(BTreeMap::new());
        }
        let mut statement = self.conn.prepare_cached(
            "SELECT episode, version, text FROM writing
             WHERE namespace = ?1 AND done = 1 AND text IS NOT NULL",
        )?;
        let rows = statement.query_map([ns.id], |r| {
            let episode = r.get::<_, i64>(0)?.cast_unsigned();
            Ok(((episode, r.get(1)?), r.get(2)?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Records the words of a fact that a model wrote, and the turns they may draw on.
    pub fn put_wording(&self, ns: &Namespace, fact: u64, text: &str, drawn: &Ids) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO wording (namespace, fact, text, drawn, checksum)
                 VALUES (?1, ?2, ?3, ?4, row_sum(?2, ?3, ?4))",
            )?
            .execute(params![ns.id, fact.cast_signed(), text, json(drawn)])?;
        Ok(())
    }

    /// Words and turns of every such fact.
    pub fn wordings(&self, ns: &Namespace) -> Result<BTreeMap<u64, (String, Ids)>> {
        if !self.holds("wording")? {
            return Ok(BTreeMap::new());
        }
        let mut statement = self
            .conn
            .prepare_cached("SELECT fact, text, drawn FROM wording WHERE namespace = ?1")?;
        let mut rows = statement.query([ns.id])?;
        let mut found = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let fact = row.get::<_, i64>(0)?.cast_unsigned();
            found.insert(fact, (row.get(1)?, parsed(&row.get::<_, String>(2)?)?));
        }
        Ok(found)
    }

    /// Erases whatever may draw on erased turns, given in id order. What was still to be
    /// written goes on without them, from the turns alone.
    pub(super) fn erase_drawn_on(&self, ns: &Namespace, erased: &[InteractionId]) -> Result<()> {
        let gone = |t: &InteractionId| erased.binary_search(t).is_ok();
        let facts = "SELECT drawn, fact FROM wording WHERE namespace = ?1";
        let drawing = self.drawing_on(ns, erased, facts, |r| {
            Ok(r.get::<_, i64>(1)?.cast_unsigned())
        })?;
        self.erase_facts(ns, &drawing.into_iter().collect())?;
        let versions = "SELECT drawn, episode, version FROM writing WHERE namespace = ?1";
        let touched = self.drawing_on(ns, erased, versions, |r| {
            Ok((r.get::<_, i64>(1)?.cast_unsigned(), r.get(2)?))
        })?;
        for (episode, version) in touched {
            let Some(mut w) = self.writing(ns, episode, version)? else {
                continue;
            };
            self.drop_writing(ns, w.episode, w.version)?;
            // Why it failed may quote a reply.
            self.conn
                .prepare_cached("DELETE FROM decision WHERE key = ?1 AND kind = 'write'")?
                .execute([ns.key(w.at)])?;
            match &mut w.outcome {
                None => {
                    for ids in [&mut w.sources, &mut w.fresh, &mut w.drawn] {
                        ids.retain(|t| !gone(t));
                    }
                    w.past = None;
                }
                Some(_) if w.sources.iter().any(gone) => continue,
                // Only its facts had other facts before them; a rebuild asks for them again.
                Some(written) => {
                    written.facts = None;
                    written.failed = Some("a turn that its facts may draw on was erased".into());
                    w.drawn.clone_from(&w.sources);
                }
            }
            self.put_writing(ns, &w)?;
        }
        Ok(())
    }

    /// What draws on one of these turns, by its key; of the other rows only their lists of
    /// turns are read.
    fn drawing_on<K>(
        &self,
        ns: &Namespace,
        erased: &[InteractionId],
        sql: &str,
        key: impl Fn(&Row<'_>) -> rusqlite::Result<K>,
    ) -> Result<Vec<K>> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([ns.id])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let drawn: Ids = parsed(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
            if drawn.iter().any(|t| erased.binary_search(t).is_ok()) {
                found.push(key(row)?);
            }
        }
        Ok(found)
    }

    /// Erases what a rebuild makes anew: not what was said and written.
    pub(super) fn erase_wordings(&self, ns: &Namespace) -> Result<()> {
        for sql in [
            "DELETE FROM wording WHERE namespace = ?1",
            "DELETE FROM writing WHERE namespace = ?1 AND done = 0",
        ] {
            self.conn.execute(sql, [ns.id])?;
        }
        Ok(())
    }

    /// Erases all of it in one memory.
    pub(super) fn erase_written(&self, ns: &Namespace) -> Result<()> {
        self.erase_wordings(ns)?;
        let (from, to) = ns.range();
        self.conn
            .execute("DELETE FROM writing WHERE namespace = ?1", [ns.id])?;
        self.conn.execute(
            "DELETE FROM assessment WHERE key >= ?1 AND key < ?2",
            [from, to],
        )?;
        Ok(())
    }

    /// Use of a model for utility and for writing; none where there was none.
    pub fn uses(&self, ns: &Namespace) -> Result<[Option<Uses>; 2]> {
        if !self.holds("wording")? {
            return Ok([None; 2]);
        }
        let (from, to) = ns.range();
        // One absurd number must not make the sum overflow, which is an error for good.
        let counted = |column| format!("sum(max(0, min({column}, {MOST})))");
        let (calls, tokens) = (counted("calls"), counted("tokens"));
        let sum =
            format!("sum(failed IS NULL), sum(failed IS NOT NULL), {calls}, {tokens}, count(*)");
        let of_turns = format!("SELECT {sum} FROM assessment WHERE key >= ?1 AND key < ?2");
        let of_writing = format!("SELECT {sum} FROM writing WHERE done = 1 AND namespace = ?1");
        Ok([
            self.conn.query_row(&of_turns, [from, to], uses_of)?,
            self.conn.query_row(&of_writing, [ns.id], uses_of)?,
        ])
    }
}

fn uses_of(row: &Row<'_>) -> rusqlite::Result<Option<Uses>> {
    if row.get::<_, i64>(4)? == 0 {
        return Ok(None);
    }
    let count = |at| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(at)?.cast_unsigned());
    Ok(Some(Uses {
        decided: count(0)?,
        failed: count(1)?,
        calls: count(2)?,
        tokens: count(3)?,
    }))
}

fn cost_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Cost> {
    Ok(Cost {
        calls: row.get::<_, i64>(at)?.cast_unsigned(),
        tokens: row.get::<_, i64>(at + 1)?.cast_unsigned(),
    })
}

fn writing_of(row: &Row<'_>) -> rusqlite::Result<Result<Writing>> {
    let text = |name: &str| row.get::<_, String>(name);
    let (sources, fresh, drawn) = (text("sources")?, text("fresh")?, text("drawn")?);
    let facts: Option<String> = row.get("facts")?;
    let done: bool = row.get("done")?;
    let outcome = Written {
        text: row.get("text")?,
        facts: None,
        failed: row.get("failed")?,
        cost: Cost {
            calls: row.get::<_, i64>("calls")?.cast_unsigned(),
            tokens: row.get::<_, i64>("tokens")?.cast_unsigned(),
        },
    };
    let mut writing = Writing {
        episode: row.get::<_, i64>("episode")?.cast_unsigned(),
        version: row.get("version")?,
        at: row.get::<_, i64>("at")?.cast_unsigned(),
        past: row.get("past")?,
        ..Writing::default()
    };
    Ok((|| {
        writing.sources = parsed(&sources)?;
        writing.fresh = parsed(&fresh)?;
        writing.drawn = parsed(&drawn)?;
        let facts = facts.as_deref().map(parsed).transpose()?;
        writing.outcome = done.then_some(Written { facts, ..outcome });
        Ok(writing)
    })())
}

fn json<T: serde::Serialize>(value: &T) -> String {
    // Lists of numbers and texts: nothing in them can fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| unreadable("list"))
}

fn unreadable(what: &str) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!("a {what} of what a language model said is unreadable in the store"),
    )
}
