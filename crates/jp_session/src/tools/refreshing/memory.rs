//! Content on its way into a tool's result.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Mutex, PoisonError},
};

use jp_attachment::{ContentStore, FileStamp, Known};
use jp_resource::{BlobRef, Checksum, Resource, ResourceContent};

/// Keeps what handlers find until the result has it: the conversation stores it with the result.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<Checksum, ResourceContent>>);

impl Memory {
    /// Puts the content into a resource.
    pub(crate) fn load(self, resource: Resource<BlobRef>) -> Option<Resource> {
        let mut contents = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let content = contents.remove(&resource.content.checksum)?;
        Some(resource.map(|_| content, |formatted| formatted))
    }
}

impl ContentStore for Memory {
    fn known(&self, _: &FileStamp) -> Option<Known> {
        None
    }

    fn keep(
        &self,
        content: &ResourceContent,
        _: &str,
        _: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        let blob = content.blob_ref();
        let mut contents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contents.insert(blob.checksum, content.clone());
        Ok(blob)
    }
}
