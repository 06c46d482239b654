//! Decides which provider settings apply, depending on the layer that sets them.
//!
//! A workspace can come from anywhere. It may define providers of its own, but it neither redirects a provider that
//! the user or jp defines, nor chooses which of the user's keys goes to it.

use crate::{
    error::SessionError,
    notice::Notice,
    person::Person,
    trust::{Decision, Effect, ModelChoice, Origin, Redirect, decide_unapproved},
};
use jp_config::{Key, Layer, LlmProvider, Resolved};
use jp_llm::BaseUrl;

/// The hint for every setting of a workspace that jp refuses.
pub(crate) const OWN: &str = "set it in your own configuration, ~/.config/jp/config.toml.";

/// The variables that the providers' own tools read their keys from.
pub(crate) const USUAL_KEY_VARIABLES: [(&str, &str); 5] = [
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("google", "GEMINI_API_KEY"),
    ("google", "GOOGLE_API_KEY"),
    ("openrouter", "OPENROUTER_API_KEY"),
];

/// Returns the variable that a provider's own tools read its key from.
pub fn usual_key_variable(provider: &str) -> Option<&'static str> {
    USUAL_KEY_VARIABLES
        .iter()
        .find(|(name, _)| *name == provider)
        .map(|(_, variable)| *variable)
}

/// Returns the base URL of a provider that needs no configuration.
pub(crate) fn default_base_url(provider: &str) -> Option<&'static str> {
    match provider {
        "llamacpp" => Some("http://127.0.0.1:8080"),
        "ollama" => Some("http://127.0.0.1:11434"),
        "anthropic" => Some("https://api.anthropic.com"),
        "openai" => Some("https://api.openai.com"),
        "google" => Some("https://generativelanguage.googleapis.com"),
        "openrouter" => Some("https://openrouter.ai/api"),
        _ => None,
    }
}

/// The settings of a provider that apply.
#[derive(Debug, Default)]
pub(crate) struct ProviderSettings {
    pub(crate) settings: LlmProvider,
    pub(crate) ignored: Vec<IgnoredSetting>,
}

/// A setting that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IgnoredSetting {
    key: String,
    path: String,
    reason: String,
    hint: &'static str,
}

impl IgnoredSetting {
    pub(crate) fn warn(&self, person: &dyn Person) {
        let Self {
            key,
            path,
            reason,
            hint,
        } = self.clone();
        person.tell(Notice::SettingIgnored {
            key,
            path,
            reason,
            hint,
        });
    }

    /// Adds to a failure that the setting has no effect, which may be why.
    pub(crate) fn explain(&self, failure: SessionError) -> SessionError {
        failure.with_hint(format!("{}; {}", self.message(), self.hint))
    }

    fn message(&self) -> String {
        format!("{} in {} is ignored: {}", self.key, self.path, self.reason)
    }
}

/// A provider's configuration, with the layer of each setting.
#[derive(Clone, Copy)]
pub(crate) struct ConfiguredProvider<'a> {
    config: &'a Resolved,
    provider: &'a str,
}

impl<'a> ConfiguredProvider<'a> {
    pub(crate) fn new(config: &'a Resolved, provider: &'a str) -> Self {
        Self { config, provider }
    }

