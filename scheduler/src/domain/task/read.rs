//! Reading a definition from user input: all refused fields are reported together, so that a file can
//! be corrected in one go.

use super::TaskSpec;
use super::fields::unknown;
use crate::domain::field_error::FieldError;
use serde_json::{Map, Value};

/// Fields whose range depends on the kind of schedule.
const OF_SCHEDULE: [&str; 5] = ["cron", "interval_ms", "fire_at", "calendar_rule", "spread_ms"];

impl TaskSpec {
    /// This definition with `fields` in place of its own, read and checked.
    ///
    /// # Errors
    /// Every field that is unknown, of the wrong kind, or out of its range.
    pub fn read(&self, fields: &Map<String, Value>) -> Result<Self, Vec<FieldError>> {
        let (spec, mut refused) = match self.patched(fields.clone()) {
            Ok(spec) => (spec, Vec::new()),
            Err(_) => self.read_each(fields),
        };
        let is_refused = |field: &str| {
            let root = |name: &str| name.split(['.', '[']).next().unwrap_or_default().to_owned();
            let names: Vec<String> = refused.iter().map(|error| root(&error.field)).collect();
            names.contains(&root(field))
                || (names.iter().any(|name| name == "schedule") && OF_SCHEDULE.contains(&root(field).as_str()))
        };
        let out_of_range: Vec<_> = spec.check().into_iter().filter(|error| !is_refused(&error.field)).collect();
        refused.extend(out_of_range);
        if refused.is_empty() { Ok(spec) } else { Err(refused) }
    }

    /// What can be read of `fields`, and what cannot.
    fn read_each(&self, fields: &Map<String, Value>) -> (Self, Vec<FieldError>) {
        let (mut good, mut refused) = (Map::new(), Vec::new());
        for (name, value) in fields {
            if !Self::has_field(name) {
                refused.push(FieldError::new(name, unknown(name, Self::field_names())));
                continue;
            }
            let alone = |value: Value| self.patched(Map::from_iter([(name.clone(), value)]));
            // A count that is too large for its field is refused with the field's range.
            let large = || large(value).filter(|large| alone(large.clone()).is_ok());
            match alone(value.clone()).map(|_| value.clone()).or_else(|error| large().ok_or(error)) {
                Ok(value) => drop(good.insert(name.clone(), value)),
                Err(error) => refused.push(error),
            }
        }
        match self.patched(good) {
            Ok(spec) => (spec, refused),
            Err(error) => {
                refused.push(error);
                (self.clone(), refused)
            }
        }
    }
}

/// The nearest 32-bit number to a whole number beyond.
fn large(value: &Value) -> Option<Value> {
    let number = value.as_i64()?;
    let near = number.clamp(i32::MIN.into(), i32::MAX.into());
    (near != number).then(|| Value::from(near))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(fields: Value) -> Vec<String> {
        let Value::Object(fields) = fields else { panic!("an object is needed") };
        let errors = TaskSpec::default().read(&fields).map(drop).unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_refused_field_is_named_at_once() {
        let got = refused(json!({
            "name": "x", "handler": 7, "max_retries": 5_000_000_000_i64, "priority": 12, "max_retrys": 1,
            "routing": "rond", "parents": [{ "task": "a", "on": "sucess" }], "tags": "gpu", "started_at": null,
            "retry_elsewhere": "yes",
        }));
        let expected = [
            "handler: text (in quotes) is allowed, not integer `7`",
            "max_retrys: there is no such field; did you mean `max_retries`?",
            "parents[0].on: `sucess` is not allowed; `success`, `failure`, `always` is",
            "retry_elsewhere: true or false is allowed, not string \"yes\"",
            "routing: `rond` is not allowed; ",
            "started_at: there is no such field",
            "tags: a list is allowed, not string \"gpu\"",
            "priority: 1 to 9 are allowed",
            "max_retries: 0 to 1000 are allowed",
        ];
        assert_eq!(got.len(), expected.len(), "{got:#?}");
        for (got, expected) in got.iter().zip(expected) {
            assert!(got.starts_with(expected), "{got}");
        }
    }

    #[test]
    fn a_schedule_that_cannot_be_read_blames_no_other_field() {
        let got = refused(json!({ "name": "x", "handler": "h", "schedule": "crn", "calendar_rule": "next" }));
        assert_eq!(got.len(), 1, "{got:?}");
        assert!(got[0].starts_with("schedule: `crn` is not allowed; `none`, `cron`"), "{got:?}");
    }

    #[test]
    fn what_is_right_is_read() {
        let Value::Object(fields) = json!({ "name": "x", "handler": "h", "cron": "0 0 0 * * ?" }) else { panic!() };
        let spec = TaskSpec::default().read(&fields).unwrap();
        assert_eq!((spec.name.as_str(), spec.schedule), ("x", crate::domain::task::ScheduleKind::Cron));
    }
}
