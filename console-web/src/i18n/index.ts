/** The languages of the console. English is the measure: Chinese has the same keys, or it does not compile. */
import dayjs from "dayjs";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { sayInChinese } from "./fieldWords";
import type en from "./en";

/** A language that the console speaks. */
export type Language = "en" | "zh";

/** Every text of the console. */
export type Texts = typeof en;

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "common";
    resources: Texts;
    returnNull: false;
  }
}

const KEPT = "carillon.language";

/** The language that was chosen here before, else the browser's, else English. */
export function preferredLanguage(): Language {
  const kept = localStorage.getItem(KEPT);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.languages.some((tag) => tag.toLowerCase().startsWith("zh")) ? "zh" : "en";
}

async function load(language: Language): Promise<void> {
  if (i18next.hasResourceBundle(language, "common")) return;
  const texts: Record<string, object> = language === "zh" ? (await import("./zh")).default : (await import("./en")).default;
  // Calendars in forms name months; English comes with the library.
  if (language === "zh") {
    await import("dayjs/locale/zh-cn");
    sayInChinese(await import("./zh/refusals"));
  }
  for (const [namespace, bundle] of Object.entries(texts)) i18next.addResourceBundle(language, namespace, bundle);
}

/** Speaks this language from now on, and remembers it. */
export async function speak(language: Language): Promise<void> {
  await load(language);
  dayjs.locale(language === "zh" ? "zh-cn" : "en");
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  localStorage.setItem(KEPT, language);
}

/** To be called once, before the first page. */
export async function startSpeaking(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: preferredLanguage(),
    fallbackLng: false,
    defaultNS: "common",
    resources: {},
    // React escapes what it shows.
    interpolation: { escapeValue: false },
    partialBundledLanguages: true,
  });
  await speak(preferredLanguage());
}
