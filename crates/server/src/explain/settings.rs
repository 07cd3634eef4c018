//! A route's settings by the names the config has for them: what the schema declares, as the config
//! says it, else what holds instead.

use hob_config::is_secret;

use super::answer::Setting;
use crate::handle::HandlerSettings;
use crate::handle::config::SCHEMA;
use crate::handle::config::key::{Preset, SchemaKey, SchemaTable, ValueType};
use crate::handle::config::tree::{ConfigValue, KeyTextPair, Section};
use crate::handle::config::units::{duration_text, size_text};

/// Keys of a route that have a line of their own in an explanation.
const TOLD_ELSEWHERE: [&str; 4] = ["path", "rewrite", "body", "log"];
/// Keys of which both the site's and the route's hold.
const ADDED_UP: [&str; 2] = ["headers", "headers_add"];

/// The settings of a route's handler, with what holds where nothing is said; then what the route,
/// or the site for its routes, says of answers. `root` is the whole config; sites and routes are
/// counted as in it.
pub(super) fn settings(root: &Section, (site, route): (usize, usize)) -> Vec<(String, Setting)> {
    let Some(site) = root.sections("site").get(site) else {
        return Vec::new();
    };
    let route = site.sections("route").get(route);
    let handlers = SCHEMA.handlers.iter();
    let of_root = Section::new(HandlerSettings::table_of_root(), site.header);
    let handler = handlers.filter_map(|name| route?.section(name)).next();
    let on = RouteSections { root, site, route };
    let mut told = Vec::new();
    on.tell_handler(handler.unwrap_or(&of_root), "", &mut told);
    on.tell_route(&mut told);
    told
}

/// Where it may be said how a route answers.
struct RouteSections<'a> {
    root: &'a Section,
    site: &'a Section,
    /// None for the route that a site's `root` is short for.
    route: Option<&'a Section>,
}

impl RouteSections<'_> {
    /// The keys of a handler, or of another table.
    fn tell_handler(&self, section: &Section, prefix: &str, told: &mut Vec<(String, Setting)>) {
        let table = section.table();
        for key in table.all_keys() {
            let name = format!("{prefix}{}", key.name);
            let given = section.given(key.name).map(|given| &given.value);
            match (given.or_else(|| self.elsewhere(table, key)), key.kind) {
                (Some(ConfigValue::Section(inner)), _) => {
                    self.tell_handler(inner, &format!("{name}."), told);
                }
                (None, ValueType::Table(inner) | ValueType::OrText(_, inner)) => {
                    let inner = Section::new(inner, section.header);
                    self.tell_handler(&inner, &format!("{name}."), told);
                }
                (Some(value), _) => told.extend(shown(table, key, value).map(|set| (name, set))),
                (None, _) if is_of_all_programs(table, key) => {}
                (None, _) => told.extend(preset(key.preset).map(|set| (name, set))),
            }
        }
    }

    /// Who says a key of a handler that its own section does not: the route and the site what they
    /// say of all answers, the table that the handler's inherits from, the site what is inherited
    /// from there.
    fn elsewhere(&self, table: &SchemaTable, key: &SchemaKey) -> Option<&ConfigValue> {
        let is_of_answers = is_of_answers(key);
        let base = inherited(table, key).and_then(|base| {
            let of = |at: &SchemaTable| at.all_keys().find(|key| is_table(key, base));
            let of_site = of(SCHEMA.site).and_then(|key| self.site.section(key.name));
            of_site.or_else(|| self.root.section(of(SCHEMA.root)?.name))
        });
        let is_of_site = is_of_answers || matches!(key.preset, Preset::Inherited(_));
        let nearest = [
            self.route.filter(|_| is_of_answers),
            base,
            Some(self.site).filter(|_| is_of_site),
        ];
        let mut given = nearest.into_iter().flatten();
        given.find_map(|section| Some(&section.given(key.name)?.value))
    }

    fn tell_route(&self, told: &mut Vec<(String, Setting)>) {
        for key in SCHEMA.route.all_keys() {
            let is_handler = SCHEMA.handlers.contains(&key.name);
            let is_told = told.iter().any(|(name, _)| *name == key.name);
            if is_handler || is_told || TOLD_ELSEWHERE.contains(&key.name) {
                continue;
            }
            let site = Some(self.site).filter(|_| is_of_answers(key));
            let said = [site, self.route].into_iter().flatten();
            let said = said.filter_map(|section| Some(&section.given(key.name)?.value));
            if let Some(ConfigValue::Section(inner)) = said.clone().next_back() {
                self.tell_handler(inner, &format!("{}.", key.name), told);
                continue;
            }
            let mut said = said.filter_map(|value| shown(SCHEMA.route, key, value));
            let setting = match ADDED_UP.contains(&key.name) {
                true => said.reduce(Setting::and),
                false => said.next_back(),
            };
            told.extend(setting.map(|setting| (key.name.to_owned(), setting)));
        }
    }
}

