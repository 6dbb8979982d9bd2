//! The OpenAPI document in the repository is the one that nodes serve.

#[test]
fn the_document_in_the_repository_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let made = carillon::api::openapi_json().unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/openapi.json is not current; make it anew: UPDATE_OPENAPI=1 cargo test -p carillon --test openapi"
    );
}
