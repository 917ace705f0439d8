//! The encoder as Python holds it.

use crate::refused;
use ebbtide_encoder::Encoder;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An encoder of a file's numbers.
#[pyclass(frozen, name = "Encoder")]
pub struct TextEncoder(Encoder);

#[pymethods]
impl TextEncoder {
    /// From the bytes of a safetensors file; `ValueError` where they are none of an encoder.
    #[new]
    fn new(py: Python<'_>, file: &[u8]) -> PyResult<Self> {
        let made = py.detach(|| Encoder::new(file));
        made.map(Self).map_err(|e| PyValueError::new_err(e.0))
    }

    /// Numbers of a word piece's vector.
    #[getter]
    fn width(&self) -> usize {
        self.0.width()
    }

    /// Word pieces of the longest text.
    #[getter]
    fn longest(&self) -> usize {
        self.0.longest()
    }

    /// The vectors of the word pieces of all texts, float32 [n, width].
    ///
    /// `pieces` uint32 [n] are those of all texts, `lengths` how many each has.
    fn encode<'py>(
        &self,
        py: Python<'py>,
        pieces: PyReadonlyArray1<'py, u32>,
        lengths: Vec<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let pieces = pieces.as_slice()?;
        let encoded = py.detach(|| self.0.encode(pieces, &lengths));
        let encoded = encoded.map_err(|e| refused(py, e.0))?;
        let shape = [pieces.len(), self.0.width()];
        encoded.into_pyarray(py).reshape(shape)
    }

    /// Helps another thread with a text that it encodes, for about a millisecond or until the
    /// text is done; its numbers stay the same.
    ///
    /// False where nothing or more than one call is under way, or only one thread can run.
    fn help(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.help())
    }
}
