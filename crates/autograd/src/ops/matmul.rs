//! Matrix products: `matmul`, `mm`, `bmm`, `mv`, `dot`.

use stridegrad_core::{Array, DType, Error, ErrorKind, Layout, Result, bail, broadcast_sizes, exec};

use crate::Tensor;
use crate::faces::faces;
use crate::graph::{Ctx, Recorder};

const OP: &str = "matmul";

/// Refuses operands of different dtypes (products do not promote) and of bools.
pub(crate) fn check_dtypes(op: &'static str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() != b.dtype() {
        return Err(Error::new(
            ErrorKind::DType,
            op,
            format!("expected m1 and m2 to have the same dtype, but got: {} != {}", a.dtype(), b.dtype()),
        )
        .hint("products do not promote: convert one operand with to_dtype()"));
    }
    if a.dtype() == DType::Bool {
        return Err(Error::new(ErrorKind::DType, op, "products of bool matrices are not supported")
            .hint("convert them with to_dtype()"));
    }
    Ok(())
}

fn text(sizes: &[usize]) -> String {
    sizes.iter().map(|n| n.to_string()).collect::<Vec<_>>().join("x")
}

fn check_inner(op: &'static str, a: &Tensor, b: &Tensor, inner: [usize; 2]) -> Result<()> {
    if inner[0] == inner[1] {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Shape,
        op,
        format!(
            "mat1 and mat2 shapes cannot be multiplied ({} and {}): {} columns meet {} rows",
            text(a.sizes()),
            text(b.sizes()),
            inner[0],
            inner[1]
        ),
    )
    .hint("t() or transpose() exchanges rows and columns"))
}

/// The product of (.., m, k) and (.., k, n), whose batch dims broadcast: by stride 0, without copies. The result is
/// row-major, or has the strides of `like` if that has its sizes.
pub(crate) fn product(a: &Tensor, b: &Tensor, like: Option<&Layout>) -> Result<Tensor> {
    let mut rec = Recorder::new(OP, &[a, b]);
    if rec.needs(0) {
        rec.save_input(1);
    }
    if rec.needs(1) {
        rec.save_input(0);
    }
    let (batch_a, batch_b) = (&a.sizes()[..a.dim() - 2], &b.sizes()[..b.dim() - 2]);
    let out = if batch_a == batch_b {
        multiply(a.array(), b.array(), like)?
    } else {
        let batch = broadcast_sizes(OP, &[batch_a, batch_b])?;
        multiply(&broadcast(a.array(), &batch)?, &broadcast(b.array(), &batch)?, like)?
    };
    let layouts = [*a.layout(), *b.layout()];
    rec.finish(out, move |ctx, g| gradients(ctx, g, &layouts))
}

/// The gradients of a product, in the strides of the operands where those are dense.
fn gradients(ctx: &Ctx<'_>, g: &Tensor, layouts: &[Layout; 2]) -> Result<Vec<Option<Tensor>>> {
    let mut grads = vec![None, None];
    if ctx.needs(0) {
        let b = ctx.input(1)?.try_transpose(-2, -1)?;
        grads[0] = ctx.reduce_to(0, product(g, &b, Some(&layouts[0]))?)?;
    }
    if ctx.needs(1) {
        let a = ctx.input(0)?.try_transpose(-2, -1)?;
        grads[1] = ctx.reduce_to(1, product(&a, g, Some(&layouts[1]))?)?;
    }
    Ok(grads)
}

fn multiply(a: &Array, b: &Array, like: Option<&Layout>) -> Result<Array> {
    let layout = like.filter(|l| {
        let (a, b) = (a.sizes(), b.sizes());
        l.sizes()[..] == [&a[..a.len() - 1], &b[b.len() - 1..]].concat()
    });
    exec::gemm(a, b, layout.map(Layout::dense_like))
}

fn broadcast(a: &Array, batch: &[usize]) -> Result<Array> {
    let sizes: Vec<i64> = batch.iter().chain(&a.sizes()[a.sizes().len() - 2..]).map(|&n| n as i64).collect();
    a.with_layout(a.layout().expand(&sizes)?)
}

/// The sizes with the dims before the last made one, if the strides can express that.
pub(crate) fn rows(x: &Tensor) -> Option<[usize; 2]> {
    let (&last, lead) = x.sizes().split_last()?;
    let sizes = [lead.iter().product(), last];
    x.layout().try_view(&sizes).map(|_| sizes)
}

fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    check_dtypes(OP, a, b)?;
    let (ra, rb) = (a.dim(), b.dim());
    if ra == 0 || rb == 0 {
        bail!(Shape, OP, "both arguments to matmul need to be at least 1D, but they are {ra}D and {rb}D");
    }
    let (k, rows_b) = (a.sizes()[ra - 1], b.sizes()[rb.saturating_sub(2)]);
    check_inner(OP, a, b, [k, rows_b])?;
    // Vectors are matrices of one row or column, for the time being.
    let m = if ra == 1 { a.try_unsqueeze(0)? } else { a.clone() };
    let n = if rb == 1 { b.try_unsqueeze(1)? } else { b.clone() };
    let out = match rows(&m) {
        // One matrix on the right: all batches' rows are rows of one product.
        Some(sizes) if n.dim() == 2 && m.dim() > 2 => {
            let sizes_out = [&m.sizes()[..m.dim() - 1], &n.sizes()[1..]].concat();
            product(&m.try_view(sizes)?, &n, None)?.try_view(sizes_out)?
        }
        _ => product(&m, &n, None)?,
    };
    match (ra, rb) {
        (1, 1) => out.try_view(()),
        (1, _) => out.try_squeeze_dims(-2),
        (_, 1) => out.try_squeeze_dims(-1),
        _ => Ok(out),
    }
}

fn check_rank(op: &'static str, what: &str, t: &Tensor, rank: usize) -> Result<()> {
    if t.dim() == rank {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Shape,
        op,
        format!("{what} must be a {rank}-D tensor, got sizes {:?}", t.sizes()),
    )
    .hint("matmul() takes any ranks and broadcasts"))
}

faces! {
    /// The matrix product, by PyTorch's rules: two vectors give their dot product (0-dim), a vector is a row on the
    /// left and a column on the right, and of more than two dims the first ones are batch dims that broadcast.
    ///
    /// Any strides are read where they lie; nothing is copied, and batch dims are broadcast by stride 0. The result
    /// is row-major. Dtypes must be equal. Refuses 0-dim operands, bools, and sizes that do not fit.
    ///
    /// ```
    /// use stridegrad_autograd::Tensor;
    /// let x = Tensor::arange(12.0).view([1, 3, 4]);
    /// let row = x.select(1, 2); // strides [12, 1]
    /// assert_eq!(row.matmul(&Tensor::ones([2, 4]).t()).to_vec::<f32>(), [38.0, 38.0]);
    /// ```
    pub fn matmul | try_matmul(&self, other: &Tensor) -> Tensor {
        matmul(self, other)
    }

    /// The product of two matrices; no broadcasting.
    pub fn mm | try_mm(&self, other: &Tensor) -> Tensor {
        check_rank("mm", "mat1", self, 2)?;
        check_rank("mm", "mat2", other, 2)?;
        check_dtypes("mm", self, other)?;
        check_inner("mm", self, other, [self.sizes()[1], other.sizes()[0]])?;
        product(self, other, None)
    }

    /// The products of two batches of matrices, (b, m, k) and (b, k, n); no broadcasting.
    pub fn bmm | try_bmm(&self, other: &Tensor) -> Tensor {
        check_rank("bmm", "batch1", self, 3)?;
        check_rank("bmm", "batch2", other, 3)?;
        check_dtypes("bmm", self, other)?;
        if self.sizes()[0] != other.sizes()[0] {
            bail!(Shape, "bmm", "expected batches of one size, got {:?} and {:?}", self.sizes(), other.sizes());
        }
        check_inner("bmm", self, other, [self.sizes()[2], other.sizes()[1]])?;
        product(self, other, None)
    }

    /// The product of a matrix and a vector.
    pub fn mv | try_mv(&self, vector: &Tensor) -> Tensor {
        check_rank("mv", "the matrix", self, 2)?;
        check_rank("mv", "the vector", vector, 1)?;
        matmul(self, vector)
    }

    /// The dot product of two vectors of equal length, a 0-dim tensor.
    pub fn dot | try_dot(&self, other: &Tensor) -> Tensor {
        if self.dim() != 1 || other.dim() != 1 || self.numel() != other.numel() {
            bail!(Shape, "dot", "expected two vectors of equal length, got sizes {:?} and {:?}", self.sizes(), other.sizes());
        }
        matmul(self, other)
    }
}

