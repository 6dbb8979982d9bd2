//! Completions of shells, and what `--help` promises.

use std::process::Command;

const CARILLON: &str = env!("CARGO_BIN_EXE_carillon");

fn out(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn bash_completes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("carillon.bash");
    std::fs::write(&file, out(Command::new(CARILLON).args(["completions", "bash"]))).unwrap();
    let complete = |words: &str| {
        let ask = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _carillon carillon \"${{COMP_WORDS[-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        out(Command::new("bash").args(["-c", &ask]))
    };
    assert_eq!(complete("carillon ten"), "tenants\n");
    let verbs = complete("carillon tasks ''");
    for verb in ["list", "show", "start", "stop", "pause", "skip", "restore", "delete", "run", "export", "apply"] {
        assert!(verbs.lines().any(|line| line == verb), "{verbs}");
    }
    assert_eq!(complete("carillon logs list --fol"), "--follow\n");
}

#[test]
fn other_shells_have_theirs() {
    for (shell, begins) in [("zsh", "#compdef carillon"), ("fish", "# Print an optspec")] {
        let text = out(Command::new(CARILLON).args(["completions", shell]));
        assert!(text.starts_with(begins) && text.contains("maintenance"), "{text}");
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let help = out(Command::new(CARILLON).arg("--help"));
    assert!(help.contains("Exits with 0: done; 1: refused or failed; 2:"), "{help}");
    let document = include_str!("../../../docs/cli.md");
    for code in 0..=5 {
        assert!(document.lines().any(|line| line.starts_with(&format!("| {code} |"))), "{code}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let ask = format!("set -o pipefail; {CARILLON} completions zsh | head -n 1 >/dev/null");
    assert_eq!(out(Command::new("bash").args(["-c", &ask])), "");
}
