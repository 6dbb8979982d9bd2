/** One line of a task's history. */
import { Flex, Typography } from "antd";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { DEFAULTS, definitionOf, FIELDS, readDefinition, readObject } from "../../lib/definition";
import { diff } from "../../lib/diff";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { useAuditWords } from "../audit/words";
import { Changes } from "./Changes";
import { Restore } from "./Restore";

interface Properties {
  task: Schema<"Task">;
  entry: Schema<"AuditEntry">;
  mayRestore: boolean;
}

export function HistoryEntry({ task, entry, mayRestore }: Properties) {
  const { t } = useTranslation("tasks");
  const words = useAuditWords();
  const version = useMemo(() => readDefinition(entry.after), [entry.after]);
  const isNow = version !== undefined && diff(definitionOf(task), version).length === 0;
  return (
    <Flex vertical gap={4}>
      <Flex justify="space-between" align="start" gap="small" wrap>
        <div>
          <strong className="sentence">{words.action(entry.action)}</strong>{" "}
          <Typography.Text type="secondary">
            {t(`history.by`, { actor: entry.actor, address: entry.address === "" ? "–" : entry.address })} · <Moment at={entry.at} /> (
            <Moment at={entry.at} relative />)
          </Typography.Text>
        </div>
        {version !== undefined && mayRestore && !isNow && <Restore task={task} version={version} at={entry.at} />}
        {isNow && <Typography.Text type="secondary">{t("history.is_now")}</Typography.Text>}
      </Flex>
      <WhatChanged entry={entry} />
    </Flex>
  );
}

function WhatChanged({ entry }: { entry: Schema<"AuditEntry"> }) {
  const { t } = useTranslation("tasks");
  const link = useLink();
  const [before, after] = [readObject(entry.before), readObject(entry.after)];
  if (entry.action === "run_task" && typeof after?.log === "string") {
    return <Link to={link(`/logs/${after.log}`)}>{t("run.log", { id: after.log })}</Link>;
  }
  if (entry.action.endsWith("_backfill") && typeof after?.from === "number" && typeof after.until === "number") {
    return (
      <span>
        <Moment at={after.from} /> – <Moment at={after.until} />
      </span>
    );
  }
  if (after === undefined) return null;
  // Of a new task: what differs from the defaults.
  const base = before ?? { ...DEFAULTS, started: false, pause_note: null };
  const changes = diff(base, after, FIELDS);
  return changes.length === 0 ? null : <Changes changes={changes} />;
}
