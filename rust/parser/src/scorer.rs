//! How good each move is in a state.

use crate::Misfit;
use ebbtide_simd::maxout::greatest;
use ebbtide_simd::weights::Weights;

/// The numbers of a [`Scorer`].
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    /// Tokens that a state looks at.
    pub looked_at: usize,
    /// Numbers of which the greatest is a hidden one.
    pub pieces: usize,
    /// Added to what the tokens say: [hidden, pieces].
    pub hidden_bias: &'a [f32],
    /// Of each move: [moves, hidden].
    pub weights: &'a [f32],
    /// Added to the score of each move: [moves].
    pub bias: &'a [f32],
}

/// A network of one hidden layer: the sum of what some tokens say, the greatest of its pieces,
/// and a score for each move.
#[derive(Debug)]
pub struct Scorer {
    looked_at: usize,
    pieces: usize,
    hidden_bias: Vec<f32>,
    weights: Weights,
    bias: Vec<f32>,
}

/// What the tokens of a text say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vectors<'a> {
    /// [`Scorer::row`] numbers where there is no token.
    pub none: &'a [f32],
    /// As many for each token.
    pub tokens: &'a [f32],
}

/// Room for the numbers of one state.
#[derive(Debug, Default)]
pub(crate) struct Room {
    sum: Vec<f32>,
    hidden: Vec<f32>,
    scores: Vec<f32>,
}

impl Scorer {
    /// From its numbers.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn new(numbers: &Numbers<'_>) -> Result<Self, Misfit> {
        let Numbers { pieces, .. } = *numbers;
        let wide = numbers.hidden_bias.len();
        let hidden = wide.checked_div(pieces).unwrap_or(0);
        if hidden * pieces != wide
            || hidden == 0
            || numbers.looked_at == 0
            || numbers.weights.len() != numbers.bias.len() * hidden
        {
            return Err(Misfit(format!(
                "{} weights do not fit {} moves, {wide} hidden numbers in {pieces} pieces, {} tokens",
                numbers.weights.len(),
                numbers.bias.len(),
                numbers.looked_at,
            )));
        }
        Ok(Self {
            looked_at: numbers.looked_at,
            pieces,
            hidden_bias: numbers.hidden_bias.to_vec(),
            weights: Weights::new(numbers.weights, hidden),
            bias: numbers.bias.to_vec(),
        })
    }

    /// Numbers that each token has: what it says in each place in which a state looks at it.
    pub fn row(&self) -> usize {
        self.looked_at * self.hidden_bias.len()
    }

    /// Fails unless there are that many moves, and states look at that many tokens.
    pub(crate) fn check(&self, moves: usize, looked_at: usize) -> Result<(), Misfit> {
        let has = (self.bias.len(), self.looked_at);
        if has == (moves, looked_at) {
            return Ok(());
        }
        Err(Misfit(format!(
            "weights of {} moves by {} tokens, where there are {moves} by {looked_at}",
            has.0, has.1
        )))
    }

    /// The score of each move in a state that looks at these tokens.
    ///
    /// Every sum runs from first to last: the tokens in their places, the bias, the moves as
    /// [`Weights`] are multiplied, their bias.
    pub(crate) fn scores<'r>(
        &self,
        vectors: Vectors<'_>,
        looked_at: &[Option<usize>],
        room: &'r mut Room,
    ) -> &'r [f32] {
        let (row, wide) = (self.row(), self.hidden_bias.len());
        room.sum.clear();
        room.sum.resize(wide, 0.0);
        for (place, token) in looked_at.iter().enumerate() {
            let said = token.map_or(vectors.none, |t| &vectors.tokens[t * row..][..row]);
            add(&mut room.sum, &said[place * wide..][..wide]);
        }
        add(&mut room.sum, &self.hidden_bias);
        room.hidden.resize(wide / self.pieces, 0.0);
        greatest(&room.sum, self.pieces, &mut room.hidden);
        room.scores.resize(self.bias.len(), 0.0);
        self.weights.multiply(&room.hidden, &mut room.scores);
        add(&mut room.scores, &self.bias);
        &room.scores
    }
}

fn add(to: &mut [f32], what: &[f32]) {
    for (a, b) in to.iter_mut().zip(what) {
        *a += b;
    }
}

/// Index of the greatest score among the moves that are allowed; of equals the first.
pub(crate) fn best(scores: &[f32], allowed: impl Fn(usize) -> bool) -> Option<usize> {
    let mut found: Option<usize> = None;
    for (i, score) in scores.iter().enumerate() {
        if allowed(i) && found.is_none_or(|best| *score > scores[best]) {
            found = Some(i);
        }
    }
    found
}
