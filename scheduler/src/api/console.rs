//! The web console. Its files are part of the binary (`build.rs` puts them there). A request costs only memory and
//! network, no disk access, so it is exempt from rate limits.

use super::problem::Problem;
use super::refusal::RequestRefusal;
use actix_web::http::Method;
use actix_web::http::header::{self, AcceptEncoding, Encoding, EntityTag, Header, HeaderName, IfNoneMatch};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rust_embed::EmbeddedFile;
use std::borrow::Cow;
use std::collections::HashMap;

// `Embedded`: what was there when the binary was built; `<file>.gz` beside a file is the same compressed.
include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The single page: every path without a route of its own leads to it.
const PAGE: &str = "index.html";

/// Served instead by a binary without a console.
const UNBUILT: &str = include_str!("console/unbuilt.html");

/// Where the nonce of an answer goes in the page.
const NONCE_PLACE: &str = "%CSP_NONCE%";

/// Random bytes of a nonce.
const NONCE_BYTES: usize = 16;

/// Files whose names change with what they hold.
const ASSETS: &str = "/assets/";

/// First parts of paths that are not the console's.
const SERVED_PREFIXES: [&str; 5] = ["api", "openapi", "healthz", "readyz", "metrics"];

const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_EACH_TIME: &str = "no-cache";
const HTML: &str = "text/html; charset=utf-8";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// What a node serves to browsers.
pub struct Console {
    /// By path, without the first slash.
    files: HashMap<String, File>,
    /// The page, cut where nonces go; `None` in a binary without a console.
    page: Option<Vec<String>>,
}

/// A file as it goes out.
struct File {
    plain: Bytes,
    gzip: Option<Bytes>,
    kind: &'static str,
    /// Hash of what it holds.
    hash: String,
}

impl Console {
    /// What this binary holds.
    pub fn embedded() -> Self {
        let read = |path: Cow<'static, str>| {
            let EmbeddedFile { data, metadata, .. } = Embedded::get(&path)?;
            Some((path.into_owned(), bytes(data), metadata.sha256_hash()))
        };
        Self::of(Embedded::iter().filter_map(read))
    }

    /// Made of paths, what is there, and its hash.
    fn of(embedded: impl Iterator<Item = (String, Bytes, [u8; 32])>) -> Self {
        let (mut compressed, mut plain) = (HashMap::new(), HashMap::new());
        for (path, data, hash) in embedded {
            match path.strip_suffix(".gz") {
                Some(of) => drop(compressed.insert(of.to_owned(), data)),
                None => drop(plain.insert(path, (data, hash))),
            }
        }
        let cut = |page: Bytes| String::from_utf8_lossy(&page).split(NONCE_PLACE).map(str::to_owned).collect();
        let page = plain.remove(PAGE).map(|(page, _)| cut(page));
        let file = |(path, (plain, hash)): (String, (Bytes, [u8; 32]))| {
            let gzip = compressed.remove(&path);
            let file = File { plain, gzip, kind: kind_of(&path), hash: URL_SAFE_NO_PAD.encode(hash) };
            (path, file)
        };
        Self { files: plain.into_iter().map(file).collect(), page }
    }

    /// Whether this binary has a console, and not only the page that says how to build it.
    pub fn is_there(&self) -> bool {
        self.page.is_some()
    }

    /// The response to a browser that opens `path`.
    fn look(&self, path: &str, request: &HttpRequest) -> Result<HttpResponse, Problem> {
        let is_asset = path.starts_with(ASSETS);
        if let Some(file) = path.strip_prefix('/').and_then(|name| self.files.get(name)) {
            return Ok(file.answer(request, if is_asset { FOR_EVER } else { ASK_EACH_TIME }));
        }
        match &self.page {
            // Answering a script's path with a page would hide the error.
            _ if is_asset => Err(nowhere()),
            Some(page) => answer_page(page),
            // Also where old links lead.
            None => Ok(HttpResponse::Ok().content_type(HTML).body(UNBUILT)),
        }
    }
}

impl File {
    fn answer(&self, request: &HttpRequest, cache: &'static str) -> HttpResponse {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(request));
        let tag = EntityTag::new_strong(if gzip.is_some() { format!("{}-gzip", self.hash) } else { self.hash.clone() });
        let is_known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(&tag)),
            Err(_) => false,
        };
        let mut answer = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        answer.insert_header((header::CACHE_CONTROL, cache)).insert_header(header::ETag(tag));
        if self.gzip.is_some() {
            answer.insert_header((header::VARY, header::ACCEPT_ENCODING.as_str()));
        }
        if is_known {
            return answer.finish();
        }
        if gzip.is_some() {
            answer.insert_header((header::CONTENT_ENCODING, "gzip"));
        }
        answer.content_type(self.kind).body(gzip.unwrap_or(&self.plain).clone())
    }
}

/// Answers every path that no other route handles.
pub async fn answer(request: HttpRequest, console: web::Data<Console>) -> Result<HttpResponse, Problem> {
    let path = request.uri().path();
    let only_looks = [Method::GET, Method::HEAD].contains(request.method());
    if !only_looks || !is_plain(path) || is_elsewhere(path) {
        return Err(nowhere());
    }
    console.look(path, &request)
}

fn nowhere() -> Problem {
    RequestRefusal::NoRoute.into()
}

