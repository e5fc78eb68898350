//! A tour of strides: what views do to storage, layout and gradients.
//!
//! `cargo run --bin strides` prints all of it, `--section NAME` one section, `--list` their names.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;
use stridegrad::audit::{Audit, deny_copies};
use stridegrad::prelude::*;

/// What view, permute, expand, slice and reshape do to storage, strides and gradients.
#[derive(Parser)]
struct Options {
    /// Print only this section (its name or number)
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    /// Print the sections' names
    #[arg(long)]
    list: bool,
}

type Section = (&'static str, &'static str, fn());

const SECTIONS: &[Section] = &[
    ("storage", "A storage, and a layout that reads it", storage),
    ("view", "Other sizes over the same storage", view),
    ("permute", "Dims in another order", permute),
    ("reshape", "When a view is not enough", reshape),
    ("slice", "Parts of a dim", slice),
    ("expand", "One cell in many places", expand),
    ("windows", "Windows and diagonals", windows),
    ("formats", "Memory formats", formats),
    ("writes", "Writing through views", writes),
    ("gradients", "Gradients flow back along the strides", gradients),
    ("in-place", "Writes that the graph follows", in_place),
    ("copies", "Copies that nobody asked for", copies),
    ("dtypes", "The dtype of a sum", dtypes),
];

/// Shows a line of source and does it: `let name = value` then describes the tensor, a bare expression its value.
macro_rules! show {
    (let $name:ident = $value:expr) => {
        let $name = $value;
        println!("\n    let {} = {};", stringify!($name), stringify!($value));
        describe(&$name);
    };
    ($value:expr) => {
        println!("\n    {}", stringify!($value));
        println!("        {:?}", $value);
    };
}

/// Shows a line of source that is refused, and why.
macro_rules! refused {
    ($value:expr) => {
        println!("\n    {}", stringify!($value));
        match $value {
            Ok(_) => println!("        accepted"),
            Err(e) => println!("        {:?}: {}", e.kind(), wrapped(e.message())),
        }
    };
}

/// Shows a line of source and does it, without more.
macro_rules! run {
    ($value:expr) => {
        println!("\n    {};", stringify!($value));
        $value;
    };
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        SECTIONS.iter().for_each(|(name, title, _)| println!("{name:<10} {title}"));
        return ExitCode::SUCCESS;
    }
    let wanted = |i: usize, name: &str| {
        options.section.as_ref().is_none_or(|s| s == name || *s == (i + 1).to_string())
    };
    let mut printed = 0;
    for (i, (name, title, section)) in SECTIONS.iter().enumerate().filter(|(i, s)| wanted(*i, s.0)) {
        println!("{}{}. {title} [{name}]", if printed > 0 { "\n\n" } else { "" }, i + 1);
        section();
        printed += 1;
    }
    if printed == 0 {
        eprintln!("no such section; --list prints their names");
        return ExitCode::from(2);
    }
    ExitCode::SUCCESS
}

/// A paragraph between the lines of source.
fn say(text: &str) {
    println!("\n{}", wrap(text, 0, 100));
}

/// A message below the source line that it belongs to.
fn wrapped(text: &str) -> String {
    wrap(text, 8, 100)
}

/// `text` in lines of at most `width`, all but the first indented.
fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        if column + word.len() > width {
            lines += &format!("\n{}", " ".repeat(indent));
            column = indent;
        } else if !lines.is_empty() {
            lines.push(' ');
        }
        lines += word;
        column += word.len() + 1;
    }
    lines
}

/// A list of values, cut into rows of the tensor's last dim.
fn rows<T: Display>(t: &Tensor, values: impl IntoIterator<Item = T>) -> String {
    let width = t.sizes().last().copied().unwrap_or(1).max(1);
    let mut text = String::new();
    for (i, v) in values.into_iter().enumerate() {
        if i > 0 {
            text += if i % width == 0 { " | " } else { " " };
        }
        text += &v.to_string();
    }
    text
}

fn values(t: &Tensor) -> Vec<f64> {
    t.try_to_vec_f64().unwrap_or_default()
}

/// Sizes, strides, offset; then the storage's cells in the order this tensor reads them, and its values.
fn describe(t: &Tensor) {
    println!(
        "        {} {:?}  strides {:?}  offset {}  storage of {} bytes",
        t.dtype(),
        t.sizes(),
        t.strides(),
        t.storage_offset(),
        t.storage_bytes()
    );
    if t.numel() <= 24 {
        println!("        cells   {}", rows(t, t.layout().offsets()));
        println!("        values  {}", rows(t, values(t)));
    }
}

/// The gradient that has arrived at a leaf.
fn gradient(name: &str, x: &Tensor) {
    println!("\n    {name}.grad()");
    match x.grad() {
        Some(g) => println!("        strides {:?}  values  {}", g.strides(), rows(&g, values(&g))),
        None => println!("        None"),
    }
}

