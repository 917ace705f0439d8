//! What a sentence is worth for a question, from 0 to 10.
//!
//! The paper's scale: 5 to 6 somewhat relevant, 7 to 8 clearly, 9 to 10 essential
//! (its appendix A.3, where a language model gives the score). Here it is a sum of
//! points, in thousandths, so that equal sentences score equally everywhere.

/// Thousandths of a point: the score is a whole number of them.
pub type Milli = u32;

/// Most points of each part; together 10.
const SIMILARITY: f64 = 3.5;
const CONTENT: f64 = 3.0;
const SUBJECT: f64 = 1.0;
const PREDICATE: f64 = 0.5;
const ANSWER: f64 = 1.5;
const TIME: f64 = 0.5;

/// Late interaction below which a sentence is about something else, and above which
/// it says nearly what the question says.
const UNLIKE: f64 = 0.45;
const ALIKE: f64 = 0.8;

/// Share that counts of what only the messages before a sentence have: "It was
/// great" is about what they are about.
pub const FROM_CONTEXT: f64 = 0.5;

/// What was measured of a sentence, each in [0, 1] but for the similarity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parts {
    /// Late interaction of the question with the sentence alone, in [-1, 1].
    pub similarity: f64,
    /// The same with the messages before it taken together with it.
    pub similarity_in_context: f64,
    /// Share of the question's content, weighed by rarity, in the sentence.
    pub content: f64,
    /// The same with its turn and the messages before.
    pub content_in_context: f64,
    /// Whether it is about whom the question is about.
    pub subject: f64,
    /// Whether it has the question's predicate.
    pub predicate: f64,
    /// Whether it holds something of the kind asked for.
    pub answer: f64,
    /// Whether it fits the time asked about.
    pub time: f64,
}

/// The score, in thousandths of a point.
pub fn milli(p: &Parts) -> Milli {
    let scaled = |x: f64| ((x - UNLIKE) / (ALIKE - UNLIKE)).clamp(0.0, 1.0);
    let with = |own: f64, near: f64| own + FROM_CONTEXT * (near - own).max(0.0);
    let similarity = with(scaled(p.similarity), scaled(p.similarity_in_context));
    let content = with(p.content, p.content_in_context);
    let points = SIMILARITY * similarity
        + CONTENT * content
        + SUBJECT * p.subject
        + PREDICATE * p.predicate
        + ANSWER * p.answer
        + TIME * p.time;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let milli = (1000.0 * points).round() as Milli;
    milli.min(10_000)
}

/// A threshold in points as thousandths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn threshold(points: f64) -> Milli {
    (1000.0 * points).round() as Milli
}

/// Rows of a turn's token vectors that belong to characters `[from, to)` of it.
///
/// The vectors come without their places. Each word and mark has about as many word
/// pieces as another, so a sentence's are those at its share of the turn's words;
/// one too many on either side does no harm, the best partner counts.
///
/// Args: `places`, the first character of each word and mark that was embedded, in
/// order, none for those of the speaker's name before the text; `rows`, how many
/// vectors there are.
pub fn rows_of(places: &[Option<usize>], rows: usize, from: usize, to: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let count = places.len().max(1);
    for (i, place) in places.iter().enumerate() {
        if place.is_some_and(|p| p >= from && p < to) {
            let first = i * rows / count;
            let last = ((i + 1) * rows).div_ceil(count).min(rows);
            found.extend(
                (first..last)
                    .filter(|r| found.last().is_none_or(|l| r > l))
                    .collect::<Vec<_>>(),
            );
        }
    }
    found
}

/// First character of each word and mark of `text`, as an encoder splits it.
pub fn words_and_marks(text: &[char], from: usize, to: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut in_word = false;
    for (i, c) in text.iter().enumerate().take(to.min(text.len())).skip(from) {
        let word = c.is_alphanumeric();
        if (word && !in_word) || !(word || c.is_whitespace()) {
            found.push(i);
        }
        in_word = word;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_add_up_by_hand() {
        assert_eq!(milli(&Parts::default()), 0);
        let full = Parts {
            similarity: 0.9,
            similarity_in_context: 0.9,
            content: 1.0,
            content_in_context: 1.0,
            subject: 1.0,
            predicate: 1.0,
            answer: 1.0,
            time: 1.0,
        };
        assert_eq!(milli(&full), 10_000);
        let half = Parts {
            // Halfway between unlike and alike: 1.75 points.
            similarity: 0.625,
            similarity_in_context: 0.625,
            // A quarter itself, another half from before: 0.5 of 3 points.
            content: 0.25,
            content_in_context: 0.75,
            subject: 0.75,
            answer: 1.0,
            ..Parts::default()
        };
        assert_eq!(milli(&half), 1_750 + 1_500 + 750 + 1_500);
        assert_eq!(threshold(6.0), 6_000);
    }

    #[test]
    fn context_only_ever_adds() {
        let alone = Parts {
            similarity: 0.7,
            content: 0.5,
            ..Parts::default()
        };
        assert_eq!(
            milli(&alone),
            milli(&Parts {
                content_in_context: 0.2,
                similarity_in_context: 0.3,
                ..alone
            })
        );
    }

    #[test]
    fn a_sentence_has_the_rows_at_its_share_of_the_words() {
        let text: Vec<char> = "Hi, Ana. I moved.".chars().collect();
        let marks = words_and_marks(&text, 0, text.len());
        assert_eq!(marks, [0, 2, 4, 7, 9, 11, 16]);
        let places: Vec<Option<usize>> = marks.into_iter().map(Some).collect();
        assert_eq!(rows_of(&places, 7, 0, 8), [0, 1, 2, 3]);
        assert_eq!(rows_of(&places, 7, 8, 17), [4, 5, 6]);
        // Fourteen word pieces: two a word.
        assert_eq!(rows_of(&places, 14, 8, 17), [8, 9, 10, 11, 12, 13]);
        assert!(rows_of(&places, 0, 0, 8).is_empty());
        assert!(rows_of(&[], 5, 0, 8).is_empty());
    }
}