    /// Returns the merged settings of all layers, including the workspace's.
    pub(crate) fn said(self) -> LlmProvider {
        self.config
            .config
            .providers
            .llm
            .get(self.provider)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the settings that apply, and the workspace's settings that don't.
    pub(crate) fn settings(self) -> ProviderSettings {
        let (mut settings, mut ignored) = (self.said(), Vec::new());
        if let Some(url) = &settings.base_url
            && let Some(path) = self.refused("base_url", Effect::Redirect(self.redirect(url)))
        {
            let reason = "a workspace can't redirect a provider that it does not define";
            ignored.push(self.ignored("base_url", path, reason));
            settings.base_url = None;
        }
        // The usual variable needs no setting, and a server of the user's own may want no key.
        if self.by_workspace("api_key_env").is_some()
            && self.is_known()
            && let Some(variable) = settings.api_key_env.take()
            && let Some(path) = self.refused("api_key_env", self.choice_of_key(&variable))
        {
            let reason = "a workspace can't choose the key of a provider that it does not define";
            ignored.push(self.ignored("api_key_env", path, reason));
        }
        ProviderSettings { settings, ignored }
    }

    /// Returns the workspace's file that makes a setting, if no later layer overrides it.
    pub(crate) fn by_workspace(self, field: &str) -> Option<String> {
        match self.layer(field) {
            Layer::Workspace { path } => Some(path.display().to_string()),
            _ => None,
        }
    }

    /// Returns the workspace's file if it makes a setting whose effect is refused.
    pub(crate) fn refused(self, field: &str, effect: Effect) -> Option<String> {
        let is_refused =
            decide_unapproved(Origin::from(self.layer(field)), effect) == Decision::Refused;
        self.by_workspace(field).filter(|_| is_refused)
    }

    fn choice_of_key(self, variable: &str) -> Effect {
        Effect::ChooseKey {
            is_usual: usual_key_variable(self.provider) == Some(variable),
        }
    }

    /// Returns the key of a setting as people write it.
    pub(crate) fn key(self, field: &str) -> Key {
        ["providers", "llm", self.provider, field]
            .into_iter()
            .collect()
    }

    fn layer(self, field: &str) -> &'a Layer {
        self.config.origins.layer(&self.key(field))
    }

    /// Returns whether the user or jp defines the provider, or one whose name differs only in case.
    fn is_known(self) -> bool {
        self.is_users() || self.namesake().is_some() || default_base_url(self.provider).is_some()
    }

    /// Returns the provider of the user or of jp whose name differs from this one's only in case. People take the two
    /// for one.
    pub(crate) fn namesake(self) -> Option<String> {
        let name = self.provider.to_lowercase();
        let is_built_in = name != self.provider && default_base_url(&name).is_some();
        self.users_namesake()
            .map(str::to_owned)
            .or_else(|| is_built_in.then_some(name))
    }

    fn users_namesake(self) -> Option<&'a str> {
        let name = self.provider.to_lowercase();
        let others = self.config.config.providers.llm.keys().map(String::as_str);
        let mut namesakes =
            others.filter(|other| *other != self.provider && other.to_lowercase() == name);
        namesakes.find(|other| Self::new(self.config, other).is_users())
    }

    /// Returns whether the user says where the provider is or which key it gets; what they say of its models
    /// defines nothing.
    fn is_users(self) -> bool {
        let is_users =
            |field| !matches!(self.layer(field), Layer::Default | Layer::Workspace { .. });
        ["base_url", "api_key_env", "api_key_command"]
            .into_iter()
            .any(is_users)
    }

    /// Returns what decides whether a workspace may set the base URL.
    fn redirect(self, base_url: &str) -> Redirect {
        let name = self.provider.to_lowercase();
        Redirect {
            has_users_namesake: self.users_namesake().is_some(),
            is_built_in: default_base_url(&name).is_some(),
            is_local: matches!(&*name, "llamacpp" | "ollama"),
            is_users: self.is_users(),
            is_loopback: BaseUrl::parse(base_url).is_ok_and(|url| url.is_loopback()),
            model: self.model_choice(),
        }
    }

    fn model_choice(self) -> ModelChoice {
        match ChosenModel::of(self.config) {
            None => ModelChoice::NotChosen,
            Some(model) if model.is_workspaces && model.provider() == Some(self.provider) => {
                ModelChoice::Workspace
            }
            Some(_) => ModelChoice::Other,
        }
    }

    fn ignored(self, field: &str, path: String, reason: &str) -> IgnoredSetting {
        let reason = match self.namesake() {
            Some(other) => {
                format!("its name differs from that of the provider `{other}` only in case")
            }
            None => reason.to_owned(),
        };
        IgnoredSetting {
            key: self.key(field).to_string(),
            path,
            reason,
            hint: "to use it, set it in ~/.config/jp/config.toml.",
        }
    }

    /// Returns why the workspace may not use the key in a variable; `None` if it may.
    pub(crate) fn refuse_variable(self, variable: &str) -> Option<String> {
        let owner = self.owner(variable).filter(|owner| *owner != self.provider);
        let is_api_key = variable.ends_with("_API_KEY");
        let effect = Effect::SendVariable {
            is_api_key,
            is_of_other: owner.is_some(),
        };
        self.refused("api_key_env", effect)?;
        Some(match owner.filter(|_| is_api_key) {
            Some(owner) => format!("a workspace may not send the key of {owner} elsewhere"),
            None => {
                "a workspace may only name a variable that holds an API key (…_API_KEY)".to_owned()
            }
        })
    }

    /// Returns the provider whose key a variable holds, by its usual name or by the user's configuration.
    fn owner(self, variable: &str) -> Option<&'a str> {
        let usual = USUAL_KEY_VARIABLES
            .iter()
            .find(|(_, usual)| *usual == variable);
        usual.map(|(provider, _)| *provider).or_else(|| {
            let providers = self.config.config.providers.llm.iter();
            let mut named =
                providers.filter(|(_, said)| said.api_key_env.as_deref() == Some(variable));
            named.find_map(|(name, _)| {
                let of = ConfiguredProvider::new(self.config, name);
                of.by_workspace("api_key_env").is_none().then_some(&**name)
            })
        })
    }
}

