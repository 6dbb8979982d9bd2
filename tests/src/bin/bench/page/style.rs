//! Style sheets.

/// Of a picture that stands alone: colours and lines.
pub const PICTURE: &str = include_str!("style.css");

/// Of the page.
pub const PAGE: &str = concat!(include_str!("style.css"), include_str!("page.css"));
