//! What the fuzz targets check, as functions that panic where an invariant breaks.
//!
//! The targets are one line each; `tests/seeds.rs` runs the same functions over the seeds with a
//! stable toolchain.

mod declarations;
mod events_json;
mod template_sets;
mod templates;
mod tool_output;
mod uris;
mod view;

pub use declarations::declarations;
pub use events_json::events_json;
pub use template_sets::template_sets;
pub use templates::templates;
pub use tool_output::tool_output;
pub use uris::uris;
pub use view::view;
