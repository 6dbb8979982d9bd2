/** Small parts of a task log that the list, the shards and the page of a log share. */
import { useTranslation } from "react-i18next";
import logs from "../../i18n/en/logs";
import common from "../../i18n/en/common";
import { useNow } from "../../lib/now";
import { duration, lateness, type Log } from "../../lib/taskLog";
import { span } from "../../lib/time";

type Short = keyof typeof logs.reason_short;
type TriggerWord = keyof typeof common.trigger;

/** Every reason that this console has a text for. */
export const REASONS = Object.keys(logs.reason_short) as Short[];
/** Every trigger. */
export const TRIGGERS = Object.keys(common.trigger) as TriggerWord[];

/** A reason in two or three words, cut where there is no room; one of a newer node as it is. */
export function ShortReason({ reason }: { reason: string }) {
  const { t } = useTranslation("logs");
  const known = REASONS.find((word) => word === reason);
  const text = known === undefined ? reason : t(`reason_short.${known}`);
  return (
    <span className="log-reason" title={text}>
      {text}
    </span>
  );
}

export function Trigger({ trigger }: { trigger: string }) {
  const { t } = useTranslation();
  const known = TRIGGERS.find((word) => word === trigger);
  return <>{known === undefined ? trigger : t(`trigger.${known}`)}</>;
}

/** How late it started. */
export function Lateness({ log }: { log: Log }) {
  const late = lateness(log);
  return <span className="number">{late === undefined ? "–" : span(late)}</span>;
}

/** How long it ran, or runs. */
export function Duration({ log }: { log: Log }) {
  // When it started comes with its result; until then it counts from when it was due.
  if (log.status === "dispatched" || log.status === "stopping") return <RunningFor since={log.started_at ?? log.due_time} />;
  const ms = duration(log);
  return <span className="number">{ms === undefined ? "–" : span(ms)}</span>;
}

function RunningFor({ since }: { since: number }) {
  const { t } = useTranslation("logs");
  const ms = useNow(1_000) - since;
  // An executor has it already, and it is not due yet.
  if (ms < 0) return <>–</>;
  return (
    <span className="number">
      {span(Math.floor(ms / 1_000) * 1_000)} {t("runs_still")}
    </span>
  );
}

export function Attempts({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  if (log.failures === 0) return <span className="number">{log.attempt}</span>;
  return <span className="number">{t("attempts_of", { attempts: log.attempt, failures: log.failures })}</span>;
}

/** A name that a user chose: it cannot change the direction of the text around it, and what is too long is cut. */
export function Name({ children }: { children: string }) {
  return (
    <bdi className="log-name" title={children}>
      {children}
    </bdi>
  );
}
