//! Random programs of views, writes through them and reads, against the same programs without views or writes.
//!
//! The model knows neither: a view is a 0/1 matrix that picks elements of its base, a write makes a new base. Values and
//! gradients must agree whatever the chain of views, the order of writes, and the views taken before them.

use stridegrad_autograd::{Tensor, no_grad};
use stridegrad_core::ErrorKind;
use stridegrad_testkit::values::Numbers;

const N: usize = 12;

/// A view and what it is to the model: elements of a base.
struct View {
    tensor: Tensor,
    base: usize,
    /// The same views of the base's positions.
    places: Tensor,
}

impl View {
    fn positions(&self) -> Vec<usize> {
        self.places.contiguous().to_vec::<i64>().into_iter().map(|i| i as usize).collect()
    }

    fn repeats(&self) -> bool {
        let mut p = self.positions();
        p.sort_unstable();
        p.windows(2).any(|w| w[0] == w[1])
    }
}

struct Program {
    numbers: Numbers,
    log: Vec<String>,
    views: Vec<View>,
    /// The model's bases, as columns.
    model: Vec<Tensor>,
    loss: Tensor,
    model_loss: Tensor,
}

fn column(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len(), 1])
}

/// The matrix that picks elements of a base.
fn picks(positions: &[usize]) -> Tensor {
    let mut m = vec![0.0f64; positions.len() * N];
    positions.iter().enumerate().for_each(|(i, &p)| m[i * N + p] = 1.0);
    Tensor::from_slice(&m, [positions.len(), N])
}

impl Program {
    fn below(&mut self, n: usize) -> usize {
        self.numbers.below(n)
    }

    /// A view of a view already there.
    fn take(&mut self) {
        let from = self.below(self.views.len());
        let sizes = self.views[from].tensor.sizes().to_vec();
        let rank = sizes.len();
        let dim = if rank == 0 { 0 } else { self.below(rank) };
        let size = sizes.get(dim).copied().unwrap_or(1) as i64;
        let (a, b, kind) = (self.below(4) as i64, self.below(4) as i64, self.below(10));
        let d = dim as i64;
        let apply = |t: &Tensor| match kind {
            0 => t.try_permute((0..rank as i64).rev().collect::<Vec<_>>()),
            1 => t.try_narrow(d, a.min(size - 1).max(0), (size - a).clamp(1, 2)),
            2 => t.try_slice(d, Some(a), None, 2),
            3 => t.try_slice(d, None, None, -1 - b % 2),
            4 => t.try_select(d, a % size.max(1)),
            5 => t.try_unsqueeze(d),
            6 => t.try_unsqueeze(d)?.try_expand({
                let mut to: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
                to.insert(dim, 2);
                to
            }),
            7 => t.try_diagonal(a - 1, 0, 1),
            8 => t.try_unfold(d, 2.min(size), 1 + b % 2),
            _ => t.try_reshape([-1]),
        };
        let Ok(places) = apply(&self.views[from].places) else { return };
        if places.dim() > 4
            || places.numel() == 0
            || places.numel() > 40
            || !places.shares_storage(&self.views[from].places)
        {
            return;
        }
        // The positions are not floats, so autograd does not know of them; the layouts are the same.
        let tensor = apply(&self.views[from].tensor).expect("what the positions allow");
        self.log.push(format!(
            "v{} = v{from} kind {kind} dim {dim} {a} {b}: {:?}",
            self.views.len(),
            tensor.sizes()
        ));
        self.views.push(View { tensor, base: self.views[from].base, places });
    }

