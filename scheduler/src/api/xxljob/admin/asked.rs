//! What a request asks: the parameters of its query, and those of its body, a form or a JSON object.

use super::reply::{Dialect, Refused};
use crate::api::body::{BYTES_MAX, BodyError, read};
use crate::domain::xxljob::ForeignJob;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpRequest, web};
use serde_json::{Map, Value};
use url::form_urlencoded;

/// Texts of a job, by their names.
const TEXTS: [&str; 15] = [
    "jobCron",
    "jobDesc",
    "author",
    "alarmEmail",
    "scheduleType",
    "scheduleConf",
    "misfireStrategy",
    "executorRouteStrategy",
    "executorHandler",
    "executorParam",
    "executorBlockStrategy",
    "glueType",
    "glueSource",
    "glueRemark",
    "childJobId",
];

/// Numbers of a job, by their names.
const NUMBERS: [&str; 4] = ["id", "jobGroup", "executorTimeout", "executorFailRetryCount"];

/// Names under which a form of 3.x sends ids.
const IDS: [&str; 2] = ["ids[]", "ids"];

/// The parameters of a request. What comes twice has its last value, and the body goes before the query.
pub struct Asked {
    fields: Map<String, Value>,
}

impl Asked {
    /// Reads them; bodies are bounded as those of the API are.
    pub async fn read(request: &HttpRequest, payload: web::Payload) -> Result<Self, Refused> {
        let mut fields = Map::new();
        add_pairs(&mut fields, request.query_string().as_bytes());
        let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let body = read(payload, BYTES_MAX).await.map_err(unread)?;
        match kind.as_str() {
            _ if body.is_empty() => {}
            "application/json" => match serde_json::from_slice(&body) {
                Ok(Value::Object(body)) => fields.extend(body),
                Ok(_) => return Err(Refused::new("the body must be a JSON object")),
                Err(error) => return Err(Refused::new(format!("the body is no JSON: {error}"))),
            },
            "application/x-www-form-urlencoded" => add_pairs(&mut fields, &body),
            _ => {
                return Err(Refused::new(
                    "send the body as application/json or application/x-www-form-urlencoded, and name it in content-type",
                ));
            }
        }
        fields.retain(|_, value| !value.is_null());
        Ok(Self { fields })
    }

    #[cfg(test)]
    pub fn of(fields: Value) -> Self {
        let Value::Object(fields) = fields else { panic!("fields are an object") };
        Self { fields }
    }

    /// The envelope that whoever asks so expects.
    pub fn dialect(&self) -> Dialect {
        let is_later = ["offset", "pagesize"].iter().chain(&IDS).any(|name| self.fields.contains_key(*name));
        if is_later { Dialect::Data } else { Dialect::Content }
    }

    /// Whether a parameter is there, also an empty one.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A text, as it is.
    pub fn text(&self, name: &str) -> Result<Option<String>, Refused> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Some(value.to_string())),
            Some(_) => Err(Refused::field(name, "it must be a text")),
        }
    }

    /// A text to search for; an empty one searches for nothing.
    pub fn searched(&self, name: &str) -> Result<Option<String>, Refused> {
        const CHARS_MAX: usize = 100;
        let text = self.text(name)?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if text.as_ref().is_some_and(|text| text.chars().count() > CHARS_MAX) {
            return Err(Refused::field(name, format!("at most {CHARS_MAX} characters are allowed")));
        }
        Ok(text)
    }

    /// A whole number; an empty text is none.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Refused> {
        let number = match self.fields.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_i64(),
        };
        number.map(Some).ok_or_else(|| Refused::field(name, "it must be a whole number"))
    }

    /// The number of one thing; required.
    pub fn id(&self) -> Result<i64, Refused> {
        let Some(name) = IDS.iter().find(|name| self.has(name)) else {
            return self.number("id")?.ok_or_else(|| Refused::field("id", "it is required"));
        };
        match self.fields.get(*name) {
            Some(Value::Array(ids)) if ids.len() == 1 => {
                let id = &ids[0];
                let number = id.as_i64().or_else(|| id.as_str()?.trim().parse().ok());
                number.ok_or_else(|| Refused::field(name, "it must be a whole number"))
            }
            Some(Value::Array(_)) => Err(Refused::field(name, "send exactly one")),
            _ => self.number(name)?.ok_or_else(|| Refused::field(name, "it is required")),
        }
    }

    /// The job that it describes; what a job does not have is left out.
    pub fn job(&self) -> Result<ForeignJob, Refused> {
        let mut job = Map::new();
        for name in TEXTS {
            if let Some(text) = self.text(name)? {
                job.insert(name.to_owned(), text.into());
            }
        }
        for name in NUMBERS {
            if let Some(number) = self.number(name)? {
                job.insert(name.to_owned(), number.into());
            }
        }
        serde_json::from_value(Value::Object(job)).map_err(|error| Refused::new(error.to_string()))
    }
}

