//! Executor addresses are checked before anything is sent there: when one registers, when its name
//! is resolved, and right before each message.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use url::{Host, Url};

/// The longest path of an address, bytes.
const PATH_BYTES_MAX: usize = 64;

/// Addresses allowed for executors.
#[derive(Debug, Clone)]
pub struct AddressRule {
    allowed: Arc<[IpNet]>,
}

impl AddressRule {
    /// Executors may be in these networks; what is never one stays refused.
    #[must_use]
    pub fn new(allowed: &[IpNet]) -> Self {
        Self { allowed: allowed.into() }
    }

    /// Whatever is not never an executor's: for servers that the node's own settings name.
    #[must_use]
    pub fn anywhere() -> Self {
        Self::new(&[Ipv4Net::default().into(), Ipv6Net::default().into()])
    }

    /// Checks that `address` is a plain `http://host:port`, and its host, where it is no name, an
    /// address that may be an executor's. A name is checked when it is resolved.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, address: &str) -> Result<(), String> {
        let url = self.checked(address)?;
        if url.path() == "/" { Ok(()) } else { Err(refused(address, "it must be only http://host:port")) }
    }

    /// The same, where a path may follow the port: some executors of xxl-job share a server with others.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_with_path(&self, address: &str) -> Result<(), String> {
        let url = self.checked(address)?;
        let path = url.path().trim_end_matches('/');
        let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte));
        // Where it is not as it was written, it had dots for folders, or signs that have to be escaped.
        let rest = address.split_once("://").map_or("", |(_, rest)| rest);
        let written = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
        let is_same = written.trim_end_matches('/') == path;
        if path.len() > PATH_BYTES_MAX || !is_plain || !is_same || path.contains("//") {
            let why = format!(
                "its path must have at most {PATH_BYTES_MAX} characters, which are letters, digits and -_.~ between single slashes"
            );
            return Err(refused(address, &why));
        }
        Ok(())
    }

    /// What both have in common.
    fn checked(&self, address: &str) -> Result<Url, String> {
        let url = Url::parse(address).map_err(|error| format!("address `{address}` is not a URL: {error}"))?;
        let refuse = |why: &str| Err(refused(address, why));
        if url.scheme() != "http" {
            return refuse("it must begin with http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it must not carry a user name");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("it must be only http://host:port, without a query");
        }
        // `Url` has normalised spellings such as 2852039166 or 0xa9.1 to plain addresses.
        let ip = match url.host() {
            None => return refuse("it has no host"),
            Some(Host::Domain(_)) => return Ok(url),
            Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
        };
        self.admit(ip).map_or_else(refuse, |()| Ok(url))
    }

    /// Whether something may be sent to `ip`.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, ip: IpAddr) -> Result<(), &'static str> {
        // ::ffff:10.0.0.7 is 10.0.0.7 to the machine.
        let ip = ip.to_canonical();
        if is_never(ip) {
            return Err("link-local, metadata, multicast, broadcast and unspecified addresses are never executors");
        }
        if !self.allowed.iter().any(|network| network.contains(&ip)) {
            return Err("it is in none of the networks allowed for executors (executors.allowed_networks)");
        }
        Ok(())
    }

    /// The addresses of the machine called `name`, without those that nothing may be sent to; at least one.
    ///
    /// # Errors
    /// When it is not found, or nothing may be sent to any of them.
    pub async fn find(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        let found = tokio::net::lookup_host((name, port)).await?;
        let mut refused = "it has no address";
        let admitted = |address: &SocketAddr| match self.admit(address.ip()) {
            Ok(()) => true,
            Err(why) => {
                refused = why;
                false
            }
        };
        let allowed: Vec<SocketAddr> = found.filter(admitted).collect();
        if allowed.is_empty() {
            return Err(format!("{name} resolves to no address of an executor: {refused}").into());
        }
        Ok(allowed)
    }
}

fn refused(address: &str, why: &str) -> String {
    format!("address `{address}` is refused: {why}")
}

/// Whether a node that says that it is at `node` listens at `address`, as far as that can be known: on its own machine it may go by
/// another name.
#[must_use]
pub fn is_node_at(node: &str, address: &str) -> bool {
    let (Ok(node), Ok(address)) = (Url::parse(node), Url::parse(address)) else { return false };
    let is_loopback = match address.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    node.port_or_known_default() == address.port_or_known_default() && (is_loopback || node.host() == address.host())
}

