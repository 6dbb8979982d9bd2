//! What a reader of JSON says, as a refusal.

use super::FieldRefusal;

/// What serde says about a value that it cannot read.
#[must_use]
pub fn unreadable(message: &str) -> FieldRefusal {
    let message = message.split(" at line ").next().unwrap_or(message);
    if let Some((given, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        let allowed = match expected {
            "i32" | "i64" => "a whole number",
            "a string" => "text (in quotes)",
            "a boolean" => "true or false",
            "a sequence" => "a list",
            "struct ParentLink" => "a table with `task`, and `on` if need be,",
            other => other,
        };
        return FieldRefusal::WrongType { given: given.to_owned(), allowed: allowed.to_owned() };
    }
    if let Some((given, allowed)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        let allowed = allowed.strip_prefix("one of ").unwrap_or(allowed);
        return FieldRefusal::WrongChoice { given: given.to_owned(), allowed: allowed.to_owned() };
    }
    if message.starts_with("missing field ") {
        return FieldRefusal::Required;
    }
    if message.starts_with("unknown field ") {
        return FieldRefusal::UnknownField;
    }
    FieldRefusal::Unreadable { detail: message.to_owned() }
}
