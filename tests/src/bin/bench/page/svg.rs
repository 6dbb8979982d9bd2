//! Pieces of SVG: scales, texts and lines. Colours and fonts are the style sheet's.

use std::fmt::Write as _;

/// From values to places, in units of the picture.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    values: (f64, f64),
    places: (f64, f64),
    is_log: bool,
}

impl Scale {
    /// Equal differences are equal distances.
    pub fn linear(values: (f64, f64), places: (f64, f64)) -> Self {
        Self { values, places, is_log: false }
    }

    /// Equal factors are equal distances; values are positive.
    pub fn log(values: (f64, f64), places: (f64, f64)) -> Self {
        Self { values, places, is_log: true }
    }

    /// Where a value is; one beyond an end is at that end.
    pub fn at(self, value: f64) -> f64 {
        let (low, high) = self.values;
        let on = |value: f64| if self.is_log { value.log10() } else { value };
        let share = (on(value.clamp(low, high)) - on(low)) / (on(high) - on(low));
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// Values with a line and a word: 1, 2, 5, 10, 20, … on a logarithmic scale, else about five round ones.
    pub fn ticks(self) -> Vec<f64> {
        let (low, high) = self.values;
        if self.is_log {
            let all = (-6..9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
            return all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect();
        }
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).ceil() as i64;
        let last = (high / step * 1.000_001).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

/// The nearest of 1, 2, 5, 10, 20, … that encloses the values.
pub fn log_bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if high <= 0.0 {
        return (0.1, 10.0);
    }
    let all = || (-6..9).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
    let below = all().rfind(|tick| *tick <= low).unwrap_or(low);
    let above = all().find(|tick| *tick >= high).unwrap_or(high);
    // One step would be a scale without a middle.
    if above / below < 10.0 { (below / 2.0, above * 2.0) } else { (below, above) }
}

/// Where a text begins.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// To the right of the place.
    Start,
    /// Around it.
    Middle,
    /// To the left.
    End,
}

/// A picture while it is drawn.
#[derive(Debug, Default)]
pub struct Svg(String);

impl Svg {
    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    /// Lines from point to point, with a word for the pointer.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], title: &str) {
        let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (places, title) = (places.join(" "), escaped(title));
        self.push(format_args!(r#"<polyline class="{class}" points="{places}"><title>{title}</title></polyline>"#));
    }

    /// A point with a word for the pointer.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), title: &str) {
        let title = escaped(title);
        self.push(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3.5"><title>{title}</title></circle>"#
        ));
    }

    /// A bar with a word for the pointer.
    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let title = escaped(title);
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{title}</title></rect>"#
        ));
    }

    /// A text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.push(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    /// A swatch and a word for each series, from `x` on.
    pub fn legend(&mut self, (mut x, y): (f64, f64), series: &[(String, &str)]) {
        for (class, name) in series {
            self.bar(&format!("fill {class}"), (x, y - 9.0), (10.0, 10.0), name);
            self.text("label", (x + 15.0, y), Anchor::Start, name);
            x += 36.0 + name.len() as f64 * 7.0;
        }
    }

    /// What is in the picture, of this size; it says what it shows.
    pub fn finish(self, width: f64, height: f64, says: &str) -> String {
        self.finish_with(width, height, says, "")
    }

    /// The same with a style sheet of its own.
    pub fn finish_with(self, width: f64, height: f64, says: &str, style: &str) -> String {
        let (says, inside) = (escaped(says), self.0);
        let style = if style.is_empty() { String::new() } else { format!("<style>\n{style}</style>\n") };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{says}\">\n{style}{inside}</svg>\n"
        )
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{element}");
    }
}

/// As text between tags or in an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// With a comma between thousands.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    format!("{}{}", if number < 0 { "-" } else { "" }, parts.join(","))
}

/// With as many digits as say something.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value.round() as i64),
        size if !(0.000_05..10.0).contains(&size) => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_place_values_between_their_ends() {
        let near = |place: f64, expected: f64| assert!((place - expected).abs() < 1e-9, "{place}, not {expected}");
        let linear = Scale::linear((0.0, 200.0), (10.0, 110.0));
        near(linear.at(50.0), 35.0);
        near(linear.at(1_000.0), 110.0);
        let log = Scale::log((0.1, 10.0), (100.0, 0.0));
        near(log.at(1.0), 50.0);
        near(log.at(0.0), 100.0);
        assert_eq!(log.ticks().len(), 7);
        assert_eq!(linear.ticks(), [0.0, 50.0, 100.0, 150.0, 200.0]);
    }

    #[test]
    fn bounds_enclose_the_values_in_round_numbers() {
        let near = |(low, high): (f64, f64), expected: (f64, f64)| {
            assert!((low - expected.0).abs() < 1e-9 && (high - expected.1).abs() < 1e-9, "{low} {high}");
        };
        near(log_bounds([0.7, 31.0, 0.0].into_iter()), (0.5, 50.0));
        near(log_bounds([3.0, 4.0].into_iter()), (1.0, 10.0));
        near(log_bounds([].into_iter()), (0.1, 10.0));
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([grouped(7), grouped(25_000), grouped(-1_234_567)], ["7", "25,000", "-1,234,567"]);
        assert_eq!([0.014_3, 0.56, 1.45, 23.4, 1_059.2, 0.0].map(short), ["0.0143", "0.56", "1.4", "23", "1,059", "0"]);
    }

    #[test]
    fn texts_cannot_leave_their_element() {
        let mut svg = Svg::default();
        svg.text("label", (1.0, 2.0), Anchor::End, "a <b> & \"c\"");
        let drawn = svg.finish(10.0, 20.0, "\"says\"");
        assert!(drawn.contains(">a &lt;b&gt; &amp; &quot;c&quot;</text>"), "{drawn}");
        assert!(
            drawn.contains("aria-label=\"&quot;says&quot;\"") && drawn.contains("viewBox=\"0 0 10 20\""),
            "{drawn}"
        );
    }
}
