//! What executors of xxl-job call, and portals and scripts, where they look for its admin: under `/xxl-job-admin` and under `/`.

mod admin;
mod door;
mod ends;

pub use door::{PlainCaller, PlainDoor, PlainDoorParts, PlainMessage};

use super::Api;
use super::client_address::client_address;
use crate::domain::xxljob::library::agent as agent_of;
use crate::domain::xxljob::wire::{Envelope, TOKEN_HEADER, bytes};
use actix_web::http::header::USER_AGENT;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use std::future::ready;
use std::io;

/// Where the messages come in, below either path. A client in Go writes the second one with a capital letter.
const PATHS: [(&str, PlainMessage); 4] = [
    ("/api/registry", PlainMessage::Registry),
    ("/api/registryRemove", PlainMessage::Remove),
    ("/api/RegistryRemove", PlainMessage::Remove),
    ("/api/callback", PlainMessage::Callback),
];

/// The routes.
pub fn routes(config: &mut web::ServiceConfig) {
    for context in ["/xxl-job-admin", ""] {
        for (path, message) in PATHS {
            let knock = move |request: HttpRequest, payload: web::Payload, api: web::Data<Api>| async move {
                respond(answer(&request, payload, &api, message).await)
            };
            config.route(&format!("{context}{path}"), web::post().to(knock));
        }
        admin::routes(config, context);
    }
}

async fn answer(request: &HttpRequest, payload: web::Payload, api: &Api, message: PlainMessage) -> Option<Envelope> {
    let mut values = request.headers().get_all(TOKEN_HEADER);
    // A header that comes twice is none: a proxy might read the other one.
    let only = values.next().filter(|_| values.next().is_none());
    let token = only.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let address = client_address(api, request);
    let caller = PlainCaller { token, agent: agent_of(agent), address: &address };
    api.plain_door.answer(message, caller, payload).await
}

fn respond(envelope: Option<Envelope>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.content_type("application/json;charset=UTF-8");
    match envelope {
        Some(envelope) => response.body(bytes(&envelope)),
        // A body that breaks off is a broken connection.
        None => response.streaming(stream::once(ready(Err::<Bytes, _>(io::Error::other("not taken"))))),
    }
}
