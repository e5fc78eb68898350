//! `save_lenet SOURCE TARGET`: loads a LeNet that PyTorch's users saved into a module of ours and saves that.
//! `cargo xtask safetensors` then opens the result in the Python package.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode};

use stridegrad::prelude::*;
use stridegrad_tests::nets::LeNet;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [source, target] = arguments.as_slice() else {
        eprintln!("usage: save_lenet SOURCE TARGET");
        return ExitCode::from(2);
    };
    let saved = || -> stridegrad::Result<()> {
        // Other weights at first, and strides of its own: what is saved are values.
        let mut net = LeNet::new(&mut Init::cpu().seed(1)).to(MemoryFormat::ChannelsLast);
        net.load(source)?.require_complete()?;
        net.save(target)
    };
    match saved() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