/// Adds the pairs of a query or a form.
fn add_pairs(fields: &mut Map<String, Value>, pairs: &[u8]) {
    for (name, value) in form_urlencoded::parse(pairs) {
        let value = Value::from(value.into_owned());
        if !IDS.contains(&&*name) {
            fields.insert(name.into_owned(), value);
            continue;
        }
        match fields.get_mut(&*name) {
            Some(Value::Array(ids)) => ids.push(value),
            _ => drop(fields.insert(name.into_owned(), Value::Array(vec![value]))),
        }
    }
}

fn unread(error: BodyError) -> Refused {
    match error {
        BodyError::TooLarge => Refused::new(format!("the body is larger than {BYTES_MAX} bytes")).closing(),
        BodyError::TooSlow => Refused::new("the body did not arrive in time").closing(),
        BodyError::Broken(detail) => Refused::new(format!("the body cannot be read: {detail}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_and_a_json_object_are_the_same_job() {
        let mut form = Map::new();
        add_pairs(&mut form, b"jobGroup=2&jobDesc=a+b&executorTimeout=&executorFailRetryCount=3&x=1");
        let body = json!({
            "jobGroup": 2, "jobDesc": "a b", "executorFailRetryCount": "3", "addTime": ["no field of a job that is read"],
        });
        let expected = ForeignJob {
            job_group: 2,
            job_desc: "a b".to_owned(),
            executor_fail_retry_count: 3,
            ..ForeignJob::default()
        };
        assert_eq!(Asked { fields: form }.job().unwrap(), expected);
        assert_eq!(Asked::of(body).job().unwrap(), expected);
        let scheduled = Asked::of(json!({ "scheduleType": "CRON", "executorParam": 7, "id": "9" })).job().unwrap();
        assert_eq!((scheduled.schedule_type.as_deref(), scheduled.executor_param.as_str()), (Some("CRON"), "7"));
        assert_eq!(scheduled.id, 9);
    }

    #[test]
    fn what_is_no_text_or_number_is_named() {
        for (body, name) in [
            (json!({ "jobDesc": { "a": 1 } }), "jobDesc: "),
            (json!({ "jobGroup": "two" }), "jobGroup: "),
            (json!({ "jobGroup": 1.5 }), "jobGroup: "),
            (json!({ "executorTimeout": "1s" }), "executorTimeout: "),
        ] {
            assert!(format!("{:?}", Asked::of(body).job().unwrap_err()).contains(name), "{name}");
        }
    }

    #[test]
    fn one_id_comes_in_three_ways() {
        let form = |text: &[u8]| {
            let mut fields = Map::new();
            add_pairs(&mut fields, text);
            Asked { fields }
        };
        assert_eq!(form(b"id=7").id().unwrap(), 7);
        assert_eq!(form(b"ids%5B%5D=7").id().unwrap(), 7);
        assert_eq!(Asked::of(json!({ "ids": [7] })).id().unwrap(), 7);
        assert_eq!(Asked::of(json!({ "ids": ["7"] })).id().unwrap(), 7);
        for wrong in [form(b"ids=1&ids=2"), form(b""), form(b"id="), Asked::of(json!({ "ids": [] }))] {
            assert!(wrong.id().is_err());
        }
        assert_eq!(form(b"ids=7").dialect(), Dialect::Data);
        assert_eq!(form(b"id=7").dialect(), Dialect::Content);
        assert_eq!(form(b"offset=0").dialect(), Dialect::Data);
    }
}