/// The model that the configuration names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenModel<'a> {
    /// `provider/name`, or a name that isn't an alias.
    pub(crate) id: &'a str,
    /// Whether the workspace alone chose it.
    is_workspaces: bool,
}

impl<'a> ChosenModel<'a> {
    pub(crate) fn of(config: &'a Resolved) -> Option<Self> {
        let id = config.config.assistant.model.id.as_deref()?;
        let is_workspaces = |layer: &Layer| matches!(layer, Layer::Workspace { .. });
        let is_chosen_there = is_workspaces(config.origin("assistant.model.id"));
        Some(match alias(config, id) {
            Some((id, layer)) => Self {
                id,
                is_workspaces: is_chosen_there && is_workspaces(layer),
            },
            None => Self {
                id,
                is_workspaces: is_chosen_there,
            },
        })
    }

    fn provider(self) -> Option<&'a str> {
        self.id.split_once('/').map(|(provider, _)| provider)
    }
}

/// Returns the model of an alias, and the layer that defines it. `PROVIDER/NAME` is never an alias.
fn alias<'a>(config: &'a Resolved, name: &str) -> Option<(&'a str, &'a Layer)> {
    let model = config
        .config
        .providers
        .aliases
        .get(name)
        .filter(|_| may_name(config, name))?;
    Some((model, config.origins.layer(&alias_key(name))))
}

fn alias_key(name: &str) -> Key {
    ["providers", "aliases", name].into_iter().collect()
}

fn may_name(config: &Resolved, name: &str) -> bool {
    let effect = Effect::NameModel {
        is_taken: false,
        has_slash: name.contains('/'),
    };
    let layer = config.origins.layer(&alias_key(name));
    decide_unapproved(Origin::from(layer), effect) == Decision::Allowed
}

/// Returns the aliases that read as `PROVIDER/NAME`, which have no effect.
pub(crate) fn ignored_aliases(config: &Resolved) -> Vec<IgnoredSetting> {
    let names = config
        .config
        .providers
        .aliases
        .keys()
        .filter(|name| !may_name(config, name));
    let ignored = names.map(|name| {
        let key = alias_key(name);
        let path = config.origins.layer(&key).to_string();
        let reason = "an alias can't contain a `/`".to_owned();
        let hint = "rename it: PROVIDER/NAME always means that provider.";
        IgnoredSetting {
            key: config.origins.as_written(&key).to_string(),
            path,
            reason,
            hint,
        }
    });
    ignored.collect()
}

#[cfg(test)]
mod tests {
    use jp_config::{Assignment, Layers};

    use super::*;

    const HERE: &str = "http://127.0.0.1:9";
    const ELSEWHERE: &str = "https://llm.example";

