//! Replies as they come off the wire, in whatever pieces. Each byte is looked at a bounded number of times.

use bytes::Bytes;
use httparse::{EMPTY_HEADER, Header, Response, Status};
use std::time::Duration;

/// The longest body, bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The longest head, bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

const HEADERS_MAX: usize = 64;

/// The longest reply with all that stands around its chunks, bytes.
const RAW_BYTES_MAX: usize = HEAD_BYTES_MAX + 4 * BODY_BYTES_MAX;

/// The longest line of a chunk's size, or after the last chunk, bytes.
const LINE_BYTES_MAX: usize = 1024;

/// A connection is not kept for longer without a run. Netty's server closes after 90 s, aiohttp's after 75 s.
pub const IDLE_MAX: Duration = Duration::from_secs(30);

/// How long before its peer a connection is given up, where the peer tells when it closes it.
const IDLE_MARGIN: Duration = Duration::from_secs(1);

/// What an executor answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status, 200 to 999.
    pub status: u16,
    /// At most [`BODY_BYTES_MAX`].
    pub body: Bytes,
    /// For how long the connection may wait for another run, at most [`IDLE_MAX`]; `None` if it has ended.
    pub idle: Option<Duration>,
}

/// Puts replies together.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// What has come of the head, and after it of the body.
    bytes: Vec<u8>,
    /// Up to here there is no end of the head.
    searched: usize,
    head: Option<Head>,
}

#[derive(Debug)]
struct Head {
    status: u16,
    body: Body,
    idle: Option<Duration>,
}

/// How the end of a body is told.
#[derive(Debug)]
enum Body {
    Length(usize),
    Chunks(Chunks),
    /// By the end of the connection.
    Rest,
}

impl ReplyReader {
    /// Takes what has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next reply, once all of it has come.
    ///
    /// # Errors
    /// What is wrong with it. Nothing that comes later can be trusted.
    pub fn take(&mut self) -> Result<Option<Reply>, String> {
        if self.bytes.len() > RAW_BYTES_MAX {
            return Err(too_long());
        }
        while self.head.is_none() {
            let Some(end) = self.end_of_head()? else { return Ok(None) };
            self.head = parse(&self.bytes[..end])?;
            self.bytes.drain(..end);
            self.searched = 0;
        }
        let Some(head) = &mut self.head else { return Ok(None) };
        match &mut head.body {
            Body::Length(length) if self.bytes.len() >= *length => {
                let (length, body) = (*length, Bytes::copy_from_slice(&self.bytes[..*length]));
                Ok(self.finish(length, body))
            }
            Body::Chunks(chunks) => match chunks.read(&self.bytes)? {
                Some(end) => {
                    let body = std::mem::take(&mut chunks.body);
                    Ok(self.finish(end, body.into()))
                }
                None => Ok(None),
            },
            Body::Rest if self.bytes.len() > BODY_BYTES_MAX => Err(too_long()),
            Body::Length(_) | Body::Rest => Ok(None),
        }
    }

    /// The reply that ends with the connection.
    ///
    /// # Errors
    /// That there is none, or only a part of one.
    pub fn end(&mut self) -> Result<Reply, String> {
        match &self.head {
            Some(Head { body: Body::Rest, .. }) => {
                let body = std::mem::take(&mut self.bytes);
                self.finish(0, body.into()).ok_or_else(|| "the reply has no head".to_owned())
            }
            None if self.bytes.is_empty() => Err("the executor closed the connection without a reply".to_owned()),
            _ => Err("the executor closed the connection in the middle of its reply".to_owned()),
        }
    }

    /// The end of the head in what has come.
    fn end_of_head(&mut self) -> Result<Option<usize>, String> {
        for at in self.searched..self.bytes.len() {
            let before = &self.bytes[..=at];
            if before.ends_with(b"\n\r\n") || before.ends_with(b"\n\n") {
                return if at < HEAD_BYTES_MAX { Ok(Some(at + 1)) } else { Err(too_long()) };
            }
        }
        self.searched = self.bytes.len();
        if self.searched >= HEAD_BYTES_MAX { Err(too_long()) } else { Ok(None) }
    }

    fn finish(&mut self, end: usize, body: Bytes) -> Option<Reply> {
        let Head { status, idle, .. } = self.head.take()?;
        // Nobody has asked for what comes after it.
        let idle = idle.filter(|_| self.bytes.len() == end);
        self.bytes.clear();
        Some(Reply { status, body, idle })
    }
}

