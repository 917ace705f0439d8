//! Many exponentials at once, bit for bit those of `libm`.
//!
//! `libm::exp` takes one of several branches for each number, so a loop over it
//! runs one number at a time. Here the same operations run in the same order over
//! a block of numbers, and what the branches decide is selected afterwards: the
//! compiler can use vector instructions, whose sums, products and quotients are
//! those of single numbers. The tests hold it to `libm::exp`.

/// Numbers of one block.
const LANES: usize = 8;
/// Inside, 2^k is a normal number and one multiplication scales by it.
const NORMAL: std::ops::RangeInclusive<f64> = -708.0..=709.0;

// FreeBSD's e_exp.c: ln 2 in two parts, and the minimax polynomial.
const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
const INV_LN2: f64 = f64::from_bits(0x3ff7_1547_652b_82fe);
const P: [f64; 5] = [
    f64::from_bits(0x3fc5_5555_5555_553e),
    f64::from_bits(0xbf66_c16c_16be_bd93),
    f64::from_bits(0x3f11_566a_af25_de2c),
    f64::from_bits(0xbebb_bd41_c5d2_6bf1),
    f64::from_bits(0x3e66_3769_72be_a4d0),
];

/// Replaces each x by e^x, as `libm::exp` gives it.
pub fn exp_in_place(xs: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has said that it has these instructions.
            return unsafe { avx512(xs) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(xs) };
        }
    }
    portable(xs);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(xs: &mut [f64]) {
    portable(xs);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512dq,avx512vl")]
fn avx512(xs: &mut [f64]) {
    portable(xs);
}

/// What runs anywhere; the other forms are this one, compiled for wider registers.
#[inline(always)]
fn portable(xs: &mut [f64]) {
    let (blocks, rest) = xs.as_chunks_mut::<LANES>();
    for block in blocks {
        // NaN lies in no range.
        if block.iter().fold(true, |all, x| all & NORMAL.contains(x)) {
            *block = exp_block(*block);
        } else {
            each(block);
        }
    }
    each(rest);
}

fn each(xs: &mut [f64]) {
    for x in xs {
        *x = libm::exp(*x);
    }
}

#[inline(always)]
fn exp_block(xs: [f64; LANES]) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for (out, x) in out.iter_mut().zip(xs) {
        *out = exp_normal(x);
    }
    out
}

/// e^x for a normal result, without a branch.
#[inline(always)]
fn exp_normal(x: f64) -> f64 {
    // Where libm looks at the upper half of the bits, the bounds here are the first
    // numbers with the next upper half.
    const HALF_LN2: f64 = f64::from_bits(0x3fd6_2e43_0000_0000);
    const THREE_HALVES_LN2: f64 = f64::from_bits(0x3ff0_a2b2_0000_0000);
    const TINY: f64 = f64::from_bits(0x3e30_0001_0000_0000);
    // Adding this rounds to a whole number and leaves it in the lower bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;

    let size = x.abs();
    let far = trunc_small(INV_LN2 * x + 0.5f64.copysign(x));
    let near = 1f64.copysign(x);
    let k = if size >= THREE_HALVES_LN2 { far } else { near };
    let k = if size >= HALF_LN2 { k } else { 0.0 };
    let hi = x - k * LN2_HI;
    let lo = k * LN2_LO;
    let r = hi - lo;
    let rr = r * r;
    let c = r - rr * (P[0] + rr * (P[1] + rr * (P[2] + rr * (P[3] + rr * P[4]))));
    let y = 1.0 + (r * c / (2.0 - c) - lo + hi);
    let power = ((k + WHOLE).to_bits() << 52).wrapping_add(1.0f64.to_bits());
    let y = y * f64::from_bits(power);
    if size >= TINY { y } else { 1.0 + x }
}

/// The whole part of a number below 2^51, without the call that `trunc` is where
/// the processor has no instruction for it.
#[inline(always)]
fn trunc_small(x: f64) -> f64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0; // 2^52
    let size = x.abs();
    let nearest = (size + WHOLE) - WHOLE;
    let down = if nearest > size {
        nearest - 1.0
    } else {
        nearest
    };
    down.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every form that this processor can run.
    #[allow(unsafe_code)]
    fn forms() -> Vec<fn(&mut [f64])> {
        let forms: [fn(&mut [f64]); 2] = [exp_in_place, portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has said that it has these instructions.
            let avx2: fn(&mut [f64]) = |xs| unsafe { avx2(xs) };
            return [forms.as_slice(), &[avx2]].concat();
        }
        forms.to_vec()
    }

    fn same(xs: &[f64]) {
        for form in forms() {
            let mut ours = xs.to_vec();
            form(&mut ours);
            for (x, y) in xs.iter().zip(&ours) {
                assert_eq!(y.to_bits(), libm::exp(*x).to_bits(), "exp({x:e})");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn any_numbers(xs in prop::collection::vec(any::<f64>(), 0..40)) {
            same(&xs);
        }

        #[test]
        fn decays(xs in prop::collection::vec(-60.0f64..0.0, 0..200)) {
            same(&xs);
        }

        #[test]
        fn the_whole_range(xs in prop::collection::vec(-709.0f64..710.0, 0..200)) {
            same(&xs);
        }
    }

    /// Every bound of a branch, and its neighbours on both sides.
    #[test]
    fn bounds() {
        let mut xs = vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for bits in [
            0x3fd6_2e42_0000_0000u64,
            0x3fd6_2e42_ffff_ffff,
            0x3fd6_2e43_0000_0000,
            0x3ff0_a2b1_ffff_ffff,
            0x3ff0_a2b2_0000_0000,
            0x3e30_0000_0000_0000,
            0x3e30_0000_ffff_ffff,
            0x3e30_0001_0000_0000,
            708.0f64.to_bits(),
            709.0f64.to_bits(),
            0x4086_232b_0000_0000,
        ] {
            for step in -3i64..=3 {
                let x = f64::from_bits(bits.wrapping_add_signed(step));
                xs.extend([x, -x]);
            }
        }
        for halves in 1..1400 {
            let x = f64::from(halves) * 0.5 * std::f64::consts::LN_2;
            for step in -2i64..=2 {
                let x = f64::from_bits(x.to_bits().wrapping_add_signed(step));
                xs.extend([x, -x]);
            }
        }
        // In blocks of equal numbers, so that each meets the vector form where it can.
        for x in xs {
            same(&[x; 2 * LANES]);
        }
    }
}
