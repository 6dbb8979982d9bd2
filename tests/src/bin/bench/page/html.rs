//! The page: pictures, and the same figures in tables.

use super::input::{DATABASES, Input, Run, Window, place, title};
use super::svg::{escaped, grouped, short};
use super::{cpu, lateness, ramp};
use crate::load::Load;
use chrono::NaiveDate;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How wide pictures are.
const WIDTH: f64 = 940.0;

/// Of life.json, what the page tells of a whole life; the rest is in `docs/benchmarks.md`.
const COUNTERS: [(&str, &str); 4] = [
    ("statements", "Statements"),
    ("commits", "Commits"),
    ("log_bytes", "Bytes of log"),
    ("pages_changed", "Pages changed"),
];

/// All of it, in one file.
pub fn page(input: &Input) -> String {
    let sections = [lateness(input), processor(input), ramps(input), retention(input), more(input), lives(input)];
    let (style, version) = (super::style::PAGE, escaped(&input.version));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>carillon {version}: benchmarks</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{}{}{}</main>\n\
         </body>\n</html>\n",
        header(input),
        sections.into_iter().flatten().collect::<String>(),
        FOOTER
    )
}

const FOOTER: &str = "<footer>\n<p>What each figure means and how to repeat it: \
     <a href=\"../benchmarks.md\">docs/benchmarks.md</a>. This page was made by <code>scripts/bench page</code>.</p>\n</footer>\n";

fn header(input: &Input) -> String {
    let cpu = input.machine.cpu.as_deref().unwrap_or("an unknown processor");
    let days = match &input.days[..] {
        [first, .., last] => format!("{} to {}", day(first), day(last)),
        days => days.iter().map(|only| day(only)).collect(),
    };
    let commits = if input.commits.is_empty() { String::new() } else { format!(" ({})", input.commits.join(", ")) };
    let servers = DATABASES.iter().filter_map(|(name, title)| Some(format!("{title} {}", input.servers.get(*name)?)));
    let servers: Vec<String> = servers.collect();
    format!(
        "<h1>Benchmarks</h1>\n<p class=\"lead\">carillon {}{}, measured on {} on {} cores ({}). Nodes, executors and the \
         database share the machine, and every commit is durable. {}.</p>\n",
        escaped(&input.version),
        escaped(&commits),
        escaped(&days),
        input.machine.cores,
        escaped(cpu),
        escaped(&servers.join(", "))
    )
}

/// As people write it.
fn day(date: &str) -> String {
    NaiveDate::parse_from_str(date, "%F").map_or_else(|_| date.to_owned(), |date| date.format("%-d %B %Y").to_string())
}

fn section(name: &str, text: &str, inside: &str) -> String {
    format!("<section>\n<h2>{name}</h2>\n<p>{text}</p>\n{inside}</section>\n")
}

fn figure(svg: &str) -> String {
    format!("<figure>\n{svg}</figure>\n")
}

/// Words in the first column, figures in the others.
fn table<'a>(heads: &[&str], rows: impl IntoIterator<Item = (String, Vec<String>)> + 'a) -> String {
    let cells = |of: &[String]| of.iter().map(|cell| ["<td>", &escaped(cell), "</td>"].concat()).collect::<String>();
    let heads: String = heads.iter().map(|head| ["<th scope=\"col\">", head, "</th>"].concat()).collect();
    let mut body = String::new();
    for (name, figures) in rows {
        // Writing into a string does not fail.
        let _ = writeln!(body, "<tr><th scope=\"row\">{}</th>{}</tr>", escaped(&name), cells(&figures));
    }
    format!("<div class=\"wide\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n")
}

fn name(run: &Run) -> String {
    format!("{}, {} fires/s", title(&run.database), grouped(run.window.rate.into()))
}

/// p50 to the latest, or why they say nothing.
fn late(window: &Window) -> Vec<String> {
    let late = &window.lateness_ms;
    [late.p50, late.p99, late.p999, late.max].map(short).to_vec()
}

