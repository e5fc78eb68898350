//! Derivatives of a sample's reference computation by central differences.

use stridegrad_autograd::spec::{Ref, Sample};

/// The values of the reference at a point and, if asked, its derivatives by the inputs that have one.
pub(crate) struct Point {
    pub(crate) outputs: Vec<Ref>,
    /// For each input, for each of its elements: the change of the outputs, one after the other.
    jacobian: Vec<Option<Vec<Vec<f64>>>>,
}

const EPS: f64 = 1e-6;

impl Point {
    /// The reference at some inputs.
    pub(crate) fn new(sample: &Sample, inputs: &[Ref]) -> Point {
        Point { outputs: (sample.reference)(inputs), jacobian: vec![None; inputs.len()] }
    }

    /// Computes the derivatives by input `i`.
    pub(crate) fn differentiate(&mut self, sample: &Sample, inputs: &[Ref], i: usize) {
        if self.jacobian[i].is_some() {
            return;
        }
        let eval =
            |at: &[Ref]| -> Vec<f64> { (sample.reference)(at).into_iter().flat_map(|r| r.data).collect() };
        let mut moved = inputs.to_vec();
        let mut rows = Vec::with_capacity(inputs[i].data.len());
        for j in 0..inputs[i].data.len() {
            let x = inputs[i].data[j];
            moved[i].data[j] = x + EPS;
            let up = eval(&moved);
            moved[i].data[j] = x - EPS;
            let down = eval(&moved);
            moved[i].data[j] = x;
            rows.push(up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * EPS)).collect());
        }
        self.jacobian[i] = Some(rows);
    }

    /// The gradient of input `i` for the given gradients of the outputs (an absent one is zero), and for each element
    /// the total magnitude of the terms it is the sum of.
    pub(crate) fn gradient(&self, i: usize, seeds: &[Option<Vec<f64>>]) -> (Vec<f64>, Vec<f64>) {
        let flat: Vec<f64> = self
            .outputs
            .iter()
            .zip(seeds)
            .flat_map(|(out, s)| s.clone().unwrap_or_else(|| vec![0.0; out.data.len()]))
            .collect();
        let Some(rows) = &self.jacobian[i] else { panic!("input {i} was not differentiated") };
        rows.iter()
            .map(|row| {
                // 0 times infinity is a term that is not there.
                let terms = || row.iter().zip(&flat).filter(|(_, s)| **s != 0.0).map(|(r, s)| r * s);
                (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>())
            })
            .unzip()
    }
}
