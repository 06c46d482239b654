use std::{ffi::OsStr, path::Path};

/// Names of files that hold credentials.
///
/// Doubtful ones are included, because jp reports each file and one more argument attaches it.
/// `.npmrc`, `.pypirc` and `.my.cnf` may hold only settings, but the documentation of the tools has
/// users write tokens into them.
///
/// `*.key` is not included, because it is as often a presentation. `*.pem` and `*.asc` are mostly
/// certificates and signatures. A private key in any of them is recognised by its content.
const NAMES: [&str; 38] = [
    ".netrc",
    "_netrc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".htpasswd",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "secring.gpg",
    ".npmrc",
    ".pypirc",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".terraformrc",
    "terraform.rc",
    "credentials.tfrc.json",
    "application_default_credentials.json",
    "credentials.json",
    "master.key",
    ".smbcredentials",
    ".envrc",
    ".bash_history",
    ".zsh_history",
    "kubeconfig",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    ".fetchmailrc",
    ".msmtprc",
];

/// Suffixes of such names.
///
/// A Terraform state holds all secrets that it manages in plain text.
const SUFFIXES: [&str; 9] = [
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".tfstate",
    ".tfstate.backup",
    ".tfvars",
];

/// Directories and names of such files whose name alone is not enough.
const PATHS: [(&str, &str); 12] = [
    (".aws", "credentials"),
    (".docker", "config.json"),
    (".kube", "config"),
    (".cargo", "credentials"),
    (".cargo", "credentials.toml"),
    (".gem", "credentials"),
    (".m2", "settings.xml"),
    // The URLs of remotes may contain passwords.
    (".git", "config"),
    ("git", "credentials"),
    ("gh", "hosts.yml"),
    ("gcloud", "credentials.db"),
    ("gcloud", "access_tokens.db"),
];

/// Parts of the name of an environment file that is meant to be shared. It shows which variables
/// exist. A `vault` is encrypted.
const SHARED: [&str; 7] = [
    "example", "sample", "template", "dist", "default", "defaults", "vault",
];

/// Returns whether the file at `path` has the name of one that holds secrets. Case does not matter.
#[must_use]
pub fn has_secret_name(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let directory = path
        .parent()
        .and_then(Path::file_name)
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    // ASCII case is enough: none of the names has other letters.
    NAMES.iter().any(|secret| name.eq_ignore_ascii_case(secret))
        || SUFFIXES.iter().any(|suffix| ends_with(name, suffix))
        || PATHS.iter().any(|(parent, secret)| {
            directory.eq_ignore_ascii_case(parent) && name.eq_ignore_ascii_case(secret)
        })
        || is_environment(name)
}

/// Returns whether a name is `.env`, `.env.…` or `….env` and not that of an example.
fn is_environment(name: &str) -> bool {
    let starts = name
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case(".env"));
    let is_named_so =
        ends_with(name, ".env") || starts && (name.len() == 4 || name[4..].starts_with('.'));
    is_named_so
        && !name.split('.').any(|part| {
            SHARED
                .iter()
                .any(|shared| part.eq_ignore_ascii_case(shared))
        })
}

fn ends_with(name: &str, suffix: &str) -> bool {
    let start = name.len().checked_sub(suffix.len());
    start
        .and_then(|start| name.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_recognised() {
        for path in [
            ".env",
            "config/.env",
            ".ENV.local",
            ".env.production",
            "prod.env",
            "Deploy.Env",
            ".netrc",
            "_NETRC",
            "home/.ssh/id_ed25519",
            ".git-credentials",
            ".config/git/credentials",
            ".git/config",
            ".npmrc",
            ".pypirc",
            "credentials.json",
            "server.p12",
            "store.JKS",
            "é.kdbx",
            "/home/a/.aws/credentials",
            ".docker/config.json",
            ".kube/config",
            "terraform.tfstate",
        ] {
            assert!(has_secret_name(Path::new(path)), "{path}");
        }
        for path in [
            "",
            "/",
            "env",
            "environment",
            ".environment",
            ".env.example",
            ".env.local.Sample",
            "example.env",
            ".env.dist",
            "id_rsa.pub",
            "credentials",
            "config.json",
            "config",
            "git/config",
            "src/.envé",
            "éenv",
            "secret.rs",
            "p12",
        ] {
            assert!(!has_secret_name(Path::new(path)), "{path}");
        }
    }
}
