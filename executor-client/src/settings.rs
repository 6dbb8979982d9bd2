//! What an executor was built with, checked once.

use crate::handler::Handlers;
use std::net::IpAddr;
use std::time::Duration;

/// Defaults of the builder.
pub(crate) mod default {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    pub(crate) const BIND: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    pub(crate) const PORT: u16 = 8527;
    pub(crate) const PORTS_TRIED: u16 = 100;
    pub(crate) const CAPACITY: usize = 64;
    pub(crate) const HELD_MAX: usize = 50_000;
    pub(crate) const JOURNAL_DIR: &str = "./carillon-journal";
    pub(crate) const JOURNAL_BYTES_MAX: usize = 64 * 1024 * 1024;
    pub(crate) const OUTPUT_RUN_BYTES_MAX: u64 = 1024 * 1024;
    pub(crate) const OUTPUT_BYTES_MAX: u64 = 256 * 1024 * 1024;
    pub(crate) const OUTPUT_AGE_MAX: Duration = Duration::from_hours(120);
    pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
    pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);
}

/// Immutable once built.
pub(crate) struct Settings {
    /// Address that nodes use, when it was given.
    pub(crate) address: Option<String>,
    /// Whether this process itself listens at its address, when that is known.
    pub(crate) own_address: Option<bool>,
    /// What the server is bound to.
    pub(crate) bind: IpAddr,
    pub(crate) port: u16,
    /// Of the machine or container.
    pub(crate) host_name: String,
    /// Of this process.
    pub(crate) pid: u32,
    pub(crate) tags: Vec<String>,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) capacity: usize,
    pub(crate) held_max: usize,
    /// Unacknowledged results, bytes.
    pub(crate) journal_bytes_max: usize,
    pub(crate) cancel_grace: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) handlers: Handlers,
}
