//! Finding and setting up the database servers' programs.

use anyhow::{Context, Result, bail, ensure};
use carillon_tests::process::{bound, is_root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a server is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Measuring what it sustains.
    Rates,
    /// The same, and it counts what each statement costs.
    Profile,
    /// Counting its work, not its time: nothing begins by itself, and nothing waits for a disk.
    Counts,
}

/// Installs a server into `data`; the command that runs it. Durable as in production, unless its work is only counted.
pub fn mariadb(data: &Path, port: u16, purpose: Purpose) -> Result<Command> {
    const USER: &str = "mysql";
    let installer = find("mariadb-install-db", "mariadb-server")?;
    let program = find("mariadbd", "mariadb-server")?;
    let path = data.display();
    install(
        &installer,
        USER,
        data,
        &["--no-defaults", &format!("--datadir={path}"), "--auth-root-authentication-method=normal", "--skip-test-db"],
    )?;
    let init = data.with_extension("sql");
    let account = "CREATE USER 'carillon'@'%' IDENTIFIED BY 'carillon'; GRANT ALL ON *.* TO 'carillon'@'%';\n";
    std::fs::write(&init, account.replace("; ", ";\n"))?;
    let mut command = bound(&program, Some(USER));
    command.current_dir("/").args([
        "--no-defaults".to_owned(),
        format!("--datadir={path}"),
        format!("--tmpdir={path}"),
        format!("--socket={path}/s.sock"),
        format!("--pid-file={path}/s.pid"),
        format!("--init-file={}", init.display()),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--character-set-server=utf8mb4".to_owned(),
        "--innodb-flush-log-at-trx-commit=1".to_owned(),
        "--innodb-buffer-pool-size=256M".to_owned(),
    ]);
    match purpose {
        Purpose::Rates => {}
        Purpose::Profile => drop(command.args([
            "--performance-schema=ON",
            "--performance-schema-instrument=statement/%=ON",
            // By default statements that are prepared are listed, but not counted.
            "--performance-schema-consumer-events-statements-current=ON",
            "--performance-schema-consumer-thread-instrumentation=ON",
        ])),
        Purpose::Counts => drop(command.args([
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-purge-threads=1",
            // Plans would change with the statistics, which are those of all pages, read when the driver says.
            "--innodb-stats-auto-recalc=OFF",
            "--innodb-stats-persistent-sample-pages=100000",
        ])),
    }
    Ok(command)
}

/// The same; everything at its default, save where it listens and that it counts statements if it can.
pub fn postgres(data: &Path, port: u16, purpose: Purpose, counts_statements: &mut bool) -> Result<Command> {
    const USER: &str = "postgres";
    let (installer, program) = (find("initdb", "postgresql")?, find("postgres", "postgresql")?);
    let path = data.display();
    install(
        &installer,
        USER,
        data,
        &[&format!("--pgdata={path}"), "--username=carillon", "--auth=trust", "--encoding=UTF8", "--locale=C"],
    )?;
    let library = program.parent().and_then(Path::parent).map(|home| home.join("lib/pg_stat_statements.so"));
    *counts_statements = library.is_some_and(|file| file.exists());
    let mut command = bound(&program, Some(USER));
    command.current_dir("/").arg("-D").arg(data).args(["-p", &port.to_string()]);
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
    if *counts_statements {
        command.args(["-c", "shared_preload_libraries=pg_stat_statements"]);
    }
    if purpose == Purpose::Counts {
        // Images of whole pages would be as many as there are checkpoints.
        for setting in [
            "fsync=off",
            "full_page_writes=off",
            "autovacuum=off",
            "bgwriter_lru_maxpages=0",
            "checkpoint_timeout=1d",
            "max_wal_size=16GB",
        ] {
            command.args(["-c", setting]);
        }
    }
    Ok(command)
}

/// Makes the system database in `data`, owned by the server's user when this process is root.
fn install(installer: &Path, user: &str, data: &Path, arguments: &[&str]) -> Result<()> {
    std::fs::create_dir_all(data)?;
    if is_root() {
        let status = Command::new("chown").arg(user).arg(data).status().context("cannot run chown")?;
        ensure!(status.success(), "cannot give {} to the user {user}", data.display());
    }
    let done = bound(installer, Some(user)).args(arguments).current_dir("/").output();
    let done = done.with_context(|| format!("cannot run {}", installer.display()))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let failed = || format!("{} failed:\n{}{}", installer.display(), said(&done.stdout), said(&done.stderr));
    ensure!(done.status.success(), failed());
    Ok(())
}

/// Debian keeps each version of `PostgreSQL` in a folder of its own, away from the search path;
/// the newest is taken.
fn find(program: &str, package: &str) -> Result<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    versions.sort_by_key(|path| path.parent().and_then(|p| p.file_name()?.to_str()?.parse::<u32>().ok()));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let mut folders = versions.into_iter().rev().chain(std::env::split_paths(&search)).chain(more);
    match folders.find_map(|folder| Some(folder.join(program)).filter(|path| path.exists())) {
        Some(path) => Ok(path),
        None => bail!("{program} is not installed; on Debian: apt-get install {package}"),
    }
}
