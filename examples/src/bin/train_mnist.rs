//! Trains a small CNN on MNIST: `cargo run --release --bin train_mnist -- --help`.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use stridegrad::optim::ExponentialLr;
use stridegrad::prelude::*;
use stridegrad::{Error, ErrorKind, Result, default_generator, manual_seed, threads};
use stridegrad_examples::{correct, device, peak_rss_bytes};

/// Trains a small convolutional network on MNIST and reports its accuracy on the test images.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Epochs to train in all, those of a resumed run included; 0 only evaluates
    #[arg(long, default_value_t = 3)]
    epochs: u64,
    /// Images a step
    #[arg(long, default_value_t = 64, value_parser = at_least_one)]
    batch_size: usize,
    /// Learning rate of the first step [default: 0.03 for sgd, 0.002 for adam and adamw]
    #[arg(long, allow_negative_numbers = true)]
    lr: Option<f64>,
    /// What the learning rate is multiplied by in the course of each epoch
    #[arg(long, default_value_t = 0.3, value_parser = positive)]
    lr_decay: f64,
    /// How parameters are moved
    #[arg(long, value_enum, default_value_t = Method::Sgd)]
    optimizer: Method,
    /// The order of images and weights in memory
    #[arg(long, value_enum, default_value_t = Format::ChannelsLast)]
    memory_format: Format,
    /// Where to compute
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Seed of the first weights and of the shuffling
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Threads to compute with [default: all]
    #[arg(long, value_parser = at_least_one)]
    threads: Option<usize>,
    /// Directory with the four IDX files [default: datasets/mnist]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Write a checkpoint here after every epoch
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Start from the weights in this file
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    load: Option<PathBuf>,
    /// Go on from this checkpoint; other settings than its own are refused
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write figures and the loss of every step here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Mean and standard deviation of the training images.
const MEAN: f32 = 0.1307;
const STD: f32 = 0.3081;

/// Images and labels.
type Batch = (Tensor, Tensor);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Sgd,
    Adam,
    Adamw,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Contiguous,
    ChannelsLast,
}

impl Args {
    fn lr(&self) -> f64 {
        self.lr.unwrap_or(match self.optimizer {
            Method::Sgd => 0.03,
            Method::Adam | Method::Adamw => 0.002,
        })
    }

    /// What decides the course of the training, as flags.
    fn settings(&self) -> String {
        format!(
            "--optimizer {} --lr {} --lr-decay {} --batch-size {} --seed {} --memory-format {}",
            format!("{:?}", self.optimizer).to_lowercase(),
            self.lr(),
            self.lr_decay,
            self.batch_size,
            self.seed,
            match self.memory_format {
                Format::Contiguous => "contiguous",
                Format::ChannelsLast => "channels-last",
            }
        )
    }
}

/// Refuses a file that could not be written in the end, before any work is done.
fn writable(flag: &'static str, path: &Path) -> Result<()> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let probe = dir.join(format!(".stridegrad-probe-{}", std::process::id()));
    let made = std::fs::File::create_new(&probe).and_then(|_| std::fs::remove_file(&probe));
    made.map_err(|e| {
        Error::new(ErrorKind::Io, flag, format!("{}: cannot be written", path.display())).because(e)
    })
}

impl From<Format> for MemoryFormat {
    fn from(f: Format) -> MemoryFormat {
        match f {
            Format::Contiguous => MemoryFormat::Contiguous,
            Format::ChannelsLast => MemoryFormat::ChannelsLast,
        }
    }
}

fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}")),
    }
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v > 0.0 && v.is_finite() => Ok(v),
        Ok(_) => Err("must be finite and above 0".into()),
        Err(e) => Err(format!("{e}")),
    }
}

/// Two convolutions with pooling, two linear layers.
#[derive(Module, Debug)]
struct Net {
    conv1: Conv2d,
    conv2: Conv2d,
    fc1: Linear,
    fc2: Linear,
}

impl Net {
    fn new(init: &mut Init) -> Net {
        Net {
            conv1: Conv2d::builder(1, 8, 5).build(init),
            conv2: Conv2d::builder(8, 16, 5).build(init),
            fc1: Linear::builder(16 * 4 * 4, 128).build(init),
            fc2: Linear::builder(128, 10).build(init),
        }
    }
}

