//! Credentials of the command: a given token, or the session of `carillon login`.

use super::exit::Exit;
use super::files::{make_private_folder, read_text, write_private};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use url::Url;

/// The token itself, for scripts.
const TOKEN_VARIABLE: &str = "CARILLON_TOKEN";

/// Largest token file, bytes.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// Largest file of sessions, bytes.
const SESSIONS_BYTES_MAX: u64 = 1 << 20;

/// Version of the format of the file of sessions.
const VERSION: u32 = 1;

/// A secret, and where it comes from.
pub struct Credentials {
    /// The token.
    pub secret: String,
    from: From,
}

enum From {
    File(PathBuf),
    Variable,
    Session(String),
}

impl Credentials {
    /// The first of: the file, the variable, the stored session for this node. Never an argument: every user of the
    /// machine can see those.
    pub fn find(file: Option<&Path>, node: &Url) -> anyhow::Result<Option<Self>> {
        let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.trim().is_empty());
        let (secret, from) = match (file, variable) {
            (Some(file), _) => (read_token(file)?, From::File(file.to_owned())),
            (None, Some(token)) => (token, From::Variable),
            (None, None) => match Sessions::read()?.of(node) {
                Some(session) => return Ok(Some(Self::of(session))),
                None => return Ok(None),
            },
        };
        let credentials = Self { secret: secret.trim().to_owned(), from };
        let is_token = !credentials.secret.is_empty() && credentials.secret.chars().all(|c| c.is_ascii_graphic());
        if !is_token {
            bail!("{} does not hold an API token: one line of plain characters", credentials.source());
        }
        Ok(Some(credentials))
    }

    /// A session's.
    pub fn of(session: &Session) -> Self {
        Self { secret: session.token.clone(), from: From::Session(session.user.clone()) }
    }

    /// In words.
    pub fn source(&self) -> String {
        match &self.from {
            From::File(file) => file.display().to_string(),
            From::Variable => TOKEN_VARIABLE.to_owned(),
            From::Session(user) => format!("the session of {user}"),
        }
    }
}

/// The error after a 401: what was sent, if anything, and how to fix it.
pub fn refused(shown: Option<&Credentials>, node: &str) -> anyhow::Error {
    let login = format!("carillon login --url {node}");
    Exit::NotAllowed.because(match shown {
        None => format!("not signed in at {node}: {login} (or give a token: --token-file, {TOKEN_VARIABLE})"),
        Some(Credentials { from: From::Session(user), .. }) => {
            format!("the session of {user} at {node} has ended; sign in again: {login}")
        }
        Some(shown) => format!(
            "the node at {node} refuses the token of {}; provide a valid one (--token-file, {TOKEN_VARIABLE}), \
             or none and sign in: {login}",
            shown.source()
        ),
    })
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    let unusable = || format!("the token file {} cannot be read (--token-file)", file.display());
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(file) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
        if mode & 0o077 != 0 {
            eprintln!("warning: other users of this machine can read the token file {}: chmod 600 it", file.display());
        }
    }
    Ok(read_text(file, TOKEN_BYTES_MAX).with_context(unusable)?.0)
}

/// A session that `carillon login` began.
#[derive(Clone, Serialize, Deserialize)]
pub struct Session {
    /// Who.
    pub user: String,
    /// Its token.
    pub token: String,
}

/// The sessions that are stored, by the address of their node.
#[derive(Default, Serialize, Deserialize)]
pub struct Sessions {
    version: u32,
    sessions: BTreeMap<String, Session>,
}

impl Sessions {
    /// Reads them; none when there is no file.
    pub fn read() -> anyhow::Result<Self> {
        let Some(file) = place()? else { return Ok(Self::default()) };
        let unusable =
            || format!("the stored sessions in {} cannot be used; delete the file and sign in", file.display());
        let Ok(found) = std::fs::metadata(&file) else { return Ok(Self::default()) };
        if found.permissions().mode() & 0o077 != 0 {
            bail!("others can read {}: chmod 600 it, or delete it and sign in", file.display());
        }
        let (text, _) = read_text(&file, SESSIONS_BYTES_MAX).with_context(unusable)?;
        serde_json::from_str(&text).with_context(unusable)
    }

    /// The session at this node.
    pub fn of(&self, node: &Url) -> Option<&Session> {
        self.sessions.get(&key(node))
    }

    /// Stores a session, or forgets the one that is there.
    pub fn keep(node: &Url, session: Option<Session>) -> anyhow::Result<()> {
        let file = place()?.context("neither XDG_CONFIG_HOME nor HOME says where to store the session; set one")?;
        let folder = file.parent().context("the file of sessions has no folder")?;
        make_private_folder(folder)?;
        // Two commands that sign in at the same time keep both sessions.
        let lock = File::create(folder.join("credentials.lock")).and_then(|lock| lock.lock().map(|()| lock));
        let _lock = lock.with_context(|| format!("{} cannot be locked", folder.display()))?;
        let mut all = Self::read()?;
        all.version = VERSION;
        match session {
            Some(session) => all.sessions.insert(key(node), session),
            None => all.sessions.remove(&key(node)),
        };
        write_private(&file, &(serde_json::to_string_pretty(&all)? + "\n"))
    }
}

fn key(node: &Url) -> String {
    node.as_str().trim_end_matches('/').to_owned()
}

fn place() -> anyhow::Result<Option<PathBuf>> {
    Ok(config_folder()?.map(|folder| folder.join("credentials.json")))
}

/// Where the command keeps what belongs to its user.
pub fn config_folder() -> anyhow::Result<Option<PathBuf>> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    match folder {
        Some(folder) if folder.is_relative() => bail!("XDG_CONFIG_HOME must be an absolute path"),
        folder => Ok(folder.map(|folder| folder.join("carillon"))),
    }
}
