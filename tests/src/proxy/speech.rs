//! What is said on a connection, as far as it must be understood: which message begins or commits a transaction, takes a
//! lock, prepares a statement.

use super::trap::Point;
use std::collections::HashMap;

/// The protocol that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Not looked into.
    Unknown,
    /// `MySQL`'s, without TLS.
    MySql,
    /// `PostgreSQL`'s, without TLS.
    Postgres,
}

/// `COM_QUERY`, `COM_STMT_PREPARE`, `COM_STMT_EXECUTE`.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

/// `PostgreSQL`'s request for TLS, in place of its version.
const TLS_REQUEST: u32 = 80_877_103;

/// Something that a client asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    kind: Option<Point>,
}

impl Message {
    pub(super) fn is_at(&self, point: Point) -> bool {
        match point {
            Point::Words(words) => has_words(&self.bytes, words),
            _ => self.kind == Some(point),
        }
    }

    /// Whether it executes what was prepared (`MySQL`).
    pub(super) fn executes(&self) -> bool {
        self.bytes.get(4) == Some(&EXECUTE)
    }
}

/// A statement that has been prepared.
struct Prepared(Option<Point>);

/// One connection's, from its first byte on.
pub(super) struct Conversation {
    speech: Speech,
    /// What has come of a message that is not complete.
    begun: Vec<u8>,
    /// `PostgreSQL`: before the first message that has a type.
    is_opening: bool,
    /// `MySQL`: the prepared statements that take locks, by their numbers.
    numbered: HashMap<u32, Option<Point>>,
    /// `MySQL`: what was prepared last and has no number yet.
    preparing: Option<Prepared>,
    /// `PostgreSQL`: prepared statements by their names.
    named: HashMap<Vec<u8>, Option<Point>>,
}

impl Conversation {
    pub(super) fn new(speech: Speech) -> Self {
        Self {
            speech,
            begun: Vec::new(),
            is_opening: true,
            numbered: HashMap::new(),
            preparing: None,
            named: HashMap::new(),
        }
    }

    /// The client's next bytes: the messages that are complete with them.
    pub(super) fn asked(&mut self, bytes: &[u8]) -> Vec<Message> {
        if self.speech == Speech::Unknown {
            return vec![Message { bytes: bytes.to_vec(), kind: None }];
        }
        self.begun.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(length) = self.length().filter(|length| self.begun.len() >= *length) {
            let rest = self.begun.split_off(length);
            let bytes = std::mem::replace(&mut self.begun, rest);
            let kind = if self.speech == Speech::MySql { self.mysql(&bytes) } else { self.postgres(&bytes) };
            messages.push(Message { bytes, kind });
        }
        messages
    }

    /// The server's next bytes.
    pub(super) fn answered(&mut self, bytes: &[u8]) {
        // A packet's head, OK, and the statement's number.
        if let (Some(Prepared(kind)), [_, _, _, _, 0, number @ ..]) = (self.preparing.take(), bytes)
            && let Some(number) = number.first_chunk()
        {
            self.numbered.insert(u32::from_le_bytes(*number), kind);
        }
    }

    /// Of the message that has begun, bytes.
    fn length(&self) -> Option<usize> {
        if self.speech == Speech::MySql {
            let [a, b, c] = *self.begun.first_chunk()?;
            return Some(u32::from_le_bytes([a, b, c, 0]) as usize + 4);
        }
        let head = usize::from(!self.is_opening);
        let length = self.begun.get(head..)?.first_chunk()?;
        Some(u32::from_be_bytes(*length) as usize + head)
    }

    fn mysql(&mut self, bytes: &[u8]) -> Option<Point> {
        let &[_, _, _, sequence, command, ref rest @ ..] = bytes else { return None };
        // A command begins a sequence; what has another number belongs to the login, or goes on.
        match command {
            _ if sequence != 0 => None,
            QUERY => kind_of(rest),
            PREPARE => {
                self.preparing = Some(Prepared(kind_of(rest)));
                Some(Point::Prepare)
            }
            EXECUTE => self.numbered.get(&u32::from_le_bytes(*rest.first_chunk()?)).copied().flatten(),
            _ => None,
        }
    }

    fn postgres(&mut self, bytes: &[u8]) -> Option<Point> {
        if self.is_opening {
            let code = bytes.get(4..).and_then(|code| code.first_chunk()).map(|code| u32::from_be_bytes(*code));
            self.is_opening = code == Some(TLS_REQUEST);
            return None;
        }
        let (kind, body) = (bytes[0], bytes.get(5..)?);
        let mut texts = body.split(|byte| *byte == 0);
        match kind {
            b'Q' => kind_of(texts.next()?),
            b'P' => {
                let name = texts.next()?.to_vec();
                let statement = kind_of(texts.next()?);
                self.named.insert(name, statement);
                Some(Point::Prepare)
            }
            b'B' => self.named.get(texts.nth(1)?).copied().flatten(),
            _ => None,
        }
    }
}

/// The kind of a statement by its text.
fn kind_of(text: &[u8]) -> Option<Point> {
    let locks = ["FOR UPDATE", "permit_scope", "LOCK IN SHARE MODE"];
    match () {
        () if has_words(text, "BEGIN") || has_words(text, "START TRANSACTION") => Some(Point::Begin),
        () if text.starts_with(b"COMMIT") => Some(Point::Commit),
        () if locks.iter().any(|words| has_words(text, words)) => Some(Point::Lock),
        () => None,
    }
}

/// Whether these whole words stand in it: COMMIT does not stand in READ COMMITTED.
fn has_words(text: &[u8], words: &str) -> bool {
    let words = words.as_bytes();
    let is_letter = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.windows(words.len()).enumerate().filter(|(_, part)| *part == words).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        !is_letter(before) && !is_letter(text.get(at + words.len()))
    })
}