fn too_long() -> String {
    "the reply is too long".to_owned()
}

/// Reads a head. `None` for one that only announces another.
fn parse(bytes: &[u8]) -> Result<Option<Head>, String> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut response = Response::new(&mut headers);
    let bad = |error: &dyn std::fmt::Display| format!("the reply is not HTTP: {error}");
    if let Status::Partial = response.parse(bytes).map_err(|error| bad(&error))? {
        return Err(bad(&"its head breaks off"));
    }
    let status = response.code.unwrap_or(0);
    match status {
        101 => return Err("the executor wants another protocol".to_owned()),
        100..200 => return Ok(None),
        0..100 => return Err(bad(&"its status is none")),
        _ => {}
    }
    let (body, idle) = (body(status, response.headers)?, idle(response.version == Some(1), response.headers));
    let idle = if matches!(body, Body::Rest) { None } else { idle };
    Ok(Some(Head { status, body, idle }))
}

/// The values of a header, in their order.
fn values<'a>(headers: &'a [Header<'_>], name: &'static str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| std::str::from_utf8(header.value).unwrap_or("").trim())
}

fn body(status: u16, headers: &[Header<'_>]) -> Result<Body, String> {
    if status == 204 || status == 304 {
        return Ok(Body::Length(0));
    }
    let mut codings = values(headers, "transfer-encoding").peekable();
    if codings.peek().is_some() {
        if codings.all(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return Ok(Body::Chunks(Chunks::default()));
        }
        return Err("the reply has a transfer encoding that was not asked for".to_owned());
    }
    let mut lengths = values(headers, "content-length");
    let Some(length) = lengths.next() else { return Ok(Body::Rest) };
    if lengths.any(|other| other != length) || length.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err("the length of the reply is none".to_owned());
    }
    match length.parse() {
        Ok(length) if length <= BODY_BYTES_MAX => Ok(Body::Length(length)),
        _ => Err(too_long()),
    }
}

/// For how long the peer keeps the connection, and a bit less.
fn idle(is_http_1_1: bool, headers: &[Header<'_>]) -> Option<Duration> {
    let said = |word: &str| {
        let mut words = values(headers, "connection").flat_map(|value| value.split(','));
        words.any(|said| said.trim().eq_ignore_ascii_case(word))
    };
    if said("close") || !(is_http_1_1 || said("keep-alive")) {
        return None;
    }
    let mut hints = values(headers, "keep-alive").flat_map(|value| value.split(','));
    let hint = hints.find_map(|hint| hint.trim().strip_prefix("timeout=")?.parse().ok());
    let Some(seconds) = hint else { return Some(IDLE_MAX) };
    Duration::from_secs(seconds).checked_sub(IDLE_MARGIN).filter(|idle| !idle.is_zero()).map(|idle| idle.min(IDLE_MAX))
}

/// A body in chunks.
#[derive(Debug, Default)]
struct Chunks {
    /// Up to here the bytes have been read.
    at: usize,
    body: Vec<u8>,
    /// Whether the last chunk has come; lines follow, and an empty one.
    is_over: bool,
}

impl Chunks {
    /// Reads on in all of the body's `bytes` so far; returns where it ends.
    fn read(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let bad = || "the chunks of the reply make no sense".to_owned();
        loop {
            let rest = &bytes[self.at..];
            if self.is_over {
                let Some(end) = rest.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n') else {
                    return if rest.len() < LINE_BYTES_MAX { Ok(None) } else { Err(bad()) };
                };
                self.at += end + 1;
                if matches!(&rest[..end], b"" | b"\r") {
                    return Ok(Some(self.at));
                }
                continue;
            }
            match httparse::parse_chunk_size(rest) {
                Ok(Status::Complete((line, 0))) => (self.at, self.is_over) = (self.at + line, true),
                Ok(Status::Complete((line, size))) => {
                    let free = BODY_BYTES_MAX - self.body.len();
                    let size = usize::try_from(size).ok().filter(|&size| size <= free).ok_or_else(too_long)?;
                    let end = line + size;
                    let Some(after) = rest.get(end..end + 2) else { return Ok(None) };
                    if after != b"\r\n" {
                        return Err(bad());
                    }
                    self.body.extend_from_slice(&rest[line..end]);
                    self.at += end + 2;
                }
                Ok(Status::Partial) if rest.len() < LINE_BYTES_MAX => return Ok(None),
                Ok(Status::Partial) | Err(_) => return Err(bad()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