impl Forward for Net {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.conv1.forward(x).max_pool2d(2).relu();
        let x = self.conv2.forward(&x).max_pool2d(2).relu();
        self.fc2.forward(&self.fc1.forward(&x.flatten(1, -1)).relu())
    }
}

/// A run: everything a checkpoint holds, and what it is made from.
struct Run {
    net: Net,
    optimizer: Box<dyn Optimizer>,
    scheduler: LrScheduler<ExponentialLr>,
    epoch: u64,
    losses: Vec<f32>,
    settings: String,
}

impl Run {
    fn new(args: &Args, device: &Device, steps_per_epoch: usize) -> Result<Run> {
        manual_seed(args.seed);
        let mut net = Net::new(&mut Init::on(device).seed(args.seed));
        if let Some(path) = &args.load {
            net.load(path)?.require_complete()?;
        }
        let net = net.to(MemoryFormat::from(args.memory_format));
        let params = net.parameters();
        let mut optimizer: Box<dyn Optimizer> = match args.optimizer {
            Method::Sgd => Box::new(Sgd::try_with(params, SgdRule::new(args.lr()))?.momentum(0.9)),
            Method::Adam => Box::new(Adam::try_with(params, AdamRule::new(args.lr()))?),
            Method::Adamw => Box::new(AdamW::try_with(params, AdamRule::new(args.lr()))?),
        };
        let per_step = args.lr_decay.powf(1.0 / steps_per_epoch as f64);
        let scheduler = LrScheduler::new(&mut *optimizer, ExponentialLr::new(per_step));
        let settings = args.settings();
        let mut run = Run { net, optimizer, scheduler, epoch: 0, losses: Vec::new(), settings };
        if let Some(path) = &args.resume {
            run.restore(&Checkpoint::load(path)?)?;
        }
        Ok(run)
    }

    fn checkpoint(&self) -> Checkpoint {
        let mut c = Checkpoint::new();
        c.model = self.net.state_dict();
        c.optimizer = Some(self.optimizer.state());
        c.scheduler = Some(self.scheduler.state().clone());
        c.epoch = self.epoch;
        c.generators.insert("default".into(), default_generator().state());
        let losses: Vec<String> = self.losses.iter().map(|l| format!("{:08x}", l.to_bits())).collect();
        c.extra =
            BTreeMap::from([("losses".into(), losses.join(" ")), ("settings".into(), self.settings.clone())]);
        c
    }

    fn restore(&mut self, c: &Checkpoint) -> Result<()> {
        self.net.load_state_dict(&c.model)?.require_complete()?;
        let (Some(optimizer), Some(scheduler)) = (&c.optimizer, &c.scheduler) else {
            return Err(Error::new(ErrorKind::StateDict, "resume", "the checkpoint has no optimizer"));
        };
        if let Some(theirs) = c.extra.get("settings").filter(|s| **s != self.settings) {
            return Err(Error::new(
                ErrorKind::Argument,
                "resume",
                format!("the checkpoint was made with {theirs}, these settings are {}", self.settings),
            )
            .hint("give the checkpoint's settings, or start from its weights with --load"));
        }
        self.optimizer.load_state(optimizer)?;
        self.scheduler.load_state(scheduler, &mut *self.optimizer)?;
        self.epoch = c.epoch;
        if let Some(&state) = c.generators.get("default") {
            default_generator().set_state(state);
        }
        let losses = c.extra.get("losses").map_or("", String::as_str).split_whitespace();
        self.losses = losses.filter_map(|l| u32::from_str_radix(l, 16).ok()).map(f32::from_bits).collect();
        Ok(())
    }

    /// One epoch; the mean loss and the time it took.
    fn train(
        &mut self,
        batches: impl Iterator<Item = Result<Batch>>,
        bar: &ProgressBar,
    ) -> Result<(f64, Duration)> {
        let start = Instant::now();
        let (mut sum, mut images) = (0.0, 0);
        self.net.train();
        for batch in batches {
            let (x, y) = batch?;
            self.optimizer.zero_grad();
            let loss = self.net.forward(&x).cross_entropy(&y);
            loss.backward();
            self.optimizer.step();
            self.scheduler.step(&mut *self.optimizer);
            let (n, loss) = (y.numel(), loss.item::<f32>());
            self.losses.push(loss);
            sum += f64::from(loss) * n as f64;
            images += n;
            bar.inc(n as u64);
            bar.set_message(format!("loss {:.4}", sum / images as f64));
        }
        self.epoch += 1;
        Ok((sum / images as f64, start.elapsed()))
    }

