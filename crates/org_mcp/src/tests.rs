use std::io;

use mcp_resources::ServeError;

use super::join_causes;

#[derive(Debug, thiserror::Error)]
#[error("outer")]
struct Outer(#[source] ServeError);

#[test]
fn error_is_told_with_all_its_causes() {
    let error = Outer(ServeError::Runtime(io::Error::other("inner")));
    assert_eq!(
        join_causes(&error),
        "outer: the server could not be started: inner"
    );
    assert_eq!(
        join_causes(&ServeError::Runtime(io::Error::other("inner"))),
        "the server could not be started: inner"
    );
}
