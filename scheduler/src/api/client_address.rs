//! Where a request comes from.

use actix_web::HttpRequest;

/// The address of the caller, without its port.
pub fn client_address(request: &HttpRequest) -> String {
    request.peer_addr().map(|address| address.ip().to_canonical().to_string()).unwrap_or_default()
}
