//! What PyTorch (and NumPy, for negative steps) gives for sizes, strides and offsets: measured values.

use stridegrad_core::MemoryFormat::{ChannelsLast, Contiguous};
use stridegrad_core::{
    ErrorKind, Layout, MAX_RANK, MemoryFormat, Result, broadcast_sizes, infer_sizes, wrap_dim, wrap_dims,
};

fn fresh(sizes: &[usize]) -> Layout {
    Layout::contiguous(sizes).unwrap()
}

fn strided(sizes: &[usize], strides: &[isize]) -> Layout {
    Layout::new(sizes, strides, 0).unwrap()
}

fn channels_last(sizes: &[usize]) -> Layout {
    fresh(sizes).in_format(ChannelsLast).unwrap()
}

/// Sizes and strides, for comparison.
#[track_caller]
fn is(l: &Layout, sizes: &[usize], strides: &[isize]) {
    assert_eq!((l.sizes(), l.strides()), (sizes, strides));
}

#[track_caller]
fn refused<T: std::fmt::Debug>(r: Result<T>, kind: ErrorKind, part: &str) {
    let e = r.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    assert!(e.to_string().contains(part), "{e:?} lacks {part:?}");
}

// A1 ----------------------------------------------------------------------------------------------

#[test]
fn fresh_strides() {
    for (sizes, strides) in [
        (&[3, 4][..], &[4, 1][..]),
        (&[2, 3, 4], &[12, 4, 1]),
        (&[2, 3, 4, 4], &[48, 16, 4, 1]),
        (&[2, 0, 3], &[3, 3, 1]),
        (&[3, 0], &[1, 1]),
        (&[0, 3], &[3, 1]),
        (&[0], &[1]),
        (&[], &[]),
    ] {
        is(&fresh(sizes), sizes, strides);
    }
    assert_eq!(fresh(&[3, 4]).index_of(&[1, 2]), Some(6));
    assert_eq!(fresh(&[3, 4]).index_of(&[3, 0]), None);
    assert_eq!(fresh(&[3, 4]).index_of(&[1]), None);
    assert_eq!((Layout::scalar().numel(), fresh(&[2, 0, 3]).numel()), (1, 0));
    assert_eq!(Layout::scalar(), fresh(&[]));
}

#[test]
fn contiguity() {
    assert!(strided(&[1, 4], &[999, 1]).is_contiguous());
    assert!(strided(&[0, 4], &[3, 7]).is_contiguous());
    assert!(fresh(&[2, 0, 3]).transpose(0, 2).unwrap().is_contiguous());
    assert!(!fresh(&[2, 3]).t().unwrap().is_contiguous());
    assert!(!strided(&[3], &[2]).is_contiguous());
    // NHWC: permuted, then its contiguous copy.
    let nhwc = fresh(&[2, 3, 4, 4]).permute(&[0, 2, 3, 1]).unwrap();
    is(&nhwc, &[2, 4, 4, 3], &[48, 4, 1, 16]);
    assert!(!nhwc.is_contiguous());
    is(&nhwc.in_format(Contiguous).unwrap(), &[2, 4, 4, 3], &[48, 12, 3, 1]);
}

#[test]
fn fortran_contiguity() {
    for sizes in [&[5][..], &[1, 5], &[5, 1], &[0, 3], &[]] {
        assert!(fresh(sizes).is_contiguous() && fresh(sizes).is_fortran_contiguous(), "{sizes:?}");
    }
    let t = fresh(&[2, 3, 4]);
    assert!(!t.is_fortran_contiguous());
    assert!(t.permute(&[2, 1, 0]).unwrap().is_fortran_contiguous());
    assert!(!t.permute(&[2, 0, 1]).unwrap().is_fortran_contiguous());
}

#[test]
fn dense() {
    let t = fresh(&[2, 3, 4]);
    assert!(t.permute(&[2, 0, 1]).unwrap().is_non_overlapping_and_dense());
    assert!(strided(&[1, 4], &[999, 1]).is_non_overlapping_and_dense());
    assert!(strided(&[0, 4], &[3, 7]).is_non_overlapping_and_dense());
    assert!(Layout::scalar().is_non_overlapping_and_dense());
    assert!(!t.slice(2, None, None, 2).unwrap().is_non_overlapping_and_dense());
    assert!(!fresh(&[3, 1]).expand(&[3, 4]).unwrap().is_non_overlapping_and_dense());
    assert!(!t.reversed(&[0]).unwrap().is_non_overlapping_and_dense());
    assert!(!t.slice(1, Some(1), None, 1).unwrap().is_non_overlapping_and_dense());
}

#[test]
fn unsqueeze_strides() {
    let t = fresh(&[2, 3, 4]);
    is(&t.unsqueeze(0).unwrap(), &[1, 2, 3, 4], &[24, 12, 4, 1]);
    is(&t.unsqueeze(1).unwrap(), &[2, 1, 3, 4], &[12, 12, 4, 1]);
    is(&t.unsqueeze(3).unwrap(), &[2, 3, 4, 1], &[12, 4, 1, 1]);
    is(&t.unsqueeze(-1).unwrap(), &[2, 3, 4, 1], &[12, 4, 1, 1]);
    refused(t.unsqueeze(4), ErrorKind::Dim, "range of [-4, 3], but got 4");
    is(&Layout::scalar().unsqueeze(0).unwrap(), &[1], &[1]);
    refused(fresh(&[1; MAX_RANK]).unsqueeze(0), ErrorKind::Shape, "at most 8 dimensions");
}

