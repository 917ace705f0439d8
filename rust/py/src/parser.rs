//! spaCy's networks as Python holds them: arrays as spaCy's layers give and take them, and its
//! texts (`Doc.to_array`, `Doc.from_array`).

use crate::refused;
use ebbtide_parser::{
    ArcMove, Arcs, Entities, EntityMove, LayerNumbers, Misfit, Numbers, Place, Scorer, Texts,
    Token, Windows,
};
use numpy::{
    IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyReadonlyArray4, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

/// A move: spaCy's letter for it, and the hash of its label, 0 for none.
type Move = (char, u64);
/// Of the hidden layer's bias [hidden, pieces], the moves' weights [moves, hidden], their bias.
type Layers<'py> = (
    PyReadonlyArray2<'py, f32>,
    PyReadonlyArray2<'py, f32>,
    PyReadonlyArray1<'py, f32>,
);
/// What the lower layer gives, what is known of each token, the tokens of each text.
type Given<'py> = (
    PyReadonlyArray4<'py, f32>,
    PyReadonlyArray2<'py, u64>,
    Vec<usize>,
);
type Columns<'py> = Bound<'py, PyArray2<u64>>;

/// Of a layer's weights [width, pieces, 3 · width], their bias [width, pieces], and what its
/// normalised numbers are multiplied by and get added [width].
type Layer<'py> = (
    PyReadonlyArray3<'py, f32>,
    PyReadonlyArray2<'py, f32>,
    PyReadonlyArray1<'py, f32>,
    PyReadonlyArray1<'py, f32>,
);

/// spaCy's codes of a token's place in an entity (`ENT_IOB`).
const INSIDE: u64 = 1;
const OUTSIDE: u64 = 2;
const FIRST: u64 = 3;

/// Layers that see a token's neighbours.
#[pyclass(frozen, name = "Windows")]
pub struct TokenWindows(Windows);

#[pymethods]
impl TokenWindows {
    /// From the layers' numbers, first to last.
    #[new]
    fn new(py: Python<'_>, layers: Vec<Layer<'_>>) -> PyResult<Self> {
        let numbers = layers.iter().map(|(weights, bias, scale, shift)| {
            Ok(LayerNumbers {
                weights: weights.as_slice()?,
                bias: bias.as_slice()?,
                scale: scale.as_slice()?,
                shift: shift.as_slice()?,
            })
        });
        let numbers: Vec<LayerNumbers<'_>> = numbers.collect::<PyResult<_>>()?;
        Windows::new(&numbers).map(Self).map_err(misfit(py))
    }

    /// Of each token what the last layer makes of it [n, width].
    ///
    /// `rows` [n, width] are those of all texts, `lengths` the tokens of each.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f32>,
        lengths: Vec<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let shape = [rows.shape()[0], rows.shape()[1]];
        let rows = rows.as_slice()?;
        let encoded = py.detach(|| self.0.encode(rows, &lengths));
        let encoded = encoded.map_err(misfit(py))?;
        encoded.into_pyarray(py).reshape(shape)
    }
}

/// Finds entities.
#[pyclass(frozen, name = "EntityMoves")]
pub struct EntityMoves(Entities);

#[pymethods]
impl EntityMoves {
    /// Tokens that score a move.
    #[classattr]
    const LOOKED_AT: usize = Entities::LOOKED_AT;

    /// From spaCy's moves, in their order, and the layers that score them.
    #[new]
    fn new(py: Python<'_>, moves: Vec<Move>, layers: Layers<'_>) -> PyResult<Self> {
        let moves = moves.into_iter().map(|(letter, label)| {
            let place = match letter {
                'B' => Place::Begin,
                'I' => Place::In,
                'L' => Place::Last,
                'U' => Place::Unit,
                'O' => Place::Out,
                _ => return Err(unknown(letter)),
            };
            Ok(EntityMove { place, label })
        });
        let moves = moves.collect::<Result<_, _>>().map_err(misfit(py))?;
        let made = Entities::new(scorer(py, &layers, Entities::LOOKED_AT)?, moves);
        made.map(Self).map_err(misfit(py))
    }

    /// `ENT_IOB` and `ENT_TYPE` of each token [n, 2].
    ///
    /// `vectors` [1 + n, 3, hidden, pieces] is what the lower layer gives; `tokens` [n, 2] has
    /// `SENT_START` and `IS_SPACE`; `lengths` are the tokens of each text.
    fn find<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray4<'py, f32>,
        tokens: PyReadonlyArray2<'py, u64>,
        lengths: Vec<usize>,
    ) -> PyResult<Columns<'py>> {
        let find = |texts: Texts<'_>| self.0.find(texts);
        columns(py, (vectors, tokens, lengths), find, |tagged| {
            let place = match tagged.first {
                Some(true) => FIRST,
                Some(false) => INSIDE,
                None => OUTSIDE,
            };
            [place, tagged.label]
        })
    }
}

