/// The generation of a model, by its name. It decides what the API refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Another model than Gemini, such as Gemma.
    Other,
    /// Before 2.5: thinks not at all.
    Early,
    /// 2.5: thinks; signatures are welcome.
    Thinking,
    /// From 3 on, and names without a version, which mean the newest: a call without a signature is refused.
    Signing,
}

impl Generation {
    pub(super) fn of_model(model: &str) -> Self {
        let name = model.strip_prefix("models/").unwrap_or(model);
        let Some(version) = name.strip_prefix("gemini-") else {
            return Self::Other;
        };
        let mut numbers = version
            .split(['.', '-'])
            .map_while(|number| number.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            // Image models of that generation do not think.
            (Some(2), Some(5)) if !name.contains("-image") => Self::Thinking,
            (Some(..=2), _) => Self::Early,
            _ => Self::Signing,
        }
    }

    /// Returns whether the model may be asked for its thoughts.
    pub(super) fn thinks(self) -> bool {
        matches!(self, Self::Thinking | Self::Signing)
    }

    /// Returns whether the model takes tools and a schema in one request.
    pub(super) fn takes_tools_with_schema(self) -> bool {
        matches!(self, Self::Signing | Self::Other)
    }

    /// Returns whether the first call of an answer must be signed.
    pub(super) fn wants_signed_calls(self) -> bool {
        self == Self::Signing
    }
}

#[cfg(test)]
mod tests {
    use super::{Generation::*, *};

    #[test]
    fn generation_is_told_from_the_name() {
        for (model, expected) in [
            ("gemini-1.5-flash-002", Early),
            ("gemini-2.0-flash", Early),
            ("gemini-2.5-flash-image", Early),
            ("models/gemini-2.5-pro", Thinking),
            ("gemini-3-pro-preview", Signing),
            ("gemini-3.1-flash-lite", Signing),
            ("gemini-10-pro", Signing),
            ("gemini-flash-latest", Signing),
            ("gemma-3-27b-it", Other),
        ] {
            assert_eq!(Generation::of_model(model), expected, "{model}");
        }
    }
}
