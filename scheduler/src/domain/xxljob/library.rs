//! Libraries that executors are made with, as far as what differs between them counts. None of them names itself; what they call
//! the node with does, in `User-Agent`.

/// Longest name of what an executor calls with, bytes.
const AGENT_BYTES_MAX: usize = 64;

/// A library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// In Go: each handler has one task object, which all of its runs share, whichever task of ours they are of, so what a callback
    /// says of two that are open at once means anything. It has one code for all ends but a panic: 200.
    Go,
    /// In JavaScript, over axios: it counts the lines of a log from 0.
    Npm,
    /// Java, Python, or one that nothing is known of.
    Other,
}

impl Library {
    /// By what it calls with, as [`agent`] keeps it.
    #[must_use]
    pub fn of(agent: &str) -> Self {
        if agent.starts_with("Go-http-client/") {
            Self::Go
        } else if agent.starts_with("axios/") {
            Self::Npm
        } else {
            Self::Other
        }
    }

    /// Whether runs of one handler must not meet at an executor.
    #[must_use]
    pub fn shares_handlers(self) -> bool {
        self == Self::Go
    }

    /// Whether it calls a run that was stopped, or has timed out, a success.
    #[must_use]
    pub fn hides_ends(self) -> bool {
        self == Self::Go
    }

    /// Its number of a log's first line.
    #[must_use]
    pub fn first_line(self) -> i32 {
        i32::from(self != Self::Npm)
    }
}

/// What is kept of a `User-Agent`: its first word, if it is an ordinary one.
#[must_use]
pub fn agent(header: &str) -> &str {
    let word = header.split_whitespace().next().unwrap_or_default();
    let is_plain = word.len() <= AGENT_BYTES_MAX && word.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { word } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_what_they_call_with() {
        for (header, kept, library) in [
            ("Go-http-client/1.1", "Go-http-client/1.1", Library::Go),
            ("axios/1.7.4", "axios/1.7.4", Library::Npm),
            ("Java/17.0.13", "Java/17.0.13", Library::Other),
            ("Python/3.11 aiohttp/3.10.10", "Python/3.11", Library::Other),
            ("", "", Library::Other),
            ("a\u{e9}/1", "", Library::Other),
        ] {
            assert_eq!((agent(header), Library::of(agent(header))), (kept, library), "{header}");
        }
        assert_eq!(agent(&"x".repeat(65)), "");
        assert_eq!((Library::Npm.first_line(), Library::Other.first_line()), (0, 1));
    }
}
