//! `carillon schedule next`.

use carillon::cli::schedule::{ScheduleArgs, ScheduleCommand, run};
use clap::Parser;
use serde_json::{Value, json};

use super::VECTORS;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    schedule: ScheduleArgs,
}

/// What is printed, or the error.
fn next(args: &[&str], input: &[u8]) -> Result<String, String> {
    noted(args, input).map(|(out, _)| out)
}

/// What it prints, and what it notes beside that.
fn noted(args: &[&str], input: &[u8]) -> Result<(String, String), String> {
    let command = ["schedule", "next"].iter().chain(args);
    let parsed = Command::try_parse_from(command).map_err(|error| error.to_string())?;
    let ScheduleCommand::Next(args) = parsed.schedule.command;
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    run(&args, &mut out, &mut notes, &mut &*input).map_err(|error| error.to_string())?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap()))
}

fn answers(args: &[&str], input: &[u8]) -> Vec<Value> {
    let out = next(&[&["--stdin"], args].concat(), input).unwrap();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn prints_one_fire_a_line() {
    let zone = ["--zone", "Asia/Shanghai", "--after", "2026-01-01T00:00:00", "--count", "2"];
    let out = next(&[&["0 0 9 L-2 * ?"], &zone[..]].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-29T09:00:00+08:00\n2026-02-26T09:00:00+08:00\n");
    let out = next(&["0 0 0 1 1 ? 2099", "--after", "2026-01-01T08:00:00+08:00"], b"").unwrap();
    assert_eq!(out, "2099-01-01T00:00:00Z\n");
    assert_eq!(noted(&["* * * * * ?"], b"").map(|(out, notes)| (out.lines().count(), notes)), Ok((8, String::new())));
    let never = (String::new(), "never: nothing fires after that\n".to_owned());
    assert_eq!(noted(&["0 0 0 29 2 ? 2101"], b""), Ok(never));
}

#[test]
fn options_choose_the_policy() {
    let run = |cron, after, option: [&str; 2]| {
        let options = ["--zone", "America/New_York", "--count", "1", "--after", after];
        next(&[&[cron], &options[..], &option].concat(), b"").unwrap()
    };
    let spring = "2026-03-08T00:00:00";
    assert_eq!(run("0 30 2 * * ?", spring, ["--gap", "auto"]), "2026-03-08T03:00:00-04:00\n");
    assert_eq!(run("0 30 2 * * ?", spring, ["--gap", "skip"]), "2026-03-09T02:30:00-04:00\n");
    let autumn = "2026-11-01T00:00:00";
    assert_eq!(run("0 30 1 * * ?", autumn, ["--overlap", "second"]), "2026-11-01T01:30:00-05:00\n");
    // A time that exists twice is the first of the two; one that does not exist is the end of the gap.
    let half = "2026-11-01T01:30:00";
    assert_eq!(run("0 0/15 * * * ?", half, ["--gap", "auto"]), "2026-11-01T01:45:00-04:00\n");
    let missing = "2026-03-08T02:30:00";
    assert_eq!(run("0 0 * * * ?", missing, ["--gap", "auto"]), "2026-03-08T03:00:00-04:00\n");
}

#[test]
fn points_at_what_is_wrong() {
    let error = next(&["0 0 24 * * ?"], b"").unwrap_err();
    let want = "hour (column 5): 24 is not between 0 and 23; allowed: 0-23 and * , - /\n  0 0 24 * * ?\n      ^";
    assert_eq!(error, want);
    assert!(next(&["* * * * * ?", "--zone", "Mars"], b"").unwrap_err().contains("Mars"));
    assert!(next(&["* * * * * ?", "--after", "soon"], b"").unwrap_err().contains("soon"));
    for wrong in [
        &["* * * * * ?", "--count", "0"][..],
        &["* * * * * ?", "--count", "10001"],
        &["* * * * * ?", "--gap", "no"],
        &[],
    ] {
        assert!(next(wrong, b"").is_err());
    }
}

#[test]
fn answers_each_line() {
    let input = b"{\"cron\":\"0 0 0 1 1 ? 2099\",\"zone\":\"UTC\",\"after\":\"2026-01-01T00:00:00\"}\n\
        {\"cron\":\"0 0 0 * * *\"}\n\
        \n\
        \xff\n\
        {\"cron\":\"* * * * * ?\",\"zone\":\"Mars\"}\n\
        {\"cron\":\"* * * * * ?\",\"after\":\"x\"}\n\
        {\"cron\":\"* * * * * ?\",\"count\":0}\n\
        {\"cron\":\"* * * * * ?\",\"gap\":\"x\"}\n\
        {\"cron\":\"* * * * * ?\",\"after\":\"2026-01-01T00:00:00\",\"count\":1,\"gap\":\"skip\",\"overlap\":\"both\"}";
    let answers = answers(&[], input);
    assert_eq!(answers.len(), 9);
    assert_eq!(answers[0], json!({"next": ["2099-01-01T00:00:00Z"], "ends": true}));
    for refused in &answers[1..8] {
        assert!(refused["refused"].is_string(), "{refused}");
    }
    assert_eq!(answers[8], json!({"next": ["2026-01-01T00:00:01Z"]}));
}

#[test]
fn answers_the_vectors() {
    // The rows for UTC were written with the Z doubled; some rows list five fires, some eight.
    let wanted: Vec<Value> =
        VECTORS.replace("ZZ", "Z").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut input = String::new();
    for row in &wanted {
        let listed = row["next"].as_array().map_or(0, Vec::len);
        let mut question = row.clone();
        question["count"] = json!(if listed == 5 { 5 } else { 8 });
        input.push_str(&question.to_string());
        input.push('\n');
    }
    let answers = answers(&["--gap", "skip", "--overlap", "second"], input.as_bytes());
    assert_eq!(answers.len(), wanted.len());
    for (answer, row) in answers.iter().zip(&wanted) {
        assert_eq!(answer["next"], row["next"], "{row}");
        assert_eq!(answer["ends"], row["ends"], "{row}");
        assert_eq!(answer["refused"].is_string(), row["refused"] == true, "{row}");
    }
}

#[test]
fn other_triggers_than_cron() {
    let from = ["--after", "2026-01-01T00:00:00", "--count", "2"];
    let out = next(&[&["--rate", "1500"], &from[..]].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-01T00:00:01.500Z\n2026-01-01T00:00:03Z\n");
    let out = next(&[&["--rate", "60000", "--start", "2025-12-31T23:59:30"], &from[..]].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-01T00:00:30Z\n2026-01-01T00:01:30Z\n");
    let out = next(&[&["--delay", "60000"], &from[..]].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-01T00:01:00Z\n");
    let out = next(&[&["--delay", "60000", "--explain"], &from[..]].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-01T00:01:00Z  fires\nthen 60000 ms after the end of each run\n");
    let at = ["--at", "2026-03-08T02:30:00", "--zone", "America/New_York"];
    assert_eq!(next(&[&at, &from[..]].concat(), b"").unwrap(), "2026-03-08T03:00:00-04:00\n");
    assert_eq!(next(&["--at", "2025-01-01T00:00:00Z", "--after", "2026-01-01T00:00:00"], b"").unwrap(), "");
}

#[test]
fn window_spread_and_jitter() {
    let window = ["--from", "2026-01-02T12:00:00", "--until", "2026-01-04T00:00:00"];
    let after = ["--after", "2026-01-01T00:00:00"];
    let out = next(&[&["0 0 0 * * ?"], &window[..], &after].concat(), b"").unwrap();
    assert_eq!(out, "2026-01-03T00:00:00Z\n");
    let out = next(&[&["0 0 0 * * ?", "--explain"], &window[..], &after].concat(), b"").unwrap();
    let want = "2026-01-02T00:00:00Z  skipped: before the validity window\n\
                2026-01-03T00:00:00Z  fires\n\
                2026-01-04T00:00:00Z  skipped: after the validity window, and more\n\
                nothing fires after that\n";
    assert_eq!(out, want);
    let spread = ["0 0 * * * ?", "--spread", "3600000", "--seed", "1", "--count", "1"];
    assert_eq!(next(&[&spread, &after[..]].concat(), b"").unwrap(), "2026-01-01T00:33:59.621Z\n");
    let jitter = ["0 0 * * * ?", "--jitter", "1000", "--explain", "--count", "1"];
    let out = next(&[&jitter, &after[..]].concat(), b"").unwrap();
    assert!(out.starts_with("2026-01-01T01:00:00Z  fires, due ") && out.ends_with(" ms later\n"), "{out}");
}

/// A file that is gone when the test has ended.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("carillon-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_calendar_from_a_file() {
    let toml = File::new("golden-week.toml", "excluded_weekdays = [\"sat\", \"sun\"]\nexcluded_days = [\"10-01\"]\n");
    let json = File::new("golden-week.json", r#"{"excluded_weekdays": ["sat", "sun"], "excluded_days": ["10-01"]}"#);
    for file in [&toml, &json] {
        let options = ["--calendar", file.path(), "--after", "2026-09-30T00:00:00", "--count", "2", "--explain"];
        let skip = next(&[&["0 0 9 * * ?"], &options[..]].concat(), b"").unwrap();
        let want = "2026-09-30T09:00:00Z  fires\n\
                    2026-10-01T09:00:00Z  skipped: the calendar excludes the day\n\
                    2026-10-02T09:00:00Z  fires\n";
        assert_eq!(skip, want);
        let previous = next(&[&["0 0 9 1 * ?", "--calendar-rule", "previous"], &options[..]].concat(), b"").unwrap();
        let want = "2026-09-30T09:00:00Z  fires, moved from 2026-10-01 by the calendar\n\
                    2026-10-01T09:00:00Z  skipped: moved by the calendar to 2026-09-30\n\
                    2026-10-30T09:00:00Z  fires, moved from 2026-11-01 by the calendar\n";
        assert_eq!(previous, want);
    }
}

#[test]
fn says_what_is_wrong_with_other_input() {
    let daily = "0 0 0 * * ?";
    let wrong = File::new("wrong.toml", "excluded_days = [\"10-32\"]\nexcluded_hours = [\"8-9\"]\n");
    let unknown = File::new("unknown.toml", "excluded_day = [\"10-31\"]\n");
    let cases = [
        (vec![daily, "--calendar", wrong.path()], "excluded_days[0]: `10-32` is not a day"),
        (vec![daily, "--calendar", wrong.path()], "excluded_hours[0]"),
        (vec![daily, "--calendar", unknown.path()], "unknown field `excluded_day`"),
        (vec![daily, "--calendar", "/nowhere.toml"], "/nowhere.toml cannot be read"),
        (vec![daily, "--from", "soon"], "\"soon\" is not a time"),
        (vec!["--at", "soon"], "\"soon\" is not a time"),
        (vec!["--rate", "999"], "999"),
        (vec!["--delay=-1"], "-1"),
        (vec![daily, "--spread=-1"], "-1"),
        (vec![daily, "--calendar-rule", "after"], "after"),
        (vec![daily, "--rate", "1000"], "cannot be used with"),
        (vec!["--rate", "1000", "--at", "2026-01-01T00:00:00"], "cannot be used with"),
        (vec![], "required"),
    ];
    for (args, part) in cases {
        let error = next(&args, b"").unwrap_err();
        assert!(error.contains(part), "{args:?}: {error}");
    }
}

#[test]
fn lines_may_ask_for_everything() {
    let input = br#"{"rate":1000,"after":"2026-01-01T00:00:00","count":1}
        {"at":"2026-01-01T00:00:01Z","after":"2026-01-01T00:00:00"}
        {"cron":"0 0 9 * * ?","after":"2026-11-20T12:00:00","count":1,"calendar":{"excluded_weekdays":["sat","sun"]},"explain":true}
        {"cron":"0 0 0 * * ?","rate":1000}
        {"rate":999}
        {"cron":"0 0 0 * * ?","calendar":{"excluded_days":["x"]}}
        {"cron":"0 0 0 * * ?","jitter":-1}
        {}"#;
    let answers = answers(&[], input);
    assert_eq!(answers[0], json!({"next": ["2026-01-01T00:00:01Z"]}));
    assert_eq!(answers[1], json!({"next": ["2026-01-01T00:00:01Z"], "ends": true}));
    assert_eq!(answers[2]["next"], json!(["2026-11-23T09:00:00Z"]));
    let kinds: Vec<_> = answers[2]["preview"].as_array().unwrap().iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["skipped", "skipped", "fires"]);
    assert_eq!(answers[2]["preview"][0]["reason"], "calendar_day");
    for refused in &answers[3..] {
        assert!(refused["refused"].is_string(), "{refused}");
    }
}
