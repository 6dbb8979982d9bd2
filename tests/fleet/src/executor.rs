//! One executor: its door for runs, its registration, its callbacks.

use crate::Records;
use crate::admin::Admin;
use crate::message::Connection;
use serde::Deserialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// As clients do.
const REGISTER_INTERVAL: Duration = Duration::from_secs(30);

/// From a callback that was not taken to the next try.
const AGAIN: Duration = Duration::from_millis(500);

/// Callbacks in one message.
const TOLD_MAX: usize = 1_000;

const TAKEN: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html;charset=UTF-8\r\ncontent-length: 12\r\n\r\n{\"code\":200}";

/// One executor.
pub struct Executor {
    app: String,
    token: String,
    port: u16,
    admin: Admin,
    records: Rc<Records>,
    /// Runs that have ended and of which the admin does not know it.
    ended: RefCell<Vec<i64>>,
    has_ended: Notify,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    log_id: i64,
}

impl Executor {
    /// Of an app; it listens on `port`.
    pub fn new(app: &str, token: &str, port: u16, admin: Admin, records: Rc<Records>) -> Self {
        let (app, token) = (app.to_owned(), token.to_owned());
        Self { app, token, port, admin, records, ended: RefCell::default(), has_ended: Notify::new() }
    }

    /// Whether the admin does not know of all ends.
    pub fn has_more_to_tell(&self) -> bool {
        !self.ended.borrow().is_empty()
    }

    /// Takes connections for ever.
    pub async fn listen(self: Rc<Self>, listener: TcpListener) {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(Rc::clone(&self).serve(stream));
            }
        }
    }

    async fn serve(self: Rc<Self>, stream: TcpStream) {
        let Ok(mut connection) = Connection::new(stream) else { return };
        while let Ok(Some(message)) = connection.read(true).await {
            if message.path == "/run" {
                let Ok(run) = serde_json::from_slice::<Run>(&message.body) else { return };
                self.records.keep(run.log_id);
                self.ended.borrow_mut().push(run.log_id);
                self.has_ended.notify_one();
            }
            if connection.write(TAKEN).await.is_err() {
                return;
            }
        }
    }

    /// Registers again and again.
    pub async fn keep_registered(self: Rc<Self>) {
        let body = format!(
            r#"{{"registryGroup":"EXECUTOR","registryKey":"{}","registryValue":"http://127.0.0.1:{}/"}}"#,
            self.app, self.port
        );
        loop {
            match self.admin.tell(&mut None, "registry", &self.token, body.as_bytes()).await {
                Ok(()) => tokio::time::sleep(REGISTER_INTERVAL).await,
                Err(error) => {
                    eprintln!("not registered: {error}");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Tells of all that has ended since the last message.
    pub async fn keep_calling_back(self: Rc<Self>) {
        let mut kept = None;
        loop {
            let some: Vec<i64> = self.ended.borrow().iter().take(TOLD_MAX).copied().collect();
            if some.is_empty() {
                self.has_ended.notified().await;
                continue;
            }
            match self.admin.tell(&mut kept, "callback", &self.token, told(&some).as_bytes()).await {
                Ok(()) => drop(self.ended.borrow_mut().drain(..some.len())),
                Err(error) => {
                    eprintln!("callback not taken: {error}");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}

fn told(logs: &[i64]) -> String {
    let item = |log: &i64| format!(r#"{{"logId":{log},"logDateTim":0,"handleCode":200,"handleMsg":null}}"#);
    format!("[{}]", logs.iter().map(item).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_are_a_list() {
        let told: serde_json::Value = serde_json::from_str(&told(&[7, 8])).unwrap();
        assert_eq!(told[1]["logId"], 8);
        assert_eq!(told[0]["handleCode"], 200);
    }
}
