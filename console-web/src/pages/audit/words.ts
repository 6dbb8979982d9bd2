/** Operations, kinds of things and of actors in words; those of a newer node are shown as they are. */
import { useTranslation } from "react-i18next";
import type { Action } from "../../api/actions";
import texts from "../../i18n/en/audit";

type Words = "actions" | "kinds" | "actors";

function isIn<Group extends Words>(group: Group, word: string): word is Extract<keyof (typeof texts)[Group], string> {
  return Object.hasOwn(texts[group], word);
}

/** Words for all that the node says can be done: one that lacks does not compile. */
const WORDS: Readonly<Record<Action, string>> = texts.actions;

/** All known operations, in order. */
export const ACTIONS = Object.keys(WORDS);

/** All known kinds of things, in order. */
export const KINDS = Object.keys(texts.kinds);

export function useAuditWords(): { action: (word: string) => string; kind: (word: string) => string; actor: (word: string) => string } {
  const { t } = useTranslation("audit");
  return {
    action: (word) => (isIn("actions", word) ? t(`actions.${word}`) : word),
    kind: (word) => (isIn("kinds", word) ? t(`kinds.${word}`) : word),
    actor: (word) => (isIn("actors", word) ? t(`actors.${word}`) : word),
  };
}
