//! Where the names of executors lead. Most register with an address; a name is looked up on the caller's runtime, so a
//! name server that hangs delays nobody's runs but those of that name.

use super::address::Address;
use crate::auth::AddressRule;
use crate::cluster::Clock;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use url::Host;

/// Where connections to one executor may go, in the order in which they are tried.
pub type Ends = Arc<[SocketAddr]>;

/// What a name led to counts for so long, µs.
const KNOWN_US: i64 = 5_000_000;

/// Names that are remembered.
const NAMES_MAX: usize = 1_024;

/// Addresses of one name that are tried.
const ENDS_MAX: usize = 8;

/// A name that is not found by then is not found.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

type Found = Result<Ends, String>;

/// What names led to, each asked for once at a time.
pub struct Names {
    rule: AddressRule,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<Address, Known>>,
}

struct Known {
    /// By `Clock::local_us`.
    asked_us: i64,
    found: Arc<OnceCell<Found>>,
}

impl Names {
    pub fn new(rule: AddressRule, clock: Arc<dyn Clock>) -> Self {
        Self { rule, clock, known: Mutex::default() }
    }

    /// Where connections to `to` may go.
    ///
    /// # Errors
    /// Why nothing may be sent there, or why it was not found.
    pub async fn ends(&self, to: &Address) -> Found {
        let ip = match to.host() {
            Host::Domain(name) => return self.known(to).get_or_init(|| self.look_up(name, to.port())).await.clone(),
            Host::Ipv4(ip) => IpAddr::V4(*ip),
            Host::Ipv6(ip) => IpAddr::V6(*ip),
        };
        self.rule.admit(ip).map_err(|why| format!("address `{to}` is refused: {why}"))?;
        Ok(Arc::new([SocketAddr::new(ip, to.port())]))
    }

    fn known(&self, to: &Address) -> Arc<OnceCell<Found>> {
        let now_us = self.clock.local_us();
        // A poisoned lock only means that a name was not noted.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(to).filter(|name| now_us - name.asked_us < KNOWN_US) {
            return Arc::clone(&name.found);
        }
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        let found = Arc::default();
        known.insert(to.clone(), Known { asked_us: now_us, found: Arc::clone(&found) });
        found
    }

    async fn look_up(&self, name: &str, port: u16) -> Found {
        match tokio::time::timeout(LOOKUP_TIMEOUT, self.rule.find(name, port)).await {
            Ok(Ok(mut ends)) => {
                // A name server gives them in changing order; these are the same executor.
                ends.sort_unstable();
                ends.truncate(ENDS_MAX);
                Ok(ends.into())
            }
            Ok(Err(error)) => Err(format!("{name} was not found: {error}")),
            Err(_) => Err(format!("{name} was not found within {LOOKUP_TIMEOUT:?}")),
        }
    }
}
