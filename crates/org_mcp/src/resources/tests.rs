use mcp_resources::Partial;

use super::{MAX_OFFERED, complete};

#[test]
fn endless_values_are_not_gathered() {
    let values = (0..).map(|number: u64| format!("{number:032768}"));
    let offered = complete(values, &Partial::default());
    assert_eq!(offered.iter().map(String::len).sum::<usize>(), MAX_OFFERED);
}

#[test]
fn value_is_offered_once() {
    let values = ["Tasks", "Ideas", "Tasks"].map(str::to_owned).into_iter();
    assert_eq!(complete(values, &Partial::default()), ["Tasks", "Ideas"]);
}
