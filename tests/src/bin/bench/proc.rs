//! What the kernel counts of processes: processor time and memory.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at a process's memory.
const LOOK: Duration = Duration::from_millis(200);

/// Between two looks at a family of processes: walking their page tables is work for the kernel.
const LOOK_AT_FAMILY: Duration = Duration::from_secs(2);

/// What is measured as one part.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The process.
    pub pid: u32,
    /// With its children, also those that have ended (`PostgreSQL`: one per connection).
    pub family: bool,
}

/// Microseconds in one tick of `/proc/<pid>/stat`.
pub fn tick_us() -> Result<u64> {
    let said = Command::new("getconf").arg("CLK_TCK").output().context("cannot run getconf")?;
    let ticks: u64 = String::from_utf8_lossy(&said.stdout).trim().parse().context("getconf CLK_TCK")?;
    ensure!(ticks > 0, "getconf CLK_TCK said 0");
    Ok(1_000_000 / ticks)
}

impl Target {
    /// Processor time of all threads so far, in ticks.
    pub fn cpu_ticks(self) -> Result<u64> {
        let own = stat(self.pid).with_context(|| format!("process {} has ended", self.pid))?;
        let mut ticks = own.cpu;
        if self.family {
            ticks += own.cpu_of_ended_children;
            ticks += children(self.pid).iter().filter_map(|pid| stat(*pid)).map(|child| child.cpu).sum::<u64>();
        }
        Ok(ticks)
    }

    /// Bytes that were written for it to disks so far, by all processes of a family that live. `None` where the kernel does
    /// not tell: root in a container may not look at processes of other users.
    pub fn written_bytes(self) -> Option<u64> {
        let family = if self.family { children(self.pid) } else { Vec::new() };
        Some(bytes_written(self.pid)? + family.into_iter().filter_map(bytes_written).sum::<u64>())
    }

    /// Memory in KiB: resident, or for a family the sum of proportional shares.
    fn memory_kib(self) -> u64 {
        if !self.family {
            return field(&format!("/proc/{}/status", self.pid), "VmRSS:");
        }
        let family = children(self.pid).into_iter().chain([self.pid]);
        family.map(|pid| field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).sum()
    }
}

/// Memory of a target now, MiB.
pub fn memory_mb(target: Target) -> f64 {
    target.memory_kib() as f64 / 1_024.0
}

struct Stat {
    parent: u32,
    cpu: u64,
    cpu_of_ended_children: u64,
}

/// `None` when the process has ended meanwhile.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; fields are counted behind it, see proc(5).
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        cpu: number(11)? + number(12)?,
        cpu_of_ended_children: number(13)? + number(14)?,
    })
}

fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent))
        .collect()
}

/// `None` when the process has ended meanwhile, or may not be looked at.
fn bytes_written(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok())
}

/// The number behind `name`; 0 when the process has ended.
fn field(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Ticks in which any processor of the machine was busy.
pub fn machine_ticks() -> Result<u64> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|text| text.parse().ok()).collect();
    ensure!(fields.len() >= 8, "/proc/stat is not as expected: {line}");
    // user, nice, system, (idle, iowait,) irq, softirq, steal
    Ok([0, 1, 2, 5, 6, 7].iter().map(|at| fields[*at]).sum())
}

/// Watches the memory of targets until it is asked for the largest values seen.
pub struct MemoryWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u64>>,
}

impl MemoryWatch {
    /// From now on.
    pub fn start(targets: Vec<Target>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut most = vec![0; targets.len()];
            let mut family_due = Instant::now();
            while !asked.load(Ordering::Relaxed) {
                let families = Instant::now() >= family_due;
                if families {
                    family_due += LOOK_AT_FAMILY;
                }
                for (most, target) in most.iter_mut().zip(&targets) {
                    if !target.family || families {
                        *most = target.memory_kib().max(*most);
                    }
                }
                std::thread::sleep(LOOK);
            }
            most
        });
        Self { stop, thread }
    }

    /// MiB per target, in their order.
    pub fn finish(self) -> Result<Vec<f64>> {
        self.stop.store(true, Ordering::Relaxed);
        let most = self.thread.join().map_err(|_| anyhow::anyhow!("the memory watch panicked"))?;
        Ok(most.into_iter().map(|kib| kib as f64 / 1_024.0).collect())
    }
}
