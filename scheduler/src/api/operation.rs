//! An operation of the management API: its path, permission, input, output and handler, declared
//! once. The routes and the OpenAPI document are generated from the same list, and a route without a
//! declared permission cannot be written.

use super::guard;
use super::input::Page;
use super::needs::Needs;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Handler, Responder, Route, web};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// One operation.
pub struct Operation {
    /// Method.
    pub method: Method,
    /// Path below `/api/v1`, with `{parameters}`.
    pub path: &'static str,
    /// Its name in the document, in clients and in the audit. An operation that changes something has the name of its
    /// action.
    pub id: &'static str,
    /// What its callers must have.
    pub needs: Needs,
    /// Its documentation.
    pub doc: OperationBuilder,
    /// Schemas of its bodies and responses.
    pub schemas: Vec<(String, RefOr<Schema>)>,
    /// Whether it reads a body.
    pub has_body: bool,
    /// Whether it has query parameters.
    pub has_query: bool,
    route: Option<Route>,
}

/// `GET path`: reads.
pub fn get(path: &'static str, id: impl Into<&'static str>, needs: impl Into<Needs>, summary: &str) -> Operation {
    Operation::new(Method::GET, path, id.into(), needs.into(), summary)
}

/// `POST path`: creates, or does something.
pub fn post(path: &'static str, id: impl Into<&'static str>, needs: impl Into<Needs>, summary: &str) -> Operation {
    Operation::new(Method::POST, path, id.into(), needs.into(), summary)
}

/// `PUT path`: sets what the body names.
pub fn put(path: &'static str, id: impl Into<&'static str>, needs: impl Into<Needs>, summary: &str) -> Operation {
    Operation::new(Method::PUT, path, id.into(), needs.into(), summary)
}

/// `PATCH path`: changes what the body names.
pub fn patch(path: &'static str, id: impl Into<&'static str>, needs: impl Into<Needs>, summary: &str) -> Operation {
    Operation::new(Method::PATCH, path, id.into(), needs.into(), summary)
}

/// `DELETE path`.
pub fn delete(path: &'static str, id: impl Into<&'static str>, needs: impl Into<Needs>, summary: &str) -> Operation {
    Operation::new(Method::DELETE, path, id.into(), needs.into(), summary)
}

