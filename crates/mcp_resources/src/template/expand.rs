//! From values to a URI (RFC 6570 §3 and appendix A).

use super::encoding::{first_character, push_reserved, push_unreserved};
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

/// §3.2.1.
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
            .variable(variable, value)?;
        }
    }
    Ok(())
}

/// §2.3.
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
    fn variable(&mut self, variable: &VariableSpec, value: &Value) -> Result<(), ExpandError> {
        match (value, variable.modifier) {
            (Value::Text(text), Modifier::Prefix(length)) => {
                self.text(&variable.name, self.prefix(text, length))
            }
            (Value::Text(text), _) => self.text(&variable.name, text),
            (_, Modifier::Prefix(length)) => {
                let variable = variable.name.clone();
                return Err(ExpandError::PrefixOfComposite { variable, length });
            }
            (Value::List(items), Modifier::Explode) => self.exploded_list(&variable.name, items),
            (Value::Map(entries), Modifier::Explode) => self.exploded_map(entries),
            (Value::List(items), Modifier::None) => self.joined(&variable.name, items.iter()),
            (Value::Map(entries), Modifier::None) => {
                self.joined(
                    &variable.name,
                    entries.iter().flat_map(|(key, value)| [key, value]),
                );
            }
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name, text.is_empty());
        self.encoded(text);
    }

    fn joined<'v>(&mut self, name: &str, items: impl Iterator<Item = &'v String>) {
        self.name(name, false);
        for (index, item) in items.enumerate() {
            self.out.push_str(if index == 0 { "" } else { "," });
            self.encoded(item);
        }
    }

    fn exploded_list(&mut self, name: &str, items: &[String]) {
        for (index, item) in items.iter().enumerate() {
            self.separator(index);
            self.text(name, item);
        }
    }

    fn exploded_map(&mut self, entries: &[(String, String)]) {
        for (index, (key, value)) in entries.iter().enumerate() {
            self.separator(index);
            self.encoded(key);
            self.out.push_str(
                self.operator
                    .after_empty_name()
                    .filter(|_| value.is_empty())
                    .unwrap_or("="),
            );
            self.encoded(value);
        }
    }

    fn separator(&mut self, index: usize) {
        self.out.push_str(if index == 0 {
            ""
        } else {
            self.operator.separator()
        });
    }

    /// Writes the variable's name, where the operator writes names.
    fn name(&mut self, name: &str, empty: bool) {
        if let Some(after_empty) = self.operator.after_empty_name() {
            self.out.push_str(name);
            self.out.push_str(if empty { after_empty } else { "=" });
        }
    }

    fn encoded(&mut self, text: &str) {
        match self.operator.keeps_reserved() {
            true => push_reserved(self.out, text),
            false => push_unreserved(self.out, text),
        }
    }

    /// The first characters of a text; where triplets are kept, what they encode is a character (§2.4.1).
    fn prefix<'v>(&self, text: &'v str, length: usize) -> &'v str {
        let mut rest = text;
        for _ in 0..length {
            rest = match self.operator.keeps_reserved() {
                true => &rest[first_character(rest)..],
                false => rest.strip_prefix(|_| true).unwrap_or_default(),
            };
        }
        &text[..text.len() - rest.len()]
    }
}
