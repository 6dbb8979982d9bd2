//! Executor addresses are checked before anything is sent there.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
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
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).to_canonical(),
    };
    if is_refused(ip) {
        return refuse("link-local, multicast and unspecified addresses are never executors");
    }
    Ok(())
}

/// Whether nothing may be sent to this address.
fn is_refused(ip: IpAddr) -> bool {
    ip.is_unspecified()
        || ip.is_multicast()
        || match ip {
            IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        }
}

/// Resolves names for messages to executors, without the addresses that nothing may be sent to: a
/// name is checked when it is used, not when it is registered.
#[derive(Debug, Clone, Copy)]
pub struct CheckedResolver;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| !is_refused(address.ip().to_canonical())).collect();
            if allowed.is_empty() {
                return Err(format!("{} resolves to no address that may be an executor's", name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckedResolver, check_address};
    use reqwest::dns::Resolve;

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

    #[tokio::test]
    async fn names_are_checked_when_they_are_used() {
        let resolve = |name: &str| CheckedResolver.resolve(name.parse().unwrap());
        assert!(resolve("localhost").await.is_ok());
        for bad in ["169.254.169.254", "0.0.0.0"] {
            assert!(resolve(bad).await.is_err(), "{bad}");
        }
    }
}
