//! Reading a page of a file that may be written at the same time.

use super::folder::Folder;
use super::line;
use carillon_protocol::{OutputPage, OutputState, RunKey};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

/// Reads at most `limit` bytes from `from` on. `state` is what is known of the run besides.
pub(super) fn read(
    folder: &Folder,
    key: RunKey,
    from: u64,
    limit: u32,
    state: Option<OutputState>,
) -> io::Result<OutputPage> {
    let nothing = |state| OutputPage { state, text: String::new(), next: 0, more: false, cut: false };
    let mut file = match File::open(folder.find(key)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(nothing(state.unwrap_or(OutputState::Unknown)));
        }
        Err(error) => return Err(error),
    };
    // The process that ran it is gone, or it ended too long ago to be in the table.
    let state = state.unwrap_or(OutputState::Ended);
    let size = file.metadata()?.len();
    let from = from.min(size);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    // Excludes what has been written since: `size` decides whether the page reaches the end.
    file.by_ref().take(u64::from(limit).min(size - from)).read_to_end(&mut bytes)?;
    let reaches_end = from + bytes.len() as u64 == size;
    let (text, used) = decode(&bytes, from > 0, reaches_end && state == OutputState::Ended);
    let next = from + used as u64;
    Ok(OutputPage { state, text, next, more: !reaches_end, cut: is_cut(&mut file, size)? })
}

/// The whole characters of `bytes`, and their number of bytes. With `inside` it may begin in the
/// middle of a character, which is omitted; unless it is `complete`, a partial character at the
/// end is left for the next page.
fn decode(bytes: &[u8], inside: bool, complete: bool) -> (String, usize) {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let mut used = if inside { bytes.iter().take(3).take_while(is_continuation).count() } else { 0 };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes[used..].utf8_chunks() {
        text.push_str(chunk.valid());
        used += chunk.valid().len();
        let invalid = chunk.invalid();
        let is_begun = used + invalid.len() == bytes.len() && is_begun(invalid);
        if invalid.is_empty() || (is_begun && !complete) {
            break;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        used += invalid.len();
    }
    (text, used)
}

/// Whether these bytes are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

fn is_cut(file: &mut File, size: u64) -> io::Result<bool> {
    let mut end = Vec::with_capacity(line::CUT_BYTES);
    file.seek(SeekFrom::Start(size.saturating_sub(line::CUT_BYTES as u64)))?;
    file.take(line::CUT_BYTES as u64).read_to_end(&mut end)?;
    Ok(line::is_cut(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    const RUN: RunKey = RunKey(1, 1);

    fn folder_with(bytes: &[u8]) -> (tempfile::TempDir, Folder) {
        let slot = tempfile::tempdir().unwrap();
        let folder = Folder::of(slot.path(), 1);
        std::fs::create_dir(folder.own()).unwrap();
        std::fs::write(folder.file(RUN), bytes).unwrap();
        (slot, folder)
    }

    fn page(folder: &Folder, from: u64, limit: u32, state: OutputState) -> OutputPage {
        read(folder, RUN, from, limit, Some(state)).unwrap()
    }

    #[test]
    fn every_offset_has_its_answer() {
        let (_slot, folder) = folder_with("aé€b".as_bytes());
        let at = |from| {
            let page = page(&folder, from, 100, OutputState::Running);
            (page.text, page.next, page.more)
        };
        let rest = |text: &str| (text.to_owned(), 7, false);
        assert_eq!(at(0), rest("aé€b"));
        assert_eq!(at(1), rest("é€b"));
        assert_eq!(at(2), rest("€b"), "in the middle of é: the next character");
        assert_eq!(at(5), rest("b"));
        assert_eq!(at(7), rest(""), "at the end");
        assert_eq!(at(u64::MAX), rest(""), "past the end: the end");
    }

    #[test]
    fn a_character_that_is_not_whole_yet_is_left_for_the_next_page() {
        let (_slot, folder) = folder_with(b"ab\xe2\x82");
        let running = page(&folder, 0, 100, OutputState::Running);
        assert_eq!((running.text.as_str(), running.next, running.more), ("ab", 2, false));
        let ended = page(&folder, 0, 100, OutputState::Ended);
        assert_eq!((ended.text.as_str(), ended.next, ended.more), ("ab\u{fffd}", 4, false));
    }

    #[test]
    fn damage_is_shown_and_gets_on() {
        let (_slot, folder) = folder_with(b"a\xff\xfe\xe2\x82b\xc3");
        let damaged = page(&folder, 0, 100, OutputState::Ended);
        assert_eq!((damaged.text.as_str(), damaged.next), ("a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}", 7));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let nowhere = Folder::of(Path::new("/nowhere/0"), 1);
        let state = |known| read(&nowhere, RUN, 5, 10, known).unwrap().state;
        assert_eq!(state(None), OutputState::Unknown);
        assert_eq!(state(Some(OutputState::Waiting)), OutputState::Waiting);
        let (_slot, folder) = folder_with(b"x");
        assert_eq!(read(&folder, RUN, 0, 10, None).unwrap().state, OutputState::Ended);
    }

    #[test]
    fn the_cut_is_known_wherever_one_reads() {
        let text = line::line(0, line::Level::Info, &"x") + &line::cut(0);
        let (_slot, folder) = folder_with(text.as_bytes());
        assert!(page(&folder, 0, 5, OutputState::Ended).cut);
        assert!(page(&folder, text.len() as u64, 5, OutputState::Ended).cut);
        let (_slot, folder) = folder_with(line::line(0, line::Level::Info, &"x").as_bytes());
        assert!(!page(&folder, 0, 5, OutputState::Ended).cut);
    }

    proptest! {
        /// Pages of any size, one after the other, are the whole text; from any offset they are
        /// its end.
        #[test]
        fn pages_are_the_text(text in ".{0,60}", limit in 4u32..40, from in 0usize..80) {
            let (_slot, folder) = folder_with(text.as_bytes());
            let mut read = String::new();
            let mut at = from as u64;
            loop {
                let page = page(&folder, at, limit, OutputState::Running);
                prop_assert!(page.next > at || !page.more, "no way on at {at}");
                read.push_str(&page.text);
                at = page.next;
                if !page.more {
                    break;
                }
            }
            let start = (from.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap();
            prop_assert_eq!(read, &text[start..]);
            prop_assert_eq!(at, text.len() as u64);
        }

        /// Whatever the bytes are, a reader comes to the end, and repeats nothing.
        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..60), limit in 4u32..20) {
            let (_slot, folder) = folder_with(&bytes);
            let mut at = 0;
            let mut pages = 0;
            loop {
                let page = page(&folder, at, limit, OutputState::Ended);
                prop_assert!(page.next >= at);
                at = page.next;
                pages += 1;
                prop_assert!(pages <= 70, "stands still at {at}");
                if !page.more {
                    break;
                }
            }
            prop_assert_eq!(at, bytes.len() as u64);
        }
    }
}
