//! Whatever the weights say, what is found is well formed.
//!
//! That it is what spaCy finds is tested from Python, with spaCy beside it.

use ebbtide_parser::{
    ArcMove, Arcs, Entities, EntityMove, Numbers, Place, Scorer, Tagged, Texts, Token,
};
use proptest::prelude::*;

const HIDDEN: usize = 3;
const PIECES: usize = 2;

fn scorer(moves: usize, looked_at: usize, drawn: &[f32]) -> Scorer {
    let mut numbers = drawn.iter().copied().cycle();
    let mut take = |count: usize| -> Vec<f32> { numbers.by_ref().take(count).collect() };
    let (hidden_bias, weights, bias) = (take(HIDDEN * PIECES), take(moves * HIDDEN), take(moves));
    let numbers = Numbers {
        looked_at,
        pieces: PIECES,
        hidden_bias: &hidden_bias,
        weights: &weights,
        bias: &bias,
    };
    Scorer::new(&numbers).expect("numbers that fit")
}

fn tokens() -> impl Strategy<Value = Vec<Token>> {
    let token = (prop::option::of(any::<bool>()), any::<bool>());
    let token = token.prop_map(|(starts_sentence, is_space)| Token {
        starts_sentence,
        is_space,
    });
    prop::collection::vec(token, 0..14)
}

fn drawn() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-3.0f32..3.0, 97..400)
}

/// Vectors of that many tokens, and for none.
fn vectors(scorer: &Scorer, tokens: usize, drawn: &[f32]) -> Vec<f32> {
    let count = scorer.row() * (tokens + 1);
    drawn.iter().rev().copied().cycle().take(count).collect()
}

fn entity_moves() -> Vec<EntityMove> {
    let places = [Place::Begin, Place::In, Place::Last, Place::Unit];
    let labelled = (7..=9).flat_map(|label| places.map(|place| EntityMove { place, label }));
    let place = Place::Out;
    labelled.chain([EntityMove { place, label: 0 }]).collect()
}

fn check_entities(tokens: &[Token], found: &[Tagged]) {
    for (i, tagged) in found.iter().enumerate() {
        match tagged.first {
            None => assert_eq!(tagged.label, 0),
            Some(true) => assert!(!tokens[i].is_space, "an entity starts with white space"),
            Some(false) => {
                assert!(i > 0 && found[i - 1].label == tagged.label && tagged.label != 0);
                let crosses = tokens[i].starts_sentence == Some(true);
                assert!(!crosses, "an entity goes on into the next sentence");
            }
        }
    }
}

proptest! {
    #[test]
    fn entities_stay_in_their_sentence(first in tokens(), second in tokens(), drawn in drawn()) {
        let moves = entity_moves();
        let scorer = scorer(moves.len(), 3, &drawn);
        let together = [first.clone(), second.clone()].concat();
        let vectors = vectors(&scorer, together.len(), &drawn);
        let lengths = [first.len(), second.len()];
        let entities = Entities::new(scorer, moves).expect("weights of all moves");
        let texts = Texts { vectors: &vectors, tokens: &together, lengths: &lengths };
        let found = entities.find(texts).expect("texts that fit");
        prop_assert_eq!(found.len(), together.len());
        check_entities(&first, &found[..first.len()]);
        check_entities(&second, &found[first.len()..]);
    }

    #[test]
    fn arcs_make_trees(tokens in tokens(), drawn in drawn()) {
        let moves = vec![
            ArcMove::Shift,
            ArcMove::Reduce,
            ArcMove::Left(5),
            ArcMove::Left(6),
            ArcMove::Right(5),
            ArcMove::Break,
        ];
        let scorer = scorer(moves.len(), 8, &drawn);
        let vectors = vectors(&scorer, tokens.len(), &drawn);
        let arcs = Arcs::new(scorer, moves, 1).expect("weights of all moves");
        let texts = Texts { vectors: &vectors, tokens: &tokens, lengths: &[tokens.len()] };
        let found = arcs.find(texts).expect("texts that fit");
        prop_assert_eq!(found.len(), tokens.len());
        for (i, attached) in found.iter().enumerate() {
            prop_assert_eq!(attached.head == 0, attached.label == 1);
            let mut at = i as i64;
            for _ in 0..=tokens.len() {
                at += found[usize::try_from(at).expect("a head among the tokens")].head;
            }
            let root = found[usize::try_from(at).expect("a head among the tokens")];
            prop_assert_eq!(root.head, 0, "a token is its own ancestor");
        }
    }
}
