//! SQLite's log (`-wal`), read as a file: a header, then pages as transactions leave them, each behind a header that says
//! whether it ends its transaction (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).

use anyhow::{Context, Result};
use std::path::Path;

/// The file's header, and that of a page.
const HEADER_BYTES: usize = 32;
const PAGE_HEADER_BYTES: usize = 24;

/// What is in a log that no checkpoint has emptied.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Log {
    /// Pages written.
    pub pages: f64,
    /// Transactions that wrote.
    pub commits: f64,
    /// Length.
    pub bytes: f64,
}

/// Reads the log in that file; none is an empty one.
pub fn read(file: &Path) -> Result<Log> {
    match std::fs::read(file) {
        Ok(bytes) => parse(&bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Log::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

fn parse(bytes: &[u8]) -> Result<Log> {
    let Some((header, frames)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok(Log::default()) };
    let number =
        |bytes: &[u8], at: usize| -> Option<u32> { Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
    let page_bytes = number(header, 8).context("no length of pages")? as usize;
    let frames = frames.chunks_exact(page_bytes + PAGE_HEADER_BYTES);
    let pages = frames.len();
    // The length of the database after it, in the last page of a transaction alone.
    let commits = frames.filter(|frame| number(frame, 4) != Some(0)).count();
    Ok(Log { pages: pages as f64, commits: commits as f64, bytes: bytes.len() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_commits_are_counted() {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[8..12].copy_from_slice(&512_u32.to_be_bytes());
        for database_pages in [0_u32, 0, 7, 8] {
            let mut frame = vec![0; PAGE_HEADER_BYTES + 512];
            frame[4..8].copy_from_slice(&database_pages.to_be_bytes());
            bytes.extend(frame);
        }
        let log = Log { pages: 4.0, commits: 2.0, bytes: bytes.len() as f64 };
        assert_eq!(parse(&bytes).unwrap(), log);
        assert_eq!(parse(&[]).unwrap(), Log::default());
    }
}
