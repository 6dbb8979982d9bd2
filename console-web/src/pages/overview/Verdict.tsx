/** The overview in one line, and what else is the matter. */
import { Alert, Flex, type AlertProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSession } from "../../api/session";
import type { Tone } from "../../lib/states";
import { useLink } from "../../lib/tenant";
import { instant, span, viewerZone } from "../../lib/time";
import { Placeholder } from "../../parts/Placeholder";
import { toneOf, verdict, type Facts, type Finding } from "../../lib/verdict";

const TYPES: Record<Tone, AlertProps["type"]> = { good: "success", bad: "error", odd: "warning", open: "info", idle: "info" };

function useWords(): (finding: Finding) => string {
  const { t } = useTranslation("overview");
  return (finding) => {
    switch (finding.says) {
      case "runs_late":
        return t("verdict.runs_late", { span: span(Math.round(finding.ms)) });
      case "figures_old":
        return t("verdict.figures_old", { at: instant(finding.since, viewerZone(), "minute") });
      case "tasks_wait":
      case "runs_failed":
      case "nodes_lost":
      case "runs_overdue":
      case "runs_discarded":
      case "runs_expired":
        return t(`verdict.${finding.says}`, { count: finding.count });
      default:
        return t(`verdict.${finding.says}`);
    }
  };
}

/** Where one looks because of it, if one may. */
function Look({ finding }: { finding: Finding }) {
  const { t } = useTranslation("overview");
  const { may } = useSession();
  const link = useLink();
  const logs = (search: Record<string, string>) =>
    may("task_logs.read") && <Link to={link("/logs", search)}>{t("look.logs")}</Link>;
  switch (finding.says) {
    case "no_executor":
      return may("executors.read") && <Link to={link("/executors")}>{t("look.executors")}</Link>;
    case "nothing_yet":
      return may("apps.read") && <Link to={link("/apps")}>{t("look.apps")}</Link>;
    case "nothing_fires":
      return may("tasks.read") && <Link to={link("/tasks")}>{t("look.tasks")}</Link>;
    case "nodes_lost":
      return may("nodes.read") && <Link to={link("/nodes")}>{t("look.nodes")}</Link>;
    case "tasks_wait":
      return logs({ status: "retry" });
    case "runs_failed":
      return logs({ status: "failed" });
    case "runs_overdue":
      return logs({ status: "queued" });
    case "runs_discarded":
      return logs({ status: "discarded" });
    case "runs_expired":
      return logs({ status: "expired" });
    default:
      return null;
  }
}

/** `isWaiting`: what it goes by is on its way. */
export function Verdict({ facts, isWaiting }: { facts: Facts; isWaiting: boolean }) {
  const { t } = useTranslation("overview");
  const words = useWords();
  const [first, ...others] = verdict(facts);
  if (first === undefined) {
    return isWaiting ? (
      <div aria-busy="true" className="verdict">
        <Placeholder />
      </div>
    ) : null;
  }
  return (
    <Alert
      type={TYPES[toneOf(first)]}
      showIcon
      role="status"
      className="verdict"
      data-verdict={first.says}
      title={<strong>{words(first)}</strong>}
      description={
        <Flex vertical gap={4}>
          <span>
            {t(`help.${first.says}`)} <Look finding={first} />
          </span>
          {others.length > 0 && (
            <ul className="verdict-others" aria-label={t("also")}>
              {others.map((finding) => (
                <li key={finding.says}>
                  {words(finding)} <Look finding={finding} />
                </li>
              ))}
            </ul>
          )}
        </Flex>
      }
    />
  );
}
