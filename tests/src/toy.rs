//! A third-party backend in safe code: it keeps bytes behind a mutex and interprets the ops' formulas one element at a
//! time.
//!
//! It knows no op: elementwise ops and reductions reach it as formulas. Classes it does not have (matrix products,
//! convolutions, ...) are errors that name the class.

use std::sync::{Mutex, MutexGuard, Once};

use half::{bf16, f16};
use stridegrad_core::backend::{self, Backend, Dst, Src};
use stridegrad_core::kernel::{MapKernel, ReduceKernel};
use stridegrad_core::{
    Buffer, DType, Device, DeviceKind, Element, Error, ErrorKind, Expr, Formula, Init, Int, Layout, Result,
    Scalar,
};

/// Where the toy's tensors lie.
pub const TOY: Device = Device::new(DeviceKind::Private(7), 0);

/// Registers the toy backend; later calls do nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| backend::register(TOY.kind(), &Toy).expect("nobody else takes Private(7)"));
}

/// The backend.
#[derive(Debug)]
pub struct Toy;

type Bytes = Mutex<Vec<u8>>;

fn bytes(buffer: &Buffer) -> MutexGuard<'_, Vec<u8>> {
    let bytes: &Bytes = buffer.handle().expect("a buffer of the toy's");
    bytes.lock().unwrap_or_else(|e| e.into_inner())
}

/// A value: what every dtype is read as and written from.
#[derive(Clone, Copy)]
enum Value {
    Float(f64),
    Int(i64),
}

impl Value {
    fn of(s: Scalar) -> Value {
        match s {
            Scalar::Float(v) => Value::Float(v),
            Scalar::Int(v) => Value::Int(v),
            Scalar::Bool(v) => Value::Int(i64::from(v)),
        }
    }
    fn f64(self) -> f64 {
        match self {
            Value::Float(v) => v,
            Value::Int(v) => v as f64,
        }
    }
    fn int(self) -> Int {
        Int(match self {
            Value::Float(v) => v as i64,
            Value::Int(v) => v,
        })
    }
}

/// Reads the element at `index`.
fn get(memory: &[u8], dtype: DType, index: usize) -> Value {
    let b = &memory[index * dtype.size()..];
    match dtype {
        DType::F64 => Value::Float(f64::read_le(b)),
        DType::F32 => Value::Float(f32::read_le(b).into()),
        DType::F16 => Value::Float(f16::read_le(b).into()),
        DType::BF16 => Value::Float(bf16::read_le(b).into()),
        DType::I64 => Value::Int(i64::read_le(b)),
        DType::I32 => Value::Int(i32::read_le(b).into()),
        DType::I16 => Value::Int(i16::read_le(b).into()),
        DType::I8 => Value::Int(i8::read_le(b).into()),
        DType::U8 => Value::Int(u8::read_le(b).into()),
        _ => Value::Int((b[0] != 0).into()),
    }
}

fn put<T: Element>(memory: &mut [u8], index: usize, v: Value) {
    let v = match v {
        Value::Float(v) => T::from_f64(v),
        Value::Int(v) => T::from_i64(v),
    };
    v.write_le(&mut memory[index * size_of::<T>()..]);
}

/// Writes the element at `index`, converted as casts are.
fn set(memory: &mut [u8], dtype: DType, index: usize, v: Value) {
    match dtype {
        DType::F64 => put::<f64>(memory, index, v),
        DType::F32 => put::<f32>(memory, index, v),
        DType::F16 => put::<f16>(memory, index, v),
        DType::BF16 => put::<bf16>(memory, index, v),
        DType::I64 => put::<i64>(memory, index, v),
        DType::I32 => put::<i32>(memory, index, v),
        DType::I16 => put::<i16>(memory, index, v),
        DType::I8 => put::<i8>(memory, index, v),
        DType::U8 => put::<u8>(memory, index, v),
        _ => put::<bool>(memory, index, v),
    }
}

/// The values of an operand, broadcast to `sizes`, in row-major order.
fn values(src: &Src<'_>, sizes: &[usize]) -> Result<Vec<Value>> {
    let memory = bytes(src.buffer());
    Ok(src.layout().broadcast_to(sizes)?.offsets().map(|at| get(&memory, src.dtype(), at)).collect())
}

/// Writes values in row-major order.
fn store(dst: &Dst<'_>, layout: &Layout, values: impl Iterator<Item = Value>) {
    let mut memory = bytes(dst.buffer());
    for (at, v) in layout.offsets().zip(values) {
        set(&mut memory, dst.dtype(), at, v);
    }
}

