//! Text as a terminal shows it in the end.

/// Returns `text` without escape sequences, control characters and overwritten parts of lines.
/// Tabs stay.
pub(crate) fn plain_text(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(visible_part).collect();
    anstream::adapter::strip_str(&lines.join("\n")).to_string()
}

/// Returns the part after the last carriage return, such as the last state of a progress bar.
fn visible_part(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_earlier_states_of_a_line_are_removed() {
        let written = "10%\r20%\r\n\u{1b}[31mred\u{1b}[0m\tx\u{7}\r";
        assert_eq!(plain_text(written), "20%\nred\tx");
    }
}
