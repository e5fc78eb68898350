//! Mutants: ops with a fault each, made at run time around the real ones, to see that the harness catches them.
//!
//! A mutant of an op is made where it must show: whether a fault changes anything is decided by the op's reference
//! alone (an operand that the result does not depend on cannot be missed), never by the harness.

mod faults;

use std::sync::Mutex;

use stridegrad_autograd::spec::{OpSpec, Sample};

use self::faults::{FAULTS, Facts, fuzz_faults, refusal_faults};
use crate::harness::{Options, run_op};

/// What came of an op's mutants.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The op.
    pub op: String,
    /// How many mutants it had.
    pub mutants: usize,
    /// Those that no check caught.
    pub survivors: Vec<String>,
    /// Which check caught how many first.
    pub caught_by: std::collections::BTreeMap<String, usize>,
    /// How long it took.
    pub seconds: f64,
}

/// Surveys every registered op whose name contains `filter`, on as many threads as the machine has cores.
pub fn run(filter: &str) -> Vec<Survey> {
    let names: Vec<&'static str> = stridegrad_autograd::ops::registry().iter().map(|op| op.name).collect();
    let queue: Mutex<Vec<usize>> =
        Mutex::new((0..names.len()).filter(|&i| names[i].contains(filter)).collect());
    let found = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(|e| e.into_inner()).pop();
                    let Some(i) = next else { break };
                    let survey = survey(&|| stridegrad_autograd::ops::registry().swap_remove(i));
                    found.lock().unwrap_or_else(|e| e.into_inner()).push(survey);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner());
    found.sort_by(|a, b| a.op.cmp(&b.op));
    found
}

/// Makes every mutant of the op that `make` gives, and runs the harness over each.
pub fn survey(make: &dyn Fn() -> OpSpec) -> Survey {
    let start = std::time::Instant::now();
    let op = make();
    let facts: Vec<Facts> = op.samples.iter().map(|s| Facts::new(op.name, s)).collect();
    let mut survey = Survey {
        op: op.name.to_owned(),
        mutants: 0,
        survivors: Vec::new(),
        caught_by: Default::default(),
        seconds: 0.0,
    };
    // What fails by itself would catch everything.
    let own = run_op(&op, &Options { stop_early: true, ..Options::default() });
    survey.survivors.extend(own.failures.iter().map(|f| format!("none: the op itself fails {f}")));
    let most = op.samples.iter().map(|s| s.inputs.len()).max().unwrap_or(0);
    for fault in FAULTS {
        for k in 0..if fault.per_input { most } else { 1 } {
            let name =
                if fault.per_input { format!("{} (input {k})", fault.name) } else { fault.name.to_owned() };
            // The samples in which the fault shows, each with the fault.
            let mut mutant = make();
            let samples = std::mem::take(&mut mutant.samples);
            let faulty = |(s, f): (Sample, &Facts)| (fault.shows)(&s, f, k).then(|| (fault.make)(s, f, k));
            mutant.samples = samples.into_iter().zip(&facts).filter_map(faulty).collect();
            if !mutant.samples.is_empty() {
                mutant.refusals.clear();
                survey.judge(name, &mutant);
            }
        }
    }
    for (name, mutant) in refusal_faults(make).into_iter().chain(fuzz_faults(make)) {
        survey.judge(name, &mutant);
    }
    survey.seconds = start.elapsed().as_secs_f64();
    survey
}

impl Survey {
    fn judge(&mut self, name: String, mutant: &OpSpec) {
        self.mutants += 1;
        let report = run_op(mutant, &Options { stop_early: true, ..Options::default() });
        match report.failures.first() {
            Some(failure) => {
                let check = failure.name.split("::").nth(1).unwrap_or_default().to_owned();
                *self.caught_by.entry(check).or_default() += 1;
            }
            None => self.survivors.push(name),
        }
    }
}

/// The surveys as a table, with the survivors by name.
pub fn table(surveys: &[Survey]) -> String {
    let mut text =
        format!("{:<22} {:>7} {:>7} {:>9}  caught first by\n", "op", "mutants", "caught", "survivors");
    for s in surveys {
        let by: Vec<String> = s.caught_by.iter().map(|(check, n)| format!("{check} {n}")).collect();
        let caught: usize = s.caught_by.values().sum();
        text += &format!(
            "{:<22} {:>7} {:>7} {:>9}  {}\n",
            s.op,
            s.mutants,
            caught,
            s.survivors.len(),
            by.join(", ")
        );
    }
    for s in surveys {
        for name in &s.survivors {
            text += &format!("SURVIVED {}: {name}\n", s.op);
        }
    }
    let (all, left): (usize, usize) =
        surveys.iter().fold((0, 0), |(a, l), s| (a + s.mutants, l + s.survivors.len()));
    text + &format!("{all} mutants of {} ops, {left} survivors\n", surveys.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stridegrad_autograd::Tensor;
    use stridegrad_autograd::spec::{Domain, Input, Ref};
    use stridegrad_core::ErrorKind;

    /// An op with everything a mutant can be made of.
    fn op(tolerance: f64, grad: bool) -> OpSpec {
        OpSpec::new("twice_less", || {
            let s = Sample::new(
                "[2, 3]",
                vec![Input::new(&[2, 3], Domain::Any), Input::new(&[2, 3], Domain::Any)],
                |t| t[0].try_mul(&t[0])?.try_sub(&t[1]),
                |r| Ref::from_fn(&r[0].sizes, |i| r[0].at(i) * r[0].at(i) - r[1].at(i)),
            )
            .tolerance(tolerance);
            vec![if grad { s } else { s.no_grad() }]
        })
        .refusal("shapes", ErrorKind::Shape, || Tensor::try_ones([2])?.try_sub(&Tensor::try_ones([3])?))
    }

    #[test]
    fn an_op_without_fault_passes() {
        let report = run_op(&op(1.0, true), &Options::default());
        assert!(report.failures.is_empty(), "{report}");
    }

    #[test]
    fn every_mutant_of_a_well_described_op_is_caught() {
        let survey = survey(&|| op(1.0, true));
        assert!(survey.survivors.is_empty(), "{}", table(std::slice::from_ref(&survey)));
        assert!(survey.mutants >= 25, "{}", table(&[survey]));
    }

    #[test]
    fn a_blind_harness_is_found_out() {
        let survey = survey(&|| op(1e30, false));
        assert!(
            survey.survivors.contains(&"result negated".to_owned()),
            "{}",
            table(std::slice::from_ref(&survey))
        );
        assert!(
            survey.survivors.contains(&"a term dropped (input 1)".to_owned()),
            "{}",
            table(std::slice::from_ref(&survey))
        );
        let text = table(&[survey]);
        assert!(text.contains("SURVIVED twice_less: result negated"), "{text}");
    }
}
