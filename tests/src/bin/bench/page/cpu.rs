//! Processor time per life: a bar for each run, stacked by process.

use super::input::{Input, Run, title};
use super::svg::{Anchor, Scale, Svg, grouped, short};

/// A row, and its bar in it.
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;

/// Left of the bars are words, right of them numbers.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 42.0;

/// Class and name of each part.
const PARTS: [(&str, &str); 3] = [("node", "node"), ("executor", "executor"), ("database", "database")];

/// All sustained runs of which only the rate is special; `None` if there are none.
pub fn picture(input: &Input, width: f64) -> Option<String> {
    let runs: Vec<&Run> = input.plain().filter(|run| run.window.sustained).collect();
    let most = runs.iter().map(|run| run.window.cpu_us_per_fire.sum()).reduce(f64::max)?;
    let mut svg = Svg::default();
    let along = Scale::linear((0.0, most.max(1.0)), (LEFT, width - RIGHT));
    svg.legend((LEFT, 22.0), &PARTS.map(|(class, name)| (class.to_owned(), name)));
    for (at, run) in runs.iter().enumerate() {
        row(&mut svg, run, along, TOP + at as f64 * ROW);
    }
    Some(svg.finish(width, TOP + runs.len() as f64 * ROW + 10.0, "Processor time per run, in microseconds, by process"))
}

fn row(svg: &mut Svg, run: &Run, along: Scale, top: f64) {
    let (cpu, middle) = (run.window.cpu_us_per_fire, top + BAR / 2.0 + 4.0);
    let name = format!("{}, {} fires/s", title(&run.database), grouped(run.window.rate.into()));
    svg.text("label", (LEFT - 10.0, middle), Anchor::End, &name);
    let mut before = 0.0;
    for ((class, part), us) in PARTS.into_iter().zip([cpu.node, cpu.executor, cpu.database]) {
        let Some(us) = us else { continue };
        let (start, end) = (along.at(before), along.at(before + us));
        let gap = if before > 0.0 { 1.0 } else { 0.0 };
        let width = (end - start - gap).max(0.0);
        svg.bar(&format!("fill {class}"), (start + gap, top), (width, BAR), &format!("{part}: {} µs", short(us)));
        before += us;
    }
    svg.text("label", (along.at(before) + 8.0, middle), Anchor::Start, &format!("{} µs", short(before)));
}

#[cfg(test)]
mod tests {
    use super::super::samples::{input, run};
    use super::*;

    #[test]
    fn a_bar_has_a_piece_for_each_process_that_exists() {
        let drawn = picture(&input(vec![run("mariadb", 500), run("sqlite", 1_000)]), 900.0).unwrap();
        assert_eq!(drawn.matches("<rect").count(), 3 + 3 + 2, "the legend, MariaDB, SQLite in the node: {drawn}");
        assert!(
            drawn.contains("database: 87 µs") && drawn.contains(">101 µs<") && drawn.contains(">14 µs<"),
            "{drawn}"
        );
    }

    #[test]
    fn without_runs_there_is_no_picture() {
        assert!(picture(&input(Vec::new()), 900.0).is_none());
    }
}