fn verdict(window: &Window) -> String {
    if window.sustained { "yes".to_owned() } else { format!("no: {}", window.complaints.join(", ")) }
}

const LATE_HEADS: [&str; 4] = ["p50, ms", "p99, ms", "p99.9, ms", "latest, ms"];

fn lateness(input: &Input) -> Option<String> {
    let runs: Vec<&Run> = input.plain().collect();
    if runs.is_empty() {
        return None;
    }
    let rates: Vec<(u32, Vec<&Run>)> = lateness::by_rate(input).into_iter().collect();
    let panels =
        |rates: &[(u32, Vec<&Run>)]| lateness::picture(&rates.iter().cloned().collect::<BTreeMap<_, _>>(), WIDTH, "");
    let pictures: String = rates.chunks(lateness::PANELS_MAX).map(|rates| figure(&panels(rates))).collect();
    let heads = [&["Run"], &LATE_HEADS[..], &["Statements/run", "Node, MiB", "Sustained"]].concat();
    let row = |run: &&Run| {
        let memory = run.window.rss_mb.node.map_or(String::new(), short);
        let rest = [short(run.window.statements_per_fire), memory, verdict(&run.window)];
        (name(run), late(&run.window).into_iter().chain(rest).collect())
    };
    let text = "The time from the instant that a schedule names to the first line of the handler, of every run in the window. \
                All runs of a second are due at the same millisecond.";
    Some(section("How late handlers start", text, &(pictures + &table(&heads, runs.iter().map(row)))))
}

fn processor(input: &Input) -> Option<String> {
    let picture = figure(&cpu::picture(input, WIDTH)?);
    let us = |part: Option<f64>| part.map_or("in the node".to_owned(), short);
    let row = |run: &Run| {
        let cpu = run.window.cpu_us_per_fire;
        (name(run), vec![us(cpu.node), us(cpu.executor), us(cpu.database), short(cpu.sum())])
    };
    let heads = ["Run", "Node, µs", "Executor, µs", "Database, µs", "All, µs"];
    let rows = input.plain().filter(|run| run.window.sustained).map(row);
    let text = "Processor time of a run's whole life, from being written ahead to its committed result, by process.";
    Some(section("What a run costs", text, &(picture + &table(&heads, rows))))
}

fn ramps(input: &Input) -> Option<String> {
    let highest = input.highest.iter().map(|run| {
        let cells = late(&run.window).into_iter().chain([short(run.window.cpu_us_per_fire.sum())]);
        (name(run), cells.collect())
    });
    let heads = [&["Highest rate"], &LATE_HEADS[..], &["All, µs"]].concat();
    let highest = if input.highest.is_empty() { String::new() } else { table(&heads, highest) };
    let picture = ramp::picture(&input.ramps, WIDTH).map(|svg| figure(&svg)).unwrap_or_default();
    if picture.is_empty() && highest.is_empty() {
        return None;
    }
    let words = input.ramps.iter().map(|ramp| {
        let rate = ramp.last_sustained.map_or("none".to_owned(), |rate| format!("{} fires/s", grouped(rate.into())));
        format!("{}: {rate}", title(&ramp.database))
    });
    let words: Vec<String> = words.collect();
    let text = format!(
        "One node, and more runs each step. A step is sustained if no run is lost, early, doubled or left uncommitted, p99 is \
         at most a second, and nothing piles up. The last one that was: {}.",
        if words.is_empty() { "see the table".to_owned() } else { escaped(&words.join("; ")) }
    );
    Some(section("How far it goes", &text, &(picture + &highest)))
}

fn retention(input: &Input) -> Option<String> {
    let rows: Vec<(String, Vec<String>)> = input.runs.iter().filter_map(retained).collect();
    if rows.is_empty() {
        return None;
    }
    let heads = [
        "Run",
        "Window, s",
        "Deleted/s",
        "Rows before",
        "Rows after",
        "Minutes uncounted",
        "p50, ms",
        "p99, ms",
        "Sustained",
    ];
    let text = "As many old logs reach their age in each second as new ones are written, so the node deletes as many runs as it \
                carries, and counts its statistics beside.";
    Some(section("With retention and statistics", text, &table(&heads, rows)))
}

