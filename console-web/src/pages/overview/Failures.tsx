/** Runs that ended badly, by task and reason, the newest first. */
import { Button, Flex, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { groupFailures, type Group } from "../../lib/failures";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { Reason } from "../../parts/Reason";
import { Section } from "../../parts/Section";
import { LogStatus } from "../../parts/Tags";
import { useBadLogs } from "./useBadLogs";

/** Groups that are shown at first. */
const FEW = 6;

export function Failures({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("overview");
  const [isAll, setIsAll] = useState(false);
  const lists = [useBadLogs(tenant, "failed"), useBadLogs(tenant, "discarded"), useBadLogs(tenant, "expired")];
  const error = lists.find((list) => list.error !== null)?.error;
  const isKnown = lists.every((list) => list.logs !== undefined);
  // Of a state with more logs than were looked at, the counts are the least that there are.
  const full = new Set(lists.filter((list) => list.isFull).flatMap((list) => list.logs?.[0]?.status ?? []));
  const groups = groupFailures(lists.flatMap((list) => list.logs ?? []));
  const shown = isAll ? groups : groups.slice(0, FEW);
  return (
    <Section
      title={t("failures.title")}
      extra={<Typography.Text type="secondary">{t("failures.subtitle")}</Typography.Text>}
      isKnown={isKnown || groups.length > 0}
      error={error}
      again={() => lists.forEach((list) => void list.refetch())}
    >
      {groups.length === 0 && <Typography.Text type="secondary">{t("failures.none")}</Typography.Text>}
      <ul className="failures">
        {shown.map((group) => (
          <FailureGroup key={group.key} group={group} name={group.name} isLeast={full.has(group.status)} showTenant={tenant === undefined} />
        ))}
      </ul>
      {shown.length < groups.length && (
        <Button size="small" onClick={() => setIsAll(true)}>
          {t("failures.more", { count: groups.length - shown.length })}
        </Button>
      )}
    </Section>
  );
}

interface GroupProperties {
  group: Group;
  name: string;
  /** Whether there may be more of them than were counted. */
  isLeast: boolean;
  showTenant: boolean;
}

function FailureGroup({ group, name, isLeast, showTenant }: GroupProperties) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const { task, tenant, status, reason, count, last, log, message } = group;
  return (
    <li className="failure-group">
      <Flex gap="small" align="center" wrap>
        <Link to={link(`/tasks/${task}`)} className="failure-task">
          {name}
        </Link>
        {showTenant && <Typography.Text type="secondary">{tenant}</Typography.Text>}
        <LogStatus status={status} />
        <span className="number">{t(isLeast ? "failures.at_least" : "failures.times", { count })}</span>
        <Typography.Text type="secondary">
          <Moment at={last} relative />
        </Typography.Text>
        <span className="failure-links">
          <Link to={link(`/logs/${log}`)}>{t("failures.newest")}</Link>
          <Link to={link("/logs", { task, status, reason })} aria-label={t("failures.list_of", { task: name })}>
            {t("failures.list")}
          </Link>
        </span>
      </Flex>
      <div>
        <Reason reason={reason} />
      </div>
      {message !== "" && <div className="failure-message">{message}</div>}
    </li>
  );
}
