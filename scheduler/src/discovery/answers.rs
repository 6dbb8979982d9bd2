//! What Nacos answers, as its published interface of versions 1 to 3 says it.

use crate::domain::discovery::tags_of;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Instances of one service that are taken.
pub const INSTANCES_MAX: usize = 1_000;

/// Healthy and enabled instances of a service: their tags by host and port.
pub type Instances = BTreeMap<(String, u16), Vec<String>>;

/// `/v1/ns/instance/list`
#[derive(Deserialize)]
struct First {
    hosts: Vec<Host>,
}

/// `/v3/client/ns/instance/list`
#[derive(Deserialize)]
struct Third {
    code: i64,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    data: Option<Vec<Host>>,
}

/// An instance. What a version does not say is missing.
#[derive(Deserialize)]
struct Host {
    ip: String,
    port: i64,
    #[serde(default)]
    healthy: Option<bool>,
    /// What the first versions called `healthy`.
    #[serde(default)]
    valid: Option<bool>,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

/// `/v1/auth/login` and `/v3/auth/user/login`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedIn {
    access_token: String,
    /// Seconds.
    #[serde(default)]
    token_ttl: u64,
}

/// The instances that version 1 and 2 list.
///
/// # Errors
/// Why it is no such list.
pub fn first(body: &[u8]) -> Result<Instances, String> {
    let First { hosts } = serde_json::from_slice(body).map_err(unreadable)?;
    instances(hosts)
}

/// The instances that version 3 lists.
///
/// # Errors
/// Why it is no such list.
pub fn third(body: &[u8]) -> Result<Instances, String> {
    let Third { code, message, data } = serde_json::from_slice(body).map_err(unreadable)?;
    match data {
        Some(hosts) if code == 0 => instances(hosts),
        _ => Err(format!("it answered code {code}: {}", message.unwrap_or_default())),
    }
}

/// A token, and for how many seconds it holds.
///
/// # Errors
/// Why it is none.
pub fn token(body: &[u8]) -> Result<(String, u64), String> {
    // What it answers instead may hold what it was sent: it is not repeated.
    let SignedIn { access_token, token_ttl } =
        serde_json::from_slice(body).map_err(|_| "its answer to the login holds no token".to_owned())?;
    Ok((access_token, token_ttl))
}

fn unreadable(error: impl Display) -> String {
    format!("its answer cannot be read: {error}")
}

fn instances(hosts: Vec<Host>) -> Result<Instances, String> {
    let is_there = |host: &Host| {
        host.healthy.or(host.valid).unwrap_or(false)
            && host.enabled.unwrap_or(true)
            && host.weight.is_none_or(|weight| weight > 0.0)
    };
    let there = hosts.into_iter().filter(is_there);
    // One without a port that there can be is left out: the others are none the worse for it.
    let port_of = |host: &Host| u16::try_from(host.port).ok().filter(|port| *port > 0);
    let there = there.filter_map(|host| Some(((port_of(&host)?, host.ip), tags(host.metadata))));
    let mut instances = Instances::new();
    for ((port, ip), tags) in there {
        // Two clusters of a service may name one address: whatever their order, it has the same tags every time.
        let known = instances.entry((ip, port)).or_insert_with(|| tags.clone());
        if tags < *known {
            *known = tags;
        }
    }
    if instances.len() > INSTANCES_MAX {
        return Err(format!("it names {} instances; at most {INSTANCES_MAX} are taken", instances.len()));
    }
    Ok(instances)
}

fn tags(metadata: Option<Map<String, Value>>) -> Vec<String> {
    let texts = metadata.into_iter().flatten().map(|(key, value)| match value {
        Value::String(text) => (key, text),
        other => (key, other.to_string()),
    });
    tags_of(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn host(change: &Value) -> Value {
        let mut host = json!({
            "instanceId": "10.0.0.7#9999#DEFAULT#DEFAULT_GROUP@@orders", "ip": "10.0.0.7", "port": 9999, "weight": 1.0,
            "healthy": true, "enabled": true, "ephemeral": true, "clusterName": "DEFAULT",
            "serviceName": "DEFAULT_GROUP@@orders", "metadata": { "zone": "b", "cores": 8 },
        });
        host.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        host
    }

    fn of_first(hosts: &[Value]) -> Result<Vec<(String, u16)>, String> {
        let body = json!({ "name": "DEFAULT_GROUP@@orders", "cacheMillis": 10_000, "hosts": hosts }).to_string();
        Ok(first(body.as_bytes())?.into_keys().collect())
    }

    #[test]
    fn healthy_and_enabled_instances_are_taken_with_their_metadata() {
        let body = json!({ "code": 0, "message": "success", "data": [host(&json!({}))] }).to_string();
        let found = third(body.as_bytes()).unwrap();
        let tags = vec!["cores=8".to_owned(), "zone=b".to_owned()];
        assert_eq!(found, Instances::from([(("10.0.0.7".to_owned(), 9_999), tags)]));
        for gone in [
            json!({ "healthy": false }),
            json!({ "enabled": false }),
            json!({ "weight": 0.0 }),
            json!({ "healthy": null }),
            json!({ "port": 65_536 }),
            json!({ "port": 0 }),
            json!({ "port": -1 }),
        ] {
            let other = host(&json!({ "ip": "10.0.0.8" }));
            assert_eq!(of_first(&[host(&gone), other]).unwrap(), [("10.0.0.8".to_owned(), 9_999)], "{gone}");
        }
        let (one, other) =
            (host(&json!({ "metadata": { "zone": "a" } })), host(&json!({ "metadata": { "zone": "b" } })));
        let both = |hosts: [&Value; 2]| first(json!({ "hosts": hosts }).to_string().as_bytes()).unwrap();
        assert_eq!(both([&one, &other]), both([&other, &one]), "the order of an answer changes nothing");
        let early = json!({ "hosts": [{ "ip": "10.0.0.7", "port": 9999, "valid": true }] }).to_string();
        assert_eq!(first(early.as_bytes()).unwrap().len(), 1);
        assert!(of_first(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_list_is_an_error_and_not_an_empty_list() {
        for bad in ["", "{}", "[]", "null", "<html>", r#"{"hosts":null}"#, r#"{"hosts":[{"ip":7}]}"#, r#"{"hosts":{}}"#]
        {
            assert!(first(bad.as_bytes()).is_err(), "{bad}");
            assert!(third(bad.as_bytes()).is_err(), "{bad}");
        }
        for bad in [r#"{"code":403,"message":"no","data":[]}"#, r#"{"code":0,"data":null}"#, r#"{"code":0}"#] {
            assert!(third(bad.as_bytes()).is_err(), "{bad}");
        }
        let many: Vec<Value> = (1..=INSTANCES_MAX + 1).map(|port| host(&json!({ "port": port }))).collect();
        assert_eq!(of_first(&many[1..]).unwrap().len(), INSTANCES_MAX);
        assert!(of_first(&many).unwrap_err().contains("1001 instances"));
    }

    #[test]
    fn tokens_are_read_and_never_repeated() {
        let body = br#"{"accessToken":"abc","tokenTtl":18000,"globalAdmin":true,"username":"nacos"}"#;
        assert_eq!(token(body).unwrap(), ("abc".to_owned(), 18_000));
        assert!(!token(br#"{"accessToken":["abc"]}"#).unwrap_err().contains("abc"));
    }
}
