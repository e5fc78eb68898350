//! Elementwise ops over any strides and dtypes.
//!
//! An operand whose rectangle is contiguous, of the compute dtype and in another buffer than the output is handed to
//! the kernel as it lies; any other is converted into a tile of L1 first. The output likewise: where it cannot be
//! written directly, the kernel writes a tile that is scattered. An input in the output's buffer always takes the
//! tile, so that the kernel's `&` and `&mut` slices never meet: operands that are the very same elements are read
//! before they are written, and others do not overlap (the backend's contract).

use stridegrad_core::kernel::{MapFn, MapKernel};
use stridegrad_core::{DType, Dst, Error, ErrorKind, Int, LoopPlan, MAX_OPERANDS, Result, Scalar, Src};

use super::elem::{Compute, Rect, Tile};
use super::nest::{Chunk, Nest, TRANSPOSED_ROWS};
use super::{CHUNK, Raw, View};
use crate::team;

/// The most inputs of a kernel.
const INPUTS: usize = MAX_OPERANDS - 1;
/// The most scalar parameters of a kernel.
const PARAMS: usize = 8;
/// Rows and elements of the rectangles where an operand is transposed.
const BLOCK: (usize, usize) = (16, 64);

pub(crate) fn map(
    kernel: &MapKernel,
    compute: DType,
    params: &[Scalar],
    dst: Dst<'_>,
    srcs: &[Src<'_>],
) -> Result<()> {
    match compute {
        DType::F32 => map_as::<f32>(kernel, params, dst, srcs),
        DType::F64 => map_as::<f64>(kernel, params, dst, srcs),
        _ => map_as::<Int>(kernel, params, dst, srcs),
    }
}

/// How a kernel call gets at an operand.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// As it lies in memory.
    Direct,
    /// Through a tile.
    Tile,
    /// A single element: a tile filled once.
    Scalar,
}

struct Call<C> {
    f: MapFn<C>,
    params: [C; PARAMS],
    n_params: usize,
    inputs: usize,
    /// The output, then the inputs.
    raw: [Raw; MAX_OPERANDS],
    /// Which inputs lie in the output's buffer.
    aliased: [bool; MAX_OPERANDS],
    /// A rough cost of an element in picoseconds, for deciding whether to share the work.
    cost: u64,
}

fn map_as<C: Compute>(kernel: &MapKernel, params: &[Scalar], dst: Dst<'_>, srcs: &[Src<'_>]) -> Result<()> {
    if srcs.len() > INPUTS || params.len() > PARAMS {
        return Err(Error::new(
            ErrorKind::Unsupported,
            kernel.name,
            format!(
                "at most {INPUTS} operands and {PARAMS} parameters, got {} and {}",
                srcs.len(),
                params.len()
            ),
        ));
    }
    if dst.layout().is_empty() {
        return Ok(());
    }
    let out = View::try_from(dst)?;
    let mut views = [out; MAX_OPERANDS];
    let mut call = Call {
        f: C::map_fn(kernel),
        params: [C::lit(0.0); PARAMS],
        n_params: params.len(),
        inputs: srcs.len(),
        raw: [out.raw; MAX_OPERANDS],
        aliased: [false; MAX_OPERANDS],
        cost: 0,
    };
    for (to, p) in call.params.iter_mut().zip(params) {
        *to = C::scalar(*p);
    }
    let mut plain = out.dtype() == C::DTYPE;
    let mut bytes = out.dtype().size();
    for k in 1..=srcs.len() {
        views[k] = View::try_from(srcs[k - 1])?;
        call.raw[k] = views[k].raw;
        bytes += views[k].dtype().size();
        plain &= views[k].dtype() == C::DTYPE;
        call.aliased[k] = views[k].same_buffer(&out);
    }
    let views = &views[..=srcs.len()];
    call.cost = 60 * bytes as u64;
    if plain && same_block(views) {
        call.flat(views);
        return Ok(());
    }
    let mut layouts = [out.layout; MAX_OPERANDS];
    for (l, v) in layouts.iter_mut().zip(views) {
        *l = v.layout;
    }
    let plan = LoopPlan::new(out.sizes(), &layouts[..views.len()])?;
    call.nested(&Nest::new(&plan));
    Ok(())
}

