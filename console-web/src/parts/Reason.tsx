/** Why a run is where it is, in plain words. */
import { useTranslation } from "react-i18next";
import reasons from "../i18n/en/reasons";

type Word = keyof typeof reasons;

function isKnown(word: string): word is Word {
  return Object.hasOwn(reasons, word);
}

/** Nothing for no reason; a word that a newer node sends is shown as it is. */
export function Reason({ reason }: { reason: string }) {
  const { t } = useTranslation("reasons");
  if (reason === "") return null;
  return <>{isKnown(reason) ? t(reason) : reason}</>;
}
