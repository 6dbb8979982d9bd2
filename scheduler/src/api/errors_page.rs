//! `docs/errors.md`: every code, made of the lists; a test compares the two.

use super::refusal::RequestRefusal;
use crate::domain::refusal::Entry;
use crate::domain::{FieldRefusal, Refusal};
use carillon_protocol::Code;
use std::fmt::Write as _;

const HEAD: &str = "\
# Errors

What the API refuses is a problem document (RFC 9457, `application/problem+json`): `status`, a stable `code`, its `params`, \
and `detail`, which is the code's sentence filled with the params. `type` leads to the code's entry below. Where fields \
are to blame, `errors` has for each its `field`, `code`, `params` and `message` (of a task file also the `entry`). Programs \
go by codes; a code keeps its meaning, sentences may be improved. Codes that are new may come at any time.

This page is made of the program's lists: `UPDATE_ERRORS=1 cargo test -p carillon --test it errors`.
";

/// The page.
#[must_use]
pub fn errors_page() -> String {
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "The request",
        "`code` of a problem: what is wrong with the request itself.",
        RequestRefusal::LIST,
    );
    section(&mut page, "What is there", "`code` of a problem: what is stored does not allow it.", Refusal::LIST);
    section(
        &mut page,
        "Fields",
        "`code` of an entry of `errors`; the problem's own is `invalid_fields`.",
        FieldRefusal::LIST,
    );
    page.push_str(
        "\n## Between nodes and executors\n\nNumbers on the wire (`docs/protocol.md`), not of the management API. The \
         first three digits are the HTTP status.\n\n| number | name | means |\n| --- | --- | --- |\n",
    );
    for (code, number, says) in Code::list() {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| {number} | {code:?} | {says} |");
    }
    page
}

fn section(page: &mut String, title: &str, says: &str, entries: &[Entry]) {
    let _ = write!(page, "\n## {title}\n\n{says}\n");
    for Entry { code, status, params, template, remedy } in entries {
        let _ = write!(page, "\n### {code}\n\n{status}: {template}");
        if !params.is_empty() {
            let params: Vec<_> = params.iter().map(|(name, kind)| format!("`{name}` ({kind})")).collect();
            let _ = write!(page, "\n\nParams: {}.", params.join(", "));
        }
        let _ = write!(page, "\n\n{remedy}\n");
    }
}
