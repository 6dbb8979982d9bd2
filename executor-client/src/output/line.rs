//! One line of output: `2026-11-20T16:13:32.123Z INFO  text`.
//!
//! Only a line of output begins at the left edge: further lines of a text are indented, so that
//! no text can imitate another line. Control characters, and those that change the direction of
//! writing, are escaped: the output is read in terminals and browsers.

use std::fmt::{self, Display, Write as _};

/// Longest text of one line, bytes; longer texts are cut.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Marks where the text was cut.
const CUT_MARK: &str = "…";

/// The longest that one character becomes: `\u{202e}`.
const ESCAPE_BYTES_MAX: usize = 8;

/// What further lines of a text begin with.
const INDENT: &str = "    ";

/// Replaces the level in lines about other lines. No handler can write it there.
const REMARK: &str = "-----";

/// Level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    #[cfg(feature = "layer")]
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    fn padded(self) -> &'static str {
        match self {
            #[cfg(feature = "layer")]
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO ",
            Self::Warn => "WARN ",
            Self::Error => "ERROR",
        }
    }
}

/// A whole line with its end. `at_ms` is cluster time, epoch ms.
pub(crate) fn line(at_ms: i64, level: Level, text: &dyn Display) -> String {
    let mut line = begin(at_ms, level.padded());
    let room = line.len() + TEXT_BYTES_MAX - CUT_MARK.len();
    let mut text_in = Text { line: &mut line, room };
    // It fails when there is no room left, or when the value's `Display` fails; either way the mark
    // says that something is missing.
    if write!(text_in, "{text}").is_err() {
        line.push_str(CUT_MARK);
    }
    line.push('\n');
    line
}

/// The line that says that `lost` lines are missing.
pub(crate) fn lost(at_ms: i64, lost: u64) -> String {
    begin(at_ms, REMARK) + &format!("{lost} lines are missing here: they came faster than they could be written\n")
}

/// The last line of a run that has logged more than is kept.
pub(crate) fn cut(at_ms: i64) -> String {
    begin(at_ms, REMARK) + CUT_TEXT
}

const CUT_TEXT: &str = "cut: the run logged more than is kept of one run\n";

/// Length of a time at the left edge, bytes.
const TIME_BYTES: usize = "1970-01-01T00:00:00.000Z".len();

/// Bytes that the line of [`cut`] needs, and the end of the line before it.
pub(crate) const CUT_BYTES: usize = 1 + TIME_BYTES + 2 + REMARK.len() + CUT_TEXT.len();

/// Whether a file with this end, of [`CUT_BYTES`] at least or all of it, was cut.
pub(crate) fn is_cut(end: &[u8]) -> bool {
    let Some(last) = end.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next()) else {
        return false;
    };
    // Text of a handler is at another position of the line, or in an indented one.
    let expected = format!(" {REMARK} {}", CUT_TEXT.trim_end());
    last.first().is_some_and(|first| *first != b' ') && last.get(TIME_BYTES..) == Some(expected.as_bytes())
}

fn begin(at_ms: i64, level: &str) -> String {
    let mut line = String::with_capacity(96);
    let (days, ms) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (hour, minute, second, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    // Writing to a string does not fail.
    let _ = write!(line, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z {level} ");
    line
}

/// Year, month and day of a day counted from 1970-01-01: the Gregorian calendar in eras of 400
/// years that begin in March, so that the leap day is the last of a year.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    const DAYS_TO_1970: i64 = 719_468;
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month, day_of_month)
}

/// Collects a text up to a length, with dangerous characters escaped.
struct Text<'a> {
    line: &'a mut String,
    /// Longest that `line` may get, bytes.
    room: usize,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while !text.is_empty() {
            let room = self.room.saturating_sub(self.line.len());
            let plain = text.bytes().take(room).take_while(|byte| matches!(byte, b' '..=b'~')).count();
            let (head, rest) = text.split_at(plain);
            self.line.push_str(head);
            let Some(c) = rest.chars().next() else { break };
            if self.line.len() + ESCAPE_BYTES_MAX > self.room {
                return Err(fmt::Error);
            }
            match c {
                '\n' => {
                    self.line.push('\n');
                    self.line.push_str(INDENT);
                }
                '\t' => self.line.push('\t'),
                _ if is_harmful(c) => self.line.extend(c.escape_debug()),
                _ => self.line.push(c),
            }
            text = &rest[c.len_utf8()..];
        }
        Ok(())
    }
}

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_has_a_time_a_level_and_an_end() {
        assert_eq!(line(1_795_191_212_123, Level::Info, &"closed"), "2026-11-20T16:13:32.123Z INFO  closed\n");
        assert_eq!(line(-1, Level::Error, &"old"), "1969-12-31T23:59:59.999Z ERROR old\n");
    }

    #[test]
    fn control_characters_are_shown_and_a_text_cannot_look_like_a_line() {
        let text = "a\u{1b}[31m\r\nb\tc\0\u{85}\u{202e}\u{7f}";
        let shown = line(0, Level::Warn, &text);
        let expected = "1970-01-01T00:00:00.000Z WARN  a\\u{1b}[31m\\r\n    b\tc\\0\\u{85}\\u{202e}\\u{7f}\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_text_is_cut_and_not_read_to_its_end() {
        struct Endless;
        impl Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("é")?;
                }
            }
        }
        let line = line(0, Level::Info, &Endless);
        assert!(line.len() <= TEXT_BYTES_MAX + 64, "{}", line.len());
        assert!(line.ends_with("é…\n"));
    }

    #[test]
    fn only_the_line_about_the_cut_is_one() {
        let whole = cut(5);
        assert_eq!(whole.len() + 1, CUT_BYTES);
        assert!(is_cut(whole.as_bytes()));
        assert!(is_cut(format!("something\n{whole}").as_bytes()));
        let remark = format!("----- {}", CUT_TEXT.trim_end());
        for before in ["", "Z ", "\n", "\n01-01T00:00:00.000Z "] {
            let fake = line(5, Level::Info, &format!("{before}{remark}"));
            assert!(!is_cut(fake.as_bytes()), "{fake}");
        }
        assert!(!is_cut(line(5, Level::Info, &"x").as_bytes()));
    }

    proptest! {
        #[test]
        fn times_are_those_of_the_calendar(at_ms in -62_135_596_800_000i64..253_402_300_799_999) {
            let expected = chrono::DateTime::from_timestamp_millis(at_ms).unwrap();
            let expected = expected.format("%Y-%m-%dT%H:%M:%S%.3fZ INFO  x\n").to_string();
            prop_assert_eq!(line(at_ms, Level::Info, &"x"), expected);
        }

        #[test]
        fn whatever_is_logged_only_lines_begin_at_the_edge(text in any::<String>()) {
            let line = line(0, Level::Info, &text);
            prop_assert!(line.ends_with('\n'));
            prop_assert!(line.lines().skip(1).all(|further| further.starts_with(INDENT)));
            prop_assert!(line.chars().all(|c| c == '\n' || c == '\t' || !is_harmful(c)));
        }
    }
}
