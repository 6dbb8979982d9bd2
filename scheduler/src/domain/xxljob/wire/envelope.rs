//! What carillon answers to an executor.

use super::{CODE_FAILED, CODE_OK};
use serde::Serialize;

/// The answer to a registration or a callback. It has the fields of both of xxl-job's envelopes (`content` until 3.2.0, `data`
/// from 3.3.0 on), and nulls where there is nothing: each client finds its own. HTTP says 200 in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Envelope {
    /// 200, or 500.
    pub code: i32,
    /// What is wrong.
    pub msg: Option<String>,
    /// Clients take a text or nothing here; there is nothing to say.
    content: Option<String>,
    /// The same.
    data: Option<String>,
}

impl Envelope {
    /// It is done.
    #[must_use]
    pub fn ok() -> Self {
        Self { code: CODE_OK, msg: None, content: None, data: None }
    }

    /// It is not done; executors repeat what they were to tell.
    pub fn failed(msg: impl Into<String>) -> Self {
        Self { code: CODE_FAILED, msg: Some(msg.into()), ..Self::ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_finds_its_envelope() {
        let json = |envelope: &Envelope| String::from_utf8(super::super::bytes(envelope)).unwrap();
        assert_eq!(json(&Envelope::ok()), r#"{"code":200,"msg":null,"content":null,"data":null}"#);
        let failed = Envelope::failed("the body is empty");
        assert_eq!(json(&failed), r#"{"code":500,"msg":"the body is empty","content":null,"data":null}"#);
    }
}
