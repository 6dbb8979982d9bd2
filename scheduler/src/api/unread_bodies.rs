//! Chunked bodies that are not read to their end. If they were dropped before the response, the server
//! would go on reading them, however slowly they come; so they are kept until the response is sent, and
//! the connection ends with it.

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::middleware::Next;
use actix_web::web::Bytes;
use actix_web::{Error, HttpMessage};
use futures_util::Stream;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

type Shared = Rc<RefCell<Payload>>;

/// A body that its reader can drop without ending it.
struct Lent(Shared);

impl Stream for Lent {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// A response, and the body of its request.
struct Keeping {
    answer: BoxBody,
    _asked: Shared,
}

impl MessageBody for Keeping {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.answer.size()
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.get_mut().answer).poll_next(context)
    }
}

/// Keeps the body of a request until it is answered.
pub async fn keep(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if !request.headers().contains_key(header::TRANSFER_ENCODING) {
        return next.call(request).await.map(ServiceResponse::map_into_right_body);
    }
    let asked: Shared = Rc::new(RefCell::new(request.take_payload()));
    request.set_payload(Payload::Stream { payload: Box::pin(Lent(Rc::clone(&asked))) });
    let answer = next.call(request).await?;
    Ok(answer.map_body(|_, body| EitherBody::left(Keeping { answer: BoxBody::new(body), _asked: asked })))
}
