//! What is wrong with a cron expression, as a refusal; a crontab line is told what it would be here.

use super::FieldRefusal;
use crate::domain::cron::{CronError, CronSchedule, Reason};

/// Why `expression` is refused.
#[must_use]
pub fn wrong_cron(expression: &str, error: &CronError) -> FieldRefusal {
    let (part, allowed) = (error.field.to_string(), error.field.allowed().to_owned());
    let column = error.column as i64;
    match error.reason {
        Reason::TooFewFields(given) => match from_crontab(expression) {
            Some(expression) => FieldRefusal::CronFiveFields { expression },
            None => FieldRefusal::CronTooFewFields { part, column, allowed, given: given as i64 },
        },
        Reason::TooManyFields => FieldRefusal::CronTooManyFields { part, column, allowed },
        Reason::Unexpected(given) => {
            FieldRefusal::CronUnexpected { part, column, allowed, given: format!("{given:?}") }
        }
        Reason::Missing => FieldRefusal::CronMissing { part, column, allowed },
        Reason::OutOfRange(given, least, most) => {
            let (given, least, most) = (given.into(), least.into(), most.into());
            FieldRefusal::CronOutOfRange { part, column, allowed, given, least, most }
        }
        Reason::Step(given, most) => {
            FieldRefusal::CronStep { part, column, allowed, given: given.into(), most: most.into() }
        }
        Reason::YearsReversed => FieldRefusal::CronYearsReversed { part, column, allowed },
        Reason::UnknownName => FieldRefusal::CronUnknownName { part, column, allowed },
        Reason::MixedRange => FieldRefusal::CronMixedRange { part, column, allowed },
        Reason::StepAfterName => FieldRefusal::CronStepAfterName { part, column, allowed },
        Reason::NotAlone => FieldRefusal::CronNotAlone { part, column, allowed },
        Reason::BothDays => FieldRefusal::CronBothDays { part, column, allowed },
        Reason::NoDays => FieldRefusal::CronNoDays { part, column, allowed },
    }
}

/// The same schedule as a crontab line of five fields, if it has one expression here: cron fires on either
/// day field where both are given, which no expression says.
fn from_crontab(line: &str) -> Option<String> {
    let [minute, hour, day, month, week] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let (day, week) = match (day, week) {
        (day, "*") => (day, "?".to_owned()),
        ("*", week) => ("?", shifted(week)?),
        _ => return None,
    };
    let expression = format!("0 {minute} {hour} {day} {month} {week}");
    CronSchedule::parse(&expression).is_ok().then_some(expression)
}

/// Days of the week, which crontab counts from Sunday = 0 (or 7) and an expression from 1; names stay.
fn shifted(week: &str) -> Option<String> {
    let day = |text: &str| match text.parse::<u32>() {
        Ok(number @ 0..=7) => Some((number % 7 + 1).to_string()),
        Ok(_) => None,
        Err(_) => Some(text.to_owned()),
    };
    let part = |part: &str| {
        let (days, step) = part.split_once('/').map_or((part, None), |(days, step)| (days, Some(step)));
        let days = days.split('-').map(day).collect::<Option<Vec<_>>>()?.join("-");
        Some(step.map_or(days.clone(), |step| format!("{days}/{step}")))
    };
    Some(week.split(',').map(part).collect::<Option<Vec<_>>>()?.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crontab_line_is_answered_with_its_equivalent() {
        for (line, expected) in [
            ("0 3 * * *", Some("0 0 3 * * ?")),
            ("*/5 * * * *", Some("0 */5 * * * ?")),
            ("30 6 1 * *", Some("0 30 6 1 * ?")),
            ("0 9 * * 1-5", Some("0 0 9 ? * 2-6")),
            ("0 9 * * 0,7", Some("0 0 9 ? * 1,1")),
            ("0 9 * * mon-fri", Some("0 0 9 ? * mon-fri")),
            ("0 9 1 * 1", None),
            ("0 9 * * 8", None),
            ("0 25 * * *", None),
            ("0 9 * *", None),
        ] {
            assert_eq!(from_crontab(line).as_deref(), expected, "{line}");
        }
        let error = CronSchedule::parse("0 3 * * *").unwrap_err();
        let message = wrong_cron("0 3 * * *", &error).to_string();
        assert!(message.contains("five fields") && message.contains("`0 0 3 * * ?`"), "{message}");
    }
}
