//! The files of the journal: the machine's, or, in a simulation, ones in memory.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

/// A file system, as far as the journal needs one.
pub trait Disk: Debug + Send + Sync {
    /// Creates a folder and those above it, unless they are there.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Whether there is such a folder.
    fn is_folder(&self, folder: &Path) -> bool;

    /// Locks a file, which is made if there is none, until what is returned is dropped or this process ends.
    /// `None` when another process has it.
    fn try_lock(&self, file: &Path) -> io::Result<Option<DiskLock>>;

    /// All of a file; `None` when there is none.
    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>>;

    /// A file to add to, which is made if there is none.
    fn open(&self, file: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file. Survives a loss of power when this returns.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Puts these bytes in the place of a file's. Who dies meanwhile leaves the one or the other; after a loss of power they may
    /// be torn.
    fn replace(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file, if it is there.
    fn remove(&self, file: &Path) -> io::Result<()>;
}

/// A file that is open to add to it.
pub trait DiskFile: Debug + Send {
    /// Adds bytes; after an error perhaps some of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// What was added survives a loss of power when this returns.
    fn sync(&mut self) -> io::Result<()>;

    /// Empties it.
    fn clear(&mut self) -> io::Result<()>;
}

/// Held for as long as a process uses a folder.
pub type DiskLock = Box<dyn Debug + Send>;

/// This machine's.
pub(crate) fn machine() -> Arc<dyn Disk> {
    Arc::new(MachineDisk)
}

#[derive(Debug)]
struct MachineDisk;

impl Disk for MachineDisk {
    /// What runs answer may be confidential: neither the folder nor the files are for other users.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)
    }

    fn is_folder(&self, folder: &Path) -> bool {
        folder.is_dir()
    }

    fn try_lock(&self, file: &Path) -> io::Result<Option<DiskLock>> {
        let file = open(file)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(file) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(open(file)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)?;
        #[cfg(unix)]
        File::open(to.parent().unwrap_or(to))?.sync_all()?;
        Ok(())
    }

    fn replace(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let new = file.with_extension("new");
        self.remove(&new)?;
        open(&new)?.write_all(bytes)?;
        std::fs::rename(new, file)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn clear(&mut self) -> io::Result<()> {
        self.set_len(0)
    }
}

fn open(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