/// The table that a key of this table comes from, where it is not the table's own.
fn inherited(table: &SchemaTable, key: &SchemaKey) -> Option<&'static SchemaTable> {
    let is_own = table.keys.iter().any(|own| own.name == key.name);
    table.base.filter(|_| !is_own)
}

fn is_table(key: &SchemaKey, table: &SchemaTable) -> bool {
    key.kind.table().is_some_and(|of| std::ptr::eq(of, table))
}

/// How programs run is told where the config says it: it has many keys.
fn is_of_all_programs(table: &SchemaTable, key: &SchemaKey) -> bool {
    let base = inherited(table, key);
    base.is_some_and(|base| SCHEMA.root.keys.iter().any(|key| is_table(key, base)))
}

/// A route has the key as its site has it.
fn is_of_answers(key: &SchemaKey) -> bool {
    let answers = SCHEMA.route.base;
    answers.is_some_and(|answers| answers.key(key.name).is_some())
}

fn shown(table: &SchemaTable, key: &SchemaKey, value: &ConfigValue) -> Option<Setting> {
    Some(match value {
        ConfigValue::Flag(flag) => Setting::Flag(*flag),
        ConfigValue::Integer(number) => integer(*number),
        ConfigValue::Size(bytes) => Setting::Text(size_text(*bytes)),
        ConfigValue::Time(time) => Setting::Text(duration_text(*time)),
        ConfigValue::Text(text) => Setting::text(text),
        ConfigValue::Path(path) => Setting::Text(path.display().to_string()),
        ConfigValue::Word(word) => Setting::text(word),
        ConfigValue::Texts(items) => texts(items.iter().map(|item| &item.text)),
        ConfigValue::Arguments(all) => texts(all.iter().map(|(argument, _)| argument)),
        ConfigValue::Cpus(cpus) => texts(cpus),
        ConfigValue::Map(pairs) if is_secret(table.name, key.name) => {
            texts(pairs.iter().map(|pair| &pair.name))
        }
        ConfigValue::Map(pairs) => {
            let line = |pair: &KeyTextPair| format!("{}: {}", pair.name, pair.text);
            texts(pairs.iter().map(line))
        }
        ConfigValue::Section(_) | ConfigValue::Sections(_) => return None,
    })
}

fn preset(preset: Preset) -> Option<Setting> {
    Some(match preset {
        Preset::Nothing(_) | Preset::Inherited(_) | Preset::Required => return None,
        Preset::Flag(flag) => Setting::Flag(flag),
        Preset::Integer(number) => integer(number),
        Preset::Size(bytes) => Setting::Text(size_text(bytes)),
        Preset::Time(time) => Setting::Text(duration_text(time)),
        Preset::Text(text) => Setting::text(text),
        Preset::Texts(all) => texts(all),
    })
}

fn integer(number: i64) -> Setting {
    u64::try_from(number).map_or_else(|_| Setting::Text(number.to_string()), Setting::Number)
}

fn texts(all: impl IntoIterator<Item: ToString>) -> Setting {
    Setting::Texts(all.into_iter().map(|one| one.to_string()).collect())
}
