//! Why what is there does not allow a request.

use super::refusals;

refusals! {
    /// What is there does not allow it.
    Refusal

    NotFound "not_found" { kind: String, name: String } 404
        "there is no {kind} `{name}`"
        "Correct the name or id. What another tenant owns is as good as absent for those who may not see it."
    NameTaken "name_taken" { kind: String, name: String } 409
        "there is a {kind} `{name}` already"
        "Choose another name, or edit what has it."
    ChangedMeanwhile "changed_meanwhile" { kind: String, name: String } 409
        "{kind} `{name}` was changed meanwhile; read it again"
        "Read it again, and repeat the change on what is there now."
}
