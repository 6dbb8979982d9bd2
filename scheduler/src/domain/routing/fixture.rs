//! Executors for tests.

use crate::domain::executor::{Executor, WEIGHT_DEFAULT};
use crate::domain::{AppId, ExecutorId, NodeId, TenantId};
use std::sync::Arc;

/// An idle executor of app (1, 1) with handler `h`.
pub fn executor(id: i64, address: &str) -> Executor {
    Executor {
        id: ExecutorId(id),
        tenant_id: TenantId(1),
        app_id: AppId(1),
        instance: String::new(),
        key_id: String::new(),
        address: address.to_owned(),
        tags: [].into(),
        handlers: ["h".to_owned()].into(),
        plain: false,
        heartbeat_at: 0,
        draining: false,
        disabled: false,
        weight: WEIGHT_DEFAULT,
        capacity: 10,
        held: 0,
        running: 0,
        described_at: 0,
        version: String::new(),
        node_id: NodeId::NONE,
    }
}

/// Executors with these weights, and the ids 1, 2, … in the order of their addresses.
pub fn fleet(weights: &[i32]) -> Vec<Arc<Executor>> {
    let one =
        |(id, weight): (i64, &i32)| Executor { weight: *weight, ..executor(id, &format!("http://e{id:03}:9999")) };
    (1..).zip(weights).map(one).map(Arc::new).collect()
}
