//! A layer's weights as Python holds them.

use crate::refused;
use ebbtide_simd::weights::Weights;
use numpy::{PyReadonlyArray2, PyReadwriteArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Weights laid out for products whose sums have one order.
#[pyclass(frozen, name = "Weights")]
pub struct LaidWeights(Weights);

#[pymethods]
impl LaidWeights {
    /// From a matrix with a row for each column of the result.
    #[new]
    fn new(py: Python<'_>, rows: PyReadonlyArray2<'_, f32>) -> PyResult<Self> {
        let inner = rows.shape()[1];
        let given = rows.as_slice()?;
        if inner == 0 {
            return Err(refused(py, "rows without numbers".into()));
        }
        Ok(Self(py.detach(|| Weights::new(given, inner))))
    }

    /// `out` [n, columns] becomes the product of `x` [n, inner] and the weights.
    fn multiply(
        &self,
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        mut out: PyReadwriteArray2<'_, f32>,
    ) -> PyResult<()> {
        let (rows, wanted) = (x.shape()[0], [self.0.inner(), self.0.columns()]);
        if x.shape()[1] != wanted[0] || out.shape() != [rows, wanted[1]] {
            let (x, out) = (x.shape(), out.shape());
            let message = format!("weights of {wanted:?} do not take {x:?} to {out:?}");
            return Err(refused(py, message));
        }
        let (x, out) = (x.as_slice()?, out.as_slice_mut()?);
        py.detach(|| self.0.multiply(x, out));
        Ok(())
    }
}
