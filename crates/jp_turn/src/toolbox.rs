//! The tools of a turn and their shared state.

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
    /// The tools that stay for the turn, in the order of the request.
    pub tools: Vec<Tool>,
    /// The tools of MCP servers, which may change in a turn. They follow the others in a request.
    served: RwLock<Vec<Arc<Tool>>>,
    /// The names of tools that are switched off, so that the error for a call can say so.
    pub disabled: Vec<String>,
    /// The place where tools run.
    pub surroundings: Surroundings,
    /// The workspace's files that tools may access.
    pub files: Files,
    /// The MCP servers of the tools by name.
    pub servers: BTreeMap<String, Arc<Connection>>,
    /// Takes new snapshots of attached resources; `None` if nothing can be attached.
    pub refresh: Option<Box<dyn Refresh>>,
    /// The user's decisions for the rest of the turn.
    decisions: Mutex<TurnDecisions>,
    /// The processes of stateful tools.
    pub(crate) handles: Handles,
    /// The ids of recorded questions.
    inquiries: Mutex<HashSet<String>>,
}

/// The place where tools run.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The workspace root.
    pub root: PathBuf,
    /// The place for naming files in results. If it is `None`, files outside the workspace are
    /// named by a hash without a key.
    pub place: Option<Place>,
    /// The id of the conversation, if it has one.
    pub conversation: Option<String>,
    /// The environment variables that jp removes for programs because they contain keys.
    pub secret_variables: Vec<String>,
    /// The directory for the pipes of tools that outlive the turn; `None` if no tool can outlive
    /// it.
    pub handles: Option<PathBuf>,
    /// The path of the `jp` executable, which some tools run.
    pub executable: PathBuf,
}

/// The user's decisions for the rest of the turn.
#[derive(Debug, Default)]
pub(crate) struct TurnDecisions {
    /// The tools that run without a prompt.
    pub(crate) allowed: BTreeSet<String>,
    /// The answers by tool and question.
    pub(crate) answers: HashMap<(String, String), Value>,
}

impl Toolbox {
    /// Creates a toolbox.
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
            decisions: Mutex::default(),
            handles: Handles::default(),
            inquiries: Mutex::default(),
        }
    }

    /// Returns the definitions of the tools that may run, for a request.
    #[must_use]
    pub fn definitions(&self) -> Vec<jp_llm::Tool> {
        let served = self.read_served();
        let all = self.tools.iter().chain(served.iter().map(|tool| &**tool));
        all.filter(|tool| tool.may_run())
            .map(Tool::definition)
            .collect()
    }

    /// Replaces the tools of MCP servers. Running calls keep the tools that they started with.
    pub fn serve(&self, tools: Vec<Tool>) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        *served = tools.into_iter().map(Arc::new).collect();
    }

    fn read_served(&self) -> RwLockReadGuard<'_, Vec<Arc<Tool>>> {
        self.served.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn decisions(&self) -> MutexGuard<'_, TurnDecisions> {
        self.decisions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a unique id for a call's question: `CALL.QUESTION`, with a number if the call asks
    /// it again.
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
        let served = self.read_served();
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
