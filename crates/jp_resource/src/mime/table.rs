/// A format of text.
#[derive(Debug)]
pub(super) struct TextType {
    /// The type that jp writes, in lower case.
    pub(super) mime: &'static str,
    /// Other types with the same meaning, in lower case. Types of `text/` that only differ in `x-`
    /// are implied.
    pub(super) aliases: &'static [&'static str],
    /// The tag of a code fence.
    pub(super) fence: Option<&'static str>,
    /// Extensions of file names, in lower case.
    pub(super) extensions: &'static [&'static str],
    /// Whole file names. One that ends in `*` is the start of names without a known extension.
    pub(super) file_names: &'static [&'static str],
}

impl TextType {
    /// Iterates over all types that name this format.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.mime).chain(self.aliases.iter().copied())
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn files(self, file_names: &'static [&'static str]) -> Self {
        Self { file_names, ..self }
    }
}

const fn plain(mime: &'static str, extensions: &'static [&'static str]) -> TextType {
    TextType {
        mime,
        aliases: &[],
        fence: None,
        extensions,
        file_names: &[],
    }
}

const fn code(
    mime: &'static str,
    fence: &'static str,
    extensions: &'static [&'static str],
) -> TextType {
    TextType {
        mime,
        aliases: &[],
        fence: Some(fence),
        extensions,
        file_names: &[],
    }
}

