//! HTTP clients of the tests.

use reqwest::ClientBuilder;

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
    reqwest::Client::builder().tls_backend_preconfigured(carillon::tls::unused().expect("TLS that is not used"))
}
