//! Checks what is to be registered.

use std::collections::HashSet;

use super::Bundle;
use crate::resource::Details;
use crate::template::{Matcher, TemplateError, UriTemplate, Values, has_scheme, normal_uri};
use crate::{Resource, ResourceTemplate};

/// A registration that was refused. Nothing was registered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A text that is not a URI.
    #[error("{uri:?} is not a URI: {source}")]
    Uri {
        /// The text.
        uri: String,
        /// The problem and its place.
        source: TemplateError,
    },
    /// A URI or a template that does not start with a scheme. Such a template would match URIs of any
    /// scheme.
    #[error("{uri:?} does not start with a scheme; put one in front, as in \"notes://\"")]
    SchemeMissing {
        /// The URI or the template.
        uri: String,
    },
    /// A URI with variables.
    #[error("{uri:?} has variables; register it as a template")]
    NotDirect {
        /// The URI or the template.
        uri: String,
    },
    /// A template without variables.
    #[error("{uri_template:?} has no variables; register it as a resource")]
    NoVariables {
        /// The template.
        uri_template: String,
    },
    /// A template that can't be parsed or matched.
    #[error("{uri_template:?} is not a template that can be served: {source}")]
    Template {
        /// The template.
        uri_template: String,
        /// The problem and its place.
        source: TemplateError,
    },
    /// A resource or a template without a name.
    #[error("{key:?} needs a name")]
    NameMissing {
        /// The URI or the template.
        key: String,
    },
    /// A priority that is not from 0 to 1.
    #[error("the priority of {key:?} is {priority}; it must be from 0 to 1")]
    Priority {
        /// The URI or the template.
        key: String,
        /// The priority.
        priority: f32,
    },
    /// A completer for a variable that the template lacks.
    #[error("{uri_template:?} has no variable {variable:?} to complete")]
    Completer {
        /// The template.
        uri_template: String,
        /// The name.
        variable: String,
    },
    /// A URI or a template that is twice in a bundle.
    #[error("{key:?} is registered twice")]
    Duplicate {
        /// The URI or the template.
        key: String,
    },
}

/// A bundle that can be registered.
pub(super) struct Checked {
    /// The resources with their keys: URIs in the form in which they are compared.
    pub(super) resources: Vec<(String, Resource)>,
    pub(super) templates: Vec<CheckedTemplate>,
}

/// A template that can be registered.
#[derive(Debug)]
pub(crate) struct CheckedTemplate {
    pub(crate) description: ResourceTemplate,
    pub(super) matcher: Matcher,
}

/// The keys of a bundle.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) resources: Vec<String>,
    pub(super) templates: Vec<String>,
}

impl Checked {
    pub(super) fn keys(&self) -> Keys {
        Keys {
            resources: self.resources.iter().map(|(key, _)| key.clone()).collect(),
            templates: self
                .templates
                .iter()
                .map(|template| template.description.uri_template.clone())
                .collect(),
        }
    }
}

pub(super) fn check(bundle: Bundle) -> Result<Checked, RegisterError> {
    let checked = Checked {
        resources: bundle
            .resources
            .into_iter()
            .map(check_resource)
            .collect::<Result<_, _>>()?,
        templates: bundle
            .templates
            .into_iter()
            .map(check_template)
            .collect::<Result<_, _>>()?,
    };
    let keys = checked.keys();
    check_distinct(&keys.resources)?;
    check_distinct(&keys.templates)?;
    Ok(checked)
}

impl Resource {
    /// Returns the URI in the form in which URIs are compared. A [`Bundle`] has each key once.
    ///
    /// That form is ASCII. Characters that don't need percent-encoding are decoded, the other triplets
    /// have capital hexadecimal digits, and the scheme is in lower case (RFC 3986 §6.2.2).
    ///
    /// # Errors
    ///
    /// As [`Registry::register_resource`](crate::Registry::register_resource).
    pub fn key(&self) -> Result<String, RegisterError> {
        self.check_uri().map(|(key, _)| key)
    }

    /// Returns the key, and the URI as it is listed.
    fn check_uri(&self) -> Result<(String, String), RegisterError> {
        let uri = &self.uri;
        let template = UriTemplate::parse(uri).map_err(|source| RegisterError::Uri {
            uri: uri.clone(),
            source,
        })?;
        if !template.variables().is_empty() {
            return Err(RegisterError::NotDirect { uri: uri.clone() });
        }
        let listed = template
            .expand(&Values::new())
            .expect("without variables no prefix meets a list");
        let key = normal_uri(&listed).filter(|key| has_scheme(key));
        let key = key.ok_or_else(|| RegisterError::SchemeMissing { uri: uri.clone() })?;
        check_details(uri, &self.details)?;
        Ok((key, listed))
    }
}

fn check_resource(mut resource: Resource) -> Result<(String, Resource), RegisterError> {
    let (key, uri) = resource.check_uri()?;
    resource.uri = uri;
    Ok((key, resource))
}

fn check_template(description: ResourceTemplate) -> Result<CheckedTemplate, RegisterError> {
    let uri_template = &description.uri_template;
    let matcher = make_matcher(&description).map_err(|source| RegisterError::Template {
        uri_template: uri_template.clone(),
        source,
    })?;
    let template = matcher.template();
    let variables = template.variables();
    if variables.is_empty() {
        return Err(RegisterError::NoVariables {
            uri_template: uri_template.clone(),
        });
    }
    if let Some((name, _)) = description
        .completers
        .iter()
        .find(|(name, _)| !variables.contains(&name.as_str()))
    {
        let (uri_template, variable) = (uri_template.clone(), name.clone());
        return Err(RegisterError::Completer {
            uri_template,
            variable,
        });
    }
    if !template.has_scheme() {
        return Err(RegisterError::SchemeMissing {
            uri: uri_template.clone(),
        });
    }
    check_details(uri_template, &description.details)?;
    Ok(CheckedTemplate {
        description,
        matcher,
    })
}

fn make_matcher(description: &ResourceTemplate) -> Result<Matcher, TemplateError> {
    let template = UriTemplate::parse(&description.uri_template)?;
    match description.lenient {
        true => Matcher::lenient(&template),
        false => Matcher::new(&template),
    }
}

fn check_details(key: &str, details: &Details) -> Result<(), RegisterError> {
    if details.name.trim().is_empty() {
        return Err(RegisterError::NameMissing {
            key: key.to_owned(),
        });
    }
    match details.annotations.priority {
        Some(priority) if !(0.0..=1.0).contains(&priority) => Err(RegisterError::Priority {
            key: key.to_owned(),
            priority,
        }),
        _ => Ok(()),
    }
}

fn check_distinct(keys: &[String]) -> Result<(), RegisterError> {
    let mut seen = HashSet::new();
    match keys.iter().find(|key| !seen.insert(key.as_str())) {
        Some(key) => Err(RegisterError::Duplicate { key: key.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_the_normal_form_of_a_uri() {
        let key = |uri: &str| Resource::new(uri, "A", || "a").key();
        assert_eq!(key("NOTES://a%2fb").unwrap(), key("notes://a%2Fb").unwrap());
        assert_ne!(key("notes://a%2Fb").unwrap(), key("notes://a/b").unwrap());
        assert!(matches!(
            key("nothing"),
            Err(RegisterError::SchemeMissing { .. })
        ));
        assert!(matches!(
            key("notes://{a}"),
            Err(RegisterError::NotDirect { .. })
        ));
    }
}
