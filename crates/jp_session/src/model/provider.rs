//! Decides which provider settings apply, depending on the layer that sets them.
//!
//! A workspace is not trusted. It may define its own providers. It must not redirect a provider that
//! the user or jp defines, and it must not choose which of the user's keys that provider receives.

use crate::{
    error::SessionError,
    notice::{IgnoreReason, IgnoredSetting},
    trust::{Decision, Effect, ModelChoice, Origin, Redirect, decide_unapproved},
};
use jp_config::{Key, Layer, LlmProvider, Resolved};
use jp_llm::BaseUrl;

/// The hint for each setting of a workspace that jp refuses.
const OWN: &str = "set it in your own configuration, ~/.config/jp/config.toml.";

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

/// The settings of a provider that apply, and the workspace's settings that don't.
#[derive(Debug, Default)]
pub(crate) struct ProviderSettings {
    pub(crate) settings: LlmProvider,
    pub(crate) ignored: Vec<IgnoredSetting>,
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

    /// Returns the merged settings of all layers, including those of the workspace that don't apply.
    pub(crate) fn all_settings(self) -> LlmProvider {
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
        let (mut settings, mut ignored) = (self.all_settings(), Vec::new());
        if let Some(url) = &settings.base_url
            && let Some(path) =
                self.workspace_file_if_refused("base_url", Effect::Redirect(self.redirect(url)))
        {
            ignored.push(self.ignore("base_url", path, IgnoreReason::RedirectsProvider));
            settings.base_url = None;
        }
        // The provider's usual variable needs no setting, and the user's own server may need no key.
        if self.workspace_file("api_key_env").is_some()
            && self.is_known()
            && let Some(variable) = settings.api_key_env.take()
            && let Some(path) =
                self.workspace_file_if_refused("api_key_env", self.choice_of_key(&variable))
        {
            ignored.push(self.ignore("api_key_env", path, IgnoreReason::ChoosesKey));
        }
        ProviderSettings { settings, ignored }
    }

    /// Returns the workspace's file that sets a field, if no later layer overrides it.
    pub(crate) fn workspace_file(self, field: &str) -> Option<String> {
        match self.layer(field) {
            Layer::Workspace { path } => Some(path.display().to_string()),
            _ => None,
        }
    }

    /// Returns the workspace's file that sets a field, if the effect of that is refused.
    pub(crate) fn workspace_file_if_refused(self, field: &str, effect: Effect) -> Option<String> {
        let is_refused =
            decide_unapproved(Origin::from(self.layer(field)), effect) == Decision::Refused;
        self.workspace_file(field).filter(|_| is_refused)
    }

    fn choice_of_key(self, variable: &str) -> Effect {
        Effect::ChooseKey {
            is_usual: usual_key_variable(self.provider) == Some(variable),
        }
    }

    /// Returns the key of a field.
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

    /// Returns the provider of the user or of jp whose name differs from this one's only in case: a
    /// reader would confuse the two.
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

    /// Returns whether the user sets the address or the key of the provider. Settings of its models
    /// don't define a provider.
    fn is_users(self) -> bool {
        ["base_url", "api_key_env", "api_key_command"]
            .into_iter()
            .any(|field| !matches!(self.layer(field), Layer::Default | Layer::Workspace { .. }))
    }

