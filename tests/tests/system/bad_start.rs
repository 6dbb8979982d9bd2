//! Bad input at the start: each a message that says what, where and how to mend, and a non-zero
//! exit.

use carillon_tests::certificates::{Authority, text};
use carillon_tests::command::carillon;
use carillon_tests::node::{Settings, TOKEN, configure};
use carillon_tests::process::{Process, bound, is_root};
use carillon_tests::{Database, Kind, World, folder, port};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Starts `command`, which must end by itself with a failure that names all of `words`.
async fn must_fail(mut command: Command, folder: &Path, words: &[&str]) -> String {
    command.current_dir(folder);
    let process = Process::start("carillon", command, &folder.join("output.log"));
    let output = process.wait_failure(60, words).await;
    assert!(!output.contains("panicked"), "{output}");
    output
}

fn serve(folder: &Path, settings: Settings) -> Command {
    let mut command = carillon();
    command.arg("serve");
    let url = format!("sqlite://{}/new.db?mode=rwc", folder.display());
    let port = port::free().to_string();
    configure(&mut command, &[("database.url", &url), ("server.port", &port), ("api.token", TOKEN)]);
    configure(&mut command, settings);
    command
}

#[tokio::test]
async fn wrong_settings_are_named() {
    for (settings, words) in [
        (&[("schedulers.before_intervl", "3s")][..], &["before_intervl"][..]),
        (&[("schedulers.before_interval", "soon")], &["before_interval", "soon"]),
        (&[("server.port", "99999")], &["port", "99999"]),
        (&[("server.bind", "nowhere")], &["server.bind"]),
        (&[("database.url", "oracle://x")], &["database.url"]),
        (&[("database.url", "postgres://u:p#w@host/x")], &["database.url", "%23"]),
        (&[("database.url", "mysql:nowhere")], &["database.url", "no URL"]),
        (&[("schedulers.time_zone", "Mars/Olympus")], &["time_zone", "Mars/Olympus"]),
        (&[("schedulers.look_interval", "0s")], &["schedulers.look_interval"]),
        (&[("schedulers.reap_interval", "11s")], &["schedulers.reap_interval", "offline_after"]),
        (&[("executors.keys_interval", "6s")], &["executors.keys_interval"]),
        (&[("data.statistics_interval", "2m")], &["data.statistics_interval"]),
        (&[("api.token", "short")], &["api.token", "32"]),
        (&[("encryption.keys", "k1:c2hvcnQ=")], &["encryption.keys", "32 bytes"]),
        (&[("log.format", "xml")], &["format", "xml"]),
        (&[("log.level", "carillon=loud")], &["log.level", "loud"]),
        (&[("auth.admin_password", "short")], &["auth.admin_password", "characters"]),
        (&[("auth.admin_password", "the admin comes in")], &["auth.admin_password", "name"]),
        (&[("executors.allowed_networks", "10.0.0.0/8,the office")], &["allowed_networks"]),
        (&[("executors.allowed_networks", "10.0.0.0/40")], &["allowed_networks"]),
        (&[("executors.requests_per_second", "0")], &["executors.requests_per_second"]),
        (&[("server.trusted_proxies", "10.0.0.0/40")], &["trusted_proxies"]),
        (&[("server.trusted_proxies", "0.0.0.0/0")], &["trusted_proxies", "not all addresses"]),
        (&[("auth.oidc.issuer", "http://login.example.com")], &["auth.oidc.issuer", "https"]),
        (&[("auth.oidc.issuer", "https://login.example.com")], &["auth.oidc.redirect_url"]),
        (&[("server.tls.client_certificates", "some")], &["client_certificates", "some"]),
    ] {
        let folder = folder::fresh("wrong-setting");
        must_fail(serve(&folder, settings), &folder, words).await;
        assert!(!folder.join("new.db").exists(), "{settings:?}: a database was made all the same");
        let mut check = serve(&folder, settings);
        check.args(["config", "check"]);
        let mut check_only = carillon();
        check_only.args(["config", "check"]).envs(check.get_envs().filter_map(|(k, v)| Some((k, v?))));
        must_fail(check_only, &folder, words).await;
    }
}

#[tokio::test]
async fn a_database_of_an_earlier_release_is_named_where_it_is_not_brought_up_to_date() {
    let folder = folder::fresh("earlier");
    let words = ["the schema lacks", "carillon migrate", "database.migrate_at_start"];
    must_fail(serve(&folder, &[("database.migrate_at_start", "false")]), &folder, &words).await;
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_named() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let (own, another) = (authority.issue("node"), other.issue("node"));
    let folder = folder::fresh("certificates");
    let nonsense = folder.join("nonsense.pem");
    std::fs::write(&nonsense, "-----BEGIN CERTIFICATE-----\nnonsense\n").unwrap();
    let [certificate, key, nonsense] = [&own.certificate, &own.key, &nonsense].map(|path| text(path));
    let all = |certificate, key, client_ca| {
        [("server.tls.certificate", certificate), ("server.tls.key", key), ("server.tls.client_ca", client_ca)]
    };
    for (settings, words) in [
        (all("/nowhere.pem", key, ""), &["/nowhere.pem", "server.tls.certificate", "No such file"][..]),
        (all(nonsense, key, ""), &["nonsense.pem", "server.tls.certificate"]),
        (all(key, key, ""), &["server.tls.certificate", "no certificate"]),
        (all(certificate, certificate, ""), &["server.tls.key", "no private key"]),
        (all(certificate, text(&another.key), ""), &["is not the key of the certificate", certificate]),
        (all(certificate, key, "/nowhere.pem"), &["/nowhere.pem", "server.tls.client_ca"]),
        (all(certificate, key, key), &["server.tls.client_ca", "no certificate"]),
        (all(certificate, "", ""), &["server.tls.certificate", "server.tls.key", "both or none"]),
        (all("", "", certificate), &["server.tls.client_ca", "needs"]),
    ] {
        must_fail(serve(&folder, &settings), &folder, words).await;
        let mut check = serve(&folder, &settings);
        check.args(["config", "check"]);
        let mut check_only = carillon();
        check_only.args(["config", "check"]).envs(check.get_envs().filter_map(|(k, v)| Some((k, v?))));
        must_fail(check_only, &folder, words).await;
    }
    assert!(!folder.join("new.db").exists(), "a database was made all the same");
}

