//! When a node last acknowledged a heartbeat, kept beside the journal for the process that comes after this one: if the nodes'
//! database is restored from an older backup while both are down, nobody else knows what the database has forgotten.
//!
//! A line as in the journal. It is replaced every few seconds and not synced: an older time, or none, only shows less.

use crate::checked::{line, payload};
use crate::disk::Disk;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: &str = "acknowledged";

/// Replaced when it is so far from the truth, ms. The recorder looks every second, so it is never as late as
/// [`carillon_protocol::ACKNOWLEDGED_LAG_MS`].
const KEEP_FROM_MS: u64 = 2_000;

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    acknowledged_at: i64,
}

/// The file of this process.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    disk: Arc<dyn Disk>,
    file: PathBuf,
    /// What was written last, or could not be.
    kept: i64,
    is_failing: bool,
}

impl Acknowledged {
    /// Takes over what earlier processes kept in this folder and in abandoned ones. The caller has the locks of all.
    pub(crate) fn open<'a>(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        abandoned: impl Iterator<Item = &'a Path> + Clone,
    ) -> Self {
        let file = folder.join(FILE);
        let kept = read(&**disk, &file);
        let mut this = Self { disk: Arc::clone(disk), file, kept, is_failing: false };
        let others = abandoned.map(|folder| folder.join(FILE));
        let newest = others.clone().map(|other| read(&**disk, &other)).max();
        this.keep(newest.map_or(kept, |newest| newest.max(kept)));
        for other in others.filter(|_| !this.is_failing) {
            if let Err(error) = disk.remove(&other) {
                tracing::warn!(path = %other.display(), %error, "acknowledged.abandoned_not_removed");
            }
        }
        this
    }

    /// By the clock of the node, ms; 0 when none ever has.
    pub(crate) fn at(&self) -> i64 {
        self.kept
    }

    /// Keeps this time (ms) if it is time to.
    pub(crate) fn follow(&mut self, at: i64) {
        if at.abs_diff(self.kept) >= KEEP_FROM_MS {
            self.keep(at);
        }
    }

    /// Keeps this time (ms).
    pub(crate) fn keep(&mut self, at: i64) {
        if at == self.kept {
            return;
        }
        self.kept = at;
        let written = self.write(at);
        if let Err(error) = &written
            && !self.is_failing
        {
            tracing::warn!(
                path = %self.file.display(),
                %error,
                "acknowledged.not_written: after a restart this process cannot tell nodes that their database was restored"
            );
        }
        self.is_failing = written.is_err();
    }

    fn write(&self, acknowledged_at: i64) -> io::Result<()> {
        let mut text = Vec::new();
        line(&mut text, &serde_json::to_vec(&Content { acknowledged_at })?);
        self.disk.replace(&self.file, &text)
    }
}

/// 0 when there is none, or none that can be believed.
fn read(disk: &dyn Disk, file: &Path) -> i64 {
    let text = match disk.read(file) {
        Ok(Some(text)) => text,
        Ok(None) => return 0,
        Err(error) => {
            tracing::warn!(path = %file.display(), %error, "acknowledged.not_read");
            return 0;
        }
    };
    let content = payload(&text).and_then(|json| serde_json::from_slice::<Content>(json).ok());
    if content.is_none() {
        tracing::warn!(path = %file.display(), "acknowledged.damaged");
    }
    content.map_or(0, |content| content.acknowledged_at.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::machine;

    fn open(folder: &Path, abandoned: &[&Path]) -> Acknowledged {
        Acknowledged::open(&machine(), folder, abandoned.iter().copied())
    }

    fn put(folder: &Path, json: &str) {
        let mut text = Vec::new();
        line(&mut text, json.as_bytes());
        std::fs::write(folder.join(FILE), text).unwrap();
    }

    #[test]
    fn it_is_written_when_it_is_behind_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut this = open(folder.path(), &[]);
        assert_eq!(this.at(), 0);
        let kept = |this: &mut Acknowledged, at| {
            this.follow(at);
            open(folder.path(), &[]).at()
        };
        assert_eq!([10_000, 11_999, 12_000, 12_001].map(|at| kept(&mut this, at)), [10_000, 10_000, 12_000, 12_000]);
        // The clock of the database was set back.
        assert_eq!(kept(&mut this, 5_000), 5_000);
        this.keep(5_001);
        assert_eq!(open(folder.path(), &[]).at(), 5_001);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_newest_of_all_folders_counts_and_the_others_are_cleared() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [own, one, two] = [0, 1, 2].map(|at| folders[at].path());
        for (folder, at) in [(own, 10_000), (one, 30_000), (two, 20_000)] {
            open(folder, &[]).keep(at);
        }
        assert_eq!(open(own, &[one, two]).at(), 30_000);
        assert_eq!(open(own, &[]).at(), 30_000);
        assert!(!one.join(FILE).exists() && !two.join(FILE).exists());
    }

    #[test]
    fn what_cannot_be_moved_stays_where_it_is() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        open(other.path(), &[]).keep(30_000);
        std::fs::create_dir(own.path().join(FILE)).unwrap();
        assert_eq!(open(own.path(), &[other.path()]).at(), 30_000);
        assert!(other.path().join(FILE).exists());
    }

    #[test]
    fn only_what_makes_sense_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let believed = |json: &str| {
            put(folder.path(), json);
            open(folder.path(), &[]).at()
        };
        assert_eq!(believed(r#"{"acknowledged_at": 7, "of": "a later release"}"#), 7);
        for nonsense in [r#"{"acknowledged_at": -7}"#, "{}", "7", "", r#"{"acknowledged_at": 99999999999999999999}"#] {
            assert_eq!(believed(nonsense), 0, "{nonsense}");
        }
    }
}
