//! Who is named: addresses with how they are announced.

use super::answers::Instances;
use crate::auth::AddressRule;
use crate::domain::discovery::DiscoverySpec;
use crate::store::AnnouncedBy;
use crate::xxljob::Address;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Longest address, characters.
const ADDRESS_CHARS_MAX: usize = 128;

/// By address, who announces the executor there, and its tags.
pub type Named = BTreeMap<String, (AnnouncedBy, Vec<String>)>;

/// Addresses at which there is no executor, and why.
pub type Refused = BTreeMap<String, String>;

/// Everyone whom an app's source names, with what Nacos has `found`.
pub fn named(spec: &DiscoverySpec, found: Option<&Instances>, rule: &AddressRule) -> (Named, Refused) {
    let (mut named, mut refused) = (Named::new(), Refused::new());
    let port = spec.nacos.as_ref().and_then(|service| service.port);
    for ((host, own_port), tags) in found.into_iter().flatten() {
        let address = address_of(host, port.unwrap_or(*own_port));
        match fit(&address, rule) {
            Ok(fit) => drop(named.insert(fit, (AnnouncedBy::Nacos, tags.clone()))),
            Err(why) => drop(refused.insert(address, why)),
        }
    }
    for address in &spec.addresses {
        match fit(address, rule) {
            // What Nacos says of it holds all the same.
            Ok(fit) => named.entry(fit).or_insert_with(|| (AnnouncedBy::Fixed, Vec::new())).0 = AnnouncedBy::Fixed,
            Err(why) => drop(refused.insert(address.clone(), why)),
        }
    }
    (named, refused)
}

/// An address as it is announced, if an executor may be there.
///
/// # Errors
/// Why not.
pub fn fit(address: &str, rule: &AddressRule) -> Result<String, String> {
    let parsed = Address::parse(address)?;
    if parsed.port() == 0 {
        return Err(format!("address `{address}` is refused: nobody listens at port 0"));
    }
    let fit = parsed.to_string();
    rule.check(&fit)?;
    if fit.len() > ADDRESS_CHARS_MAX {
        return Err(format!("address `{address}` is refused: it is longer than {ADDRESS_CHARS_MAX} characters"));
    }
    Ok(fit)
}

fn address_of(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(ip) => format!("http://[{ip}]:{port}"),
        Err(_) => format!("http://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::discovery::NacosService;

    fn spec(addresses: &[&str], port: Option<u16>) -> DiscoverySpec {
        let nacos =
            NacosService { namespace: String::new(), group: "G".to_owned(), service: "orders".to_owned(), port };
        DiscoverySpec { addresses: addresses.iter().map(ToString::to_string).collect(), nacos: Some(nacos) }
    }

    fn found(hosts: &[&str]) -> Instances {
        let tagged = |host: &&str| (((*host).to_owned(), 9_999), vec!["zone=b".to_owned()]);
        hosts.iter().map(tagged).collect()
    }

    fn rule() -> AddressRule {
        AddressRule::new(&["10.0.0.0/8".parse().unwrap(), "fc00::/7".parse().unwrap()])
    }

    fn shown(named: &Named) -> Vec<String> {
        named.iter().map(|(address, (by, tags))| format!("{address} {} {}", by.as_str(), tags.join(","))).collect()
    }

    #[test]
    fn instances_and_fixed_addresses_are_named_once() {
        let (all, refused) = named(
            &spec(&["http://10.0.0.8:9999/", "http://10.0.0.9:1"], None),
            Some(&found(&["10.0.0.7", "10.0.0.8"])),
            &rule(),
        );
        assert_eq!(
            shown(&all),
            ["http://10.0.0.7:9999 nacos zone=b", "http://10.0.0.8:9999 fixed zone=b", "http://10.0.0.9:1 fixed ",]
        );
        assert!(refused.is_empty());
        let (all, _) = named(&spec(&[], Some(7)), Some(&found(&["10.0.0.7", "fd00::7", "orders-1"])), &rule());
        let addresses: Vec<&String> = all.keys().collect();
        assert_eq!(addresses, ["http://10.0.0.7:7", "http://[fd00::7]:7", "http://orders-1:7"]);
    }

    #[test]
    fn addresses_that_may_be_nobodys_are_refused_whoever_names_them() {
        let bad = ["169.254.169.254", "8.8.8.8", "a/b", "u@10.0.0.7", "", &"x".repeat(200), "10.0.0.7:80", "::1"];
        let (all, refused) =
            named(&spec(&["http://100.100.100.200:80", "ftp://10.0.0.7"], None), Some(&found(&bad)), &rule());
        assert_eq!(shown(&all), [""; 0]);
        assert_eq!(refused.len(), bad.len() + 2, "{refused:?}");
    }
}
