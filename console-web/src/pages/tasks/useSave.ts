/** Writes what the editor holds, and keeps what the node said against it. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import { client, ifMatch, Problem, type FieldError, type Schema } from "../../api/client";
import type { Definition } from "../../lib/definition";
import { refusalOf } from "../../lib/refusals";
import { useLink } from "../../lib/tenant";
import { useAction } from "../../parts/useAction";
import { useTold } from "./useTold";

interface Written {
  tenant: string;
  app: string;
  values: Definition;
  isStarted: boolean;
}

/** Another change came first: the task as it was read, and as it is now. */
export interface Meanwhile {
  base: Schema<"Task">;
  latest: Schema<"Task">;
}

/** `onSaved` is called before the page is left for that of the task. */
export function useSave(task: Schema<"Task"> | undefined, onSaved: () => void) {
  const { t } = useTranslation("tasks");
  const link = useLink();
  const navigate = useNavigate();
  const told = useTold();
  const { busy, run } = useAction();
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const [conflict, setConflict] = useState<Meanwhile>();
  // What the typed values were read from; not what the query reads again.
  const [base, setBase] = useState(task);

  const write = async ({ tenant, app, values, isStarted }: Written) => {
    if (base === undefined) {
      const { data } = await client.POST("/tasks", { body: { ...values, tenant, app, started: isStarted } });
      return data;
    }
    const { data } = await client.PUT("/tasks/{id}", { params: { path: { id: base.id }, header: ifMatch(base.revision) }, body: values });
    if (data !== undefined) told(data);
    return data?.task;
  };
  const failed = (error: unknown): boolean => {
    if (!(error instanceof Problem)) return false;
    if (refusalOf(error)?.key === "name_taken") {
      setErrors([{ field: "name", message: t("editor.name_taken") }]);
      return true;
    }
    if (error.status === 409 && base !== undefined) {
      void client.GET("/tasks/{id}", { params: { path: { id: base.id } } }).then(
        ({ data }) => data !== undefined && setConflict({ base, latest: data }),
        () => undefined,
      );
      return true;
    }
    setErrors(error.errors);
    return error.errors.length > 0;
  };
  const save = async (written: Written) => {
    setErrors([]);
    await run(() => write(written), {
      done: t(task === undefined ? "editor.created" : "editor.saved", { name: written.values.name }),
      then: (saved) => {
        if (saved === undefined) return;
        onSaved();
        void navigate(link(`/tasks/${saved.id}`));
      },
      failed,
    });
  };
  /** From now on the typed values stand on this version. */
  const settle = (latest: Schema<"Task">) => setBase(latest);
  return { busy, errors, conflict, save, settle };
}
