//! No circles between files: what a file takes from others never leads back to it. A file is a room; the arrows are what
//! its `use` lines and paths name, followed through re-exports to where a thing is defined. What is only for tests, and
//! `mod` lines, are no arrows.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may fail

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

type Segments = Vec<String>;

#[derive(Default)]
struct File {
    /// Names that paths of this file may begin with, and what they stand for.
    imports: BTreeMap<String, Segments>,
    /// Those that others may take from here.
    re_exports: BTreeMap<String, Segments>,
    /// Everything that it names, from the root of the crate.
    named: BTreeSet<Segments>,
}

struct Reader<'a> {
    module: &'a [String],
    file: File,
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// From the root of the crate; `None` for another crate's.
fn absolute(module: &[String], path: &[String]) -> Option<Segments> {
    let mut from = match path.first()?.as_str() {
        "crate" => Segments::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    let rest = path.iter().skip_while(|&segment| match segment.as_str() {
        "super" => from.pop().is_some(),
        word => ["crate", "self"].contains(&word),
    });
    let rest: Segments = rest.cloned().collect();
    Some([from, rest].concat())
}

impl Reader<'_> {
    fn absolute(&self, path: &[String]) -> Option<Segments> {
        absolute(self.module, path).or_else(|| {
            let known = self.file.imports.get(path.first()?)?;
            Some([known.as_slice(), &path[1..]].concat())
        })
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let (name, path) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(before, &path.ident), is_public),
            UseTree::Group(group) => return group.items.iter().for_each(|each| self.import(each, before, is_public)),
            UseTree::Glob(_) => {
                if let Some(path) = self.absolute(before) {
                    self.file.named.insert(path);
                }
                return;
            }
            UseTree::Name(name) if name.ident == "self" => (before.last().unwrap().clone(), before.to_vec()),
            UseTree::Name(name) => (name.ident.to_string(), with(before, &name.ident)),
            UseTree::Rename(name) => (name.rename.to_string(), with(before, &name.ident)),
        };
        let Some(path) = self.absolute(&path) else { return };
        if is_public {
            self.file.re_exports.insert(name.clone(), path.clone());
        } else {
            self.file.named.insert(path.clone());
        }
        self.file.imports.insert(name, path);
    }
}

fn with(before: &[String], last: &syn::Ident) -> Segments {
    [before, &[last.to_string()]].concat()
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_of_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1
            && let Some(path) = self.absolute(&segments)
        {
            self.file.named.insert(path);
        }
        visit::visit_path(self, path);
    }
}

struct House {
    files: BTreeMap<Segments, File>,
}

impl House {
    fn read(source: &Path) -> Self {
        let mut files = BTreeMap::new();
        for path in rust_files(source) {
            let inside = path.strip_prefix(source).unwrap().with_extension("");
            let mut module: Segments = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            let syntax = syn::parse_file(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let mut reader = Reader { module: &module, file: File::default() };
            // What is imported, and the file's own modules, are known before what is said of them.
            for item in &syntax.items {
                if let Item::Mod(child) = item
                    && child.content.is_none()
                {
                    reader.file.imports.insert(child.ident.to_string(), with(&module, &child.ident));
                }
            }
            let (uses, others): (Vec<_>, Vec<_>) = syntax.items.iter().partition(|item| matches!(item, Item::Use(_)));
            uses.into_iter().chain(others).for_each(|item| reader.visit_item(item));
            let file = reader.file;
            files.insert(module, file);
        }
        assert!(files.len() > 3, "{} is read", source.display());
        Self { files }
    }

    /// The file that defines what the path names.
    fn defines(&self, path: &[String], hops: usize) -> Option<Segments> {
        let length = (0..=path.len()).rev().find(|&length| self.files.contains_key(&path[..length]))?;
        let (module, rest) = path.split_at(length);
        let file = &self.files[module];
        if let Some(name) = rest.first().filter(|_| hops > 0)
            && let Some(target) = file.re_exports.get(name)
            && target != path
        {
            return self.defines(&[target.as_slice(), &rest[1..]].concat(), hops - 1);
        }
        Some(module.to_vec())
    }

    fn arrows(&self) -> BTreeMap<&Segments, BTreeSet<Segments>> {
        let arrows = self.files.iter().map(|(module, file)| {
            let to = file.named.iter().filter_map(|path| self.defines(path, 4));
            // The root of a crate only says what the crate is.
            (module, to.filter(|to| to != module && !to.is_empty()).collect())
        });
        arrows.collect()
    }

    /// Files from which one comes back, each circle once.
    fn circles(&self) -> Vec<BTreeSet<Segments>> {
        let arrows = self.arrows();
        let reached = |from: &Segments| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(at) = open.pop() {
                for to in arrows.get(at).into_iter().flatten() {
                    if seen.insert(to.clone()) {
                        open.push(to);
                    }
                }
            }
            seen
        };
        let reach: BTreeMap<&Segments, BTreeSet<Segments>> = arrows.keys().map(|&from| (from, reached(from))).collect();
        let circles = reach.iter().filter(|(from, to)| to.contains(**from)).map(|(from, to)| {
            to.iter().filter(|&to| reach.get(to).is_some_and(|back| back.contains(*from))).cloned().collect()
        });
        circles.collect::<BTreeSet<BTreeSet<Segments>>>().into_iter().collect()
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.file_stem().unwrap() != "tests" {
            files.push(path);
        }
    }
    files
}

/// Each circle with the arrows that make it.
fn told(house: &House) -> String {
    let arrows = house.arrows();
    let circles = house.circles().into_iter().map(|circle| {
        let mut lines = format!("a circle of {} files:\n", circle.len());
        for from in &circle {
            for to in arrows[from].intersection(&circle) {
                writeln!(lines, "  {} -> {}", from.join("::"), to.join("::")).unwrap();
            }
        }
        lines
    });
    circles.collect()
}

#[test]
fn no_file_leads_back_to_itself() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let told: String = ["scheduler", "executor-client", "protocol", "migrations"]
        .map(|part| {
            let told = told(&House::read(&root.join(part).join("src")));
            if told.is_empty() { told } else { format!("{part}:\n{told}") }
        })
        .concat();
    assert!(told.is_empty(), "What two files need of each other belongs into a third.\n{told}");
}
