use super::*;
use proptest::prelude::*;
use serde_json::json;

const TOML: &str = r#"
version = 1
tenant = "retail"

[[task]]
name = "a"
fire_at = 2026-12-24T18:00:00+08:00
params = """
one
two"""

# The second.
[[task]]
name = "b"
parents = [{ task = "a" }]
[task.more]
n = 1
"#;

const YAML: &str = r"
version: 1
tenant: retail
task:
  - name: a
    fire_at: 2026-12-24T18:00:00+08:00
    params: |-
      one
      two

  # The second.
  - name: b
    parents: [{ task: a }]
    more: { n: 1 }
";

const JSON: &str = r#"{"version": 1, "tenant": "retail", "task": [
    {"name": "a", "fire_at": "2026-12-24T18:00:00+08:00", "params": "one\ntwo"},
    {"name": "b", "parents": [{"task": "a"}], "more": {"n": 1}}]}"#;

#[test]
fn the_three_formats_say_the_same() {
    let expected = json!({ "version": 1, "tenant": "retail", "task": [
        { "name": "a", "fire_at": "2026-12-24T18:00:00+08:00", "params": "one\ntwo" },
        { "name": "b", "parents": [{ "task": "a" }], "more": { "n": 1 } },
    ]});
    for (text, format, lines) in
        [(TOML, Format::Toml, &[5, 13][..]), (YAML, Format::Yaml, &[5, 12]), (JSON, Format::Json, &[])]
    {
        let document = Document::parse(text, format).unwrap();
        assert_eq!(Value::Object(document.fields), expected, "{format:?}");
        assert_eq!(document.lines, lines, "{format:?}");
    }
}

#[test]
fn an_unreadable_line_is_shown_with_its_number() {
    for (text, format, expected) in [
        ("version = 1\ntenant = retail\n", Format::Toml, "line 2"),
        ("version = 1\nversion = 1\n", Format::Toml, "duplicate key"),
        ("version = 1\nx = [1, nan]\n", Format::Toml, "x[1]: NaN is not allowed"),
        ("version: 1\ntask:\n  - name: [a\n", Format::Yaml, "line 3"),
        ("version: 1\ntask:\n  - cron: * * * * * ?\n", Format::Yaml, "line 3"),
        ("a: 1\na: 2\n", Format::Yaml, "duplicate"),
        ("- a\n", Format::Yaml, "line 1"),
        ("{\"version\": 1,\n}", Format::Json, "line 2"),
        ("{\"a\": {\"b\": 1,\n\"b\": 2}}", Format::Json, "`b` appears twice in one object at line 2"),
        ("[]", Format::Json, "an object is allowed"),
    ] {
        let error = Document::parse(text, format).unwrap_err();
        assert!(error.contains(expected), "{format:?}: {error}");
    }
}

#[test]
fn yaml_may_share_a_common_part() {
    let mut text = "version: 1\ntask:\n  - &common { name: a0, handler: h }\n".to_owned();
    for at in 1..5_000 {
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("  - {{ <<: *common, name: a{at} }}\n"));
    }
    let document = Document::parse(&text, Format::Yaml).unwrap();
    assert_eq!(document.fields["task"][4_999], json!({ "name": "a4999", "handler": "h" }));
    assert_eq!(document.lines.len(), 5_000);
}

#[test]
fn fields_come_in_their_order() {
    let Value::Object(task) = json!({ "zone": 1, "name": "a", "b": true, "params": "{\n}\n" }) else { panic!() };
    let text = |format| {
        Document::render(&[("version", 1.into())], std::slice::from_ref(&task), &["name", "zone"], format).unwrap()
    };
    assert_eq!(
        text(Format::Toml),
        "version = 1\n\n[[task]]\nname = \"a\"\nzone = 1\nb = true\nparams = \"\"\"\n{\n}\n\"\"\"\n"
    );
    assert_eq!(text(Format::Yaml), "version: 1\ntask:\n- name: a\n  zone: 1\n  b: true\n  params: |\n    {\n    }\n");
    assert!(text(Format::Json).starts_with("{\n  \"version\": 1,\n  \"task\": [\n    {\n      \"name\": \"a\",\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_survives(text in ".*|[ \t\r\na:#>|'\"\\\\\\-]{0,40}|(?s)[\\PC\n]{0,60}", number: i64) {
        let Value::Object(task) = json!({ "name": text, "list": [text, "no"], "in": [{ "on": text }], "n": number })
        else { panic!() };
        for format in [Format::Toml, Format::Yaml, Format::Json] {
            let file = Document::render(&[("tenant", text.clone().into())], std::slice::from_ref(&task), &["name"], format).unwrap();
            let read = Document::parse(&file, format);
            let expected = json!({ "tenant": text, "task": [task] });
            prop_assert_eq!(read.map(|read| Value::Object(read.fields)), Ok(expected), "{}", file);
        }
    }
}
