//! Parses templates (RFC 6570 §2).

use super::encoding::{is_triplet, push_ascii};
use super::error::{Problem, TemplateError};
use super::{
    Expression, Literal, MAX_TEMPLATE_LENGTH, MAX_VARIABLES, Modifier, Operator, Part, VariableSpec,
};

#[cfg(test)]
mod tests;

pub(super) fn parse(template: &str) -> Result<Vec<Part>, TemplateError> {
    Parser {
        template,
        offset: 0,
        variables: 0,
    }
    .parse()
}

struct Parser<'t> {
    template: &'t str,
    offset: usize,
    variables: usize,
}

impl Parser<'_> {
    fn parse(mut self) -> Result<Vec<Part>, TemplateError> {
        let length = self.template.len();
        if length > MAX_TEMPLATE_LENGTH {
            return Err(self.error(Problem::TooLong { length }));
        }
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            parts.push(match next {
                '{' => Part::Expression(self.expression()?),
                _ => Part::Literal(self.literal()?),
            });
        }
        Ok(parts)
    }

    /// Parses text between braces (§2.1).
    fn literal(&mut self) -> Result<Literal, TemplateError> {
        let offset = self.offset;
        while let Some(next) = self.peek().filter(|next| *next != '{') {
            match next {
                '}' => return Err(self.error(Problem::Unopened)),
                '%' => self.triplet()?,
                _ if is_literal(next) => self.offset += next.len_utf8(),
                _ => return Err(self.error(Problem::LiteralCharacter(next))),
            }
        }
        let mut text = String::new();
        push_ascii(&mut text, &self.template[offset..self.offset]);
        Ok(Literal { offset, text })
    }

    /// Parses a pair of braces (§2.2).
    fn expression(&mut self) -> Result<Expression, TemplateError> {
        let offset = self.offset;
        if !self.template[offset..].contains('}') {
            return Err(self.error(Problem::Unclosed));
        }
        self.offset += 1;
        let operator = self.operator()?;
        let mut variables = vec![self.variable()?];
        while self.skip(',') {
            variables.push(self.variable()?);
        }
        self.close(variables.last())?;
        Ok(Expression {
            offset,
            operator,
            variables,
        })
    }

    fn close(&mut self, last: Option<&VariableSpec>) -> Result<(), TemplateError> {
        let modified = last.is_some_and(|variable| variable.modifier != Modifier::None);
        match self.peek() {
            _ if self.skip('}') => Ok(()),
            Some(next) if modified => Err(self.error(Problem::AfterModifier(next))),
            Some(next) => Err(self.error(Problem::NameCharacter(next))),
            None => Err(self.error(Problem::Unclosed)),
        }
    }

    fn operator(&mut self) -> Result<Operator, TemplateError> {
        let operator = match self.peek() {
            Some('+') => Operator::Reserved,
            Some('#') => Operator::Fragment,
            Some('.') => Operator::Label,
            Some('/') => Operator::Path,
            Some(';') => Operator::Parameters,
            Some('?') => Operator::Query,
            Some('&') => Operator::Continuation,
            Some(next @ ('=' | ',' | '!' | '@' | '|')) => {
                return Err(self.error(Problem::ReservedOperator(next)));
            }
            _ => return Ok(Operator::Simple),
        };
        self.offset += 1;
        Ok(operator)
    }

    /// Parses a name and its modifier (§2.3).
    fn variable(&mut self) -> Result<VariableSpec, TemplateError> {
        self.variables += 1;
        if self.variables > MAX_VARIABLES {
            return Err(self.error(Problem::TooManyVariables));
        }
        let offset = self.offset;
        let name = self.name()?;
        let modifier = self.modifier()?;
        Ok(VariableSpec {
            offset,
            name,
            modifier,
        })
    }

    fn name(&mut self) -> Result<String, TemplateError> {
        let offset = self.offset;
        match self.peek() {
            None | Some('}' | ',' | ':' | '*') => return Err(self.error(Problem::NameMissing)),
            Some(next) if !is_name(next) => return Err(self.error(Problem::NameCharacter(next))),
            Some(_) => self.name_run()?,
        }
        while self.peek() == Some('.') {
            let dot = self.offset;
            self.offset += 1;
            if !self.peek().is_some_and(is_name) {
                return Err(self.error_at(Problem::NameDot, dot));
            }
            self.name_run()?;
        }
        Ok(self.template[offset..self.offset].to_owned())
    }

    fn name_run(&mut self) -> Result<(), TemplateError> {
        while let Some(next) = self.peek().filter(|next| is_name(*next)) {
            match next {
                '%' => self.triplet()?,
                _ => self.offset += 1,
            }
        }
        Ok(())
    }

    /// Parses a `*` or a prefix (§2.4).
    fn modifier(&mut self) -> Result<Modifier, TemplateError> {
        if self.skip('*') {
            return Ok(Modifier::Explode);
        }
        if !self.skip(':') {
            return Ok(Modifier::None);
        }
        let offset = self.offset;
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.offset += 1;
        }
        match &self.template[offset..self.offset] {
            digits if matches!(digits.len(), 1..=4) && !digits.starts_with('0') => Ok(
                Modifier::Prefix(digits.parse().expect("at most four digits")),
            ),
            _ => Err(self.error_at(Problem::Prefix, offset)),
        }
    }

    fn triplet(&mut self) -> Result<(), TemplateError> {
        if !is_triplet(&self.template.as_bytes()[self.offset..]) {
            return Err(self.error(Problem::Percent));
        }
        self.offset += 3;
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.template[self.offset..].chars().next()
    }

    fn skip(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.offset += if found { expected.len_utf8() } else { 0 };
        found
    }

    fn error(&self, problem: Problem) -> TemplateError {
        self.error_at(problem, self.offset)
    }

    fn error_at(&self, problem: Problem, offset: usize) -> TemplateError {
        TemplateError::new(problem, self.template, offset)
    }
}

/// Returns whether a name can have a character. A `%` has to start a triplet.
fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '%')
}

/// Returns whether a literal can have a character (§2.1). The apostrophe is allowed by the RFC's erratum 6937
/// and its own examples.
fn is_literal(character: char) -> bool {
    match character {
        '\0'..=' ' | '"' | '%' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '\x7f' => false,
        _ if character.is_ascii() => true,
        _ => is_international(character),
    }
}

/// Returns whether a character is a `ucschar` or an `iprivate` (RFC 3987 §2.2).
fn is_international(character: char) -> bool {
    match u32::from(character) {
        0..=0x9F | 0xFDD0..=0xFDEF | 0xFFF0..=0xFFFF | 0xE0000..=0xE0FFF => false,
        code => code & 0xFFFE != 0xFFFE,
    }
}
