//! The modules of a crate, their imports, and the files that a path leads to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::graph::Edges;

/// How many re-exports a path may follow.
const MAX_REEXPORTS: usize = 8;

/// The names from the root of the crate to a module.
type ModulePath = Vec<String>;

/// The modules of a crate.
pub(crate) struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

/// A module in a file, or inside of one.
#[derive(Debug, Default)]
struct Module {
    /// The path of the file, from the directory of the sources.
    file: String,
    /// The names that `use` brings in, with what they mean.
    imports: BTreeMap<String, Vec<String>>,
    /// The same of `pub use`.
    exports: BTreeMap<String, Vec<String>>,
    /// What `pub use x::*` names.
    globs: Vec<Vec<String>>,
    /// Every path in the code.
    paths: Vec<Vec<String>>,
}

impl Crate {
    /// Reads the crate whose sources are in `directory` below `root`.
    pub(crate) fn read(root: &Path, directory: &str) -> Crate {
        let sources = root.join(directory);
        let mut modules = Crate {
            modules: BTreeMap::new(),
        };
        let mut roots = ["lib.rs", "main.rs"].into_iter();
        let first = roots.find(|file| sources.join(file).is_file());
        modules.add_file(&sources, first.expect("a crate has a root"), &Vec::new());
        modules
    }

    /// Which file depends on which.
    pub(crate) fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (path, module) in &self.modules {
            let targets = edges.entry(module.file.clone()).or_default();
            let named = module.imports.values().chain(&module.paths);
            let files = named.filter_map(|name| self.file_of(path, name));
            targets.extend(files.filter(|file| *file != module.file));
        }
        edges
    }

    fn add_file(&mut self, sources: &Path, file: &str, path: &ModulePath) {
        let text = fs::read_to_string(sources.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let tokens = TokenStream::from_str(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        let children = self.add_tokens(file, path, tokens);
        for child in children {
            let is_root = ["lib.rs", "main.rs", "mod.rs"].contains(&name_of(file));
            let parent = match is_root {
                true => directory_of(file).to_owned(),
                false => format!("{}/", file.trim_end_matches(".rs")),
            };
            let candidates = [
                format!("{parent}{child}.rs"),
                format!("{parent}{child}/mod.rs"),
            ];
            let found = candidates.iter().find(|file| sources.join(file).is_file());
            // A module with a path of its own is generated, or belongs to tests.
            if let Some(found) = found {
                let path = [path.clone(), vec![child]].concat();
                self.add_file(sources, found, &path);
            }
        }
    }

    /// Adds the module that `tokens` are. The children that lie in files of their own.
    fn add_tokens(&mut self, file: &str, path: &ModulePath, tokens: TokenStream) -> Vec<String> {
        let mut module = Module {
            file: file.into(),
            ..Module::default()
        };
        let mut scan = Scan::default();
        scan.items(tokens, &mut module);
        self.modules.insert(path.clone(), module);
        for (name, tokens) in scan.inline {
            self.add_tokens(file, &[path.clone(), vec![name]].concat(), tokens);
        }
        scan.children
    }

    /// The file that defines what `name` means in the module at `path`; none for another crate,
    /// and for a module as a whole.
    fn file_of(&self, path: &ModulePath, name: &[String]) -> Option<String> {
        self.resolve(path, name, 0)
    }

    fn resolve(&self, path: &ModulePath, name: &[String], depth: usize) -> Option<String> {
        if depth > MAX_REEXPORTS {
            return None;
        }
        let (first, rest) = name.split_first()?;
        let module = self.modules.get(path)?;
        match first.as_str() {
            "crate" => self.walk(&Vec::new(), rest, depth),
            "self" => self.walk(path, rest, depth),
            "super" => {
                let (_, parent) = path.split_last()?;
                let rest = rest.to_vec();
                match rest.first().map(String::as_str) {
                    Some("super") => self.resolve(&parent.to_vec(), &rest, depth),
                    _ => self.walk(&parent.to_vec(), &rest, depth),
                }
            }
            _ => {
                let imports = [&module.imports, &module.exports];
                let meaning = imports.iter().find_map(|names| names.get(first));
                if let Some(meaning) = meaning.filter(|meaning| meaning.as_slice() != name) {
                    let full = [meaning.as_slice(), rest].concat();
                    return self.resolve(path, &full, depth + 1);
                }
                let child = [path.clone(), vec![first.clone()]].concat();
                match self.modules.contains_key(&child) {
                    true => self.walk(&child, rest, depth),
                    false => None,
                }
            }
        }
    }

    /// Follows `rest` downwards from a module.
    fn walk(&self, path: &ModulePath, rest: &[String], depth: usize) -> Option<String> {
        let (first, below) = rest.split_first()?;
        let child = [path.clone(), vec![first.clone()]].concat();
        if self.modules.contains_key(&child) {
            return self.walk(&child, below, depth);
        }
        let module = self.modules.get(path)?;
        if let Some(meaning) = module.exports.get(first) {
            let full = [meaning.as_slice(), below].concat();
            return self.resolve(path, &full, depth + 1);
        }
        let globs = module.globs.iter();
        let inside = globs.filter_map(|glob| {
            let full = [glob.as_slice(), rest].concat();
            self.defines(path, &full, depth + 1)
        });
        inside
            .into_iter()
            .next()
            .or_else(|| Some(module.file.clone()))
    }

    /// The file of an item behind a glob, where the module of the glob is in this crate.
    fn defines(&self, path: &ModulePath, full: &[String], depth: usize) -> Option<String> {
        self.resolve(path, full, depth)
    }
}

fn name_of(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The directory of a file with a slash behind it; nothing for a file at the top.
fn directory_of(file: &str) -> &str {
    &file[..file.len() - name_of(file).len()]
}

/// A walk over the tokens of a module.
#[derive(Default)]
struct Scan {
    children: Vec<String>,
    inline: Vec<(String, TokenStream)>,
}

impl Scan {
    fn items(&mut self, tokens: TokenStream, module: &mut Module) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.item(&tokens, at, module);
        }
    }

    /// Takes what begins at `at`; where the next thing begins.
    fn item(&mut self, tokens: &[TokenTree], at: usize, module: &mut Module) -> usize {
        if is_punct(tokens.get(at), '#') {
            let attribute = group_of(tokens.get(at + 1), Delimiter::Bracket);
            let is_test =
                attribute.is_some_and(|text| text.to_string().replace(' ', "") == "cfg(test)");
            return if is_test {
                end_of_item(tokens, at + 2)
            } else {
                at + 1
            };
        }
        if is_word(tokens.get(at), "use") {
            let end = semicolon(tokens, at);
            let is_public = is_visible(&tokens[..at]);
            add_use(&tokens[at + 1..end], is_public, module);
            return end + 1;
        }
        if is_word(tokens.get(at), "mod")
            && let Some(TokenTree::Ident(name)) = tokens.get(at + 1)
        {
            if let Some(body) = group_of(tokens.get(at + 2), Delimiter::Brace) {
                self.inline.push((name.to_string(), body));
                return at + 3;
            }
            self.children.push(name.to_string());
            return at + 2;
        }
        match tokens.get(at) {
            Some(TokenTree::Group(group)) => {
                self.items(group.stream(), module);
                at + 1
            }
            Some(TokenTree::Ident(_)) => {
                let (path, end) = path_at(tokens, at);
                if path.len() > 1 {
                    module.paths.push(path);
                }
                end
            }
            _ => at + 1,
        }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == wanted)
}

