//! A machine's disk in memory. What a process wrote survives its death; what it synced survives a loss of power.

use crate::Dice;
use carillon_executor::simulation::{Disk, DiskFile, DiskLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The disk of one machine.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Arc<Mutex<Bytes>>>,
    /// Who holds each lock, by a number.
    locks: BTreeMap<PathBuf, u64>,
    locked: u64,
    is_full: bool,
}

#[derive(Debug, Default)]
struct Bytes {
    all: Vec<u8>,
    /// So many of them survive a loss of power.
    synced: usize,
}

#[derive(Debug)]
struct OpenFile {
    disk: MemoryDisk,
    bytes: Arc<Mutex<Bytes>>,
}

/// Gives the lock back, unless the process has died and another one holds it.
#[derive(Debug)]
struct Lock {
    disk: MemoryDisk,
    file: PathBuf,
    number: u64,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut contents = self.disk.0.lock().unwrap();
        if contents.locks.get(&self.file) == Some(&self.number) {
            contents.locks.remove(&self.file);
        }
    }
}

impl MemoryDisk {
    /// The process that used it is gone.
    pub fn release(&self) {
        self.0.lock().unwrap().locks.clear();
    }

    /// Whether nothing more can be written.
    pub fn fill(&self, is_full: bool) {
        self.0.lock().unwrap().is_full = is_full;
    }

    /// Takes away everything.
    pub fn wipe(&self) {
        let mut contents = self.0.lock().unwrap();
        contents.files.clear();
        contents.folders.clear();
    }

    /// Loses what was not synced, but for the beginning of it: the last write is torn.
    pub fn lose_power(&self, dice: &Dice, name: &str) {
        for (path, file) in &self.0.lock().unwrap().files {
            let mut bytes = file.lock().unwrap();
            let unsynced = bytes.all.len() - bytes.synced;
            let left = dice.between(&format!("{name} {} keeps", path.display()), 0, unsynced as i64);
            let length = bytes.synced + left as usize;
            bytes.all.truncate(length);
            bytes.synced = length;
        }
    }

    /// Damages a byte of each file that has any.
    pub fn corrupt(&self, dice: &Dice, name: &str) {
        for (path, file) in &self.0.lock().unwrap().files {
            let mut bytes = file.lock().unwrap();
            let last = bytes.all.len() as i64 - 1;
            if last >= 0 {
                let at = dice.between(&format!("{name} {} is damaged at", path.display()), 0, last);
                bytes.all[at as usize] ^= 1;
            }
        }
    }
}

impl Disk for MemoryDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.0.lock().unwrap().folders.insert(folder.to_owned());
        Ok(())
    }

    fn is_folder(&self, folder: &Path) -> bool {
        self.0.lock().unwrap().folders.contains(folder)
    }

    fn try_lock(&self, file: &Path) -> io::Result<Option<DiskLock>> {
        let mut contents = self.0.lock().unwrap();
        if contents.locks.contains_key(file) {
            return Ok(None);
        }
        contents.locked += 1;
        let number = contents.locked;
        contents.locks.insert(file.to_owned(), number);
        Ok(Some(Box::new(Lock { disk: self.clone(), file: file.to_owned(), number })))
    }

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        let contents = self.0.lock().unwrap();
        Ok(contents.files.get(file).map(|file| file.lock().unwrap().all.clone()))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        let bytes = self.0.lock().unwrap().files.entry(file.to_owned()).or_default().clone();
        Ok(Box::new(OpenFile { disk: self.clone(), bytes }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut contents = self.0.lock().unwrap();
        let file = contents.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        contents.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn replace(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut contents = self.0.lock().unwrap();
        if contents.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let bytes = Bytes { all: bytes.to_vec(), synced: 0 };
        contents.files.insert(file.to_owned(), Arc::new(Mutex::new(bytes)));
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.0.lock().unwrap().files.remove(file);
        Ok(())
    }
}

impl DiskFile for OpenFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_full = self.disk.0.lock().unwrap().is_full;
        let taken = if is_full { bytes.len() / 2 } else { bytes.len() };
        self.bytes.lock().unwrap().all.extend_from_slice(&bytes[..taken]);
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        bytes.synced = bytes.all.len();
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        *self.bytes.lock().unwrap() = Bytes::default();
        Ok(())
    }
}
