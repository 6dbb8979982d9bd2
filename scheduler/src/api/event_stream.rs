//! Server-sent events as an answer.

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use futures_util::{Stream, StreamExt as _};
use std::convert::Infallible;

/// After so long a browser whose stream was cut asks for the rest, ms.
const RETRY_MS: u64 = 1_000;

/// The events, as each of them is sent.
pub fn answer(events: impl Stream<Item = Bytes> + 'static) -> HttpResponse {
    let first = Bytes::from(format!("retry: {RETRY_MS}\n\n"));
    let bytes = futures_util::stream::iter([first]).chain(events).map(Ok::<_, Infallible>);
    HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("cache-control", "no-store"))
        // A proxy that gathers what comes would make the stream a page.
        .insert_header(("x-accel-buffering", "no"))
        .streaming(bytes)
}
