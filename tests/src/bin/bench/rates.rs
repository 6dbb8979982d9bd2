//! The steps of a ramp.

use std::str::FromStr;

/// Fires per second of the first step, of the last at most, and from one to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    from: u32,
    to: u32,
    step: u32,
}

impl FromStr for Ramp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "FROM:TO:STEP, such as 1000:10000:1000: three numbers from 1 to 1000000".to_owned();
        let numbers: Vec<u32> = text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| expected())?;
        let [from, to, step] = numbers[..] else { return Err(expected()) };
        if ![from, to, step].iter().all(|number| (1..=1_000_000).contains(number)) {
            return Err(expected());
        }
        if from > to {
            return Err(format!("the ramp begins at {from}, beyond its end, {to}"));
        }
        Ok(Self { from, to, step })
    }
}

impl Ramp {
    /// Fires per second of each step.
    pub fn rates(self) -> impl Iterator<Item = u32> {
        (self.from..=self.to).step_by(self.step as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_has_each_step_up_to_its_end() {
        let rates = |text: &str| text.parse::<Ramp>().map(|ramp| ramp.rates().collect::<Vec<_>>());
        assert_eq!(rates("500:2000:500"), Ok(vec![500, 1_000, 1_500, 2_000]));
        assert_eq!(rates("500:1900:500"), Ok(vec![500, 1_000, 1_500]));
        assert_eq!(rates("7:7:1"), Ok(vec![7]));
        for wrong in ["", "5", "1:2", "1:2:3:4", "0:2:1", "1:2:0", "a:2:1", "1:1000001:1"] {
            assert!(rates(wrong).unwrap_err().starts_with("FROM:TO:STEP"), "{wrong}");
        }
        assert!(rates("3:2:1").unwrap_err().contains("beyond its end"));
    }
}