fn storage() {
    say("Twelve f32 lie in a row of 48 bytes. The layout says how to walk it: element [i, j] is in the cell
        offset + i * stride[0] + j * stride[1].");
    show!(let x = Tensor::arange(12.0).view([3, 4]));
    show!(x.layout().index_of(&[1, 2]).unwrap());
    say("The last dim of a row-major tensor has stride 1, every other the size times the stride of the dim after
        it.");
    show!(let y = Tensor::arange(24.0).view([2, 3, 4]));
    say("In bytes, as NumPy prints strides, they are four times as large for f32 or i32.");
    show!(x.layout().byte_strides(4));
}

fn view() {
    say("A view is another layout on the same storage. Nothing is copied, and a write through one shows in the
        other.");
    show!(let x = Tensor::arange(12.0).view([3, 4]));
    show!(let y = x.view([2, 6]));
    show!(y.shares_storage(&x));
    run!(y.i(s![0, 0]).fill_(999.0));
    describe(&x);
    say("Sizes of 1 come and go. Their strides never change a value.");
    show!(let u = x.unsqueeze(1));
}

fn permute() {
    say("Permuting dims permutes sizes and strides.");
    show!(let x = Tensor::arange(12.0).view([3, 4]));
    show!(let t = x.t());
    say("Images with the channels moved to the end: the strides keep their numbers, and only a contiguous copy has
        row-major ones. What is contiguous already is not copied.");
    show!(let images = Tensor::zeros([2, 3, 4, 4]));
    show!(let p = images.permute([0, 2, 3, 1]));
    show!(p.is_contiguous());
    show!(let c = p.contiguous());
    show!(images.contiguous().is_same(&images));
}

fn reshape() {
    say("Neighbouring dims merge where stepping over the inner one ends where the outer one's next step begins:
        stride[d] == size[d + 1] * stride[d + 1]. Those of a row-major tensor do.");
    show!(let x = Tensor::arange(24.0).view([2, 3, 4]));
    show!(let y = x.view([6, 4]));
    say("So do some dims of a permuted one.");
    show!(let z = x.permute([1, 2, 0]).view([12, 2]));
    show!(z.shares_storage(&x));
    say("Where they do not, view refuses and reshape copies.");
    refused!(x.permute([2, 1, 0]).try_view([4, 6]));
    show!(let r = x.permute([2, 1, 0]).reshape([4, 6]));
    show!(r.shares_storage(&x));
    say("flatten and ravel are reshapes: views where they can be.");
    show!(x.flatten(0, -1).shares_storage(&x));
    show!(x.permute([2, 1, 0]).flatten(0, -1).shares_storage(&x));
}

fn slice() {
    say("A slice moves the offset; a step multiplies the stride.");
    show!(let x = Tensor::arange(12.0).view([3, 4]));
    show!(let columns = x.i(s![.., 1..3]));
    show!(let every_other = x.i(s![.., ..;2]));
    say("A negative step walks backwards: a view with a negative stride, as in NumPy.");
    show!(let backwards = x.i(s![..;-1]));
    show!(let all_backwards = x.reversed([0, 1]));
    say("One index takes its dim away.");
    show!(let row = x.i(s![-1]));
    say("Slices clamp their bounds, as Python's do; narrow and select refuse.");
    show!(let clamped = x.i(s![2..100]));
    refused!(x.try_narrow(0, 2, 2));
    refused!(x.try_select(0, 3));
    say("Stepped dims still merge where their strides allow it.");
    show!(let flat = x.i(s![.., ..;2]).view([6]));
}

fn expand() {
    say("A stride of 0 reads one cell again and again: broadcasting without a copy.");
    show!(let x = Tensor::arange(6.0).view([2, 3]));
    show!(let e = x.expand([4, 2, 3]));
    show!(let row = Tensor::arange(1000.0).view([1, 1000]));
    show!(row.expand([32, 1000]).storage_bytes());
    show!(row.expand([32, 1000]).contiguous().storage_bytes());
    say("The operands of every op are broadcast in this way.");
    show!(let column = Tensor::arange(2.0).view([2, 1]));
    show!(let sum = &x + &column);
}

fn windows() {
    say("Sliding windows overlap: the new dim has the stride of the one they slide along.");
    show!(let x = Tensor::arange(6.0));
    show!(let w = x.unfold(0, 3, 1));
    say("A diagonal steps over a row and a column at once.");
    show!(let m = Tensor::arange(9.0).view([3, 3]));
    show!(let d = m.diagonal(0, 0, 1));
    say("as_strided takes any layout that stays inside the storage.");
    show!(let s = m.as_strided([2, 2], [3, 2], Some(1)));
    refused!(m.try_as_strided([4, 4], [3, 1], None));
}

fn formats() {
    say("channels_last is an order in memory and no more: sizes stay (N, C, H, W), the channels of a pixel lie side
        by side.");
    show!(let x = Tensor::arange(24.0).view([1, 3, 2, 4]));
    show!(let cl = x.to_format(MemoryFormat::ChannelsLast));
    show!((x.suggested_format(), cl.suggested_format()));
    say("Results follow the first operand that has an opinion.");
    show!(((&cl + &x).strides(), (&x + &cl).strides()));
    say("With one channel both formats lie alike in memory. Only to_format() writes the other strides, for ops to
        see.");
    show!(let one = Tensor::zeros([2, 1, 4, 5]));
    show!(one.contiguous_in(MemoryFormat::ChannelsLast).strides());
    show!(one.to_format(MemoryFormat::ChannelsLast).strides());
}

fn writes() {
    say("A write through a view lands in the storage that all views share.");
    show!(let x = Tensor::zeros([3, 4]));
    run!(x.i(s![1]).fill_(5.0));
    run!(x.t().i(s![3]).copy_(&Tensor::arange(3.0)));
    describe(&x);
    say("A write never reads what it has just written: where the source shares cells with the destination, but at
        other positions, it is refused.");
    show!(let a = Tensor::arange(9.0).view([3, 3]));
    refused!(a.i(s![.., 1..]).try_copy_(&a.i(s![.., ..-1])));
    say("A write that would reach one cell twice is refused.");
    refused!(Tensor::ones([3]).expand([2, 3]).try_add_(1.0));
    refused!(Tensor::arange(4.0).as_strided([3, 2], [1, 1], None).try_add_(1.0));
}

fn gradients() {
    say("The gradient of a view is added into its base's gradient through the view's own layout.");
    show!(let x = Tensor::arange(6.0).view([2, 3]).requires_grad_(true));
    run!((x.t() * Tensor::arange(6.0).view([3, 2])).sum().backward());
    gradient("x", &x);
    say("A slice reaches its part. What several slices reach adds up.");
    run!(x.zero_grad());
    run!((x.i(s![.., ..;2]).sum() + x.i(s![1]).sum() * 10.0).backward());
    gradient("x", &x);
    say("The gradients of an expanded dim are summed: each cell gets all that was read from it.");
    run!(x.zero_grad());
    run!(x.expand([4, 2, 3]).sum().backward());
    gradient("x", &x);
    say("So it is with overlapping windows: each cell as often as it was seen.");
    show!(let v = Tensor::arange(5.0).requires_grad_(true));
    run!(v.unfold(0, 3, 1).sum().backward());
    gradient("v", &v);
    say("A gradient has its leaf's strides, whatever layout the leaf was used in.");
    show!(let w = Tensor::arange(6.0).view([2, 3]).t().requires_grad_(true));
    run!(w.contiguous().sum().backward());
    gradient("w", &w);
}

fn in_place() {
    say("A write through a view becomes part of its base's graph, and older views see it.");
    show!(let x = Tensor::arange(4.0).requires_grad_(true));
    show!(let y = &x * 1.0);
    show!(let older = y.i(s![2..]));
    run!(y.i(s![1..3]).mul_(10.0));
    say("`older` sees the write in its first element:");
    describe(&older);
    run!(older.sum().backward());
    gradient("x", &x);
    say("Storages count their versions. To overwrite a value that a gradient needs is an error when the gradient is
        asked for.");
    show!(let z = (&x * 1.0).relu());
    run!(z.detach().fill_(0.0));
    show!(z.version());
    refused!(z.sum().try_backward());
    say("A leaf that requires a gradient is written under no_grad only.");
    refused!(x.try_fill_(0.0));
}

fn copies() {
    say("A reshape that has to copy says so: to an audit, or as an error where copies are denied.");
    show!(let x = Tensor::arange(6.0).view([2, 3]));
    let audit = Audit::start();
    run!(x.reshape([3, 2]));
    show!(audit.copies().len());
    run!(x.t().reshape([6]));
    for copy in audit.copies() {
        println!("        {} copied {} bytes: {}", copy.op, copy.bytes, copy.reason);
    }
    let _denied = deny_copies();
    refused!(x.t().try_reshape([6]));
}

fn dtypes() {
    say("Tensors with dims decide, then 0-dim tensors, then numbers: what comes later counts only if its kind (bool,
        integer, float) is higher.");
    show!(let i = Tensor::from_slice(&[1i32, 2], [2]));
    show!((&i + Tensor::ones([2])).dtype());
    show!((&i + 1i64).dtype());
    show!((&i + 1.5).dtype());
    show!((Tensor::scalar(1.0) + 1i64).dtype());
    show!((Tensor::from_slice(&[1u8], [1]) + Tensor::from_slice(&[1i8], [1])).dtype());
}
