//! Makes a plan of a template.

use std::sync::Arc;

use super::Strictness;
use super::plan::{Atom, Capture, Class, Fragment, Pairs, Plan, Query, Region};
use crate::template::encoding::{normalize, scheme_length};
use crate::template::{
    Expression, Literal, Modifier, Operator, Part, Problem, TemplateError, UriTemplate,
    VariableSpec,
};

pub(super) fn plan(template: &UriTemplate, strictness: Strictness) -> Result<Plan, TemplateError> {
    let names = template.variables().into_iter().map(Arc::from).collect();
    let plan = Plan {
        names,
        scheme: scheme(&template.parts),
        ..Plan::default()
    };
    let mut planner = Planner {
        template,
        strictness,
        plan,
        last: None,
    };
    for part in &template.parts {
        match part {
            Part::Literal(literal) => planner.literal(literal)?,
            Part::Expression(expression) => planner.expression(expression)?,
        }
    }
    Ok(planner.finish())
}

fn scheme(parts: &[Part]) -> usize {
    match parts.first() {
        Some(Part::Literal(literal)) => scheme_length(&literal.text).unwrap_or(0),
        _ => 0,
    }
}

struct Planner<'t> {
    template: &'t UriTemplate,
    strictness: Strictness,
    plan: Plan,
    /// The variable that ends just before, with no text after it.
    last: Option<LastVariable<'t>>,
}

#[derive(Clone, Copy)]
struct LastVariable<'t> {
    name: &'t str,
    /// True if it is wide, or if one before it is, with no literal between them.
    wide: bool,
}

impl<'t> Planner<'t> {
    fn literal(&mut self, literal: &Literal) -> Result<(), TemplateError> {
        if self.plan.query.is_some() && self.plan.fragment.is_none() {
            if !literal.text.starts_with('#') {
                return Err(self.error(Problem::MisplacedQuery, literal.offset));
            }
            self.start_fragment(false);
        }
        let mut text = normalize(&literal.text)
            .expect("the parser checks triplets")
            .into_owned();
        if literal.offset == 0 {
            text[..self.plan.scheme].make_ascii_lowercase();
        }
        self.push_literal(&text);
        Ok(())
    }

    fn expression(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        match expression.operator {
            Operator::Query | Operator::Continuation => self.query(expression),
            Operator::Fragment => self.fragment(expression),
            _ if self.plan.query.is_some() && self.plan.fragment.is_none() => {
                Err(self.error(Problem::MisplacedQuery, expression.offset))
            }
            Operator::Simple | Operator::Reserved => self.texts(expression),
            Operator::Label | Operator::Path => self.segments(expression),
            Operator::Parameters => self.parameters(expression),
        }
    }

    fn query(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        let continues = expression.operator == Operator::Continuation;
        if self.plan.fragment.is_some() || self.plan.query.is_some() && !continues {
            return Err(self.error(Problem::MisplacedQuery, expression.offset));
        }
        let pairs = self.pairs(expression, Class::Query);
        let byte = expression.operator.first().as_bytes()[0];
        let new = Query {
            pairs: Pairs::default(),
            byte,
            before: self.literal_bytes(byte),
        };
        self.plan.query.get_or_insert(new).pairs.extend(pairs);
        Ok(())
    }

    fn fragment(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        if self.plan.fragment.is_some() {
            return Err(self.error(Problem::MisplacedFragment, expression.offset));
        }
        let is_last = matches!(
            self.template.parts.last(),
            Some(Part::Expression(last)) if last.offset == expression.offset
        );
        self.start_fragment(is_last);
        self.push_literal("#");
        self.texts(expression)
    }

    fn start_fragment(&mut self, optional: bool) {
        let number_signs = self.literal_bytes(b'#');
        self.plan.fragment = Some(Fragment {
            region: Region::default(),
            number_signs,
            optional,
        });
        self.last = None;
    }

    fn texts(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        let class = match (expression.operator, self.strictness) {
            (Operator::Reserved | Operator::Fragment, _) => Class::Any,
            (_, Strictness::Strict) => Class::Simple,
            (_, Strictness::Lenient) => Class::Lenient,
        };
        let is_alone = expression.operator != Operator::Fragment && expression.variables.len() == 1;
        for (index, variable) in expression.variables.iter().enumerate() {
            if index > 0 {
                self.push_literal(",");
            }
            let capture = Capture {
                is_alone,
                ..self.capture(variable, class)
            };
            self.push_variable(Atom::Text(capture), variable)?;
        }
        Ok(())
    }

    fn segments(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        let byte = expression.operator.first().as_bytes()[0];
        for variable in &expression.variables {
            let capture = self.capture(variable, Class::Simple);
            let atom = match variable.modifier {
                Modifier::Explode => Atom::List { byte, capture },
                Modifier::None | Modifier::Prefix(_) => Atom::Segments {
                    byte,
                    captures: vec![capture],
                },
            };
            self.push_variable(atom, variable)?;
        }
        Ok(())
    }

    fn parameters(&mut self, expression: &'t Expression) -> Result<(), TemplateError> {
        let pairs = self.pairs(expression, Class::Simple);
        self.push_variable(Atom::Parameters(pairs), &expression.variables[0])
    }

    fn pairs(&self, expression: &Expression, class: Class) -> Pairs {
        let named = |variable: &VariableSpec| {
            let name = normalize(&variable.name)
                .expect("the parser checks triplets")
                .into_owned();
            (name, self.capture(variable, class))
        };
        Pairs::new(expression.variables.iter().map(named).collect())
    }

    fn capture(&self, specification: &VariableSpec, class: Class) -> Capture {
        let variable = self
            .plan
            .names
            .iter()
            .position(|name| **name == *specification.name)
            .expect("names has all variables");
        Capture {
            variable,
            modifier: specification.modifier,
            class,
            is_alone: false,
        }
    }

    fn push_variable(
        &mut self,
        atom: Atom,
        variable: &'t VariableSpec,
    ) -> Result<(), TemplateError> {
        let wide = atom.is_wide();
        let unmarked = matches!(atom, Atom::Text(_));
        if let Some(last) = self.last.filter(|last| unmarked || last.wide && wide) {
            let (first, second) = (last.name.to_owned(), variable.name.clone());
            return Err(self.error(Problem::Neighbours { first, second }, variable.offset));
        }
        self.last = Some(LastVariable {
            name: &variable.name,
            wide: wide || self.last.is_some_and(|last| last.wide),
        });
        self.region().push(atom);
        Ok(())
    }

    fn push_literal(&mut self, text: &str) {
        self.last = None;
        self.plan.literal_length += text.len();
        self.region().push_literal(text);
    }

    fn region(&mut self) -> &mut Region {
        match &mut self.plan.fragment {
            Some(fragment) => &mut fragment.region,
            None => &mut self.plan.body,
        }
    }

    fn literal_bytes(&self, byte: u8) -> usize {
        self.plan
            .body
            .literals()
            .flat_map(str::bytes)
            .filter(|found| *found == byte)
            .count()
    }

    fn finish(mut self) -> Plan {
        self.plan.body.finish();
        if let Some(fragment) = &mut self.plan.fragment {
            fragment.region.finish();
        }
        self.plan
    }

    fn error(&self, problem: Problem, offset: usize) -> TemplateError {
        TemplateError::new(problem, &self.template.source, offset)
    }
}
