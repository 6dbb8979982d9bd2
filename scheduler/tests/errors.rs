//! The page of errors in the repository is made of the lists of codes.

#[test]
fn the_page_in_the_repository_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let made = carillon::api::errors_page();
    if std::env::var_os("UPDATE_ERRORS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/errors.md is not current; make it again: UPDATE_ERRORS=1 cargo test -p carillon --test it errors"
    );
}

#[test]
fn every_code_has_one_entry() {
    let page = carillon::api::errors_page();
    let mut codes: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let count = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), count, "a code stands twice");
    assert!(count > 150, "{count} codes");
}
