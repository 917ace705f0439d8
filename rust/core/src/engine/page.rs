//! The block of text as it grows, and what it costs.
//!
//! A line is split into tokens once, when it is made. What a page costs is the sum of its
//! lines, since no token reaches over a line break into a line that stands apart.

use crate::render;
use crate::text::{Counter, stands_apart};
use crate::types::InteractionId;

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Structured,
    Supporting,
    Episodes,
    Facts,
    Active,
}

/// The parts in the order of the page, with their headings.
const PARTS: [(Part, &str); 5] = [
    (Part::Structured, render::STRUCTURED),
    (Part::Supporting, render::SUPPORTING),
    (Part::Episodes, render::EPISODES),
    (Part::Facts, render::FACTS),
    (Part::Active, render::ACTIVE),
];

/// A line, the turn that it shows, and what it costs.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) id: Option<InteractionId>,
    text: String,
    /// Tokens of the text and the break behind it.
    tokens: u32,
}

impl Line {
    pub(super) fn new(counter: &Counter, id: Option<InteractionId>, mut text: String) -> Self {
        text.push('\n');
        let tokens = counter.count(&text);
        text.pop();
        Self { id, text, tokens }
    }
}

/// What is shown of each part, and how much may be.
pub(super) struct Page<'a> {
    counter: &'a Counter,
    pub(super) budget: u32,
    opening: Line,
    closing: Option<Line>,
    parts: [(Line, Vec<Line>); PARTS.len()],
}

impl<'a> Page<'a> {
    pub(super) fn new(counter: &'a Counter, budget: u32, end_marker: bool) -> Self {
        let heading = |text: &str| Line::new(counter, None, text.to_owned());
        Self {
            counter,
            budget,
            opening: heading(render::RECALLED),
            closing: end_marker.then(|| heading(render::END)),
            parts: PARTS.map(|(_, text)| (heading(text), Vec::new())),
        }
    }

    /// Adds a line to a part, the active one's before those that it has, unless that is
    /// more than the budget; whether it was added.
    pub(super) fn add(&mut self, part: Part, line: Line) -> bool {
        self.parts[part as usize].1.push(line);
        let fits = self.tokens() <= self.budget;
        if !fits {
            self.take(part);
        }
        fits
    }

    /// Takes back the line that was added last.
    pub(super) fn take(&mut self, part: Part) -> Option<Line> {
        self.parts[part as usize].1.pop()
    }

    pub(super) fn count(&self, part: Part) -> usize {
        self.parts[part as usize].1.len()
    }

    /// The turns of a part, in the order of the page.
    pub(super) fn turns(&self, part: Part) -> Vec<InteractionId> {
        self.lines_of(part).iter().filter_map(|l| l.id).collect()
    }

    /// Tokens of [`Page::text`].
    pub(super) fn tokens(&self) -> u32 {
        let lines = self.lines();
        let Some((last, before)) = lines.split_last() else {
            return 0;
        };
        if !lines[1..].iter().all(|l| stands_apart(&l.text)) {
            return self.counter.count(&self.text());
        }
        let sum = before
            .iter()
            .fold(0, |n: u32, l| n.saturating_add(l.tokens));
        sum.saturating_add(self.counter.count(&last.text))
    }

    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.lines().iter().map(|l| l.text.as_str()).collect();
        lines.join("\n")
    }

    /// Everything that is shown, headings with it.
    fn lines(&self) -> Vec<&Line> {
        let mut lines = Vec::new();
        for ((part, _), (heading, own)) in PARTS.iter().zip(&self.parts) {
            if own.is_empty() {
                continue;
            }
            if lines.is_empty() && *part != Part::Active {
                lines.push(&self.opening);
            }
            lines.push(heading);
            lines.extend(self.lines_of(*part));
        }
        if !lines.is_empty() {
            lines.extend(&self.closing);
        }
        lines
    }

    /// The lines of a part in the order of the page: the active ones came newest first.
    fn lines_of(&self, part: Part) -> Vec<&Line> {
        let lines = self.parts[part as usize].1.iter();
        if part == Part::Active {
            lines.rev().collect()
        } else {
            lines.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{count_tokens, tokenizer};

    /// Lines that might run into their neighbours.
    const LINES: [&str; 14] = [
        "[8 May 2023, 1:56 pm] Ana: I moved.",
        "user: ends in spaces   ",
        "  begins with spaces",
        "/begins with a slash",
        "//",
        "",
        "...",
        "ends with a mark !?",
        "'s begins like a suffix",
        "12345678",
        "=== END OF MEMORY ===",
        "has\n\n  breaks\n/within\n",
        "\u{301}begins with an accent",
        "日本語。",
    ];

    #[test]
    fn a_page_costs_what_its_text_does() {
        for name in ["cl100k_base", "o200k_base"] {
            let tokenizer = tokenizer(name).unwrap();
            let counter = Counter::new(tokenizer);
            for end_marker in [false, true] {
                for (first, second) in LINES.iter().flat_map(|a| LINES.map(|b| (*a, b))) {
                    let mut page = Page::new(&counter, u32::MAX, end_marker);
                    assert_eq!((page.tokens(), page.text().as_str()), (0, ""));
                    for (part, text) in [
                        (Part::Active, first),
                        (Part::Structured, second),
                        (Part::Structured, first),
                        (Part::Active, second),
                        (Part::Facts, first),
                    ] {
                        let line = Line::new(&counter, None, text.to_owned());
                        assert!(page.add(part, line));
                        let text = page.text();
                        assert_eq!(page.tokens(), count_tokens(tokenizer, &text), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_added() {
        let counter = Counter::new(tokenizer("o200k_base").unwrap());
        let mut page = Page::new(&counter, 30, false);
        let line = |id, text: &str| Line::new(&counter, Some(id), text.to_owned());
        let short = line(1, "user: yes");
        let long = line(2, &"user: yes, yes, yes".repeat(9));
        assert!(page.add(Part::Active, short.clone()));
        assert!(!page.add(Part::Active, long.clone()) && !page.add(Part::Structured, long));
        assert_eq!(page.text(), "=== ACTIVE CONVERSATION ===\nuser: yes");
        let older = Line {
            id: Some(0),
            ..short
        };
        assert!(page.add(Part::Active, older));
        assert_eq!(page.turns(Part::Active), [0, 1]);
    }
}
