//! An encoder's numbers as a file has them.

use crate::helping::Desk;
use crate::layer::{Layer, Product};
use crate::{Encoder, Unusable};
use ebbtide_simd::bytes::{ByteWeights, LARGEST};
use ebbtide_simd::network::{Columns, HEAD, Norm};
use safetensors::{Dtype, SafeTensors};

/// Added to variances.
const LEAST: f32 = 1e-12;

/// Reads the tensors of a file.
struct Tensors<'a>(SafeTensors<'a>);

pub fn read(file: &[u8]) -> Result<Encoder, Unusable> {
    let tensors = SafeTensors::deserialize(file).map_err(|e| Unusable(e.to_string()))?;
    let tensors = Tensors(tensors);
    let words = tensors.shape("words")?;
    let &[_, width] = words.as_slice() else {
        return Err(Unusable("words are not [pieces, width]".into()));
    };
    if width == 0 || !width.is_multiple_of(HEAD) {
        return Err(Unusable(format!(
            "a width of {width} has no heads of {HEAD}"
        )));
    }
    let mut layers = Vec::new();
    while tensors.has(&format!("layer.{}.looking.weight", layers.len())) {
        layers.push(tensors.layer(layers.len(), width)?);
    }
    let positions = tensors.floats("positions")?;
    if layers.is_empty() || positions.is_empty() || !positions.len().is_multiple_of(width) {
        return Err(Unusable("layers or positions are missing".into()));
    }
    Ok(Encoder {
        width,
        words: tensors.data("words", Dtype::U8)?.to_vec(),
        words_zero: tensors.byte("words.zero")?,
        words_scale: tensors.float("words.scale")?,
        positions,
        input: tensors.norm("input", width)?,
        layers,
        desk: Desk::default(),
    })
}

impl<'a> Tensors<'a> {
    fn layer(&self, number: usize, width: usize) -> Result<Layer, Unusable> {
        let name = |part: &str| format!("layer.{number}.{part}");
        let layer = Layer {
            heads: width / HEAD,
            looking: self.product(&name("looking"))?,
            attended: self.product(&name("attended"))?,
            middle: self.norm(&name("middle"), width)?,
            widening: self.product(&name("widening"))?,
            narrowing: self.product(&name("narrowing"))?,
            output: self.norm(&name("output"), width)?,
        };
        let wide = layer.widening.weights.columns();
        let shapes = [
            (&layer.looking, width, 3 * width),
            (&layer.attended, width, width),
            (&layer.widening, width, wide),
            (&layer.narrowing, wide, width),
        ];
        for (product, inner, columns) in shapes {
            let found = (product.weights.inner(), product.weights.columns());
            if found != (inner, columns) {
                return Err(Unusable(format!(
                    "weights of {found:?} in layer {number}, not of {inner} by {columns}"
                )));
            }
        }
        Ok(layer)
    }

    fn product(&self, name: &str) -> Result<Product, Unusable> {
        let weight = format!("{name}.weight");
        let shape = self.shape(&weight)?;
        let data = self.data(&weight, Dtype::I8)?;
        let rows: Vec<i8> = data.iter().map(|x| x.cast_signed()).collect();
        let &[inner, columns] = shape.as_slice() else {
            return Err(Unusable(format!("{weight} has not two dimensions")));
        };
        let weights = ByteWeights::new(&rows, columns).ok_or_else(|| {
            Unusable(format!(
                "{weight} of {inner} by {columns} is not of whole steps, or beyond ±{LARGEST}"
            ))
        })?;
        Ok(Product {
            columns: Columns {
                scale: self.of(&format!("{name}.scale"), columns)?,
                bias: self.of(&format!("{name}.bias"), columns)?,
            },
            weights,
        })
    }

    fn norm(&self, name: &str, width: usize) -> Result<Norm, Unusable> {
        Ok(Norm {
            scale: self.of(&format!("{name}.gain"), width)?,
            shift: self.of(&format!("{name}.shift"), width)?,
            least: LEAST,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    fn shape(&self, name: &str) -> Result<Vec<usize>, Unusable> {
        let tensor = self.0.tensor(name);
        Ok(tensor.map_err(|e| missing(name, &e))?.shape().to_vec())
    }

    fn data(&self, name: &str, kind: Dtype) -> Result<&'a [u8], Unusable> {
        let tensor = self.0.tensor(name).map_err(|e| missing(name, &e))?;
        if tensor.dtype() != kind {
            let found = tensor.dtype();
            return Err(Unusable(format!("{name} is {found:?}, not {kind:?}")));
        }
        Ok(tensor.data())
    }

    fn floats(&self, name: &str) -> Result<Vec<f32>, Unusable> {
        let data = self.data(name, Dtype::F32)?.as_chunks::<4>().0;
        let floats: Vec<f32> = data.iter().map(|b| f32::from_le_bytes(*b)).collect();
        match floats.iter().all(|x| x.is_finite()) {
            true => Ok(floats),
            false => Err(Unusable(format!("{name} is not finite"))),
        }
    }

    fn of(&self, name: &str, count: usize) -> Result<Vec<f32>, Unusable> {
        let floats = self.floats(name)?;
        match floats.len() == count {
            true => Ok(floats),
            false => Err(Unusable(format!(
                "{name} has {} numbers, not {count}",
                floats.len()
            ))),
        }
    }

    fn float(&self, name: &str) -> Result<f32, Unusable> {
        Ok(self.of(name, 1)?[0])
    }

    fn byte(&self, name: &str) -> Result<u8, Unusable> {
        let data = self.data(name, Dtype::U8)?;
        data.first()
            .copied()
            .ok_or_else(|| Unusable(format!("{name} is empty")))
    }
}

fn missing(name: &str, error: &impl std::fmt::Display) -> Unusable {
    Unusable(format!("no tensor {name}: {error}"))
}
