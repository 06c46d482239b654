use jp_process::{BoundedOutput, Captured, End};
use jp_tool::ContentBlock;
use jp_turn::parse_command_output;

/// Checks that whatever a tool prints gives a response that says something, and that a program that was ended asks
/// nothing. The first two bytes choose how much is kept and how it ended.
pub fn tool_output(bytes: &[u8]) {
    let (choice, stdout) = bytes.split_at(bytes.len().min(2));
    let kept = match choice.first() {
        Some(limit) if *limit < 128 => usize::from(*limit),
        _ => usize::MAX,
    };
    let end = match choice.get(1).map(|end| end % 3) {
        Some(0) => End::Exited(1),
        Some(1) => End::Moot,
        _ => End::Exited(0),
    };
    let mut output = BoundedOutput::at_most(kept);
    output.push(stdout);
    let parsed = parse_command_output(Captured {
        stdout: output,
        stderr: "".into(),
        end,
        was_held: false,
    });
    let response = &parsed.response;
    let says = !response.content.is_empty() || response.structured_content.is_some();
    assert!(says || !parsed.warnings.is_empty());
    let asks = response
        .content
        .iter()
        .any(|block| matches!(block, ContentBlock::Question { .. }));
    assert!(!asks || end != End::Moot);
    assert!(response.is_error || end != End::Moot);
}
