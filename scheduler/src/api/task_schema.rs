//! Tasks in the OpenAPI document: bodies and response, generated from the list of a definition's fields.

use crate::domain::task::{Allowed, Field, INSTANT_MAX, NAME_MAX, PARENTS_MAX, ParentLink, TAGS_MAX, TaskSpec, Unit};
use serde_json::Value;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{
    ArrayBuilder, ArrayItems, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

type Schemas = Vec<(String, RefOr<Schema>)>;

/// What a body says about fields that it omits.
#[derive(Clone, Copy, PartialEq)]
enum Omitted {
    /// None may be omitted.
    Refused,
    /// They have their defaults.
    Default,
    /// They keep their values; null resets a field to its default.
    Kept,
}

/// Makes a body of what stands beside the definition, and its fields.
macro_rules! body {
    ($name:ident, $beside:ident, $omitted:expr, [$($required:literal),*]) => {
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let RefOr::T(Schema::Object(mut object)) = $beside::schema() else { return $beside::schema() };
                with_fields(&mut object, $omitted);
                object.required.extend([$($required.to_owned()),*]);
                RefOr::T(Schema::Object(object))
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Schemas) {
                field_types(schemas);
            }
        }
    };
}

/// A task to create. Omitted fields have their defaults.
#[derive(ToSchema)]
#[allow(dead_code)] // describes the body, which is read field by field so that every slip is named
struct BesideNew {
    /// Name of the tenant.
    tenant: String,
    /// Name of the app.
    app: String,
    /// Whether it fires by itself; false when left out.
    started: Option<bool>,
    /// Pauses it, and says why.
    pause_note: Option<String>,
}

/// The body of `POST /tasks`.
pub struct NewTask;
body!(NewTask, BesideNew, Omitted::Default, ["name", "handler"]);

/// A task's whole definition: every field is required, so that none is lost. Read-only fields of a task may be
/// included; they are ignored.
#[derive(ToSchema)]
#[allow(dead_code)] // describes the body
struct BesideWhole {
    /// Name of the tenant; a task cannot move.
    tenant: Option<String>,
    /// Name of the app; a task cannot move.
    app: Option<String>,
    /// Whether it fires by itself; unchanged when omitted.
    started: Option<bool>,
    /// Pauses it, and says why.
    pause_note: Option<String>,
    /// Revision that was read; when it is no longer current, nothing is changed.
    revision: Option<i64>,
}

/// The body of `PUT /tasks/{id}`.
pub struct TaskDefinition;
body!(TaskDefinition, BesideWhole, Omitted::Refused, []);

/// Fields of a task to change, as a JSON merge patch (RFC 7396): omitted fields keep their values, null resets a
/// field to its default, a list replaces the previous list.
#[derive(ToSchema)]
#[allow(dead_code)] // describes the body
struct BesidePatch {
    /// Whether it fires by itself.
    started: Option<bool>,
    /// Pauses it, and says why; null ends the pause.
    pause_note: Option<String>,
    /// Revision that was read; when it is no longer current, nothing is changed.
    revision: Option<i64>,
}

/// The body of `PATCH /tasks/{id}`.
pub struct TaskPatch;
body!(TaskPatch, BesidePatch, Omitted::Kept, []);

/// A schedule to preview, and the number of fires.
#[derive(ToSchema)]
#[allow(dead_code)] // describes the body
struct BesideQuestion {
    /// Name of the tenant whose calendars it uses.
    tenant: Option<String>,
    /// Number of fires, 1 to 1000.
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<i64>,
    /// After this instant, epoch ms; now when absent.
    after: Option<i64>,
}

/// The body of `POST /schedules/preview`.
pub struct ScheduleQuestion;
body!(ScheduleQuestion, BesideQuestion, Omitted::Default, []);

impl PartialSchema for TaskSpec {
    fn schema() -> RefOr<Schema> {
        let names: Vec<Value> = Self::field_names().map(Value::from).collect();
        let order = ExtensionsBuilder::new().add("x-order", Value::from(names)).build();
        let mut object = ObjectBuilder::new().description(Some("A task as it is defined.")).build();
        object.extensions = Some(order);
        with_fields(&mut object, Omitted::Refused);
        RefOr::T(Schema::Object(object))
    }
}

impl ToSchema for TaskSpec {
    fn schemas(schemas: &mut Schemas) {
        field_types(schemas);
    }
}

