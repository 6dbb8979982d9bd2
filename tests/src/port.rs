//! Free ports below the range from which the system takes ports of outgoing connections, so that
//! no client takes one between our look and the server's bind.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 12_000;
const LAST: u16 = 32_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port without a listener, which no other caller in this process gets.
#[must_use]
pub fn free() -> u16 {
    let span = LAST - FIRST;
    // Test processes that run side by side start at different places.
    let start = (std::process::id() % u32::from(span)) as u16 / 64 * 64;
    for _ in 0..span {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start + step % span) % span;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free between {FIRST} and {LAST}");
}
