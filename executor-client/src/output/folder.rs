//! Where output is stored: `<log>-<attempt>.log` in the folder `output` of the process's journal.
//!
//! Each process writes to its own slot's folder. Other folders are read as well: slots change
//! owners when processes restart, and (log, attempt) identifies a run wherever it ran.

use carillon_protocol::RunKey;
use std::path::{Path, PathBuf};

/// Name of the folder in a slot.
const NAME: &str = "output";

const EXTENSION: &str = "log";

/// The folder of one process.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    own: PathBuf,
    /// Has the slots of all processes.
    slots: PathBuf,
    slots_max: u32,
}

impl Folder {
    /// In the journal's directory `slot`, of at most `slots_max` beside each other.
    pub(crate) fn of(slot: &Path, slots_max: u32) -> Self {
        Self { own: slot.join(NAME), slots: slot.parent().unwrap_or(slot).to_owned(), slots_max }
    }

    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// Where this process writes the output of a run.
    pub(super) fn file(&self, key: RunKey) -> PathBuf {
        self.own.join(file_name(key))
    }

    /// Where the output of a run is, or would be.
    pub(super) fn find(&self, key: RunKey) -> PathBuf {
        let own = self.file(key);
        if own.exists() {
            return own;
        }
        let found = self.others().map(|folder| folder.join(file_name(key))).find(|file| file.exists());
        found.unwrap_or(own)
    }

    /// The folders of other slots.
    pub(super) fn others(&self) -> impl Iterator<Item = PathBuf> {
        let slots = (0..self.slots_max).map(|slot| self.slots.join(slot.to_string()));
        slots.take_while(|slot| slot.is_dir()).map(|slot| slot.join(NAME)).filter(|folder| *folder != self.own)
    }
}

fn file_name(RunKey(log, attempt): RunKey) -> String {
    format!("{log}-{attempt}.{EXTENSION}")
}

/// The run whose output lies in this file.
pub(super) fn run_of(file: &Path) -> Option<RunKey> {
    let stem = file.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let (log, attempt) = stem.split_once('-')?;
    Some(RunKey(log.parse().ok()?, attempt.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_run_and_nothing_else_does() {
        let folder = Folder::of(Path::new("/j/t/a/0"), 3);
        let file = folder.file(RunKey(12, 3));
        assert_eq!(file, Path::new("/j/t/a/0/output/12-3.log"));
        assert_eq!(run_of(&file), Some(RunKey(12, 3)));
        for other in ["12-3.txt", "12.log", "a-3.log", "lock", "12-3.log.new"] {
            assert_eq!(run_of(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn the_output_of_another_slot_is_found() {
        let root = tempfile::tempdir().unwrap();
        let slot = |number: u32| root.path().join(number.to_string());
        for number in 0..3 {
            std::fs::create_dir_all(slot(number).join(NAME)).unwrap();
        }
        let key = RunKey(7, 1);
        let there = Folder::of(&slot(2), 256).file(key);
        std::fs::write(&there, "x").unwrap();
        let folder = Folder::of(&slot(1), 256);
        assert_eq!(folder.find(key), there);
        assert_eq!(folder.find(RunKey(7, 2)), folder.file(RunKey(7, 2)));
        assert_eq!(folder.others().count(), 2);
    }
}
