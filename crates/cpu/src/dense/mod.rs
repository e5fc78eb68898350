//! Matrix products, convolutions and pooling of any dtype, by the kernels for `f32`, `f64` and `i64`.

mod pool;

use half::{bf16, f16};
use stridegrad_core::kernel::{Conv2dParams, ConvPass};
use stridegrad_core::{DType, Error, ErrorKind, Int, Layout, Result};

use crate::conv2d::{self, ConvGeometry, View4, View4Mut};
use crate::gemm::{self, Float, HalfElement, Mat, MatMut};
use crate::loops::copy::copy;
use crate::loops::elem::Compute;
use crate::loops::{Raw, View};
use crate::scratch::try_with_scratch;

fn address<T>(v: &View<'_>) -> *mut T {
    v.raw.ptr().cast::<T>().wrapping_add(v.layout.offset())
}

fn strides<const N: usize>(op: &'static str, v: &View<'_>) -> Result<[isize; N]> {
    v.layout.strides().try_into().map_err(|_| {
        Error::new(ErrorKind::Shape, op, format!("expected rank {N}, got sizes {:?}", v.sizes()))
    })
}

/// Runs `f` on a dense copy of `v` in the compute type, in the order of its strides.
fn widened<C: Compute, R>(v: View<'_>, f: impl FnOnce(View<'_>) -> Result<R>) -> Result<R> {
    let layout = v.layout.dense_like();
    try_with_scratch(layout.numel(), |p: *mut C| {
        let wide = View { raw: Raw::new(p, C::DTYPE), layout: &layout };
        copy(wide, v)?;
        f(wide)
    })?
}

/// Runs `f` on scratch shaped like `v`, then converts it into `v`.
fn narrowed<C: Compute>(v: View<'_>, f: impl FnOnce(View<'_>) -> Result<()>) -> Result<()> {
    let layout = v.layout.dense_like();
    try_with_scratch(layout.numel(), |p: *mut C| {
        let wide = View { raw: Raw::new(p, C::DTYPE), layout: &layout };
        f(wide)?;
        copy(v, wide)
    })?
}

/// `dst = a b`, all of rank 3, equal batch sizes, one dtype.
pub(crate) fn gemm(dst: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    match dst.dtype() {
        DType::F32 => gemm_float::<f32>(dst, a, b),
        DType::F64 => gemm_float::<f64>(dst, a, b),
        DType::F16 => gemm_half::<f16>(dst, a, b),
        DType::BF16 => gemm_half::<bf16>(dst, a, b),
        DType::I64 => gemm_int(dst, a, b),
        _ => widened::<Int, _>(a, |a| {
            widened::<Int, _>(b, |b| narrowed::<Int>(dst, |dst| gemm_int(dst, a, b)))
        }),
    }
}

/// Batch size; rows, columns and depth.
fn gemm_sizes(dst: &View<'_>, a: &View<'_>) -> Result<(usize, (usize, usize, usize))> {
    match (dst.sizes(), a.sizes()) {
        (&[batch, m, n], &[_, _, k]) => Ok((batch, (m, n, k))),
        (d, a) => {
            Err(Error::new(ErrorKind::Shape, "matmul", format!("expected rank 3, got {d:?} and {a:?}")))
        }
    }
}

fn gemm_float<T: Float>(dst: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    let op = "matmul";
    let (batch, mnk) = gemm_sizes(&dst, &a)?;
    let ([ab, ar, ac], [bb, br, bc], [cb, cr, cc]) = (strides(op, &a)?, strides(op, &b)?, strides(op, &dst)?);
    // SAFETY: every index of the layouts lies in the buffers, which are readable and, for the fresh, non-overlapping
    // result, writable under the guards that the caller holds; the result overlaps no operand.
    unsafe {
        gemm::gemm_batched::<T>(
            &[batch],
            [&[ab], &[bb], &[cb]],
            mnk,
            Mat::new(address(&a), ar, ac),
            Mat::new(address(&b), br, bc),
            MatMut::new(address(&dst), cr, cc),
            false,
        );
    }
    Ok(())
}

/// Calls `one` with the matrices of each product of the batch.
fn each_product<T>(
    dst: View<'_>,
    a: View<'_>,
    b: View<'_>,
    one: impl Fn((usize, usize, usize), Mat<T>, Mat<T>, MatMut<T>),
) -> Result<()> {
    let op = "matmul";
    let (batch, mnk) = gemm_sizes(&dst, &a)?;
    let ([ab, ar, ac], [bb, br, bc], [cb, cr, cc]) = (strides(op, &a)?, strides(op, &b)?, strides(op, &dst)?);
    for i in 0..batch as isize {
        one(
            mnk,
            Mat::new(address::<T>(&a).wrapping_offset(i * ab), ar, ac),
            Mat::new(address::<T>(&b).wrapping_offset(i * bb), br, bc),
            MatMut::new(address::<T>(&dst).wrapping_offset(i * cb), cr, cc),
        );
    }
    Ok(())
}

fn gemm_half<H: HalfElement>(dst: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    // SAFETY: as in `gemm_float`, product by product.
    each_product::<H>(dst, a, b, |mnk, a, b, c| unsafe { gemm::gemm_half(mnk, a, b, c, false) })
}

fn gemm_int(dst: View<'_>, a: View<'_>, b: View<'_>) -> Result<()> {
    // SAFETY: as in `gemm_float`, product by product.
    each_product::<i64>(dst, a, b, |mnk, a, b, c| unsafe { gemm::gemm_i64(mnk, a, b, c, false) })
}