#[test]
fn construction_is_checked() {
    refused(Layout::contiguous(&[1; 9]), ErrorKind::Shape, "this one would have 9");
    refused(Layout::contiguous(&[1 << 40, 1 << 40]), ErrorKind::Overflow, "");
    refused(Layout::contiguous(&[0, 1 << 40, 1 << 40]), ErrorKind::Overflow, "");
    refused(Layout::contiguous(&[usize::MAX]), ErrorKind::Overflow, "");
    refused(Layout::new(&[2, 3], &[1], 0), ErrorKind::Shape, "mismatch in length of strides and shape");
    refused(Layout::new(&[3], &[-1], 1), ErrorKind::Argument, "negative index -1");
    assert!(Layout::new(&[3], &[-1], 2).is_ok());
    refused(Layout::new(&[3], &[isize::MAX], 0), ErrorKind::Overflow, "");
    refused(Layout::new(&[2], &[1], usize::MAX), ErrorKind::Overflow, "");
    // Nothing is reached, so nothing is wrong.
    assert!(Layout::new(&[0, 3], &[isize::MIN, isize::MAX], 7).is_ok());
    assert_eq!(Layout::new(&[3, 2], &[-2, 5], 4).unwrap().span(), Some((0, 9)));
    assert_eq!(fresh(&[0, 2]).span(), None);
    let l = strided(&[3, 2], &[4, 1]);
    assert!(l.fits(10) && !l.fits(9) && fresh(&[0]).fits(0));
    assert_eq!(l.with_offset(5).unwrap().span(), Some((5, 14)));
    assert_eq!(&*l.byte_strides(4), [16, 4]);
}

// A2 ----------------------------------------------------------------------------------------------

#[test]
fn views() {
    let a = fresh(&[2, 3, 4]);
    let ok = |l: Layout, sizes: &[i64], strides: &[isize]| {
        let v = l.view(sizes).unwrap();
        assert_eq!(v.strides(), strides, "view {sizes:?} of {l:?}");
        assert_eq!(v.offset(), l.offset());
        assert_eq!(l.try_view(v.sizes()), Some(v));
    };
    let no = |l: Layout, sizes: &[usize]| {
        let wanted: Vec<i64> = sizes.iter().map(|&s| s as i64).collect();
        refused(l.view(&wanted), ErrorKind::NotViewable, &format!("strides {:?}", l.strides()));
        assert_eq!(l.try_view(sizes), None);
    };
    ok(fresh(&[3, 4]), &[2, 6], &[6, 1]);
    ok(a, &[6, 4], &[4, 1]);
    no(a.permute(&[2, 1, 0]).unwrap(), &[4, 6]);
    ok(a.permute(&[1, 2, 0]).unwrap(), &[12, 2], &[1, 12]);
    no(a.permute(&[0, 2, 1]).unwrap(), &[2, 12]);
    no(a.transpose(0, 2).unwrap(), &[24]);
    no(fresh(&[3, 1]).expand(&[3, 4]).unwrap(), &[12]);
    no(fresh(&[1, 3]).expand(&[2, 3]).unwrap(), &[6]);
    ok(fresh(&[1]).expand(&[4, 5]).unwrap(), &[20], &[0]);
    let part = a.slice(1, None, Some(2), 1).unwrap();
    ok(part, &[2, 8], &[12, 1]);
    no(part, &[16]);
    let step = a.slice(2, None, None, 2).unwrap();
    ok(step, &[12], &[2]);
    ok(step, &[6, 2], &[4, 2]);
    ok(step, &[2, 3, 1, 2, 1], &[12, 4, 4, 2, 2]);
    let p = a.permute(&[1, 0, 2]).unwrap();
    ok(p, &[3, 2, 2, 2], &[4, 12, 2, 1]);
    no(p, &[3, 8]);
    ok(fresh(&[0, 3]), &[3, 0], &[1, 1]);
    ok(fresh(&[0, 3]), &[-1, 3], &[3, 1]);
    ok(fresh(&[2, 0, 3]).transpose(0, 2).unwrap(), &[3, 0, 2], &[1, 3, 3]);
    let cl = channels_last(&[2, 3, 4, 5]);
    ok(cl, &[2, 3, 20], &[60, 1, 3]);
    no(cl, &[2, 60]);
    ok(Layout::scalar(), &[1, 1], &[1, 1]);
    ok(fresh(&[1]), &[], &[]);
    // Signed strides: a reversed array still splits.
    ok(fresh(&[6]).reversed(&[0]).unwrap(), &[2, 3], &[-3, -1]);
    ok(fresh(&[2, 3]).reversed(&[0, 1]).unwrap(), &[6], &[-1]);
    no(fresh(&[2, 3]).reversed(&[0]).unwrap(), &[6]);
}

