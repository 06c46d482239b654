//! Builds the toolbox of a turn: the tools and the things that they share.

use std::path::Path;

use jp_conversation::resolution;
use jp_turn::{Builtin, Files, Source, Surroundings, Tool, Toolbox};

use crate::{
    attachments::declarations,
    error::SessionError,
    notice::Notice,
    query::ready_query::ReadyQuery,
    servers::secret_variables,
    session::Setup,
    tools::{is_served, refresher::Refresher, server_tools},
};

/// Builds the toolbox of a query.
pub(crate) fn assemble(query: &ReadyQuery<'_>) -> Result<Toolbox, SessionError> {
    let root = query.session.workspace.root();
    let surroundings = Surroundings {
        root: root.to_owned(),
        conversation: query.id.map(|id| id.to_string()),
        secret_variables: secret_variables(query.setup()),
        executable: query.session.surroundings.executable.clone(),
        place: Some(declarations::place(query.setup())?),
        handles: query.id.map(|id| query.session.workspace.handles(id)),
    };
    let files = Files::open(root, &read_only_paths(query, root))?;
    // Tools may only overwrite states of files that the model has seen.
    files.remember(&query.stream);
    // Tools of servers can change during the turn, so they are apart.
    let (served, own): (Vec<_>, Vec<_>) = query.tools.on.iter().cloned().partition(is_served);
    let mut toolbox = Toolbox::new(own, surroundings, files);
    toolbox.serve(served);
    toolbox.disabled.clone_from(&query.tools.off);
    toolbox.servers.clone_from(&query.tools.servers);
    offer_refresh_tool(query, &mut toolbox)?;
    Ok(toolbox)
}

/// Lists the tools of servers again that report changes. Returns the tools of all servers if any changed.
pub(crate) fn list_again(query: &mut ReadyQuery<'_>) -> Option<Vec<Tool>> {
    let reporting: Vec<_> = query
        .tools
        .servers
        .iter()
        .filter(|(_, connection)| connection.has_other_tools())
        .collect();
    let (mut changed, mut new) = (Vec::new(), Vec::new());
    for relisted in server_tools::relist(&reporting, query.session) {
        let server = relisted.server.clone();
        if let Some(added) = replace(relisted, query) {
            changed.push(server);
            new.extend(added);
        }
    }
    if changed.is_empty() {
        return None;
    }
    query.session.person.tell(Notice::ToolsChanged {
        servers: changed,
        new,
    });
    let tools = query.tools.on.iter().filter(|tool| is_served(tool));
    Some(tools.cloned().collect())
}

/// Replaces the tools of a server by those that it lists now. Returns the names of new ones, or `None` if nothing
/// changed.
fn replace(
    relisted: server_tools::RelistedTools,
    query: &mut ReadyQuery<'_>,
) -> Option<Vec<String>> {
    let server = relisted.server.clone();
    let (before, kept): (Vec<_>, Vec<_>) = query
        .tools
        .on
        .iter()
        .cloned()
        .partition(|tool| is_of_server(tool, &server));
    let taken = kept.iter().map(|tool| tool.name.clone()).collect();
    let setup = Setup::new(query.session, &query.config);
    let defined = relisted.define(taken, &mut query.tools.notices, setup)?;
    query.tools.on = kept;
    for tool in defined {
        query
            .tools
            .settle(tool, Setup::new(query.session, &query.config));
    }
    let now: Vec<_> = query
        .tools
        .on
        .iter()
        .filter(|tool| is_of_server(tool, &server))
        .collect();
    // The change may be in a tool that is off, or in a part that jp doesn't use.
    if now.iter().copied().eq(&before) {
        return None;
    }
    let new = now
        .into_iter()
        .filter(|tool| !before.iter().any(|before| before.name == tool.name));
    Some(new.map(|tool| tool.name.clone()).collect())
}

fn is_of_server(tool: &Tool, server: &str) -> bool {
    matches!(&tool.source, Source::Server(source) if source.server == server)
}

/// Gives `refresh_resource` its refresher, or removes the tool if the conversation has no declarations.
///
/// Once offered, it stays, because another list of tools would cost the whole prompt cache.
fn offer_refresh_tool(query: &ReadyQuery<'_>, toolbox: &mut Toolbox) -> Result<(), SessionError> {
    let name = Builtin::RefreshResource.name();
    let Some(position) = toolbox.tools.iter().position(|tool| tool.name == name) else {
        return Ok(());
    };
    let conversation = &query.config.config.conversation;
    let is_chosen = query.tools.chosen_on().any(|chosen| chosen == name)
        || conversation
            .tools
            .get(name)
            .is_some_and(|settings| settings.enable == Some(true));
    if is_chosen || !conversation.attachments.is_empty() || resolution::has_attached(&query.stream)
    {
        toolbox.refresh = Some(Box::new(Refresher::new(query, &toolbox.tools[position])?));
    } else {
        toolbox.disabled.push(toolbox.tools.remove(position).name);
    }
    Ok(())
}

/// Returns the patterns of paths that tools don't write to: the configured ones, and jp's own directories if they are
/// in the workspace, as in a home directory.
fn read_only_paths(query: &ReadyQuery<'_>, root: &Path) -> Vec<String> {
    let surroundings = &query.session.surroundings;
    let config = surroundings.config.as_ref().map(|config| config.join("jp"));
    let own = config
        .into_iter()
        .chain([surroundings.data.clone(), surroundings.cache.clone()]);
    let inside =
        own.filter_map(|path| Some(format!("/{}/", path.strip_prefix(root).ok()?.display())));
    query
        .config
        .config
        .conversation
        .read_only_paths
        .iter()
        .cloned()
        .chain(inside)
        .collect()
}
