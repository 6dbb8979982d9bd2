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
    let command = ["schedule", "next"].iter().chain(args);
    let parsed = Command::try_parse_from(command).map_err(|error| error.to_string())?;
    let ScheduleCommand::Next(args) = parsed.schedule.command;
    let mut out = Vec::new();
    run(&args, &mut out, &mut &*input).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
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
    assert_eq!(next(&["* * * * * ?"], b"").unwrap().lines().count(), 8);
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
