//! `POST api/callback`: how runs ended.

use super::loose::{Loose, Unreadable, cut, read};
use carillon_protocol::TEXT_BYTES_MAX;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{Formatter, Result as Written};

/// Most items of one callback. Executors up to 3.3.2 send all that has ended since their last one, without a bound of their own,
/// and repeat the same list until it is taken: what is refused for its length would never come in parts.
pub const CALLBACK_ITEMS_MAX: usize = 20_000;

/// How runs ended, as an executor tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Callback {
    /// At most [`CALLBACK_ITEMS_MAX`], in the order of the body.
    pub items: Vec<CallbackItem>,
    /// Further items that do not say how which run ended.
    pub unreadable: usize,
}

/// How one run ended. The time in a callback is left out: clients disagree about what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackItem {
    /// `logId`, as [`Number::read`](crate::domain::xxljob::Number::read) takes it.
    pub number: i64,
    /// 200, 500, 502; handlers of 2.2.0 may return any.
    pub code: i32,
    /// For people: the output or the error. At most [`TEXT_BYTES_MAX`] bytes.
    pub message: String,
}

impl Callback {
    /// Reads a callback of any version: a list whose items have `executeResult` (2.2.0), `handleCode` (2.3.0 and later), or
    /// both; alone, or as the `callbackList` of an object (what follows 3.4.2).
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let items: Items = match read::<Loose<Wrapped, Items>>(body)? {
            Loose::List(items) | Loose::Map(Wrapped { callback_list: Loose::List(items) }) => items,
            Loose::Map(_) => return Err(Unreadable::Missing("callbackList")),
            _ => return Err(Unreadable::Form("a list of ended runs")),
        };
        match items.first_wrong {
            Some(why) if items.callback.items.is_empty() => {
                Err(Unreadable::Items { count: items.callback.unreadable, why })
            }
            _ => Ok(items.callback),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wrapped {
    callback_list: Loose<IgnoredAny, Items>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawItem {
    log_id: Loose,
    handle_code: Loose,
    handle_msg: Loose,
    execute_result: Loose<RawResult>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawResult {
    code: Loose,
    msg: Loose,
}

impl RawItem {
    /// What it says; else what is wrong with it.
    fn item(self) -> Result<CallbackItem, &'static str> {
        let number = self.log_id.number().ok_or("has no `logId`")?;
        let result = if let Loose::Map(result) = self.execute_result { result } else { RawResult::default() };
        // A client in Go leaves `handleCode` 0 and fills `executeResult`; nobody means 0.
        let code = self.handle_code.int().filter(|code| *code != 0).or_else(|| result.code.int());
        let code = code.ok_or("has neither `handleCode` nor `executeResult`")?;
        let message = Some(self.handle_msg.text()).filter(|text| !text.is_empty()).unwrap_or_else(|| result.msg.text());
        Ok(CallbackItem { number, code, message: cut(message, TEXT_BYTES_MAX) })
    }
}

/// The items of a callback, each reduced to what counts while the list is read.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) callback: Callback,
    first_wrong: Option<&'static str>,
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items;

    fn expecting(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str("a list of ended runs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
        let mut items = Items::default();
        let Items { callback, first_wrong } = &mut items;
        while let Some(raw) = list.next_element::<Loose<RawItem>>()? {
            if callback.items.len() + callback.unreadable >= CALLBACK_ITEMS_MAX {
                return Err(A::Error::custom(format_args!("more than {CALLBACK_ITEMS_MAX} items")));
            }
            let item = if let Loose::Map(raw) = raw { raw.item() } else { Err("is not an object") };
            match item {
                Ok(item) => callback.items.push(item),
                Err(why) => {
                    callback.unreadable += 1;
                    first_wrong.get_or_insert(why);
                }
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(body: &str) -> Vec<(i64, i32, String)> {
        let callback = Callback::read(body.as_bytes()).unwrap();
        assert_eq!(callback.unreadable, 0, "{body}");
        callback.items.into_iter().map(|item| (item.number, item.code, item.message)).collect()
    }

    #[test]
    fn every_shape_says_the_same() {
        let bodies = [
            // 2.2.0
            r#"[{"logId":1,"logDateTim":5,"executeResult":{"code":500,"msg":"m"}}]"#,
            // 2.3.0 to 3.4.2
            r#"[{"logId":1,"logDateTim":5,"handleCode":500,"handleMsg":"m"}]"#,
            // later
            r#"{"callbackList":[{"logId":1,"logDateTime":5,"handleCode":500,"handleMsg":"m"}]}"#,
            // pyxxl, Go 1.2
            r#"[{"logId":1,"handleCode":500,"handleMsg":"m","executeResult":{"code":500,"msg":"m"}}]"#,
            // Go before 1.2
            r#"[{"logId":1,"logDateTim":5,"executeResult":{"code":500,"msg":"m"},"handleCode":0,"handleMsg":""}]"#,
            // numbers as texts, unknown fields, nulls
            r#"[{"logId":"1","logDateTim":null,"handleCode":"500","handleMsg":"m","executeResult":null,"x":{"y":[1]}}]"#,
        ];
        for body in bodies {
            assert_eq!(items(body), [(1, 500, "m".to_owned())], "{body}");
        }
    }

    #[test]
    fn absent_texts_are_empty_and_other_values_are_told() {
        assert_eq!(items(r#"[{"logId":1,"handleCode":200}]"#), [(1, 200, String::new())]);
        assert_eq!(items(r#"[{"logId":1,"executeResult":{"code":0}}]"#), [(1, 0, String::new())]);
        assert_eq!(items(r#"[{"logId":1,"handleCode":200,"handleMsg":42}]"#), [(1, 200, "42".to_owned())]);
        assert_eq!(items(r#"[{"logId":1,"handleCode":200,"handleMsg":{"rows":7}}]"#), [(1, 200, "…".to_owned())]);
        assert_eq!(items("[]"), []);
        assert_eq!(items(r#"{"callbackList":[]}"#), []);
    }

    #[test]
    fn one_bad_item_does_not_hold_up_the_others() {
        let body = r#"[{"logId":1,"handleCode":200},{"handleCode":200},null,[2,200],{"logId":3},{"logId":4,"handleCode":500}]"#;
        let callback = Callback::read(body.as_bytes()).unwrap();
        assert_eq!(callback.items.iter().map(|item| item.number).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(callback.unreadable, 4);
    }

    #[test]
    fn what_is_no_callback_is_refused_with_the_cause() {
        let cases = [
            ("", "the body is empty"),
            ("\"x\"", "the body is not a list of ended runs"),
            ("{}", "`callbackList` is missing"),
            (r#"{"callbackList":{}}"#, "`callbackList` is missing"),
            (r#"{"logId":1,"handleCode":200}"#, "`callbackList` is missing"),
            (r#"[{"handleCode":200},7]"#, "none of its 2 items can be read; the first has no `logId`"),
            (r#"[{"logId":1,"handleCode":0}]"#, "none of its 1 items can be read; the first has neither"),
            ("[null]", "none of its 1 items can be read; the first is not an object"),
            ("[{]", "the body cannot be read: key must be a string at line 1 column 3"),
        ];
        for (body, why) in cases {
            let told = Callback::read(body.as_bytes()).unwrap_err().to_string();
            assert!(told.starts_with(why), "{body}: {told}");
        }
    }

    #[test]
    fn items_and_texts_are_bounded() {
        let of = |count: usize| format!("[{}]", vec![r#"{"logId":1,"handleCode":200}"#; count].join(","));
        assert_eq!(Callback::read(of(CALLBACK_ITEMS_MAX).as_bytes()).unwrap().items.len(), CALLBACK_ITEMS_MAX);
        let told = Callback::read(of(CALLBACK_ITEMS_MAX + 1).as_bytes()).unwrap_err().to_string();
        assert!(told.starts_with("the body cannot be read: more than 20000 items"), "{told}");
        let nulls = format!("[{}]", vec!["null"; CALLBACK_ITEMS_MAX + 1].join(","));
        assert!(matches!(Callback::read(nulls.as_bytes()), Err(Unreadable::Body(_))));

        let long = format!(r#"[{{"logId":1,"handleCode":500,"handleMsg":"{}"}}]"#, "é".repeat(50_000));
        let message = Callback::read(long.as_bytes()).unwrap().items.remove(0).message;
        assert!(message.len() <= TEXT_BYTES_MAX && message.ends_with("é…"));
        let deep = format!(r#"[{{"logId":1,"handleCode":500,"handleMsg":{}"#, "[".repeat(100_000));
        assert!(matches!(Callback::read(deep.as_bytes()), Err(Unreadable::Body(_))));
    }
}
