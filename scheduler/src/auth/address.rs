//! Executor addresses are checked before anything is sent there.

use std::net::IpAddr;
use url::{Host, Url};

/// Checks that `address` is a plain `http://host:port` outside the link-local range (where cloud
/// machines keep their credentials).
///
/// # Errors
/// What is wrong with it.
pub fn check_address(address: &str) -> Result<(), String> {
    let url = Url::parse(address).map_err(|error| format!("address `{address}` is no URL: {error}"))?;
    let refuse = |why: &str| Err(format!("address `{address}` is refused: {why}"));
    if url.scheme() != "http" {
        return refuse("it must begin with http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("it must not carry a user name");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return refuse("it must be http://host:port and nothing more");
    }
    // `Url` has normalised spellings such as 2852039166 or 0xa9.1 to plain addresses.
    let ip = match url.host() {
        None => return refuse("it has no host"),
        Some(Host::Domain(_)) => return Ok(()),
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(Host::Ipv6(ip)) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
    };
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast() || ip.is_multicast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_multicast(),
    };
    if link_local || ip.is_unspecified() {
        return refuse("link-local, multicast and unspecified addresses are never executors");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_address;

    #[test]
    fn plain_addresses_pass_and_tricks_do_not() {
        for good in ["http://10.0.0.7:8527", "http://orders-7.retail:8527", "http://[::1]:8527", "http://127.0.0.1:1"] {
            assert_eq!(check_address(good), Ok(()), "{good}");
        }
        for bad in [
            "https://10.0.0.7",
            "http://169.254.169.254:80",
            "http://2852039166/",
            "http://0xa9.0xfe.0xa9.0xfe/",
            "http://[::ffff:169.254.169.254]/",
            "http://0.0.0.0:1",
            "http://u:p@10.0.0.7:1",
            "http://10.0.0.7:1/path",
            "http://10.0.0.7:1/?x=1",
            "file:///etc/passwd",
            "orders-7:8527",
            "",
        ] {
            assert!(check_address(bad).is_err(), "{bad}");
        }
    }
}
