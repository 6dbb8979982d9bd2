//! What becomes of lateness and of processor time while the rate rises.

use super::axes::Axes;
use super::input::{DATABASES, Ramp, Window, title};
use super::svg::{Scale, Svg, grouped, log_bounds, short};

const HEIGHT: f64 = 220.0;
const GAP: f64 = 70.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 30.0;

/// What a diagram shows of a step.
type Value = fn(&Window) -> f64;

/// Two diagrams side by side; `None` without a ramp.
pub fn picture(ramps: &[Ramp], width: f64) -> Option<String> {
    let steps = || ramps.iter().flat_map(|ramp| &ramp.steps);
    let most = steps().map(|step| step.rate).max()?;
    let mut svg = Svg::default();
    let (panel, bottom) = ((width - LEFT - GAP - 20.0) / 2.0, TOP + HEIGHT);
    let late: Value = |step| step.lateness_ms.p99;
    let cpu: Value = |step| step.cpu_us_per_fire.sum();
    let most_cpu = steps().map(cpu).fold(1.0, f64::max);
    let diagrams: [(&str, &str, Scale, Value); 2] = [
        ("p99 of lateness", "ms", Scale::log(log_bounds(steps().map(late)), (bottom, TOP)), late),
        ("processor time per run", "µs", Scale::linear((0.0, most_cpu * 1.1), (bottom, TOP)), cpu),
    ];
    for (at, (title, unit, up, value)) in diagrams.into_iter().enumerate() {
        let left = LEFT + at as f64 * (panel + GAP);
        let along = Scale::linear((0.0, f64::from(most)), (left, left + panel));
        let words = along.ticks().into_iter().map(|tick| (along.at(tick), grouped(tick as i64)));
        let frame = (left, left + panel, TOP, bottom);
        Axes { frame, along: words.collect(), up, unit, title, is_first: true }.draw(&mut svg);
        for ramp in ramps {
            line(&mut svg, ramp, unit, |step| (along.at(step.rate.into()), up.at(value(step))), value);
        }
    }
    let drawn = DATABASES.into_iter().filter(|(name, _)| ramps.iter().any(|ramp| ramp.database == *name));
    svg.legend((LEFT, 22.0), &drawn.map(|(name, title)| (name.to_owned(), title)).collect::<Vec<_>>());
    Some(svg.finish(width, bottom + BOTTOM, "Lateness and processor time by fires per second"))
}

/// A line through all steps; one that was not sustained is a ring.
fn line(svg: &mut Svg, ramp: &Ramp, unit: &str, place: impl Fn(&Window) -> (f64, f64), value: impl Fn(&Window) -> f64) {
    let points: Vec<(f64, f64)> = ramp.steps.iter().map(&place).collect();
    svg.path(&format!("line {}", ramp.database), &points, title(&ramp.database));
    for step in &ramp.steps {
        let kind = if step.sustained { "fill" } else { "ring" };
        let verdict =
            if step.sustained { String::new() } else { format!(" (not sustained: {})", step.complaints.join(", ")) };
        let name = title(&ramp.database);
        let word = format!("{name}, {} fires/s: {} {unit}{verdict}", grouped(step.rate.into()), short(value(step)));
        svg.dot(&format!("{kind} {}", ramp.database), place(step), &word);
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::ramp;
    use super::*;

    #[test]
    fn each_step_is_a_point_and_one_that_was_not_sustained_a_ring() {
        let drawn = picture(&[ramp("mariadb", &[500, 1_000, 1_500])], 900.0).unwrap();
        assert_eq!(drawn.matches("<polyline").count(), 2, "{drawn}");
        assert_eq!(
            (drawn.matches("\"fill mariadb\" cx").count(), drawn.matches("\"ring mariadb\" cx").count()),
            (4, 2)
        );
        assert!(drawn.contains("not sustained: 7 fires lost") && !drawn.contains("NaN"), "{drawn}");
        assert!(picture(&[], 900.0).is_none());
    }
}
