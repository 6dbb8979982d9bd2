//! Where another scheduler's database is. Its password is in no argument: other users of the machine can read those.

use crate::cli::files::read_text;
use crate::store::foreign::ForeignDatabase;
use anyhow::bail;
use chrono_tz::Tz;
use clap::Args;
use std::path::PathBuf;
use url::Url;

/// The variable that holds the password, unless a file does.
const PASSWORD: &str = "CARILLON_IMPORT_PASSWORD";

/// Longest password, bytes.
const PASSWORD_BYTES_MAX: u64 = 4_096;

/// Another scheduler's database.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Address of its database, without a password: `mysql://user@host:3306/database`
    #[arg(long, value_name = "URL")]
    from: String,
    /// File that holds the password of the database's user; by default the variable `CARILLON_IMPORT_PASSWORD` is the password.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    password_file: Option<PathBuf>,
    /// Time zone of the other scheduler's process, in which its schedules are meant: Asia/Shanghai
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Tz,
}

impl SourceArgs {
    /// Connects to it.
    pub async fn connect(&self) -> anyhow::Result<ForeignDatabase> {
        Ok(ForeignDatabase::connect(&self.url()?).await?)
    }

    /// The address with the password.
    fn url(&self) -> anyhow::Result<String> {
        let Ok(mut url) = Url::parse(&self.from) else { return Ok(self.from.clone()) };
        if url.password().is_some() {
            bail!(
                "--from holds a password, which other users of this machine can read; put it into --password-file or {PASSWORD}"
            );
        }
        let password = match &self.password_file {
            Some(file) => Some(read_text(file, PASSWORD_BYTES_MAX)?.0.trim_end_matches(['\r', '\n']).to_owned()),
            None => std::env::var(PASSWORD).ok(),
        };
        // An address that can have none is refused for what it is.
        let _ = url.set_password(password.as_deref());
        Ok(url.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(from: &str) -> anyhow::Result<String> {
        let file = std::env::temp_dir().join(format!("carillon-password-{}", std::process::id()));
        std::fs::write(&file, "a:b/c@d#é\n").unwrap();
        SourceArgs { from: from.to_owned(), password_file: Some(file), time_zone: Tz::UTC }.url()
    }

    #[test]
    fn the_password_comes_of_a_file() {
        assert_eq!(url("mysql://root@db/xxl_job").unwrap(), "mysql://root:a%3Ab%2Fc%40d%23%C3%A9@db/xxl_job");
        let told = url("mysql://root:secret@db/xxl_job").unwrap_err().to_string();
        assert!(told.contains("--password-file") && !told.contains("secret"), "{told}");
        assert_eq!(url("jdbc:mysql://db/xxl_job").unwrap(), "jdbc:mysql://db/xxl_job");
    }
}
