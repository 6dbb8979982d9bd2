//! What runs log, and how nodes read it.

use crate::client::{call, item};
use crate::harness::{APP, Running, SECRET, Seen, TENANT, bounded, builder, eventually};
use crate::node::TestNode;
use carillon_executor::{ExecutorBuilder, Output, TaskContext, TaskError, output_layer};
use carillon_protocol::sign::{SignMethod, header};
use carillon_protocol::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::Notify;
use tracing::Instrument as _;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A node, a journal, and what starts executors on it.
struct Stand {
    node: TestNode,
    journal: TempDir,
}

impl Stand {
    async fn new() -> Self {
        static LAYER: Once = Once::new();
        // One subscriber for all tests of this process; each looks at its own run.
        LAYER.call_once(|| {
            tracing_subscriber::registry().with(output_layer(LevelFilter::DEBUG)).init();
        });
        Self { node: TestNode::start().await, journal: tempfile::tempdir().unwrap() }
    }

    fn builder(&self) -> ExecutorBuilder {
        builder(&[&self.node], &self.journal, &Arc::new(Seen::default()))
    }

    async fn start(&self, builder: ExecutorBuilder) -> Running {
        Running::registered(builder, &self.node).await
    }

    /// Runs `handler` of `running` as `log`, to its end.
    async fn run(&self, running: &Running, log: i64, handler: &str) -> RunResult {
        let now = self.node.now_ms();
        let outcomes = running.dispatch(vec![item(log, handler, now)], &self.node).await;
        assert_eq!(outcomes, [DispatchOutcome::Accepted]);
        eventually("result", || self.node.result(log).is_some()).await;
        self.node.result(log).unwrap()
    }

    async fn page(&self, running: &Running, log: i64, from: u64, limit: u32) -> OutputPage {
        let message = ReadOutput { instance: None, log, attempt: 1, from, limit };
        let got = call(running.port, "/logs", &message, self.node.now_ms()).send().await;
        assert_eq!((got.code, got.signed), (Code::Ok, true));
        serde_json::from_value(got.data).unwrap()
    }

    /// Reads to the end, page by page, as a node does that follows a run.
    async fn whole(&self, running: &Running, log: i64, limit: u32) -> (String, OutputPage) {
        bounded(self.follow(running, log, limit)).await
    }