    /// A write: `target = scale * target + shift`, `+= other`, `*= other` or `= other`.
    fn write(&mut self) {
        let t = self.below(self.views.len());
        let (kind, o) = (self.below(6), self.below(self.views.len()));
        let (target, other) = (&self.views[t], &self.views[o]);
        let onto_itself = kind == 5 && t == o; // nothing is written
        if onto_itself || (kind >= 3 && other.tensor.sizes() != target.tensor.sizes()) {
            return;
        }
        let positions = target.positions();
        let old = picks(&positions).matmul(&self.model[target.base]);
        let operand = picks(&other.positions()).matmul(&self.model[other.base]);
        let x = &target.tensor;
        let (done, new) = match kind {
            0 => (x.try_fill_(0.5), &old * 0.0 + 0.5),
            1 => (x.try_mul_(-1.5), &old * -1.5),
            2 => (x.try_add_(0.25), &old + 0.25),
            3 => (x.try_add_(&other.tensor), &old + &operand),
            // The operand is saved: a copy of it, so that it may be written to later.
            4 => (x.try_mul_(other.tensor.copy()), &old * &operand),
            _ => (x.try_copy_(&other.tensor), operand),
        };
        match done {
            Err(e) if e.kind() == ErrorKind::Overlap => {
                let shared = target.base == other.base || target.repeats();
                assert!(target.repeats() || (kind >= 3 && shared), "{e}: nothing overlaps");
                self.log.push(format!("v{t} kind {kind} v{o}: refused"));
            }
            Err(e) => panic!("{e}"),
            Ok(_) if target.repeats() => {
                assert_eq!(kind, 0, "a target that repeats elements was written to");
                let mut kept = vec![1.0; N];
                positions.iter().for_each(|&p| kept[p] = 0.0);
                let filled: Vec<f64> = kept.iter().map(|k| 0.5 * (1.0 - k)).collect();
                self.model[target.base] = &self.model[target.base] * &column(&kept) + column(&filled);
                self.log.push(format!("fill v{t}, repeated elements"));
            }
            Ok(_) => {
                let mut kept = vec![1.0; N];
                positions.iter().for_each(|&p| kept[p] = 0.0);
                let base = &self.model[target.base];
                self.model[target.base] = base * &column(&kept) + picks(&positions).t().matmul(&new);
                self.log.push(format!("v{t} kind {kind} v{o}"));
            }
        }
    }

    /// Adds a weighted sum of a view to the loss.
    fn read(&mut self) {
        let v = self.below(self.views.len());
        let weights = self.numbers.weights(self.views[v].tensor.numel());
        let view = &self.views[v];
        let w = Tensor::from_slice(&weights, view.tensor.sizes());
        self.loss = &self.loss + (&view.tensor * &w).sum();
        let picked = picks(&view.positions()).matmul(&self.model[view.base]);
        self.model_loss = &self.model_loss + (picked * column(&weights)).sum();
        self.log.push(format!("read v{v}"));
    }
}

fn run(seed: usize) {
    let mut numbers = Numbers::from_name(&format!("program {seed}"));
    let zero = || Tensor::from_slice(&[0.0f64], ());
    let mut program = Program {
        log: Vec::new(),
        views: Vec::new(),
        model: Vec::new(),
        loss: zero(),
        model_loss: zero(),
        numbers: numbers.clone(),
    };
    let (mut leaves, mut model_leaves) = (Vec::new(), Vec::new());
    for base in 0..2 {
        let values = numbers.weights(N);
        let leaf = Tensor::from_slice(&values, [3, 4]).requires_grad_(true);
        let model_leaf = column(&values).requires_grad_(true);
        let places = Tensor::from_slice(&(0..N as i64).collect::<Vec<_>>(), [3, 4]);
        // One base is dense in another order.
        let (tensor, places) = match base {
            0 => (&leaf * 1.0, places),
            _ => ((leaf.t() * 1.0).t(), places),
        };
        program.model.push(&model_leaf * 1.0);
        program.views.push(View { tensor, base, places });
        leaves.push(leaf);
        model_leaves.push(model_leaf);
    }
    for _ in 0..14 {
        match program.below(5) {
            0 | 1 => program.take(),
            2 | 3 => program.write(),
            _ => program.read(),
        }
    }
    for v in &program.views[..2] {
        let (loss, w) = (&program.loss, program.numbers.weights(N));
        program.loss = loss + (v.tensor.reshape(-1) * Tensor::from_slice(&w, [N])).sum();
        program.model_loss = &program.model_loss + (&program.model[v.base] * column(&w)).sum();
    }
    let log = program.log.join("\n");
    let close = |what: &str, a: &Tensor, b: &Tensor| {
        let (a, b) = (a.reshape(-1).to_vec::<f64>(), b.reshape(-1).to_vec::<f64>());
        let near = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()));
        assert!(near, "program {seed}, {what}:\n{a:?}\n{b:?}\n{log}");
    };
    for v in &program.views {
        let model = no_grad(|| picks(&v.positions()).matmul(&program.model[v.base]));
        close("values", &v.tensor, &model);
    }
    program.loss.backward();
    program.model_loss.backward();
    for (leaf, model) in leaves.iter().zip(&model_leaves) {
        // What was overwritten in full gets no gradient: zeros to the model.
        let found = leaf.grad().unwrap_or_else(|| leaf.zeros_like());
        close("gradient", &found, &model.grad().expect("a gradient"));
    }
}

#[test]
fn programs_agree_with_their_model() {
    for seed in 0..400 {
        run(seed);
    }
}
