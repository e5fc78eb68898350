//! Arrays of known values in many layouts, and reading them back without the code under test.
#![allow(dead_code)]

use stridegrad_core::{Array, DType, Device, Element, Layout};

/// A small generator of reproducible numbers.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n.max(1)
    }

    /// Multiples of 1/8 in [-8, 8): exact in every floating dtype.
    pub fn value(&mut self) -> f64 {
        self.below(128) as f64 / 8.0 - 8.0
    }

    pub fn values(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.value()).collect()
    }
}

pub fn le_bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    fn of<T: Element>(values: &[f64]) -> Vec<u8> {
        let mut bytes = vec![0; values.len() * T::DTYPE.size()];
        for (b, &v) in bytes.chunks_mut(T::DTYPE.size()).zip(values) {
            T::from_f64(v).write_le(b);
        }
        bytes
    }
    match dtype {
        DType::F64 => of::<f64>(values),
        DType::F32 => of::<f32>(values),
        DType::F16 => of::<half::f16>(values),
        DType::BF16 => of::<half::bf16>(values),
        DType::I64 => of::<i64>(values),
        DType::I32 => of::<i32>(values),
        DType::I16 => of::<i16>(values),
        DType::I8 => of::<i8>(values),
        DType::U8 => of::<u8>(values),
        DType::Bool => of::<bool>(values),
        other => panic!("{other}"),
    }
}

/// The value that `v` has in `dtype`.
pub fn rounded(dtype: DType, v: f64) -> f64 {
    from_le_bytes(dtype, &le_bytes(dtype, &[v]))[0]
}

pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn of<T: Element>(bytes: &[u8]) -> Vec<f64> {
        bytes.chunks(T::DTYPE.size()).map(|b| T::read_le(b).to_f64()).collect()
    }
    match dtype {
        DType::F64 => of::<f64>(bytes),
        DType::F32 => of::<f32>(bytes),
        DType::F16 => of::<half::f16>(bytes),
        DType::BF16 => of::<half::bf16>(bytes),
        DType::I64 => of::<i64>(bytes),
        DType::I32 => of::<i32>(bytes),
        DType::I16 => of::<i16>(bytes),
        DType::I8 => of::<i8>(bytes),
        DType::U8 => of::<u8>(bytes),
        DType::Bool => of::<bool>(bytes),
        other => panic!("{other}"),
    }
}

/// The array of a layout whose logical values are `values` (row-major); other elements of its storage are junk.
pub fn array(layout: Layout, dtype: DType, values: &[f64]) -> Array {
    stridegrad_cpu::register();
    let n = layout.span().map_or(0, |(_, hi)| hi + 1) + 3;
    let mut flat: Vec<f64> = (0..n).map(|i| (i % 2) as f64 * 77.0).collect();
    for (o, &v) in layout.offsets().zip(values) {
        flat[o] = v;
    }
    Array::from_le_bytes(&le_bytes(dtype, &flat), dtype, &[n], Device::CPU)
        .unwrap()
        .with_layout(layout)
        .unwrap()
}

/// The whole storage, as values.
pub fn storage(a: &Array) -> Vec<f64> {
    let n = a.storage().bytes() / a.dtype().size();
    let flat = a.with_layout(Layout::contiguous(&[n]).unwrap()).unwrap();
    from_le_bytes(a.dtype(), &flat.to_le_bytes().unwrap())
}

/// The logical values, row-major.
pub fn values(a: &Array) -> Vec<f64> {
    let all = storage(a);
    a.layout().offsets().map(|o| all[o]).collect()
}

/// Non-overlapping layouts of these sizes: dense, permuted, stepped, offset, reversed, padded.
pub fn layouts(sizes: &[usize]) -> Vec<(&'static str, Layout)> {
    let rank = sizes.len();
    let mut out = vec![("contiguous", Layout::contiguous(sizes).unwrap())];
    // Dims in storage order, outermost first.
    let in_order = |order: &[usize], steps: &[usize], pad: usize, offset: usize, reversed: &[bool]| {
        let mut strides = vec![0isize; rank];
        let mut next = 1isize;
        for &d in order.iter().rev() {
            strides[d] = next * steps[d] as isize;
            next *= (sizes[d].max(1) * steps[d] + pad) as isize;
        }
        let mut at = offset as isize;
        for d in 0..rank {
            if reversed[d] && sizes[d] > 0 {
                at += strides[d] * (sizes[d] - 1) as isize;
                strides[d] = -strides[d];
            }
        }
        Layout::new(sizes, &strides, at as usize).unwrap()
    };
    let forward: Vec<usize> = (0..rank).collect();
    let backward: Vec<usize> = (0..rank).rev().collect();
    let rotated: Vec<usize> = (0..rank).map(|i| (i + 1) % rank).collect();
    let (one, two) = (vec![1; rank], vec![2; rank]);
    let mut last = vec![1; rank];
    if let Some(s) = last.last_mut() {
        *s = 3;
    }
    let (no, yes) = (vec![false; rank], vec![true; rank]);
    let alternate: Vec<bool> = (0..rank).map(|i| i % 2 == 0).collect();
    out.push(("column-major", in_order(&backward, &one, 0, 0, &no)));
    out.push(("rotated", in_order(&rotated, &one, 0, 0, &no)));
    out.push(("stepped", in_order(&forward, &two, 0, 1, &no)));
    out.push(("stepped inside", in_order(&forward, &last, 0, 0, &no)));
    out.push(("padded, offset", in_order(&forward, &one, 3, 5, &no)));
    out.push(("reversed", in_order(&forward, &one, 0, 0, &yes)));
    out.push(("rotated, partly reversed, padded", in_order(&rotated, &two, 1, 2, &alternate)));
    out
}

/// Runs `f` with 1, 2 and 5 threads, and under each instruction set; returns all results.
pub fn everywhere<R: Send>(f: impl Fn() -> R + Sync) -> Vec<Vec<R>> {
    use stridegrad_cpu::isa::{Isa, with_isa};
    [Isa::Portable, Isa::Avx2, Isa::Avx512]
        .into_iter()
        .map(|isa| {
            [1, 2, 5]
                .into_iter()
                .map(|n| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
                    pool.install(|| with_isa(isa, &f))
                })
                .collect()
        })
        .collect()
}