/// One pass of a two-dimensional convolution.
pub(crate) fn conv2d(pass: ConvPass, params: &Conv2dParams, dst: View<'_>, srcs: &[View<'_>]) -> Result<()> {
    let (x, w, y) = match (pass, srcs) {
        (ConvPass::Forward, [x, w] | [x, w, _]) => (x.layout, w.layout, dst.layout),
        (ConvPass::InputGrad, [y, w]) => (dst.layout, w.layout, y.layout),
        (ConvPass::WeightGrad, [y, x]) => (x.layout, dst.layout, y.layout),
        _ => {
            let text = format!("{} operands for {pass:?}", srcs.len());
            return Err(Error::new(ErrorKind::Argument, "conv2d", text));
        }
    };
    let g = geometry(params, x, w, y)?;
    let compute = dst.dtype().compute_float();
    match dst.dtype() {
        d if d == compute => conv2d_any(pass, &g, dst, srcs),
        d if d.is_floating() => {
            with_widened::<f32>(srcs, &mut |srcs| narrowed::<f32>(dst, |dst| conv2d_any(pass, &g, dst, srcs)))
        }
        _ => {
            with_widened::<Int>(srcs, &mut |srcs| narrowed::<Int>(dst, |dst| conv2d_any(pass, &g, dst, srcs)))
        }
    }
}

fn geometry(params: &Conv2dParams, x: &Layout, w: &Layout, y: &Layout) -> Result<ConvGeometry> {
    let (&[n, c, h, wd], &[k, _, r, s], &[_, _, p, q]) = (x.sizes(), w.sizes(), y.sizes()) else {
        let text = format!("expected rank 4, got {:?}, {:?} and {:?}", x.sizes(), w.sizes(), y.sizes());
        return Err(Error::new(ErrorKind::Shape, "conv2d", text));
    };
    let [[top, bottom], [left, right]] = params.padding;
    Ok(ConvGeometry {
        n,
        c,
        h,
        w: wd,
        k,
        r,
        s,
        stride: params.stride,
        pad_before: [top, left],
        pad_after: [bottom, right],
        dilation: params.dilation,
        groups: params.groups,
        p,
        q,
    })
}

pub(crate) use pool::pool2d;

/// Runs `f` with every operand widened.
fn with_widened<C: Compute>(srcs: &[View<'_>], f: &mut dyn FnMut(&[View<'_>]) -> Result<()>) -> Result<()> {
    match srcs {
        [a, b] => widened::<C, _>(*a, |a| widened::<C, _>(*b, |b| f(&[a, b]))),
        [a, b, c] => widened::<C, _>(*a, |a| widened::<C, _>(*b, |b| widened::<C, _>(*c, |c| f(&[a, b, c])))),
        _ => Err(Error::new(ErrorKind::Argument, "conv2d", format!("{} operands", srcs.len()))),
    }
}

fn conv2d_any(pass: ConvPass, g: &ConvGeometry, dst: View<'_>, srcs: &[View<'_>]) -> Result<()> {
    match dst.dtype() {
        DType::F32 => conv2d_float::<f32>(pass, g, dst, srcs),
        DType::F64 => conv2d_float::<f64>(pass, g, dst, srcs),
        _ => conv2d_int(pass, g, dst, srcs),
    }
}

fn view4<T>(v: &View<'_>) -> Result<View4<T>> {
    Ok(View4::new(address(v), strides("conv2d", v)?))
}

fn conv2d_float<T: Float>(pass: ConvPass, g: &ConvGeometry, dst: View<'_>, srcs: &[View<'_>]) -> Result<()> {
    let out = View4Mut::new(address::<T>(&dst), strides("conv2d", &dst)?);
    let (a, b) = (view4(&srcs[0])?, view4(&srcs[1])?);
    let bias =
        srcs.get(2).map(|v| (address::<T>(v).cast_const(), v.layout.strides().first().copied().unwrap_or(0)));
    // SAFETY: every index of the layouts lies in the buffers, which are readable and, for the fresh, non-overlapping result,
    // writable under the guards that the caller holds; the result overlaps no operand. `exec` has checked the
    // sizes against the geometry.
    unsafe {
        match pass {
            ConvPass::Forward => conv2d::forward(g, a, b, bias, out),
            ConvPass::InputGrad => conv2d::input_grad(g, a, b, out),
            ConvPass::WeightGrad => conv2d::weight_grad(g, b, a, out),
        }
    }
    Ok(())
}

fn conv2d_int(pass: ConvPass, g: &ConvGeometry, dst: View<'_>, srcs: &[View<'_>]) -> Result<()> {
    if pass != ConvPass::Forward {
        return Err(Error::new(ErrorKind::Unsupported, "conv2d", "integer convolutions have no gradients")
            .hint("convert to a floating dtype with to_dtype()"));
    }
    let out = View4Mut::new(address::<i64>(&dst), strides("conv2d", &dst)?);
    // SAFETY: as in `conv2d_float`.
    unsafe { conv2d::forward_i64(g, view4(&srcs[0])?, view4(&srcs[1])?, out) };
    if let Some(bias) = srcs.get(2) {
        // The bias along the channels, repeated along the other dims.
        let step = bias.layout.strides().first().copied().unwrap_or(0);
        let along = Layout::new(dst.sizes(), &[0, step, 0, 0], bias.layout.offset())?;
        crate::loops::accumulate::accumulate(dst, View { raw: bias.raw, layout: &along })?;
    }
    Ok(())
}
