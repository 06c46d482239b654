use crate::{Resource, ResourceTemplate};

/// Resources and templates that are registered together, or not at all.
///
/// ```
/// use mcp_resources::{Bundle, Parameters, Registry, Resource, ResourceTemplate};
///
/// let files = ["notes.org", "journal.org"];
/// let bundle = Bundle::new()
///     .resources(files.map(|file| Resource::new(format!("org://{file}"), file, move || std::fs::read_to_string(file))))
///     .template(ResourceTemplate::new("org://id/{id}", "Headline", |parameters: Parameters| parameters.text("id").map(str::to_owned)));
/// let registry = Registry::new();
/// registry.register_server("org", bundle)?;
/// assert!(registry.unregister_server("org"));
/// # Ok::<(), mcp_resources::RegisterError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Bundle {
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl Bundle {
    /// Makes an empty bundle.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds resources.
    pub fn resources(mut self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.resources.extend(resources);
        self
    }

    /// Adds a template.
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds templates.
    pub fn templates(mut self, templates: impl IntoIterator<Item = ResourceTemplate>) -> Self {
        self.templates.extend(templates);
        self
    }
}
