//! Dependencies: each token's head and label, and with them where sentences start.

use crate::scorer::{Room, Vectors, best};
use crate::{Misfit, Scorer, Texts, Token};

/// A move of the arc-eager system; the next token is the first that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArcMove {
    /// The next token goes on the stack.
    Shift,
    /// The top of the stack goes; without a head, back to those that wait.
    Reduce,
    /// The next token becomes the head of the top, which goes.
    Left(u64),
    /// The top becomes the head of the next token, which goes on the stack.
    Right(u64),
    /// A sentence starts after the next token.
    Break,
}

/// Where a token is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attached {
    /// Places from the token to its head; 0 for a root.
    pub head: i64,
    /// The label of the arc, or that of roots.
    pub label: u64,
}

/// Finds dependencies.
#[derive(Debug)]
pub struct Arcs {
    scorer: Scorer,
    moves: Vec<ArcMove>,
    root: u64,
}

impl Arcs {
    /// Tokens that a state looks at: two that wait, three of the stack, and the latest children
    /// of the first of each.
    pub const LOOKED_AT: usize = 8;

    /// With those moves, in the order of their scores, and the label of roots.
    ///
    /// # Errors
    /// The scorer has another number of moves, or does not look at eight tokens.
    pub fn new(scorer: Scorer, moves: Vec<ArcMove>, root: u64) -> Result<Self, Misfit> {
        scorer.check(moves.len(), Self::LOOKED_AT)?;
        Ok(Self {
            scorer,
            moves,
            root,
        })
    }

    /// Where each token is attached, text after text.
    ///
    /// # Errors
    /// The vectors or the lengths do not fit the tokens.
    pub fn find(&self, texts: Texts<'_>) -> Result<Vec<Attached>, Misfit> {
        let mut found = Vec::with_capacity(texts.tokens.len());
        let mut room = Room::default();
        for (vectors, tokens) in texts.of(&self.scorer)? {
            let state = self.parse(vectors, tokens, &mut room);
            found.extend(state.nodes.iter().enumerate().map(|(i, node)| {
                let (head, label) = node.arc.unwrap_or((i, self.root));
                Attached {
                    head: head as i64 - i as i64,
                    label,
                }
            }));
        }
        Ok(found)
    }

    fn parse(&self, vectors: Vectors<'_>, tokens: &[Token], room: &mut Room) -> State {
        let mut state = State::new(tokens);
        while !state.is_final() {
            let scores = self.scorer.scores(vectors, &state.looked_at(), room);
            let allowed = Allowed::in_state(&state);
            match best(scores, |i| allowed.allows(self.moves[i])) {
                Some(made) => state.make(self.moves[made]),
                None => break,
            }
        }
        state
    }
}

/// A token with its arcs.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Its head, and the label of that arc.
    arc: Option<(usize, u64)>,
    /// The child before it that was attached last.
    left: Option<usize>,
    /// The child after it that was attached last.
    right: Option<usize>,
    /// The child on its side that its head got before it.
    older: Option<usize>,
    /// Whether it was put back once: it is not to go to and fro.
    put_back: bool,
    starts_sentence: bool,
    never_starts: bool,
}

/// How far the moves have come.
#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    stack: Vec<usize>,
    /// Tokens that were put back and wait first, the last of them before the others.
    again: Vec<usize>,
    /// The first token that was never taken.
    fresh: usize,
}

impl State {
    fn new(tokens: &[Token]) -> Self {
        let node = |token: &Token| Node {
            starts_sentence: token.starts_sentence == Some(true),
            never_starts: token.starts_sentence == Some(false),
            ..Node::default()
        };
        Self {
            nodes: tokens.iter().map(node).collect(),
            stack: Vec::new(),
            again: Vec::new(),
            fresh: 0,
        }
    }

    fn is_final(&self) -> bool {
        self.stack.is_empty() && self.waiting() == 0
    }

    /// How many tokens wait.
    fn waiting(&self) -> usize {
        self.nodes.len() - self.fresh + self.again.len()
    }