/// (.., m, k) times (.., k, n) with broadcast batch dims, naively.
#[cfg(feature = "testkit")]
pub(crate) fn reference(a: &crate::spec::Ref, b: &crate::spec::Ref) -> crate::spec::Ref {
    use crate::spec::Ref;
    let lift = |r: &Ref, column: bool| match r.sizes[..] {
        [n] if column => Ref::new(&[n, 1], r.data.clone()),
        [n] => Ref::new(&[1, n], r.data.clone()),
        _ => r.clone(),
    };
    let (m, n) = (lift(a, false), lift(b, true));
    let (ra, rb) = (m.sizes.len(), n.sizes.len());
    let rank = ra.max(rb);
    let size = |r: &Ref, d: usize| (d + r.sizes.len()).checked_sub(rank).map_or(1, |i| r.sizes[i]);
    let mut sizes: Vec<usize> =
        (0..rank - 2).map(|d| if size(&m, d) == 1 { size(&n, d) } else { size(&m, d) }).collect();
    sizes.extend([m.sizes[ra - 2], n.sizes[rb - 1]]);
    let k = m.sizes[ra - 1];
    let mut out = Ref::from_fn(&sizes, |index| {
        let (i, j) = (index[rank - 2], index[rank - 1]);
        (0..k)
            .map(|p| {
                let at = |r: &Ref, last: [usize; 2]| {
                    let mut full = index[..rank - 2].to_vec();
                    full.extend(last);
                    r.broadcast_at(&full)
                };
                at(&m, [i, p]) * at(&n, [p, j])
            })
            .sum()
    });
    if b.sizes.len() == 1 {
        out.sizes.pop();
    }
    if a.sizes.len() == 1 {
        let row = if b.sizes.len() == 1 { out.sizes.len() - 1 } else { out.sizes.len() - 2 };
        out.sizes.remove(row);
    }
    out
}

#[cfg(feature = "testkit")]
pub(crate) fn spec() -> crate::spec::OpSpec {
    use crate::spec::*;
    let named = |name: &str, a: &[usize], b: &[usize], run: fn(&Tensor, &Tensor) -> Result<Tensor>| {
        Sample::new(
            format!("{name} {a:?} {b:?}"),
            vec![Input::new(a, Domain::Any), Input::new(b, Domain::Any)],
            move |t| run(&t[0], &t[1]),
            |r| reference(&r[0], &r[1]),
        )
        .numbers()
        .row_major()
        .tolerance(2.0)
    };
    OpSpec::new("matmul", || {
        let shapes: [(&[usize], &[usize]); 14] = [
            (&[3, 4], &[4, 5]),
            (&[4], &[4]),
            (&[3, 4], &[4]),
            (&[4], &[4, 3]),
            (&[4], &[2, 4, 3]),
            (&[2, 3, 4], &[4]),
            (&[2, 3, 4], &[2, 4, 3]),
            (&[2, 3, 4], &[4, 3]),
            (&[3, 4], &[2, 4, 3]),
            (&[2, 1, 3, 4], &[3, 4, 2]),
            (&[1, 1], &[1, 1]),
            (&[2, 0], &[0, 3]),
            (&[0, 2, 3], &[0, 3, 2]),
            (&[67, 300], &[300, 53]),
        ];
        shapes
            .into_iter()
            .map(|(a, b)| {
                let s = Sample::new(
                    format!("{a:?} {b:?}"),
                    vec![Input::new(a, Domain::Any), Input::new(b, Domain::Any)],
                    |t| t[0].try_matmul(&t[1]),
                    |r| reference(&r[0], &r[1]),
                )
                .numbers()
                .row_major()
                .tolerance(2.0);
                if a == [67, 300] { s.no_grad().tolerance(8.0) } else { s }
            })
            .chain([
                named("mm", &[3, 4], &[4, 5], |a, b| a.try_mm(b)),
                named("bmm", &[2, 3, 4], &[2, 4, 5], |a, b| a.try_bmm(b)),
                named("mv", &[3, 4], &[4], |a, b| a.try_mv(b)),
                named("dot", &[5], &[5], |a, b| a.try_dot(b)),
            ])
            .collect()
    })
    .refusal("a 0-dim operand", ErrorKind::Shape, || {
        Tensor::try_scalar(1.0)?.try_matmul(&Tensor::try_ones([3])?)
    })
    .refusal("mm of vectors", ErrorKind::Shape, || Tensor::try_ones([3])?.try_mm(&Tensor::try_ones([3])?))
    .refusal("bmm of matrices", ErrorKind::Shape, || {
        Tensor::try_ones([3, 3])?.try_bmm(&Tensor::try_ones([3, 3])?)
    })
    .refusal("mv of a matrix", ErrorKind::Shape, || {
        Tensor::try_ones([3, 3])?.try_mv(&Tensor::try_ones([3, 3])?)
    })
    .refusal("dot of different lengths", ErrorKind::Shape, || {
        Tensor::try_ones([3])?.try_dot(&Tensor::try_ones([4])?)
    })
    .refusal("inner sizes that differ", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3])?.try_matmul(&Tensor::try_ones([2, 3])?)
    })
    .refusal("batch dims that do not broadcast", ErrorKind::Shape, || {
        Tensor::try_ones([2, 3, 3])?.try_matmul(&Tensor::try_ones([4, 3, 3])?)
    })
    .refusal("two dtypes", ErrorKind::DType, || {
        Tensor::try_ones([2, 2])?.try_matmul(&Tensor::try_full([2, 2], 1)?)
    })
}
