//! The OpenAPI document, generated from the operations. It is served at `/api/v1/openapi.json` and kept as
//! `docs/openapi.json`; a test compares the two.

use super::needs::Needs;
use super::operation::Operation;
use super::problem::ProblemDocument;
use actix_web::http::Method;
use std::collections::BTreeMap;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::{AllOf, ComponentsBuilder, Schema};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response, ResponseBuilder,
    ServerBuilder,
};
use utoipa::{PartialSchema, ToSchema};

/// The document of these operations.
pub fn document(operations: Vec<Operation>) -> OpenApi {
    let mut schemas: BTreeMap<String, RefOr<Schema>> = BTreeMap::new();
    let mut paths = Paths::new();
    let mut problem = Vec::new();
    ProblemDocument::schemas(&mut problem);
    problem.push((ProblemDocument::name().into_owned(), ProblemDocument::schema()));
    schemas.extend(problem);
    for operation in operations {
        let (path, method) = (operation.path, operation.http_method());
        schemas.extend(operation.schemas.iter().cloned());
        paths.add_path_operation(path, vec![method], finished(operation));
    }
    let known = schemas.clone();
    for schema in schemas.values_mut() {
        merge(schema, &known);
    }
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .responses_from_iter(REFUSALS.map(|(_, name, description)| (name, refusal(description))))
        .security_scheme("token", SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build()))
        .security_scheme(
            "session",
            SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(super::guard::SESSION_COOKIE))),
        );
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("carillon")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "The management API. Each operation names the permission that it needs (`x-permission`): `public` \
                     for none, `signed_in` for any login, `session` for the caller's own account, which tokens cannot \
                     manage. Ids are strings, times are epoch milliseconds, errors are problem details (RFC 9457).",
                ))
                .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build())),
        )
        .servers(Some([ServerBuilder::new().url("/api/v1").build()]))
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

/// Refusals: status, name in the document, meaning.
const REFUSALS: [(u16, &str, &str); 10] = [
    (400, "Invalid", "The input is invalid"),
    (401, "Unauthorised", "No valid credentials: sign in, or send a token"),
    (403, "Forbidden", "The permission is missing, or the request looks forged"),
    (404, "NotFound", "It does not exist, or the caller may not see it"),
    (408, "TooSlow", "The body did not arrive in time"),
    (409, "Conflict", "The stored state does not allow it, or has changed in the meantime"),
    (413, "TooLarge", "The body is too large"),
    (415, "NoJson", "The body is not JSON"),
    (429, "TooMany", "Too many requests; `Retry-After` says how long to wait"),
    (503, "Unavailable", "The database, or another required service, cannot be reached right now; try again"),
];

fn refusal(description: &str) -> Response {
    let problem = RefOr::<Schema>::Ref(Ref::from_schema_name(ProblemDocument::name()));
    let content = ContentBuilder::new().schema(Some(problem)).build();
    ResponseBuilder::new().description(description).content("application/problem+json", content).build()
}

/// Whether an operation can be refused with this status.
fn can_be(operation: &Operation, status: u16) -> bool {
    match status {
        401 | 403 => operation.needs != Needs::Nothing || operation.path.starts_with("/login"),
        404 => operation.has_path_parameters() || operation.has_body || operation.has_query,
        409 => operation.method != Method::GET,
        408 | 413 | 415 => operation.has_body,
        _ => true,
    }
}

/// Adds what is the same for every operation.
fn finished(operation: Operation) -> utoipa::openapi::path::Operation {
    let tag = operation.path.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
    let refusals: Vec<_> = REFUSALS.iter().filter(|(status, ..)| can_be(&operation, *status)).collect();
    let needs = operation.needs;
    let mut doc = operation.doc.tag(tag);
    for (status, name, _) in refusals {
        doc = doc.response(status.to_string(), RefOr::<Response>::Ref(Ref::from_response_name(*name)));
    }
    let none: [&str; 0] = [];
    doc = doc.securities(Some(match needs {
        Needs::Nothing => vec![SecurityRequirement::default()],
        _ => vec![SecurityRequirement::new("token", none), SecurityRequirement::new("session", none)],
    }));
    doc.extensions(Some(ExtensionsBuilder::new().add("x-permission", needs.as_str()).build())).build()
}

/// Merges a schema composed of others into one: readers need not look in two places, and a part that
/// forbids additional properties does not forbid those of the other.
fn merge(schema: &mut RefOr<Schema>, known: &BTreeMap<String, RefOr<Schema>>) {
    let RefOr::T(Schema::AllOf(all_of)) = schema else { return };
    let Some(object) = merged(all_of, known) else { return };
    *schema = RefOr::T(object);
}

fn merged(all_of: &AllOf, known: &BTreeMap<String, RefOr<Schema>>) -> Option<Schema> {
    let mut whole = utoipa::openapi::schema::Object::default();
    whole.description.clone_from(&all_of.description);
    for item in &all_of.items {
        let part = match item {
            RefOr::Ref(to) => known.get(to.ref_location.rsplit('/').next()?)?,
            other @ RefOr::T(_) => other,
        };
        let part = match part {
            RefOr::T(Schema::Object(object)) => object.clone(),
            RefOr::T(Schema::AllOf(inner)) => match merged(inner, known)? {
                Schema::Object(object) => object,
                _ => return None,
            },
            _ => return None,
        };
        whole.properties.extend(part.properties);
        whole.required.extend(part.required);
        whole.schema_type = part.schema_type;
    }
    Some(Schema::Object(whole))
}
