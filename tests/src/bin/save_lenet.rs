//! `save_lenet SOURCE TARGET`: reads a safetensors file that PyTorch's users saved and writes it again with our writer.
//! `cargo xtask safetensors` then opens the result in the Python package.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode};

use stridegrad_core::Result;
use stridegrad_io::{
    safetensors::{SafeTensors, Spec, write},
    write_atomically,
};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [source, target] = arguments.as_slice() else {
        eprintln!("usage: save_lenet SOURCE TARGET");
        return ExitCode::from(2);
    };
    let saved = || -> Result<()> {
        let file = SafeTensors::open(source)?;
        let header = file.header();
        // The other way round: the writer has an order of its own.
        let specs: Vec<Spec> = header
            .entries
            .iter()
            .rev()
            .map(|e| Spec { name: e.name.clone(), dtype: e.dtype, shape: e.shape.clone() })
            .collect();
        write_atomically(target, |out| {
            write(out, &specs, &header.metadata, &mut |i, bytes| {
                bytes.extend(file.bytes(&specs[i].name)?);
                Ok(())
            })
        })
    };
    match saved() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
