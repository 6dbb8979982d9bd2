//! The reference page: the OpenAPI document for people. The browser renders it from the document that
//! the node serves; nothing comes from anywhere else.

use super::needs::Needs;
use super::operation::{Operation, get};
use actix_web::HttpResponse;
use actix_web::http::header;

const PAGE: &str = include_str!("reference/page.html");
const SCRIPT: &str = include_str!("reference/page.js");
const STYLE: &str = include_str!("reference/page.css");

/// What the page may load: its own files, and the document.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/reference", "show_reference", Needs::Nothing, "This document as a page")
            .answers_as(200, "text/html", "The page")
            .to(async || file("text/html; charset=utf-8", PAGE)),
        get("/reference/page.js", "show_reference_script", Needs::Nothing, "The page's script")
            .answers_as(200, "text/javascript", "The script")
            .to(async || file("text/javascript; charset=utf-8", SCRIPT)),
        get("/reference/page.css", "show_reference_style", Needs::Nothing, "The page's style")
            .answers_as(200, "text/css", "The style")
            .to(async || file("text/css; charset=utf-8", STYLE)),
    ]
}

fn file(kind: &str, text: &'static str) -> HttpResponse {
    let policy = (header::CONTENT_SECURITY_POLICY, POLICY);
    HttpResponse::Ok().content_type(kind).insert_header(policy).body(text)
}
