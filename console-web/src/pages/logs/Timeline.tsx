/** What happened to a run, step by step, with the time between the steps. */
import { Typography } from "antd";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import { useNow } from "../../lib/now";
import { hasEnded, toneOfLog } from "../../lib/states";
import { storyOf, type Log, type Step } from "../../lib/taskLog";
import { span } from "../../lib/time";
import { Moment } from "../../parts/Moment";
import { Reason } from "../../parts/Reason";
import { LogStatus } from "../../parts/Tags";
import type { useNames } from "./names";
import { visible } from "../../lib/rawText";

type Names = ReturnType<typeof useNames>;

/** A start within this of its due time is not called late. */
const PUNCTUAL_MS = 1_000;

function dispatched({ executor, executor_address: address, attempt = 1 }: Step, node: string | undefined, t: TFunction<"logs">, names: Names): string {
  if (executor == null) return node === undefined ? t("step.dispatched", { attempt }) : t("step.dispatched_by", { attempt, node });
  const values = { attempt, executor: address ?? names.executor(executor) };
  return node === undefined ? t("step.dispatched_to", values) : t("step.dispatched_to_by", { ...values, node });
}

function words(step: Step, t: TFunction<"logs">, names: Names): string {
  const node = step.node == null ? undefined : names.node(step.node);
  const attempt = step.attempt ?? 1;
  switch (step.kind) {
    case "written":
      return node === undefined ? t("step.written") : t("step.written_by", { node });
    case "fire":
      return t("step.fire");
    case "due":
      return attempt > 1 ? t("step.due_again", { attempt }) : t("step.due");
    case "claimed":
      return node === undefined ? t("step.claimed", { attempt }) : t("step.claimed_by", { node, attempt });
    case "dispatched":
      return dispatched(step, node, t, names);
    case "started":
      return step.ms === undefined || step.ms < 1 ? t("step.started") : t("step.started_late", { span: span(step.ms) });
    case "failed":
      return step.ms === undefined ? t("step.failed", { attempt }) : t("step.failed_after", { attempt, span: span(step.ms) });
    case "ended":
      return step.ms === undefined ? t("step.ended") : t("step.ended_after", { span: span(step.ms) });
  }
}

function toneOf(step: Step): string {
  if (step.status !== undefined) return toneOfLog(step.status);
  return step.kind === "started" && (step.ms ?? 0) > PUNCTUAL_MS ? "odd" : "open";
}

export function Timeline({ log, names, zone }: { log: Log; names: Names; zone: string | undefined }) {
  const { t } = useTranslation("logs");
  const steps = storyOf(log);
  const now = useNow(1_000);
  return (
    <ol className="log-story">
      {steps.map((step, index) => {
        const before = steps[index - 1];
        return (
          <li key={`${step.kind} ${step.attempt ?? 0} ${step.at}`} className={`log-step log-step-${toneOf(step)}`}>
            {before !== undefined && step.at > before.at && <div className="log-between">{t("step.later", { span: span(step.at - before.at) })}</div>}
            <div>
              <Moment at={step.at} zone={zone} exactness="millisecond" />
              <strong className="log-step-words">{words(step, t, names)}</strong>
              {step.at > now && !hasEnded(log.status) && <Typography.Text type="secondary">{` ${t("step.to_come")}`}</Typography.Text>}
              {step.status !== undefined && (
                <>
                  {" "}
                  <LogStatus status={step.status} />
                </>
              )}
            </div>
            {step.kind === "failed" && (
              <Typography.Text type="secondary" className="log-step-why">
                <Reason reason={step.reason ?? ""} /> <bdi>{visible(step.message ?? "")}</bdi>
              </Typography.Text>
            )}
          </li>
        );
      })}
    </ol>
  );
}