#[test]
fn view_errors() {
    let a = fresh(&[2, 3, 4]);
    refused(fresh(&[0, 3]).view(&[-1, 0]), ErrorKind::Shape, "can be any value and is ambiguous");
    refused(a.view(&[-1, -1]), ErrorKind::Shape, "only one dimension can be inferred");
    refused(a.view(&[-2, 12]), ErrorKind::Shape, "invalid shape dimension -2 at index 0");
    refused(a.view(&[5, 5]), ErrorKind::Shape, "shape '[5, 5]' is invalid for input of size 24");
    refused(a.view(&[-1, 5]), ErrorKind::Shape, "shape '[-1, 5]' is invalid for input of size 24");
    refused(a.view(&[i64::MAX, i64::MAX]), ErrorKind::Shape, "is invalid for input of size 24");
    refused(a.view(&[1; 9]), ErrorKind::Shape, "at most 8 dimensions");
    refused(fresh(&[0]).view(&[0, i64::MAX, i64::MAX]), ErrorKind::Overflow, "");
    let e = a.permute(&[0, 2, 1]).unwrap().view(&[2, 12]).unwrap_err().to_string();
    for part in [
        "sizes [2, 12]",
        "sizes [2, 4, 3] with strides [12, 1, 4]",
        "new dimension 1 (size 12) spans dimensions 1 and 2",
        "blocks [2, 4, 3]",
        "reshape() copies",
    ] {
        assert!(e.contains(part), "{e} lacks {part}");
    }
}

#[test]
fn view_blocks() {
    let a = fresh(&[2, 3, 4]);
    assert_eq!(&*a.view_blocks(), [24]);
    assert_eq!(&*a.permute(&[1, 2, 0]).unwrap().view_blocks(), [12, 2]);
    assert_eq!(&*a.slice(1, None, Some(2), 1).unwrap().view_blocks(), [2, 8]);
    assert_eq!(&*fresh(&[1]).expand(&[4, 5]).unwrap().view_blocks(), [20]);
    assert_eq!(&*fresh(&[2, 0, 3]).view_blocks(), [0]);
    assert!(Layout::scalar().view_blocks().is_empty());
}

#[test]
fn flatten_and_unflatten() {
    let a = fresh(&[2, 3, 4]);
    assert_eq!(&*a.flatten_sizes(0, -1).unwrap(), [24]);
    assert_eq!(&*a.flatten_sizes(1, 2).unwrap(), [2, 12]);
    assert_eq!(&*a.flatten_sizes(1, 1).unwrap(), [2, 3, 4]);
    assert_eq!(&*Layout::scalar().flatten_sizes(0, -1).unwrap(), [1]);
    refused(a.flatten_sizes(2, 1), ErrorKind::Dim, "start_dim cannot come after end_dim");
    refused(a.flatten_sizes(0, 3), ErrorKind::Dim, "out of range");
    is(&a.unflatten(2, &[2, -1]).unwrap(), &[2, 3, 2, 2], &[12, 4, 2, 1]);
    is(&a.t_like().unflatten(0, &[2, 2]).unwrap(), &[2, 2, 3, 2], &[2, 1, 4, 12]);
    refused(a.unflatten(1, &[2, 2]), ErrorKind::Shape, "shape '[2, 2]' is invalid for input of size 3");
    refused(a.unflatten(1, &[]), ErrorKind::Shape, "non-empty");
    refused(a.unflatten(1, &[1, 1, 1, 1, 1, 3, 1]), ErrorKind::Shape, "at most 8");
    refused(Layout::scalar().unflatten(0, &[1]), ErrorKind::Dim, "0-dim");
}

trait TransposeAll {
    fn t_like(&self) -> Layout;
}
impl TransposeAll for Layout {
    fn t_like(&self) -> Layout {
        let dims: Vec<i64> = (0..self.rank() as i64).rev().collect();
        self.permute(&dims).unwrap()
    }
}

#[test]
fn bitcasts() {
    is(&fresh(&[2, 3]).bitcast(4, 1).unwrap(), &[2, 12], &[12, 1]);
    is(&fresh(&[2, 4]).bitcast(2, 4).unwrap(), &[2, 2], &[2, 1]);
    let t = fresh(&[4, 2]).t().unwrap();
    assert_eq!(t.bitcast(4, 4).unwrap(), t);
    refused(t.bitcast(4, 2), ErrorKind::NotViewable, "last stride must be 1");
    refused(fresh(&[2, 3]).bitcast(2, 4), ErrorKind::NotViewable, "last size must be divisible by 2");
    refused(
        strided(&[2, 2], &[3, 1]).bitcast(2, 4),
        ErrorKind::NotViewable,
        "stride of dimension 0 must be divisible by 2",
    );
    refused(
        Layout::new(&[2], &[1], 1).unwrap().bitcast(2, 4),
        ErrorKind::NotViewable,
        "offset must be divisible by 2, got 1",
    );
    refused(Layout::scalar().bitcast(4, 1), ErrorKind::NotViewable, "0-dim");
    refused(fresh(&[2]).bitcast(4, 0), ErrorKind::Argument, "");
    let l = Layout::new(&[2, 2], &[-4, 1], 6).unwrap();
    let narrow = l.bitcast(4, 2).unwrap();
    is(&narrow, &[2, 4], &[-8, 1]);
    assert_eq!(narrow.offset(), 12);
    assert_eq!(narrow.bitcast(2, 4).unwrap(), l);
}

// A3 ----------------------------------------------------------------------------------------------

