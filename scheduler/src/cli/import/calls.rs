//! What an import sends, in pieces that a node takes.

use serde_json::Value;
use std::mem;

/// Bytes of items in one call: a node takes bodies of 256 KiB, and there is something around them.
const CALL_BYTES_MAX: usize = 200 * 1024;

/// Items for one call after the other, at most `most` in each.
pub fn calls(items: Vec<Value>, most: usize) -> Vec<Vec<Value>> {
    let (mut all, mut call, mut bytes) = (Vec::new(), Vec::new(), 0);
    for item in items {
        let size = item.to_string().len() + 1;
        if call.len() == most || (bytes + size > CALL_BYTES_MAX && !call.is_empty()) {
            all.push(mem::take(&mut call));
            bytes = 0;
        }
        bytes += size;
        call.push(item);
    }
    if !call.is_empty() {
        all.push(call);
    }
    all
}

/// The beginning of a text, without what no database keeps.
pub fn first_chars(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(items: &[usize], most: usize) -> Vec<usize> {
        let items: Vec<Value> = items.iter().map(|bytes| "x".repeat(*bytes).into()).collect();
        let calls = calls(items.clone(), most);
        assert_eq!(calls.concat(), items, "each once, in their order");
        calls.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_call_has_so_many_items_and_bytes() {
        assert_eq!(sizes(&[], 2), [0; 0]);
        assert_eq!(sizes(&[1; 5], 2), [2, 2, 1]);
        assert_eq!(sizes(&[100 * 1024; 3], 500), [1, 1, 1], "with what JSON adds");
        assert_eq!(sizes(&[60 * 1024; 5], 500), [3, 2]);
        assert_eq!(
            sizes(&[1, 300 * 1024, 1], 500),
            [1, 1, 1],
            "what is too large goes by itself, and is refused for that"
        );
    }
}
