use super::super::played::{EPOCH_MS, Played, StandingClock, comes};
use super::super::reply::BODY_BYTES_MAX;
use super::*;
use carillon_protocol::exchange::Request;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

type Outcome = Result<Bytes, Uncarried>;

/// A sender over a clock that stands.
struct World {
    clock: Arc<StandingClock>,
    sender: Arc<Sender>,
    thread: SenderThread,
}

impl World {
    fn of(connections_per_address: usize) -> Self {
        let clock = Arc::new(StandingClock::default());
        let settings = SenderSettings { connections_per_address, ..SenderSettings::default() };
        let rule = AddressRule::new(&["127.0.0.0/8".parse().unwrap()]);
        let (sender, thread) = Sender::start(&settings, rule, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
        Self { clock, sender: Arc::new(sender), thread }
    }

    /// Hands over a run that is due `after_ms` from now; the sender knows of it when this returns.
    fn run(&self, to: &Address, after_ms: i64, body: &str) -> JoinHandle<Outcome> {
        self.run_until(to, after_ms, 10_000, body, &Hold::default())
    }

    fn run_until(&self, to: &Address, after_ms: i64, until_ms: i64, body: &str, hold: &Hold) -> JoinHandle<Outcome> {
        let run = PreparedRun { hold: hold.clone(), ..prepared(&self.clock, after_ms, until_ms, body) };
        let mut running = Box::pin({
            let (sender, to) = (Arc::clone(&self.sender), to.clone());
            async move { sender.run(&to, run).await }
        });
        // The first poll hands it over.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match running.as_mut().poll(&mut context) {
            std::task::Poll::Ready(outcome) => tokio::spawn(std::future::ready(outcome)),
            std::task::Poll::Pending => tokio::spawn(running),
        }
    }
}