/// The types that fields have names of.
fn field_types(schemas: &mut Schemas) {
    for field in TaskSpec::FIELDS {
        if let Allowed::One(choices) | Allowed::Any(choices) = field.allowed {
            schemas.push(((choices.name)(), (choices.schema)()));
        }
    }
    ParentLink::schemas(schemas);
    schemas.push((ParentLink::name().into_owned(), ParentLink::schema()));
}

fn with_fields(object: &mut Object, omitted: Omitted) {
    let defaults = serde_json::to_value(TaskSpec::default()).unwrap_or_default();
    for field in TaskSpec::FIELDS {
        let default = (omitted == Omitted::Default).then(|| defaults[field.name].clone());
        let property = property(field, default.filter(|_| !is_name_of_task(field)));
        let property = if omitted == Omitted::Kept && !is_name_of_task(field) { or_null(property) } else { property };
        object.properties.insert(field.name.to_owned(), property);
        if omitted == Omitted::Refused {
            object.required.push(field.name.to_owned());
        }
    }
}

/// Whether the field is one that every task must set, so that it has no default.
fn is_name_of_task(field: &Field) -> bool {
    matches!(field.allowed, Allowed::Name { least: 1 })
}

fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(SchemaType::new(Type::Null)).build();
    RefOr::T(Schema::OneOf(OneOfBuilder::new().item(schema).item(null).build()))
}

/// A field as the document has it.
fn property(field: &Field, default: Option<Value>) -> RefOr<Schema> {
    let says = said(field);
    let text = || ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
    let object = match field.allowed {
        Allowed::One(choices) => {
            let to = Ref::builder().ref_location_from_schema_name((choices.name)());
            return RefOr::Ref(to.description(Some(says)).default(default).build());
        }
        Allowed::Any(choices) => return list(Ref::from_schema_name((choices.name)()), None, says, default),
        Allowed::Parents => {
            return list(Ref::from_schema_name(ParentLink::name()), Some(PARENTS_MAX), says, default);
        }
        Allowed::Tags => {
            let tag = text().min_length(Some(1)).max_length(Some(NAME_MAX)).build();
            return list(tag, Some(TAGS_MAX), says, default);
        }
        Allowed::Name { least } => text().min_length(Some(least).filter(|least| *least > 0)).max_length(Some(NAME_MAX)),
        Allowed::Text(most) | Allowed::Params(most) => text().max_length(Some(most)),
        Allowed::Flag => ObjectBuilder::new().schema_type(SchemaType::new(Type::Boolean)),
        Allowed::Instant => whole(0, INSTANT_MAX),
        Allowed::Whole { least, most, .. } => whole(least, most),
    };
    RefOr::T(Schema::Object(object.description(Some(says)).default(default).extensions(unit(field)).build()))
}

fn list(item: impl Into<ArrayItems>, most: Option<usize>, says: String, default: Option<Value>) -> RefOr<Schema> {
    let array = ArrayBuilder::new().items(item).max_items(most).description(Some(says)).default(default).build();
    RefOr::T(Schema::Array(array))
}

fn whole(least: i64, most: i64) -> ObjectBuilder {
    let format = if i32::try_from(most).is_ok() { KnownFormat::Int32 } else { KnownFormat::Int64 };
    // The largest integer limits nothing, and JavaScript cannot represent it.
    let most = Some(most).filter(|most| *most < i64::MAX);
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(format)))
        .minimum(Some(least as isize))
        .maximum(most.map(|most| most as isize))
}

/// The field's sentence, and the meaning of 0.
fn said(field: &Field) -> String {
    match field.allowed {
        Allowed::Whole { zero, .. } if !zero.is_empty() => format!("{} 0: {zero}.", field.says),
        Allowed::Instant => format!("{} Epoch ms; 0: none. RFC 3339 is read, too.", field.says),
        _ => field.says.to_owned(),
    }
}

/// The unit of a number, for forms.
fn unit(field: &Field) -> Option<utoipa::openapi::extensions::Extensions> {
    let unit = match field.allowed {
        Allowed::Whole { unit, .. } if unit != Unit::Count => unit.symbol(),
        Allowed::Instant => "instant",
        _ => return None,
    };
    Some(ExtensionsBuilder::new().add("x-unit", unit).build())
}
