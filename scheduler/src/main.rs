//! The binary `carillon`.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    carillon::tls::install_provider();
    match carillon::cli::run(carillon::cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("carillon: {error:#}");
            ExitCode::FAILURE
        }
    }
}
