//! A run's log, which executors keep in lines, as pages of bytes.

use crate::domain::xxljob::wire::LogPage;
use carillon_protocol::{OutputPage, OutputState};

/// Bits of a cursor that count bytes within the lines that begin at its line.
const SKIP_BITS: u32 = 24;

/// A place in a log: a line from 1, and bytes of what begins there that have been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// From 1.
    pub line: i32,
    skip: usize,
}

impl Cursor {
    /// As a page's `next` names it; 0 is the beginning.
    pub fn read(from: u64) -> Self {
        let line = i32::try_from(from >> SKIP_BITS).unwrap_or(i32::MAX).max(1);
        Self { line, skip: (from & ((1 << SKIP_BITS) - 1)) as usize }
    }

    fn write(self) -> u64 {
        let skip = (self.skip as u64).min((1 << SKIP_BITS) - 1);
        (u64::from(self.line.unsigned_abs()) << SKIP_BITS) | skip
    }

    /// At most `limit` bytes from here on of the lines that the executor has told.
    pub fn page(self, told: &LogPage, limit: usize) -> OutputPage {
        let begin = told.text.floor_char_boundary(self.skip.min(told.text.len()));
        let rest = told.text.get(begin..).unwrap_or_default();
        let text = rest.get(..rest.floor_char_boundary(limit)).unwrap_or_default();
        let is_all = text.len() == rest.len();
        // An empty page says different things of its last line.
        let has_lines = told.to_line >= self.line && !told.text.is_empty();
        let next = if is_all && has_lines {
            Self { line: told.to_line.saturating_add(1), skip: 0 }
        } else {
            Self { line: self.line, skip: begin + text.len() }
        };
        let state = if told.is_end { OutputState::Ended } else { OutputState::Running };
        OutputPage { state, text: text.to_owned(), next: next.write(), more: !is_all, cut: false }
    }

    /// Nothing is there.
    pub fn nothing(self, state: OutputState) -> OutputPage {
        OutputPage { state, text: String::new(), next: self.write(), more: false, cut: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(from_line: i32, to_line: i32, text: &str) -> LogPage {
        LogPage { from_line, to_line, text: text.to_owned(), is_end: false }
    }

    #[test]
    fn lines_are_read_in_pages_of_bytes() {
        let lines = told(1, 2, "first\nsécond\n");
        let page = Cursor::read(0).page(&lines, 8);
        assert_eq!((page.text.as_str(), page.more), ("first\ns", true), "a character is not cut");
        let page = Cursor::read(page.next).page(&lines, 100);
        assert_eq!((page.text.as_str(), page.more), ("écond\n", false));
        assert_eq!(Cursor::read(page.next), Cursor { line: 3, skip: 0 });
        let page = Cursor::read(page.next).page(&told(3, 2, ""), 100);
        assert_eq!((page.text.as_str(), page.more, Cursor::read(page.next).line), ("", false, 3), "nothing new");
        let page = Cursor::read(page.next).page(&told(3, 3, "third\n"), 100);
        assert_eq!((page.text.as_str(), Cursor::read(page.next).line), ("third\n", 4));
    }

    #[test]
    fn cursors_are_what_they_were() {
        for cursor in [Cursor { line: 1, skip: 0 }, Cursor { line: i32::MAX, skip: (1 << SKIP_BITS) - 1 }] {
            assert_eq!(Cursor::read(cursor.write()), cursor);
        }
        assert_eq!(Cursor::read(0), Cursor { line: 1, skip: 0 });
        assert_eq!(Cursor::read(u64::MAX).line, i32::MAX);
    }
}