impl World {
    /// Lets time pass until the sender has looked for what has taken too long, and ended this.
    async fn passes_until_over(&self, running: &JoinHandle<Outcome>) {
        comes(async {
            while !running.is_finished() {
                self.clock.passes(100_000);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

fn prepared(clock: &StandingClock, after_ms: i64, until_ms: i64, body: &str) -> PreparedRun {
    let (now_ms, body) = (clock.now_ms(), Bytes::copy_from_slice(body.as_bytes()));
    let request = Request { path: "/run".to_owned(), headers: Vec::new(), body };
    let (due_ms, accept_until_ms) = (now_ms + after_ms, now_ms + until_ms);
    PreparedRun { due_ms, accept_until_ms, request, hold: Hold::default() }
}

async fn outcome(running: JoinHandle<Outcome>) -> Outcome {
    comes(running).await.unwrap()
}

/// The text of an outcome that is unknown.
async fn unknown(running: JoinHandle<Outcome>) -> String {
    match outcome(running).await {
        Err(Uncarried::Unknown(why)) => why,
        other => panic!("not unknown: {other:?}"),
    }
}

/// The text of an outcome that says that nothing was sent.
async fn not_delivered(running: JoinHandle<Outcome>) -> String {
    match outcome(running).await {
        Err(Uncarried::NotDelivered(why)) => why,
        other => panic!("it was delivered: {other:?}"),
    }
}

#[tokio::test]
async fn no_run_leaves_before_it_is_due() {
    let (world, mut early, mut late) = (World::of(4), Played::listen().await, Played::listen().await);
    let hold = Hold::default();
    let second = world.run_until(&late.address, 150, 10_000, "second", &hold);
    let first = world.run(&early.address, 149, "first");
    world.clock.passes(149_999);
    // What is due a millisecond earlier has left, so the sender has looked at the clock.
    assert_eq!(early.request().await, (0, "first".to_owned()));
    early.replies(0, "1").await;
    assert_eq!(outcome(first).await, Ok(Bytes::from_static(b"1")));
    assert!(!late.has_request() && hold.sent_us().is_none());
    world.clock.passes(1);
    assert_eq!(late.request().await, (0, "second".to_owned()));
    assert_eq!(hold.sent_us(), Some((EPOCH_MS + 150) * 1_000));
    late.replies(0, "2").await;
    assert_eq!(outcome(second).await, Ok(Bytes::from_static(b"2")));
}

#[tokio::test]
async fn a_clock_that_is_set_back_holds_runs_for_longer_but_not_for_ever() {
    let (world, mut executor) = (World::of(4), Played::listen().await);
    let running = world.run_until(&executor.address, 100, 3_000, "held", &Hold::default());
    world.clock.is_set(-3_600_000_000);
    world.clock.passes(2_999_999);
    let other = world.run(&executor.address, 0, "other");
    assert_eq!(executor.request().await.1, "other");
    executor.replies(0, "").await;
    assert!(outcome(other).await.is_ok());
    assert!(!running.is_finished());
    world.passes_until_over(&running).await;
    assert_eq!(not_delivered(running).await, "it was not sent before it expired");
    assert!(!executor.has_request());
}

#[tokio::test]
async fn what_waits_for_a_connection_leaves_in_the_order_of_due_times() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let running = [(3, "c"), (1, "a"), (2, "b"), (3, "d")].map(|(ms, body)| world.run(&executor.address, ms, body));
    world.clock.passes(3_000);
    for body in ["a", "b", "c", "d"] {
        assert_eq!(executor.request().await, (0, body.to_owned()));
        assert!(!executor.has_request(), "one at a time");
        executor.replies(0, body).await;
    }
    for (running, body) in running.into_iter().zip(["c", "a", "b", "d"]) {
        assert_eq!(outcome(running).await, Ok(Bytes::from_static(body.as_bytes())));
    }
}

#[tokio::test]
async fn a_bucket_leaves_at_once_over_connections_that_are_open_already() {
    let (world, mut executor) = (World::of(8), Played::listen().await);
    let running: Vec<_> = (0..20).map(|_| world.run(&executor.address, 200, "x")).collect();
    while executor.opened < 8 {
        assert!(!executor.has_request());
        tokio::task::yield_now().await;
    }
    world.clock.passes(200_000);
    let mut connections = Vec::new();
    for _ in 0..8 {
        connections.push(executor.request().await.0);
    }
    assert!(!executor.has_request(), "the others wait for replies");
    for _ in 8..20 {
        executor.replies(connections.remove(0), "").await;
        connections.push(executor.request().await.0);
    }
    for number in connections {
        executor.replies(number, "").await;
    }
    for running in running {
        assert_eq!(outcome(running).await, Ok(Bytes::new()));
    }
    assert_eq!(executor.opened, 8);
}

#[tokio::test]
async fn a_connection_is_used_again_until_either_side_ends_it() {
    let (world, mut executor) = (World::of(4), Played::listen().await);
    let run = async |executor: &mut Played, reply: &str| {
        let running = world.run(&executor.address, 0, "x");
        let number = executor.request().await.0;
        executor.says(number, reply).await;
        assert_eq!(outcome(running).await, Ok(Bytes::from_static(b"ok")));
        number
    };
    let kept = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(run(&mut executor, kept).await, 0);
    assert_eq!(
        run(&mut executor, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n").await,
        0
    );
    assert_eq!(run(&mut executor, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await, 0);
    executor.is_closed(0).await;
    // The executor ends it.
    assert_eq!(run(&mut executor, kept).await, 1);
    executor.closes(1);
    executor.is_closed(1).await;
    // It has told how long it keeps it.
    assert_eq!(run(&mut executor, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok").await, 2);
    world.clock.passes(4_000_000);
    executor.is_closed(2).await;
    // It has not.
    assert_eq!(run(&mut executor, kept).await, 3);
    world.clock.passes(29_999_999);
    assert_eq!(run(&mut executor, kept).await, 3);
    world.clock.passes(30_000_000);
    executor.is_closed(3).await;
    assert_eq!(run(&mut executor, kept).await, 4);
}

#[tokio::test]
async fn what_may_have_arrived_is_unknown_and_is_not_sent_again() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let too_long = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
    for (reply, why) in [
        ("", "the executor closed the connection without a reply"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha",
            "the executor closed the connection in the middle of its reply",
        ),
        (&too_long, "the reply is too long"),
        ("SSH-2.0-x\r\n\r\n", "the reply is not HTTP: invalid HTTP version"),
        ("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "the executor answers with HTTP status 503"),
    ] {
        let running = world.run(&executor.address, 0, why);
        let (number, body) = executor.request().await;
        assert_eq!(body, why, "nothing came twice");
        executor.says(number, reply).await;
        executor.closes(number);
        assert_eq!(unknown(running).await, why);
    }
}

#[tokio::test]
async fn a_reply_may_come_in_pieces() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let running = world.run(&executor.address, 0, "x");
    let number = executor.request().await.0;
    for piece in ["HTTP/1.1 200 OK\r\nConte", "nt-Length: 4\r\n\r", "\nha", "lf"] {
        assert!(!running.is_finished());
        executor.says(number, piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(outcome(running).await, Ok(Bytes::from_static(b"half")));
}

#[tokio::test]
async fn a_silent_executor_delays_no_other_and_what_waits_for_it_goes_elsewhere() {
    let (world, mut silent, mut other) = (World::of(1), Played::listen().await, Played::listen().await);
    let sent = world.run(&silent.address, 0, "sent");
    let waiting = world.run(&silent.address, 0, "waiting");
    let held = world.run(&silent.address, 900, "held");
    assert_eq!(silent.request().await.1, "sent");
    let elsewhere = world.run(&other.address, 0, "x");
    let number = other.request().await.0;
    other.replies(number, "").await;
    assert_eq!(outcome(elsewhere).await, Ok(Bytes::new()));
    // The cluster clock is set: it does not decide how long anyone waits.
    world.clock.is_set(-60_000_000);
    world.clock.passes(2_999_999);
    let again = world.run(&other.address, 0, "x");
    other.request().await;
    other.replies(number, "").await;
    assert_eq!(outcome(again).await, Ok(Bytes::new()));
    assert!(!sent.is_finished() && !waiting.is_finished());
    world.passes_until_over(&sent).await;
    assert_eq!(unknown(sent).await, "no reply within 3s");
    assert_eq!(not_delivered(waiting).await, "the executor has been silent for 3s");
    assert_eq!(not_delivered(held).await, "the executor has been silent for 3s");
    silent.is_closed(0).await;
    assert!(!silent.has_request());
}

#[tokio::test]
async fn what_finds_no_connection_in_time_is_not_delivered() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let sent = world.run(&executor.address, 0, "sent");
    let number = executor.request().await.0;
    let waiting = world.run_until(&executor.address, 0, 1_000, "waiting", &Hold::default());
    world.clock.passes(1_000_000);
    world.passes_until_over(&waiting).await;
    assert_eq!(not_delivered(waiting).await, "it was not sent before it expired");
    executor.replies(number, "").await;
    assert!(outcome(sent).await.is_ok());
    let late = world.run_until(&executor.address, -5_000, -1_000, "late", &Hold::default());
    assert_eq!(not_delivered(late).await, "it was not sent before it expired");
    assert!(!executor.has_request());
}

#[tokio::test]
async fn where_nothing_listens_a_run_comes_back_before_it_is_due() {
    let world = World::of(4);
    let nobody = Played::nobody().await;
    for _ in 0..2 {
        let refused = outcome(world.run(&nobody, 200, "x")).await;
        assert!(matches!(refused, Err(Uncarried::NotListening(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn an_executor_that_closes_every_connection_is_sent_nothing() {
    let world = World::of(4);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
        }
    });
    let why = not_delivered(world.run(&address, 200, "x")).await;
    assert_eq!(why, "the executor closed the connection without a reply");
}

#[tokio::test]
async fn a_withdrawn_run_is_not_sent() {
    let (world, mut executor) = (World::of(4), Played::listen().await);
    let hold = Hold::default();
    let withdrawn = world.run_until(&executor.address, 100, 10_000, "withdrawn", &hold);
    let dropped = world.run(&executor.address, 100, "dropped");
    let sent_hold = Hold::default();
    let sent = world.run_until(&executor.address, 100, 10_000, "sent", &sent_hold);
    assert!(hold.withdraw());
    dropped.abort();
    assert!(comes(dropped).await.unwrap_err().is_cancelled());
    world.clock.passes(100_000);
    let (number, body) = executor.request().await;
    assert_eq!(body, "sent");
    assert!(!sent_hold.withdraw());
    executor.replies(number, "").await;
    assert!(outcome(sent).await.is_ok());
    assert_eq!(not_delivered(withdrawn).await, "it was withdrawn");
    assert!(!executor.has_request());
}

#[tokio::test]
async fn a_stop_gives_back_what_was_not_sent_and_waits_for_replies() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let sent = world.run(&executor.address, 0, "sent");
    let number = executor.request().await.0;
    let waiting = world.run(&executor.address, 0, "waiting");
    let held = world.run(&executor.address, 200, "held");
    let stopped = tokio::spawn(world.thread.stop());
    for running in [waiting, held] {
        assert_eq!(not_delivered(running).await, "this node is stopping");
    }
    assert!(!stopped.is_finished());
    executor.replies(number, "late").await;
    assert_eq!(outcome(sent).await, Ok(Bytes::from_static(b"late")));
    comes(stopped).await.unwrap();
    executor.is_closed(0).await;
    let refused = comes(world.sender.run(&executor.address, prepared(&world.clock, 0, 1_000, "x"))).await;
    assert_eq!(refused, Err(Uncarried::NotDelivered("this node is stopping".to_owned())));
}

#[tokio::test]
async fn a_panic_on_the_thread_is_seen_and_nobody_waits_for_ever() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let sent = world.run(&executor.address, 0, "sent");
    executor.request().await;
    let held = world.run(&executor.address, 200, "held");
    assert!(!world.thread.is_finished());
    world.clock.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(unknown(sent).await, "nothing reads replies here any more");
    assert_eq!(not_delivered(held).await, "nothing sends runs here any more");
    comes(async {
        while !world.thread.is_finished() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_long_request_arrives_whole() {
    let (world, mut executor) = (World::of(1), Played::listen().await);
    let body = "0123456789abcdef".repeat(60_000);
    let running = world.run(&executor.address, 0, &body);
    let (number, came) = executor.request().await;
    assert!(came == body, "{} bytes", came.len());
    // Its connection takes the next.
    executor.replies(number, "1").await;
    assert_eq!(outcome(running).await, Ok(Bytes::from_static(b"1")));
    let next = world.run(&executor.address, 0, "next");
    let (number, came) = executor.request().await;
    assert_eq!(came, "next");
    executor.replies(number, "2").await;
    assert_eq!(outcome(next).await, Ok(Bytes::from_static(b"2")));
}

#[tokio::test]
async fn what_is_held_is_bounded() {
    let (world, executor) = (World::of(1), Played::listen().await);
    let body = "x".repeat(REQUEST_BYTES_MAX - 200);
    let held: Vec<_> = (0..BYTES_MAX / REQUEST_BYTES_MAX).map(|_| world.run(&executor.address, 500, &body)).collect();
    assert_eq!(not_delivered(world.run(&executor.address, 500, &body)).await, "this node holds too many runs");
    let why = not_delivered(world.run(&executor.address, HELD_MS_MAX + 1, "x")).await;
    assert_eq!(why, "it is due in more than 1000 ms");
    comes(world.thread.stop()).await;
    for held in held {
        assert_eq!(not_delivered(held).await, "this node is stopping");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_not() {
    let world = World::of(1);
    for (address, why) in [
        ("https://127.0.0.1:1", "executors over TLS are not supported yet"),
        ("http://10.0.0.7:1", "it is in none of the networks allowed for executors"),
        ("http://169.254.169.254:1", "are never executors"),
        ("http://nobody.invalid:1", "nobody.invalid was not found"),
    ] {
        let told = not_delivered(world.run(&Address::parse(address).unwrap(), 0, "x")).await;
        assert!(told.contains(why), "{told}");
    }
}
