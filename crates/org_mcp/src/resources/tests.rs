use mcp_resources::Partial;

use super::{MAX_OFFERED, offered};

#[test]
fn endless_values_are_not_gathered() {
    let values = std::iter::repeat_with(|| "x".repeat(1024 * 1024));
    let offered = offered(values, &Partial::default());
    assert_eq!(offered.iter().map(String::len).sum::<usize>(), MAX_OFFERED);
}