/// sizes; then for fresh, the result of `contiguous(ChannelsLast)`, and NHWC memory permuted: row-major? channels_last?
/// strides, and whether the strides suggest channels_last.
#[test]
fn channels_last_table() {
    type Row = (bool, bool, [isize; 4], bool);
    let (t, f) = (true, false);
    let table: &[([usize; 4], Row, Row, Row)] = &[
        ([2, 3, 4, 5], (t, f, [60, 20, 5, 1], f), (f, t, [60, 1, 15, 3], t), (f, t, [60, 1, 15, 3], t)),
        ([2, 1, 4, 5], (t, t, [20, 20, 5, 1], f), (t, t, [20, 20, 5, 1], f), (t, t, [20, 1, 5, 1], t)),
        ([2, 3, 1, 1], (t, t, [3, 1, 1, 1], f), (t, t, [3, 1, 1, 1], f), (t, t, [3, 1, 3, 3], t)),
        ([1, 3, 1, 1], (t, t, [3, 1, 1, 1], f), (t, t, [3, 1, 1, 1], f), (t, t, [3, 1, 3, 3], t)),
        ([2, 1, 1, 1], (t, t, [1, 1, 1, 1], f), (t, t, [1, 1, 1, 1], f), (t, t, [1, 1, 1, 1], f)),
        ([2, 3, 1, 5], (t, f, [15, 5, 5, 1], f), (f, t, [15, 1, 15, 3], t), (f, t, [15, 1, 15, 3], t)),
        ([0, 3, 4, 5], (t, f, [60, 20, 5, 1], f), (t, t, [60, 1, 15, 3], f), (t, t, [60, 1, 15, 3], f)),
        ([2, 0, 4, 5], (t, f, [20, 20, 5, 1], f), (t, t, [0, 1, 0, 0], f), (t, f, [20, 1, 5, 1], f)),
    ];
    let check = |what: &str, l: Layout, (row, cl, strides, suggests): Row| {
        assert_eq!(l.strides(), strides, "{what} of {:?}", l.sizes());
        assert_eq!(l.is_contiguous(), row, "{what} of {:?}", l.sizes());
        assert_eq!(l.is_channels_last_contiguous(), cl, "{what} of {:?}", l.sizes());
        assert_eq!(l.is_contiguous_in(ChannelsLast), cl);
        assert_eq!(l.is_contiguous_in(Contiguous), row);
        let format = if suggests { ChannelsLast } else { Contiguous };
        assert_eq!(l.suggested_format(), format, "{what} of {:?}", l.sizes());
    };
    for &(sizes, a, b, c) in table {
        let l = fresh(&sizes);
        check("fresh", l, a);
        let made = if l.is_contiguous_in(ChannelsLast) { l } else { l.in_format(ChannelsLast).unwrap() };
        check("contiguous(CL)", made, b);
        let [n, ch, h, w] = sizes;
        check("permuted NHWC", fresh(&[n, h, w, ch]).permute(&[0, 3, 1, 2]).unwrap(), c);
        if ch > 0 {
            check("empty(CL)", channels_last(&sizes), c);
        }
    }
    assert!(!fresh(&[3, 4, 5]).is_channels_last_contiguous());
    refused(fresh(&[3, 4, 5]).in_format(ChannelsLast), ErrorKind::Shape, "required rank 4 tensor");
    assert_eq!(fresh(&[3, 4, 5]).suggested_format(), Contiguous);
}

#[test]
fn strides_carry_the_format_for_every_shape_but_n111() {
    for code in 0..256usize {
        let sizes = [code % 4 + 1, code / 4 % 4 + 1, code / 16 % 4 + 1, code / 64 + 1];
        assert_eq!(fresh(&sizes).suggested_format(), Contiguous, "{sizes:?}");
        let l = channels_last(&sizes);
        let n111 = sizes[1..] == [1, 1, 1];
        assert_eq!(l.suggested_format() == ChannelsLast, !n111, "{sizes:?}");
        assert!(l.is_channels_last_contiguous());
    }
}

#[test]
fn suggestion_follows_views() {
    let cl = channels_last(&[2, 3, 4, 5]);
    let format = |l: Result<Layout>| l.unwrap().suggested_format();
    assert_eq!(format(cl.slice(1, None, Some(2), 1)), ChannelsLast);
    assert_eq!(format(cl.slice(2, None, None, 2)), ChannelsLast);
    // PyTorch's rule: an odd width that is stepped over overhangs its row (3 * 6 > 15) and is no longer recognised.
    assert_eq!(format(cl.slice(3, None, None, 2)), Contiguous);
    assert_eq!(format(channels_last(&[2, 3, 4, 4]).slice(3, None, None, 2)), ChannelsLast);
    assert_eq!(format(cl.permute(&[0, 2, 3, 1])), Contiguous);
    assert_eq!(format(cl.reversed(&[1])), Contiguous);
    assert_eq!(format(fresh(&[2, 1, 4, 5]).expand(&[2, 3, 4, 5])), Contiguous);
    // N11W sliced on W, and a transposed 1C1W: ambiguous, hence contiguous.
    assert_eq!(strided(&[2, 1, 1, 1], &[5, 5, 5, 5]).suggested_format(), Contiguous);
    assert_eq!(format(fresh(&[1, 3, 1, 4]).transpose(1, 3)), Contiguous);
}

// A4 ----------------------------------------------------------------------------------------------

fn result(operands: &[&Layout]) -> Layout {
    let shapes: Vec<&[usize]> = operands.iter().map(|l| l.sizes()).collect();
    let sizes = broadcast_sizes("add", &shapes).unwrap();
    let out = Layout::result_of(operands, &sizes).unwrap();
    assert_eq!((out.sizes(), out.offset()), (&sizes[..], 0));
    assert!(out.is_non_overlapping_and_dense());
    // Operands that come broadcast already give the same.
    let wide: Vec<Layout> = operands.iter().map(|l| l.broadcast_to(&sizes).unwrap()).collect();
    let again = Layout::result_of(&wide.iter().collect::<Vec<_>>(), &sizes).unwrap();
    if sizes.iter().all(|&s| s > 1) {
        assert_eq!(again, out);
    }
    out
}

