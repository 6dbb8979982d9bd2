/** Saves a draft; what the node refuses is sorted by the fields of the form. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { specOf } from "../../lib/calendar";
import { errorsOf, type OfField } from "../../lib/form-errors";
import { useAction } from "../../parts/useAction";
import type { Draft } from "./useDraft";

/** Fields of the form, as the API names them. */
export const FIELDS = ["name", "description", "excluded_weekdays", "excluded_hours", "excluded_days", "workdays"] as const;

export function useSaving(tenant: string, draft: Draft, onSaved: ((name: string) => void) | undefined) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const { busy, run } = useAction();
  const [errors, setErrors] = useState<OfField[]>([]);
  const [error, setError] = useState<unknown>(null);
  const failed = (failure: unknown) => {
    const { shown, rest } = errorsOf(failure, FIELDS);
    setErrors(shown);
    setError(rest ? failure : null);
    return true;
  };
  const forget = () => {
    setErrors([]);
    setError(null);
  };
  const put = async (name: string) => {
    // Version 0 is none: the node refuses where there is a calendar of this name already.
    const params = { path: { tenant, name }, header: ifMatch(draft.version) };
    const sent = draft.spec;
    const { data } = await client.PUT("/calendars/{tenant}/{name}", { params, body: sent });
    // Before everything is read again: the new version is one's own.
    if (data !== undefined) draft.saved(sent, specOf(data.calendar), data.calendar.version);
    return data;
  };
  const done = (saved: Schema<"PutCalendar"> | undefined) =>
    saved === undefined ? t("saved") : own("editor.saved", { version: saved.calendar.version, tasks: saved.tasks });
  const save = (name: string) => {
    forget();
    return run(() => put(name), { failed, done, then: () => onSaved?.(name) });
  };
  /** Gives one's own changes up for what the node has now. */
  const loadCurrent = (name: string) => {
    const get = async () => {
      const { data } = await client.GET("/calendars/{tenant}/{name}", { params: { path: { tenant, name } } });
      if (data !== undefined) draft.adopt(specOf(data), data.version);
    };
    return run(get, { then: forget, done: own("editor.loaded") });
  };
  return { busy, errors, error, save, loadCurrent };
}
