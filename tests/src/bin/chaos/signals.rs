//! Signals to processes and all that they have started.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;

/// All of this machine.
pub fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process and its descendants.
pub fn family(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in processes() {
        // It may have ended meanwhile.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in brackets may have spaces; after it come the state and the parent.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or_default()).or_default().push(pid);
    }
    let mut family = vec![root];
    let mut next = 0;
    while let Some(pid) = family.get(next) {
        let found = children.get(pid).cloned().unwrap_or_default();
        family.extend(found);
        next += 1;
    }
    family
}

/// Sends `signal` to each that is still there.
pub fn send(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
        // Who is gone needs none.
        let _ = kill_process(pid, signal);
    }
}

/// Whether any of them is there and not a zombie.
pub fn any_lives(pids: &[u32]) -> bool {
    pids.iter().any(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    })
}
