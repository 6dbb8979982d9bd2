//! Lateness by percentile: a panel for each rate, a line for each database.

use super::axes::Axes;
use super::input::{DATABASES, Input, Run, title};
use super::svg::{Scale, Svg, grouped, log_bounds, short};
use std::collections::BTreeMap;

/// Percentiles with a word.
const TICKS: [(f64, &str); 6] =
    [(0.0, "0"), (50.0, "50"), (90.0, "90"), (99.0, "99"), (99.9, "99.9"), (99.99, "99.99")];

/// Percentiles are told apart up to so many nines.
const NINES_MAX: f64 = 4.7;

/// Sizes of a panel and what is around it.
const HEIGHT: f64 = 200.0;
const GAP: f64 = 24.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 46.0;

/// How many panels a picture has beside one another.
pub const PANELS_MAX: usize = 3;

/// Runs that are drawn, by rate: sustained ones, of which only the rate is special.
pub fn by_rate(input: &Input) -> BTreeMap<u32, Vec<&Run>> {
    let mut rates: BTreeMap<u32, Vec<&Run>> = BTreeMap::new();
    for run in input.plain().filter(|run| run.window.sustained) {
        rates.entry(run.window.rate).or_default().push(run);
    }
    rates
}

/// So many rates that say most: those of most databases, and of these the highest.
pub fn best(mut rates: BTreeMap<u32, Vec<&Run>>, count: usize) -> BTreeMap<u32, Vec<&Run>> {
    let mut order: Vec<(usize, u32)> = rates.iter().map(|(rate, runs)| (runs.len(), *rate)).collect();
    order.sort_unstable();
    let kept: Vec<u32> = order.into_iter().rev().take(count).map(|(_, rate)| rate).collect();
    rates.retain(|rate, _| kept.contains(rate));
    rates
}

/// The panels of at most [`PANELS_MAX`] rates, `width` wide; with a style sheet of its own, or with the page's.
pub fn picture(rates: &BTreeMap<u32, Vec<&Run>>, width: f64, style: &str) -> String {
    let mut svg = Svg::default();
    let (count, all) = (rates.len().max(1) as f64, rates.values().flatten());
    let values = all.flat_map(|run| run.window.lateness_ms.curve.iter().map(|point| point.1));
    let bottom = TOP + HEIGHT;
    let up = Scale::log(log_bounds(values), (bottom, TOP));
    let panel = (width - LEFT - 12.0 - GAP * (count - 1.0)) / count;
    for (at, (rate, runs)) in rates.iter().enumerate() {
        let left = LEFT + at as f64 * (panel + GAP);
        let along = Scale::linear((0.0, NINES_MAX), (left, left + panel));
        let words = TICKS.iter().map(|(percentile, word)| (along.at(nines(*percentile)), (*word).to_owned()));
        let title = format!("{} fires/s", grouped((*rate).into()));
        let frame = (left, left + panel, TOP, bottom);
        Axes { frame, along: words.collect(), up, unit: "ms", title: &title, is_first: at == 0 }.draw(&mut svg);
        for run in runs {
            line(&mut svg, run, along, up);
        }
    }
    svg.legend((LEFT, 22.0), &series(rates));
    let middle = LEFT + (width - LEFT) / 2.0;
    let caption = "percentile of all fires of the window; the last point is the latest of all";
    svg.text("tick", (middle, bottom + 38.0), super::svg::Anchor::Middle, caption);
    svg.finish_with(width, bottom + BOTTOM, "How late handlers start, in milliseconds, by percentile", style)
}

/// Databases that are drawn.
fn series(rates: &BTreeMap<u32, Vec<&Run>>) -> Vec<(String, &'static str)> {
    let is_drawn = |name: &str| rates.values().flatten().any(|run| run.database == name);
    let drawn = DATABASES.into_iter().filter(|(name, _)| is_drawn(name));
    drawn.map(|(name, title)| (name.to_owned(), title)).collect()
}

fn line(svg: &mut Svg, run: &Run, along: Scale, up: Scale) {
    let late = &run.window.lateness_ms;
    let last = (run.window.handled as f64).max(1.0).log10();
    let place = |(percentile, ms): &(f64, f64)| {
        let nines = if *percentile < 100.0 { nines(*percentile) } else { last };
        (nines <= NINES_MAX).then(|| (along.at(nines), up.at(*ms)))
    };
    let points: Vec<(f64, f64)> = late.curve.iter().filter_map(place).collect();
    let name = format!(
        "{}: p50 {} ms, p99 {} ms, p99.9 {} ms, at most {} ms",
        title(&run.database),
        short(late.p50),
        short(late.p99),
        short(late.p999),
        short(late.max)
    );
    svg.path(&format!("line {}", run.database), &points, &name);
}

/// 90 % is 1, 99 % is 2.
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{input, run};
    use super::*;

    #[test]
    fn each_rate_has_a_panel_and_each_database_a_line() {
        let input = input(vec![run("mariadb", 500), run("sqlite", 500), run("mariadb", 1_000)]);
        let drawn = picture(&by_rate(&input), 900.0, "");
        assert_eq!(drawn.matches("<polyline").count(), 3, "{drawn}");
        assert!(
            drawn.contains("1,000 fires/s") && drawn.contains(">SQLite<") && !drawn.contains(">PostgreSQL<"),
            "{drawn}"
        );
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn what_was_not_sustained_or_is_special_is_not_drawn() {
        let mut late = run("mariadb", 500);
        late.window.sustained = false;
        let mut nodes = run("mariadb", 500);
        nodes.load.nodes = 2;
        assert!(by_rate(&input(vec![late, nodes])).is_empty());
    }

    #[test]
    fn the_picture_shows_the_rates_of_most_databases() {
        let input = input(vec![run("mariadb", 500), run("sqlite", 500), run("mariadb", 1_000), run("mariadb", 2_000)]);
        let rates: Vec<u32> = best(by_rate(&input), 2).into_keys().collect();
        assert_eq!(rates, [500, 2_000]);
    }
}
