//! A request as the bytes that go over the wire, made before its instant.

use super::address::Address;
use bytes::Bytes;
use carillon_protocol::exchange::Request;
use std::io::Write;

/// The longest request, bytes. Scripts in it have at most 60,000, which JSON may make six times as long.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// Room for the head, bytes: enough for all but the longest tokens.
const HEAD_BYTES: usize = 384;

/// The bytes of `request` to the executor at `to`.
///
/// # Errors
/// What cannot be sent.
pub fn bytes(to: &Address, request: &Request) -> Result<Bytes, String> {
    let Request { path, headers, body } = request;
    let path = format!("{}{path}", to.path());
    if !path.starts_with('/') || path.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err("its path cannot be sent".to_owned());
    }
    let mut bytes = Vec::<u8>::with_capacity(HEAD_BYTES + body.len());
    let method = Request::METHOD;
    let mut write = |part: std::fmt::Arguments<'_>| bytes.write_fmt(part).map_err(|error| error.to_string());
    write(format_args!("{method} {path} HTTP/1.1\r\nHost: {}:{}\r\n", to.host(), to.port()))?;
    write(format_args!("Content-Type: application/json;charset=UTF-8\r\nContent-Length: {}\r\n", body.len()))?;
    for (name, value) in headers {
        // The value may be a secret, so only the name is told.
        if value.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(format!("its header {name} has control characters"));
        }
        write(format_args!("{name}: {value}\r\n"))?;
    }
    write(format_args!("Connection: keep-alive\r\n\r\n"))?;
    bytes.extend_from_slice(body);
    if bytes.len() > REQUEST_BYTES_MAX {
        return Err(format!("it has {} bytes, more than {REQUEST_BYTES_MAX}", bytes.len()));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &str, token: &str, body: impl Into<Bytes>) -> Result<String, String> {
        made_for("http://[::1]:9999/", path, token, body)
    }

    fn made_for(to: &str, path: &str, token: &str, body: impl Into<Bytes>) -> Result<String, String> {
        let to = Address::parse(to).unwrap();
        let headers = vec![("XXL-JOB-ACCESS-TOKEN", token.to_owned())];
        let request = Request { path: path.to_owned(), headers, body: body.into() };
        bytes(&to, &request).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn a_request_is_made_whole() {
        assert_eq!(
            made("/run", "t0", "{\"jobId\":7}").unwrap(),
            "POST /run HTTP/1.1\r\nHost: [::1]:9999\r\nContent-Type: application/json;charset=UTF-8\r\n\
             Content-Length: 11\r\nXXL-JOB-ACCESS-TOKEN: t0\r\nConnection: keep-alive\r\n\r\n{\"jobId\":7}"
        );
    }

    #[test]
    fn it_goes_below_the_path_of_the_address() {
        for to in ["http://[::1]:9999/job", "http://[::1]:9999/job/"] {
            let made = made_for(to, "/run", "t0", "").unwrap();
            assert!(made.starts_with("POST /job/run HTTP/1.1\r\nHost: [::1]:9999\r\n"), "{made}");
        }
    }

    #[test]
    fn nothing_in_it_makes_a_second_request() {
        for path in ["run", "/run HTTP/1.1\r\nX: y", "/r un", "/\u{e9}"] {
            assert!(made(path, "t0", "").is_err(), "{path}");
        }
        let refused = made("/run", "t0\r\nX: y", "").unwrap_err();
        assert!(!refused.contains("t0"), "{refused}");
        assert!(made("/run", "t0", vec![b'x'; REQUEST_BYTES_MAX]).is_err());
    }
}