    /// Returns the facts that decide whether a workspace may set the base URL.
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
        match ChosenModel::find(self.config) {
            None => ModelChoice::NotChosen,
            Some(model) if model.is_workspaces && model.provider() == Some(self.provider) => {
                ModelChoice::Workspace
            }
            Some(_) => ModelChoice::Other,
        }
    }

    fn ignore(self, field: &str, path: String, reason: IgnoreReason) -> IgnoredSetting {
        IgnoredSetting {
            key: self.key(field).to_string(),
            path,
            reason: match self.namesake() {
                Some(provider) => IgnoreReason::ResemblesProvider { provider },
                None => reason,
            },
        }
    }

    /// Makes the error for a setting of the workspace that jp refuses.
    pub(crate) fn refuse(self, field: &str, path: &str, fault: &str) -> SessionError {
        SessionError::new(format!("{} in {path} {fault}", self.key(field))).with_hint(OWN)
    }

    /// Returns the reason why the workspace may not use the key in a variable; `None` if it may.
    pub(crate) fn refuse_variable(self, variable: &str) -> Option<String> {
        let owner = self.owner(variable).filter(|owner| *owner != self.provider);
        let is_api_key = variable.ends_with("_API_KEY");
        let effect = Effect::SendVariable {
            is_api_key,
            is_of_other: owner.is_some(),
        };
        self.workspace_file_if_refused("api_key_env", effect)?;
        Some(match owner.filter(|_| is_api_key) {
            Some(owner) => format!("a workspace may not send the key of {owner} elsewhere"),
            None => {
                "a workspace may only name a variable that holds an API key (…_API_KEY)".to_owned()
            }
        })
    }

    /// Returns the provider whose key a variable holds, by its usual variable or by the user's
    /// configuration.
    fn owner(self, variable: &str) -> Option<&'a str> {
        let usual = USUAL_KEY_VARIABLES
            .iter()
            .find(|(_, usual)| *usual == variable);
        usual.map(|(provider, _)| *provider).or_else(|| {
            // A workspace can't claim a variable: only the user's settings count.
            let providers = self.config.config.providers.llm.iter();
            let mut named =
                providers.filter(|(_, settings)| settings.api_key_env.as_deref() == Some(variable));
            named.find_map(|(name, _)| {
                let provider = ConfiguredProvider::new(self.config, name);
                provider
                    .workspace_file("api_key_env")
                    .is_none()
                    .then_some(&**name)
            })
        })
    }
}

/// The configured model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenModel<'a> {
    /// `provider/name`, or an unknown name.
    pub(crate) id: &'a str,
    /// True if the workspace alone chose it.
    is_workspaces: bool,
}

impl<'a> ChosenModel<'a> {
    /// Returns the configured model, with its alias resolved.
    pub(crate) fn find(config: &'a Resolved) -> Option<Self> {
        let id = config.config.assistant.model.id.as_deref()?;
        let is_chosen_there = is_workspace(config.origin("assistant.model.id"));
        Some(match alias(config, id) {
            Some((id, layer)) => Self {
                id,
                is_workspaces: is_chosen_there && is_workspace(layer),
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

fn is_workspace(layer: &Layer) -> bool {
    matches!(layer, Layer::Workspace { .. })
}

/// Returns the model of an alias, and the layer that defines it. `PROVIDER/NAME` is never an alias.
fn alias<'a>(config: &'a Resolved, name: &str) -> Option<(&'a str, &'a Layer)> {
    let model = config
        .config
        .providers
        .aliases
        .get(name)
        .filter(|_| can_be_alias(config, name))?;
    Some((model, config.origins.layer(&alias_key(name))))
}

fn alias_key(name: &str) -> Key {
    ["providers", "aliases", name].into_iter().collect()
}

/// Returns whether an alias of this name has an effect.
fn can_be_alias(config: &Resolved, name: &str) -> bool {
    let effect = Effect::NameModel {
        is_taken: false,
        has_slash: name.contains('/'),
    };
    let layer = config.origins.layer(&alias_key(name));
    decide_unapproved(Origin::from(layer), effect) == Decision::Allowed
}

/// Returns the aliases that read as `PROVIDER/NAME`, which have no effect.
pub(crate) fn find_ignored_aliases(config: &Resolved) -> Vec<IgnoredSetting> {
    let names = config
        .config
        .providers
        .aliases
        .keys()
        .filter(|name| !can_be_alias(config, name));
    names
        .map(|name| {
            let key = alias_key(name);
            IgnoredSetting {
                path: config.origins.layer(&key).to_string(),
                key: config.origins.as_written(&key).to_string(),
                reason: IgnoreReason::AliasWithSlash,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use jp_config::{Assignment, Layers};

    use super::*;

    const HERE: &str = "http://127.0.0.1:9";
    const ELSEWHERE: &str = "https://llm.example";

    /// Returns the base URL that applies to a provider that the workspace sets to `url`, if the user
    /// chooses `model`.
    fn applied_base_url(
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
            "an ignored setting is reported"
        );
        settings.base_url
    }

    #[test]
    fn base_url_of_a_workspace_applies_unless_it_redirects_a_provider() {
        let workspaces = |provider: &str| format!("assistant.model.id = '{provider}/m'");
        for (provider, url, workspace, user, model, counts) in [
            // Its own provider, chosen by either.
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
            // A provider of jp: only if the workspace also chose the model.
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
            // By an alias: the workspace chose the model only if it also defines the alias.
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
            // A name that differs only in case follows the rules of the known provider.
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
                applied_base_url(provider, url, &workspace, user, model),
                expected,
                "{case}"
            );
        }
    }
}
