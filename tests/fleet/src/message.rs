//! HTTP/1.1 as far as both sides of this benchmark speak it: a head, a length, a body, and connections that stay open.

use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const HEADERS_MAX: usize = 32;
const MESSAGE_MAX: usize = 1 << 20;

/// A connection, and what has come of the next message.
pub struct Connection {
    stream: TcpStream,
    come: Vec<u8>,
}

/// A request or an answer.
pub struct Message {
    /// A request's path; empty in an answer.
    pub path: String,
    /// An answer's status; 0 in a request.
    pub status: u16,
    /// Its bytes.
    pub body: Vec<u8>,
}

struct Head {
    path: String,
    status: u16,
    bytes: usize,
    body_bytes: usize,
}

impl Connection {
    /// Of either side.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, come: Vec::with_capacity(4_096) })
    }

    /// The next message; none at the end of the connection.
    pub async fn read(&mut self, is_request: bool) -> io::Result<Option<Message>> {
        loop {
            if let Some(head) = head(&self.come, is_request)? {
                let end = head.bytes + head.body_bytes;
                if self.come.len() >= end {
                    let body = self.come[head.bytes..end].to_vec();
                    self.come.drain(..end);
                    return Ok(Some(Message { path: head.path, status: head.status, body }));
                }
            }
            if self.come.len() > MESSAGE_MAX {
                return Err(io::Error::other("a message is too long"));
            }
            if self.stream.read_buf(&mut self.come).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Sends a whole message.
    pub async fn write(&mut self, message: &[u8]) -> io::Result<()> {
        self.stream.write_all(message).await
    }
}

fn head(come: &[u8], is_request: bool) -> io::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let (parsed, path, status, headers) = if is_request {
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(come).map_err(io::Error::other)?;
        (parsed, request.path.unwrap_or_default().to_owned(), 0, request.headers)
    } else {
        let mut answer = httparse::Response::new(&mut headers);
        let parsed = answer.parse(come).map_err(io::Error::other)?;
        (parsed, String::new(), answer.code.unwrap_or_default(), answer.headers)
    };
    let httparse::Status::Complete(bytes) = parsed else { return Ok(None) };
    let length = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok());
    Ok(Some(Head { path, status, bytes, body_bytes: length.unwrap_or(0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_there() {
        let request = b"POST /run HTTP/1.1\r\nhost: a\r\nContent-Length: 3\r\n\r\nabc";
        assert!(head(&request[..30], true).unwrap().is_none());
        let read = head(request, true).unwrap().unwrap();
        assert_eq!((read.path.as_str(), read.bytes, read.body_bytes), ("/run", request.len() - 3, 3));
        let answer = head(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", false).unwrap().unwrap();
        assert_eq!((answer.status, answer.body_bytes), (200, 0));
        assert!(head(b"nonsense\r\n\r\n", true).is_err());
    }
}
