//! Where another scheduler's database is, and how that is told without its password.

use sea_orm::sqlx::ConnectOptions as _;
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use std::str::FromStr as _;

/// An address.
pub struct Address {
    /// For the driver, with the password.
    pub options: MySqlConnectOptions,
    place: String,
    /// Name of the database.
    pub database: String,
}

const EXAMPLE: &str = "it has to be mysql://user:password@host:3306/database, with special characters of the password \
                       percent-encoded (@ is %40, / is %2F, : is %3A, # is %23)";

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// A sentence on what is wrong with it; nothing of the address is in it, because the password may be anywhere.
    pub fn parse(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{why}: {EXAMPLE}");
        if url.starts_with("jdbc:") {
            return Err(wrong("the address of the other scheduler's database is one for Java"));
        }
        let url = url.strip_prefix("mariadb:").map_or_else(|| url.to_owned(), |rest| format!("mysql:{rest}"));
        if !url.starts_with("mysql:") {
            return Err(wrong("the address is none of MySQL or MariaDB"));
        }
        let parsed = url::Url::parse(&url).map_err(|_| wrong("the address cannot be read"))?;
        // A special character of the password that is not escaped ends the host too early: the rest is the path.
        let rest = &parsed[url::Position::BeforePath..];
        let host = parsed.host_str().filter(|host| !host.is_empty() && !rest.contains('@'));
        let host = host.ok_or_else(|| wrong("the address cannot be read"))?;
        let database = parsed.path().trim_matches('/');
        if database.is_empty() || database.contains('/') {
            return Err(wrong("the address names no database"));
        }
        // The driver's own words may have a part of it.
        let options = MySqlConnectOptions::from_str(&url).map_err(|_| wrong("the address cannot be read"))?;
        let user = if parsed.username().is_empty() { String::new() } else { format!("{}@", parsed.username()) };
        let place = format!("{user}{host}:{}/{database}", parsed.port().unwrap_or(3306));
        Ok(Self { options: options.disable_statement_logging(), place, database: database.to_owned() })
    }

    /// The address without its password, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_without_its_password() {
        let place = |url: &str| Address::parse(url).map(|address| address.place().to_owned());
        assert_eq!(
            place("mysql://root:s3cret@db:3307/xxl_job?ssl-mode=DISABLED"),
            Ok("root@db:3307/xxl_job".to_owned())
        );
        assert_eq!(place("mariadb://root:p%40ss@10.0.0.5/xxl_job"), Ok("root@10.0.0.5:3306/xxl_job".to_owned()));
        assert_eq!(place("mysql://[::1]/xxl_job"), Ok("[::1]:3306/xxl_job".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_told_without_any_part_of_it() {
        for (url, why) in [
            ("mysql://root:s3cret@db:3306", "the address names no database"),
            ("mysql://root:s3cret@db:3306/a/b", "the address names no database"),
            ("jdbc:mysql://db:3306/xxl_job?user=root&password=s3cret", "the address of the other"),
            ("postgres://root:s3cret@db/xxl_job", "the address is none of MySQL"),
            ("mysql://root:12/s3cret@db:3306/xxl_job", "the address cannot be read"),
            ("mysql://root:a/s3cret@db:3306/xxl_job", "the address cannot be read"),
            ("mysql://root:1#s3cret@db:3306/xxl_job", "the address cannot be read"),
            ("mysql://root:1?s3cret@db:3306/xxl_job", "the address cannot be read"),
            ("mysql://root:s3cret@db:3306/xxl_job?ssl-mode=s3cret", "the address cannot be read"),
            ("s3cret", "the address is none of MySQL"),
        ] {
            let told = Address::parse(url).map(|address| address.place().to_owned()).unwrap_err();
            assert!(told.starts_with(why), "{url}: {told}");
            assert!(!told.contains("s3cret"), "{told}");
        }
    }
}
