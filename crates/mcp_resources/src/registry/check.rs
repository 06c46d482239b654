//! What can be registered.

use std::collections::HashSet;

use super::{Bundle, Keys, Template};
use crate::resource::Details;
use crate::template::{Matcher, TemplateError, UriTemplate, Values, has_scheme, normal_uri};
use crate::{Resource, ResourceTemplate};

/// Why nothing was registered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A URI that is none.
    #[error("{uri:?} is not a URI: {source}")]
    Uri {
        /// It.
        uri: String,
        /// What is wrong, and where.
        source: TemplateError,
    },
    /// A URI, or a template, without a scheme in front; a template would answer for URIs of any.
    #[error("{uri:?} does not start with a scheme; put one in front, as in \"notes://\"")]
    SchemeMissing {
        /// It.
        uri: String,
    },
    /// A URI with variables.
    #[error("{uri:?} has variables; register it as a template")]
    NotDirect {
        /// It.
        uri: String,
    },
    /// A template without variables.
    #[error("{uri_template:?} has no variables; register it as a resource")]
    NoVariables {
        /// It.
        uri_template: String,
    },
    /// A template that can't be parsed or matched.
    #[error("{uri_template:?} is not a template that can be served: {source}")]
    Template {
        /// It.
        uri_template: String,
        /// What is wrong, and where.
        source: TemplateError,
    },
    /// No name.
    #[error("{key:?} needs a name for people")]
    NameMissing {
        /// The URI or the template.
        key: String,
    },
    /// A priority that is not from 0 to 1.
    #[error("the priority of {key:?} is {priority}; it has to be from 0 to 1")]
    Priority {
        /// The URI or the template.
        key: String,
        /// The priority.
        priority: f32,
    },
    /// A completer for a name that is no variable of the template.
    #[error("{uri_template:?} has no variable {variable:?} to complete")]
    Completer {
        /// The template.
        uri_template: String,
        /// The name.
        variable: String,
    },
    /// One URI or template twice in a call.
    #[error("{key:?} is there twice")]
    Duplicate {
        /// The URI or the template.
        key: String,
    },
}

pub(super) struct Checked {
    /// With the form of their URIs in which these are compared.
    pub(super) resources: Vec<(String, Resource)>,
    pub(super) templates: Vec<Template>,
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
            .map(resource)
            .collect::<Result<_, _>>()?,
        templates: bundle
            .templates
            .into_iter()
            .map(template)
            .collect::<Result<_, _>>()?,
    };
    let keys = checked.keys();
    distinct(&keys.resources)?;
    distinct(&keys.templates)?;
    Ok(checked)
}

impl Resource {
    /// Gives the form of its URI in which URIs are compared: a [`Bundle`] has each once.
    ///
    /// # Errors
    ///
    /// As [`Registry::register_resource`](crate::Registry::register_resource).
    pub fn key(&self) -> Result<String, RegisterError> {
        self.checked().map(|(key, _)| key)
    }

    /// Gives that form, and the URI as it is listed.
    fn checked(&self) -> Result<(String, String), RegisterError> {
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
        details(uri, &self.details)?;
        Ok((key, listed))
    }
}

fn resource(mut resource: Resource) -> Result<(String, Resource), RegisterError> {
    let (key, uri) = resource.checked()?;
    resource.uri = uri;
    Ok((key, resource))
}

fn template(description: ResourceTemplate) -> Result<Template, RegisterError> {
    let uri_template = &description.uri_template;
    let refused = |source| RegisterError::Template {
        uri_template: uri_template.clone(),
        source,
    };
    let template = UriTemplate::parse(uri_template).map_err(refused)?;
    let matcher = match description.lenient {
        true => Matcher::lenient(&template),
        false => Matcher::new(&template),
    };
    let matcher = matcher.map_err(refused)?;
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
    details(uri_template, &description.details)?;
    Ok(Template {
        description,
        matcher,
    })
}

fn details(key: &str, details: &Details) -> Result<(), RegisterError> {
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

fn distinct(keys: &[String]) -> Result<(), RegisterError> {
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
    fn key_is_the_same_for_uris_that_are_one_and_none_for_what_is_no_uri() {
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
