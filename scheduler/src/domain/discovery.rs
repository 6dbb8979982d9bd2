//! Where an app's plain executors are found that do not register themselves: at fixed addresses, or as the instances of a
//! service in Nacos.

use super::{FieldError, FieldRefusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Fixed addresses of an app.
pub const ADDRESSES_MAX: usize = 200;

/// Longest address, characters.
const ADDRESS_CHARS_MAX: usize = 128;

/// Longest names of a service and its group, and of its namespace, characters.
const NAME_CHARS_MAX: usize = 128;
const NAMESPACE_CHARS_MAX: usize = 64;

/// Tags of an executor, and characters of each.
const TAGS_MAX: usize = 64;
const TAG_CHARS_MAX: usize = 128;

/// What Nacos puts between the name of a group and that of a service.
const BETWEEN: &str = "@@";

/// The group of a service that names none.
const DEFAULT_GROUP: &str = "DEFAULT_GROUP";

/// Where an app's executors are found that do not register themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySpec {
    /// Addresses at which executors listen: `http://10.0.0.7:9999`.
    #[schema(required, max_items = 200)]
    pub addresses: Vec<String>,
    /// A service in Nacos: its instances are executors for as long as they are healthy and enabled.
    #[schema(required)]
    pub nacos: Option<NacosService>,
}

/// A service in Nacos.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NacosService {
    /// Id of its namespace; empty is the public one.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub namespace: String,
    /// Its group.
    #[serde(default = "default_group")]
    #[schema(min_length = 1, max_length = 128)]
    pub group: String,
    /// Its name.
    #[schema(min_length = 1, max_length = 128)]
    pub service: String,
    /// The port at which executors listen, where it is not the one that instances register.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 65_535)]
    pub port: Option<u16>,
}

fn default_group() -> String {
    DEFAULT_GROUP.to_owned()
}

impl DiscoverySpec {
    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.nacos.is_none()
    }

    /// Everything that is wrong with it, but for what addresses are allowed.
    #[must_use]
    pub fn mistakes(&self) -> Vec<FieldError> {
        let mut mistakes = Vec::new();
        if self.addresses.len() > ADDRESSES_MAX {
            mistakes.push(FieldError::new("addresses", FieldRefusal::TooMany { most: ADDRESSES_MAX as i64 }));
        }
        let long = self.addresses.iter().position(|address| address.chars().count() > ADDRESS_CHARS_MAX);
        mistakes.extend(long.map(|at| FieldError::too_long(format!("addresses[{at}]"), ADDRESS_CHARS_MAX)));
        if let Some(NacosService { namespace, group, service, port }) = &self.nacos {
            let fits = |name: &str, most: usize| name.chars().count() <= most && !name.chars().any(is_odd);
            let names = [("nacos.group", group), ("nacos.service", service)];
            let wrong = names
                .into_iter()
                .filter(|(_, name)| name.is_empty() || !fits(name, NAME_CHARS_MAX) || name.contains(BETWEEN));
            mistakes.extend(wrong.map(|(field, _)| FieldError::name(field, NAME_CHARS_MAX)));
            if !fits(namespace, NAMESPACE_CHARS_MAX) {
                mistakes.push(FieldError::name("nacos.namespace", NAMESPACE_CHARS_MAX));
            }
            if *port == Some(0) {
                mistakes.push(FieldError::range("nacos.port", 1, i64::from(u16::MAX)));
            }
        }
        mistakes
    }
}

fn is_odd(c: char) -> bool {
    c.is_control() || c.is_whitespace()
}

/// Metadata of an instance as tags: `key=value`, in the order of the keys. What cannot be a tag is left out.
pub fn tags_of(metadata: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut tags: Vec<String> = metadata.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    tags.retain(|tag| tag.chars().count() <= TAG_CHARS_MAX && !tag.chars().any(char::is_control));
    tags.sort_unstable();
    tags.dedup();
    tags.truncate(TAGS_MAX);
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(change: impl FnOnce(&mut NacosService)) -> Vec<String> {
        let mut service =
            NacosService { namespace: String::new(), group: default_group(), service: "orders".to_owned(), port: None };
        change(&mut service);
        let spec = DiscoverySpec { addresses: Vec::new(), nacos: Some(service) };
        spec.mistakes().into_iter().map(|mistake| mistake.field).collect()
    }

    #[test]
    fn names_that_nacos_would_read_otherwise_are_refused() {
        assert!(service(|_| {}).is_empty());
        assert!(service(|service| service.service = "订单:retail.orders".to_owned()).is_empty());
        for bad in ["", "a b", "a@@b", "a\nb", &"x".repeat(129)] {
            assert_eq!(service(|service| service.service = bad.to_owned()), ["nacos.service"], "{bad}");
            assert_eq!(service(|service| service.group = bad.to_owned()), ["nacos.group"], "{bad}");
        }
        assert_eq!(service(|service| service.namespace = "x".repeat(65)), ["nacos.namespace"]);
        assert_eq!(service(|service| service.port = Some(0)), ["nacos.port"]);
    }

    #[test]
    fn fixed_addresses_are_bounded() {
        let spec = |addresses| DiscoverySpec { addresses, nacos: None };
        assert!(spec(vec!["http://a:1".to_owned(); ADDRESSES_MAX]).mistakes().is_empty());
        let fields = |spec: DiscoverySpec| spec.mistakes().into_iter().map(|m| m.field).collect::<Vec<_>>();
        assert_eq!(fields(spec(vec!["http://a:1".to_owned(); ADDRESSES_MAX + 1])), ["addresses"]);
        assert_eq!(fields(spec(vec!["http://a:1".to_owned(), "x".repeat(129)])), ["addresses[1]"]);
    }

    #[test]
    fn metadata_becomes_tags_and_stays_within_bounds() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(tags_of([pair("zone", "b"), pair("gpu", "1")]), ["gpu=1", "zone=b"]);
        assert!(tags_of([pair("long", &"x".repeat(128)), pair("odd", "a\nb")]).is_empty());
        assert_eq!(tags_of((0..100).map(|at| pair(&at.to_string(), ""))).len(), TAGS_MAX);
    }
}
