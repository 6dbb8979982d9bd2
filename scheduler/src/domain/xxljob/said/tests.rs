use super::*;

#[test]
fn refusals_are_understood() {
    use BlockStrategy::{CoverEarly, DiscardLater, Serial};
    let cases = [
        (Serial, "job handler [missing] not found.", Said::HandlerMissing),
        (DiscardLater, "block strategy effect：Discard Later", Said::Blocked),
        (Serial, "repeate trigger job, logId:103", Said::Queued),
        (Serial, "repeat trigger job, logId:103", Said::Queued),
        (Serial, "The access token is wrong.", Said::WrongToken),
        (Serial, "invalid request, accessToken or appname is empty.", Said::WrongToken),
        (Serial, "invalid request, accessToken or appname invalid.", Said::WrongToken),
        (Serial, "glueType[GLUE_NOPE] is not valid.", Said::Other),
        (Serial, "invalid request, uri-mapping(/run) not found.", Said::Other),
        (Serial, "handler missing not found.", Said::HandlerMissing),
        (
            DiscardLater,
            "The same job [RunData(jobId=1, logId=2)] is already executing and this has been discarded.",
            Said::Blocked,
        ),
        (Serial, "Job 1 is SERIAL, queue length more than 30. Job RunData(jobId=1) discard!", Said::Busy),
        (Serial, "unknown executorBlockStrategy [X].", Said::Other),
        (Serial, "Task not registered", Said::HandlerMissing),
        (Serial, "There are tasks running", Said::Busy),
        (DiscardLater, "There are tasks running", Said::Blocked),
        (Serial, "params err", Said::Other),
        (Serial, "No matched jobHandler: missing", Said::HandlerMissing),
        (CoverEarly, "There is already have a same job is running.", Said::Busy),
        (DiscardLater, "There is already have a same job is running.", Said::Blocked),
        (Serial, "Access token incorrect.", Said::WrongToken),
        (Serial, "", Said::Other),
        (Serial, "something that nobody has said before", Said::Other),
    ];
    for (strategy, msg, said) in cases {
        assert_eq!(refusal(strategy, msg), said, "{msg}");
    }
}

#[test]
fn ends_are_understood() {
    let cases = [
        (200, "", RunStatus::Succeeded),
        (200, "TimeoutError", RunStatus::Succeeded),
        (200, "scheduling center kill job. [job running, killed]", RunStatus::Succeeded),
        (500, "", RunStatus::Failed),
        (0, "a handler of 2.2.0 may return any code", RunStatus::Failed),
        (500, "script exit value(3) is failed", RunStatus::Failed),
        (500, "The access token is wrong.", RunStatus::Failed),
        (502, "job execute timeout ", RunStatus::TimedOut),
        (502, "", RunStatus::TimedOut),
        (500, "block strategy effect：Cover Early [job running, killed]", RunStatus::Covered),
        (500, "block strategy effect：Cover Early [job not executed, in the job queue, killed.]", RunStatus::Covered),
        (500, "scheduling center kill job. [job running, killed]", RunStatus::Abandoned),
        (500, "web container destroy and kill the job. [job running, killed]", RunStatus::Abandoned),
        (500, "null [job running, killed]", RunStatus::Abandoned),
        (
            500,
            "change job source or glue type, and terminate the old job thread. [job running, killed]",
            RunStatus::Abandoned,
        ),
        (500, "scheduling center kill job. [job not executed, in the job queue, killed.]", RunStatus::NotStarted),
        (500, "excutor idle times over limit. [job not executed, in the job queue, killed.]", RunStatus::NotStarted),
        (500, "CancelledError", RunStatus::Abandoned),
        (500, "TimeoutError", RunStatus::TimedOut),
        (500, "TimeoutError: of something else", RunStatus::Failed),
        (500, "task panic:boom", RunStatus::Panicked),
        (500, "Job Task: 7 is Timeout.", RunStatus::TimedOut),
        (200, "\"Job Task: 7 is killed.\"", RunStatus::Abandoned),
    ];
    for (code, msg, status) in cases {
        assert_eq!(ended(code, msg), status, "{code} {msg}");
    }
}

