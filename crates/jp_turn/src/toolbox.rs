//! The tools of a turn, and what they share.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
};

use jp_attachment::Place;
use jp_mcp::Connection;
use serde_json::Value;

use crate::{
    Tool,
    builtin::{Files, Refresh},
    stateful::Handles,
};

/// The tools of a turn.
#[derive(Debug)]
pub struct Toolbox {
    /// The tools that stay for the turn, in the order in which models are told of them.
    pub tools: Vec<Tool>,
    /// Those of MCP servers, which may change; models are told of them after the others.
    served: RwLock<Vec<Arc<Tool>>>,
    /// Names of tools that there are and that are switched off, so that a call of one can be told why.
    pub disabled: Vec<String>,
    /// What tools are told of where they run.
    pub surroundings: Surroundings,
    /// The workspace's files, as far as tools may reach them.
    pub files: Files,
    /// The MCP servers that tools are of, by their names.
    pub servers: BTreeMap<String, Arc<Connection>>,
    /// Takes new snapshots of what is attached, where anything can be.
    pub refresh: Option<Box<dyn Refresh>>,
    /// What the person said for the rest of the turn.
    pub(crate) said: Mutex<Said>,
    /// Tools that live on between calls; they end with the turn.
    pub(crate) handles: Handles,
    /// The ids of the questions that were answered.
    inquiries: Mutex<HashSet<String>>,
}

/// Where tools run.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The workspace root.
    pub root: PathBuf,
    /// How files outside of it are named; where it is not said, by the plain hash of where they are.
    pub place: Option<Place>,
    /// The conversation, where it has an id.
    pub conversation: Option<String>,
    /// Variables of the environment that no program gets: they hold keys.
    pub secret_variables: Vec<String>,
    /// Where tools that outlive the turn have their pipes; `None` where they can't.
    pub handles: Option<PathBuf>,
    /// The `jp` command itself, which some tools run.
    pub executable: PathBuf,
}

/// What the person said for the rest of the turn.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Tools that run without being asked about.
    pub(crate) allowed: BTreeSet<String>,
    /// Answers, by tool and question.
    pub(crate) answers: HashMap<(String, String), Value>,
}

impl Toolbox {
    /// Puts tools together.
    #[must_use]
    pub fn new(tools: Vec<Tool>, surroundings: Surroundings, files: Files) -> Self {
        Self {
            tools,
            served: RwLock::default(),
            disabled: Vec::new(),
            surroundings,
            files,
            servers: BTreeMap::new(),
            refresh: None,
            said: Mutex::default(),
            handles: Handles::default(),
            inquiries: Mutex::default(),
        }
    }

    /// Returns what a model is told of the tools: of those that may run.
    #[must_use]
    pub fn offered(&self) -> Vec<jp_llm::Tool> {
        let served = self.served();
        let all = self.tools.iter().chain(served.iter().map(|tool| &**tool));
        all.filter(|tool| tool.may_run())
            .map(Tool::offered)
            .collect()
    }

    /// Replaces the tools of MCP servers. Calls that run go on with what they began with.
    pub fn serve(&self, tools: Vec<Tool>) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        *served = tools.into_iter().map(Arc::new).collect();
    }

    fn served(&self) -> RwLockReadGuard<'_, Vec<Arc<Tool>>> {
        self.served.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an id for a question that a call asks; where it asks again, one with a number.
    pub(crate) fn inquiry_id(&self, call: &str, question: &str) -> String {
        let mut taken = self
            .inquiries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut id = format!("{call}.{question}");
        let mut times = 1;
        while !taken.insert(id.clone()) {
            times += 1;
            id = format!("{call}.{question}.{times}");
        }
        id
    }

    /// Finds a tool; the error is for the model.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Tool>, String> {
        if let Some(tool) = self.tools.iter().find(|tool| tool.name == name) {
            return Ok(Arc::new(tool.clone()));
        }
        let served = self.served();
        if let Some(tool) = served.iter().find(|tool| tool.name == name) {
            return Ok(Arc::clone(tool));
        }
        if self.disabled.iter().any(|disabled| disabled == name) {
            return Err(format!(
                "The tool `{name}` is switched off in this conversation."
            ));
        }
        let all = self.tools.iter().chain(served.iter().map(|tool| &**tool));
        let names: Vec<_> = all.map(|tool| format!("`{}`", tool.name)).collect();
        Err(match names.as_slice() {
            [] => format!("There is no tool `{name}`: no tools are available."),
            names => format!(
                "There is no tool `{name}`. There are: {}.",
                names.join(", ")
            ),
        })
    }
}