#[test]
fn results_in_channels_last() {
    let sizes = [2, 3, 4, 5];
    let (x, y) = (channels_last(&sizes), fresh(&sizes));
    let ones = |s: &[usize]| fresh(s);
    let cl: &[&[&Layout]] = &[
        &[&x, &y],
        &[&x],
        &[&x, &x],
        &[&x, &Layout::scalar()],
        &[&x, &ones(&[3, 1, 1])],
        &[&ones(&[1, 3, 1, 1]), &x],
        &[&ones(&[2, 1, 1, 1]).expand(&[2, 3, 4, 5]).unwrap(), &x],
        &[&x, &x, &y], // where(x > 0, x, y)
    ];
    for operands in cl {
        is(&result(operands), &sizes, &[60, 1, 15, 3]);
    }
    for operands in [&[&y, &x][..], &[&y], &[&ones(&[1, 3, 1, 1]), &y]] {
        is(&result(operands), &sizes, &[60, 20, 5, 1]);
    }
    // One channel: both are row-contiguous, so the mark is lost in either order.
    let (x, y) = (channels_last(&[2, 1, 4, 5]), fresh(&[2, 1, 4, 5]));
    is(&result(&[&x, &y]), &[2, 1, 4, 5], &[20, 20, 5, 1]);
    is(&result(&[&y, &x]), &[2, 1, 4, 5], &[20, 20, 5, 1]);
    // With a number, a 0-dim operand to PyTorch, the strides decide and keep the mark (equal ones: larger size outside).
    is(&result(&[&x, &Layout::scalar()]), &[2, 1, 4, 5], &[20, 1, 5, 1]);
    // All channels_last: canonical strides, whatever those of size-1 dims are.
    is(&result(&[&strided(&[2, 3, 1, 5], &[15, 1, 999, 3])]), &[2, 3, 1, 5], &[15, 1, 15, 3]);
    // A slice of the channels, then + 1.
    let x = channels_last(&[2, 3, 4, 5]).slice(1, None, Some(2), 1).unwrap();
    is(&result(&[&x]), &[2, 2, 4, 5], &[40, 1, 10, 2]);
}

#[test]
fn results_in_the_order_of_the_operands() {
    let a = fresh(&[2, 3, 4]);
    let permuted = a.permute(&[2, 0, 1]).unwrap();
    let contiguous = fresh(&[4, 2, 3]);
    is(&result(&[&permuted]), &[4, 2, 3], &[1, 12, 4]);
    is(&result(&[&permuted, &contiguous]), &[4, 2, 3], &[1, 12, 4]);
    is(&result(&[&contiguous, &permuted]), &[4, 2, 3], &[6, 3, 1]);
    is(&result(&[&a.slice(2, None, None, 2).unwrap()]), &[2, 3, 2], &[6, 2, 1]);
    let t = a.transpose(0, 2).unwrap().slice(0, None, None, 2).unwrap();
    is(&result(&[&t]), &[2, 3, 2], &[1, 2, 6]);
    is(&result(&[&strided(&[1, 4], &[999, 1])]), &[1, 4], &[4, 1]);
    is(&result(&[&a.reversed(&[0, 2]).unwrap()]), &[2, 3, 4], &[12, 4, 1]);
    is(&result(&[&permuted.reversed(&[1]).unwrap()]), &[4, 2, 3], &[1, 12, 4]);
    is(&result(&[&fresh(&[2, 0, 3])]), &[2, 0, 3], &[3, 3, 1]);
    is(&result(&[&Layout::scalar(), &Layout::scalar()]), &[], &[]);
    is(&Layout::result_of(&[], &[2, 3]).unwrap(), &[2, 3], &[3, 1]);
    refused(
        Layout::result_of(&[&a], &[2, 3, 5]),
        ErrorKind::Shape,
        "[2, 3, 4] does not broadcast to [2, 3, 5]",
    );
}

#[test]
fn results_of_reductions_are_row_major() {
    let x = channels_last(&[2, 3, 4, 5]);
    let over = |dims: &[i64], keepdim| x.reduce_result(&wrap_dims("sum", dims, 4).unwrap(), keepdim);
    is(&over(&[2, 3], true), &[2, 3, 1, 1], &[3, 1, 1, 1]);
    is(&over(&[1], true), &[2, 1, 4, 5], &[20, 20, 5, 1]);
    is(&over(&[1], false), &[2, 4, 5], &[20, 5, 1]);
    is(&over(&[0, 1, 2, 3], false), &[], &[]);
    is(&over(&[], false), &[2, 3, 4, 5], &[60, 20, 5, 1]);
}

// A5 ----------------------------------------------------------------------------------------------

