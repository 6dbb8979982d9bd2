//! Nonces and names that a seed repeats.

use super::Dice;
use carillon_protocol::sign::RandomSource;
use std::sync::Arc;

/// The random numbers of one process.
#[derive(Debug)]
pub struct SeededRandom {
    purpose: String,
    dice: Arc<Dice>,
}

impl SeededRandom {
    /// Those of a process of that name.
    #[must_use]
    pub fn new(process: &str, dice: Arc<Dice>) -> Self {
        Self { purpose: format!("{process} names something"), dice }
    }
}

impl RandomSource for SeededRandom {
    fn hex(&self) -> Result<String, getrandom::Error> {
        Ok(format!("{:016x}{:016x}", self.dice.draw(&self.purpose), self.dice.draw(&self.purpose)))
    }
}
