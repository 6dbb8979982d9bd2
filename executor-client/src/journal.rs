//! Results on disk until a node has acknowledged them.
//!
//! One append-only file of lines, `<crc32> <json>\n`: a result is a JSON object, a batch of
//! acknowledged runs an array of `[log, attempt]`. The recorder writes a batch with one flush.
//! A torn last line or a damaged one in between is skipped with a warning. When more than half
//! of the file is acknowledged it is rewritten; when all of it is, it is truncated.
//!
//! # Directories
//! The journal is in `<tenant>/<app>/<slot>/` below the configured directory. Each process locks
//! the first free slot, so any number of executors may share one setting. At start a process moves
//! the contents of unlocked slots into its own: the results of a process that never came back are
//! sent by the next one that starts.

use crate::BuildError;
use crate::acknowledged::Acknowledged;
use crate::checked::{line, payload};
use crate::disk::{Disk, DiskFile, DiskLock};
use crate::output::Folder;
use crate::run_map::RunMap;
use bytes::Bytes;
use carillon_protocol::{RunKey, RunResult};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Processes that may share one (directory, tenant, app).
const SLOTS_MAX: u32 = 256;

/// A file smaller than this is not worth rewriting, bytes.
const REWRITE_FROM_BYTES: u64 = 4 * 1024 * 1024;

/// A file smaller than this is not truncated when all of it is acknowledged, bytes.
const CUT_FROM_BYTES: u64 = 64 * 1024;

const FILE: &str = "results.journal";
const FILE_NEW: &str = "results.journal.new";
const LOCK: &str = "lock";

/// Unacknowledged results, each as the JSON that goes over the wire.
pub(crate) type Pending = RunMap<Bytes>;

/// The open journal of this process.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: Box<dyn DiskFile>,
    bytes: u64,
    /// A write failed halfway: the next one must rewrite the file.
    damaged: bool,
    /// Kept beside it.
    pub(crate) acknowledged: Acknowledged,
    /// Held for as long as the process uses the directory.
    _lock: DiskLock,
}

impl Journal {
    /// Opens the first free slot below `root`, and returns what it and every abandoned slot
    /// still hold.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        root: &Path,
        tenant: &str,
        app: &str,
    ) -> Result<(Self, Pending), BuildError> {
        let base = root.join(file_name(tenant)).join(file_name(app));
        let mut slots = (0..SLOTS_MAX).map(|slot| base.join(slot.to_string()));
        let (dir, lock) = loop {
            let Some(dir) = slots.next() else {
                let full = io::Error::other(format!("{SLOTS_MAX} processes use it already"));
                return Err(failed(&base, "lock", full));
            };
            disk.create_folder(&dir).map_err(|e| failed(&dir, "create", e))?;
            if let Some(lock) = try_lock(&**disk, &dir)? {
                break (dir, lock);
            }
        };
        let path = dir.join(FILE);
        let mut pending = Pending::default();
        load(&**disk, &path, &mut pending).map_err(|e| failed(&path, "read", e))?;
        let mut abandoned = Vec::new();
        for other in slots.take_while(|dir| disk.is_folder(dir)) {
            if let Some(lock) = try_lock(&**disk, &other)? {
                let path = other.join(FILE);
                load(&**disk, &path, &mut pending).map_err(|e| failed(&path, "read", e))?;
                abandoned.push((other, lock));
            }
        }
        let file = disk.open(&path).map_err(|e| failed(&path, "open", e))?;
        let acknowledged = Acknowledged::open(disk, &dir, abandoned.iter().map(|(other, _)| other.as_path()));
        let disk = Arc::clone(disk);
        let mut journal = Self { disk, dir, file, bytes: 0, damaged: false, acknowledged, _lock: lock };
        // Proves that the directory can be written, and drops damaged lines for good.
        journal.rewrite(&pending).map_err(|e| failed(&path, "write", e))?;
        // Only now: until this instant the other files were the only copies.
        for (other, _lock) in abandoned {
            let path = other.join(FILE);
            if let Err(error) = journal.disk.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "journal.abandoned_not_removed");
            }
        }
        Ok((journal, pending))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where this process keeps the output of its runs.
    pub(crate) fn output(&self) -> Folder {
        Folder::of(&self.dir, SLOTS_MAX)
    }

    /// Appends results and acknowledgements. Results are on the disk when this returns;
    /// acknowledgements need not be, a result may be sent twice. `alive_bytes` is the size of
    /// everything unacknowledged after this call and `alive` fetches it; that is seldom needed.
    pub(crate) fn append<'a>(
        &mut self,
        results: impl Iterator<Item = &'a Bytes>,
        acknowledged: &[RunKey],
        alive_bytes: u64,
        alive: impl Fn() -> Pending,
    ) -> io::Result<()> {
        if self.damaged {
            return self.rewrite(&alive());
        }
        let mut text = Vec::new();
        for result in results {
            line(&mut text, result);
        }
        let flush = !text.is_empty();
        if !acknowledged.is_empty() {
            line(&mut text, &serde_json::to_vec(acknowledged)?);
        }
        self.damaged = true;
        self.file.append(&text)?;
        if flush {
            self.file.sync()?;
        }
        self.damaged = false;
        self.bytes += text.len() as u64;
        if alive_bytes == 0 && self.bytes >= CUT_FROM_BYTES {
            return self.cut();
        }
        if self.bytes >= REWRITE_FROM_BYTES && alive_bytes * 2 < self.bytes {
            return self.rewrite(&alive());
        }
        Ok(())
    }

    /// Empties the file when nothing is unacknowledged any more.
    pub(crate) fn cut(&mut self) -> io::Result<()> {
        self.file.clear()?;
        self.bytes = 0;
        Ok(())
    }

    fn rewrite(&mut self, pending: &Pending) -> io::Result<()> {
        let mut text = Vec::new();
        for json in pending.values() {
            line(&mut text, json);
        }
        let new = self.dir.join(FILE_NEW);
        let path = self.dir.join(FILE);
        self.disk.remove(&new)?;
        let mut file = self.disk.open(&new)?;
        file.append(&text)?;
        file.sync()?;
        self.disk.rename(&new, &path)?;
        self.file = file;
        self.bytes = text.len() as u64;
        self.damaged = false;
        Ok(())
    }
}

