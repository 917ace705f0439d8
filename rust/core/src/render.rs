//! Prompt-ready text in the paper's headed blocks (section 9.3, step 6).

use crate::calendar;
use crate::types::{StoredTurn, TimeExpression, Validity};

/// Opens the recalled part.
pub const RECALLED: &str = "=== LONG-TERM MEMORY (RECALLED) ===";
/// Heads the ranked evidence.
pub const STRUCTURED: &str = "=== STRUCTURED EVIDENCE ===";
/// Heads the turns behind it.
pub const SUPPORTING: &str = "=== RAW SUPPORTING EVIDENCE ===";
/// Heads what was gathered on topics that recur.
pub const EPISODES: &str = "=== EPISODES ===";
/// Heads what the episodes leave out.
pub const FACTS: &str = "=== FACTS ===";
/// Heads the active conversation.
pub const ACTIVE: &str = "=== ACTIVE CONVERSATION ===";
/// Closes the block, so that it is recognised when it comes back in a prompt.
pub const END: &str = "=== END OF MEMORY ===";
/// Marks where a long turn was cut.
pub const CUT: &str = "[…]";

/// One turn to be shown.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// The turn.
    pub turn: &'a StoredTurn,
    /// Its time expressions, for the dates in brackets.
    pub times: &'a [TimeExpression],
    /// What of its text to show, in characters; all of it where none.
    pub cut: Option<(usize, usize)>,
}

/// When it was said on the clock of the stamp that was given, in microseconds.
pub fn local_micros(t: &StoredTurn) -> Option<i64> {
    let ahead = t.timestamp.as_deref().map_or(0, calendar::clock_offset);
    t.utc_micros.map(|at| calendar::on_clock(at, ahead))
}

/// `[8 May 2023, 1:56 pm] Ana: text`, with what it stands for now.
pub fn line(l: &Line<'_>, resolve_dates: bool) -> String {
    let t = l.turn;
    let mut out = String::new();
    if let Some(at) = local_micros(t) {
        out.push_str(&format!("[{}] ", calendar::long_form(at)));
    }
    match &t.speaker {
        Some(speaker) if t.role == "user" || t.role == "assistant" => out.push_str(speaker),
        Some(speaker) => out.push_str(&format!("{speaker} ({})", t.role)),
        None => out.push_str(&t.role),
    }
    match t.validity {
        Validity::Current => {}
        Validity::Superseded => out.push_str(" (superseded)"),
        Validity::Corrected => out.push_str(" (corrected later)"),
        Validity::Invalidated => out.push_str(" (invalidated)"),
    }
    out.push_str(": ");
    let length = t.text.chars().count();
    let (from, to) = l.cut.unwrap_or((0, length));
    if from > 0 {
        out.push_str(CUT);
        out.push(' ');
    }
    out.push_str(&dated(&t.text, l.times, from, to, resolve_dates));
    if to < length {
        out.push(' ');
        out.push_str(CUT);
    }
    out
}

/// `[8 May 2023 Ana] sentence`: one sentence of a turn, each resolved date behind its
/// expression, with what the turn stands for now.
pub fn sentence(l: &Line<'_>, resolve_dates: bool) -> String {
    let t = l.turn;
    let day = local_micros(t).map(calendar::day_form).unwrap_or_default();
    let who = t.speaker.as_deref().unwrap_or(&t.role);
    let mark = match t.validity {
        Validity::Current => "",
        Validity::Superseded => " (superseded)",
        Validity::Corrected => " (corrected later)",
        Validity::Invalidated => " (invalidated)",
    };
    let head = format!("{day} {who}{mark}");
    let (from, to) = l.cut.unwrap_or((0, t.text.chars().count()));
    let said = dated(&t.text, l.times, from, to, resolve_dates);
    // A line of the block is one sentence; a break within it would look like another.
    let said: Vec<&str> = said.split_whitespace().collect();
    format!("[{}] {}", head.trim_start(), said.join(" "))
}