    /// Returns the base URL that counts for a provider which the workspace has at `url`, where the user names `model`.
    fn followed(
        provider: &str,
        url: &str,
        workspace: &str,
        user: &str,
        model: Option<&str>,
    ) -> Option<String> {
        let mut layers = Layers::new();
        let file = |path: &str| path.into();
        let text = format!("{workspace}\n[providers.llm.{provider}]\nbase_url = '{url}'\n");
        layers
            .add_toml(Layer::Workspace { path: file("w") }, &text)
            .unwrap();
        layers
            .add_toml(Layer::User { path: file("u") }, user)
            .unwrap();
        if let Some(model) = model {
            let assignment = Assignment::Set {
                key: "assistant.model.id".parse().unwrap(),
                text: model.to_owned(),
            };
            layers
                .add_assignment(
                    Layer::Flag {
                        name: "--model".to_owned(),
                    },
                    &assignment,
                )
                .unwrap();
        }
        let config = layers.resolve().unwrap();
        let ProviderSettings { settings, ignored } =
            ConfiguredProvider::new(&config, provider).settings();
        assert_eq!(
            settings.base_url.is_none(),
            !ignored.is_empty(),
            "what does not count is told"
        );
        settings.base_url
    }

    #[test]
    fn base_url_of_a_workspace_counts_where_it_redirects_nothing() {
        let workspaces = |provider: &str| format!("assistant.model.id = '{provider}/m'");
        for (provider, url, workspace, user, model, counts) in [
            // Its own provider, named by either.
            ("team", ELSEWHERE, String::new(), "", Some("team/m"), true),
            ("team", ELSEWHERE, workspaces("team"), "", None, true),
            (
                "team",
                ELSEWHERE,
                String::new(),
                "providers.llm.team.models.m.tools = true",
                Some("team/m"),
                true,
            ),
            // One that jp defines: only if the workspace chose the model as well.
            (
                "anthropic",
                ELSEWHERE,
                workspaces("anthropic"),
                "",
                None,
                true,
            ),
            (
                "anthropic",
                ELSEWHERE,
                workspaces("anthropic"),
                "",
                Some("anthropic/m"),
                false,
            ),
            (
                "anthropic",
                HERE,
                String::new(),
                "",
                Some("anthropic/m"),
                false,
            ),
            ("anthropic", HERE, workspaces("openai"), "", None, false),
            (
                "anthropic",
                HERE,
                String::new(),
                "assistant.model.id = 'anthropic/m'",
                None,
                false,
            ),
            // By an alias: it is the workspace's choice only if the alias is the workspace's.
            (
                "anthropic",
                HERE,
                "assistant.model.id = 'a'\nproviders.aliases.a = 'anthropic/m'".to_owned(),
                "",
                None,
                true,
            ),
            (
                "anthropic",
                HERE,
                "assistant.model.id = 'a'".to_owned(),
                "providers.aliases.a = 'anthropic/m'",
                None,
                false,
            ),
            // One that is called like another, but for the case, redirects no more than that one.
            (
                "Anthropic",
                ELSEWHERE,
                workspaces("Anthropic"),
                "",
                None,
                true,
            ),
            (
                "Anthropic",
                HERE,
                String::new(),
                "",
                Some("Anthropic/m"),
                false,
            ),
            (
                "Team",
                HERE,
                workspaces("Team"),
                "providers.llm.team.base_url = 'https://team.example'",
                None,
                false,
            ),
            // A local one may be at another port of this machine, unless the user configures it.
            (
                "llamacpp",
                HERE,
                String::new(),
                "",
                Some("llamacpp/m"),
                true,
            ),
            (
                "llamacpp",
                ELSEWHERE,
                String::new(),
                "",
                Some("llamacpp/m"),
                false,
            ),
            ("llamacpp", ELSEWHERE, String::new(), "", None, true),
            ("Ollama", HERE, String::new(), "", Some("Ollama/m"), true),
            (
                "Ollama",
                ELSEWHERE,
                String::new(),
                "",
                Some("Ollama/m"),
                false,
            ),
            (
                "ollama",
                HERE,
                String::new(),
                "providers.llm.ollama.api_key_env = 'A_API_KEY'",
                Some("ollama/m"),
                false,
            ),
        ] {
            let expected = counts.then(|| url.to_owned());
            let case = format!("{provider} at {url}, {workspace:?}, {user:?}, {model:?}");
            assert_eq!(
                followed(provider, url, &workspace, user, model),
                expected,
                "{case}"
            );
        }
    }
}
