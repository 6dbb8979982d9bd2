//! The terminal: how wide it is, and what people type there.

use anyhow::{Context, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};

/// Largest typed input, bytes.
const LINE_BYTES_MAX: u64 = 4_096;

/// Columns of the terminal on standard output; `None` when it is not a terminal.
pub fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Asks for a line on the terminal, whatever standard input and output are.
pub async fn ask(words: &str) -> anyhow::Result<String> {
    let mut terminal = open()?;
    write!(terminal, "{words}").context("the terminal cannot be written")?;
    away(move || read_line(terminal)).await
}

/// Asks for a secret: what is typed is not shown.
pub async fn ask_secret(words: &str) -> anyhow::Result<String> {
    let mut terminal = open()?;
    let asked = terminal.try_clone().context("the terminal cannot be read")?;
    let _quiet = Quiet::begin(terminal.try_clone().context("the terminal cannot be read")?)?;
    write!(terminal, "{words}").context("the terminal cannot be written")?;
    away(move || read_line(asked)).await
}

/// Waits for input on another thread: this one must notice Ctrl-C, to restore the terminal.
pub async fn away<T: Send + 'static>(wait: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(wait).await.context("the typed input cannot be read")?
}

/// A terminal that does not show what is typed, until this is dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn begin(terminal: File) -> anyhow::Result<Self> {
        let before = tcgetattr(&terminal).context("the settings of the terminal cannot be read")?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Now, &quiet).context("the terminal cannot be set to hide a password")?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if tcsetattr(&self.terminal, OptionalActions::Now, &self.before).is_err() {
            eprintln!("carillon: the terminal cannot be restored; run `stty sane`");
        }
    }
}

fn open() -> anyhow::Result<File> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    terminal.context("there is no terminal to ask on; scripts use --user and --password-stdin")
}

fn read_line(terminal: File) -> anyhow::Result<String> {
    let mut line = String::new();
    let read = BufReader::new(terminal.take(LINE_BYTES_MAX)).read_line(&mut line);
    if read.context("the terminal cannot be read")? == 0 {
        bail!("nothing was typed");
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
