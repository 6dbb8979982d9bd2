//! One temporary folder per test process, removed when the process ends, however it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set to keep the folder (with all logs) after the run.
const KEEP: &str = "CARILLON_TESTS_KEEP";

struct Root {
    path: PathBuf,
    /// The watchdog's standard input: it ends with this process, and the watchdog sees it.
    _alive: Option<ChildStdin>,
}

static ROOT: OnceLock<Root> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A new folder of that name (and a number) for one server or one scenario.
#[must_use]
pub fn fresh(name: &str) -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = root().join(format!("{number}-{name}"));
    fs::create_dir_all(&path).expect("create a folder for the test");
    path
}

fn root() -> &'static Path {
    &ROOT.get_or_init(create).path
}

// The watchdog outlives this process; nothing is left to wait for it.
#[allow(clippy::zombie_processes)]
fn create() -> Root {
    let path =
        tempfile::Builder::new().prefix("carillon-tests-").tempdir().expect("create the temporary folder").keep();
    // Database servers run as their own user and must be able to come in.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("open the folder");
    if std::env::var_os(KEEP).is_some() {
        eprintln!("keeping {}", path.display());
        return Root { path, _alive: None };
    }
    // `cat` ends when this process does, also by SIGKILL; then servers get a moment to die.
    // Its own process group: a Ctrl-C in the terminal must not reach it.
    let mut watchdog = Command::new("sh")
        .args(["-c", "cat >/dev/null; sleep 1; rm -rf -- \"$0\"; sleep 2; rm -rf -- \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("start the watchdog");
    Root { path, _alive: watchdog.stdin.take() }
}
