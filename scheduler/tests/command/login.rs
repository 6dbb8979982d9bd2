//! Signing in, and what is kept of it.

use super::installation::{Installation, TOKEN, run};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const NEW: &str = "correct horse battery";

/// `carillon …` as a stranger: code, output, error.
fn stranger(here: &Installation, args: &[&str], input: &str) -> (i32, String, String) {
    let ran = run(here.stranger().args(args), input);
    (ran.code, ran.out, ran.err)
}

fn sign_in(here: &Installation, input: &str) -> (i32, String, String) {
    stranger(here, &["login", "--user", "admin", "--password-stdin"], input)
}

fn mode(here: &Installation, path: &str) -> u32 {
    std::fs::metadata(here.folder().join(path)).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn from_the_first_password_to_the_last_session() {
    let here = Installation::new().await;
    let first = here.first_password();
    let (code, _, err) = sign_in(&here, "not the password\n");
    assert_eq!((code, err.contains("the name or the password is wrong")), (4, true), "{err}");
    // The first password must be changed, to one that the node accepts; otherwise the user is not signed in.
    let (code, _, err) = sign_in(&here, &format!("{first}\n"));
    assert_eq!((code, err.contains("a new password must be chosen; provide it on a second line")), (4, true), "{err}");
    let (code, _, err) = sign_in(&here, &format!("{first}\nshort\n"));
    assert_eq!((code, err.as_str()), (1, "carillon: new: 12 to 256 characters are allowed\n"));
    assert!(!here.folder().join("config/carillon/credentials.json").exists());
    assert_eq!(stranger(&here, &["whoami"], "").0, 4);

    let (code, out, err) = sign_in(&here, &format!("{first}\n{NEW}\n"));
    assert_eq!((code, out, err), (0, format!("signed in at {} as admin\n", here.url), String::new()));
    assert_eq!(mode(&here, "config/carillon"), 0o700);
    assert_eq!(mode(&here, "config/carillon/credentials.json"), 0o600);
    let (code, out, _) = stranger(&here, &["whoami", "--output", "json"], "");
    let me: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &me["name"], &me["must_change_password"]), (0, &"admin".into(), &false.into()));
    // The session is for this address alone, and a token goes before it.
    let other = here.url.replace("127.0.0.1", "localhost");
    assert!(stranger(&here, &["whoami", "--url", &other], "").2.contains("not signed in at http://localhost"));
    let me = run(here.stranger().args(["whoami", "--output", "json"]).env("CARILLON_TOKEN", TOKEN), "").out;
    assert_eq!(serde_json::from_str::<Value>(&me).unwrap()["kind"], "setting");

    assert_eq!(stranger(&here, &["logout"], "").0, 0);
    let (code, _, err) = stranger(&here, &["tenants", "list"], "");
    assert_eq!((code, err.contains(&format!("carillon login --url {}", here.url))), (4, true), "{err}");
    assert_eq!(stranger(&here, &["logout"], "").1, format!("not signed in at {}\n", here.url));
    // Nothing but the new password lets in now, and it can be changed at will.
    assert_eq!(sign_in(&here, &format!("{first}\n")).0, 4);
    let change = ["login", "--user", "admin", "--password-stdin", "--change-password"];
    assert_eq!(stranger(&here, &change, &format!("{NEW}\n{NEW} staple\n")).0, 0);
    assert_eq!(sign_in(&here, &format!("{NEW} staple\n")).0, 0);
}

#[tokio::test]
async fn a_session_that_has_ended_elsewhere() {
    let here = Installation::new().await;
    assert_eq!(sign_in(&here, &format!("{}\n{NEW}\n", here.first_password())).0, 0);
    here.carillon(&["users", "end-sessions", "admin"]);
    let (code, _, err) = stranger(&here, &["tenants", "list"], "");
    assert_eq!(code, 4);
    assert!(
        err.contains("the session of admin at") && err.contains("has ended; sign in again: carillon login"),
        "{err}"
    );
    // It is forgotten all the same.
    assert_eq!(stranger(&here, &["logout"], "").0, 0);
    assert!(
        !std::fs::read_to_string(here.folder().join("config/carillon/credentials.json")).unwrap().contains("admin")
    );
}

