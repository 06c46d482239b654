//! Makes URIs from values (RFC 6570 §3 and appendix A).

use super::encoding::{first_character_length, push_reserved, push_unreserved};
use super::{ExpandError, Expression, Modifier, Operator, Part, Value, Values, VariableSpec};

#[cfg(test)]
mod tests;

pub(super) fn expand(parts: &[Part], values: &Values) -> Result<String, ExpandError> {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => out.push_str(&literal.text),
            Part::Expression(expression) => push_expression(&mut out, expression, values)?,
        }
    }
    Ok(out)
}

/// Expands one pair of braces (§3.2.1).
fn push_expression(
    out: &mut String,
    expression: &Expression,
    values: &Values,
) -> Result<(), ExpandError> {
    let mut before = expression.operator.first();
    for variable in &expression.variables {
        if let Some(value) = values.get(&variable.name).filter(|value| is_defined(value)) {
            out.push_str(before);
            before = expression.operator.separator();
            Writer {
                out: &mut *out,
                operator: expression.operator,
            }
            .push_variable(variable, value)?;
        }
    }
    Ok(())
}

/// Returns whether a value counts as one (§2.3).
fn is_defined(value: &Value) -> bool {
    match value {
        Value::Text(_) => true,
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
    }
}

struct Writer<'o> {
    out: &'o mut String,
    operator: Operator,
}

impl Writer<'_> {
    fn push_variable(&mut self, variable: &VariableSpec, value: &Value) -> Result<(), ExpandError> {
        match (value, variable.modifier) {
            (Value::Text(text), Modifier::Prefix(length)) => {
                self.push_text(&variable.name, self.prefix(text, length))
            }
            (Value::Text(text), _) => self.push_text(&variable.name, text),
            (_, Modifier::Prefix(length)) => {
                let variable = variable.name.clone();
                return Err(ExpandError::PrefixOfComposite { variable, length });
            }
            (Value::List(items), Modifier::Explode) => {
                self.push_exploded_list(&variable.name, items)
            }
            (Value::Map(entries), Modifier::Explode) => self.push_exploded_map(entries),
            (Value::List(items), Modifier::None) => self.push_joined(&variable.name, items.iter()),
            (Value::Map(entries), Modifier::None) => {
                self.push_joined(
                    &variable.name,
                    entries.iter().flat_map(|(key, value)| [key, value]),
                );
            }
        }
        Ok(())
    }

    fn push_text(&mut self, name: &str, text: &str) {
        self.push_name(name, text.is_empty());
        self.push_encoded(text);
    }

    /// Writes a list that is not exploded: its items are one value.
    fn push_joined<'v>(&mut self, name: &str, items: impl Iterator<Item = &'v String>) {
        self.push_name(name, false);
        for (index, item) in items.enumerate() {
            self.out.push_str(if index == 0 { "" } else { "," });
            self.push_encoded(item);
        }
    }

    fn push_exploded_list(&mut self, name: &str, items: &[String]) {
        for (index, item) in items.iter().enumerate() {
            self.push_separator(index);
            self.push_text(name, item);
        }
    }

    fn push_exploded_map(&mut self, entries: &[(String, String)]) {
        for (index, (key, value)) in entries.iter().enumerate() {
            self.push_separator(index);
            self.push_encoded(key);
            self.out.push_str(
                self.operator
                    .after_empty_name()
                    .filter(|_| value.is_empty())
                    .unwrap_or("="),
            );
            self.push_encoded(value);
        }
    }

    fn push_separator(&mut self, index: usize) {
        self.out.push_str(if index == 0 {
            ""
        } else {
            self.operator.separator()
        });
    }

    /// Writes the variable's name, if the operator writes names.
    fn push_name(&mut self, name: &str, empty: bool) {
        if let Some(after_empty) = self.operator.after_empty_name() {
            self.out.push_str(name);
            self.out.push_str(if empty { after_empty } else { "=" });
        }
    }

    fn push_encoded(&mut self, text: &str) {
        match self.operator.keeps_reserved() {
            true => push_reserved(self.out, text),
            false => push_unreserved(self.out, text),
        }
    }

    /// Returns the first characters of a text. If triplets are kept, the character that they encode counts as
    /// one (§2.4.1).
    fn prefix<'v>(&self, text: &'v str, length: usize) -> &'v str {
        let mut rest = text;
        for _ in 0..length {
            rest = match self.operator.keeps_reserved() {
                true => &rest[first_character_length(rest)..],
                false => rest.strip_prefix(|_| true).unwrap_or_default(),
            };
        }
        &text[..text.len() - rest.len()]
    }
}