#[test]
fn preserve_format() {
    let a = fresh(&[2, 3, 4]);
    let step = a.slice(2, None, None, 2).unwrap();
    is(&a.permute(&[2, 0, 1]).unwrap().dense_like(), &[4, 2, 3], &[1, 12, 4]);
    is(&step.dense_like(), &[2, 3, 2], &[6, 2, 1]);
    is(&step.permute(&[2, 0, 1]).unwrap().dense_like(), &[2, 2, 3], &[1, 6, 2]);
    is(&fresh(&[3, 1]).expand(&[3, 4]).unwrap().dense_like(), &[3, 4], &[4, 1]);
    let expanded = fresh(&[2, 1, 4]).expand(&[2, 3, 4]).unwrap().permute(&[2, 0, 1]).unwrap();
    is(&expanded.dense_like(), &[4, 2, 3], &[3, 12, 1]);
    is(&strided(&[1, 4], &[999, 1]).dense_like(), &[1, 4], &[999, 1]);
    assert_eq!(a.permute(&[1, 0, 2]).unwrap().with_offset(9).unwrap().dense_like().offset(), 0);
    is(&a.reversed(&[0, 1, 2]).unwrap().dense_like(), &[2, 3, 4], &[12, 4, 1]);
    is(&channels_last(&[2, 1, 4, 5]).dense_like(), &[2, 1, 4, 5], &[20, 1, 5, 1]);
}

// A7 ----------------------------------------------------------------------------------------------

#[test]
fn slices() {
    let r = fresh(&[5]);
    let s = |start: Option<i64>, end: Option<i64>, step: i64| {
        let l = r.slice(0, start, end, step).unwrap();
        (l.size(0), l.strides()[0], l.offset())
    };
    assert_eq!(s(Some(3), Some(100), 1), (2, 1, 3));
    assert_eq!(s(Some(4), Some(2), 1), (0, 1, 4));
    assert_eq!(s(Some(-100), Some(2), 1), (2, 1, 0));
    assert_eq!(s(None, None, 2), (3, 2, 0));
    assert_eq!(s(Some(1), None, i64::MAX), (1, isize::MAX, 1));
    assert_eq!(s(None, None, -1), (5, -1, 4));
    assert_eq!(s(Some(4), Some(0), -2), (2, -2, 4));
    assert_eq!(s(Some(100), Some(-100), -3), (2, -3, 4));
    assert_eq!(s(Some(0), Some(4), -1), (0, -1, 0));
    assert_eq!(s(Some(-2), None, i64::MIN), (1, isize::MIN, 3));
    assert_eq!(s(Some(i64::MIN), Some(i64::MAX), 1), (5, 1, 0));
    refused(r.slice(0, None, None, 0), ErrorKind::Argument, "slice step cannot be zero");
    refused(Layout::scalar().slice(0, None, None, 1), ErrorKind::Dim, "0-dim");
    refused(r.slice(1, None, None, 1), ErrorKind::Dim, "range of [-1, 0], but got 1");
    // NumPy: arange(6)[::-1].reshape(2, 3).
    let v = fresh(&[6]).slice(0, None, None, -1).unwrap().view(&[2, 3]).unwrap();
    is(&v, &[2, 3], &[-3, -1]);
    assert_eq!(v.offsets().collect::<Vec<_>>(), [5, 4, 3, 2, 1, 0]);
}

#[test]
fn narrow_and_select() {
    let r = fresh(&[5]);
    let n = |start, len| r.narrow(0, start, len).map(|l| (l.size(0), l.offset()));
    assert_eq!(n(-2, 2).unwrap(), (2, 3));
    assert_eq!(n(5, 0).unwrap().0, 0);
    assert_eq!(n(1, 3).unwrap(), (3, 1));
    refused(n(3, 3), ErrorKind::Index, "start (3) + length (3) exceeds dimension size (5)");
    refused(n(1, i64::MAX), ErrorKind::Index, "exceeds dimension size (5)");
    refused(n(0, -1), ErrorKind::Argument, "narrow: length must be non-negative");
    refused(n(6, 0), ErrorKind::Index, "start 6");
    refused(n(i64::MIN, 0), ErrorKind::Index, "start");
    refused(Layout::scalar().narrow(0, 0, 0), ErrorKind::Dim, "narrow() cannot be applied to a 0-dim tensor");
    let a = fresh(&[2, 3, 4]);
    let s = a.select(1, -1).unwrap();
    is(&s, &[2, 4], &[12, 1]);
    assert_eq!(s.offset(), 8);
    for i in [3, -4, i64::MIN, i64::MAX] {
        refused(
            a.select(1, i),
            ErrorKind::Index,
            &format!("index {i} out of range for tensor of size [2, 3, 4] at dimension 1"),
        );
    }
    refused(Layout::scalar().select(0, 0), ErrorKind::Dim, "0-dim");
}

#[test]
fn dims_wrap() {
    assert_eq!((wrap_dim("x", -1, 0).unwrap(), wrap_dim("x", 0, 0).unwrap()), (0, 0));
    refused(
        wrap_dim("x", 1, 0),
        ErrorKind::Dim,
        "dimension out of range (expected to be in range of [-1, 0], but got 1)",
    );
    assert_eq!((wrap_dim("x", -3, 3).unwrap(), wrap_dim("x", 2, 3).unwrap()), (0, 2));
    refused(wrap_dim("x", i64::MIN, 3), ErrorKind::Dim, "[-3, 2]");
    assert_eq!(&*wrap_dims("x", &[-1, 0], 3).unwrap(), [true, false, true]);
    refused(wrap_dims("x", &[1, -2], 3), ErrorKind::Dim, "multiple times");
    assert!(wrap_dims("x", &[-1], 0).unwrap().is_empty());
    refused(wrap_dims("x", &[-1, 0], 0), ErrorKind::Dim, "multiple times");
    assert_eq!(&*infer_sizes("x", &[2, -1], 6).unwrap(), [2, 3]);
}