    /// The part of the images that is classified rightly.
    fn accuracy(&mut self, batches: impl Iterator<Item = Result<Batch>>) -> Result<f64> {
        self.net.eval();
        let (mut right, mut all) = (0, 0);
        for batch in batches {
            let (x, y) = batch?;
            right += correct(&no_grad(|| self.net.forward(&x)), &y)?;
            all += y.numel();
        }
        Ok(right as f64 / all as f64)
    }
}

fn run(args: &Args) -> Result<()> {
    if let Some(n) = args.threads {
        threads::set_num_threads(n);
    }
    for (flag, path) in [("--save", &args.save), ("--json", &args.json)] {
        if let Some(path) = path {
            writable(flag, path)?;
        }
    }
    let device = device(&args.device)?;
    let (train, test) = match &args.data {
        Some(dir) => (Mnist::train_in(dir)?, Mnist::test_in(dir)?),
        None => (Mnist::train()?, Mnist::test()?),
    };
    let images = train.len();
    let format = MemoryFormat::from(args.memory_format);
    let loader = |set: Mnist| {
        let in_format = move |(x, y): Batch| Ok((x.try_to_format(format)?, y));
        DataLoader::new(set.normalize(MEAN, STD)).map(in_format).to(&device)
    };
    let train = loader(train).batch_size(args.batch_size).shuffle(args.seed);
    let test = loader(test).batch_size(500);

    let mut run = Run::new(args, &device, train.len())?;
    println!("{} parameters, {images} images, {:?}, {format:?}", run.net.num_parameters(), args.optimizer);
    let (mut time, mut trained, mut last_loss) = (Duration::ZERO, 0, None);
    let mut accuracy = run.accuracy(test.epoch(0))?;
    println!("at the start: test accuracy {:.2}%", 100.0 * accuracy);
    if args.resume.is_some() && run.epoch >= args.epochs {
        println!("the checkpoint is at epoch {} already, nothing to train", run.epoch);
    }
    while run.epoch < args.epochs {
        let bar = ProgressBar::new(images as u64).with_style(style());
        bar.set_prefix(format!("epoch {}/{}", run.epoch + 1, args.epochs));
        let epoch = run.epoch;
        let (loss, took) = run.train(train.epoch(epoch), &bar)?;
        bar.finish_and_clear();
        accuracy = run.accuracy(test.epoch(0))?;
        println!(
            "epoch {}/{}: loss {loss:.4}, test accuracy {:.2}%, {:.1} s, {:.0} images/s",
            run.epoch,
            args.epochs,
            100.0 * accuracy,
            took.as_secs_f64(),
            images as f64 / took.as_secs_f64()
        );
        if !loss.is_finite() {
            eprintln!("warning: the loss is not finite, the training has diverged: try a smaller --lr");
        }
        time += took;
        (trained, last_loss) = (trained + images, Some(loss));
        if let Some(path) = &args.save {
            run.checkpoint().save(path)?;
        }
    }
    if let Some(path) = &args.json {
        let figures = json!({
            "test_accuracy": accuracy,
            "epochs": run.epoch,
            "images_per_second": if trained > 0 { Some(trained as f64 / time.as_secs_f64()) } else { None },
            "peak_rss_bytes": peak_rss_bytes(),
            "final_loss": last_loss,
            "loss_history": run.losses,
        });
        std::fs::write(path, format!("{figures:#}\n")).map_err(|e| {
            Error::new(ErrorKind::Io, "json", format!("{}: cannot be written", path.display())).because(e)
        })?;
    }
    Ok(())
}

fn style() -> ProgressStyle {
    let template = "{prefix} [{wide_bar}] {pos}/{len} {msg} ({eta} left)";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn main() -> std::process::ExitCode {
    match run(&Args::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            std::process::ExitCode::FAILURE
        }
    }
}
