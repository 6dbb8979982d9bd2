//! Replies in both envelopes. Once the caller is known, HTTP says 200, and `code` what it is.

use crate::api::problem::Problem;
use crate::domain::xxljob::wire::{CODE_FAILED, CODE_OK};
use crate::store::StoreError;
use actix_web::cookie::Cookie;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use serde_json::{Value, json};

/// The code of a caller who is not known.
pub const CODE_UNKNOWN: i32 = 501;

/// Which of the two envelopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Up to 3.2.0: `{code, msg, content}`, pages as `{recordsTotal, recordsFiltered, data}`.
    Content,
    /// From 3.3.0 on: `{code, msg, data}`, pages within it.
    Data,
}

/// An envelope.
pub fn envelope(dialect: Dialect, code: i32, msg: Option<&str>, content: Option<&Value>) -> Value {
    match dialect {
        Dialect::Content => json!({ "code": code, "msg": msg, "content": content }),
        Dialect::Data => json!({ "code": code, "msg": msg, "data": content }),
    }
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// So many come before it.
    pub offset: u64,
    /// At most so many are in it.
    pub size: u64,
}

/// What is answered when it is done.
pub struct Reply {
    what: What,
    cookie: Option<Cookie<'static>>,
}

enum What {
    Done { content: Option<Value>, note: Option<String> },
    Page { items: Vec<Value>, total: u64, paging: Paging },
}

impl Reply {
    /// It is done.
    pub fn done() -> Self {
        Self { what: What::Done { content: None, note: None }, cookie: None }
    }

    /// It is done, and this came of it.
    pub fn content(content: impl Into<Value>) -> Self {
        Self { what: What::Done { content: Some(content.into()), note: None }, cookie: None }
    }

    /// A page, of so many in all.
    pub fn page(items: Vec<Value>, total: u64, paging: Paging) -> Self {
        Self { what: What::Page { items, total, paging }, cookie: None }
    }

    /// What people should know of it, where there is anything: the message is empty else.
    pub fn noting(mut self, notes: &[String]) -> Self {
        if let What::Done { note, .. } = &mut self.what
            && !notes.is_empty()
        {
            *note = Some(notes.join("; "));
        }
        self
    }

    /// With a cookie.
    pub fn with_cookie(mut self, cookie: Cookie<'static>) -> Self {
        self.cookie = Some(cookie);
        self
    }

    /// The answer.
    pub fn respond(self, dialect: Dialect) -> HttpResponse {
        let success = (dialect == Dialect::Data).then_some("Success");
        let body = match self.what {
            What::Done { content, note } => envelope(dialect, CODE_OK, note.as_deref().or(success), content.as_ref()),
            What::Page { items, total, paging } => match dialect {
                Dialect::Content => json!({ "recordsFiltered": total, "data": items, "recordsTotal": total }),
                Dialect::Data => {
                    let Paging { offset, size } = paging;
                    let page = json!({ "offset": offset, "pagesize": size, "data": items, "total": total });
                    envelope(dialect, CODE_OK, success, Some(&page))
                }
            },
        };
        let mut response = HttpResponse::Ok();
        if let Some(cookie) = self.cookie {
            response.cookie(cookie);
        }
        response.json(body)
    }
}

/// Why it is not done.
#[derive(Debug)]
pub struct Refused {
    msg: String,
    /// The rest of the body is not waited for.
    closes: bool,
}

impl Refused {
    /// For this reason.
    pub fn new(msg: impl Into<String>) -> Self {
        Self { msg: msg.into(), closes: false }
    }

    /// A parameter is refused.
    pub fn field(name: &str, why: impl std::fmt::Display) -> Self {
        Self::new(format!("{name}: {why}"))
    }

    /// There is no such thing, as far as the caller may know.
    pub fn missing(name: &str, what: &str, number: i64) -> Self {
        Self::field(name, format!("there is no {what} {number}"))
    }

    /// The same, and the connection ends with the answer.
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// The answer.
    pub fn respond(self, dialect: Dialect) -> HttpResponse {
        let mut response = HttpResponse::build(StatusCode::OK);
        if self.closes {
            response.force_close();
        }
        response.json(envelope(dialect, CODE_FAILED, Some(&self.msg), None))
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let closes = [StatusCode::REQUEST_TIMEOUT, StatusCode::PAYLOAD_TOO_LARGE].contains(&problem.status_code());
        Self { msg: problem.to_string(), closes }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}