impl Operation {
    fn new(method: Method, path: &'static str, id: &'static str, needs: Needs, summary: &str) -> Self {
        let mut doc = OperationBuilder::new().operation_id(Some(id)).summary(Some(summary));
        for name in path_parameters(path) {
            let text = Schema::from(ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).build());
            doc = doc.parameter(
                ParameterBuilder::new()
                    .name(name)
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .schema(Some(text)),
            );
        }
        Self { method, path, id, needs, doc, schemas: Vec::new(), has_body: false, has_query: false, route: None }
    }

    /// Details that do not fit into the summary.
    pub fn says(mut self, description: &str) -> Self {
        self.doc = self.doc.description(Some(description));
        self
    }

    /// Its query parameters.
    pub fn query<T: IntoParams>(mut self) -> Self {
        for parameter in T::into_params(|| Some(ParameterIn::Query)) {
            self.doc = self.doc.parameter(parameter);
        }
        self.has_query = true;
        self
    }

    /// Its body, as JSON.
    pub fn body<T: ToSchema>(self) -> Self {
        self.body_as::<T>("application/json")
    }

    /// The fields that it changes, as a JSON merge patch (RFC 7396). Fields that the body does not name keep their values.
    pub fn changes<T: ToSchema>(self) -> Self {
        self.body_as::<T>("application/merge-patch+json")
    }

    fn body_as<T: ToSchema>(mut self, media_type: &str) -> Self {
        let content = ContentBuilder::new().schema(Some(self.schema::<T>())).build();
        // A missing body is read as one without fields.
        let required = match T::schema() {
            RefOr::T(Schema::Object(object)) if object.required.is_empty() => Required::False,
            _ => Required::True,
        };
        let body = RequestBodyBuilder::new().content(media_type, content).required(Some(required));
        self.doc = self.doc.request_body(Some(body.build()));
        self.has_body = true;
        self
    }

    /// Its successful response, as JSON.
    pub fn answers<T: ToSchema>(mut self, status: u16, description: &str) -> Self {
        let content = ContentBuilder::new().schema(Some(self.schema::<T>())).build();
        let response = ResponseBuilder::new().description(description).content("application/json", content);
        self.doc = self.doc.response(status.to_string(), response.build());
        self
    }

    /// It answers a page of these.
    pub fn answers_page<T: ToSchema + serde::Serialize>(mut self, description: &str) -> Self {
        let name = format!("{}Page", T::name());
        self.schema::<T>();
        Page::<T>::schemas(&mut self.schemas);
        self.schemas.push((name.clone(), Page::<T>::schema()));
        let page = RefOr::<Schema>::Ref(Ref::from_schema_name(name));
        let content = ContentBuilder::new().schema(Some(page)).build();
        let response = ResponseBuilder::new().description(description).content("application/json", content);
        self.doc = self.doc.response("200", response.build());
        self
    }

    /// Its successful response, of another media type.
    pub fn answers_as(mut self, status: u16, media_type: &str, description: &str) -> Self {
        let text = Schema::from(ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).build());
        let content = ContentBuilder::new().schema(Some(text)).build();
        let response = ResponseBuilder::new().description(description).content(media_type, content);
        self.doc = self.doc.response(status.to_string(), response.build());
        self
    }

    /// It streams events (`text/event-stream`); `description` says what is in them.
    pub fn answers_events(mut self, description: &str) -> Self {
        let content = ContentBuilder::new().build();
        let response = ResponseBuilder::new().description(description).content("text/event-stream", content);
        self.doc = self.doc.response("200", response.build());
        self
    }

    /// Its successful response has no body.
    pub fn answers_nothing(self, description: &str) -> Self {
        self.answers_nothing_as(204, description)
    }

    /// The same with another status.
    pub fn answers_nothing_as(mut self, status: u16, description: &str) -> Self {
        self.doc = self.doc.response(status.to_string(), ResponseBuilder::new().description(description).build());
        self
    }

    /// Its object has a revision: `If-Match` guards against overwriting a newer one.
    pub fn if_match(self) -> Self {
        let says = "The ETag that was read; if it is no longer current, the response is 409 and nothing is changed";
        self.header("If-Match", says)
    }

    /// A header that a request may have.
    pub fn header(mut self, name: &str, description: &str) -> Self {
        let text = Schema::from(ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).build());
        self.doc = self.doc.parameter(
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Header)
                .required(Required::False)
                .description(Some(description))
                .schema(Some(text)),
        );
        self
    }

    /// A schema by its name, recorded with all schemas it refers to.
    fn schema<T: ToSchema>(&mut self) -> RefOr<Schema> {
        T::schemas(&mut self.schemas);
        self.schemas.push((T::name().into_owned(), T::schema()));
        RefOr::Ref(Ref::from_schema_name(T::name()))
    }

    /// Its handler; must be called last.
    pub fn to<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let guarded = guard::Guard { id: self.id, needs: self.needs, has_body: self.has_body };
        let route = Route::new().method(self.method.clone()).to(handler);
        self.route = Some(route.wrap(from_fn(move |request, next| guard::pass(guarded, request, next))));
        self
    }

    /// Its method, as the document names it.
    pub fn http_method(&self) -> HttpMethod {
        match self.method {
            Method::POST => HttpMethod::Post,
            Method::PUT => HttpMethod::Put,
            Method::PATCH => HttpMethod::Patch,
            Method::DELETE => HttpMethod::Delete,
            _ => HttpMethod::Get,
        }
    }

    /// Whether its path names something.
    pub fn has_path_parameters(&self) -> bool {
        self.path.contains('{')
    }
}

/// Names of a path's parameters, in their order.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// Routes of all of them. A path whose parts are fixed comes before one with parameters in their
/// place.
pub fn configure(config: &mut web::ServiceConfig, mut operations: Vec<Operation>) {
    // `{` sorts after every letter.
    operations.sort_by_key(|operation| operation.path);
    let mut operations = operations.into_iter().peekable();
    while let Some(first) = operations.next() {
        let path = first.path;
        let mut resource = web::resource(path);
        let mut allowed = vec![first.method.clone()];
        let mut routes = vec![first.route];
        while let Some(next) = operations.next_if(|next| next.path == path) {
            allowed.push(next.method.clone());
            routes.push(next.route);
        }
        for route in routes.into_iter().flatten() {
            resource = resource.route(route);
        }
        config.service(resource.default_service(web::to(move |request| guard::wrong_method(allowed.clone(), request))));
    }
}
