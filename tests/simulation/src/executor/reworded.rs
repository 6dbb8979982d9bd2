//! What an executor of the release before says: the same without what it does not know yet. What it does not know of what it is
//! told, it leaves unread, as every executor does.

use crate::keys::AppKey;
use crate::messages::signed_parts;
use carillon_protocol::exchange::Request;
use carillon_protocol::sign::{SignMethod, header};
use serde_json::{Map, Value};

/// What 0.1 did not say yet, in requests and in what they list. (`tests/system/other_executors.rs` has its messages to the letter.)
const LATER: [&str; 4] = ["own_address", "acknowledged_at", "draining", "due_time"];

/// The request as it would have made it.
pub(super) fn older(request: &Request, key: &AppKey) -> Request {
    let Ok(mut message) = serde_json::from_slice::<Map<String, Value>>(&request.body) else { return request.clone() };
    forget(&mut message);
    let body = serde_json::to_vec(&message).expect("it was JSON");
    let method = SignMethod::parse(request.header(header::SIGN_METHOD)).expect("it was signed");
    let sign = signed_parts(request).sign(method, &key.secret(), &body);
    let mut headers = request.headers.clone();
    for (_, value) in headers.iter_mut().filter(|(name, _)| *name == header::SIGN) {
        value.clone_from(&sign);
    }
    Request { path: request.path.clone(), headers, body: body.into() }
}

fn forget(message: &mut Map<String, Value>) {
    message.retain(|name, _| !LATER.contains(&name.as_str()));
    let listed = message.values_mut().filter_map(Value::as_array_mut).flatten();
    listed.filter_map(Value::as_object_mut).for_each(forget);
}
