//! The checks of the fuzz targets: functions that panic if an invariant breaks.
//!
//! The targets in `fuzz/` pass random input to them. They are a package outside the workspace,
//! because libFuzzer needs its own compiler flags. `tests/seeds.rs` runs the checks over the seeds
//! with any toolchain.

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