/// Everything [`super`] knows, by kind.
#[rustfmt::skip] // One name a line would make five hundred lines of it.
pub(super) const TYPES: &[TextType] = &[
    // Text.
    plain("text/plain", &["txt", "text", "log", "lock", "conf", "srt"])
        .files(&[
            "AUTHORS", "CODEOWNERS", "CONTRIBUTORS", "COPYING", "COPYRIGHT", "LICENCE", "LICENSE",
            "LICENSE-APACHE", "LICENSE-MIT", "MAINTAINERS", "NOTICE", "README", "CHANGELOG", "CHANGES",
            "TODO", "UNLICENSE", "VERSION", "Procfile", "go.sum", "Gemfile.lock", "yarn.lock", ".mailmap",
            ".nvmrc", ".python-version", ".ruby-version", ".tool-versions",
        ]),
    code("text/markdown", "md", &["md", "markdown", "mdown", "mkd"]),
    code("text/x-mdx", "mdx", &["mdx"]),
    code("text/x-rst", "rst", &["rst"]).aliases(&["text/x-restructuredtext", "text/prs.fallenstein.rst"]),
    code("text/x-org", "org", &["org"]),
    code("text/x-asciidoc", "adoc", &["adoc", "asciidoc"]),
    code("text/x-tex", "tex", &["tex", "ltx", "sty", "cls", "dtx"])
        .aliases(&["text/x-latex", "application/x-tex", "application/x-latex"]),
    code("text/x-bibtex", "bibtex", &["bib"]),
    code("text/x-typst", "typst", &["typ"]),
    code("text/troff", "roff", &["roff", "man", "mdoc"]),
    code("text/vtt", "vtt", &["vtt"]),
    code("text/calendar", "ics", &["ics"]),
    code("text/vcard", "vcf", &["vcf"]),
    code("text/x-gettext-translation", "po", &["po", "pot"]),
    code("text/x-diff", "diff", &["diff", "patch"]).aliases(&["text/x-patch"]),
    code("text/vnd.graphviz", "dot", &["dot", "gv"]),
    code("text/x-mermaid", "mermaid", &["mmd", "mermaid"]),
    code("text/x-plantuml", "plantuml", &["puml", "plantuml"]),
    // Data.
    code("application/json", "json", &["json", "har", "map", "avsc"])
        .aliases(&["text/x-json"])
        .files(&[
            ".babelrc", ".eslintrc", ".prettierrc", "Pipfile.lock", "composer.lock", "deno.lock",
            "flake.lock", "Package.resolved",
        ]),
    code("text/x-jsonc", "jsonc", &["jsonc", "code-workspace"])
        .aliases(&["application/jsonc"])
        .files(&["bun.lock"]),
    code("text/x-json5", "json5", &["json5"]).aliases(&["application/json5"]),
    code("text/x-jsonl", "jsonl", &["jsonl", "ndjson"])
        .aliases(&[
            "text/x-ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines",
            "application/x-jsonlines", "application/ndjson", "application/x-ndjson",
        ]),
    code("application/geo+json", "json", &["geojson"]),
    code("application/ld+json", "json", &["jsonld"]),
    code("application/manifest+json", "json", &["webmanifest"]),
    code("application/sarif+json", "json", &["sarif"]),
    code("application/x-ipynb+json", "json", &["ipynb"]),
    code("application/yaml", "yaml", &["yaml", "yml"])
        .aliases(&["application/x-yaml", "text/x-yaml", "text/vnd.yaml", "text/x-yml"])
        .files(&[".clang-format", ".clang-tidy", "CITATION.cff", "Podfile.lock", "pubspec.lock"]),
    code("application/toml", "toml", &["toml"])
        .aliases(&["text/x-toml", "application/x-toml"])
        .files(&["Cargo.lock", "Gopkg.lock", "Pipfile", "pdm.lock", "poetry.lock", "uv.lock"]),
    code("text/x-ini", "ini", &["ini", "cfg", "desktop", "service", "socket", "timer"])
        .aliases(&["text/x-systemd-unit"])
        .files(&[
            ".editorconfig", ".gitconfig", ".gitmodules", ".npmrc", ".pylintrc", ".flake8", ".coveragerc",
        ]),
    code("text/x-java-properties", "properties", &["properties"]).aliases(&["text/x-properties"]),
    code("application/xml", "xml", &[
        "xml", "xsd", "xsl", "wsdl", "rng", "plist", "resx", "nuspec", "csproj", "fsproj", "vbproj",
        "vcxproj",
    ])
        .aliases(&["text/xml"]),
    code("application/xslt+xml", "xml", &["xslt"]),
    code("application/atom+xml", "xml", &["atom"]),
    code("application/rss+xml", "xml", &["rss"]),
    code("application/xml-dtd", "dtd", &["dtd"]).aliases(&["text/xml-dtd"]),
    code("image/svg+xml", "svg", &["svg"]),
    code("text/csv", "csv", &["csv"]).aliases(&["application/csv"]),
    code("text/tab-separated-values", "tsv", &["tsv"]).aliases(&["text/x-tsv"]),
    code("text/turtle", "turtle", &["ttl"]),
    code("text/x-kdl", "kdl", &["kdl"]),
    code("text/x-ron", "ron", &["ron"]),
    code("text/x-jsonnet", "jsonnet", &["jsonnet", "libsonnet"]),
    code("text/x-cue", "cue", &["cue"]),
    code("text/x-dhall", "dhall", &["dhall"]),
    // Schemas and queries.
    code("application/sql", "sql", &["sql", "ddl", "dml", "psql"])
        .aliases(&["text/x-sql", "application/x-sql"]),
    code("application/sparql-query", "sparql", &["rq", "sparql"]),
    code("text/x-graphql", "graphql", &["graphql", "gql", "graphqls"]).aliases(&["application/graphql"]),
    // application/protobuf is no alias: those are encoded messages.
    code("text/x-proto", "proto", &["proto"]).aliases(&["text/x-protobuf"]),
    code("text/x-thrift", "thrift", &["thrift"]),
    code("text/x-capnp", "capnp", &["capnp"]),
    code("text/x-prisma", "prisma", &["prisma"]),
    code("text/x-rego", "rego", &["rego"]),
    // The web.
    code("text/html", "html", &["html", "htm"]),
    code("application/xhtml+xml", "html", &["xhtml"]),
    code("text/css", "css", &["css"]),
    code("text/x-scss", "scss", &["scss"]),
    code("text/x-sass", "sass", &["sass"]),
    code("text/x-less", "less", &["less"]),
    code("text/x-stylus", "stylus", &["styl"]),
    code("text/javascript", "js", &["js", "mjs", "cjs", "es6"])
        .aliases(&[
            "application/javascript", "application/x-javascript", "application/ecmascript",
            "text/ecmascript",
        ]),
    code("text/x-jsx", "jsx", &["jsx"]),
    code("text/x-typescript", "ts", &["ts", "mts", "cts"])
        .aliases(&["application/typescript", "application/x-typescript"]),
    code("text/x-tsx", "tsx", &["tsx"]).aliases(&["text/x-typescript-jsx"]),
    code("text/x-coffeescript", "coffee", &["coffee"]),
    code("text/x-vue", "vue", &["vue"]),
    code("text/x-svelte", "svelte", &["svelte"]),
    code("text/x-astro", "astro", &["astro"]),
    code("text/x-handlebars", "handlebars", &["hbs", "handlebars", "mustache"]),
    code("text/x-jinja", "jinja", &["j2", "jinja", "jinja2"]),
    code("text/x-liquid", "liquid", &["liquid"]),
    code("text/x-twig", "twig", &["twig"]),
    code("text/x-ejs", "ejs", &["ejs"]),
    code("text/x-erb", "erb", &["erb"]),
    code("text/x-heex", "heex", &["heex", "eex", "leex"]),
    code("text/x-pug", "pug", &["pug", "jade"]),
    code("text/x-haml", "haml", &["haml"]),
    code("text/x-http", "http", &["http"]),
    // Languages.
    code("text/x-rust", "rs", &["rs"]).aliases(&["text/x-rustsrc", "application/x-rust"]),
    code("text/x-c", "c", &["c", "h"]).aliases(&["text/x-csrc", "text/x-chdr"]),
    code("text/x-c++", "cpp", &[
        "cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "tpp", "inl", "cppm", "ixx",
    ])
        .aliases(&["text/x-c++src", "text/x-c++hdr", "text/x-cpp"]),
    code("text/x-objectivec", "objc", &["m", "mm"])
        .aliases(&["text/x-objective-c", "text/x-objcsrc", "text/x-objc"]),
    code("text/x-cuda", "cuda", &["cu", "cuh"]),
    code("text/x-opencl", "opencl", &["cl"]),
    code("text/x-csharp", "cs", &["cs", "csx"]),
    code("text/x-fsharp", "fsharp", &["fs", "fsi", "fsx"]),
    code("text/x-vb", "vb", &["vb", "vbs", "bas"]),
    code("text/x-go", "go", &["go"]),
    code("text/x-go-mod", "gomod", &[]).files(&["go.mod", "go.work"]),
    code("text/x-java", "java", &["java"]).aliases(&["text/x-java-source"]),
    code("text/x-kotlin", "kt", &["kt", "kts"]),
    code("text/x-scala", "scala", &["scala", "sc", "sbt"]),
    code("text/x-groovy", "groovy", &["groovy", "gradle", "gvy"])
        .aliases(&["text/x-gradle"])
        .files(&["Jenkinsfile", "Jenkinsfile.*"]),
    code("text/x-clojure", "clj", &["clj", "cljs", "cljc", "edn"]),
    code("text/x-swift", "swift", &["swift"]),
    code("text/x-dart", "dart", &["dart"]).aliases(&["application/vnd.dart", "application/dart"]),
    code("text/x-python", "py", &["py", "pyi", "pyw", "pyx"])
        .aliases(&[
            "text/x-python3", "text/x-script.python", "application/x-python", "application/x-python-code",
        ])
        .files(&["SConstruct", "SConscript"]),
    code("text/x-ruby", "rb", &["rb", "rake", "gemspec", "ru", "podspec"])
        .aliases(&["application/x-ruby"])
        .files(&[
            "Gemfile", "Rakefile", "Podfile", "Vagrantfile", "Fastfile", "Brewfile", "Guardfile", ".irbrc",
        ]),
    code("text/x-php", "php", &["php", "phtml"]).aliases(&["application/x-php", "application/x-httpd-php"]),
    code("text/x-perl", "pl", &["pl", "pm"]).aliases(&["application/x-perl"]).files(&["cpanfile"]),
    code("text/x-raku", "raku", &["raku", "rakumod"]),
    code("text/x-lua", "lua", &["lua", "luau"]).aliases(&["application/x-lua"]).files(&[".luacheckrc"]),
    code("text/x-r", "r", &["r"]).aliases(&["text/x-r-source", "text/x-rsrc"]).files(&[".Rprofile"]),
    code("text/x-rmarkdown", "rmd", &["rmd", "qmd"]),
    code("text/x-julia", "julia", &["jl"]),
    code("text/x-matlab", "matlab", &["matlab"]).aliases(&["text/x-octave"]),
    code("text/x-haskell", "hs", &["hs", "lhs"]).aliases(&["text/x-literate-haskell"]),
    code("text/x-cabal", "cabal", &["cabal"]),
    code("text/x-ocaml", "ocaml", &["ml", "mli", "mll", "mly"]),
    code("text/x-elm", "elm", &["elm"]),
    code("text/x-purescript", "purescript", &["purs"]),
    code("text/x-elixir", "elixir", &["ex", "exs"]).files(&["mix.lock"]),
    code("text/x-erlang", "erlang", &["erl", "hrl"]).files(&["rebar.config", "rebar.lock"]),
    code("text/x-gleam", "gleam", &["gleam"]),
    code("text/x-zig", "zig", &["zig", "zon"]),
    code("text/x-nim", "nim", &["nim", "nims", "nimble"]),
    code("text/x-crystal", "crystal", &["cr"]),
    code("text/x-d", "d", &["d", "di"]).aliases(&["text/x-dsrc"]),
    code("text/x-ada", "ada", &["adb", "ads"]),
    code("text/x-pascal", "pascal", &["pas", "dpr", "lpr"]),
    code("text/x-fortran", "fortran", &["f", "for", "f77", "f90", "f95", "f03", "f08"]),
    code("text/x-cobol", "cobol", &["cob", "cbl", "cpy"]),
    code("text/x-common-lisp", "lisp", &["lisp", "lsp", "asd"]).aliases(&["text/x-lisp"]),
    code("text/x-emacs-lisp", "elisp", &["el"]).aliases(&["text/x-elisp"]),
    code("text/x-scheme", "scheme", &["scm", "ss", "sld"]),
    code("text/x-racket", "racket", &["rkt"]),
    code("text/x-prolog", "prolog", &["prolog"]),
    code("text/x-lean", "lean", &["lean"]),
    code("text/x-coq", "coq", &["coq"]),
    code("text/x-agda", "agda", &["agda"]),
    code("text/x-tla", "tla", &["tla"]),
    code("text/x-haxe", "haxe", &["hx"]),
    code("text/x-solidity", "solidity", &["sol"]),
    code("text/x-move", "move", &["move"]),
    code("text/x-gdscript", "gdscript", &["gd"]),
    code("text/x-qml", "qml", &["qml"]),
    code("text/x-tcl", "tcl", &["tcl", "tk"]).aliases(&["application/x-tcl"]),
    code("text/x-awk", "awk", &["awk"]).aliases(&["application/x-awk"]),
    code("text/x-sed", "sed", &["sed"]),
    code("text/x-applescript", "applescript", &["applescript"]),
    code("text/x-autohotkey", "ahk", &["ahk"]),
    code("text/x-asm", "asm", &["asm", "s", "nasm"]).aliases(&["text/x-assembly", "text/x-nasm"]),
    code("text/x-llvm", "llvm", &["ll"]),
    code("text/x-wat", "wat", &["wat", "wast"]),
    code("text/x-verilog", "verilog", &["v", "vh"]).aliases(&["text/x-verilog-src"]),
    code("text/x-systemverilog", "systemverilog", &["sv", "svh"]).aliases(&["text/x-svsrc"]),
    code("text/x-vhdl", "vhdl", &["vhdl"]),
    code("text/x-glsl", "glsl", &["glsl", "vert", "frag", "geom", "comp", "tesc", "tese"]),
    code("text/x-hlsl", "hlsl", &["hlsl"]),
    code("text/wgsl", "wgsl", &["wgsl"]),
    code("text/x-metal", "metal", &["metal"]),
    // Shells.
    code("text/x-sh", "sh", &["sh", "ksh", "dash"])
        .aliases(&["text/x-shellscript", "text/x-shell", "application/x-sh", "application/x-shellscript"])
        .files(&[".profile", ".envrc", "PKGBUILD", "APKBUILD"]),
    code("text/x-bash", "bash", &["bash", "bats", "ebuild"])
        .files(&[".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"]),
    code("text/x-zsh", "zsh", &["zsh"]).files(&[".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"]),
    code("text/x-csh", "csh", &["csh", "tcsh"]).aliases(&["application/x-csh"]).files(&[".cshrc", ".tcshrc"]),
    code("text/x-fish", "fish", &["fish"]),
    code("text/x-nushell", "nu", &["nu"]),
    code("text/x-powershell", "ps1", &["ps1", "psm1", "psd1"]).aliases(&["application/x-powershell"]),
    code("text/x-bat", "bat", &["bat", "cmd"]).aliases(&["application/bat", "application/x-bat"]),
    // Building and running.
    code("text/x-dockerfile", "dockerfile", &["dockerfile", "containerfile"])
        .files(&["Dockerfile", "Dockerfile.*", "Containerfile", "Containerfile.*"]),
    code("text/x-makefile", "makefile", &["mk", "mak", "make"])
        .files(&["Makefile", "Makefile.*", "GNUmakefile", "BSDmakefile"]),
    code("text/x-just", "just", &["just"]).files(&["justfile", ".justfile"]),
    code("text/x-cmake", "cmake", &["cmake"]).files(&["CMakeLists.txt"]),
    code("text/x-meson", "meson", &[]).files(&["meson.build", "meson.options", "meson_options.txt"]),
    code("text/x-ninja", "ninja", &["ninja"]),
    code("text/x-starlark", "starlark", &["bzl", "bazel", "star"])
        .aliases(&["text/x-bazel"])
        .files(&["BUILD", "WORKSPACE", "Tiltfile"]),
    code("text/x-nix", "nix", &["nix"]),
    code("text/x-terraform", "terraform", &["tf", "tfvars"]),
    code("text/x-hcl", "hcl", &["hcl"]),
    code("text/x-bicep", "bicep", &["bicep"]),
    code("text/x-puppet", "puppet", &["pp"]),
    code("text/x-nginx", "nginx", &[]).files(&["nginx.conf"]),
    code("text/x-vim", "vim", &["vim"]).files(&[".vimrc", ".gvimrc", ".exrc", "vimrc"]),
    code("text/x-gitignore", "gitignore", &["gitignore"])
        .files(&[
            ".gitignore", ".dockerignore", ".npmignore", ".prettierignore", ".eslintignore", ".ignore",
            ".jpignore", ".rgignore",
        ]),
    code("text/x-gitattributes", "gitattributes", &[]).files(&[".gitattributes"]),
    code("text/x-dotenv", "dotenv", &["env"]).files(&[".env", ".env.*"]),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn assert_listed_once(names: impl Iterator<Item = String>) {
        let mut seen = HashSet::new();
        for name in names {
            assert!(seen.insert(name.clone()), "{name} is listed twice");
        }
    }

    #[test]
    fn no_type_is_listed_twice() {
        assert_listed_once(
            TYPES
                .iter()
                .flat_map(TextType::names)
                .map(|name| name.replace("text/x-", "text/")),
        );
    }

    #[test]
    fn no_extension_is_listed_twice() {
        assert_listed_once(
            TYPES
                .iter()
                .flat_map(|known| known.extensions)
                .map(ToString::to_string),
        );
    }

    #[test]
    fn no_file_name_is_listed_twice() {
        let names = TYPES.iter().flat_map(|known| known.file_names);
        assert_listed_once(names.map(|name| name.to_ascii_lowercase()));
    }

    #[test]
    fn entries_are_written_as_they_are_looked_up() {
        for known in TYPES {
            for name in known.names() {
                assert_eq!(name, name.to_ascii_lowercase());
                assert_eq!(name.split('/').count(), 2, "{name}");
            }
            for extension in known.extensions {
                assert!(!extension.contains('.'), "{extension}");
                assert_eq!(*extension, extension.to_ascii_lowercase());
            }
            assert!(
                known.fence.is_none_or(|tag| !tag.contains([' ', '`'])),
                "{known:?}"
            );
        }
    }
}
