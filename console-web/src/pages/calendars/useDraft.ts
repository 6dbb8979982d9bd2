/** Changes of a calendar that are not saved yet. */
import { App } from "antd";
import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { isSame, withSteps, type CalendarSpec, type DayStep } from "../../lib/calendar";

/**
 * The draft begins as `start`, or as `base`, which is what the node has. `base` may change during editing:
 * the draft and the version that it is of stay, so that saving reports that another change came first.
 */
export function useDraft(base: CalendarSpec, version: number, start: CalendarSpec | undefined) {
  const { t: own } = useTranslation("calendars");
  const { message } = App.useApp();
  const [held, setHeld] = useState<{ spec: CalendarSpec; base: CalendarSpec; version: number }>({ spec: start ?? base, base, version });
  const isChanged = !isSame(held.spec, held.base);
  // Nothing of one's own: one goes with the others. (What one has just saved may be newer than what was read.)
  if (!isChanged && held.version < version) setHeld({ spec: base, base, version });
  const change = useCallback((step: (spec: CalendarSpec) => CalendarSpec) => setHeld((last) => ({ ...last, spec: step(last.spec) })), []);
  const setDays = (steps: readonly DayStep[]) => {
    const { spec, stuck } = withSteps(held.spec, steps);
    change(() => spec);
    if (stuck.length > 0) message.warning(own("editor.stuck", { days: stuck.join(", ") }));
  };
  /** What was sent is what the node has now; what was typed meanwhile stays to be saved. */
  const saved = (sent: CalendarSpec, base: CalendarSpec, of: number) => setHeld((last) => ({ spec: last.spec === sent ? base : last.spec, base, version: of }));
  const adopt = (spec: CalendarSpec, of: number) => setHeld({ spec, base: spec, version: of });
  return { spec: held.spec, version: held.version, isChanged, change, setDays, saved, adopt, discard: () => adopt(held.base, held.version) };
}

/** A draft, and how to change it. */
export type Draft = ReturnType<typeof useDraft>;
