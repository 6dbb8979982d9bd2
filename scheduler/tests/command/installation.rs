//! A node of its own for one test, and the command against it.

use serde_json::{Value, json};
use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CARILLON: &str = env!("CARGO_BIN_EXE_carillon");
const READY_MAX: Duration = Duration::from_mins(1);

/// The node's token.
pub const TOKEN: &str = "the-token-of-the-tests-of-the-command";

/// A node on SQLite in a temporary folder, with the tenant `retail` and its apps `orders` and
/// `other`.
pub struct Installation {
    folder: TempDir,
    pub url: String,
    node: Child,
    http: reqwest::Client,
}

/// What the command did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

impl Installation {
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With settings in the environment.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = File::create(folder.path().join("node.log")).unwrap();
        let mut command = Command::new(CARILLON);
        command.arg("serve").current_dir(folder.path()).env("CARILLON__SERVER__PORT", port.to_string());
        command.env("CARILLON__API__TOKEN", TOKEN);
        let out = File::create(folder.path().join("node.out")).unwrap();
        command.envs(settings.iter().copied()).stdout(out).stderr(log);
        let node = command.spawn().unwrap();
        let tls = carillon::tls::unused().unwrap();
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
        // While the command runs, nothing here notices that the node closes an idle connection.
        let http = client.pool_max_idle_per_host(0).build().unwrap();
        let mut installation = Self { folder, url: format!("http://127.0.0.1:{port}"), node, http };
        installation.ready().await;
        installation.post("/tenants", &json!({ "name": "retail" })).await;
        for app in ["orders", "other"] {
            installation.post("/apps", &json!({ "tenant": "retail", "name": app })).await;
        }
        installation
    }

    async fn ready(&mut self) {
        let until = Instant::now() + READY_MAX;
        loop {
            let answer = self.http.get(format!("{}/readyz", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            let log = std::fs::read_to_string(self.folder.path().join("node.log")).unwrap();
            assert!(self.node.try_wait().unwrap().is_none() && Instant::now() < until, "the node is not ready: {log}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(TOKEN)
    }

    async fn send(request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let body: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{status}: {body}");
        body
    }

    pub async fn get(&self, path: &str) -> Value {
        Self::send(self.request(reqwest::Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        Self::send(self.request(reqwest::Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Value {
        Self::send(self.request(reqwest::Method::PUT, path).json(body)).await
    }

    /// Changes some fields by the API.
    pub async fn patch(&self, path: &str, body: &Value) -> Value {
        Self::send(self.request(reqwest::Method::PATCH, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Value {
        Self::send(self.request(reqwest::Method::DELETE, path)).await
    }

    /// The names of all tasks, in alphabetical order.
    pub async fn names(&self) -> Vec<String> {
        let tasks = self.get("/tasks?limit=500").await;
        let items = tasks["items"].as_array().unwrap();
        let mut names: Vec<_> = items.iter().map(|task| task["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// Writes a file into the installation's folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The password of `admin`, as the node printed it at its first start.
    pub fn first_password(&self) -> String {
        let out = std::fs::read_to_string(self.folder.path().join("node.out")).unwrap();
        out.split(" password ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
    }

    /// `carillon …`, in the installation's folder, by a user whom no node knows yet.
    pub fn stranger(&self) -> Command {
        let mut command = Command::new(CARILLON);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARILLON")) {
            command.env_remove(name);
        }
        command.current_dir(self.folder.path()).env("CARILLON_URL", &self.url).env("TZ", "Asia/Shanghai");
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    /// `carillon …` with the node's token; what it printed, as it must succeed.
    pub fn carillon(&self, args: &[&str]) -> String {
        let mut command = self.stranger();
        let ran = run(command.args(args).env("CARILLON_TOKEN", TOKEN), "");
        assert_eq!(ran.code, 0, "{args:?}: {}\n{}", ran.out, ran.err);
        ran.out
    }

    /// The same with `--output json`; the document.
    pub fn json(&self, args: &[&str]) -> Value {
        let out = self.json_or_nothing(args);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
    }

    /// The same as it was printed; nothing, where the answer is empty.
    pub fn json_or_nothing(&self, args: &[&str]) -> String {
        self.carillon(&[args, &["--output", "json"]].concat())
    }

    /// `carillon …` with the node's token, which must fail.
    pub fn fails(&self, args: &[&str]) -> Ran {
        let mut command = self.stranger();
        let ran = run(command.args(args).env("CARILLON_TOKEN", TOKEN), "");
        assert_ne!(ran.code, 0, "{args:?}: {}", ran.out);
        ran
    }

    /// `carillon tasks …`, with the node's token.
    pub fn tasks(&self, args: &[&str]) -> Ran {
        self.tasks_with(args, "", &[("CARILLON_TOKEN", TOKEN)])
    }

    /// `carillon tasks …`, with an input, and whatever token the variables say.
    pub fn tasks_with(&self, args: &[&str], input: &str, variables: &[(&str, &str)]) -> Ran {
        let mut command = self.stranger();
        run(command.arg("tasks").args(args).envs(variables.iter().copied()), input)
    }

    /// Like [`Self::tasks`], and it must succeed; what it printed.
    pub fn done(&self, args: &[&str]) -> String {
        let ran = self.tasks(args);
        assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
        ran.out
    }

    /// Like [`Self::tasks`], and it must fail with 1 and print nothing but the error.
    pub fn refused(&self, args: &[&str]) -> String {
        let ran = self.tasks(args);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
        ran.err
    }
}

/// Runs a command with an input.
pub fn run(command: &mut Command, input: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input may be gone by now.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