fn try_lock(disk: &dyn Disk, dir: &Path) -> Result<Option<DiskLock>, BuildError> {
    let path = dir.join(LOCK);
    disk.try_lock(&path).map_err(|e| failed(&path, "lock", e))
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> BuildError {
    BuildError::Journal { path: path.to_owned(), action, source }
}

/// Adds what the file at `path` holds unacknowledged to `pending`.
fn load(disk: &dyn Disk, path: &Path, pending: &mut Pending) -> io::Result<()> {
    let Some(text) = disk.read(path)? else { return Ok(()) };
    let mut damaged = 0u64;
    let mut found = Pending::default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if !replay(line, &mut found) {
            damaged += 1;
        }
    }
    if damaged > 0 {
        tracing::warn!(path = %path.display(), lines = damaged, "journal.damaged_lines_skipped");
    }
    if !found.is_empty() {
        tracing::info!(path = %path.display(), results = found.len(), "journal.loaded");
    }
    pending.extend(found);
    Ok(())
}

/// Applies one line to `pending`; `false` when it is torn or damaged.
fn replay(line: &[u8], pending: &mut Pending) -> bool {
    let Some(json) = payload(line) else {
        return false;
    };
    if let Ok(result) = serde_json::from_slice::<RunResult>(json) {
        pending.insert(RunKey(result.log, result.attempt), Bytes::copy_from_slice(json));
        return true;
    }
    match serde_json::from_slice::<Vec<RunKey>>(json) {
        Ok(keys) => {
            for key in keys {
                pending.remove(&key);
            }
            true
        }
        Err(_) => false,
    }
}

/// A directory name for `name`: other than plain characters are escaped, so two names never
/// share a directory and none leaves the tree.
fn file_name(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' => c.to_string(),
            other => format!("%{:x}.", u32::from(other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::machine;
    use carillon_protocol::RunStatus;

    fn result(log: i64) -> (RunKey, Bytes) {
        let result = RunResult {
            log,
            attempt: 1,
            status: RunStatus::Succeeded,
            message: String::new(),
            output: "line\nbreak".into(),
            started_at: 1,
            finished_at: 2,
            due_time: 0,
        };
        let json = serde_json::to_vec(&result).unwrap();
        (RunKey(log, 1), Bytes::from(json))
    }

    fn write(journal: &mut Journal, pending: &mut Pending, logs: &[i64]) {
        let new: Vec<_> = logs.iter().map(|log| result(*log)).collect();
        pending.extend(new.iter().cloned());
        journal.append(new.iter().map(|(_, json)| json), &[], 1, Pending::default).unwrap();
    }

    #[test]
    fn unacknowledged_results_survive_a_restart() {
        let root = tempfile::tempdir().unwrap();
        let (mut journal, mut pending) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        write(&mut journal, &mut pending, &[1, 2, 3]);
        pending.remove(&RunKey(2, 1));
        journal.append(std::iter::empty(), &[RunKey(2, 1)], 1, Pending::default).unwrap();
        drop(journal);
        let (_, loaded) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        assert_eq!(loaded, pending);
    }

    #[test]
    fn torn_and_damaged_lines_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        let (mut journal, mut pending) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        write(&mut journal, &mut pending, &[1, 2, 3]);
        let path = journal.dir().join(FILE);
        drop(journal);
        let mut text = std::fs::read(&path).unwrap();
        let middle = text.len() / 2;
        text[middle] ^= 1;
        text.truncate(text.len() - 2);
        std::fs::write(&path, text).unwrap();
        let (_, loaded) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        assert_eq!(loaded.keys().collect::<Vec<_>>(), [&RunKey(1, 1)]);
    }

    #[test]
    fn two_processes_share_a_directory_and_the_survivor_inherits() {
        let root = tempfile::tempdir().unwrap();
        let (first, _) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        let (mut second, mut pending) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        assert_ne!(first.dir(), second.dir());
        write(&mut second, &mut pending, &[7]);
        drop((first, second));
        let (_, loaded) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        assert!(loaded.contains_key(&RunKey(7, 1)));
        let (_, other) = Journal::open(&machine(), root.path(), "t", "other").unwrap();
        assert!(other.is_empty());
    }

    #[test]
    fn the_file_shrinks_when_all_is_acknowledged() {
        let root = tempfile::tempdir().unwrap();
        let (mut journal, mut pending) = Journal::open(&machine(), root.path(), "t", "a").unwrap();
        let logs: Vec<i64> = (0..2_000).collect();
        write(&mut journal, &mut pending, &logs);
        assert!(journal.bytes > CUT_FROM_BYTES);
        let keys: Vec<RunKey> = pending.drain().map(|(key, _)| key).collect();
        journal.append(std::iter::empty(), &keys, 0, Pending::default).unwrap();
        assert_eq!(journal.bytes, 0);
    }

    #[cfg(unix)]
    #[test]
    fn no_other_user_reads_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let (mut journal, mut pending) = Journal::open(&machine(), root.path(), "retail", "orders").unwrap();
        write(&mut journal, &mut pending, &[1]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&journal.dir), mode(&journal.dir.join(FILE))), (0o700, 0o600));
    }
}