#[tokio::test]
async fn stored_sessions_that_others_can_read_are_not_used() {
    let here = Installation::new().await;
    assert_eq!(sign_in(&here, &format!("{}\n{NEW}\n", here.first_password())).0, 0);
    let file = here.folder().join("config/carillon/credentials.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (code, _, err) = stranger(&here, &["whoami"], "");
    assert_eq!((code, err.contains("chmod 600")), (1, true), "{err}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&file, "{").unwrap();
    let (code, _, err) = stranger(&here, &["whoami"], "");
    assert_eq!((code, err.contains("delete the file and sign in")), (1, true), "{err}");
}

#[tokio::test]
async fn a_password_is_never_an_argument() {
    let here = Installation::new().await;
    assert_eq!(stranger(&here, &["login", "--user", "admin", "--password", "x"], "").0, 2);
    // Without a terminal there is no one to ask.
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(here.stranger().get_program()).args(["login", "--user", "admin", "--url", &here.url]);
    let ran = run(&mut command, "");
    assert_eq!((ran.code, ran.err.contains("--password-stdin")), (1, true), "{}", ran.err);
}

/// A command on a terminal of its own.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    seen: String,
}

impl Terminal {
    fn run(here: &Installation, after: &str) -> Self {
        let program = here.stranger().get_program().to_str().unwrap().to_owned();
        // The shell between outlives an interrupt.
        let line = format!("trap : INT; {program} login --url {}{after}", here.url);
        // A prompt that never comes ends with the program.
        let mut script = Command::new("timeout");
        script.args(["60", "script", "--quiet", "--return", "--command", &line, "/dev/null"]);
        script.current_dir(here.folder()).env("XDG_CONFIG_HOME", here.folder().join("config"));
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen, seen: String::new() }
    }

    /// Waits for what comes after the last answer, and types.
    fn answer(&mut self, prompt: &str, typed: &str) {
        let mut news = String::new();
        while !news.contains(prompt) {
            let mut part = [0; 512];
            let count = self.screen.read(&mut part).unwrap();
            assert!(count > 0, "{prompt:?} did not appear: {}{news}", self.seen);
            news.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        self.seen.push_str(&news);
        self.keys.write_all(typed.as_bytes()).unwrap();
    }
}

/// The password is not shown, the new one is asked for twice, and a weak one again.
#[tokio::test]
async fn on_a_terminal() {
    let here = Installation::new().await;
    let first = here.first_password();
    let mut terminal = Terminal::run(&here, "");
    for (prompt, typed) in [
        ("User: ", "admin"),
        ("Password of admin: ", &first),
        ("New password: ", "short"),
        ("New password again: ", "short"),
        ("characters are allowed\r\nNew password: ", NEW),
        ("New password again: ", "another one"),
        ("passwords differ.\r\nNew password: ", NEW),
        ("New password again: ", NEW),
        ("signed in at", ""),
    ] {
        terminal.answer(prompt, &format!("{typed}\n"));
    }
    assert!(terminal.child.wait().unwrap().success());
    for secret in [first.as_str(), NEW, "another one"] {
        assert!(!terminal.seen.contains(secret), "{}", terminal.seen);
    }
    assert_eq!(stranger(&here, &["whoami"], "").0, 0);
}

/// After giving up at the password prompt, the terminal shows again what is typed.
#[tokio::test]
async fn an_interrupt_sets_the_terminal_back() {
    let here = Installation::new().await;
    let mut terminal = Terminal::run(&here, " --user admin; echo code $?; stty -a");
    terminal.answer("Password of admin: ", "\u{3}");
    terminal.answer("code 130", "");
    if !terminal.seen.contains("echonl") {
        terminal.answer("echonl", "");
    }
    assert!(terminal.child.wait().unwrap().success());
    assert!(terminal.seen.contains(" echo ") && !terminal.seen.contains("-echo "), "{}", terminal.seen);
}