fn group_of(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

/// Whether `pub`, perhaps with a scope, stands before.
fn is_visible(before: &[TokenTree]) -> bool {
    let last = match before {
        [rest @ .., TokenTree::Group(_)] => rest.last(),
        _ => before.last(),
    };
    is_word(last, "pub")
}

fn semicolon(tokens: &[TokenTree], from: usize) -> usize {
    let found = (from..tokens.len()).find(|at| is_punct(tokens.get(*at), ';'));
    found.unwrap_or(tokens.len())
}

/// Behind an item that begins at `from`: a semicolon or braces end it.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |at: &usize| {
        is_punct(tokens.get(*at), ';') || group_of(tokens.get(*at), Delimiter::Brace).is_some()
    };
    (from..tokens.len())
        .find(ends)
        .map_or(tokens.len(), |at| at + 1)
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    let joint = matches!(
        tokens.get(at),
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint
    );
    joint && is_punct(tokens.get(at + 1), ':')
}

/// The path of names that begins at `at`, and what follows it.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(name)) = tokens.get(at) {
        path.push(name.to_string());
        at += 1;
        if !is_path_separator(tokens, at) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Adds the names of a `use` declaration without its keyword and semicolon.
fn add_use(tokens: &[TokenTree], is_public: bool, module: &mut Module) {
    let mut leaves = Vec::new();
    flatten(tokens, &[], &mut leaves);
    for (path, name) in leaves {
        let names = match is_public {
            true => &mut module.exports,
            false => &mut module.imports,
        };
        match name {
            Some(name) => drop(names.insert(name, path)),
            None if is_public => module.globs.push(path),
            // What a private glob brings in is not known; the module itself is.
            None => module.paths.push([path, vec!["*".into()]].concat()),
        }
    }
}

/// The leaves of a `use` tree: the full path and the name that it gets; none for a glob.
fn flatten(
    tokens: &[TokenTree],
    prefix: &[String],
    leaves: &mut Vec<(Vec<String>, Option<String>)>,
) {
    let (mut path, mut at) = path_at(tokens, 0);
    path = [prefix, &path].concat();
    if is_punct(tokens.get(at), '*') {
        leaves.push((path, None));
        return;
    }
    if let Some(inside) = group_of(tokens.get(at), Delimiter::Brace) {
        let inside: Vec<TokenTree> = inside.into_iter().collect();
        for part in inside.split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','))
        {
            if !part.is_empty() {
                flatten(part, &path, leaves);
            }
        }
        return;
    }
    let mut name = path.last().cloned();
    if is_word(tokens.get(at), "as") {
        at += 1;
        name = tokens.get(at).map(ToString::to_string);
    }
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
        name = path.last().cloned();
    }
    leaves.push((path, name));
}
