//! The frame of a diagram: lines and words at the ticks of two scales.

use super::svg::{Anchor, Scale, Svg};

/// A place in the picture, and what is along its sides.
pub struct Axes<'a> {
    /// Left, right, top and bottom of what is drawn into.
    pub frame: (f64, f64, f64, f64),
    /// To the right: places and words.
    pub along: Vec<(f64, String)>,
    /// Upwards.
    pub up: Scale,
    /// What is upwards.
    pub unit: &'a str,
    /// Above the frame.
    pub title: &'a str,
    /// Whether the words at the left are written.
    pub is_first: bool,
}

impl Axes<'_> {
    /// Draws lines and words.
    pub fn draw(&self, svg: &mut Svg) {
        let (left, right, top, bottom) = self.frame;
        for tick in self.up.ticks() {
            let y = self.up.at(tick);
            svg.line("grid", (left, y), (right, y));
            if self.is_first {
                svg.text("tick", (left - 7.0, y + 4.0), Anchor::End, &tick_word(tick));
            }
        }
        for (x, word) in &self.along {
            svg.line("grid", (*x, top), (*x, bottom));
            svg.text("tick", (*x, bottom + 17.0), Anchor::Middle, word);
        }
        svg.line("axis", (left, bottom), (right, bottom));
        svg.text("panel", (left, top - 10.0), Anchor::Start, self.title);
        if self.is_first {
            svg.text("tick", (left - 7.0, top - 10.0), Anchor::End, self.unit);
        }
    }
}

/// Round numbers need no more digits than they have.
fn tick_word(value: f64) -> String {
    if value >= 1.0 { super::svg::grouped(value.round() as i64) } else { format!("{value}") }
}
