//! `PostgreSQL` with little memory.

use super::{make_folder_of, run_installer};
use crate::process::bound;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const USER: &str = "postgres";

/// A program of PostgreSQL. Debian keeps each version in a folder of its own; the newest one is taken.
pub fn program(name: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("PostgreSQL's {name} is not installed; ./scripts/test installs it"))
}

/// Makes the system database in `data`.
pub fn install(data: &Path) {
    make_folder_of(USER, data);
    let arguments = [
        format!("--pgdata={}", data.display()),
        "--username=carillon".to_owned(),
        "--auth=trust".to_owned(),
        "--encoding=UTF8".to_owned(),
        "--locale=C".to_owned(),
        "--no-sync".to_owned(),
    ];
    run_installer(&program("initdb"), USER, &arguments);
}

/// The server on `data`; its commits are as durable as in production, or not at all.
pub fn serve(data: &Path, port: u16, is_durable: bool) -> Command {
    let mut command = bound(&program("postgres"), Some(USER));
    command.arg("-D").arg(data).args(["-p", &port.to_string()]);
    for setting in
        ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=400", "shared_buffers=64MB"]
    {
        command.args(["-c", setting]);
    }
    let durable = if is_durable { "on" } else { "off" };
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        command.args(["-c", &format!("{setting}={durable}")]);
    }
    command.current_dir("/");
    command
}
