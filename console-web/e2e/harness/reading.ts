/** What a page says, and which of that is in the wrong language. */
import type { Page } from "playwright-core";
import en from "../../src/i18n/en";
import zh from "../../src/i18n/zh";
import type { Like } from "../../src/i18n/shape";

/** The texts of one language. */
export type Texts = Like<typeof en>;

/** Every text that a person reads now, or hears of a control: not what is typed, nor what tasks, runs and the node say raw. */
export async function read(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const raw = "pre.raw, .mono, .failure-detail, .failure-message, script, style, noscript";
    const seen = new Set<string>([document.title]);
    const isShown = (element: Element | null) => element?.checkVisibility({ visibilityProperty: true }) === true;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const parent = node.parentElement;
      const text = (node.textContent ?? "").trim();
      if (text !== "" && parent?.closest(raw) === null && isShown(parent)) seen.add(text);
    }
    const spoken = ["placeholder", "aria-label", "aria-description", "aria-valuetext", "title", "alt"];
    for (const element of document.querySelectorAll(spoken.map((name) => `[${name}]`).join(","))) {
      if (!isShown(element) || element.closest(raw) !== null) continue;
      for (const name of spoken) seen.add((element.getAttribute(name) ?? "").trim());
    }
    seen.delete("");
    return [...seen];
  });
}

/** Every text with its key. */
function flat(texts: object, at = ""): [key: string, text: string][] {
  return Object.entries(texts).flatMap(([name, value]: [string, unknown]) =>
    typeof value === "object" && value !== null ? flat(value, `${at}.${name}`) : [[`${at}.${name}`.slice(1), String(value)] as [string, string]],
  );
}

const ZH = new Map(flat(zh));
const IS_ZH = new Set(ZH.values());
/** What differs between the languages. */
const ENGLISH = flat(en).filter(([key, text]) => ZH.get(key) !== text);

/** As a part of a longer text, where it is long enough not to be there by chance. */
const PARTS = ENGLISH.map(([key, text]) => ({ key, parts: text.split(/\{\{\w+\}\}/) }))
  .filter(({ parts }) => parts.join("").length > 12)
  .map(({ key, parts }) => ({ key, pattern: new RegExp(`(?<![A-Za-z])${parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join(".*")}(?![A-Za-z])`, "s") }));
/** As the whole of one. */
const WHOLE = new Map(ENGLISH.filter(([, text]) => /[A-Za-z]{2}/.test(text)).map(([key, text]) => [text, key]));

/** Three words in a row are a sentence that nobody has translated, wherever it comes from. */
const SENTENCE = /[A-Za-z]+,? [a-z']+,? [a-z']+/;

/** English on a Chinese page; `data` is what the test itself has put there. */
export function english(read: readonly string[], data: readonly string[]): string[] {
  return read.flatMap((text) => {
    if (IS_ZH.has(text)) return [];
    const known = PARTS.find(({ pattern }) => pattern.test(text));
    if (known !== undefined) return [`${known.key}: ${text}`];
    const rest = data.reduce((left, each) => left.replaceAll(each, ""), text).trim();
    const whole = WHOLE.get(rest);
    if (whole !== undefined) return [`${whole}: ${text}`];
    return SENTENCE.test(rest) ? [`no text of the console: ${text}`] : [];
  });
}

const HAN = /[\u2e80-\u2fff\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]/;
/** Texts that tell what of a Chinese notice is understood. */
const ABOUT_CHINESE = flat(en).map(([, text]) => text).filter((text) => HAN.test(text));

/** Chinese on an English page, but for the name by which one chooses that language. */
export function chinese(read: readonly string[]): string[] {
  return read.filter((text) => HAN.test(text) && text !== "中文" && !ABOUT_CHINESE.includes(text));
}
