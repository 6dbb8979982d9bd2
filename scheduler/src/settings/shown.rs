//! Settings as people may see them.

use crate::store::place;

/// Words in names of settings that hold secrets.
const SECRET_WORDS: [&str; 4] = ["token", "password", "secret", "key"];

/// Every setting as it is, in the order of its name.
pub(super) fn shown(config: &config::Config) -> Result<Vec<(String, String)>, config::ConfigError> {
    let mut shown = Vec::new();
    for (section, value) in config::Source::collect(config)? {
        show(section, value, &mut shown)?;
    }
    shown.sort();
    Ok(shown)
}

fn show(path: String, value: config::Value, shown: &mut Vec<(String, String)>) -> Result<(), config::ConfigError> {
    if matches!(value.kind, config::ValueKind::Table(_)) {
        for (name, value) in value.into_table()? {
            show(format!("{path}.{name}"), value, shown)?;
        }
        return Ok(());
    }
    let text = value.to_string();
    let text = match path.rsplit('.').next().unwrap_or_default() {
        "url" => place(&text),
        name if !SECRET_WORDS.iter().any(|word| name.contains(word)) => text,
        _ if text.is_empty() || text == "[]" => "(not set)".to_owned(),
        _ => "(set)".to_owned(),
    };
    shown.push((path, text));
    Ok(())
}
