//! What happened, as lines of a file, by the clock.

use anyhow::{Result, bail};
use carillon_tests::now_us;
use carillon_tests::proxy::Tell;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The run's folder, and what is told in it.
#[derive(Clone)]
pub struct Story {
    folder: Arc<PathBuf>,
    events: Arc<Mutex<File>>,
    ways: Arc<Mutex<File>>,
    incidents: Arc<Mutex<Vec<String>>>,
    started_us: i64,
}

impl Story {
    /// Begins in a folder that is new or empty: what another run left there would be taken for this one's.
    pub fn begin(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        if std::fs::read_dir(folder)?.next().is_some() {
            bail!("{} is not empty: choose a new folder, or empty it", folder.display());
        }
        let file = |name: &str| File::create(folder.join(name)).map(|file| Arc::new(Mutex::new(file)));
        Ok(Self {
            folder: Arc::new(folder.to_owned()),
            events: file("events.jsonl")?,
            ways: file("proxies.jsonl")?,
            incidents: Arc::default(),
            started_us: now_us(),
        })
    }

    /// A path in the run's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file in the run's folder.
    pub fn write(&self, name: &str, text: &str) {
        if let Err(error) = std::fs::write(self.path(name), text) {
            self.incident(&format!("{name} cannot be written: {error}"));
        }
    }

    /// Something happened.
    #[allow(clippy::needless_pass_by_value)] // callers make it in place
    pub fn tell(&self, what: &str, details: Value) {
        let us = now_us();
        let line = json!({ "s": (us - self.started_us) as f64 / 1e6, "us": us, "what": what, "details": details });
        append(&self.events, &line);
    }

    /// Something happened that may never happen.
    pub fn incident(&self, what: &str) {
        self.tell("incident", json!(what));
        self.incidents.lock().unwrap().push(what.to_owned());
    }

    /// All of these.
    pub fn incidents(&self) -> Vec<String> {
        self.incidents.lock().unwrap().clone()
    }

    /// For proxies.
    pub fn of_ways(&self) -> Tell {
        let story = self.clone();
        Arc::new(move |way, connection, what| {
            let us = now_us();
            let s = (us - story.started_us) as f64 / 1e6;
            append(&story.ways, &json!({ "s": s, "us": us, "way": way, "connection": connection, "what": what }));
        })
    }
}

fn append(file: &Mutex<File>, line: &Value) {
    // A full disk shows in everything else, too.
    let _ = file.lock().unwrap().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::Story;

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("executor-0.log");
        std::fs::write(&foreign, "of another run").unwrap();
        let told = Story::begin(folder.path()).err().unwrap().to_string();
        assert!(told.contains("is not empty"), "{told}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        std::fs::remove_file(foreign).unwrap();
        Story::begin(folder.path()).unwrap();
    }
}
