//! What executors say that are not quite as the SDK is: the same message, changed on its way and signed anew. What nodes do not
//! know of what they are told, they leave unread, as every executor does.

use crate::keys::AppKey;
use crate::messages::signed_parts;
use carillon_protocol::exchange::Request;
use carillon_protocol::sign::{SignMethod, header};
use serde_json::{Map, Value, json};

/// What 0.1 did not say yet, in requests and in what they list. (`tests/system/other_executors.rs` has its messages to the letter.)
const LATER: [&str; 5] = ["own_address", "acknowledged_at", "made_us", "draining", "due_time"];

/// The request as an executor of the release before would have made it: without what it does not know yet.
pub(super) fn older(request: &Request, key: &AppKey) -> Request {
    reworded(request, key, forget)
}

/// The registration of a process that says it has these handlers, too.
pub(super) fn pretending(request: &Request, key: &AppKey, handlers: &[String]) -> Request {
    reworded(request, key, |message| {
        if let Some(said) = message.get_mut("handlers").and_then(Value::as_array_mut) {
            said.extend(handlers.iter().map(|name| json!({ "name": name })));
        }
    })
}

fn reworded(request: &Request, key: &AppKey, change: impl Fn(&mut Map<String, Value>)) -> Request {
    let Ok(mut message) = serde_json::from_slice::<Map<String, Value>>(&request.body) else { return request.clone() };
    change(&mut message);
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
