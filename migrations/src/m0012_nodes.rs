//! Ends the nodes that go on beside a migration without asking which schema they can work with: those of 0.1.

/// A node renews its heartbeat under its incarnation. One that finds another there ends, and 0.1 refuses to start over a schema
/// with steps that it does not know.
pub const END_EARLIER_NODES: &str = "UPDATE node SET incarnation = 'ended by an upgrade' WHERE left_at = 0";
