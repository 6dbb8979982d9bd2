//! Where a plain executor listens.

use std::fmt;
use url::{Host, Url};

/// `http://host:port` as an executor registers it, with or without a `/` at its end; some have a path, below which they answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    host: Host<String>,
    port: u16,
    is_tls: bool,
    /// Empty, or `/` and more without a `/` at its end.
    path: String,
}

impl Address {
    /// Reads it. Whether something may be sent there is decided at each message, by the rule for addresses.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("address `{text}` is refused: {why}");
        let url = Url::parse(text).map_err(|error| format!("address `{text}` is not a URL: {error}"))?;
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(refuse("it must begin with http://")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it must not carry a user name"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it must be only http://host:port, without a query"));
        }
        let host = url.host().ok_or_else(|| refuse("it has no host"))?.to_owned();
        let port = url.port_or_known_default().ok_or_else(|| refuse("it has no port"))?;
        let path = url.path().trim_end_matches('/').to_owned();
        Ok(Self { host, port, is_tls, path })
    }

    /// A name, or an address of the machine.
    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    /// 1 to 65,535; 80 or 443 where none was given.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What stands before the path of each request: nothing, or a path without a `/` at its end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it begins with `https://`.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_are_read_as_executors_register_them() {
        for (text, shown) in [
            ("http://10.0.0.7:9999/", "http://10.0.0.7:9999"),
            ("http://10.0.0.7:9999", "http://10.0.0.7:9999"),
            ("http://orders-7.retail:9999/", "http://orders-7.retail:9999"),
            ("http://[::1]:9999/", "http://[::1]:9999"),
            ("http://10.0.0.7", "http://10.0.0.7:80"),
            ("https://10.0.0.7/", "https://10.0.0.7:443"),
            ("http://10.0.0.7:9999/job", "http://10.0.0.7:9999/job"),
            ("http://10.0.0.7:9999/job/", "http://10.0.0.7:9999/job"),
        ] {
            assert_eq!(Address::parse(text).map(|address| address.to_string()), Ok(shown.to_owned()));
        }
    }

    #[test]
    fn what_is_more_than_host_port_and_path_is_refused() {
        for bad in ["10.0.0.7:9999", "http://u:p@h:1", "http://h:1/?a", "http://h:1/job#a", "ftp://h:1", "http://", ""]
        {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
