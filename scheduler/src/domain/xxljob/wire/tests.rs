//! The recordings, replayed.

use super::captures::{Capture, Fields, VERSIONS, Version};
use super::*;

fn only<'a>(captures: &'a [Capture], path: &str) -> &'a Capture {
    let found: Vec<&Capture> = captures.iter().filter(|capture| capture.of == path).collect();
    assert_eq!(found.len(), 1, "{path}");
    found[0]
}

fn fields(body: &[u8]) -> Fields {
    serde_json::from_slice(body).unwrap()
}

/// Whether one comes with the same names in the same order, the same types and the same values.
fn assert_same(version: &Version, path: &str, body: &impl Serialize) {
    let asked = version.asked();
    let captured = only(&asked, path).body;
    assert_eq!(fields(&bytes(body)), fields(captured.as_bytes()), "{} {path}", version.name);
    // 3.4.2 escapes nothing that it need not, as we do.
    if version.name == "3.4.2" {
        assert_eq!(String::from_utf8(bytes(body)).unwrap(), captured, "{path}");
    }
}

#[test]
fn what_is_sent_equals_the_captures() {
    let run = RunBody {
        job_id: 7,
        executor_handler: "demo",
        executor_params: "a=1&b=<x>",
        executor_block_strategy: Block::SerialExecution,
        executor_timeout: 0,
        log_id: 99,
        log_date_time: 1_700_000_000_000,
        glue_type: "BEAN",
        glue_source: "",
        glue_updatetime: 1_600_000_000_000,
        broadcast_index: 0,
        broadcast_total: 1,
    };
    for version in &VERSIONS {
        assert_same(version, RUN_PATH, &run);
        assert_same(version, KILL_PATH, &JobBody { job_id: 7 });
        assert_same(version, IDLE_BEAT_PATH, &JobBody { job_id: 7 });
        let log = LogBody { log_date_tim: run.log_date_time, log_id: run.log_id, from_line_num: 1 };
        assert_same(version, LOG_PATH, &log);
        // The two versions send different bodies, so neither is read.
        let asked = version.asked();
        let beat = only(&asked, BEAT_PATH).body;
        assert_eq!(beat.as_bytes() == BEAT_BODY, version.name == "3.4.2", "{beat}");
        assert_eq!(asked.len(), 5, "every message is compared");
    }
}

#[test]
fn every_message_has_the_token_and_the_type_of_its_body() {
    for version in &VERSIONS {
        for message in version.asked().iter().chain(&version.told()) {
            for line in [format!("{TOKEN_HEADER}: tok123"), format!("Content-Type: {CONTENT_TYPE}")] {
                assert!(message.head.contains(&line.as_str()), "{} {}: {line}", version.name, message.of);
            }
        }
    }
}

#[test]
fn registrations_are_read() {
    for (version, port) in VERSIONS.iter().zip([19_991, 19_992]) {
        let told = version.told();
        for path in ["/xxl-job-admin/api/registry", "/xxl-job-admin/api/registryRemove"] {
            let read = Registration::read(only(&told, path).body.as_bytes()).unwrap();
            let address = format!("http://127.0.0.1:{port}/");
            assert_eq!(read, Registration { app: "probe-exec".to_owned(), address }, "{}", version.name);
        }
    }
}

#[test]
fn callbacks_are_read() {
    for version in &VERSIONS {
        let told = version.told();
        let callbacks = told.iter().filter(|message| message.of == "/xxl-job-admin/api/callback");
        let read: Vec<Callback> = callbacks.map(|message| Callback::read(message.body.as_bytes()).unwrap()).collect();
        assert_eq!(read.iter().map(|callback| callback.unreadable).sum::<usize>(), 0);
        let ended: Vec<(i64, i32, &str)> = read
            .iter()
            .flat_map(|callback| &callback.items)
            .map(|item| (item.number, item.code, item.message.lines().next().unwrap_or_default()))
            .collect();
        let expected = [
            (101, 500, "block strategy effect：Cover Early [job running, killed]"),
            (103, 500, "block strategy effect：Cover Early [job not executed, in the job queue, killed.]"),
            (104, 200, "ok=1 & <x>"),
            (201, 500, "java.lang.reflect.InvocationTargetException"),
            (301, 500, "nope"),
            (501, 502, "job execute timeout "),
            (601, 500, "script exit value(3) is failed"),
            (801, 500, "scheduling center kill job. [job running, killed]"),
        ];
        assert_eq!(ended, expected, "{}", version.name);
    }
}

#[test]
fn replies_are_read() {
    for version in &VERSIONS {
        let answers = version.answers();
        assert_eq!(answers.len(), 26, "{}", version.name);
        let told: Vec<(i32, String)> = answers
            .iter()
            .map(|answer| Reply::read(answer.body.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", answer.of)))
            .map(|reply| (reply.code, reply.msg))
            .collect();
        let success = if version.name == "2.5.0" { "" } else { "Success" };
        assert_eq!(told.iter().filter(|(code, _)| *code == CODE_OK).count(), 17, "{}", version.name);
        for (code, msg) in &told {
            // Of what 2.5.0 adds to a success there is one, see below.
            assert!(*code != CODE_OK || msg == success || msg == "job thread already killed.", "{msg}");
            assert!([CODE_OK, CODE_FAILED].contains(code));
        }
        let killed = answers.iter().find(|answer| answer.of == r#"POST /kill {"jobId":4242}"#).unwrap();
        let killed = Reply::read(killed.body.as_bytes()).unwrap();
        let remark = "job thread already killed.".to_owned();
        if version.name == "2.5.0" {
            assert_eq!((killed.msg, killed.content), (remark, Content::Nothing));
        } else {
            assert_eq!((killed.msg.as_str(), killed.content), ("Success", Content::Text(remark)));
        }
    }
}

#[test]
fn log_pages_are_read() {
    for version in &VERSIONS {
        let answers = version.answers();
        let pages: Vec<LogPage> = answers
            .iter()
            .filter(|answer| answer.of.starts_with("POST /log "))
            .map(|answer| match Reply::read(answer.body.as_bytes()).unwrap().content {
                Content::Page(page) => page,
                other => panic!("{other:?}"),
            })
            .collect();
        let ends: Vec<(i32, i32, usize, bool)> =
            pages.iter().map(|page| (page.from_line, page.to_line, page.text.lines().count(), page.is_end)).collect();
        let last_of_an_empty_page = if version.name == "2.5.0" { 6 } else { 0 };
        let expected = [(1, 2, 2, false), (1, 6, 6, false), (100, last_of_an_empty_page, 0, false), (1, 0, 1, true)];
        assert_eq!(ends, expected, "{}", version.name);
        assert!(pages[0].text.ends_with("hello <b>sleep:2500</b> shard 0/1\n"));
        assert_eq!(pages[3].text, "readLog fail, logFile not exists");
    }
}
