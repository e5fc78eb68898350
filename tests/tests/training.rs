//! Training through the whole stack: the same bits for any number of threads and workers, and after an interruption.

use stridegrad::optim::ExponentialLr;
use stridegrad::prelude::*;
use stridegrad::{Generator, Result, threads};

#[derive(Module, Debug)]
struct Net {
    conv1: Conv2d,
    bn: BatchNorm2d,
    conv2: Conv2d,
    drop: Dropout,
    fc: Linear,
}

impl Net {
    fn new(generator: &Generator) -> Net {
        let init = &mut Init::cpu().seed(3);
        Net {
            conv1: Conv2d::builder(1, 6, 5).build(init),
            bn: BatchNorm2d::builder(6).build(init),
            conv2: Conv2d::builder(6, 8, 3).stride(2).groups(2).build(init),
            drop: Dropout::new(0.2).generator(generator.clone()),
            fc: Linear::builder(8 * 5 * 5, 10).build(init),
        }
    }
}

impl Forward for Net {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.bn.forward(&self.conv1.forward(x)).relu().max_pool2d(2);
        self.fc.forward(&self.drop.forward(&self.conv2.forward(&x).relu().flatten(1, -1)))
    }
}

struct Run {
    net: Net,
    generator: Generator,
    optimizer: Box<dyn Optimizer>,
    scheduler: LrScheduler<ExponentialLr>,
    format: MemoryFormat,
    losses: Vec<u32>,
}

type Make = fn(Vec<Tensor>) -> Box<dyn Optimizer>;

fn sgd(params: Vec<Tensor>) -> Box<dyn Optimizer> {
    Box::new(Sgd::new(params, 0.02).momentum(0.9).weight_decay(1e-4))
}

fn adamw(params: Vec<Tensor>) -> Box<dyn Optimizer> {
    Box::new(AdamW::new(params, 0.003))
}

const BATCHES: usize = 5;

fn loader() -> DataLoader<Mnist> {
    DataLoader::new(Mnist::train().unwrap().take(BATCHES * 32)).batch_size(32).shuffle(11)
}

impl Run {
    fn new(make: Make, format: MemoryFormat) -> Run {
        let generator = Generator::new(5);
        let net = Net::new(&generator).to(format);
        let mut optimizer = make(net.parameters());
        let scheduler = LrScheduler::new(&mut *optimizer, ExponentialLr::new(0.97));
        Run { net, generator, optimizer, scheduler, format, losses: Vec::new() }
    }

    /// Goes on from batch `from` of an epoch, for at most `count` batches.
    fn train(&mut self, data: &DataLoader<Mnist>, epoch: u64, from: usize, count: usize) -> Result<()> {
        self.net.train();
        for batch in data.epoch_from(epoch, from).take(count) {
            let (x, y) = batch?;
            self.optimizer.zero_grad();
            let loss = self.net.forward(&x.try_to_format(self.format)?).cross_entropy(&y);
            loss.backward();
            self.optimizer.step();
            self.scheduler.step(&mut *self.optimizer);
            self.losses.push(loss.item::<f32>().to_bits());
        }
        Ok(())
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        self.net.state_dict().iter().map(|(_, t)| t.try_to_le_bytes().unwrap()).collect()
    }
}

fn whole(make: Make, format: MemoryFormat, data: &DataLoader<Mnist>) -> Run {
    let mut run = Run::new(make, format);
    for epoch in 0..2 {
        run.train(data, epoch, 0, usize::MAX).unwrap();
    }
    run
}

const FORMATS: [MemoryFormat; 2] = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast];

#[test]
fn threads_and_workers_change_no_bit() {
    for format in FORMATS {
        threads::set_num_threads(1);
        let one = whole(sgd, format, &loader());
        threads::set_num_threads(2);
        let two = whole(sgd, format, &loader());
        threads::set_num_threads(8);
        let many = whole(sgd, format, &loader().workers(2));
        assert_eq!(one.losses.len(), 2 * BATCHES);
        assert_eq!(one.losses, two.losses, "{format:?}");
        assert_eq!(one.losses, many.losses, "{format:?}");
        assert_eq!(one.bytes(), two.bytes());
        assert_eq!(one.bytes(), many.bytes());
        let (first, last) = (f32::from_bits(one.losses[0]), f32::from_bits(one.losses[2 * BATCHES - 1]));
        assert!(last < 0.9 * first, "it does not learn: {first} to {last}");
    }
}

#[test]
fn resumed_in_the_middle_of_an_epoch() {
    for (make, format) in [(sgd as Make, FORMATS[0]), (sgd, FORMATS[1]), (adamw, FORMATS[1])] {
        let data = loader();
        let whole = whole(make, format, &data);

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.safetensors");
        let mut run = Run::new(make, format);
        run.train(&data, 0, 0, usize::MAX).unwrap();
        run.train(&data, 1, 0, 2).unwrap();
        let mut c = Checkpoint::new();
        c.model = run.net.state_dict();
        c.optimizer = Some(run.optimizer.state());
        c.scheduler = Some(run.scheduler.state().clone());
        c.generators.insert("dropout".into(), run.generator.state());
        (c.epoch, c.batch) = (1, 2);
        c.save(&path).unwrap();
        let before = run.losses.clone();
        drop(run);

        let c = Checkpoint::load(&path).unwrap();
        let mut run = Run::new(make, format);
        run.net.load_state_dict(&c.model).unwrap().require_complete().unwrap();
        run.optimizer.load_state(c.optimizer.as_ref().unwrap()).unwrap();
        run.scheduler.load_state(c.scheduler.as_ref().unwrap(), &mut *run.optimizer).unwrap();
        run.generator.set_state(c.generators["dropout"]);
        run.train(&data, c.epoch, c.batch as usize, usize::MAX).unwrap();
        assert_eq!([before, run.losses.clone()].concat(), whole.losses);
        assert_eq!(run.bytes(), whole.bytes());
    }
}

#[test]
fn saved_and_loaded_gives_the_same_logits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("net.safetensors");
    let mut run = whole(sgd, MemoryFormat::ChannelsLast, &loader());
    let (x, _) = Mnist::test().unwrap().batch(&[0, 1, 2, 3]).unwrap();
    run.net.eval();
    run.net.save(&path).unwrap();
    let mut other = Net::new(&Generator::new(0)).to(MemoryFormat::ChannelsLast);
    assert_ne!(other.forward(&x).to_vec::<f32>(), run.net.forward(&x).to_vec::<f32>());
    other.load(&path).unwrap().require_complete().unwrap();
    other.eval();
    let logits = |net: &Net| no_grad(|| net.forward(&x)).to_vec::<f32>();
    assert_eq!(logits(&other), logits(&run.net));
}
