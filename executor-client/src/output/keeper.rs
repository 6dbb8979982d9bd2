//! Keeps the files within their bounds: files that are too old are deleted, and the oldest ones when
//! room is needed. Files of unfinished runs stay, since their readers count in bytes; when there is
//! no room besides them, nothing more is written.

use super::Limits;
use super::folder::{Folder, run_of};
use carillon_protocol::RunKey;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Disk space of a file is a multiple of this, bytes. Counted like this, the bound on bytes also
/// bounds the number of files.
const BLOCK: u64 = 4 * 1024;

/// Interval of checks for files that are too old.
const AGE_LOOK: Duration = Duration::from_mins(10);

/// Interval of checks for room, when there was none.
const ROOM_LOOK: Duration = Duration::from_secs(1);

/// Writes files, and deletes them.
#[derive(Debug)]
pub(super) struct Keeper {
    folder: Folder,
    limits: Limits,
    /// Disk space used: as of the last scan, plus what was written since.
    used: u64,
    looked_at: Option<Instant>,
}

/// A file found by a scan.
struct Kept {
    path: PathBuf,
    key: RunKey,
    written_at: SystemTime,
    bytes: u64,
}

impl Keeper {
    pub(super) fn new(folder: Folder, limits: Limits) -> Self {
        Self { folder, limits, used: 0, looked_at: None }
    }

    /// Adds `text` to the file of a run: all of it, or nothing. `open` are the unfinished runs.
    pub(super) fn append(&mut self, key: RunKey, text: &[u8], open: impl Fn() -> HashSet<RunKey>) -> io::Result<()> {
        let most = blocks(text.len() as u64) + BLOCK;
        let room = self.limits.total_bytes.saturating_sub(most);
        if self.used > room && self.is_due(ROOM_LOOK) {
            // Some more than is needed, so that it is not done for each file.
            self.look(room.min(self.limits.total_bytes / 10 * 9), &open())?;
        }
        if self.used > room {
            return Err(io::Error::other("the output limit is reached, and all of it belongs to unfinished runs"));
        }
        let mut file = self.open(&self.folder.file(key))?;
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(text) {
            // A half-written line would be mistaken for a whole one.
            file.set_len(before)?;
            return Err(error);
        }
        self.used += blocks(before + text.len() as u64) - blocks(before);
        Ok(())
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        // Output of runs may be confidential.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(self.folder.own())?;
                options.open(path)
            }
            opened => opened,
        }
    }

    /// From time to time, deletes what is too old, and what exceeds the bound.
    pub(super) fn tidy(&mut self, open: impl Fn() -> HashSet<RunKey>) -> io::Result<()> {
        if self.is_due(AGE_LOOK) {
            self.look(self.limits.total_bytes, &open())?;
            // Left by processes whose slot no process has taken since.
            for folder in self.folder.others() {
                self.delete_old(list(&folder)?, &HashSet::new())?;
            }
        }
        Ok(())
    }

    fn is_due(&self, period: Duration) -> bool {
        self.looked_at.is_none_or(|at| at.elapsed() >= period)
    }

    /// Scans all files; deletes those that are too old and, from the oldest on, as many as
    /// needed to get down to `target` bytes.
    fn look(&mut self, target: u64, open: &HashSet<RunKey>) -> io::Result<()> {
        self.looked_at = Some(Instant::now());
        let mut kept = self.delete_old(list(self.folder.own())?, open)?;
        self.used = kept.iter().map(|file| file.bytes).sum();
        if self.used > target {
            kept.sort_unstable_by_key(|file| file.written_at);
            for file in kept.iter().filter(|file| !open.contains(&file.key)) {
                if self.used <= target {
                    break;
                }
                delete(&file.path)?;
                self.used -= file.bytes;
            }
        }
        Ok(())
    }

    /// Deletes what is too old; returns the rest.
    fn delete_old(&self, mut files: Vec<Kept>, open: &HashSet<RunKey>) -> io::Result<Vec<Kept>> {
        // The wall clock, because file times use it; nothing else does.
        let now = SystemTime::now();
        let mut failed = Ok(());
        files.retain(|file| {
            let age = now.duration_since(file.written_at).unwrap_or_default();
            if age <= self.limits.age || open.contains(&file.key) {
                return true;
            }
            let deleted = delete(&file.path);
            let is_deleted = deleted.is_ok();
            failed = std::mem::replace(&mut failed, Ok(())).and(deleted);
            !is_deleted
        });
        failed.map(|()| files)
    }
}

fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

fn delete(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The files of output in a folder; others are left alone.
fn list(folder: &Path) -> io::Result<Vec<Kept>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let Some(key) = run_of(&path) else { continue };
        // It may have been deleted since.
        if let Ok(metadata) = path.metadata() {
            files.push(Kept { path, key, written_at: metadata.modified()?, bytes: blocks(metadata.len()) });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn keeper(slot: &Path, total_blocks: u64) -> Keeper {
        let limits = Limits { run_bytes: 1024, total_bytes: total_blocks * BLOCK, age: HOUR };
        Keeper::new(Folder::of(slot, 1), limits)
    }

    fn logs(slot: &Path) -> Vec<i64> {
        let mut logs: Vec<i64> = list(&slot.join("output")).unwrap().iter().map(|file| file.key.0).collect();
        logs.sort_unstable();
        logs
    }

    fn age(slot: &Path, log: i64, age: Duration) {
        let file = File::options().append(true).open(Folder::of(slot, 1).file(RunKey(log, 1))).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn lines_are_added_and_the_folder_is_made() {
        let slot = tempfile::tempdir().unwrap();
        let mut keeper = keeper(slot.path(), 10);
        for text in ["one\n", "two\n"] {
            keeper.append(RunKey(1, 1), text.as_bytes(), HashSet::new).unwrap();
        }
        assert_eq!(std::fs::read_to_string(keeper.folder.file(RunKey(1, 1))).unwrap(), "one\ntwo\n");
        assert_eq!(keeper.used, BLOCK);
    }

    #[test]
    fn the_oldest_make_room_and_those_that_go_on_stay() {
        let slot = tempfile::tempdir().unwrap();
        let mut keeper = keeper(slot.path(), 10);
        for log in 1..=8 {
            keeper.append(RunKey(log, 1), b"x", HashSet::new).unwrap();
            age(slot.path(), log, Duration::from_secs(600 - log as u64));
        }
        keeper.looked_at = None;
        let open = || HashSet::from([RunKey(1, 1)]);
        keeper.append(RunKey(9, 1), &vec![b'y'; 3 * BLOCK as usize], open).unwrap();
        assert!(keeper.used <= 10 * BLOCK);
        let left = logs(slot.path());
        assert!(left.contains(&1) && left.contains(&9) && !left.contains(&2), "{left:?}");
    }

    #[test]
    fn without_room_nothing_is_written() {
        let slot = tempfile::tempdir().unwrap();
        let mut keeper = keeper(slot.path(), 4);
        let all = || (1..=9).map(|log| RunKey(log, 1)).collect::<HashSet<_>>();
        let mut written = 0;
        for log in 1..=9 {
            written += i32::from(keeper.append(RunKey(log, 1), b"x", all).is_ok());
        }
        assert!((2..=4).contains(&written), "{written}");
        assert_eq!(logs(slot.path()).len() as i32, written);
    }

    #[test]
    fn expired_runs_go_also_in_slots_without_an_owner() {
        let root = tempfile::tempdir().unwrap();
        let slots = ["0", "1"].map(|number| root.path().join(number));
        let limits = Limits { run_bytes: 1024, total_bytes: 100 * BLOCK, age: HOUR };
        for slot in &slots {
            std::fs::create_dir(slot).unwrap();
            let mut keeper = Keeper::new(Folder::of(slot, 2), limits);
            for log in 1..=3 {
                keeper.append(RunKey(log, 1), b"x", HashSet::new).unwrap();
            }
            age(slot, 1, HOUR * 2);
            age(slot, 2, HOUR * 2);
        }
        let mut keeper = Keeper::new(Folder::of(&slots[1], 2), limits);
        keeper.tidy(|| HashSet::from([RunKey(2, 1)])).unwrap();
        assert_eq!(logs(&slots[1]), [2, 3], "one of them goes on");
        assert_eq!(logs(&slots[0]), [3]);
        keeper.tidy(HashSet::new).unwrap();
        assert_eq!(logs(&slots[1]), [2, 3], "it was looked just now");
    }
}
