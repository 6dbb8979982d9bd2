//! The built binaries and their environment.

use crate::process::bound;
use std::path::PathBuf;
use std::process::Command;

/// Where cargo put what it built: a test binary lies in `target/<profile>/deps`, others in `target/<profile>`.
fn build_folder() -> PathBuf {
    let me = std::env::current_exe().expect("the path of this program");
    let folder = me.parent().expect("a program lies in a folder");
    if folder.ends_with("deps") { folder.parent().expect("a test binary lies two folders deep") } else { folder }
        .to_owned()
}

fn built(variable: &str, relative: &str, how: &str) -> PathBuf {
    let path = std::env::var_os(variable).map_or_else(|| build_folder().join(relative), PathBuf::from);
    assert!(path.exists(), "{} is not built; run: {how}", path.display());
    path
}

/// `carillon`, dying with the test process, knowing nothing of this process's own settings.
#[must_use]
pub fn carillon() -> Command {
    let program = built("CARILLON_BIN", "carillon", "cargo build -p carillon");
    without_settings(bound(&program, None))
}

/// How many of the made-up steps a later `carillon` knows.
pub const LATER_STEPS: &str = "LATER_STEPS";

/// `carillon` as a later release may be, which knows so many steps of the schema more: see `src/bin/later.rs`.
#[must_use]
pub fn later_carillon(steps: usize) -> Command {
    let program = built("CARILLON_LATER_BIN", "carillon-later", "cargo build -p carillon-tests --bins");
    let mut command = without_settings(bound(&program, None));
    command.env(LATER_STEPS, steps.to_string());
    command
}

/// The demo executor.
#[must_use]
pub fn demo() -> Command {
    let how = "cargo build -p carillon-executor --examples";
    without_settings(bound(&built("CARILLON_DEMO_BIN", "examples/demo", how), None))
}

/// The executor of `scripts/chaos`.
#[must_use]
pub fn chaos_executor() -> Command {
    let how = "cargo build -p carillon-executor --example chaos";
    without_settings(bound(&built("CARILLON_CHAOS_BIN", "examples/chaos", how), None))
}

/// The probe of a published library: of xxl-job executors, or `nacos`.
#[must_use]
pub fn client(name: &str) -> Command {
    // `target/clients`, or where `CARGO_TARGET_DIR` is.
    let relative = format!("../clients/{name}/probe");
    let folder = std::env::var_os("CARILLON_CLIENTS").map(|folder| PathBuf::from(folder).join(name).join("probe"));
    let path = folder.unwrap_or_else(|| build_folder().join(relative));
    assert!(path.exists(), "{} is not built; run: ./scripts/clients {name}", path.display());
    without_settings(bound(&path, None))
}

fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARILLON") || name_text.starts_with("DEMO_") || name_text.starts_with("RUST_LOG") {
            command.env_remove(&name);
        }
    }
    command.env("RUST_BACKTRACE", "1").env("NO_COLOR", "1");
    command
}