#[tokio::test]
async fn wrong_configuration_files_are_named() {
    let folder = folder::fresh("wrong-file");
    let with = |name: &str| {
        let mut command = carillon();
        command.arg("serve").arg("--config").arg(folder.join(name));
        command
    };
    must_fail(with("absent.toml"), &folder, &["absent.toml"]).await;
    std::fs::write(folder.join("broken.toml"), "[server\nport = 1").unwrap();
    must_fail(with("broken.toml"), &folder, &["broken.toml"]).await;
    std::fs::write(folder.join("unknown.toml"), "[schedulers]\nlead = \"3s\"\n").unwrap();
    must_fail(with("unknown.toml"), &folder, &["lead"]).await;
    assert!(!folder.join("data").exists(), "something was written");
}

#[tokio::test]
async fn an_unreachable_database_is_named_without_its_password() {
    let folder = folder::fresh("unreachable");
    let port = port::free();
    for scheme in ["mysql", "postgres"] {
        let url = format!("{scheme}://carillon:hunter2hunter2@127.0.0.1:{port}/carillon");
        for word in ["serve", "migrate"] {
            let mut command = carillon();
            command.arg(word);
            let listen = port::free().to_string();
            configure(&mut command, &[("database.url", &url), ("server.port", &listen), ("api.token", TOKEN)]);
            let address = format!("127.0.0.1:{port}");
            let output = must_fail(command, &folder, &["database", &address]).await;
            assert!(!output.contains("hunter2"), "the password is shown:\n{output}");
            std::fs::remove_file(folder.join("output.log")).unwrap();
        }
    }
}

#[tokio::test]
async fn a_read_only_database_is_named() {
    let folder = folder::fresh("read-only");
    let mut migrate = serve(&folder, &[]);
    migrate.arg("--help"); // replaced below: only the environment is wanted
    let mut command = carillon();
    command.arg("migrate").envs(migrate.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let migrated = Process::start("migrate", command, &folder.join("migrate.log"));
    assert!(migrated.wait_exit(60).await.success(), "{}", migrated.log());

    // The settings ask for reading only.
    let url = format!("sqlite://{}/new.db?mode=ro", folder.display());
    must_fail(serve(&folder, &[("database.url", &url)]), &folder, &["new.db"]).await;
    // A missing folder is created, unless there is a file in its place.
    std::fs::write(folder.join("a-file"), "").unwrap();
    let url = format!("sqlite://{}/a-file/new.db?mode=rwc", folder.display());
    must_fail(serve(&folder, &[("database.url", &url)]), &folder, &["a-file"]).await;
}

/// As a user who may read the file and the folder, and no more.
#[tokio::test]
async fn a_database_file_without_permission_is_named() {
    let folder = folder::fresh("no-permission");
    let file = folder.join("new.db");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    // Root may write everything, so the node runs as a user that the databases brought along.
    let program = folder.join("carillon");
    let built = carillon();
    let built = Path::new(built.get_args().last().unwrap()).to_owned();
    std::fs::copy(built, &program).unwrap();
    let mut command = bound(&program, Some("postgres"));
    command.arg("serve");
    command.envs(serve(&folder, &[]).get_envs().filter_map(|(k, v)| Some((k, v?))));
    if !is_root() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    }
    let logs = folder::fresh("no-permission-logs");
    must_fail(command, &logs, &["new.db"]).await;
    if !is_root() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0, "half-written");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let world = World::new(Kind::Sqlite).await;
    let first = world.node("first", &[]).await;
    let folder = folder::fresh("taken-port");
    let port = first.port.to_string();
    let url = Database::fresh(Kind::Sqlite).await.url;
    let taken = serve(&folder, &[("server.port", &port), ("database.url", &url)]);
    must_fail(taken, &folder, &[&port]).await;
    // The same on the first one's own database: it must not be disturbed either.
    let url = world.database.url.clone();
    let settings = [("server.port", port.as_str()), ("database.url", url.as_str()), ("server.name", "second")];
    must_fail(serve(&folder, &settings), &folder, &[&port]).await;
    assert_eq!(first.probe("/readyz").await, Some(200));
    let second = world.database.number("SELECT COUNT(*) FROM node WHERE name = 'second' AND left_at = 0").await;
    assert_eq!(second, 0, "a node that never listened is a member");
}

#[tokio::test]
async fn a_wrong_cron_on_the_command_line_is_named() {
    let folder = folder::fresh("cron");
    let next = |cron: &str| {
        let mut command = carillon();
        command.args(["schedule", "next", cron, "--zone", "UTC", "--after", "2026-01-01T00:00:00", "--count", "2"]);
        command
    };
    must_fail(next("0 0 25 * * ?"), &folder, &["hour", "25"]).await;
    let good = Process::start("schedule", next("0 0 9 * * ?"), &folder.join("good.log"));
    assert!(good.wait_exit(20).await.success(), "{}", good.log());
    assert!(good.log().contains("2026-01-01") && good.log().contains("2026-01-02"), "{}", good.log());
}