fn retained(run: &Run) -> Option<(String, Vec<String>)> {
    let kept = run.retention.as_ref()?;
    let window = &run.window;
    let cells = [
        window.seconds.to_string(),
        short(kept.deleted_per_second),
        grouped(kept.start.rows),
        grouped(kept.end.rows),
        kept.end.uncounted_minutes.to_string(),
        short(window.lateness_ms.p50),
        short(window.lateness_ms.p99),
        verdict(window),
    ];
    Some((name(run), cells.to_vec()))
}

/// Runs with more nodes, tenants, executors or tasks than one.
fn more(input: &Input) -> Option<String> {
    let is_more = |run: &&Run| run.retention.is_none() && !run.is_plain();
    let row = |run: &Run| {
        let Load { nodes, tenants, executors, tasks } = run.load;
        let load = [nodes, tenants, executors, tasks].map(|count| grouped(count.into()));
        let rest = [short(run.window.cpu_us_per_fire.sum()), verdict(&run.window)];
        (name(run), load.into_iter().chain(late(&run.window)).chain(rest).collect())
    };
    let rows: Vec<(String, Vec<String>)> = input.runs.iter().filter(is_more).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let heads =
        [&["Run", "Nodes", "Tenants", "Executors", "More tasks"], &LATE_HEADS[..], &["All, µs", "Sustained"]].concat();
    Some(section("More of everything", "The same with more taking part, on the same machine.", &table(&heads, rows)))
}

fn lives(input: &Input) -> Option<String> {
    if input.lives.is_empty() {
        return None;
    }
    let mut lives: Vec<_> = input.lives.iter().collect();
    lives.sort_by_key(|(database, _)| place(database));
    let rows = lives.into_iter().map(|(database, life)| {
        let of = |counter: &str| life.steps.values().filter_map(|step| step.get(counter)).sum::<f64>();
        (title(database).to_owned(), COUNTERS.map(|(counter, _)| short(of(counter))).to_vec())
    });
    let heads = [&["Database"], &COUNTERS.map(|(_, title)| title)[..]].concat();
    let text =
        "Counts of each run's life, its deletion included: they are the same on any machine, and the checks hold them.";
    Some(section("What each database does for it", text, &table(&heads, rows)))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{input, kept, ramp, run};
    use super::*;

    #[test]
    fn a_page_says_what_was_measured_where_and_needs_nothing_from_elsewhere() {
        let mut all = input(vec![run("mariadb", 500), run("sqlite", 500), kept("mariadb", 500)]);
        all.ramps = vec![ramp("mariadb", &[500, 1_000, 1_500])];
        let page = page(&all);
        for word in [
            "carillon 1.2.3 (abc1234), measured on 28 November 2026 on 2 cores (A Processor)",
            "MariaDB: 1,000 fires/s",
            "<td>1,000,000</td><td>1,000,500</td>",
            "prefers-color-scheme: dark",
            "<td>in the node</td>",
        ] {
            assert!(page.contains(word), "{word}: {page}");
        }
        for foreign in ["<script", "http://", "https://", "@import", "<link"] {
            let own = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!own.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn sections_without_figures_are_left_out() {
        let page = page(&input(vec![run("mariadb", 500)]));
        assert_eq!(page.matches("<h2>").count(), 2, "lateness and processor time: {page}");
    }

    #[test]
    fn what_was_not_sustained_says_why() {
        let mut bad = run("mariadb", 500);
        bad.window.sustained = false;
        bad.window.complaints = vec!["7 <fires> lost".to_owned()];
        let page = page(&input(vec![bad]));
        assert!(page.contains("<td>no: 7 &lt;fires&gt; lost</td>"), "{page}");
    }
}
