//! The API that executors call, over HTTP.

use super::Api;
use super::client_address::client_address;
use super::executor_messages::ExecutorMessage;
use super::executors_door::unsigned;
use crate::auth::SignedHead;
use crate::tls::ShownCertificate;
use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::Code;
use carillon_protocol::exchange::Answer;
use carillon_protocol::sign::{RequestParts, header};

/// Routes of the wire.
pub fn routes(config: &mut web::ServiceConfig) {
    for (path, message) in ExecutorMessage::ALL {
        let knock = move |request: HttpRequest, payload: web::Payload, api: web::Data<Api>| async move {
            respond(answer(&request, payload, &api, message).await)
        };
        config.route(path, web::post().to(knock));
    }
    config.default_service(web::to(elsewhere));
}

async fn elsewhere() -> HttpResponse {
    respond(unsigned(Code::NotFound, "there is no such route"))
}

async fn answer(request: &HttpRequest, payload: web::Payload, api: &Api, message: ExecutorMessage) -> Answer {
    if api.executors_show_certificates && request.conn_data::<ShownCertificate>().is_none() {
        return unsigned(Code::Forbidden, "executors must show a client certificate of this node's authority");
    }
    api.door.answer(message, &signed_head(request), client_address(api, request), payload).await
}

fn signed_head(request: &HttpRequest) -> SignedHead<'_> {
    // A header that comes twice is none: a proxy might read the other one.
    let text = |name: &str| {
        let mut values = request.headers().get_all(name);
        let only = values.next().filter(|_| values.next().is_none());
        only.and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let parts = RequestParts {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.query_string(),
        tenant: text(header::TENANT),
        app: text(header::APP),
        key: text(header::KEY),
        timestamp: text(header::TIMESTAMP),
        nonce: text(header::NONCE),
    };
    SignedHead { parts, sign_method: text(header::SIGN_METHOD), sign: text(header::SIGN) }
}

fn respond(answer: Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    if let Some((method, sign)) = answer.signature {
        response.insert_header((header::SIGN_METHOD, method.as_str())).insert_header((header::SIGN, sign));
    }
    if let Some(wait) = answer.wait {
        response.insert_header((RETRY_AFTER, wait.as_secs() + 1));
    }
    response.content_type("application/json").body(answer.body)
}
