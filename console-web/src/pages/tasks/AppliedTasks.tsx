/** What a task file makes, or would make, of each task. */
import { Alert, Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import type { Tone } from "../../lib/states";
import { Word } from "../../parts/Tags";
import { Changes } from "./Changes";

const TONES: Record<string, Tone> = { create: "good", change: "odd", unchanged: "idle" };

/** More tasks than these are only counted. */
const MAX_SHOWN = 200;

export function AppliedTasks({ applied }: { applied: Schema<"Applied"> }) {
  const { t } = useTranslation("tasks");
  const { created, changed, unchanged } = applied;
  const told = applied.tasks.filter(({ action, warning }) => action !== "unchanged" || typeof warning === "string");
  return (
    <section aria-label={t("import.result")}>
      <Alert
        type={applied.dry_run ? "info" : "success"}
        showIcon
        title={t(applied.dry_run ? "import.would" : "import.was", { created, changed, unchanged })}
      />
      <ul className="plain-list">
        {told.slice(0, MAX_SHOWN).map((task) => (
          <li key={`${task.tenant}/${task.app}/${task.name}`} className="plain-item">
            <AppliedTask task={task} />
          </li>
        ))}
      </ul>
      {told.length > MAX_SHOWN && <Typography.Text type="secondary">{t("import.more", { count: told.length - MAX_SHOWN })}</Typography.Text>}
    </section>
  );
}

function AppliedTask({ task }: { task: Schema<"AppliedTask"> }) {
  const { t } = useTranslation("tasks");
  const { action, warning } = task;
  // A newer node may know more.
  const isKnown = ["create", "change", "unchanged"].includes(action);
  return (
    <Flex vertical gap={4}>
      <Flex gap="small" align="center" wrap>
        <Word tone={TONES[action] ?? "idle"}>{isKnown ? t(`import.action.${action}`) : action}</Word>
        <strong>{`${task.tenant} / ${task.app} / ${task.name}`}</strong>
      </Flex>
      {task.changes.length > 0 && <Changes changes={task.changes} />}
      {typeof warning === "string" && <Alert type="warning" showIcon title={warning} />}
    </Flex>
  );
}
