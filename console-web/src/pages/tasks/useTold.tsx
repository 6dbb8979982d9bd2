/** Tells, after a change of a task, which runs go on all the same. */
import { App, Flex } from "antd";
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { useLink } from "../../lib/tenant";

type Consequence = Pick<Schema<"Changed">, "running" | "unreachable">;

/** More than these are only counted. */
const MAX_LINKS = 10;

function Logs({ ids, toLog }: { ids: string[]; toLog: (id: string) => string }) {
  return (
    <Flex gap="small" wrap>
      {ids.slice(0, MAX_LINKS).map((id) => (
        <Link key={id} to={toLog(id)}>
          {id}
        </Link>
      ))}
      {ids.length > MAX_LINKS && <span>+{ids.length - MAX_LINKS}</span>}
    </Flex>
  );
}

/** Says nothing when there is nothing to say. */
export function useTold(): (changed: Consequence) => void {
  const { notification } = App.useApp();
  const { t } = useTranslation("tasks");
  const link = useLink();
  return useCallback(
    ({ running, unreachable }) => {
      const toLog = (id: string) => link(`/logs/${id}`);
      if (running.length > 0) {
        notification.info({ title: t("told.running", { count: running.length }), description: <Logs ids={running} toLog={toLog} />, duration: 10 });
      }
      if (unreachable.length > 0) {
        notification.warning({ title: t("told.unreachable", { count: unreachable.length }), description: <Logs ids={unreachable} toLog={toLog} />, duration: 0 });
      }
    },
    [notification, t, link],
  );
}