#[test]
fn parts() {
    let a = fresh(&[2, 5]);
    let shape = |v: Result<Vec<Layout>>| -> Vec<(usize, usize)> {
        v.unwrap().iter().map(|l| (l.size(1), l.offset())).collect()
    };
    assert_eq!(shape(a.split(&[2, 0, 3], 1)), [(2, 0), (0, 2), (3, 2)]);
    assert_eq!(shape(a.split_size(2, -1)), [(2, 0), (2, 2), (1, 4)]);
    assert_eq!(shape(a.split_size(9, 1)), [(5, 0)]);
    assert_eq!(shape(a.chunk(2, 1)), [(3, 0), (2, 3)]);
    assert_eq!(shape(a.chunk(4, 1)), [(2, 0), (2, 2), (1, 4)]); // three, as in PyTorch
    assert_eq!(shape(a.chunk(i64::MAX, 1)).len(), 5);
    assert_eq!(fresh(&[0]).chunk(3, 0).unwrap().len(), 3);
    assert_eq!(fresh(&[0]).split_size(0, 0).unwrap().len(), 1);
    let u = a.unbind(1).unwrap();
    assert_eq!(u.len(), 5);
    is(&u[3], &[2], &[5]);
    assert_eq!(u[3].offset(), 3);
    assert!(fresh(&[0, 2]).unbind(0).unwrap().is_empty());
    refused(a.split(&[2, 2], 1), ErrorKind::Argument, "sum exactly to 5");
    refused(a.split(&[-1, 6], 1), ErrorKind::Argument, "non-negative");
    refused(a.split(&[i64::MAX, i64::MAX], 1), ErrorKind::Argument, "sum exactly");
    refused(a.split_size(0, 1), ErrorKind::Argument, "split size of 0");
    refused(a.split_size(-1, 1), ErrorKind::Argument, "non-negative");
    refused(a.chunk(0, 1), ErrorKind::Argument, "greater than 0");
    refused(fresh(&[0]).chunk(i64::MAX, 0), ErrorKind::OutOfMemory, "views");
    for e in [Layout::scalar().unbind(0), Layout::scalar().split(&[1], 0), Layout::scalar().chunk(1, 0)] {
        refused(e, ErrorKind::Dim, "0-dim");
    }
}

// A8 ----------------------------------------------------------------------------------------------

#[test]
fn expansion() {
    is(&fresh(&[3]).expand(&[1, 3]).unwrap(), &[1, 3], &[3, 1]);
    is(&fresh(&[3, 1]).expand(&[3, 1]).unwrap(), &[3, 1], &[1, 1]);
    is(&fresh(&[2, 3]).expand(&[4, -1, -1]).unwrap(), &[4, 2, 3], &[0, 3, 1]);
    assert_eq!(&*fresh(&[2, 3]).expand(&[4, 2, 3]).unwrap().byte_strides(4), [0, 12, 4]);
    is(&fresh(&[3, 1]).expand(&[3, 0]).unwrap(), &[3, 0], &[1, 0]);
    is(&Layout::scalar().expand(&[2, 3]).unwrap(), &[2, 3], &[0, 0]);
    is(&fresh(&[1]).broadcast_to(&[4, 5]).unwrap(), &[4, 5], &[0, 0]);
    refused(fresh(&[0]).expand(&[4]), ErrorKind::Shape, "existing size (0) at non-singleton dimension 0");
    refused(
        fresh(&[2, 3]).expand(&[-1, 2, 3]),
        ErrorKind::Shape,
        "the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
    );
    refused(
        fresh(&[3, 2]).expand(&[3, 4]),
        ErrorKind::Shape,
        "the expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1. \
         Target sizes: [3, 4]. Tensor sizes: [3, 2]",
    );
    refused(
        fresh(&[2, 3]).expand(&[3]),
        ErrorKind::Shape,
        "must be greater or equal to the number of dimensions",
    );
    refused(fresh(&[1, 3]).expand(&[-2, 3]), ErrorKind::Shape, "invalid size -2 at index 0");
    refused(fresh(&[1]).expand(&[i64::MAX, 4]), ErrorKind::Overflow, "");
    refused(fresh(&[1]).expand(&[1; 9]), ErrorKind::Shape, "at most 8");
    is(&fresh(&[1, 3, 1]).squeeze(None).unwrap(), &[3], &[1]);
    is(&fresh(&[1, 3, 1]).squeeze(Some(&[0, 1])).unwrap(), &[3, 1], &[1, 1]);
    refused(fresh(&[1, 3]).squeeze(Some(&[0, -2])), ErrorKind::Dim, "multiple times");
}

#[test]
fn broadcasting() {
    let b = |shapes: &[&[usize]]| broadcast_sizes("add", shapes).map(|d| d.to_vec());
    assert_eq!(b(&[&[2, 1], &[3]]).unwrap(), [2, 3]);
    assert_eq!(b(&[&[0], &[1]]).unwrap(), [0]);
    assert_eq!(b(&[&[], &[2, 0]]).unwrap(), [2, 0]);
    assert_eq!(b(&[&[3, 1, 1], &[1, 4, 1], &[5]]).unwrap(), [3, 4, 5]);
    assert!(b(&[]).unwrap().is_empty());
    refused(
        b(&[&[0], &[3]]),
        ErrorKind::Shape,
        "the size of tensor a (0) must match the size of tensor b (3) at non-singleton dimension 0",
    );
    refused(
        b(&[&[1, 1], &[2, 3], &[4, 2]]),
        ErrorKind::Shape,
        "the size of tensor b (2) must match the size of tensor c (4) at non-singleton dimension 0; the shapes are \
         [1, 1], [2, 3], [4, 2]",
    );
    refused(
        b(&[&[5, 2], &[3]]),
        ErrorKind::Shape,
        "tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1",
    );
    refused(b(&[&[1 << 40, 1], &[1 << 40]]), ErrorKind::Overflow, "");
    refused(b(&[&[1; 9]]), ErrorKind::Shape, "at most 8");
}

