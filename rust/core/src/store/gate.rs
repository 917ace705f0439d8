//! Verdicts of the gate and links between notes.

use super::{Namespace, Store, id_of};
use crate::error::{Code, Error, Result};
use crate::policy::rpe::{Link, Tier, Verdict};
use crate::policy::utility::{Lifecycle, REASONS};
use crate::types::InteractionId;
use rusqlite::{Row, params};

impl Store {
    /// Records what the gate decided about a turn.
    pub fn insert_verdict(&self, ns: &Namespace, id: InteractionId, v: &Verdict) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO gate (key, tier, lifecycle, reason, utility, similarity,
                 thread, surprise, conflict, rpe, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
                 row_sum(?1 & 1099511627775, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10))",
            )?
            .execute(params![
                ns.key(id),
                v.tier as u8,
                v.lifecycle as u8,
                v.reason,
                v.utility,
                v.similarity,
                v.thread,
                v.surprise,
                v.conflict,
                v.rpe,
            ])?;
        Ok(())
    }

    /// Records a link.
    pub fn insert_link(&self, ns: &Namespace, link: &Link) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO link (newer, older, cosine, checksum)
                 VALUES (?1, ?2, ?3, row_sum(?1 & 1099511627775, ?2 & 1099511627775, ?3))",
            )?
            .execute(params![ns.key(link.newer), ns.key(link.older), link.cosine])?;
        Ok(())
    }

    /// Every verdict of a memory, in id order.
    pub fn verdicts(&self, ns: &Namespace) -> Result<Vec<(InteractionId, Verdict)>> {
        if !self.holds("gate")? {
            return Ok(Vec::new());
        }
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare_cached(
            "SELECT key, tier, lifecycle, reason, utility, similarity, thread, surprise, conflict,
             rpe FROM gate WHERE key >= ?1 AND key < ?2 ORDER BY key",
        )?;
        let mut rows = statement.query([from, to])?;
        let mut verdicts = Vec::new();
        while let Some(row) = rows.next()? {
            verdicts.push((id_of(row.get(0)?), verdict_of(row)?));
        }
        Ok(verdicts)
    }

    /// Every link of a memory, by its newer and then its older end.
    pub fn links(&self, ns: &Namespace) -> Result<Vec<Link>> {
        if !self.holds("gate")? {
            return Ok(Vec::new());
        }
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare_cached(
            "SELECT newer, older, cosine FROM link WHERE newer >= ?1 AND newer < ?2
             ORDER BY newer, older",
        )?;
        let links = statement
            .query_map([from, to], |r| {
                Ok(Link {
                    newer: id_of(r.get(0)?),
                    older: id_of(r.get(1)?),
                    cosine: r.get(2)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(links)
    }
}

fn verdict_of(row: &Row<'_>) -> Result<Verdict> {
    let (tier, lifecycle): (u8, u8) = (row.get(1)?, row.get(2)?);
    let reason: String = row.get(3)?;
    let (Some(tier), Some(lifecycle), Some(reason)) = (
        Tier::ALL.get(usize::from(tier)),
        Lifecycle::ALL.get(usize::from(lifecycle)),
        REASONS.iter().find(|known| **known == reason),
    ) else {
        return Err(Error::new(
            Code::StoreCorrupt,
            format!(
                "a verdict of the gate in the store is unreadable: {tier}, {lifecycle}, {reason:?}"
            ),
        ));
    };
    Ok(Verdict {
        tier: *tier,
        lifecycle: *lifecycle,
        reason,
        utility: row.get(4)?,
        similarity: row.get(5)?,
        thread: row.get(6)?,
        surprise: row.get(7)?,
        conflict: row.get(8)?,
        rpe: row.get(9)?,
    })
}