/// One step of a formula's arithmetic, in the type the op computes in.
fn eval(formula: &Formula, compute: DType, ins: &[Value], params: &[Value]) -> Value {
    fn run<E: Expr>(f: &Formula, ins: &[Value], params: &[Value], number: impl Fn(Value) -> E) -> E {
        let all = |v: &[Value]| v.iter().map(|&v| number(v)).collect::<Vec<E>>();
        f.eval(&all(ins), &all(params))
    }
    match compute {
        DType::F64 => Value::Float(run(formula, ins, params, Value::f64)),
        DType::I64 => Value::Int(run(formula, ins, params, Value::int).0),
        _ => Value::Float(run(formula, ins, params, |v| v.f64() as f32).into()),
    }
}

impl Backend for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn allocate(&self, _: usize, bytes: usize, _: Init) -> Result<Buffer> {
        let mut memory = Vec::new();
        if memory.try_reserve_exact(bytes).is_err() {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                "allocate",
                format!("the toy has no {bytes} bytes"),
            ));
        }
        memory.resize(bytes, 0u8);
        Ok(Buffer::foreign(Box::new(Mutex::new(memory)), bytes))
    }

    fn read(&self, src: &Buffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&bytes(src)[offset..offset + dst.len()]);
        Ok(())
    }

    fn write(&self, dst: &Buffer, offset: usize, src: &[u8]) -> Result<()> {
        bytes(dst)[offset..offset + src.len()].copy_from_slice(src);
        Ok(())
    }

    fn fill(&self, dst: Dst<'_>, value: Scalar) -> Result<()> {
        store(&dst, dst.layout(), std::iter::repeat(Value::of(value)));
        Ok(())
    }

    fn copy(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        let values = values(&src, dst.layout().sizes())?;
        store(&dst, dst.layout(), values.into_iter());
        Ok(())
    }

    fn map(
        &self,
        kernel: &MapKernel,
        compute: DType,
        params: &[Scalar],
        dst: Dst<'_>,
        srcs: &[Src<'_>],
    ) -> Result<()> {
        let sizes = dst.layout().sizes();
        let ins = srcs.iter().map(|s| values(s, sizes)).collect::<Result<Vec<_>>>()?;
        let params: Vec<Value> = params.iter().map(|&p| Value::of(p)).collect();
        let formula = (kernel.formula)();
        let one = |i| eval(&formula, compute, &ins.iter().map(|v| v[i]).collect::<Vec<_>>(), &params);
        store(&dst, dst.layout(), (0..dst.layout().numel()).map(one));
        Ok(())
    }

    fn reduce(
        &self,
        kernel: &ReduceKernel,
        compute: DType,
        dims: &[bool],
        dst: Dst<'_>,
        src: Src<'_>,
    ) -> Result<()> {
        let identity = match compute {
            DType::I64 => Value::Int(kernel.identity_int),
            _ => Value::Float(kernel.identity),
        };
        let formula = (kernel.formula)();
        // The result over the input's sizes: reduced dims go to the same place again and again.
        let sizes: Vec<i64> = src.layout().sizes().iter().map(|&n| n as i64).collect();
        let empty = dims.iter().zip(&sizes).any(|(&reduced, &n)| reduced && n == 0);
        let mut totals = std::collections::HashMap::new();
        if !empty {
            let places = dst.layout().expand(&sizes)?;
            for (at, v) in places.offsets().zip(values(&src, src.layout().sizes())?) {
                let total = totals.entry(at).or_insert(identity);
                *total = eval(&formula, compute, &[*total, v], &[]);
            }
        }
        let results: Vec<Value> =
            dst.layout().offsets().map(|at| totals.get(&at).copied().unwrap_or(identity)).collect();
        store(&dst, dst.layout(), results.into_iter());
        Ok(())
    }

    fn accumulate(&self, dst: Dst<'_>, src: Src<'_>) -> Result<()> {
        let values = values(&src, dst.layout().sizes())?;
        let mut memory = bytes(dst.buffer());
        for (at, v) in dst.layout().offsets().zip(values) {
            let sum = match (get(&memory, dst.dtype(), at), v) {
                (Value::Int(a), Value::Int(b)) => Value::Int(a.wrapping_add(b)),
                (a, b) => Value::Float(a.f64() + b.f64()),
            };
            set(&mut memory, dst.dtype(), at, sum);
        }
        Ok(())
    }
}
