//! A proxy on real sockets: what it does at which message, whatever pieces the bytes come in.

use crate::links::Hop;
use crate::plan::Target;
use carillon_tests::proxy::{Action, Fork, Place, Point, Speech, Trap, Way};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long something that must not come is waited for.
const SILENCE: Duration = Duration::from_millis(200);

/// A server that answers each piece with what `answer` makes of it, and a way to it.
async fn way_to(speech: Speech, answer: fn(&[u8]) -> Vec<u8>) -> Way {
    let server = server(answer).await;
    Way::open("test", 0, server, speech, Arc::new(|_, _, _| ())).await.unwrap()
}

async fn server(answer: fn(&[u8]) -> Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    stream.write_all(&answer(&buffer[..read])).await.unwrap();
                }
            });
        }
    });
    address
}

async fn connect(way: &Way) -> TcpStream {
    reach(way.port).await
}

async fn reach(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.unwrap()
}

/// What comes back: `Some(empty)` is an end, `None` nothing.
async fn ask(stream: &mut TcpStream, bytes: &[u8]) -> Option<Vec<u8>> {
    stream.write_all(bytes).await.unwrap();
    hear(stream, PATIENCE).await
}

async fn hear(stream: &mut TcpStream, within: Duration) -> Option<Vec<u8>> {
    let mut buffer = [0; 1024];
    let read = tokio::time::timeout(within, stream.read(&mut buffer)).await.ok()?;
    Some(buffer[..read.unwrap_or(0)].to_vec())
}

fn echo(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

/// A statement was prepared as number 7.
fn prepared(_: &[u8]) -> Vec<u8> {
    packet(1, &[0, 7, 0, 0, 0, 0, 0])
}

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes()[..3].to_vec();
    bytes.push(sequence);
    bytes.extend_from_slice(body);
    bytes
}

fn typed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn cut(point: Point, place: Place) -> Trap {
    Trap { point, place, action: Action::Cut, times: 1 }
}