/// The text from `from` to `to` with each resolved date behind its expression.
fn dated(text: &str, times: &[TimeExpression], from: usize, to: usize, resolve: bool) -> String {
    let mut inserts: Vec<(usize, &str)> = times
        .iter()
        .filter(|t| resolve && !t.words.is_empty())
        .map(|t| (t.end as usize, t.words.as_str()))
        .collect();
    inserts.sort_unstable();
    let mut inserts = inserts.into_iter().peekable();
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count();
    for (i, c) in text
        .chars()
        .map(Some)
        .chain(std::iter::once(None))
        .enumerate()
        .take(last + 1)
    {
        while let Some((_, words)) = inserts.next_if(|(at, _)| *at <= i) {
            if i > from && i <= to {
                out.push_str(&format!(" [{words}]"));
            }
        }
        if let Some(c) = c.filter(|_| i >= from && i < to) {
            out.push(c);
        }
    }
    out
}

/// Sentence boundaries of a text, in characters: `[start, end)` of each.
pub fn sentences(text: &str) -> Vec<(usize, usize)> {
    let chars: Vec<char> = text.chars().collect();
    let mut spans = Vec::new();
    let mut start = 0;
    for i in 0..chars.len() {
        let ends = chars[i] == '\n'
            || matches!(chars[i], '。' | '！' | '？')
            || (matches!(chars[i], '.' | '!' | '?')
                && chars.get(i + 1).is_none_or(|c| c.is_whitespace()));
        if ends {
            spans.push((start, i + 1));
            start = i + 1;
        }
    }
    if start < chars.len() {
        spans.push((start, chars.len()));
    }
    spans.retain(|(a, b)| chars[*a..*b].iter().any(|c| !c.is_whitespace()));
    spans
}

/// Removes blocks that `render_context` made from a text: from a heading of ours
/// to the closing line. What is left is what somebody said.
pub fn without_rendered(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let open = [RECALLED, ACTIVE].iter().filter_map(|h| rest.find(h)).min();
        let Some(open) = open else { break };
        // The closing line stands alone; the same words within a turn do not close.
        let own_line = |at: usize| {
            let after = &rest[open + at + END.len()..];
            rest[..open + at].ends_with('\n') && (after.is_empty() || after.starts_with('\n'))
        };
        let close = rest[open..]
            .match_indices(END)
            .map(|(at, _)| at)
            .find(|at| own_line(*at));
        let Some(close) = close else { break };
        out.push_str(&rest[..open]);
        rest = rest[open + close + END.len()..].trim_start_matches('\n');
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::State;

    fn turn(text: &str) -> StoredTurn {
        StoredTurn {
            interaction_id: 0,
            record_id: String::new(),
            text: text.into(),
            role: "user".into(),
            speaker: Some("Ana".into()),
            timestamp: None,
            utc_micros: Some(1_683_554_160_000_000),
            naive_timestamp: false,
            session_id: None,
            external_id: None,
            provenance: None,
            metadata: None,
            tokens: 0,
            state: State::Archived,
            validity: Validity::Superseded,
        }
    }

    #[test]
    fn a_line_says_when_who_and_whether_it_stands() {
        let t = turn("I moved yesterday.");
        let times = [TimeExpression {
            text: "yesterday".into(),
            start: 8,
            end: 17,
            first: None,
            last: None,
            grain: "day".into(),
            words: "7 May 2023".into(),
        }];
        let l = Line {
            turn: &t,
            times: &times,
            cut: None,
        };
        assert_eq!(
            line(&l, true),
            "[8 May 2023, 1:56 pm] Ana (superseded): I moved yesterday [7 May 2023]."
        );
        assert!(line(&l, false).ends_with("I moved yesterday."));
        let cut = Line {
            cut: Some((2, 17)),
            ..l
        };
        assert_eq!(
            sentence(&cut, true),
            "[8 May 2023 Ana (superseded)] moved yesterday [7 May 2023]"
        );
        assert!(line(&cut, true).ends_with("[…] moved yesterday [7 May 2023] […]"));
    }

    #[test]
    fn our_own_block_is_taken_out() {
        let text = format!("before\n{RECALLED}\nx\n{ACTIVE}\ny\n{END}\nafter");
        assert_eq!(without_rendered(&text), "before\nafter");
        assert_eq!(without_rendered("plain === text"), "plain === text");
        let quoted = format!("{ACTIVE}\nuser: what is {END}?\nuser: x\n{END}");
        assert_eq!(without_rendered(&quoted), "");
    }

    #[test]
    fn sentences_keep_decimals_whole() {
        let s = sentences("Version 3.5 is out. Good!\nNext");
        assert_eq!(s.len(), 3);
        assert_eq!(s[0], (0, 19));
    }
}
