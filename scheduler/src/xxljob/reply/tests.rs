use super::*;

const KEPT: Option<Duration> = Some(IDLE_MAX);

/// What a reader makes of it when it comes at once; the same must come of it byte by byte.
fn read(text: &str) -> Result<Option<Reply>, String> {
    let mut reader = ReplyReader::default();
    reader.push(text.as_bytes());
    let at_once = reader.take();
    let mut reader = ReplyReader::default();
    let mut piecemeal = Ok(None);
    for byte in text.as_bytes() {
        reader.push(&[*byte]);
        piecemeal = reader.take();
        if piecemeal != Ok(None) {
            break;
        }
    }
    if let (Ok(Some(at_once)), Ok(Some(piecemeal))) = (&at_once, &piecemeal) {
        assert_eq!((at_once.status, &at_once.body), (piecemeal.status, &piecemeal.body));
    } else {
        assert_eq!(at_once, piecemeal);
    }
    at_once
}

fn reply(body: &'static str, idle: Option<Duration>) -> Result<Option<Reply>, String> {
    Ok(Some(Reply { status: 200, body: Bytes::from_static(body.as_bytes()), idle }))
}

#[test]
fn replies_of_known_executors_are_read() {
    let netty = "HTTP/1.1 200 OK\r\ncontent-type: text/html;charset=UTF-8\r\ncontent-length: 12\r\n\
                 connection: keep-alive\r\n\r\n{\"code\":200}";
    assert_eq!(read(netty), reply("{\"code\":200}", KEPT));
    let go = "HTTP/1.1 200 OK\r\nDate: Sat, 28 Nov 2026 10:00:00 GMT\r\nContent-Length: 2\r\n\
              Content-Type: text/plain; charset=utf-8\r\n\r\n{}";
    assert_eq!(read(go), reply("{}", KEPT));
    let aiohttp = "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\
                   Server: Python/3.11 aiohttp/3.9\r\n\r\n5\r\n{\"cod\r\n7;x=y\r\ne\":200}\r\n0\r\n\r\n";
    assert_eq!(read(aiohttp), reply("{\"code\":200}", KEPT));
    let node =
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(read(node), reply("", Some(Duration::from_secs(4))));
}

#[test]
fn a_connection_is_kept_only_where_its_peer_keeps_it() {
    for (lines, idle) in [
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n", None),
        ("HTTP/1.1 200 OK\r\nConnection: Upgrade, Close\r\n", None),
        ("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\n", None),
        ("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0\r\n", None),
        ("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=3600\r\n", KEPT),
        ("HTTP/1.0 200 OK\r\n", None),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", KEPT),
        ("HTTP/1.1 200\r\n", KEPT),
    ] {
        assert_eq!(read(&format!("{lines}Content-Length: 2\r\n\r\nok")), reply("ok", idle), "{lines}");
    }
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut reader = ReplyReader::default();
    reader.push(b"HTTP/1.1 200 OK\r\n\r\nsome");
    assert_eq!(reader.take(), Ok(None));
    reader.push(b"thing");
    assert_eq!(reader.take(), Ok(None));
    assert_eq!(reader.end().map(Some), reply("something", None));
    assert_eq!(reader.end().unwrap_err(), "the executor closed the connection without a reply");
}

#[test]
fn a_part_of_a_reply_is_none() {
    for half in [
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsome",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    ] {
        let mut reader = ReplyReader::default();
        reader.push(half.as_bytes());
        assert_eq!(reader.take(), Ok(None));
        assert_eq!(
            reader.end().unwrap_err(),
            "the executor closed the connection in the middle of its reply",
            "{half}"
        );
    }
}

#[test]
fn heads_that_announce_another_are_skipped() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(read(text), reply("ok", KEPT));
    assert!(read("HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
}

#[test]
fn what_follows_a_reply_ends_the_connection() {
    let mut reader = ReplyReader::default();
    reader.push(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n");
    assert_eq!(reader.take(), reply("ok", None));
}

#[test]
fn a_status_without_a_body_has_none() {
    let none = Reply { status: 204, body: Bytes::new(), idle: KEPT };
    assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n"), Ok(Some(none)));
}

#[test]
fn nonsense_is_an_error() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn a_reply_that_is_too_long_is_not_taken_in() {
    let too_long = Err("the reply is too long".to_owned());
    let body = "x".repeat(BODY_BYTES_MAX);
    assert_eq!(read(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY_BYTES_MAX + 1)), too_long);
    assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"), too_long);
    assert_eq!(read(&format!("HTTP/1.1 200 OK\r\nX: {body}\r\n\r\n")), too_long);
    let mut reader = ReplyReader::default();
    reader.push(format!("HTTP/1.1 200 OK\r\n\r\n{body}x").as_bytes());
    assert_eq!(reader.take(), too_long);
    let mut reader = ReplyReader::default();
    reader.push(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n{body}\r\n1\r\n").as_bytes());
    assert_eq!(reader.take(), too_long);
    let mut reader = ReplyReader::default();
    reader.push(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES_MAX}\r\n\r\n{body}").as_bytes());
    assert_eq!(reader.take().unwrap().unwrap().body.len(), BODY_BYTES_MAX);
}

#[test]
fn lines_around_chunks_are_bounded() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let line = "x".repeat(LINE_BYTES_MAX);
    assert!(read(&format!("{head}0\r\nX: {line}")).is_err());
    assert!(read(&format!("{head}2;{line}")).is_err());
    assert_eq!(read(&format!("{head}2\r\nok\r\n0\r\nX: y\r\nY: z\r\n\r\n")), reply("ok", KEPT));
}
