//! `[nacos]`: the servers that are asked, and as whom.

use crate::auth::AddressRule;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::net::IpAddr;
use url::{Host, Url};

/// Servers of one Nacos.
const SERVERS_MAX: usize = 16;

/// `[nacos]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NacosSettings {
    /// Its servers; empty: no Nacos.
    pub servers: Vec<String>,
    /// A user that may read; empty: it is asked without.
    pub username: String,
    /// The user's password.
    pub password: SecretString,
}

impl NacosSettings {
    /// What of the settings cannot be used.
    #[must_use]
    pub fn contradiction(&self) -> Option<&'static str> {
        let rules = [
            (self.servers.len() <= SERVERS_MAX, "nacos.servers must name at most 16 servers"),
            (
                self.servers.iter().all(|server| base_of(server).is_some()),
                "nacos.servers must be http://host:port or https://host:port, with a path if it is not /nacos, without a user, and \
                 never link-local, metadata or multicast addresses",
            ),
            (
                self.username.is_empty() == self.password.expose_secret().is_empty(),
                "nacos.username and nacos.password belong together: set both or none",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

/// Where a server's interface begins; none for what is no server.
pub fn base_of(server: &str) -> Option<String> {
    let url = Url::parse(server).ok()?;
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !["http", "https"].contains(&url.scheme()) || !is_bare || url.fragment().is_some() {
        return None;
    }
    let ip = match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some(IpAddr::V4(ip)),
        Host::Ipv6(ip) => Some(IpAddr::V6(ip)),
    };
    if ip.is_some_and(|ip| AddressRule::anywhere().admit(ip).is_err()) {
        return None;
    }
    let base = url.as_str().trim_end_matches('/');
    Some(if url.path() == "/" { format!("{base}/nacos") } else { base.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::base_of;

    #[test]
    fn servers_are_read_with_and_without_a_path() {
        for (server, base) in [
            ("http://10.0.0.5:8848", Some("http://10.0.0.5:8848/nacos")),
            ("http://10.0.0.5:8848/", Some("http://10.0.0.5:8848/nacos")),
            ("https://nacos.example.com/registry/", Some("https://nacos.example.com/registry")),
            ("http://8.8.8.8:8848", Some("http://8.8.8.8:8848/nacos")),
            ("10.0.0.5:8848", None),
            ("ftp://10.0.0.5:8848", None),
            ("http://nacos:nacos@10.0.0.5:8848", None),
            ("http://10.0.0.5:8848/?a=b", None),
            ("http://169.254.169.254", None),
            ("http://0xa9fea9fe", None),
        ] {
            assert_eq!(base_of(server).as_deref(), base, "{server}");
        }
    }
}
