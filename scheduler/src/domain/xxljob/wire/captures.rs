//! What real processes of xxl-job sent and answered, as it was recorded (`tests/fixtures/xxl-job-wire`).

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt::{Formatter, Result as Written};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../tests/fixtures/xxl-job-wire/", $name))
    };
}

/// The recordings of one version.
pub(super) struct Version {
    pub(super) name: &'static str,
    admin_to_executor: &'static str,
    executor_to_admin: &'static str,
    endpoints: &'static str,
}

pub(super) const VERSIONS: [Version; 2] = [
    Version {
        name: "2.5.0",
        admin_to_executor: fixture!("admin-to-executor.2.5.0.txt"),
        executor_to_admin: fixture!("executor-to-admin.2.5.0.txt"),
        endpoints: fixture!("executor-endpoints.2.5.0.txt"),
    },
    Version {
        name: "3.4.2",
        admin_to_executor: fixture!("admin-to-executor.3.4.2.txt"),
        executor_to_admin: fixture!("executor-to-admin.3.4.2.txt"),
        endpoints: fixture!("executor-endpoints.3.4.2.txt"),
    },
];

/// A request or a reply.
pub(super) struct Capture {
    /// Of a request its path; of a reply the request that it answers, shortened.
    pub(super) of: &'static str,
    /// Header lines.
    pub(super) head: Vec<&'static str>,
    pub(super) body: &'static str,
}

impl Version {
    /// What the admin asks of an executor.
    pub(super) fn asked(&self) -> Vec<Capture> {
        requests(self.admin_to_executor)
    }

    /// What the executor tells the admin.
    pub(super) fn told(&self) -> Vec<Capture> {
        requests(self.executor_to_admin)
    }

    /// What the executor answers.
    pub(super) fn answers(&self) -> Vec<Capture> {
        let of_post = |(title, rest): (&'static str, &'static str)| Capture {
            of: title.trim_end(),
            head: head(rest),
            body: body(rest),
        };
        blocks(self.endpoints, "## ").map(of_post).collect()
    }
}

fn requests(text: &'static str) -> Vec<Capture> {
    let request = |(_, rest): (&'static str, &'static str)| {
        let path = rest.split(' ').nth(1).unwrap();
        Capture { of: path, head: head(rest), body: body(rest) }
    };
    blocks(text, ">>> ").map(request).collect()
}

/// Parts that begin with a line that starts with `mark`: that line without it, and the rest.
fn blocks(text: &'static str, mark: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let starts = move |(at, _): &(usize, &str)| *at == 0 || text[..*at].ends_with('\n');
    let mut starts: Vec<usize> = text.match_indices(mark).filter(starts).map(|(at, _)| at).collect();
    starts.push(text.len());
    let parts: Vec<_> = starts.windows(2).map(|ends| &text[ends[0] + mark.len()..ends[1]]).collect();
    parts.into_iter().map(|part| part.split_once('\n').unwrap())
}

fn head(rest: &'static str) -> Vec<&'static str> {
    rest.split_once("\n\n").unwrap().0.lines().skip(1).collect()
}

fn body(rest: &'static str) -> &'static str {
    rest.split_once("\n\n").unwrap().1.trim_end()
}

/// The fields of an object in their order.
#[derive(Debug, PartialEq)]
pub(super) struct Fields(pub(super) Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut Formatter<'_>) -> Written {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
