//! What goes wrong with executors: processes, disks and clocks of theirs, as the SDK itself meets them.

use crate::world::World;
use carillon_simulation::{Dice, Machine, PlainExecutor, SimExecutor};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What befalls an executor.
#[derive(Debug, Clone, PartialEq)]
pub enum Mishap {
    /// It is asked to end (SIGTERM), and another process starts afterwards.
    Drain,
    /// Something on the way swallows its results and nothing else of it; meanwhile it is asked to end, and another process
    /// starts at once.
    LeavesUnheard,
    /// A new process takes no more than so many runs.
    Busy { held_max: usize },
    /// A new process lacks some handlers. `unsaid`: though it registers with them.
    Lacks { unsaid: bool },
    /// It stands still (SIGSTOP).
    Freeze,
    /// Its machine loses its power: of what was written and not synced there is a part.
    PowerLoss,
    /// It dies, and its journal is gone.
    JournalLost,
    /// It dies, and its journal is damaged.
    JournalDamaged,
    /// Its disk is full.
    DiskFull,
    /// Its clock drifts by so many parts per million, and its wall clock is far off.
    Drift { ppm: i64 },
}

/// A process that takes as many runs as the tasks of a simulation need.
const ROOM: (usize, usize) = (100, 1_000);

/// Handlers that a process lacks.
const LACKING: [&str; 2] = ["quick", "steady"];

/// How far a wall clock is off, µs: no executor may go by it.
const WALL_AHEAD_US: i64 = 400_000_000;

/// A process that ends is looked for so often.
const LOOK: Duration = Duration::from_millis(250);

/// What a seed chooses.
pub fn choose(dice: &Dice, name: &str) -> Mishap {
    let pick = |what: &str, low: i64, high: i64| dice.between(&format!("{name}: {what}"), low, high);
    match pick("mishap", 0, 9) {
        0 => Mishap::Drain,
        1 => Mishap::Busy { held_max: pick("room", 1, 20) as usize },
        2 => Mishap::Lacks { unsaid: dice.happens(&format!("{name}: says that it has them"), 500) },
        3 => Mishap::Freeze,
        4 => Mishap::PowerLoss,
        5 => Mishap::JournalLost,
        6 => Mishap::JournalDamaged,
        7 => Mishap::DiskFull,
        8 => Mishap::LeavesUnheard,
        _ => Mishap::Drift { ppm: if dice.happens(&format!("{name}: fast"), 500) { 100 } else { -100 } },
    }
}

impl World {
    /// Something happens to an executor and is over after `down` ms.
    pub async fn befall(&self, executor: usize, mishap: &Mishap, down: i64) {
        let over = || tokio::time::sleep(Duration::from_millis(down as u64));
        let machine = &self.executors[executor];
        match (mishap, machine) {
            (Mishap::Drain, _) => {
                machine.drain();
                over().await;
                ended(machine).await;
                machine.start();
            }
            (Mishap::LeavesUnheard, _) => {
                self.net.swallow_results(machine.index(), self.time.now_ms() + down);
                machine.drain();
                ended(machine).await;
                machine.start();
            }
            (Mishap::Freeze, _) => machine.pause(self.time.now_ms() + down),
            (_, Machine::Sdk(executor)) => self.befall_sdk(executor, mishap, down).await,
            (_, Machine::Plain(executor)) => befall_plain(executor, mishap, down).await,
        }
    }

    async fn befall_sdk(&self, executor: &Arc<SimExecutor>, mishap: &Mishap, down: i64) {
        let over = || tokio::time::sleep(Duration::from_millis(down as u64));
        let restart = || {
            executor.kill();
            executor.start();
        };
        match mishap {
            Mishap::Busy { held_max } => {
                executor.limit(ROOM.0, *held_max);
                restart();
                over().await;
                executor.limit(ROOM.0, ROOM.1);
                executor.kill();
            }
            Mishap::Lacks { unsaid } => {
                executor.lack(&LACKING, *unsaid);
                restart();
                over().await;
                executor.lack(&[], false);
                executor.kill();
            }
            Mishap::PowerLoss => {
                executor.lose_power();
                over().await;
            }
            Mishap::JournalLost => {
                executor.kill();
                executor.disk().wipe();
                over().await;
            }
            Mishap::JournalDamaged => {
                executor.kill();
                executor.disk().corrupt(&self.dice, &format!("disk {}", executor.index()));
                over().await;
            }
            Mishap::DiskFull => {
                executor.disk().fill(true);
                over().await;
                executor.disk().fill(false);
            }
            Mishap::Drift { ppm } => {
                executor.clock().drift(*ppm);
                return executor.clock().set_wall(WALL_AHEAD_US);
            }
            // They befall any executor.
            Mishap::Drain | Mishap::LeavesUnheard | Mishap::Freeze => return,
        }
        executor.start();
    }
}

/// It keeps no journal, goes by no clock and takes whatever comes: most of what happens to it is that it dies.
async fn befall_plain(executor: &Arc<PlainExecutor>, mishap: &Mishap, down: i64) {
    let over = || tokio::time::sleep(Duration::from_millis(down as u64));
    match mishap {
        Mishap::Drift { .. } | Mishap::DiskFull => return,
        Mishap::Lacks { .. } => {
            executor.lack(&LACKING);
            executor.kill();
            executor.start();
            over().await;
            executor.lack(&[]);
            executor.kill();
        }
        _ => {
            executor.kill();
            over().await;
        }
    }
    executor.start();
}

async fn ended(executor: &Machine) {
    while executor.is_running() {
        tokio::time::sleep(LOOK).await;
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain => write!(f, "is asked to end, and is back"),
            Self::LeavesUnheard => write!(f, "is asked to end, and its results are swallowed"),
            Self::Busy { held_max } => write!(f, "restarts and takes {held_max} runs at most"),
            Self::Lacks { unsaid } => {
                let unsaid = if *unsaid { ", with which it registers" } else { "" };
                write!(f, "restarts and lacks the handlers {LACKING:?}{unsaid}")
            }
            Self::Freeze => write!(f, "stands still"),
            Self::PowerLoss => write!(f, "loses its power"),
            Self::JournalLost => write!(f, "dies and loses its journal"),
            Self::JournalDamaged => write!(f, "dies, and its journal is damaged"),
            Self::DiskFull => write!(f, "has a full disk"),
            Self::Drift { ppm } => write!(f, "drifts by {ppm} ppm from now on, its wall clock far off"),
        }
    }
}
