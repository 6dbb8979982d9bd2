//! What an executor answers.

use super::callback::Items;
use super::loose::{Loose, Unreadable, cut, read};
use carillon_protocol::TEXT_BYTES_MAX;
use serde::Deserialize;

/// The answer of an executor to anything that it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 200 for a success.
    pub code: i32,
    /// What is wrong, or `Success`, or empty. At most [`TEXT_BYTES_MAX`] bytes.
    pub msg: String,
    /// What was asked for.
    pub content: Content,
}

/// `content` (until 3.2.0, and other languages) or `data` (from 3.3.0 on) of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Absent or null.
    Nothing,
    /// A remark. At most [`TEXT_BYTES_MAX`] bytes.
    Text(String),
    /// The answer to `/log`.
    Page(LogPage),
}

/// What a run logged, from a line on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// Its first line, as it was asked for; 0 when the executor does not say.
    pub from_line: i32,
    /// Its last line; of a page without lines clients say different things.
    pub to_line: i32,
    /// The lines. Only the size of the reply bounds them: they are read on from where they end.
    pub text: String,
    /// Whether nothing comes after it. Java says so only if there is no file.
    pub is_end: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawReply {
    code: Loose,
    msg: Loose,
    content: Loose<RawPage>,
    data: Loose<RawPage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPage {
    from_line_num: Loose,
    to_line_num: Loose,
    log_content: Loose,
    is_end: Loose,
}

impl Reply {
    /// Reads the reply of any version; also a refusal of Go, which has the form of a callback.
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        match read::<Loose<RawReply, Items>>(body)? {
            Loose::Map(raw) => {
                let code = raw.code.int().ok_or(Unreadable::Missing("code"))?;
                let content = if matches!(raw.content, Loose::Nothing) { raw.data } else { raw.content };
                Ok(Self { code, msg: cut(raw.msg.text(), TEXT_BYTES_MAX), content: Content::of(content) })
            }
            Loose::List(items) => {
                let first = items.callback.items.into_iter().next().ok_or(Unreadable::Missing("code"))?;
                Ok(Self { code: first.code, msg: first.message, content: Content::Nothing })
            }
            _ => Err(Unreadable::Form("a reply of an executor")),
        }
    }

    /// Whether it is a success.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.code == super::CODE_OK
    }
}

impl Content {
    fn of(raw: Loose<RawPage>) -> Self {
        let line = |number: Loose| number.int().unwrap_or(0).max(0);
        match raw {
            Loose::Nothing => Self::Nothing,
            Loose::Map(page) => Self::Page(LogPage {
                from_line: line(page.from_line_num),
                to_line: line(page.to_line_num),
                text: page.log_content.text(),
                is_end: page.is_end.flag(),
            }),
            remark => Self::Text(cut(remark.text(), TEXT_BYTES_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Reply {
        Reply::read(body.as_bytes()).unwrap()
    }

    #[test]
    fn both_envelopes_are_read_with_and_without_nulls() {
        for body in [
            r#"{"code":200}"#,
            r#"{"code":200,"msg":null,"content":null}"#,
            r#"{"code":"200","msg":"","data":null,"success":true}"#,
        ] {
            assert_eq!(read(body), Reply { code: 200, msg: String::new(), content: Content::Nothing }, "{body}");
        }
        let remark = Content::Text("job thread already killed.".to_owned());
        for field in ["content", "data"] {
            let body = format!(r#"{{"code":200,"msg":"Success","{field}":"job thread already killed."}}"#);
            assert_eq!(read(&body), Reply { code: 200, msg: "Success".to_owned(), content: remark.clone() });
        }
    }

    #[test]
    fn a_page_is_read_from_either_field() {
        let page = r#"{"fromLineNum":1,"toLineNum":"2","logContent":"a\nb\n","isEnd":true}"#;
        let expected = LogPage { from_line: 1, to_line: 2, text: "a\nb\n".to_owned(), is_end: true };
        for fields in
            ["\"content\":PAGE", "\"data\":PAGE", "\"content\":PAGE,\"data\":PAGE", "\"content\":null,\"data\":PAGE"]
        {
            let body = format!(r#"{{"code":200,{}}}"#, fields.replace("PAGE", page));
            assert_eq!(read(&body).content, Content::Page(expected.clone()), "{fields}");
        }
        let empty = read(r#"{"code":200,"content":{"toLineNum":-4,"logContent":null}}"#);
        assert_eq!(empty.content, Content::Page(LogPage::default()));
    }

    #[test]
    fn a_refusal_of_go_has_the_form_of_a_callback() {
        let body = r#"[{"logId":99,"logDateTim":5,"executeResult":{"code":500,"msg":"Task not registered"},
            "handleCode":0,"handleMsg":""}]"#;
        let expected = Reply { code: 500, msg: "Task not registered".to_owned(), content: Content::Nothing };
        assert_eq!(read(body), expected);
    }

    #[test]
    fn what_is_no_reply_is_refused_with_the_cause() {
        let cases = [
            ("<html>", "the body cannot be read: expected value at line 1 column 1"),
            ("", "the body is empty"),
            ("{}", "`code` is missing"),
            (r#"{"code":null}"#, "`code` is missing"),
            ("[]", "`code` is missing"),
            ("200", "the body is not a reply of an executor"),
        ];
        for (body, why) in cases {
            assert_eq!(Reply::read(body.as_bytes()).unwrap_err().to_string(), why, "{body}");
        }
    }

    #[test]
    fn a_long_message_is_cut_and_a_log_is_not() {
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let refused = read(&format!(r#"{{"code":500,"msg":"{long}"}}"#));
        assert_eq!((refused.msg.len(), refused.msg.ends_with("x…")), (TEXT_BYTES_MAX, true));
        let Content::Page(page) = read(&format!(r#"{{"code":200,"data":{{"logContent":"{long}"}}}}"#)).content else {
            panic!("a page")
        };
        assert_eq!(page.text, long);
    }
}
