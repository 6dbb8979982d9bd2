//! Stable numbers for every outcome on the wire (the table is in `docs/errors.md`).

use serde::{Deserialize, Serialize};

/// Outcome of a call, in the `code` field of every reply. `0` is success; otherwise the first
/// three digits are the HTTP status that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "u32", from = "u32")]
pub enum Code {
    /// 0: done.
    Ok,
    /// 40000: the body or a field does not have the required form.
    BadRequest,
    /// 40100: a signature header is missing.
    Unsigned,
    /// 40101: the key id is not known, or not for this tenant and app.
    UnknownKey,
    /// 40102: the timestamp lies outside the window around the cluster clock.
    ClockSkew,
    /// 40103: the nonce was seen before.
    Replayed,
    /// 40104: the signature does not match.
    WrongSignature,
    /// 40105: the signature method is not known or not allowed for this app.
    SignMethod,
    /// 40300: the caller may not do this.
    Forbidden,
    /// 40400: it does not exist, or not for this caller.
    NotFound,
    /// 40401: the node does not know this executor (any more); register again.
    RegisterAgain,
    /// 40402: the request was meant for another executor process.
    WrongExecutor,
    /// 40900: the state does not allow it (lost race, duplicate name).
    Conflict,
    /// 41300: the body is too large.
    TooLarge,
    /// 42900: too many requests; wait and try again.
    TooMany,
    /// 50000: an internal error of the receiver; see its log.
    Internal,
    /// 50300: the node cannot reach its database; try another node, or again later.
    StoreUnavailable,
    /// 50301: the receiver is shutting down; try another.
    ShuttingDown,
    /// Any number that this version does not know.
    Other(u32),
}

/// Every known code with its number and what it means, in the order of the table in the docs.
const TABLE: [(Code, u32, &str); 18] = [
    (Code::Ok, 0, "done"),
    (Code::BadRequest, 40_000, "the body or a field does not have the required form"),
    (Code::Unsigned, 40_100, "a signature header is missing"),
    (Code::UnknownKey, 40_101, "no valid key of this tenant and app: unknown, expired or revoked"),
    (Code::ClockSkew, 40_102, "the timestamp is outside the window"),
    (Code::Replayed, 40_103, "the nonce was used before, or a newer message of this kind has been received"),
    (Code::WrongSignature, 40_104, "the signature does not match"),
    (Code::SignMethod, 40_105, "unknown signature method, or not the one that the app requires"),
    (Code::Forbidden, 40_300, "not allowed, or the required client certificate is missing"),
    (Code::NotFound, 40_400, "it does not exist, or not for this caller"),
    (Code::RegisterAgain, 40_401, "the node does not know this executor (any more)"),
    (Code::WrongExecutor, 40_402, "meant for another executor process"),
    (Code::Conflict, 40_900, "the state does not allow it"),
    (Code::TooLarge, 41_300, "the body is too large"),
    (
        Code::TooMany,
        42_900,
        "too many requests with this key, or too many without a valid signature from this address; try again later",
    ),
    (Code::Internal, 50_000, "an internal error of the receiver"),
    (Code::StoreUnavailable, 50_300, "the node cannot reach its database"),
    (Code::ShuttingDown, 50_301, "the receiver is shutting down"),
];

impl Code {
    /// Every known code with its number and what it means.
    #[must_use]
    pub fn list() -> &'static [(Self, u32, &'static str)] {
        &TABLE
    }

    /// The HTTP status that a reply with this code carries.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match u32::from(self) {
            0 => 200,
            number => u16::try_from(number / 100).unwrap_or(500),
        }
    }

    /// Whether the same request may succeed elsewhere or later without a change.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        matches!(self.http_status(), 429 | 500 | 503)
    }
}

impl From<Code> for u32 {
    fn from(code: Code) -> Self {
        if let Code::Other(number) = code {
            return number;
        }
        TABLE.iter().find(|(known, ..)| *known == code).map_or(50_000, |(_, number, _)| *number)
    }
}

impl From<u32> for Code {
    fn from(number: u32) -> Self {
        TABLE.iter().find(|(_, known, _)| *known == number).map_or(Code::Other(number), |(code, ..)| *code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire_and_names_its_status() {
        for (code, number, _) in TABLE {
            assert_eq!(u32::from(code), number);
            assert_eq!(Code::from(number), code);
        }
        assert_eq!(Code::from(49_999), Code::Other(49_999));
        assert_eq!(Code::Ok.http_status(), 200);
        assert_eq!(Code::RegisterAgain.http_status(), 404);
        assert_eq!(Code::StoreUnavailable.http_status(), 503);
    }
}
