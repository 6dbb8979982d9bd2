/** Goes back to an earlier definition of a task, after showing what that changes. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { definitionOf, FIELDS, type Definition } from "../../lib/definition";
import { diff } from "../../lib/diff";
import { instant, viewerZone } from "../../lib/time";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";
import { Changes } from "./Changes";
import { useTold } from "./useTold";

interface Properties {
  task: Schema<"Task">;
  version: Definition;
  /** When it became so. */
  at: number;
}

export function Restore({ task, version, at }: Properties) {
  const { t } = useTranslation("tasks");
  const { run } = useAction();
  const told = useTold();
  const restore = () =>
    run(
      async () => (await client.PUT("/tasks/{id}", { params: { path: { id: task.id }, header: ifMatch(task.revision) }, body: version })).data,
      { done: t("restore.done"), then: (changed) => changed && told(changed) },
    );
  return (
    <Confirm
      label={t("restore.button")}
      question={t("restore.question", { at: instant(at, viewerZone()) })}
      danger={false}
      onConfirm={restore}
      button={{ size: "small" }}
      consequence={<Typography.Text>{t("restore.consequence")}</Typography.Text>}
    >
      <Changes changes={diff(definitionOf(task), version, FIELDS)} />
    </Confirm>
  );
}