    async fn follow(&self, running: &Running, log: i64, limit: u32) -> (String, OutputPage) {
        let mut text = String::new();
        let mut from = 0;
        loop {
            let page = self.page(running, log, from, limit).await;
            text.push_str(&page.text);
            assert!(page.next >= from);
            from = page.next;
            if !page.more {
                if matches!(page.state, OutputState::Ended | OutputState::Unknown) {
                    return (text, page);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    fn output_folder(&self) -> PathBuf {
        self.journal.path().join(TENANT).join(APP).join("0/output")
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.output_folder())
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map_or_else(|_| Vec::new(), |all| all.map(|entry| entry.unwrap().path()).collect())
}

/// What follows time and level in each line.
fn texts(output: &str) -> Vec<&str> {
    output.lines().map(|line| &line[31..]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_run_logs_can_be_read_while_it_runs_and_when_it_has_ended() {
    let stand = Stand::new().await;
    let go_on = Arc::new(Notify::new());
    let wait = Arc::clone(&go_on);
    let talkative = stand.builder().handler("talks", move |ctx: TaskContext| {
        let wait = Arc::clone(&wait);
        async move {
            ctx.log_info("begun");
            wait.notified().await;
            ctx.log_warn(format_args!("{} of {}", 1, "ä€😀"));
            ctx.log_error("bell\u{7}");
            ctx.log_debug("two\nlines");
            Ok(Output::none())
        }
    });
    let running = stand.start(talkative).await;
    let now = stand.node.now_ms();
    running.dispatch(vec![item(1, "talks", now), item(2, "quick", now + 60_000)], &stand.node).await;
    let mut page = stand.page(&running, 1, 0, 1_000).await;
    while page.text.is_empty() {
        page = stand.page(&running, 1, 0, 1_000).await;
    }
    assert_eq!((page.state, page.more, page.cut), (OutputState::Running, false, false));
    assert_eq!(texts(&page.text), ["begun"]);
    let waiting = stand.page(&running, 2, 0, 1_000).await;
    assert_eq!((waiting.state, waiting.next), (OutputState::Waiting, 0));

    go_on.notify_one();
    eventually("result", || stand.node.result(1).is_some()).await;
    let rest = stand.page(&running, 1, page.next, 1_000).await;
    assert_eq!((rest.state, rest.more), (OutputState::Ended, false), "at once, with its last lines");
    let expected = [("WARN ", "1 of ä€😀"), ("ERROR", "bell\\u{7}"), ("DEBUG", "two")];
    for (line, (level, text)) in rest.text.lines().zip(expected) {
        assert_eq!((&line[25..30], &line[31..]), (level, text));
        let at = chrono::DateTime::parse_from_rfc3339(&line[..24]).unwrap().timestamp_millis();
        assert!((now..=stand.node.now_ms()).contains(&at), "{line}");
    }
    assert!(rest.text.ends_with("\n    lines\n"), "{}", rest.text);
    let (by_pieces, last) = stand.whole(&running, 1, 4).await;
    assert_eq!(by_pieces, page.text + &rest.text);
    assert_eq!(last.next, by_pieces.len() as u64);
    let past = stand.page(&running, 1, 1 << 60, 1_000).await;
    assert_eq!((past.text.as_str(), past.next, past.more), ("", last.next, false));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_logs_nothing_leaves_nothing() {
    let stand = Stand::new().await;
    let running = stand.start(stand.builder()).await;
    stand.run(&running, 1, "quick").await;
    let page = stand.page(&running, 1, 7, 100).await;
    assert_eq!((page.state, page.text.as_str(), page.next), (OutputState::Ended, "", 0));
    assert_eq!(stand.page(&running, 999, 0, 100).await.state, OutputState::Unknown);
    running.stopped().await;
    assert!(!stand.output_folder().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_inside_a_runs_span_are_its_output() {
    let stand = Stand::new().await;
    let builder = stand.builder().handler("traced", |ctx: TaskContext| {
        // Also what happens before the future is polled.
        tracing::info!("called");
        async move {
            tracing::info!(rows = 12, table = "books", "closed\u{1b}[0m");
            tracing::trace!("below the layer's level");
            let spawned = async {
                let span = tracing::info_span!("the handler's own");
                span.in_scope(|| tracing::warn!("spawned"));
            };
            tokio::spawn(spawned.in_current_span()).await?;
            tokio::spawn(async { tracing::info!("without the span") }).await?;
            // Through the context, whatever span is current.
            let elsewhere = tracing::Span::none().in_scope(|| ctx.spawn_blocking(|| tracing::debug!("blocking")));
            elsewhere.await?;
            Ok(Output::none())
        }
    });
    let running = stand.start(builder).await;
    tracing::info!("in no run at all");
    stand.run(&running, 1, "traced").await;
    let (text, _) = stand.whole(&running, 1, 10_000).await;
    let target = module_path!();
    let expected = [
        format!("{target}: called"),
        format!("{target}: closed\\u{{1b}}[0m rows=12 table=\"books\""),
        format!("{target}: spawned"),
        format!("{target}: blocking"),
    ];
    assert_eq!(texts(&text), expected);
    assert_eq!(stand.files().len(), 1);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_at_once_do_not_mix() {
    let stand = Stand::new().await;
    let builder = stand.builder().handler("mixes", |ctx: TaskContext| async move {
        for step in 0..200 {
            tracing::info!("run {} step {step}", ctx.log());
            tokio::task::yield_now().await;
        }
        Ok(Output::none())
    });
    let running = stand.start(builder).await;
    let now = stand.node.now_ms();
    running.dispatch((1..=8).map(|log| item(log, "mixes", now)).collect(), &stand.node).await;
    eventually("results", || stand.node.state().results.len() == 8).await;
    for log in 1..=8 {
        let (text, _) = stand.whole(&running, log, 10_000).await;
        let expected: Vec<String> = (0..200).map(|step| format!("{}: run {log} step {step}", module_path!())).collect();
        assert_eq!(texts(&text), expected);
    }
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_logged_after_the_end_belong_to_no_run() {
    let stand = Stand::new().await;
    let (contexts, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let (first, second) = (contexts.clone(), contexts);
    let builder = stand
        .builder()
        .handler("talks", move |ctx: TaskContext| {
            ctx.log_info("in time");
            first.send(ctx).unwrap();
            async { Ok(Output::none()) }
        })
        .handler("silent", move |ctx: TaskContext| {
            second.send(ctx).unwrap();
            async { Err(TaskError::failed("on purpose")) }
        });
    let running = stand.start(builder).await;
    for (log, handler) in [(1, "talks"), (2, "silent")] {
        stand.run(&running, log, handler).await;
        let context = kept.recv().await.unwrap();
        context.log_info("too late");
    }
    // A later run has been through the same writer.
    stand.run(&running, 3, "talks").await;
    stand.whole(&running, 3, 1_000).await;
    let (text, _) = stand.whole(&running, 1, 1_000).await;
    assert_eq!(texts(&text), ["in time"]);
    assert_eq!(stand.whole(&running, 2, 1_000).await.0, "");
    running.stopped().await;
}

/// 100 threads log without end; the run next to it is on time, its own file is bounded, and no
/// line is missing without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_cut_and_harms_no_one() {
    const THREADS: usize = 100;
    const LINES: usize = 20_000;
    const KEPT: u64 = 256 * 1024;
    let stand = Stand::new().await;
    let builder = stand.builder().output_run_bytes_max(KEPT).handler("floods", |ctx: TaskContext| async move {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let ctx = ctx.clone();
                std::thread::spawn(move || {
                    for line in 0..LINES {
                        ctx.log_info(format_args!("{thread} {line} {:500}", ""));
                    }
                })
            })
            .collect();
        ctx.spawn_blocking(move || threads.into_iter().for_each(|thread| thread.join().unwrap())).await?;
        Ok(Output::none())
    });
    let running = stand.start(builder).await;
    let now = stand.node.now_ms();
    running.dispatch(vec![item(1, "floods", now), item(2, "quick", now)], &stand.node).await;
    eventually("the run beside it", || stand.node.result(2).is_some()).await;
    eventually("the flood is over", || stand.node.result(1).is_some()).await;
    assert_eq!(stand.node.result(1).unwrap().status, RunStatus::Succeeded);
    let (text, last) = stand.whole(&running, 1, 256 * 1024).await;
    assert!(last.cut);
    assert!(text.len() as u64 <= KEPT + 128, "{}", text.len());
    assert!(text.len() as u64 > KEPT / 2, "{}", text.len());
    let end = text.lines().next_back().unwrap();
    assert!(end[25..].starts_with("----- cut: "), "{end}");
    running.stopped().await;
}

/// While the disk hangs runs go on and end; what the memory cannot take is counted.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_disk_blocks_no_run_and_lost_lines_are_counted() {
    const LINES: u64 = 4_000;
    let stand = Stand::new().await;
    // Opening it for writing blocks until there is a reader.
    let hanging = stand.output_folder().join("1-1.log");
    std::fs::create_dir_all(stand.output_folder()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&hanging).status().unwrap().success());
    let builder = stand
        .builder()
        .output_run_bytes_max(60 * 1024 * 1024)
        .handler("talks", |ctx: TaskContext| async move {
            ctx.log_info("anybody there?");
            Ok(Output::none())
        })
        .handler("hurries", |ctx: TaskContext| async move {
            // Four times what the memory takes.
            let line = "x".repeat(4_000);
            for _ in 0..LINES {
                ctx.log_info(&line);
            }
            Ok(Output::none())
        });
    let running = stand.start(builder).await;
    stand.run(&running, 1, "talks").await;
    let result = stand.run(&running, 2, "hurries").await;
    assert_eq!(result.status, RunStatus::Succeeded);
    let page = stand.page(&running, 2, 0, 100).await;
    assert_eq!((page.state, page.text.as_str()), (OutputState::Running, ""), "its lines are still to be written");

    let reader = std::thread::spawn(move || std::fs::read_to_string(hanging).unwrap());
    let (text, last) = stand.whole(&running, 2, 256 * 1024).await;
    assert!(!last.cut);
    let (mut kept, mut missing) = (0, 0);
    for line in text.lines() {
        match line[25..].strip_prefix("----- ") {
            Some(remark) => missing += remark.split_once(' ').unwrap().0.parse::<u64>().unwrap(),
            None => kept += 1,
        }
    }
    assert_eq!(kept + missing, LINES);
    assert!((1..LINES).contains(&missing), "{missing}");
    assert_eq!(texts(&reader.join().unwrap()), ["anybody there?"]);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_process_still_has_it() {
    let stand = Stand::new().await;
    let talks = |builder: ExecutorBuilder| {
        builder.handler("talks", |ctx: TaskContext| async move {
            ctx.log_info("of the first process");
            Ok(Output::none())
        })
    };
    let first = stand.start(talks(stand.builder())).await;
    stand.run(&first, 1, "talks").await;
    let beside = stand.start(talks(stand.builder())).await;
    let (text, _) = stand.whole(&beside, 1, 1_000).await;
    assert_eq!(texts(&text), ["of the first process"], "a process beside it can read it");
    first.stopped().await;
    beside.stopped().await;
    let second = stand.start(stand.builder()).await;
    let (text, last) = stand.whole(&second, 1, 1_000).await;
    assert_eq!(texts(&text), ["of the first process"]);
    assert_eq!(last.state, OutputState::Ended);
    second.stopped().await;

    let strict = stand.start(stand.builder().output_age_max(Duration::ZERO)).await;
    eventually("too old", || stand.files().is_empty()).await;
    assert_eq!(stand.page(&strict, 1, 0, 1_000).await.state, OutputState::Unknown);
    strict.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_make_room_for_new_ones() {
    let stand = Stand::new().await;
    let builder = stand.builder().output_run_bytes_max(8 * 1024).output_bytes_max(64 * 1024).handler(
        "talks",
        |ctx: TaskContext| async move {
            ctx.log_info("x".repeat(7_000));
            Ok(Output::none())
        },
    );
    let running = stand.start(builder).await;
    let bytes = |path: &PathBuf| path.metadata().unwrap().len().next_multiple_of(4096);
    // Looks for room are at least a second apart; what comes in between is lost, not too much.
    for log in 1..1_000 {
        stand.run(&running, log, "talks").await;
        let kept = !stand.whole(&running, log, 10_000).await.0.is_empty();
        assert!(stand.files().iter().map(bytes).sum::<u64>() <= 64 * 1024);
        if kept && log > 16 {
            assert_eq!(stand.whole(&running, 1, 10_000).await.0, "", "the oldest is gone");
            running.stopped().await;
            return;
        }
    }
    panic!("no room was made");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_harms_no_run() {
    let stand = Stand::new().await;
    std::fs::create_dir_all(stand.output_folder()).unwrap();
    std::os::unix::fs::symlink("/dev/full", stand.output_folder().join("1-1.log")).unwrap();
    // The device is as old as the machine's start: what is too old would be deleted first.
    let builder = stand.builder().output_age_max(Duration::MAX).handler("talks", |ctx: TaskContext| async move {
        ctx.log_info("where to?");
        Ok(Output::text("done"))
    });
    let running = stand.start(builder).await;
    let result = stand.run(&running, 1, "talks").await;
    assert_eq!((result.status, result.output.as_str()), (RunStatus::Succeeded, "done"));
    assert_eq!(stand.page(&running, 1, 0, 100).await.text, "");
    stand.run(&running, 2, "talks").await;
    let (text, _) = stand.whole(&running, 2, 1_000).await;
    assert_eq!(texts(&text), ["where to?"]);
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_can_keep_none() {
    let stand = Stand::new().await;
    let builder = stand.builder().output_bytes_max(0).handler("talks", |ctx: TaskContext| async move {
        ctx.log_info("for nobody");
        Ok(Output::none())
    });
    let running = stand.start(builder).await;
    stand.run(&running, 1, "talks").await;
    let message = ReadOutput { instance: None, log: 1, attempt: 1, from: 0, limit: 10 };
    let got = call(running.port, "/logs", &message, stand.node.now_ms()).send().await;
    assert_eq!((got.code, got.signed), (Code::NotFound, true));
    running.stopped().await;
    assert!(!stand.output_folder().exists());
    let error = stand.builder().output_run_bytes_max(100).build().unwrap_err();
    assert!(error.to_string().contains("output_run_bytes_max"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_is_for_the_apps_own_nodes() {
    let stand = Stand::new().await;
    let builder = stand.builder().handler("talks", |ctx: TaskContext| async move {
        ctx.log_info("confidential");
        Ok(Output::none())
    });
    let running = stand.start(builder).await;
    stand.run(&running, 1, "talks").await;
    stand.whole(&running, 1, 100).await;
    let now = stand.node.now_ms();
    let message = ReadOutput { instance: None, log: 1, attempt: 1, from: 0, limit: 100 };
    let honest = call(running.port, "/logs", &message, now);
    let guess = crate::client::signed_with(running.port, "/logs", &message, now, "guess", SignMethod::HmacSha256);
    for (forged, code) in [
        (honest.clone().without(header::SIGN), Code::Unsigned),
        (honest.clone().with(header::TENANT, "insurance"), Code::UnknownKey),
        (honest.clone().with(header::APP, "stock"), Code::UnknownKey),
        (guess, Code::WrongSignature),
    ] {
        let got = forged.send().await;
        assert_eq!((got.code, got.signed), (code, false));
        assert!(!got.data.to_string().contains("confidential"));
    }
    assert_eq!(honest.send().await.code, Code::Ok);
    assert_eq!(honest.send().await.code, Code::Replayed);
    assert_ne!(SECRET, "guess");
    running.stopped().await;
}

/// Its nonces are forgotten with the process: what was captured must not be answered by the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_a_process_is_answered_by_no_other() {
    let stand = Stand::new().await;
    let builder = || {
        stand.builder().handler("talks", |ctx: TaskContext| async move {
            ctx.log_info("confidential");
            Ok(Output::none())
        })
    };
    let instance = || stand.node.state().registers.last().unwrap().instance.clone();
    let running = stand.start(builder()).await;
    stand.run(&running, 1, "talks").await;
    stand.whole(&running, 1, 100).await;
    let message = ReadOutput { instance: Some(instance()), log: 1, attempt: 1, from: 0, limit: 100 };
    let captured = call(running.port, "/logs", &message, stand.node.now_ms());
    let got = captured.send().await;
    assert_eq!((got.code, got.signed), (Code::Ok, true));
    running.stopped().await;

    let restarted = stand.start(builder()).await;
    let got = captured.to(restarted.port).send().await;
    assert_eq!((got.code, got.signed), (Code::WrongExecutor, true));
    assert!(!got.data.to_string().contains("confidential"));
    let again = ReadOutput { instance: Some(instance()), ..message };
    let got = call(restarted.port, "/logs", &again, stand.node.now_ms()).send().await;
    assert_eq!((got.code, got.signed), (Code::Ok, true));
    assert!(got.data.to_string().contains("confidential"));
    // Nodes of carillon 0.1 name no process.
    stand.whole(&restarted, 1, 100).await;
    restarted.stopped().await;
}
