//! Finds plain executors that do not register themselves: at fixed addresses, and as instances of services in Nacos.
//!
//! Each app's source is followed by one node, as its plain executors are vouched for by one. Nacos says who is there, vouching who is
//! alive: so while Nacos is away, nothing changes.
//!
//! ```text
//!  source of an app ─▶ Nacos, every 500 ms ─▶ addresses and tags ─▶ what is announced ─▶ announce, tag, withdraw
//! ```

mod announcer;
mod answers;
mod follow;
mod nacos;
mod named;
mod settings;

pub use follow::{Discovery, DiscoveryParts, LOOK_INTERVAL};
pub use nacos::Nacos;
pub use named::fit;
pub use settings::NacosSettings;