// A9 ----------------------------------------------------------------------------------------------

#[test]
fn unfold() {
    is(&fresh(&[10]).unfold(0, 3, 2).unwrap(), &[4, 3], &[2, 1]);
    is(&fresh(&[3]).unfold(0, 0, 1).unwrap(), &[4, 0], &[1, 1]);
    is(&Layout::scalar().unfold(0, 1, 1).unwrap(), &[1], &[1]);
    is(&fresh(&[4, 5]).unfold(0, 2, 1).unwrap(), &[3, 5, 2], &[5, 1, 5]);
    refused(
        fresh(&[3]).unfold(0, 4, 1),
        ErrorKind::Argument,
        "maximum size for tensor at dimension 0 is 3 but size is 4",
    );
    refused(fresh(&[3]).unfold(0, 2, 0), ErrorKind::Argument, "step is 0 but must be > 0");
    refused(fresh(&[3]).unfold(0, -1, 1), ErrorKind::Argument, "size is -1");
    refused(fresh(&[1; 8]).unfold(0, 1, 1), ErrorKind::Shape, "at most 8");
}

#[test]
fn diagonal() {
    let m = fresh(&[3, 4]);
    let d = |offset| {
        let l = m.diagonal(offset, 0, 1).unwrap();
        (l.size(0), l.strides()[0], l.offset())
    };
    assert_eq!((d(0), d(1), d(3), d(-2)), ((3, 5, 0), (3, 5, 1), (1, 5, 3), (1, 5, 8)));
    assert_eq!((d(5), d(-3), d(i64::MIN), d(i64::MAX)), ((0, 5, 0), (0, 5, 0), (0, 5, 0), (0, 5, 0)));
    is(&fresh(&[2, 3, 4]).diagonal(0, 2, 0).unwrap(), &[3, 2], &[4, 13]);
    refused(m.diagonal(0, 1, -1), ErrorKind::Dim, "cannot be identical");
    refused(fresh(&[3]).diagonal(0, 0, 1), ErrorKind::Dim, "out of range");
}

#[test]
fn as_strided() {
    let part = fresh(&[6]).slice(0, Some(2), Some(4), 1).unwrap();
    let all = part.as_strided(&[6], &[1], Some(0)).unwrap();
    assert_eq!((all.offset(), all.fits(6)), (0, true));
    assert_eq!(part.as_strided(&[2, 2], &[1, 1], None).unwrap().offset(), 2);
    assert_eq!(part.as_strided(&[0], &[1], Some(99)).unwrap().offset(), 99);
    assert!(!fresh(&[6]).as_strided(&[100], &[1], None).unwrap().fits(6));
    refused(part.as_strided(&[2], &[-1], None), ErrorKind::Argument, "negative strides are not supported");
    refused(
        part.as_strided(&[2], &[1, 1], None),
        ErrorKind::Shape,
        "mismatch in length of strides and shape",
    );
    refused(part.as_strided(&[-1], &[1], None), ErrorKind::Argument, "sizes must be non-negative");
    refused(part.as_strided(&[1], &[1], Some(-1)), ErrorKind::Argument, "offset must be non-negative");
    refused(part.as_strided(&[i64::MAX], &[i64::MAX], None), ErrorKind::Overflow, "");
    refused(part.as_strided(&[1; 9], &[1; 9], None), ErrorKind::Shape, "at most 8");
}

#[test]
fn moving_dims() {
    let a = fresh(&[2, 3, 4]);
    is(&a.movedim(&[0], &[-1]).unwrap(), &[3, 4, 2], &[4, 1, 12]);
    is(&a.movedim(&[2, 0], &[0, 1]).unwrap(), &[4, 2, 3], &[1, 12, 4]);
    refused(a.movedim(&[0, 1], &[0]), ErrorKind::Dim, "same number of dimensions");
    refused(a.movedim(&[0, -3], &[0, 1]), ErrorKind::Dim, "multiple times");
    refused(a.permute(&[0, 1]), ErrorKind::Dim, "has 3 dimensions");
    refused(a.permute(&[0, 1, 1]), ErrorKind::Dim, "multiple times");
    refused(a.permute(&[0, 1, 3]), ErrorKind::Dim, "out of range");
    refused(a.t(), ErrorKind::Dim, "at most 2 dimensions, but got 3");
    assert_eq!(fresh(&[3]).t().unwrap(), fresh(&[3]));
    assert_eq!(Layout::scalar().transpose(0, -1).unwrap(), Layout::scalar());
    assert_eq!(Layout::scalar().permute(&[]).unwrap(), Layout::scalar());
    let r = a.reversed(&[-1, 0]).unwrap();
    is(&r, &[2, 3, 4], &[-12, 4, -1]);
    assert_eq!(r.offset(), 15);
    assert_eq!(MemoryFormat::default(), Contiguous);
}