/// Whether a path is free of tricks: nothing is looked up on a disk, and attempts to climb directories reveal nothing.
fn is_plain(path: &str) -> bool {
    let undone = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    !undone.contains("%00") && undone.split(['/', '\\']).all(|part| part != "." && part != "..")
}

/// Whether the path belongs to clients other than browsers, which must not get a page.
fn is_elsewhere(path: &str) -> bool {
    path.split('/').nth(1).is_some_and(|first| SERVED_PREFIXES.contains(&first))
}

fn takes_gzip(request: &HttpRequest) -> bool {
    let asked = AcceptEncoding::parse(request).ok();
    let best = asked.and_then(|asked| asked.negotiate([Encoding::gzip(), Encoding::identity()].iter()));
    best == Some(Encoding::gzip())
}

/// The page, with a nonce used for this response only.
fn answer_page(page: &[String]) -> Result<HttpResponse, Problem> {
    let mut random = [0; NONCE_BYTES];
    getrandom::fill(&mut random).map_err(Problem::internal)?;
    let nonce = URL_SAFE_NO_PAD.encode(random);
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    Ok(HttpResponse::Ok()
        .content_type(HTML)
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .insert_header((OPENER_POLICY, "same-origin"))
        .body(page.join(&nonce)))
}

fn bytes(data: Cow<'static, [u8]>) -> Bytes {
    match data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => Bytes::from(data),
    }
}

/// Browsers are told not to guess.
fn kind_of(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "css" => "text/css; charset=utf-8",
        "html" => HTML,
        "ico" => "image/x-icon",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "webmanifest" => "application/manifest+json",
        "webp" => "image/webp",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{Console, answer};
    use actix_web::http::StatusCode;
    use actix_web::test::{TestRequest, call_service, init_service, read_body};
    use actix_web::web::Bytes;
    use actix_web::{App, web};

    fn console(files: &[(&str, &'static str)]) -> web::Data<Console> {
        let files = files.iter().map(|(path, data)| ((*path).to_owned(), Bytes::from(*data), [1; 32]));
        web::Data::new(Console::of(files))
    }

    /// Status and body.
    async fn get(console: &web::Data<Console>, request: TestRequest) -> (StatusCode, String) {
        let app = init_service(App::new().app_data(console.clone()).default_service(web::to(answer))).await;
        let answer = call_service(&app, request.to_request()).await;
        let status = answer.status();
        (status, String::from_utf8(read_body(answer).await.to_vec()).unwrap())
    }

    #[actix_web::test]
    async fn without_a_console_a_page_says_how_to_build_it() {
        let none = console(&[]);
        assert!(!none.is_there());
        for path in ["/", "/tasks/12"] {
            let (status, page) = get(&none, TestRequest::get().uri(path)).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert!(page.contains("npm ci &amp;&amp; npm run build") && page.contains("控制台"), "{page}");
            assert!(!page.contains("<script") && !page.contains("<style"), "{page}");
        }
        for path in ["/assets/a.js", "/api/v1/x"] {
            assert_eq!(get(&none, TestRequest::get().uri(path)).await.0, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[actix_web::test]
    async fn paths_lead_to_the_page_a_file_or_nowhere() {
        let some =
            console(&[("index.html", "<p>%CSP_NONCE%</p>"), ("assets/a-1.js", "plain"), ("assets/a-1.js.gz", "gz")]);
        for path in ["/", "/index.html", "/tasks/12?x=1", "/tasks/%E6%9C%88", "/a..b", "/openapis", "/retail.eu"] {
            let (status, page) = get(&some, TestRequest::get().uri(path)).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            // 16 bytes are 22 characters.
            assert!(page.starts_with("<p>") && page.len() == "<p></p>".len() + 22, "{path}: {page}");
        }
        for path in [
            "/api",
            "/api/",
            "/api/v2/x",
            "/openapi",
            "/openapi/x",
            "/healthz/x",
            "/readyz/",
            "/metrics/x",
            "/assets/",
            "/assets/b.js",
            "/assets/a-1.js.gz",
            "/assets/../index.html",
            "/..",
            "/../etc/passwd",
            "/%2e%2E/etc/passwd",
            "/a/..%2f..%2fb",
            "/a%5c..%5cb",
            "/./a",
            "/a%00",
        ] {
            assert_eq!(get(&some, TestRequest::get().uri(path)).await.0, StatusCode::NOT_FOUND, "{path}");
        }
        for request in [TestRequest::post(), TestRequest::put(), TestRequest::delete()] {
            assert_eq!(get(&some, request.uri("/")).await.0, StatusCode::NOT_FOUND);
        }
    }

    #[actix_web::test]
    async fn clients_without_gzip_get_plain_bodies() {
        let some = console(&[("index.html", ""), ("assets/a-1.js", "plain"), ("assets/a-1.js.gz", "gz")]);
        for (accepts, body) in [
            ("gzip, deflate, br, zstd", "gz"),
            ("br;q=1, gzip;q=0.1", "gz"),
            ("gzip;q=0", "plain"),
            ("identity", "plain"),
            ("br", "plain"),
            ("", "plain"),
        ] {
            let request = TestRequest::get().uri("/assets/a-1.js").insert_header(("accept-encoding", accepts));
            assert_eq!(get(&some, request).await, (StatusCode::OK, body.to_owned()), "{accepts}");
        }
        assert_eq!(get(&some, TestRequest::get().uri("/assets/a-1.js")).await.1, "plain");
    }
}
