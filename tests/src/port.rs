//! Free ports below the range from which the system takes ports of outgoing connections, so that
//! no client takes one between our look and the server's bind. No other test process does either:
//! each has a block of ports to itself, by a lock on a file that ends with the process.

use std::fs::File;
use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 12_000;
const BLOCK: u16 = 500;
const BLOCKS: u16 = 40;

struct Block {
    first: u16,
    _lock: File,
}

static OURS: OnceLock<Block> = OnceLock::new();
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port without a listener, which no other caller gets soon.
#[must_use]
pub fn free() -> u16 {
    let first = OURS.get_or_init(take_block).first;
    for _ in 0..BLOCK {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % BLOCK;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free between {first} and {}", first + BLOCK - 1);
}

fn take_block() -> Block {
    let folder = std::env::temp_dir();
    for number in 0..BLOCKS {
        let path = folder.join(format!("carillon-tests-ports-{number}"));
        let lock = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if lock.try_lock().is_ok() {
            return Block { first: FIRST + number * BLOCK, _lock: lock };
        }
    }
    panic!("{BLOCKS} test processes hold ports; locks in {}", folder.display());
}