#[tokio::test]
async fn a_commit_is_no_read_committed_and_no_login() {
    let way = way_to(Speech::MySql, echo).await;
    way.set(cut(Point::Commit, Place::Before));
    let mut stream = connect(&way).await;
    for harmless in [
        packet(1, b"\x03COMMIT in a login"),
        packet(0, b"\x03SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        packet(0, b"\x03BEGIN"),
    ] {
        assert_eq!(ask(&mut stream, &harmless).await, Some(harmless));
    }
    assert_eq!(ask(&mut stream, &packet(0, b"\x03COMMIT")).await, Some(Vec::new()));
}

#[tokio::test]
async fn mysql_statements_are_known_by_their_numbers_whatever_pieces_they_come_in() {
    let way = way_to(Speech::MySql, prepared).await;
    way.set(cut(Point::Lock, Place::Before));
    let mut stream = connect(&way).await;
    let prepare = packet(0, b"\x16UPDATE permit_scope SET turn = turn + 1");
    stream.write_all(&prepare[..9]).await.unwrap();
    assert_eq!(hear(&mut stream, SILENCE).await, None, "half a message does not arrive");
    assert!(ask(&mut stream, &prepare[9..]).await.is_some_and(|answer| !answer.is_empty()));
    assert!(ask(&mut stream, &packet(0, &[0x17, 6, 0, 0, 0, 0])).await.is_some_and(|answer| !answer.is_empty()));
    assert_eq!(ask(&mut stream, &packet(0, &[0x17, 7, 0, 0, 0, 0])).await, Some(Vec::new()));
}

#[tokio::test]
async fn postgres_statements_are_known_by_their_names() {
    let way = way_to(Speech::Postgres, echo).await;
    way.set(cut(Point::Lock, Place::After));
    let mut stream = connect(&way).await;
    let mut opening = 8u32.to_be_bytes().to_vec();
    opening.extend_from_slice(&80_877_103_u32.to_be_bytes());
    assert_eq!(ask(&mut stream, &opening).await, Some(opening));
    let opening = [0, 0, 0, 9, 0, 3, 0, 0, 0];
    assert_eq!(ask(&mut stream, &opening).await, Some(opening.to_vec()));
    for harmless in [typed(b'P', b"s1\0UPDATE permit_scope SET turn = 1\0\0\0"), typed(b'B', b"\0s2\0\0\0")] {
        assert_eq!(ask(&mut stream, &harmless).await, Some(harmless));
    }
    assert_eq!(ask(&mut stream, &typed(b'B', b"\0s1\0\0\0")).await, Some(Vec::new()));
}

#[tokio::test]
async fn what_is_held_goes_on_and_what_vanishes_is_never_closed() {
    let way = way_to(Speech::Postgres, echo).await;
    let opening = [0, 0, 0, 9, 0, 3, 0, 0, 0];
    let commit = typed(b'Q', b"COMMIT\0");
    let mut held = connect(&way).await;
    ask(&mut held, &opening).await;
    way.set(Trap { point: Point::Commit, place: Place::After, action: Action::Hold(PATIENCE), times: 1 });
    held.write_all(&commit).await.unwrap();
    way.sprung().await;
    assert_eq!(hear(&mut held, SILENCE).await, None);
    way.release();
    assert_eq!(hear(&mut held, PATIENCE).await, Some(commit.clone()));

    let mut other = connect(&way).await;
    ask(&mut other, &opening).await;
    way.set(Trap { point: Point::Commit, place: Place::Before, action: Action::Vanish, times: 1 });
    held.write_all(&commit).await.unwrap();
    way.vanished(0).await;
    let mut late = connect(&way).await;
    for stream in [&mut held, &mut other, &mut late] {
        stream.write_all(&opening).await.unwrap();
        assert_eq!(hear(stream, SILENCE).await, None);
    }
    way.thaw();
    assert_eq!(hear(&mut late, PATIENCE).await, Some(opening.to_vec()), "what came since goes on");
    for stream in [&mut held, &mut other] {
        assert_eq!(hear(stream, SILENCE).await, None, "what was lost stays lost");
    }
}

#[tokio::test]
async fn a_way_that_is_cut_ends() {
    let way = way_to(Speech::Unknown, echo).await;
    let mut stream = connect(&way).await;
    assert_eq!(ask(&mut stream, b"hello").await, Some(b"hello".to_vec()));
    way.cut(false);
    assert_eq!(hear(&mut stream, PATIENCE).await, Some(Vec::new()));
    let mut stream = connect(&way).await;
    assert_eq!(ask(&mut stream, b"x").await, Some(b"x".to_vec()));
    way.cut(true);
    assert!(tokio::time::timeout(PATIENCE, stream.read_u8()).await.unwrap().is_err(), "a reset is an error");
}

#[tokio::test]
async fn a_fork_leads_each_by_its_way_and_refuses_all() {
    let server = server(echo).await;
    let way = || Arc::new(Way::behind_a_fork("test", server, Speech::Unknown, Arc::new(|_, _, _| ())));
    let ways = vec![way(), way()];
    // Each by another way, and the third by none.
    let next = AtomicUsize::new(0);
    let choose = Arc::new(move |_| Some(next.fetch_add(1, Ordering::SeqCst)).filter(|at| *at < 2));
    let port = carillon_tests::port::free();
    let fork = Fork::open(port, ways.clone(), choose).await.unwrap();
    let (mut first, mut second) = (reach(port).await, reach(port).await);
    assert_eq!(ask(&mut first, b"first").await, Some(b"first".to_vec()));
    assert_eq!(ask(&mut second, b"second").await, Some(b"second".to_vec()));
    assert_eq!(hear(&mut reach(port).await, PATIENCE).await, Some(Vec::new()), "a third is closed");
    ways[0].freeze();
    first.write_all(b"frozen").await.unwrap();
    assert_eq!(hear(&mut first, SILENCE).await, None);
    assert_eq!(ask(&mut second, b"passes").await, Some(b"passes".to_vec()));

    fork.refuse();
    let gone = async { while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("it refuses");
    assert_eq!(ask(&mut second, b"still").await, Some(b"still".to_vec()));
    fork.accept().await.unwrap();
    reach(port).await;
}

#[tokio::test]
async fn what_two_are_cut_off_from_passes_when_neither_is() {
    let hop = Hop::by(way_to(Speech::Unknown, echo).await);
    let (node, executor) = (Target::Node(0), Target::Executor(0));
    let mut stream = connect(&hop.way).await;
    hop.freeze(node);
    hop.freeze(executor);
    hop.thaw(node);
    stream.write_all(b"kept").await.unwrap();
    assert_eq!(hear(&mut stream, SILENCE).await, None);
    hop.thaw(executor);
    assert_eq!(hear(&mut stream, PATIENCE).await, Some(b"kept".to_vec()));

    hop.freeze(node);
    hop.vanish(executor);
    hop.thaw(executor);
    let mut later = connect(&hop.way).await;
    later.write_all(b"later").await.unwrap();
    assert_eq!(hear(&mut later, SILENCE).await, None);
    hop.thaw(node);
    assert_eq!(hear(&mut later, PATIENCE).await, Some(b"later".to_vec()));
    stream.write_all(b"lost").await.unwrap();
    assert_eq!(hear(&mut stream, SILENCE).await, None, "what was lost stays lost");
}
