//! `[cluster]` and `[[clusters]]`: what this cluster is called, and which others there are.

use anyhow::Context;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use url::{Host, Url};

/// Other clusters.
const CLUSTERS_MAX: usize = 50;

/// Longest name, characters.
const NAME_CHARS_MAX: usize = 64;

/// Largest file with a token, bytes.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// `[cluster]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnClusterSettings {
    /// What this cluster is called; empty: nothing.
    pub name: String,
}

/// `[[clusters]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherClusterSettings {
    /// What it is called.
    pub name: String,
    /// Where one of its nodes, or what distributes requests to them, answers.
    pub url: String,
    /// File that holds an API token of that cluster.
    #[serde(default)]
    pub token_file: PathBuf,
    /// Variable of the environment that holds it.
    #[serde(default)]
    pub token_variable: String,
    /// Who is signed in there signs in here, as the account of the same name.
    #[serde(default)]
    pub signs_in: bool,
}

impl OtherClusterSettings {
    /// Its address, if it is one: without a user, a path or a query.
    #[must_use]
    pub fn base(&self) -> Option<Url> {
        let url = Url::parse(&self.url).ok()?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let is_whole = url.fragment().is_none() && url.path() == "/" && url.has_host();
        (["http", "https"].contains(&url.scheme()) && is_bare && is_whole).then_some(url)
    }

    /// Whether what is sent there stays secret on its way, and comes from there.
    fn is_safe(&self) -> bool {
        let Some(url) = self.base() else { return false };
        let is_near = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        url.scheme() == "https" || is_near
    }

    /// Its token.
    ///
    /// # Errors
    /// Why there is none, without what was read.
    pub fn token(&self) -> anyhow::Result<SecretString> {
        let named = || format!("the token of cluster `{}` (clusters.token_file, clusters.token_variable)", self.name);
        let token = if self.token_variable.is_empty() {
            let mut text = String::new();
            let file = File::open(&self.token_file).with_context(named)?;
            file.take(TOKEN_BYTES_MAX).read_to_string(&mut text).with_context(named)?;
            text
        } else {
            std::env::var(&self.token_variable).with_context(named)?
        };
        let token = token.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(is_token, "{} is no line of plain characters", named());
        Ok(SecretString::from(token))
    }
}

/// What of the settings cannot be used.
#[must_use]
pub fn contradiction(own: &OwnClusterSettings, others: &[OtherClusterSettings]) -> Option<&'static str> {
    let is_name = |name: &str| {
        (1..=NAME_CHARS_MAX).contains(&name.chars().count())
            && name.chars().all(|c| !c.is_control() && !c.is_whitespace())
    };
    let mut names: HashSet<&str> = HashSet::from([own.name.as_str()]);
    let rules = [
        (own.name.is_empty() || is_name(&own.name), "cluster.name must have at most 64 characters, and no spaces"),
        (others.len() <= CLUSTERS_MAX, "clusters must name at most 50 clusters"),
        (
            others.iter().all(|other| is_name(&other.name) && names.insert(&other.name)),
            "clusters: each needs a name of its own of at most 64 characters, without spaces, other than cluster.name",
        ),
        (
            others.iter().all(|other| other.base().is_some()),
            "clusters: url must be http://host:port or https://host:port",
        ),
        (
            others.iter().all(|other| other.token_file.as_os_str().is_empty() != other.token_variable.is_empty()),
            "clusters: each needs a token_file or a token_variable",
        ),
        (
            others.iter().all(|other| !other.signs_in || other.is_safe()),
            "clusters: one that signs people in here needs an https:// url (http:// on loopback only)",
        ),
        (
            others.iter().all(|other| !other.signs_in || !own.name.is_empty()),
            "clusters: where one signs people in here, it knows this cluster by cluster.name, which must be set",
        ),
    ];
    rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(change: impl FnOnce(&mut OtherClusterSettings)) -> OtherClusterSettings {
        let mut other = OtherClusterSettings {
            name: "beijing".to_owned(),
            url: "https://beijing.example.com".to_owned(),
            token_file: PathBuf::from("/run/secrets/beijing"),
            token_variable: String::new(),
            signs_in: false,
        };
        change(&mut other);
        other
    }

    #[test]
    fn others_need_a_name_an_address_and_one_token() {
        let own = OwnClusterSettings { name: "shanghai".to_owned() };
        assert_eq!(contradiction(&own, &[other(|_| {})]), None);
        for (others, why) in [
            (vec![other(|one| one.name = "shanghai".to_owned())], "name of its own"),
            (vec![other(|_| {}), other(|_| {})], "name of its own"),
            (vec![other(|one| one.name = "a b".to_owned())], "name of its own"),
            (vec![other(|one| one.url = "https://u:p@h".to_owned())], "url must be"),
            (vec![other(|one| one.url = "ftp://h".to_owned())], "url must be"),
            (vec![other(|one| one.url = "https://h/path".to_owned())], "url must be"),
            (vec![other(|one| one.token_variable = "BEIJING".to_owned())], "token_file or a token_variable"),
            (vec![other(|one| one.token_file = PathBuf::new())], "token_file or a token_variable"),
            (vec![other(|one| (one.signs_in, one.url) = (true, "http://beijing".to_owned()))], "https:// url"),
        ] {
            assert!(contradiction(&own, &others).is_some_and(|rule| rule.contains(why)), "{others:?}");
        }
    }

    #[test]
    fn who_signs_people_in_knows_this_cluster_by_its_name() {
        let nameless = OwnClusterSettings { name: String::new() };
        let signs_in = [other(|one| one.signs_in = true)];
        assert!(contradiction(&nameless, &signs_in).is_some_and(|rule| rule.contains("cluster.name")));
        assert_eq!(contradiction(&OwnClusterSettings { name: "shanghai".to_owned() }, &signs_in), None);
        assert_eq!(contradiction(&nameless, &[other(|_| {})]), None);
    }

    #[test]
    fn a_token_is_one_line_and_never_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let named = other(|one| one.token_file = file.clone());
        assert!(format!("{:#}", named.token().unwrap_err()).contains("cluster `beijing`"));
        std::fs::write(&file, "secret word\n").unwrap();
        assert!(!format!("{:#}", named.token().unwrap_err()).contains("secret"));
        std::fs::write(&file, "token-of-beijing\n").unwrap();
        assert!(named.token().is_ok());
    }
}