/// Cloud services outside of the link-local networks that give credentials to any process on the
/// machine: Alibaba, Oracle, Azure.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192), Ipv4Addr::new(168, 63, 129, 16)];

/// The same of AWS, Google and Scaleway.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

/// Whether nothing may be sent to this address, whatever is allowed.
fn is_never(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_never_v4(ip),
        IpAddr::V6(ip) => {
            ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unicast_link_local()
                || METADATA_V6.contains(&ip)
                // A gateway reads one of several places; most of the others hold nothing but zeros.
                || inner_addresses(ip).into_iter().any(|inner| inner.octets()[0] != 0 && is_never_v4(inner))
        }
    }
}

fn is_never_v4(ip: Ipv4Addr) -> bool {
    // All of 0.0.0.0/8 is "this machine".
    ip.octets()[0] == 0 || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || METADATA_V4.contains(&ip)
}

/// Every IPv4 address that a gateway may forward traffic for `ip` to.
fn inner_addresses(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bytes = ip.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| bytes[place]));
    let last = at([12, 13, 14, 15]);
    match ip.segments() {
        // 6to4.
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        // Teredo: the server, and the client turned over.
        [0x2001, 0, ..] => vec![at([4, 5, 6, 7]), Ipv4Addr::from(!u32::from(last))],
        // NAT64 of local use, whose prefix may be of 48, 56, 64 or 96 bits; the ninth byte is left out (RFC 6052).
        [0x64, 0xff9b, 1, ..] => vec![at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), last],
        // IPv4-compatible, IPv4-translated (SIIT), NAT64, ISATAP.
        [0, 0, 0, 0, 0 | 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => {
            vec![last]
        }
        _ => Vec::new(),
    }
}

