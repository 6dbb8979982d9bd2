//! Settings from environment variables.

use crate::builder::ExecutorBuilder;
use crate::error::invalid;
use crate::{BuildError, SignMethod};
use std::str::FromStr;
use std::time::Duration;

impl ExecutorBuilder {
    /// Reads every setting whose variable is set and not empty. It overrides what the builder
    /// had before; later calls override it in turn. Lists are separated by commas.
    ///
    /// `CARILLON_SCHEDULERS`, `CARILLON_TENANT`, `CARILLON_APP`, `CARILLON_KEY_ID`,
    /// `CARILLON_KEY_SECRET`, `CARILLON_SIGN_METHOD` (`HMAC-SHA256`, `MD5`),
    /// `CARILLON_ADDRESS`, `CARILLON_BIND`, `CARILLON_PORT`, `CARILLON_TAGS`,
    /// `CARILLON_CAPACITY`, `CARILLON_JOURNAL_DIR`, `CARILLON_CA_FILE`,
    /// `CARILLON_CLIENT_CERTIFICATE`, `CARILLON_CLIENT_KEY`, `CARILLON_OUTPUT_RUN_BYTES_MAX`,
    /// `CARILLON_OUTPUT_BYTES_MAX`, `CARILLON_OUTPUT_AGE_MAX_HOURS`.
    ///
    /// # Errors
    /// [`BuildError::Invalid`] when a number or the sign method cannot be read.
    pub fn from_env(self) -> Result<Self, BuildError> {
        self.with_variables(|name| std::env::var(name).ok())
    }

    /// [`ExecutorBuilder::from_env`] over any source of variables.
    fn with_variables(mut self, variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, BuildError> {
        let get = |name| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(list) = get("CARILLON_SCHEDULERS") {
            self.schedulers = split(&list);
        }
        if let Some(list) = get("CARILLON_TAGS") {
            self.tags = split(&list);
        }
        for (field, name) in [
            (&mut self.tenant, "CARILLON_TENANT"),
            (&mut self.app, "CARILLON_APP"),
            (&mut self.key_id, "CARILLON_KEY_ID"),
            (&mut self.key_secret, "CARILLON_KEY_SECRET"),
            (&mut self.bind, "CARILLON_BIND"),
        ] {
            if let Some(value) = get(name) {
                *field = value;
            }
        }
        if let Some(url) = get("CARILLON_ADDRESS") {
            self.address = Some(url);
        }
        if let Some(dir) = get("CARILLON_JOURNAL_DIR") {
            self.journal_dir = dir.into();
        }
        for (file, name) in [
            (&mut self.tls.ca, "CARILLON_CA_FILE"),
            (&mut self.tls.certificate, "CARILLON_CLIENT_CERTIFICATE"),
            (&mut self.tls.key, "CARILLON_CLIENT_KEY"),
        ] {
            if let Some(path) = get(name) {
                *file = Some(path.into());
            }
        }
        if let Some(text) = get("CARILLON_PORT") {
            self.port = number("CARILLON_PORT", &text)?;
        }
        if let Some(text) = get("CARILLON_CAPACITY") {
            self.capacity = number("CARILLON_CAPACITY", &text)?;
        }
        for (field, name) in [
            (&mut self.output.run_bytes, "CARILLON_OUTPUT_RUN_BYTES_MAX"),
            (&mut self.output.total_bytes, "CARILLON_OUTPUT_BYTES_MAX"),
        ] {
            if let Some(text) = get(name) {
                *field = number(name, &text)?;
            }
        }
        if let Some(text) = get("CARILLON_OUTPUT_AGE_MAX_HOURS") {
            let hours: u32 = number("CARILLON_OUTPUT_AGE_MAX_HOURS", &text)?;
            self.output.age = Duration::from_secs(u64::from(hours) * 3_600);
        }
        if let Some(name) = get("CARILLON_SIGN_METHOD") {
            self.sign_method = SignMethod::parse(name.trim())
                .ok_or_else(|| invalid("CARILLON_SIGN_METHOD", format!("`{name}` is neither HMAC-SHA256 nor MD5")))?;
        }
        Ok(self)
    }
}

fn split(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn number<N: FromStr>(name: &'static str, text: &str) -> Result<N, BuildError> {
    text.trim().parse().map_err(|_| invalid(name, format!("`{text}` is not a number in range")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Executor;

    #[test]
    fn variables_replace_what_was_set_and_absent_ones_do_not() {
        let builder = Executor::builder()
            .scheduler("http://old:1")
            .tenant("kept")
            .with_variables(|name| match name {
                "CARILLON_SCHEDULERS" => Some("http://a:1, http://b:2".to_owned()),
                "CARILLON_PORT" => Some("9000".to_owned()),
                "CARILLON_TAGS" => Some(" ".to_owned()),
                "CARILLON_OUTPUT_RUN_BYTES_MAX" => Some("5000".to_owned()),
                "CARILLON_OUTPUT_AGE_MAX_HOURS" => Some("2".to_owned()),
                _ => None,
            })
            .unwrap();
        assert_eq!(builder.schedulers, ["http://a:1", "http://b:2"]);
        assert_eq!((builder.tenant.as_str(), builder.port), ("kept", 9000));
        assert!(builder.tags.is_empty());
        assert_eq!((builder.output.run_bytes, builder.output.age), (5_000, Duration::from_hours(2)));
    }

    #[test]
    fn a_number_that_is_none_is_named() {
        let error = Executor::builder()
            .with_variables(|name| (name == "CARILLON_PORT").then(|| "many".to_owned()))
            .unwrap_err();
        assert!(error.to_string().contains("CARILLON_PORT"));
    }
}
