//! Plain executors for the benchmark, all in one process with one thread: they register with an xxl-job admin, take runs, which end
//! at once, and call back.
//!
//! When a run arrived is kept in memory and written when the process is told to end. Settings come from the environment:
//!
//! - `FLEET_ADMIN=url`: the admin, with its context path;
//! - `FLEET_APPS=path`: a line for each executor: its app and the token, separated by a tab;
//! - `FLEET_RECORDS=path`: where the records go: the number of a run and when it arrived (epoch µs), little-endian, 8 bytes each;
//! - `FLEET_ROOM=number`: runs for which room is set aside.

mod admin;
mod executor;
mod message;

use executor::Executor;
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

/// How long the last callbacks may take after the process was told to end.
const END_MAX: Duration = Duration::from_mins(1);

/// One arrival: the number of the run, and when, epoch µs.
type Record = (i64, i64);

/// What all executors keep.
struct Records(RefCell<Vec<Record>>);

impl Records {
    fn keep(&self, log: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        self.0.borrow_mut().push((log, now));
    }

    /// Under a name that no half-written file ever has.
    fn write(&self, path: &Path) -> io::Result<()> {
        let unfinished = path.with_extension("unfinished");
        let bytes: Vec<u8> =
            self.0.borrow().iter().flat_map(|(log, at)| [*log, *at]).flat_map(i64::to_le_bytes).collect();
        std::fs::write(&unfinished, bytes)?;
        std::fs::rename(unfinished, path)
    }
}

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(run()))
}

async fn run() -> io::Result<()> {
    let mut told_to_end = signal(SignalKind::terminate())?;
    let room = setting("FLEET_ROOM")?.parse().map_err(io::Error::other)?;
    let records = Rc::new(Records(RefCell::new(Vec::with_capacity(room))));
    let admin = admin::Admin::at(&setting("FLEET_ADMIN")?)?;
    let list = std::fs::read_to_string(setting("FLEET_APPS")?)?;
    let mut executors = Vec::new();
    for line in list.lines() {
        let (app, token) = line.split_once('\t').ok_or_else(|| io::Error::other("FLEET_APPS: no tab in a line"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let executor =
            Rc::new(Executor::new(app, token, listener.local_addr()?.port(), admin.clone(), Rc::clone(&records)));
        tokio::task::spawn_local(Rc::clone(&executor).listen(listener));
        tokio::task::spawn_local(Rc::clone(&executor).keep_registered());
        tokio::task::spawn_local(Rc::clone(&executor).keep_calling_back());
        executors.push(executor);
    }
    told_to_end.recv().await;
    let all_told = async {
        while executors.iter().any(|executor| executor.has_more_to_tell()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(END_MAX, all_told).await.is_err() {
        eprintln!("the admin has not taken all callbacks");
    }
    records.write(&PathBuf::from(setting("FLEET_RECORDS")?))
}

fn setting(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
