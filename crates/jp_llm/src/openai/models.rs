//! The abilities of a model, by its name.

/// Returns whether a model reasons; one that does not refuses `include: ["reasoning.encrypted_content"]`
/// ("Encrypted content is not supported with this model.").
///
/// The families that don't are old and few, so an unknown name is taken to.
pub(super) fn reasons(model: &str) -> bool {
    const SILENT: [&str; 5] = ["gpt-3.5", "gpt-4", "gpt-5-chat", "chatgpt-", "davinci-"];
    let base = model.strip_prefix("ft:").unwrap_or(model);
    !SILENT.iter().any(|family| base.starts_with(family))
}

/// Returns whether a model, as `provider/name`, has explicit cache breakpoints: OpenAI's from GPT-5.6 on.
pub(super) fn has_breakpoints(label: &str) -> bool {
    let version = label
        .strip_prefix("openai/gpt-")
        .and_then(|rest| rest.split('-').next());
    version
        .and_then(numbers)
        .is_some_and(|version| version >= (5, 6))
}

/// Reads `5.6` or `6`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_families_do_not_reason() {
        let names = [
            "gpt-4o",
            "gpt-4.1-mini",
            "ft:gpt-4o:me",
            "chatgpt-4o-latest",
            "gpt-5-chat-latest",
        ];
        assert!(!names.into_iter().any(reasons));
        assert!(
            [
                "gpt-5",
                "gpt-5.6-sol",
                "o1",
                "o4-mini",
                "gpt-6-astra",
                "local"
            ]
            .into_iter()
            .all(reasons)
        );
    }

    #[test]
    fn breakpoints_came_with_gpt_5_6() {
        let labels = [
            "openai/gpt-5.6",
            "openai/gpt-5.6-sol",
            "openai/gpt-5.10",
            "openai/gpt-6-astra",
        ];
        assert!(labels.into_iter().all(has_breakpoints));
        let labels = [
            "openai/gpt-5.5",
            "openai/gpt-5",
            "openai/gpt-4o",
            "openai/o4-mini",
            "azure/gpt-5.6",
        ];
        assert!(!labels.into_iter().any(has_breakpoints));
    }
}
