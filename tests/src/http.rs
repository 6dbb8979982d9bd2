//! HTTP clients of the tests.

use carillon_protocol::NODE_POOL_IDLE;
use reqwest::{Client, ClientBuilder};
use std::sync::LazyLock;

/// Anything that makes a client of its own needs this first; every process that a scenario starts, and
/// every client below, has seen to it.
pub fn install_provider() {
    carillon::tls::install_provider();
}

/// A client of plain HTTP.
///
/// # Panics
/// Never: the TLS that it does not use can be made.
pub fn client() -> ClientBuilder {
    install_provider();
    Client::builder()
        .tls_backend_preconfigured(carillon::tls::unused().expect("TLS that is not used"))
        .pool_idle_timeout(NODE_POOL_IDLE)
}

/// A client of plain HTTP that keeps no connection: tests with runtimes of their own may share it. Making one costs more
/// than most requests.
///
/// # Panics
/// Never: see [`client`].
pub fn shared() -> &'static Client {
    static SHARED: LazyLock<Client> = LazyLock::new(|| {
        client().pool_max_idle_per_host(0).build().expect("the client has no settings that could be wrong")
    });
    &SHARED
}