fn reply(body: &str) -> Reply {
    Reply::read(body.as_bytes()).unwrap()
}

#[test]
fn load_is_understood() {
    for msg in ["job thread is running or has trigger queue.", "job 7 is running.", "Task is busy", "busy"] {
        assert_eq!(load(&reply(&format!(r#"{{"code":500,"msg":"{msg}"}}"#))), Load::Busy, "{msg}");
    }
    for body in [r#"{"code":200}"#, r#"{"code":200,"msg":"Success"}"#, r#"{"code":200,"msg":"idle"}"#] {
        assert_eq!(load(&reply(body)), Load::Idle, "{body}");
    }
    for msg in ["The access token is wrong.", "invalid request, uri-mapping(/idleBeat) not found.", ""] {
        assert_eq!(load(&reply(&format!(r#"{{"code":500,"msg":"{msg}"}}"#))), Load::Unknown, "{msg}");
    }
}

#[test]
fn kills_are_understood() {
    let cases = [
        (r#"{"code":200}"#, Kill::Told),
        (r#"{"code":200,"msg":null}"#, Kill::Told),
        (r#"{"code":200,"msg":"job thread already killed."}"#, Kill::Nothing),
        (r#"{"code":200,"msg":"Success","content":"job thread already killed."}"#, Kill::Nothing),
        (r#"{"code":200,"msg":"Success","data":"job thread already killed."}"#, Kill::Nothing),
        (r#"{"code":500,"msg":"Task kill err"}"#, Kill::Nothing),
        (r#"{"code":500,"msg":"The access token is wrong."}"#, Kill::Refused),
    ];
    for (body, kill) in cases {
        assert_eq!(super::kill(&reply(body)), kill, "{body}");
    }
}

#[test]
fn logs_are_understood() {
    let page =
        |text: &str| format!(r#"{{"code":200,"content":{{"fromLineNum":1,"toLineNum":1,"logContent":"{text}"}}}}"#);
    for text in ["readLog fail, logFile not exists", "readLog fail, logFile not found", "No such logid logs."] {
        assert_eq!(logged(&reply(&page(text))), Logged::Nothing, "{text}");
    }
    // What a handler logs stands in a line.
    for text in ["", "2026-11-20 08:09:20 hello", "No such logid logs.\\n"] {
        let reply = reply(&page(text));
        assert!(matches!(logged(&reply), Logged::Page(_)), "{text}");
    }
    assert_eq!(logged(&reply(&page("这是日志默认返回，说明没有设置LogHandler"))), Logged::NotKept);
    assert_eq!(logged(&reply(r#"{"code":500,"msg":"No local logger found."}"#)), Logged::NotKept);
    assert_eq!(logged(&reply(r#"{"code":500,"msg":"Log not found, logId: 7"}"#)), Logged::Nothing);
    for body in [r#"{"code":500,"msg":"The access token is wrong."}"#, r#"{"code":200}"#] {
        assert_eq!(logged(&reply(body)), Logged::Unknown, "{body}");
    }
    // A page that comes with a failure (Go) says nothing of the run.
    let failed = r#"{"code":500,"msg":"unexpected EOF","content":{"logContent":"unexpected EOF","isEnd":true}}"#;
    assert_eq!(logged(&reply(failed)), Logged::Unknown);
}

/// Every row is reached: none is hidden by one before it.
#[test]
fn no_row_is_hidden() {
    for (row, (place, text, meant)) in TABLE.iter().enumerate() {
        let said = match text {
            Text::Is(text) | Text::Begins(text) | Text::Ends(text) => (*text).to_owned(),
            Text::Holds(begin, text) => format!("{begin}{text}"),
        };
        let place = if *place == Place::Any { Place::Run } else { *place };
        assert_eq!(meaning(place, &said), Some(*meant), "row {row}: {said}");
    }
}
