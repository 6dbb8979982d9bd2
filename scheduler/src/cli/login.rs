//! `carillon login`, `logout`, `whoami`.

use super::client::{Client, Output, print};
use super::credentials::{Credentials, Session, Sessions};
use super::exit::Exit;
use super::node::{ApiRequest, Node, NodeAddressArgs};
use super::terminal;
use anyhow::{Context, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::io::Read as _;
use tokio::signal::unix::{SignalKind, signal};
use url::{Host, Url};

/// Largest input with both passwords on standard input, bytes.
const INPUT_BYTES_MAX: u64 = 4_096;

/// How often a new password is asked for when the node refuses it.
const TRIES_MAX: usize = 5;

/// Exit code that shells expect of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// How to sign in.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The node.
    #[command(flatten)]
    place: NodeAddressArgs,
    /// Name to sign in with; prompted for by default.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Read the password from standard input and, if a new one must be chosen, that from a second line.
    #[arg(long, requires = "user")]
    password_stdin: bool,
    /// Change the password; other sessions of the user end.
    #[arg(long)]
    change_password: bool,
}

#[derive(Deserialize)]
struct LoggedIn {
    token: String,
    must_change_password: bool,
}

/// Where passwords come from.
enum Source {
    Terminal,
    Lines(std::vec::IntoIter<String>),
}

impl Source {
    async fn ask(&mut self, words: &str) -> anyhow::Result<String> {
        match self {
            Self::Terminal => terminal::ask_secret(words).await,
            Self::Lines(lines) => lines.next().context("standard input has no more lines"),
        }
    }
}

/// Signs in, and stores the session. Ctrl-C ends it at any point, and restores the terminal.
pub async fn login(args: LoginArgs) -> anyhow::Result<()> {
    // Watched before the first prompt: Ctrl-C must restore the terminal there, too.
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    tokio::select! {
        done = sign_in(args) => done,
        _ = interrupt.recv() => std::process::exit(INTERRUPTED),
    }
}

async fn sign_in(args: LoginArgs) -> anyhow::Result<()> {
    let node = Node::unauthenticated(&args.place)?;
    if is_overheard(node.base()) {
        eprintln!("carillon: {} has no TLS: anyone on the network path can read the password", node.address());
    }
    let user = match args.user {
        Some(user) => user,
        None => terminal::ask("User: ").await?,
    };
    let mut source = if args.password_stdin { Source::Lines(terminal::away(lines).await?) } else { Source::Terminal };
    let password = source.ask(&format!("Password of {user}: ")).await?;
    let ask = ApiRequest::post(["login"]).body(json!({ "name": user, "password": password }));
    let answer = serde_json::from_value(node.sign_in(&ask).await?);
    let LoggedIn { token, must_change_password } = answer.context("the node's answer cannot be understood")?;
    let session = Session { user, token };
    let node = node.known(Some(Credentials::of(&session)));
    if must_change_password || args.change_password {
        let changed = change(&node, &mut source, &password, must_change_password).await;
        if let Err(error) = changed {
            // The session is of no use to anyone; it would do no harm if it lived on until it expires.
            let _ = node.answer(ApiRequest::post(["logout"])).await;
            return Err(error);
        }
    }
    Sessions::keep(node.base(), Some(session.clone()))?;
    print(&format!("signed in at {} as {}\n", node.address(), session.user))
}

/// Changes the password; on a terminal, prompts until the node accepts it.
async fn change(node: &Node, source: &mut Source, current: &str, must: bool) -> anyhow::Result<()> {
    let is_terminal = matches!(source, Source::Terminal);
    if must && is_terminal {
        eprintln!("You must choose a new password.");
    }
    for _ in 0..TRIES_MAX {
        let new = source.ask("New password: ").await.map_err(|error| {
            Exit::NotAllowed.caused("a new password must be chosen; provide it on a second line", error)
        })?;
        if is_terminal && source.ask("New password again: ").await? != new {
            eprintln!("The two passwords differ.");
            continue;
        }
        let ask = ApiRequest::put(["account", "password"]).body(json!({ "current": current, "new": new }));
        match node.ask(&ask).await? {
            Ok(_) => return Ok(()),
            Err(refusal) if is_terminal => eprintln!("{}", refusal.detail),
            Err(refusal) => bail!("{}", refusal.detail),
        }
    }
    bail!("the password was not changed")
}

fn lines() -> anyhow::Result<std::vec::IntoIter<String>> {
    let mut text = String::new();
    std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut text).context("standard input cannot be read")?;
    Ok(text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter())
}

/// Whether the connection to the node leaves this machine unencrypted.
fn is_overheard(node: &Url) -> bool {
    let is_here = match node.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    node.scheme() == "http" && !is_here
}

/// Ends the stored session, and forgets it.
pub async fn logout(place: &NodeAddressArgs) -> anyhow::Result<()> {
    let node = Node::unauthenticated(place)?;
    let Some(session) = Sessions::read()?.of(node.base()).cloned() else {
        return print(&format!("not signed in at {}\n", node.address()));
    };
    let node = node.known(Some(Credentials::of(&session)));
    let ended = node.ask(&ApiRequest::post(["logout"])).await;
    if let Err(error) = ended
        && !Exit::NotAllowed.is_why(&error)
    {
        return Err(error.context("the session continues, and stays stored"));
    }
    Sessions::keep(node.base(), None)?;
    print(&format!("signed out at {}\n", node.address()))
}

/// Shows the caller.
pub async fn whoami(client: &Client) -> anyhow::Result<()> {
    let mut me = client.node.answer(ApiRequest::get(["session"])).await?;
    if client.output == Output::Table {
        // Only programs need these: what browsers need, and the list of all permissions.
        let fields = me.as_object_mut().context("the node's answer cannot be understood")?;
        fields.retain(|name, _| !["csrf", "permissions"].contains(&name.as_str()));
    }
    client.one(&me)
}