/// Finds dependencies.
#[pyclass(frozen, name = "ArcMoves")]
pub struct ArcMoves(Arcs);

#[pymethods]
impl ArcMoves {
    /// Tokens that score a move.
    #[classattr]
    const LOOKED_AT: usize = Arcs::LOOKED_AT;

    /// From spaCy's moves, in their order, the layers that score them, and the label of roots.
    #[new]
    fn new(py: Python<'_>, moves: Vec<Move>, layers: Layers<'_>, root: u64) -> PyResult<Self> {
        let moves = moves.into_iter().map(|(letter, label)| match letter {
            'S' => Ok(ArcMove::Shift),
            'D' => Ok(ArcMove::Reduce),
            'L' => Ok(ArcMove::Left(label)),
            'R' => Ok(ArcMove::Right(label)),
            'B' => Ok(ArcMove::Break),
            _ => Err(unknown(letter)),
        });
        let moves = moves.collect::<Result<_, _>>().map_err(misfit(py))?;
        let made = Arcs::new(scorer(py, &layers, Arcs::LOOKED_AT)?, moves, root);
        made.map(Self).map_err(misfit(py))
    }

    /// `HEAD` and `DEP` of each token [n, 2].
    ///
    /// `vectors` [1 + n, 8, hidden, pieces] is what the lower layer gives; `tokens` [n, 2] has
    /// `SENT_START` and `IS_SPACE`; `lengths` are the tokens of each text.
    fn find<'py>(
        &self,
        py: Python<'py>,
        vectors: PyReadonlyArray4<'py, f32>,
        tokens: PyReadonlyArray2<'py, u64>,
        lengths: Vec<usize>,
    ) -> PyResult<Columns<'py>> {
        let find = |texts: Texts<'_>| self.0.find(texts);
        columns(py, (vectors, tokens, lengths), find, |attached| {
            [attached.head.cast_unsigned(), attached.label]
        })
    }
}

fn unknown(letter: char) -> Misfit {
    Misfit(format!("no move is called {letter:?}"))
}

fn misfit(py: Python<'_>) -> impl Fn(Misfit) -> PyErr {
    move |misfit| refused(py, misfit.0)
}

fn scorer(py: Python<'_>, layers: &Layers<'_>, looked_at: usize) -> PyResult<Scorer> {
    let (hidden_bias, weights, bias) = layers;
    let numbers = Numbers {
        looked_at,
        pieces: hidden_bias.shape()[1],
        hidden_bias: hidden_bias.as_slice()?,
        weights: weights.as_slice()?,
        bias: bias.as_slice()?,
    };
    Scorer::new(&numbers).map_err(misfit(py))
}

/// `SENT_START` and `IS_SPACE` of each token.
fn read(py: Python<'_>, tokens: &PyReadonlyArray2<'_, u64>) -> PyResult<Vec<Token>> {
    if tokens.shape()[1] != 2 {
        let message = format!("tokens have 2 columns, not {}", tokens.shape()[1]);
        return Err(refused(py, message));
    }
    let rows = tokens.as_slice()?.chunks_exact(2);
    Ok(rows
        .map(|row| Token {
            starts_sentence: (row[0] != 0).then(|| row[0].cast_signed() > 0),
            is_space: row[1] != 0,
        })
        .collect())
}

/// What is found in texts, in two columns with a row a token.
fn columns<'py, T: Send>(
    py: Python<'py>,
    (vectors, tokens, lengths): Given<'py>,
    find: impl FnOnce(Texts<'_>) -> Result<Vec<T>, Misfit> + Send,
    row: impl Fn(&T) -> [u64; 2],
) -> PyResult<Columns<'py>> {
    let (vectors, tokens) = (vectors.as_slice()?, read(py, &tokens)?);
    let texts = Texts {
        vectors,
        tokens: &tokens,
        lengths: &lengths,
    };
    let found = py.detach(|| find(texts)).map_err(misfit(py))?;
    let rows: Vec<[u64; 2]> = found.iter().map(row).collect();
    let shape = [rows.len(), 2];
    rows.into_flattened().into_pyarray(py).reshape(shape)
}
