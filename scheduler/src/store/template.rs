//! Statements whose text is fixed: written once, rendered for each kind of database at their first use.

use super::dialect::Dialect;

use super::statement::Sql;
use std::sync::OnceLock;

/// A statement before it is known for which database.
#[derive(Debug)]
pub struct Template {
    name: &'static str,
    render: fn(Dialect) -> String,
    rendered: [OnceLock<Sql>; 3],
}

impl Template {
    /// A statement whose text `render` makes; `{1}`, `{now}` and so on are as in [`Sql::new`].
    pub const fn new(name: &'static str, render: fn(Dialect) -> String) -> Self {
        Self { name, render, rendered: [const { OnceLock::new() }; 3] }
    }

    /// How its file calls it.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// What has a statement for each kind of database, or is one.
pub trait Text: Sync {
    /// The statement for this kind.
    fn on(&self, dialect: Dialect) -> &Sql;
}

impl Text for Template {
    fn on(&self, dialect: Dialect) -> &Sql {
        self.rendered[dialect as usize].get_or_init(|| Sql::new(dialect, &(self.render)(dialect)))
    }
}

/// One whose text is made for the occasion.
impl Text for Sql {
    fn on(&self, _: Dialect) -> &Sql {
        self
    }
}

impl<T: Text + ?Sized> Text for &T {
    fn on(&self, dialect: Dialect) -> &Sql {
        (**self).on(dialect)
    }
}

/// For [`sql!`], which takes both.
pub fn text(text: impl Into<String>) -> String {
    text.into()
}

/// The hot statements of a file, `NAME = |dialect| text`, and the list of them.
macro_rules! statements {
    ($($name:ident = $render:expr),* $(,)?) => {
        $(
            pub(in crate::store) static $name: $crate::store::template::Template =
                $crate::store::template::Template::new(stringify!($name), $render);
        )*

        /// Every statement above.
        pub(in crate::store) static STATEMENTS: &[&$crate::store::template::Template] = &[$(&$name),*];
    };
}

/// A statement of fixed text where it is used: `sql!("…")`, `sql!(format!("…"))`, `sql!(|dialect| format!("…"))`.
macro_rules! sql {
    (|$dialect:ident| $text:expr) => {{
        static TEMPLATE: $crate::store::template::Template =
            $crate::store::template::Template::new(concat!(file!(), ":", line!()), |$dialect| $text);
        &TEMPLATE
    }};
    ($text:expr) => {{
        static TEMPLATE: $crate::store::template::Template =
            $crate::store::template::Template::new(concat!(file!(), ":", line!()), |_| {
                $crate::store::template::text($text)
            });
        &TEMPLATE
    }};
}