/// Whether all operands have the same sizes and strides and fill a block of memory in the same order.
fn same_block(views: &[View<'_>]) -> bool {
    let [out, ins @ ..] = views else { return false };
    let (sizes, strides) = (out.sizes(), out.layout.strides());
    ins.iter().all(|v| v.sizes() == sizes && v.layout.strides() == strides)
        && out.layout.is_non_overlapping_and_dense()
}

impl<C: Compute> Call<C> {
    fn params(&self) -> &[C] {
        &self.params[..self.n_params]
    }

    /// Operands of the compute dtype that fill blocks of memory in the same order.
    fn flat(&self, views: &[View<'_>]) {
        let n = views[0].layout.numel();
        let mut at = [0isize; MAX_OPERANDS];
        for (at, v) in at.iter_mut().zip(views) {
            *at = v.layout.offset() as isize;
        }
        let in_place = self.aliased.contains(&true);
        team::par_if(n as u64 * self.cost / 1000, n.div_ceil(CHUNK), &|chunk| {
            let end = n.min((chunk + 1) * CHUNK);
            if !in_place {
                self.flat_part(&at, chunk * CHUNK, end, None);
                return;
            }
            let mut tiles = [const { Tile::new() }; INPUTS];
            for from in (chunk * CHUNK..end).step_by(C::TILE) {
                self.flat_part(&at, from, end.min(from + C::TILE), Some(&mut tiles));
            }
        });
    }

    /// Elements `from..to` of flat operands. With tiles, inputs in the output's buffer are copied first.
    #[inline(always)]
    fn flat_part(
        &self,
        at: &[isize; MAX_OPERANDS],
        from: usize,
        to: usize,
        mut tiles: Option<&mut [Tile; INPUTS]>,
    ) {
        let len = to - from;
        let mut ins: [&[C]; INPUTS] = [&[]; INPUTS];
        for k in 1..=self.inputs {
            // SAFETY: the elements from the offset on lie in the operand's buffer (a dense layout), are initialised
            // and, under the storage's guard, not written by anyone else meanwhile. A tile takes them.
            ins[k - 1] = unsafe {
                let mut p: *const C = self.raw[k].at::<C>(at[k] + from as isize);
                if self.aliased[k]
                    && let Some(tiles) = &mut tiles
                {
                    let tile = tiles[k - 1].ptr::<C>();
                    p.copy_to_nonoverlapping(tile, len);
                    p = tile;
                }
                std::slice::from_raw_parts(p, len)
            };
        }
        // SAFETY: as above; no input slice lies in the output's buffer, which is written under its guard, each part by one
        // thread. `f` was picked for this processor.
        unsafe {
            let out = std::slice::from_raw_parts_mut(self.raw[0].at::<C>(at[0] + from as isize), len);
            (self.f)(out, &ins[..self.inputs], self.params());
        }
    }

    /// Anything else.
    fn nested(&self, nest: &Nest) {
        // The shape of the rectangles that a kernel call works on.
        let (rows, len) = if nest.transposed {
            let len = nest.len().min(BLOCK.1);
            (nest.second().min((C::TILE / len).min(BLOCK.0)), len)
        } else if nest.len() >= C::TILE / 4 {
            (1, nest.len())
        } else {
            (nest.second().min(C::TILE / nest.len()), nest.len())
        };
        let mut ways = [Way::Direct; MAX_OPERANDS];
        for (k, way) in ways.iter_mut().enumerate().take(self.inputs + 1) {
            let contiguous = nest.stride(k) == 1 && (rows == 1 || nest.row_stride(k) == len as isize);
            *way = match () {
                _ if k > 0 && nest.is_scalar(k) => Way::Scalar,
                _ if contiguous && self.raw[k].dtype == C::DTYPE && !self.aliased[k] => Way::Direct,
                _ => Way::Tile,
            };
        }
        let tiled = ways[..=self.inputs].iter().any(|&w| w != Way::Direct);
        let len = if tiled { len.min(C::TILE) } else { len };
        let chunks = nest.chunks(if nest.transposed { TRANSPOSED_ROWS } else { 1 });
        let cost = (nest.rows() * nest.len()) as u64 * (self.cost + 200 * tiled as u64) / 1000;
        team::par_if(cost, chunks.count(), &|i| {
            self.chunk(nest, chunks.get(i), &ways, rows, len);
        });
    }

    /// One chunk, in rectangles of up to `rows` rows of up to `len` elements.
    fn chunk(&self, nest: &Nest, chunk: Chunk, ways: &[Way; MAX_OPERANDS], rows: usize, len: usize) {
        let mut tiles = [const { Tile::new() }; MAX_OPERANDS];
        // What the tiles hold: the rectangle gathered last.
        let mut held: [Option<(isize, usize, usize)>; MAX_OPERANDS] = [None; MAX_OPERANDS];
        nest.for_runs(chunk, |run| {
            nest.for_parts(&run, rows, len, |part| {
                let (rows, len) = (part.rows, part.len);
                let rect = |k: usize| nest.rect(&run, part, k);
                let n = rows * len;
                let mut ins: [&[C]; INPUTS] = [&[]; INPUTS];
                for k in 1..=self.inputs {
                    let tile = tiles[k].ptr::<C>();
                    let rect = rect(k);
                    let p: *const C = match ways[k] {
                        // SAFETY: the rectangle lies in the operand's buffer (the plan reaches layout elements only).
                        Way::Direct => unsafe { self.raw[k].at::<C>(rect.at) },
                        Way::Scalar => {
                            if held[k].is_none() {
                                let whole = Rect::row(rect.at, C::TILE, 0);
                                // SAFETY: the element lies in the buffer, the tile takes TILE values.
                                unsafe { C::gather(self.raw[k].dtype, self.raw[k].ptr(), whole, tile) }
                                held[k] = Some((rect.at, 1, C::TILE));
                            }
                            tile
                        }
                        Way::Tile => {
                            // A row that is broadcast along the outer loops is gathered once. (Not one in the
                            // output's buffer: it is another one each time, since the output does not overlap
                            // itself.)
                            if held[k] != Some((rect.at, rows, len)) {
                                // SAFETY: the rectangle lies in the buffer and is initialised; a tile takes rows *
                                // len values, since rectangles are no larger than TILE where tiles are used.
                                unsafe { C::gather(self.raw[k].dtype, self.raw[k].ptr(), rect, tile) }
                                held[k] = Some((rect.at, rows, len));
                            }
                            tile
                        }
                    };
                    // SAFETY: `n` initialised values lie there, contiguously: in a tile, or in a buffer that
                    // is not the output's and that nobody writes meanwhile.
                    ins[k - 1] = unsafe { std::slice::from_raw_parts(p, n) };
                }
                let to = rect(0);
                let out: *mut C = match ways[0] {
                    // SAFETY: as for the inputs.
                    Way::Direct => unsafe { self.raw[0].at::<C>(to.at) },
                    _ => tiles[0].ptr::<C>(),
                };
                // SAFETY: `n` elements, in a tile or in the output's buffer, which no input slice points into;
                // this chunk alone writes them. `f` was picked for this processor.
                unsafe {
                    let out = std::slice::from_raw_parts_mut(out, n);
                    (self.f)(out, &ins[..self.inputs], self.params());
                }
                if ways[0] != Way::Direct {
                    // SAFETY: the rectangle lies in the output's buffer, and this chunk alone writes it.
                    unsafe { C::scatter(self.raw[0].dtype, self.raw[0].ptr(), to, tiles[0].ptr::<C>()) }
                }
            });
        });
    }
}
