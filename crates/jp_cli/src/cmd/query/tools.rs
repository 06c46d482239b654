//! The tools of a query: what the configuration says, and what the command line chose of it.

use jp_turn::{Files, Surroundings, Toolbox};

use super::Asked;
use crate::error::Failure;

/// Puts the tools together that the model may call.
pub(super) fn toolbox(asked: &Asked<'_>) -> Result<Toolbox, Failure> {
    let root = asked.context.workspace.root();
    let surroundings = Surroundings { root: root.to_owned(), ..Surroundings::default() };
    Ok(Toolbox::new(Vec::new(), surroundings, Files::open(root, &[])?))
}
