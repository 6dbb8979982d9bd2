//! The binary `carillon`.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    carillon::tls::install_provider();
    carillon::cli::run(carillon::cli::Cli::parse()).unwrap_or_else(|error| carillon::cli::exit::code_of(&error))
}