    /// The `i`-th token that waits, from 0.
    fn buffer(&self, i: usize) -> Option<usize> {
        match self.again.len().checked_sub(i + 1) {
            Some(at) => Some(self.again[at]),
            None => Some(self.fresh + i - self.again.len()).filter(|t| *t < self.nodes.len()),
        }
    }

    /// The `i`-th token of the stack from the top, from 0.
    fn top(&self, i: usize) -> Option<usize> {
        let at = self.stack.len().checked_sub(i + 1)?;
        Some(self.stack[at])
    }

    fn looked_at(&self) -> [Option<usize>; Arcs::LOOKED_AT] {
        let (next, top) = (self.buffer(0), self.top(0));
        let left = |token: Option<usize>| token.and_then(|t| self.nodes[t].left);
        let right = top.and_then(|t| self.nodes[t].right);
        [
            next,
            self.buffer(1),
            top,
            self.top(1),
            self.top(2),
            left(next),
            left(top),
            right,
        ]
    }

    fn make(&mut self, made: ArcMove) {
        match made {
            ArcMove::Shift => self.shift(),
            ArcMove::Reduce => self.reduce(),
            ArcMove::Left(label) => {
                if let (Some(next), Some(top)) = (self.buffer(0), self.stack.pop()) {
                    self.attach(next, top, label);
                    // The stack has changed: it cannot go to and fro for ever.
                    self.nodes[next].put_back = false;
                }
            }
            ArcMove::Right(label) => {
                if let (Some(next), Some(top)) = (self.buffer(0), self.top(0)) {
                    self.attach(top, next, label);
                    self.shift();
                }
            }
            ArcMove::Break => {
                if let Some(after) = self.buffer(1) {
                    self.nodes[after].starts_sentence = true;
                }
            }
        }
    }

    fn shift(&mut self) {
        let next = self.again.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        });
        self.stack.push(next);
    }

    fn reduce(&mut self) {
        let depth = self.stack.len();
        let Some(top) = self.stack.pop() else { return };
        if depth > 1 && self.nodes[top].arc.is_none() {
            self.nodes[top].put_back = true;
            self.again.push(top);
        }
    }

    fn attach(&mut self, head: usize, child: usize, label: u64) {
        self.detach(child);
        let newest = self.newest(head, child);
        let older = newest.replace(child);
        self.nodes[child].older = older;
        self.nodes[child].arc = Some((head, label));
    }

    /// Takes a child from its head. It is the newest of its side: a head gets no other child
    /// there while this one lies above it on the stack.
    fn detach(&mut self, child: usize) {
        if let Some((head, _)) = self.nodes[child].arc.take() {
            let older = self.nodes[child].older;
            *self.newest(head, child) = older;
        }
    }

    /// The newest child of a head on the side of that child.
    fn newest(&mut self, head: usize, child: usize) -> &mut Option<usize> {
        let node = &mut self.nodes[head];
        match child < head {
            true => &mut node.left,
            false => &mut node.right,
        }
    }
}

/// Which moves a state allows.
struct Allowed {
    shift: bool,
    reduce: bool,
    arc: bool,
    breaks: bool,
}

impl Allowed {
    fn in_state(state: &State) -> Self {
        let (depth, waiting) = (state.stack.len(), state.waiting());
        let next = state.buffer(0).map(|t| (t, &state.nodes[t]));
        let (starts, put_back, never_starts) = next.map_or((false, false, false), |(_, node)| {
            (node.starts_sentence, node.put_back, node.never_starts)
        });
        let after = state.buffer(1).map(|t| (t, &state.nodes[t]));
        let breaks = next.zip(after).is_some_and(|((next, _), (after, node))| {
            after == next + 1 && !node.starts_sentence && !node.never_starts
        });
        Self {
            shift: depth == 0 || (waiting > 1 && !starts && !put_back),
            reduce: depth > 0 && (waiting == 0 || depth > 1 || !never_starts),
            arc: depth > 0 && waiting > 0 && !starts,
            breaks,
        }
    }

    fn allows(&self, made: ArcMove) -> bool {
        match made {
            ArcMove::Shift => self.shift,
            ArcMove::Reduce => self.reduce,
            ArcMove::Left(_) | ArcMove::Right(_) => self.arc,
            ArcMove::Break => self.breaks,
        }
    }
}
