//! What executors of xxl-job (2.2.0 to 3.4.2, and clients in other languages) send and expect, as pure values: `number` names
//! a run on their wire, `wire` has the bodies both ways, `said` knows what their texts mean, `library` how they
//! differ besides.
//!
//! xxl-job's words are used here and nowhere else in `domain/`.

pub mod number;
pub mod wire;

pub mod said;

pub mod library;

pub use library::Library;
pub use number::Number;
