//! The text that Prometheus reads (exposition format 0.0.4).

use super::Times;
use crate::domain::statistics::BOUNDS_MS;
use std::fmt::{Display, Write as _};

/// A page of metrics in the making.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Something that grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.sample(name, "", value);
    }

    /// Something that grows, by the value of a label.
    pub fn counters<'a>(&mut self, name: &str, help: &str, label: &str, all: impl Iterator<Item = (&'a str, u64)>) {
        self.head(name, help, "counter");
        for (word, value) in all {
            self.sample(name, &format!("{{{label}=\"{word}\"}}"), value);
        }
    }

    /// Something that grows, by the values of several labels.
    pub fn counters_by<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        all: impl Iterator<Item = ([String; N], u64)>,
    ) {
        self.head(name, help, "counter");
        for (words, value) in all {
            let pairs = labels.iter().zip(&words).map(|(label, word)| format!("{label}=\"{}\"", escaped(word)));
            let pairs = pairs.collect::<Vec<_>>().join(",");
            self.sample(name, &format!("{{{pairs}}}"), value);
        }
    }

    /// Something that is so now.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        self.sample(name, "", value);
    }

    /// Something that is so now, by the value of a label.
    pub fn gauges<'a>(&mut self, name: &str, help: &str, label: &str, all: impl IntoIterator<Item = (&'a str, u64)>) {
        self.head(name, help, "gauge");
        for (word, value) in all {
            self.sample(name, &format!("{{{label}=\"{}\"}}", escaped(word)), value);
        }
    }

    /// Times, in seconds.
    pub fn histogram(&mut self, name: &str, help: &str, times: &Times) {
        self.head(name, help, "histogram");
        let (counts, sum_us) = times.all();
        let mut so_far = 0;
        for (bucket, count) in counts.iter().enumerate() {
            so_far += count;
            let bound = BOUNDS_MS.get(bucket).map_or("+Inf".to_owned(), |ms| (*ms as f64 / 1_000.0).to_string());
            self.sample(&format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), so_far);
        }
        self.sample(&format!("{name}_sum"), "", sum_us as f64 / 1_000_000.0);
        self.sample(&format!("{name}_count"), "", so_far);
    }

    /// The whole page.
    pub fn finish(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        self.line(format_args!("{name}{labels} {value}\n"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a string cannot fail.
        let _ = self.0.write_fmt(line);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_everything() {
        let times = Times::new();
        for us in [500, 1_500, 30_000, 90_000_000_000] {
            times.record_us(us);
        }
        let mut text = Text::default();
        text.histogram("x_seconds", "Some times.", &times);
        let page = text.finish();
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "# HELP x_seconds Some times.",
                "# TYPE x_seconds histogram",
                "x_seconds_bucket{le=\"0.001\"} 1",
                "x_seconds_bucket{le=\"0.002\"} 2",
            ]
        );
        assert_eq!(
            lines[lines.len() - 3..],
            ["x_seconds_bucket{le=\"+Inf\"} 4", "x_seconds_sum 90000.032", "x_seconds_count 4",]
        );
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = Text::default();
        text.gauges("a", "b.", "c", [("x\"\\\n", 1)]);
        assert!(text.finish().ends_with("a{c=\"x\\\"\\\\\\n\"} 1\n"));
    }
}
