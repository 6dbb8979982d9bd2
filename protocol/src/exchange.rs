//! A request and its answer as either side makes and checks them, whatever carries them.

use crate::sign::{self, RequestParts, SignMethod, header};
use bytes::Bytes;
use std::time::Duration;

/// What one side sends.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path without query.
    pub path: String,
    /// The signature's headers.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Bytes,
}

/// What the other side answers.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The method and the signature, where it is signed.
    pub signature: Option<(SignMethod, String)>,
    /// When to try again, where it says so.
    pub wait: Option<Duration>,
    /// JSON.
    pub body: Bytes,
}

impl Request {
    /// What every message is sent with.
    pub const METHOD: &'static str = "POST";

    /// A `POST` of `body`, signed. The method of `parts` must be `POST`.
    #[must_use]
    pub fn signed(parts: &RequestParts<'_>, method: SignMethod, secret: &str, body: Bytes) -> Self {
        let headers = vec![
            (header::TENANT, parts.tenant.to_owned()),
            (header::APP, parts.app.to_owned()),
            (header::KEY, parts.key.to_owned()),
            (header::TIMESTAMP, parts.timestamp.to_string()),
            (header::NONCE, parts.nonce.to_owned()),
            (header::SIGN_METHOD, method.as_str().to_owned()),
            (header::SIGN, parts.sign(method, secret, &body)),
        ];
        Self { path: parts.path.to_owned(), headers, body }
    }

    /// A header's value, empty when there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| value)
    }
}

impl Answer {
    /// An answer that anyone could have made.
    #[must_use]
    pub fn unsigned(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, signature: None, wait: None, body: body.into() }
    }

    /// The answer to the request with that nonce.
    #[must_use]
    pub fn signed(status: u16, body: impl Into<Bytes>, method: SignMethod, secret: &str, nonce: &str) -> Self {
        let body = body.into();
        let signature = sign::sign_reply(method, secret, nonce, status, &body);
        Self { status, signature: Some((method, signature)), wait: None, body }
    }

    /// Whether the holder of the secret made it for the request with that nonce, which was signed by that method.
    #[must_use]
    pub fn is_genuine(&self, method: SignMethod, secret: &str, nonce: &str) -> bool {
        let expected = sign::sign_reply(method, secret, nonce, self.status, &self.body);
        self.signature.as_ref().is_some_and(|(_, given)| sign::matches(&expected, given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_one_request_and_one_secret() {
        let method = SignMethod::HmacSha256;
        let answer = Answer::signed(200, "{}", method, "secret", "nonce");
        assert!(answer.is_genuine(method, "secret", "nonce"));
        assert!(!answer.is_genuine(method, "secret", "another"));
        assert!(!answer.is_genuine(method, "guess", "nonce"));
        assert!(!answer.is_genuine(SignMethod::Md5, "secret", "nonce"));
        assert!(!Answer { status: 503, ..answer.clone() }.is_genuine(method, "secret", "nonce"));
        assert!(!Answer { body: "{ }".into(), ..answer }.is_genuine(method, "secret", "nonce"));
        assert!(!Answer::unsigned(200, "{}").is_genuine(method, "secret", "nonce"));
    }

    #[test]
    fn a_request_carries_what_it_signs() {
        let parts = RequestParts {
            method: "POST",
            path: "/dispatch",
            query: "",
            tenant: "t",
            app: "a",
            key: "k",
            timestamp: 5,
            nonce: "0123456789abcdef",
        };
        let request = Request::signed(&parts, SignMethod::Md5, "secret", "{}".into());
        assert_eq!(request.header(header::TIMESTAMP), "5");
        assert_eq!(request.header(header::SIGN), parts.sign(SignMethod::Md5, "secret", b"{}"));
        assert_eq!(request.header("x-other"), "");
    }
}
