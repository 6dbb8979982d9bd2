//! What tests cost: each scenario's time, written where `scripts/test` asks for it.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

/// Names the file that a line is added to for each scenario.
const COSTS: &str = "CARILLON_TESTS_COSTS";

/// Writes a scenario's time down when it ends, however it does.
#[derive(Debug)]
pub struct Cost {
    name: String,
    begun: Instant,
}

impl Cost {
    /// Of the test that runs on this thread: the runner names threads by their tests.
    #[must_use]
    pub fn of_this_test() -> Self {
        let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
        Self { name, begun: Instant::now() }
    }
}

impl Drop for Cost {
    fn drop(&mut self) {
        let Some(path) = std::env::var_os(COSTS) else { return };
        let line = format!("{:.1} {}\n", self.begun.elapsed().as_secs_f64(), self.name);
        let added =
            File::options().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = added {
            eprintln!("{COSTS}: {error}");
        }
    }
}
