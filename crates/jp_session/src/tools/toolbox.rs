//! The tools of a turn, with what they share.

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
    tools::{is_served, refreshing::Refresher, served},
};

/// Puts the tools together with what they share.
pub(crate) fn assemble(asked: &ReadyQuery<'_>) -> Result<Toolbox, SessionError> {
    let root = asked.session.workspace.root();
    let surroundings = Surroundings {
        root: root.to_owned(),
        conversation: asked.id.map(|id| id.to_string()),
        secret_variables: secret_variables(asked.setup()),
        executable: asked.session.surroundings.executable.clone(),
        place: Some(declarations::place(asked.setup())?),
        handles: asked.id.map(|id| asked.session.workspace.handles(id)),
    };
    let files = Files::open(root, &read_only(asked, root))?;
    files.saw(&asked.stream);
    let (served, own): (Vec<_>, Vec<_>) = asked.tools.on.iter().cloned().partition(is_served);
    let mut toolbox = Toolbox::new(own, surroundings, files);
    toolbox.serve(served);
    toolbox.disabled.clone_from(&asked.tools.off);
    toolbox.servers.clone_from(&asked.tools.servers);
    offer_refreshing(asked, &mut toolbox)?;
    Ok(toolbox)
}

/// Lists the tools of servers anew that say they have others now; returns those of all servers, where any did.
pub(crate) fn list_again(asked: &mut ReadyQuery<'_>) -> Option<Vec<Tool>> {
    let servers = asked.tools.servers.iter();
    let others: Vec<_> = servers
        .filter(|(_, connection)| connection.has_other_tools())
        .collect();
    let (mut changed, mut new) = (Vec::new(), Vec::new());
    for relisted in served::again(&others, asked.session) {
        let server = relisted.server.clone();
        if let Some(added) = replace(relisted, asked) {
            changed.push(server);
            new.extend(added);
        }
    }
    if changed.is_empty() {
        return None;
    }
    asked.session.person.tell(Notice::ToolsChanged {
        servers: changed,
        new,
    });
    Some(
        asked
            .tools
            .on
            .iter()
            .filter(|tool| is_served(tool))
            .cloned()
            .collect(),
    )
}

/// Has the tools of a server be those that it lists now; returns which are new, or nothing where all stays as it was.
fn replace(relisted: served::Relisted, asked: &mut ReadyQuery<'_>) -> Option<Vec<String>> {
    let server = relisted.server.clone();
    let is_its = |tool: &Tool| matches!(&tool.source, Source::Server(of) if of.server == server);
    let (before, kept): (Vec<_>, Vec<_>) = asked.tools.on.iter().cloned().partition(is_its);
    let taken = kept.iter().map(|tool| tool.name.clone()).collect();
    let listed = {
        let setup = Setup::new(asked.session, &asked.config);
        relisted.tools(taken, &mut asked.tools.told, setup)?
    };
    asked.tools.on = kept;
    for declared in listed {
        asked
            .tools
            .settle(declared, Setup::new(asked.session, &asked.config));
    }
    let now: Vec<_> = asked.tools.on.iter().filter(|tool| is_its(tool)).collect();
    if now.iter().copied().eq(&before) {
        return None;
    }
    let new = now
        .into_iter()
        .filter(|tool| !before.iter().any(|before| before.name == tool.name));
    Some(new.map(|tool| tool.name.clone()).collect())
}

/// Gives `refresh_resource` what it works on; without anything declared it is not offered.
///
/// Once it was offered it stays: another list of tools would cost the whole prompt cache.
fn offer_refreshing(asked: &ReadyQuery<'_>, toolbox: &mut Toolbox) -> Result<(), SessionError> {
    let name = Builtin::RefreshResource.name();
    let Some(position) = toolbox.tools.iter().position(|tool| tool.name == name) else {
        return Ok(());
    };
    let conversation = &asked.config.config.conversation;
    let is_chosen = asked.tools.chosen_on().any(|chosen| chosen == name)
        || conversation
            .tools
            .get(name)
            .is_some_and(|settings| settings.enable == Some(true));
    if is_chosen || !conversation.attachments.is_empty() || resolution::has_attached(&asked.stream)
    {
        toolbox.refresh = Some(Box::new(Refresher::new(asked, &toolbox.tools[position])?));
    } else {
        toolbox.disabled.push(toolbox.tools.remove(position).name);
    }
    Ok(())
}

/// Returns what no tool writes to: what is configured, and what jp keeps of its own where that is in the workspace.
fn read_only(asked: &ReadyQuery<'_>, root: &Path) -> Vec<String> {
    let environment = &asked.session.surroundings;
    let config = environment.config.as_ref().map(|config| config.join("jp"));
    let own = config
        .into_iter()
        .chain([environment.data.clone(), environment.cache.clone()]);
    let inside =
        own.filter_map(|path| Some(format!("/{}/", path.strip_prefix(root).ok()?.display())));
    asked
        .config
        .config
        .conversation
        .read_only_paths
        .iter()
        .cloned()
        .chain(inside)
        .collect()
}
