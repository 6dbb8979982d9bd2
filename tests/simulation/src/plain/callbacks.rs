//! How runs ended, until a node has taken it: told at once, and what was not taken every half a minute.

use super::place::{CALLBACK_PATH, Place};
use crate::executor::Told;
use carillon_protocol::{RunKey, RunStatus};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;

/// Between two tries to tell what was not taken.
const AGAIN_EVERY: Duration = Duration::from_secs(30);

/// How a run ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// The number that it came with.
    pub(super) number: i64,
    /// What that means.
    pub(super) key: Option<RunKey>,
    /// What really became of it.
    pub(super) status: RunStatus,
    pub(super) code: i32,
    pub(super) message: String,
}

#[derive(Debug, Default)]
pub(super) struct Callbacks {
    new: Mutex<Vec<Ended>>,
    come: Notify,
    /// On their way.
    telling: Mutex<usize>,
    not_taken: Mutex<Vec<Ended>>,
}

impl Callbacks {
    pub(super) fn say(&self, ended: Ended) {
        self.new.lock().unwrap().push(ended);
        self.come.notify_one();
    }

    /// Results that no node has taken.
    pub(super) fn count(&self) -> usize {
        self.new.lock().unwrap().len() + *self.telling.lock().unwrap() + self.not_taken.lock().unwrap().len()
    }

    pub(super) async fn tell_as_they_come(&self, place: &Place) {
        loop {
            self.come.notified().await;
            let new = std::mem::take(&mut *self.new.lock().unwrap());
            self.tell(place, new).await;
        }
    }

    pub(super) async fn tell_again(&self, place: &Place) {
        loop {
            tokio::time::sleep(AGAIN_EVERY).await;
            let again = std::mem::take(&mut *self.not_taken.lock().unwrap());
            self.tell(place, again).await;
        }
    }

    /// Once more, all that is left: the process ends.
    pub(super) async fn tell_all(&self, place: &Place) {
        let mut all = std::mem::take(&mut *self.not_taken.lock().unwrap());
        all.append(&mut self.new.lock().unwrap());
        self.tell(place, all).await;
    }

    async fn tell(&self, place: &Place, ended: Vec<Ended>) {
        if ended.is_empty() {
            return;
        }
        *self.telling.lock().unwrap() += ended.len();
        let at = place.parts.time.now_ms();
        let items: Vec<Value> = ended
            .iter()
            .map(|one| {
                json!({ "logId": one.number, "logDateTim": at, "handleCode": one.code, "handleMsg": one.message })
            })
            .collect();
        let is_taken = place.call_first(CALLBACK_PATH, &Value::Array(items)).await;
        *self.telling.lock().unwrap() -= ended.len();
        if !is_taken {
            return self.not_taken.lock().unwrap().extend(ended);
        }
        for Ended { key, status, .. } in ended {
            if let Some(key) = key {
                place.note(format!("log {} attempt {}: {status:?} is taken", key.0, key.1));
                place.parts.ledger.told(Told { key, status, at: place.parts.time.now_ms() });
            }
        }
    }
}
