/** What no page may show: values that are none, and keys instead of their texts. */
import en from "../../src/i18n/en";

type Texts = { readonly [key: string]: string | Texts };

/** Every key as it is asked for within its namespace, such as `live.try_now`. */
function keysOf(texts: Texts, before = ""): string[] {
  return Object.entries(texts).flatMap(([key, text]) => (typeof text === "string" ? [before + key] : keysOf(text, `${before}${key}.`)));
}

const KEYS = Object.values<Texts>(en).flatMap((texts) => keysOf(texts));
/** A key that has no text is shown as it stands. One that is a plain word cannot be told from text. */
const KNOWN = new Set(KEYS.filter((key) => /[._]/.test(key)));
/** What a nested key begins with: one that nobody has a text for begins like others. */
const ROOTS = new Set([...Object.keys(en), ...KEYS.filter((key) => key.includes(".")).map((key) => key.split(".")[0])]);

const VALUE = /\b(?:undefined|NaN|Invalid Date)\b|\[object \w+\]|\{\{\w+\}\}/g;
const KEY = /(?<![\w./:-])[a-z][a-z0-9]*(?:[_.:][a-z0-9]+)+(?![\w/:-])/g;

/** What of a page's text must not be there. `names` look like keys and are none: those of permissions, of settings. */
export function faultsIn(text: string, names: ReadonlySet<string>): string[] {
  const keys = (text.match(KEY) ?? []).filter((word) => !names.has(word) && (KNOWN.has(word) || (/[.:]/.test(word) && ROOTS.has(word.split(/[.:_]/)[0] ?? ""))));
  return [...(text.match(VALUE) ?? []), ...keys];
}
