//! Pooling passes by dtype.

use stridegrad_core::kernel::{Pool2dParams, PoolPass};
use stridegrad_core::{DType, Error, ErrorKind, Int, Result};

use super::{address, narrowed, strides, view4, widened};
use crate::conv2d::View4Mut;
use crate::loops::View;
use crate::loops::index::check;
use crate::pool2d::{self, Average, PoolElement, PoolGeometry};
use crate::ukr::Float;

const OP: &str = "pool2d";

/// One pass of two-dimensional pooling; operands as [`PoolPass`] says.
pub(crate) fn pool2d(
    pass: PoolPass,
    params: &Pool2dParams,
    dsts: &[View<'_>],
    srcs: &[View<'_>],
) -> Result<()> {
    match (pass, dsts, srcs) {
        (PoolPass::Max, [y, at], [x]) => max(&geometry(params, x, y)?, *x, *y, *at),
        (PoolPass::MaxGrad, [dx], [dy, at]) => {
            let g = geometry(params, dx, dy)?;
            // Positions may come from anywhere: each is checked before the first write.
            check("max_pool2d_backward", *at, 2, g.h * g.w)?;
            max_grad(&g, *dy, *at, *dx)
        }
        (PoolPass::Avg | PoolPass::AdaptiveAvg, [y], [x]) => {
            average(pass, params, &geometry(params, x, y)?, *x, *y)
        }
        (PoolPass::AvgGrad | PoolPass::AdaptiveAvgGrad, [dx], [dy]) => {
            average(pass, params, &geometry(params, dx, dy)?, *dy, *dx)
        }
        _ => {
            let text = format!("{pass:?} with {} results and {} operands", dsts.len(), srcs.len());
            Err(Error::new(ErrorKind::Unsupported, OP, text))
        }
    }
}

fn geometry(params: &Pool2dParams, x: &View<'_>, y: &View<'_>) -> Result<PoolGeometry> {
    let (&[n, c, h, w], &[_, _, p, q]) = (x.sizes(), y.sizes()) else {
        let text = format!("expected rank 4, got sizes {:?} and {:?}", x.sizes(), y.sizes());
        return Err(Error::new(ErrorKind::Shape, OP, text));
    };
    if h.saturating_mul(w) > u32::MAX as usize {
        return Err(Error::new(
            ErrorKind::Unsupported,
            OP,
            format!("planes of {h} x {w} elements, 2^32 or more"),
        ));
    }
    let Pool2dParams { kernel, stride, padding, dilation, .. } = *params;
    Ok(PoolGeometry { n, c, h, w, kernel, stride, pad: padding, dilation, p, q })
}

fn max(g: &PoolGeometry, x: View<'_>, y: View<'_>, at: View<'_>) -> Result<()> {
    match x.dtype() {
        DType::F32 => max_as::<f32>(g, x, y, at),
        DType::F64 => max_as::<f64>(g, x, y, at),
        DType::I64 => max_as::<i64>(g, x, y, at),
        d if d.is_floating() => widened::<f32, _>(x, |x| narrowed::<f32>(y, |y| max_as::<f32>(g, x, y, at))),
        _ => widened::<Int, _>(x, |x| narrowed::<Int>(y, |y| max_as::<i64>(g, x, y, at))),
    }
}

fn max_as<T: PoolElement>(g: &PoolGeometry, x: View<'_>, y: View<'_>, at: View<'_>) -> Result<()> {
    let (values, positions) = (out::<T>(&y)?, out::<i64>(&at)?);
    // SAFETY: every index of the layouts lies in the buffers, which are readable and, for the fresh, non-overlapping
    // results, writable under the guards that the caller holds; the results overlap nothing else.
    unsafe { pool2d::max_pool2d(g, view4(&x)?, values, positions) }
    Ok(())
}

fn out<T>(v: &View<'_>) -> Result<View4Mut<T>> {
    Ok(View4Mut::new(address::<T>(v), strides(OP, v)?))
}

fn max_grad(g: &PoolGeometry, dy: View<'_>, at: View<'_>, dx: View<'_>) -> Result<()> {
    match dx.dtype() {
        DType::F32 => max_grad_as::<f32>(g, dy, at, dx),
        DType::F64 => max_grad_as::<f64>(g, dy, at, dx),
        _ => widened::<f32, _>(dy, |dy| narrowed::<f32>(dx, |dx| max_grad_as::<f32>(g, dy, at, dx))),
    }
}

fn max_grad_as<T: Float>(g: &PoolGeometry, dy: View<'_>, at: View<'_>, dx: View<'_>) -> Result<()> {
    // SAFETY: as in `max_as`; every position was checked against the plane.
    unsafe { pool2d::max_pool2d_backward::<T>(g, view4(&dy)?, view4(&at)?, out(&dx)?) }
    Ok(())
}

fn average(
    pass: PoolPass,
    params: &Pool2dParams,
    g: &PoolGeometry,
    from: View<'_>,
    to: View<'_>,
) -> Result<()> {
    match to.dtype() {
        DType::F32 => average_as::<f32>(pass, params, g, from, to),
        DType::F64 => average_as::<f64>(pass, params, g, from, to),
        d if d.is_floating() => widened::<f32, _>(from, |from| {
            narrowed::<f32>(to, |to| average_as::<f32>(pass, params, g, from, to))
        }),
        other => Err(Error::new(ErrorKind::Unsupported, "avg_pool2d", format!("averages of {other}"))
            .hint("convert to a floating dtype with to_dtype()")),
    }
}

fn average_as<T: Float>(
    pass: PoolPass,
    params: &Pool2dParams,
    g: &PoolGeometry,
    from: View<'_>,
    to: View<'_>,
) -> Result<()> {
    let average = match params.divisor {
        Some(d) => Average::Divisor(d as f64),
        None if params.count_include_pad => Average::IncludePad,
        None => Average::ExcludePad,
    };
    let (from, to) = (view4::<T>(&from)?, out::<T>(&to)?);
    // SAFETY: as in `max_as`.
    unsafe {
        match pass {
            PoolPass::Avg => pool2d::avg_pool2d(g, average, from, to),
            PoolPass::AvgGrad => pool2d::avg_pool2d_backward(g, average, from, to),
            PoolPass::AdaptiveAvg => pool2d::adaptive_avg_pool2d(g, from, to),
            _ => pool2d::adaptive_avg_pool2d_backward(g, from, to),
        }
    }
    Ok(())
}
