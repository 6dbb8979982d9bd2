//! `MariaDB` with little memory.

use super::{find_program, make_folder_of, run_installer};
use crate::process::bound;
use std::fs;
use std::path::Path;
use std::process::Command;

const USER: &str = "mysql";

/// Makes the system database in `data`.
pub fn install(data: &Path) {
    make_folder_of(USER, data);
    let installer =
        find_program("mariadb-install-db", &["/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db"]);
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", data.display()),
        own_temporary_files(data),
        "--auth-root-authentication-method=normal".to_owned(),
        "--skip-test-db".to_owned(),
        "--innodb-log-file-size=32M".to_owned(),
    ];
    if !crate::process::is_root() {
        arguments.push("--force".to_owned());
    }
    run_installer(&installer, USER, &arguments);
}

/// A server that starts, the installer's too, deletes what looks like a temporary table in there, also another server's: each has
/// its own folder.
fn own_temporary_files(data: &Path) -> String {
    format!("--tmpdir={}", data.display())
}

/// The server on `data`; its commits are as durable as in production, or not at all.
pub fn serve(data: &Path, port: u16, is_durable: bool, environment: &[(String, String)]) -> Command {
    let program = find_program("mariadbd", &["/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd", "/usr/bin/mariadbd"]);
    // Read at each start; makes the account that nodes and tests use.
    let init = data.with_extension("sql");
    fs::write(
        &init,
        "CREATE USER IF NOT EXISTS 'carillon'@'%' IDENTIFIED BY 'carillon';\n\
         GRANT ALL ON *.* TO 'carillon'@'%' WITH GRANT OPTION;\n",
    )
    .expect("write the init file");
    // Only the server is to have this environment, not what starts it as another user.
    let mut command = bound(Path::new("/usr/bin/env"), Some(USER));
    command.args(environment.iter().map(|(name, value)| format!("{name}={value}"))).arg(&program);
    command.args([
        "--no-defaults".to_owned(),
        format!("--datadir={}", data.display()),
        own_temporary_files(data),
        format!("--socket={}/s.sock", data.display()),
        format!("--pid-file={}/s.pid", data.display()),
        format!("--init-file={}", init.display()),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--character-set-server=utf8mb4".to_owned(),
        "--innodb-buffer-pool-size=64M".to_owned(),
        "--innodb-log-file-size=32M".to_owned(),
        "--performance-schema=OFF".to_owned(),
        "--max-connections=400".to_owned(),
    ]);
    command.args(if is_durable {
        ["--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=fsync", "--innodb-doublewrite=ON"]
    } else {
        ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF"]
    });
    command.current_dir("/");
    command
}