/// Resolves names for messages to executors, without the addresses that nothing may be sent to.
impl Resolve for AddressRule {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.clone();
        Box::pin(async move { Ok(Box::new(rule.find(name.as_str(), 0).await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressRule, is_node_at};
    use ipnet::IpNet;
    use reqwest::dns::Resolve;

    fn rule(networks: &[&str]) -> AddressRule {
        AddressRule::new(&networks.iter().map(|network| network.parse().unwrap()).collect::<Vec<IpNet>>())
    }

    fn default() -> AddressRule {
        rule(&["127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"])
    }

    fn everything() -> AddressRule {
        AddressRule::anywhere()
    }

    #[test]
    fn a_node_is_no_executor() {
        for (node, address, is) in [
            ("http://10.0.0.1:8526", "http://10.0.0.1:8526", true),
            ("http://10.0.0.1:8526", "http://10.0.0.1:9999", false),
            ("http://10.0.0.1:8526", "http://10.0.0.2:8526", false),
            ("https://node-1:8526", "http://127.0.0.1:8526", true),
            ("http://node-1:8526", "http://localhost:8526", true),
            ("http://node-1:8526", "http://node-1:8526", true),
        ] {
            assert_eq!(is_node_at(node, address), is, "{node} {address}");
        }
    }

    #[test]
    fn plain_addresses_pass_and_tricks_do_not() {
        for good in [
            "http://10.0.0.7:8527",
            "http://orders-7.retail:8527",
            "http://[::1]:8527",
            "http://127.0.0.1:1",
            "http://[fd12::7]:8527",
            "http://[::ffff:10.0.0.7]:8527",
            "http://100.64.3.4",
        ] {
            assert_eq!(default().check(good), Ok(()), "{good}");
            assert_eq!(everything().check(good), Ok(()), "{good}");
        }
        for bad in [
            "https://10.0.0.7",
            "http://u:p@10.0.0.7:1",
            "http://10.0.0.7:1/path",
            "http://10.0.0.7:1/?x=1",
            "http://10.0.0.7:1/#x",
            "file:///etc/passwd",
            "orders-7:8527",
            "http://10.0.0.7:99999",
            "",
        ] {
            assert!(everything().check(bad).is_err(), "{bad}");
            assert!(bad.ends_with("/path") || everything().check_with_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_is_plain_and_bounded() {
        let of = |path: &str| everything().check_with_path(&format!("http://10.0.0.7:9999{path}"));
        for good in ["", "/", "/job", "/job/", "/shop/xxl-job_v1.2~a"] {
            assert_eq!(of(good), Ok(()), "{good}");
        }
        let long = format!("/{}", "x".repeat(64));
        for bad in [
            "/a/../b", "/./b", "//b", "/a//b", "/a b", "/a%20b", "/\u{e9}", "/a;b", "/a\\b", "/a@b", "/j?x=1", "/j#x",
            &long,
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
        for bad in
            ["http://u:p@10.0.0.7:1/job", "http://169.254.169.254/latest", "https://10.0.0.7/job", "http://8.8.8.8/job"]
        {
            assert!(default().check_with_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_networks_are_refused_unless_they_are_allowed() {
        for outside in ["http://8.8.8.8", "http://[2001:db8::1]", "http://172.32.0.1", "http://[::ffff:8.8.8.8]:1"] {
            let refused = default().check(outside).unwrap_err();
            assert!(refused.contains("executors.allowed_networks"), "{refused}");
            assert_eq!(everything().check(outside), Ok(()), "{outside}");
        }
        assert_eq!(rule(&["8.8.8.8/32"]).check("http://8.8.8.8"), Ok(()));
        assert!(rule(&["8.8.8.8/32"]).check("http://10.0.0.7").is_err(), "the setting replaces the default");
    }

    /// Whatever is allowed.
    #[test]
    fn addresses_that_are_never_executors_are_refused_in_every_spelling() {
        for bad in [
            // Link-local, as a number, in hexadecimal, octal, short, wide digits, with a dot behind.
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0xa9.0xfe.0xa9.0xfe",
            "0251.0376.0251.0376",
            "169.254.43518",
            "169.16689662",
            "１６９.254.169.254",
            "169.254.169.254.",
            "169.254.0.23",
            "[fe80::1]",
            "[fe80::a9fe:a9fe]",
            // The same inside of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]",
            "[0:0:0:0:0:ffff:a9fe:a9fe]",
            "[::169.254.169.254]",
            "[::ffff:0:169.254.169.254]",
            "[64:ff9b::169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::a9fe:a9fe]",
            "[64:ff9b:1:a9fe:a9:fe00::]",
            "[64:ff9b:1:a9:fe:a9fe::]",
            "[64:ff9b:1:0:a9:fea9:fe00::]",
            "[2002:a9fe:a9fe::1]",
            "[2001:0:a9fe:a9fe::1]",
            "[2001::5601:5601]",
            "[2400::5efe:169.254.169.254]",
            "[2400::200:5efe:169.254.169.254]",
            // Metadata elsewhere.
            "100.100.100.200",
            "0x646464c8",
            "[::ffff:100.100.100.200]",
            "[64:ff9b::100.100.100.200]",
            "[2002:6464:64c8::]",
            "192.0.0.192",
            "[::ffff:192.0.0.192]",
            "168.63.129.16",
            "[fd00:ec2::254]",
            "[fd00:0ec2:0:0:0:0:0:0254]",
            "[fd20:ce::254]",
            "[fd00:42::42]",
            // Unspecified, "this network", broadcast, multicast.
            "0.0.0.0",
            "0",
            "0.0.0.1",
            "[::]",
            "[::ffff:0.0.0.0]",
            "255.255.255.255",
            "224.0.0.1",
            "239.1.2.3",
            "[ff02::1]",
            "[64:ff9b::224.0.0.1]",
        ] {
            for rule in [default(), everything()] {
                assert!(rule.check(&format!("http://{bad}:8527")).is_err(), "{bad}");
            }
        }
    }

    #[tokio::test]
    async fn names_are_checked_when_they_are_used() {
        let resolve = |rule: AddressRule, name: &str| rule.resolve(name.parse().unwrap());
        assert!(resolve(default(), "localhost").await.is_ok());
        let outside = resolve(rule(&["10.0.0.0/8"]), "localhost").await.err().unwrap().to_string();
        assert!(outside.contains("executors.allowed_networks"), "{outside}");
        for bad in ["169.254.169.254", "0.0.0.0", "100.100.100.200"] {
            assert!(resolve(everything(), bad).await.is_err(), "{bad}");
        }
    }
}
