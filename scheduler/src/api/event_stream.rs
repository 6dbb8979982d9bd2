//! Server-sent events as a response.

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt as _};
use std::convert::Infallible;

/// How long a browser waits before it reconnects a broken stream, ms.
const RETRY_MS: u64 = 1_000;

/// The events, as each of them is sent.
pub fn answer(events: impl Stream<Item = Bytes> + 'static) -> HttpResponse {
    let first = Bytes::from(format!("retry: {RETRY_MS}\n\n"));
    let bytes = futures_util::stream::iter([first]).chain(events).map(Ok::<_, Infallible>);
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("cache-control", "no-store"))
        // A buffering proxy would turn the stream into one late response.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(bytes)
}
